from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import leakage
from mechdesign.errors import BudgetWarning, ExportError, InputError, LeakageExceededError, StateError
from mechdesign.leakage import _loss as loss_module
from mechdesign.leakage._accountant import Accountant
from mechdesign.leakage._correlations import Candidates

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

STRONG = [[0.8, 0.2], [0.0, 1.0]]
MILD = [[0.8, 0.2], [0.2, 0.8]]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 2), min_size=1, max_size=15), st.sampled_from([None, STRONG, MILD]))
def test_agrees_with_the_whole_series(epsilons: list[float], forward: object) -> None:
    accountant = Accountant(1e3, STRONG, forward)
    for count, epsilon in enumerate(epsilons, start=1):
        expected = leakage.temporal(epsilons[:count], STRONG, forward)
        np.testing.assert_array_equal(accountant.preview(epsilon), expected)
        assert accountant.release(epsilon) == expected[-1]
        np.testing.assert_array_equal(accountant.leakage, expected)
    np.testing.assert_array_equal(accountant.backward_leakage, leakage.backward(epsilons, STRONG))
    np.testing.assert_array_equal(accountant.forward_leakage, leakage.forward(epsilons, forward))
    assert accountant.epsilons.tolist() == epsilons
    assert len(accountant) == len(epsilons)


def test_refuses_and_records_nothing() -> None:
    accountant = Accountant(0.5, MILD, MILD)
    accountant.release(0.2)
    before = accountant.leakage.tolist()
    with pytest.raises(LeakageExceededError, match=r"release 1 would leak .* must be <= 0.5. Spend at most") as caught:
        accountant.release(0.45)
    assert caught.value.alpha == 0.5
    assert caught.value.leakage > 0.5
    assert accountant.leakage.tolist() == before
    with pytest.raises(LeakageExceededError, match="This release alone costs its budget"):
        accountant.release(0.6)


def test_a_later_release_may_break_the_promise_of_an_earlier_one() -> None:
    accountant = Accountant(0.5, None, MILD)
    accountant.release(0.45)
    with pytest.raises(LeakageExceededError) as caught:
        accountant.release(0.2)
    assert caught.value.step == 0


def test_largest_is_accepted_and_a_little_more_is_not() -> None:
    accountant = Accountant(1.0, STRONG, MILD)
    for _ in range(4):
        most = accountant.largest() / 2
        accountant.release(most)
    most = accountant.largest()
    assert 0 < most < 1
    with pytest.raises(LeakageExceededError):
        accountant.release(most * (1 + 1e-9))
    accountant.release(most)
    assert accountant.largest() < 1e-9
    assert Accountant(1.0).largest() == 1.0


def test_warns_if_told_so() -> None:
    accountant = Accountant(0.5, MILD, on_excess="warn")
    accountant.release(0.4)
    with pytest.warns(BudgetWarning, match="release 1 now leaks"):
        accountant.release(0.4)
    assert len(accountant) == 2
    assert accountant.largest() == 0.0


def test_candidates() -> None:
    accountant = Accountant(5.0, Candidates([MILD, None]), Candidates([MILD, STRONG]))
    for epsilon in (0.1, 0.5, 0.2):
        accountant.release(epsilon)
    expected = leakage.temporal([0.1, 0.5, 0.2], MILD, Candidates([MILD, STRONG]))
    np.testing.assert_allclose(accountant.leakage, expected, rtol=1e-15)


def test_saves_and_loads(tmp_path: Path) -> None:
    path = tmp_path / "accountant.json"
    P = np.random.default_rng(0).dirichlet(np.full(20, 0.3), 20)
    accountant = Accountant(3.0, Candidates([P, None]), P)
    accountant.save(path)
    assert len(Accountant.load(path)) == 0
    for epsilon in (0.1, 1 / 3, 0.2):
        accountant.release(epsilon)
    accountant.save(path)
    again = Accountant.load(path)
    assert again.alpha == 3.0
    assert again.leakage.tolist() == accountant.leakage.tolist()
    assert again.largest() == accountant.largest()
    assert again.release(0.1) == accountant.release(0.1)
    assert {entry.name for entry in tmp_path.iterdir()} == {"accountant.json", ".accountant.json.lock"}
    with pytest.raises(ExportError, match="could not be written"):
        accountant.save(tmp_path / "no" / "a.json")


def _state(tmp_path: Path) -> tuple[Path, dict]:
    path = tmp_path / "a.json"
    accountant = Accountant(1.0, MILD)
    accountant.release(0.25)
    accountant.save(path)
    return path, json.loads(path.read_text())


def test_every_changed_value_is_noticed(tmp_path: Path) -> None:
    path, state = _state(tmp_path)
    for key, value in {
        "alpha": 2.0,
        "epsilons": [],
        "on_excess": "warn",
        "backward": [None],
        "forward": [],
        "schema": "x",
        "sha256": "0",
    }.items():
        path.write_text(json.dumps(state | {key: value}))
        with pytest.raises(StateError, match=r"a\.json"):
            Accountant.load(path)
    for key in state:
        path.write_text(json.dumps({name: value for name, value in state.items() if name != key}))
        with pytest.raises(StateError, match=r"a\.json"):
            Accountant.load(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe\x00", b'{"schema": 1}'])
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(StateError, match=r"a\.json"):
        Accountant.load(path)
    with pytest.raises(StateError, match="cannot be read"):
        Accountant.load(tmp_path / "none.json")


def test_a_cut_file_is_noticed_at_every_length(tmp_path: Path) -> None:
    path, _ = _state(tmp_path)
    content = path.read_bytes()
    for length in range(0, len(content) - 2, 7):
        path.write_bytes(content[:length])
        with pytest.raises(StateError):
            Accountant.load(path)


@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf, "0.1", None])
def test_wrong_budgets(epsilon: object) -> None:
    with pytest.raises(InputError, match="epsilon"):
        Accountant(1.0, MILD).release(epsilon)  # type: ignore[arg-type]


def test_wrong_settings() -> None:
    with pytest.raises(InputError, match="alpha: leaves no budget"):
        Accountant(0.0)
    with pytest.raises(InputError, match="on_excess"):
        Accountant(1.0, on_excess="ignore")
    with pytest.raises(InputError, match=r"backward\[0\]: does not sum to 1"):
        Accountant(1.0, backward=[[0.5, 0.4], [0.5, 0.5]])


def test_many_releases_are_quick() -> None:
    accountant = Accountant(10.0, MILD, MILD)
    for _ in range(2000):
        accountant.release(0.01)
    assert accountant.leakage.max() <= leakage.supremum(0.01, MILD, MILD) * (1 + 1e-12)


def test_a_state_with_the_earlier_digest_of_a_sparse_matrix_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions gave every sparse matrix its own digest; now a small one has that of its dense form."""
    P = sparse.csr_array(np.array([[0.8, 0.2], [0.1, 0.9]]))
    path = tmp_path / "accountant.json"
    with monkeypatch.context() as earlier:
        earlier.setattr(loss_module, "_as_treated", lambda matrix: matrix)
        Accountant(1.0, P, path=path).release(0.1)
    loaded = Accountant.load(path, backward=P)
    assert loaded.release(0.1) > 0
    assert len(Accountant.load(path, backward=P)) == 2
    with pytest.raises(StateError, match="is for another backward matrix"):
        Accountant.load(path, backward=P[[1, 0]])
