"""Build, solve and check a set of linear-fractional programs by one contestant."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from mechdesign.bench.contestants import Contestant
from mechdesign.bench.families.family import RowPairs
from mechdesign.bench.verdicts import OPTIMAL_GAP
from mechdesign.bench.verdicts import SLACK
from mechdesign.bench.verdicts import Verdict
from mechdesign.bench.verdicts import claimed
from mechdesign.leakage._row_pair import row_pair_program
from mechdesign.solve._fractional import CharnesCooper
from mechdesign.solve._fractional import charnes_cooper
from mechdesign.solve._contract import Answer
from mechdesign.solve._contract import BackEnd
from mechdesign.solve._registry import find
from mechdesign.base._arrays import Floats

__all__ = ["largest_leakage", "phases", "reduced"]


def phases(pairs: RowPairs, contestant: Contestant, threads: int) -> Iterator[dict[str, Any]]:
    """Yield what is known of a row after each phase; the cost is minus the mean leakage, which is to be largest.

    A linear program by Charnes and Cooper (1962) is solved for each pair. `certified` is about x as returned: whether
    its entries are within e^α of each other, and how far its fraction is from the exact maximum.
    """
    clock = time.perf_counter()
    programs = reduced(pairs)
    rows, columns = (sum(getattr(each.program, name) for each in programs) for name in ("rows", "columns"))
    yield {"build_s": time.perf_counter() - clock, "rows": rows, "columns": columns}
    clock = time.perf_counter()
    back_end = cast(BackEnd, find(contestant.back_end).load())
    answers = [back_end(each.program, contestant.options(threads), None) for each in programs]
    claims = {claimed(answer.status) for answer in answers}
    yield {
        "solve_s": time.perf_counter() - clock,
        "claimed": next((claim for claim in reversed(Verdict) if claim in claims), Verdict.FAILED),
        "iterations": sum(answer.iterations for answer in answers),
        "message": answers[-1].message,
        "version": answers[-1].version,
    }
    clock = time.perf_counter()
    exact = [largest_leakage(pairs.matrix[q], pairs.matrix[d], pairs.alpha) for q, d in pairs.pairs.tolist()]
    found = [_value(pairs, index, programs[index], answer) for index, answer in enumerate(answers)]
    lower = -math.fsum(exact) / len(exact)
    yield {"certify_s": time.perf_counter() - clock, "lower_bound": lower}
    if any(value is None for value, _ in found):
        yield {"certified": Verdict.FAILED}
        return
    cost = -math.fsum(cast(float, value) for value, _ in found) / len(found)
    gap = max(abs(cast(float, value) - best) / best for (value, _), best in zip(found, exact, strict=True))
    spread = max(ratio for _, ratio in found)
    if spread > pairs.alpha * (1 + SLACK):
        verdict = Verdict.INFEASIBLE
    else:
        verdict = Verdict.OPTIMAL if gap <= OPTIMAL_GAP else Verdict.FEASIBLE
    yield {"certified": verdict, "rounded": verdict, "cost": cost, "cost_returned": cost, "relative_gap": gap}


def reduced(pairs: RowPairs) -> list[CharnesCooper]:
    """Return the linear program of each pair."""
    return [
        charnes_cooper(row_pair_program(pairs.matrix[q], pairs.matrix[d], pairs.alpha)) for q, d in pairs.pairs.tolist()
    ]


def largest_leakage(q: Floats, d: Floats, alpha: float) -> float:
    """Return max ln(q·x / d·x) in closed form: x is e^α where q/d is largest, and 1 elsewhere.

    >>> round(largest_leakage(np.array([0.8, 0.2]), np.array([0.2, 0.8]), 1.0), 6)
    0.569445
    """
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        order = np.argsort(-np.where(d > 0, q / d, np.inf), kind="stable")
    growth = math.expm1(alpha)
    above, below = np.cumsum(q[order]) * growth, np.cumsum(d[order]) * growth
    return float((np.log1p(above) - np.log1p(below)).max(initial=0.0))


def _value(pairs: RowPairs, index: int, program: CharnesCooper, answer: Answer) -> tuple[float | None, float]:
    """Return the leakage at x as returned, and the logarithm of the largest ratio of two of its entries."""
    x = None if answer.x is None or not np.isfinite(answer.x).all() else program.invert(answer.x)
    if x is None:
        return None, math.inf
    q, d = pairs.matrix[pairs.pairs[index]]
    above, below = float(q @ x), float(d @ x)
    if above <= 0 or below <= 0:
        return None, math.inf
    spread = math.log(float(x.max() / x.min())) if x.min() > 0 else math.inf
    return math.log(above / below), spread
