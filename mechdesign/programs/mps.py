"""Write a linear program in free MPS format, with every number to its last bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mechdesign.programs.linear import LinearProgram

__all__ = ["to_mps"]


def to_mps(program: LinearProgram) -> Iterator[str]:
    """Yield the lines of the program, a minimisation, in free MPS format.

    Rows and columns are called after their blocks: ``privacy_17`` is row 17 of block ``privacy``. Numbers are
    written with 17 significant digits, so that reading the file gives the same program to the bit.
    """
    row_names = _names(program.row_blocks)
    column_names = _names(program.column_blocks)
    equal = program.row_lower == program.row_upper
    below, above = np.isfinite(program.row_lower), np.isfinite(program.row_upper)
    kinds = np.select([equal, below, above], ["E", "G", "L"], "N")
    yield f"NAME {'_'.join(program.name.split()) or 'program'}\n"
    yield "ROWS\n"
    yield " N objective\n"
    for name, kind in zip(row_names, kinds, strict=True):
        yield f" {kind} {name}\n"
    yield "COLUMNS\n"
    by_column = program.matrix.tocsc()
    for column, name in enumerate(column_names):
        entries = slice(by_column.indptr[column], by_column.indptr[column + 1])
        if program.cost[column] or entries.start == entries.stop:
            yield f" {name} objective {program.cost[column]:.17g}\n"
        for row, value in zip(by_column.indices[entries], by_column.data[entries], strict=True):
            yield f" {name} {row_names[row]} {value:.17g}\n"
    yield "RHS\n"
    right = np.where(below, program.row_lower, program.row_upper)
    for row in np.flatnonzero((kinds != "N") & (right != 0)):
        yield f" rhs {row_names[row]} {right[row]:.17g}\n"
    yield "RANGES\n"
    for row in np.flatnonzero(below & above & ~equal):
        yield f" range {row_names[row]} {program.row_upper[row] - program.row_lower[row]:.17g}\n"
    yield "BOUNDS\n"
    for column, name in enumerate(column_names):
        low, high = program.lower[column], program.upper[column]
        if low == high:
            yield f" FX bound {name} {low:.17g}\n"
            continue
        if np.isneginf(low) and np.isposinf(high):
            yield f" FR bound {name}\n"
            continue
        if low != 0:
            yield f" MI bound {name}\n" if np.isneginf(low) else f" LO bound {name} {low:.17g}\n"
        if np.isfinite(high):
            yield f" UP bound {name} {high:.17g}\n"
    yield "ENDATA\n"


def _names(blocks: Mapping[str, slice]) -> list[str]:
    return [f"{'_'.join(block.split())}_{i}" for block, part in blocks.items() for i in range(part.stop - part.start)]
