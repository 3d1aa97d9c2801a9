#!/usr/bin/env python3
"""How long training waits for data, task by task: a short run of each, and the worker's own measurement.

    tests/bench/data_wait.py --bench build/release/bin/spt-bench --data DIR [--task NAME ...] [--steps N]

Prints a row of Markdown a task: steps, median length, seconds a step, share of the step spent waiting for the prefetch threads. Tasks whose data are
not in DIR are left out, with the reason. Nothing is written into DIR but what spt-bench keeps there.
"""
import argparse
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

# Batch and options of each task: data that may be there in part, few evaluations. A small model waits for data more easily than a large one.
TASKS = {
    "bidmc-hr": (8, ""),
    "fashion": (32, ""),
    "image": (32, "partial = true"),
    "listops": (16, "train_examples = 4000"),
    "pathfinder32": (32, ""),
    "pathx": (4, ""),
    "pathx256": (2, ""),
    "retrieval": (4, 'source = "scisummnet"'),
    "scifar": (32, "partial = true"),
    "speech": (4, 'release = "v0.01", words = "down eight five go left one right up zero", partial = true'),
    "text": (8, ""),
}
MATRIX = """name = "data-wait"
seeds = [1]
reference = "{architecture}"
protocols = ["scratch"]
[budget]
finetune = {{ steps = {steps} }}
evaluations = 1
[train]
batch = {batch}
[[architecture]]
name = "{architecture}"
size = "100K"
[[task]]
name = "{task}"
options = {{ {options} }}
"""


def measure(arguments, task, folder):
    batch, options = TASKS[task]
    options = ", ".join(o for o in (options, "validation_examples = 32, test_examples = 32") if o)
    matrix, db = folder / f"{task}.toml", folder / f"{task}.db"
    matrix.write_text(MATRIX.format(architecture=arguments.architecture, steps=arguments.steps, batch=batch, task=task, options=options))
    command = [arguments.bench, "run", "--matrix", str(matrix), "--db", str(db), "--data", arguments.data, "--slots", "1", "--no-report"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return f"| {task} | - | - | {(run.stderr or run.stdout).strip().splitlines()[-1]} |"
    row = sqlite3.connect(db).execute("SELECT steps, tokens, train_s, data_wait_s, open_s FROM attempt WHERE status = 'done'").fetchone()
    steps, _, train_s, wait_s, open_s = row
    return f"| {task} | {batch} | {1000 * train_s / steps:.1f} ms | {100 * wait_s / train_s:.2f} % | {open_s:.2f} s |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--task", action="append", choices=sorted(TASKS))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--architecture", default="s4d")
    arguments = parser.parse_args()
    print("| task | batch | a step | waiting for data | opening |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for task in arguments.task or sorted(TASKS):
            print(measure(arguments, task, pathlib.Path(folder)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
