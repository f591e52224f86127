"""Kill a sweep at random moments, many times, and check whether a row was lost, incompletely written, or run twice.

    python benchmarks/attacks/sweep_kills.py [--kills 200] [--jobs 1] [--seed 7]

Again and again, a sweep is started or resumed, and killed with all its processes at a random moment. A finished sweep
is followed by a new one. After each sweep every row must have the values of an undisturbed sweep, and every channel
must verify. The file of a row must not have been written twice.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mechdesign as md
from mechdesign.runs._store import read_table

SPECIFICATION = """
title = "A line of 6 places"
domain.line = 6
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
[sweep]
"privacy.0.epsilon" = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5]
"cost.power" = [1, 2, 3]
"""


def values(folder):
    return [
        {name: value for name, value in row.items() if not name.endswith("seconds")}
        for row in read_table(folder / "results.csv")
    ]


def stamps(folder):
    """Return the time at which each existing row was written."""
    rows = folder / "rows"
    return {path.name: path.stat().st_mtime_ns for path in rows.glob("*.json")} if rows.is_dir() else {}


def killed(specification, folder, jobs, longest, chance):
    """Start or resume a sweep and kill it; return whether it was still running."""
    line = [sys.executable, "-m", "mechdesign", "sweep", specification, "-o", folder, "--jobs", jobs, "--resume"]
    process = subprocess.Popen([str(part) for part in line], start_new_session=True, stdout=subprocess.DEVNULL)
    before, begun = len(stamps(folder)), time.monotonic()
    # The delay before the kill mostly starts with the first written row, because starting Python takes long.
    if chance.random() < 0.8:
        while process.poll() is None and len(stamps(folder)) == before and time.monotonic() - begun < 60:
            time.sleep(0.002)
    time.sleep(chance.random() * longest)
    alive = process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return alive


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    chance, kills, sweeps, twice = random.Random(given.seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        specification = Path(temporary) / "s.toml"
        specification.write_text(SPECIFICATION, encoding="utf-8")
        md.sweep.run(specification, Path(temporary) / "undisturbed", jobs=1)
        expected = values(Path(temporary) / "undisturbed")
        while kills < given.kills:
            folder = Path(temporary) / f"sweep-{sweeps}"
            sweeps += 1
            known = {}
            while kills < given.kills and len(known) < len(expected):
                kills += killed(specification, folder, given.jobs, 0.5, chance)
                now = stamps(folder)
                twice += sum(now.get(name) != stamp for name, stamp in known.items())
                known = now
            md.sweep.run(specification, folder, jobs=1, resume=True)
            assert values(folder) == expected, "a row was lost, or changed"
            for row in values(folder):
                md.verify(folder / row["channel"])
            print(f"{kills} kills, {sweeps} sweeps: all rows there, {twice} written twice", flush=True)
    if twice:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
