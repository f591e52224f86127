"""The forward and the backward correlation that a specification describes, as files."""

from __future__ import annotations

import csv
import io

from mechdesign.data.tables import Raw
from mechdesign.errors import SpecificationError
from mechdesign.leakage.estimate import Correlations
from mechdesign.model.domain import Domain
from mechdesign.spec.chains import build_correlations
from mechdesign.spec.specification import Specification
from mechdesign.validation import Floats

__all__ = ["chain_files"]


def chain_files(
    given: Specification, every: str | None = None, gap: str | None = None, smoothing: float | None = None
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return ``forward.csv``, ``backward.csv`` and ``states.csv``, and notes about the data.

    The chain is that of ``[release]``, or is counted in the data of the prior; `every`, `gap` and `smoothing` count
    more than what stands there.
    """
    release = given.document.release
    path = "release.transition"
    raw: Raw = dict(release["transition"]) if "transition" in release else {"estimated": True}
    asked = {"every": every, "gap": gap, "smoothing": smoothing}
    raw |= {name: value for name, value in asked.items() if value is not None}
    domain = given.domain
    try:
        found, notes = build_correlations(raw, path, domain, given.folder, given.document.prior)
    except SpecificationError as error:
        if "transition" in release or error.path != f"{path}.estimated" or "prior" not in error.problem:
            raise
        raise SpecificationError(
            "prior", "comes from no data in order of time", remedy="add [release] with transition = { … }"
        ) from error
    files = {
        "forward.csv": _matrix(found.forward.matrix),
        "backward.csv": _matrix(found.backward.matrix),
        "states.csv": _states(found, domain),
    }
    left_out = domain.size - len(found.states)
    if left_out:
        notes += (f"{left_out} of {domain.size} states, which no step leaves or none reaches, are left out",)
    return files, notes


def _matrix(matrix: Floats) -> bytes:
    return "".join(",".join(map(repr, row)) + "\n" for row in matrix.tolist()).encode()


def _states(found: Correlations, domain: Domain) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    degrees = domain.coordinates
    rows.writerow(["row", "state", "label"] + (["latitude", "longitude"] if degrees is not None else []))
    for row, state in enumerate(found.states.tolist()):
        place = [] if degrees is None else [repr(value) for value in degrees[state].tolist()]
        rows.writerow([row, state, domain.labels[state], *place])
    return text.getvalue().encode()
