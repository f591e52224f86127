"""Ctrl-C at random moments of ten solves: each gives a certified result or ends cleanly, without incomplete files.

    python benchmarks/attacks/interrupted_solves.py [--moments 200] [--seed 0]

Each solve runs once without Ctrl-C in a separate process, and then with Ctrl-C at moments drawn uniformly from its
duration. After Ctrl-C, the process must save a bundle that verifies (`certified`), or end with KeyboardInterrupt and
without a folder (`ended`). Every other outcome is `wrong`, for example a different exception, or a folder that does not
verify.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mechdesign as md

SOLVE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import mechdesign as md
kind, folder = sys.argv[1:]
columns, rows = (9, 8) if kind in ("floor", "few columns") else (7, 6)
domain = md.Domain.grid(columns, rows, float(columns), float(rows))
distance, n = md.distances.euclidean(domain), columns * rows
prior = np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum()
metric = md.MetricPrivacy("0.6", distance)
floor = md.DistortionPrivacy(0.7 * float((distance @ prior).min()), distance)
near = np.where(np.arange(n)[:, None] // 7 == np.arange(n) // 7, distance, np.inf)
apart = md.Problem(prior, near, [md.MetricPrivacy("1", near)])
coupled = md.Problem(prior, near, [md.MetricPrivacy("1", near), md.DistortionPrivacy("0.2", distance)])
plain, joint = md.Problem(prior, distance, [metric]), md.Problem(prior, distance, [metric, floor])
few = md.Problem(prior[:25] / prior[:25].sum(), distance[:25, :25], [md.MetricPrivacy("0.6", distance[:25, :25])])
print("begun", flush=True)
problem, options = {
    "block": (plain, {"solver": "block"}),
    "floor": (joint, {"solver": "block", "options": {"generation": False}}),
    "few columns": (joint, {"solver": "block", "options": {"generation": True}}),
    "worst": (md.Problem(prior, distance, [metric], "worst"), {"solver": "block"}),
    "simplex": (few, {"solver": "highs-simplex"}),
    "lazy": (plain, {"solver": "highs-ipx", "rows": "lazy"}),
    "near": (plain, {"solver": "highs-ipx", "rows": "near"}),
    "rays": (plain, {"rows": "rays", "tolerance": 0.01}),
    "parts": (apart, {}),
    "coupled": (coupled, {}),
}[kind]
made = md.design(problem, **options)
made.save(folder)
print("saved", flush=True)
"""
KINDS = ("block", "floor", "few columns", "worst", "simplex", "lazy", "near", "rays", "parts", "coupled")


def solve(kind: str, wait: float | None) -> tuple[str, float]:
    """Run a solve with Ctrl-C after the given seconds; return the outcome and the seconds."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "design"
        command = [sys.executable, "-W", "ignore", "-c", SOLVE, kind, str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        clock = time.perf_counter()
        if wait is not None:
            time.sleep(wait)
            os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)
        seconds, left = time.perf_counter() - clock, sorted(os.listdir(place))
        if folder.exists():
            try:
                holds = left == ["design"] and md.verify(folder).holds
            except md.errors.CertificateError as error:
                return f"wrong: {error}", seconds
            return ("certified" if holds else f"wrong: {left}"), seconds
        ended = said.rstrip().endswith("KeyboardInterrupt") and not left
        return ("ended" if ended else f"wrong: {left} {said[-300:]}"), seconds


def main() -> None:
    """Print the counts for each kind of solve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    drawn, wrong = random.Random(arguments.seed), 0
    for kind in KINDS:
        outcome, seconds = solve(kind, None)
        counts = collections.Counter(
            solve(kind, drawn.uniform(0.0, 1.05 * seconds))[0] for _ in range(arguments.moments // len(KINDS))
        )
        wrong += sum(count for name, count in counts.items() if name.startswith("wrong")) + (outcome != "certified")
        print(f"{kind:12} {seconds:6.2f} s, {outcome}; with Ctrl-C: {dict(counts)}", flush=True)
    print(f"seed {arguments.seed}: {wrong} wrong")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
