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


def test_what_a_small_graph_of_many_secrets_takes_does_not_grow_with_their_square(tmp_path: Path) -> None:
    evidence = uniform(5_000, 1, Stated.graph(Fraction(1), ring(5_000)))
    put(tmp_path, bundle.encode(evidence, certify(evidence)))
    assert memory.proving(evidence) < 2**25
    assert verify(tmp_path, memory=0.0625).holds


def test_attacks_that_are_alike_are_summed_once(tmp_path: Path) -> None:
    evidence = uniform(40, 60, Stated.distortion(Fraction(1), np.ones((1_500, 40))))
    put(tmp_path, bundle.encode(evidence, certify(evidence)))
    assert verify(tmp_path).distortion == (1.0,)
    assert second_verifier.prove(tmp_path)


def test_many_estimates_and_observables_are_not_multiplied(tmp_path: Path) -> None:
    evidence = uniform(1, 2_000, Stated.distortion(Fraction(0), np.zeros((2_000, 1))))
    put(tmp_path, bundle.encode(evidence, certify(evidence)))
    assert verify(tmp_path, memory=0.125).holds


def asking(size: int) -> dict[str, bytes]:
    """Return a true set of a few kB whose arrays are mostly zeros."""
    evidence = uniform(size, 1, Stated.graph(Fraction(1), [[0, 1]]))
    evidence = Evidence(
        evidence.numerators, 62, np.eye(1, size)[0], np.zeros((size, 1)), "expected", evidence.requirements
    )
    return bundle.encode(evidence, certify(evidence))


def test_a_few_kb_that_ask_for_more_than_is_allowed_are_refused(tmp_path: Path) -> None:
    files = asking(6_000)
    assert sum(map(len, files.values())) < 20_000
    put(tmp_path, files)
    with pytest.raises(CertificateError, match=r"would take about .* GiB of memory, but only 0\.003 GiB are allowed"):
        verify(tmp_path, memory=0.003)
    assert "GiB of memory are enough" in refused_with(tmp_path, 0.003)
    assert verify(tmp_path).holds
    done = CliRunner().invoke(command, ["verify", str(tmp_path), "--memory", "0.003"])
    assert (done.exit_code, "--memory of the command" in done.output.replace("\n", " ")) == (2, True)
    assert kernel([str(tmp_path), "--memory", "0.003"]) == 2
    assert kernel([str(tmp_path), "--memory", "1"]) == 0


def refused_with(folder: Path, allowed: float) -> str:
    with pytest.raises(ValueError, match="it does not hold") as caught:
        second_verifier.prove(folder, allowed)
    return str(caught.value)


def test_just_inside_and_just_outside(tmp_path: Path) -> None:
    files = whole(line(4, 0.6))
    put(tmp_path, files)
    found = bundle.inspect(tmp_path)
    table = 0 if found.table is None else len(found.table)
    needed = (memory.proving(found.evidence) + table) / 2**30
    assert prove(found, needed * (1 + 1e-9)).certificate.holds
    with pytest.raises(CertificateError, match="would take about"):
        prove(found, needed * (1 - 1e-6))


def test_memory_is_a_positive_number(tmp_path: Path) -> None:
    found = bundle.inspect(put(tmp_path, made("expected cost")))
    wrong = (0, -1, float("nan"), float("inf"), True, "2", None, [2])
    assert_refused(Mistake(repr(each), lambda each=each: prove(found, each), "memory") for each in wrong)


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
