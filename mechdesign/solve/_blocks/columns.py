"""All columns of a program at once, or few at a time: whichever is faster."""

from __future__ import annotations

from dataclasses import replace

from mechdesign.base._errors import InputError, SolverError
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.generation import may_pay, solve_generated
from mechdesign.solve._blocks.solution import BlockSolution, combine
from mechdesign.solve._blocks.solve import solve_block
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._contract import Options, Status


def solve_columns(
    program: BlockProgram,
    options: Options | None = None,
    *,
    gap: float = 3e-7,
    symmetry: Symmetry | None = None,
) -> BlockSolution:
    """Solve `program` by `solve_block`, or by `solve_generated` where that is faster and there is no symmetry to use.

    ``options.extra["generation"]`` chooses between them: true, false, or absent. Where block generation ends short of
    the gap, all blocks at once follow if there is memory for them, and the better ends of both brackets count.
    """
    options = (options or Options()).begun()
    extra = dict(options.extra)
    asked = extra.pop("generation", None)
    if not (asked is None or isinstance(asked, bool)):
        raise InputError("options.extra.generation", "must be true or false", value=asked)
    options = replace(options, extra=extra)
    symmetric = symmetry is not None and symmetry.order > 1
    if asked is False or symmetric or not (asked or may_pay(program, options)):
        return solve_block(program, options, gap=gap, symmetry=symmetry)
    found = solve_generated(program, options, gap=gap, always=asked is True)
    if found is None:
        return solve_block(program, options, gap=gap)
    if found.status not in (Status.STALLED, Status.ITERATION_LIMIT):
        return found
    try:
        again = solve_block(program, options, gap=gap)
    except SolverError:
        # There is no room for all blocks.
        return found
    return combine(found, again)
