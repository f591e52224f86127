"""Deadlines: limits and parts by a clock set by hand; Ctrl-C, marked where a result is to be kept, raised elsewhere."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base import _atomic as atomic
from mechdesign.base._deadline import Deadline, OutOfTimeError, Progress, Stop, keep, promise, promising
from mechdesign.errors import InputError
from mechdesign.model.distances import euclidean
from mechdesign.solve._contract import Status
from mechdesign.solve._threads import Workers


def press():
    signal.raise_signal(signal.SIGINT)


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self):
        return self.now


def test_the_end_of_a_part_is_fixed_when_it_is_made():
    clock = Clock()
    deadline = Deadline(10.0, clock=clock)
    assert (deadline.left(), deadline.limit, deadline.stop()) == (10.0, 10.0, None)
    clock.now += 5.0
    part = deadline.part(0.6)
    assert part.left() == pytest.approx(3.0)
    clock.now += 2.0
    assert part.left() == pytest.approx(1.0)
    # A part of a part ends no later.
    assert part.part(seconds=60.0).left() == pytest.approx(1.0)
    assert part.part(seconds=0.5).left() == pytest.approx(0.5)
    clock.now += 1.0
    assert part.stop() is Stop.TIME
    assert deadline.stop() is None
    with pytest.raises(OutOfTimeError):
        part.check_time()
    part.check()
    clock.now += 2.0
    assert deadline.left() == 0.0
    assert deadline.seconds() == 10.0
    assert deadline.stop() is Stop.TIME


def test_without_a_limit_there_is_no_end():
    clock = Clock()
    deadline = Deadline(clock=clock)
    clock.now += 1e9
    assert deadline.left() is deadline.limit is deadline.stop() is deadline.part(0.1).left() is None
    deadline.check_time()


def test_progress_counts_from_the_beginning_of_the_whole():
    clock, told = Clock(), []
    deadline = Deadline(progress=told.append, clock=clock)
    clock.now += 2.0
    part = deadline.part(stage="part 1")
    part.tell("solving", 3, 0.5, 0.7)
    deadline.quiet().tell("nothing")
    # The bracket of a part is not that of the whole.
    assert told == [Progress("part 1: solving", 2.0, 3)]
    assert deadline.quiet().progress is None


def test_a_pickled_deadline_keeps_the_time_left():
    there = pickle.loads(pickle.dumps(Deadline(60.0, progress=print)))
    assert 59.0 < there.left() <= 60.0
    assert there.progress is None
    assert pickle.loads(pickle.dumps(Deadline())).left() is None


def test_cancel_is_a_ctrl_c_from_anywhere():
    deadline = Deadline()
    part = deadline.part()
    thread = threading.Thread(target=deadline.cancel)
    thread.start()
    thread.join()
    assert part.stop() is Stop.USER
    with pytest.raises(KeyboardInterrupt):
        part.check()
    # It is raised once, and is still the reason to stop.
    part.check()
    assert deadline.acknowledge()
    assert deadline.stop() is Stop.USER
    deadline.cancel()
    assert part.stop() is Stop.USER_AGAIN


def test_each_cancel_is_raised_once():
    deadline = Deadline()
    for _ in range(2):
        deadline.cancel()
        with pytest.raises(KeyboardInterrupt):
            deadline.check()
        deadline.check()


def test_once_a_stop_is_acknowledged_the_time_limit_ends_the_rest():
    deadline = Deadline(0.0)
    deadline.cancel()
    assert deadline.stop() is Stop.USER
    deadline.acknowledge()
    assert deadline.stop() is Stop.TIME
    with pytest.raises(OutOfTimeError):
        deadline.check_time()


def test_all_parts_share_the_grace():
    clock = Clock()
    pricing = Deadline(clock=clock).grace(10.0)
    first, second = pricing.part(), pricing.part()
    pricing.cancel()
    assert first.stop() is None
    clock.now += 9.0
    assert second.stop() is None
    clock.now += 2.0
    assert first.stop() is second.stop() is Stop.USER


@each_row("limit", [-1.0, float("nan")])
def test_a_limit_that_is_no_time_is_refused(limit):
    with pytest.raises(InputError, match="time_limit: must not be negative"):
        Deadline(limit)


def test_ctrl_c_while_the_handler_is_restored_spoils_no_later_block(monkeypatch):
    restore, pressed = signal.signal, []

    def slow(number, handler):
        done = restore(number, handler)
        if handler is signal.default_int_handler and not pressed:
            pressed.append(True)
            press()
        return done

    monkeypatch.setattr(signal, "signal", slow)
    with pytest.raises(KeyboardInterrupt), Deadline().keeping():
        pass
    monkeypatch.undo()
    deadline = Deadline()
    with deadline.keeping():
        assert deadline.stop() is None
        press()
        assert deadline.stop() is Stop.USER
        deadline.acknowledge()


def test_the_grace_begins_with_the_first_ctrl_c_and_ends_with_the_second():
    clock = Clock()
    deadline = Deadline(100.0, clock=clock)
    pricing = deadline.grace(60.0)
    clock.now += 10.0
    deadline.cancel()
    assert deadline.stop() is Stop.USER
    assert pricing.stop() is None
    clock.now += 59.0
    assert pricing.stop() is None
    clock.now += 2.0
    assert pricing.stop() is Stop.USER
    other = deadline.grace(60.0)
    assert other.stop() is None
    clock.now += 30.0
    # There is no grace beyond the limit.
    assert other.stop() is Stop.TIME
    deadline.cancel()
    assert other.stop() is Stop.USER_AGAIN


def test_without_a_result_to_keep_ctrl_c_is_raised_at_once():
    deadline = Deadline()
    with deadline.keeping("keeping it", at_once=False):
        assert promise() is None
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_mark_is_raised_by_check_and_only_once():
    deadline = Deadline()
    with deadline.keeping("keeping it", at_once=False):
        keep()
        assert promise() == "keeping it"
        press()
        assert deadline.stop() is Stop.USER
        with pytest.raises(KeyboardInterrupt):
            deadline.check()
        deadline.check()
        assert deadline.acknowledge()
    assert promise() is None
    assert not deadline.acknowledge()


def test_the_second_ctrl_c_is_raised_at_once():
    deadline = Deadline()
    with deadline.keeping():
        press()
        assert deadline.stop() is Stop.USER
        with pytest.raises(KeyboardInterrupt):
            press()
        assert deadline.stop() is Stop.USER_AGAIN
        deadline.acknowledge()
    assert deadline.stop() is None


def test_a_mark_that_nobody_acknowledges_is_raised_at_the_end():
    done = []

    def work():
        with Deadline().keeping():
            press()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_of_nested_blocks_the_outermost_counts():
    outer, inner = Deadline(), Deadline()
    with outer.keeping("outer", at_once=False):
        with inner.keeping("inner"):
            assert promise() == "outer"
        press()
        assert inner.stop() is Stop.USER
        assert outer.acknowledge()


def test_the_outermost_promise_is_what_is_said():
    with promising("outer"), promising("inner"), Deadline().keeping("innermost"):
        assert promise() == "outer"


def test_a_handler_of_the_programs_own_stays():
    came, deadline = [], Deadline()
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        with deadline.keeping():
            press()
            assert deadline.stop() is None
    finally:
        signal.signal(signal.SIGINT, before)
    assert came


def test_other_threads_see_nothing():
    seen, outer = [], Deadline()

    def look():
        deadline = Deadline()
        with deadline.keeping():
            deadline.check()
            seen.append(deadline.acknowledge())

    with outer.keeping():
        press()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        outer.acknowledge()
    assert seen == [False]


@pytest.mark.slow
@each_row("threads", [1, 2])
@each_row("whole", [False, True])
def test_workers_begin_no_further_batch(threads, whole):
    deadline = Deadline()
    workers = Workers(threads, 100, 1, deadline)
    done = []
    barrier = threading.Barrier(threads)

    def task(worker, batch):
        barrier.wait()
        done.append(batch.start)
        if worker == 0 and len(done) <= threads:
            press()

    try:
        with deadline.keeping():
            if whole:
                workers.run(task, whole=True, fixed=True)
                assert sorted(done) == list(range(100))
            else:
                # Whoever was about to begin a batch waits in vain for the others.
                threading.Timer(0.5, barrier.abort).start()
                with pytest.raises((KeyboardInterrupt, threading.BrokenBarrierError)):
                    workers.run(task, fixed=True)
                assert len(done) <= 2 * threads
            deadline.acknowledge()
    finally:
        workers.close()


@each_row("threads", [1, 2])
def test_workers_that_are_late_begin_no_further_batch_and_say_so_once(threads):
    done, clock = [], Clock()

    def wait(seconds):
        clock.now += seconds

    workers = Workers(threads, 100, 1, Deadline(0.5, clock=clock))
    try:
        with pytest.raises(OutOfTimeError):
            workers.run(lambda worker, batch: (wait(0.02), done.append(batch.start)), fixed=True)
        assert len(done) < 100
        assert len(workers.run(lambda worker, batch: batch.start)) == 100
    finally:
        workers.close()
    # What is to be done as a whole is, once begun; where it would be late at its end it is not begun.
    workers = Workers(threads, 100, 1, Deadline(0.9, clock=clock))
    try:
        slow = workers.run(lambda worker, batch: wait(0.5 if batch.start == 0 else 0), whole=True)
        assert len(slow) == 100
        with pytest.raises(OutOfTimeError):
            workers.run(lambda worker, batch: done.append(-1), whole=True)
        assert -1 not in done
    finally:
        workers.close()


@pytest.mark.slow
@each_row("solver", ["block", "highs-simplex", "auto"])
def test_a_design_that_is_stopped_while_it_is_solved_is_certified(solver):
    pressed = []

    def stop(moment):
        if not pressed and moment.stage != "certifying" and promise() is not None:
            pressed.append(moment.stage)
            press()

    places = np.array([[float(i), float(j)] for i in range(7) for j in range(7)])
    distances = euclidean(places)
    problem = md.Problem(np.full(49, 1 / 49), distances, [md.MetricPrivacy("0.6", distances)])
    made = md.design(problem, solver=solver, progress=stop)
    assert made.certificate.holds
    assert not pressed or made.status is Status.INTERRUPTED


SCRIPT = """
import os, signal, sys, threading, time
from mechdesign.base import _atomic as atomic, _deadline as deadlines
from mechdesign.cli._console import watch_signals
signal.signal(signal.SIGINT, signal.default_int_handler)

def deaf():
    # As compiled code that takes long: the main thread handles no signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, [])
    lock = threading.Lock()
    lock.acquire()
    while True:
        try:
            lock.acquire(timeout=60)
        except KeyboardInterrupt:
            print("caught", file=sys.stderr, flush=True)

def press():
    os.kill(os.getpid(), signal.SIGINT)

with watch_signals():
    {body}
"""


def ended(body):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(body=body)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_where_nothing_is_to_be_kept_the_process_ends_though_the_main_thread_does_not_hear():
    code, said = ended("threading.Timer(0.1, press).start(); deaf()")
    assert code == 130
    assert said.endswith("error: stopped\n")


@pytest.mark.slow
def test_where_something_is_kept_the_second_one_ends_the_process():
    code, said = ended(
        "deadlines._promises.append('keeping it'); threading.Timer(0.1, press).start(); "
        "threading.Timer(1.5, press).start(); deaf()"
    )
    assert code == 130
    assert said.count("stopping: keeping it; Ctrl-C again ends at once") == 1
    assert said.endswith("error: stopped\n")


@pytest.mark.slow
def test_a_file_that_is_being_written_is_finished_first():
    code, said = ended(
        "threading.Timer(0.1, press).start(); atomic.WRITING.acquire(); "
        "threading.Timer(0.1, print, ('caught', ), {'file': sys.stderr}).start(); "
        "exec('try: time.sleep(60)\\nexcept KeyboardInterrupt: time.sleep(2)'); "
        "print('written', file=sys.stderr, flush=True); atomic.WRITING.release(); deaf()"
    )
    assert code == 130
    assert said.index("written") < said.index("error: stopped")


def test_the_lock_is_free_when_nothing_is_written(tmp_path):
    atomic.write_file(tmp_path / "file", [b"x"])
    assert atomic.WRITING.acquire(blocking=False)
    atomic.WRITING.release()
