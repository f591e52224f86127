"""The leakage of repeated releases pair by pair, under the requirements of a specification."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_integer
from mechdesign.base._errors import InputError, SolverError
from mechdesign.base._files import write_output
from mechdesign.certify._exact import float_above
from mechdesign.certify._texts import csv_text
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import at_most, progress, say_note
from mechdesign.cli._correlations import losses
from mechdesign.cli._found import Found, Shown
from mechdesign.data.matrices import Declared, read_lines

if TYPE_CHECKING:
    import networkx as nx

    from mechdesign.leakage._loss import LossFunction
    from mechdesign.model._domain import Domain
    from mechdesign.model._problem import Problem
    from mechdesign.model._words import Measure
    from mechdesign.report._leakage_page import Largest, Told

# The largest number of states for which each pair has a program; beyond, only edges have one.
MOST_STATES = 120
_TOO_MANY = f"not computed for more than {MOST_STATES} states"
# Degrees of one place in two files differ by less.
_SAME_PLACE = 1e-9
# A quotient of floats, divided by the exact one, is above this number.
_CLOSE = 1 - 2.0**-50


def leakage_of_pairs(
    specification: Path,
    chain: Path | None,
    files: Mapping[str, Path | None],
    declared: tuple[Declared, Declared],
    steps: int,
    output: tuple[Path | None, Path | None],
) -> Found:
    """Return bounds of pairs of secrets after 1, 2, 5, … releases and after any number; write a table and a page.

    `chain` is the folder of the matrices in `files`, if they have one, and `output` has the table and the page.
    """
    # Imported late, so that wrong usage is rejected immediately.
    from mechdesign.leakage import _recursion as recursion
    from mechdesign.leakage._series import LONGEST
    from mechdesign.report import _leakage_page as leakage_page
    from mechdesign.report._maps import name_of
    from mechdesign.report._verdicts import judge_pairs
    from mechdesign.specification._specification import read_spec

    steps, (target, page) = as_integer(steps, "--steps", 1, LONGEST), output
    problem = read_spec(specification).problem()
    assert problem.secrets is not None
    bounds = _required(problem)
    states = _states_of(chain, problem.secrets)
    kept, names = problem.secrets.part(states), [name_of(problem.secrets, state) for state in states.tolist()]
    if left_out := problem.secrets.size - kept.size:
        say_note(f"{left_out} states of {specification} are not in the chain: nothing is said about them")
    known = losses(files, *declared, kept.labels)
    _check_sizes(files, known, kept, specification)
    bounds, neighbours = bounds[np.ix_(states, states)], _neighbours(problem, states)
    edges = _edges(neighbours, kept.size, specification)
    found: dict[float, Floats] = {}
    for count in _counts(steps):
        with progress(f"{count} of {steps} releases"):
            found[count] = recursion.temporal([bounds] * count, *known, edges=edges).max(axis=0)
    with progress("any number of releases"):
        always, future = _future(bounds, known) if edges is None else (None, _TOO_MANY)
    if always is not None:
        found[math.inf] = always
    measure = _measure(problem, kept, states)
    told = [leakage_page.Told(count, each, _largest(each, neighbours, measure, names)) for count, each in found.items()]
    last = next(each for each in told if each.releases == steps)
    said = judge_pairs(steps, {name: value for name, (value, _) in last.largest.items()})
    rows = [_row(each) for each in told]
    if target is not None:
        lines = ([_cell(value.value) for value in row.values()] for row in rows)
        write_output(target, [csv_text([[*rows[0]], *lines]).encode()])
    unit = measure.unit if measure is not None else ""
    if page is not None:
        html = leakage_page.html_of_pairs(said, problem.title, (kept, names), told, unit, future, known)
        write_output(page, [html.encode()])
    facts = {"states": kept.size, "unit": unit or None, "any_number_of_releases": future}
    return Found(str(said), facts | {"file": target, "page": page, "after": rows})


def _required(problem: Problem) -> Floats:
    """Return the bounds of one release; raise `InputError` for requirements that bound no pairs, or all points."""
    from mechdesign.leakage._pairs import pairs
    from mechdesign.model._requirements._continuous import ContinuousPrivacy

    for index, each in enumerate(problem.requirements):
        if isinstance(each, ContinuousPrivacy):
            raise InputError(
                f"privacy[{index}]",
                "bounds all points of the plane, and two points of one cell differ",
                value=each.kind,
                bound="a requirement on the states of the chain, such as metric",
                remedy="state a metric requirement on the same cells, and count the chain in them",
            )
    bounding = [each for each in problem.requirements if each.pair_bounds]
    with naming_options({r"bounds\[(\d+)\]": r"privacy[\1]"}):
        return pairs(bounding or list(problem.requirements))


def _states_of(chain: Path | None, domain: Domain) -> Integers:
    """Return the states of the rows in a folder of `mechdesign chain`; all states without such a file.

    Raises `InputError` if a row has another label or another place than the state.
    """
    file = None if chain is None else chain / "states.csv"
    if file is None or not file.is_file():
        return np.arange(domain.size)
    lines = iter(read_lines(file))
    head = next(lines, (1, [""]))[1]
    remedy = "count the chain with this specification: mechdesign chain SPEC.toml"
    if not {"state", "label"} <= set(head):
        bound = "states.csv of a specification with places or labels"
        raise InputError(str(file), "names no states", bound=bound, remedy=remedy)
    known, states = {str(state): state for state in range(domain.size)}, [-1]
    for line, fields in lines:
        row = dict(zip(head, fields, strict=False))
        state = known.get(row.get("state", ""), -1)
        if state <= states[-1] or not _is_state(row, domain, state):
            bound = "the states of the specification, ascending, with their labels and places"
            raise InputError(f"{file}, line {line}", "is another state", bound=bound, remedy=remedy)
        states.append(state)
    return np.array(states[1:], dtype=np.int64)


def _is_state(row: Mapping[str, str], domain: Domain, state: int) -> bool:
    """Return whether the label and the degrees in a row are those of a state."""
    if row.get("label") != domain.labels[state] or ("latitude" in row) != (domain.degrees is not None):
        return False
    if domain.degrees is None:
        return True
    try:
        found = [float(row.get(name, "")) for name in ("latitude", "longitude")]
    except ValueError:
        return False
    return bool(np.abs(found - domain.degrees[state]).max() < _SAME_PLACE)


def _check_sizes(
    files: Mapping[str, Path | None], known: Sequence[LossFunction | None], kept: Domain, specification: Path
) -> None:
    for (name, path), loss in zip(files.items(), known, strict=True):
        if loss is not None and loss.n != kept.size:
            bound = f"{kept.size}, as in {specification}"
            raise InputError(f"{name} ({path})", "has another number of states", value=loss.n, bound=bound)


def _neighbours(problem: Problem, states: Integers) -> Integers | None:
    """Return the edges of all policy graphs, or else the pairs of cells that touch, among states; None without both."""
    from mechdesign.graphs._builders import neighbours8

    assert problem.secrets is not None
    graphs = list(problem.graphs.values())
    if not graphs:
        if problem.secrets.cells is None:
            return None
        graphs = [neighbours8(problem.secrets)]
    edges = [np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2) for graph in graphs]
    places = np.full(problem.secrets.size, -1)
    places[states] = np.arange(len(states))
    found = places[np.unique(np.concatenate(edges), axis=0)]
    return found[(found >= 0).all(axis=1)]


def _edges(neighbours: Integers | None, size: int, specification: Path) -> nx.Graph | None:
    """Return the graph of the pairs that have programs; None for all pairs."""
    from mechdesign.graphs._builders import from_edges

    if size <= MOST_STATES:
        return None
    if neighbours is None:
        bound = f"at most {MOST_STATES} states, a grid of cells, or a policy graph"
        raise InputError(str(specification), "has too many states without neighbours", value=size, bound=bound)
    say_note(f"more than {MOST_STATES} states: only neighbours have programs, so bounds are looser")
    return from_edges(size, neighbours)


def _counts(steps: int) -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, … up to half of the number of releases, and this number.

    >>> list(_counts(13))
    [1, 2, 5, 13]
    """
    tens = (digit * 10**power for power in range(len(str(steps))) for digit in (1, 2, 5))
    yield from (count for count in tens if 2 * count <= steps)
    yield steps


def _future(bounds: Floats, known: Sequence[LossFunction | None]) -> tuple[Floats | None, str]:
    """Return bounds that hold for any number of releases, or None, and a sentence on their proof."""
    from mechdesign.leakage._recursion import supremum

    try:
        limit = supremum(bounds, *known)
    except SolverError as error:
        return None, f"not decided: {error}"
    return limit.bounds, limit.proved


def _measure(problem: Problem, kept: Domain, states: Integers) -> Measure | None:
    """Return the distances of the one metric requirement, or else those of the plane; None without both."""
    from mechdesign.model._requirements._metric import MetricPrivacy
    from mechdesign.model._words import Measure, Words
    from mechdesign.model.distances import euclidean

    metrics = [each.distance for each in problem.requirements if isinstance(each, MetricPrivacy)]
    if len(metrics) == 1:
        found = Words(problem.secrets).measure(metrics[0])
        return Measure(found.matrix[np.ix_(states, states)], found.name, found.unit)
    return Measure(euclidean(kept), "", kept.unit) if kept.points.shape[1] else None


def _largest(
    bounds: Floats, neighbours: Integers | None, measure: Measure | None, names: Sequence[str]
) -> dict[str, Largest]:
    """Return the largest bound of neighbours, per unit of distance and of all pairs, each with its pair of names."""
    every = np.argwhere(~np.eye(len(bounds), dtype=np.bool_))
    found = {}
    if neighbours is not None and len(neighbours):
        both = np.concatenate((neighbours, neighbours[:, ::-1]))
        found["neighbours"] = _at_largest(bounds[tuple(both.T)], both)
    if measure is not None:
        lengths = measure.matrix[tuple(every.T)]
        apart = every[(lengths > 0) & (lengths < math.inf)]
        if len(apart):
            found["per_unit"] = _steepest(bounds, measure.matrix, apart)
    if len(every):
        found["all_pairs"] = _at_largest(bounds[tuple(every.T)], every)
    return {name: (value, (names[s], names[t])) for name, (value, (s, t)) in found.items()}


def _at_largest(values: Floats, pairs: Integers) -> tuple[float, tuple[int, int]]:
    at = int(np.argmax(values))
    return float(values[at]), tuple(pairs[at].tolist())


def _steepest(bounds: Floats, lengths: Floats, pairs: Integers) -> tuple[float, tuple[int, int]]:
    """Return the largest quotient of a bound and a length, rounded up, and its pair."""
    quotients = bounds[tuple(pairs.T)] / lengths[tuple(pairs.T)]
    if (largest := quotients.max()) == math.inf:
        return _at_largest(quotients, pairs)
    close = pairs[quotients >= largest * _CLOSE].tolist()
    exact = [Fraction(float(bounds[s, t])) / Fraction(float(lengths[s, t])) for s, t in close]
    at = max(range(len(exact)), key=exact.__getitem__)
    return float_above(exact[at]) if exact[at] else 0.0, tuple(close[at])


def _row(told: Told) -> dict[str, Shown]:
    """Return the largest bounds after a number of releases as a row of the table."""
    number = "any number" if told.releases == math.inf else str(told.releases)
    row = {"releases": Shown(told.releases, number)}
    for name, (value, pair) in told.largest.items():
        row[name] = Shown(value, at_most(value) if value < math.inf else "no bound")
        row[f"{name}_pair"] = Shown(list(pair), " and ".join(pair))
    return row


def _cell(value: object) -> object:
    return " and ".join(value) if isinstance(value, list) else value
