"""A sweep on a Dask cluster of processes: the same table, whoever is killed, and workers that do not fit."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from sweep_examples import sweep, values

from mechdesign.errors import ClusterError, InputError, MissingDependencyError
from mechdesign.runs import sweep as module
from mechdesign.runs.sweep import run

distributed = pytest.importorskip("distributed", reason="needs the extra dask: pip install 'mechdesign[dask]'")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

# Designs that take longer than writing them.
SLOW = """
domain.grid = { columns = 7, rows = 7, width = 7.0, height = 7.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 0.7, distance = "euclidean" }]
"""
OPTIONS = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, **OPTIONS) as made:
        yield made


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alone")
    run(sweep(), folder, jobs=1)
    return values(folder)


def test_a_cluster_gives_the_same_table(tmp_path, cluster, alone):
    run(sweep(), tmp_path, dask=cluster.scheduler_address)
    assert values(tmp_path) == alone


def test_a_killed_worker_loses_no_point(tmp_path, cluster, alone):
    killed = []

    def kill_one(done, total):
        if done == 3 and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    run(sweep(), tmp_path, dask=cluster.scheduler_address, progress=kill_one)
    assert killed
    assert values(tmp_path) == alone


def test_a_cluster_that_is_lost_is_said_and_the_next_call_goes_on(tmp_path):
    asked = sweep('"privacy.0.epsilon" = [1, 2, 3, 4, 5, 6, 7, 8]\n"cost.power" = [1, 2]', SLOW)
    file = tmp_path / "scheduler.json"
    own = [_start("scheduler", "--scheduler-file", file, "--port", 0, "--no-dashboard")]
    try:
        while not file.exists():
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        own.append(_start("worker", address, "--nthreads", 2, "--no-dashboard"))
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)

        def lose(done, total):
            if done == 2:
                own[0].kill()

        with pytest.raises(ClusterError, match="finished points are kept"):
            run(asked, tmp_path / "out", dask=address, progress=lose)
    finally:
        for process in own:
            process.kill()
            process.wait()
    assert not list(tmp_path.rglob("claim-*"))
    assert 2 <= len(list(tmp_path.rglob("certificate.json"))) < 16
    assert {row["status"] for row in run(asked, tmp_path / "out", jobs=1)} == {"done"}


def _start(what, *arguments):
    line = [sys.executable, "-c", f"from distributed.cli.dask_{what} import main; main()", *map(str, arguments)]
    return subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_an_address_that_does_not_answer_is_refused_in_one_sentence(tmp_path, monkeypatch, capfd):
    assert module._ANSWER_TIMEOUT_S <= 10
    monkeypatch.setattr(module, "_ANSWER_TIMEOUT_S", 0.5)
    with socket.socket() as nobody, socket.socket() as silent:
        nobody.bind(("127.0.0.1", 0))
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        listed = [f"{scheme}://127.0.0.1:{nobody.getsockname()[1]}" for scheme in ("tcp", "tls", "ws")]
        listed += [f"tcp://127.0.0.1:{silent.getsockname()[1]}", "foo://bar", "", "nonsense", "tcp://a..b:1"]
        for address in listed:
            with pytest.raises(InputError, match="does not answer") as raised:
                run(sweep(), tmp_path / "out", dask=address)
            assert raised.value.value == address
            assert "dask scheduler" in str(raised.value)
    # A client that found nobody would print a traceback when it is collected.
    gc.collect()
    assert capfd.readouterr().err == ""
    assert not (tmp_path / "out").exists()


def test_a_worker_with_another_version_is_refused_with_the_remedy(tmp_path, cluster):
    address = next(iter(cluster.scheduler_info["workers"]))
    with distributed.Client(cluster, set_as_default=False) as client:
        client.run(_pretend, "9.9.9", workers=[address])
        try:
            with pytest.raises(InputError, match=r"other versions; found \{'mechdesign': '9\.9\.9'\}") as raised:
                run(sweep(), tmp_path / "out", dask=cluster.scheduler_address)
        finally:
            client.run(_pretend, None, workers=[address])
    assert address in str(raised.value)
    assert "Install the same versions on the worker" in str(raised.value)
    assert not (tmp_path / "out").exists()


def _pretend(version):
    from importlib import metadata

    from mechdesign.runs import sweep

    sweep.find_version = lambda name: version if version and name == "mechdesign" else metadata.version(name)


def test_a_worker_that_cannot_run_the_package_is_refused_and_one_that_ended_is_not(tmp_path, monkeypatch):
    own = {name: module.find_version(name) for name in module._PACKAGES}
    gone = distributed.comm.CommClosedError("gone")
    module._require_versions({"a": gone, "b": own})
    with pytest.raises(InputError, match=r"a cannot run mechdesign \(No module named 'mechdesign'\)"):
        module._require_versions({"a": ModuleNotFoundError("No module named 'mechdesign'"), "b": own})


def test_a_cluster_without_workers_is_refused(tmp_path):
    with distributed.LocalCluster(n_workers=0, **OPTIONS) as empty, pytest.raises(InputError, match="has no workers"):
        run(sweep(), tmp_path / "out", dask=empty.scheduler_address)


def test_without_distributed_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"mechdesign\[dask\]"):
        run(sweep(), tmp_path / "out", dask="tcp://127.0.0.1:1")
