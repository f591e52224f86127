"""Histograms, sums and other linear queries with independent exact noise on a lattice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_generator, require_unmasked
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text, printed
from mechdesign.mechanisms._discrete import LARGEST_VALUE, as_confidence
from mechdesign.tables._answers import check_table, true_answers
from mechdesign.tables._budget import Budget, LedgerLike, scaled
from mechdesign.tables._charges import (
    charge,
    classes_of_attribute,
    classes_of_blocks,
    classes_of_rows,
    classes_of_values,
)
from mechdesign.tables._policies._cliques import block_numbers
from mechdesign.tables._policy import Policy, as_policy, describe_policy
from mechdesign.tables._release import Description, Release
from mechdesign.tables._values import as_labels, value_labels
from mechdesign.tables._workload import Workload

if TYPE_CHECKING:
    from mechdesign.leakage._partition import Partition
    from mechdesign.tables._domain import Domain


Rng = np.random.Generator | int | None


_MOST_WEIGHTS = 4_000_000
# What a histogram holds: 2 GiB of labels and answers.
_MOST_NUMBERS = 1 << 28
# Steps within these bounds, and what is divided by them, are floats.
_LEAST_STEP = Fraction(1, 10**200)


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
    confidence: object = Fraction(19, 20),
    together: bool = False,
) -> Release:
    """Release how many records have each value, or are in each block of a partition.

    Each count gets independent noise for the histogram's sensitivity under the policy: 2 where a record may move from
    one count to another, more under publicly known counts, and 0, so that the counts are exact, where no record may.

    Args:
        data: the table, as for `Domain.indices`.
        policy: what is protected.
        epsilon: ε in nats, for two-sided geometric noise.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        positions: instead of `data`, which is None then, the numbers of the values of the records.
        rho: instead of `epsilon`, ρ under zero-concentrated differential privacy, for discrete Gaussian noise.
        partition: the block of each value, texts or numbers of shape (|T|,).
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of each count.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Returns:
        The release; its answers are unbiased and may be negative.

    Raises:
        InputError: a record outside the domain, a budget that is not positive, known counts that do not hold, an empty
            table where the number of records is public, or labels and answers of more than 2 GiB.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.

    >>> from mechdesign.tables import Domain, Policy
    >>> release = release_histogram([0, 1, 1, 3], Policy.full(Domain({"floor": range(4)})), epsilon=2, rng=1)
    >>> release.answers.shape, round(float(release.standard_errors[0]), 3)
    ((4,), 1.357)
    """
    budget = Budget.of(epsilon, rho)
    if partition is None:
        _check_size(as_policy(policy).domain)
    counts = as_policy(policy).domain.counts(data, positions=positions)
    check_table(policy, counts)
    if partition is None:
        asked = _Asked("histogram", "histogram", counts, value_labels(policy.domain))
        asked = replace(asked, classes=lambda: classes_of_values(policy.domain.size))
    else:
        blocks = block_numbers(policy.domain, partition, "partition")
        first = np.unique(blocks, return_index=True)[1]
        totals = np.zeros(len(first), dtype=np.int64)
        np.add.at(totals, blocks, counts)
        labels = {"block": as_labels(np.asarray(partition).ravel()[first].tolist())}
        asked = _Asked("histogram of a partition", "histogram", totals, labels, options={"partition": partition})
        asked = replace(asked, classes=lambda: classes_of_blocks(blocks))
    return _with_noise(asked, policy, budget, rng, ledger, confidence, together)


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
    confidence: object = Fraction(19, 20),
    together: bool = False,
) -> Release:
    """Release linear queries: sums, over the records, of weights that depend on the value; counts have weights 0 and 1.

    Each answer gets independent noise for the sensitivity of all queries together. It is the way to answer a workload
    under publicly known counts, for which no `strategy` is offered.

    Args:
        data: the table, as for `Domain.indices`.
        policy: what is protected.
        queries: the weight of each value, shape (|T|,), or of each value in each query, shape (q, |T|); or a `Workload`
            of at most 4,000,000 weights.
        epsilon: ε in nats, for two-sided geometric noise.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        step: the step of the lattice: all weights are multiples of it, and so are the answers. A float stands for the
            decimal that Python prints.
        positions: instead of `data`, which is None then, the numbers of the values of the records.
        rho: instead of `epsilon`, ρ under zero-concentrated differential privacy, for discrete Gaussian noise.
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of each answer.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Raises:
        InputError: weights off the lattice or too large, and as for `release_histogram`.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.
    """
    budget = Budget.of(epsilon, rho)
    unit = exact(step, "step")
    labels = queries.labels() if isinstance(queries, Workload) else None
    weights = weights_of(queries) if isinstance(queries, Workload) else queries
    if not _LEAST_STEP <= unit <= 1 / _LEAST_STEP:
        problem = "is not positive" if unit <= 0 else "is out of range"
        raise InputError("step", problem, value=step, bound="between 1e-200 and 1e200")
    rows = on_lattice(weights, unit, as_policy(policy).domain.size)
    counts = policy.domain.counts(data, positions=positions)
    check_table(policy, counts, int(np.abs(rows).max(initial=0)), "queries")
    # The sensitivity of the integers is in steps already.
    answers = true_answers(rows, counts)
    named = {"query": np.arange(len(rows))} if labels is None else labels
    asked = _Asked("linear queries", rows, answers, named, unit, Fraction(1), classes=lambda: classes_of_rows(rows))
    return _with_noise(asked, policy, budget, rng, ledger, confidence, together)


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
    confidence: object = Fraction(19, 20),
    together: bool = False,
) -> Release:
    """Release the sum of a numeric attribute over the records, on the lattice of its values.

    Args:
        data: the table, as for `Domain.indices`.
        policy: what is protected.
        attribute: its name; may be left out where there is only one.
        epsilon: ε in nats, for two-sided geometric noise.
        rng: for rehearsals only, a NumPy generator or a seed; without it the operating system's randomness.
        positions: instead of `data`, which is None then, the numbers of the values of the records.
        rho: instead of `epsilon`, ρ under zero-concentrated differential privacy, for discrete Gaussian noise.
        ledger: a `mechdesign.Ledger` to be charged before any noise is drawn.
        confidence: of the interval of the sum.
        together: insist on the release where it, or an earlier one in the ledger, is exact and the policy of the other
            protects what it tells apart; the ledger records that.

    Raises:
        InputError: an unknown attribute or one that is not numeric, and as for `release_histogram`.
        BudgetExceededError: the ledger refuses.
        ExactReleaseError: the ledger refuses what would be told apart together with an earlier release.
    """
    budget = Budget.of(epsilon, rho)
    domain = as_policy(policy).domain
    if attribute is None and len(domain.attributes) > 1:
        raise InputError("attribute", "is not given", bound=f"one of {', '.join(domain.names)}")
    name = domain.names[0] if attribute is None else attribute
    values, unit = domain.attribute(name).positions, domain.attribute(name).unit
    numbers = domain.indices(data, positions=positions)
    codes = np.unravel_index(numbers, domain.shape)[domain.names.index(name)]
    counts = np.bincount(codes, minlength=len(values))
    known = np.bincount(numbers, minlength=domain.size) if policy.constraints else counts
    check_table(policy, known, int(np.abs(values).max()), f"domain[{name!r}]")
    total, labels = true_answers(values[None], counts), {"sum of": np.array([name])}
    asked = _Asked("sum", "sum", total, labels, unit, unit, {"attribute": name})
    asked = replace(asked, classes=lambda: classes_of_attribute(domain, name))
    return _with_noise(asked, policy, budget, rng, ledger, confidence, together)


def weights_of(workload: Workload) -> Floats:
    """Return the matrix of a workload that is not too large for one.

    Raises:
        InputError: more than 4,000,000 weights.
    """
    weights = workload.count * workload.size
    if weights > _MOST_WEIGHTS:
        raise InputError(
            "queries",
            "have too many weights",
            value=weights,
            bound=f"at most {_MOST_WEIGHTS} weights",
            remedy="ask for fewer queries, or release a histogram and add up its answers",
        )
    return workload.matrix()


def step_of(weights: Floats) -> Fraction:
    """Return the largest step of which all weights, as the decimals that they print, are multiples.

    >>> step_of(np.array([[0.5, 0.25], [1.0, 3.0]]))
    Fraction(1, 4)
    """
    return Fraction(1, math.lcm(*{printed(weight).denominator for weight in np.unique(weights).tolist()}))


def _check_size(domain: Domain) -> None:
    """Raise `InputError` where the labels and answers of a histogram would fill the memory."""
    # A label for each attribute; the answer, its standard error and the ends of its interval.
    columns = len(domain.attributes) + 4
    if domain.size * columns > _MOST_NUMBERS:
        raise InputError(
            "domain",
            "has too many values for a histogram",
            value=domain.size,
            bound=f"at most {_MOST_NUMBERS // columns:,} with {columns} columns of labels and answers",
            remedy="leave out attributes, group values, or count blocks of them: partition",
        )


@dataclass(frozen=True)
class _Asked:
    """A query and its true answers.

    Attributes:
        what: what it is, in words.
        query: the query as `sensitivity` takes it.
        answers: the true answers in steps.
        labels: what names each answer.
        step: the step of the answers.
        unit: the same step in the numbers that `sensitivity` gives.
        options: what else `sensitivity` takes.
        classes: returns the classes of values that the answers tell apart where they are exact.
    """

    what: str
    query: Any
    answers: Integers
    labels: Mapping[str, NDArray[Any]]
    step: Fraction = Fraction(1)
    unit: Fraction = Fraction(1)
    options: Mapping[str, Any] = field(default_factory=dict)
    classes: Callable[[], Partition] | None = None


def _with_noise(
    asked: _Asked,
    policy: Policy,
    budget: Budget,
    rng: Rng,
    ledger: LedgerLike | None,
    confidence: object,
    together: bool,
) -> Release:
    """Release the answers with the noise that the policy asks for."""
    level = as_confidence(confidence)
    generator = None if rng is None else as_generator(rng)
    law = budget.noise(policy, asked.query, asked.unit, **asked.options)
    width = 0 if law is None else law.half_width(level)
    spent, error, mechanism = budget, 0.0, "none"
    if law is None:
        spent = budget.nothing()
        remarks: tuple[str, ...] = (
            "The policy leaves these answers exact: no two neighbouring databases differ in them.",
        )
    else:
        error, mechanism = law.standard_deviation, f"{law} on each answer, in steps of {exact_text(asked.step)}"
        remarks = ("The answers are unbiased and are not rounded to what is possible: counts may be negative.",)
    description = Description(
        what=asked.what,
        policy=describe_policy(policy),
        neighbours=policy.neighbours,
        definition=policy.definition,
        mechanism=mechanism,
        epsilon=spent.epsilon,
        rho=spent.rho,
        step=asked.step,
        confidence=level,
        rehearsal=rng is not None,
        remarks=remarks,
    )

    errors = scaled(np.full(len(asked.answers), error), asked.step)

    def made(steps: Integers) -> Release:
        ends = (scaled(steps, asked.step), errors, scaled(steps - width, asked.step), scaled(steps + width, asked.step))
        return Release(description, asked.labels, *ends)

    if law is None:
        found = made(asked.answers)
        return found.entered(charge(ledger, spent, asked.what, policy, asked.classes, together))
    # All that can fail is tried by now: that nothing of it depends on the answers, the zeros show.
    law.prepare()
    made(np.zeros_like(asked.answers))
    number = charge(ledger, spent, asked.what, policy, together=together)
    return made(law.add(asked.answers, generator)).entered(number)


def on_lattice(queries: ArrayLike, step: Fraction, size: int) -> Integers:
    """Return weights as integer multiples of the step, int64 of shape (q, |T|)."""
    require_unmasked(queries, "queries")
    if isinstance(queries, str):
        bound = f"weights of shape ({size},) or (q, {size}), or a Workload"
        raise InputError("queries", "are a text", value=queries, bound=bound, remedy="names are for strategy()")
    try:
        given = np.atleast_2d(np.asarray(queries))
    except ValueError as error:
        raise InputError("queries", f"are not an array ({error})", bound=f"({size},) or (q, {size})") from error
    if given.ndim != 2 or given.shape[1] != size or len(given) == 0:
        raise InputError("queries", "have the wrong shape", value=np.shape(queries), bound=f"({size},) or (q, {size})")
    if given.dtype.kind in "biuf" and max(abs(step.numerator), step.denominator) < 2**53:
        # A double of up to 15 digits is the one next to its multiple of the step; the rest is settled exactly.
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            numbers = np.rint(given / float(step))
            good = np.abs(numbers) * max(step.numerator, 1) < 2.0**53
            good &= numbers * float(step.numerator) / float(step.denominator) == given
        if good.all():
            return numbers.astype(np.int64)
    rows = np.empty(given.shape, dtype=np.int64)
    for place in np.ndindex(given.shape):
        path = f"queries[{place[0]},{place[1]}]"
        multiple = exact(given[place].item() if isinstance(given[place], np.generic) else given[place], path) / step
        if multiple.denominator != 1 or abs(multiple) > LARGEST_VALUE:
            raise InputError(
                path,
                "is not a multiple of the step",
                value=given[place],
                bound=f"a multiple of {exact_text(step)}, at most 2^61 times as large",
                remedy="state a finer step, or round the weights to it",
            )
        rows[place] = int(multiple)
    return rows
