"""The series of a ledger: never below the true leakage, plans that are accepted as promised, and refusals."""

from __future__ import annotations

import itertools
import json
import pickle
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.certify._exact import exact_text
from mechdesign.errors import BudgetExceededError, InputError, LeakageExceededError, LedgerError
from mechdesign.leakage import Candidates
from mechdesign.leakage._contents import _digest
from mechdesign.leakage._partition import Partition
from mechdesign.leakage._upwards import first
from mechdesign.leakage.accounting import Ledger, LedgerSeries, begin_ledger
from mechdesign.tables._charges import count_complete

SAME = [[1, 0], [0, 1]]
CHAIN = md.MarkovChain([[0.96, 0.02, 0.02], [0.25, 0.6, 0.15], [0.04, 0.03, 0.93]])
BACK = CHAIN.reverse(CHAIN.stationary())


def a_series(epsilon: Any = None, path: Path | None = None, **given: Any) -> tuple[Ledger, LedgerSeries]:
    ledger = Ledger(epsilon, path=path)
    arguments = {"alpha": 1, "backward": BACK, "forward": CHAIN, "history": "others"} | given
    return ledger, ledger.add_series(**arguments)


def spend(ledger: Ledger, step: Any, epsilon: Any, **given: Any) -> Any:
    return ledger.spend("counts", "one person's value", epsilon=epsilon, step=step, **{"complete": 3} | given)


def true_leakage(chain: Any, start: np.ndarray, budgets: dict[int, float]) -> dict[int, float]:
    """Return ln of the largest ratio of two values at each time, over all outputs of randomised response.

    An adversary who knows the chain sees one answer for each release: the value with weight e^ε, any other with 1.
    """
    n, times = len(start), max(budgets) + 1
    answers = list(itertools.product(range(n), repeat=len(budgets)))
    joint = np.zeros((times, n, len(answers)))
    for path in itertools.product(range(n), repeat=times):
        chance = start[path[0]] * np.prod([chain[a, b] for a, b in itertools.pairwise(path)])
        kept = [np.where(np.arange(n) == path[t], np.exp(e), 1) for t, e in budgets.items()]
        likelihoods = [
            chance * np.prod([each[o] for each, o in zip(kept, outputs, strict=True)]) for outputs in answers
        ]
        for t in range(times):
            joint[t, path[t]] += likelihoods
    totals = [[start @ np.linalg.matrix_power(chain, t)] for t in range(times)]
    given = np.stack([joint[t] / np.transpose(totals[t]) for t in range(times)])
    return {t: float(np.log(given[t].max(axis=0) / given[t].min(axis=0)).max()) for t in range(times)}


@pytest.mark.parametrize("seed", range(8))
def test_leakages_are_never_below_the_truth_at_any_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, times = int(rng.integers(2, 4)), int(rng.integers(1, 5))
    chain = rng.dirichlet(np.full(n, 0.7), size=n) + 1e-3
    chain /= chain.sum(axis=1, keepdims=True)
    start = np.linalg.matrix_power(chain, 500)[0]
    steps = sorted(rng.choice(times, size=int(rng.integers(1, times + 1)), replace=False).tolist())
    back = (chain * start[:, None]).T / start[:, None]
    ledger, series = a_series(alpha=100, backward=back, forward=chain)
    budgets = {step: round(float(rng.uniform(0.05, 1)), 3) for step in steps}
    for step, epsilon in budgets.items():
        spend(ledger, step, epsilon, complete=n, gap=True)
    truth, most = true_leakage(chain, start, budgets), max(series.leakage.values())
    for step in range(times if steps[-1] == times - 1 else steps[-1] + 1):
        assert truth[step] <= series.leakage.get(step, most) + 1e-9


@pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")
def test_leakage_between_two_releases_is_below_the_larger_of_both() -> None:
    """TPL is convex there, as x − L(x) does not decrease; an entry of ε 0 shows the leakage of a step without one."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        back, ahead = (rng.dirichlet(np.full(3, rng.choice([0.2, 1, 4])), size=3) for _ in range(2))
        ledger, series = a_series(alpha=50, backward=Candidates([back, None]), forward=ahead)
        gap, ends = int(rng.integers(2, 7)), rng.uniform(0.01, 2, size=2).round(3).tolist()
        spend(ledger, 0, ends[0])
        spend(ledger, gap, ends[1], gap=True)
        found = series.leakage
        alone = Ledger()
        every = alone.add_series(alpha=50, backward=back, forward=ahead, history="others")
        joined = Partition.of([0, 0, 0, 1])
        for step in range(gap + 1):
            exact = 0 < step < gap
            spend(alone, step, 0 if exact else ends[step > 0], policy="p", classes=joined if exact else None)
        between = list(every.leakage.values())
        assert all(b <= (a + c) / 2 + 1e-12 for a, b, c in zip(between, between[1:], between[2:], strict=False))
        assert (found[0], found[gap]) == (between[0], between[-1])


def test_the_plans_of_the_paper_and_of_equal_steps() -> None:
    _, series = a_series(plan=("equal", 12))
    assert float(series.planned(1)) == pytest.approx(0.106256, abs=1e-6)
    _, series = a_series(plan=("allocated", 12))
    budgets = series._now[1].plan.budgets
    assert [round(float(budgets[i]), 3) for i in (0, 1, 10, 11)] == [0.527, 0.042, 0.042, 0.515]
    assert np.array_equal(list(map(float, budgets)), md.leakage.allocate_budget(1.0, 12, BACK, CHAIN))
    _, series = a_series(plan="constant")
    assert float(series.planned(5)) == md.leakage.constant_budget(1.0, BACK, CHAIN)
    assert [a_series(plan=plan)[1].plan for plan in (None, "constant", ("equal", 3), np.array([0.125]))] == [
        None,
        "constant",
        ("equal", 3),
        [Fraction(1, 8)],
    ]


def test_equal_budgets_are_exact_where_leakage_adds_up() -> None:
    for alpha, back, ahead in ((1, SAME, None), ("0.3", SAME, SAME), ("1/7", None, SAME)):
        ledger, series = a_series(alpha=alpha, backward=back, forward=ahead, plan=("equal", 3))
        assert series.planned(0) == series.largest(0) == Fraction(alpha) / 3
        for step in range(3):
            spend(ledger, step, series.planned(step), planned=True, complete=2)
        assert sum(series.steps.values()) == series.alpha
        # What is shown is rounded up, as a decimal too: 1/7 is more than 0.14285714285714285.
        assert Fraction(repr(max(series.leakage.values()))) >= series.alpha
        assert [series.planned(3), series.largest(3)] == [0, 0]
        with pytest.raises(InputError, match="plan: has a budget that is not positive"):
            series.plan = ("equal", 1)


def test_an_equal_share_of_alpha_fits_any_chain() -> None:
    """No release leaks more than all budgets together, also where roundings add up to a little more."""
    for p, steps in itertools.product((1e-3, 1e-15, 1e-16), (2, 3, 7)):
        near = [[1 - p, p], [p, 1 - p]]
        _, series = a_series(alpha="0.3", backward=near, forward=near, plan=("equal", steps))
        assert series.planned(0) >= Fraction(3, 10 * steps), (p, steps)


def test_a_step_reaches_at_least_its_budget() -> None:
    for budget in (Fraction(1, 7), Fraction(1, 3), Fraction(2, 3), Fraction(1, 10), 0.1, 0.3):
        assert Fraction(first(budget).reached) >= Fraction(str(budget))


def test_a_plan_is_bounded_by_what_is_left_of_the_total() -> None:
    ledger, series = a_series(Fraction(1, 2), plan=("equal", 10))
    assert series.planned(0) == Fraction(1, 20)
    ledger = Ledger(rho="1/200")
    series = ledger.add_series(alpha=1, backward=None, forward=CHAIN, plan=("equal", 4), history="others")
    planned = series.planned(0)
    assert 0 <= Fraction(1, 400) - planned**2 <= Fraction(1, 10**20)
    for step in range(4):
        spend(ledger, step, series.planned(step))
    assert ledger.remaining_rho >= 0
    # A plan is judged with what is left, not with the whole budget; ρ adds up ε²/2.
    ledger, series = a_series(1, alpha=9)
    spend(ledger, 0, "0.6")
    with pytest.raises(BudgetExceededError, match=r"ε = 0.5, but 0.4 is left"):
        series.plan = [0.5]
    ledger = Ledger(rho="0.015")
    series = ledger.add_series(alpha=1, backward=None, forward=CHAIN, plan=[0.1] * 3, history="others")
    with pytest.raises(BudgetExceededError, match=r"ρ = 0.02, but 0.015 is left"):
        series.plan = [0.1] * 4


def test_what_a_plan_promises_is_accepted_step_by_step() -> None:
    for plan, steps in ((("equal", 10), 10), (("allocated", 9), 9), ("constant", 20), ([0.2, 0.05, 0.2], 3)):
        ledger, series = a_series(plan=plan)
        for step in range(steps):
            assert step % 5 or series.largest(step) == series.planned(step)
            spend(ledger, step, series.planned(step), planned=True)
        assert (series.planned(steps) == 0) == (plan != "constant")


def test_a_plan_may_be_replaced_at_any_time_and_a_late_or_repeated_step_has_a_way() -> None:
    ledger, series = a_series(2, plan=("equal", 12))
    month = series.planned("2026-01")
    for step in ("2026-01", "2026-02", "2026-04"):
        spend(ledger, step, month, planned=True, gap=True)
    # The late month has the fourth budget; its repetition has none.
    spend(ledger, "2026-03", month, planned=True)
    with pytest.raises(BudgetExceededError, match=r"ε = 0.01 at step 2026-03.*0 is left.*remove the plan"):
        spend(ledger, "2026-03", 0.01)
    with pytest.raises(BudgetExceededError, match="now 0 is planned"):
        spend(ledger, "2026-03", month, planned=True)
    series.plan = None
    assert series.planned("2026-03") is None
    spend(ledger, "2026-03", 0.01)
    series.plan = ("equal", 9)
    assert 0 < series.planned("2026-05") < month
    assert [series.planned(step) for step in ("2026-03", "2026-01")] == [0, 0]
    with pytest.raises(BudgetExceededError, match=r"now 0.* is planned"):
        spend(ledger, "2026-05", month, planned=True)
    for number in range(5, 13):
        spend(ledger, f"2026-{number:02}", series.planned(f"2026-{number:02}"), planned=True)
    spend(ledger, "2027-01", series.planned("2027-01"), planned=True)
    assert series.largest("2027-02") <= Fraction(1, 10**6)
    assert [entry.turn for entry in ledger.entries] == [0, 1, 2, 3, None, *range(9)]
    assert [plan.kind for plan in ledger._contents.series.plans] == ["equal", "none", "equal"]
    assert max(series.leakage.values()) <= 1


def test_less_than_planned_is_lost_and_parts_share_the_budget_of_a_step() -> None:
    ledger, series = a_series(plan=[0.1, 0.2])
    north, south = (md.tables.part_of(ledger, POLICY, "clinics", part=name) for name in ("north", "south"))
    spend(ledger, 0, "0.03")
    assert [series.planned(0), series.planned(1)] == [Fraction(7, 100), Fraction(1, 5)]
    for part in (north, south):
        assert part.series.planned(0) == part.series.largest(0) == Fraction(7, 100)
        assert part.spend("x", "y", epsilon="0.05", step=0, complete=3).policy == part.policy
    assert (series.planned(0), north.series.planned(0)) == (Fraction(2, 100), Fraction(2, 100))
    assert series.steps == {0: Fraction(8, 100)}
    north.spend("x", "y", epsilon="0.02", step=0, complete=3)
    assert (series.planned(0), south.series.planned(0)) == (0, Fraction(2, 100))
    assert ledger.spent.epsilon == Fraction(1, 10)
    last = south.spend("x", "y", epsilon="0.02", step=0, complete=3)
    with pytest.raises(BudgetExceededError, match=f"last entry of step 0 is (?!{last.number})"):
        north.spend("x", "y", epsilon="0.01", step=0, complete=3)


def test_who_moves_to_another_part_loses_both() -> None:
    ledger, series = a_series(epsilon=1, alpha=9)
    spend(ledger, 0, "0.4", part=("clinics", "north"))
    spend(ledger, 1, "0.5", part=("clinics", "south"))
    assert ledger.spent.epsilon == ledger.by_policy[0].spent.epsilon == Fraction(9, 10)
    with pytest.raises(BudgetExceededError):
        spend(ledger, 1, "0.2", part=("clinics", "south"))
    assert series.largest(1, ("clinics", "north")) == Fraction(6, 10)
    spend(ledger, 1, "0.6", part=("clinics", "north"))
    assert series.steps == {0: Fraction(2, 5), 1: Fraction(3, 5)}


def test_the_largest_of_a_part_counts_what_another_part_spends_in_the_step() -> None:
    north, south = ("clinics", "north"), ("clinics", "south")
    ledger = Ledger(rho="0.02")
    series = ledger.add_series(alpha=9, backward=None, forward=CHAIN, history="others")
    spend(ledger, 0, "0.1", part=north)
    most = series.largest(0, south)
    assert 0 <= Fraction(1, 5) - most < Fraction(1, 10**20)
    spend(ledger, 0, most, part=south)
    ledger, series = a_series(backward=SAME, forward=None)
    spend(ledger, 0, "0.6", part=north, complete=2)
    assert [series.largest(0, part) for part in (north, south)] == [Fraction(2, 5), 1]
    spend(ledger, 0, 1, part=south, complete=2)


def test_a_refusal_names_the_step_that_leaks_and_who_used_it() -> None:
    ledger, series = a_series()
    first = spend(ledger, "2026-01", "0.9")
    with pytest.raises(LeakageExceededError) as caught:
        spend(ledger, "2026-02", "0.3")
    assert (caught.value.step, caught.value.alpha) == ("2026-01", 1.0)
    assert caught.value.leakage > 1
    for said in ("step 2026-01 would leak 1.", "At step 2026-02 at most ε = 0.1", first.number, first.who, "counts"):
        assert said in str(caught.value), said
    assert len(ledger.entries) == 1
    most = series.largest("2026-02")
    assert f"at most ε = {exact_text(most)} fits" in str(caught.value)
    spend(ledger, "2026-02", most)
    assert 1 - 1e-12 < series.leakage["2026-01"] <= 1


def test_an_earlier_step_is_judged_with_all_others() -> None:
    ledger, series = a_series(backward=SAME, forward=SAME)
    spend(ledger, 5, "0.5", complete=2)
    spend(ledger, 3, "0.4", complete=2, gap=True)
    assert series.leakage == {3: 0.9, 5: 0.9}
    with pytest.raises(LeakageExceededError, match=r"would leak 1\.1"):
        spend(ledger, 4, "0.2", complete=2)
    assert series.largest(4) == Fraction(1, 10)


def test_a_series_is_kept_in_the_file_of_its_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ledger, series = a_series(2, path, backward=Candidates([BACK, None]), plan=("equal", 12), domain="d")
    other = Ledger(path=path)
    spend(other, "2026-11", other.series.planned("2026-11"), planned=True, domain="d")
    assert (series.steps, series.leakage, series.plan) == (other.series.steps, other.series.leakage, ("equal", 12))
    assert Ledger(path=path).entries == ledger.entries
    series.plan = ("equal", 3)
    assert other.series.planned("2026-12") == series.planned("2026-12")
    document = json.loads(path.read_text())
    assert document["series"]["backward"][0]["matrix_sha256"] == md.leakage.LossFunction(BACK).digest
    assert len(document["series"]["plans"][0]["budgets"]) == 1
    for wrong in (
        {"alpha": "0"},
        {"alpha": "x"},
        {"history": "mine"},
        {"backward": []},
        {"backward": [None], "forward": [None]},
        {"plans": []},
        {"domain": 3},
        {"plans": [{"kind": "constant", "budgets": [], "since": 0, "when": ""}]},
        {"plans": [{"kind": "none", "budgets": [["1", 3]], "since": 0, "when": ""}]},
        {"plans": [{"kind": "equal", "budgets": [["-1", 3]], "since": 0, "when": ""}]},
        {"plans": [{"kind": "equal", "budgets": [["1", 3]], "since": 9, "when": ""}]},
        {"backward": [{"n": 3, "matrix_sha256": "", "lines": [[2, 0, 0]]}]},
    ):
        changed = {key: value for key, value in document.items() if key != "sha256"}
        changed["series"] = changed["series"] | wrong
        changed["sha256"] = _digest(changed)
        path.write_text(json.dumps(changed))
        with pytest.raises(LedgerError, match="is incomplete"):
            Ledger(path=path)


def test_a_series_is_given_anew_only_without_entries() -> None:
    ledger, _ = a_series()
    ledger.add_series(alpha=2, backward=None, forward=CHAIN, history="own")
    assert (ledger.series.alpha, ledger.series.history) == (2, "own")
    ledger.spend("a table", "one person's sex", epsilon=1, series=False)
    ledger.add_series(alpha=3, backward=None, forward=CHAIN, history="others")
    spend(ledger, 1, "0.1")
    with pytest.raises(LedgerError, match="cannot be given anew"):
        ledger.add_series(alpha=3, backward=None, forward=CHAIN, history="others")
    plain = Ledger(epsilon=3)
    plain.spend("a table", "one person's sex", epsilon=1, series=False)
    plain.spend("a table", "one person's sex", epsilon=1)
    with pytest.raises(LedgerError, match="new ledger with what is left"):
        plain.add_series(alpha=3, backward=None, forward=CHAIN, history="others")
    assert plain.series is None


def test_a_series_is_read_again_before_it_is_charged_or_given_anew(tmp_path: Path) -> None:
    begin_ledger(path := tmp_path / "l.json", 2)
    one, other = Ledger(path=path), Ledger(path=path)
    one.add_series(alpha=1, backward=BACK, forward=CHAIN, history="others")
    spend(other, 1, "0.1")
    with pytest.raises(LedgerError, match="cannot be given anew"):
        one.add_series(alpha=9, backward=BACK, forward=CHAIN, history="others")
    assert (len(other.entries), other.series.alpha) == (1, 1)


def test_budgets_from_own_data_have_four_digits_and_no_less_than_the_share_of_alpha() -> None:
    _, series = a_series(plan=("equal", 12), history="own")
    assert series.planned(0) == Fraction("0.1062")
    _, series = a_series(alpha=1, backward=SAME, forward=None, plan=("equal", 12), history="own")
    assert series.planned(0) == Fraction(1, 12)
    _, series = a_series("1/2", plan=("equal", 12), history="own")
    assert series.planned(0) == Fraction(1, 24)
    for plan in ("constant", ("allocated", 12)):
        _, series = a_series(plan=plan, history="own")
        assert all(len(str(float(each)).lstrip("0.")) <= 4 for each in series.budgets), plan


def test_a_new_plan_from_own_data_tells_no_more_than_four_digits() -> None:
    """What earlier releases leak depends on the matrices: α less that, by the number of steps, has all their digits."""
    for p in (1e-6, 3e-8):
        own = [[1 - p, p], [p / 3, 1 - p / 3]]
        ledger, series = a_series(backward=own, forward=own, plan=("equal", 12), history="own")
        for step in range(3):
            spend(ledger, step, series.planned(step) * Fraction(3, 4), complete=2)
        series.plan = ("equal", 9)
        assert len(str(float(series.planned(3))).lstrip("0.")) <= 4
        series.plan = None
        with pytest.raises(LeakageExceededError, match=r"at most ε = 0\.0*[1-9][0-9]{0,3} fits"):
            spend(ledger, 3, 2, complete=2)
        series.plan = [Fraction("0.0123456789")]
        assert series.planned(3) == Fraction("0.0123456789")


def test_what_is_left_by_rounding_alone_is_no_plan() -> None:
    ledger, series = a_series()
    spend(ledger, 0, "0.9999999999999")
    with pytest.raises(InputError, match=r"plan: has a budget that is not positive.*nothing is left of alpha"):
        series.plan = ("equal", 2)
    with pytest.raises(LeakageExceededError, match=r"before the plan would leak 1.00.*where α is used up") as caught:
        series.plan = [Fraction(1, 10**9)]
    assert "would leak 1;" not in str(caught.value)
    spend(ledger, 400, "0.1", gap=True)
    with pytest.raises(InputError, match="nothing is left of alpha"):
        series.plan = ("equal", 2)


def test_a_long_gap_delays_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest ε of a refusal is computed after the lock is free, and in few steps."""
    path = tmp_path / "l.json"
    near = [[1 - 1e-3, 1e-3], [1e-3, 1 - 1e-3]]
    ledger, series = a_series(path=path, backward=near, forward=near)
    for step in (0, 2000):
        spend(ledger, step, "0.4", complete=2, gap=True)
    leakages, computed = type(series._now[1]).leakages, []

    def spied(self: Any, spent: Any) -> Any:
        computed.append(2100 in spent)
        if len(computed) == 3:
            # The first computation of the hint; the one before it was the judgement.
            Ledger(path=path, wait=0).spend("beside", "x", epsilon=1, series=False)
        return leakages(self, spent)

    monkeypatch.setattr(type(series._now[1]), "leakages", spied)
    with pytest.raises(LeakageExceededError, match="at most ε = 0"):
        spend(ledger, 2100, "0.9", complete=2, gap=True)
    assert len(computed) < 20
    assert [entry.what for entry in Ledger(path=path).entries] == ["counts", "counts", "beside"]


def test_a_refused_release_with_a_step_makes_no_ledger(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="step: is given, but the ledger has no series"):
        spend(Ledger(epsilon=1, path=tmp_path / "l.json"), 1, "0.1")
    assert list(tmp_path.iterdir()) == []


def test_a_copy_from_before_the_series_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    ledger = Ledger(epsilon=5, path=path)
    ledger.spend("a table", "one person's sex", epsilon=1, series=False)
    before = path.read_bytes()
    ledger.add_series(alpha=1, backward=BACK, forward=CHAIN, history="others")
    pickled = pickle.dumps(ledger)
    empty = path.read_bytes()
    # A series without entries may be given anew, also by another process.
    Ledger(path=path).add_series(alpha=2, backward=BACK, forward=CHAIN, history="others", plan=("equal", 3))
    spend(ledger, 1, "0.1")
    assert pickle.loads(pickled).series.alpha == 2
    charged = path.read_bytes()
    ledger.series.plan = None
    for older in (before, empty, charged):
        path.write_bytes(older)
        for use in (lambda: ledger.spend("z", "y", epsilon=3, series=False), lambda: ledger.series):
            with pytest.raises(LedgerError, match="no longer holds the earlier entries and the series"):
                use()
    path.write_bytes(before)
    with pytest.raises(LedgerError, match="no longer holds"):
        pickle.loads(pickled)


def test_a_ledger_of_another_version_is_not_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "l.json"
    Ledger(epsilon=1, path=path).spend("a", "b", epsilon="0.5")
    path.write_text(path.read_text().replace("mechdesign.ledger/2", "mechdesign.ledger/1"))
    with pytest.raises(LedgerError, match=r"written by another version.*what is left of its budget"):
        Ledger(path=path)


def test_candidates_with_none_assume_no_more_than_the_matrix() -> None:
    _, series = a_series(backward=Candidates([None, BACK]))
    assert not any("does not know" in sentence for sentence in series.assumptions)


def test_promises_are_three_sentences_and_the_assumptions_are_named() -> None:
    ledger, _ = a_series(backward=None, forward=Candidates([CHAIN, BACK]), history="own")
    spend(ledger, 1, "0.1")
    last = spend(ledger, 2, "0.2", part=("clinics", "north"))
    one, together, each, *assumed = ledger.promises(last)
    assert "ε = 0.2" in one
    assert "ε = 0.3" in together
    assert "α = 1" in each
    for said in ("each person and at every step", "who is unsure", "does not know the backward", "own data", "Groups"):
        assert any(said in sentence for sentence in assumed), said
    (said,) = ledger.promises(ledger.spend("a table", "x", epsilon=1, series=False))
    assert "outside the series" in said
    assert any(
        said.startswith("Steps left out between 2 and 6 at this time: 3. What was released there before is not")
        for said in ledger.promises(spend(ledger, 6, "0.1", gap=True))
    )
    assert Ledger().promises(last) == ()


def test_a_step_may_lie_far_away_and_no_farther() -> None:
    ledger, series = a_series()
    spend(ledger, 0, "0.1")
    assert 0 < series.largest(99_999) <= 1
    assert series.largest(100_000) == 0
    spend(ledger, -99_999, "0.1", gap=True)
    assert series.largest(1) == 0
    with pytest.raises(InputError, match="step: is too far from the steps"):
        spend(ledger, 1, "0.1")


DOMAIN = md.tables.Domain({"status": ["employed", "unemployed", "inactive"]})
POLICY = md.tables.Policy.full(DOMAIN)


def test_only_full_policies_without_known_counts_and_absence_are_complete() -> None:
    full, domain = md.tables.Policy.full, md.tables.Domain({"age": range(5)})
    for name, policy in {
        "neighbours": md.tables.Policy.threshold(domain, 1),
        "known counts": full(domain, constraints=[[1, 0, 0, 0, 0]]),
        "absence": full(domain, unbounded=True),
        "both": full(domain, constraints=[[1, 0, 0, 0, 0]], unbounded=True),
    }.items():
        assert count_complete(policy) is None, name
    assert [count_complete(full(each)) for each in (domain, md.tables.Domain({"age": [1]}))] == [5, 1]


def test_each_part_of_a_division_is_released_with_the_whole_planned_budget() -> None:
    ledger, _ = a_series(2, plan=[0.1])
    for name in ("north", "south"):
        part = md.tables.part_of(ledger, POLICY, "clinics", part=name)
        release = md.tables.Histogram().release(["inactive"], POLICY, epsilon="planned", ledger=part, step=1)
        assert release.epsilon == Fraction(1, 10)
        with pytest.raises(InputError, match="under another policy"):
            part.check("x", "y", epsilon="0.01", policy="another", step=1, complete=3)


def test_releases_of_tables_follow_the_plan() -> None:
    ledger, series = a_series(2, plan=("equal", 3))
    given = {"policy": POLICY, "ledger": ledger, "epsilon": "planned"}
    planned = series.planned("2026-11")
    release = md.tables.Histogram().release(["employed"] * 9, step="2026-11", **given)
    assert release.epsilon == planned
    assert any("α = 1" in remark for remark in release.description.remarks)
    assert [entry.step for entry in ledger.entries] == ["2026-11"]
    with pytest.raises(BudgetExceededError, match="nothing is left of the planned budget of step 2026-11"):
        md.tables.Histogram().release(["employed"] * 9, step="2026-11", **given)
    # The data are not looked at before the ledger agrees.
    for wrong, error in (
        ({"step": None}, InputError),
        ({"step": 3}, InputError),
        ({"step": "2027-01"}, InputError),
        ({"step": "2026-12", "epsilon": 3}, BudgetExceededError),
        ({"step": "2026-12", "policy": md.tables.Policy.partition(DOMAIN, [0, 0, 1]), "epsilon": 0.1}, InputError),
        ({"step": "2026-12", "policy": md.tables.Policy.full(DOMAIN, unbounded=True), "epsilon": 0.1}, InputError),
        ({"step": None, "epsilon": 0.1}, InputError),
        ({"step": "2026-12", "rows_per_person": 2}, InputError),
        ({"step": "2026-12", "epsilon": None, "rho": 0.1}, InputError),
    ):
        with pytest.raises(error):
            md.tables.Histogram().release(object(), **given | wrong)
    md.tables.Sum().release(
        [1], md.tables.Policy.full(md.tables.Domain({"age": range(9)})), epsilon=0.1, series=False, ledger=ledger
    )
    assert [entry.series for entry in ledger.entries] == [None, False]
    assert md.tables.Histogram().release(["inactive"], step="2027-03", gap=True, **given).epsilon == planned


def test_exact_answers_are_released_in_a_series_only_if_they_tell_no_values_apart() -> None:
    ledger, series = a_series(2, plan=[0.1])
    number = md.tables.Histogram([0, 0, 0])
    given = {"policy": POLICY, "ledger": ledger, "step": 1}
    for epsilon in ("planned", 5):
        release = number.release(["employed"] * 9, epsilon=epsilon, **given)
        assert (release.answers.tolist(), release.epsilon) == ([9], 0)
    assert ([entry.turn for entry in ledger.entries], series.planned(1)) == ([None, None], Fraction(1, 10))
    assert md.tables.Histogram().release(["employed"] * 9, epsilon="planned", **given).epsilon == Fraction(1, 10)


def test_traces_are_outside_the_series() -> None:
    ledger, _ = a_series(2)
    line, walk = md.Domain.grid(2, 1, 2.0, 1.0), md.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    arguments = (line, md.graphs.line(2), "0.4", walk, md.Prior.uniform(2))
    with pytest.raises(InputError, match="step: is missing"):
        md.traces.Trace(*arguments, ledger=ledger).step(0)
    md.traces.Trace(*arguments, ledger=ledger, series=False).step(0)
    assert [entry.series for entry in ledger.entries] == [False]


def test_a_charge_is_judged_again_under_the_lock(tmp_path: Path) -> None:
    """What another process charges between the check and the charge counts."""
    path = tmp_path / "l.json"
    ledger, series = a_series(2, path, plan=("equal", 3))
    planned = series.planned(1)
    ledger.check("x", "y", epsilon=planned, step=1, complete=3, planned=True)
    spend(Ledger(path=path), 1, planned, planned=True)
    with pytest.raises(BudgetExceededError, match="now 0 is planned; the last entry of step 1"):
        spend(ledger, 1, planned, planned=True)
    Ledger(path=path).series.plan = None
    with pytest.raises(BudgetExceededError, match="has no plan now"):
        spend(ledger, 2, planned, planned=True)
    assert len(ledger.entries) == 1


def test_a_check_refuses_a_ledger_in_the_memory_of_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, _ = a_series()
    monkeypatch.setattr(ledger._lock, "process", -1)
    with pytest.raises(LedgerError, match="cannot be charged in process"):
        ledger.check("x", "y", epsilon="0.1", step=1, complete=3)


@pytest.mark.slow
def test_three_hundred_releases(tmp_path: Path) -> None:
    ledger, series = a_series(100, tmp_path / "l.json", plan=("equal", 300))
    started = time.process_time()
    for step in range(300):
        spend(ledger, step, series.planned(step), planned=True)
    assert time.process_time() - started < 20
    assert 1 - 1e-9 < max(series.leakage.values()) <= 1


def test_wrong_input_is_refused_and_records_nothing() -> None:
    ledger, series = a_series(9, plan=("equal", 12))
    spend(ledger, "2026-11", series.planned("2026-11"), domain="d")
    ready = {"step": "2026-12", "epsilon": Fraction(1, 100), "domain": "d"}

    def row(name: str, path: str, says: str = "", error: type[Exception] = InputError, **given: Any) -> Mistake:
        return Mistake(name, lambda: spend(ledger, **ready | given), path, says, error)  # type: ignore[arg-type]

    def adds(name: str, path: str, says: str = "", error: type[Exception] = InputError, **given: Any) -> Mistake:
        return Mistake(name, lambda: a_series(**given), path, says, error)  # type: ignore[arg-type]

    def replan(plan: Any) -> None:
        series.plan = plan

    before = ledger.entries
    assert_refused(
        [
            row("no step", "step", "series=False", step=None),
            *(
                row(f"step {str(step)[:9] if step != 10**5000 else 'long'}", "step", "is not a time step", step=step)
                for step in ("12", "2026-13", 1.0, True, "", 10**15, 10**5000)
            ),
            row("a number among months", "step", "of another kind", step=24323),
            row("a hole", "step", "leaves out steps (1): the nearest one with an entry is 2026-11", step="2027-01"),
            row("a partial policy", "policy", "Policy.full", complete=None),
            row("a chain of another size", "complete", "must be 3", complete=4),
            row("fewer values than the chain", "complete", "must be 3", complete=2),
            row("no number of values", "complete", complete=0),
            row("another domain", "domain", "other values than the series", domain="e"),
            row("no domain", "domain", domain=None),
            row("ρ", "rho", "ε²/2", epsilon=None, rho=1),
            row("an exact answer", "classes", epsilon=0, classes=Partition.of([0, 1, 2, 3])),
            row("ε 0", "epsilon", epsilon=0),
            row("a step outside", "series", series=False),
            row("series that is true", "series", series=True),
            row("planned", "planned", planned=1),
            row("gap", "gap", gap="yes"),
            row("gap without a step", "gap", step=None, gap=True, series=False),
            row("planned without a step", "planned", step=None, planned=True, series=False),
            row("above the plan", "", "replace the plan", BudgetExceededError, epsilon=1),
            Mistake("no series", lambda: spend(Ledger(), 1, 1), "step", "add_series", InputError),
            adds("α 0", "alpha", alpha=0),
            adds("a tiny α", "alpha", "out of range", alpha="1e-310", plan=("equal", 3)),
            adds("a huge α", "alpha", "out of range", alpha="1e400", plan=("equal", 3)),
            adds("no history", "history", "other people", history=None),
            adds("two None", "backward", "without a series", backward=None, forward=None),
            adds("two sizes", "forward", "same chain", forward=SAME),
            adds("rows below 1", "forward[0]", forward=[[0.5, 0.4], [0.5, 0.5]]),
            adds("correlations that change", "backward", backward=md.leakage.Varying([BACK])),
            adds("no domain", "domain", domain=""),
            adds("an unknown plan", "plan", plan="equal"),
            adds("an array of two dimensions", "plan", plan=np.array([[0.1]])),
            adds("a number in an array", "plan", plan=np.array(0.1)),
            adds("a kind in an array", "plan", plan=(np.array(["equal", "x"]), 1)),
            adds("no steps", "plan[1]", plan=("equal", 0)),
            adds("too many steps", "plan[1]", plan=("allocated", 10**6)),
            adds("an empty list", "plan", plan=[]),
            adds("a budget of 0", "plan[1]", plan=[0.1, 0]),
            adds("a text in a list", "plan[0]", plan=["x"]),
            adds(
                "a constant where all adds up",
                "plan",
                "disjoint supports",
                backward=SAME,
                forward=None,
                plan="constant",
            ),
            adds("an allocation there", "plan", '("equal", 12)', backward=SAME, forward=None, plan=("allocated", 3)),
            adds(
                "an allocation above the total", "", "is left", BudgetExceededError, epsilon=1, plan=("allocated", 12)
            ),
            adds("a list above the total", "", "is left", BudgetExceededError, epsilon=1, plan=[0.6, 0.6]),
            adds("a list above α", "", "2 of the plan", LeakageExceededError, plan=[0.1, 1.1]),
            Mistake("a list above α later", lambda: replan([0.9, 0.9]), "", "of the plan", LeakageExceededError),
            Mistake("planned at no step", lambda: series.planned("november"), "step", error=InputError),
            Mistake("largest at no step", lambda: series.largest(None), "step", error=InputError),  # type: ignore[arg-type]
            Mistake("a part", lambda: series.planned("2026-12", "north"), "part", error=InputError),  # type: ignore[arg-type]
        ]
    )
    assert (ledger.entries, series.plan) == (before, ("equal", 12))


def test_the_place_in_a_series_needs_a_ledger() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"status": ["yes", "no"]}))
    for name, value in (("step", 0), ("gap", True), ("series", "no"), ("series", False)):
        with pytest.raises(InputError, match=f"^{name}: is given without a ledger"):
            md.tables.Histogram().release(["yes"], policy, epsilon=1, **{name: value})
