"""Compare the pairs at a radius with exact counts, on many grids and points: `tests/support/at_the_radius.py`.

    python benchmarks/evidence/at_the_radius.py [--step 1] [--lattices 1000] [--seed 0] [-o FILE]

Grids have n × n cells, n from 2 to 13, whose sides are every `step`-th hundredth from 0.05 to 2.00. For sides that are
multiples of 0.1 or 0.07, the pairs of `ThresholdPrivacy` and `policy.threshold` are tested as well. The output is the
number of radii that lose or gain a pair. The script exits with 1 if a pair is missed, or if a pair beyond the margin is
bounded.
"""

from __future__ import annotations

import itertools
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from at_the_radius import NORMS, far, grid, margins, wrong

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, origin


def tables(step: int, lattices: int, seed: int, say: Callable[[str], None]) -> int:
    """Run all comparisons, print the counts, and return the number of wrong pairs."""
    found = 0
    for norm in NORMS:
        count: Counter[str] = Counter()
        sides = range(5, 201, step)
        for n, hundredths in itertools.product(range(2, 14), sides):
            count += grid(n, Decimal(hundredths) / 100, norm, 0 in (hundredths % 10, hundredths % 7))
        report(f"grids, {norm}: 12 sizes and {len(sides)} sides", count, say)
        found += wrong(count)
    for title, run in (("points far from the origin", far), ("both sides of the margin", margins)):
        rng = np.random.default_rng(seed)
        count = Counter()
        for _ in range(lattices):
            count += run(rng)
        report(f"{title}: {lattices} draws, seed {seed}", count, say)
        found += wrong(count)
    return found


def report(title: str, count: Counter[str], say: Callable[[str], None]) -> None:
    """Print the counts, one line for each kind of comparison."""
    say(f"\n{title}")
    names = dict.fromkeys(name.partition(":")[0] for name in count)
    for name in names:
        own = {key: count[f"{name}: {key}"] for key in ("pairs owed", "within the margin", "beyond twice the margin")}
        if not any(own.values()):
            say(f"  {name}: {count[name]:,}")
            continue
        owed = ", ".join(f"{number:,} {key}" for key, number in own.items() if number)
        say(f"  {name}: {owed}; missed {count[f'{name}: missed']:,}, added {count[f'{name}: added']:,}")


def main() -> None:
    """Run the benchmark."""
    given = options(__doc__, step=1, lattices=1000, seed=0, output=Path)
    lines = [f"mechdesign {md.__version__}, sides from 0.05 to 2.00 by {given.step / 100}"]

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    started = time.perf_counter()
    # A pair beyond the margin gives a graph without edges, which causes a warning.
    warnings.simplefilter("ignore", md.errors.InputWarning)
    found = tables(given.step, given.lattices, given.seed, say)
    say(f"\n{found} pairs wrong")
    print(f"{time.perf_counter() - started:.0f} s")
    if given.output is not None:
        given.output.write_text("\n".join([*lines, origin()]) + "\n", encoding="utf-8")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
