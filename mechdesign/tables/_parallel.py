"""Parallel composition, and parts of a ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._errors import InputError
from mechdesign.leakage._ledger_file import Entry, PolicyTotals
from mechdesign.leakage.accounting import Ledger
from mechdesign.tables._policies._cliques import block_numbers
from mechdesign.tables._policies._graphs import Edge
from mechdesign.tables._policies._known_counts import kinds_of
from mechdesign.tables._policy import Policy, as_policy, name_policy


@dataclass(frozen=True)
class ParallelComposition:
    """Whether ε-private releases on disjoint parts of a table are ε-private together.

    Attributes:
        allowed: whether they are, by Theorem 4.2 of Blowfish (He et al. 2014); if not, their budgets add up.
        reason: the reason, in a sentence.
        constraint: the constraint that stands in the way, or None.
        edge: an edge of the secret graph that shows it, or None.
    """

    allowed: bool
    reason: str
    constraint: int | None = None
    edge: Edge | None = None

    def __bool__(self) -> bool:
        return self.allowed


def parallel_composition(policy: Policy, parts: ArrayLike | None = None) -> ParallelComposition:
    """Decide whether releases on disjoint groups of people compose in parallel.

    One move changes one person's record, so releases on disjoint groups see the change once, unless publicly known
    counts tie moves in one group to moves in another. An edge is critical to a constraint if it changes its count. What
    it changes any other record may undo, in any group, whether or not an edge joins its values: releases compose in
    parallel only if no edge is critical to any constraint. (Theorem 4.3 asks less, critical edges in one group at most,
    and does not look at moves along pairs that are no edges.)

    Args:
        policy: the policy.
        parts: the part of each value, shape (|T|,), where a person's group is told by the value of the record; then no
            edge may lead from one part to another, so that the group is no secret. Unless given, the groups are chosen
            without looking at the data, and any person may be in any group.
    """
    graph = as_policy(policy).secret_graph
    labels = None if parts is None else np.append(block_numbers(policy.domain, parts, "parts"), -1)
    if labels is not None and (edge := graph.crossing(labels[:-1])) is not None:
        return ParallelComposition(False, "A record may move from one part to another, which changes both.", None, edge)
    kinds, counted = kinds_of(policy.constraints, graph.size, null=graph.has_null)
    joined = graph.joined(kinds[: graph.size])
    critical = counted[kinds[joined[:, 0]]] != counted[kinds[joined[:, 1]]]
    for index in np.flatnonzero(critical.any(axis=0)).tolist():
        x, y = joined[np.argmax(critical[:, index])].tolist()
        where = "groups" if labels is None else "parts"
        reason = f"People in different {where} may change the count of constraints[{index}] and restore it together."
        return ParallelComposition(False, reason, index, (x, y))
    if not policy.constraints:
        return ParallelComposition(True, "Two neighbouring databases differ in a single record.")
    return ParallelComposition(True, "No move along an edge changes a publicly known count.")


@dataclass(frozen=True)
class LedgerPart:
    """A ledger for releases about one of several disjoint groups; make one with `part_of`.

    Attributes:
        ledger: the ledger of the whole.
        division: the name of the division into groups.
        part: the name of the group.
        policy: the name of the policy whose releases compose in parallel; another one may tie the groups together.
    """

    ledger: Ledger
    division: str
    part: str
    policy: str

    @property
    def by_policy(self) -> tuple[PolicyTotals, ...]:
        """What was spent under each policy, in all groups."""
        return self.ledger.by_policy

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
        """Record what a release about this group spends; raise `InputError` for one under another policy.

        Arguments are those of `mechdesign.Ledger.spend`. A release that names no policy is one under
        that of the part.
        """
        part = self._find_part(policy)
        return self.ledger.spend(what, protects, epsilon=epsilon, rho=rho, part=part, policy=self.policy, **exact)

    def check(
        self,
        what: str,
        protects: str,
        epsilon: Any = None,
        rho: Any = None,
        *,
        policy: str | None = None,
        **exact: Any,
    ) -> None:
        """Raise what `spend` would raise of budget, process, policy and other releases, and record nothing."""
        part = self._find_part(policy)
        self.ledger.check(what, protects, epsilon=epsilon, rho=rho, part=part, policy=self.policy, **exact)

    def _find_part(self, policy: str | None) -> tuple[str, str]:
        """Return the division and the group, if a release under this policy may be charged to them."""
        if policy is not None and policy != self.policy:
            raise InputError(
                "ledger",
                "is that of a group under another policy, whose releases alone are known to compose in parallel",
                value=policy,
                bound=self.policy,
                remedy="make a ledger of the group for this policy by part_of, or charge the ledger of the whole",
            )
        return self.division, self.part


def part_of(ledger: Ledger, policy: Policy, division: str, *, part: str, parts: ArrayLike | None = None) -> LedgerPart:
    """Return a ledger for releases about one group of a division, if releases about its groups compose in parallel.

    Whoever names the division vouches that no person is in two of its groups, and that a release charged to a group
    uses the records of this group only.

    >>> import mechdesign as md
    >>> ledger = md.Ledger(epsilon=1)
    >>> policy = md.tables.Policy.full(md.tables.Domain({"age": range(100)}))
    >>> for clinic in ("north", "south"):
    ...     part = part_of(ledger, policy, "clinics", part=clinic)
    ...     release = md.tables.release_histogram([30, 41], policy, epsilon=1, ledger=part, rng=1)
    >>> ledger.spent.epsilon
    Fraction(1, 1)

    Args:
        ledger: a `mechdesign.Ledger`.
        policy: the policy of all these releases; a release under another one is refused.
        division: what divides the people, such as "clinics".
        part: the group, such as "north".
        parts: the group of each value, shape (|T|,), where the value of a record tells the group; see
            `parallel_composition`.

    Raises:
        InputError: `parallel_composition` does not allow it; the message says why.
    """
    found = parallel_composition(policy, parts)
    if not found:
        raise InputError(
            "division",
            f"does not let budgets compose in parallel. {found.reason}",
            value=division,
            remedy="charge the ledger itself, where budgets add up",
        )
    return LedgerPart(ledger, division, part, name_policy(policy))
