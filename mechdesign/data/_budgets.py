"""Budgets, weights and cost curves from files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Floats, as_budgets
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError, Shown
from mechdesign.base._files import write_output
from mechdesign.certify._exact import exact, nearest
from mechdesign.data._layout import cell, mark_of, withholding
from mechdesign.data._text import columns_text, numbers_in, read_columns, read_rows

_HEADER = ["step", "epsilon"]


def write_budgets(path: str | PathLike[str], epsilons: ArrayLike) -> None:
    """Write budgets, shape (T,), in nats, as CSV with the columns step (from 0) and epsilon.

    Numbers are the shortest decimals that read back as the same floats. A file is replaced as a whole or not at all:
    raises `ExportError` when it cannot be written, and `InputError` for wrong budgets.
    """
    lines = [",".join(_HEADER)]
    lines += [f"{step},{epsilon!r}" for step, epsilon in enumerate(as_budgets(epsilons).tolist())]
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets back, in nats, shape (T,); raise `InputError` naming the line that is wrong."""
    return np.array([nearest(epsilon) for epsilon in read_exact_budgets(path)])


def read_exact_budgets(path: str | PathLike[str]) -> tuple[Fraction, ...]:
    """Read the budget of each release as the decimal that stands in the file; raise `InputError` naming the line."""
    path = as_path(path, "path")
    source = Path(path)
    budgets: list[Fraction] = []
    rows = read_rows(source, suits=_is_budget_header)
    _, header = next(rows, (0, None))
    if header is None or not _is_budget_header(header):
        shown = None if header is None else Shown(columns_text(header, _HEADER))
        raise InputError(str(source), "has the wrong header", value=shown, bound=",".join(_HEADER))
    lines = list(rows)
    mark = mark_of([row[-1] for _, row in lines], f"{source}, column epsilon")
    for line, row in lines:
        budgets.append(_budget([*row[:-1], mark.plain(row[-1])], len(budgets), f"{source}, line {line}"))
    if not budgets:
        raise InputError(str(source), "holds no budgets", bound="at least one line after the header")
    return tuple(budgets)


def _is_budget_header(header: Sequence[str]) -> bool:
    return [name.strip() for name in header] == _HEADER


def _budget(row: Sequence[str], step: int, where: str) -> Fraction:
    if len(row) != len(_HEADER) or row[0].strip() != str(step):
        bound, remedy = f"step {step} and its epsilon", "steps count from 0, each once and in order"
        raise InputError(where, "is out of order", value=cell(row[0]), bound=bound, remedy=remedy)
    text, bound, where = row[1].strip(), "a finite number >= 0, in decimal digits", f"{where}, column epsilon"
    with withholding():
        # Ratios such as 1/3 are numbers elsewhere, but names of folders come of these.
        if "/" in text:
            raise InputError(where, "is not a number", value=text, bound=bound)
        budget = exact(text, where)
    if budget < 0:
        raise InputError(where, "is negative", value=cell(text), bound=bound)
    if math.isinf(nearest(budget)):
        raise InputError(where, "is out of range", value=cell(text), bound=bound)
    return budget


_ONE, _SEVERAL = ["epsilon", "cost"], ["step", "epsilon", "cost"]


def read_cost_curves(path: str | PathLike[str]) -> list[tuple[Floats, Floats]]:
    """Return the curves in a file as pairs (epsilons, costs): one, or one for each release.

    The columns are epsilon and cost for one curve, or step (from 0, in order), epsilon and cost. Raises `InputError`
    naming the line; that curves fall is checked where they are used.
    """
    source = Path(path)
    header = next((row for _, row in read_rows(source, suits=_is_cost_header)), None)
    if header is None or not _is_cost_header(header):
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


def _is_cost_header(header: list[str]) -> bool:
    return [name.strip() for name in header] in (_ONE, _SEVERAL)


@dataclass(frozen=True)
class Schedule:
    """The ε of each release in order of time, as the exact decimals of the file, in nats; 0 where it is left out.

    Leaving a release out is not to make it: a channel for ε = 0 would tell nothing, and cost as much.
    """

    epsilons: tuple[Fraction, ...]

    @property
    def distinct(self) -> tuple[Fraction, ...]:
        """Each positive ε once, in order of first use: one channel is designed for each."""
        return tuple(dict.fromkeys(epsilon for epsilon in self.epsilons if epsilon))

    @property
    def left_out(self) -> list[int]:
        """The releases that are not made, counted from 0."""
        return self.steps(Fraction(0))

    def steps(self, epsilon: Fraction) -> list[int]:
        """Return the releases that use `epsilon`, counted from 0."""
        return [step for step, used in enumerate(self.epsilons) if used == epsilon]
