"""The interface of queries on tables, and the plan and release of queries with independent noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Integers
from mechdesign.base._check import require_kind
from mechdesign.base._errors import BudgetExceededError, InputError, LeakageExceededError
from mechdesign.certify._exact import exact_text
from mechdesign.leakage._entries import TimeStep
from mechdesign.leakage._partition import Partition
from mechdesign.leakage.accounting import Ledger
from mechdesign.mechanisms._discrete import DiscreteNoise
from mechdesign.tables._budget import Budget, scale_numbers
from mechdesign.tables._charges import (
    CONFIDENCE,
    EXACT,
    UNBIASED,
    LedgerPart,
    Rng,
    Terms,
    Time,
    classes_of_rows,
    planned_epsilon,
)
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy, as_policy, describe_policy
from mechdesign.tables._records import Records, as_rows, check_people, true_answers
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._linear import as_lattice
from mechdesign.tables._sensitivity._sensitivity import Sensitivity, as_norm, of_lattice

R = TypeVar("R", bound=Release)

_LIMIT = (
    "The limit is proven for linear unbiased decoding and noise of the variance of the continuous law, 2(Δ/ε)² or "
    "Δ²/(2ρ). At large budgets, discrete noise has a slightly smaller variance."
)


@dataclass(frozen=True)
class Option:
    """A way to answer a query, with its expected error.

    Attributes:
        name: the name of the option, as in specifications.
        detail: the parameters of the option, in words.
        error: the expected root mean squared error of an answer; 0 for exact answers.
        limit: a lower bound on the error of every strategy of the same class; None if no bound was computed.
        taken: whether the release will use this option.

    >>> Option("independent", "noise on each count", 1.5).taken
    False
    """

    name: str
    detail: str
    error: float
    limit: float | None = None
    taken: bool = False


@dataclass(frozen=True)
class Plan:
    """The cost and the expected errors of a release, before any data are read.

    Attributes:
        what: the released quantity, in words.
        queries: the number of answers.
        policy: the policy, in words.
        neighbours: the definition of neighbouring databases.
        spends: the budget that the release would spend.
        options: the ways to answer the query, in ascending order of error.
        remarks: further facts for the reader.

    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> plan = Histogram().plan(Policy.full(Domain({"floor": range(4)})), epsilon=1)
    >>> plan.queries, plan.spends
    (4, 'ε = 1')
    """

    what: str
    queries: int
    policy: str
    neighbours: str
    spends: str
    options: tuple[Option, ...]
    remarks: tuple[str, ...] = ()

    @property
    def taken(self) -> Option:
        """Return the option that the release will use."""
        return next(option for option in self.options if option.taken)

    @classmethod
    def of(
        cls,
        what: str,
        queries: int,
        policy: Policy,
        budget: Budget,
        options: tuple[Option, ...],
        remarks: tuple[str, ...] = (),
    ) -> Plan:
        """Return a plan with the given options and with the remarks that its options and its policy require.

        Args:
            what: the released quantity, in words.
            queries: the number of answers.
            policy: the policy.
            budget: the budget that the release would spend.
            options: the ways to answer the query; if none is marked as taken, the best one is.
            remarks: further facts for the reader.

        Returns:
            The plan, with its options in ascending order of error.
        """
        limit = next((option.limit for option in options if option.limit is not None), None)
        taken = [option for option in options if option.taken] or [min(options, key=lambda option: option.error)]
        options = tuple(
            replace(option, limit=limit if option.limit is None else option.limit, taken=option in taken)
            for option in options
        )
        exact = not any(option.error for option in taken)
        if policy.constraints:
            remarks += (policy.definition,)
        if exact:
            remarks = (EXACT,)
        elif limit is not None:
            remarks += (_LIMIT,)
        ranked = tuple(sorted(options, key=lambda option: option.error))
        spends = "nothing" if exact else str(budget)
        return cls(what, queries, describe_policy(policy), policy.neighbours, spends, ranked, remarks)


@dataclass(frozen=True, eq=False)
class Question:
    """A query under a policy. A question does not depend on data, and its parts are computed on request.

    Attributes:
        what: the query, in words.
        count: the number of answers.
        sensitivity: a function that returns the sensitivity in the ℓ1 norm for 1, and in the ℓ2 norm for 2.
        answers: a function that checks the records and returns the true answers as multiples of `step`, int64 of shape
            (q,).
        labels: a function that returns the labels of the answers, as arrays of shape (q,) by column heading.
        classes: a function that returns the classes of values that exact answers would distinguish.
        step: the step of the answers.
        planned: a longer description for plans; if it is empty, plans use `what`.
        option: the name and the details of the option that a plan shows for independent noise.
    """

    what: str
    count: int
    sensitivity: Callable[[int], Sensitivity]
    answers: Callable[[Records], Integers]
    labels: Callable[[], Mapping[str, NDArray[Any]]]
    classes: Callable[[], Partition]
    step: Fraction = Fraction(1)
    planned: str = ""
    option: tuple[str, str] = ("independent", "noise on each query")

    @classmethod
    def of_rows(
        cls,
        policy: Policy,
        rows: Integers,
        step: Fraction,
        labels: Callable[[], Mapping[str, NDArray[Any]]],
        planned: str = "",
    ) -> Question:
        """Return the question of linear queries with weights `rows` × `step`, for integer `rows` of shape (q, |T|)."""
        lattice = replace(as_lattice(rows, policy.domain.size), unit=step)

        def answers(records: Records) -> Integers:
            return true_answers(rows, records.checked(policy, int(np.abs(rows).max(initial=0)), "queries"))

        return cls(
            "linear queries",
            len(rows),
            lambda norm: of_lattice(policy, norm, lattice),
            answers,
            labels,
            lambda: classes_of_rows(rows),
            step,
            planned,
        )


@dataclass(frozen=True, eq=False)
class Way:
    """A way to answer a query: its option in a plan, the function that answers, and further facts for the plan."""

    option: Option
    release: Callable[[Terms, Records], Any]
    remarks: tuple[str, ...] = ()


def best(ways: Sequence[Way]) -> Way:
    """Return the way with the least expected error; the first one if several are equal."""
    return min(ways, key=lambda way: way.option.error)


class Query(Generic[R]):
    """A query on a table, with methods for its sensitivity, its plan and its release.

    A query takes the way with the least expected error. A query whose answers get independent noise for their joint
    sensitivity overrides `ask`. Any other query overrides `_sensitivity`, `_plan` and `_release`.

    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> isinstance(Histogram(), Query), Histogram().sensitivity(Policy.full(Domain({"floor": range(4)}))).value
    (True, 2)
    """

    @in_own_arithmetic
    def sensitivity(self, policy: Policy, norm: int = 1) -> Sensitivity:
        """Return the largest distance between the answers on two neighbouring tables.

        Args:
            policy: the Blowfish policy that the release must satisfy.
            norm: 1 for the ℓ1 norm, which a budget in ε requires; 2 for the ℓ2 norm, which a budget in ρ requires.

        Returns:
            The sensitivity.

        Raises:
            InputError: The query does not fit the policy, or the norm is neither 1 nor 2.
        """
        return self._sensitivity(as_policy(policy), as_norm(norm))

    @in_own_arithmetic
    def plan(
        self,
        policy: Policy,
        *,
        epsilon: object = None,
        rho: object = None,
        counts: object = None,
        rows_per_person: object = 1,
    ) -> Plan:
        """Return the expected error of every known way to answer the query, which does not depend on the data.

        Args:
            policy: the Blowfish policy that the release must satisfy.
            epsilon: ε in nats that the release may spend.
            rho: ρ of zero-concentrated differential privacy that the release may spend, instead of `epsilon`.
            counts: the counts that the release will take; they are checked, and have no effect on the plan.
            rows_per_person: the largest number of rows of one person; the plan states what they cost together.

        Returns:
            The plan.

        Raises:
            InputError: The query does not fit the policy or the budget, or the counts do not fit the policy.
        """
        budget, known = Budget.of(epsilon, rho), as_policy(policy)
        if counts is not None:
            Records(known.domain, counts=counts).checked(known)
        rows, found = as_rows(rows_per_person), self._plan(known, budget)
        if rows == 1 or found.spends != str(budget):
            return found
        return replace(found, spends=f"{budget} per row and {budget.of_person(rows)} per person")

    @in_own_arithmetic
    def release(
        self,
        data: object = None,
        policy: Policy | None = None,
        *,
        epsilon: object = None,
        rho: object = None,
        positions: ArrayLike | None = None,
        counts: object = None,
        person: object = None,
        rows_per_person: object = 1,
        rng: Rng = None,
        ledger: Ledger | LedgerPart | None = None,
        confidence: object = CONFIDENCE,
        together: bool = False,
        step: TimeStep | None = None,
        gap: bool = False,
        series: Literal[False] | None = None,
    ) -> R:
        """Answer the query from a table, with the noise that the policy requires.

        Args:
            data: the table, in any form that `Domain.indices` accepts.
            policy: the Blowfish policy that the release must satisfy.
            epsilon: ε in nats, for two-sided geometric noise. "planned" is what is left of the planned budget of a time
                step.
            rho: ρ of zero-concentrated differential privacy, for discrete Gaussian noise; instead of `epsilon`.
            positions: the indices of the records' values, instead of `data`.
            counts: the number of records with each value, instead of `data`: an array of shape (|T|,), or a mapping
                or series whose names are the values. With several attributes, a name is a tuple, in the order of the
                attributes or of the named levels of a series' index.
            person: the key of the person of each row, a text or an integer, in the order of `data` or `positions`. By
                default nobody counts the rows of a person.
            rows_per_person: the largest number k of rows of one person, which is published. The release and the ledger
                state the cost of all rows of a person: k·ε, or k²·ρ.
            rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating
                system's randomness.
            ledger: a `mechdesign.Ledger`, or the part of one that `part_of` returns; it is charged before any noise is
                drawn.
            confidence: the confidence level of each answer's interval, in (0, 1).
            together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
                policy of the other protects. The entry in the ledger contains the value of `together`.
            step: the time step of a release of the ledger's series, an integer or an ISO month such as "2026-11".
            gap: whether time steps without an entry may lie between this step and the others.
            series: False for a release outside the ledger's series, which its leakage does not count.

        Returns:
            The release.

        Raises:
            InputError: The query does not fit the policy or the budget, or the table does not fit the domain. Or a
                person has more rows than `rows_per_person`, or the ledger belongs to a group of values although a
                person may have several rows. Or the release does not fit the series of the ledger.
            BudgetExceededError: the ledger has too little budget left.
            LeakageExceededError: a release of the series would leak more than α.
            ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one
                protects.

        >>> from mechdesign.tables import Domain, Histogram, Policy
        >>> policy = Policy.full(Domain({"floor": range(3)}))
        >>> Histogram().release(policy=policy, counts={0: 5, 1: 0, 2: 9}, epsilon=100, rng=1).answers.tolist()
        [5.0, 0.0, 9.0]
        """
        if policy is None:
            remedy = "give the table first, or name both: release(policy=policy, counts=counts)"
            raise InputError("policy", "is not given", bound="a mechdesign.tables.Policy", remedy=remedy)
        time = Time(step, gap, series)
        terms = self.prepare(policy, epsilon, rho, rows_per_person, rng, ledger, confidence, together, time)
        return self.answer(terms, Records(terms.policy.domain, data, positions, counts), person)

    def prepare(
        self,
        policy: Policy,
        epsilon: object,
        rho: object,
        rows_per_person: object,
        rng: Rng,
        ledger: Ledger | LedgerPart | None,
        confidence: object,
        together: bool,
        time: Time,
    ) -> Terms:
        """Return the terms of a release, after what can be checked before any data are read.

        Args:
            policy: the policy.
            epsilon: ε, "planned" or None.
            rho: ρ or None.
            rows_per_person: the largest number of rows of one person.
            rng: a generator or a seed of a rehearsal, or None.
            ledger: the ledger, or None.
            confidence: the confidence level.
            together: whether to permit a conflict with an earlier release.
            time: the place of the release in the series of the ledger.

        Returns:
            The terms.
        """
        known, rows = as_policy(policy), as_rows(rows_per_person)
        if ledger is not None:
            require_kind(ledger, (Ledger, LedgerPart), "ledger", "a mechdesign.Ledger")
        if epsilon == "planned":
            epsilon, time = planned_epsilon(ledger, time.step), replace(time, planned=True)
        terms = Terms(known, Budget.of(epsilon, rho), rng, ledger, confidence, together, rows=rows, time=time)
        for name in ("step", "gap", "series"):
            if ledger is None and (value := getattr(time, name)) is not getattr(Time, name):
                raise InputError(name, "is given without a ledger", value=value, bound="a ledger with a series")
        if time.step is None and (ledger is None or time.series is False or ledger.series is None):
            return terms
        if rows > 1 and time.step is not None:
            bound = "1: the leakage bounds what one row of a person tells at each step"
            raise InputError("rows_per_person", "is too large for a series", value=rows, bound=bound)
        try:
            terms.check(type(self).__name__)
        except (BudgetExceededError, LeakageExceededError):
            # Exact answers spend nothing.
            if self._plan(known, terms.budget).taken.error:
                raise
        return terms

    def answer(self, terms: Terms, records: Records, person: object = None) -> R:
        """Answer the query from records, on terms that `prepare` returned.

        Args:
            terms: the terms of the release.
            records: the records.
            person: the key of the person of each row, or None.

        Returns:
            The release.
        """
        if person is not None:
            check_people(person, terms.rows, records.count_rows)
        if terms.rows > 1 and isinstance(terms.ledger, LedgerPart) and terms.ledger.by_value:
            problem = "is of a group of values, and the rows of one person may lie in several groups"
            remedy = "charge the ledger itself, where budgets add up"
            bound = "rows_per_person = 1"
            raise InputError("ledger", problem, value=terms.ledger.division, bound=bound, remedy=remedy)
        found: R = self._release(replace(terms, checked=person is not None), records)
        return found

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return the estimates derived from a release; the keys are names of attributes of `Published`.

        Args:
            release: the release that answered the query.
            domain: the domain of the records.

        Returns:
            The estimates by name; empty for most queries.
        """
        return {}

    def ask(self, policy: Policy) -> Question:
        """Return the question that this query asks under a policy.

        Queries without independent noise override `_sensitivity`, `_plan` and `_release` instead of this method.

        Args:
            policy: the policy.

        Returns:
            The question.

        Raises:
            InputError: The query does not fit the policy, or does not use independent noise.
        """
        bound = "a query such as a histogram or a sum"
        raise InputError("query", "is not answered with independent noise", value=type(self).__name__, bound=bound)

    def _sensitivity(self, policy: Policy, norm: int) -> Sensitivity:
        return self.ask(policy).sensitivity(norm)

    def _ways(self, policy: Policy, budget: Budget) -> list[Way]:
        """Return the ways to answer the query; a release takes the best of them."""
        return [add_noise(self.ask(policy), budget)]

    def _plan(self, policy: Policy, budget: Budget) -> Plan:
        question, ways = self.ask(policy), self._ways(policy, budget)
        options = tuple(way.option for way in ways)
        return Plan.of(question.planned or question.what, question.count, policy, budget, options, best(ways).remarks)

    def _release(self, terms: Terms, records: Records) -> Any:
        return best(self._ways(terms.policy, terms.budget)).release(terms, records)


def add_noise(question: Question, budget: Budget) -> Way:
    """Return the way that adds independent noise to each answer for the joint sensitivity of all answers."""
    law = budget.noise(question.sensitivity(budget.norm), question.step)
    error = 0.0 if law is None else scale_numbers(law.standard_deviation, question.step).item()
    return Way(Option(*question.option, error), partial(_answer, question, law))


def _answer(question: Question, law: DiscreteNoise | None, terms: Terms, records: Records) -> Any:
    labels = question.labels()
    answers = question.answers(records)
    if law is None:
        error, width, mechanism, remark = 0.0, 0, "none", EXACT
    else:
        error, width, remark = law.standard_deviation, law.half_width(terms.level), UNBIASED
        mechanism = f"{law.describe(question.step)} on each answer, in steps of {exact_text(question.step)}"
    description = terms.describe(question.what, mechanism, (remark,), step=question.step, noisy=law is not None)
    errors = scale_numbers(np.full(len(answers), error), question.step)

    def make_release(steps: Integers) -> Release:
        ends = (scale_numbers(number, question.step) for number in (steps - width, steps + width))
        return Release(description, labels, scale_numbers(steps, question.step), errors, *ends)

    if law is None:
        return terms.release(question.what, lambda: make_release(answers), None, question.classes)
    noise = law

    def rehearse() -> Release:
        noise.prepare()
        # The rehearsal uses zeros instead of the true answers, so it does not depend on the data.
        return make_release(np.zeros_like(answers))

    return terms.release(question.what, lambda: make_release(noise.add(answers, terms.generator)), rehearse)
