"""How many processors and threads there are: those that the process may use, not those of the machine."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base import _machine as control_groups
from mechdesign.base import _machine as processors
from mechdesign.certify import _privacy as privacy
from mechdesign.errors import SolverError
from mechdesign.solve._blocks.parallel import Workers, single_threaded


def without_threads(monkeypatch, after: int = 0) -> None:
    """Let the system start so many threads, and no further one."""
    start, started = threading._start_new_thread, []

    def refuse(*arguments, **keywords):
        if len(started) >= after:
            raise RuntimeError("can't start new thread")
        started.append(arguments)
        return start(*arguments, **keywords)

    monkeypatch.setattr(threading, "_start_new_thread", refuse)


def test_processors_are_those_that_the_process_is_bound_to(monkeypatch, tmp_path):
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "_OWN", tmp_path / "own")
    (tmp_path / "own").write_text("0::/\n")
    monkeypatch.setattr(processors, "_count_usable", lambda: 3)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert processors.count_processors() == 3
    (tmp_path / "cpu.max").write_text("150000 100000")
    assert processors.count_processors() == 2


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no process can be bound here")
def test_a_bound_process_counts_its_own(monkeypatch):
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert processors.count_processors() == 1


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({"cpu.max": "max 100000"}, []),
        ({"cpu.max": "50000 100000"}, [0.5]),
        ({"cpu.max": "nonsense"}, []),
        ({"cpu.max": "400000 100000", "a/cpu.max": "max 100000", "a/b/cpu.max": "100000 100000"}, [1.0, 4.0]),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, []),
        ({"cpu/cpu.cfs_quota_us": "250000", "cpu/cpu.cfs_period_us": "100000"}, [2.5]),
        ({"cpu/old/job/cpu.cfs_quota_us": "100000", "cpu/old/job/cpu.cfs_period_us": "100000"}, [1.0]),
    ],
)
def test_quotas_of_control_groups(monkeypatch, tmp_path, files, expected):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text("2:memory:/x\n1:cpu,cpuacct:/old/job\n0::/a/b\n")
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path)
    monkeypatch.setattr(control_groups, "_OWN", tmp_path / "own")
    assert list(processors._quotas()) == expected


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
    made.save(tmp_path)
    monkeypatch.setattr(privacy, "_MIN_SHARED_ENTRIES", 0)
    without_threads(monkeypatch)
    assert md.verify(tmp_path).holds
    workers = Workers(4, 3, 1)
    with single_threaded():
        assert sorted(workers.run(lambda _, batch: batch.start)) == [0, 1, 2]
    workers.close()


@each_row("solver", ["highs", "highs-ipx"])
def test_a_solver_that_needs_a_thread_says_so(monkeypatch, solver):
    distance = 1 - np.eye(2)
    problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)])
    without_threads(monkeypatch)
    with pytest.raises(SolverError, match="cannot start a thread"):
        md.design(problem, solver=solver)


def test_a_command_runs_where_no_thread_is_started(monkeypatch):
    from click.testing import CliRunner

    from mechdesign.cli import main

    without_threads(monkeypatch)
    assert CliRunner().invoke(main, ["info"]).exit_code == 0
