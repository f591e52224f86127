"""Releases without noise beside others: what an exact answer would tell apart that another policy protects.

An exact answer keeps an edge of a policy if and only if the columns of its two values are equal. On one domain it may
therefore stand beside a release under another policy where no class of its answers divides a component of that policy.
Pairs of releases are enough: an edge is kept by all of them together where it is kept by each.
"""

from __future__ import annotations

from collections.abc import Iterable

from mechdesign.base._errors import ExactReleaseError
from mechdesign.leakage._ledger_file import Entry
from mechdesign.leakage._partition import Partition


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
            if (reason := _doubt(exact, other)) is None:
                assert other.components is not None
                if exact.classes.splits(other.components):
                    raise ExactReleaseError(_refusal(entry, old, exact))
            elif not _may_be_in_doubt(entry, exact, other):
                raise ExactReleaseError(_doubtful(entry, old, reason))


def _are_apart(one: Entry, other: Entry) -> bool:
    """Return whether two entries are about different parts of one division, and thus about different people."""
    return one.part is not None and other.part is not None and one.part[0] == other.part[0] and one.part != other.part


def _doubt(exact: Entry, other: Entry) -> str | None:
    """Return why it cannot be decided whether exact answers tell apart what the policy of the other protects, or None.

    The components of a policy with known counts say too little of it: several records change at once there.
    """
    for each in (exact, other):
        if each.domain is None:
            return f"the entry of {_named(each)} does not say of which values it is"
    if exact.domain != other.domain:
        return "their domains differ"
    for each in (exact, other):
        if each.components is None:
            return f"{_named(each)} is under known counts, or its values are too many to be compared"
    assert exact.classes is not None
    assert other.components is not None
    if len(exact.classes) != len(other.components):
        return f"it is not known which values {_named(exact)} tells apart"
    return None


def _may_be_in_doubt(entry: Entry, exact: Entry, other: Entry) -> bool:
    """Tell whether a release that cannot be compared with another is not refused: a noisy one.

    The number of records is the one exact answer that tells no two values apart. Noisy releases that give it stay noisy
    ones; and no policy minds it under which nobody can be absent.
    """
    if entry.classes is None:
        return True
    counts_records = _joins_values(entry.classes) and (entry is exact or entry.epsilon != 0)
    nobody_absent = other.components is not None and _keeps_absence_apart(other.components)
    return counts_records and (entry.epsilon != 0 or nobody_absent)


def _joins_values(classes: Partition) -> bool:
    """Return whether all values except absence are in one class."""
    nodes = len(classes)
    return nodes > 1 and classes in (Partition.of_lengths([nodes]), Partition.of_lengths([nodes - 1, 1]))


def _keeps_absence_apart(components: Partition) -> bool:
    """Return whether absence, the last value, is alone in its component."""
    first, lengths, steps = components.runs.T
    ends = first + steps * (lengths - 1)
    alone = lengths[-1] == 1 or steps[-1] == 1
    return bool(alone and ends[-1] == components.count - 1 and (ends[:-1] < ends[-1]).all())


_REMEDY = (
    "Leave one of them out, ask under one policy for both, or insist (together=True in Python, --together on the "
    "command line), which the entry records"
)


def _refusal(entry: Entry, old: Entry, exact: Entry) -> str:
    which, other = ("new", "earlier") if exact is entry else ("earlier", "new")
    return (
        f"{_named(entry)} was not released beside {_named(old)} of {old.when}: the {which} release is exact, and tells "
        f"apart values that the policy of the {other} one protects. {_REMEDY}"
    )


def _doubtful(entry: Entry, old: Entry, reason: str) -> str:
    return (
        f"{_named(entry)} was not released beside {_named(old)} of {old.when}: whether what is exact tells apart what "
        f"the policy of the other one protects cannot be decided, because {reason}. {_REMEDY}"
    )


def _named(entry: Entry) -> str:
    return f'"{entry.what}" ({entry.policy or entry.protects})'
