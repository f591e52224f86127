"""Find a channel with slack in every bound and floor, for secrets with different permitted answers.

If all answers are permitted, a channel that always gives the same distribution of answers has slack. If some answers
are forbidden, the bounds may be infeasible. If p(o|s) <= g p(o|t), a positive p(o|s) requires p(o|t) >= p(o|s)/g. For
one t, these minima may sum to more than 1. A linear program decides whether a channel with slack exists.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import InfeasibleError, SolverError, TimeLimitError
from mechdesign.solve import _solve as solvers
from mechdesign.solve._contract import Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._attempts import MAX_SIMPLEX_ROWS, choose_lazy_solver, choose_simplex_solver
from mechdesign.synthesis._normal import NormalForm
from mechdesign.synthesis._pairs import find_bounded_pairs
from mechdesign.synthesis._rows import RowInverse, RowReduction, list_permitted_rows

# Amount of a floor's slack that counts as one unit, as a share of the floor.
_UNIT_FLOOR_SHARE = 1 / 64
# Accuracy with which solvers meet rows. A problem is infeasible if its largest slack is below minus this accuracy.
_FEASIBILITY_TOLERANCE = 1e-8
# Shortest time limit of the linear program.
_MIN_TIME_LIMIT_S = 1.0


def find_interior_channel(form: NormalForm, deadline: Deadline | None = None) -> Floats:
    """Return the channel with the largest minimal slack in all bounds and floors.

    Args:
        form: Normal form with k groups and m observables.
        deadline: Deadline of the design.

    Returns:
        p(o|group), shape (k, m), 0 for forbidden answers.

    Raises:
        InfeasibleError: Every channel violates some bound or floor.
        TimeLimitError: No channel was found within the remaining time, or within one second if that is longer.
        SolverError: The solver fails.
    """
    triples = list_permitted_rows(find_bounded_pairs(form, "reduced"), form)
    program, inverse = RowReduction(triples).apply(form)
    solver = choose_simplex_solver() if program.rows <= MAX_SIMPLEX_ROWS else choose_lazy_solver()
    # Without an interior channel nothing can be certified, so the solver gets at least a minimal time.
    left = None if deadline is None else deadline.left()
    limit = None if left is None else max(left, _MIN_TIME_LIMIT_S)
    solution = solvers.solve(_maximise_slack(program, inverse), solver, Options(deadline=Deadline(limit)))
    if solution.status is Status.TIME_LIMIT and not solution.residuals.primal <= _FEASIBILITY_TOLERANCE:
        raise TimeLimitError(f"{solver} found no channel that gives only permitted answers within {limit:.3g} s")
    if not np.isfinite(solution.x).all():
        raise SolverError(f"{solver} found no channel with slack in all bounds: {solution.message}")
    room = float(solution.x[-1])
    if room < -_FEASIBILITY_TOLERANCE:
        what = "bounds and floors" if form.floors else "bounds"
        raise InfeasibleError(
            f"no channel that gives only permitted answers meets all {what}; a linear program shows that the best one "
            f"violates one of them by {-room:.2g} of its scale. Forbid fewer answers, or relax the requirements",
            "cost",
        )
    rows = np.where(form.forbidden, 0.0, np.clip(inverse.channel(solution.x[:-1]), 0.0, 1.0))
    found: Floats = rows / rows.sum(axis=1, keepdims=True)
    return found


def _maximise_slack(program: LinearProgram, inverse: RowInverse) -> LinearProgram:
    """Replace the objective by the common slack of all bounds and floors, for which a last column is added."""
    form = inverse.form
    widths = np.zeros(program.rows)
    # The unit of slack in a privacy row √g p(o|t) − p(o|s)/√g >= 0 is the slack of the uniform channel, up to a limit.
    widths[program.row_blocks["privacy"]] = np.minimum(inverse.roots - 1 / inverse.roots, 1.0) / form.observables
    for i in range(len(form.floors)):
        last = program.row_blocks[f"floor{i}"].stop - 1
        widths[last] = program.row_lower[last] * _UNIT_FLOOR_SHARE
    cost = np.zeros(program.columns + 1)
    cost[-1] = -1.0
    return replace(
        program,
        cost=cost,
        matrix=sparse.csr_array(sparse.hstack([program.matrix, sparse.csr_array(-widths[:, None])])),
        lower=np.append(program.lower, -np.inf),
        upper=np.append(program.upper, 1.0),
        column_blocks={**program.column_blocks, "room": slice(program.columns, program.columns + 1)},
    )
