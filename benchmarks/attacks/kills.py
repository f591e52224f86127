"""Kill a benchmark at random moments, again and again, and count lost, incomplete and repeated rows.

    python benchmarks/attacks/kills.py [--kills 200] [--seconds 6] [--suite small] [--solvers highs-simplex,block]

A run is started, killed with SIGKILL at a random moment, and resumed, until all rows are done or the number of kills is
reached. The last run is then finished, and compared with a run that was never killed: all values except times must
agree.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STABLE = ("family", "n", "seed", "solver", "settings", "claimed", "certified", "censored", "rounded", "rows", "columns")


def main() -> None:
    """Print the counts; exit with 1 if any count is not zero."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--suite", default="small")
    parser.add_argument("--solvers", default="auto,highs-simplex,highs-ipx,scipy")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    moments = random.Random(arguments.seed)
    command = [sys.executable, "-m", "mechdesign", "bench", "--suite", arguments.suite, "--solvers", arguments.solvers]
    with tempfile.TemporaryDirectory() as name:
        killed, whole = Path(name) / "killed", Path(name) / "whole"
        kills = lost = half = twice = rounds = 0
        known: dict[str, bytes] = {}
        while kills < arguments.kills:
            process = subprocess.Popen(
                [*command, "-o", killed, "--resume"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
            time.sleep(moments.uniform(0, arguments.seconds))
            done = process.poll() is not None
            process.kill()
            process.wait()
            kills += not done
            found = {path.name: path.read_bytes() for path in (killed / "rows").glob("*.json")}
            lost += len(known.keys() - found.keys())
            half += sum(not _whole(content) for content in found.values())
            twice += sum(found[name] != content for name, content in known.items() if name in found)
            known = found
            if done:
                # If all rows are done, start a new run in a new folder.
                rounds += 1
                killed, known = Path(name) / f"killed-{rounds}", {}
        for folder in (killed, whole):
            subprocess.run(
                [*command, "-o", folder, "--resume"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        expected = _table(whole)
        differ = sum(a != b for a, b in zip(_table(killed), expected, strict=True))
        leftovers = len(list((killed / "rows").glob(".*")))
    print(f"{kills} kills: {lost} rows lost, {half} half files, {twice} rows run twice, {leftovers} leftovers;")
    print(f"{differ} of {len(expected)} rows differ from those of a run that was never killed")
    raise SystemExit(1 if lost or half or twice or differ or leftovers else 0)


def _table(folder: Path) -> list[tuple[str, ...]]:
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        return [tuple(row[name] for name in STABLE) for row in csv.DictReader(file)]


def _whole(content: bytes) -> bool:
    try:
        return bool(json.loads(content)["state"] == "done")
    except (ValueError, KeyError):
        return False


if __name__ == "__main__":
    main()
