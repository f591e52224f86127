"""How large the program of a specification is, before anything is built for it."""

from __future__ import annotations

from mechdesign.model.domain import Domain
from mechdesign.requirements.kinds import KINDS
from mechdesign.spec.document import Document
from mechdesign.synthesis.sizes import Size, most_symmetries

__all__ = ["specified_size"]

# Counts of real or simulated people have no symmetries; other priors may have some.
_COUNTED = ("checkins", "plt", "simulated")


def specified_size(document: Document, secrets: Domain, observables: Domain) -> Size | None:
    """Return the size of the program, or None where requirements may leave secrets in sets of their own.

    A distance between all secrets ties them together; steps of a graph, thresholds and distances from files may not,
    and the possible secrets of a policy are some of all.
    """
    kinds = [(KINDS.get(str(raw.get("kind"))), isinstance(raw.get("distance"), str)) for raw in document.privacy]
    if document.policy or not any(kind is not None and kind.joins_all and named for kind, named in kinds):
        return None
    floors = sum(kind is not None and kind.floors for kind, _ in kinds)
    cells = secrets.cells is not None
    most = 1 if any(name in document.prior for name in _COUNTED) else most_symmetries(secrets)
    return Size(secrets.size, observables.size, floors, min(most, secrets.size), cells)
