"""Compare the public files of releases from neighbouring data, byte by byte: `tests/support/public_folders.py`.

    python benchmarks/attacks/public_folders.py [--cases 1000] [--seed 7] [--store]

The exit code is 1 if anything differs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from public_folders import Case, compare, sample_case, table_case, trace_case

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, origin

RESULT = Path(__file__).resolve().parents[1] / "results" / "public_folders.txt"
MAKERS = (table_case, table_case, table_case, trace_case, trace_case, sample_case)


def cases(count: int, seed: int) -> Iterator[Case]:
    """Yield cases of all kinds in turn."""
    rng = random.Random(seed)
    for index in range(count):
        yield MAKERS[index % len(MAKERS)](rng)


def main() -> int:
    asked = options(__doc__, cases=1000, seed=7, store=False)
    started, outcomes, wrong = time.perf_counter(), Counter[tuple[str, str]](), 0
    for index, case in enumerate(cases(asked.cases, asked.seed)):
        outcome, found = compare(case)
        outcomes[case.kind.split(",")[0], outcome] += 1
        for difference in found:
            wrong += 1
            print(f"case {index}, {case.kind}: {difference}", file=sys.stderr, flush=True)
    kinds = sorted({kind for kind, _ in outcomes})
    ends = ("answered", "refused", "impossible", "different")
    lines = [f"python benchmarks/attacks/public_folders.py --cases {asked.cases} --seed {asked.seed}", ""]
    lines.append("".join(f"{head:>12}" for head in ("", *ends)))
    lines += ["".join(f"{cell:>12}" for cell in (kind, *(outcomes[kind, end] for end in ends))) for kind in kinds]
    lines += ["", f"{wrong} differences"]
    print("\n".join(lines), f"\n{time.perf_counter() - started:.0f} s")
    if asked.store:
        RESULT.write_text("\n".join([*lines, origin()]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
