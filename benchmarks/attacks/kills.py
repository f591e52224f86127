"""Kill benchmarks and sweeps at random moments, again and again, and count lost, incomplete and repeated rows.

    python benchmarks/attacks/kills.py bench [--kills 200] [--seconds 0.5] [--suite small] [--solvers auto,scipy]
    python benchmarks/attacks/kills.py sweep [--kills 200] [--jobs 1] [--seed 7]
    python benchmarks/attacks/kills.py cluster [--rows 200] [--columns 5] [--folder FOLDER]

`bench` and `sweep` start or resume a run, and kill it with all its processes at a random moment, until all rows are
done. A finished run is followed by a new one. All values except times must be those of a run that was never killed. No
file of a row may be written twice or be incomplete, and every channel of a sweep must verify. The exit code is 1 if
anything was lost, incomplete, repeated or different.

`cluster` times a sweep of many small designs on a Dask cluster: with one worker, with two, and with one of two killed.
Apart from times, no value may depend on the worker that solved a row. The process that runs the sweep also writes each
row, which takes some hundredths of a second. Use --columns for longer designs, to measure the efficiency of two
workers.
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
from typing import Any

from mechdesign.runs._store import read_table

import mechdesign as md
from mechdesign.runs import _tasks as tasks
from mechdesign.runs import sweep

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Facts, options

# Values of a benchmark that do not depend on time.
STABLE = ("family", "n", "seed", "solver", "settings", "claimed", "certified", "censored", "rounded", "rows", "columns")
LINE = """
title = "A line of 6 places"
domain.line = 6
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
[sweep]
"privacy.0.epsilon" = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5]
"cost.power" = [1, 2, 3]
"""
GRID = """
title = "A grid"
domain.grid = {{ columns = {columns}, rows = {columns}, width = 5.0, height = 5.0 }}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{{ kind = "metric", epsilon = 1, distance = "euclidean" }}]
[sweep]
"privacy.0.epsilon" = {epsilons}
"cost.power" = [1, 2]
"""


def values(folder: Path, names: tuple[str, ...] = ()) -> list[Facts]:
    """Return the rows of a finished run without their times, or with the given columns only."""
    rows = read_table(folder / "results.csv")
    kept = names or [name for name in rows[0] if not name.endswith("seconds")]
    return [{name: row[name] for name in kept} for row in rows]


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


def kill(given: argparse.Namespace, command: list[str], columns: tuple[str, ...], home: Path) -> int:
    """Kill runs of a command; return the number of faults."""
    chance = random.Random(given.seed)
    whole = home / "undisturbed"
    finish = [sys.executable, "-m", "mechdesign", *command, "--resume", "-o"]
    subprocess.run([*finish, str(whole)], check=True, capture_output=True)
    expected = values(whole, columns)
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
        found = values(folder, columns)
        differ += sum(a != b for a, b in zip(found, expected, strict=True))
        leftovers += len(list((folder / "rows").glob(".*")))
        for row in found if given.action == "sweep" else ():
            md.verify(folder / row["channel"])
        print(f"{kills} kills, {runs} runs: {lost} rows lost, {half} half files, {twice} rows written twice,", end=" ")
        print(f"{leftovers} leftovers, {differ} rows that differ from an undisturbed run", flush=True)
    return lost + half + twice + differ + leftovers


def on_cluster(asked: Any, folder: Path, workers: int, columns: int, kill_at: int | None = None) -> tuple[float, int]:
    """Return the seconds that a sweep takes once the workers are warm, and the number of its finished rows."""
    from distributed import LocalCluster

    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as made:
        # Workers import the package once; this is not measured.
        warm = tasks.parse(GRID.format(columns=columns, epsilons=[9 + i / 100 for i in range(2 * workers)]))
        sweep.run(warm, folder.with_name(f"{folder.name}-warm"), dask=made.scheduler_address)
        killed: list[int] = []

        def maybe_kill(moment: Any) -> None:
            if kill_at is not None and moment.done >= kill_at and not killed:
                killed.append(next(iter(made.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        started = time.perf_counter()
        result = sweep.run(asked, folder, dask=made.scheduler_address, progress=maybe_kill)
        return time.perf_counter() - started, sum(row.state == "done" for row in result.rows)


def cluster(given: argparse.Namespace, home: Path) -> int:
    """Print the seconds of each sweep, and the efficiency of two workers; return the number of wrong sweeps."""
    epsilons = [round(0.2 + 0.02 * index, 2) for index in range(given.rows // 2)]
    asked = tasks.parse(GRID.format(columns=given.columns, epsilons=epsilons))
    folder = given.folder or home
    found: Facts = {"rows": len(asked), "columns": given.columns, "cores": os.cpu_count()}
    found["load"] = [round(each, 1) for each in os.getloadavg()]
    started = time.perf_counter()
    sweep.run(asked, folder / "alone", jobs=1)
    found["one process"] = round(time.perf_counter() - started, 1)
    expected = values(folder / "alone")
    seconds, wrong = {}, 0
    for name, workers, kill_at in (
        ("1 worker", 1, None),
        ("2 workers", 2, None),
        ("2 workers, one killed", 2, len(asked) // 2),
    ):
        seconds[name], done = on_cluster(asked, folder / name.replace(" ", "-"), workers, given.columns, kill_at)
        same = values(folder / name.replace(" ", "-")) == expected
        wrong += not same
        found[name] = {"seconds": round(seconds[name], 1), "done": done, "same values": same}
    found["efficiency of 2 workers"] = round(seconds["1 worker"] / seconds["2 workers"] / 2, 2)
    found["load at the end"] = [round(each, 1) for each in os.getloadavg()]
    print(json.dumps(found, indent=1))
    return wrong


def main() -> int:
    """Run one of the three."""
    given = options(
        __doc__,
        action=("bench", "sweep", "cluster"),
        kills=200,
        seconds=0.5,  # the longest delay of a kill after a row
        suite="small",
        solvers="auto,highs-simplex,highs-ipx,scipy",
        jobs=1,
        seed=7,
        rows=200,
        columns=5,
        folder=Path,
    )
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        if given.action == "cluster":
            faults = cluster(given, home)
        elif given.action == "bench":
            faults = kill(given, ["bench", "--suite", given.suite, "--solvers", given.solvers], STABLE, home)
        else:
            specification = home / "s.toml"
            specification.write_text(LINE, encoding="utf-8")
            faults = kill(given, ["sweep", str(specification), "--jobs", str(given.jobs)], (), home)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
