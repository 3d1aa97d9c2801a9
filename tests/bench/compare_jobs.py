"""Wall time of a whole training job: the PyTorch peer's over spt-bench-worker's, pairs run in turn, median ratio with its interval.

    build/peers-venv/bin/python tests/bench/compare_jobs.py --data DIR --pairs 5

DIR holds data_batch_1.bin and test_batch.bin of CIFAR-10 (binary version). Both sides read the file from disk, train s4d-image-1k (size cpu) for
the same steps with the same batch and threads, evaluate 1,000 examples after every quarter (the worker: 500 of validation, 500 of train), and
write metrics and a checkpoint. The worker also reads its checkpoint back, evaluates it again, and scores 500 test examples. From process start
to exit on both sides. A ratio above 1 means that spt-bench is faster.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare_steps import ALLOCATOR, ROOT, median_interval

MATRIX = """name = "pipeline"
seeds = [1]
protocols = ["scratch"]
[budget]
finetune = {{ steps = {steps} }}
evaluations = 4
[train]
batch = 16
lr = 0.001
[[architecture]]
name = "s4d"
options = {{ n_layers = 6, d_model = 64, d_state = 64 }}
[[task]]
name = "image"
options = {{ partial = true, validation_examples = 500, test_examples = 500 }}
"""


def timed(command: list[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return time.perf_counter() - start


def prepare_request(args: argparse.Namespace, folder: Path) -> Path:
    """The request of the s4d job, as a run of the matrix writes it."""
    images = folder / "data" / "image"
    images.mkdir(parents=True)
    for name in ("data_batch_1.bin", "test_batch.bin"):
        (images / name).symlink_to((args.data / name).resolve())
    (folder / "pipeline.toml").write_text(MATRIX.format(steps=args.steps))
    bench = [str(args.programs / "spt-bench"), "run", "--matrix", str(folder / "pipeline.toml"), "--db", str(folder / "p.db")]
    timed([*bench, "--data", str(folder / "data"), "--slots", "1", "--no-report"], dict(os.environ))
    requests = [path for path in (folder / "p.db.runs").glob("*/request.json") if json.loads(path.read_text())["job"]["architecture"]["name"] == "s4d"]
    return requests[0]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", type=Path, required=True)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--pairs", type=int, default=5)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--programs", type=Path, default=ROOT / "build/release/bin")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        request = prepare_request(args, folder)
        environment = dict(os.environ, GOMP_SPINCOUNT="0", OMP_NUM_THREADS=str(args.threads))
        peer = [sys.executable, str(ROOT / "tests/bench/peers/bench_pipeline.py"), "--task", "cifar10", "--data", str(args.data / "data_batch_1.bin")]
        peer += ["--configuration", "s4d-image-1k", "--kernel", "fast", "--steps", str(args.steps), "--eval-every", str(args.steps // 4)]
        peer += ["--threads", str(args.threads), "--workers", "0", "--out", str(folder / "peer")]
        ratios, ours, theirs = [], [], []
        for pair in range(args.pairs):
            run = folder / "run"
            shutil.rmtree(run, ignore_errors=True)
            run.mkdir()
            shutil.copy(request, run)
            sides = [(ours, [str(args.programs / "spt-bench-worker"), "run", str(run)], environment), (theirs, peer, dict(environment, **ALLOCATOR))]
            for seconds, command, variables in sides if pair % 2 == 0 else reversed(sides):
                seconds.append(timed(command, variables))
            ratios.append(theirs[-1] / ours[-1])
        low, high = median_interval(ratios)
        print(f"{args.steps} steps, {args.threads} thread(s), {args.pairs} pairs: peer {statistics.median(theirs):.1f} s, spt-bench {statistics.median(ours):.1f} s, "
              f"ratio {statistics.median(ratios):.2f} [{low:.2f}, {high:.2f}]")


if __name__ == "__main__":
    main()
