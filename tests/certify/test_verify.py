from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certify_examples import line

import mechdesign.certify
from mechdesign.certify import _archive
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, encode, read
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._stated import Stated
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError

WHOLE = {
    objective: encode(line(4, 0.6, objective), certify(line(4, 0.6, objective))) for objective in ("expected", "worst")
}
FILES = WHOLE["expected"]

Change = Callable[[dict[str, np.ndarray]], None]


def put(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def tamper(files: dict[str, bytes], file: str, change: Change) -> dict[str, bytes]:
    arrays = {name: array.copy() for name, array in _archive.unpack(files[file], file).items()}
    change(arrays)
    return {**files, file: _archive.pack(arrays)}


def repair(files: dict[str, bytes], change: Callable[[dict[str, Any]], None] = lambda _: None) -> dict[str, bytes]:
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


def add(name: str, index: Any, amount: Any) -> Change:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][index] += amount

    return change


def move(row: int, to: int, source: int, amount: int) -> Change:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays["numerators"][row, to] += amount
        arrays["numerators"][row, source] -= amount

    return change


def nudge(name: str, index: Any, towards: float) -> Change:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name][index] = np.nextafter(arrays[name][index], towards)

    return change


def test_a_whole_set_is_accepted(tmp_path: Path) -> None:
    for objective, files in WHOLE.items():
        found = verify(put(tmp_path, files))
        assert found.holds
        assert found.objective == objective
        assert found.lower_bound > 0
        assert 0.599 < found.epsilon[0] <= 0.6
        assert found.epsilon[2] <= 1.2
        assert found.distortion[0] >= 0.1


EVERY_ARRAY = [
    (CHANNEL, "numerators"),
    (CHANNEL, "exponent"),
    (CHANNEL, "prior"),
    (CHANNEL, "cost"),
    (CHANNEL, "requirement_0_distance"),
    (CHANNEL, "requirement_1_edges"),
    (CHANNEL, "requirement_2_distance"),
    (CHANNEL, "requirement_3_error"),
    *((DUAL, f"requirement_0_{name}") for name in ("sources", "targets", "observables", "values")),
    *((DUAL, f"requirement_3_{name}") for name in ("estimates", "observables", "values")),
]


def test_every_array_is_listed() -> None:
    arrays = json.loads(FILES[CERTIFICATE])["arrays"]
    empty = {f"requirement_{i}_{name}" for i in (1, 2) for name in ("sources", "targets", "observables", "values")}
    listed = {(file, name) for file in arrays for name in arrays[file] if name not in empty or file == CHANNEL}
    assert listed == set(EVERY_ARRAY)


@pytest.mark.parametrize(("file", "name"), EVERY_ARRAY)
@pytest.mark.parametrize("repaired", [False, True])
def test_a_change_of_any_array_is_caught(tmp_path: Path, file: str, name: str, repaired: bool) -> None:
    def change(arrays: dict[str, np.ndarray]) -> None:
        array = arrays[name]
        if name == "requirement_1_edges":
            array[0] = 0, 3
        elif name == "requirement_2_distance":
            array[0, 3] = 1
        elif name in {"requirement_0_distance", "requirement_3_error", "requirement_3_values"}:
            array *= 0.5
        elif array.dtype.kind == "f":
            array.flat[1] += 0.5
        else:
            array.flat[0] = array.flat[0] - 1 if array.flat[0] > 0 else 1

    files = tamper(FILES, file, change)
    put(tmp_path, repair(files) if repaired else files)
    with pytest.raises(CertificateError) as caught:
        verify(tmp_path)
    if not repaired:
        assert f"array {name} of {file} does not match its digest" in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        # One secret says the truth a little more often than the bounds allow.
        move(1, 1, 2, 2**30),
        move(1, 1, 0, 2**55),
        add("requirement_0_distance", (1, 2), -0.01),
    ],
)
@pytest.mark.parametrize("repaired", [False, True])
def test_the_broken_requirement_and_pair_are_named(tmp_path: Path, change: Change, repaired: bool) -> None:
    files = tamper(FILES, CHANNEL, change)
    put(tmp_path, repair(files) if repaired else files)
    with pytest.raises(CertificateError, match=r"requirements\[0\] \(metric privacy, epsilon 0.6\)") as caught:
        verify(tmp_path)
    assert caught.value.pair is not None
    assert 1 in caught.value.pair
    if not repaired:
        assert "does not match its digest" in caught.value.reason


def test_a_distance_one_step_off_is_caught(tmp_path: Path) -> None:
    put(tmp_path, repair(tamper(FILES, CHANNEL, nudge("requirement_0_distance", (1, 2), 0))))
    try:
        found = verify(tmp_path)
    except CertificateError:
        return
    # The mechanism has room for it, and nothing that the certificate says has changed.
    assert found.holds


@pytest.mark.parametrize("row", range(4))
def test_one_unit_moved_is_caught(tmp_path: Path, row: int) -> None:
    """Either a bound breaks or the recorded costs, 30 digits long, no longer come out."""
    # Different costs everywhere, so that no move leaves the cost as it was.
    evidence = line(4, 0.6, cost=np.sqrt(np.arange(1.0, 17.0)).reshape(4, 4))
    files = encode(evidence, certify(evidence))
    for to in range(4):
        for source in set(range(4)) - {to}:
            put(tmp_path, repair(tamper(files, CHANNEL, move(row, to, source, 1))))
            with pytest.raises(CertificateError):
                verify(tmp_path)


def test_one_unit_too_many_breaks_the_bound(tmp_path: Path) -> None:
    """Randomised response with the least lie that ln 2 rounded down allows: one unit less is not private."""
    one = 2**62
    lie = one // 3 + 1
    while True:
        numerators = np.array([[one - lie, lie], [lie, one - lie]])
        stated = (Stated.graph(Fraction("0.6931471805599453"), [[0, 1]]),)
        evidence = Evidence(numerators, 62, [0.5, 0.5], 1 - np.eye(2), "expected", stated)
        if certify(evidence).holds:
            break
        lie += 1
    files = encode(evidence, certify(evidence))
    verify(put(tmp_path, files))
    put(tmp_path, repair(tamper(files, CHANNEL, move(0, 0, 1, 1))))
    with pytest.raises(CertificateError, match=r"requirements\[0\] \(graph privacy.*p\(. \| .\) exceeds") as caught:
        verify(tmp_path)
    assert caught.value.pair in {(0, 1), (1, 0)}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d["requirements"][0].update(epsilon="0.5"), r"requirements\[0\] \(metric privacy, epsilon 0.5\)"),
        (lambda d: d["requirements"][0].update(epsilon="0.59"), r"requirements\[0\].*does not hold"),
        (lambda d: d["requirements"][0].update(epsilon="0.7"), "claims requirements"),
        (lambda d: d["requirements"][1].update(epsilon="0.5"), r"requirements\[1\] \(graph privacy, epsilon 0.5\)"),
        (lambda d: d["requirements"][2].update(radius="3.5"), r"requirements\[2\] \(threshold privacy, epsilon 1.2\)"),
        (lambda d: d["requirements"][2].update(radius="2.75"), "claims requirements"),
        (lambda d: d["requirements"][3].update(minimum="5"), r"requirements\[3\] \(distortion privacy, minimum 5\)"),
        (lambda d: d["requirements"][3].update(minimum="0.01"), "claims"),
        (lambda d: d["requirements"].reverse(), "missing"),
        (lambda d: d.update(objective="worst"), "claims objective"),
        (lambda d: d["certificate"].update(objective="worst"), "claims objective"),
        (lambda d: d["certificate"].update(holds=False), "claims holds"),
        (lambda d: d["certificate"].update(reason="x"), "claims reason"),
        (lambda d: d["certificate"].update(forbidden=1), "claims forbidden"),
        (lambda d: d["certificate"].update(pair=[0, 1]), "claims pair"),
        (lambda d: d["certificate"].update(revealed=[0]), "claims revealed"),
        (lambda d: d["certificate"].update(lower_bound=0.5), "claims lower_bound"),
        (lambda d: d["certificate"].update(lower_bound=0.0), "claims lower_bound"),
        (lambda d: d["certificate"].update(relative_gap=0.0), "claims relative_gap"),
        (lambda d: d["certificate"].update(expected_cost=0.0), "claims expected_cost"),
        (lambda d: d["certificate"].update(worst_cost=0.0), "claims worst_cost"),
        (lambda d: d["certificate"].update(expected_cost_text="0"), "claims expected_cost_text"),
        (lambda d: d["certificate"].update(worst_cost_text="0"), "claims worst_cost_text"),
        (lambda d: d["certificate"]["requirements"][0].update(realised=0.1), "claims requirements"),
        (lambda d: d["certificate"]["requirements"][0].update(nominal="0.1"), "claims requirements"),
        (lambda d: d["certificate"]["requirements"][0].update(kind="graph"), "claims requirements"),
        (lambda d: d["certificate"]["requirements"][0].update(holds=False), "claims requirements"),
        (lambda d: d["certificate"]["requirements"][2].update(radius="9"), "claims requirements"),
        (lambda d: d["certificate"]["requirements"].pop(), "claims requirements"),
        (lambda d: (d["files"].pop(DUAL), d["arrays"].pop(DUAL)), "claims lower_bound"),
    ],
)
def test_a_changed_claim_is_caught_though_all_digests_fit(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    put(tmp_path, repair(FILES, change))
    with pytest.raises(CertificateError, match=reason):
        verify(tmp_path)


def test_every_recorded_number_is_tried_above() -> None:
    fields = set(json.loads(FILES[CERTIFICATE])["certificate"])
    assert fields == {
        "holds",
        "objective",
        "expected_cost",
        "expected_cost_text",
        "worst_cost",
        "worst_cost_text",
        "lower_bound",
        "relative_gap",
        "requirements",
        "forbidden",
        "reason",
        "pair",
        "revealed",
        "provenance",
    }


def test_what_is_not_proved_may_differ(tmp_path: Path) -> None:
    """Metadata and provenance are only digested; the certificate returned shows what the files say."""
    put(tmp_path, repair(FILES, lambda d: d["certificate"].update(provenance={"solver": "another"})))
    assert verify(tmp_path).provenance == {"solver": "another"}


def test_the_kernel_imports_nothing_but_numpy_errors_and_checks() -> None:
    folder = Path(mechdesign.certify.__file__).parent
    base = ("arithmetic", "arrays", "atomic", "check", "errors", "machine", "warnings")
    allowed = {"numpy", "mechdesign.certify", "mechdesign.base", *(f"mechdesign.base._{name}" for name in base)}
    for path in folder.glob("*.py"):
        # Only signatures need another package, and only where a key is given.
        optional = {"cryptography"} if path.name == "_keys.py" else set()
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                own = name if name.startswith("mechdesign.base") else ".".join(name.split(".")[:2])
                known = own in allowed or top in allowed | optional or top in sys.stdlib_module_names
                assert known, f"{path.name} imports {name}"


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], [["a", "b"]]])
def test_labels_must_be_as_many_as_the_secrets_and_different(tmp_path: Path, labels: list[Any]) -> None:
    evidence = line(4, 0.6, "expected")
    put(tmp_path, encode(evidence, certify(evidence), arrays={"secrets": np.array(labels)}))
    with pytest.raises(CertificateError, match="4 different labels"):
        verify(tmp_path)


def test_labels_are_counted_by_rows_and_columns(tmp_path: Path) -> None:
    """Three answers for four secrets: labels of either kind fit only their own side."""
    numerators = np.tile([2**61, 2**60, 2**60], (4, 1))
    evidence = line(4, 0.6, "expected", numerators=numerators, cost=np.ones((4, 3)), requirements=(), multipliers=None)
    three, four = np.array(["a", "b", "c"]), np.array(["a", "b", "c", "d"])
    for labels in ({"secrets": four, "observables": three}, {"observables": three}, {"secrets": four}):
        verify(put(tmp_path, encode(evidence, certify(evidence), arrays=labels)))
    for labels, name in (({"secrets": three}, "secrets"), ({"observables": four}, "observables")):
        put(tmp_path, encode(evidence, certify(evidence), arrays=labels))
        with pytest.raises(CertificateError, match=f"array {name} of channel.npz does not contain . different labels"):
            verify(tmp_path)
    # Labels of the answers may not repeat either.
    put(tmp_path, encode(evidence, certify(evidence), arrays={"observables": three[[0, 1, 1]]}))
    with pytest.raises(CertificateError, match="observables"):
        verify(tmp_path)


OLD = Path(__file__).parents[1] / "reference" / "bundle-1"
"""A set with every kind of requirement, written before claims could stand in the open."""


def test_a_set_written_before_still_verifies_and_is_written_again_byte_for_byte() -> None:
    found = verify(OLD)
    assert [checked.kind for checked in found.requirements] == ["metric", "threshold", "graph", "distortion"]
    assert [checked.number for checked in found.requirements] == ["epsilon", "epsilon", "epsilon", "minimum"]
    old = read(OLD)
    csv = {"channel.csv": (OLD / "channel.csv").read_bytes()}
    again = encode(old.evidence, old.certificate, metadata=old.metadata, arrays=old.arrays, files=csv)
    document, before = (
        json.loads(text) for text in (again["certificate.json"], (OLD / "certificate.json").read_text())
    )
    for name in ("schema", "objective", "requirements", "certificate", "metadata", "arrays"):
        assert document[name] == before[name]


ALONE = """
import runpy, sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "mechdesign"}:
            raise ImportError(f"{name} is not installed")
sys.meta_path.insert(0, Blocked())
runpy.run_module("mechdesign.certify", run_name="__main__", alter_sys=True)
"""


def kernel(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the verifier in a process in which only Python, NumPy and this package can be imported."""
    command = [sys.executable, "-c", ALONE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60)


def test_the_kernel_alone_verifies_with_nothing_but_numpy_installed(tmp_path: Path) -> None:
    done = kernel(str(OLD))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{OLD} verifies.\nmetric privacy, epsilon 0.7: holds; least epsilon ")
    assert "threshold privacy, epsilon 1.5, radius 2: holds; least epsilon " in done.stdout
    put(tmp_path, repair(FILES, lambda d: d["requirements"][0].update(epsilon="0.5")))
    done = kernel(str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not verify: requirements[0] (metric privacy, epsilon 0.5) does not hold" in done.stderr
    assert "worst pair of secrets: " in done.stderr
    assert kernel().returncode == 2
