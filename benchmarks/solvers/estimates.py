"""Check whether `mechdesign design --estimate` is within a factor of two of the time that a design takes.

    python benchmarks/solvers/estimates.py [--output results/estimates.jsonl] [--only NUMBER ...] [--judge]

Twenty programs differ in the quantities that determine the time: numbers of secrets and answers, floors, symmetry,
sparsity, cost, objective, prior and method. Ten take more than a minute. The command line designs each in a separate
process with one thread. Each run immediately appends one line of JSON. The line contains measurements of the machine
before and after the run, wall and processor seconds, and the output of the solver. Programs whose line is already
stored are not designed again. `--judge` designs nothing and compares the lines with today's estimates, using the stored
measurements of the machine.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from mechdesign.specification._specification import parse
from mechdesign.synthesis._sizes import Speed, compute_slowness, estimate, measure_speed

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import RESULTS, Facts, Store, options

_CENTRES = """\
[prior.simulated]
people = 50_000
background = 0.1
centres = [
    {{ x = {0:.2f}, y = {1:.2f}, spread = {2:.2f}, weight = 5 }},
    {{ x = {3:.2f}, y = {4:.2f}, spread = {5:.2f}, weight = 3 }},
    {{ x = {6:.2f}, y = {7:.2f}, spread = {8:.2f}, weight = 2 }},
]
"""


@dataclass(frozen=True)
class Program:
    """One program, given by its number of cells of 1 km and further settings.

    Attributes:
        columns, rows: Number of cells along each side; the cells are the secrets.
        answers: Columns and rows of a coarser grid of answers; None if the cells are the answers.
        epsilon: ε per km.
        distance: Name of the distance that the requirement uses.
        power: The cost is the Euclidean distance to this power; 0 stands for the Hamming cost.
        floor: The least error of the adversary in km; None without a floor.
        worst: Whether the worst cost is minimised.
        uniform: Whether the prior is uniform and thus symmetric; otherwise it has three centres.
        solver: Lines of the [solver] table.
    """

    columns: int
    rows: int
    answers: tuple[int, int] | None = None
    epsilon: str = "0.6"
    distance: str = "euclidean"
    power: int = 1
    floor: str | None = None
    worst: bool = False
    uniform: bool = False
    solver: str = "tolerance = 1e-6"

    @property
    def name(self) -> str:
        """A short description of the program."""
        words = [f"{self.columns}x{self.rows}"]
        words += [f"to {self.answers[0]}x{self.answers[1]}"] if self.answers else []
        words += [f"ε {self.epsilon}"] if self.epsilon != "0.6" else []
        words += [self.distance] if self.distance != "euclidean" else []
        words += [{0: "Hamming", 2: "squared"}[self.power]] if self.power != 1 else []
        words += ["worst"] if self.worst else []
        words += [f"floor {self.floor}"] if self.floor else []
        words += ["uniform"] if self.uniform else []
        words += [self.solver.splitlines()[0].split('"')[1]] if '"' in self.solver else []
        return " ".join(words)

    @property
    def text(self) -> str:
        """The specification of the program, as a text in TOML."""
        width, height = float(self.columns), float(self.rows)

        def grid(columns: int, rows: int) -> str:
            sides = f"width = {width}, height = {height}"
            return f'grid = {{ columns = {columns}, rows = {rows}, {sides}, unit = "km" }}\n'

        scale = min(width, height) / 8
        places = (0.4, 0.5, 1.5, 0.7, 0.3, 1.0, 0.2, 0.8, 0.8)
        numbers = [value * (scale if i % 3 == 2 else width if i % 3 == 0 else height) for i, value in enumerate(places)]
        parts = [f'title = "{self.name}"\n', "[domain]\n" + grid(self.columns, self.rows)]
        if self.answers:
            parts.append("[observables]\n" + grid(*self.answers))
        parts.append("[prior]\nuniform = true\n" if self.uniform else _CENTRES.format(*numbers))
        cost = 'distance = "hamming"\n' if self.power == 0 else f'distance = "euclidean"\npower = {self.power}\n'
        parts.append("[cost]\n" + cost + ('objective = "worst"\n' if self.worst else ""))
        metric = f'kind = "metric"\nepsilon = {self.epsilon}\ndistance = "{self.distance}"\n'
        parts.append("[[privacy]]\n" + metric)
        if self.floor:
            parts.append(f'[[privacy]]\nkind = "distortion"\nminimum = {self.floor}\ndistance = "euclidean"\n')
        parts.append("[solver]\nthreads = 1\n" + self.solver + "\n")
        return "\n".join(parts)


PROGRAMS = (
    Program(12, 12),
    Program(15, 15),
    Program(20, 15, power=0),
    Program(20, 15, answers=(10, 8)),
    Program(15, 15, worst=True),
    Program(11, 8, power=2, floor="2.0"),
    Program(20, 20, uniform=True),
    Program(20, 20, distance="manhattan"),
    Program(9, 9, solver='rows = "lazy"\ntolerance = 1e-6'),
    Program(20, 20, solver='rows = "rays"\ntolerance = 0.02'),
    Program(20, 15),
    Program(18, 18, power=2),
    Program(20, 20),
    Program(20, 20, epsilon="0.3"),
    Program(24, 24, uniform=True),
    Program(20, 18, worst=True),
    Program(15, 12, power=2, floor="3.0"),
    Program(30, 30, distance="manhattan"),
    Program(11, 11, solver='rows = "lazy"\ntolerance = 1e-6'),
    Program(30, 24, answers=(12, 12)),
)


def measured(program: Program) -> Facts:
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


def judge(store: Store) -> None:
    """Compare the measured times with today's estimates, for the mean of both measurements of the machine."""
    inside, long = 0, 0
    rows = {row["name"]: row for row in store.rows}
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
    given = options(__doc__, output=RESULTS / "estimates.jsonl", only=[*range(len(PROGRAMS))], judge=False)
    store = Store(given.output, "name")
    if given.judge:
        judge(store)
        return
    for program in (PROGRAMS[index] for index in given.only):
        if (program.name,) not in store.known:
            store.add(measured(program))
            print(f"{program.name}: {store.rows[-1]['seconds']} s", flush=True)


if __name__ == "__main__":
    main()
