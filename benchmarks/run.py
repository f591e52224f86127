"""Run the sources of all quoted numbers again, and list the numbers that moved by more than their spread.

    python benchmarks/run.py [--quick] [--store] [--only NAME ...] [--list]
    python benchmarks/run.py --only NAME --with trajectories=20 steps=100

- Experiments behind figures are in `papers`, with a spread for each column; their rows are stored in
  ``notebooks/results``.
- Measurements are those of ``docs/measure.py``, whose tables the README shows; their values are stored in
  ``docs/results``.

New results are stored, but stored results are replaced only with --store. With --quick experiments run in their small
setting, and measurements do not run. With --with, an experiment runs with other parameters than those that are stored,
and its rows are printed. Run the script on a machine that has nothing else to do. The exit status is 1 if a number has
moved or a source has failed, and otherwise 0.
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
MEASUREMENTS = ("first_minute", "highs", "sizes", "bench", "peers", "same_epsilon", "requirements", "epsilons", "costs")
# Factors by which the values of measurements may differ, for seconds and for certified gaps.
SECONDS_SPREAD, GAP_SPREAD = 2.0, 10.0


def rerun_experiment(entry: Experiment, setting: str, store: bool) -> list[str]:
    """Run an experiment, compare, and return the numbers that moved."""
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
    """Run an experiment with changed parameters, and print its rows; values are read as JSON, or else as texts."""
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
    """Measure again, compare value by value, and return the values that moved."""
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
    """Return the names of seconds and gaps that differ by more than the factor for seconds or for gaps."""
    moved = [f"{name} is there only once" for name in sorted(before.keys() ^ after.keys())]
    for name in before.keys() & after.keys():
        spread = GAP_SPREAD if name.endswith("gap") else SECONDS_SPREAD
        low, high = sorted((before[name], after[name]))
        if high > spread * low:
            moved.append(f"{name} was {before[name]:.3g} and is {after[name]:.3g}")
    return moved


def main() -> int:
    """Run the selected entries."""
    given = vars(options(__doc__, quick=False, store=False, only=[], list=False, **{"with": []}))
    experiments, setting = all_experiments(), "small" if given["quick"] else "full"
    names = [*experiments, *MEASUREMENTS]
    if given["list"]:
        print(*(f"{name}: {'figures' if name in experiments else 'tables of the README'}" for name in names), sep="\n")
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
        print("nothing has moved by more than its stated spread")
    return 1 if moved else 0


if __name__ == "__main__":
    raise SystemExit(main())
