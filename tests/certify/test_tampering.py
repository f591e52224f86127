"""Tampered bundles: one table of changes, and all who verify refuse each of them."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bundles import EVIDENCE, Files, claims, line, made, moved, put, repair, with_array, with_arrays
from tampering import GROUPS, READERS, at, content, first, javascript, judged, longer, second, shift

from attacks import two_verifiers
from mechdesign.certify import _bundle as bundle
from mechdesign.certify import second_verifier
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL
from mechdesign.certify._certificate import certify
from mechdesign.certify._verify import examine, verify
from mechdesign.errors import CertificateError

IN_PYTHON = [name for name in READERS if name != "JavaScript"]


@pytest.mark.parametrize("reader", ["first verifier", "second verifier"])
@pytest.mark.parametrize("group", GROUPS)
def test_each_change_is_refused(tmp_path: Path, group: str, reader: str) -> None:
    found = list(judged(GROUPS[group], reader, tmp_path))
    assert found
    assert [change.name for change, reason in found if not reason] == []
    if reader == "first verifier":
        assert {c.name: reason for c, reason in found if not re.search(c.says, reason, re.DOTALL)} == {}
    if reader == "second verifier":
        assert {c.name: reason for c, reason in found if c.broken and "is kept" not in reason} == {}


@pytest.mark.parametrize("part", range(8))
def test_the_page_refuses_each_third_change(tmp_path: Path, part: int) -> None:
    """It runs the second verifier on the files that are chosen."""
    changes = [change for group in GROUPS.values() for change in group]
    found = list(judged(changes[3 * part :: 24], "page", tmp_path))
    assert len(found) > 10
    assert [change.name for change, reason in found if not reason] == []


def test_every_bundle_is_accepted_with_repaired_digests(tmp_path: Path) -> None:
    for base in EVIDENCE:
        folder = tmp_path / base
        folder.mkdir()
        put(folder, repair(made(base)))
        assert {name: READERS[name](folder) for name in IN_PYTHON} == dict.fromkeys(IN_PYTHON, ""), base


@pytest.mark.parametrize("part", [0, 1])
def test_javascript_refuses_bounds_that_do_not_hold(tmp_path: Path, part: int) -> None:
    pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")
    changes = [change for group in GROUPS.values() for change in group if change.broken]
    found = {change.name: reason for change, reason in judged(changes[part::2], "JavaScript", tmp_path)}
    assert len(found) > 7
    assert {name: reason for name, reason in found.items() if not re.search("exceeds its bound|changes", reason)} == {}


def test_javascript_accepts_the_bundles_themselves(tmp_path: Path) -> None:
    pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")
    for base in EVIDENCE:
        assert javascript(put(tmp_path, made(base))) == "", base


def test_one_unit_moved_is_refused(tmp_path: Path) -> None:
    """Either a bound breaks or the recorded costs, 30 digits long, no longer come out."""
    # Different costs everywhere, so that no move leaves the cost as it was.
    evidence = line(3, 0.6, cost=np.sqrt(np.arange(1.0, 10.0)).reshape(3, 3))
    files = bundle.encode(evidence, certify(evidence))
    for row in range(3):
        for to, source in ((0, 1), (1, 2), (2, 0), (2, 1)):
            put(tmp_path, repair(moved(files, row, to, source)))
            assert first(tmp_path), (row, to, source)
            assert second(tmp_path), (row, to, source)


def test_the_pair_at_fault_is_named(tmp_path: Path) -> None:
    """One secret says the truth a little more often than the bounds allow, or two secrets are nearer."""
    nearer = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    nearer[1, 2] -= 0.01
    files = made("expected cost")
    for name, change in (
        ("a little more", moved(files, 1, 1, 2, 2**30)),
        ("more", moved(files, 1, 1, 0, 2**55)),
        ("nearer", with_arrays(files, CHANNEL, requirement_0_distance=nearer)),
    ):
        for repaired in (False, True):
            put(tmp_path, repair(change) if repaired else change)
            with pytest.raises(CertificateError, match=r"requirements\[0\] \(metric privacy, epsilon 0.6\)") as caught:
                verify(tmp_path)
            assert caught.value.pair is not None, name
            assert 1 in caught.value.pair, name
            assert repaired or "does not match its digest" in caught.value.reason


# What is as true, and of the same form, as before.
FINE = {"another key of the certificate", "another key of a verdict", "more metadata", "not compressed"}
# What depends on the requirement, or on the array.
EITHER = {
    "a name", "a number that is another", "a part of 1", "an array that is not listed", "another type of an array",
    "zeros with a sign",
}  # fmt: skip


@pytest.mark.parametrize("part", range(6))
def test_bundles_of_another_form_are_judged_alike(tmp_path: Path, part: int) -> None:
    cases = [(form, base) for form in two_verifiers.FORMS for base in ("expected cost", "claims")]
    assert len(cases) > 70
    for case in cases[part::6]:
        form, base = case
        files = dict(made(base))
        document = json.loads(files[CERTIFICATE])
        two_verifiers.FORMS[form](files, document, random.Random(0))
        if "no repair" not in form:
            two_verifiers.repair(files, document)
        put(tmp_path, files)
        (one, keys), (other, others) = two_verifiers.first(tmp_path), two_verifiers.second(tmp_path)
        assert (bool(one), keys) == (bool(other), others), (case, one, other)
        assert bool(one) != (form in FINE) or form in EITHER or two_verifiers.same(files, made(base)), case


def test_what_means_the_same_is_accepted(tmp_path: Path) -> None:
    """Spaces and zeros of decimals mean nothing; nor do the distances of secrets to themselves."""
    steps = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0))) + np.diag([5.0, -0.0, 2.0, 0.0])
    changes: dict[str, Callable[[Files], Files]] = {
        "spaces": content(CERTIFICATE, lambda text: json.dumps(json.loads(text)).encode()),
        **{f"zeros after {name}": longer(name, "00") for name in ("lower_bound", "expected_cost", "realised")},
        "the diagonal": lambda files: with_array(files, CHANNEL, "requirement_0_distance", steps),
        "another maker": at("certificate", "provenance", {"solver": "another"}),
    }
    for name, change in changes.items():
        files = change(dict(made("expected cost")))
        assert files != made("expected cost"), name
        put(tmp_path, files)
        assert (first(tmp_path), second(tmp_path)) == ("", ""), name
    put(tmp_path, changes["another maker"](dict(made("expected cost"))))
    assert verify(tmp_path).provenance == {"solver": "another"}


def test_a_zero_with_a_sign_is_a_zero(tmp_path: Path) -> None:
    distance = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    for place in ((0, 1), (1, 0)):
        near = distance.copy()
        near[place] = -0.0
        put(tmp_path, with_array(made("expected cost"), CHANNEL, "requirement_0_distance", near))
        assert "does not hold" in first(tmp_path)
        assert "is kept" in second(tmp_path)


def test_unknown_keys_are_listed(tmp_path: Path) -> None:
    def add(document: dict) -> None:
        document["certificate"]["audited_by"] = "me"
        document["certificate"]["requirements"][1]["seal"] = {"of": 1}

    put(tmp_path, repair(made("expected cost"), add))
    said = "unknown keys of certificate.json: certificate.audited_by, certificate.requirements[1].seal"
    assert said in examine(tmp_path).unproved
    assert second_verifier.prove(tmp_path)[-2:] == [
        "stated, not proved: certificate.audited_by",
        "stated, not proved: certificate.requirements[1].seal",
    ]


def test_another_bound_than_that_of_the_multipliers_is_refused(tmp_path: Path) -> None:
    """It is the number of the first verifier to the last bit; what is true, but weaker, is refused as well."""
    for base in EVIDENCE:
        lower = json.loads(made(base)[CERTIFICATE])["certificate"]["lower_bound"]
        for new in {math.nextafter(lower, 9), max(0.0, math.nextafter(lower, -1))} - {lower}:
            put(tmp_path, at("certificate", "lower_bound", new)(dict(made(base))))
            assert first(tmp_path), (base, new)
            assert second(tmp_path), (base, new)


def test_larger_multipliers_than_those_of_the_certificate_are_refused(tmp_path: Path) -> None:
    """They prove more than it states."""
    put(tmp_path, bundle.encode(claims(), certify(claims(multipliers=None))))
    assert "claims lower_bound" in first(tmp_path)
    assert "the lower bound equals the bound of the multipliers" in second(tmp_path)


def test_no_stray_multiplier_raises_the_bound(tmp_path: Path) -> None:
    """Whatever pair is added to those of a requirement, a bundle of it is refused or proves no more than before."""
    lower = json.loads(made("expected cost")[CERTIFICATE])["certificate"]["lower_bound"]
    for s, t in ((0, 0), (0, 2), (0, 3), (2, 0), (3, 0), (3, 3)):
        arrays = {"sources": [0, s, 1], "targets": [1, t, 2], "observables": [0, 3, 1], "values": [0.01, 5.0, 0.01]}
        kinds = {name: np.float64 if name == "values" else np.int32 for name in arrays}
        held = {f"requirement_1_{name}": np.array(each, dtype=kinds[name]) for name, each in arrays.items()}
        evidence = with_arrays(made("expected cost"), DUAL, **held)
        for claimed in (lower, lower + 0.1):
            put(tmp_path, repair(evidence, lambda d, claimed=claimed: d["certificate"].update(lower_bound=claimed)))
            assert f"the pair ({s}, {t}), which is not bounded" in first(tmp_path)
            assert second(tmp_path), (s, t)


def test_one_unit_beyond_a_bound_is_refused(tmp_path: Path) -> None:
    """The channel of claims is as near to its ratios as numerators can be, but for five units."""
    for units, broken in ((5, False), (6, True)):
        files = shift(0, 0, 1, units)(dict(made("claims")))
        folder = tmp_path / str(units)
        folder.mkdir()
        put(folder, files)
        assert ("does not hold" in first(folder)) is broken, units
        assert ("ratio privacy, factor 1, is kept" in second(folder)) is broken, units
