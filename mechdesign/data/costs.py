"""Files that say what releases cost: points of cost curves, and weights."""

from __future__ import annotations

from itertools import groupby
from os import PathLike
from pathlib import Path

from mechdesign.data.forms import cell
from mechdesign.data.text import columns_text
from mechdesign.data.text import numbers_in
from mechdesign.data.text import read_columns
from mechdesign.data.text import read_rows
from mechdesign.base._errors import InputError
from mechdesign.base._errors import Shown
from mechdesign.base._arrays import Floats

__all__ = ["read_cost_curves", "read_weights"]


_ONE, _SEVERAL = ["epsilon", "cost"], ["step", "epsilon", "cost"]


def read_cost_curves(path: str | PathLike[str]) -> list[tuple[Floats, Floats]]:
    """Return the curves in a file as pairs (epsilons, costs): one, or one for each release.

    The columns are epsilon and cost for one curve, or step (from 0, in order), epsilon and cost. Raises `InputError`
    naming the line; that curves fall is checked where they are used.
    """
    source = Path(path)
    header = next((row for _, row in read_rows(source, suits=_suits)), None)
    if header is None or not _suits(header):
        shown = None if header is None else Shown(columns_text(header, _SEVERAL))
        raise InputError(str(source), "has the wrong header", value=shown, bound="epsilon,cost or step,epsilon,cost")
    columns = read_columns(source, header)
    texts = dict(zip([name.strip() for name in header], columns.values(), strict=True))
    epsilons, costs = (numbers_in(texts[name], source, name) for name in _ONE)
    if "step" not in texts:
        return [(epsilons, costs)]
    curves = []
    steps = [text.strip() for text in texts["step"]]
    for step, (found, lines) in enumerate(groupby(range(len(steps)), key=lambda line: steps[line])):
        places = list(lines)
        if found != str(step):
            where = f"{source}, row {places[0] + 1}"
            raise InputError(where, "is out of order", value=cell(found), bound=f"step {step}")
        curves.append((epsilons[places], costs[places]))
    return curves


def read_weights(path: str | PathLike[str]) -> Floats:
    """Return the column ``weight`` of a file: how much each release counts, finite and not negative, shape (T,).

    Where a column ``step`` stands beside it, its numbers are those of the releases, from 0 on, in order.
    """
    source = Path(path)
    _, header = next(read_rows(source), (0, []))
    columns = read_columns(source, ["weight", *(["step"] if header.count("step") == 1 else [])])
    for row, step in enumerate(columns.get("step", ())):
        if step.strip() != str(row):
            raise InputError(f"{source}, row {row + 1}", "is out of order", value=cell(step), bound=f"step {row}")
    weights = numbers_in(columns["weight"], source, "weight")
    for row, weight in enumerate(weights.tolist(), 1):
        if not 0 <= weight < float("inf"):
            where = f"{source}, row {row}, column weight"
            raise InputError(
                where, "is no weight", value=cell(columns["weight"][row - 1]), bound="a finite number >= 0"
            )
    if not weights.any():
        raise InputError(f"{source}, column weight", "is zero in every row", bound="a weight above 0")
    return weights


def _suits(header: list[str]) -> bool:
    return [name.strip() for name in header] in (_ONE, _SEVERAL)
