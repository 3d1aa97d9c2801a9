"""Step time of the PyTorch peer over that of spt-bench: pairs run in turn on the same threads, and the median ratio with its interval.

    build/peers-venv/bin/python tests/bench/compare_steps.py --configuration s4d-image-1k --pairs 15

A ratio above 1 means that spt-bench is faster. Both sides get an allocator that keeps large blocks (the worker sets its own).
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALLOCATOR = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}


def median_interval(values: list[float]) -> tuple[float, float]:
    """Order statistics that hold the median with at least 95 % (sign test)."""
    ordered, n = sorted(values), len(values)
    tail, k = 0.0, 0
    while True:
        tail += math.comb(n, k) / 2**n
        if tail > 0.025:
            break
        k += 1
    return (ordered[max(k - 1, 0)], ordered[min(n - k, n - 1)]) if k else (ordered[0], ordered[-1])


def run(command: list[str], extra: dict[str, str]) -> dict:
    environment = dict(os.environ, GOMP_SPINCOUNT="0", **extra)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--configuration", required=True)
    p.add_argument("--size", default="cpu")
    p.add_argument("--objective", default="supervised", choices=("supervised", "masked"))
    p.add_argument("--kernel", default="fast", choices=("published", "fast"))
    p.add_argument("--pairs", type=int, default=15)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=10)
    p.add_argument("--warmup", type=int, default=2)
    p.add_argument("--ours", default=str(ROOT / "build/release/bin/spt-step-bench"))
    args = p.parse_args()
    common = ["--configuration", args.configuration, "--size", args.size, "--objective", args.objective, "--threads", str(args.threads)]
    common += ["--steps", str(args.steps), "--warmup", str(args.warmup)]
    threads = {"OMP_NUM_THREADS": str(args.threads)}
    peer_command = [sys.executable, str(ROOT / "tests/bench/peers/bench_step.py"), *common, "--kernel", args.kernel, "--json"]
    ratios, ours_ms, peer_ms = [], [], []
    for pair in range(args.pairs):
        sides = [("peer", peer_command, threads | ALLOCATOR), ("ours", [args.ours, *common], threads)]
        times = {name: run(command, extra)["ms_per_step"] for name, command, extra in (sides if pair % 2 == 0 else reversed(sides))}
        ratios.append(times["peer"] / times["ours"])
        ours_ms.append(times["ours"])
        peer_ms.append(times["peer"])
    low, high = median_interval(ratios)
    print(
        f"{args.configuration} {args.size} {args.objective} threads={args.threads} pairs={args.pairs}: peer/ours {statistics.median(ratios):.3f} "
        f"[{low:.3f}, {high:.3f}]; ours {statistics.median(ours_ms):.1f} ms, peer {statistics.median(peer_ms):.1f} ms a step"
    )


if __name__ == "__main__":
    main()
