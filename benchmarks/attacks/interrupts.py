"""Measure how soon the commands print a line after Ctrl-C, and how soon they end, for one and two Ctrl-C.

``python benchmarks/attacks/interrupts.py [COMMAND …]`` starts each command in a separate folder. The script sends SIGINT to its
process group at several moments, as a terminal does, and prints the outcome for each moment:

- `said`: seconds from the first Ctrl-C to the line "stopping: …", or to the end if this line is missing;
- `ended`: seconds from the last Ctrl-C to the end;
- the exit code, and the number of temporary files that were left behind.

Moments are seconds after the start. If Ctrl-C is sent twice, the second follows a second after the first. Seconds are
wall-clock times, which are longer on a busy machine.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_LONGEST = 120.0
_BETWEEN = 1.0

_LARGE = """
[domain]
kind = "grid"
rows = 32
columns = 32
cell_size = 0.3

[prior]
kind = "uniform"

[cost]
kind = "distance"
distance = "euclidean"

[[privacy]]
kind = "metric"
epsilon = 2.0
distance = "euclidean"
"""

_LAZY = _LARGE.replace("32", "12") + '\n[solver]\nname = "highs-ipx"\nrows = "lazy"\n'
_SIMPLEX = _LARGE.replace("32", "9") + '\n[solver]\nname = "highs-simplex"\nrows = "all"\n'
_SWEEP = _LARGE.replace("32", "14") + '\n[sweep]\n"privacy.0.epsilon" = [0.5, 0.7, 1, 1.4, 2, 2.8, 4]\n'


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
    _Case("audit", "audit city/channel.csv", (0.8, 2.0), "design --example city-300 -o city"),
    _Case("policy", "policy --example districts", (0.8, 1.5)),
    _Case("blowfish", "blowfish --example admissions -o out", (0.8, 1.5)),
    _Case("leakage", "leakage --example traffic", (0.8, 1.5)),
)


def main(names: list[str]) -> None:
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
    for name, text in (("large", _LARGE), ("lazy", _LAZY), ("simplex", _SIMPLEX), ("sweep", _SWEEP)):
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
    sent = []
    try:
        for number in range(times):
            process.wait(moment if number == 0 else _BETWEEN)
            break
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        sent.append(time.monotonic())
    if sent and times == 2:
        try:
            process.wait(_BETWEEN)
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
    if not sent:
        return f"{start} {'':6} {'':6} {code!s:>5} {left:4}  done before"
    said = next((when for when, line in lines if line.startswith("stopping:")), ended)
    last = lines[-1][1] if lines else ""
    return f"{start} {said - sent[0]:6.2f} {ended - sent[-1]:6.2f} {code!s:>5} {left:4}  {last[:70]}"


if __name__ == "__main__":
    main(sys.argv[1:])
