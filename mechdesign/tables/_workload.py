"""Workloads: the linear queries that are to be answered, as rows of a matrix or, where there are many, by a rule."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import require_kind, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.tables._domain import Domain
from mechdesign.tables._policies._graphs import require_room
from mechdesign.tables._values import checked_positions, range_positions, value_names

_EXACT = 2.0**53
# Squares of coefficients up to this size, and of their reciprocals, neither overflow nor underflow.
_LARGEST = 1e100
# Coefficients that are not zero, 16 bytes each, and queries, whose names take about 100.
_LARGEST_ENTRIES = 2**26
_LARGEST_COUNT = 2**22


class Workload(ABC):
    """Linear queries on a histogram of `size` values.

    Attributes:
        size: the number |T| of values.
        phrase: the workload in words.
    """

    size: int
    phrase: str

    @property
    @abstractmethod
    def count(self) -> int:
        """Return the number of queries."""

    @property
    @abstractmethod
    def integral(self) -> bool:
        """Say whether all coefficients are integers so small that `gram` is exact."""

    @abstractmethod
    def gram(self) -> Floats:
        """Return M = WᵀW, shape (size, size)."""

    @abstractmethod
    def matrix(self) -> Floats:
        """Return W, shape (count, size)."""

    @abstractmethod
    def labels(self) -> dict[str, NDArray[Any]]:
        """Return what names each query: arrays of shape (count,) by heading."""

    @abstractmethod
    def answers(self, histogram: NDArray[Any]) -> Floats:
        """Return Wh for a histogram h of shape (size,)."""

    @abstractmethod
    def variances(self, covariance: Floats) -> Floats:
        """Return the diagonal of WΣWᵀ for the covariance Σ of an estimated histogram."""


@dataclass(frozen=True, eq=False)
class RangeQueries(Workload):
    """Counts of the values from number `low` to number `high`, both included: int64 arrays of shape (count,).

    `names` are what values are called in `labels`, shape (size,): their numbers unless given.
    """

    size: int
    low: Integers
    high: Integers
    phrase: str
    names: NDArray[Any] | None = None

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


@dataclass(frozen=True, eq=False)
class MatrixQueries(Workload):
    """Queries given by their coefficients, a sparse matrix of shape (count, size), and perhaps a name for each."""

    rows: sparse.csr_array
    phrase: str = "given queries"
    names: tuple[str, ...] = ()

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
        """Say whether all coefficients are integers so small that `gram` is exact."""
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


def identity(size: int) -> RangeQueries:
    """Return the workload of the count of every value."""
    values = np.arange(size)
    return RangeQueries(size, values, values, f"the counts of all {size} values")


def prefixes(size: int) -> RangeQueries:
    """Return the workload of the counts of all values up to each one: the cumulative histogram."""
    values = np.arange(size)
    return RangeQueries(size, np.zeros(size, dtype=np.int64), values, f"the {size} cumulative counts")


def all_ranges(size: int) -> RangeQueries:
    """Return the workload of all size·(size + 1)/2 ranges of values; raise `InputError` where they are too many."""
    if (count := size * (size + 1) // 2) > _LARGEST_ENTRIES:
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
        tables = [tuple(names_of_one) for names_of_one in _listed(ways)]
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
    size = domain.size
    if (workload is None) == (positions is None):
        problem = "is not given" if workload is None else "is given beside positions"
        raise InputError("workload", problem, bound="a workload, or positions of ranges")
    if positions is not None:
        found: Workload = _range_list(checked_positions(domain, positions, "positions"), domain)
    elif isinstance(workload, Workload):
        found = workload
    elif isinstance(workload, str):
        found = _named(workload, domain)
    elif isinstance(workload, list | tuple) and len(workload) and all(isinstance(pair, tuple) for pair in workload):
        found = _range_list(range_positions(domain, workload, "workload"), domain)
    else:
        found = _coefficients(workload)
    if found.count == 0:
        raise InputError("workload", "holds no query", bound="at least one")
    if found.size != size:
        raise InputError(
            "workload", "has the wrong width", value=found.size, bound=f"a column for each of the {size} values"
        )
    return found


def _named(name: str, domain: Domain) -> Workload:
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


def _listed(ways: object) -> list[Any]:
    if isinstance(ways, str | bytes) or not isinstance(ways, Iterable):
        raise InputError(
            "ways", "is no list of tables", value=ways, bound='a number, or lists such as [["age", "sex"]]'
        )
    tables = list(ways)
    for index, table in enumerate(tables):
        if isinstance(table, str | bytes) or not isinstance(table, Iterable):
            raise InputError(f"ways[{index}]", "is no list of attributes", value=table, bound='such as ["age", "sex"]')
    return tables
