"""Run the sources of all quoted numbers again, and list the numbers that moved by more than their spread.

    python benchmarks/run.py [--quick] [--store] [--only NAME ...] [--list]

- Experiments behind figures are in `papers`, with a spread for each column; their rows are stored in
  ``notebooks/results``.
- Measurements are those of ``docs/measure.py``, whose tables the README shows; their values are stored in
  ``docs/results``.
- Benchmarks are scripts of this folder, which `registry` lists with a spread for each; their output is stored in
  ``benchmarks/results``.

New results are stored, but stored results are replaced only with --store. With --quick experiments run in their small
setting, and only benchmarks with a quick setting run. Run the script on a machine that has nothing else to do. The exit
status is 1 if a number has moved or a source has failed, and otherwise 0.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

from mechdesign.base._atomic import write_file
from papers import Experiment, StaleResultError, all_experiments
from registry import BENCHMARKS, GAP_SPREAD, MEASUREMENTS, SECONDS_SPREAD, Benchmark

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results"
DOCS = FOLDER.parent / "docs"
_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?")


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


def rerun_benchmark(entry: Benchmark, quick: bool, store: bool) -> list[str]:
    """Run a script, compare its numbers one by one, and return those that moved."""
    arguments = entry.quick if quick else entry.arguments
    if arguments is None:
        print("  skipped: it has no quick form")
        return []
    command = [sys.executable, str(FOLDER / f"{entry.name}.py"), *shlex.split(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, cwd=FOLDER.parent)
    if done.returncode:
        return [f"{entry.name} failed: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'no message'}"]
    path = RESULTS / f"{entry.name}{'.quick' if quick else ''}.txt"
    moved = compare_texts(path.read_text(encoding="utf-8"), done.stdout, entry.spread) if path.exists() else []
    if store or not path.exists():
        RESULTS.mkdir(exist_ok=True)
        write_file(path, [done.stdout.encode()])
        print(f"  stored in {path.relative_to(FOLDER.parent)}")
    return moved


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


def compare_texts(before: str, after: str, spread: float) -> list[str]:
    """Return the numbers of a printed table that differ by more than the factor `spread`, with their lines."""
    olds, news = before.splitlines(), after.splitlines()
    if [_shape(line) for line in olds] != [_shape(line) for line in news]:
        return ["the output has another form than the stored one"]
    moved = []
    for old, new in zip(olds, news, strict=True):
        for was, now in zip(_numbers(old), _numbers(new), strict=True):
            if was == now:
                continue
            low, high = sorted((abs(was), abs(now)))
            if was * now <= 0 or high > spread * low:
                moved.append(f"{was:g} is now {now:g} in: {' '.join(new.split())}")
    return moved


def _numbers(line: str) -> list[float]:
    return [float(text.replace(",", "")) for text in _NUMBER.findall(line)]


def _shape(line: str) -> str:
    """Return a line without its numbers and alignment."""
    return re.sub(r"[\s─━]+", " ", _NUMBER.sub("#", line)).strip()


def main() -> int:
    """Run the selected entries."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small settings")
    parser.add_argument("--store", action="store_true", help="replace stored results by the new ones")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these only")
    parser.add_argument("--list", action="store_true", help="list all entries")
    options = parser.parse_args()
    experiments, benchmarks = all_experiments(), {entry.name: entry for entry in BENCHMARKS}
    names = [*experiments, *MEASUREMENTS, *benchmarks]
    if options.list:
        for name in names:
            kind = "figures" if name in experiments else "tables of the README" if name in MEASUREMENTS else ""
            print(f"{name}: {kind or benchmarks[name].quoted}")
        return 0
    unknown = [name for name in options.only or () if name not in names]
    if unknown:
        parser.error(f"no {', '.join(unknown)}; there are {', '.join(names)}")
    moved: dict[str, list[str]] = {}
    for name in options.only or names:
        print(name, flush=True)
        clock = time.perf_counter()
        if name in experiments:
            found = rerun_experiment(experiments[name], "small" if options.quick else "full", options.store)
        elif name in MEASUREMENTS:
            found = rerun_measurement(name, options.quick, options.store)
        else:
            found = rerun_benchmark(benchmarks[name], options.quick, options.store)
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
