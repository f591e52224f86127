"""Check whether `mechdesign design --estimate` is within a factor of two of the time that a design takes.

    python benchmarks/solvers/estimates.py [--out results/estimates.jsonl] [--only NUMBER ...] [--judge]

The command line designs each of the twenty programs of `estimate_programs.py` in a separate process with one thread.
Each run immediately appends one line of JSON. The line contains measurements of the machine before and after the run,
wall and processor seconds, and the output of the solver. Programs whose line is already stored are not designed again.
`--judge` designs nothing and compares the lines with today's estimates, using the stored measurements of the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mechdesign.specification._specification import parse
from mechdesign.synthesis._sizes import Speed, compute_slowness, estimate, measure_speed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from solvers.estimate_programs import PROGRAMS, Program

STORED = Path(__file__).parents[1] / "results" / "estimates.jsonl"


def measured(program: Program) -> dict[str, Any]:
    """Design once and return time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        specification = Path(folder, "program.toml")
        specification.write_text(program.text, encoding="utf-8")
        command = [sys.executable, "-m", "mechdesign", "design", str(specification), "-o", f"{folder}/out"]
        before = measure_speed()
        clock, spent = time.perf_counter(), os.times()
        done = subprocess.run([*command, "--no-report", "--json"], check=False, capture_output=True, text=True)
        seconds, after = time.perf_counter() - clock, os.times()
        facts = json.loads(done.stdout)["provenance"] if done.returncode in (0, 3) and done.stdout else {}
        if not facts:
            raise SystemExit(f"{program.name}: {done.returncode} {done.stderr}")
        processor = after.children_user + after.children_system - spent.children_user - spent.children_system
        return {
            "name": program.name,
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "before": asdict(before),
            "after": asdict(measure_speed()),
            "seconds": round(seconds, 2),
            "processor_seconds": round(processor, 2),
            "provenance": facts,
        }


def stored(path: Path) -> dict[str, dict[str, Any]]:
    """Return the stored lines, by name."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def judge(path: Path) -> None:
    """Compare the measured times with today's estimates, for the mean of both measurements of the machine."""
    inside, long = 0, 0
    rows = stored(path)
    for program in PROGRAMS:
        row = rows.get(program.name)
        if row is None:
            print(f"{program.name}: no line")
            continue
        given = parse(program.text)
        assert given.size is not None
        slow = math.sqrt(compute_slowness(Speed(**row["before"])) * compute_slowness(Speed(**row["after"])))
        said = estimate(given.size, given.settings, slow).seconds
        ratio = said / row["seconds"]
        inside += 0.5 <= ratio <= 2
        long += row["seconds"] > 60
        marked = "" if 0.5 <= ratio <= 2 else "  outside"
        seconds = f"{row['seconds']:.0f} s ({row['processor_seconds']:.0f} s of a processor)"
        print(f"{program.name}: {said:.0f} s said, {seconds}, slowness {slow:.2f}, ratio {ratio:.2f}{marked}")
    print(f"{inside} of {len(rows)} within a factor of two; {long} took more than a minute; {len(PROGRAMS)} programs")


def main() -> None:
    """Design the programs without a stored line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=STORED)
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--judge", action="store_true")
    options = parser.parse_args()
    if options.judge:
        judge(options.out)
        return
    for index in options.only if options.only else range(len(PROGRAMS)):
        program = PROGRAMS[index]
        if program.name in stored(options.out):
            continue
        row = measured(program)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{program.name}: {row['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
