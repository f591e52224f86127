"""Known counts that no table can have, found by an integer program and named."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import optimize

from mechdesign.blowfish.constraints import Constraint
from mechdesign.blowfish.constraints import kinds_of
from mechdesign.base._errors import InputError
from mechdesign.base._errors import SolverError
from mechdesign.base._arrays import Floats

__all__ = ["check_consistent", "contradictory"]

# Beyond, a count times a tolerance of the solver is no longer small.
_LARGEST_COUNT = 10**9


def check_consistent(constraints: Sequence[Constraint], size: int) -> None:
    """Raise `InputError` naming a smallest set of known counts that no table can have together."""
    guilty = contradictory(constraints, size)
    if not guilty:
        return
    shown = ", ".join(f"constraints[{index}] = {constraints[index].known}" for index in guilty)
    problem = "counts no value" if len(guilty) == 1 else "contradict each other: no table has all these counts"
    path = f"constraints[{guilty[0]}]" if len(guilty) == 1 else "constraints"
    raise InputError(path, problem, value=shown, remedy="correct or leave out one of them")


def contradictory(constraints: Sequence[Constraint], size: int) -> tuple[int, ...]:
    """Return a set of constraints whose known counts no table can have together, none of which can be left out.

    Decides whether there are whole numbers n_a >= 0 of records of each kind with Σ_a Q[q, a] n_a = count of q; a
    minimal set follows by leaving out one constraint after the other.

    Returns:
        The numbers of the constraints, in order; empty where the counts agree with some table.

    Raises:
        InputError: a known count beyond 10^9.
        SolverError: the integer program could not be solved.
    """
    known = [index for index, constraint in enumerate(constraints) if constraint.known is not None]
    for index in known:
        if constraints[index].known > _LARGEST_COUNT:  # type: ignore[operator]
            raise InputError(f"constraints[{index}]", "has too large a known count", value=constraints[index].known)
    if not known:
        return ()
    counted = kinds_of([constraints[index] for index in known], size)[1].T.astype(np.float64)
    answers = np.array([constraints[index].known for index in known], dtype=np.float64)
    if _possible(counted, answers):
        return ()
    kept = list(range(len(known)))
    for row in range(len(known)):
        without = [other for other in kept if other != row]
        if without and not _possible(counted[without], answers[without]):
            kept = without
    return tuple(known[row] for row in kept)


def _possible(counted: Floats, answers: Floats) -> bool:
    """Say whether some table has the counts; a yes is checked in whole numbers."""
    result = optimize.milp(
        np.zeros(counted.shape[1]),
        integrality=np.ones(counted.shape[1], dtype=np.int64),
        bounds=optimize.Bounds(0, float(answers.max())),
        constraints=optimize.LinearConstraint(counted, answers, answers),
    )
    # Values counted by no constraint are free, and bounded above by nothing that matters.
    if result.status == 2:
        return False
    if result.x is not None:
        records = np.rint(result.x).astype(np.int64)
        if (records >= 0).all() and (counted.astype(np.int64) @ records == answers.astype(np.int64)).all():
            return True
    raise SolverError(f"whether the known counts agree with any table could not be decided: {result.message}")
