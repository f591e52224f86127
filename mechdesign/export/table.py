"""A channel as a table of text."""

from __future__ import annotations

from mechdesign.certify._table import exact_lines
from mechdesign.certify._table import lines
from mechdesign.certify._texts import to_cell
from mechdesign.model._channel import EXPONENT
from mechdesign.model._channel import Channel

__all__ = ["exact_csv", "names", "to_csv"]


def exact_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as exact decimals."""
    return "".join(exact_lines(channel.numerators, EXPONENT, *_cells(channel)))


def to_csv(channel: Channel) -> str:
    """Return the channel as text: labels in the first row and column, probabilities as the nearest float64 numbers."""
    return "".join(lines((map(repr, row) for row in channel.matrix.tolist()), *_cells(channel)))


def names(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the labels of secrets and observables, which are their indices when the channel has none."""
    n, m = channel.numerators.shape
    return channel.secrets or tuple(map(str, range(n))), channel.observables or tuple(map(str, range(m)))


def _cells(channel: Channel) -> tuple[tuple[str, ...], tuple[str, ...]]:
    secrets, observables = names(channel)
    return tuple(map(to_cell, secrets)), tuple(map(to_cell, observables))
