"""The interior-point method for block programs (`mechdesign.solve._blocks`) as a back end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._contract import Options

if TYPE_CHECKING:
    from mechdesign.solve._block_angular import BlockSolution
    from mechdesign.solve._blocks.symmetry import Symmetry


class BlockBackEnd(Protocol):
    """A solver of block programs: a function that is imported on first use.

    >>> from mechdesign.solve._solve import block_back_end
    >>> callable(block_back_end("block"))
    True
    """

    def __call__(
        self,
        program: BlockProgram,
        options: Options | None = None,
        *,
        gap: float = ...,
        symmetry: Symmetry | None = None,
    ) -> BlockSolution:
        """Solve `program` to the relative gap `gap`, and use its symmetries if they are given."""


def back_end() -> BlockBackEnd:
    """Return the interior-point method."""
    from mechdesign.solve._blocks.column_generation import solve_block_program

    return solve_block_program
