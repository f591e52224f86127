"""Releases without noise beside others: what an exact answer would tell apart that another policy protects.

An exact answer keeps an edge of a policy if and only if the columns of its two values are equal. On one domain it may
therefore stand beside a release under another policy where no class of its answers divides a component of that policy.
Pairs of releases are enough: an edge is kept by all of them together where it is kept by each.
"""

from __future__ import annotations

from collections.abc import Iterable

from mechdesign.accounting.ledger_file import Entry
from mechdesign.errors import ExactReleaseError

__all__ = ["require_together"]


def __dir__() -> list[str]:
    return sorted(__all__)


def require_together(entry: Entry, earlier: Iterable[Entry]) -> None:
    """Raise `ExactReleaseError` where an entry and an earlier one are exact where the other's policy protects.

    Where that cannot be decided, an exact release is refused and a noisy one is not.
    """
    for old in earlier:
        if _are_apart(entry, old) or (entry.policy is not None and entry.policy == old.policy):
            continue
        for exact, other in ((entry, old), (old, entry)):
            if exact.classes is None:
                continue
            if _are_comparable(exact, other):
                assert other.components is not None
                if exact.classes.splits(other.components):
                    raise ExactReleaseError(_refusal(entry, old, exact, other))
            elif _tells_values_apart(entry):
                raise ExactReleaseError(_doubt(entry, old))


def _are_apart(one: Entry, other: Entry) -> bool:
    """Tell whether two entries are about different parts of one division, whose people are different ones."""
    return one.part is not None and other.part is not None and one.part[0] == other.part[0] and one.part != other.part


def _tells_values_apart(entry: Entry) -> bool:
    """Tell whether an entry is exact, and not in the number of records alone."""
    return entry.classes is not None and (entry.epsilon == 0 or entry.classes.count > 2)


def _are_comparable(exact: Entry, other: Entry) -> bool:
    return (
        exact.domain is not None
        and exact.domain == other.domain
        and exact.classes is not None
        and other.components is not None
        and len(exact.classes) == len(other.components)
    )


_REMEDY = (
    "Leave one of them out, ask under one policy for both, or insist (together=True in Python, --together on the "
    "command line), which the entry records"
)


def _refusal(entry: Entry, old: Entry, exact: Entry, other: Entry) -> str:
    return (
        f"{_named(entry)} was not released beside {_named(old)}: {exact.what}, which is exact, tells apart values that "
        f"the policy of {other.what} protects ({other.policy or other.protects}). {_REMEDY}"
    )


def _doubt(entry: Entry, old: Entry) -> str:
    return (
        f"{_named(entry)}, which is exact, was not released beside {_named(old)}: whether it tells apart what the "
        f"policy of the other protects cannot be decided. {_REMEDY}"
    )


def _named(entry: Entry) -> str:
    return f'"{entry.what}" ({entry.policy or entry.protects})'
