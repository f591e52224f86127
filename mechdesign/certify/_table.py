"""A channel as a table of text: labels in the first row and column, probabilities as decimals."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from mechdesign.base._arrays import Integers


def exact_lines(
    numerators: Integers, exponent: int, secrets: Sequence[str], observables: Sequence[str]
) -> Iterator[str]:
    """Yield the table of a channel line by line, with unchanged labels and N / 2**exponent as exact decimals."""
    # N / 2**k = N · 5**k / 10**k.
    one, fives = 1 << exponent, 5**exponent

    def decimal(numerator: int) -> str:
        if numerator in (0, one):
            return str(numerator // one)
        return f"0.{numerator * fives:0{exponent}d}".rstrip("0")

    return lines((map(decimal, row.tolist()) for row in numerators), secrets, observables)


def lines(rows: Iterable[Iterable[str]], secrets: Sequence[str], observables: Sequence[str]) -> Iterator[str]:
    """Yield a table line by line, with one row of entries for each of the `secrets`; labels are not changed."""
    yield _line(["secret", *observables])
    for label, row in zip(secrets, rows, strict=True):
        yield _line([label, *row])


def _line(cells: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
