"""Outlines as paths in the box of a map."""

from __future__ import annotations

import numpy as np

from mechdesign.data._maps import Outline
from mechdesign.report.frame import plane_of
from mechdesign.report.views import WIDTH
from mechdesign.report.views import View
from mechdesign.base._arrays import Floats

__all__ = ["outline_path"]


_MOST_POINTS = 12_000


def outline_path(outline: Outline | None, view: View) -> str:
    """Return the path of an outline in the box of a map: empty where there is no map, or nothing of it is there.

    Degrees are projected as those of the domain; without degrees, the numbers are x and y. Points closer together than
    the eye can see are left out, and more of them the more there are.
    """
    if outline is None or view.domain is None or not view.is_map:
        return ""
    lines = [view.onto(plane_of(view.domain, line)) for line in outline.lines]
    lines = [part for line in lines for part in _seen(line, view.height)]
    apart = 1.5
    while sum(map(len, thinned := [_thinned(line, apart) for line in lines])) > _MOST_POINTS:
        apart *= 1.5
    return "".join(_path(line) for line in thinned)


def _seen(line: Floats, height: float) -> list[Floats]:
    """Return the parts of a line of which an end of each segment, or what is between, may be in the box."""
    box = np.array([WIDTH, height])
    low, high = np.minimum(line[1:], line[:-1]), np.maximum(line[1:], line[:-1])
    near = ((high >= 0) & (low <= box)).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate(([False], near, [False])).astype(np.int8)))
    return [line[start : end + 1] for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def _thinned(line: Floats, apart: float) -> Floats:
    kept = [0]
    for index in range(1, len(line) - 1):
        if np.abs(line[index] - line[kept[-1]]).max() >= apart:
            kept.append(index)
    return line[[*kept, len(line) - 1]]


def _path(line: Floats) -> str:
    # Far corners need not be exact: they are outside the box.
    points = np.rint(np.clip(line, -20 * WIDTH, 20 * WIDTH)).astype(np.int64)
    x, y = points[0].tolist()
    return f"M{x} {y}l" + " ".join(f"{dx} {dy}" for dx, dy in np.diff(points, axis=0).tolist())
