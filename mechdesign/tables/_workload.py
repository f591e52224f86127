"""Workloads: linear queries, as rows of a matrix, ranges or marginal tables, and their answers by strategies."""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers, as_indices, read_only
from mechdesign.base._check import as_integer, require_kind, require_name, require_unmasked
from mechdesign.base._errors import BracketWarning, InputError
from mechdesign.base._values import cached_property
from mechdesign.base._warnings import warn
from mechdesign.tables._budget import Budget
from mechdesign.tables._domain import Domain
from mechdesign.tables._linear_queries import LinearQueries, on_lattice, step_of
from mechdesign.tables._policy import Policy
from mechdesign.tables._query import Option, Plan, Query, Question, Way, add_noise, best
from mechdesign.tables._release import Release
from mechdesign.tables._secret_graphs import require_room
from mechdesign.tables._strategy import Strategy
from mechdesign.tables._strategy_choice import WIDE, check_choice, check_strategy, choose
from mechdesign.tables._values import refuse_names, value_names

TOLERANCE = 5e-5
"""The relative gap at which the search for the best Gaussian strategy stops."""

COMPARED = 256
"""The largest number of values for which a query with another way also considers strategies, which takes seconds."""

_EXACT = 2.0**53
# For coefficients up to this bound, their squares and the squares of their reciprocals neither overflow nor underflow.
_LARGEST = 1e100
# The largest number of nonzero coefficients (16 bytes each), and of queries (names of about 100 bytes each).
_LARGEST_ENTRIES = 2**26
_LARGEST_COUNT = 2**22
# The number of queries that are compared at a time; each query uses one bit of an int64.
_BITS = 62


class Workload(LinearQueries, Query[Release]):
    """Linear queries on a histogram of `size` values, which the strategy with the least expected error answers.

    Under publicly known counts, which strategies do not support, each query gets independent noise. The functions
    `all_ranges` and `marginals` build workloads; `MatrixQueries` takes a matrix.

    Attributes:
        size: the number |T| of values.
        phrase: the workload in words.
        kind: the kind of strategy; "auto" chooses the kind with the least expected error.
        tolerance: the relative gap at which the search for the best Gaussian strategy stops.

    >>> policy = Policy.threshold(Domain({"age": range(8)}), 1)
    >>> all_ranges(8).sensitivity(policy).value, all_ranges(8).plan(policy, rho="0.5").queries
    (8, 36)
    >>> all_ranges(8).release([1, 4, 4], policy, rho="0.5", rng=1).answers.shape
    (36,)
    """

    kind: str = "auto"
    tolerance: float = TOLERANCE

    def ask(self, policy: Policy) -> Question:
        """Return the question that adds independent noise to each query.

        Args:
            policy: the policy.

        Returns:
            The question.
        """
        check_width(self, policy.domain.size)
        weights = self.weights()
        step = step_of(weights)
        return Question.of_rows(policy, on_lattice(weights, step, policy.domain.size), step, self.labels, self.phrase)

    def using(self, kind: str = "auto", tolerance: float = TOLERANCE) -> Self:
        """Return the same workload with another kind of strategy.

        Args:
            kind: "auto" for the strategy with the least expected error, or one of "optimal", "identity", "prefix",
                "hierarchical", "ordered-hierarchical".
            tolerance: the relative gap at which the search for the best Gaussian strategy stops, in (0, 1).

        Returns:
            A copy of the workload.

        Raises:
            InputError: The kind is unknown, or the tolerance is not between 0 and 1.

        >>> prefixes(8).using("hierarchical").kind
        'hierarchical'
        """
        check_choice(kind, tolerance)
        found = copy.copy(self)
        vars(found).update(kind=kind, tolerance=tolerance, _found={})
        return found

    @in_own_arithmetic
    def strategy(self, policy: Policy, noise: str = "gaussian") -> Strategy:
        """Return the noisy queries from which the answers are decoded with the least expected error.

        The total squared error is compared with a proven lower bound. For Gaussian noise, the strategy is optimal up to
        a gap of `tolerance`. For Laplace noise, the best of several known strategies is chosen; its error may exceed
        the bound by more than the tolerance. Repeated calls return the cached result.

        Args:
            policy: the policy, without known counts.
            noise: "gaussian" or "laplace".

        Returns:
            The strategy, with `error`, `lower_bound` and `matrix`.

        Raises:
            InputError: The workload has the wrong width, the policy has known counts, or the domain has more than 2,048
                values. Marginal tables with Gaussian noise under full and attribute policies are limited by their sets
                of attributes instead; only their rows and releases need a domain of at most 2,048 values.

        Warns:
            BracketWarning: The error exceeds the lower bound by more than the tolerance.

        >>> from mechdesign.tables import Domain, Policy, all_ranges
        >>> found = all_ranges(64).strategy(Policy.threshold(Domain({"age": range(64)}), 1))
        >>> found.kind, found.matrix.shape
        ('optimal', (63, 64))
        >>> round(found.error(rho="0.5") / found.lower_bound(rho="0.5"), 4)
        1.0
        """
        found = self._find(policy, noise)
        if WIDE in found.reason:
            warn(f"the strategy was chosen because {found.reason}", BracketWarning, stacklevel=3)
        return found

    def _find(self, policy: Policy, noise: str) -> Strategy:
        """Return the strategy without a warning, for queries that only compare it with other ways."""
        check_strategy(policy, noise)
        check_width(self, policy.domain.size)
        if (policy, noise) not in self._found:
            self._found[policy, noise] = choose(self, policy, noise, self.kind, self.tolerance)
        return self._found[policy, noise]

    @cached_property
    def _found(self) -> dict[tuple[Policy, str], Strategy]:
        """Return the cache of strategies, which plans and releases share because computing a strategy takes seconds."""
        return {}

    def ways(
        self, policy: Policy, budget: Budget, what: str = "", labels: Mapping[str, NDArray[Any]] | None = None
    ) -> list[Way]:
        """Return the ways to answer the queries: strategies, or independent noise under known counts.

        Args:
            policy: the policy.
            budget: the budget of the release.
            what: the released quantity, in words; by default the workload.
            labels: the labels of the answers; by default those of the workload.

        Returns:
            The ways, the best one first.
        """
        if policy.constraints:
            question = self.ask(policy)
            return [add_noise(replace(question, what=what or self.phrase), budget)]
        found = self._find(policy, budget.law)
        answer = partial(found.answer, what=what, labels=labels)
        return [Way(option, answer, (found.exact_part,)) for option in options_of(found, budget)]

    def _ways(self, policy: Policy, budget: Budget) -> list[Way]:
        if policy.constraints and self.kind != "auto":
            bound = '"auto", which adds independent noise to each query'
            raise InputError("kind", "does not support publicly known counts", value=self.kind, bound=bound)
        if not policy.constraints:
            self.strategy(policy, budget.law)
        return self.ways(policy, budget)

    def _plan(self, policy: Policy, budget: Budget) -> Plan:
        ways = self._ways(policy, budget)
        options = tuple(way.option for way in ways)
        return Plan.of(self.phrase, self.count, policy, budget, options, best(ways).remarks)


@dataclass(frozen=True, eq=False)
class RangeQueries(Workload):
    """Queries that count the records in ranges of values.

    Attributes:
        size: the number |T| of values.
        low: the index of the first value of each range, int64 of shape (count,).
        high: the index of the last value of each range, which is included, int64 of shape (count,).
        phrase: the queries in words.
        names: the names of the values in `labels`, shape (size,); by default, the indices of the values.

    Raises:
        InputError: An end is not the index of a value, or a range ends before it begins.

    >>> RangeQueries(4, np.array([0, 1]), np.array([1, 3]), "two ranges").answers(np.array([5, 1, 0, 2])).tolist()
    [6.0, 3.0]
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
        if not self.count:
            raise InputError("low", "contains no range", bound="at least one")
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
        """Return True, because the coefficients are 0 and 1."""
        return True

    def gram(self) -> Floats:
        """Return M = WᵀW: for every two values, the number of ranges that contain both."""
        starts = np.zeros((self.size, self.size))
        np.add.at(starts, (self.low, self.high), 1.0)
        # For x ≤ y, the entry (x, y) is the number of ranges with low ≤ x and high ≥ y.
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
        """Return the counts of the ranges.

        Args:
            histogram: the histogram h, shape (size,).

        Returns:
            The counts, shape (count,).
        """
        sums = np.concatenate([[0.0], np.cumsum(histogram, dtype=float)])
        result: Floats = sums[self.high + 1] - sums[self.low]
        return result

    def variances(self, covariance: Floats) -> Floats:
        """Return the variances of the counts of the ranges.

        Args:
            covariance: the covariance of an estimated histogram, shape (size, size).

        Returns:
            The variances, shape (count,).
        """
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
    """Linear queries given by a dense or sparse matrix of coefficients.

    Args:
        coefficients: the coefficients, shape (count, size), or (size,) for a single query.
        phrase: the queries in words.
        names: the names of the queries; by default, their indices.

    Attributes:
        rows: the coefficients W as a sparse matrix, shape (count, size).

    Raises:
        InputError: There is no query, a coefficient is not finite, too large or too small, or the number of names is
            wrong.

    >>> MatrixQueries([1, 0, 2]).answers(np.array([3, 1, 1])).tolist()
    [5.0]
    """

    coefficients: InitVar[Any]
    rows: sparse.csr_array = field(init=False)
    phrase: str = "given queries"
    names: tuple[str, ...] = ()

    def __post_init__(self, coefficients: Any) -> None:
        rows = _coefficients(coefficients)
        if not all(rows.shape):
            raise InputError("coefficients", "contain no query", value=rows.shape, bound="at least one query and value")
        if self.names and len(self.names) != rows.shape[0]:
            raise InputError("names", "have the wrong length", value=len(self.names), bound=f"{rows.shape[0]}")
        # The coefficients are copied and made read-only, because strategies are cached.
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
        """Return whether all coefficients are integers small enough for `gram` to be exact."""
        entries = self.rows.data
        if not len(entries):
            return True
        largest = float(np.abs(entries).max())
        # The factor 4 allows for differences of differences of coefficients.
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
        """Return the names of the queries, or their indices."""
        return {"query": np.array(self.names) if self.names else np.arange(self.count)}

    def answers(self, histogram: NDArray[Any]) -> Floats:
        """Return the answers Wh.

        Args:
            histogram: the histogram h, shape (size,).

        Returns:
            The answers, shape (count,).
        """
        result: Floats = self.rows @ np.asarray(histogram, dtype=float)
        return result

    def variances(self, covariance: Floats) -> Floats:
        """Return the diagonal of WΣWᵀ.

        Args:
            covariance: the covariance Σ of an estimated histogram, shape (size, size).

        Returns:
            The variances, shape (count,).
        """
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


def _list_values(size: object) -> Integers:
    require_room(number := as_integer(size, "size", 1), "a workload")
    return np.arange(number)


def identity(size: int) -> RangeQueries:
    """Return the workload of the counts of all values.

    Args:
        size: the number |T| of values.

    Returns:
        The workload.

    >>> identity(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    values = _list_values(size)
    return RangeQueries(size, values, values, f"the counts of all {size} values")


def prefixes(size: int) -> RangeQueries:
    """Return the workload of the cumulative histogram: for each value, the number of records with at most this value.

    Args:
        size: the number |T| of values.

    Returns:
        The workload.

    >>> prefixes(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]
    """
    values = _list_values(size)
    return RangeQueries(size, np.zeros(size, dtype=np.int64), values, f"the {size} cumulative counts")


def all_ranges(size: int) -> RangeQueries:
    """Return the workload of all size·(size + 1)/2 ranges of values.

    Args:
        size: the number |T| of values.

    Returns:
        The workload.

    Raises:
        InputError: There are too many ranges.

    >>> all_ranges(3).count
    6
    """
    if (count := as_integer(size, "size", 1) * (size + 1) // 2) > _LARGEST_ENTRIES:
        raise InputError(
            "size",
            "gives too many ranges",
            value=count,
            bound=f"at most {_LARGEST_ENTRIES:,}",
            remedy="release a cumulative histogram and estimate ranges from it, or group values",
        )
    low, high = np.triu_indices(size)
    return RangeQueries(size, low, high, f"all {len(low)} ranges of {size} values")


@dataclass(frozen=True, eq=False)
class MarginalTables(Workload):
    """Marginal tables of a domain, with one query for each cell of each table.

    Attributes:
        domain: the domain of the records.
        tables: the indices of the attributes of each table.

    >>> from mechdesign.tables import Domain
    >>> MarginalTables(Domain({"age": range(3), "sex": ["f", "m"]}), ((0,), (1, 0))).count
    9
    """

    domain: Domain = field(repr=False)
    tables: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        for index, table in enumerate(self.tables):
            if len(set(table)) < len(table):
                names = [self.domain.names[axis] for axis in table]
                raise InputError(f"ways[{index}]", "names an attribute twice", value=names, bound="each attribute once")
        if self.count > _LARGEST_COUNT:
            bound = f"at most {_LARGEST_COUNT:,} in all tables"
            raise InputError("ways", "have too many cells", value=self.count, bound=bound)

    @property
    def size(self) -> int:  # type: ignore[override]
        """Return the number of values."""
        return self.domain.size

    @property
    def phrase(self) -> str:  # type: ignore[override]
        """Return the names of the tables."""
        shown = (" × ".join(self.domain.names[axis] for axis in table) or "total" for table in self.tables)
        return f"the marginal tables {'; '.join(shown)}"

    @property
    def count(self) -> int:
        """Return the number of queries."""
        return sum(math.prod(self.domain.shape[axis] for axis in table) for table in self.tables)

    @property
    def integral(self) -> bool:
        """Return True, because the coefficients are 0 and 1."""
        return True

    @cached_property
    def queries(self) -> MatrixQueries:
        """Return the queries with a coefficient for every table and value, which must fit into memory."""
        shape = self.domain.shape
        if (entries := len(self.tables) * self.size) > _LARGEST_ENTRIES:
            raise InputError(
                "ways",
                f"have too many coefficients: {len(self.tables):,} tables of a domain of {self.size:,} values",
                value=entries,
                bound=f"at most {_LARGEST_ENTRIES:,} tables × values",
                remedy="release each table on a domain with only its attributes, or group values",
            )
        codes, parts = np.unravel_index(np.arange(self.size), shape), []
        for table in self.tables:
            lengths, places = tuple(shape[axis] for axis in table), np.arange(self.size)
            cell = np.ravel_multi_index(tuple(codes[axis] for axis in table), lengths) if table else 0 * places
            parts.append(sparse.csr_array((np.ones(self.size), (cell, places)), shape=(math.prod(lengths), self.size)))
        return MatrixQueries(sparse.csr_array(sparse.vstack(parts)), self.phrase)

    def tables_over(self, shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...] | None:
        """Return the tables, if the domain has this shape."""
        return self.tables if shape == self.domain.shape else None

    def gram(self) -> Floats:
        """Return M = WᵀW."""
        return self.queries.gram()

    def matrix(self) -> Floats:
        """Return W."""
        return self.queries.matrix()

    def labels(self) -> dict[str, NDArray[Any]]:
        """Return the values of the attributes of each cell."""
        names, attributes, found = self.domain.names, self.domain.attributes, []
        for table in self.tables:
            for each in itertools.product(*(attributes[axis].values for axis in table)):
                found.append(", ".join(f"{names[axis]} = {value}" for axis, value in zip(table, each, strict=True)))
        return {"query": np.array(found)}

    def answers(self, histogram: NDArray[Any]) -> Floats:
        """Return the counts in the cells, for a histogram of shape (size,)."""
        return self.queries.answers(histogram)

    def variances(self, covariance: Floats) -> Floats:
        """Return the variances of the counts, for the covariance of an estimated histogram, shape (size, size)."""
        return self.queries.variances(covariance)

    def _columns(self) -> Iterator[Integers]:
        return self.queries._columns()


def marginals(domain: Domain, ways: SupportsIndex | Iterable[Sequence[str]] = 1) -> MarginalTables:
    """Return the workload of the given marginal tables of a domain.

    Under full and attribute policies, `Workload.strategy` finds the best Gaussian strategy and its bound also for
    domains that are too large for a release.

    Args:
        domain: the domain of the records.
        ways: a number k for all tables of k attributes, or the names of the attributes of each table.

    Returns:
        The workload, with one query for each cell of each table.

    Raises:
        InputError: No table is given, an attribute is unknown, or `ways` exceeds the number of attributes. Or the
            tables have too many cells.

    >>> marginals(Domain({"age": range(3), "sex": ["f", "m"]})).labels()["query"].tolist()
    ['age = 0', 'age = 1', 'age = 2', 'sex = f', 'sex = m']
    """
    require_kind(domain, Domain, "domain", "a Domain")
    names = domain.names
    if not isinstance(ways, Iterable) or getattr(ways, "ndim", None) == 0:
        width = as_integer(ways, "ways", 1, len(names))
        # The number of tables is checked before the tables are listed, because the list may be very long.
        if (count := math.comb(len(names), width)) > _LARGEST_COUNT:
            raise InputError("ways", "gives too many tables", value=count, bound=f"at most {_LARGEST_COUNT:,}")
        return MarginalTables(domain, tuple(itertools.combinations(range(len(names)), width)))
    tables = [tuple(names_of_one) for names_of_one in _list_tables(ways)]
    if not tables:
        raise InputError("ways", "contains no table", bound="at least one")
    for index, table in enumerate(tables):
        for name in table:
            require_name(name, names, f"ways[{index}]")
    return MarginalTables(domain, tuple(tuple(names.index(name) for name in table) for table in tables))


def check_width(queries: LinearQueries, size: int) -> None:
    """Raise `InputError` if the number of values of the queries is not `size`."""
    if queries.size != size:
        bound = f"a column for each of the {size} values"
        raise InputError("workload", "has the wrong width", value=queries.size, bound=bound)


def ranges_of(domain: Domain, spans: Sequence[tuple[int, int]]) -> RangeQueries:
    """Return the queries that count given ranges of values, from the indices of their ends."""
    require_room(domain.size, "a workload")
    ends = np.array(spans, dtype=np.int64)
    return RangeQueries(domain.size, ends[:, 0], ends[:, 1], f"{len(ends)} given ranges", value_names(domain))


def _coefficients(given: Any) -> Any:
    """Return coefficients as a new sparse matrix."""
    require_unmasked(given, "coefficients")
    refuse_names(given, "coefficients")
    try:
        rows: Any = given if sparse.issparse(given) else np.atleast_2d(np.asarray(given))
        if rows.dtype.kind not in "biuf":
            raise TypeError(f"an array of {rows.dtype} was given")
        if rows.ndim != 2:
            raise TypeError(f"an array with {rows.ndim} axes was given")
        matrix: Any = sparse.csr_array(rows, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise InputError(
            "coefficients", f"are not a matrix of queries ({error})", bound="shape (queries, |T|)"
        ) from error
    sizes = np.abs(matrix.data)
    if not ((sizes == 0) | ((sizes >= 1 / _LARGEST) & (sizes <= _LARGEST))).all():
        raise InputError(
            "coefficients",
            "are infinite, undefined, too large or too small",
            bound="zero, or a magnitude between 1e-100 and 1e100",
        )
    return matrix


def _list_tables(ways: Iterable[object]) -> list[Any]:
    if isinstance(ways, str | bytes):
        raise InputError(
            "ways", "is not a list of tables", value=ways, bound='a number, or lists such as [["age", "sex"]]'
        )
    tables = list(ways)
    for index, table in enumerate(tables):
        if isinstance(table, str | bytes) or not isinstance(table, Iterable):
            raise InputError(
                f"ways[{index}]", "is not a list of attributes", value=table, bound='a list such as ["age", "sex"]'
            )
    return tables


def options_of(found: Strategy, budget: Budget) -> tuple[Option, ...]:
    """Return the candidates of a strategy as options of a plan, the best one first."""
    if not found.candidates:
        return (Option("exact", "no noise", 0.0),)
    limit = math.sqrt(found.lower_bound(epsilon=budget.epsilon, rho=budget.rho) / found.workload.count)
    return tuple(
        Option(f"{kind} strategy", detail or f"{found.noise.title()} noise", limit * math.sqrt(ratio), limit)
        for kind, detail, ratio in found.candidates
    )
