"""What a set makes the verifiers take is estimated beforehand: a few kB that ask for gigabytes are refused."""

from __future__ import annotations

import os
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from bundles import line, made, put, whole
from click.testing import CliRunner
from refusals import Mistake, assert_refused
from tampering import second

import mechdesign as md
from mechdesign.certify import _bundle as bundle
from mechdesign.certify import _memory as memory
from mechdesign.certify import second_verifier
from mechdesign.certify.__main__ import main as kernel
from mechdesign.certify._archive import unpack
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.certify._verify import prove, verify
from mechdesign.cli import main as command
from mechdesign.errors import CertificateError

RANDOM = np.random.default_rng(5)


def uniform(n: int, m: int, stated: Stated, multipliers: Multipliers | None = None) -> Evidence:
    numerators = np.full((n, m), 2**62 // m)
    numerators[:, 0] += 2**62 - numerators[0].sum()
    return Evidence(numerators, 62, np.full(n, 1 / n), RANDOM.random((n, m)), "expected", (stated,), multipliers)


def ring(n: int) -> np.ndarray:
    return np.stack([np.arange(n), (np.arange(n) + 1) % n], axis=1)


def scattered(n: int) -> np.ndarray:
    return md.distances.euclidean(RANDOM.random((n, 2)))


ALL = np.argwhere(~np.eye(60, dtype=bool))
KINDS = {
    "metric": lambda: uniform(40, 40, Stated.metric(Fraction(1), scattered(40))),
    "one observable": lambda: uniform(60, 1, Stated.metric(Fraction(1), scattered(60))),
    "graph": lambda: uniform(1000, 1, Stated.graph(Fraction(1), ring(1000))),
    "multipliers": lambda: uniform(
        60,
        60,
        Stated.metric(Fraction(1), scattered(60)),
        Multipliers((PairMultipliers(*ALL.T, ALL[:, 0], ALL[:, 1] * 1e-9),)),
    ),
    "ratios": lambda: uniform(
        60, 3, Stated.ratios("near", Fraction(1), ALL, np.full(len(ALL), 5), np.arange(len(ALL)) % 5 + 1)
    ),
    "floor": lambda: uniform(30, 150, Stated.distortion(Fraction(0), RANDOM.random((150, 30)))),
    "dithered": lambda: uniform(
        100, 100, Stated.dithered("plane", Fraction(1), 2, (10, 10), (Fraction(1), Fraction(1)))
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_estimates_are_above_what_is_taken(tmp_path: Path, name: str) -> None:
    evidence = KINDS[name]()
    files = bundle.encode(evidence, certify(evidence))
    put(tmp_path, files)
    held = [unpack(files[file], file) for file in (CHANNEL, DUAL) if file in files]
    others = sum(map(len, files.values())) - len(files[CERTIFICATE])
    tracemalloc.start()
    try:
        found = bundle.inspect(tmp_path)
        assert tracemalloc.get_traced_memory()[1] <= memory.reading(len(files[CERTIFICATE]), others, held)
        tracemalloc.reset_peak()
        prove(found)
        assert tracemalloc.get_traced_memory()[1] <= memory.proving(evidence)
    finally:
        tracemalloc.stop()


def test_what_a_small_graph_of_many_secrets_takes_does_not_grow_with_their_square(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evidence = uniform(5_000, 1, Stated.graph(Fraction(1), ring(5_000)))
    put(tmp_path, bundle.encode(evidence, certify(evidence)))
    assert memory.proving(evidence) < 2**25
    monkeypatch.setenv(memory.VARIABLE, "0.0625")
    assert verify(tmp_path).holds


def test_attacks_that_are_alike_are_summed_once(tmp_path: Path) -> None:
    evidence = uniform(40, 60, Stated.distortion(Fraction(1), np.ones((1_500, 40))))
    put(tmp_path, bundle.encode(evidence, certify(evidence)))
    assert verify(tmp_path).distortion == (1.0,)
    assert second_verifier.prove(tmp_path)


def test_many_estimates_and_observables_are_not_multiplied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence = uniform(1, 2_000, Stated.distortion(Fraction(0), np.zeros((2_000, 1))))
    put(tmp_path, bundle.encode(evidence, certify(evidence)))
    monkeypatch.setenv(memory.VARIABLE, "0.125")
    assert verify(tmp_path).holds


def asking(size: int) -> dict[str, bytes]:
    """Return a true set of a few kB whose arrays are mostly zeros."""
    evidence = uniform(size, 1, Stated.graph(Fraction(1), [[0, 1]]))
    evidence = Evidence(
        evidence.numerators, 62, np.eye(1, size)[0], np.zeros((size, 1)), "expected", evidence.requirements
    )
    return bundle.encode(evidence, certify(evidence))


def test_a_few_kb_that_ask_for_more_than_is_allowed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = asking(6_000)
    assert sum(map(len, files.values())) < 20_000
    put(tmp_path, files)
    assert verify(tmp_path).holds
    with monkeypatch.context() as patched:
        # A machine or a container with little memory, and a variable that says so.
        for module in (memory, second_verifier):
            patched.setattr(module, *LITTLE[module])
        refuse(tmp_path, capsys)
    monkeypatch.setenv(memory.VARIABLE, "0.003")
    refuse(tmp_path, capsys)
    monkeypatch.setenv(memory.VARIABLE, "1")
    assert (kernel([str(tmp_path)]), second_verifier.main([str(tmp_path)])) == (0, 0)


LITTLE = {
    memory: ("free_memory", lambda: 0.003 * 2**30),
    second_verifier: ("find_room", lambda folder: 0.003 * 2**30),
}


def refuse(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fail unless all verifiers refuse a bundle because of its memory, and name the remedy."""
    with pytest.raises(CertificateError, match=r"would take about .* GiB of memory, but only 0\.003 GiB are allowed"):
        verify(folder)
    with pytest.raises(ValueError, match=r"it does not hold that 0\.00\d+ GiB of memory are enough"):
        second_verifier.prove(folder)
    assert CliRunner().invoke(command, ["verify", str(folder)]).exit_code == 2
    for main in (kernel, second_verifier.main):
        assert main([str(folder)]) == 2
        assert memory.VARIABLE in capsys.readouterr().err


def test_just_inside_and_just_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, whole(line(4, 0.6)))
    found = bundle.inspect(tmp_path)
    table = 0 if found.table is None else len(found.table)
    needed = memory.proving(found.evidence) + table
    for limit in (needed, needed - 1):
        monkeypatch.setattr(memory, "free_memory", lambda limit=limit: limit)
        if limit == needed:
            assert prove(found).certificate.holds
            continue
        with pytest.raises(CertificateError, match="would take about"):
            prove(found)


def test_large_files_may_take_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 64 * 2**30)
    most = 100 * 2**26
    for size, allowed in ((0, 2 * 2**30), (2**20, 2 * 2**30), (2**26, most), (2**30, 64 * 2**30)):
        memory.require_room(allowed, size, "proving")
        with pytest.raises(CertificateError, match=f"only {allowed / 2**30:.3g} GiB are allowed or left"):
            memory.require_room(allowed + 1, size, "proving")
    # 2,500 places: 4.1 GB for files of some 300 MB.
    memory.require_room(4_100_000_000, 300_000_000, "proving")
    monkeypatch.setattr(memory, "free_memory", lambda: None)
    memory.require_room(most, 2**26, "proving")
    # What is stated holds beside the free memory, but not beyond the limits of the process.
    monkeypatch.setattr(memory, "free_memory", lambda: 1)
    monkeypatch.setattr(memory, "memory_below_limits", lambda: None)
    monkeypatch.setenv(memory.VARIABLE, "8")
    memory.require_room(8 * 2**30, 0, "proving")
    monkeypatch.setattr(memory, "memory_below_limits", lambda: 2**30)
    with pytest.raises(CertificateError, match="only 1 GiB are allowed or left"):
        memory.require_room(8 * 2**30, 0, "proving")
    (tmp_path / "channel.csv").write_bytes(bytes(2**25))
    monkeypatch.delenv(memory.VARIABLE)
    assert second_verifier.find_room(tmp_path) > 0
    for free, room in ((2**34, 100 * 2**25), (2**30, 2**30)):
        (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {free // 1024} kB\n")
        monkeypatch.setattr(second_verifier, "MACHINE", tmp_path / "meminfo")
        assert second_verifier.find_room(tmp_path) == room
    os.truncate(tmp_path / "channel.csv", 0)
    os.truncate(tmp_path / "channel.csv", 2**34)
    (tmp_path / "meminfo").unlink()
    assert second_verifier.find_room(tmp_path) == 2 * 2**30


def test_memory_is_a_positive_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, made("expected cost"))
    for wrong in ("0", "-1", "nan", "inf", "x", "2 GiB", "1e999"):
        monkeypatch.setenv(memory.VARIABLE, wrong)
        assert_refused([Mistake(wrong, lambda: verify(tmp_path), memory.VARIABLE)])
        assert second_verifier.main([str(tmp_path)]) == 2
    monkeypatch.setenv(memory.VARIABLE, "")
    assert verify(tmp_path).holds
    assert second_verifier.main([str(tmp_path)]) == 0


def test_a_file_with_holes_is_not_read(tmp_path: Path) -> None:
    for name in (CHANNEL, DUAL, "channel.csv", CERTIFICATE):
        put(tmp_path, made("expected cost"))
        os.truncate(tmp_path / name, 2**33)
        for read in (verify, bundle.read):
            with pytest.raises(CertificateError, match=r"would take about|exceed the limit"):
                read(tmp_path)
        assert "GiB of memory are enough" in second(tmp_path), name
        if name == CHANNEL:
            with pytest.raises(CertificateError, match="would take about"):
                bundle.read_channel(tmp_path / name)


def test_any_other_file_may_be_of_any_size(tmp_path: Path) -> None:
    files = whole(line(4, 0.6))
    put(tmp_path, files)
    os.truncate(tmp_path / "report.html", 2**24)
    tracemalloc.start()
    try:
        with pytest.raises(CertificateError, match=r"report\.html does not match its digest"):
            verify(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
