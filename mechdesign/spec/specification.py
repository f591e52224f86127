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
    ``kind = "graph"``: ``epsilon``, of each edge, and what is joined by an edge (see below);
    ``kind = "distortion"``: ``minimum`` and a measure (a matrix of estimates by secrets).
``[policy]``, optional, of the graph that all tables with ``kind = "graph"`` have together:
    ``within = "component" | "map"`` (where the answers of an optimal channel may lie: in the connected component of
    the secret, or anywhere); ``isolated = "refuse" | "repair" | "hull" | "release"`` (secrets without an edge, which
    such a channel would tell: refuse the policy, add edges that protect them, add those pairs that the hull protects
    already, or tell them; traces are always repaired); ``repair = "area" | "nearest" | "best" | "exhaustive"`` (which
    edges are added); ``hull = "component" | "graph"`` (whose sensitivity hull noise is fitted to, and who counts as
    exposed); and what is possible, if not every secret: ``support = ["a", …]`` (indices or labels), or ``delta`` (the
    fewest secrets of probability 1 − δ; of the prior, or, along a trace, of what is believed before each step).
``[release]``, for `mechdesign release`:
    ``mechanism = "planar-isotropic" | "laplace" | "lp"`` (solved at each step as ``[solver]`` says); ``transition``:
    exactly one of ``{ path, delimiter }`` (a matrix, row: the state now, column: the next one), ``{ estimated = true,
    smoothing }`` (from the check-ins or trajectories of the prior), ``{ checkins = { … }, smoothing }`` and ``{ plt = {
    … }, smoothing }`` (as in ``[prior]``), and ``{ neighbours = 4 | 8 }`` (of a grid: stay or step, all equally
    likely); ``initial`` (a table like ``[prior]``, which else serves: what is believed before the first step); ``snap =
    true | false`` (answer with secrets, or with any places, where the mechanism can); ``seed`` (for rehearsals only:
    whoever knows the seed of a published trace can recover the truth).
``[solver]``, optional:
    ``name``, ``tolerance``, ``time_limit`` (seconds), ``rows``, ``threads`` and ``options`` (under the solver's own
    names), as in `mechdesign.design`.

The table of a policy graph says what is joined by exactly one of
    ``edges = [[0, 1], …]`` (indices or labels); ``edges_csv = { path, source, target, delimiter }``;
    ``neighbours = 4 | 8`` (cells of a grid); ``complete = true`` (every two secrets); ``line = true`` (each and the
    next); ``blocks = 3`` or ``[3, 2]`` (cells of the same block of a grid, so many columns and rows);
    ``categories = ["park", …]`` (one for each secret in order: equal ones, "" for none) or ``{ path, column, region,
    delimiter }`` (a file with a line for each secret; ``region`` keeps apart what is in different regions, given by
    another column or, on a grid, by the size of blocks); ``transitions = { … }`` (states to which one step may lead
    from the same state; a table like ``transition`` of ``[release]``, without smoothing); ``radius`` with ``distance``
    or ``matrix`` (secrets at most so far apart). Several tables require what each of them requires.

``epsilon``, ``radius``, ``minimum`` and ``delta`` are exact: 0.1 is one tenth; a text such as "1/3" is accepted, too.

In one ``[[privacy]]`` table ``epsilon = { budgets = "budgets.csv" }`` takes the ε of successive releases from a file
that `mechdesign budget -o` or `mechdesign.leakage.write_budgets` wrote (columns ``step`` and ``epsilon``, all
positive). The specification then describes one problem for each distinct ε. The leakage for which budgets were found is
that of releases in which ε bounds every pair of secrets: a distance of at most 1 (``distance = "hamming"``), a radius
that covers all pairs, or a complete graph. Where a pair is further apart a note says so.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify.claims import ExponentBound
from mechdesign.data.schedule import Schedule, read_schedule, scheduled
from mechdesign.data.tables import Document, PolicyTable, Raw, ReleaseTable, SolverTable, at, choice, convert
from mechdesign.errors import InfeasibleError, MetricWarning, SpecificationError
from mechdesign.model.prior import Prior
from mechdesign.model.problem import Problem
from mechdesign.model.requirement import Requirement
from mechdesign.requirements.graph import GraphPrivacy
from mechdesign.spec.domains import build_domain
from mechdesign.spec.measures import Measures
from mechdesign.spec.policy import Policy, PolicySettings, ReleaseSettings, build_policy, build_release, build_settings
from mechdesign.spec.priors import build_prior

__all__ = ["SolverSettings", "Specification", "default", "named", "parse", "read"]

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


class _Data(NamedTuple):
    """What the problems of a specification have in common."""

    prior: Prior
    cost: NDArray[np.float64]
    objective: str
    measures: Measures
    notes: tuple[str, ...]


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
        """Return the problem; raise `SpecificationError` naming a key, or `InfeasibleError` for too high a floor.

        A specification whose schedule has several ε has as many problems, and no single one: see `problems`.
        """
        if self.schedule is not None and len(self.schedule.distinct) > 1:
            raise SpecificationError(
                f"privacy[{scheduled(self.document.privacy)}].epsilon",
                f"holds {len(self.schedule.distinct)} distinct ε, each with a problem of its own",
                remedy="use problems() of the specification",
            )
        return self._first

    def problems(self) -> Iterator[Problem]:
        """Yield the problem, or with a schedule one for each of its distinct ε, in their order.

        Everything that may be wrong is found with the first.
        """
        yield self._first
        for epsilon in self.schedule.distinct[1:] if self.schedule is not None else ():
            with warnings.catch_warnings():
                # The first problem has warned of the same distances.
                warnings.simplefilter("ignore", MetricWarning)
                made = self._problem(epsilon)
            yield made

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the data, such as ``"312 points outside the box left out"``."""
        notes = self._data.notes
        place = scheduled(self.document.privacy)
        if place is not None:
            notes += _beyond_budgets(self._first.requirements[place], f"privacy[{place}]")
        return notes

    @functools.cached_property
    def schedule(self) -> Schedule | None:
        """The ε of successive releases, or None where ε is a number."""
        place = scheduled(self.document.privacy)
        if place is None:
            return None
        return read_schedule(self.document.privacy[place]["epsilon"], f"privacy[{place}].epsilon", self.folder)

    @functools.cached_property
    def policy(self) -> Policy:
        """The policy graph, the union of those of all ``[[privacy]]`` tables, and what ``[policy]`` says of it.

        With a schedule ε is the first. Raises `SpecificationError` where there is no graph or where their ε differ.
        """
        return build_policy(self._first.requirements, self.policy_settings)

    @functools.cached_property
    def policy_settings(self) -> PolicySettings:
        """What ``[policy]`` says: how policy graphs are to be kept, if there are any."""
        return build_settings(self.document.policy, self._data.measures.graphs)

    @functools.cached_property
    def release(self) -> ReleaseSettings:
        """What ``[release]`` says; raise `SpecificationError` where no transitions are named."""
        return build_release(self.document.release, self._data.measures.graphs, self._data.prior)

    @functools.cached_property
    def _data(self) -> _Data:
        document = self.document
        secrets = build_domain(document.domain, "domain", self.folder)
        observables = secrets
        if document.observables is not None:
            observables = build_domain(document.observables, "observables", self.folder)
        prior, notes = build_prior(document.prior, "prior", secrets, self.folder)
        measures = Measures(secrets, observables, self.folder, document.prior)
        cost, objective = measures.cost(document.cost, "cost")
        return _Data(prior, cost, objective, measures, notes)

    @functools.cached_property
    def _first(self) -> Problem:
        return self._problem(None if self.schedule is None else self.schedule.distinct[0])

    def _problem(self, epsilon: Fraction | None) -> Problem:
        """Return the problem in which `epsilon` stands where a schedule is named."""
        data, place = self._data, scheduled(self.document.privacy)
        requirements = [
            data.measures.requirement(raw | {"epsilon": epsilon} if i == place else raw, f"privacy[{i}]")
            for i, raw in enumerate(self.document.privacy)
        ]
        secrets, observables = data.measures.secrets, data.measures.observables
        try:
            with at(""):
                return Problem(data.prior, data.cost, requirements, data.objective, secrets, observables, self.title)
        except InfeasibleError as error:
            raise InfeasibleError(str(error).replace("requirements[", "privacy[", 1)) from error


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
    # Their data are read when they are asked for, but keys are checked at once.
    convert(document.policy, PolicyTable, "policy")
    convert(document.release, ReleaseTable, "release")
    if document.policy and not any(raw.get("kind") == GraphPrivacy.kind for raw in document.privacy):
        raise SpecificationError(
            "policy", "speaks of a policy graph, and there is none", remedy='add [[privacy]] with kind = "graph"'
        )
    return Specification(document.title, _settings(document.solver), Path(base_folder), document)


@contextmanager
def named(keys: Mapping[str, str]) -> Iterator[None]:
    """Turn an `InputError` about an argument of a function into a `SpecificationError` about the key it came from.

    `keys` lists the arguments that have another name, or place, in a specification.
    """
    with at("", keys):
        yield


def default() -> Specification:
    """Return the specification that `mechdesign design` uses when it is given none: a city with simulated people."""
    text = importlib.resources.files("mechdesign.spec").joinpath("examples", "city.toml").read_text(encoding="utf-8")
    return parse(text)


def _beyond_budgets(requirement: Requirement, path: str) -> tuple[str, ...]:
    """Return a note where a release may leak more than its ε, which is all that budgets account for."""
    bounds, n = [claim for claim in requirement.claims() if isinstance(claim, ExponentBound)], requirement.size
    if not bounds:
        return ()
    largest = max(float(bound.weights.max(initial=0.0)) for bound in bounds)
    if max(len(bound) for bound in bounds) < n * (n - 1):
        reason = "some pairs of secrets have no bound of their own, and a release may leak more than ε about them"
    elif largest > 1:
        reason = f"secrets are up to {largest:g} units apart, so that a release may leak {largest:g} ε"
    else:
        return ()
    return (f"{path}: {reason}; budgets are found for releases that leak at most ε about any two secrets",)


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
