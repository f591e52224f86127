"""Row programs are built within the time limit, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base._deadline import Deadline, OutOfTimeError
from mechdesign.solve import _apart as apart
from mechdesign.solve._contract import Status
from mechdesign.synthesis import _attempts as plans
from mechdesign.synthesis import _rows as row_generation
from mechdesign.synthesis._normal import find_bounded_pairs, mark_irreducible, measure_dilation, normalise
from mechdesign.synthesis._rows import list_all_rows, list_permitted_rows


def scattered(n: int, floor: float = 0.0) -> md.Problem:
    rng = np.random.default_rng(n)
    distance = md.distances.euclidean(4 * rng.random((n, 2)))
    prior = rng.dirichlet(np.ones(n))
    wanted = [md.MetricPrivacy("1", distance)]
    if floor:
        wanted.append(md.DistortionPrivacy(floor * float((distance @ prior).min()), distance))
    return md.Problem(prior, distance, wanted)


@each_row(("rows", "floor"), [("all", 0.5), ("reduced", 0.0), ("near", 0.5), ("lazy", 0.0), ("lazy", 0.5)])
def test_a_program_that_takes_longer_to_build_than_there_is_time_is_not_built(
    rows: str, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*given: object, **named: object) -> None:
        raise AssertionError("it is built")

    monkeypatch.setattr(row_generation, "_BUILD_S_PER_ROW", 1.0)
    monkeypatch.setattr(row_generation, "RowReduction", build)
    made = md.design(scattered(12, floor), solver="highs-simplex", rows=rows, time_limit=5.0)
    assert made.status is Status.TIME_LIMIT
    assert "no time to build" in made.summary.message
    assert made.summary.solver == "highs-simplex"
    assert made.certificate.holds
    with pytest.raises(AssertionError, match="it is built"):
        md.design(scattered(12, floor), solver="highs-simplex", rows=rows)


def test_a_program_that_is_built_too_late_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start() -> None:
        raise AssertionError("a process is started")

    monkeypatch.setattr(apart, "_process", start)
    made = md.design(scattered(12), solver="highs-pdlp", time_limit=1e-9)
    assert made.status is Status.TIME_LIMIT
    assert "no time to" in made.summary.message
    with pytest.raises(AssertionError, match="a process is started"):
        md.design(scattered(12), solver="highs-pdlp", time_limit=10.0)


def test_a_late_second_near_program_keeps_the_bound_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    solve, count = row_generation.RowPrograms.solve, []

    def once(self: row_generation.RowPrograms, *given: object) -> object:
        count.append(1)
        if len(count) > 1:
            raise OutOfTimeError
        return solve(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(row_generation.RowPrograms, "solve", once)
    made = md.design(scattered(12), solver="highs-simplex", rows="near", time_limit=30.0)
    assert made.status is Status.TIME_LIMIT
    assert 0 < made.certificate.lower_bound < made.certificate.expected_cost


def test_the_deadline_is_checked_during_the_search_for_pairs() -> None:
    form, past = normalise(scattered(12)), Deadline(0.0)
    pairs = find_bounded_pairs(form, "all")
    for call in (
        lambda: mark_irreducible(form.exponents, deadline=past),
        lambda: find_bounded_pairs(form, "reduced", past),
        lambda: measure_dilation(form.exponents, pairs, past),
        lambda: list_permitted_rows(pairs, form, past),
    ):
        with pytest.raises(OutOfTimeError):
            call()


def test_rows_listed_in_batches_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    form = normalise(scattered(12))
    pairs = find_bounded_pairs(form, "reduced")
    monkeypatch.setattr("mechdesign.synthesis._rows._ROWS_PER_CHECK", 300)
    some, every = list_permitted_rows(pairs, form), list_all_rows(pairs, form.observables)
    for name in ("sources", "targets", "observables"):
        assert np.array_equal(getattr(some, name), getattr(every, name))


def test_many_rows_are_not_counted_for_the_block_method(monkeypatch: pytest.MonkeyPatch) -> None:
    form = normalise(scattered(30))
    assert plans._bound_rows_below(form) <= int(find_bounded_pairs(form, "reduced").sum()) * form.observables
    before = [plans.first_attempt(form, solver) for solver in ("auto", "block")]
    monkeypatch.setattr(plans, "MAX_SIMPLEX_ROWS", 100)
    monkeypatch.setattr(plans, "find_bounded_pairs", None)
    after = [plans.first_attempt(form, solver) for solver in ("auto", "block")]
    assert [(one.solver, one.rows, one.reason) for one in after] == [
        (one.solver, one.rows, one.reason) for one in before
    ]


def test_rows_that_cannot_be_counted_in_time_have_a_lower_bound() -> None:
    form, past = normalise(scattered(30)), Deadline(0.0)
    found = plans.first_attempt(form, "highs", deadline=past)
    assert found.rows == "reduced"
    assert found.reason.startswith("at least 900 privacy rows")


def test_without_a_temporary_folder_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart.tempfile, "tempdir", "/nonexistent")
    with pytest.raises(md.errors.SolverError, match="TMPDIR"):
        md.design(scattered(5), solver="highs-pdlp")
