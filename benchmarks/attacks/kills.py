"""Kill benchmarks at random moments, again and again, and count lost, incomplete and repeated rows.

    python benchmarks/attacks/kills.py [--kills 200] [--seconds 0.5] [--suite small] [--solvers auto,scipy]

A run is started or resumed, and killed with all its processes at a random moment, until all rows are done. A finished
run is followed by a new one. All values except times must be those of a run that was never killed. No file of a row may
be written twice or be incomplete. The exit code is 1 if anything was lost, incomplete, repeated or different.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mechdesign.runs._store import read_table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, options

# Values of a benchmark that do not depend on time.
STABLE = ("family", "n", "seed", "solver", "settings", "claimed", "certified", "censored", "rounded", "rows", "columns")


def values(folder: Path) -> list[Facts]:
    """Return what does not depend on time in the rows of a finished run."""
    return [{name: row[name] for name in STABLE} for row in read_table(folder / "results.csv")]


def written(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return, for each existing row, when it was written, and its content."""
    return {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in (folder / "rows").glob("*.json")}


def killed(command: list[str], folder: Path, longest: float, chance: random.Random) -> bool:
    """Start or resume a run and kill it; return whether it was still running."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mechdesign", *command, "-o", str(folder), "--resume"],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    before, begun = len(written(folder)), time.monotonic()
    # The delay before the kill mostly starts with the first written row, because starting Python takes long.
    if chance.random() < 0.8:
        while process.poll() is None and len(written(folder)) == before and time.monotonic() - begun < 60:
            time.sleep(0.002)
    time.sleep(chance.random() * longest)
    alive = process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return alive


def is_whole(content: bytes) -> bool:
    """Return whether the file of a row is complete."""
    try:
        return bool(json.loads(content)["state"] == "done")
    except (ValueError, KeyError):
        return False


def kill(given: argparse.Namespace, command: list[str], home: Path) -> int:
    """Kill runs of a command; return the number of faults."""
    chance = random.Random(given.seed)
    whole = home / "undisturbed"
    finish = [sys.executable, "-m", "mechdesign", *command, "--resume", "-o"]
    subprocess.run([*finish, str(whole)], check=True, capture_output=True)
    expected = values(whole)
    kills = runs = lost = half = twice = differ = leftovers = 0
    while kills < given.kills:
        folder, known = home / f"killed-{runs}", dict[str, tuple[int, bytes]]()
        runs += 1
        while kills < given.kills and len(known) < len(expected):
            kills += killed(command, folder, given.seconds, chance)
            now = written(folder)
            lost += len(known.keys() - now.keys())
            half += sum(not is_whole(content) for _, content in now.values())
            twice += sum(now.get(name) != found for name, found in known.items())
            known = now
        subprocess.run([*finish, str(folder)], check=True, capture_output=True)
        found = values(folder)
        differ += sum(a != b for a, b in zip(found, expected, strict=True))
        leftovers += len(list((folder / "rows").glob(".*")))
        print(f"{kills} kills, {runs} runs: {lost} rows lost, {half} half files, {twice} rows written twice,", end=" ")
        print(f"{leftovers} leftovers, {differ} rows that differ from an undisturbed run", flush=True)
    return lost + half + twice + differ + leftovers


def main() -> int:
    """Kill benchmarks."""
    given = options(
        __doc__,
        kills=200,
        seconds=0.5,  # the longest delay of a kill after a row
        suite="small",
        solvers="auto,highs-simplex,highs-ipx,scipy",
        seed=7,
    )
    with tempfile.TemporaryDirectory() as temporary:
        command = ["bench", "--suite", given.suite, "--solvers", given.solvers]
        return 1 if kill(given, command, Path(temporary)) else 0


if __name__ == "__main__":
    raise SystemExit(main())
