"""A sweep on a Dask cluster of processes: the same rows, whoever is killed, and workers that do not fit."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from types import SimpleNamespace

import pytest
from sweep_examples import TABLES, sweep, values

from mechdesign.errors import ClusterError, InputError
from mechdesign.runs import _engines as clusters
from mechdesign.runs._store import State
from mechdesign.runs.sweep import run

distributed = pytest.importorskip("distributed", reason="needs the extra dask: pip install 'mechdesign[dask]'")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

LISTS = '"privacy.0.epsilon" = [0.2, 0.5, 1, 2]\n"cost.power" = [1, 2]\n"privacy.0.distance" = ["euclidean"]'


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options, silence_logs=50) as made:
        yield made


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    run(sweep(LISTS), folder, jobs=1)
    return values(folder)


def test_a_cluster_gives_the_same_table(tmp_path, cluster, alone):
    result = run(sweep(LISTS), tmp_path, dask=cluster.scheduler_address)
    assert result.count(State.DONE) == 8
    assert values(tmp_path) == alone


def test_a_killed_worker_loses_no_row(tmp_path, cluster, alone):
    killed = []

    def kill_one(moment):
        if moment.done == 3 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    result = run(sweep(LISTS), tmp_path, dask=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert result.count(State.DONE) == 8
    assert values(tmp_path) == alone


def test_an_address_that_does_not_answer_is_refused(tmp_path, monkeypatch):
    assert clusters._ANSWER_TIMEOUT_S <= 10
    monkeypatch.setattr(clusters, "_ANSWER_TIMEOUT_S", 0.5)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(InputError, match="dask scheduler") as raised:
            run(sweep(), tmp_path / "out", dask=address)
    assert raised.value.value == address
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="does not answer"):
        run(sweep(), tmp_path / "out", dask="nonsense")


def test_a_worker_with_another_version_is_refused(tmp_path, cluster):
    address = next(iter(cluster.scheduler_info["workers"]))
    with distributed.Client(cluster, set_as_default=False) as client:
        client.run(_pretend, "9.9.9", workers=[address])
        try:
            with pytest.raises(InputError, match=r"other versions; found \{'mechdesign': '9\.9\.9'\}") as raised:
                run(sweep(), tmp_path / "out", dask=cluster.scheduler_address)
        finally:
            client.run(_pretend, None, workers=[address])
    assert address in str(raised.value)
    assert not (tmp_path / "out").exists()


def _pretend(version):
    import mechdesign
    from mechdesign.runs import _tasks

    _tasks.__version__ = version or mechdesign.__version__


def test_a_worker_that_sees_other_data_is_refused(tmp_path, cluster, monkeypatch):
    (tmp_path / "n.csv").write_text("n\n4\n3\n2\n1\n")
    asked = sweep(LISTS, TABLES.replace("counts = [4, 3, 2, 1]", 'csv = { path = "n.csv", column = "n" }'), tmp_path)
    from mechdesign.runs import _tasks as rows
    from mechdesign.runs import sweep as conduct

    genuine = rows.prepare

    def lost_meanwhile(given):
        made = genuine(given)
        (tmp_path / "n.csv").write_text("n\n4\n3\n2\n2\n")
        return made

    monkeypatch.setattr(conduct, "prepare", lost_meanwhile)
    with pytest.raises(InputError, match="does not have the same data"):
        run(asked, tmp_path / "out", dask=cluster.scheduler_address)


def test_a_cluster_without_workers_is_refused(tmp_path):
    empty = distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50)
    with empty, pytest.raises(InputError, match="has no workers"):
        run(sweep(), tmp_path / "out", dask=empty.scheduler_address)


def test_without_distributed_the_extra_is_named(tmp_path, monkeypatch):
    import sys

    from mechdesign.errors import MissingDependencyError

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"mechdesign\[dask\]"):
        run(sweep(), tmp_path / "out", dask="tcp://127.0.0.1:1")


class Lost:
    """A cluster, and an answer on it, whose worker died after the answer was announced."""

    released = False

    def submit(self, *_, **__):
        return self

    def nthreads(self):
        return {}

    def as_current(self):
        return contextlib.nullcontext()

    def result(self, timeout):
        assert timeout <= 10
        raise TimeoutError

    def cancel(self, futures):
        self.released = futures == [self]


def test_an_answer_that_is_lost_with_all_workers_ends_the_sweep(monkeypatch):
    monkeypatch.setattr(clusters, "_MAX_S_WITHOUT_WORKERS", 0.05)
    monkeypatch.setattr(distributed, "wait", lambda futures, **_: SimpleNamespace(done=set(futures)))
    lost = Lost()
    with pytest.raises(ClusterError, match="no workers left"):
        list(clusters.on_cluster(lost, [SimpleNamespace(key="a")]))
    assert lost.released


def test_an_answer_that_is_lost_with_its_worker_is_waited_for(monkeypatch):
    monkeypatch.setattr(distributed, "wait", lambda futures, **_: SimpleNamespace(done=set(futures)))
    lost, answers = Lost(), iter([TimeoutError(), TimeoutError(), "an outcome"])

    def result(timeout):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    lost.nthreads, lost.result, lost.release = lambda: {"worker": 1}, result, lambda: None
    assert list(clusters.on_cluster(lost, [SimpleNamespace(key="a")])) == ["an outcome"]


def test_a_worker_that_is_lost_before_the_first_row_is_passed_over(monkeypatch):
    task = SimpleNamespace(versions={"mechdesign": "1"}, folder=None, data={}, tables={}, kinds=())
    gone = distributed.comm.CommClosedError("gone")
    found = {"a": gone, "b": ({"mechdesign": "1"}, {})}
    clusters.check_workers(SimpleNamespace(run=lambda *_, **__: found), [task])
    found["a"] = ModuleNotFoundError("No module named 'mechdesign'")
    with pytest.raises(InputError, match="cannot run mechdesign"):
        clusters.check_workers(SimpleNamespace(run=lambda *_, **__: found), [task])

    def lose(*_, **__):
        raise gone

    with pytest.raises(ClusterError, match="was lost"):
        clusters.check_workers(SimpleNamespace(run=lose), [task])
