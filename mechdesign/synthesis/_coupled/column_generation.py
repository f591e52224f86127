"""Dantzig–Wolfe decomposition: parts that only distortion floors couple, each asked at prices that a master sets.

The floors read Σ_k M_k d_ki >= D_i, with M_k the probability of part k and d_ki its distortion for floor i. Given a
price t_i >= 0 for each floor, every part is a program of its own: least c_k − Σ_i t_i d_ki. A small master program
mixes what the parts gave so far so that the floors are met at the least cost; its multipliers are the next prices.
Mixing adds up costs, and never loses distortion, as a minimum of sums is at least the sum of minima. Every round gives
the lower bound Σ_i t_i D_i + Σ_k M_k min(c_k − Σ_i t_i d_ki); it ends when the master's cost is as close to the best
one as asked. (Dantzig and Wolfe, Decomposition principle for linear programs, Operations Research, 1960.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from mechdesign.base._arrays import Floats
from mechdesign.base._deadline import Deadline
from mechdesign.base._errors import SolverError
from mechdesign.solve import _solve as solvers
from mechdesign.solve._contract import STATUS_OF_STOP, Options, Status
from mechdesign.solve._linear import LinearProgram
from mechdesign.synthesis._attempts import EXACT
from mechdesign.synthesis._coupled.pricing import Answer, Kind
from mechdesign.synthesis._settings import SolveSettings

_ROUNDS = 300

# The master's cost may be this part of the tolerance above the bound; the rest is for rounding.
_SHARE = 0.3
_SOLVER_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Decomposed:
    """How it ended: prices and answers (one per kind, or none) of the best bound, and the shares of the proposals."""

    status: Status
    rounds: int
    prices: Floats
    answers: Sequence[Answer]
    shares: Sequence[Floats]


def decompose(
    kinds: Sequence[Kind], minima: Floats, solver: str, settings: SolveSettings, deadline: Deadline
) -> Decomposed:
    """Ask all kinds and the master in turn, until cost and bound agree to the tolerance or time is over.

    `minima` are the floors, positive, none above what the constant channels reach. Raises SolverError when a solver
    fails.
    """
    prices, best = np.zeros(minima.size), -np.inf
    # Every kind has its constant channel.
    found = Decomposed(Status.ITERATION_LIMIT, 0, prices, (), [np.ones(1) for _ in kinds])
    for rounds in range(1, _ROUNDS + 1):
        answers: list[Answer] = []
        for kind in kinds:
            asked = Options(
                _SOLVER_TOLERANCE, deadline=deadline.quiet(), threads=settings.threads, extra=settings.options
            )
            status, answer = kind.ask(prices, solver, asked)
            if answer is None:
                return replace(found, status=status)
            answers.append(answer)
        bound = float(prices @ minima) + sum(kind.mass * one.bound for kind, one in zip(kinds, answers, strict=True))
        if bound > best:
            best, found = bound, replace(found, prices=prices, answers=answers)
        improving = [kind for kind, one in zip(kinds, answers, strict=True) if kind.add(one.proposal)]
        mixed = _mix(kinds, minima, deadline)
        if isinstance(mixed, Status):
            # The shares of the round before stand; proposals that came since have none.
            padded = [
                np.pad(part, (0, len(kind.proposals) - part.size))
                for part, kind in zip(found.shares, kinds, strict=True)
            ]
            return replace(found, status=mixed, rounds=rounds, shares=padded)
        value, shares, new_prices = mixed
        found = replace(found, rounds=rounds, shares=shares)
        deadline.tell(f"round {rounds}", rounds, best, value)
        if value - best <= _SHARE * settings.tolerance * value:
            return replace(found, status=Status.OPTIMAL)
        if not improving or np.array_equal(new_prices, prices):
            return replace(found, status=Status.STALLED)
        if (stop := deadline.stop()) is not None:
            return replace(found, status=STATUS_OF_STOP[stop])
        prices = new_prices
    return found


def _mix(kinds: Sequence[Kind], minima: Floats, deadline: Deadline) -> tuple[float, list[Floats], Floats] | Status:
    """Mix the proposals of each kind; return the cost, the shares of the proposals, and the prices of the floors.

    Returns the status alone where time is over or the user stopped it.

    Costs are divided by that of the constant channels, and floors by their minima, so that all numbers are of order 1.
    """
    scale = sum(kind.mass * kind.constant.cost for kind in kinds) or 1.0
    counts = [len(kind.proposals) for kind in kinds]
    costs = np.concatenate([[kind.mass * one.cost for one in kind.proposals] for kind in kinds]) / scale
    distortions = np.concatenate([[kind.mass * one.distortions / minima for one in kind.proposals] for kind in kinds])
    width = costs.size
    owners = np.repeat(np.arange(len(kinds)), counts)
    sums = sparse.coo_array((np.ones(width), (owners, np.arange(width))), shape=(len(kinds), width))
    program = LinearProgram(
        cost=costs,
        matrix=sparse.csr_array(sparse.vstack([sparse.csr_array(distortions.T), sums])),
        row_lower=np.ones(minima.size + len(kinds)),
        row_upper=np.concatenate([np.full(minima.size, np.inf), np.ones(len(kinds))]),
        lower=np.zeros(width),
        upper=np.full(width, np.inf),
        name="mixture",
    )
    found = solvers.solve(program, EXACT, Options(_SOLVER_TOLERANCE, deadline=deadline.quiet()))
    if found.status in (Status.TIME_LIMIT, Status.INTERRUPTED):
        return found.status
    if found.status is not Status.OPTIMAL:
        raise SolverError(f"the mixture of the parts' channels could not be computed: {found.message}")
    shares = [np.clip(part, 0.0, None) for part in np.split(found.x, np.cumsum(counts)[:-1])]
    prices = np.maximum(found.row_dual[: minima.size], 0.0) * scale / minima
    return found.residuals.objective * scale, [part / part.sum() for part in shares], prices
