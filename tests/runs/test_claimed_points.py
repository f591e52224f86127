"""Claims on points: one process has a point, and dead claims are taken over."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

import psutil
import pytest
from sweep_examples import sweep

from mechdesign.errors import ExportError
from mechdesign.runs import _points as records
from mechdesign.runs import sweep as module
from mechdesign.runs.sweep import points, run

OWN = {"host": socket.gethostname(), "process": os.getpid(), "started": psutil.Process().create_time()}
# A number that no process has.
GONE = 2**22 + 1

# A claim, and whether a call and a call with `retry` take it over.
CLAIMS = {
    "this process": (OWN, False, False),
    "a process that has ended": (OWN | {"process": GONE}, True, True),
    "an older process of the same number": (OWN | {"started": OWN["started"] - 1e4}, True, True),
    "a clock that was set": (OWN | {"started": OWN["started"] - 10}, False, False),
    "another host": (OWN | {"host": "elsewhere"}, False, True),
    "a dead number of another host": (OWN | {"host": "elsewhere", "process": GONE}, False, True),
    "no start": ({"host": OWN["host"], "process": os.getpid()}, False, True),
    "no process": ({"host": OWN["host"]}, False, True),
    "a word": (OWN | {"process": "one"}, False, True),
    "another kind": ([1], False, True),
}


def write_claim(folder: Path, said: object, number: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"claim-{number}").write_text(json.dumps(said))


def claims(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_dead_claims_are_taken_over(tmp_path):
    for index, (name, (said, *taken)) in enumerate(CLAIMS.items()):
        for retry in (False, True):
            folder = tmp_path / f"{index}{retry}"
            write_claim(folder, said)
            with records.claiming(folder, retry) as mine:
                assert mine == taken[retry], name
                assert claims(folder) == ["claim-0", "claim-1"] if mine else ["claim-0"], name
            assert claims(folder) == ([] if mine else ["claim-0"]), name


def test_a_process_that_has_a_point_says_so(tmp_path):
    with records.claiming(tmp_path, False) as mine:
        assert mine
        assert json.loads((tmp_path / "claim-0").read_text()) == pytest.approx(OWN)
        with records.claiming(tmp_path, True) as also:
            assert not also
        assert f"process {os.getpid()} of {OWN['host']}" in records.describe_claim(tmp_path)
    for number in (2, 10):
        write_claim(tmp_path, {"host": f"host-{number}", "process": number}, number)
    # The claim with the largest number counts.
    assert records.describe_claim(tmp_path).startswith("process 10 of host-10")
    for number in (2, 10):
        (tmp_path / f"claim-{number}").unlink()
    (tmp_path / "claim-0").write_text("")
    assert records.describe_claim(tmp_path) == "another process makes it; if it has ended, call again with --retry"


def test_what_a_killed_process_left_beside_its_record_is_removed(tmp_path):
    for said, left in ((OWN | {"process": GONE}, []), (OWN, ["claim-0"])):
        write_claim(tmp_path, said)
        records.tidy(tmp_path, False)
        assert claims(tmp_path) == left
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / ".claim-0a1b2c3d").write_text("")
    records.tidy(tmp_path / "alone", False)
    assert claims(tmp_path / "alone") == []


def test_half_written_and_empty_claims_need_a_retry(tmp_path):
    for content in ("", '{"host"'):
        (tmp_path / "claim-0").write_text(content)
        for retry in (False, True):
            with records.claiming(tmp_path, retry) as mine:
                assert mine == retry


def test_only_one_of_many_takes_a_dead_claim_over(tmp_path):
    write_claim(tmp_path, OWN | {"process": GONE})
    start, leave, found = threading.Barrier(8), threading.Barrier(8), []

    def take() -> None:
        start.wait()
        with records.claiming(tmp_path, False) as mine:
            found.append(mine)
            leave.wait()

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(found) <= 1
    assert claims(tmp_path) == ([] if any(found) else ["claim-0"])


def test_a_claim_that_was_numbered_too_late_backs_off(tmp_path, monkeypatch):
    """A process reads a dead claim, and before it writes its own another one starts anew."""
    write_claim(tmp_path, OWN | {"process": GONE})
    genuine = records._link

    def meanwhile(temporary: Path, mine: Path) -> None:
        (tmp_path / "claim-0").unlink()
        write_claim(tmp_path, OWN)
        genuine(temporary, mine)

    monkeypatch.setattr(records, "_link", meanwhile)
    with records.claiming(tmp_path, False) as mine:
        assert not mine
    assert claims(tmp_path) == ["claim-0"]


def test_file_systems_without_links(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    with records.claiming(tmp_path, False) as mine, records.claiming(tmp_path, False) as also:
        assert (mine, also) == (True, False)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be written"), records.claiming(tmp_path / "file" / "point", False):
        pass


def test_points_of_others_are_left_to_them(tmp_path, monkeypatch, blank_figure):
    asked = sweep('"privacy.0.epsilon" = [0.2, 1]')
    first, second = (tmp_path / point.name for point in points(asked))
    write_claim(first, OWN | {"host": "elsewhere", "process": 12})
    rows = run(asked, tmp_path, jobs=1)
    assert [row["status"] for row in rows] == ["missing", "done"]
    assert rows[0]["message"] == "process 12 of elsewhere makes it; if it has ended, call again with --retry"
    rows = run(asked, tmp_path, jobs=1, retry=True)
    assert [row["status"] for row in rows] == ["done", "done"]
    assert not [*first.glob("claim*"), *second.glob("claim*")]


def test_a_point_is_held_until_it_is_made_and_one_that_failed_meanwhile_is_left(tmp_path, monkeypatch, blank_figure):
    asked, calls, held = sweep('"privacy.0.epsilon" = [0.2, 1]'), [], []
    first, second = module._plan(points(asked), tmp_path)

    def solve(task):
        calls.append(task.point.name)
        second.folder.mkdir()
        # Another process fails.
        records.write_failure(second.folder, second.wanted, "too large", 2.5)
        return _fail_soon(task)

    monkeypatch.setattr(module, "_solve", solve)
    rows = run(asked, tmp_path, jobs=1, progress=lambda *_: held.append([*tmp_path.rglob("claim-*")]))
    assert calls == [first.point.name]
    assert held == [[], []]
    assert [(row["status"], row["solve_seconds"], row["message"]) for row in rows] == [
        ("failed", 0.0, "no design"),
        ("failed", 2.5, "too large"),
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_kills_at_random_moments_lose_nothing_and_repeat_nothing(tmp_path, monkeypatch, blank_figure):
    monkeypatch.setattr(module, "_solve", _fail_soon)
    monkeypatch.setattr(module, "_write_table", lambda *_: None)
    asked = sweep('"privacy.0.epsilon" = [{}]'.format(", ".join(f"{1 + n / 10}" for n in range(12))))
    moments, known = random.Random(5), {}
    for _ in range(4):
        both = [_fork(lambda: run(asked, tmp_path, jobs=1)) for _ in range(2)]
        time.sleep(0.02 + moments.random() * 0.03)
        for child in both:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        now = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/failed.json")}
        assert known.items() <= now.items()
        known = now
    rows = run(asked, tmp_path, jobs=1)
    assert {row["status"] for row in rows} == {"failed"}
    assert known.items() <= {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/failed.json")}.items()
    assert not list(tmp_path.rglob("claim-*"))


def _fail_soon(task):
    time.sleep(0.002)
    return module._Outcome(task, {}, records.Record(reason="no design", seconds=0.0))


def _fork(job) -> int:
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            job()
        os._exit(0)
    return child


@pytest.fixture
def blank_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.runs.sweep._draw", lambda *_: None)
