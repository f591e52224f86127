"""Leakage by independent routes: they agree, and a route that errs is named."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mechdesign.cli import main
from mechdesign.errors import InputError, SolverError
from mechdesign.leakage import LossFunction, OpenChain, _routes, cao2019, temporal
from mechdesign.leakage._routes import ROUTES, differences, leakage_by_routes, require_agreement
from mechdesign.model import MarkovChain

P = np.array([[0.8, 0.2, 0.0], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
F = np.array([[0.5, 0.25, 0.25], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]])
CHAIN = MarkovChain(F)


@pytest.mark.parametrize("directions", [(P, None), (None, F), (CHAIN.reverse(CHAIN.stationary()), CHAIN)])
def test_all_routes_agree_with_the_recursions(directions: tuple[Any, Any]) -> None:
    before, after = (None if each is None else LossFunction(each) for each in directions)
    budgets = np.array([0.5, 0.1, 0.0, 1.0, 0.3])
    found = leakage_by_routes(budgets, before, after, ROUTES["all"])
    truth = temporal(budgets, before, after)
    for leakage in found.values():
        np.testing.assert_allclose(leakage.temporal, truth, atol=1e-12, rtol=0)
    apart = differences(found)
    assert max(each.size for each in apart.values()) < 1e-12
    require_agreement(found, before, after)


@pytest.mark.parametrize("shift", [0.9e-9, 1.1e-9])
def test_a_route_that_errs_is_named_with_step_and_pair(shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Just inside and just outside of the largest difference."""
    right = cao2019.algorithm3
    monkeypatch.setattr(cao2019, "algorithm3", lambda *given: right(*given) + (shift if given[1] > 0.7 else 0.0))
    before = LossFunction(P)
    found = leakage_by_routes(np.full(3, 0.5), before, None, ROUTES["all"])
    if shift < _routes.MAX_DIFFERENCE:
        require_agreement(found, before, None)
        return
    message = (
        r"the route Algorithm 3 differs from the hull by 1.1e-09 nats at release 2, which rows 0 and 1 of the backward"
    )
    with pytest.raises(SolverError, match=message):
        require_agreement(found, before, None)


def test_identical_rows_add_nothing() -> None:
    equal = LossFunction(np.full((3, 3), 1 / 3))
    found = leakage_by_routes(np.full(3, 0.5), equal, equal, ROUTES["all"])
    assert all(np.allclose(each.temporal, 0.5, atol=1e-12) for each in found.values())


def test_rows_that_are_words_are_refused() -> None:
    loss = LossFunction(OpenChain([[0.5, 0.5, 0], [0.1, 0.9, 0], [0, 0, 0]], "mixture"))
    for route in ("lfp", "algorithms"):
        with pytest.raises(InputError, match="backward: has rows that are not numbers"):
            leakage_by_routes(np.full(2, 0.5), loss, None, ROUTES[route])
    assert leakage_by_routes(np.full(2, 0.5), loss, None, ROUTES["hull"])


@pytest.fixture
def run(tmp_path: Any) -> Any:
    np.savetxt(tmp_path / "P.csv", P, delimiter=",")
    np.savetxt(tmp_path / "F.csv", (P + 0.1) / 1.3, delimiter=",")

    def call(*words: str) -> Result:
        files = [str(tmp_path / word) if word.endswith(".csv") else word for word in words]
        return CliRunner().invoke(main, ["leakage", *files])

    return call


def test_the_command_shows_each_route(run: Any) -> None:
    algorithms = ["Algorithm 1", "Algorithm 3", "Algorithm 5"]
    for route, columns in {
        "hull": ["hull"],
        "lfp": ["lfp"],
        "algorithms": algorithms,
        "all": ["hull", "lfp", *algorithms, "largest difference"],
    }.items():
        result = run("P.csv", "--forward", "F.csv", "--epsilon", "0.5", "--steps", "3", "--route", route)
        assert result.exit_code == 0, result.output
        assert all(column in result.output for column in columns)
        assert ("difference" in result.output) == (route == "all")


def test_json_has_each_release_by_each_route_and_nothing_else(run: Any) -> None:
    words = ("P.csv", "--forward", "F.csv", "--epsilon", "0.5", "--steps", "3", "--json", "--route")
    before, after = LossFunction(P), LossFunction((P + 0.1) / 1.3)
    for route in ("hull", "lfp", "algorithms", "all"):
        found = json.loads(run(*words, route).stdout)
        expected = leakage_by_routes(np.full(3, 0.5), before, after, ROUTES[route])
        assert found["epsilon"] == [0.5] * 3
        assert set(found["routes"]) == set(expected)
        for name, lists in expected.items():
            for key, values in lists._asdict().items():
                np.testing.assert_allclose(found["routes"][name][key], values, rtol=1e-9, err_msg=f"{name} {key}")
        others = set(expected) - {"hull"} if route == "all" else set()
        assert set(found["differences"]) == others


def test_a_difference_ends_with_3(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = cao2019.algorithm1
    monkeypatch.setattr(cao2019, "algorithm1", lambda *given: right(*given) * 1.01)
    result = run("P.csv", "--epsilon", "0.5", "--steps", "2", "--route", "all")
    assert result.exit_code == 3
    assert "the route Algorithm 1 differs from the hull by" in result.stderr
    assert "at release 1, which rows 0 and 1 of the backward matrix determine" in result.stderr


def test_wrong_use_of_routes_ends_with_2(run: Any) -> None:
    for words in (
        ("P.csv", "--epsilon", "0.5", "--steps", "2", "--route", "cplex"),
        ("P.csv", "--epsilon", "0.5", "--steps", "2", "--route", "lfp", "--window", "2"),
        ("P.csv", "--epsilon", "15", "--steps", "3", "--route", "lfp"),
        ("P.csv", "--steps", "2", "--route", "all"),
    ):
        result = run(*words)
        assert result.exit_code == 2, words
        assert "Traceback" not in result.output
