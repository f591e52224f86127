"""Ctrl-C at many moments of commands and of solves: how soon they end, and which files remain.

    python benchmarks/attacks/ctrl_c.py commands [--only COMMAND ...]
    python benchmarks/attacks/ctrl_c.py solves [--moments 200] [--seed 0]

`commands` starts each command in a separate folder. It sends SIGINT to its process group at several moments, once or
twice, as a terminal does. Moments are seconds after the start; a second Ctrl-C follows a second after the first. For
each moment it prints:

- `said`: seconds from the first Ctrl-C to the line "stopping: …", or to the end if this line is missing;
- `ended`: seconds from the last Ctrl-C to the end;
- the exit code, and the number of temporary files that were left behind.

`solves` runs each of ten solves once without Ctrl-C in a separate process, and then with Ctrl-C at moments drawn
uniformly from its duration. After Ctrl-C, the process must save a bundle that verifies (`certified`), or end with
KeyboardInterrupt and without a folder (`ended`). Every other outcome is `wrong`, for example a different exception, or
a folder that does not verify; the script then exits with 1.
"""

from __future__ import annotations

import collections
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options

_LONGEST = 120.0
_BETWEEN = 1.0

_LARGE = """
[domain.grid]
rows = 32
columns = 32
width = 9.6
height = 9.6
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 2.0
distance = "euclidean"
"""
_SPECIFICATIONS = {
    "large": _LARGE,
    "lazy": _LARGE.replace("32", "12") + '[solver]\nname = "highs-ipx"\nrows = "lazy"\n',
    "simplex": _LARGE.replace("32", "9") + '[solver]\nname = "highs-simplex"\nrows = "all"\n',
    "sweep": _LARGE.replace("32", "14") + '[sweep]\n"privacy.0.epsilon" = [0.5, 0.7, 1, 1.4, 2, 2.8, 4]\n',
}


@dataclass(frozen=True)
class _Case:
    """A command, the command that must run before it, and the moments at which it is interrupted."""

    name: str
    arguments: str
    moments: tuple[float, ...]
    before: str = ""


_CASES = (
    _Case("design city-300", "design --example city-300 -o out", (1.0, 3.0, 6.0, 12.0)),
    _Case("design 1024", "design large.toml -o out", (2.0, 6.0, 15.0, 40.0)),
    _Case("design lazy", "design lazy.toml -o out", (2.0, 8.0)),
    _Case("design simplex", "design simplex.toml -o out", (2.0, 5.0)),
    _Case("release", "release --example walk -o out", (1.5, 4.0)),
    _Case("sweep", "sweep sweep.toml -o out --jobs 2", (3.0, 8.0)),
    _Case("sweep here", "sweep sweep.toml -o out --jobs 1", (3.0, 8.0)),
    _Case("bench", "bench -o out", (2.0, 5.0)),
    _Case("attack", "attack city", (1.0, 2.5), "design --example city-300 -o city"),
    _Case("verify", "verify city", (0.6, 1.5), "design --example city-300 -o city"),
    _Case("audit", "audit city --optimum", (0.8, 2.0), "design --example city-300 -o city"),
    _Case("policy", "policy --example districts", (0.8, 1.5)),
    _Case("table", "table --example admissions -o out", (0.8, 1.5)),
    _Case("leakage", "leakage --example traffic", (0.8, 1.5)),
)


def commands(names: list[str]) -> None:
    """Interrupt the named commands, or all, and print a table."""
    print(f"{'command':18} {'at':>5} {'times':>5} {'said':>6} {'ended':>6} {'code':>5} {'left':>4}  last line")
    with tempfile.TemporaryDirectory() as made:
        prepared: dict[str, Path] = {}
        for case in _CASES:
            if names and case.name.split()[0] not in names and case.name not in names:
                continue
            if case.before and case.before not in prepared:
                folder = Path(made) / f"before-{len(prepared)}"
                folder.mkdir()
                subprocess.run([*_program(), *case.before.split()], cwd=folder, check=True, capture_output=True)
                prepared[case.before] = folder
            for moment in case.moments:
                for times in (1, 2):
                    with tempfile.TemporaryDirectory() as work:
                        folder = Path(work) / "work"
                        if case.before:
                            shutil.copytree(prepared[case.before], folder)
                        else:
                            folder.mkdir()
                        print(_interrupted(case, folder, moment, times), flush=True)


def _program() -> list[str]:
    return [sys.executable, "-m", "mechdesign"]


def _interrupted(case: _Case, folder: Path, moment: float, times: int) -> str:
    for name, text in _SPECIFICATIONS.items():
        (folder / f"{name}.toml").write_text(text)
    process = subprocess.Popen(
        [*_program(), *case.arguments.split()],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Background processes of a shell ignore Ctrl-C, and the commands would inherit this.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    lines: list[tuple[float, str]] = []
    assert process.stderr is not None
    stream = process.stderr
    reader = threading.Thread(target=lambda: lines.extend((time.monotonic(), line.strip()) for line in stream))
    reader.start()
    sent: list[float] = []
    for wait in (moment, _BETWEEN)[:times]:
        try:
            process.wait(wait)
            break
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            sent.append(time.monotonic())
    try:
        code: object = process.wait(_LONGEST)
    except subprocess.TimeoutExpired:
        code = "none"
        os.killpg(process.pid, signal.SIGKILL)
    ended = time.monotonic()
    reader.join()
    left = sum(1 for path in folder.rglob(".*") if path.is_file())
    start = f"{case.name:18} {moment:5.1f} {len(sent):5}"
    last = lines[-1][1] if lines else ""
    if not sent:
        return f"{start} {'':6} {'':6} {code!s:>5} {left:4}  done before: {last[:50]}"
    said = next((when for when, line in lines if line.startswith("stopping:")), ended)
    return f"{start} {said - sent[0]:6.2f} {ended - sent[-1]:6.2f} {code!s:>5} {left:4}  {last[:70]}"


SOLVE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import mechdesign as md
kind, folder = sys.argv[1:]
columns, rows = (9, 8) if kind in ("floor", "few columns") else (7, 6)
domain = md.Domain.grid(columns, rows, float(columns), float(rows))
distance, n = md.distances.euclidean(domain), columns * rows
prior = np.arange(1.0, n + 1) / np.arange(1.0, n + 1).sum()
metric = md.MetricPrivacy("0.6", distance)
floor = md.DistortionPrivacy(0.7 * float((distance @ prior).min()), distance)
near = np.where(np.arange(n)[:, None] // 7 == np.arange(n) // 7, distance, np.inf)
apart = md.Problem(prior, near, [md.MetricPrivacy("1", near)])
coupled = md.Problem(prior, near, [md.MetricPrivacy("1", near), md.DistortionPrivacy("0.2", distance)])
plain, joint = md.Problem(prior, distance, [metric]), md.Problem(prior, distance, [metric, floor])
few = md.Problem(prior[:25] / prior[:25].sum(), distance[:25, :25], [md.MetricPrivacy("0.6", distance[:25, :25])])
print("begun", flush=True)
problem, options = {
    "block": (plain, {"solver": "block"}),
    "floor": (joint, {"solver": "block", "options": {"generation": False}}),
    "few columns": (joint, {"solver": "block", "options": {"generation": True}}),
    "worst": (md.Problem(prior, distance, [metric], "worst"), {"solver": "block"}),
    "simplex": (few, {"solver": "highs-simplex"}),
    "lazy": (plain, {"solver": "highs-ipx", "rows": "lazy"}),
    "near": (plain, {"solver": "highs-ipx", "rows": "near"}),
    "rays": (plain, {"rows": "rays", "tolerance": 0.01}),
    "parts": (apart, {}),
    "coupled": (coupled, {}),
}[kind]
made = md.design(problem, **options)
md.save(made, folder, report=False)
print("saved", flush=True)
"""
KINDS = ("block", "floor", "few columns", "worst", "simplex", "lazy", "near", "rays", "parts", "coupled")


def solve(kind: str, wait: float | None) -> tuple[str, float]:
    """Run a solve with Ctrl-C after the given seconds; return the outcome and the seconds."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "design"
        command = [sys.executable, "-W", "ignore", "-c", SOLVE, kind, str(folder)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        clock = time.perf_counter()
        if wait is not None:
            time.sleep(wait)
            os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=300)
        seconds, left = time.perf_counter() - clock, sorted(os.listdir(place))
        if folder.exists():
            try:
                holds = left == ["design"] and md.verify(folder).holds
            except md.errors.CertificateError as error:
                return f"wrong: {error}", seconds
            return ("certified" if holds else f"wrong: {left}"), seconds
        ended = said.rstrip().endswith("KeyboardInterrupt") and not left
        return ("ended" if ended else f"wrong: {left} {said[-300:]}"), seconds


def solves(moments: int, seed: int) -> int:
    """Print the counts for each kind of solve; return the number of wrong outcomes."""
    drawn, wrong = random.Random(seed), 0
    for kind in KINDS:
        outcome, seconds = solve(kind, None)
        counts = collections.Counter(
            solve(kind, drawn.uniform(0.0, 1.05 * seconds))[0] for _ in range(moments // len(KINDS))
        )
        wrong += sum(count for name, count in counts.items() if name.startswith("wrong")) + (outcome != "certified")
        print(f"{kind:12} {seconds:6.2f} s, {outcome}; with Ctrl-C: {dict(counts)}", flush=True)
    print(f"seed {seed}: {wrong} wrong")
    return wrong


def main() -> int:
    """Run one of the two."""
    given = options(__doc__, action=("commands", "solves"), only=[], moments=200, seed=0)
    if given.action == "commands":
        commands(given.only)
        return 0
    return 1 if solves(given.moments, given.seed) else 0


if __name__ == "__main__":
    raise SystemExit(main())
