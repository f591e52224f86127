"""The channel as a table of exact decimals."""

from __future__ import annotations

import csv
import io
from fractions import Fraction

import numpy as np
import pytest

from mechdesign.certify._bundle import exact_lines, lines


def test_decimals_are_the_numbers_themselves() -> None:
    for exponent in (1, 5, 62):
        one = 2**exponent
        numerators = np.array([[0, one], [one, 0], [1, one - 1], [one // 2, one // 2]])
        labels = ["a", 'with "quotes"', "with, comma", "two\nlines"]
        text = "".join(exact_lines(numerators, exponent, labels, ["x", "y"]))
        rows = list(csv.reader(io.StringIO(text)))
        assert rows[0] == ["secret", "x", "y"]
        assert [row[0] for row in rows[1:]] == labels
        for row, expected in zip(rows[1:], numerators.tolist(), strict=True):
            assert [Fraction(cell) for cell in row[1:]] == [Fraction(one_of, one) for one_of in expected]
            assert not any(cell.endswith("0") and "." in cell for cell in row[1:])
        assert rows[1][1:] == ["0", "1"]
        assert rows[4][1:] == ["0.5", "0.5"]


def test_every_row_needs_a_label() -> None:
    assert list(lines([["1"]], ["a"], ["b"])) == ["secret,b\n", "a,1\n"]
    with pytest.raises(ValueError, match="longer"):
        list(lines([["1"], ["2"]], ["a"], ["b"]))
