"""Say which files hold what was counted in data: whoever gets them gets the counts."""

from __future__ import annotations

import numpy as np

from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem

HAND_ON = (
    "`mechdesign export DIR --without-prior -o OTHER` writes a folder without it. The channel in it still depends on "
    "the prior: only one from data of others hides it"
)
"""How a prior stays at home."""

COUNTED = (
    "The prior was counted in data: the folder is private. Its files and its report tell every count exactly to "
    "everyone who gets them. Notes, specification and digests of data tell whose counts they are"
)
"""What is said of a design whose prior was counted."""

_UNKNOWN = (
    "Where the prior comes from is not said. If it was counted in data, the folder is private: its files tell every "
    "count exactly to everyone who gets them"
)
WRITTEN = (
    "The prior is made of counts that the specification holds. If they were counted in data, the folder is private: "
    "its files tell every count exactly to everyone who gets them"
)
"""What is said of a design whose specification has counts in it."""

STEPS = (
    "The policy graph was made from steps in data: its edges, which the files hold, tell which steps were seen. They "
    "are private, and stay where the prior is left out"
)
"""What is said of a policy graph that was made from data."""


def private(problem: Problem, origin: Origin | None) -> tuple[str, ...]:
    """Return sentences, without a full stop, on what the files of a design tell of data, and to whom.

    A prior of unknown origin that is not uniform is taken to be one that may have been counted, as are counts that
    stand in the specification.
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
    """Return whether the prior was counted in data, or nobody says where it comes from."""
    return bool({COUNTED, _UNKNOWN} & set(private(problem, origin)))
