"""Queries as values: what every query can be asked, and the release and the plan of those with independent noise."""

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
    "Δ²/(2ρ). Noise in whole steps has a little less at large budgets."
)


@dataclass(frozen=True)
class Option:
    """One way to answer.

    Attributes:
        name: what it is called, as a specification names it.
        detail: its parameters, in words.
        error: the expected root mean squared error of a query; 0 where answers are exact.
        limit: no strategy of its class has a smaller one; None where no limit was computed.
        taken: whether it is the one that the release will use.
    """

    name: str
    detail: str
    error: float
    limit: float | None = None
    taken: bool = False


@dataclass(frozen=True)
class Plan:
    """What a release would cost and how exact it would be.

    Attributes:
        what: what would be released.
        queries: how many answers.
        policy: the policy, in words.
        neighbours: which two databases are neighbours.
        spends: what the release would spend.
        options: the ways to answer, the best first.
        remarks: what else a reader must know.
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
        """Return the way that the release will use."""
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
        """Return the plan of these options, with the remarks that they and the policy ask for."""
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
    """What a query asks under a policy. Nothing in it depends on data, and nothing is computed before it is needed.

    Attributes:
        what: what is asked, in words.
        count: how many answers there are.
        sensitivity: returns the sensitivity in a norm, 1 or 2.
        answers: returns the true answers in steps, int64 (q,), from a table or positions, once the table is checked.
        labels: returns what names each answer: arrays of shape (q,) by heading.
        classes: returns the classes of values that the answers tell apart where they are exact.
        step: the step of the answers.
        planned: what a plan calls it, where that is longer.
        option: name and detail of the way to answer, in a plan.
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
        """Return linear queries, integers (q, |T|) in steps."""
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
    """A question about a table: a value that knows its sensitivity, its plan and its release.

    A query of one's own defines `ask`, and is then answered with independent noise for the sensitivity of all its
    answers together; or it defines `_sensitivity`, `_plan` and `_release`. A line in `QUERIES` makes it known.

    Attributes:
        released: the kind of release that answers it.
    """

    released: ClassVar[type[Release]] = Release

    @in_own_arithmetic
    def sensitivity(self, policy: Policy, norm: int = 1) -> Sensitivity:
        """Return how far the answers on two neighbouring tables may be apart.

        Args:
            policy: the Blowfish policy that the release must keep.
            norm: 1 for the ℓ1 norm, which noise for a budget in ε needs, or 2 for the ℓ2 norm, for a budget in ρ.

        Raises:
            InputError: the query does not go with the policy, or there is no such norm.
        """
        return self._sensitivity(as_policy(policy), as_norm(norm))

    @in_own_arithmetic
    def plan(self, policy: Policy, budget: Budget, *, compare: bool = True) -> Plan:
        """Return the expected error of every known way to answer, before any data are touched.

        Args:
            policy: the Blowfish policy that the release must keep.
            budget: the ε or ρ that the release may spend.
            compare: find strategies for the same answers, too, where that takes seconds only.

        Raises:
            InputError: the query does not go with the policy or the budget.
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
        """Answer from a table, with the noise that the policy asks for.

        Args:
            data: the table, in any form that `Domain.indices` accepts.
            policy: the Blowfish policy that the release must keep.
            budget: the ε or ρ that the release may spend.
            rng: a NumPy generator or a seed, for rehearsals only. By default the noise comes from the operating
                system's randomness.
            positions: the numbers of the records' values, instead of `data`, which is then None.
            ledger: a `mechdesign.Ledger`; it is charged before any noise is drawn.
            confidence: the confidence level of each answer's interval, in (0, 1).
            together: whether to release even if this and an earlier release, one of them exact, together distinguish
                protected values. The ledger records this choice.

        Returns:
            The release, one of the kind `released`.

        Raises:
            InputError: the query does not go with the policy or the budget, or the table not with the domain.
            BudgetExceededError: the ledger has too little budget left.
            ExactReleaseError: this and an earlier release, one of them exact, together distinguish protected values.
        """
        found: R = self._release(Terms(policy, budget, rng, ledger, confidence, together), data, positions)
        return found

    def read(self, release: Release, domain: Domain) -> dict[str, Any]:
        """Return what is read from a release, under the names of the attributes of a `Published`."""
        return {}

    def ask(self, policy: Policy) -> Question:
        """Return what is asked under a policy.

        Queries that are answered in another way than with independent noise override the hooks below in its place.

        Raises:
            InputError: the query does not go with the policy, or is not answered with independent noise.
        """
        bound = "a query such as a histogram or a sum"
        raise InputError("query", "is not answered with independent noise", value=type(self).__name__, bound=bound)

    def strategies(self, policy: Policy, budget: Budget) -> tuple[Option, ...]:
        """Return strategies for the same answers, best first, where finding them takes seconds only."""
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
            # That nothing of it depends on the answers, the zeros show.
            make_release(np.zeros_like(answers))

        return terms.release(question.what, lambda: make_release(noise.add(answers, terms.generator)), rehearse)
