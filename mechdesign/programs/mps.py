"""Write a linear program in free MPS format, with every number to its last bit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import InputError
from mechdesign.programs.linear import LinearProgram
from mechdesign.base._arrays import Floats

__all__ = ["to_mps"]


def to_mps(program: LinearProgram, comments: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of the program, a minimisation, in free MPS format; `comments` come first.

    Rows and columns are called after their blocks: ``privacy_17`` is row 17 of block ``privacy``. Numbers are
    written with 17 significant digits, so that reading the file gives the same program to the bit. Two kinds of rows
    come back in another form: readers drop a row without bounds, and the rare row whose two bounds no single range
    can express exactly is written twice, the second time with the suffix ``_upper``. Sections without entries are left
    out: some readers stop at them.

    Raises InputError when two blocks have the same name but for their spaces.
    """
    row_names = _names(program.row_blocks)
    column_names = _names(program.column_blocks)
    equal = program.row_lower == program.row_upper
    below, above = np.isfinite(program.row_lower), np.isfinite(program.row_upper)
    kinds = np.select([equal, below, above], ["E", "G", "L"], "N")
    # A range R means [right, right + R] in a G row and [right - R, right] in an L row.
    right = np.where(below, program.row_lower, program.row_upper)
    ranges: dict[int, float] = {}
    twice: dict[int, str] = {}
    for row in np.flatnonzero(below & above & ~equal).tolist():
        kind, ranges[row] = _range(float(program.row_lower[row]), float(program.row_upper[row]))
        if kind == "L":
            kinds[row], right[row] = kind, program.row_upper[row]
        elif not kind:
            del ranges[row]
            twice[row] = f"{row_names[row]}_upper"
    yield from (f"* {line}\n" for line in comments)
    yield f"NAME {'_'.join(program.name.split()) or 'program'}\n"
    yield "ROWS\n"
    yield " N objective\n"
    for name, kind in zip(row_names, kinds, strict=True):
        yield f" {kind} {name}\n"
    for name in twice.values():
        yield f" L {name}\n"
    yield "COLUMNS\n"
    by_column = program.matrix.tocsc()
    for column, name in enumerate(column_names):
        entries = slice(by_column.indptr[column], by_column.indptr[column + 1])
        if program.cost[column] or entries.start == entries.stop:
            yield f" {name} objective {program.cost[column]:.17g}\n"
        for row, value in zip(by_column.indices[entries], by_column.data[entries], strict=True):
            yield f" {name} {row_names[row]} {value:.17g}\n"
            if row in twice:
                yield f" {name} {twice[row]} {value:.17g}\n"
    yield from _section("RHS", _right_sides(program, row_names, kinds, right, twice))
    yield from _section("RANGES", (f" range {row_names[row]} {width:.17g}\n" for row, width in ranges.items()))
    yield from _section("BOUNDS", _bounds(program, column_names))
    yield "ENDATA\n"


def _section(name: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield a section, nothing where it has no lines."""
    first = next(lines, None)
    if first is not None:
        yield f"{name}\n"
        yield first
        yield from lines


def _right_sides(
    program: LinearProgram, names: Sequence[str], kinds: NDArray[np.str_], right: Floats, twice: Mapping[int, str]
) -> Iterator[str]:
    for row in np.flatnonzero((kinds != "N") & (right != 0)).tolist():
        yield f" rhs {names[row]} {right[row]:.17g}\n"
    for row, name in twice.items():
        yield f" rhs {name} {program.row_upper[row]:.17g}\n"


def _bounds(program: LinearProgram, names: Sequence[str]) -> Iterator[str]:
    for column, name in enumerate(names):
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


def _range(low: float, high: float) -> tuple[str, float]:
    """Find the kind of row and the range that give a reader exactly these bounds; no kind if none do."""
    width = high - low
    for kind in ("G", "L"):
        for candidate in (width, math.nextafter(width, math.inf), math.nextafter(width, 0.0)):
            if (low + candidate == high) if kind == "G" else (high - candidate == low):
                return kind, candidate
    return "", 0.0


def _names(blocks: Mapping[str, slice]) -> list[str]:
    names = ["_".join(block.split()) for block in blocks]
    if len(set(names)) < len(names):
        raise InputError("blocks", "have names that differ in spaces only", value=list(blocks))
    return [
        f"{name}_{i}" for name, part in zip(names, blocks.values(), strict=True) for i in range(part.stop - part.start)
    ]
