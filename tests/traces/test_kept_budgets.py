"""Whoever keeps the budget of a trace keeps it: copies, forks, threads, and stages drawn from by themselves."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trace_examples import ring, strip

import mechdesign as md
from mechdesign.certify import _certificate as certificate
from mechdesign.errors import BudgetExceededError, InputError, LedgerError, TraceError
from mechdesign.traces import _stage as stages
from mechdesign.traces._trace import Trace

# Libraries have threads of their own, which take no part here.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

MECHANISMS = ["planar-isotropic", "lp"]


def made(ledger: md.Ledger | None = None, mechanism: str = "planar-isotropic", **changed: Any) -> Trace:
    return Trace(strip(4), md.graphs.complete(4), 1, ring(4), np.full(4, 0.25), mechanism, ledger=ledger, **changed)


def in_a_fork(work: Callable[[], None], wanted: type[Exception] | None) -> bool:
    """Tell whether `work` raises what is wanted in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0 if wanted is None else 1)
        except BaseException as error:
            os._exit(0 if type(error) is wanted else 2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")


def pickled(trace: Trace) -> Trace:
    again: Trace = pickle.loads(pickle.dumps(trace))
    return again


COPIES = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])


@pytest.mark.parametrize("mechanism", MECHANISMS)
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
    assert len({entry.policy for entry in ledger.entries}) == 1
    assert ledger.spent.epsilon == 5


def test_what_cannot_be_drawn_is_not_charged() -> None:
    ledger = md.Ledger(epsilon=5)
    stage = Trace(strip(2), md.graphs.complete(2), 1, np.eye(2), [1, 0], ledger=ledger).table(1)[0]
    for wrong in (lambda: stage.draw(1), lambda: stage.draw(7), lambda: stage.draw(0, "seed")):  # type: ignore[arg-type]
        with pytest.raises(InputError):
            wrong()
    assert not ledger.entries


def test_copies_of_stages_charge_the_same_ledger(tmp_path: Any) -> None:
    ledger = md.Ledger(epsilon=3, path=tmp_path / "ledger.json")
    stage = made(ledger).step(1).stage
    for again in (copy.copy(stage), pickle.loads(pickle.dumps(stage))):
        again.draw(1)
    with pytest.raises(BudgetExceededError):
        copy.deepcopy(stage).draw(1)
    # Without a ledger in so many words.
    replace(stage, ledger=None).draw(1)
    assert ledger.spent.epsilon == 3
    with pytest.raises(LedgerError):
        pickle.dumps(made(md.Ledger(epsilon=3)).table(1)[0])


def test_releases_at_one_time_are_charged_and_restarts_keep_the_ledger() -> None:
    ledger = md.Ledger(epsilon=4)
    trace = made(ledger)
    releases = [trace.step(1), trace.step(1, same_time=True, epsilon="1/2")]
    assert ledger.spent.epsilon == md.traces.compose(releases).epsilon == Fraction(3, 2)
    again = trace.restart()
    again.step(1)
    assert ledger.spent.epsilon == Fraction(5, 2)
    assert [len({entry.number for entry in ledger.entries}), repr(trace)[-11:]] == [3, "1 released)"]


@COPIES
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_copy_of_a_trace_that_has_released_does_not_step(copied: Callable[[Trace], Trace], mechanism: str) -> None:
    trace = made(mechanism=mechanism)
    early = copied(trace)
    trace.step(1)
    early.step(1)
    late = copied(trace)
    for _ in range(2):
        with pytest.raises(TraceError, match="restart"):
            late.step(1)
        late = copied(late)
    np.testing.assert_array_equal(late.belief, trace.belief)
    before = late.belief
    late.restart().step(1)
    with pytest.raises(TraceError):
        late.step(1)
    np.testing.assert_array_equal(late.belief, before)
    trace.step(1)


@COPIES
def test_copies_of_rehearsals_go_on(copied: Callable[[Trace], Trace]) -> None:
    trace = made(rng=1)
    trace.step(1)
    again = copied(trace)
    if copied is copy.copy:
        # One generator serves both.
        again.step(2)
        return
    assert [again.step(2).output for _ in range(5)] == [trace.step(2).output for _ in range(5)]


@COPIES
def test_a_generator_beside_a_ledger_is_no_rehearsal(copied: Callable[[Trace], Trace], tmp_path: Any) -> None:
    trace = made(md.Ledger(epsilon=2, path=tmp_path / "ledger.json"), rng=1)
    trace.step(1)
    with pytest.raises(TraceError):
        copied(trace).step(1)


@needs_fork
def test_a_fork_goes_on_with_nothing_that_has_released(tmp_path: Any) -> None:
    ledger = md.Ledger(epsilon=4, path=tmp_path / "ledger.json")
    trace, rehearsal, memory = made(ledger), made(rng=1), made(md.Ledger(epsilon=4))
    rehearsal.step(1)
    assert in_a_fork(lambda: trace.step(1) and None, None)
    assert ledger.spent.epsilon == 1
    trace.step(1)
    assert in_a_fork(lambda: trace.step(1) and None, TraceError)
    assert in_a_fork(lambda: trace.restart().step(1) and None, None)
    assert in_a_fork(lambda: rehearsal.step(1) and None, None)
    assert in_a_fork(lambda: memory.table(1)[0].draw(1) and None, LedgerError)
    assert ledger.spent.epsilon == 3
    trace.step(1)


@needs_fork
def test_a_fork_while_another_thread_steps_does_not_wait_for_it() -> None:
    trace = made(rng=1)
    with trace._lock:
        assert in_a_fork(lambda: trace.step(1) and None, None)


def test_threads_share_a_trace() -> None:
    ledger, got, start = md.Ledger(epsilon=10), [], threading.Barrier(4)
    trace = made(ledger)

    def steps() -> None:
        start.wait()
        for _ in range(4):
            try:
                got.append(trace.step(1))
            except BudgetExceededError:
                break
            trace.observe(np.zeros(4))

    threads = [threading.Thread(target=steps) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each time was released once, and the belief is that of one trace that saw all outputs in order.
    assert sorted(release.time for release in got) == list(range(10))
    assert len(ledger.entries) == 10
    ordered = sorted(got, key=lambda release: release.time)
    watched = md.traces.Adversary(ring(4), np.full(4, 0.25)).watch(ordered)
    np.testing.assert_allclose(watched.posteriors[-1], trace.belief, rtol=1e-12)


def test_threads_draw_from_one_stage() -> None:
    ledger, start = md.Ledger(epsilon=5), threading.Barrier(4)
    stage, drawn = made(ledger).table(1)[0], []

    def draws() -> None:
        start.wait()
        try:
            while True:
                drawn.append(stage.draw(1))
        except BudgetExceededError:
            pass

    threads = [threading.Thread(target=draws) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == len(ledger.entries) == 5


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_what_was_proved_of_a_stage_is_copied_with_it(mechanism: str) -> None:
    trace = made(mechanism=mechanism)
    release = trace.step(0)
    assert release.certificate is not None
    for again in (copy.deepcopy(release), pickle.loads(pickle.dumps(release))):
        assert again.certificate == release.certificate
        assert again.stage.design.problem.stated[0].numbers == release.stage.design.problem.stated[0].numbers
        with pytest.raises(TypeError, match="does not support item assignment"):
            again.certificate.provenance["solver"] = "another"
    for copied in (copy.deepcopy, pickled):
        with pytest.raises(TraceError, match="copy"):
            copied(trace).step(0)


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

    def work() -> None:
        signal.alarm(10)
        assert other.design is not None

    assert in_a_fork(work, None)
    go_on.set()
    thread.join()
    assert mine.design is mine.design
