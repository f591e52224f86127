"""The secrets that an answer reveals for certain: found by brute force, stated by certificates, compared by both."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from bundles import ONE, line, made, put, telling

from mechdesign.certify import _bundle as bundle
from mechdesign.certify import second_verifier
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._privacy import revealed
from mechdesign.certify._verify import verify


def by_definition(rows: list[list[int]]) -> tuple[int, ...]:
    n, m = len(rows), len(rows[0])
    return tuple(
        s
        for s in range(n)
        if any(rows[s][o] > 0 and all(rows[t][o] == 0 for t in range(n) if t != s) for o in range(m))
    )


def channel(rng: np.random.Generator, n: int, m: int) -> np.ndarray:
    """Return rows over 2^62 with many zeros, and ones that are as small as can be."""
    numerators = np.where(rng.random((n, m)) < 0.7, 0, 1).astype(np.int64)
    numerators[np.arange(n), rng.integers(m, size=n)] = 0
    most = rng.integers(m, size=n)
    numerators[np.arange(n), most] = 0
    numerators[np.arange(n), most] = ONE - numerators.sum(axis=1)
    return numerators


def test_it_is_the_definition() -> None:
    rng = np.random.default_rng(341)
    sizes = set()
    for _ in range(300):
        numerators = channel(rng, int(rng.integers(1, 6)), int(rng.integers(1, 7)))
        found = revealed(numerators)
        assert found == by_definition(numerators.tolist())
        assert list(found) == second_verifier.revealed(numerators.tolist())
        sizes.add(len(found))
    assert sizes >= {0, 1, 2, 3}


def test_one_unit_of_another_secret_hides_it() -> None:
    identity = np.eye(2, dtype=np.int64) * ONE
    assert revealed(identity) == (0, 1)
    assert revealed(identity + np.array([[-1, 1], [0, 0]])) == (0,)
    assert revealed(np.full((3, 2), ONE // 2)) == ()
    assert revealed(np.array([[ONE, 0]])) == (0,)


def test_certificates_say_it_and_both_verifiers_prove_it(tmp_path: Path) -> None:
    assert certify(telling()).revealed == (0, 1)
    assert certify(line(4, 0.6)).revealed == ()
    put(tmp_path, made("telling"))
    assert verify(tmp_path).revealed == (0, 1)
    assert second_verifier.prove(tmp_path)[-1].endswith("; revealed for certain: secrets [0, 1]")
    assert "revealed" not in second_verifier.prove(put(tmp_path, made("expected cost")))[-1]


def test_a_single_secret_is_revealed(tmp_path: Path) -> None:
    only = Evidence(np.array([[ONE // 2, ONE // 2]]), 62, np.array([1.0]), np.zeros((1, 2)), "expected", ())
    assert certify(only).revealed == (0,)
    bundle.write(tmp_path, bundle.encode(only, certify(only)))
    assert verify(tmp_path).revealed == (0,)
    assert second_verifier.prove(tmp_path)[-1].endswith("secrets [0]")


def test_it_is_shown_in_words() -> None:
    found = certify(telling())
    assert "reveals: 2 secrets for certain (0, 1))" in repr(found)
    assert "reveals" not in repr(certify(line(4, 0.6)))
    many = Evidence(np.eye(7, dtype=np.int64) * ONE, 62, np.full(7, 1 / 7), 1.0 - np.eye(7), "expected", ())
    assert "reveals: 7 secrets for certain (0, 1, 2, 3, 4, …)" in repr(certify(many))


def test_the_field_is_read_back() -> None:
    for evidence in (telling(), line(3, 0.6)):
        found = certify(evidence)
        assert found.to_json()["revealed"] == list(found.revealed or ())
        assert Certificate.from_json(json.loads(json.dumps(found.to_json()))) == found
