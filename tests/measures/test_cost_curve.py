"""Cost curves from certified designs: closed forms, the cache, and wrong input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import mechdesign as md
from mechdesign.base import _cache as cache
from mechdesign.errors import InputError
from mechdesign.leakage import best_budgets
from mechdesign.measures import _cost_curve as module
from mechdesign.measures import cost_curve

HAMMING = md.distances.hamming(4)
PRIOR = np.array([0.4, 0.3, 0.2, 0.1])


def responses(epsilon: float = 1.0) -> md.Problem:
    return md.Problem(np.full(4, 0.25), HAMMING, [md.MetricPrivacy(epsilon, HAMMING)])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_randomised_response_in_closed_form() -> None:
    """With a uniform prior the optimum is randomised response: C(ε) = 3/(3 + e^ε), whatever the given ε."""
    epsilons = np.array([0.0, 0.5, 1.0, 3.0])
    for given in (0.1, 7.0):
        curve = cost_curve(responses(given), epsilons)
        np.testing.assert_allclose(curve.costs, 3 / (3 + np.exp(epsilons)), rtol=1e-5, err_msg=str(given))
        assert (curve.costs >= 3 / (3 + np.exp(epsilons)) * (1 - 1e-12)).all()


@pytest.mark.parametrize("kind", ["metric", "graph"])
def test_no_two_secrets_are_told_apart_by_more_than_the_budget(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    line = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    requirement = md.MetricPrivacy("0.3", line) if kind == "metric" else md.GraphPrivacy("0.3", nx.path_graph(4))
    found = []
    original = module._with_budget

    def record(*given: Any) -> md.Problem:
        found.append(original(*given))
        return found[-1]

    monkeypatch.setattr(module, "_with_budget", record)
    cost_curve(md.Problem(PRIOR, line, [requirement]), [0.7, 6.0])
    for problem, budget in zip(found, [0.7, 6.0], strict=True):
        matrix = md.design(problem).channel.matrix
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = matrix[:, None, :] / matrix[None, :, :]
        largest = float(np.nanmax(ratios))
        assert largest <= np.exp(budget) * (1 + 1e-12)
    # A large budget is used whole: the ends of the line differ by three steps.
    assert largest >= np.exp(6.0) * 0.99


def test_a_floor_stays_and_costs_never_rise() -> None:
    problem = md.Problem(PRIOR, HAMMING, [md.MetricPrivacy(1, HAMMING), md.DistortionPrivacy("0.3", HAMMING)])
    curve = cost_curve(problem, [0.5, 1.0, 2.0, 4.0, 8.0])
    assert (np.diff(curve.costs) <= 0).all()
    assert curve.costs[-1] >= 0.3 - 1e-9


def test_curves_are_cached_and_designs_are_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cost_curve(responses(), [0.5, 1.0])
    assert [each.kind for each in cache.entries()] == ["cost-curve-1"]
    monkeypatch.setattr("mechdesign.measures._cost_curve.design", None)
    again = cost_curve(responses(), [0.5, 1.0])
    assert (first.cached, again.cached) == (False, True)
    assert again.costs.tolist() == first.costs.tolist()
    cache.MEMORY.clear()
    assert cost_curve(responses(), [0.5, 1.0]).cached
    with pytest.raises(TypeError):
        cost_curve(responses(), [0.5, 1.0], cache=False)


@pytest.mark.parametrize(
    "change",
    ["prior", "cost", "objective", "epsilon", "floor", "budgets", "tolerance", "solver"],
)
def test_every_part_of_the_problem_is_in_the_key(change: str) -> None:
    problem, options, budgets = responses(), {}, [0.5, 1.0]
    cost_curve(problem, budgets)
    floor = [md.DistortionPrivacy("0.1", HAMMING)] if change == "floor" else []
    problem = md.Problem(
        PRIOR if change == "prior" else np.full(4, 0.25),
        HAMMING * (2 if change == "cost" else 1),
        [md.MetricPrivacy(2 if change == "epsilon" else 1, HAMMING), *floor],
        "worst" if change == "objective" else "expected",
    )
    options = {"tolerance": {"tolerance": 1e-5}, "solver": {"solver": "highs-ipx"}}.get(change, {})
    budgets = [0.5, 1.5] if change == "budgets" else budgets
    assert not cost_curve(problem, budgets, **options).cached  # type: ignore[arg-type]
    assert len(cache.entries()) == 2


def test_entries_that_are_not_curves_are_computed_again() -> None:
    first = cost_curve(responses(), [0.5, 1.0])
    key = cache.entries()[0].key
    for name, values in (
        *(("costs", [0.5]), ("costs", [0.1, 0.2]), ("costs", [np.nan, 0.1]), ("costs", [1, 0])),
        *(("costs", [0.2, -0.1]), ("other", [0.2, 0.1])),
    ):
        cache.store("cost-curve-1", key, {name: np.array(values)})
        again = cost_curve(responses(), [0.5, 1.0])
        assert not again.cached, (name, values)
        assert again.costs.tolist() == first.costs.tolist()


def test_best_budgets_accept_a_curve() -> None:
    curve = cost_curve(responses(), [0.0, 0.5, 1.0, 2.0])
    best = best_budgets(1.0, [curve, curve], [[0.8, 0.2], [0.2, 0.8]])
    assert best.lower_bound <= best.cost


APART = md.Problem(PRIOR, HAMMING, [md.GraphPrivacy(1, nx.from_edgelist([(0, 1), (2, 3)]))])
WRONG: dict[str, tuple[Any, Any, dict[str, Any], str]] = {
    "no problem": (None, [1.0], {}, "problem: is not a problem"),
    "a matrix": (HAMMING, [1.0], {}, "problem: is not a problem"),
    "no requirement": (md.Problem(PRIOR, HAMMING, []), [1.0], {}, "problem.requirements: do not have a single"),
    "two requirements": (
        md.Problem(PRIOR, HAMMING, [md.MetricPrivacy(1, HAMMING), md.MetricPrivacy(2, HAMMING)]),
        [1.0], {}, "found 2; must be exactly one",
    ),
    "a floor alone": (md.Problem(PRIOR, HAMMING, [md.DistortionPrivacy("0.1", HAMMING)]), [1.0], {}, "found 0"),
    "secrets without a bound": (APART, [1.0], {}, r"problem.requirements\[0\]: leaves secrets without a bound"),
    "no budgets": (responses(), [], {}, "epsilons: are empty"),
    "a number": (responses(), 1.0, {}, "epsilons"),
    "falling budgets": (responses(), [1.0, 0.5], {}, r"epsilons\[1\].*Sort the budgets"),
    "equal budgets": (responses(), [1.0, 1.0], {}, r"epsilons\[1\]"),
    "a negative budget": (responses(), [-1.0], {}, r"epsilons\[0\]"),
    "an infinite budget": (responses(), [np.inf], {}, r"epsilons\[0\]"),
    "not a number": (responses(), [np.nan], {}, r"epsilons\[0\]"),
    "texts": (responses(), ["a"], {}, "epsilons"),
    "None": (responses(), None, {}, "epsilons"),
    "a matrix of budgets": (responses(), [[1.0, 2.0]], {}, "epsilons"),
    "0 with a worst cost": (
        md.Problem(PRIOR, HAMMING, [md.MetricPrivacy(1, HAMMING)], "worst"), [0.0], {}, r"epsilons\[0\]: is 0",
    ),
    "0 with a floor": (
        md.Problem(PRIOR, HAMMING, [md.MetricPrivacy(1, HAMMING), md.DistortionPrivacy("0.1", HAMMING)]),
        [0.0, 1.0], {}, r"epsilons\[0\]: is 0",
    ),
    "tolerance of 0": (responses(), [1.0], {"tolerance": 0.0}, "tolerance"),
    "tolerance that is a text": (responses(), [1.0], {"tolerance": "low"}, "tolerance"),
    "an unknown solver at 0": (responses(), [0.0], {"solver": "cplex"}, "solver: is not known"),
    "a wrong tolerance at 0": (responses(), [0.0], {"tolerance": -3}, "tolerance"),
    "cache as a text": (responses(), [1.0], {"cache": "no"}, "cache"),
    "an unknown solver": (responses(), [1.0], {"solver": "cplex"}, "solver: is not known"),
}  # fmt: skip


def test_wrong_input_is_refused() -> None:
    for name, (problem, epsilons, options, message) in WRONG.items():
        with pytest.raises(InputError, match=message):
            cost_curve(problem, epsilons, **options)
        assert cache.entries() == [], name
