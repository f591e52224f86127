"""Share ledgers, accountants and traces between threads and processes: `tests/support/interleavings.py`, many times.

    python benchmarks/attacks/interleavings.py [--count 1000] [--seed 7] [--only KIND] [--store]

The exit code is 1 if more is released than recorded, more is recorded than allowed, or somebody waits forever.
"""

from __future__ import annotations

import os

# Processes are forked, so no library may run threads.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from interleavings import KINDS, run

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, origin

RESULT = Path(__file__).parents[1] / "results" / "interleavings.txt"


def main() -> int:
    asked = options(__doc__, count=1000, seed=7, only="", store=False)
    kinds = [kind for kind in KINDS if asked.only in kind.kind]
    started, rows, wrong = time.perf_counter(), {kind.kind: Counter[str]() for kind in kinds}, 0
    for index in range(asked.count):
        kind = kinds[index % len(kinds)]
        ended = run(kind, asked.seed * 1_000_000 + index)
        rows[kind.kind] += ended.lines + Counter(interleavings=1, killed=ended.killed)
        for fault in ended.faults:
            wrong += 1
            rows[kind.kind]["faults"] += 1
            print(f"{kind.kind}, {index}: {fault[:600]}", file=sys.stderr, flush=True)
    heads = ("interleavings", "killed", "released", "refused", "faults")
    lines = [f"python benchmarks/attacks/interleavings.py --count {asked.count} --seed {asked.seed}", ""]
    lines.append(f"{'':26}" + "".join(f"{head:>15}" for head in heads))
    lines += [f"{name:26}" + "".join(f"{row[head]:>15}" for head in heads) for name, row in rows.items()]
    lines += [
        "",
        "killed: the process that made the object got SIGKILL; forks are killed in all rows",
        f"{wrong} faults",
    ]
    print("\n".join(lines), f"\n{time.perf_counter() - started:.0f} s")
    if asked.store:
        RESULT.write_text("\n".join([*lines, origin()]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
