"""Leakage over time pair by pair: budgets that are matrices of bounds, carried from release to release.

Let E_t bound ln p(o|s)/p(o|s') of release t for every pair, closed along paths. Then B_t = E_t + T_t(B_{t−1}) with
B_1 = E_1 bounds what releases 1 to t reveal about the state at t; see `mechdesign.leakage._transport` for T. Later
releases add likewise, with the forward matrix F_t: in total E_t + T(B_{t−1}) + T(F_{t+1}).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.base._names import Labels, labels_of, order_of
from mechdesign.leakage._bounds import add, as_bounds, close, close_edges, refuse_source
from mechdesign.leakage._correlations import Candidates, Correlation, Varying, check_directions, step_functions
from mechdesign.leakage._loss import LossFunction
from mechdesign.leakage._transport import Rows, step
from mechdesign.model._graph_nodes import check_graph
from mechdesign.model._requirements._graph import GraphPrivacy

# A bound of the relative error of a loss function.
_LOSS_ERROR = 2.0**-48


def matrices_in(epsilons: Any, edges: Any = None) -> list[Any] | None:
    """Return budgets that are matrices as a list, and None for budgets that are numbers.

    Args:
        epsilons: The budgets.
        edges: A graph for budgets that are matrices, or None.

    Returns:
        The matrices, unchecked.

    Raises:
        InputError: The budgets are requirements, a single matrix, matrices and numbers, or numbers with edges.

    >>> matrices_in([0.1, 0.2])
    """
    refuse_source(epsilons, "epsilons")
    budgets = epsilons if isinstance(epsilons, list | tuple) else np.atleast_1d(np.asarray(epsilons))
    for at, each in enumerate(budgets):
        refuse_source(each, f"epsilons[{at}]")
    shapes = [_shape(each) for each in budgets]
    matrices = [len(shape) == 2 for shape in shapes]
    if any(matrices):
        if not all(matrices):
            at, bound = matrices.index(False), "a matrix, as other budgets are"
            remedy = "write an ε for all pairs as a matrix of ε with a diagonal of 0"
            raise InputError(f"epsilons[{at}]", "is not a matrix", value=shapes[at], bound=bound, remedy=remedy)
        return list(epsilons)
    n = len(shapes)
    if n and all(shape == (n,) for shape in shapes):
        bound, remedy = "a list of budgets, one for each release", "give [E] for one release, [E, E] for two"
        raise InputError("epsilons", "is a single matrix", value=(n, n), bound=bound, remedy=remedy)
    if edges is not None:
        bound, remedy = "None for budgets that are numbers", "give matrices of bounds, such as pairs(requirement)"
        raise InputError("edges", "has no pairs to bound", value=type(edges).__name__, bound=bound, remedy=remedy)
    return None


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return tuple(np.shape(value))
    except ValueError:
        # Lists of different lengths are refused where budgets are read.
        return ()


def bound_pairs(epsilons: Sequence[Any], correlations: Mapping[str, Correlation], edges: Any) -> Floats:
    """Return E_t plus what earlier releases ("backward") and later ones ("forward") add, the largest over candidates.

    Args:
        epsilons: The matrices E_t.
        correlations: The backward correlation, the forward one, or both, as `mechdesign.leakage.temporal` accepts them.
        edges: A graph, as `mechdesign.leakage.temporal` accepts it; None for all pairs.

    Returns:
        The bounds, shape (T, n, n).
    """
    task = _Task(epsilons, correlations, edges)
    if len(correlations) > 1:
        check_directions(task.losses["backward"], task.losses["forward"])
    out = np.array(task.bounds)
    for path in correlations:
        for t, carried in enumerate(task.carried(path)):
            out[t] = add(out[t], carried)
    return out


def labels_in(known: Iterable[tuple[str, LossFunction]]) -> Labels:
    """Return the names of the states of the first correlation with names; `known` has paths and loss functions."""
    return next((labels for path, loss in known if (labels := labels_of(loss.names, path))), ())


def rows_of(loss: LossFunction, labels: Labels, path: str, n: int, like: str) -> Rows:
    """Return the rows of a correlation of n states in the order of labels; `like` has the n states, for messages."""
    if loss.matrix is None:
        bound, remedy = "a matrix", "give the matrix itself, or budgets that are numbers"
        raise InputError(path, "is a loss function without its matrix", bound=bound, remedy=remedy)
    if loss.n != n:
        bound = f"{n}, as in {like}"
        remedy = "a chain may leave states out; select those of its rows, which states.csv of mechdesign chain lists"
        raise InputError(path, "has another number of states", value=loss.n, bound=bound, remedy=remedy)
    order = _order(loss, labels, path)
    matrix: Any = loss.matrix
    return Rows(matrix if order is None else matrix[order][:, order])


def _order(loss: LossFunction, labels: Labels, path: str) -> Integers | None:
    """Return the place of each label among the states of a loss function; None if they are in this order."""
    return order_of(loss.names, labels, path) if labels else None


class _Task:
    """Closed bounds E_t, the edges, and the loss functions of each candidate and direction."""

    def __init__(self, epsilons: Sequence[Any], correlations: Mapping[str, Correlation], edges: Any) -> None:
        self.losses = {path: step_functions(each, len(epsilons), path) for path, each in correlations.items()}
        self.missing = {path: _missing(each, len(epsilons)) for path, each in correlations.items()}
        known = [(path, loss) for path, chains in self.losses.items() for chain in chains for loss in chain if loss]
        self.labels = labels_in(known)
        self.bounds: list[Floats] = []
        before: Floats | None = None
        for t, each in enumerate(epsilons):
            matrix = as_bounds(each, f"epsilons[{t}]", self.labels)
            if before is None:
                self.n = len(matrix)
                self.edges = None if edges is None else _as_edges(edges, self.n)
            if len(matrix) != self.n:
                bound = f"{self.n}, as in epsilons[0]"
                raise InputError(f"epsilons[{t}]", "has another number of states", value=len(matrix), bound=bound)
            # Equal matrices are closed once.
            again = before is not None and np.array_equal(matrix, before)
            self.bounds.append(self.bounds[-1] if again else self._close(matrix))
            before = matrix
        distinct = {id(loss): (path, loss) for path, loss in known}
        self._rows = {
            key: rows_of(loss, self.labels, path, self.n, "epsilons[0]") for key, (path, loss) in distinct.items()
        }

    def _close(self, matrix: Floats) -> Floats:
        if self.edges is None:
            return close(matrix)
        s, t = np.concatenate((self.edges, self.edges[:, ::-1])).T
        return close_edges(matrix[s, t], s, t, self.n)

    def carried(self, path: str) -> Floats:
        """Return the largest amount over all candidates that other releases add to each, shape (T, n, n)."""
        most = np.zeros((len(self.bounds), self.n, self.n))
        along = slice(None) if path == "backward" else slice(None, None, -1)
        for losses, missing in zip(self.losses[path], self.missing[path], strict=True):
            first, *bounds = self.bounds[along]
            for rows in self._rows.values():
                # The amounts of a chain must not depend on those of other chains, not even in the last bit.
                rows.starts.clear()
            amount = first
            for loss, unreached, own, largest in zip(
                losses[along], missing[along], bounds, most[along][1:], strict=True
            ):
                if loss is None:
                    amount = own
                    continue
                passed = self._passed(loss, amount)
                # Nothing is claimed about states that cannot occur.
                order = _order(loss, self.labels, path)
                places = unreached if order is None else np.flatnonzero(np.isin(order, unreached))
                passed[places] = np.inf
                passed[:, places] = np.inf
                np.fill_diagonal(passed, 0.0)
                np.maximum(largest, passed, out=largest)
                amount = add(own, passed)
        return most

    def _passed(self, loss: LossFunction, bounds: Floats) -> Floats:
        """Return an upper bound of T(B); on edges only, the least of it closed along paths and of L(max B)."""
        rows = self._rows[id(loss)]
        for other in self._rows.values():
            # Only the matrix of successive steps keeps its starts, which are large.
            if other is not rows:
                other.starts.clear()
        passed = step(rows, bounds, self.edges)[0]
        if self.edges is not None:
            used = np.arange(self.n) if len(rows.any) else np.unique(rows.col)
            np.minimum(passed, _loss_up(loss, float(bounds[np.ix_(used, used)].max())), out=passed)
            np.fill_diagonal(passed, 0.0)
        return passed


def _missing(correlation: Correlation, steps: int) -> list[list[Integers]]:
    """Return the states that cannot occur after each step, for each candidate."""
    options = correlation.options if isinstance(correlation, Candidates) else (correlation,)
    none = np.zeros(0, dtype=np.int64)
    return [list(option.missing) if isinstance(option, Varying) else [none] * (steps - 1) for option in options]


def _as_edges(edges: Any, n: int) -> Integers:
    """Return the edges of a graph with n nodes, int64 of shape (m, 2)."""
    if isinstance(edges, GraphPrivacy):
        if edges.size != n:
            bound = f"a graph with {n} nodes"
            raise InputError("edges", "has another number of nodes", value=edges.size, bound=bound)
        return edges.edges
    check_graph(edges, n, "edges", every=True)
    return np.array(list(edges.edges), dtype=np.int64).reshape(-1, 2)


def _loss_up(loss: LossFunction, alpha: float) -> float:
    """Return an upper bound of L(α)."""
    return min(alpha, math.nextafter(loss(alpha) * (1 + _LOSS_ERROR), math.inf))
