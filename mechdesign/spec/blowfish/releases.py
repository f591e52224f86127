"""The ``[release]`` table: what is released, and with what budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal

from mechdesign.tables._domain import Domain
from mechdesign.tables._workload import Workload
from mechdesign.tables._workload import as_workload
from mechdesign.tables._workload import marginals
from mechdesign.certify._exact import exact_text
from mechdesign.data._matrices import read_matrix
from mechdesign.model._grammar import MatrixFile
from mechdesign.model._grammar import Raw
from mechdesign.model._grammar import Table
from mechdesign.model._grammar import holds
from mechdesign.base._errors import SpecificationError
from mechdesign.spec.blowfish.attributes import value_numbers
from mechdesign.spec.blowfish.policies import BlocksTable
from mechdesign.spec.tables import at
from mechdesign.spec.tables import choice
from mechdesign.spec.tables import convert
from mechdesign.spec.tables import in_file
from mechdesign.spec.tables import one_of

__all__ = [
    "TABLES",
    "CdfTable",
    "HistogramTable",
    "KMeansTable",
    "QuantilesTable",
    "RangesTable",
    "ReleaseTable",
    "SumTable",
    "WorkloadTable",
    "queries",
    "range_numbers",
    "read_release",
]

Mechanism = Literal["auto", "ordered", "ordered-hierarchical", "hierarchical"]


class ReleaseTable(Table, frozen=True):
    """What all kinds of release have in common.

    Attributes:
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    confidence: Fraction | None = None

    @property
    def level(self) -> Fraction:
        """Return the confidence, 0.95 unless given."""
        return Fraction(19, 20) if self.confidence is None else self.confidence


class _EitherTable(ReleaseTable, frozen=True, kw_only=True):
    alternatives: ClassVar = ("epsilon", "rho")

    epsilon: Fraction | None = None
    rho: Fraction | None = None


class HistogramTable(_EitherTable, frozen=True, kw_only=True):
    """How many records have each value, or are in each block.

    Attributes:
        kind: the kind of release.
        epsilon: ε in nats, exact, for two-sided geometric noise.
        rho: instead ρ under zero-concentrated differential privacy, exact, for discrete Gaussian noise.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
        partition: count blocks instead of values.
    """

    kind: Literal["histogram"]
    partition: Annotated[Raw, holds(BlocksTable)] | None = None


class SumTable(_EitherTable, frozen=True, kw_only=True):
    """The sum of a numeric attribute over the records.

    Attributes:
        kind: the kind of release.
        attribute: the attribute; may be left out where there is only one.
        epsilon: ε in nats, exact, for two-sided geometric noise.
        rho: instead ρ under zero-concentrated differential privacy, exact, for discrete Gaussian noise.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    kind: Literal["sum"]
    attribute: str | None = None


class CdfTable(ReleaseTable, frozen=True, kw_only=True):
    """How many records have at most each value of one ordered attribute.

    Attributes:
        kind: the kind of release.
        epsilon: ε in nats, exact.
        mechanism: how; "auto" takes the one of these mechanisms with the least expected error. The strategies of
            ``kind = "workload"`` may err less.
        fanout: the fan-out of trees; the one of least expected error unless given.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    kind: Literal["cdf"]
    epsilon: Fraction
    mechanism: Mechanism = "auto"
    fanout: int | None = None


class QuantilesTable(ReleaseTable, frozen=True, kw_only=True):
    """Quantiles of one ordered attribute, read from a released cumulative histogram.

    Attributes:
        kind: the kind of release.
        epsilon: ε in nats, exact.
        probabilities: which quantiles, each above 0 and at most 1, exact.
        mechanism: how; "auto" takes the one of these mechanisms with the least expected error. The strategies of
            ``kind = "workload"`` may err less.
        fanout: the fan-out of trees; the one of least expected error unless given.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    kind: Literal["quantiles"]
    epsilon: Fraction
    probabilities: list[Fraction]
    mechanism: Mechanism = "auto"
    fanout: int | None = None


class RangesTable(ReleaseTable, frozen=True, kw_only=True):
    """How many records have a value in each of several ranges, read from a released cumulative histogram.

    Attributes:
        kind: the kind of release.
        epsilon: ε in nats, exact.
        ranges: pairs of values, the first and the last of each range.
        mechanism: how; "auto" takes the one of these mechanisms with the least expected error on the ranges. The
            strategies of ``kind = "workload"``, which takes the same ranges, may err less.
        fanout: the fan-out of trees; the one of least expected error unless given.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    kind: Literal["ranges"]
    epsilon: Fraction
    ranges: list[tuple[Any, Any]]
    mechanism: Mechanism = "auto"
    fanout: int | None = None


class KMeansTable(ReleaseTable, frozen=True, kw_only=True):
    """Clusters of the records by their numeric attributes.

    Attributes:
        kind: the kind of release.
        epsilon: ε in nats for all iterations together, exact.
        k: how many clusters.
        iterations: how many iterations.
        initial: where the centroids begin, an entry for each numeric attribute, chosen without looking at the data;
            they are drawn at random unless given.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    kind: Literal["kmeans"]
    epsilon: Fraction
    k: int
    iterations: int = 10
    initial: list[list[float]] | None = None


class WorkloadTable(_EitherTable, frozen=True, kw_only=True):
    """Many linear queries, answered through the strategy with the least expected error.

    Attributes:
        kind: the kind of release.
        queries: queries by name: "identity" (the count of each value), "prefixes" (of all values up to each), "ranges"
            (of all ranges), or "marginals" (of each value of each attribute).
        ranges: pairs of values of the only attribute, the first and the last of each range.
        marginals: the attributes of each marginal table.
        matrix: the weight of each value in each query, from a file.
        epsilon: ε in nats, exact, for Laplace noise.
        rho: instead ρ under zero-concentrated differential privacy, exact, for Gaussian noise.
        strategy: which strategy; "auto" takes the one with the least expected error, and under known counts noise on
            each query of its own.
        tolerance: the relative gap at which the search for the best Gaussian strategy ends.
        confidence: the probability with which the interval of any one answer contains the truth, exact;
            0.95 unless given.
    """

    kind: Literal["workload"]
    queries: Literal["identity", "prefixes", "ranges", "marginals"] | None = None
    ranges: list[tuple[Any, Any]] | None = None
    marginals: list[list[str]] | None = None
    matrix: Annotated[Raw, holds(MatrixFile)] | None = None
    strategy: Literal["auto", "optimal", "identity", "prefix", "hierarchical", "ordered-hierarchical"] = "auto"
    tolerance: float = 5e-5


TABLES: Mapping[str, type[ReleaseTable]] = MappingProxyType(
    {
        "histogram": HistogramTable,
        "cdf": CdfTable,
        "quantiles": QuantilesTable,
        "ranges": RangesTable,
        "kmeans": KMeansTable,
        "workload": WorkloadTable,
        "sum": SumTable,
    }
)


def read_release(raw: Raw, path: str) -> Any:
    """Return the table at `path` as that of its kind."""
    if "kind" not in raw:
        raise SpecificationError(f"{path}.kind", "is missing", bound=f"one of {', '.join(TABLES)}")
    kind = choice(str(raw["kind"]), TABLES, f"{path}.kind")
    table: Any = convert(raw, TABLES[kind], path)
    if isinstance(table, _EitherTable):
        one_of(table, path)
    for name in ("epsilon", "rho"):
        amount = getattr(table, name, None)
        if amount is not None and amount <= 0:
            raise SpecificationError(f"{path}.{name}", "is not positive", value=exact_text(amount), bound="> 0")
    if not 0 < table.level < 1:
        shown = exact_text(table.level)
        raise SpecificationError(f"{path}.confidence", "is out of range", value=shown, bound="above 0 and below 1")
    if isinstance(table, QuantilesTable):
        for index, share in enumerate(table.probabilities):
            if not 0 < share <= 1:
                place = f"{path}.probabilities[{index}]"
                raise SpecificationError(
                    place, "is out of range", value=exact_text(share), bound="above 0 and at most 1"
                )
    for name in ("ranges", "probabilities"):
        if getattr(table, name, None) == []:
            raise SpecificationError(f"{path}.{name}", "is empty", bound="at least one")
    for name in ("k", "iterations"):
        if getattr(table, name, 1) < 1:
            raise SpecificationError(f"{path}.{name}", "is too small", value=getattr(table, name), bound=">= 1")
    return table


def shared_ends(ranges: Sequence[tuple[Any, Any]]) -> tuple[str, ...]:
    """Return a sentence about two ranges of which one begins with the value that the other ends with.

    >>> shared_ends([(0, 18), (18, 65)])
    ('the ranges 0 to 18 and 18 to 65 both count 18: both ends are included',)
    >>> shared_ends([(0, 17), (18, 64), (0, 64)])
    ()
    """
    for first in ranges:
        for second in ranges:
            if first[1] == second[0] and first[0] != first[1] and second[0] != second[1]:
                one, other = (f"{low} to {high}" for low, high in (first, second))
                return (f"the ranges {one} and {other} both count {first[1]}: both ends are included",)
    return ()


def range_numbers(ranges: list[tuple[Any, Any]], path: str, domain: Domain) -> list[tuple[int, int]]:
    """Return ranges of values as ranges of their numbers, both ends included."""
    with at(path):
        attribute = domain.ordered_attribute("ranges")
    found = []
    for index, (low, high) in enumerate(ranges):
        place = f"{path}[{index}]"
        first, last = (value_numbers(attribute, [end], place)[0] for end in (low, high))
        if first > last:
            raise SpecificationError(
                place, "ends before it begins", value=[str(low), str(high)], remedy="exchange the two"
            )
        found.append((first, last))
    return found


def queries(table: WorkloadTable, path: str, domain: Domain, folder: Path) -> str | Workload | Any:
    """Return the workload of the table at `path`, as `mechdesign.tables._strategies._choice.strategy` takes it."""
    form = one_of(table, path, ("queries", "ranges", "marginals", "matrix"))
    if table.ranges is not None:
        return as_workload(None, domain, positions=range_numbers(table.ranges, f"{path}.ranges", domain))
    if table.marginals is not None:
        with at(path, {"ways": form}):
            return marginals(domain, table.marginals)
    if table.matrix is not None:
        file = convert(table.matrix, MatrixFile, f"{path}.matrix")
        with in_file(f"{path}.matrix", file):
            return read_matrix(folder / file.path, file.delimiter, (None, domain.size))
    assert table.queries is not None
    return table.queries
