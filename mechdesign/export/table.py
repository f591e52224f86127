"""A channel as a table of text."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from mechdesign.model.channel import EXPONENT, Channel

__all__ = ["exact_csv", "names", "to_csv"]

# N / 2**62 = N · 5**62 / 10**62.
_FIVES = 5**EXPONENT


def exact_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as exact decimals."""
    return _table(channel, [[_exact_decimal(number) for number in row] for row in channel.numerators.tolist()])


def to_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as the nearest float64 numbers."""
    return _table(channel, [[repr(number) for number in row] for row in channel.matrix.tolist()])


def names(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of secrets and observables, which are their indices when the channel has none."""
    n, m = channel.numerators.shape
    return channel.secrets or tuple(map(str, range(n))), channel.observables or tuple(map(str, range(m)))


def _exact_decimal(numerator: int) -> str:
    if numerator == 1 << EXPONENT:
        return "1"
    return f"0.{numerator * _FIVES:0{EXPONENT}d}".rstrip("0").rstrip(".") if numerator else "0"


def _table(channel: Channel, rows: Sequence[Sequence[str]]) -> str:
    secrets, observables = names(channel)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["secret", *observables])
    writer.writerows([label, *row] for label, row in zip(secrets, rows, strict=True))
    return text.getvalue()
