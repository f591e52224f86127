"""Parallel composition, and ledgers for disjoint groups of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._errors import InputError
from mechdesign.leakage._entries import Entry
from mechdesign.leakage.accounting import Ledger, LedgerSeries
from mechdesign.tables._policies._graphs import Edge
from mechdesign.tables._policies._known_counts import kinds_of
from mechdesign.tables._policies._lines import block_numbers
from mechdesign.tables._policy import Policy, as_policy, name_policy


@dataclass(frozen=True)
class ParallelComposition:
    """The result of `parallel_composition`: whether ε-private releases on disjoint parts are jointly ε-private.

    Attributes:
        allowed: whether the releases compose in parallel, by Theorem 4.2 of Blowfish (He et al. 2014); if not, their
            budgets add up.
        reason: a sentence that gives the reason.
        constraint: the index of a constraint that prevents parallel composition, or None.
        edge: an edge of the secret graph that is a counterexample, or None.

    >>> from mechdesign.tables import Domain
    >>> bool(parallel_composition(Policy.full(Domain({"age": range(100)}))))
    True
    """

    allowed: bool
    reason: str
    constraint: int | None = None
    edge: Edge | None = None

    def __bool__(self) -> bool:
        return self.allowed


def parallel_composition(policy: Policy, parts: ArrayLike | None = None) -> ParallelComposition:
    """Decide whether releases on disjoint groups of people compose in parallel.

    Without known counts, neighbouring databases differ in one record, which affects only one of the releases. Known
    counts may link a change in one group to a change in another. An edge is critical to a constraint if a move along it
    changes the constraint's count. A move of another record, in any group and between any two values, may then restore
    the count. Releases therefore compose in parallel only if no edge is critical to any constraint. (Theorem 4.3 of
    Blowfish also allows critical edges in one group, but it ignores moves between values without an edge.)

    Args:
        policy: the policy.
        parts: the part of each value, shape (|T|,), if the value of a record determines the group. With `parts`, no
            edge may join two parts, so the group of a record is not protected. By default the groups are chosen
            independently of the data, and any person may be in any group.

    Returns:
        Whether the releases compose in parallel, with the reason.

    Raises:
        InputError: `policy` is not a policy, or `parts` has the wrong length.

    >>> from mechdesign.tables import Domain
    >>> domain = Domain({"age": range(4)})
    >>> parallel_composition(Policy.threshold(domain, 1), parts=[0, 0, 1, 1]).edge
    (1, 2)
    """
    graph = as_policy(policy).secret_graph
    labels = None if parts is None else np.append(block_numbers(policy.domain, parts, "parts"), -1)
    if labels is not None and (edge := graph.crossing(labels[:-1])) is not None:
        return ParallelComposition(
            False, "A record may move from one part to another, and this changes both parts.", None, edge
        )
    kinds, counted = kinds_of(policy.constraints, graph.size, null=graph.has_null)
    joined = graph.joined(kinds[: graph.size])
    critical = counted[kinds[joined[:, 0]]] != counted[kinds[joined[:, 1]]]
    for index in np.flatnonzero(critical.any(axis=0)).tolist():
        x, y = joined[np.argmax(critical[:, index])].tolist()
        where = "groups" if labels is None else "parts"
        reason = (
            f"A record in one of the {where} may change the count of constraints[{index}], "
            "and a record in another one may restore it."
        )
        return ParallelComposition(False, reason, index, (x, y))
    if not policy.constraints:
        return ParallelComposition(True, "Two neighbouring databases differ in a single record.")
    return ParallelComposition(True, "No move along an edge changes a publicly known count.")


@dataclass(frozen=True)
class LedgerPart:
    """A ledger, created by `part_of`, for releases about one of several disjoint groups of people.

    Attributes:
        ledger: the ledger for all groups.
        division: the name of the division into groups.
        part: the name of the group.
        policy: the name of the policy whose releases compose in parallel. Releases under other policies are refused.
        by_value: whether the value of a record determines its group, so that several records of one person may be in
            several groups.

    >>> import mechdesign as md
    >>> policy = Policy.full(md.tables.Domain({"age": range(100)}))
    >>> north = part_of(md.Ledger(epsilon=1), policy, "clinics", part="north")
    >>> north.division, north.part
    ('clinics', 'north')
    """

    ledger: Ledger
    division: str
    part: str
    policy: str
    by_value: bool = False

    @property
    def series(self) -> LedgerSeries | None:
        """Return the series of the ledger, which plans budgets for this group; None without a series."""
        part = self.division, self.part
        return None if self.ledger.series is None else LedgerSeries(self.ledger, part)

    def promises(self, entry: Entry) -> tuple[str, ...]:
        """Return the sentences of `mechdesign.Ledger.promises`.

        Args:
            entry: an entry of the ledger.

        Returns:
            The sentences; empty without a series.
        """
        return self.ledger.promises(entry)

    def spend(
        self,
        what: str,
        protects: str,
        epsilon: Any = None,
        rho: Any = None,
        *,
        policy: str | None = None,
        **exact: Any,
    ) -> Entry:
        """Record the spending of a release about this group.

        Args:
            what: the released quantity, in words.
            protects: the definition of neighbouring databases, in words.
            epsilon: the ε that is spent, or None.
            rho: the ρ that is spent, or None.
            policy: the name of the release's policy; by default the policy of this ledger.
            **exact: further keywords of `mechdesign.Ledger.spend`.

        Returns:
            The entry in the ledger.

        Raises:
            InputError: The release is under another policy.
            BudgetExceededError: the ledger has too little budget left.
        """
        part = self._find_part(policy)
        return self.ledger.spend(what, protects, epsilon=epsilon, rho=rho, part=part, policy=self.policy, **exact)

    def check(self, what: str, protects: str, *costs: Any, policy: str | None = None, **exact: Any) -> None:
        """Raise the errors that `spend` would raise, without recording an entry.

        Args:
            what: the released quantity, in words.
            protects: the definition of neighbouring databases, in words.
            *costs: ε, or None and ρ, as in `spend`.
            policy: the name of the release's policy; by default the policy of this ledger.
            **exact: further keywords of `spend`.
        """
        self.ledger.check(what, protects, *costs, part=self._find_part(policy), policy=self.policy, **exact)

    def _find_part(self, policy: str | None) -> tuple[str, str]:
        """Return the names of the division and the group; raise `InputError` for a release under another policy."""
        if policy is not None and policy != self.policy:
            raise InputError(
                "ledger",
                "belongs to a group under another policy; only releases under that policy compose in parallel",
                value=policy,
                bound=self.policy,
                remedy="create a ledger of the group for this policy with part_of, or charge the ledger for all groups",
            )
        return self.division, self.part


def part_of(ledger: Ledger, policy: Policy, division: str, *, part: str, parts: ArrayLike | None = None) -> LedgerPart:
    """Return a ledger for releases about one group, if releases about all groups of the division compose in parallel.

    The caller guarantees that no person is in two groups of the division: all records of a person are in one group. A
    release that is charged to a group must use only the records of this group. If the value of a record determines the
    group, releases of tables with several rows of a person are refused: such rows may lie in several groups.

    >>> import mechdesign as md
    >>> ledger = md.Ledger(epsilon=1)
    >>> policy = md.tables.Policy.full(md.tables.Domain({"age": range(100)}))
    >>> for clinic in ("north", "south"):
    ...     part = part_of(ledger, policy, "clinics", part=clinic)
    ...     release = md.tables.Histogram().release([30, 41], policy, epsilon=1, ledger=part, rng=1)
    >>> ledger.spent.epsilon
    Fraction(1, 1)

    Args:
        ledger: a `mechdesign.Ledger`.
        policy: the policy of all these releases; a release under another policy is refused.
        division: the name of the division of the people into groups, such as "clinics".
        part: the name of the group, such as "north".
        parts: the group of each value, shape (|T|,), if the value of a record determines the group; see
            `parallel_composition`.

    Returns:
        The ledger for this group.

    Raises:
        InputError: The releases do not compose in parallel; the message contains the reason.
    """
    found = parallel_composition(policy, parts)
    if not found:
        raise InputError(
            "division",
            f"does not let budgets compose in parallel. {found.reason}",
            value=division,
            remedy="charge the ledger itself, where budgets add up",
        )
    return LedgerPart(ledger, division, part, name_policy(policy), parts is not None)
