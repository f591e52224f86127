"""Parts of a ledger: releases on disjoint groups of people that together cost the largest budget, not the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from mechdesign.leakage._ledger_file import Entry
from mechdesign.leakage.accounting import Ledger
from mechdesign.leakage._ledger_file import PolicyTotals
from mechdesign.blowfish.parallel import parallel_composition
from mechdesign.blowfish.policy_words import name_policy
from mechdesign.base._errors import InputError

if TYPE_CHECKING:
    from mechdesign.blowfish.policy import Policy

__all__ = ["LedgerPart", "part_of"]


def __dir__() -> list[str]:
    return sorted(__all__)


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

        Arguments are those of `mechdesign.leakage.accounting.Ledger.spend`. A release that names no policy is one under that of the part.
        """
        part = self._named(policy)
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
        part = self._named(policy)
        self.ledger.check(what, protects, epsilon=epsilon, rho=rho, part=part, policy=self.policy, **exact)

    def _named(self, policy: str | None) -> tuple[str, str]:
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


def part_of(ledger: Ledger, policy: Policy, division: str, part: str, parts: ArrayLike | None = None) -> LedgerPart:
    """Return a ledger for releases about one group of a division, if releases about its groups compose in parallel.

    Whoever names the division vouches that no person is in two of its groups, and that a release charged to a group
    uses the records of this group only.

    >>> import mechdesign as md
    >>> ledger = md.Ledger(epsilon=1)
    >>> policy = md.blowfish.Policy.full(md.blowfish.Domain({"age": range(100)}))
    >>> for clinic in ("north", "south"):
    ...     part = part_of(ledger, policy, "clinics", clinic)
    ...     release = md.blowfish.release_histogram([30, 41], policy, epsilon=1, ledger=part, rng=1)
    >>> ledger.spent.epsilon
    Fraction(1, 1)

    Args:
        ledger: a `mechdesign.leakage.accounting.Ledger`.
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
