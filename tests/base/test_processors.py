"""How many processors and threads there are: those that the process may use, not those of the machine."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base import _machine as processors
from mechdesign.certify import _privacy as privacy
from mechdesign.errors import SolverError
from mechdesign.solve._threads import Workers, blas_threads


def without_threads(monkeypatch, after: int = 0) -> None:
    """Let the system start so many threads, and no further one."""
    start, started = threading._start_new_thread, []

    def refuse(*arguments, **keywords):
        if len(started) >= after:
            raise RuntimeError("can't start new thread")
        started.append(arguments)
        return start(*arguments, **keywords)

    monkeypatch.setattr(threading, "_start_new_thread", refuse)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no process can be bound here")
def test_a_bound_process_counts_its_own(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert processors.count_processors() == 1
    # Without joblib, and with a variable that joblib rejects.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7})
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "many")
    assert processors.count_processors() == 3
    monkeypatch.setitem(sys.modules, "joblib.externals.loky", None)
    assert processors.count_processors() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert processors.count_processors() == os.cpu_count()


def test_threads_are_those_that_the_system_starts(monkeypatch):
    assert processors.count_threads(2) == 2
    assert processors.count_threads(-1) == 0
    with monkeypatch.context() as patch:
        without_threads(patch, after=1)
        assert processors.count_threads(3) == 1
    without_threads(monkeypatch)
    assert processors.count_threads(3) == 0


def test_without_threads_all_is_proved_and_shared_work_is_done(monkeypatch, tmp_path):
    distance = 1 - np.eye(2)
    made = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)]))
    md.save(made, tmp_path, report=False)
    monkeypatch.setattr(privacy, "_MIN_SHARED_ENTRIES", 0)
    without_threads(monkeypatch)
    assert md.verify(tmp_path).holds
    workers = Workers(4, 3, 1)
    with blas_threads(1):
        assert sorted(workers.run(lambda _, batch: batch.start)) == [0, 1, 2]
    workers.close()


@each_row("solver", ["highs", "highs-ipx"])
def test_a_solver_that_needs_a_thread_says_so(monkeypatch, solver):
    distance = 1 - np.eye(2)
    problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)])
    without_threads(monkeypatch)
    with pytest.raises(SolverError, match="cannot start a thread"):
        md.design(problem, solver=solver)
