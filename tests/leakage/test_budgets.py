from __future__ import annotations

import json
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import Mistake, assert_refused

from mechdesign import leakage
from mechdesign.data.matrices import read_budgets
from mechdesign.errors import BudgetWarning, ExportError, InputError
from mechdesign.leakage._correlations import Candidates, Varying
from mechdesign.model._markov import smooth

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "leakage.json").read_text())
MILD = [[0.8, 0.2], [0.2, 0.8]]
OTHER = [[0.8, 0.2], [0.1, 0.9]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]


def matrix(rows: list[list[str]]) -> np.ndarray:
    return np.array([[float(Fraction(value)) for value in row] for row in rows])


def test_reference_budgets() -> None:
    for entry in REFERENCE["allocation"]:
        alpha, before, after = float(entry["alpha"]), matrix(entry["PB"]), matrix(entry["PF"])
        middle = float(entry["eps_mid"])
        expected = [float(entry["eps_first"]), middle, middle, float(entry["eps_last"])]
        row = f"{entry['case']} {alpha}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if middle == 0 else "error", BudgetWarning)
            budgets = leakage.allocate_budget(alpha, 4, before, after)
            constant = leakage.constant_budget(alpha, before, after)
        np.testing.assert_allclose(budgets, expected, rtol=1e-12, err_msg=row)
        assert constant == pytest.approx(middle, rel=1e-12), row
        assert leakage.cao2019.algorithm7(alpha, before, after) == pytest.approx(middle, rel=1e-12, abs=0), row
        if middle:
            found = leakage.cao2019.algorithm8(alpha, 4, before, after)
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=row)


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.floats(-1.0, 1.0), st.floats(1e-3, 15.0), st.integers(1, 25))
def test_every_release_leaks_alpha_and_none_more(seed: int, log_concentration: float, alpha: float, T: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    before, after = (rng.dirichlet(np.full(n, 10**log_concentration), n) + 1e-9 for _ in range(2))
    before, after = (P / P.sum(axis=1, keepdims=True) for P in (before, after))
    budgets = leakage.allocate_budget(alpha, T, before, after)
    total = leakage.temporal(budgets, before, after)
    assert budgets.shape == (T,)
    assert total.max() <= alpha
    assert total.min() >= alpha * (1 - 1e-9)
    constant = leakage.constant_budget(alpha, before, after)
    assert leakage.supremum(constant, before, after) <= alpha
    assert leakage.supremum(constant * (1 + 1e-9), before, after) > alpha * (1 - 1e-15)
    if T > 2:
        assert budgets[1] == pytest.approx(constant, rel=1e-12)
    accountant = leakage.Accountant(alpha, before, after)
    for epsilon in budgets.tolist():
        accountant.release(epsilon)


def test_strong_correlations_keep_their_digits() -> None:
    strong = smooth(np.eye(3), 1e-9).matrix
    constant = leakage.constant_budget(1.0, strong, strong)
    assert 0 < constant < 1e-8
    assert leakage.supremum(constant, strong, strong) == pytest.approx(1.0, rel=1e-12)
    assert leakage.constant_budget(1e-6, strong, None) == pytest.approx(
        leakage.cao2019.algorithm7(1e-6, strong, np.full((3, 3), 1 / 3))
    )


def test_degenerate_losses() -> None:
    with pytest.warns(BudgetWarning, match="the backward matrix have disjoint supports"):
        assert leakage.allocate_budget(1.0, 4, IDENTITY, MILD).tolist() == [1.0, 0.0, 0.0, 0.0]
    with pytest.warns(BudgetWarning, match="the forward matrix"):
        assert leakage.allocate_budget(1.0, 4, MILD, IDENTITY).tolist() == [0.0, 0.0, 0.0, 1.0]
    with pytest.warns(BudgetWarning, match="backward and the forward matrix"):
        assert leakage.allocate_budget(1.0, 4, IDENTITY, IDENTITY).tolist() == [0.5, 0.0, 0.0, 0.5]
    assert leakage.allocate_budget(1.0, 2, IDENTITY, IDENTITY).tolist() == [0.5, 0.5]
    assert leakage.allocate_budget(1.0, 1, IDENTITY, IDENTITY).tolist() == [1.0]
    with pytest.warns(BudgetWarning, match="over an infinite horizon"):
        assert leakage.constant_budget(1.0, forward=IDENTITY) == 0.0


def test_no_correlation_spends_everything() -> None:
    alike = [[0.3, 0.7], [0.3, 0.7]]
    for backward in (None, alike):
        assert leakage.allocate_budget(2.1, 3, backward).tolist() == [2.1] * 3
        assert leakage.constant_budget(2.1, backward) == 2.1


def test_candidates_hold_for_each() -> None:
    both = Candidates([MILD, OTHER])
    budgets = leakage.allocate_budget(1.0, 10, both, both)
    for P in (MILD, OTHER):
        assert leakage.temporal(budgets, P, P).max() <= 1.0
    mixed = Varying([MILD, OTHER, OTHER, MILD, OTHER, MILD, MILD, OTHER, MILD])
    assert leakage.temporal(budgets, mixed, mixed).max() <= 1.0


def test_budget_files(tmp_path: Path) -> None:
    path = tmp_path / "budgets.csv"
    budgets = leakage.allocate_budget(1.0, 5, MILD, OTHER)
    leakage.write_budgets(path, budgets)
    assert read_budgets(path).tolist() == budgets.tolist()
    assert [entry.name for entry in tmp_path.iterdir()] == ["budgets.csv"]
    with pytest.raises(ExportError, match="could not be written"):
        leakage.write_budgets(tmp_path / "no" / "b.csv", budgets)


def test_damaged_budget_files(tmp_path: Path) -> None:
    texts = {
        "": ("", "header"),
        "step,epsilon\n": ("", "contains no budgets"),
        "step,epsilon\n0,x\n": ("line 2, column epsilon", "is not a number"),
        "step,epsilon\n0,-1\n": ("line 2, column epsilon", "is negative"),
        "step,epsilon\n0,nan\n": ("line 2, column epsilon", "a finite number"),
        "step,epsilon\n0,1\n2,1\n": ("line 3, column step", "is out of order"),
        "step,epsilon\n1,1\n": ("line 2, column step", "from 0"),
        "step;epsilon\n0;1\n": ("line 1", "pandas"),
        'step,epsilon\n0,"0,5"\n': ("line 2, column epsilon", "pandas"),
        "step,epsilon\n0,1/2\n": ("line 2, column epsilon", "is not a number"),
        "step,epsilon\n0,1e400\n": ("line 2, column epsilon", "a finite number"),
        "step,epsilon\n0,1_0\n": ("line 2, column epsilon", "is not a number"),
    }
    rows = []
    for place, (text, (line, says)) in enumerate(texts.items()):
        path = tmp_path / f"{place}.csv"
        path.write_text(text)
        where = f"{path}, {line}" if line else str(path)
        rows.append(Mistake(text, lambda path=path: read_budgets(path), where, says, InputError))
    missing = tmp_path / "none.csv"
    rows.append(Mistake("missing", lambda: read_budgets(missing), str(missing), "cannot be opened"))
    assert_refused(rows)
