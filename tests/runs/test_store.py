"""The folder of rows: nothing lost, nothing twice, nothing half, and nothing of somebody else."""

import csv
import json
import math
import multiprocessing
import os
import random
import signal
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mechdesign.base._atomic
from mechdesign.errors import ExportError, InputError, StateError
from mechdesign.runs._identity import environment, identity
from mechdesign.runs._store import _MANIFEST, Request, Row, State, Store


def request(count: int = 3, kind: str = "bench", version: int = 1, **about: object) -> Request:
    descriptions = [{"number": number} for number in range(count)]
    return Request(kind, version, {"rows": count, **about}, descriptions, ["number", "square", "bound"])


def row(store: Store, number: int, state: State = State.DONE, bound: float = 0.5) -> Row:
    key = identity({"number": number})
    return Row(key, state, {"number": number, "square": number**2, "bound": bound}, {"note": "made here"})


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), _json, max_size=4), st.randoms())
def test_the_order_of_keys_does_not_count(description, shuffler):
    items = list(description.items())
    shuffler.shuffle(items)
    assert identity(dict(items)) == identity(description)


def test_exact_numbers_count_by_value_and_not_as_floats():
    assert identity({"x": Decimal("0.50")}) == identity({"x": Fraction(1, 2)})
    assert identity({"x": Decimal("0.5")}) != identity({"x": 0.5})
    assert identity({"x": 1}) != identity({"x": "1"})


def test_what_cannot_be_described_is_refused_with_its_place():
    for value in (math.nan, math.inf, b"bytes", {1, 2}, {1: 2}, object()):
        with pytest.raises(InputError) as caught:
            identity({"a": [0, value]})
        assert caught.value.path == "description.a[1]", value


def test_rows_come_back_as_written(tmp_path):
    store = Store(tmp_path / "new" / "folder", request())
    assert len(store.missing()) == 3
    store.write(row(store, 2, bound=math.inf))
    store.write(row(store, 0, bound=math.nan))
    again = list(store.rows())
    assert [each.values["number"] for each in again] == [0, 2]
    assert math.isnan(again[0].values["bound"])
    assert again[1] == row(store, 2, bound=math.inf)
    assert store.missing() == (identity({"number": 1}),)


def test_interrupted_rows_are_still_missing_and_others_are_final(tmp_path):
    store = Store(tmp_path, request(4))
    for number, state in enumerate(State):
        store.write(row(store, number, state))
    assert store.missing() == (identity({"number": list(State).index(State.INTERRUPTED)}),)


def test_the_table_has_the_order_asked_for(tmp_path):
    store = Store(tmp_path, request())
    for number, bound in ((2, math.inf), (0, 0.1)):
        store.write(row(store, number, bound=bound))
    with store.tabulate().open(newline="") as file:
        assert list(csv.reader(file)) == [["number", "square", "bound"], ["0", "0", "0.1"], ["2", "4", "inf"]]


def test_parquet_holds_the_same(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    store = Store(tmp_path, request())
    store.write(row(store, 1, bound=math.inf))
    store.write(Row(identity({"number": 2}), State.FAILED, {"number": 2.5, "square": "none"}))
    store.tabulate()
    found = parquet.read_table(tmp_path / "results.parquet").to_pylist()
    assert found == [
        {"number": 1.0, "square": "1", "bound": math.inf},
        {"number": 2.5, "square": "none", "bound": None},
    ]


def test_the_environment_names_versions_and_machine(tmp_path):
    Store(tmp_path, request())
    stored = json.loads((tmp_path / "environment.json").read_text())
    assert stored["packages"]["numpy"]
    assert stored["python"]
    assert stored["processor"]
    assert stored["blas"]
    assert stored == json.loads(json.dumps(environment()))


def test_another_request_or_no_manifest_is_refused(tmp_path):
    Store(tmp_path, request())
    for other, said in (
        (request(4), "rows was 3 and is now 4"),
        (request(kind="sweep"), "of kind bench, not sweep"),
        (request(version=2), "of version 1, not 2"),
    ):
        with pytest.raises(StateError, match=said):
            Store(tmp_path, other, resume=True)
    with pytest.raises(StateError, match="Resume it"):
        Store(tmp_path, request())
    assert Store(tmp_path, request(), resume=True).missing()
    manifest = json.loads((tmp_path / _MANIFEST).read_text())
    (tmp_path / _MANIFEST).write_text(json.dumps(manifest | {"package": "0.0.1"}))
    with pytest.raises(StateError, match=r"made by mechdesign 0\.0\.1"):
        Store(tmp_path, request(), resume=True)
    for content in ("{", "[]", '{"schema": "other/1"}'):
        (tmp_path / _MANIFEST).write_text(content)
        with pytest.raises(StateError, match=_MANIFEST):
            Store(tmp_path, request(), resume=True)


def test_a_folder_of_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(StateError, match=r"thesis\.tex"):
        Store(tmp_path, request())
    with pytest.raises(StateError, match="is a file"):
        Store(tmp_path / "thesis.tex", request())


def test_a_damaged_row_is_named(tmp_path):
    store = Store(tmp_path, request())
    store.write(row(store, 1))
    (path,) = (tmp_path / "rows").iterdir()
    whole = path.read_bytes()
    for content in (b"", b"{", b"[]", b'{"identity": "x"}'):
        path.write_bytes(content)
        with pytest.raises(StateError, match=path.name):
            store.missing()
    path.write_bytes(whole)
    path.rename(path.with_name(identity({"number": 2}) + ".json"))
    with pytest.raises(StateError, match="another description"):
        list(store.rows())


def test_rows_nobody_asked_for_are_refused(tmp_path):
    store = Store(tmp_path, request())
    with pytest.raises(InputError, match="not in the request"):
        store.write(Row("0" * 64, State.DONE, {}))
    with pytest.raises(InputError, match="is a duplicate"):
        Request("bench", 1, {}, [{"a": 1}, {"a": 1}], [])
    with pytest.raises(InputError, match="empty"):
        Request("bench", 1, {}, [], [])


def test_a_full_disk_leaves_the_older_row(tmp_path, monkeypatch):
    store = Store(tmp_path, request())
    store.write(row(store, 1, State.INTERRUPTED))

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(mechdesign.base._atomic.os, "fsync", full)
    with pytest.raises(ExportError, match="No space left"):
        store.write(row(store, 1))
    assert [path.suffix for path in (tmp_path / "rows").iterdir()] == [".json"]
    assert [each.state for each in store.rows()] == [State.INTERRUPTED]


def test_a_claim_excludes_others_and_ends_with_its_holder(tmp_path):
    store, other = Store(tmp_path, request()), Store(tmp_path, request(), resume=True)
    key = identity({"number": 1})
    with store.claim(key) as first, other.claim(key) as second:
        assert first
        assert not second
    with other.claim(key) as mine:
        assert mine
        other.write(row(other, 1))
    with store.claim(key) as mine:
        assert not mine


def test_whoever_takes_over_a_row_clears_what_was_half_written(tmp_path):
    store = Store(tmp_path, request())
    half = tmp_path / "rows" / f".{identity({'number': 1})}.json.0123.partial"
    half.write_text('{"iden')
    with store.claim(identity({"number": 2})):
        assert half.exists()
    with store.claim(identity({"number": 1})) as mine:
        assert mine
        assert not half.exists()


def work(directory: Path, count: int, log: Path) -> None:
    """Run what is missing, and note each run."""
    store = Store(directory, request(count), resume=True)
    for key in store.missing():
        with store.claim(key) as mine:
            if not mine:
                continue
            number = store.request.by_identity[key]["number"]
            time.sleep(random.random() / 200)
            store.write(row(store, number))
            with log.open("a") as file:
                file.write(f"{number}\n")
    store.tabulate()


@pytest.mark.slow
def test_processes_share_a_folder_and_run_no_row_twice(tmp_path):
    folder, log, context = tmp_path / "results", tmp_path / "log", multiprocessing.get_context("spawn")
    Store(folder, request(60))
    workers = [context.Process(target=work, args=(folder, 60, log)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert sorted(map(int, log.read_text().split())) == list(range(60))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_random_kills_lose_nothing_and_leave_nothing_half(tmp_path):
    folder, log, count = tmp_path / "results", tmp_path / "log", 15
    Store(folder, request(count))
    moments = random.Random(7)
    kills = 0
    for attempt in range(200):
        worker = os.fork()
        if not worker:
            work(folder, count, log)
            os._exit(0)
        time.sleep(moments.random() * (0.01 + attempt / 200))
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        kills += os.WIFSIGNALED(status)
        store = Store(folder, request(count), resume=True)
        if not store.missing():
            break
    assert kills >= 3
    assert [each.values["square"] for each in store.rows()] == [number**2 for number in range(count)]
    # Between the file and the note of it a kill may come, but never a second run.
    runs = log.read_text().split()
    assert len(runs) == len(set(runs))
