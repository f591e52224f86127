"""The leakage of repeated releases pair by pair, under the requirements of a specification."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from mechdesign.base._arrays import Flags, Floats, Integers
from mechdesign.base._check import as_integer
from mechdesign.base._deadline import promising
from mechdesign.base._errors import InputError, SolverError, SolverInterruptedError
from mechdesign.base._files import write_output
from mechdesign.certify._texts import csv_text
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import STOPPED, progress, say_note
from mechdesign.cli._correlations import losses
from mechdesign.cli._found import Found, Shown
from mechdesign.data.matrices import Declared, read_lines
from mechdesign.model._words import at_most

if TYPE_CHECKING:
    from mechdesign.leakage._loss import LossFunction
    from mechdesign.model._domain import Domain
    from mechdesign.model._problem import Problem
    from mechdesign.model._words import Measure
    from mechdesign.report._leakage_page import Largest, Told

# The largest number of states for which each pair has a program; beyond, only edges have one.
MOST_STATES = 120
_TOO_MANY = f"not computed for more than {MOST_STATES} states"
_STOPPED = "not computed: stopped"


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
    bounds, neighbours = bounds[np.ix_(states, states)], _neighbours(problem, states)
    every = _are_few(neighbours, kept.size, specification)
    # The bounds so far are kept, and drawn, however long the next ones take.
    with promising("keeping the bounds found so far"):
        found, future = _find_bounds(bounds, known, steps, None if every else neighbours)
    measure = _measure(problem, kept, states)
    measure = _measure(problem, kept, states)
    told = [leakage_page.Told(count, each, _largest(each, neighbours, measure, names)) for count, each in found.items()]
    unit = measure.unit if measure is not None else ""
    last = next(each for each in reversed(told) if each.releases <= steps)
    said = judge_pairs(int(last.releases), {name: value for name, (value, _) in last.largest.items()}, unit)
    rows = [_row(each) for each in told]
    if target is not None:
        lines = ([_cell(value.value) for value in row.values()] for row in rows)
        write_output(target, [csv_text([[*rows[0]], *lines]).encode()])
    if page is not None:
        html = leakage_page.html_of_pairs(said, problem.title, (kept, names), told, unit, future, known)
        write_output(page, [html.encode()])
    facts = {"states": kept.size, "unit": unit or None, "any_number_of_releases": future}
    code = STOPPED if future == _STOPPED else 0
    return Found(str(said), facts | {"file": target, "page": page, "after": rows}, code)


def _required(problem: Problem) -> Floats:
    """Return the bounds of one release; raise `InputError` for requirements that bound no pairs, or all points."""
    from mechdesign.leakage._bounds import pairs
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
    """Return the states in the folder of `mechdesign chain`, whose rows must be those of the domain.

    Without a file of states all states are returned.
    """
    from mechdesign.specification._chain_files import state_rows

    file = None if chain is None else chain / "states.csv"
    if file is None or not file.is_file():
        return np.arange(domain.size)
    head, *rows = state_rows(domain, np.arange(domain.size))
    known = {tuple(map(str, row[1:])): state for state, row in enumerate([head, *rows], -1)}
    states = [-2]
    for line, fields in read_lines(file):
        state = known.get(tuple(fields[1:]), -2)
        if state <= states[-1]:
            raise InputError(
                f"{file}, line {line}",
                "does not fit the specification",
                bound="its states, ascending, with their labels and places",
                remedy="count the chain with this specification: mechdesign chain SPEC.toml",
            )
        states.append(state)
    return np.array(states[2:], dtype=np.int64)


def _neighbours(problem: Problem, states: Integers) -> nx.Graph | None:
    """Return the graph of all policy graphs, or else of the cells that touch, on some states; None without both."""
    from mechdesign.graphs._builders import neighbours8

    assert problem.secrets is not None
    graphs = list(problem.graphs.values())
    if not graphs:
        if problem.secrets.cells is None:
            return None
        graphs = [neighbours8(problem.secrets)]
    kept = nx.compose_all(graphs).subgraph(states.tolist())
    return nx.convert_node_labels_to_integers(kept, ordering="sorted")


def _are_few(neighbours: nx.Graph | None, size: int, specification: Path) -> bool:
    """Return whether all pairs of states have programs; raise `InputError` if neither they nor neighbours can."""
    if size <= MOST_STATES:
        return True
    if neighbours is None:
        bound = f"at most {MOST_STATES} states, a grid of cells, or a policy graph"
        raise InputError(str(specification), "has too many states without neighbours", value=size, bound=bound)
    say_note(f"more than {MOST_STATES} states: only neighbours have programs, so bounds are looser")
    return False


def _counts(steps: int) -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, … up to half of the number of releases, and this number.

    >>> list(_counts(13))
    [1, 2, 5, 13]
    """
    tens = (digit * 10**power for power in range(len(str(steps))) for digit in (1, 2, 5))
    yield from (count for count in tens if 2 * count <= steps)
    yield steps


def _find_bounds(
    bounds: Floats, known: Sequence[LossFunction | None], steps: int, edges: nx.Graph | None
) -> tuple[dict[float, Floats], str]:
    """Return the bounds after 1, 2, 5, … releases and after any number, and a sentence on the last bounds.

    Ctrl-C leaves out what is not yet found. With edges, there are no bounds for any number of releases.
    """
    from mechdesign.leakage import _recursion as recursion

    found: dict[float, Floats] = {}
    try:
        for count in _counts(steps):
            with progress(f"{count} of {steps} releases"):
                found[count] = recursion.temporal([bounds] * count, *known, edges=edges).max(axis=0)
        if edges is not None:
            return found, _TOO_MANY
        with progress("any number of releases (Ctrl-C leaves it out)"):
            limit = recursion.supremum(bounds, *known)
    except (KeyboardInterrupt, SolverInterruptedError):
        if not found:
            raise
        return found, _STOPPED
    except SolverError as error:
        return found, f"not decided: {error}"
    # A power of the matrix may bound the leakage below the recursion.
    found = {count: np.minimum(each, limit.bounds) for count, each in found.items()} | {math.inf: limit.bounds}
    endless = np.count_nonzero(np.isinf(limit.bounds))
    few = f"no bound is known for {endless} of {bounds.size - len(bounds)} ordered pairs"
    return found, f"{few if endless else 'every pair has a bound'} if the matrices stay the same at every step"


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
    bounds: Floats, neighbours: nx.Graph | None, measure: Measure | None, names: Sequence[str]
) -> dict[str, Largest]:
    """Return the largest bound of neighbours, per unit of distance and of all pairs, each with its pair of names."""
    every = ~np.eye(len(bounds), dtype=np.bool_)
    found = {}
    if neighbours is not None and neighbours.number_of_edges():
        found["neighbours"] = _at_largest(bounds, nx.to_numpy_array(neighbours, nodelist=range(len(bounds))) > 0)
    if measure is not None and (apart := (measure.matrix > 0) & (measure.matrix < math.inf)).any():
        found["per_unit"] = _at_largest(bounds, apart, measure.matrix)
    if every.any():
        found["all_pairs"] = _at_largest(bounds, every)
    return {name: (value, (names[s], names[t])) for name, (value, (s, t)) in found.items()}


def _at_largest(bounds: Floats, counts: Flags, lengths: Floats | None = None) -> tuple[float, tuple[int, int]]:
    """Return the largest bound that counts, or the largest quotient of bound and length, rounded up, and its pair."""
    values = bounds[counts] if lengths is None else bounds[counts] / lengths[counts]
    largest = float(values.max())
    at_end = values == largest
    s, t = np.argwhere(counts)[at_end.argmax()].tolist()
    if lengths is not None and largest < math.inf:
        # The exact quotient may be above the rounded one, or another pair with the same rounded one.
        terms = {*zip(*(each[counts][at_end].tolist() for each in (bounds, lengths)), strict=True)}
        over = any(Fraction(bound) > Fraction(largest) * Fraction(length) for bound, length in terms)
        largest = math.nextafter(largest, math.inf) if over else largest
    return largest, (s, t)


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
