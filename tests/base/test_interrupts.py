"""Ctrl-C: noted where something is to be kept, raised everywhere else; the second one is always raised."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base import _atomic as atomic
from mechdesign.base import _interrupts as interrupts
from mechdesign.model.distances import euclidean
from mechdesign.solve._blocks.parallel import LateError, Workers
from mechdesign.solve._contract import Status

pytestmark = pytest.mark.slow


def press():
    signal.raise_signal(signal.SIGINT)


def test_without_a_deferral_it_is_raised_at_once():
    with interrupts.scope("keeping it"):
        assert interrupts.promise() is None
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_deferred_one_is_raised_by_check_and_only_once():
    with interrupts.scope("keeping it"):
        interrupts.defer()
        assert interrupts.promise() == "keeping it"
        press()
        assert interrupts.noted()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()
        assert not interrupts.noted()
        assert interrupts.take()
    assert interrupts.promise() is None
    assert not interrupts.take()


def test_the_second_one_is_raised_at_once():
    with interrupts.scope():
        interrupts.defer()
        assert not interrupts.insisted()
        press()
        assert not interrupts.insisted()
        with pytest.raises(KeyboardInterrupt):
            press()
        assert interrupts.insisted()
        interrupts.take()
    assert not interrupts.insisted()


def test_one_that_nobody_takes_is_raised_at_the_end():
    done = []

    def work():
        with interrupts.scope():
            interrupts.defer()
            press()
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


def test_of_nested_scopes_the_outermost_counts():
    with interrupts.scope("outer"):
        with interrupts.scope("inner"):
            interrupts.defer()
        assert interrupts.promise() == "outer"
        press()
        assert interrupts.take()


def test_the_outermost_promise_is_what_is_said():
    with interrupts.promised("outer"), interrupts.promised("inner"), interrupts.scope("innermost"):
        interrupts.defer()
        assert interrupts.promise() == "outer"


def test_a_handler_of_the_programs_own_stays():
    came = []
    before = signal.signal(signal.SIGINT, lambda *_: came.append(True))
    try:
        with interrupts.scope():
            interrupts.defer()
            press()
            assert not interrupts.noted()
    finally:
        signal.signal(signal.SIGINT, before)
    assert came


def test_other_threads_see_nothing():
    seen = []

    def look():
        with interrupts.scope():
            interrupts.defer()
            interrupts.check()
            seen.append(interrupts.take())

    with interrupts.scope():
        interrupts.defer()
        press()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        interrupts.take()
    assert seen == [False]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("whole", [False, True])
def test_workers_begin_no_further_batch(threads, whole):
    workers = Workers(threads, 100, 1)
    done = []
    barrier = threading.Barrier(threads)

    def task(worker, batch):
        barrier.wait()
        done.append(batch.start)
        if worker == 0 and len(done) <= threads:
            press()

    try:
        with interrupts.scope():
            interrupts.defer()
            if whole:
                workers.run(task, whole=True, fixed=True)
                assert sorted(done) == list(range(100))
            else:
                # Whoever was about to begin a batch waits in vain for the others.
                threading.Timer(0.5, barrier.abort).start()
                with pytest.raises((KeyboardInterrupt, threading.BrokenBarrierError)):
                    workers.run(task, fixed=True)
                assert len(done) <= 2 * threads
            interrupts.take()
    finally:
        workers.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_workers_that_are_late_begin_no_further_batch_and_say_so_once(threads):
    workers = Workers(threads, 100, 1)
    done = []
    try:
        workers.until = time.perf_counter() + 0.05
        with pytest.raises(LateError):
            workers.run(lambda worker, batch: (time.sleep(0.02), done.append(batch.start)), fixed=True)
        assert len(done) < 100
        assert len(workers.run(lambda worker, batch: batch.start)) == 100
        # What is to be done as a whole is, once begun; where it would be late at its end it is not begun.
        workers.until = time.perf_counter() + 0.3
        slow = workers.run(lambda worker, batch: time.sleep(0.5 if batch.start == 0 else 0), whole=True)
        assert len(slow) == 100
        with pytest.raises(LateError):
            workers.run(lambda worker, batch: done.append(-1), whole=True)
        assert -1 not in done
    finally:
        workers.close()


@pytest.mark.parametrize("solver", ["block", "highs-simplex", "auto"])
def test_a_design_that_is_stopped_while_it_is_solved_is_certified(solver):
    pressed = []

    def stop(moment):
        if not pressed and moment.stage != "certifying" and interrupts.promise() is not None:
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
from mechdesign.base import _atomic as atomic, _interrupts as interrupts
from mechdesign.cli._console import watched
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

with watched():
    {body}
"""


def ended(body):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(body=body)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


def test_where_nothing_is_to_be_kept_the_process_ends_though_the_main_thread_does_not_hear():
    code, said = ended("threading.Timer(0.1, press).start(); deaf()")
    assert code == 130
    assert said.endswith("error: stopped\n")


def test_where_something_is_kept_the_second_one_ends_the_process():
    code, said = ended(
        "interrupts._promises.append('keeping it'); threading.Timer(0.1, press).start(); "
        "threading.Timer(1.5, press).start(); deaf()"
    )
    assert code == 130
    assert said.count("stopping: keeping it; Ctrl-C again ends at once") == 1
    assert said.endswith("error: stopped\n")


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
