"""Compute the numbers on pages again, and list those that differ from the stored ones by more than is allowed.

    python benchmarks/run.py [--quick] [--store] [--only NAME ...] [--list]
    python benchmarks/run.py --only NAME --with trajectories=20 steps=100

There are two kinds of entries, which `--list` names:

- An experiment of `papers` computes the rows that figures draw. Its rows are in ``notebooks/results``. Each compared
  column has a spread, the largest difference that is allowed.
- A measurement of ``docs/measure.py`` has values in ``docs/results``. Certified gaps may differ by a factor of 10,
  and all other values by a factor of 2.

Without --store, stored results stay as they are. Results that are missing, or that belong to other parameters or data,
are always stored. With --quick, experiments use their small setting, and measurements do not run. With --with, an
experiment uses the given parameters instead of its own. Its rows are printed, but not compared or stored. Run the
script on a machine that has nothing else to do. The exit status is 1 if a number has moved or a measurement has failed.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import time

from harness import PROJECT, options, show
from mechdesign.base._atomic import write_file
from papers import Experiment, StaleResultError, all_experiments

DOCS = PROJECT / "docs"
MEASUREMENTS = (
    "first_minute",
    "solvers",
    "sizes",
    "bench",
    "peers",
    "same_epsilon",
    "requirements",
    "epsilons",
    "costs",
)
# The factors by which certified gaps, and all other values of measurements, may differ.
GAP_SPREAD, OTHER_SPREAD = 10.0, 2.0


def rerun_experiment(entry: Experiment, setting: str, store: bool) -> list[str]:
    """Run an experiment, compare it with its stored rows, and return the numbers that moved."""
    if entry.missing_data:
        print(f"  skipped: {', '.join(entry.missing_data)} not found; set MECHDESIGN_DATA")
        return []
    try:
        before = entry.stored(setting)
    except StaleResultError as error:
        print(f"  stored anew: {error}")
        entry.store([setting])
        return []
    after = entry.run(setting)
    comparison = entry.compare(before, after)
    print(f"  {comparison}")
    if store:
        entry.keep(setting, after)
    return list(comparison.moved)


def show_experiment(entry: Experiment, setting: str, changes: list[str]) -> None:
    """Run an experiment with changes such as "steps=100", and print its rows; values that are not JSON are texts."""
    changed = {}
    for name, _, text in (change.partition("=") for change in changes):
        try:
            changed[name] = json.loads(text)
        except ValueError:
            changed[name] = text
    parameters = {"small": entry.small, "full": entry.full}[setting] | changed
    found = dataclasses.replace(entry, small=parameters).run("small")
    rows = [
        {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()}
        for row in found.rows
    ]
    show({name: f"{{{name}}}" for name in rows[0]}, rows, 160, title=found.origin)


def rerun_measurement(name: str, quick: bool, store: bool) -> list[str]:
    """Measure again, compare with the stored values, and return those that moved."""
    if quick:
        print("  skipped: it has no quick form")
        return []
    path = DOCS / "results" / f"{name}.json"
    before = path.read_bytes() if path.exists() else b'{"values": {}}'
    stored = json.loads(before)["values"]
    command = [sys.executable, str(DOCS / "measure.py"), name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
        after = json.loads(path.read_text(encoding="utf-8"))["values"] if path.exists() else {}
    finally:
        if stored and not store:
            write_file(path, [before])
    if done.returncode:
        return [f"{name} failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no message'}"]
    return compare_values(stored, after) if stored else []


def compare_values(before: dict[str, float], after: dict[str, float]) -> list[str]:
    """Return a sentence for each value that differs by more than its factor, or that only one side has."""
    moved = [f"{name} is only stored or only measured" for name in sorted(before.keys() ^ after.keys())]
    for name in before.keys() & after.keys():
        spread = GAP_SPREAD if name.endswith("gap") else OTHER_SPREAD
        low, high = sorted((before[name], after[name]))
        if high > spread * low:
            moved.append(f"{name} was {before[name]:.3g} and is {after[name]:.3g}")
    return moved


def main() -> int:
    """Run the entries that the command line asks for."""
    given = vars(options(__doc__, quick=False, store=False, only=[], list=False, **{"with": []}))
    experiments, setting = all_experiments(), "small" if given["quick"] else "full"
    names = [*experiments, *MEASUREMENTS]
    if given["list"]:
        print(*(f"{name}: {'an experiment' if name in experiments else 'a measurement'}" for name in names), sep="\n")
        return 0
    unknown = [name for name in given["only"] if name not in (experiments if given["with"] else names)]
    if unknown:
        raise SystemExit(f"no {', '.join(unknown)}; there are {', '.join(names)}")
    moved: dict[str, list[str]] = {}
    for name in given["only"] or names:
        print(name, flush=True)
        clock = time.perf_counter()
        found: list[str] = []
        if given["with"]:
            show_experiment(experiments[name], setting, given["with"])
        elif name in experiments:
            found = rerun_experiment(experiments[name], setting, given["store"])
        else:
            found = rerun_measurement(name, given["quick"], given["store"])
        print(f"  {time.perf_counter() - clock:.0f} s", flush=True)
        if found:
            moved[name] = found
    for name, found in moved.items():
        print(f"moved: {name}", *(f"  {line}" for line in found), sep="\n")
    if not moved:
        print("no number has moved by more than is allowed")
    return 1 if moved else 0


if __name__ == "__main__":
    raise SystemExit(main())
