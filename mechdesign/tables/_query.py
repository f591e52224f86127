"""The interface of queries on tables, and the plan and release of queries with independent noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Integers
from mechdesign.base._check import require_kind
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.leakage._partition import Partition
from mechdesign.tables._answers import check_table, true_answers
from mechdesign.tables._budget import Budget, LedgerLike, scale_numbers
from mechdesign.tables._charges import CONFIDENCE, EXACT, UNBIASED, R, Rng, Terms, classes_of_rows
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy, as_policy, describe_policy
from mechdesign.tables._release import Release
from mechdesign.tables._sensitivity._numbers import as_lattice
from mechdesign.tables._sensitivity._sensitivity import Sensitivity, as_norm, of_lattice

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

    >>> from mechdesign.tables import Domain, Policy, plan_histogram
    >>> plan = plan_histogram(Policy.full(Domain({"floor": range(4)})), epsilon=1)
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
            options: the ways to answer the query.
            remarks: further facts for the reader.

        Returns:
            The plan, with its options in ascending order of error.
        """
        if options[0].limit is None and len(options) > 1:
            options = (replace(options[0], limit=options[-1].limit), *options[1:])
        exact = not any(option.error for option in options if option.taken)
        if policy.constraints:
            remarks += (policy.definition,)
        if exact:
            remarks = (EXACT,)
        elif any(option.limit is not None for option in options):
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
        answers: a function that checks a table or positions and returns the true answers as multiples of `step`, int64
            of shape (q,).
        labels: a function that returns the labels of the answers, as arrays of shape (q,) by column heading.
        classes: a function that returns the classes of values that exact answers would distinguish.
        step: the step of the answers.
        planned: a longer description for plans; if it is empty, plans use `what`.
        option: the name and the details of the option that a plan shows for independent noise.
    """

    what: str
    count: int
    sensitivity: Callable[[int], Sensitivity]
    answers: Callable[[object, ArrayLike | None], Integers]
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

        def answers(data: object, positions: ArrayLike | None) -> Integers:
            counts = policy.domain.counts(data, positions=positions)
            check_table(policy, counts, int(np.abs(rows).max(initial=0)), "queries")
            return true_answers(rows, counts)

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


class Query(Generic[R]):
    """A query on a table, with methods for its sensitivity, its plan and its release.

    A new kind of query is registered in `QUERIES`. A query whose answers get independent noise for their joint
    sensitivity overrides `ask`. Any other query overrides `_sensitivity`, `_plan` and `_release`.

    Attributes:
        released: the class of the releases that answer the query.

    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> isinstance(Histogram(), Query), Histogram().sensitivity(Policy.full(Domain({"floor": range(4)}))).value
    (True, 2)
    """

    released: ClassVar[type[Release]] = Release

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
    def plan(self, policy: Policy, budget: Budget, *, compare: bool = True) -> Plan:
        """Return the expected error of every known way to answer the query, before any data are read.

        Args:
            policy: the Blowfish policy that the release must satisfy.
            budget: the ε or ρ that the release may spend.
            compare: whether to compare strategies for the same answers, if this takes only seconds.

        Returns:
            The plan.

        Raises:
            InputError: The query does not fit the policy or the budget.
        """
        require_kind(budget, Budget, "budget", "a Budget")
        return self._plan(as_policy(policy), budget, compare)

    @in_own_arithmetic
    def release(
        self,
        data: object,
        policy: Policy,
        budget: Budget,
        *,
        rng: Rng = None,
        positions: ArrayLike | None = None,
        ledger: LedgerLike | None = None,
        confidence: object = CONFIDENCE,
        together: bool = False,
    ) -> R:
        """Answer the query from a table, with the noise that the policy requires.

        Args:
            data: the table, in any form that `Domain.indices` accepts.
            policy: the Blowfish policy that the release must satisfy.
            budget: the ε or ρ that the release may spend.
            rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating
                system's randomness.
            positions: the indices of the records' values, given instead of `data`.
            ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
            confidence: the confidence level of each answer's interval, in (0, 1).
            together: whether to permit a conflict with an earlier release: one of the two is exact on values that the
                policy of the other protects. The entry in the ledger contains the value of `together`.

        Returns:
            The release, of the class `released`.

        Raises:
            InputError: The query does not fit the policy or the budget, or the table does not fit the domain.
            BudgetExceededError: the ledger has too little budget left.
            ExactReleaseError: this release or an earlier one is exact on values that the policy of the other one
                protects.
        """
        found: R = self._release(Terms(policy, budget, rng, ledger, confidence, together), data, positions)
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

    def strategies(self, policy: Policy, budget: Budget) -> tuple[Option, ...]:
        """Return strategies for the same answers in ascending order of error, if the search takes only seconds.

        Args:
            policy: the policy.
            budget: the budget of the release.

        Returns:
            The strategies as options of a plan; empty if there are none.
        """
        return ()

    def _sensitivity(self, policy: Policy, norm: int) -> Sensitivity:
        return self.ask(policy).sensitivity(norm)

    def _plan(self, policy: Policy, budget: Budget, compare: bool) -> Plan:
        question = self.ask(policy)
        law = budget.noise(question.sensitivity(budget.norm), question.step)
        error = 0.0 if law is None else scale_numbers(law.standard_deviation, question.step).item()
        others = () if law is None or not compare else self.strategies(policy, budget)
        options = (Option(*question.option, error, taken=True), *others)
        return Plan.of(question.planned or question.what, question.count, policy, budget, options)

    def _release(self, terms: Terms, data: object, positions: ArrayLike | None) -> Any:
        question = self.ask(terms.policy)
        labels = question.labels()
        answers = question.answers(data, positions)
        law = terms.budget.noise(question.sensitivity(terms.budget.norm), question.step)
        if law is None:
            error, width, mechanism, remark = 0.0, 0, "none", EXACT
        else:
            error, width, remark = law.standard_deviation, law.half_width(terms.level), UNBIASED
            mechanism = f"{law} on each answer, in steps of {exact_text(question.step)}"
        description = terms.describe(question.what, mechanism, (remark,), step=question.step, noisy=law is not None)
        errors = scale_numbers(np.full(len(answers), error), question.step)

        def make_release(steps: Integers) -> Release:
            ends = (scale_numbers(number, question.step) for number in (steps - width, steps + width))
            return Release(description, labels, scale_numbers(steps, question.step), errors, *ends)

        if law is None:
            return terms.release(question.what, lambda: make_release(answers), None, question.classes)
        noise = law

        def rehearse() -> None:
            noise.prepare()
            # The rehearsal uses zeros instead of the true answers, so it does not depend on the data.
            make_release(np.zeros_like(answers))

        return terms.release(question.what, lambda: make_release(noise.add(answers, terms.generator)), rehearse)
