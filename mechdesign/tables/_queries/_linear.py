"""Histograms, sums and other linear queries with independent exact noise on a lattice."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import InitVar, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Integers, as_array, read_only
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.tables._answers import check_table, true_answers
from mechdesign.tables._budget import Budget, LedgerLike
from mechdesign.tables._charges import CONFIDENCE, Rng, classes_of_blocks, classes_of_sum, classes_of_values
from mechdesign.tables._domain import Domain
from mechdesign.tables._linear_queries import LinearQueries, on_lattice
from mechdesign.tables._policies._lines import block_numbers, label_numbers
from mechdesign.tables._policy import Policy, as_policy
from mechdesign.tables._query import Option, Plan, Query, Question
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._sensitivity import find_attribute, of_counts, of_sum
from mechdesign.tables._values import as_labels, value_labels
from mechdesign.tables._workload import COMPARED, Workload, compare_strategies

# The largest number of labels and answers of a histogram; together they would take 2 GiB.
_MOST_NUMBERS = 1 << 28
# Steps between this bound and its reciprocal, and quotients of weights by these steps, are representable as floats.
_LEAST_STEP = Fraction(1, 10**200)


@dataclass(frozen=True, eq=False)
class Histogram(Query[Release]):
    """The number of records with each value, or in each block of a partition.

    Each count gets independent noise for the histogram's sensitivity under the policy. The sensitivity is 2 if a record
    may move from one count to another, and may be larger under publicly known counts. If no record may move, the
    sensitivity is 0 and the counts are exact.

    Attributes:
        partition: the block of each value, strings or numbers of shape (|T|,). By default each value is counted
            separately.

    Raises:
        InputError: The partition is not a list of labels.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> policy = Policy.full(Domain({"floor": range(4)}))
    >>> Histogram().sensitivity(policy).value
    2
    >>> Histogram(["low", "low", "high", "high"]).plan(policy, Budget.of(epsilon=2)).queries
    2
    >>> Histogram().release([0, 1, 1, 3], policy, Budget.of(epsilon=2), rng=1).answers.shape
    (4,)
    """

    partition: ArrayLike | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        given = self.partition
        if given is not None:
            label_numbers(given, "partition")
            # A copy is stored, so later changes to the caller's array have no effect.
            if isinstance(given, Set | Mapping):
                problem = "is not a list of labels: it has no order"
                raise InputError(
                    "partition", problem, value=type(given).__name__, bound="one label for each value, in order"
                )
            kept = given.copy() if isinstance(given, np.ndarray) else tuple(given)  # type: ignore[arg-type]
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
        domain, partition = policy.domain, self.partition
        option = ("independent", "noise on each count")

        def counts(data: object, positions: ArrayLike | None) -> Integers:
            found = domain.counts(data, positions=positions)
            check_table(policy, found)
            return found

        if partition is None:
            return Question(
                what="histogram",
                count=domain.size,
                sensitivity=lambda norm: of_counts(policy, norm),
                answers=counts,
                labels=lambda: _value_labels(domain),
                classes=lambda: classes_of_values(domain.size),
                option=option,
            )
        blocks = block_numbers(domain, partition, "partition")
        first = np.unique(blocks, return_index=True)[1]

        def totals(data: object, positions: ArrayLike | None) -> Integers:
            found = np.zeros(len(first), dtype=np.int64)
            np.add.at(found, blocks, counts(data, positions))
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

    def strategies(self, policy: Policy, budget: Budget) -> tuple[Option, ...]:
        """Return strategies for the same counts in ascending order of error, if the search takes only seconds.

        Args:
            policy: the policy.
            budget: the budget of the release.

        Returns:
            The strategies as options of a plan; empty if there are none.
        """
        if self.partition is None or policy.domain.size > COMPARED:
            return compare_strategies("histogram", policy, budget)
        blocks = np.unique(as_array(self.partition, "partition").ravel(), return_inverse=True)[1]
        return compare_strategies((np.arange(blocks.max() + 1)[:, None] == blocks).astype(np.float64), policy, budget)


@dataclass(frozen=True)
class Sum(Query[Release]):
    """The sum of a numeric attribute over the records, in steps of the lattice of its values.

    Attributes:
        attribute: the name of the attribute; it may be omitted if there is only one attribute.

    Raises:
        InputError: The attribute is not a string.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> ages = Policy.threshold(Domain({"age": range(17, 91)}), 1)
    >>> Sum("age").sensitivity(ages).value
    1
    >>> Sum("age").release([30, 31, 60], ages, Budget.of(epsilon=1000), rng=1).answers
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

        def total(data: object, positions: ArrayLike | None) -> Integers:
            numbers = domain.indices(data, positions=positions)
            codes = np.unravel_index(numbers, domain.shape)[domain.names.index(name)]
            counts = np.bincount(codes, minlength=len(values))
            known = np.bincount(numbers, minlength=domain.size) if policy.constraints else counts
            check_table(policy, known, int(np.abs(values).max()), f"domain[{name!r}]")
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
    also supported, unlike in `strategy`.

    Args:
        queries: the weight of each value, shape (|T|,), or of each value in each query, shape (q, |T|); or a `Workload`
            of at most 4,000,000 weights.
        step: the step of the lattice; all weights and all answers are multiples of it. A float is read as the decimal
            that Python prints.
        size: the number |T| of values; if it is given, the width of the weights is checked immediately.

    Attributes:
        rows: the weights as multiples of the step, int64 of shape (q, |T|).

    Raises:
        InputError: A weight is not on the lattice or too large, the weights have the wrong shape, or the step is out of
            range.

    >>> from mechdesign.tables import Budget, Domain, Policy
    >>> policy = Policy.full(Domain({"floor": range(3)}))
    >>> halves = Linear([[0, 0.5, 1], [1, 1, 1]], step=0.5)
    >>> halves.sensitivity(policy).value, halves.plan(policy, Budget.of(epsilon=1)).queries
    (1, 2)
    """

    queries: ArrayLike | LinearQueries = field(repr=False)
    step: object = 1
    size: InitVar[int | None] = None
    rows: Integers = field(init=False, repr=False)

    def __post_init__(self, size: int | None) -> None:
        unit = exact(self.step, "step")
        weights = self.queries.weights() if isinstance(self.queries, LinearQueries) else self.queries
        if not _LEAST_STEP <= unit <= 1 / _LEAST_STEP:
            problem = "is not positive" if unit <= 0 else "is out of range"
            raise InputError("step", problem, value=self.step, bound="between 1e-200 and 1e200")
        rows = on_lattice(weights, unit, size)
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
        names = queries.labels if isinstance(queries, LinearQueries) else lambda: {"query": np.arange(len(self.rows))}
        assert isinstance(self.step, Fraction)
        return Question.of_rows(policy, self.rows, self.step, names)


@in_own_arithmetic
def release_histogram(
    data: object,
    policy: Policy,
    epsilon: object = None,
    *,
    rng: Rng = None,
    positions: ArrayLike | None = None,
    rho: object = None,
    partition: ArrayLike | None = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> Release:
    """Release the number of records with each value, or in each block of a partition.

    Each count gets independent noise for the histogram's sensitivity under the policy. The sensitivity is 2 if a record
    may move from one count to another, and may be larger under publicly known counts. If no record may move, the
    sensitivity is 0 and the counts are exact.

    Args:
        data: the table, in any form that `Domain.indices` accepts.
        policy: the Blowfish policy that the release must satisfy.
        epsilon: ε in nats, for two-sided geometric noise.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        positions: the indices of the records' values, given instead of `data`.
        rho: ρ of zero-concentrated differential privacy, for discrete Gaussian noise; instead of `epsilon`.
        partition: the block of each value, strings or numbers of shape (|T|,).
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of each count's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release; its answers are unbiased and may be negative.

    Raises:
        InputError: A record is outside the domain, the budget is not positive, or the data violate a known count. Or
            the table is empty although the number of records is public, or labels and answers exceed 2 GiB.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> from mechdesign.tables import Domain, Policy
    >>> release = release_histogram([0, 1, 1, 3], Policy.full(Domain({"floor": range(4)})), epsilon=2, rng=1)
    >>> release.answers.shape, round(float(release.standard_errors[0]), 3)
    ((4,), 1.357)
    """
    budget = Budget.of(epsilon, rho)
    return Histogram(partition).release(
        data, policy, budget, rng=rng, positions=positions, ledger=ledger, confidence=confidence, together=together
    )


@in_own_arithmetic
def release_linear(
    data: object,
    policy: Policy,
    queries: ArrayLike | Workload,
    *,
    epsilon: object = None,
    rng: Rng = None,
    positions: ArrayLike | None = None,
    step: object = 1,
    rho: object = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> Release:
    """Release linear queries: each adds up, over all records, the weight of the record's value.

    Each answer gets independent noise for the joint sensitivity of all queries. Policies with publicly known counts are
    also supported, unlike in `strategy`.

    Args:
        data: the table, in any form that `Domain.indices` accepts.
        policy: the Blowfish policy that the release must satisfy.
        queries: the weight of each value, shape (|T|,), or of each value in each query, shape (q, |T|); or a `Workload`
            of at most 4,000,000 weights.
        epsilon: ε in nats, for two-sided geometric noise.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        positions: the indices of the records' values, given instead of `data`.
        step: the step of the lattice; all weights and all answers are multiples of it. A float is read as the decimal
            that Python prints.
        rho: ρ of zero-concentrated differential privacy, for discrete Gaussian noise; instead of `epsilon`.
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of each answer's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release; its answers are unbiased.

    Raises:
        InputError: A weight is not on the lattice or is too large. Or an argument is invalid for a reason that
            `release_histogram` lists.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> from mechdesign.tables import Domain, Policy
    >>> policy = Policy.full(Domain({"floor": range(3)}))
    >>> release_linear([0, 1, 1], policy, [[0, 1, 1]], epsilon=1000, rng=1).answers
    array([2.])
    """
    budget = Budget.of(epsilon, rho)
    return Linear(queries, step, as_policy(policy).domain.size).release(
        data, policy, budget, rng=rng, positions=positions, ledger=ledger, confidence=confidence, together=together
    )


@in_own_arithmetic
def release_sum(
    data: object,
    policy: Policy,
    attribute: str | None = None,
    *,
    epsilon: object = None,
    rng: Rng = None,
    positions: ArrayLike | None = None,
    rho: object = None,
    ledger: LedgerLike | None = None,
    confidence: object = CONFIDENCE,
    together: bool = False,
) -> Release:
    """Release the sum of a numeric attribute over the records, in steps of the lattice of its values.

    Args:
        data: the table, in any form that `Domain.indices` accepts.
        policy: the Blowfish policy that the release must satisfy.
        attribute: the name of the attribute; it may be omitted if there is only one attribute.
        epsilon: ε in nats, for two-sided geometric noise.
        rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating system's
            randomness.
        positions: the indices of the records' values, given instead of `data`.
        rho: ρ of zero-concentrated differential privacy, for discrete Gaussian noise; instead of `epsilon`.
        ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
        confidence: the confidence level of the sum's interval, in (0, 1).
        together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
            policy of the other protects. The entry in the ledger contains the value of `together`.

    Returns:
        The release; its answer is unbiased.

    Raises:
        InputError: The attribute is unknown or not numeric. Or an argument is invalid for a reason that
            `release_histogram` lists.
        BudgetExceededError: the ledger has too little budget left.
        ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one protects.

    >>> from mechdesign.tables import Domain, Policy
    >>> ages = Policy.threshold(Domain({"age": range(17, 91)}), 1)
    >>> release_sum([30, 31, 60], ages, "age", epsilon=1000, rng=1).answers
    array([121.])
    """
    budget = Budget.of(epsilon, rho)
    return Sum(attribute).release(
        data, policy, budget, rng=rng, positions=positions, ledger=ledger, confidence=confidence, together=together
    )


@in_own_arithmetic
def plan_histogram(policy: Policy, *, partition: Any = None, epsilon: object = None, rho: object = None) -> Plan:
    """Plan `release_histogram`: independent noise on each count, and strategies for comparison.

    Args:
        policy: the policy.
        partition: the block of each value, strings or numbers of shape (|T|,).
        epsilon: ε in nats, for two-sided geometric noise.
        rho: ρ of zero-concentrated differential privacy, for discrete Gaussian noise; instead of `epsilon`.

    Returns:
        The plan.

    >>> from mechdesign.tables import Domain, Policy
    >>> plan_histogram(Policy.full(Domain({"floor": range(4)})), epsilon=1).queries
    4
    """
    return Histogram(partition).plan(policy, Budget.of(epsilon, rho))


@in_own_arithmetic
def plan_sum(policy: Policy, attribute: str, *, epsilon: object = None, rho: object = None) -> Plan:
    """Plan `release_sum`: noise on the sum of one attribute.

    Args:
        policy: the policy.
        attribute: the name of the attribute.
        epsilon: ε in nats, for two-sided geometric noise.
        rho: ρ of zero-concentrated differential privacy, for discrete Gaussian noise; instead of `epsilon`.

    Returns:
        The plan.

    >>> from mechdesign.tables import Domain, Policy
    >>> plan_sum(Policy.threshold(Domain({"age": range(17, 91)}), 1), "age", epsilon=1).queries
    1
    """
    return Sum(attribute).plan(policy, Budget.of(epsilon, rho))


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
