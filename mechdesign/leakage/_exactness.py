"""Checks of releases without noise: an exact answer must not distinguish values that another policy protects.

An exact answer preserves an edge of a policy if and only if the columns of its two values are equal. Therefore an exact
release is compatible with a policy on the same domain if each component of the policy lies in one class of answers.
Checking pairs of releases is enough: several releases preserve an edge if each of them does.
"""

from __future__ import annotations

from collections.abc import Iterable

from mechdesign.base._errors import ExactReleaseError
from mechdesign.leakage._entries import Entry, are_apart
from mechdesign.leakage._partition import Partition


def require_together(entry: Entry, earlier: Iterable[Entry]) -> None:
    """Raise `ExactReleaseError` if an exact entry distinguishes values that the policy of another entry protects.

    The new entry is compared with each earlier entry, in both directions. If a comparison is undecidable, an exact
    release is refused and a noisy release is allowed.
    """
    for old in earlier:
        if are_apart(entry.part, old.part) or (entry.policy is not None and entry.policy == old.policy):
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


def _doubt(exact: Entry, other: Entry) -> str | None:
    """Return the reason why the exact answers of one entry cannot be compared with another's policy, or None.

    Under known counts, the components of a policy are not sufficient, because several records change at once.
    """
    for each in (exact, other):
        if each.domain is None:
            return f"the entry of {_name(each)} does not name its domain"
    if exact.domain != other.domain:
        return "their domains differ"
    for each in (exact, other):
        if each.components is None:
            return f"{_name(each)} is under known counts, or its domain is too large to be compared"
    assert exact.classes is not None
    assert other.components is not None
    if len(exact.classes) != len(other.components):
        return f"the values that {_name(exact)} distinguishes are unknown"
    return None


def _may_be_in_doubt(entry: Entry, exact: Entry, other: Entry) -> bool:
    """Return whether a release is allowed although it cannot be compared with another release.

    Noisy releases are always allowed. The number of records is the only exact answer that does not distinguish any two
    values. This number is compatible with noisy releases, and with every policy under which nobody can be absent.
    """
    if entry.classes is None:
        return True
    counts_records = joins_values(entry.classes) and (entry is exact or entry.epsilon != 0)
    nobody_absent = other.components is not None and _keeps_absence_apart(other.components)
    return counts_records and (entry.epsilon != 0 or nobody_absent)


def joins_values(classes: Partition) -> bool:
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
    "Leave out one of them, or release both under one policy that protects what either of them protects. together=True "
    "in Python, or --together on the command line, releases it nevertheless; the entry records this"
)


def _refusal(entry: Entry, old: Entry, exact: Entry) -> str:
    which, other = ("new", "earlier") if exact is entry else ("earlier", "new")
    return (
        f"{_name(entry)} was not released: it conflicts with {_name(old)} of {old.when}. The {which} release is "
        f"exact and distinguishes values that the policy of the {other} release protects. {_REMEDY}"
    )


def _doubtful(entry: Entry, old: Entry, reason: str) -> str:
    return (
        f"{_name(entry)} was not released: it may conflict with {_name(old)} of {old.when}. An exact release must "
        f"not distinguish values that the other policy protects. This cannot be decided, because {reason}. {_REMEDY}"
    )


def _name(entry: Entry) -> str:
    return f'"{entry.what}" ({entry.policy or entry.protects})'
