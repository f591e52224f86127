"""Read a problem from a specification in TOML.

A specification has a ``title`` and these tables; file names are relative to its folder.

``[domain]``, and ``[observables]`` where the answers are other than the secrets: exactly one of
    ``grid = { columns, rows, width, height, unit }``; ``grid = { columns, rows, south, north, west, east }`` (degrees,
    projected to km); ``points = [[x, y], …]`` (with ``unit``, ``labels``); ``csv = { path, x, y | latitude, longitude,
    label, delimiter }``, which names columns; ``labels = ["a", …]``; ``line = n`` (the places 0, …, n−1).
``[prior]``: exactly one of
    ``uniform = true``; ``probabilities = […]`` (sum 1); ``counts = […]``; ``csv = { path, column, delimiter }`` (a
    line for each secret, in order); ``checkins = { path, user, latitude, longitude, time, trace, delimiter, only }``
    (``only`` is one user); ``plt = { path, only }`` (GeoLife); ``simulated = { people, background, centres = [{ x, y,
    spread, weight }, …] }``. All but the first two are counts, to each of which ``smoothing`` is added.
``[cost]``: exactly one of
    ``distance = "euclidean" | "manhattan" | "chebyshev" | "hamming" | "haversine"``; ``matrix = { path, delimiter }``
    (.csv without a header, or .npy; secrets by observables); ``graph = { edges | edges_csv | neighbours }`` (lengths of
    shortest paths); with ``power``, ``scale`` (the cost is scale · d^power) and ``objective = "expected" | "worst"``.
``[[privacy]]``, once for each requirement:
    ``kind = "metric"``: ``epsilon`` and a measure (``distance``, ``matrix`` or ``graph``, as above);
    ``kind = "threshold"``: ``epsilon``, ``radius`` and a measure;
    ``kind = "graph"``: ``epsilon`` and ``edges = [[0, 1], …]`` (indices or labels), ``edges_csv = { path, source,
    target, delimiter }``, ``neighbours = 4 | 8`` (of a grid), or ``radius`` with ``distance`` or ``matrix``;
    ``kind = "distortion"``: ``minimum`` and a measure (a matrix of estimates by secrets).
``[solver]``, optional:
    ``name``, ``tolerance``, ``time_limit`` (seconds), ``rows``, ``threads`` and ``options`` (under the solver's own
    names), as in `mechdesign.design`.

``epsilon``, ``radius`` and ``minimum`` are exact: 0.1 is one tenth; a text such as "1/3" is accepted, too.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import os
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Literal, cast, get_args

from mechdesign.errors import InfeasibleError, SpecificationError
from mechdesign.io._domains import build_domain
from mechdesign.io._measures import Measures
from mechdesign.io._priors import build_prior
from mechdesign.io._tables import Document, Raw, SolverTable, at, choice, convert
from mechdesign.model.problem import Problem

__all__ = ["SolverSettings", "Specification", "default", "parse", "read"]

Rows = Literal["auto", "all", "reduced", "near", "lazy"]


@dataclass(frozen=True)
class SolverSettings:
    """How a problem is to be solved: the arguments of `mechdesign.design`; `name` is that of the solver."""

    name: str
    tolerance: float
    time_limit: float | None
    rows: Rows
    threads: int | None
    options: dict[str, object]


@dataclass(frozen=True, eq=False, repr=False)
class Specification:
    """A specification whose keys are known and of the right kind; data files are read when the problem is asked for."""

    title: str
    solver: SolverSettings
    folder: Path
    document: Document

    def __repr__(self) -> str:
        return f"Specification({self.title!r}, folder={str(self.folder)!r})"

    def problem(self) -> Problem:
        """Return the problem; raise `SpecificationError` naming a key, or `InfeasibleError` for too high a floor."""
        return self._built[0]

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the data, such as ``"312 points outside the box left out"``."""
        return self._built[1]

    @functools.cached_property
    def _built(self) -> tuple[Problem, tuple[str, ...]]:
        document = self.document
        secrets = build_domain(document.domain, "domain", self.folder)
        observables = secrets
        if document.observables is not None:
            observables = build_domain(document.observables, "observables", self.folder)
        prior, notes = build_prior(document.prior, "prior", secrets, self.folder)
        measures = Measures(secrets, observables, self.folder)
        cost, objective = measures.cost(document.cost, "cost")
        requirements = [measures.requirement(raw, f"privacy[{i}]") for i, raw in enumerate(document.privacy)]
        try:
            with at(""):
                problem = Problem(prior, cost, requirements, objective, secrets, observables, self.title)
        except InfeasibleError as error:
            raise InfeasibleError(str(error).replace("requirements[", "privacy[", 1)) from error
        return problem, notes


def read(path: str | os.PathLike[str]) -> Specification:
    """Read a specification from a file; raise `SpecificationError` naming the key, the value and what is accepted."""
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecificationError(str(source), f"cannot be opened ({error.strerror})", bound="a file in TOML") from error
    except UnicodeDecodeError as error:
        raise SpecificationError(str(source), f"is not a text in UTF-8 ({error.reason})") from error
    return parse(text, source.parent)


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> Specification:
    """Read a specification from a text; names of files in it are relative to `base_folder`.

    >>> specification = parse('''
    ... title = "Randomised response"
    ... domain.labels = ["yes", "no"]
    ... prior.uniform = true
    ... cost.distance = "hamming"
    ... privacy = [{ kind = "metric", epsilon = 1.1, distance = "hamming" }]
    ... ''')
    >>> specification.problem()
    Problem(2 secrets, 2 observables, expected cost; metric)
    """
    try:
        # Numbers stay the decimals that the reader wrote.
        data = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise SpecificationError("specification", f"is not valid TOML: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SpecificationError("specification", f"cannot be read: {error}") from error
    document = convert(data, Document, "")
    if document.version != 1:
        raise SpecificationError("version", "is not known", value=document.version, bound="1")
    if not document.privacy:
        raise SpecificationError(
            "privacy", "is empty", bound="at least one requirement", remedy='add [[privacy]] with kind = "metric", say'
        )
    return Specification(document.title, _settings(document.solver), Path(base_folder), document)


def default() -> Specification:
    """Return the specification that `mechdesign design` uses when it is given none: a city with simulated people."""
    text = importlib.resources.files("mechdesign.io").joinpath("default.toml").read_text(encoding="utf-8")
    return parse(text)


def _settings(raw: Raw) -> SolverSettings:
    table = convert(raw, SolverTable, "solver")
    for key in ("tolerance", "time_limit"):
        value = getattr(table, key)
        if value is not None and not 0 < value < math.inf:
            raise SpecificationError(f"solver.{key}", "is not positive", value=value, bound="> 0 and finite")
    if table.threads is not None and table.threads < 1:
        raise SpecificationError("solver.threads", "is too small", value=table.threads, bound="an integer >= 1")
    rows = cast(Rows, choice(table.rows, get_args(Rows), "solver.rows"))
    options = {name: float(value) if isinstance(value, Decimal) else value for name, value in table.options.items()}
    return SolverSettings(table.name, table.tolerance, table.time_limit, rows, table.threads, options)
