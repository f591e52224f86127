"""The explorer of a report: for one secret at a time its answers, and what they let an adversary believe."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any

import numpy as np
from jinja2 import Template
from markupsafe import Markup
from numpy.typing import ArrayLike

from mechdesign.model._domain import Domain
from mechdesign.model._words import clip

# A page holds at most so many probabilities, in two bytes each: 65,535 is 1, each power of ten below it is 10,000 less,
# and 0 is 0. A probability is off by at most 0.012 %; those below a millionth are shown as "at most".
_MOST_PROBABILITIES, _LONGEST_NAME = 300_000, 34
# A map is to scale if its height is between these shares of its width.
_FLATTEST, _HIGHEST = 0.15, 1.5
_FOLDER = resources.files("mechdesign.report").joinpath("templates")
_SCRIPT, _FIGURE = (_FOLDER.joinpath(f"explorer.{suffix}").read_text(encoding="utf-8") for suffix in ("js", "html"))
POLICY = f"script-src 'sha256-{base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()}'"
"""The directive by which a page runs the script of the explorer, and no other."""


def explorer(secrets: Domain | None, answers: Domain | None, matrix: ArrayLike, prior: ArrayLike) -> Markup:
    """Return the explorer of a channel (n, m) and a prior (n,) as a figure, or no text if the channel is too large.

    The figure contains the probabilities of all answers that occur. It loads nothing.
    """
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    n, m = channel.shape
    used = np.flatnonzero(channel.any(axis=0))
    if n * used.size > _MOST_PROBABILITIES:
        return Markup("")
    same = answers is secrets if secrets is not None else answers is None and n == m
    shown = channel[:, used]
    steps = np.where(shown > 0, 65_535 + 10_000 * np.log10(np.maximum(shown, 3e-7)), 0).round().astype("<u2")
    data = {
        "prior": [float(f"{value:.6g}") for value in probabilities],
        "used": used.tolist(),
        "channel": base64.b64encode(steps.tobytes()).decode(),
        "panels": [{**_places(answers, m), "own": same}, {**_places(secrets, n), "own": True}],
    }
    written = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Markup(Template(_FIGURE, trim_blocks=True).render(data=written, script=_SCRIPT))


def _places(known: Domain | None, size: int) -> dict[str, Any]:
    """Return the names of members, and the middle and the sides of the box of each in a picture 1000 units wide."""
    domain = Domain.from_labels(map(str, range(size))) if known is None else known
    names, points, grid = [clip(label, _LONGEST_NAME) for label in domain.labels], domain.points, domain.cells
    if points.shape[1] in (1, 2):
        at, form = (points, ".4g") if domain.degrees is None else (domain.degrees, ".4f")
        names = [f"{name} ({', '.join(format(value, form) for value in at[i])})" for i, name in enumerate(names)]
    bars = points.shape[1] != 2 or (grid is not None and 1 in (grid.columns, grid.rows))
    if bars:
        points, side = np.column_stack((np.arange(size), np.zeros(size))), np.ones(2)
    elif grid is not None:
        side = np.array([grid.width / grid.columns, grid.height / grid.rows])
    else:
        side = np.full(2, 0.5 * (np.ptp(points, axis=0).max() or 1.0) / np.sqrt(size))
    width, length = np.ptp(points, axis=0) + side
    height = 360.0 if bars else 1000.0 * min(max(length / width, _FLATTEST), _HIGHEST)
    unit = np.array([1000 / width, height / length])
    x, y = ((points - points.min(axis=0) + side / 2) * unit).T
    boxes = np.column_stack((x, height - y, *np.tile(side * unit, (size, 1)).T)).round(1).tolist()
    return {"names": names, "bars": bars, "height": round(height), "boxes": boxes}
