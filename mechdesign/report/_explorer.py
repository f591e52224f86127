"""Data of maps for the script of a page: the places and names of members, and their numbers.

The maps are figures like all others; the script (`report.js`) finds them by the attributes that `panel_attributes`
returns.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats
from mechdesign.model._domain import Domain
from mechdesign.model._words import clip, percent, plain, short
from mechdesign.report import _maps as maps
from mechdesign.report._maps import LONGEST, extent
from mechdesign.report._scales import LEVELS, Scale, probability_scale

WIDTH = 1000.0
"""Width of the box of every map, in its own units."""

_BARS_HEIGHT = 360.0


@dataclass(frozen=True, eq=False)
class View:
    """Places of n members in a box of `WIDTH` × `height` with its origin in the upper left corner.

    Attributes:
        form: "grid", "points" or "bars".
        height: Height of the box. Maps keep their shape, and bars are stretched to any height.
        places: Centres of the members, shape (n, 2).
        widths: Widths of bars, or the largest diameter of points, shape (n,).
        cells: Numbers of columns and rows of a grid, or (0, 0).
        domain: The domain of the members.
    """

    form: str
    height: float
    places: Floats
    widths: Floats
    cells: tuple[int, int] = (0, 0)
    domain: Domain | None = None

    @property
    def size(self) -> int:
        """Return the number of members."""
        return len(self.places)

    def data(self) -> dict[str, Any]:
        """Return the places and names of members for the script of the page."""
        found: dict[str, Any] = {"form": self.form, "height": round(self.height, 2), "size": self.size}
        domain = self.domain
        numbered = domain is None or all(label == str(index) for index, label in enumerate(domain.labels))
        found["word"] = "cell " if domain is not None and domain.cells is not None else ""
        if domain is not None and not numbered:
            found["names"] = [clip(label, 60) for label in domain.labels]
        if self.form == "grid":
            found["cells"] = self.cells
        else:
            found["places"] = np.round(self.places, 1).tolist()
            found["widths"] = np.round(self.widths, 1).tolist() if self.form == "bars" else float(self.widths[0])
        if domain is not None and (degrees := domain.degrees) is not None:
            found["degrees"] = np.round(degrees, 5).tolist()
        elif domain is not None and domain.points.shape[1] in (1, 2):
            found["centres"] = [[float(f"{value:.6g}") for value in point] for point in domain.points.tolist()]
            found["unit"] = plain(domain.unit)
        return found


def view(domain: Domain | None, size: int) -> View:
    """Return the places of the members of a domain on a page; without a domain, `size` bars side by side."""
    if domain is not None and maps.is_map(domain):
        return _plane(domain)
    positions, widths = maps.bars(domain, size)
    margin = 0.6 * float(np.max(widths))
    low, span = float(positions.min()) - margin, float(np.ptp(positions)) + 2 * margin
    places = np.column_stack(((positions - low) / span * WIDTH, np.full(size, _BARS_HEIGHT)))
    return View("bars", _BARS_HEIGHT, places, widths / span * WIDTH, domain=domain)


# Longest name of a member on a picture [characters].
_LONGEST_NAME = 34


def name_of(domain: Domain | None, index: int) -> str:
    """Return the name of a member: its label or number, with "cell" before a number of a grid cell.

    >>> name_of(Domain.grid(2, 1, 2.0, 1.0), 1), name_of(Domain.from_labels(["a", "b"]), 1)
    ('cell 1', 'b')
    """
    if domain is None:
        return str(index)
    cell = "cell " if domain.cells is not None and domain.labels[index] == str(index) else ""
    return cell + clip(domain.labels[index], _LONGEST_NAME)


def _plane(domain: Domain) -> View:
    west, east, south, north = extent(domain)
    ratio = (north - south) / (east - west)
    height = WIDTH * (ratio if 1 / LONGEST <= ratio <= LONGEST else 0.4 if ratio < 1 else 1.5)
    form, cells = "points", (0, 0)
    if domain.cells is not None:
        form, cells = "grid", (domain.cells.columns, domain.cells.rows)
    diameters = np.full(domain.size, _diameter(domain.size, height))
    return View(form, height, _onto(domain, height, domain.points), diameters, cells, domain)


def _onto(domain: Domain, height: float, points: Floats) -> Floats:
    west, east, south, north = extent(domain)
    x, y = points.T
    return np.column_stack(((x - west) / (east - west) * WIDTH, (north - y) / (north - south) * height))


def _diameter(n: int, height: float) -> float:
    """Return the largest diameter of points: all together cover about a tenth of the picture, and each is visible."""
    return float(np.clip(2 * np.sqrt(0.1 * WIDTH * height / (np.pi * n)), 14, 70))


def panel_attributes(
    values: Floats, domain: Domain | None, shows: str, side: str, what: str, title: str = "", unit: str = "%"
) -> dict[str, str]:
    """Return the HTML attributes of an interactive map, with a description for screen readers.

    The script finds the values by the key `shows` (such as "prior", "error" or "row 17"), and the members by the key
    `side`. The phrase `what` describes the values.
    """
    most = int(np.argmax(values))
    name = plain(domain.labels[most]) if domain is not None else str(most)
    largest = percent(values[most]) if unit == "%" else short(float(values[most]))
    said = f"{title + ': ' if title else ''}{what}, {len(values)} values, the largest {largest} at {name}"
    hue = "p" if unit == "%" else "e"
    about = {"data-shows": shows, "data-side": side, "data-hue": hue}
    return {"role": "img", "tabindex": "0", "aria-label": plain(said), **about}


_MOST_ENTRIES = 260_000
# A number of three digits is stored as 1 + (digits − 100) + 900 · exponent; the exponent 0 means a factor of 10⁻². The
# code 0 stands for the number 0.
_DIGITS = 900


def encode_numbers(values: ArrayLike) -> str:
    """Return numbers in [0, 1], any shape, rounded to three digits, as a text: compressed 16-bit integers in base64.

    >>> decode_numbers(encode_numbers([0.0, 1.0, 0.12345])).tolist()
    [0.0, 1.0, 0.123]
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    codes = np.zeros(len(numbers), dtype="<u2")
    positive = np.flatnonzero(numbers > 0)
    exponents = np.floor(np.log10(numbers[positive]))
    digits = np.rint(numbers[positive] * 10.0 ** (2 - exponents))
    # Correct the exponent by 1 if rounding or an inexact logarithm has led to more or fewer than three digits.
    exponents = exponents + (digits >= 1000) - (digits < 100)
    digits = np.rint(numbers[positive] * 10.0 ** (2 - exponents))
    codes[positive] = 1 + (digits - 100) + _DIGITS * -exponents
    return base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()


def decode_numbers(text: str) -> Floats:
    """Return the numbers in a text from `encode_numbers`, shape (k,)."""
    codes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u2").astype(np.float64)
    exponents, digits = np.divmod(codes - 1, _DIGITS)
    # The quotient of two integers is the float nearest to the decimal number.
    return np.where(codes > 0, (100 + digits) / 10.0 ** (2 + exponents), 0.0)


def beliefs(matrix: ArrayLike, prior: ArrayLike) -> Floats:
    """Return the mean posterior of an adversary, shape (n, n): row s is Σ_o p(o|s) Pr(t|o) for each secret t.

    The adversary knows the prior (n,) and the channel (n, m). Rows sum to 1; a secret that never occurs has belief 0.
    """
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    joint = channel * probabilities[:, None]
    total = joint.sum(axis=0)
    posterior = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    # An observable of probability 0 has no posterior; use the prior.
    posterior[:, total == 0] = probabilities[:, None]
    found: Floats = channel @ posterior.T
    return found


@dataclass(frozen=True, eq=False)
class ExplorerData:
    """Data of the interactive maps: each secret's row of the channel, and the adversary's mean belief."""

    secrets: View
    answers: View
    matrix: Floats
    prior: Floats
    beliefs: Floats
    first: int
    same: bool

    @property
    def scale(self) -> Scale:
        """Return the scale of all answers and all beliefs."""
        return probability_scale(np.concatenate((self.matrix.ravel(), self.beliefs.ravel())), "probability")

    def rows(self) -> tuple[list[int], bool]:
        """Return the likeliest secrets, whose rows fit on a page, and whether all secrets fit."""
        n, m = self.matrix.shape
        if n * m <= _MOST_ENTRIES:
            return list(range(n)), True
        most = max(1, _MOST_ENTRIES // (n + m))
        return sorted(np.argsort(-self.prior, kind="stable")[:most].tolist()), False


def collect_explorer_data(
    secrets: View, answers: View, matrix: ArrayLike, prior: ArrayLike, first: int, same: bool
) -> ExplorerData:
    """Return the data of a page's interactive maps; `same` means that observables are secrets."""
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    return ExplorerData(secrets, answers, channel, probabilities, beliefs(channel, probabilities), first, same)


def data_block(shown: ExplorerData, series: dict[str, tuple[ArrayLike, str]]) -> str:
    """Return the element with the data of a page; `series` has values and units (or "%") of other figures."""
    rows, whole = shown.rows()
    scale = shown.scale
    data: dict[str, Any] = {
        "secrets": shown.secrets.data(),
        "answers": None if shown.same else shown.answers.data(),
        "rows": rows,
        "channel": encode_numbers(shown.matrix[rows]),
        "beliefs": None if whole else encode_numbers(shown.beliefs[rows]),
        "prior": _round_numbers(shown.prior),
        "scale": {
            "levels": LEVELS,
            "log": scale.logarithmic,
            "low": float(scale.norm.vmin or 0.0),
            "top": float(scale.norm.vmax or 1.0),
        },
        "first": shown.first,
        "series": {name: {"values": _round_numbers(values), "unit": unit} for name, (values, unit) in series.items()},
    }
    return _block(data)


def _block(data: dict[str, Any]) -> str:
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Escape characters that could end the element or, in older JavaScript, a line.
    for sign in "<\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="data">{written}</script>'


def _round_numbers(values: ArrayLike) -> Sequence[float | None]:
    """Return numbers rounded to five digits, enough for the page; None replaces infinite numbers."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=np.float64)]
