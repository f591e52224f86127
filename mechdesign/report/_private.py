"""Warnings about files that contain counts of data: all who receive such files know the counts."""

from __future__ import annotations

import numpy as np

from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem

HAND_ON = (
    "`mechdesign export DIR --without-prior -o OTHER` writes a folder without the prior. The channel still depends on "
    "it: only a design with a prior from public data hides the counts"
)
"""Advice on a copy of a design without its prior."""

COUNTED = (
    "The prior was counted in data: the folder is private. The files and the report reveal every count exactly to "
    "everyone who receives them. Notes, specification and digests of data reveal whose counts they are"
)
"""Sentences about a design whose prior was counted in data."""

_UNKNOWN = (
    "The source of the prior is not known. If the prior was counted in data, the folder is private: its files "
    "reveal every count exactly to everyone who receives them"
)
WRITTEN = (
    "The prior is computed from counts in the specification. If these counts come from data, the folder is private: "
    "its files reveal every count exactly to everyone who receives them"
)
"""Sentences about a design whose specification contains counts."""

STEPS = (
    "The policy graph was made from steps in data: its edges, which the files contain, reveal the observed steps. "
    "The edges are private, and remain in the files even if the prior is left out"
)
"""Sentences about a policy graph that was made from data."""


def private(problem: Problem, origin: Origin | None) -> tuple[str, ...]:
    """Return sentences, without a full stop, on the private data that the files of a design reveal.

    If the source of a nonuniform prior is unknown, the prior may have been counted in data. Counts in the specification
    may also come from data.
    """
    counted = () if origin is None else origin.counted
    said = []
    priors = {path for path in counted if "prior" in path}
    if priors and all(path.endswith("counts") for path in priors):
        said.append(WRITTEN)
    elif priors:
        said.append(COUNTED)
    elif (origin is None or not origin.says_how) and np.ptp(problem.prior) > 1e-9 / len(problem.prior):
        said.append(_UNKNOWN)
    if origin is not None and tells_steps(origin):
        said.append(STEPS)
    return tuple(said)


def tells_steps(origin: Origin) -> bool:
    """Return whether a policy graph was made from steps in data."""
    return any("prior" not in path for path in origin.counted)


def holds_counts(problem: Problem, origin: Origin | None) -> bool:
    """Return whether the prior was counted in data, or has an unknown source."""
    return bool({COUNTED, _UNKNOWN} & set(private(problem, origin)))
