"""Both verifiers take the same form: what one of them refuses, the other refuses too, and both list unknown keys."""

from __future__ import annotations

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from test_second_verifier import SETS, claims, put, refused, repair, whole

from attacks import two_verifiers
from mechdesign.certify import _archive, second_verifier
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.certify._verify import examine, verify
from mechdesign.errors import CertificateError

# What is as true, and of the same form, as before.
FINE = {
    "another key of the certificate",
    "another key of a verdict",
    "more metadata",
    "not compressed",
}
# What depends on the requirement, or on the array.
EITHER = {
    "a name",
    "a number that is another",
    "a part of 1",
    "an array that is not listed",
    "another type of an array",
    "zeros with a sign",
}


@pytest.mark.parametrize("form", two_verifiers.FORMS)
@pytest.mark.parametrize("name", ["expected cost", "claims in the open"])
def test_a_set_of_another_form_is_judged_alike(tmp_path: Path, form: str, name: str) -> None:
    for seed in range(1 + (name == "expected cost")):
        files = dict(SETS[name])
        document = json.loads(files[CERTIFICATE])
        two_verifiers.FORMS[form](files, document, random.Random(seed))
        if "no repair" not in form:
            two_verifiers.repair(files, document)
        put(tmp_path, files)
        (one, keys), (other, others) = two_verifiers.first(tmp_path), two_verifiers.second(tmp_path)
        assert (bool(one), keys) == (bool(other), others), (one, other)
        assert bool(one) != (form in FINE) or form in EITHER or two_verifiers.same(files, SETS[name])


@pytest.mark.parametrize("digits", ["00000000000000000001", "0000000009", "00"])
@pytest.mark.parametrize("name", ["lower_bound", "expected_cost", "realised"])
def test_decimals_that_no_float_prints_are_refused_by_both(tmp_path: Path, digits: str, name: str) -> None:
    files = dict(SETS["expected cost"])
    text = files[CERTIFICATE].decode()
    longer = re.sub(rf'("{name}": [0-9]+\.[0-9]+)', rf"\g<1>{digits}", text, count=1)
    assert json.loads(longer) == json.loads(text)
    assert longer != text
    put(tmp_path, {**files, CERTIFICATE: longer.encode()})
    if digits == "00":
        # The same decimal.
        assert verify(tmp_path).holds
        assert second_verifier.prove(tmp_path)
        return
    with pytest.raises(CertificateError, match="is not a number that a float prints"):
        verify(tmp_path)
    assert "the number that its float prints" in refused(tmp_path)


def test_unknown_keys_are_listed_by_both_and_refused_at_the_top(tmp_path: Path) -> None:
    def add(document) -> None:
        document["certificate"]["audited_by"] = "me"
        document["certificate"]["requirements"][1]["seal"] = {"of": 1}

    put(tmp_path, repair(SETS["expected cost"], add))
    said = "unknown keys of certificate.json: certificate.audited_by, certificate.requirements[1].seal"
    assert said in examine(tmp_path).unproved
    assert second_verifier.prove(tmp_path)[-2:] == [
        "stated, not proved: certificate.audited_by",
        "stated, not proved: certificate.requirements[1].seal",
    ]
    command = [sys.executable, "-m", "mechdesign.certify", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert f"stated, not proved: {said}" in done.stdout
    put(tmp_path, repair(SETS["expected cost"], lambda d: d.update(audited_by="me")))
    with pytest.raises(CertificateError, match="missing or unknown keys: audited_by"):
        verify(tmp_path)
    assert "has the keys" in refused(tmp_path)


@pytest.mark.parametrize(("epsilon", "counted"), [("709.78", True), ("709.79", False), ("709.85", False)])
def test_multipliers_count_as_long_as_their_factor_is_a_float(tmp_path: Path, epsilon: str, counted: bool) -> None:
    half = np.full((2, 2), 2**61)
    evidence = Evidence(
        half, 62, np.array([0.5, 0.5]), 1.0 - np.eye(2), "expected",
        (Stated.graph(Fraction(epsilon), [[0, 1]]),),
        Multipliers((PairMultipliers([0], [1], [0], [1e-309]),)),
    )  # fmt: skip
    certificate = certify(evidence)
    assert math.isfinite(evidence.claims()[0].factors_above()[0]) == counted == (certificate.lower_bound > 0)
    files = bundle.encode(evidence, certificate)
    put(tmp_path, files)
    assert verify(tmp_path).holds
    assert second_verifier.prove(tmp_path)
    put(tmp_path, repair(files, lambda d: d["certificate"].update(lower_bound=5e-310)))
    assert two_verifiers.first(tmp_path)[0]
    assert refused(tmp_path)


@pytest.mark.parametrize("weight", [0.0, 5e-324, 1e-20, 1e-16, 1.0])
def test_factors_next_to_one_are_rounded_alike(tmp_path: Path, weight: float) -> None:
    half = np.full((2, 2), 2**61)
    evidence = Evidence(
        half, 62, np.array([0.5, 0.5]), np.array([[1.0, 1 / 3], [1.0, 0.75]]), "expected",
        (Stated.pairs("near", Fraction(44, 25), [[0, 1]], [weight]),),
        Multipliers((PairMultipliers([0], [1], [1], [1 / 30]),)),
    )  # fmt: skip
    put(tmp_path, whole(evidence))
    assert verify(tmp_path).lower_bound > 0
    assert second_verifier.prove(tmp_path)


@pytest.mark.parametrize("name", SETS)
def test_the_rounded_bound_is_that_of_the_first_verifier_exactly(tmp_path: Path, name: str) -> None:
    put(tmp_path, SETS[name])
    lower = json.loads(SETS[name][CERTIFICATE])["certificate"]["lower_bound"]
    for changed in (math.nextafter(lower, -1), math.nextafter(lower, 9), lower * 0.999):

        def change(document, changed=changed) -> None:
            document["certificate"]["lower_bound"] = max(changed, 0.0)

        put(tmp_path, repair(SETS[name], change))
        if max(changed, 0.0) != lower:
            assert two_verifiers.first(tmp_path)[0]
            assert refused(tmp_path)


@pytest.mark.parametrize("towards", [math.inf, -math.inf])
def test_the_least_epsilon_is_the_least_to_one_float_for_both(tmp_path: Path, towards: float) -> None:
    def change(document) -> None:
        entry = document["certificate"]["requirements"][0]
        entry["realised"] = math.nextafter(entry["realised"], towards)

    put(tmp_path, repair(SETS["expected cost"], change))
    assert two_verifiers.first(tmp_path)[0]
    assert refused(tmp_path)


def test_texts_with_halves_of_characters_are_refused_by_both(tmp_path: Path) -> None:
    files = dict(SETS["expected cost"])
    arrays = {**_archive.unpack(files[CHANNEL], CHANNEL), "note": np.array(["a\ud800"])}
    put(tmp_path, {**files, CHANNEL: _archive.pack(arrays)})
    with pytest.raises(CertificateError, match="contains malformed texts"):
        verify(tmp_path)
    assert refused(tmp_path)


def test_infinite_numbers_of_what_holds_are_accepted_by_both(tmp_path: Path) -> None:
    """A least ε above every float: the weight is so small that ln(3) / w overflows, and the ε asked for is larger."""
    evidence = Evidence(
        np.array([[3, 1], [1, 3]]), 2, np.array([0.5, 0.5]), 1.0 - np.eye(2), "expected",
        (Stated.pairs("near", Fraction(10**330), [[0, 1], [1, 0]], [5e-324, 5e-324]),),
    )  # fmt: skip
    certificate = certify(evidence)
    assert certificate.holds
    assert certificate.epsilon == (math.inf,)
    put(tmp_path, whole(evidence))
    assert verify(tmp_path).holds
    assert second_verifier.prove(tmp_path)


def test_a_sample_of_the_benchmark(tmp_path: Path) -> None:
    """`benchmarks/attacks/two_verifiers.py`, whose result is stored beside it, on a few designs."""
    folder = tmp_path / "set"
    folder.mkdir()
    warnings.simplefilter("ignore")
    before = signal.signal(signal.SIGALRM, two_verifiers.out_of_time)
    try:
        rows = [two_verifiers.judged(number, 77, 8, folder, most=4) for number in range(4)]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [row["wrong"] for row in rows] == [[]] * 4
    assert "0 disagreements" in two_verifiers.report(rows, 77)
    # What would be found, is.
    first = two_verifiers.first
    try:
        two_verifiers.first = lambda _: ("no", [])
        assert two_verifiers.judged(0, 77, 2, folder, most=3)["wrong"]
    finally:
        two_verifiers.first = first


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", [CERTIFICATE, CHANNEL, "channel.csv"])
def test_a_pipe_in_place_of_a_file_is_refused_by_both_at_once(tmp_path: Path, name: str) -> None:
    put(tmp_path, SETS["expected cost"])
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    signal.alarm(20)
    try:
        with pytest.raises(CertificateError):
            verify(tmp_path)
        assert refused(tmp_path)
    finally:
        signal.alarm(0)


@pytest.mark.parametrize("name", ["numerators", "cost", "requirement_0_distance"])
def test_rows_without_columns_are_refused_however_many_they_are(tmp_path: Path, name: str) -> None:
    """They take no bytes: an archive may say that there are 10^17."""
    files = dict(SETS["expected cost"])
    arrays = dict(_archive.unpack(files[CHANNEL], CHANNEL))
    arrays[name] = np.zeros((10**17, 0), dtype=arrays[name].dtype)
    put(tmp_path, repair({**files, CHANNEL: _archive.pack(arrays)}))
    with pytest.raises(CertificateError):
        verify(tmp_path)
    run = [sys.executable, second_verifier.__file__, str(tmp_path)]
    assert subprocess.run(run, capture_output=True, check=False, timeout=30).returncode == 1


def test_an_entry_that_is_shorter_than_its_archive_says_is_refused_by_both(tmp_path: Path) -> None:
    files = dict(SETS["expected cost"])
    content = bytearray(files[CHANNEL])
    # A byte of the size of the first entry, in the directory at the end of the archive.
    content[content.find(b"PK\x01\x02") + 25] += 1
    files[CHANNEL] = bytes(content)
    document = json.loads(files[CERTIFICATE])
    document["files"][CHANNEL] = bundle._sha256(files[CHANNEL])
    document["digest"] = bundle.document_digest(document)
    put(tmp_path, {**files, CERTIFICATE: json.dumps(document).encode()})
    with pytest.raises(CertificateError, match="does not match its size"):
        verify(tmp_path)
    assert "matches its shape" in refused(tmp_path)


def test_a_pair_that_is_listed_often_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    often = [[0, 1], [1, 0]] * 500
    stated = (Stated.pairs("near", Fraction(2), often, np.linspace(1, 2, 1000)),)
    put(tmp_path, whole(claims(requirements=stated, multipliers=None)))
    compared: list[object] = []
    ratio = second_verifier.largest_ratio
    monkeypatch.setattr(second_verifier, "largest_ratio", lambda *rows: compared.append(rows) or ratio(*rows))
    assert verify(tmp_path).holds
    assert second_verifier.prove(tmp_path)
    assert len(compared) == 2
