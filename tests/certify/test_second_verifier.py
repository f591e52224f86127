"""The second verifier, which shares no code with the first: alone, and where the numbers of both could differ."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bundles import EVIDENCE, ONE, claims, made, put, repair, whole
from tampering import GONE, arrays, at, first, second

from attacks import two_verifiers
from mechdesign.certify import _bundle as bundle
from mechdesign.certify import second_verifier
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, TABLE
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence, Multipliers, PairMultipliers
from mechdesign.certify._exact import as_decimal, float_up
from mechdesign.certify._stated import Stated
from mechdesign.certify._verify import verify


def test_both_prove_every_kind_of_bundle(tmp_path: Path) -> None:
    for name in EVIDENCE:
        folder = tmp_path / name
        folder.mkdir()
        certificate = verify(put(folder, made(name)))
        proved = second_verifier.prove(folder)
        assert len(proved) == len(certificate.requirements) + 1
        for checked, shown in zip(certificate.requirements, proved, strict=False):
            assert shown.startswith(f"{checked.kind} privacy, {checked.number} {checked.nominal}"), folder
            least = "error" if checked.at_least else f"least {checked.number}"
            assert shown.endswith(f": holds; {least} {checked.realised}"), folder


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)


def test_it_is_one_file_of_plain_python(tmp_path: Path) -> None:
    copy = shutil.copy(second_verifier.__file__, tmp_path / "second_verifier.py")
    # -I and -S leave nothing to import but Python itself.
    folder = put(tmp_path, made("expected cost"))
    done = run(sys.executable, "-I", "-S", str(copy), str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"{folder} is proved.\n")


def test_its_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usage = "usage: python second_verifier.py DIR"
    folder, missing = str(put(tmp_path, made("expected cost"))), str(tmp_path / "missing")
    for arguments, code, said in (
        ([folder], 0, "metric privacy, epsilon 0.6: holds"),
        ([folder, folder], 2, usage),
        (["--help"], 0, usage),
        ([], 2, usage),
        ([missing], 2, f"{missing} is not a folder with a bundle"),
    ):
        assert second_verifier.main(arguments) == code, arguments
        shown, other = capsys.readouterr()
        shown, other = (other, shown) if code else (shown, other)
        assert (shown.startswith(said), other) == (True, ""), arguments


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the place of every key of a document."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        if isinstance(value, dict):
            yield (*path, key)
        yield from places_of(each, (*path, key))


def test_whatever_is_missing_is_refused_in_words(tmp_path: Path) -> None:
    optional = {("files", "channel.csv"), ("files", "report.html"), ("requirements", 3, "part"), ("digest",)}
    for name in ("forbidden answers", "claims"):
        files, missing = made(name), dict[Any, Any]()
        for path in set(places_of(json.loads(files[CERTIFICATE]))) - optional:
            # The verdicts of the second bundle tell its requirements apart, which the first one lacks.
            if name == "forbidden answers" or "requirements" in path:
                missing[path] = at(*path, GONE)(dict(files))
        for array in json.loads(files[CERTIFICATE])["arrays"][CHANNEL]:
            missing[array] = arrays(CHANNEL, **{array: None})(dict(files))
        for what, changed in missing.items():
            said = second(put(tmp_path, changed)) if what not in ("secrets", "observables") else "ValueError"
            assert said.startswith("ValueError"), what


def test_the_bounds_of_the_exponential_enclose_it() -> None:
    getcontext().prec = 700
    random = np.random.default_rng(6)
    for bits in (8, 64, 128, 300):
        for bound in (0, 1e-6, 1.0, 700.0):
            x = Fraction(float(random.random() * bound)).limit_denominator(10**9)
            lower, upper = second_verifier.exp_bounds(x, bits)
            value = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp()) * 2**bits
            assert lower <= value <= upper, (x, bits)
            assert upper - lower <= 2 + value / 2**bits, (x, bits)


def test_comparisons_with_the_exponential_just_inside_and_just_outside() -> None:
    for x in (Fraction(1, 10**400), Fraction(0), Fraction(1, 2**1074), Fraction(3, 7)):
        lower, upper = (Fraction(bound, 2**2000) for bound in second_verifier.exp_bounds(x, 2000))
        assert not second_verifier.is_above(lower, "epsilon", x)
        assert second_verifier.is_above(upper + Fraction(1, 2**1990), "epsilon", x)
        assert second_verifier.is_above(math.inf, "epsilon", x)
    assert not second_verifier.is_above(Fraction(2**62), "epsilon", Fraction(10**400))
    assert second_verifier.is_above(math.inf, "epsilon", Fraction(10**400))


def test_the_least_printed_decimal_is_recognised() -> None:
    random = np.random.default_rng(7)
    for numerator, denominator in random.integers(-(10**6), 10**6, (200, 2)).tolist():
        value = Fraction(numerator, denominator or 1)
        found = float_up(value)
        assert second_verifier.is_least(as_decimal(found), value), value
        assert not second_verifier.is_least(as_decimal(math.nextafter(found, math.inf)), value), value
        assert not second_verifier.is_least(as_decimal(math.nextafter(found, -math.inf)), value), value


def two_secrets(stated: Stated, **changes: object) -> Evidence:
    """Return the same answers for two secrets, and one requirement."""
    fields = {"numerators": np.full((2, 2), ONE // 2), "exponent": 62, "cost": 1.0 - np.eye(2)}
    return Evidence(**{**fields, **changes}, prior=[0.5, 0.5], objective="expected", requirements=(stated,))  # type: ignore[arg-type]


def test_multipliers_count_as_long_as_their_factor_is_a_float(tmp_path: Path) -> None:
    for epsilon, counted in (("709.78", True), ("709.79", False), ("709.85", False)):
        multipliers = Multipliers((PairMultipliers([0], [1], [0], [1e-309]),))
        evidence = two_secrets(Stated.graph(Fraction(epsilon), [[0, 1]]), multipliers=multipliers)
        certificate = certify(evidence)
        assert math.isfinite(evidence.claims()[0].factors_above()[0]) == counted == (certificate.lower_bound > 0)
        files = bundle.encode(evidence, certificate)
        put(tmp_path, files)
        assert (first(tmp_path), second(tmp_path)) == ("", ""), epsilon
        put(tmp_path, repair(files, lambda d: d["certificate"].update(lower_bound=5e-310)))
        assert first(tmp_path), epsilon
        assert second(tmp_path), epsilon


def test_factors_next_to_one_are_rounded_alike(tmp_path: Path) -> None:
    cost = np.array([[1.0, 1 / 3], [1.0, 0.75]])
    multipliers = Multipliers((PairMultipliers([0], [1], [1], [1 / 30]),))
    for weight in (0.0, 5e-324, 1e-20, 1e-16, 1.0):
        stated = Stated.pairs("near", Fraction(44, 25), [[0, 1]], [weight])
        put(tmp_path, whole(two_secrets(stated, cost=cost, multipliers=multipliers)))
        assert verify(tmp_path).lower_bound > 0
        assert second(tmp_path) == "", weight


def test_infinite_numbers_of_what_holds_are_accepted_by_both(tmp_path: Path) -> None:
    """A least ε above every float: the weight is so small that ln(3) / w overflows, and the ε asked for is larger."""
    stated = Stated.pairs("near", Fraction(10**330), [[0, 1], [1, 0]], [5e-324, 5e-324])
    evidence = two_secrets(stated, numerators=np.array([[3, 1], [1, 3]]), exponent=2)
    assert certify(evidence).epsilon == (math.inf,)
    put(tmp_path, whole(evidence))
    assert (first(tmp_path), second(tmp_path)) == ("", "")


def test_a_sample_of_random_designs_is_judged_alike(tmp_path: Path) -> None:
    """`benchmarks/attacks/two_verifiers.py`, on a few designs."""
    warnings.simplefilter("ignore")
    before = signal.signal(signal.SIGALRM, two_verifiers.out_of_time)
    try:
        found = [two_verifiers.judged(number, 77, 6, tmp_path, most=4) for number in range(2)]
    finally:
        signal.signal(signal.SIGALRM, before)
    assert [row["wrong"] for row in found] == [[]] * 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_in_place_of_a_file_is_refused_by_both_at_once(tmp_path: Path) -> None:
    signal.alarm(20)
    try:
        for name in (CERTIFICATE, CHANNEL, TABLE):
            folder = tmp_path / name
            folder.mkdir()
            put(folder, made("expected cost"))
            (folder / name).unlink()
            os.mkfifo(folder / name)
            assert first(folder), name
            assert second(folder), name
    finally:
        signal.alarm(0)


def test_a_pair_that_is_listed_often_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    often = [[0, 1], [1, 0]] * 200
    stated = (Stated.pairs("near", Fraction(2), often, np.linspace(1, 2, 400)),)
    put(tmp_path, whole(claims(requirements=stated, multipliers=None)))
    compared: list[object] = []
    ratio = second_verifier.largest_ratio
    monkeypatch.setattr(second_verifier, "largest_ratio", lambda *rows: compared.append(rows) or ratio(*rows))
    assert (first(tmp_path), second(tmp_path)) == ("", "")
    assert len(compared) == 2
