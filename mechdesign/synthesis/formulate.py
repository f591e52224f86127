"""From a normal form to a linear program, and back from its multipliers to those of the problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.certify.evidence import Multipliers
from mechdesign.programs.linear import LinearProgram
from mechdesign.synthesis.multipliers import problem_multipliers
from mechdesign.synthesis.normal import NormalForm

__all__ = ["LARGEST_EXPONENT", "ChannelProgram", "Triples", "all_triples", "formulate"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

LARGEST_EXPONENT = 40.0
"""Bounds with ratios above e^40 (about 2e17) get no row: their coefficients would drown the solver, and meeting them
afterwards moves less than 1e-17 of probability."""


@dataclass(frozen=True, eq=False)
class Triples:
    """Privacy rows (source group, target group, observable), as three arrays of one length."""

    sources: Integers
    targets: Integers
    observables: Integers

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(self.sources.size)

    def append(self, other: Triples) -> Triples:
        """Return these rows followed by those of `other`."""
        return Triples(
            np.concatenate([self.sources, other.sources]),
            np.concatenate([self.targets, other.targets]),
            np.concatenate([self.observables, other.observables]),
        )


def all_triples(pairs: NDArray[np.bool_], observables: int) -> Triples:
    """Return a row for every marked pair (k, k) and every observable."""
    sources, targets = np.nonzero(pairs)
    return Triples(
        np.repeat(sources, observables),
        np.repeat(targets, observables),
        np.tile(np.arange(observables), sources.size),
    )


@dataclass(frozen=True, eq=False)
class ChannelProgram:
    """A linear program for a normal form, with what is needed to read its solution.

    Columns: ``p`` (groups × observables, row-major), ``x0``, ``x1``, … (one per floor and observable: the adversary's
    error there), ``theta`` (worst cost). Rows: ``sums``, ``floor0``, …, ``worst`` and, last, ``privacy``. Privacy rows
    read √g p(o|t) − p(o|s)/√g >= 0 with g = exp(ε d(s, t)). Costs are multiplied by `scale`; the errors of floor i by
    `floor_scales[i]`, which makes both of order one.
    """

    program: LinearProgram
    form: NormalForm
    triples: Triples
    scale: float
    floor_scales: tuple[float, ...]
    roots: Floats

    def channel(self, x: Floats) -> Floats:
        """Read p(o|group) (k, m) out of a solution."""
        return x[self.program.column_blocks["p"]].reshape(self.form.groups, self.form.observables)

    def multipliers(self, row_dual: Floats) -> Multipliers:
        """Turn the program's multipliers into multipliers of the problem's own requirements.

        Multipliers of the wrong sign become zero.
        """
        form = self.form
        dual = np.maximum(row_dual, 0.0)
        privacy = dual[self.program.row_blocks["privacy"]] / self.roots / self.scale
        floors = []
        for i, floor in enumerate(form.floors):
            values = dual[self.program.row_blocks[f"floor{i}"]][:-1] * self.floor_scales[i] / self.scale
            floors.append(values.reshape(floor.error.shape[0], form.observables))
        weights = dual[self.program.row_blocks["worst"]] if form.problem.objective == "worst" else None
        columns = (self.triples.sources, self.triples.targets, self.triples.observables, privacy)
        return problem_multipliers(form, columns, floors, weights)


def formulate(form: NormalForm, triples: Triples) -> ChannelProgram:
    """Build the program of equations (11)/(12) and (21)–(24) of Privacy Games with the given privacy rows.

    Leaving rows out gives a relaxation: its value is a lower bound, and its multipliers are valid for the problem.
    """
    problem, groups, observables = form.problem, form.groups, form.observables
    worst = problem.objective == "worst"
    size = groups * observables
    width = size + len(form.floors) * observables + worst
    scale = groups / max(float(problem.cost.max()), 1e-300)
    cost = np.zeros(width)
    if worst:
        cost[-1] = scale
    else:
        cost[:size] = form.gather(problem.prior[:, None] * problem.cost).ravel() * scale

    blocks: list[tuple[str, sparse.coo_array, Floats, Floats]] = []
    sums = sparse.coo_array(
        (np.ones(size), (np.repeat(np.arange(groups), observables), np.arange(size))), shape=(groups, width)
    )
    blocks.append(("sums", sums, np.ones(groups), np.ones(groups)))
    floor_scales = []
    for i, floor in enumerate(form.floors):
        factor = observables / floor.minimum
        floor_scales.append(factor)
        estimates = floor.error.shape[0]
        # Row (ŝ, o): Σ_g factor·error[ŝ, g] p(o|g) − x_o >= 0; last row: Σ_o x_o >= factor·minimum.
        errors = sparse.kron(sparse.coo_array(floor.error * factor), sparse.eye_array(observables))
        last = np.full(observables, estimates * observables)
        start = size + i * observables
        taken = np.arange(start, start + observables)
        x_rows = np.concatenate([np.arange(estimates * observables), last])
        x_columns = np.concatenate([np.tile(taken, estimates), taken])
        x_values = np.concatenate([np.full(estimates * observables, -1.0), np.ones(observables)])
        errors = sparse.coo_array(errors)
        matrix = sparse.coo_array(
            (
                np.concatenate([errors.data, x_values]),
                (np.concatenate([errors.row, x_rows]), np.concatenate([errors.col, x_columns])),
            ),
            shape=(estimates * observables + 1, width),
        )
        low = np.zeros(matrix.shape[0])
        low[-1] = observables
        blocks.append((f"floor{i}", matrix, low, np.full(low.size, np.inf)))
    if worst:
        n = problem.prior.size
        columns = (form.group[:, None] * observables + np.arange(observables)).ravel()
        matrix = sparse.coo_array(
            (
                np.concatenate([-problem.cost.ravel(), np.ones(n)]),
                (
                    np.concatenate([np.repeat(np.arange(n), observables), np.arange(n)]),
                    np.concatenate([columns, np.full(n, width - 1)]),
                ),
            ),
            shape=(n, width),
        )
        blocks.append(("worst", matrix, np.zeros(n), np.full(n, np.inf)))
    roots = np.exp(form.exponents[triples.sources, triples.targets] / 2)
    rows = np.arange(triples.size)
    privacy = sparse.coo_array(
        (
            np.concatenate([roots, -1 / roots]),
            (
                np.concatenate([rows, rows]),
                np.concatenate(
                    [
                        triples.targets * observables + triples.observables,
                        triples.sources * observables + triples.observables,
                    ]
                ),
            ),
        ),
        shape=(triples.size, width),
    )
    blocks.append(("privacy", privacy, np.zeros(triples.size), np.full(triples.size, np.inf)))

    row_blocks, position = {}, 0
    for name, matrix, _, _ in blocks:
        row_blocks[name] = slice(position, position + matrix.shape[0])
        position += matrix.shape[0]
    column_blocks = {"p": slice(0, size)}
    for i in range(len(form.floors)):
        column_blocks[f"x{i}"] = slice(size + i * observables, size + (i + 1) * observables)
    if worst:
        column_blocks["theta"] = slice(width - 1, width)
    lower = np.zeros(width)
    # The rows bound x from above and keep it positive where it counts; a bound of 0 of its own makes IPX stall.
    lower[size : size + len(form.floors) * observables] = -np.inf
    program = LinearProgram(
        cost=cost,
        matrix=sparse.csr_array(sparse.vstack([matrix for _, matrix, _, _ in blocks])),
        row_lower=np.concatenate([low for _, _, low, _ in blocks]),
        row_upper=np.concatenate([high for _, _, _, high in blocks]),
        lower=lower,
        upper=np.full(width, np.inf),
        row_blocks=row_blocks,
        column_blocks=column_blocks,
        name=problem.title or "channel",
    )
    return ChannelProgram(program, form, triples, scale, tuple(floor_scales), roots)
