"""The definition of neighbouring databases that a release uses, as a sentence for its files and reports."""

from __future__ import annotations

ALONE = "Neighbours are those of Definition 4.1 of Blowfish (He et al. 2014): one record changes along an edge."
"""The definition for policies without publicly known counts."""

KNOWN_COUNTS = (  # words: ok, because published files hold this text
    "Under known counts one record that changes must do so along an edge of the policy, and the others may change from "
    "any value to any other. All neighbours of Definition 4.1 of Blowfish (He et al. 2014) are among these, as printed "
    "and where every changed record is asked to move along an edge."
)
"""The definition for policies with publicly known counts."""
