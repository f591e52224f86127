from __future__ import annotations

import errno
import io
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import line, put, repair

from mechdesign.certify import _archive
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import (
    CERTIFICATE,
    CHANNEL,
    DUAL,
    encode,
    exact_lines,
    inspect,
    read,
    read_channel,
    write,
)
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence, FloorMultipliers, PairMultipliers
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError, ExportError, InputError, UnverifiedError


def export(evidence: Evidence, **extra: Any) -> dict[str, bytes]:
    return encode(evidence, certify(evidence, {"solver": "none", "seconds": 0.5}), **extra)


def table(evidence: Evidence) -> bytes:
    labels = [list(map(str, range(count))) for count in evidence.numerators.shape]
    return "".join(exact_lines(evidence.numerators, evidence.exponent, *labels)).encode()


OLD = export(line(4, 0.6), files={"channel.csv": table(line(4, 0.6)), "report.html": b"old"})
NEW = export(line(5, 0.3, "worst"), metadata={"name": "new"}, files={"channel.csv": table(line(5, 0.3, "worst"))})
OLD_CERTIFICATE = certify(line(4, 0.6))
NEW_CERTIFICATE = certify(line(5, 0.3, "worst"))


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def arrays_of(evidence: Evidence) -> list[np.ndarray]:
    held = (array for stated in evidence.requirements for array in stated.arrays.values())
    found = [evidence.numerators, evidence.prior, evidence.cost, *held]
    assert evidence.multipliers is not None
    for entry in evidence.multipliers.requirements:
        names = ["observables", "values"]
        names += ["sources", "targets"] if isinstance(entry, PairMultipliers) else ["estimates"]
        assert isinstance(entry, PairMultipliers | FloorMultipliers)
        found += [getattr(entry, name) for name in names]
    if evidence.multipliers.weights is not None:
        found.append(evidence.multipliers.weights)
    return found


def test_round_trip(tmp_path: Path) -> None:
    labels = np.array(["north", "süd", "", "東"])
    points = np.arange(8.0).reshape(4, 2)
    metadata = {"name": "line", "numbers": (1, 2.5, None), "deep": {"3": [True]}}
    for objective in ("expected", "worst"):
        evidence, folder = line(4, 0.6, objective), tmp_path / objective / "b"
        arrays = {"labels": labels, "points": points}
        write(folder, export(evidence, metadata=metadata, arrays=arrays, files={"x.csv": b"1,2"}))
        found = read(folder)
        for mine, theirs in zip(arrays_of(evidence), arrays_of(found.evidence), strict=True):
            assert mine.dtype == theirs.dtype
            assert np.array_equal(mine, theirs)
        assert (found.evidence.exponent, found.evidence.objective) == (62, objective)
        for stated, again in zip(evidence.requirements, found.evidence.requirements, strict=True):
            assert (stated.kind, stated.numbers) == (again.kind, again.numbers)
        assert found.certificate == certify(evidence, {"solver": "none", "seconds": 0.5})
        assert found.metadata == {"name": "line", "numbers": [1, 2.5, None], "deep": {"3": [True]}}
        assert list(found.arrays) == ["labels", "points"]
        assert found.arrays["labels"].tolist() == labels.tolist()
        assert np.array_equal(found.arrays["points"], points)
        assert not found.arrays["points"].flags.writeable
        assert verify(folder) == found.certificate
        assert (folder / "x.csv").read_bytes() == b"1,2"


def test_the_same_values_give_the_same_bytes() -> None:
    assert export(line(4, 0.6)) == export(line(4, 0.6))
    assert list(export(line(4, 0.6)))[-1] == CERTIFICATE
    written = export(line(4, 0.6))[CERTIFICATE]
    document = json.loads(written)
    assert written.decode() == json.dumps(document, indent=2, sort_keys=True) + "\n"


def test_numpy_reads_the_archives() -> None:
    with np.load(io.BytesIO(OLD[CHANNEL]), allow_pickle=False) as archive:
        assert archive["numerators"].dtype == np.int64
        assert archive["numerators"].sum(axis=1).tolist() == [2**62] * 4
        assert archive["exponent"] == 62
        assert set(archive) == {"numerators", "exponent", "prior", "cost"} | {
            "requirement_0_distance",
            "requirement_1_edges",
            "requirement_2_distance",
            "requirement_3_error",
        }


def test_json_states_requirements_as_texts() -> None:
    document = json.loads(OLD[CERTIFICATE])
    assert document["requirements"] == [
        {"kind": "metric", "epsilon": "0.6"},
        {"kind": "graph", "epsilon": "0.6"},
        {"kind": "threshold", "epsilon": "1.2", "radius": "2.5"},
        {"kind": "distortion", "minimum": "0.1"},
    ]
    assert document["certificate"]["requirements"][2]["radius"] == "2.5"


def test_without_multipliers_there_is_no_dual_file(tmp_path: Path) -> None:
    files = export(line(3, 0.6, multipliers=None))
    assert list(files) == [CHANNEL, CERTIFICATE]
    write(tmp_path, files)
    assert read(tmp_path).evidence.multipliers is None
    assert verify(tmp_path).lower_bound == 0


def test_requirements_may_be_absent(tmp_path: Path) -> None:
    write(tmp_path, export(line(3, 0.6, requirements=(), multipliers=None)))
    assert verify(tmp_path).requirements == ()


def test_what_does_not_hold_is_not_exported() -> None:
    broken = np.array([[2**62, 0], [0, 2**62]])
    evidence = line(2, 0.6, numerators=broken, multipliers=None)
    with pytest.raises(CertificateError, match=r"requirements\[0\]"):
        encode(evidence, certify(evidence))


# Reading what is damaged


def test_repaired_sets_are_accepted(tmp_path: Path) -> None:
    assert verify(put(tmp_path, repair(OLD))).differences(OLD_CERTIFICATE) == ()


def test_a_missing_file_is_an_incomplete_export(tmp_path: Path) -> None:
    for name in OLD:
        (put(tmp_path, OLD) / name).unlink()
        with pytest.raises(CertificateError, match=f"bundle: {name} is missing; was the export interrupted"):
            read(tmp_path)


def test_a_lone_channel_is_read(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    numerators, exponent, arrays = read_channel(tmp_path / CHANNEL)
    assert numerators.tolist() == line(4, 0.6).numerators.tolist()
    assert exponent == 62
    assert "prior" in arrays
    assert "numerators" not in arrays


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(UnverifiedError, match="does not exist"):
        verify(tmp_path / "nowhere")
    with pytest.raises(UnverifiedError, match="contains no bundle"):
        verify(tmp_path)
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(UnverifiedError, match="is a file"):
        verify(tmp_path / "file")


@pytest.mark.parametrize("name", list(OLD))
def test_cuts_and_flipped_bytes_are_noticed(tmp_path: Path, name: str) -> None:
    put(tmp_path, OLD)
    content = OLD[name]
    chance = random.Random(name)
    for _ in range(4):
        place = chance.randrange(len(content))
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        for damaged in (content[:place], bytes(flipped), content + b"x"):
            if name == CERTIFICATE and _same_json(damaged, content):
                continue
            (tmp_path / name).write_bytes(damaged)
            for ask in (read, verify):
                with pytest.raises(CertificateError):
                    ask(tmp_path)
    (tmp_path / name).write_bytes(content)
    verify(tmp_path)


def _same_json(one: bytes, other: bytes) -> bool:
    """Tell whether only white space differs."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_an_interrupted_export_is_called_so(tmp_path: Path) -> None:
    put(tmp_path, {**OLD, CHANNEL: NEW[CHANNEL]})
    with pytest.raises(CertificateError, match=r"incomplete bundle: channel\.npz does not match its digest; was the"):
        read(tmp_path)
    put(tmp_path, {**OLD, CHANNEL: OLD[CHANNEL][:-100]})
    with pytest.raises(CertificateError, match=r"incomplete bundle: channel\.npz is not a complete archive"):
        read(tmp_path)


def entry(descr: str, shape: str, content: bytes, *, order: str = "False") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def archive(entries: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        for name, content in entries.items():
            made.writestr(name, content)
    return target.getvalue()


MALFORMED = [
    ("x.npy", entry("|O", "(1,)", pickle.dumps([1])), "contains pickled objects, which are never loaded"),
    ("x.npy", entry("<i8", "(1000000000, 1000000000)", bytes(8)), "claims the shape"),
    ("x.npy", entry("<i8", "(999999999999999999, 999999999999999999, 0)", b""), "archive|shape"),
    ("x.npy", entry("<i8", "(2,)", bytes(8)), "claims the shape"),
    ("x.npy", entry("<i8", "(1,)", bytes(9)), "claims the shape"),
    ("x.npy", entry("<i8", "(1,)", bytes(8), order="True"), "unexpected header"),
    ("x.npy", entry("<i8", "(-1,)", bytes(8)), "unexpected header"),
    ("x.npy", entry(">i8", "(1,)", bytes(8)), "unexpected header"),
    ("x.npy", entry("<m8", "(1,)", bytes(8)), "unexpected type"),
    ("x.npy", entry("<U0", "(1,)", b""), "unexpected type"),
    ("x.npy", entry("<U1", "(1,)", b"\xff\xff\xff\xff"), "contains malformed texts"),
    ("x.npy", b"\x93NUMPY\x02\x00" + bytes(20), "not in the .npy format"),
    ("x.npy", b"", "not in the .npy format"),
    ("x.npy", b"\x93NUMPY\x01\x00\xff\xff{", "unexpected header"),
    ("x", entry("<i8", "()", bytes(8)), "unexpected entry"),
    ("../../x.txt", b"", "unexpected entry"),
]


def test_malformed_arrays_are_refused() -> None:
    for name, content, reason in MALFORMED:
        with pytest.raises(CertificateError, match=reason) as caught:
            _archive.unpack(archive({name: content}), CHANNEL)
        assert CHANNEL in str(caught.value), reason


def test_duplicated_and_strangely_compressed_entries_are_refused() -> None:
    good = entry("<i8", "()", bytes(8))
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as made:
        made.writestr("a.npy", good)
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("a.npy", good)
    with pytest.raises(CertificateError, match="unexpected entry"):
        _archive.unpack(target.getvalue(), CHANNEL)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as made:
        made.writestr("a.npy", good)
    with pytest.raises(CertificateError, match="compressed in an unknown way"):
        _archive.unpack(target.getvalue(), CHANNEL)


def test_what_an_archive_unpacks_to_is_limited_altogether(monkeypatch: pytest.MonkeyPatch) -> None:
    """One array is within the limit, but many make a small file take a lot of memory."""
    monkeypatch.setattr(_archive, "_MAX_TOTAL_BYTES", 2**24)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for name in ("a.npy", "b.npy"):
            made.writestr(name, entry("<i8", f"({12 * 2**17},)", bytes(12 * 2**20)))
    tracemalloc.start()
    with pytest.raises(CertificateError, match=r"its arrays take 2516\d+ bytes, more than the limit of 16777216"):
        _archive.unpack(target.getvalue(), CHANNEL)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_the_limits_are_4_gib_for_an_array_and_1_gib_or_a_hundredfold_for_all() -> None:
    for size in (0, 2**30 // 100):
        assert _archive.max_unpacked_bytes(size) == 2**30
    assert _archive.max_unpacked_bytes(2**30) == 100 * 2**30
    for size, reason in ((2**32, "is truncated"), (2**32 + 1, "claims the shape")):
        header = entry("|u1", f"({size},)", b"")
        with pytest.raises(CertificateError, match=reason):
            _archive._read(io.BytesIO(header), len(header) + size, "x")


def test_archives_do_not_tell_when_or_on_which_system_they_were_made() -> None:
    with zipfile.ZipFile(io.BytesIO(_archive.pack({"x": np.ones(3)}))) as made:
        (found,) = made.infolist()
    assert found.date_time == (1980, 1, 1, 0, 0, 0)
    assert (found.create_system, found.external_attr) == (3, 0o644 << 16)


def test_texts_hold_code_points_up_to_the_last() -> None:
    last, beyond = ((0x10FFFF + step).to_bytes(4, "little") for step in (0, 1))
    assert _archive.unpack(archive({"x.npy": entry("<U1", "(1,)", last)}), CHANNEL)["x"].tolist() == [chr(0x10FFFF)]
    with pytest.raises(CertificateError, match="contains malformed texts"):
        _archive.unpack(archive({"x.npy": entry("<U1", "(1,)", beyond)}), CHANNEL)


def test_arrays_are_read_only_also_where_they_hold_nothing() -> None:
    arrays = _archive.unpack(_archive.pack({"some": np.ones(3), "none": np.zeros((0, 3))}), CHANNEL)
    assert [array.shape for array in arrays.values()] == [(3,), (0, 3)]
    assert not any(array.flags.writeable for array in arrays.values())


def test_what_is_written_is_read_again_however_well_it_compresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_archive, "_MAX_TOTAL_BYTES", 2**16)
    for rows, stored in ((2**11, False), (2**16, True)):
        arrays = {"zeros": np.zeros((rows, 2))}
        content = _archive.pack(arrays)
        assert (len(content) > arrays["zeros"].nbytes) == stored
        assert (_archive.unpack(content, CHANNEL)["zeros"] == 0).all()


def test_what_takes_just_as_much_as_is_allowed_is_compressed_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = np.zeros(2**16)
    size = 128 + zeros.nbytes
    for total, stored in ((size, False), (size - 1, True)):
        monkeypatch.setattr(_archive, "_MAX_TOTAL_BYTES", total)
        content = _archive.pack({"zeros": zeros})
        assert (len(content) > zeros.nbytes) == stored
        assert not _archive.unpack(content, CHANNEL)["zeros"].any()


def test_a_certificate_has_at_most_128_mib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, OLD)
    os.truncate(tmp_path / CERTIFICATE, 2**27)
    monkeypatch.setenv("MECHDESIGN_MEMORY", "8")
    assert len(bundle._content(tmp_path, CERTIFICATE, bundle._ReadingLimit(tmp_path))) == 2**27
    monkeypatch.setenv("MECHDESIGN_MEMORY", "2")
    with pytest.raises(CertificateError, match=r"about 5 GiB of memory, but only 2 GiB are allowed"):
        verify(tmp_path)
    os.truncate(tmp_path / CERTIFICATE, 2**27 + 1)
    with pytest.raises(CertificateError, match="134217729 bytes exceed the limit"):
        verify(tmp_path)


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    put(tmp_path, OLD)
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(CertificateError, match=r"certificate\.json cannot be read: Permission denied"):
        verify(tmp_path)


# Writing


def test_a_new_set_replaces_the_old_one(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, NEW)
    assert listing(tmp_path) == {**NEW, "notes.txt": b"mine"}
    assert verify(tmp_path).differences(NEW_CERTIFICATE) == ()


def test_left_over_files_that_were_changed_stay(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    (tmp_path / "report.html").write_text("mine now")
    write(tmp_path, NEW)
    assert (tmp_path / "report.html").read_text() == "mine now"
    verify(tmp_path)


@pytest.mark.parametrize("before", [{CHANNEL: NEW[CHANNEL]}, OLD])
def test_what_an_interrupted_export_left_does_not_stay_beside_another_set(
    tmp_path: Path, before: dict[str, bytes]
) -> None:
    bare = {name: content for name, content in NEW.items() if name != "report.html"}
    put(tmp_path, {name: content for name, content in before.items() if name != "report.html"})
    # A report that no certificate lists: its export was killed before the certificate came.
    (tmp_path / "report.html").write_text("of another set")
    if CERTIFICATE in before:
        recorded = json.loads((tmp_path / CERTIFICATE).read_bytes())
        recorded["files"].pop("report.html", None)
        (tmp_path / CERTIFICATE).write_text(json.dumps(recorded))
    write(tmp_path, bare)
    assert listing(tmp_path) == bare


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ExportError, match="cannot be made"):
            write(folder, OLD)


def test_a_new_folder_is_removed_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        for existed in (False, True):
            folder = tmp_path / f"{type(error).__name__} {existed}"
            if existed:
                folder.mkdir()
            monkeypatch.setattr(os, "fsync", Failing(os.fsync, 0, error, ever_after=True))
            with pytest.raises((KeyboardInterrupt, ExportError)):
                bundle.write(folder, {CERTIFICATE: b"{}"})
            assert folder.exists() is existed
            assert not existed or not list(folder.iterdir())


def test_a_folder_in_the_way_of_a_file(tmp_path: Path) -> None:
    (tmp_path / DUAL).mkdir()
    with pytest.raises(ExportError):
        write(tmp_path, OLD)
    assert [path.name for path in tmp_path.iterdir()] == [DUAL]


def test_a_set_needs_its_certificate(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lacks the certificate"):
        write(tmp_path, {CHANNEL: b""})


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, content: whole(descriptor, content[:1000]))
    write(tmp_path, OLD)
    assert listing(tmp_path) == OLD


class Failing:
    """An operation whose call number `last`, counted from 0, raises, and all later ones too if asked."""

    def __init__(self, real: Callable[..., Any], last: int, error: BaseException, *, ever_after: bool = False) -> None:
        self.real, self.last, self.error, self.ever_after = real, last, error, ever_after
        self.calls = 0

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls += 1
        if self.calls - 1 == self.last or (self.ever_after and self.calls > self.last):
            raise self.error
        return self.real(*arguments, **options)


OPERATIONS = ("open", "write", "fsync", "link", "replace", "unlink")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_errors_leave_the_old_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    """Let the k-th call of an operation fail, for every k, and all later writes too, as on a full disk."""
    for error in (OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()):
        for last in range(100):
            folder = tmp_path / f"{type(error).__name__}{last}"
            write(folder, OLD)
            failing = Failing(getattr(os, operation), last, error, ever_after=operation == "write")
            monkeypatch.setattr(os, operation, failing)
            try:
                write(folder, NEW)
            except (ExportError, KeyboardInterrupt) as caught:
                monkeypatch.undo()
                if operation in ("open", "fsync", "unlink") and isinstance(caught, KeyboardInterrupt):
                    # It may have come when the certificate was in place.
                    assert accepted(folder) in {"old", "new"}
                    continue
                # Only what could not be removed may be left.
                left = listing(folder)
                assert {name: content for name, content in left.items() if name in OLD} == OLD
                assert set(left) == set(OLD) or operation == "unlink"
            else:
                monkeypatch.undo()
                assert accepted(folder) == "new" or operation == "unlink"
                assert {name: content for name, content in listing(folder).items() if name in NEW} == NEW
                if failing.calls <= last:
                    break
        else:
            pytest.fail("the export never came to its end")
        assert last > 0


def test_an_interrupt_keeps_a_set_whose_certificate_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy disk, Ctrl-C comes most likely while the folder is synchronised; others have seen the certificate."""

    def fsync(descriptor: int) -> None:
        if any(path.read_bytes() == NEW[CERTIFICATE] for path in folder.glob(CERTIFICATE)):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fsync)
    for name, before in {"nothing": {}, "an older set": OLD}.items():
        folder = tmp_path / name
        folder.mkdir()
        put(folder, before)
        with pytest.raises(KeyboardInterrupt):
            write(folder, NEW)
        assert listing(folder) == NEW, name


def test_an_interrupt_right_after_a_link_leaves_no_hidden_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def link_and_stop(*arguments: Any, **options: Any) -> None:
        link(*arguments, **options)
        raise KeyboardInterrupt

    write(tmp_path, OLD)
    monkeypatch.setattr(os, "link", link_and_stop)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path, NEW)
    assert listing(tmp_path) == OLD


def test_errors_leave_nothing_where_nothing_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for last in range(len(NEW)):
        failing = Failing(os.replace, last, OSError(errno.EIO, "Input/output error"))
        monkeypatch.setattr(os, "replace", failing)
        with pytest.raises(ExportError, match="Input/output error"):
            write(tmp_path, NEW)
        monkeypatch.undo()
        assert listing(tmp_path) == {}


def test_file_systems_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path, OLD)
    write(tmp_path, NEW)
    assert listing(tmp_path) == NEW


def accepted(folder: Path) -> str:
    """Tell the set in a folder after a kill; whatever it is, it must not be a mixture that verifies."""
    files = listing(folder)
    for name, whole in (("old", OLD), ("new", NEW)):
        # Nothing of the other set stands beside it under its own name.
        if files.keys() & (OLD.keys() | NEW.keys()) == whole.keys() and whole.items() <= files.items():
            return name
    with pytest.raises(CertificateError, match="incomplete bundle"):
        verify(folder)
    return "incomplete"


@pytest.mark.slow
def test_a_kill_at_every_step(tmp_path: Path) -> None:
    """A forked child dies at its k-th operation, without any clean-up, for every k."""
    put_in = tmp_path / "sets"
    put_in.mkdir()
    for name, files in (("old", OLD), ("new", NEW)):
        (put_in / name).mkdir()
        put(put_in / name, files)
    script = textwrap.dedent(
        """
        import os, pathlib, sys
        from mechdesign.certify._bundle import write
        root = pathlib.Path(sys.argv[1])
        old, new = ({p.name: p.read_bytes() for p in (root / "sets" / s).iterdir()} for s in ("old", "new"))
        def die_at(last):
            calls = 0
            def wrap(real):
                def call(*a, **k):
                    nonlocal calls
                    calls += 1
                    if calls > last:
                        os._exit(9)
                    return real(*a, **k)
                return call
            for name in sys.argv[2:]:
                setattr(os, name, wrap(getattr(os, name)))
        for last in range(200):
            folder = root / f"kill{last}"
            write(folder, old)
            child = os.fork()
            if not child:
                die_at(last)
                write(folder, new)
                os._exit(0)
            if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
                break
        print(last)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), *OPERATIONS], capture_output=True, text=True, check=True
    )
    steps = int(done.stdout)
    assert 20 < steps < 199
    found = [accepted(tmp_path / f"kill{last}") for last in range(steps + 1)]
    assert found[0] == "old"
    assert found[-1] == "new"
    assert "incomplete" in found
    # Once the new set is there it stays, and there is never a way back.
    assert found == sorted(found, key=["old", "incomplete", "new"].index)
    # A later export clears up what a killed one left.
    write(tmp_path / f"kill{found.index('incomplete')}", NEW)
    assert listing(tmp_path / f"kill{found.index('incomplete')}") == NEW


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_real_kill(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "set"
    for name, files in (("old", OLD), ("new", NEW)):
        (tmp_path / name).mkdir()
        put(tmp_path / name, files)
    script = textwrap.dedent(
        """
        import pathlib, sys
        from mechdesign.certify._bundle import write
        root = pathlib.Path(sys.argv[1])
        sets = [{p.name: p.read_bytes() for p in (root / s).iterdir()} for s in ("old", "new")]
        write(root / "set", sets[0])
        print("ready", flush=True)
        while True:
            for files in reversed(sets):
                write(root / "set", files)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(random.Random(seed).random() * 0.2)
        process.send_signal(signal.SIGKILL)
    assert accepted(folder) in {"old", "new", "incomplete"}


def test_reading_reports_problems_and_still_reads(tmp_path: Path) -> None:
    put(tmp_path, {**OLD, "channel.csv": b"changed"})
    found = inspect(tmp_path)
    assert len(found.problems) == 1
    assert found.evidence.secrets == 4
