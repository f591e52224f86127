"""One secret at a time: the data that the script of a page needs to show any secret, and the pictures it changes."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.report.charts import Panel
from mechdesign.report.charts import framed
from mechdesign.report.charts import key
from mechdesign.report.charts import panels
from mechdesign.report.scales import LEVELS
from mechdesign.report.scales import Scale
from mechdesign.report.scales import probability_scale
from mechdesign.report.views import View
from mechdesign.report.views import name_of
from mechdesign.base._arrays import Floats

__all__ = ["Explored", "beliefs", "data_block", "decoded", "encoded", "explore", "explorer", "series_block"]


_MOST_ENTRIES = 260_000
# A number of three digits is stored as 1 + (digits − 100) + 900 · exponent: 10⁻² is the exponent 0; zero is 0.
_DIGITS = 900


def encoded(values: ArrayLike) -> str:
    """Return numbers in [0, 1], any shape, rounded to three digits, as a text: 16 bits each, compressed, base64.

    >>> decoded(encoded([0.0, 1.0, 0.12345])).tolist()
    [0.0, 1.0, 0.123]
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    codes = np.zeros(len(numbers), dtype="<u2")
    positive = np.flatnonzero(numbers > 0)
    exponents = np.floor(np.log10(numbers[positive]))
    digits = np.rint(numbers[positive] * 10.0 ** (2 - exponents))
    # Rounding may lead to the next power of ten, and a logarithm to the one before.
    exponents = exponents + (digits >= 1000) - (digits < 100)
    digits = np.rint(numbers[positive] * 10.0 ** (2 - exponents))
    codes[positive] = 1 + (digits - 100) + _DIGITS * -exponents
    return base64.b64encode(zlib.compress(codes.tobytes(), 9)).decode()


def decoded(text: str) -> Floats:
    """Return the numbers in a text that `encoded` made, shape (k,)."""
    codes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u2").astype(np.float64)
    exponents, digits = np.divmod(codes - 1, _DIGITS)
    # A quotient of whole numbers is the nearest float.
    return np.where(codes > 0, (100 + digits) / 10.0 ** (2 + exponents), 0.0)


def beliefs(matrix: ArrayLike, prior: ArrayLike) -> Floats:
    """Return, shape (n, n), what an adversary on average believes: row s is Σ_o p(o|s) Pr(t|o) for each secret t.

    The adversary knows the prior (n,) and the channel (n, m). Rows sum to 1; a secret that never occurs is never
    believed in.
    """
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    joint = channel * probabilities[:, None]
    total = joint.sum(axis=0)
    posterior = np.divide(joint, total, out=np.zeros_like(joint), where=total > 0)
    # An observable of probability 0 says nothing: the belief stays the prior.
    posterior[:, total == 0] = probabilities[:, None]
    found: Floats = channel @ posterior.T
    return found


@dataclass(frozen=True, eq=False)
class Explored:
    """What can be shown for each secret: its row of the channel, and what an adversary then believes."""

    secrets: View
    answers: View
    matrix: Floats
    prior: Floats
    beliefs: Floats
    scale: Scale
    first: int
    same: bool

    def rows(self) -> tuple[list[int], bool]:
        """Return the secrets that a page has room for, the likeliest ones, and whether they are all."""
        n, m = self.matrix.shape
        if n * m <= _MOST_ENTRIES:
            return list(range(n)), True
        most = max(1, _MOST_ENTRIES // (n + m))
        return sorted(np.argsort(-self.prior, kind="stable")[:most].tolist()), False


def explore(secrets: View, answers: View, matrix: ArrayLike, prior: ArrayLike, first: int, same: bool) -> Explored:
    """Return what a page shows of each secret; `same` says that the answers are secrets."""
    channel, probabilities = np.asarray(matrix, dtype=np.float64), np.asarray(prior, dtype=np.float64)
    believed = beliefs(channel, probabilities)
    scale = probability_scale(np.concatenate((channel.ravel(), believed.ravel())), "probability")
    return Explored(secrets, answers, channel, probabilities, believed, scale, first, same)


def explorer(shown: Explored, outlines: tuple[str, str] = ("", "")) -> str:
    """Return the figure that the script of the page changes; without a script it shows the first secret."""
    domain = shown.secrets.domain
    name = name_of(domain, shown.first)
    pictures = [
        Panel(shown.answers, shown.matrix[shown.first], shown.scale, "probability of each answer", "Its answers",
              "answers", "secrets" if shown.same else "answers", shown.first if shown.same else None,
              outline=outlines[1]),
        Panel(shown.secrets, shown.beliefs[shown.first], shown.scale, "the adversary’s mean belief",
              "What it is mistaken for", "beliefs", "secrets", shown.first, outline=outlines[0]),
    ]  # fmt: skip
    chooser = (
        '<p class="chooser" hidden><label>Secret <select></select></label> '
        "<span>or choose one in any picture: click, or use the arrow keys and Enter.</span></p>"
    )
    zero = "never" if (shown.matrix == 0).any() or (shown.beliefs == 0).any() else ""
    bar = key(shown.scale, zero, shown.secrets.form == "points") if shown.answers.is_map or shown.secrets.is_map else ""
    some = "" if shown.rows()[1] else f" This page holds the {len(shown.rows()[0])} likeliest secrets."
    return framed(
        "secret",
        f"One secret at a time: {name}",
        [chooser, panels(pictures), bar],
        "Left: how likely each answer is for the chosen secret. Right: how much an adversary who knows the prior and "
        "the mechanism then believes in each secret, on average over these answers; the chosen one is marked." + some,
    )


def data_block(shown: Explored, series: dict[str, tuple[ArrayLike, str]]) -> str:
    """Return the element with the data of a page; `series` has values and their unit (or "%") for other pictures."""
    rows, whole = shown.rows()
    data: dict[str, Any] = {
        "secrets": shown.secrets.data(),
        "answers": None if shown.same else shown.answers.data(),
        "rows": rows,
        "channel": encoded(shown.matrix[rows]),
        "beliefs": None if whole else encoded(shown.beliefs[rows]),
        "prior": _numbers(shown.prior),
        "scale": {
            "levels": LEVELS,
            "log": shown.scale.logarithmic,
            "low": float(shown.scale.norm.vmin or 0.0),
            "top": float(shown.scale.norm.vmax or 1.0),
        },
        "first": shown.first,
        "series": {name: {"values": _numbers(values), "unit": unit} for name, (values, unit) in series.items()},
    }
    return _block(data)


def series_block(views: Mapping[str, View], series: Mapping[str, tuple[ArrayLike, str, str]]) -> str:
    """Return the data of a page whose pictures can be asked, and no more.

    `views` are by the `side` of the panels, `series` by what they show: values, their unit, and what they are called.
    """
    return _block({
        "views": {name: each.data() for name, each in views.items()},
        "series": {
            name: {"values": _numbers(values), "unit": unit, "said": said}
            for name, (values, unit, said) in series.items()
        },
    })  # fmt: skip


def _block(data: dict[str, Any]) -> str:
    written = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # No text in the data can end the element, nor, in older JavaScript, a line.
    for sign in "<\u2028\u2029":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return f'<script type="application/json" id="data">{written}</script>'


def _numbers(values: ArrayLike) -> Sequence[float | None]:
    """Return numbers rounded to five digits: enough for what is shown."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=np.float64)]
