"""Time a sweep of many small designs on a Dask cluster: with one worker, with two, and with one of two killed.

    python benchmarks/attacks/sweep_cluster.py [--rows 200] [--columns 5] [--folder FOLDER]

The script prints the seconds of each sweep, the efficiency of two workers, and whether all tables are equal. Apart from
times, no value may depend on the worker that solved a row. The designs are for the cells of a square grid. The process
that runs the sweep also writes each row, which takes some hundredths of a second. Writing would dominate short designs,
so the efficiency of two workers is measured on longer designs.
"""

import argparse
import json
import os
import signal
import tempfile
import time
from pathlib import Path

from distributed import LocalCluster

from mechdesign.runs import _tasks as tasks
from mechdesign.runs import sweep
from mechdesign.runs._store import read_table

SPECIFICATION = """
title = "A grid"
domain.grid = {{ columns = {columns}, rows = {columns}, width = 5.0, height = 5.0 }}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{{ kind = "metric", epsilon = 1, distance = "euclidean" }}]
[sweep]
"privacy.0.epsilon" = {epsilons}
"cost.power" = [1, 2]
"""


def values(folder):
    return [
        {name: value for name, value in row.items() if not name.endswith("seconds")}
        for row in read_table(folder / "results.csv")
    ]


def on_cluster(asked, folder, workers, columns, kill_at=None):
    """Return the seconds that a sweep takes once the workers are warm, and the number of its finished rows."""
    with LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0") as made:
        # Workers import the package once; this is not measured.
        warm = tasks.parse(SPECIFICATION.format(columns=columns, epsilons=[9 + i / 100 for i in range(2 * workers)]))
        sweep.run(warm, folder.with_name(f"{folder.name}-warm"), dask=made.scheduler_address)
        killed = []

        def maybe_kill(moment):
            if kill_at is not None and moment.done >= kill_at and not killed:
                killed.append(next(iter(made.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        started = time.perf_counter()
        result = sweep.run(asked, folder, dask=made.scheduler_address, progress=maybe_kill)
        return time.perf_counter() - started, sum(row.state == "done" for row in result.rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    epsilons = [round(0.2 + 0.02 * index, 2) for index in range(given.rows // 2)]
    asked = tasks.parse(SPECIFICATION.format(columns=given.columns, epsilons=epsilons))
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        found = {
            "rows": len(asked),
            "columns": given.columns,
            "load": [round(each, 1) for each in os.getloadavg()],
            "cores": os.cpu_count(),
        }
        started = time.perf_counter()
        sweep.run(asked, folder / "alone", jobs=1)
        found["one process"] = round(time.perf_counter() - started, 1)
        expected = values(folder / "alone")
        seconds = {}
        for name, workers, kill_at in (
            ("1 worker", 1, None),
            ("2 workers", 2, None),
            ("2 workers, one killed", 2, len(asked) // 2),
        ):
            seconds[name], done = on_cluster(asked, folder / name.replace(" ", "-"), workers, given.columns, kill_at)
            same = values(folder / name.replace(" ", "-")) == expected
            found[name] = {"seconds": round(seconds[name], 1), "done": done, "same values": same}
        found["efficiency of 2 workers"] = round(seconds["1 worker"] / seconds["2 workers"] / 2, 2)
        found["load at the end"] = [round(each, 1) for each in os.getloadavg()]
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
