"""The definition of neighbouring databases that a release uses, as a sentence for its files and reports."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

ALONE = "Neighbours are those of Definition 4.1 of Blowfish (He et al. 2014): one record changes along an edge."
"""The definition for policies without publicly known counts."""

KNOWN_COUNTS = (  # words: ok, because published files hold this text
    "Under known counts one record that changes must do so along an edge of the policy, and the others may change from "
    "any value to any other. All neighbours of Definition 4.1 of Blowfish (He et al. 2014) are among these, as printed "
    "and where every changed record is asked to move along an edge."
)
"""The definition for policies with publicly known counts."""

EARLIER = (
    "Unsound: under known counts every record that changes was asked to do so along an edge of the policy. "
    "Definition 4.1 of Blowfish (He et al. 2014) has neighbours that these leave out, and the noise may be too small "
    "for them, or none. Take what the policy protects as published."  # words: ok, because files are recognised by it
)
"""The definition in files of version 1, if counts are publicly known and the policy is not complete."""

_CHANGE = re.compile(
    r"agree with (?:the|all \d+) publicly known counts?, .*every record that differs changes (.*), and no"
)
_ANY = "from any value to any other"
_ABSENT = "from any value to being absent"
_ONE_BLOCK = "from one value to another in the same block of a partition into 1"
_ONE_ATTRIBUTE = "from one value to another that differs from it in exactly one attribute"
_EDGES = re.compile(r"from one value to another that the given graph joins to it \((\d+) edges?\)")
_NEXT = re.compile("from one value of .* to the next or the previous one")
_VALUES = re.compile(r"(?:on|×) ([\d,]+) values? of ")


def definition_of_version_1(neighbours: str, policy: str) -> str:
    """Infer which definition of neighbours a release of file version 1 used, from the sentences in its file.

    All readings of the definition agree for a complete policy. A complete policy joins every two values and, if records
    may be absent, also every value to absence. A threshold that spans the whole domain is not recognised as complete,
    because the file contains only sentences.

    Args:
        neighbours: the sentence that defines neighbouring databases.
        policy: the policy in words, including the number of values.

    Returns:
        `ALONE`, `KNOWN_COUNTS` or `EARLIER`.
    """
    named = _CHANGE.search(neighbours)
    if named is None:
        return ALONE
    sizes = [int(number.replace(",", "")) for number in _VALUES.findall(policy)]
    parts = named[1].split(", or ")
    complete = any(_joins_all(part, sizes) for part in parts)
    bounded = "the same number of records" in neighbours
    return KNOWN_COUNTS if complete and (bounded or _ABSENT in parts) else EARLIER


def _joins_all(change: str, sizes: Sequence[int]) -> bool:
    """Return whether a graph is complete, given the phrase that describes the changes along its edges."""
    size = math.prod(sizes)
    if (edges := _EDGES.fullmatch(change)) is not None:
        return int(edges[1]) == size * (size - 1) // 2
    if change == _ONE_ATTRIBUTE:
        return sum(number > 1 for number in sizes) == 1
    return change in (_ANY, _ONE_BLOCK) or (size == 2 and _NEXT.fullmatch(change) is not None)
