"""Channels as text with labels, as ``channel.csv`` of an export has them: decimals, taken exactly as written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.certify._exact import exact
from mechdesign.data.forms import withholding
from mechdesign.data.text import read_rows
from mechdesign.base._errors import InputError

__all__ = ["has_labels", "read_labelled"]

_CORNER = "secret"


def has_labels(path: Path) -> bool:
    """Tell whether a text starts with the header of a channel with labels: ``secret``, then the observables."""
    try:
        with path.open("rb") as file:
            return file.read(len(_CORNER) + 4).lstrip(b"\xef\xbb\xbf").startswith(f"{_CORNER},".encode())
    except OSError:
        # Whoever reads the file says what is wrong with it.
        return False


def read_labelled(path: Path) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return the labels of the secrets, and p(o|s) as fractions, dtype object, shape (n, m)."""
    rows = read_rows(path, ",")
    _, header = next(rows)
    labels, values = [], []
    for line, (label, *texts) in rows:
        where = f"{path}, line {line}"
        if len(texts) != len(header) - 1:
            bound = f"{len(header)} as in the header"
            raise InputError(where, "has the wrong number of fields", value=len(texts) + 1, bound=bound)
        labels.append(label)
        with withholding():
            values.append([exact(text, f"{where}, column {place}") for place, text in enumerate(texts, 2)])
    if not values or len(header) < 2:
        raise InputError(str(path), "holds no channel", bound="a header line, and a line for each secret")
    matrix = np.empty((len(values), len(header) - 1), dtype=object)
    matrix[:] = values
    return tuple(labels), matrix
