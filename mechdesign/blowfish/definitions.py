"""Which definition of neighbours a release keeps to, in a sentence that its files and reports repeat."""

from __future__ import annotations

import re

__all__ = ["ALONE", "EARLIER", "KNOWN_COUNTS", "definition_of_version_1"]

ALONE = "Neighbours are those of Definition 4.1 of Blowfish (He et al. 2014): one record changes along an edge."
"""The definition where no count is publicly known."""

KNOWN_COUNTS = (
    "Under known counts one record that changes must do so along an edge of the policy, and the others may change from "
    "any value to any other. All neighbours of Definition 4.1 of Blowfish (He et al. 2014) are among these, as printed "
    "and where every changed record is asked to move along an edge."
)
"""The definition where counts are publicly known."""

EARLIER = (
    "Unsound: under known counts every record that changes was asked to do so along an edge of the policy. "
    "Definition 4.1 of Blowfish (He et al. 2014) has neighbours that these leave out, and the noise may be too small "
    "for them, or none. Take what the policy protects as published."
)
"""The definition of version 1 of the files where counts are publicly known, and the policy is not complete."""

_CHANGE = re.compile(
    r"agree with (?:the|all \d+) publicly known counts?, .*every record that differs changes (.*), and no"
)
_ANY = "from any value to any other"
_ABSENT = "from any value to being absent"
_ONE_BLOCK = "from one value to another in the same block of a partition into 1"


def definition_of_version_1(neighbours: str) -> str:
    """Return the definition that a release of file version 1 keeps to, read from its sentence on neighbours.

    Where the policy joins any value to any other, and to being absent where people may be, all readings of the
    definition are one. The sentence is all there is: it does not tell that a threshold reaches across its domain.
    """
    named = _CHANGE.search(neighbours)
    if named is None:
        return ALONE
    parts = named[1].split(", or ")
    complete = _ANY in parts or _ONE_BLOCK in parts
    bounded = "the same number of records" in neighbours
    return KNOWN_COUNTS if complete and (bounded or _ABSENT in parts) else EARLIER
