"""Whoever keeps the budget of a trace keeps it: copies, forks, threads, and stages drawn from by themselves."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from company import at_once, held_by_another_thread, in_child, needs_fork
from trace_examples import ring, strip

import mechdesign as md
from mechdesign.certify import _certificate as certificate
from mechdesign.errors import BudgetExceededError, InputError, LedgerError, StateError
from mechdesign.traces import _stage as stages
from mechdesign.traces._trace import Trace

# Libraries have threads of their own, which take no part here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

both_mechanisms = pytest.mark.parametrize("mechanism", ["planar-isotropic", "lp"])


def made(ledger: md.Ledger | None = None, mechanism: str = "planar-isotropic", **changed: Any) -> Trace:
    return Trace(strip(4), md.graphs.complete(4), 1, ring(4), np.full(4, 0.25), mechanism, ledger=ledger, **changed)


def raised(work: Callable[[], object]) -> int:
    """Return 1 where a trace does not go on, 2 where a ledger refuses, and 0 otherwise."""
    try:
        work()
    except StateError:
        return 1
    except LedgerError:
        return 2
    return 0


def pickled(trace: Any) -> Any:
    return pickle.loads(pickle.dumps(trace))


COPIES: tuple[Callable[[Trace], Trace], ...] = (copy.copy, copy.deepcopy, pickled)


@both_mechanisms
def test_each_draw_of_a_stage_is_charged_and_a_step_once(mechanism: str) -> None:
    ledger = md.Ledger(epsilon=5)
    trace = made(ledger, mechanism)
    stages = trace.table(2)
    assert ledger.spent.epsilon == 0
    for state, stage in enumerate(stages):
        stage.draw(state)
    release = trace.step(2)
    assert ledger.spent.epsilon == 3
    assert release.entry == ledger.entries[-1].number
    release.stage.draw(2)
    # A generator does not make a rehearsal of what has a ledger.
    release.stage.draw(2, np.random.default_rng(1))
    assert ledger.spent.epsilon == 5
    for stage in (*stages, release.stage):
        with pytest.raises(BudgetExceededError):
            stage.draw(0)
    # Without a ledger in so many words.
    replace(release.stage, ledger=None).draw(1)
    assert len({entry.policy for entry in ledger.entries}) == 1
    assert ledger.spent.epsilon == 5


def test_what_cannot_be_drawn_is_not_charged() -> None:
    ledger = md.Ledger(epsilon=5)
    stage = Trace(strip(2), md.graphs.complete(2), 1, np.eye(2), [1, 0], ledger=ledger).table(1)[0]
    for wrong in (lambda: stage.draw(1), lambda: stage.draw(7), lambda: stage.draw(0, "seed")):  # type: ignore[arg-type]
        with pytest.raises(InputError):
            wrong()
    assert not ledger.entries


def test_releases_at_one_time_are_charged_and_restarts_keep_the_ledger() -> None:
    ledger = md.Ledger(epsilon=4)
    trace = made(ledger)
    releases = [trace.step(1), trace.step(1, same_time=True, epsilon="1/2")]
    assert ledger.spent.epsilon == md.traces.compose(releases).epsilon == Fraction(3, 2)
    trace.restart().step(1)
    assert ledger.spent.epsilon == Fraction(5, 2)
    assert [len({entry.number for entry in ledger.entries}), repr(trace)[-11:]] == [3, "1 released)"]


@both_mechanisms
def test_a_copy_of_a_trace_that_has_released_does_not_step(mechanism: str, tmp_path: Path) -> None:
    for copied in COPIES:
        # A generator beside a ledger makes no rehearsal.
        ledger = md.Ledger(path=tmp_path / f"{copied.__name__}.json")
        for trace in (made(mechanism=mechanism), made(ledger, mechanism, rng=1)):
            early = copied(trace)
            trace.step(1)
            early.step(1)
            late = copied(trace)
            for _ in range(2):
                with pytest.raises(StateError, match="restart"):
                    late.step(1)
                late = copied(late)
            np.testing.assert_array_equal(late.belief, trace.belief)
            before = late.belief
            late.restart().step(1)
            assert raised(lambda late=late: late.step(1)) == 1
            np.testing.assert_array_equal(late.belief, before)
            trace.step(1)


def test_copies_of_rehearsals_go_on() -> None:
    for copied in COPIES:
        trace = made(rng=1)
        trace.step(1)
        again = copied(trace)
        outputs = [again.step(2).output for _ in range(3)]
        # One generator serves a trace and its shallow copy.
        assert copied is copy.copy or outputs == [trace.step(2).output for _ in range(3)]


@needs_fork
def test_a_fork_goes_on_with_nothing_that_has_released(tmp_path: Path) -> None:
    ledger = md.Ledger(epsilon=4, path=tmp_path / "ledger.json")
    trace, rehearsal, memory = made(ledger), made(rng=1), made(md.Ledger(epsilon=4))
    rehearsal.step(1)
    assert in_child(lambda: raised(lambda: trace.step(1))) == 0
    assert ledger.spent.epsilon == 1
    trace.step(1)
    works = (
        lambda: trace.step(1),
        lambda: trace.restart().step(1),
        lambda: rehearsal.step(1),
        lambda: memory.table(1)[0].draw(1),
    )
    assert [in_child(lambda work=work: raised(work)) for work in works] == [1, 0, 0, 2]
    assert ledger.spent.epsilon == 3
    trace.step(1)
    with held_by_another_thread(rehearsal._lock):
        assert in_child(lambda: raised(lambda: rehearsal.step(1))) == 0


def test_threads_share_a_trace() -> None:
    ledger, got = md.Ledger(epsilon=6), []
    trace = made(ledger)

    def steps() -> None:
        for _ in range(4):
            try:
                got.append(trace.step(1))
            except BudgetExceededError:
                break
            trace.observe(np.zeros(4))

    at_once(*[steps] * 3)
    # Each time was released once, and the belief is that of one trace that saw all outputs in order.
    assert sorted(release.stage.time for release in got) == list(range(6))
    assert len(ledger.entries) == 6
    ordered = sorted(got, key=lambda release: release.stage.time)
    watched = md.traces.Adversary(ring(4), np.full(4, 0.25)).watch(ordered)
    np.testing.assert_allclose(watched.posteriors[-1], trace.belief, rtol=1e-12)


@both_mechanisms
def test_what_was_proved_of_a_stage_is_copied_with_it(mechanism: str) -> None:
    release = made(mechanism=mechanism).step(0)
    assert release.certificate is not None
    for again in (copy.deepcopy(release), pickled(release)):
        assert again.certificate == release.certificate
        assert again.stage.design.problem.stated[0].numbers == release.stage.design.problem.stated[0].numbers
        with pytest.raises(TypeError, match="does not support item assignment"):
            again.certificate.provenance["solver"] = "another"


@needs_fork
def test_a_fork_does_not_wait_for_what_another_thread_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    proved = certificate.certify

    def wait(*evidence: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            go_on.wait(10)
        return proved(*evidence)

    monkeypatch.setattr(stages, "certify", wait)
    mine, other = (made().table(1)[0] for _ in range(2))
    thread = threading.Thread(target=lambda: mine.design)
    thread.start()
    begun.wait()
    assert in_child(lambda: int(other.design is not None)) == 1
    go_on.set()
    thread.join()
    assert mine.design is mine.design
