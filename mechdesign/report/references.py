"""Costs that a reader compares a channel with: telling the truth, telling nothing, and the usual mechanism."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import csgraph_from_masked, shortest_path

from mechdesign.certify.claims import Floor, PairBound
from mechdesign.model.problem import Problem
from mechdesign.report.words import answers

__all__ = ["NO_INFORMATION", "Reference", "combined_bound", "exponential_mechanism", "reference_costs"]

NO_INFORMATION = "no information: always the same answer"

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """The cost of a mechanism that a reader knows; `note` says what it lacks."""

    name: str
    cost: float
    note: str = ""


def reference_costs(problem: Problem) -> tuple[Reference, ...]:
    """Return reference costs, computed in floating point, for the objective of the problem.

    The truth: every secret gets the answer that costs it least. Nothing: one answer for all, the best one; left out
    where none is permitted to all. The
    exponential mechanism (see `exponential_mechanism`), as it is where the answers are the secrets themselves, and with
    each of its outputs replaced by the answer that is best on average given that output.
    """
    truth = np.zeros_like(problem.cost)
    truth[np.arange(len(truth)), problem.cost.argmin(axis=1)] = 1.0
    found = [Reference("no privacy: the best answer for each secret", _cost(problem, truth))]
    of_all = problem.cost[:, np.isfinite(problem.cost).all(axis=0)]
    if of_all.size:
        of_constants = problem.prior @ of_all if problem.objective == "expected" else of_all.max(axis=0)
        found.append(Reference(NO_INFORMATION, float(of_constants.min())))
    bound = combined_bound(problem)
    if bound is None:
        return tuple(found)
    mechanism = exponential_mechanism(bound)
    note = _missed_floor(problem, mechanism)
    domain = answers(problem)
    itself = domain is problem.secrets if problem.secrets is not None else _answers_are_secrets(problem)
    if itself and mechanism.shape == problem.cost.shape and _permitted(problem, mechanism):
        found.append(Reference("exponential mechanism", _cost(problem, mechanism), note))
    if problem.objective == "expected":
        # Row o of `best` is the answer that replaces output o.
        finite = np.isfinite(problem.cost)
        costs = mechanism.T @ (problem.prior[:, None] * np.where(finite, problem.cost, 0.0))
        barred = (mechanism > 0).T.astype(np.float64) @ ~finite > 0
        best = np.where(barred, np.inf, costs).argmin(axis=1)
        remapped = np.zeros_like(problem.cost)
        np.add.at(remapped.T, best, mechanism.T)
        if _permitted(problem, remapped):
            note = _missed_floor(problem, remapped)
            found.append(Reference("exponential mechanism, remapped", _cost(problem, remapped), note))
    return tuple(found)


def combined_bound(problem: Problem) -> Floats | None:
    """Return the largest metric E (n, n) such that p(o|s) <= exp(E(s, t)) p(o|t) implies every bound on pairs.

    It is the length of the shortest path where a bounded pair is an edge, in both directions, of the length ln g.
    Infinite where nothing is required; None when no pair is bounded.
    """
    n = len(problem.prior)
    bounds = np.full((n, n), np.inf)
    for claim in problem.claims:
        if isinstance(claim, PairBound):
            np.minimum.at(bounds, (claim.sources, claim.targets), claim.exponents)
    bounds = np.minimum(bounds, bounds.T)
    np.fill_diagonal(bounds, 0.0)
    if not np.isfinite(bounds[~np.eye(n, dtype=np.bool_)]).any():
        return None
    # A plain matrix would take lengths of zero for missing edges.
    lengths: Floats = shortest_path(csgraph_from_masked(np.ma.masked_invalid(bounds)), method="FW")
    return lengths


def exponential_mechanism(bound: Floats) -> Floats:
    """Return p(o|s) ∝ exp(−E(s, o)/2), shape (n, n), which keeps every bound whose metric is E."""
    weights = np.exp(-bound / 2)
    mechanism: Floats = weights / weights.sum(axis=1, keepdims=True)
    return mechanism


def _answers_are_secrets(problem: Problem) -> bool:
    n, m = problem.cost.shape
    return n == m and bool((np.diagonal(problem.cost) == problem.cost.min(axis=1)).all())


def _permitted(problem: Problem, mechanism: Floats) -> bool:
    return not bool(((mechanism > 0) & np.isinf(problem.cost)).any())


def _cost(problem: Problem, mechanism: Floats) -> float:
    costs = (mechanism * np.where(mechanism > 0, problem.cost, 0.0)).sum(axis=1)
    return float(problem.prior @ costs if problem.objective == "expected" else costs.max())


def _missed_floor(problem: Problem, mechanism: Floats) -> str:
    """Say which floor on the adversary's error a mechanism does not keep; it may lie below by rounding only."""
    for claim in problem.claims:
        if isinstance(claim, Floor):
            joint = claim.prior_or(problem.prior)[:, None] * mechanism
            error = float((claim.error @ joint).min(axis=0).sum())
            if error < float(claim.minimum) * (1 - 1e-9):
                return "misses the distortion floor"
    return ""
