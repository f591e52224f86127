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
    """Write budgets as CSV with the columns ``step`` (from 0) and ``epsilon``.

    Each number is the shortest decimal that is read as the same float. The file is replaced atomically.

    Args:
        path: File to write.
        epsilons: Budgets in nats, finite and ≥ 0, shape (T,).

    Raises:
        ExportError: The file cannot be written.
        InputError: A budget is out of range.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.5, 0.25])
    ...     print(Path(folder, "budgets.csv").read_text(), end="")
    step,epsilon
    0,0.5
    1,0.25
    """
    lines = [",".join(_HEADER)]
    lines += [f"{step},{epsilon!r}" for step, epsilon in enumerate(as_budgets(epsilons).tolist())]
    write_output(path, ["".join(f"{line}\n" for line in lines).encode()])


def read_budgets(path: str | PathLike[str]) -> Floats:
    """Read budgets from CSV with the columns ``step`` and ``epsilon``, as `write_budgets` writes them.

    Args:
        path: File to read.

    Returns:
        Budgets in nats, float64 of shape (T,).

    Raises:
        InputError: A line is malformed; the message names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.5, 0.25])
    ...     read_budgets(f"{folder}/budgets.csv").tolist()
    [0.5, 0.25]
    """
    return np.array([nearest(epsilon) for epsilon in read_exact_budgets(path)])


def read_exact_budgets(path: str | PathLike[str]) -> tuple[Fraction, ...]:
    """Read the budget of each release as the exact decimal number that is written in the file.

    Args:
        path: File to read, as for `read_budgets`.

    Returns:
        Budgets in nats, one for each release.

    Raises:
        InputError: A line is malformed; the message names the line.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_budgets(f"{folder}/budgets.csv", [0.1])
    ...     read_exact_budgets(f"{folder}/budgets.csv")
    (Fraction(1, 10),)
    """
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
        raise InputError(str(source), "contains no budgets", bound="at least one line after the header")
    return tuple(budgets)


def _is_budget_header(header: Sequence[str]) -> bool:
    return [name.strip() for name in header] == _HEADER


def _budget(row: Sequence[str], step: int, where: str) -> Fraction:
    if len(row) != len(_HEADER) or row[0].strip() != str(step):
        bound, remedy = f"step {step} and its epsilon", "write one line for each step from 0, in order"
        raise InputError(where, "is out of order", value=cell(row[0]), bound=bound, remedy=remedy)
    text, bound, where = row[1].strip(), "a finite number >= 0, in decimal digits", f"{where}, column epsilon"
    with withholding():
        # Other inputs accept ratios such as 1/3, but budgets must be decimals because they are also names of folders.
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
    r"""Read one cost curve, or one for each release.

    The columns are ``epsilon`` and ``cost`` for one curve, or ``step`` (from 0, in order), ``epsilon`` and ``cost``.
    This function does not check whether the curves decrease.

    Args:
        path: File to read.

    Returns:
        A pair (epsilons, costs) for each curve; both are float64 of shape (k,).

    Raises:
        InputError: The header or a line is malformed; the message names the line.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "costs.csv")
    ...     _ = path.write_text("epsilon,cost\n0.5,2\n1,1.5\n")
    ...     [(epsilons.tolist(), costs.tolist()) for epsilons, costs in read_cost_curves(path)]
    [([0.5, 1.0], [2.0, 1.5])]
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
    r"""Read the weight of each release from the column ``weight`` of a file.

    If the file also has a column ``step``, its entries must be 0, 1, 2, … in order.

    Args:
        path: File to read, with a header line.

    Returns:
        Weights, finite and ≥ 0, not all 0; float64 of shape (T,).

    Raises:
        InputError: A line is malformed, or every weight is 0.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "weights.csv")
    ...     _ = path.write_text("weight\n1\n3\n")
    ...     read_weights(path).tolist()
    [1.0, 3.0]
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
                where, "is not a weight", value=cell(columns["weight"][row - 1]), bound="a finite number >= 0"
            )
    if not weights.any():
        raise InputError(f"{source}, column weight", "is zero in every row", bound="a weight above 0")
    return weights


def _is_cost_header(header: list[str]) -> bool:
    return [name.strip() for name in header] in (_ONE, _SEVERAL)


@dataclass(frozen=True)
class Schedule:
    """The budget ε of each release, in order of time.

    A budget of 0 means that the release is skipped. A channel with ε = 0 would be useless, so no channel is designed
    for it.

    Attributes:
        epsilons: Budgets in nats, as exact decimal numbers; 0 skips the release.

    >>> schedule = Schedule((Fraction(1), Fraction(0), Fraction(1), Fraction(1, 2)))
    >>> schedule.distinct, schedule.left_out, schedule.steps(Fraction(1))
    ((Fraction(1, 1), Fraction(1, 2)), [1], [0, 2])
    """

    epsilons: tuple[Fraction, ...]

    @property
    def distinct(self) -> tuple[Fraction, ...]:
        """The distinct positive budgets, in order of first use. One channel is designed for each of these budgets."""
        return tuple(dict.fromkeys(epsilon for epsilon in self.epsilons if epsilon))

    @property
    def left_out(self) -> list[int]:
        """The indices of the skipped releases, counted from 0."""
        return self.steps(Fraction(0))

    def steps(self, epsilon: Fraction) -> list[int]:
        """Return the indices of the releases with this budget.

        Args:
            epsilon: The budget, in nats.

        Returns:
            Indices in increasing order, counted from 0.
        """
        return [step for step, used in enumerate(self.epsilons) if used == epsilon]
