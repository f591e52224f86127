"""To which gaps programs are solved, one after the other, and which columns are merged into others there.

What columns keep at a gap tells which of them the optimum uses. Merged too late they make the path long, too early they
are missing in the end: the parts are as large as leaves those in that were needed on the city of the examples and the
check-ins, at 300 to 1,024 cells.
"""

from __future__ import annotations

from typing import TypeAlias

Stage: TypeAlias = tuple[float, float]
"""A relative gap, and the part of an even share of the mass below which a column is merged into another there."""

USUAL: tuple[Stage, ...] = ((0.03, 0.28), (0.01, 0.22), (3e-3, 0.1), (1e-3, 0.06), (1e-4, 0.02))
"""With 0.35 and 0.3 three columns of 20 × 20 cells were lost, and with less than here others stay for longer."""

TRIAL: tuple[Stage, ...] = ((0.03, 0.28), (0.01, 0.22), (3e-3, 0.0))
"""Those of the trial of a large program. The last one leaves what is to be judged as it is."""

FLOORLESS: tuple[Stage, ...] = ((0.4, 0.45), (0.15, 0.45), (0.03, 0.3))

SPARSE: tuple[Stage, ...] = (
    (0.3, 0.45), (0.1, 0.3), (0.03, 0.3), (0.01, 0.2), (3e-3, 0.1), (1e-3, 0.035), (1e-4, 0.02),
)  # fmt: skip
"""With 0.5, 0.35, … one of 62 columns of 400 road places was lost, and took another round."""

# Small programs have a third of the rows of the next one, and so many at least: a sixth misses columns that matter. The
# largest is solved to the gaps of its stages one after the other, those before it as far as to the gap `_ROUGH`.
_THIRD, _FEWEST, _ROUGH = 3, 50, 0.03
# From so many rows on they have a quarter, and the program itself is tried: what a quarter misses is found there. (With
# 24 × 24 cells a trial takes as long as it saves.) The gap asked for has to be this part of the trial's.
_LARGE, _QUARTER, _CLOSER = 800, 4, 0.3
_SMALL = (0.3, 0.2), (0.1, 0.2), (0.03, 0.2), (0.01, 0.1), (3e-3, 0.03)
# Of many rows small programs say more: with 24 × 24 cells all columns that were needed in the end had more than these
# parts.
_MANY, _SMALL_OF_MANY = 180, ((0.3, 0.2), (0.1, 0.3), (0.03, 0.3), (0.01, 0.14), (3e-3, 0.05))
# Those of programs that are tried merge more: what is lost there is found again, by what it costs beyond.
_SMALL_OF_TRIED = (0.3, 0.35), (0.1, 0.4), (0.03, 0.4), (0.01, 0.3), (3e-3, 0.1)
# Where the gap asked for is loose, columns that matter little may go: so many times the parts are merged.
_LOOSE, _CARELESS = 5e-3, 2.0


def tried(rows: int, gap: float) -> bool:
    """Tell whether a program with floors is large enough, and to be solved closely enough, to be tried first."""
    return rows >= _LARGE and gap <= _CLOSER * TRIAL[-1][0]


def small_sizes(rows: int) -> list[int]:
    """Return how many rows the small programs like one with so many have, the smallest first."""
    sizes: list[int] = []
    part = _QUARTER if rows >= _LARGE else _THIRD
    while (rows := rows // part) >= _FEWEST:
        sizes.append(rows)
    return sizes[::-1]


def of_small(rows: int, gap: float, *, last: bool, tried: bool) -> list[Stage]:
    """Return the stages of a small program with so many rows.

    Args:
        rows: how many it has.
        gap: the one asked for.
        last: whether it is the largest one.
        tried: whether the program that it is like is tried before it is solved.
    """
    usual = _SMALL_OF_TRIED if tried else _SMALL_OF_MANY if rows >= _MANY else _SMALL
    care, least = 1.0 if gap < _LOOSE else _CARELESS, gap if last else max(gap, _ROUGH)
    return [(level, care * empty) for level, empty in usual if level >= least]
