"""Histograms, sums and other linear queries with independent exact noise on a lattice."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Integers, read_only
from mechdesign.base._errors import InputError
from mechdesign.base._values import cached_property
from mechdesign.certify._exact import exact, exact_text
from mechdesign.tables._budget import Budget
from mechdesign.tables._charges import classes_of_blocks, classes_of_sum, classes_of_values
from mechdesign.tables._domain import Domain
from mechdesign.tables._line_graphs import block_numbers, label_numbers
from mechdesign.tables._linear_queries import on_lattice
from mechdesign.tables._policy import Policy
from mechdesign.tables._query import Query, Question, Way
from mechdesign.tables._records import Records, check_table, true_answers
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._sensitivity import find_attribute, of_counts, of_sum
from mechdesign.tables._values import as_labels, in_order_of_values, value_labels
from mechdesign.tables._workload import COMPARED, MatrixQueries, Workload, identity

# The largest number of labels and answers of a histogram; together they would take 2 GiB.
_MOST_NUMBERS = 1 << 28
# Steps between this bound and its reciprocal, and quotients of weights by these steps, are representable as floats.
_LEAST_STEP = Fraction(1, 10**200)


@dataclass(frozen=True, eq=False)
class Histogram(Query[Release]):
    """The number of records with each value, or in each block of a partition.

    Each count gets independent noise for the histogram's sensitivity under the policy. The sensitivity is 2 if a record
    may move from one count to another, and may be larger under publicly known counts. If no record may move, the
    sensitivity is 0 and the counts are exact. Up to 256 values, a strategy is used instead if its expected error is
    smaller. A strategy also uses totals that the policy does not protect, such as the number of records, and these
    are exact.

    Attributes:
        partition: the block of each value, strings or numbers of shape (|T|,); a series is matched by its index. By
            default each value is counted separately.

    Raises:
        InputError: The partition is not a list of labels.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy = Policy.full(Domain({"floor": range(4)}))
    >>> Histogram().sensitivity(policy).value
    2
    >>> Histogram(["low", "low", "high", "high"]).plan(policy, epsilon=2).queries
    2
    >>> Histogram().release([0, 1, 1, 3], policy, epsilon=2, rng=1).answers.shape
    (4,)
    """

    partition: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given = self.partition
        if given is not None:
            label_numbers(given, "partition")
            # A copy is stored, so later changes to the caller's array have no effect; a series keeps its names.
            if isinstance(given, Set | Mapping):
                problem = "is not a list of labels: it has no order"
                raise InputError(
                    "partition", problem, value=type(given).__name__, bound="one label for each value, in order"
                )
            kept = copy.deepcopy(given) if hasattr(given, "__array__") else tuple(given)  # type: ignore[arg-type]
            object.__setattr__(self, "partition", kept)

    def ask(self, policy: Policy) -> Question:
        """Return the question that asks for the counts.

        Args:
            policy: the policy.

        Returns:
            The question.

        Raises:
            InputError: The partition does not fit the domain.
        """
        domain = policy.domain
        partition = in_order_of_values(domain, self.partition, "partition")
        option = ("independent", "noise on each count")
        if partition is None:
            return Question(
                what="histogram",
                count=domain.size,
                sensitivity=lambda norm: of_counts(policy, norm),
                answers=lambda records: records.checked(policy),
                labels=lambda: _value_labels(domain),
                classes=lambda: classes_of_values(domain.size),
                option=option,
            )
        blocks = block_numbers(domain, partition, "partition")
        first = np.unique(blocks, return_index=True)[1]

        def totals(records: Records) -> Integers:
            found = np.zeros(len(first), dtype=np.int64)
            np.add.at(found, blocks, records.checked(policy))
            return found

        return Question(
            what="histogram of a partition",
            count=len(first),
            sensitivity=lambda norm: of_counts(policy, norm, partition),
            answers=totals,
            labels=lambda: {"block": as_labels(np.asarray(partition).ravel()[first].tolist())},
            classes=lambda: classes_of_blocks(blocks),
            option=option,
        )

    def _ways(self, policy: Policy, budget: Budget) -> list[Way]:
        ways = super()._ways(policy, budget)
        if policy.constraints or policy.domain.size > COMPARED or not ways[0].option.error:
            return ways
        question = self.ask(policy)
        return ways + self._workload(policy.domain).ways(policy, budget, question.what, question.labels())

    def _workload(self, domain: Domain) -> Workload:
        """Return the counts as a workload; repeated calls return the same workload, which keeps its strategies."""
        if domain not in self._workloads:
            if self.partition is None:
                self._workloads[domain] = identity(domain.size)
            else:
                blocks = block_numbers(domain, self.partition, "partition")
                self._workloads[domain] = MatrixQueries(np.arange(blocks.max() + 1)[:, None] == blocks)
        return self._workloads[domain]

    @cached_property
    def _workloads(self) -> dict[Domain, Workload]:
        return {}


@dataclass(frozen=True)
class Sum(Query[Release]):
    """The sum of a numeric attribute over the records, in steps of the lattice of its values.

    Attributes:
        attribute: the name of the attribute; it may be omitted if there is only one attribute.

    Raises:
        InputError: The attribute is not a string.

    >>> from mechdesign.tables import Domain, Policy
    >>> ages = Policy.threshold(Domain({"age": range(17, 91)}), 1)
    >>> Sum("age").sensitivity(ages).value
    1
    >>> Sum("age").release([30, 31, 60], ages, epsilon=1000, rng=1).answers
    array([121.])
    """

    attribute: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.attribute, str | None):
            raise InputError("attribute", "is not a name", value=self.attribute, bound="a string")

    def ask(self, policy: Policy) -> Question:
        """Return the question that asks for the sum.

        Args:
            policy: the policy.

        Returns:
            The question.

        Raises:
            InputError: The attribute is unknown or not numeric, or several attributes exist and none is named.
        """
        domain = policy.domain
        attribute = find_attribute(domain, self.attribute)
        name, values, unit = attribute.name, attribute.positions, attribute.unit

        def total(records: Records) -> Integers:
            counts = records.along(domain.names.index(name))
            known = records.histogram() if policy.constraints else counts
            check_table(policy, known, int(np.abs(values).max()), f"domain[{name!r}]", records.name)
            return true_answers(values[None], counts)

        return Question(
            what="sum",
            count=1,
            sensitivity=lambda norm: of_sum(policy, norm, name),
            answers=total,
            labels=lambda: {"sum of": np.array([name])},
            classes=lambda: classes_of_sum(domain, name),
            step=unit,
            planned=f"sum of {name}",
            option=("noise on the sum", f"in steps of {exact_text(unit)}"),
        )


@dataclass(frozen=True, eq=False)
class Linear(Query[Release]):
    """Linear queries: each adds up, over all records, the weight of the record's value. Counts have weights 0 and 1.

    Each answer gets independent noise for the joint sensitivity of all queries. Policies with publicly known counts are
    also supported, unlike by strategies.

    Args:
        queries: the weight of each value, shape (|T|,), or of each value in each query, shape (q, |T|); or a `Workload`
            of at most 4,000,000 weights.
        step: the step of the lattice; all weights and all answers are multiples of it. A float is read as the decimal
            that Python prints.

    Attributes:
        rows: the weights as multiples of the step, int64 of shape (q, |T|).

    Raises:
        InputError: A weight is not on the lattice or too large, the weights have the wrong shape, or the step is out of
            range.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy = Policy.full(Domain({"floor": range(3)}))
    >>> halves = Linear([[0, 0.5, 1], [1, 1, 1]], step=0.5)
    >>> halves.sensitivity(policy).value, halves.plan(policy, epsilon=1).queries
    (1, 2)
    """

    queries: ArrayLike | Workload = field(repr=False)
    step: object = 1
    rows: Integers = field(init=False, repr=False)

    def __post_init__(self) -> None:
        unit = exact(self.step, "step")
        weights = self.queries.weights() if isinstance(self.queries, Workload) else self.queries
        if not _LEAST_STEP <= unit <= 1 / _LEAST_STEP:
            problem = "is not positive" if unit <= 0 else "is out of range"
            raise InputError("step", problem, value=self.step, bound="between 1e-200 and 1e200")
        rows = on_lattice(weights, unit)
        read_only(rows)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "step", unit)

    def ask(self, policy: Policy) -> Question:
        """Return the question that asks for the answers to the queries.

        Args:
            policy: the policy.

        Returns:
            The question.

        Raises:
            InputError: The weights have the wrong width.
        """
        size, queries = policy.domain.size, self.queries
        if self.rows.shape[1] != size:
            bound = f"({size},) or (q, {size})"
            raise InputError("queries", "have the wrong shape", value=self.rows.shape, bound=bound)
        names = queries.labels if isinstance(queries, Workload) else lambda: {"query": np.arange(len(self.rows))}
        assert isinstance(self.step, Fraction)
        return Question.of_rows(policy, self.rows, self.step, names)


def _value_labels(domain: Domain) -> Mapping[str, NDArray[Any]]:
    """Return the labels of all values; raise `InputError` if labels and answers would exceed the memory limit."""
    # A row contains a label for each attribute, the answer, its standard error and the ends of its interval.
    columns = len(domain.attributes) + 4
    if domain.size * columns > _MOST_NUMBERS:
        raise InputError(
            "domain",
            "has too many values for a histogram",
            value=domain.size,
            bound=f"at most {_MOST_NUMBERS // columns:,} with {columns} columns of labels and answers",
            remedy="leave out attributes, group values, or count blocks of values with partition=",
        )
    return value_labels(domain)
