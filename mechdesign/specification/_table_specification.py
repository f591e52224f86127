"""Specifications of a release from a table of records.

``epsilon``, ``rho``, ``theta``, ``confidence`` and ``probabilities`` are exact: 0.1 is one tenth, and strings such as
"1/3" are accepted. File names are relative to the folder of the specification.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from mechdesign.base._check import as_path
from mechdesign.base._errors import BudgetExceededError, InputError, SpecificationError, withholding_values
from mechdesign.base._values import cached_property
from mechdesign.certify._texts import require_plain, require_plain_texts
from mechdesign.data.matrices import match_names, read_dense
from mechdesign.data.table import Table as DataTable
from mechdesign.data.table import read_table
from mechdesign.leakage._entries import TimeStep
from mechdesign.leakage._series import read_step
from mechdesign.leakage.accounting import Ledger
from mechdesign.mechanisms._discrete import as_confidence
from mechdesign.model._grammar import FilesTable, MatrixFile, Table, says
from mechdesign.specification._ledgers import LedgerTable, open_ledger
from mechdesign.specification._read import PLANNED, VERSION, Epsilon, Source, convert, read_text, tables_of
from mechdesign.specification._table_sections import (
    BlocksTable,
    PeopleTable,
    RecordPolicyTable,
    Records,
    RecordsTable,
    blocks,
    build_policy,
    build_records,
    value_numbers,
)
from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import CONFIDENCE, LedgerPart, Terms, Time, part_of, planned_epsilon
from mechdesign.tables._domain import Attribute, Domain, refuse_counts
from mechdesign.tables._files import Published
from mechdesign.tables._policy import Policy, describe_policy
from mechdesign.tables._queries._cumulative import Cumulative, Quantiles, Ranges
from mechdesign.tables._queries._kmeans import KMeans
from mechdesign.tables._queries._linear import Histogram, Sum
from mechdesign.tables._query import Plan, Query
from mechdesign.tables._records import Records as TableRecords
from mechdesign.tables._values import value_names
from mechdesign.tables._workload import MatrixQueries, Workload, marginals

Mechanism = Literal["auto", "ordered", "ordered-hierarchical", "hierarchical"]


class BaseReleaseTable(Table, frozen=True):
    """The keys that all kinds of release have in common."""

    confidence: Annotated[
        Fraction | None,
        says("the probability that the interval of a single answer contains the truth, exact; default 0.95."),
    ] = None

    @property
    def kind(self) -> str:
        """Return the name of the kind of release."""
        return str(self.__struct_config__.tag)

    @property
    def level(self) -> Fraction:
        """Return the confidence, by default 0.95."""
        return CONFIDENCE if self.confidence is None else self.confidence

    @property
    def budget(self) -> dict[str, Any]:
        """Return ε, which may be "planned", and ρ by name; one of them is None."""
        return {name: getattr(self, name, None) for name in ("epsilon", "rho")}


class _EitherTable(BaseReleaseTable, frozen=True, kw_only=True):
    alternatives: ClassVar = ("epsilon", "rho")

    epsilon: Annotated[
        Epsilon | None,
        says(
            'ε in nats, exact; for two-sided geometric noise, or Laplace noise on a strategy. "planned" is what the '
            "plan of the ledger's series leaves for --step."
        ),
    ] = None
    rho: Annotated[
        Fraction | None,
        says("ρ of zero-concentrated differential privacy, exact; for discrete or rounded Gaussian noise."),
    ] = None


class HistogramTable(_EitherTable, frozen=True, kw_only=True, tag_field="kind", tag="histogram"):
    """The number of records with each value, or in each block."""

    partition: Annotated[BlocksTable | None, says("count blocks instead of values.")] = None

    def query(self, domain: Domain, source: Source) -> Histogram:
        """Return the counts of values, or of blocks."""
        return Histogram(None if self.partition is None else blocks(self.partition, source / "partition", domain))


class SumTable(_EitherTable, frozen=True, kw_only=True, tag_field="kind", tag="sum"):
    """The sum of a numeric attribute over the records."""

    attribute: Annotated[str | None, says("the attribute; optional if there is only one.")] = None

    def query(self, domain: Domain, source: Source) -> Sum:
        """Return the sum of the attribute."""
        if self.attribute is None and len(domain.names) > 1:
            names = ", ".join(domain.names)
            raise source.error("attribute", "is missing", bound=f"one of {names}")
        return Sum(self.attribute)


class _CumulativeTable(_EitherTable, frozen=True, kw_only=True):
    mechanism: Annotated[
        Mechanism, says('the mechanism; "auto" uses the mechanism or the strategy with the least expected error.')
    ] = "auto"
    fanout: Annotated[int | None, says("the fan-out of trees; by default the one with the least expected error.")] = (
        None
    )


class CdfTable(_CumulativeTable, frozen=True, kw_only=True, tag_field="kind", tag="cdf"):
    """The number of records up to each value of one ordered attribute."""

    def query(self, domain: Domain, source: Source) -> Cumulative:
        """Return the cumulative counts."""
        return Cumulative(mechanism=self.mechanism, fanout=self.fanout)


class QuantilesTable(_CumulativeTable, frozen=True, kw_only=True, tag_field="kind", tag="quantiles"):
    """Quantiles of one ordered attribute, read from a released cumulative histogram."""

    probabilities: Annotated[
        list[Fraction], says("the probabilities of the quantiles, each above 0 and at most 1, exact.", min_length=1)
    ]

    def query(self, domain: Domain, source: Source) -> Quantiles:
        """Return the quantiles."""
        return Quantiles(self.probabilities, mechanism=self.mechanism, fanout=self.fanout)


class RangesTable(_CumulativeTable, frozen=True, kw_only=True, tag_field="kind", tag="ranges"):
    """The number of records in each of several ranges."""

    ranges: Annotated[
        list[tuple[Any, Any]], says("pairs of values, the first and the last of each range.", min_length=1)
    ]

    def query(self, domain: Domain, source: Source) -> Ranges:
        """Return the ranges."""
        numbers = _range_numbers(self.ranges, source / "ranges", domain)
        return Ranges(positions=numbers, mechanism=self.mechanism, fanout=self.fanout)


class KMeansTable(BaseReleaseTable, frozen=True, kw_only=True, tag_field="kind", tag="kmeans"):
    """Clusters of the records by their numeric attributes."""

    epsilon: Annotated[Epsilon, says('ε in nats for all iterations together, exact, or "planned".')]
    k: Annotated[int, says("the number of clusters.", ge=1)]
    iterations: Annotated[int, says("the number of iterations.", ge=1)] = 10
    initial: Annotated[
        list[list[float]] | None,
        says(
            "the initial centroids, an entry for each numeric attribute, chosen without looking at the data; by "
            "default they are drawn at random."
        ),
    ] = None

    def query(self, domain: Domain, source: Source) -> KMeans:
        """Return the clustering."""
        return KMeans(self.k, self.iterations, self.initial)


class WorkloadTable(_EitherTable, frozen=True, kw_only=True, tag_field="kind", tag="workload"):
    """Marginal tables or any linear queries, answered through the strategy with the least expected error."""

    marginals: Annotated[list[list[str]] | None, says("the attributes of each marginal table.")] = None
    matrix: Annotated[MatrixFile | None, says("the weight of each value in each query, from a file.")] = None
    strategy: Annotated[
        Literal["auto", "optimal", "identity", "prefix", "hierarchical", "ordered-hierarchical"],
        says(
            'the strategy; "auto" uses the strategy with the least expected error or, under known counts, '
            "independent noise on each query."
        ),
    ] = "auto"
    tolerance: Annotated[float, says("the relative gap at which the search for the best Gaussian strategy ends.")] = (
        5e-5
    )

    def query(self, domain: Domain, source: Source) -> Workload:
        """Return the workload."""
        with source.keys():
            form = self.one_of(("marginals", "matrix"))
        if self.matrix is None:
            with source.keys({"ways": form}):
                return marginals(domain, self.marginals or []).using(self.strategy, self.tolerance)
        with (source / "matrix").file(self.matrix) as file:
            found = read_dense(file, self.matrix.header, self.matrix.index, source.layout)
            rows = match_names(found, "matrix", None, list(map(str, value_names(domain))))
        return MatrixQueries(rows).using(self.strategy, self.tolerance)


AnyRelease = HistogramTable | CdfTable | QuantilesTable | RangesTable | KMeansTable | WorkloadTable | SumTable


def find_shared_end(ranges: Sequence[tuple[Any, Any]]) -> tuple[str, ...]:
    """Return a sentence about two ranges if one begins with the last value of the other.

    >>> find_shared_end([(0, 18), (18, 65)])
    ('the ranges 0 to 18 and 18 to 65 both count 18: both ends are included',)
    >>> find_shared_end([(0, 17), (18, 64), (0, 64)])
    ()
    """
    for first in ranges:
        for second in ranges:
            if first[1] == second[0] and first[0] != first[1] and second[0] != second[1]:
                one, other = (f"{low} to {high}" for low, high in (first, second))
                return (f"the ranges {one} and {other} both count {first[1]}: both ends are included",)
    return ()


def _range_numbers(ranges: list[tuple[Any, Any]], source: Source, domain: Domain) -> list[tuple[int, int]]:
    """Return ranges of values as ranges of their indices, both ends included."""
    with source.keys():
        attribute = domain.ordered_attribute("ranges")
    found = [value_numbers(attribute, list(ends), source / index) for index, ends in enumerate(ranges)]
    for index, (first, last) in enumerate(found):
        if first > last:
            raise source.error((index,), "ends before it begins", bound="first <= last", remedy="exchange the two")
    return [(first, last) for first, last in found]


Rng = np.random.Generator | int | None

# Bytes for the comma and quotes of a label, for the numbers of a row, for a report with its figures, and for the rest.
_CELL_BYTES, _ROW_BYTES, _REPORT_BYTES, _OTHER_FILES_BYTES = 8, 140, 2_000_000, 100_000
_PERSON = "the column with the person of each row, or false if each row is another person"
# Arguments whose key has another name, or is in another table than ``[release]``.
_RENAMED = {
    "coefficients": "release.matrix",
    "constraints": "policy.constraints",
    "division": "ledger.division",
    "kind": "release.strategy",
    "person": "table.person",
    "positions": "release.ranges",
    "rows_per_person": "table.rows_per_person",
}


class DividedLedgerTable(LedgerTable, frozen=True):
    """The ledger that is charged before a release."""

    division: Annotated[
        str | None,
        says(
            "the name of a division of all people into disjoint groups with separate tables: the budgets of releases "
            "about different groups do not add up. A division is refused if known counts join its groups."
        ),
    ] = None
    part: Annotated[str | None, says("the group of this table, with `division`.")] = None


class ReleaseDocument(Table, frozen=True):
    """A specification of a release from a table of records.

    >>> from mechdesign.specification._document import schema
    >>> sorted(schema(ReleaseDocument)["required"])
    ['domain', 'policy', 'release', 'table']

    Attributes:
        domain: The possible values of a record.
        table: The people behind the rows.
        policy: The pairs of values that must be indistinguishable, and the public constraints.
        release: The query and its budget.
        ledger: The ledger that is charged, or None.
        files: The layout of all files.
        version: The version of this grammar.
        title: The title of the release in its report.
    """

    domain: Annotated[RecordsTable, says("the possible values of a record.")]
    table: Annotated[PeopleTable, says("the people behind the rows of the table.")]
    policy: Annotated[
        RecordPolicyTable,
        says("the pairs of values of a record that must be indistinguishable, and the public constraints."),
    ]
    release: Annotated[AnyRelease, says("the query and its budget.")]
    ledger: Annotated[DividedLedgerTable | None, says("the ledger that is charged.")] = None
    files: Annotated[FilesTable, says("the layout of all files.")] = msgspec.field(default_factory=FilesTable)
    version: Annotated[Literal[1], says("the version of this grammar.")] = VERSION
    title: Annotated[str, says("the title of the release in its report.")] = ""


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseSpecification:
    """A specification of a release from a table, checked and converted.

    Attributes:
        title: The title of the release.
        source: The folder for relative file names, and the layout of files.
        records: The possible records, and the conversion of tables to them.
        people: The ``[table]`` table.
        policy: The policy.
        table: The ``[release]`` table.
        query: The query.
        ledger_table: The ``[ledger]`` table, or None.

    >>> specification = parse('''
    ... domain.attributes.age = { range = [0, 99] }
    ... table.person = false
    ... policy.kind = "full"
    ... release = { kind = "histogram", epsilon = 1 }
    ... ''')
    >>> specification.domain.size
    100
    """

    title: str
    source: Source
    records: Records
    people: PeopleTable
    policy: Policy
    table: Any
    query: Query[Any]
    ledger_table: DividedLedgerTable | None = None

    def __repr__(self) -> str:
        return f"ReleaseSpecification({self.title!r}, {self.table.kind}, {describe_policy(self.policy)})"

    @property
    def domain(self) -> Domain:
        """Return the possible values of a record."""
        return self.records.domain

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return notes about ranges that share an end."""
        return find_shared_end(getattr(self.table, "ranges", None) or ())

    def plan(self, *, step: TimeStep | None = None) -> Plan:
        """Return the expected error of every available mechanism, without reading any data.

        Args:
            step: The time step of a planned ε.

        Returns:
            The plan.

        Raises:
            SpecificationError: A key is wrong, or does not match the policy.
        """
        return self._plan_with(self._stated(step))

    def _stated(self, step: TimeStep | None) -> dict[str, Any]:
        """Return ε and ρ, where a planned ε is read from the plan of the ledger in ``[ledger]``."""
        budget: dict[str, Any] = self.table.budget
        if budget["epsilon"] == PLANNED:
            with self.source.keys(_keys_of(self.table)):
                budget["epsilon"] = planned_epsilon(self._part(self.ledger()), step)
        return budget

    def _part(self, whole: Ledger | None) -> Ledger | LedgerPart | None:
        """Return the ledger of the division and the part in ``[ledger]``, if it names them."""
        given = self.ledger_table
        if whole is None or given is None or given.division is None:
            return whole
        return part_of(whole, self.policy, given.division, part=given.part or "")

    def release(
        self,
        table: object,
        *,
        ledger: Ledger | None = None,
        rng: Rng = None,
        together: bool = False,
        step: TimeStep | None = None,
        gap: bool = False,
        series: Literal[False] | None = None,
    ) -> Published:
        """Release the query of the specification from a table.

        Args:
            table: A file with a header and one record per line, a data frame, or a mapping of columns.
            ledger: A ledger to charge instead of the ledger in ``[ledger]``.
            rng: For rehearsals only: a NumPy generator or a seed. The ledger of the specification is then not charged.
                By default, noise comes from the operating system.
            together: Release even if this or an earlier release is exact and distinguishes values that the policy of
                the other release protects. The ledger records this choice.
            step: The time step of a release of the ledger's series; a rehearsal uses it for a planned ε only.
            gap: Whether time steps may be left out.
            series: False for a release outside the series of the ledger.

        Returns:
            The release, with its title and report.

        Raises:
            SpecificationError: A key is wrong or does not match the policy, or a person has too many rows.
            InputError: A value is outside the domain, a row has no person, or the table is empty although the number
                of records is public.
            BudgetExceededError: The budget of the ledger would be exceeded; nothing was released.
            LeakageExceededError: A release of the series would leak more than α; nothing was released.
            ExactReleaseError: The ledger refuses the release, because together with an earlier release it reveals
                protected differences.
        """
        people = self.people
        uncharged = ledger is None and rng is not None
        whole = self.ledger() if ledger is None and rng is None else ledger
        budget = self._stated(step) if uncharged else self.table.budget
        time = Time() if uncharged else Time(step, gap, series)

        def prepare() -> Terms:
            rows, level = people.rows_per_person, self.table.level
            return self.query.prepare(
                self.policy, budget["epsilon"], budget["rho"], rows, rng, self._part(whole), level, together, time
            )

        with self.source.keys(_keys_of(self.table)):
            # The ledger may refuse the release before any data are read.
            terms = prepare()
        columns = [column for column in (people.person, step is not None and people.step) if column]
        read = read_table(table, (*self.domain.names, *map(str, columns)), self.source.layout)
        refuse_counts(read.others)
        if step is not None and people.step:
            _require_step(read, people.step, step)
        positions = self.records.indices(read)
        person = people_of(read, str(people.person)) if people.person else None
        with self.source.keys(_keys_of(self.table)):
            given = TableRecords(self.domain, positions=positions)
            try:
                found = self.query.answer(terms, given, person)
            except BudgetExceededError:
                if not terms.time.planned:
                    raise
                # Another release may have used a part of the planned budget since it was read.
                found = self.query.answer(prepare(), given, person)
            return Published(found, self.title, **self.query.read(found, self.domain))

    def output_size(self, report: bool = True) -> int:
        """Return an upper estimate of the size of the files of a release; it needs no data.

        Args:
            report: Whether to include the report.

        Returns:
            Bytes.
        """
        budget: dict[str, Any] = self.table.budget
        if budget["epsilon"] == PLANNED:
            # The number of answers does not depend on ε.
            budget["epsilon"] = Fraction(1)
        domain, rows = self.domain, self._plan_with(budget).queries
        if isinstance(self.query, Cumulative):
            rows = max(rows, domain.size)
        label = max(map(_length, getattr(self.query, "partition", None) or ("",)))
        for attribute in domain.attributes:
            # A range is named by its two ends.
            label += _length(attribute.name) + 2 * max(map(_length, _ends(attribute))) + _CELL_BYTES
        return rows * (label + _ROW_BYTES) + (_REPORT_BYTES if report else 0) + _OTHER_FILES_BYTES

    def ledger(self) -> Ledger | None:
        """Open the ledger of ``[ledger]``.

        Returns:
            The ledger, or None if the specification has no ``[ledger]``.

        Raises:
            LedgerError: The file is damaged, or was created with another budget.
            SpecificationError: The ledger would be created outside the folder of the specification, or without a
                budget.
        """
        table = self.ledger_table
        if table is None:
            return None
        return open_ledger(self.source.folder, table.path, table.epsilon, table.rho)

    def _plan_with(self, budget: dict[str, Any]) -> Plan:
        key = budget["epsilon"], budget["rho"]
        if key not in self._plans:
            with self.source.keys(_keys_of(self.table)):
                rows = self.people.rows_per_person
                self._plans[key] = self.query.plan(self.policy, **budget, rows_per_person=rows)
        return self._plans[key]

    @cached_property
    def _plans(self) -> dict[tuple[Any, Any], Plan]:
        return {}


def _keys_of(table: BaseReleaseTable) -> dict[str, str]:
    """Return the key of each argument of a query and its release."""
    return {name: f"release.{name}" for name in table.__struct_fields__} | _RENAMED


def _require_step(table: DataTable, column: str, step: TimeStep) -> None:
    """Raise `InputError` for the first row of another time step."""
    with withholding_values():
        for row, text in enumerate(table.texts(column)):
            if text != str(step) and read_step(text, where := table.where(row, column)) != step:
                raise InputError(where, "is of another step than the release", bound=str(step))


def people_of(table: DataTable, column: str) -> list[str]:
    """Return the person of each row; raise `InputError` for a row without one."""
    found = table.texts(column)
    for row, text in enumerate(found):
        if not text.strip():
            remedy = "fill it in, or delete the record: the rows of each person are counted"
            raise InputError(table.where(row, column), "names no person", bound="a key", remedy=remedy)
    return found


def _ends(attribute: Attribute) -> Sequence[object]:
    """Return some values of an attribute, which include the longest value."""
    values = attribute.values
    return (values[0], values[-1]) if isinstance(values, range) else values


def _length(value: object) -> int:
    return len(str(value).encode())


def read(path: str | os.PathLike[str]) -> ReleaseSpecification:
    """Read a specification of a release from a file.

    Args:
        path: File to read.

    Returns:
        The specification.

    Raises:
        SpecificationError: A key is wrong; the message names the key, the value and the accepted values.

    >>> from mechdesign.specification import examples
    >>> with examples.on_disk("admissions.toml") as file:
    ...     specification = read(file)
    >>> specification.title, specification.table.kind
    ('Ages at admission', 'quantiles')
    """
    path = as_path(path, "path")
    return _parse(read_text(path), Path(path).parent, str(path))


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> ReleaseSpecification:
    """Read a specification of a release from a text.

    Args:
        text: The text, in TOML.
        base_folder: The folder for relative file names.

    Returns:
        The specification.

    >>> specification = parse('''
    ... domain.attributes.age = { range = [0, 99] }
    ... table.person = false
    ... policy = { kind = "threshold", theta = 1 }
    ... release = { kind = "quantiles", epsilon = 1, probabilities = [0.5] }
    ... ''')
    >>> specification.plan().taken.name
    'ordered'
    >>> specification.release({"age": [31, 34, 34, 60] * 500}, rng=1).quantiles[0].value
    '34'
    """
    return _parse(text, base_folder, "specification")


def _parse(text: str, base_folder: str | os.PathLike[str], name: str) -> ReleaseSpecification:
    data, source = tables_of(text, name), Source(folder=Path(base_folder))
    for key in ("privacy", "prior", "cost"):
        if key in data:
            remedy = "use `mechdesign design`, or `mechdesign chain` without a table; or remove the key"
            raise SpecificationError(key, "belongs to the specification of a design", remedy=remedy)
    given = data.get("table", {}) if isinstance(data.get("domain"), dict) else None
    if isinstance(given, dict) and "person" not in given and {*given} <= {*PeopleTable.__struct_fields__}:
        remedy = 'add [table] with person = "COLUMN" or person = false'
        raise SpecificationError("table.person", "is missing", bound=_PERSON, remedy=remedy)
    with source.keys():
        require_plain_texts(data, "", lines=True)
    document = convert(data, ReleaseDocument)
    source = source.with_layout(document.files)
    records, people, table = build_records(document.domain, source / "domain"), document.table, document.release
    if people.person is True or people.person == "":
        raise source.error(("table", "person"), "names no column", value=people.person, bound=_PERSON)
    if people.step is not None and not people.step.strip():
        raise source.error(("table", "step"), "names no column", value=people.step, bound="the name of a column")
    policy = build_policy(document.policy, source / "policy", records.domain)
    with source.keys(_keys_of(table)):
        require_plain(document.title, "title")
        if table.budget["epsilon"] != PLANNED:
            Budget.of(**table.budget)
        as_confidence(table.level)
        query = table.query(records.domain, source / "release")
    ledger = document.ledger
    if ledger is not None and (ledger.division is None) != (ledger.part is None):
        missing = "part" if ledger.part is None else "division"
        raise source.error(("ledger", missing), "is missing", bound="division and part together")
    return ReleaseSpecification(document.title, source, records, people, policy, table, query, ledger)
