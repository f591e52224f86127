"""Weights of the secrets in a file that an option names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from mechdesign.cli.console import say_note
from mechdesign.data._layout import withholding
from mechdesign.data._labels import read_matched
from mechdesign.data._text import number
from mechdesign.data._text import plain_numbers
from mechdesign.base._errors import InputError
from mechdesign.model._prior import Prior
from mechdesign.base._arrays import Floats

__all__ = ["label_option", "read_weights"]

label_option = click.option(
    "--label",
    metavar="COLUMN",
    help='Column of FILE.csv with the labels of the secrets, by which lines are matched; "" takes them in order. '
    "Unless it is given such a column is found.",
)
"""The option ``--label``: a column, "" for none, or None."""


def read_weights(path: Path, column: str, label: str | None, labels: Sequence[str]) -> Floats:
    """Return the probabilities that a file gives the secrets with these `labels`, and say how rows were matched."""
    with withholding():
        found = read_matched(path, [column], labels, label)
        texts = zip(found.rows, plain_numbers(found.columns[column], path, column), strict=True)
        weights = np.array([number(text, f"{path}, row {row}, column {column}") for row, text in texts])
        if len(weights) != len(labels):
            raise InputError(str(path), "has another number of lines", value=len(weights), bound=str(len(labels)))
        say_note(found.note)
        return Prior.from_counts(weights).probabilities
