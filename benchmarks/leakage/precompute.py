"""The cost of the loss function: precomputation against n, a million evaluations, and the savings of the cache.

    python benchmarks/leakage/precompute.py sizes [--states 30 100 300 1000] [--repeats 3] [--kinds random ...]
    python benchmarks/leakage/precompute.py cache [--states 100 400 1000] [-o benchmarks/results/cache_savings.json]

`sizes` runs every precomputation in a separate process with one thread and without a cache, which gives its peak
memory. CPU seconds are printed with wall-clock seconds, for machines that are not idle. 3,000 states take minutes.

`cache` computes each loss function once with an empty cache, and then reads it. The seconds are medians of three in one
process with one thread.
"""

from __future__ import annotations

import os

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import functools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base import _cache as cache
from mechdesign.leakage import LossFunction

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, apart, options, origin, peak, show, write
from leakage.matrices import KINDS, gaussian, random_matrix


def measure(kind: str, n: int) -> Facts:
    """Measure one precomputation in this process."""
    P = KINDS[kind](n)
    before = peak()
    clock, cpu = time.perf_counter(), time.process_time()
    loss = LossFunction(P, cache=False)
    seconds, processor = time.perf_counter() - clock, time.process_time() - cpu
    added = peak() - before
    alphas = np.random.default_rng(1).uniform(0, 20, 1_000_000)
    clock = time.perf_counter()
    loss(alphas)
    million = time.perf_counter() - clock
    pieces = len(loss.lines)
    return {"pieces": pieces, "seconds": seconds, "processor": processor, "added": added, "million": million}


def sizes(states: list[int], kinds: list[str], repeats: int) -> None:
    """Print a table of medians."""
    rows: list[Facts] = []
    for n in states:
        runs: dict[str, list[Facts]] = {kind: [] for kind in kinds}
        for _ in range(repeats):
            for kind in kinds:
                runs[kind].append(apart(measure, kind, n))
        for kind, found in runs.items():
            middle = {name: statistics.median(run[name] for run in found) for name in found[0]}
            rows.append({"kind": kind, "n": n, **middle})
    columns = {"matrix": "{kind}", "n": "{n}", "pieces": "{pieces:.0f}", "seconds": "{seconds:.3f}"}
    columns |= {"CPU seconds": "{processor:.3f}", "peak GB": "{peak:GB}", "of it added": "{added:GB}"}
    show(columns | {"a million L(α), s": "{million:.3f}"}, rows, 110)


def saved(name: str, compute: Callable[[], Any]) -> Facts:
    """Return the seconds of both ways, and the bytes of the entry."""
    seconds: dict[str, list[float]] = {"computed": [], "disk": []}
    for _ in range(3):
        for path, _size in cache.entries():
            path.unlink()
        for way in seconds:
            clock = time.perf_counter()
            result = compute()
            seconds[way].append(time.perf_counter() - clock)
            assert result.cached == (way != "computed")
    size = sum(size for _path, size in cache.entries())
    row = {"name": name, "bytes": size} | {f"{way}_s": round(statistics.median(s), 6) for way, s in seconds.items()}
    print(row, flush=True)
    return row


def savings(states: list[int]) -> list[Facts]:
    """Return a row for each loss function."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[cache.VARIABLE] = folder
        for n in states:
            for name, P in {"random": random_matrix(n), "Gaussian 0.1": gaussian(n, 0.1)}.items():
                found.append(saved(f"loss function, {name}, {n} states", functools.partial(LossFunction, P)))
    return found


def main() -> None:
    """Run one of the two."""
    given = options(__doc__, action=("sizes", "cache"), states=[0], kinds=[tuple(KINDS)], repeats=3, output=Path)
    if given.action == "sizes":
        sizes(given.states if any(given.states) else [30, 100, 300, 1000], given.kinds, given.repeats)
        return
    rows = savings(given.states if any(given.states) else [100, 400, 1000])
    if given.output:
        write(given.output, {"origin": origin(), "rows": rows})


if __name__ == "__main__":
    main()
