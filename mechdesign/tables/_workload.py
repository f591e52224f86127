"""Workloads: the linear queries that are to be answered, as rows of a matrix or, where there are many, by a rule."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_indices, read_only
from mechdesign.base._check import as_integer, require_kind, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import Terms
from mechdesign.tables._domain import Domain
from mechdesign.tables._linear_queries import LinearQueries, on_lattice, step_of
from mechdesign.tables._policies._graphs import require_room
from mechdesign.tables._policy import Policy
from mechdesign.tables._query import Option, Plan, Query, Question
from mechdesign.tables._release import Release
from mechdesign.tables._strategies._choice import check_choice, check_strategy, choose
from mechdesign.tables._strategies._strategy import Strategy
from mechdesign.tables._values import check_positions, range_positions, value_names

TOLERANCE = 5e-5
"""The relative gap at which the search for the best Gaussian strategy ends."""

COMPARED = 256
"""Up to so many values strategies are found for comparison, which takes seconds."""

_EXACT = 2.0**53
# Squares of coefficients up to this size, and of their reciprocals, neither overflow nor underflow.
_LARGEST = 1e100
# Coefficients that are not zero, 16 bytes each, and queries, whose names take about 100.
_LARGEST_ENTRIES = 2**26
_LARGEST_COUNT = 2**22
# Queries whose columns are compared at a time: their bits fit into an int64.
_BITS = 62


class Workload(LinearQueries, Query[Release]):
    """Linear queries on a histogram of `size` values, answered through the strategy with the least expected error.

    Under publicly known counts, for which there is no strategy, each query gets noise of its own. Make one by
    `identity`, `prefixes`, `all_ranges` or `marginals`, from ranges or from a matrix.

    Attributes:
        size: the number |T| of values.
        phrase: the workload in words.
        kind: which strategy is taken; "auto" for the one with the least expected error.
        tolerance: the relative gap at which the search for the best Gaussian strategy ends.

    >>> from mechdesign.tables import Budget, Domain, Policy, prefixes
    >>> policy = Policy.line(Domain({"age": range(8)}))
    >>> prefixes(8).sensitivity(policy).value, prefixes(8).plan(policy, Budget.of(rho="0.5")).queries
    (1, 8)
    >>> prefixes(8).release([1, 4, 4], policy, Budget.of(rho="0.5"), rng=1).answers.shape
    (8,)
    """

    kind: str = "auto"
    tolerance: float = TOLERANCE

    def ask(self, policy: Policy) -> Question:
        """Return the queries, to be answered with noise on each of its own."""
        check_width(self, policy.domain.size)
        weights = self.weights()
        step = step_of(weights)
        return Question.of_rows(policy, on_lattice(weights, step, policy.domain.size), step, self.labels, self.phrase)

    def using(self, kind: str = "auto", tolerance: float = TOLERANCE) -> Self:
        """Return the same workload, to be answered through another strategy.

        Args:
            kind: which strategy, see `mechdesign.tables.strategy`.
            tolerance: the relative gap at which the search for the best Gaussian strategy ends.

        Raises:
            InputError: an unknown strategy, or a tolerance that is not between 0 and 1.

        >>> prefixes(8).using("hierarchical").kind
        'hierarchical'
        """
        check_choice(kind, tolerance)
        found = copy.copy(self)
        vars(found).update(kind=kind, tolerance=tolerance, _found={})
        return found

    def strategy(self, policy: Policy, noise: str = "gaussian") -> Strategy:
        """Return the strategy with the least expected error, which is found once: see `mechdesign.tables.strategy`."""
        check_strategy(policy, noise)
        check_width(self, policy.domain.size)
        if (policy, noise) not in self._found:
            self._found[policy, noise] = choose(self, policy, noise, self.kind, self.tolerance)
        return self._found[policy, noise]

    @cached_property
    def _found(self) -> dict[tuple[Policy, str], Strategy]:
        """Keep the strategies that were found: each takes seconds, and is planned with and then released by."""
        return {}

    def _plan(self, policy: Policy, budget: Budget, compare: bool) -> Plan:
        if self._is_answered_directly(policy):
            return super()._plan(policy, budget, compare)
        found = self.strategy(policy, budget.law)
        options = options_of(found, budget)
        first = replace(options[0], taken=True) if options else Option("exact", "no noise", 0.0, taken=True)
        return Plan.of(self.phrase, self.count, policy, budget, (first, *options[1:]), (found.exact_part,))

    def _release(self, terms: Terms, data: object, positions: ArrayLike | None) -> Release:
        if not self._is_answered_directly(terms.policy):
            return self.strategy(terms.policy, terms.budget.law).answer(terms, data, positions)
        found: Release = super()._release(terms, data, positions)
        return replace(found, description=replace(found.description, what=self.phrase))

    def _is_answered_directly(self, policy: Policy) -> bool:
        if policy.constraints and self.kind != "auto":
            bound = '"auto": noise on each query of its own'
            raise InputError("kind", "does not take publicly known counts", value=self.kind, bound=bound)
        return bool(policy.constraints)


@dataclass(frozen=True, eq=False)
class RangeQueries(Workload):
    """Counts of the values from number `low` to number `high`, both included: int64 arrays of shape (count,).

    `names` are what values are called in `labels`, shape (size,): their numbers unless given.

    Raises:
        InputError: ends that are no numbers of values, or a range that ends before it begins.
    """

    gram_is_quick: ClassVar[bool] = True

    size: int
    low: Integers
    high: Integers
    phrase: str
    names: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        size = as_integer(self.size, "size", 1)
        for name in ("low", "high"):
            ends = np.array(as_indices(getattr(self, name), name, size))
            object.__setattr__(self, name, read_only(ends))
        for name, given, wanted in (("high", self.high, len(self.low)), ("names", self.names, size)):
            if given is not None and np.shape(given) != (wanted,):
                raise InputError(name, "has the wrong shape", value=np.shape(given), bound=f"({wanted},)")
        if (late := np.flatnonzero(self.low > self.high)).size:
            low, high = (int(ends[late[0]]) for ends in (self.low, self.high))
            raise InputError(f"low[{late[0]}]", "is above high", value=low, bound=f"at most {high}")

    @property
    def count(self) -> int:
        """Return the number of queries."""
        return len(self.low)

    @property
    def integral(self) -> bool:
        """Say that the coefficients are 0 and 1."""
        return True

    def gram(self) -> Floats:
        """Return how many ranges hold both x and y, for every two values."""
        starts = np.zeros((self.size, self.size))
        np.add.at(starts, (self.low, self.high), 1.0)
        # Ranges with low ≤ x and high ≥ y, for x ≤ y.
        holding = np.cumsum(np.cumsum(starts, axis=0)[:, ::-1], axis=1)[:, ::-1]
        upper = np.triu(holding)
        return upper + np.triu(upper, 1).T

    def matrix(self) -> Floats:
        """Return W."""
        values = np.arange(self.size)
        return ((values >= self.low[:, None]) & (values <= self.high[:, None])).astype(float)

    def labels(self) -> dict[str, NDArray[Any]]:
        """Return the first and the last value of each range."""
        if self.names is None:
            return {"first": self.low.copy(), "last": self.high.copy()}
        return {"first": self.names[self.low], "last": self.names[self.high]}

    def answers(self, histogram: NDArray[Any]) -> Floats:
        """Return the ranges' counts."""
        sums = np.concatenate([[0.0], np.cumsum(histogram, dtype=float)])
        result: Floats = sums[self.high + 1] - sums[self.low]
        return result

    def variances(self, covariance: Floats) -> Floats:
        """Return the variances of the ranges' counts."""
        sums = np.zeros((self.size + 1, self.size + 1))
        sums[1:, 1:] = covariance.cumsum(axis=0).cumsum(axis=1)
        low, high = self.low, self.high + 1
        result: Floats = np.maximum(sums[high, high] - 2 * sums[low, high] + sums[low, low], 0.0)
        return result

    def _columns(self) -> Iterator[Integers]:
        values = np.arange(self.size + 1)
        for start in range(0, self.count, _BITS):
            low, high = (ends[start : start + _BITS, None] for ends in (self.low, self.high))
            inside = (low <= values) & (values <= high)
            yield (inside * (1 << np.arange(len(low), dtype=np.int64))[:, None]).sum(axis=0)


@dataclass(frozen=True, eq=False)
class MatrixQueries(Workload):
    """Queries given by their coefficients, a sparse matrix of shape (count, size), and perhaps a name for each.

    Raises:
        InputError: no sparse matrix, coefficients that are not finite, or names of another number.
    """

    rows: sparse.csr_array
    phrase: str = "given queries"
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_kind(self.rows, sparse.csr_array, "rows", "a scipy.sparse.csr_array of shape (queries, |T|)")
        if self.rows.ndim != 2 or self.rows.dtype.kind not in "biuf" or not np.isfinite(self.rows.data).all():
            raise InputError("rows", "are no finite coefficients", value=self.rows.shape, bound="shape (queries, |T|)")
        if self.names and len(self.names) != self.count:
            raise InputError("names", "have the wrong length", value=len(self.names), bound=f"{self.count}")
        # Strategies that are found are kept, so that the coefficients must not change.
        rows = self.rows.copy()
        for part in (rows.data, rows.indices, rows.indptr):
            read_only(part)
        object.__setattr__(self, "rows", rows)

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return int(self.rows.shape[1])

    @property
    def count(self) -> int:
        """Return the number of queries."""
        return int(self.rows.shape[0])

    @property
    def integral(self) -> bool:
        """Return whether all coefficients are integers so small that `gram` is exact."""
        entries = self.rows.data
        if not len(entries):
            return True
        largest = float(np.abs(entries).max())
        # Four times, because differences of differences are taken.
        return bool((entries == np.rint(entries)).all()) and 4 * largest**2 * self.count < _EXACT

    def gram(self) -> Floats:
        """Return M = WᵀW."""
        result: Floats = (self.rows.T @ self.rows).toarray()
        return result

    def matrix(self) -> Floats:
        """Return W."""
        result: Floats = self.rows.toarray()
        return result

    def labels(self) -> dict[str, NDArray[Any]]:
        """Return the names of the queries, or their numbers."""
        return {"query": np.array(self.names) if self.names else np.arange(self.count)}

    def answers(self, histogram: NDArray[Any]) -> Floats:
        """Return Wh."""
        result: Floats = self.rows @ np.asarray(histogram, dtype=float)
        return result

    def variances(self, covariance: Floats) -> Floats:
        """Return the diagonal of WΣWᵀ."""
        left = self.rows @ covariance
        result: Floats = np.maximum(np.asarray(self.rows.multiply(left).sum(axis=1)).ravel(), 0.0)
        return result

    def _columns(self) -> Iterator[Integers]:
        columns = self.rows.tocsc()
        columns.sum_duplicates()
        columns.eliminate_zeros()
        seen: dict[bytes, int] = {b"": 0}
        found = np.zeros(self.size + 1, dtype=np.int64)
        for value, (start, end) in enumerate(zip(columns.indptr[:-1], columns.indptr[1:], strict=True)):
            key = columns.indices[start:end].tobytes() + columns.data[start:end].tobytes()
            found[value] = seen.setdefault(key, len(seen))
        yield found


def identity(size: int) -> RangeQueries:
    """Return the workload of the count of every value."""
    values = np.arange(as_integer(size, "size", 1))
    return RangeQueries(size, values, values, f"the counts of all {size} values")


def prefixes(size: int) -> RangeQueries:
    """Return the workload of the counts of all values up to each one: the cumulative histogram."""
    values = np.arange(as_integer(size, "size", 1))
    return RangeQueries(size, np.zeros(size, dtype=np.int64), values, f"the {size} cumulative counts")


def all_ranges(size: int) -> RangeQueries:
    """Return the workload of all size·(size + 1)/2 ranges of values; raise `InputError` where they are too many."""
    if (count := as_integer(size, "size", 1) * (size + 1) // 2) > _LARGEST_ENTRIES:
        raise InputError(
            "workload",
            "has too many ranges",
            value=count,
            bound=f"at most {_LARGEST_ENTRIES:,}",
            remedy="release an ordered hierarchical histogram and read ranges from it, or group values",
        )
    low, high = np.triu_indices(size)
    return RangeQueries(size, low, high, f"all {len(low)} ranges of {size} values")


def marginals(domain: Domain, ways: int | Iterable[Sequence[str]] = 1) -> MatrixQueries:
    """Return the workload of marginal tables of a domain.

    Args:
        domain: the values.
        ways: a number k for all tables of k attributes, or the names of the attributes of each table.

    Raises:
        InputError: more ways than attributes, an unknown attribute, no table, or more coefficients than fit the memory:
            each table has one for every value of the domain.
    """
    require_kind(domain, Domain, "domain", "a Domain")
    names = domain.names
    if isinstance(ways, int) and not isinstance(ways, bool):
        if not 1 <= ways <= len(names):
            raise InputError("ways", "is not possible", value=ways, bound=f"from 1 to {len(names)} attributes")
        # Before any is listed: there may be very many.
        _check_tables(math.comb(len(names), ways), domain.size)
        tables: list[tuple[str, ...]] = list(itertools.combinations(names, ways))
    else:
        tables = [tuple(names_of_one) for names_of_one in _list_tables(ways)]
    if not tables:
        raise InputError("ways", "holds no table", bound="at least one")
    for index, table in enumerate(tables):
        for name in table:
            if name not in names:
                raise InputError(f"ways[{index}]", "is unknown", value=name, bound=f"one of {', '.join(names)}")
    _check_tables(len(tables), domain.size)
    shapes = [tuple(domain.shape[names.index(name)] for name in table) for table in tables]
    if (cells := sum(map(math.prod, shapes))) > _LARGEST_COUNT:
        raise InputError("ways", "have too many cells", value=cells, bound=f"at most {_LARGEST_COUNT:,} in all tables")
    codes = np.unravel_index(np.arange(domain.size), domain.shape)
    parts, labels = [], []
    for table, lengths in zip(tables, shapes, strict=True):
        axes = [names.index(name) for name in table]
        chosen = tuple(codes[axis] for axis in axes)
        cell = np.ravel_multi_index(chosen, lengths) if axes else np.zeros(domain.size, dtype=np.int64)
        shape = (math.prod(lengths), domain.size)
        parts.append(sparse.csr_array((np.ones(domain.size), (cell, np.arange(domain.size))), shape=shape))
        named = itertools.product(*(domain.attributes[axis].values for axis in axes))
        labels += [", ".join(f"{name} = {value}" for name, value in zip(table, each, strict=True)) for each in named]
    shown = "; ".join(" × ".join(table) or "total" for table in tables)
    return MatrixQueries(sparse.csr_array(sparse.vstack(parts)), f"the marginal tables {shown}", tuple(labels))


def _check_tables(count: int, size: int) -> None:
    """Raise `InputError` unless the coefficients of `count` marginal tables of `size` values fit the memory."""
    if count * size > _LARGEST_ENTRIES:
        raise InputError(
            "ways",
            f"have too many coefficients: {count:,} tables of a domain of {size:,} values",
            value=count * size,
            bound=f"at most {_LARGEST_ENTRIES:,} tables × values",
            remedy="release each table on a domain of its own attributes, or group values",
        )


def as_workload(workload: object, domain: Domain, *, positions: object = None) -> Workload:
    """Return the workload that a user means.

    Args:
        workload: a `Workload`; a name, "identity" (or "histogram"), "prefixes" (or "cumulative"), "ranges" (all of
            them) or "marginals" (of one attribute each); a list of *tuples* (low, high), ranges of values, both ends
            included; or coefficients, a dense or sparse matrix of shape (queries, |T|).
        domain: the values.
        positions: instead of `workload` ranges of numbers of values, pairs (low, high).

    Raises:
        InputError: an unknown name, no query, a matrix of another width or with entries that are not finite, a range
            outside the domain, both arguments, or none.
    """
    if (workload is None) == (positions is None):
        problem = "is not given" if workload is None else "is given beside positions"
        raise InputError("workload", problem, bound="a workload, or positions of ranges")
    if positions is not None:
        found: Workload = _range_list(check_positions(domain, positions, "positions"), domain)
    elif isinstance(workload, Workload):
        found = workload
    elif isinstance(workload, str):
        found = _find_named(workload, domain)
    elif isinstance(workload, list | tuple) and len(workload) and all(isinstance(pair, tuple) for pair in workload):
        found = _range_list(range_positions(domain, workload, "workload"), domain)
    else:
        found = _coefficients(workload)
    if found.count == 0:
        raise InputError("workload", "holds no query", bound="at least one")
    check_width(found, domain.size)
    return found


def check_width(queries: LinearQueries, size: int) -> None:
    """Raise `InputError` unless queries are on so many values."""
    if queries.size != size:
        bound = f"a column for each of the {size} values"
        raise InputError("workload", "has the wrong width", value=queries.size, bound=bound)


def _find_named(name: str, domain: Domain) -> Workload:
    require_room(domain.size, "a workload")
    match name:
        case "identity" | "histogram":
            found = identity(domain.size)
        case "prefixes" | "cumulative":
            found = prefixes(domain.size)
        case "ranges":
            found = all_ranges(domain.size)
        case "marginals":
            return marginals(domain)
        case _:
            bound = '"identity", "prefixes", "ranges", "marginals" or a matrix'
            raise InputError("workload", "has no such name", value=name, bound=bound)
    return replace(found, names=value_names(domain))


def _range_list(pairs: Sequence[tuple[int, int]], domain: Domain) -> RangeQueries:
    require_room(domain.size, "a workload")
    ends = np.array(pairs, dtype=np.int64)
    phrase = f"{len(ends)} given ranges"
    return RangeQueries(domain.size, ends[:, 0], ends[:, 1], phrase, value_names(domain))


def _coefficients(workload: Any) -> MatrixQueries:
    require_unmasked(workload, "workload")
    try:
        rows: Any = workload if sparse.issparse(workload) else np.atleast_2d(np.asarray(workload))
        if rows.dtype.kind not in "biuf":
            raise TypeError(f"an array of {rows.dtype} was given")
        if rows.ndim != 2:
            raise TypeError(f"an array with {rows.ndim} axes was given")
        matrix: Any = sparse.csr_array(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            "workload", f"is no matrix of queries ({error})", bound="a name, ranges, or shape (queries, |T|)"
        ) from error
    sizes = np.abs(matrix.data)
    if not ((sizes == 0) | ((sizes >= 1 / _LARGEST) & (sizes <= _LARGEST))).all():
        raise InputError(
            "workload",
            "has a coefficient that is not finite, or too large or too small",
            bound="zero, or between 1e-100 and 1e100 in magnitude",
        )
    return MatrixQueries(matrix)


def _list_tables(ways: object) -> list[Any]:
    if isinstance(ways, str | bytes) or not isinstance(ways, Iterable):
        raise InputError(
            "ways", "is no list of tables", value=ways, bound='a number, or lists such as [["age", "sex"]]'
        )
    tables = list(ways)
    for index, table in enumerate(tables):
        if isinstance(table, str | bytes) or not isinstance(table, Iterable):
            raise InputError(f"ways[{index}]", "is no list of attributes", value=table, bound='such as ["age", "sex"]')
    return tables


def _choose(workload: Workload, kind: str, tolerance: float) -> Workload:
    """Return a workload with a strategy of this kind; one that was chosen before stays unless another is asked for."""
    return workload if (kind, tolerance) == ("auto", TOLERANCE) else workload.using(kind, tolerance)


@in_own_arithmetic
def strategy(
    workload: object,
    policy: Policy,
    noise: str = "gaussian",
    *,
    kind: str = "auto",
    positions: object = None,
    tolerance: float = TOLERANCE,
) -> Strategy:
    """Choose the queries to be asked with noise so that a workload of linear queries is answered with least error.

    The total squared error is compared with a proven limit. For Gaussian noise the best strategy is found, with the
    limit within `tolerance` of it; for Laplace noise the best of several known ones, which may stay above the limit.

    Args:
        workload: a name, "identity", "prefixes", "ranges" or "marginals"; a list of tuples (low, high), ranges of
            values with both ends included; a matrix of shape (queries, |T|); or a `Workload`.
        policy: what is protected, without count constraints.
        noise: "gaussian" or "laplace".
        kind: "auto" for the one with the least expected error, or one of "optimal", "identity", "prefix",
            "hierarchical", "ordered-hierarchical".
        positions: instead of `workload`, which is None then, ranges of numbers of values, pairs (low, high).
        tolerance: the relative gap at which the search for the best Gaussian strategy ends.

    Returns:
        The strategy, with `error`, `lower_bound`, `matrix` and `release`.

    >>> from mechdesign.tables import Domain, Policy
    >>> found = strategy("ranges", Policy.line(Domain({"age": range(64)})))
    >>> found.kind, found.matrix.shape
    ('optimal', (63, 64))
    >>> round(found.error(rho="0.5") / found.lower_bound(rho="0.5"), 4)
    1.0
    >>> round((found.error(rho="0.5") / found.workload.count) ** 0.5, 4)
    1.3848

    Raises:
        InputError: an unknown name, a workload of another width or without queries, count constraints, or a domain of
            more than 2,048 values.
    """
    check_strategy(policy, noise)
    queries = as_workload(workload, policy.domain, positions=positions)
    return _choose(queries, kind, tolerance).strategy(policy, noise)


@in_own_arithmetic
def plan_workload(
    workload: object,
    policy: Policy,
    *,
    positions: object = None,
    epsilon: object = None,
    rho: object = None,
    kind: str = "auto",
    tolerance: float = TOLERANCE,
) -> tuple[Plan, Strategy | None]:
    """Plan the answers to a workload, and return the strategy that was found beside it.

    Under publicly known counts, for which there is no strategy, `release_linear` puts noise on each query. The workload
    and `positions` are those of `strategy`.
    """
    budget = Budget.of(epsilon, rho)
    asked = _choose(as_workload(workload, policy.domain, positions=positions), kind, tolerance)
    return asked.plan(policy, budget), None if policy.constraints else asked.strategy(policy, budget.law)


def compare_strategies(workload: object, policy: Policy, budget: Budget) -> tuple[Option, ...]:
    """Return strategies for queries that are answered otherwise, best first, where finding them takes seconds only."""
    if policy.constraints or policy.domain.size > COMPARED:
        return ()
    return options_of(as_workload(workload, policy.domain).strategy(policy, budget.law), budget)


def options_of(found: Strategy, budget: Budget) -> tuple[Option, ...]:
    """Return the candidates of a strategy as the options of a plan."""
    limit = math.sqrt(found.lower_bound(epsilon=budget.epsilon, rho=budget.rho) / found.workload.count)
    return tuple(
        Option(f"{kind} strategy", detail or f"{found.noise.title()} noise", limit * math.sqrt(ratio), limit)
        for kind, detail, ratio in found.candidates
    )
