"""Twenty specifications for the comparison of estimates with measured times; ten take more than a minute.

The programs differ in the quantities that determine the time: numbers of secrets and answers, floors, symmetry,
sparsity, cost, objective, prior and method.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["PROGRAMS", "Program"]

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
