"""ReleaseSpecification and its document.

::

    title = "Ages at admission"
    [domain]
    attributes.age = { range = [0, 99] }
    [policy]
    kind = "threshold"
    theta = 5
    [release]
    kind = "quantiles"
    epsilon = 0.5
    probabilities = [0.25, 0.5, 0.75]
    [ledger]
    path = "ledger.json"
    epsilon = 1

``epsilon``, ``rho``, ``theta``, ``confidence`` and ``probabilities`` are exact: 0.1 is one tenth, and texts such as
"1/3" are accepted. File names are relative to the folder of the specification.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_path
from mechdesign.base._errors import SpecificationError
from mechdesign.base._locks import WAIT_S
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import require_plain, require_plain_texts
from mechdesign.data._matrices import read_matrix
from mechdesign.data._text import column_text, has_columns, read_rows
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._grammar import MatrixFile, Raw, Table, holds
from mechdesign.specification._ledgers import open_ledger
from mechdesign.specification._read import TOML, at, choice, convert, in_file, named, one_of
from mechdesign.specification._records import Records, RecordsTable, build_records, value_numbers
from mechdesign.specification._table_policies import BlocksTable, RecordPolicyTable, blocks, build_policy
from mechdesign.tables._budget import LedgerLike
from mechdesign.tables._domain import Attribute, Domain
from mechdesign.tables._files import Publication, named_quantiles, named_ranges
from mechdesign.tables._parallel import part_of
from mechdesign.tables._policy import Policy, describe_policy
from mechdesign.tables._queries import _cumulative as cumulative
from mechdesign.tables._queries._kmeans import kmeans
from mechdesign.tables._queries._linear import release_histogram, release_linear, release_sum, step_of, weights_of
from mechdesign.tables._queries._plans import (
    Plan,
    cumulative_theta,
    plan_cumulative,
    plan_histogram,
    plan_kmeans,
    plan_sum,
    plan_workload,
)
from mechdesign.tables._workload import Workload, as_workload, marginals

if TYPE_CHECKING:
    from mechdesign.tables._queries._cumulative import CumulativeRelease
    from mechdesign.tables._release import Release
    from mechdesign.tables._strategies._strategy import Strategy


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
    """Return the workload of the table at `path`, as `mechdesign.tables.strategy` takes it."""
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


VERSION = 1
"""The version of the grammar; a specification of another one is refused."""

Rng = np.random.Generator | int | None

# Bytes: of a label's commas and quotes, of a row's numbers, of a report with its pictures, and of all else.
_CELL, _ROW, _REPORT_SIZE, _OTHER_FILES = 8, 140, 2_000_000, 100_000

# How an error calls the whole of a text.
_WHOLE = "specification"
# What a column of counts is called, in small letters.
_COUNTS = ("count", "counts", "n", "freq", "frequency")
_KEYS = {
    "epsilon": "release.epsilon",
    "rho": "release.rho",
    "partition": "release.partition",
    "attribute": "release.attribute",
    "mechanism": "release.mechanism",
    "fanout": "release.fanout",
    "k": "release.k",
    "iterations": "release.iterations",
    "initial": "release.initial",
    "workload": "release.queries",
    "kind": "release.strategy",
    "tolerance": "release.tolerance",
    "confidence": "release.confidence",
    "constraints": "policy.constraints",
    "division": "ledger.division",
}


class LedgerTable(Table, frozen=True):
    """The ledger that a release is charged to before it is made.

    Attributes:
        path: its file. It is made when something is first to be spent, only where a budget is given, and only in the
            folder of the specification or below.
        epsilon: the budget of all releases together under pure differential privacy, exact.
        rho: the budget of all releases together under zero-concentrated differential privacy, exact.
        division: the name of a division of all people into disjoint groups, each with a table of its own: what releases
            about different groups spend does not add up. Refused where known counts tie the groups together.
        part: the group that the table is about, beside `division`.
    """

    path: str
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    division: str | None = None
    part: str | None = None


class ReleaseDocument(Table, frozen=True):
    """A specification of a release from a table of records.

    Attributes:
        domain: what values a record may have.
        policy: which two values of a record must not be told apart, and what is publicly known.
        release: what is released, and with what budget.
        ledger: where that budget is charged.
        version: the version of this grammar.
        title: what the release is called in its report.
    """

    domain: Annotated[Raw, holds(RecordsTable)]
    policy: Annotated[Raw, holds(RecordPolicyTable)]
    release: Annotated[Raw, holds(*TABLES.values())]
    ledger: Annotated[Raw, holds(LedgerTable)] | None = None
    version: int = VERSION
    title: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseSpecification:
    """A specification of a release whose keys are known and of the right kind.

    Attributes:
        title: what the release is called.
        folder: the folder that file names are relative to.
        records: what records may be, and how a table is read.
        policy: what is protected.
        table: the ``[release]`` table.
        ledger_table: the ``[ledger]`` table, or None.
    """

    title: str
    folder: Path
    records: Records
    policy: Policy
    table: Any
    ledger_table: LedgerTable | None = None

    def __repr__(self) -> str:
        return f"ReleaseSpecification({self.title!r}, {self.table.kind}, {describe_policy(self.policy)})"

    @property
    def domain(self) -> Domain:
        """Return the values that a record may have."""
        return self.records.domain

    def remarks(self, source: Path) -> tuple[str, ...]:
        """Return what may be meant otherwise: ranges that share one end, and a column of counts in the table."""
        found = shared_ends(getattr(self.table, "ranges", None) or ())
        _, header = next(read_rows(source, suits=has_columns(self.domain.names)), (0, []))
        counts = [name for name in header if name.strip().lower() in _COUNTS and name not in self.domain.names]
        if counts:
            found = (
                *found,
                f"the column {column_text(counts[0])} is not read: each line is one record, whatever it says",
            )
        return found

    def plan(self) -> Plan:
        """Return the expected error of every known way to answer, before any data are touched.

        Raises:
            SpecificationError: a key is wrong, or does not go with the policy.
        """
        return self._planned[0]

    def release(
        self,
        table: object,
        *,
        ledger: Ledger | None = None,
        rng: Rng = None,
        delimiter: str | None = None,
        together: bool = False,
    ) -> Publication:
        """Release what the specification says of a table.

        Args:
            table: a CSV file with a header and a record a line, or anything that `mechdesign.tables.Domain.indices`
                takes.
            ledger: a ledger to be charged instead of that of ``[ledger]``.
            rng: for rehearsals only, a NumPy generator or a seed, which charge no ledger of the specification; without
                it the operating system's randomness.
            delimiter: the character between columns of a file; recognised unless given.
            together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the
                other protects what it tells apart; the ledger records that.

        Raises:
            SpecificationError: a key is wrong, or does not go with the policy.
            InputError: a value outside the domain, named with its row, or no records where their number is public.
            BudgetExceededError: the budget of the ledger would be passed; nothing was released.
            ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.
        """
        numbers = self.records.indices(table, delimiter)
        whole = self.ledger() if ledger is None and rng is None else ledger
        charged: LedgerLike | None = whole
        with named(_KEYS):
            if whole is not None and (given := self.ledger_table) is not None and given.division is not None:
                charged = part_of(whole, self.policy, given.division, part=given.part or "")
            return self._released(numbers, charged, rng, together)

    def output_size(self, report: bool = True) -> int:
        """Return about how many bytes the files of a release take, rather more than fewer; no data are needed."""
        table, domain = self.table, self.domain
        longest = [max(map(_length, _ends(attribute))) for attribute in domain.attributes]
        label = sum(len(name.encode()) + length + _CELL for name, length in zip(domain.names, longest, strict=True))
        match table.kind:
            case "sum":
                rows = 1
            case "kmeans":
                rows = table.k * (1 + len(domain.names))
            case "workload":
                rows = self._planned[0].queries
                # A range is named by its first and by its last value.
                label *= 2
            case _:
                rows = domain.size
        if table.kind == "histogram" and table.partition is not None:
            label = max(map(_length, self._partition)) + _CELL
        return rows * (label + _ROW) + (_REPORT_SIZE if report else 0) + _OTHER_FILES

    def ledger(self, wait: float = WAIT_S) -> Ledger | None:
        """Return the ledger of ``[ledger]``, or None where there is none; a lock is waited for `wait` seconds.

        Raises:
            LedgerError: its file is damaged, or was made with another budget.
            SpecificationError: it would be made outside the folder of the specification, or without a budget.
        """
        table = self.ledger_table
        if table is None:
            return None
        return open_ledger(self.folder, table.path, table.epsilon, table.rho, wait)

    @cached_property
    def _planned(self) -> tuple[Plan, Strategy | None]:
        table, policy = self.table, self.policy
        with named(_KEYS):
            match table.kind:
                case "histogram":
                    return plan_histogram(policy, partition=self._partition, epsilon=table.epsilon, rho=table.rho), None
                case "sum":
                    return plan_sum(policy, self._attribute, epsilon=table.epsilon, rho=table.rho), None
                case "kmeans":
                    return plan_kmeans(policy, table.epsilon, table.iterations, clusters=table.k), None
                case "workload":
                    asked = queries(table, "release", self.domain, self.folder)
                    budget = {"epsilon": table.epsilon, "rho": table.rho}
                    return plan_workload(asked, policy, **budget, kind=table.strategy, tolerance=table.tolerance)
            return self._plan_cumulative(compare=True), None

    def _plan_cumulative(self, compare: bool) -> Plan:
        table = self.table
        how = {"mechanism": table.mechanism, "fanout": table.fanout, "positions": self._ranges}
        return plan_cumulative(self.policy, table.epsilon, **how, compare=compare)

    @property
    def _partition(self) -> Any:
        given = self.table.partition
        return None if given is None else blocks(given, "release.partition", self.domain)

    @property
    def _attribute(self) -> str:
        if self.table.attribute is None and len(self.domain.attributes) > 1:
            names = ", ".join(self.domain.names)
            raise SpecificationError("release.attribute", "is missing", bound=f"one of {names}")
        return self.table.attribute or self.domain.names[0]

    @property
    def _ranges(self) -> list[tuple[int, int]] | None:
        if self.table.kind != "ranges":
            return None
        return range_numbers(self.table.ranges, "release.ranges", self.domain)

    def _released(self, numbers: Integers, ledger: LedgerLike | None, rng: Rng, together: bool) -> Publication:
        table, policy = self.table, self.policy
        common: dict[str, Any] = {
            "positions": numbers,
            "rng": rng,
            "ledger": ledger,
            "confidence": table.level,
            "together": together,
        }
        match table.kind:
            case "histogram":
                budget = {"epsilon": table.epsilon, "rho": table.rho}
                found: Release = release_histogram(None, policy, **budget, partition=self._partition, **common)
            case "sum":
                found = release_sum(None, policy, self._attribute, epsilon=table.epsilon, rho=table.rho, **common)
            case "kmeans":
                found = kmeans(
                    None,
                    table.k,
                    policy,
                    epsilon=table.epsilon,
                    iterations=table.iterations,
                    initial=table.initial,
                    **common,
                )
            case "workload":
                plan, strategy = self._planned
                if strategy is None:
                    # Known counts: noise on each query of its own.
                    asked = as_workload(queries(table, "release", self.domain, self.folder), self.domain)
                    budget = {"epsilon": table.epsilon, "rho": table.rho, "step": step_of(weights_of(asked))}
                    found = release_linear(None, policy, asked, **budget, **common)
                    found = replace(found, description=replace(found.description, what=plan.what))
                else:
                    found = strategy.release(epsilon=table.epsilon, rho=table.rho, **common)
            case _:
                return self._read_from(self._cumulative(common))
        return Publication(found, self.title)

    def _read_from(self, found: CumulativeRelease) -> Publication:
        ranges = named_ranges(found, self.domain, self._ranges) if self._ranges else ()
        shares = self.table.probabilities if self.table.kind == "quantiles" else ()
        return Publication(found, self.title, ranges, named_quantiles(found, self.domain, shares))

    def _cumulative(self, common: dict[str, Any]) -> CumulativeRelease:
        """Release a cumulative histogram by the mechanism of the plan."""
        table, policy = self.table, self.policy
        plan = self._plan_cumulative(compare=False)
        theta = None if policy.constraints else cumulative_theta(policy)
        how = {"mechanism": plan.taken.name, "fanout": table.fanout, "read": self._read_from}
        return cumulative.cumulative_by_plan(None, policy, table.epsilon, theta, **how, **common)


def _ends(attribute: Attribute) -> Sequence[object]:
    """Return values of an attribute, the longest text among them."""
    values = attribute.values
    return (values[0], values[-1]) if isinstance(values, range) else values


def _length(value: object) -> int:
    return len(str(value).encode())


def read(path: str | os.PathLike[str]) -> ReleaseSpecification:
    """Read a specification of a release from a file.

    Raises:
        SpecificationError: a key is wrong; the message names its path, the value and what is accepted.
    """
    path = as_path(path, "path")
    source = Path(path)
    try:
        text = source.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise SpecificationError(str(source), f"cannot be opened ({error.strerror})", bound="a file in TOML") from error
    except UnicodeDecodeError as error:
        raise SpecificationError(str(source), f"is not a text in UTF-8 ({error.reason})") from error
    return _parsed(text, source.parent, str(source))


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> ReleaseSpecification:
    """Read a specification of a release from a text; names of files in it are relative to `base_folder`.

    >>> specification = parse('''
    ... domain.attributes.age = { range = [0, 99] }
    ... policy.kind = "line"
    ... release = { kind = "quantiles", epsilon = 1, probabilities = [0.5] }
    ... ''')
    >>> specification.plan().taken.name
    'ordered'
    >>> specification.release({"age": [31, 34, 34, 60] * 500}, rng=1).quantiles[0].value
    '34'
    """
    return _parsed(text, base_folder, "specification")


def _parsed(text: str, base_folder: str | os.PathLike[str], source: str) -> ReleaseSpecification:
    try:
        # Numbers stay the decimals that the reader wrote.
        data = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        raise SpecificationError(source, f"is not valid TOML: {error}", remedy=TOML) from error
    except (ValueError, RecursionError) as error:
        raise SpecificationError(source, f"cannot be read: {error}") from error
    for key in ("privacy", "prior", "cost"):
        if key in data:
            remedy = "use `mechdesign design` for it, or leave the key out"
            raise SpecificationError(key, "belongs to the specification of a design", remedy=remedy)
    with at(""):
        require_plain_texts(data, "", lines=True)
    document = convert(data, ReleaseDocument, "")
    with at(""):
        require_plain(document.title, "title")
    if document.version != VERSION:
        raise SpecificationError("version", "is not known", value=document.version, bound=str(VERSION))
    folder = Path(base_folder)
    records = build_records(document.domain, "domain")
    table = read_release(document.release, "release")
    policy = build_policy(document.policy, "policy", records.domain, folder)
    ledger = None if document.ledger is None else _ledger_table(document.ledger)
    return ReleaseSpecification(document.title, folder, records, policy, table, ledger)


def _ledger_table(raw: Raw) -> LedgerTable:
    table = convert(raw, LedgerTable, "ledger")
    if (table.division is None) != (table.part is None):
        missing = "part" if table.part is None else "division"
        raise SpecificationError(f"ledger.{missing}", "is missing", bound="division and part together")
    return table
