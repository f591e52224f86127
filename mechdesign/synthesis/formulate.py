"""From a normal form to a linear program, and back from its multipliers to those of the problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from mechdesign.certify.claims import Claim, Floor
from mechdesign.certify.evidence import FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.programs.linear import LinearProgram
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

        Multipliers of the wrong sign become zero. Within a group of merged secrets the cost of each secret is moved
        along the zero-exponent bounds to the group's root, which loses nothing.
        """
        form, problem = self.form, self.form.problem
        dual = np.maximum(row_dual, 0.0)
        privacy = dual[self.program.row_blocks["privacy"]] / self.roots / self.scale
        parts: dict[int, PairMultipliers | FloorMultipliers] = {}
        reduced = problem.prior[:, None] * problem.cost
        weights = None
        if problem.objective == "worst":
            weights = dual[self.program.row_blocks["worst"]]
            weights = weights / weights.sum() if weights.sum() > 0 else np.full(weights.size, 1 / weights.size)
            reduced = weights[:, None] * problem.cost
        for i, floor in enumerate(form.floors):
            values = dual[self.program.row_blocks[f"floor{i}"]][:-1] * self.floor_scales[i] / self.scale
            grid = values.reshape(floor.error.shape[0], form.observables)
            estimates, observables = np.nonzero(grid)
            parts[floor.requirement] = FloorMultipliers(estimates, observables, grid[estimates, observables])
            error = problem.claims[floor.requirement].error
            reduced = reduced - problem.prior[:, None] * (error.T @ grid)
        s, t, o = self.triples.sources, self.triples.targets, self.triples.observables
        first, second, owner = form.source[s, t], form.target[s, t], form.owner[s, t]
        np.add.at(reduced, (first, o), privacy)
        np.add.at(reduced, (second, o), -privacy * self.roots**2)
        moved = _move(reduced, form.ties)
        for i in {*owner.tolist(), *(tie[2] for tie in form.ties)}:
            mine = np.flatnonzero((owner == i) & (privacy > 0))
            columns = [(first[mine], second[mine], o[mine], privacy[mine]), *moved.get(i, [])]
            parts[i] = PairMultipliers(*(np.concatenate(column) for column in zip(*columns, strict=True)))
        return Multipliers(tuple(parts.get(i, _nothing(claim)) for i, claim in enumerate(problem.claims)), weights)


def _nothing(claim: Claim) -> PairMultipliers | FloorMultipliers:
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    if isinstance(claim, Floor):
        return FloorMultipliers(none, none, nothing)
    return PairMultipliers(none, none, none, nothing)


def _move(reduced: Floats, ties: tuple[tuple[int, int, int, bool], ...]) -> dict[int, list[tuple[Integers, Integers, Integers, Floats]]]:
    """Flatten the reduced cost of every tied secret, leaf by leaf, by multipliers on its tie; change `reduced`."""
    moved: dict[int, list[tuple[Integers, Integers, Integers, Floats]]] = {}
    observables = np.arange(reduced.shape[1])
    for secret, parent, requirement, forward in ties:
        row = reduced[secret]
        # A multiplier on p(o|secret) <= p(o|parent) raises the reduced cost of the secret and lowers the parent's.
        values = row.max() - row if forward else row - row.min()
        change = values if forward else -values
        reduced[secret] += change
        reduced[parent] -= change
        ends = (secret, parent) if forward else (parent, secret)
        moved.setdefault(requirement, []).append(
            (np.full(values.size, ends[0]), np.full(values.size, ends[1]), observables, values)
        )
    return moved


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
    program = LinearProgram(
        cost=cost,
        matrix=sparse.csr_array(sparse.vstack([matrix for _, matrix, _, _ in blocks])),
        row_lower=np.concatenate([low for _, _, low, _ in blocks]),
        row_upper=np.concatenate([high for _, _, _, high in blocks]),
        lower=np.zeros(width),
        upper=np.full(width, np.inf),
        row_blocks=row_blocks,
        column_blocks=column_blocks,
        name=problem.title or "channel",
    )
    return ChannelProgram(program, form, triples, scale, tuple(floor_scales), roots)
