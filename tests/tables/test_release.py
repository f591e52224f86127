"""Releases as values and files, and histograms, sums and linear queries with the noise that the policy needs."""

from __future__ import annotations

import csv
import io
import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from releases import release_counts

import mechdesign as md
from mechdesign.errors import ExportError, InputError
from mechdesign.mechanisms._discrete import DiscreteGaussian, DiscreteLaplace
from mechdesign.tables import _release as release
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy

DOMAIN = Domain({"age": range(6), "sex": ["f", "m, or other"]})
ROWS = np.random.default_rng(4).integers(0, DOMAIN.size, 500)
RECORDS = [DOMAIN.value(row) for row in ROWS]
COUNTS = np.bincount(ROWS, minlength=DOMAIN.size)
FULL = Policy.full(DOMAIN)


@pytest.fixture
def laws(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """Note which noise is added to how many answers."""
    found: list[tuple[Any, int]] = []
    for law in (DiscreteLaplace, DiscreteGaussian):
        original = law.add

        def add(self: Any, values: Any, rng: Any = None, original: Any = original) -> Any:
            found.append((self, values.size))
            return original(self, values, rng)

        monkeypatch.setattr(law, "add", add)
    return found


def test_histogram(laws: list[tuple[Any, int]]) -> None:
    ledger = md.Ledger()
    # Where nobody can be absent, a strategy would be better by the known total.
    policy = Policy.full(DOMAIN, unbounded=True)
    found = md.tables.Histogram().release(RECORDS, policy, epsilon="0.5", ledger=ledger)
    assert laws == [(DiscreteLaplace(Fraction(4)), 12)]
    (entry,) = ledger.entries
    assert (entry.what, entry.protects) == ("histogram", policy.neighbours)
    assert (entry.epsilon, entry.rho) == (Fraction(1, 2), None)
    assert found.labels["age"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert found.labels["sex"].tolist()[:3] == ["f", "m, or other", "f"]
    width = DiscreteLaplace(Fraction(4)).half_width(Fraction(19, 20))
    assert (found.high - found.low == 2 * width).all()
    assert (found.standard_errors == DiscreteLaplace(Fraction(4)).standard_deviation).all()
    assert not found.description.rehearsal
    assert found.answers.tolist() != COUNTS.tolist()


def test_tables_of_every_form_give_the_same() -> None:
    ages, sexes = np.unravel_index(ROWS, DOMAIN.shape)
    table = {"age": ages, "sex": np.array(["f", "m, or other"])[sexes]}
    first = md.tables.Histogram().release(RECORDS, FULL, epsilon=1, rng=3)
    second = md.tables.Histogram().release(table, FULL, epsilon=1, rng=3)
    assert first.answers.tolist() == second.answers.tolist()


def test_gaussian_noise(laws: list[tuple[Any, int]]) -> None:
    found = md.tables.Linear(np.eye(12)).release(RECORDS, FULL, rho="0.1")
    # Δ₂² = 2 and σ² = Δ₂²/(2ρ).
    assert laws == [(DiscreteGaussian(Fraction(10)), 12)]
    assert (found.epsilon, found.rho) == (None, Fraction(1, 10))


def test_intervals_cover() -> None:
    for budget in ({"epsilon": "0.3"}, {"rho": "0.01"}):
        hits = [
            ((found.low <= COUNTS) & (found.high >= COUNTS)).mean()
            for found in (md.tables.Histogram().release(RECORDS, FULL, rng=seed, **budget) for seed in range(20))
        ]
        assert 0.93 <= np.mean(hits) <= 0.99


def test_what_the_policy_leaves_exact_is_said_and_free(laws: list[tuple[Any, int]]) -> None:
    blocks = ["low"] * 6 + ["high"] * 6
    policy = Policy.partition(DOMAIN, blocks)
    ledger = md.Ledger(epsilon="1e-9")
    found = md.tables.Histogram(blocks).release(RECORDS, policy, epsilon=1, ledger=ledger)
    shown = dict(zip(found.labels["block"].tolist(), found.answers.tolist(), strict=True))
    assert shown == {"low": COUNTS[:6].sum(), "high": COUNTS[6:].sum()}
    assert found.epsilon == 0
    assert "exact" in found.description.remarks[0]
    assert not laws
    # Any other partition is noisy.
    mixed = md.tables.Linear([np.arange(12) % 2, 1 - np.arange(12) % 2]).release(RECORDS, policy, epsilon=1)
    assert mixed.epsilon == 1
    assert laws == [(DiscreteLaplace(Fraction(2)), 2)]


def test_linear_queries_on_a_lattice(laws: list[tuple[Any, int]]) -> None:
    line = Policy.threshold(Domain({"age": range(4)}), 1)
    weights = np.array([[0.1, 0.2, 0.3, 0.7], [0, 1, 0, 1]])
    found = md.tables.Linear(weights, step="0.1").release([0, 1, 3, 3], line, epsilon=1)
    # Moving 2 → 3 changes the first answer by 4 steps and the second by 10.
    assert laws == [(DiscreteLaplace(Fraction(14)), 2)]
    assert found.description.step == Fraction(1, 10)
    tenths = found.answers * 10
    np.testing.assert_allclose(tenths, np.rint(tenths), atol=1e-9)
    sharp = md.tables.Linear(weights, step="0.1").release([0, 1, 3, 3], line, epsilon=10**6, rng=1)
    np.testing.assert_allclose(sharp.answers, [1.7, 3], rtol=1e-15)
    exactly = [[Fraction(1, 3), 0, Fraction(2, 3), 1]]
    thirds = md.tables.Linear(exactly, step=Fraction(1, 3)).release([0, 2], line, epsilon=10**6, rng=1)
    assert thirds.answers.tolist() == [1]
    with pytest.raises(InputError, match="too large"):
        md.tables.Linear([2**61, 0, 0, 0]).release([0, 1], line, epsilon=1)


def test_sums(laws: list[tuple[Any, int]]) -> None:
    domain = Domain({"sex": ["f", "m"], "income": [0.5 * i for i in range(9)]})
    rows = [("f", 1.5), ("m", 4.0), ("f", 2.5)]
    found = md.tables.Sum("income").release(rows, Policy.attribute(domain, theta={"income": 1}), epsilon=10**6, rng=1)
    assert found.answers.tolist() == [1.5 + 4 + 2.5]
    # θ = 1 is two steps of 0.5.
    assert laws == [(DiscreteLaplace(Fraction(2, 10**6)), 1)]


def test_known_counts_raise_the_noise(laws: list[tuple[Any, int]]) -> None:
    domain = Domain({"age": range(4)})
    known = (np.array([1, 1, 0, 0]), 3)
    policy = Policy.full(domain, constraints=[known])
    md.tables.Histogram().release([0, 0, 1, 2], policy, epsilon=1)
    assert laws == [(DiscreteLaplace(Fraction(policy.sensitivity("histogram"))), 4)]
    assert policy.sensitivity("histogram") > 2
    with pytest.raises(InputError, match="constraints"):
        md.tables.Histogram().release([0, 2, 2, 2], policy, epsilon=1)


def test_a_ledger_that_refuses_stops_the_release(laws: list[tuple[Any, int]]) -> None:
    with pytest.raises(md.errors.BudgetExceededError):
        md.tables.Histogram().release(RECORDS, FULL, epsilon=1, ledger=md.Ledger(epsilon="1e-9"))
    assert not laws


def test_every_release_spends_from_one_ledger(tmp_path: Path) -> None:
    ledger = md.Ledger(epsilon=2, path=tmp_path / "ledger.json")
    line = Policy.threshold(Domain({"x": range(5)}), 1)
    md.tables.Histogram().release([0, 1, 4], line, epsilon="0.5", ledger=ledger)
    md.tables.Sum().release([0, 1, 4], line, epsilon="0.25", ledger=ledger)
    release_counts([1, 1, 0, 0, 1], 1, "0.25", ledger=ledger)
    release_counts([1, 1, 0, 0, 1], 3, "0.25", "ordered-hierarchical", ledger=ledger)
    md.tables.KMeans(2, iterations=2).release([0, 1, 4], line, epsilon="0.5", ledger=ledger)
    assert ledger.remaining_epsilon == Fraction(1, 4)
    for refused in (
        lambda: md.tables.Linear(np.eye(5)).release([0, 1, 4], line, epsilon="0.3", ledger=ledger),
        lambda: release_counts([1, 1, 0, 0, 1], len([1, 1, 0, 0, 1]), "0.3", "hierarchical", ledger=ledger),
        lambda: md.tables.KMeans(2, iterations=2).release([0, 1, 4], line, epsilon="0.3", ledger=ledger),
    ):
        with pytest.raises(md.errors.BudgetExceededError):
            refused()
    assert ledger.remaining_epsilon == Fraction(1, 4)


def test_saved_and_read_again(tmp_path: Path) -> None:
    found = md.tables.Histogram().release(RECORDS, FULL, epsilon="0.1", rng=2)
    md.save(found, tmp_path / "one" / "two", report=False)
    back = md.tables.load(tmp_path / "one" / "two")
    assert type(back) is md.tables.Release
    assert back.description == found.description
    assert len(back) == 12
    for name in found.labels:
        assert np.array_equal(back.labels[name], found.labels[name])
    for name in ("answers", "standard_errors", "low", "high"):
        assert np.array_equal(getattr(back, name), getattr(found, name))
    header = (tmp_path / "one" / "two" / "answers.csv").read_text().splitlines()
    assert header[0] == "age,sex,answers,standard_errors,low,high"
    assert header[2].startswith('0,"m, or other",')
    said = json.loads((tmp_path / "one" / "two" / "release.json").read_text())
    assert said["epsilon"] == "0.1"
    assert said["neighbours"] == FULL.neighbours
    assert sorted(path.name for path in (tmp_path / "one" / "two").iterdir()) == ["answers.csv", "release.json"]


def test_the_true_counts_are_nowhere(tmp_path: Path) -> None:
    counts = 10_007 + 31 * np.arange(12)
    found = md.tables.Histogram().release(
        policy=FULL, epsilon="0.001", rng=2, positions=np.repeat(np.arange(12), counts)
    )
    md.save(found, tmp_path, report=False)
    text = "".join(path.read_text() for path in tmp_path.iterdir())
    assert not any(str(count) in text for count in counts)
    assert not any(count in vars(found)[name] for count in counts for name in ("answers", "low", "high"))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    found = md.tables.Histogram().release(RECORDS, FULL, epsilon=1, rng=2)
    with pytest.raises(InputError, match="not contain a readable release"):
        md.tables.load(tmp_path)
    md.save(found, tmp_path, report=False)
    answers, header = tmp_path / "answers.csv", tmp_path / "release.json"
    whole, said = answers.read_bytes(), json.loads(header.read_text())
    answers.write_bytes(whole.replace(b"0,f", b"1,f", 1))
    with pytest.raises(InputError, match="is not the file"):
        md.tables.load(tmp_path)
    answers.write_bytes(whole)
    for change in ({"version": 3}, {"kind": "other"}, {"queries": 5}, {"epsilon": "none"}, {"more": 1}):
        header.write_text(json.dumps({**said, **change}))
        with pytest.raises(InputError, match="not contain a readable release"):
            md.tables.load(tmp_path)
    header.write_text(json.dumps(said))
    assert len(md.tables.load(tmp_path)) == 12


def test_a_crash_leaves_no_half_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    md.save(md.tables.Histogram().release(RECORDS, FULL, epsilon=1, rng=2), tmp_path, report=False)
    before = (tmp_path / "answers.csv").read_bytes()

    def broken(*_: object) -> Any:
        raise OSError("no space left")

    monkeypatch.setattr(release.msgspec.json, "encode", broken)
    with pytest.raises(ExportError):
        md.save(md.tables.Histogram().release(RECORDS, FULL, epsilon=1, rng=3), tmp_path, report=False)
    monkeypatch.undo()
    # What vouches for the answers goes first.
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"answers.csv": before}
    with pytest.raises(InputError, match="not contain a readable release"):
        md.tables.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError):
        md.save(md.tables.Histogram().release(RECORDS, FULL, epsilon=1, rng=3), tmp_path / "file", report=False)


def test_a_million_rows() -> None:
    rng = np.random.default_rng(1)
    table = {"age": rng.integers(0, 6, 10**6), "sex": np.array(["f", "m, or other"])[rng.integers(0, 2, 10**6)]}
    found = md.tables.Histogram().release(table, FULL, epsilon=1)
    assert found.answers.sum() == pytest.approx(10**6, abs=200)


def test_linear_queries_where_counts_are_known() -> None:
    policy = Policy.threshold(Domain({"x": range(4)}), 1, constraints=[([0, 1, 1, 0], 2)])
    assert len(md.tables.Linear(np.eye(4)).release([0, 1, 2], policy, epsilon=1)) == 4


def test_attributes_of_any_name_are_saved_and_read_again(tmp_path: Path) -> None:
    for name in ("low", "answers", "standard_errors", 'a "b", c', "description"):
        domain = Domain({name: range(10, 13), "sex": ["f", "m,\n"]})
        released = md.tables.Histogram().release([(10, "f"), (12, "m,\n")], Policy.full(domain), epsilon=1)
        md.save(released, tmp_path, report=False)
        again = md.tables.load(tmp_path)
        assert list(again.labels) == [name, "sex"]
        for label in again.labels:
            assert again.labels[label].tolist() == released.labels[label].tolist(), name
        for column in ("answers", "low", "high", "standard_errors"):
            assert getattr(again, column).tolist() == getattr(released, column).tolist(), name
        headings = next(csv.reader((tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()))
        assert len(set(headings)) == len(headings) == 6


def test_each_answer_stands_beside_its_label() -> None:
    policy = Policy.full(Domain({"x": ["a", "b", "c"]}))
    found = md.tables.Histogram().release(["a"] * 5 + ["c"] * 9, policy, epsilon=1000, rng=1)
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", found._repr_html_())
    for label, answer in zip("abc", found.answers.tolist(), strict=True):
        assert cells[cells.index(label) + 1].startswith(f"{answer:.4g}, from "), cells


def test_texts_are_cells_for_every_reader_of_csv() -> None:
    for text in ("a\rb", "a\nb", "a,b", 'a"b', "plain", " a "):
        [[cell]] = list(csv.reader(io.StringIO(f"{release._quote(text)}\r\n", newline="")))
        assert cell == text
        assert (release._quote(text)[0] == '"') == any(mark in text for mark in ',"\r\n')
