"""The second verifier, which shares no code with the first: both judge every kind of bundle, whole and tampered."""

from __future__ import annotations

import ast
import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certify_examples import line
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign.certify import _archive, second_verifier
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, TABLE
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.certify._table import exact_lines
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError

REFERENCE = Path(__file__).parents[1] / "reference"
WRITTEN = sorted(path.parent for path in REFERENCE.rglob("certificate.json"))
Files = dict[str, bytes]


def claims(**changes: Any) -> Evidence:
    """Randomised response with claims in the open: exponents, ratios, and floors with a prior of their own."""
    third = 2**62 // 3
    fields: dict[str, Any] = {
        "numerators": np.array([[2**62 - third, third], [third, 2**62 - third]]) + np.array([[-1, 1], [1, -1]]) * 4,
        "exponent": 62,
        "prior": np.array([0.5, 0.5]),
        "cost": 1.0 - np.eye(2),
        "objective": "expected",
        "requirements": (
            Stated.pairs("near", Fraction(7, 10), [[0, 1], [0, 1]], [2.0, 1.0]),
            Stated.ratios("ratio", Fraction(1), [[0, 1], [1, 0]], [2, 4], [1, 2]),
            Stated.floor("doubt", Fraction(1, 4), 1.0 - np.eye(2), [0.25, 0.75]),
            Stated.floor("doubt", Fraction(1, 3), 1.0 - np.eye(2), part=1),
        ),
        "multipliers": Multipliers(
            (
                PairMultipliers([0], [1], [0], [1e-3]),
                PairMultipliers([0, 1], [1, 0], [0, 1], [1 / 6, 1 / 6]),
                FloorMultipliers([0, 1], [0, 1], [0.01, 0.01]),
                FloorMultipliers([], [], []),
            )
        ),
    }
    return Evidence(**{**fields, **changes})


def forbidden() -> Evidence:
    """Two answers of three for each of two secrets, and one that neither gives."""
    half = 2**61
    cost = np.array([[0.0, 1.0, np.inf], [1.0, 0.5, np.inf]])
    numerators = np.array([[half, half, 0], [half // 2, half + half // 2, 0]])
    stated = (Stated.graph(Fraction(7, 10), [[0, 1], [1, 1]]),)
    return Evidence(numerators, 62, np.array([0.25, 0.75]), cost, "worst", stated)


def whole(evidence: Evidence) -> Files:
    n, m = evidence.numerators.shape
    labels = [[f"s, {index}" for index in range(n)], [f"o, {index}" for index in range(m)]]
    table = "".join(exact_lines(evidence.numerators, evidence.exponent, *labels)).encode()
    arrays = {"secrets": np.array(labels[0]), "observables": np.array(labels[1])}
    return bundle.encode(evidence, certify(evidence), arrays=arrays, files={TABLE: table, "report.html": b"<p>"})


SETS = {
    "expected cost": whole(line(4, 0.6)),
    "worst cost": whole(line(3, 0.6, "worst")),
    "no multipliers": whole(line(3, 0.6, multipliers=None)),
    "claims in the open": whole(claims()),
    "claims, worst cost": whole(claims(objective="worst")),
    "forbidden answers": whole(forbidden()),
    "no requirements": whole(claims(requirements=(), multipliers=None)),
}


def put(folder: Path, files: Files) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def repair(files: Files, change: Callable[[dict[str, Any]], Any] = lambda _: None) -> Files:
    """Make all digests fit again, as a clever tamperer would."""
    document = json.loads(files[CERTIFICATE])
    for name in document["files"]:
        document["files"][name] = bundle._sha256(files[name])
        if name in document["arrays"]:
            held = _archive.unpack(files[name], name)
            document["arrays"][name] = {key: _archive.digest(array) for key, array in held.items()}
    change(document)
    document["digest"] = bundle.document_digest(document)
    return {**files, CERTIFICATE: json.dumps(document).encode()}


def with_array(files: Files, file: str, name: str, values: Any) -> Files:
    arrays = dict(_archive.unpack(files[file], file))
    arrays[name] = np.asarray(values, dtype=arrays[name].dtype)
    return repair({**files, file: _archive.pack(arrays)})


def refused(folder: Path) -> str:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - anything but a proof is a refusal
        second_verifier.prove(folder)
    return str(caught.value)


@pytest.mark.parametrize("folder", WRITTEN, ids=[str(path.relative_to(REFERENCE)) for path in WRITTEN])
def test_both_prove_what_old_versions_wrote(folder: Path) -> None:
    certificate = verify(folder)
    proved = second_verifier.prove(folder)
    assert len(proved) == len(certificate.requirements) + 1
    for checked, shown in zip(certificate.requirements, proved, strict=False):
        assert shown.startswith(f"{checked.kind} privacy, {checked.number} {checked.nominal}")
        least = "error" if checked.at_least else f"least {checked.number}"
        assert shown.endswith(f": holds; {least} {checked.realised}")


@pytest.mark.parametrize("name", SETS)
def test_both_prove_every_kind_of_set(tmp_path: Path, name: str) -> None:
    assert verify(put(tmp_path, SETS[name])).holds
    assert second_verifier.prove(tmp_path)


def test_it_is_one_short_file_of_plain_python(tmp_path: Path) -> None:
    source = Path(second_verifier.__file__).read_text(encoding="utf-8")
    assert sum(bool(text.strip()) for text in source.splitlines()) <= 600
    names = {
        name
        for node in ast.walk(ast.parse(source))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert {str(name) for name in names} <= sys.stdlib_module_names
    copy = shutil.copy(second_verifier.__file__, tmp_path / "second_verifier.py")
    # -I and -S leave nothing to import but Python itself.
    command = [sys.executable, "-I", "-S", str(copy)]
    done = subprocess.run([*command, str(WRITTEN[0])], capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"{WRITTEN[0]} is proved.\n")
    done = subprocess.run([*command, "--help"], capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: python second_verifier.py DIR [--memory GIB], which")
    little = [*command, str(WRITTEN[0]), "--memory", "0.0001"]
    done = subprocess.run(little, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.endswith("; allow more, in GiB: --memory 8\n")
    missing = str(tmp_path / "missing")
    for arguments, code, said in (
        ([], 2, "usage: python second_verifier.py DIR"),
        ([missing], 2, f"{missing} is not a folder"),
        ([str(tmp_path)], 2, f"{tmp_path} is not a folder with a bundle"),
    ):
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, encoding="utf-8", timeout=60)
        assert (done.returncode, done.stdout) == (code, "")
        assert done.stderr.startswith(said)


@pytest.mark.parametrize("repaired", [False, True])
@pytest.mark.parametrize("name", ["expected cost", "claims in the open"])
def test_one_unit_moved_is_refused_by_both(tmp_path: Path, name: str, repaired: bool) -> None:
    arrays = dict(_archive.unpack(SETS[name][CHANNEL], CHANNEL))
    numerators = arrays["numerators"].copy()
    numerators[1, :2] += [1, -1]
    arrays["numerators"] = numerators
    files = {**SETS[name], CHANNEL: _archive.pack(arrays)}
    put(tmp_path, repair(files) if repaired else files)
    with pytest.raises(CertificateError):
        verify(tmp_path)
    reason = refused(tmp_path)
    assert "digest" in reason or repaired


ARRAYS = [
    (CHANNEL, "exponent", 61),
    (CHANNEL, "prior", [0.4, 0.1, 0.25, 0.25]),
    (CHANNEL, "prior", [0.5, 0.5, 0.5, -0.5]),
    (CHANNEL, "prior", [0.5, 0.5, 0.5, 0.5]),
    (CHANNEL, "cost", 2 * np.abs(np.subtract.outer(range(4), range(4)))),
    (CHANNEL, "cost", np.full((4, 4), np.nan)),
    (CHANNEL, "cost", np.full((4, 4), np.inf)),
    (CHANNEL, "requirement_0_distance", np.abs(np.subtract.outer(range(4), range(4))) * 0.99),
    (CHANNEL, "requirement_0_distance", -np.abs(np.subtract.outer(range(4), range(4)))),
    (CHANNEL, "requirement_0_distance", np.ones((3, 3))),
    (CHANNEL, "requirement_1_edges", [[0, 3]]),
    (CHANNEL, "requirement_1_edges", [[0, 4]]),
    (CHANNEL, "requirement_1_edges", [[0, -1]]),
    (CHANNEL, "requirement_2_distance", np.ones((4, 4)) / 2),
    (CHANNEL, "requirement_3_error", np.full((4, 4), 0.01)),
    (CHANNEL, "requirement_3_error", np.zeros((0, 4))),
    (CHANNEL, "secrets", ["a", "b", "c", "d"]),
    (DUAL, "requirement_0_values", [-1.0] * 6),
    (DUAL, "requirement_0_values", [np.inf] * 6),
    (DUAL, "requirement_0_values", [1e3] * 6),
    (DUAL, "requirement_0_observables", [9] * 6),
    (DUAL, "requirement_0_targets", [-1] * 6),
    (DUAL, "requirement_0_targets", [0, 0, 1, 1, 2, 2]),
    (DUAL, "requirement_3_estimates", [4, 4, 4, 4]),
    (DUAL, "requirement_3_values", [50.0, 0.0, 0.0, 0.0]),
]


@pytest.mark.parametrize(("file", "name", "values"), ARRAYS)
def test_a_changed_array_is_refused_by_both(tmp_path: Path, file: str, name: str, values: Any) -> None:
    put(tmp_path, with_array(SETS["expected cost"], file, name, values))
    with pytest.raises(CertificateError):
        verify(tmp_path)
    assert refused(tmp_path)


@pytest.mark.parametrize(
    ("file", "name", "values"),
    [
        (CHANNEL, "requirement_0_weights", [2.0, 0.9]),
        (CHANNEL, "requirement_1_numerators", [1, 4]),
        (CHANNEL, "requirement_1_numerators", [0, 4]),
        (CHANNEL, "requirement_1_denominators", [1, 3]),
        (CHANNEL, "requirement_1_pairs", [[0, 1], [1, 2]]),
        (CHANNEL, "requirement_2_prior", [0.2, 0.8]),
        (CHANNEL, "requirement_2_prior", [0.25, 0.85]),
        (DUAL, "requirement_1_values", [1.0, 1.0]),
    ],
)
def test_a_changed_claim_in_the_open_is_refused_by_both(tmp_path: Path, file: str, name: str, values: Any) -> None:
    put(tmp_path, with_array(SETS["claims in the open"], file, name, values))
    with pytest.raises(CertificateError):
        verify(tmp_path)
    assert refused(tmp_path)


FIELDS: list[Callable[[dict[str, Any]], Any]] = [
    lambda d: d.update(schema="mechdesign-certificate/3"),
    lambda d: d.update(objective="worst"),
    lambda d: d["requirements"].pop(),
    lambda d: d["requirements"][0].update(epsilon="0.5"),
    lambda d: d["requirements"][0].update(epsilon="0"),
    lambda d: d["requirements"][0].update(epsilon="-1"),
    lambda d: d["requirements"][0].update(epsilon="1e99999"),
    lambda d: d["requirements"][2].update(radius="1"),
    lambda d: d["requirements"][3].update(minimum="1"),
    lambda d: d["requirements"][0].update(kind="graph"),
    lambda d: d["certificate"].update(holds=False),
    lambda d: d["certificate"].update(reason="x"),
    lambda d: d["certificate"].update(pair=[0, 1]),
    lambda d: d["certificate"].update(forbidden=1),
    lambda d: d["certificate"].update(objective="worst"),
    lambda d: d["certificate"].update(lower_bound=d["certificate"]["lower_bound"] * 1.001),
    lambda d: d["certificate"].update(lower_bound=d["certificate"]["expected_cost"]),
    lambda d: d["certificate"].update(lower_bound=-1.0),
    lambda d: d["certificate"].update(lower_bound="inf"),
    lambda d: d["certificate"].update(relative_gap=0.0),
    lambda d: d["certificate"]["requirements"][0].update(realised=0.59),
    lambda d: d["certificate"]["requirements"][0].update(realised=0.61),
    lambda d: d["certificate"]["requirements"][0].update(realised="inf"),
    lambda d: d["certificate"]["requirements"][0].update(nominal="0.5"),
    lambda d: d["certificate"]["requirements"][0].update(holds=False),
    lambda d: d["certificate"]["requirements"][2].update(radius="1"),
    lambda d: d["certificate"]["requirements"][3].update(realised=1.0),
    lambda d: d["certificate"]["requirements"][3].update(realised=0.1),
    *(
        lambda d, name=name, way=way: d["certificate"].update({name: math.nextafter(d["certificate"][name], way)})
        for name in ("expected_cost", "worst_cost", "relative_gap")
        for way in (-math.inf, math.inf)
    ),
    *(
        lambda d, name=name, last=last: d["certificate"].update({name: d["certificate"][name][:-1] + last})
        for name in ("expected_cost_text", "worst_cost_text")
        for last in "059"
    ),
]


@pytest.mark.parametrize("place", range(len(FIELDS)))
def test_a_changed_field_is_refused_by_both(tmp_path: Path, place: int) -> None:
    files = repair(SETS["expected cost"], FIELDS[place])
    put(tmp_path, files)
    before, now = (json.loads(each[CERTIFICATE]) for each in (SETS["expected cost"], files))
    assert before["digest"] != now["digest"]
    with pytest.raises(CertificateError):
        verify(tmp_path)
    assert refused(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"0.", b"0.0", 1),
        lambda text: text.replace(b"secret,", b"observable,", 1),
        lambda text: text.replace(b"s, 0", b"s, 1", 1),
        lambda text: text.replace(b"o, 0", b"o, 1", 1),
        lambda text: text[: text.rindex(b"\n", 0, -1) + 1],
        lambda text: text + text[text.rindex(b"\n", 0, -1) + 1 :],
        lambda text: b"",
    ],
)
@pytest.mark.parametrize("listed", [True, False])
def test_a_table_of_another_channel_is_refused_by_both(tmp_path: Path, change: Any, listed: bool) -> None:
    """People sample from channel.csv, also where the certificate no longer lists it."""
    files = SETS["expected cost"]
    files = {**files, TABLE: change(files[TABLE])}
    assert files[TABLE] != SETS["expected cost"][TABLE]
    put(tmp_path, repair(files, lambda d: None if listed else d["files"].pop(TABLE)))
    with pytest.raises(CertificateError, match=r"channel\.csv"):
        verify(tmp_path)
    assert refused(tmp_path)


def test_what_is_true_though_weaker_is_refused_by_both(tmp_path: Path) -> None:
    """Larger multipliers than those that the certificate was made with prove more than it states."""
    evidence = claims()
    certificate = certify(claims(multipliers=None))
    put(tmp_path, bundle.encode(evidence, certificate))
    with pytest.raises(CertificateError, match="claims lower_bound"):
        verify(tmp_path)
    assert "the lower bound equals the bound of the multipliers" in refused(tmp_path)


@settings(max_examples=60)
@given(
    st.fractions(min_value=0, max_value=700, max_denominator=10**9),
    st.sampled_from([8, 64, 128, 300]),
)
def test_the_bounds_of_the_exponential_enclose_it(x: Fraction, bits: int) -> None:
    getcontext().prec = 700
    lower, upper = second_verifier.exp_bounds(x, bits)
    value = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp()) * 2**bits
    assert lower <= value <= upper
    assert upper - lower <= 2 + value / 2**bits


@pytest.mark.parametrize("x", [Fraction(1, 10**400), Fraction(0), Fraction(1, 2**1074), Fraction(3, 7)])
def test_comparisons_with_the_exponential_just_inside_and_just_outside(x: Fraction) -> None:
    lower, upper = (Fraction(bound, 2**2000) for bound in second_verifier.exp_bounds(x, 2000))
    assert not second_verifier.is_above(lower, "epsilon", x)
    assert second_verifier.is_above(upper + Fraction(1, 2**1990), "epsilon", x)
    assert not second_verifier.is_above(Fraction(2**62), "epsilon", Fraction(10**400))
    assert second_verifier.is_above(math.inf, "epsilon", Fraction(10**400))
    assert second_verifier.is_above(math.inf, "epsilon", x)


@given(st.fractions(min_value=-(10**6), max_value=10**6))
def test_the_least_printed_decimal_is_recognised(value: Fraction) -> None:
    from mechdesign.certify._exact import as_decimal, float_up

    found = float_up(value)
    assert second_verifier.is_least(as_decimal(found), value)
    assert not second_verifier.is_least(as_decimal(math.nextafter(found, math.inf)), value)
    assert not second_verifier.is_least(as_decimal(math.nextafter(found, -math.inf)), value)


def test_the_page_says_how_to_run_it() -> None:
    page = (REFERENCE.parents[1] / "docs" / "howto" / "verify.md").read_text(encoding="utf-8")
    assert re.search(r"python .*second_verifier\.py city", page)
