"""How large the program of a specification is, before anything is built for it."""

from __future__ import annotations

import numpy as np

from mechdesign.model._domain import Domain
from mechdesign.model._domain import Grid
from mechdesign.model._requirements._kinds import KINDS
from mechdesign.solve._blocks.layout import is_sparse
from mechdesign.solve._blocks.memory import Sparsity
from mechdesign.solve._blocks.memory import measure
from mechdesign.spec.document import Document
from mechdesign.synthesis._sizes import Size
from mechdesign.synthesis._sizes import most_symmetries

__all__ = ["specified_size"]

# Counts of real or simulated people have no symmetries; other priors may have some.
_COUNTED = ("checkins", "plt", "simulated")


def specified_size(document: Document, secrets: Domain, observables: Domain) -> Size | None:
    """Return the size of the program, or None where requirements may leave secrets in sets of their own.

    A distance between all secrets ties them together; steps of a graph, thresholds and distances from files may not,
    and the possible secrets of a policy are some of all.
    """
    kinds = [(KINDS.get(str(raw.get("kind"))), isinstance(raw.get("distance"), str)) for raw in document.privacy]
    other = set(document.policy) - {"isolated"}
    if other or not any(kind is not None and kind.joins_all and named for kind, named in kinds):
        return None
    floors = sum(kind is not None and kind.floors for kind, _ in kinds)
    cells = secrets.cells
    sparsity = None
    if cells is not None and not floors and all(raw.get("distance") == "manhattan" for raw in document.privacy):
        sparsity = _of_neighbours(cells)
    worst = document.cost.get("objective") == "worst"
    # The worst cost has the symmetries of the map, whatever the prior.
    counted = not (worst and not floors) and any(name in document.prior for name in _COUNTED)
    most = 1 if counted else min(most_symmetries(secrets), secrets.size)
    return Size(secrets.size, observables.size, floors, most, cells is not None, worst=worst, sparsity=sparsity)


def _of_neighbours(cells: Grid) -> Sparsity | None:
    """Return the sparsity where bounds between neighbours imply all others, as under the Manhattan distance."""
    index = np.arange(cells.size).reshape(cells.rows, cells.columns)
    ends = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    pairs = np.hstack([np.stack([one.ravel(), other.ravel()]) for one, other in ends])
    sources, targets = np.hstack([pairs, pairs[::-1]])
    return measure(cells.size, sources, targets) if is_sparse(cells.size, sources.size, 0) else None
