"""Small mechanisms to certify and export, and their bundles as files; processes that tests kill import this, too."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import json
import math
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdesign.certify import _archive
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, TABLE, exact_lines
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated

ONE = 2**62
NO_PAIRS, NO_FLOOR = PairMultipliers([], [], [], []), FloorMultipliers([], [], [])
Files = dict[str, bytes]


def line(n: int, epsilon: float, objective: str = "expected", **changes: Any) -> Evidence:
    """Return a truncated geometric mechanism on a line, with every kind of requirement and some multipliers.

    Metric and graph privacy are tight to a few units of 2**-62 between neighbours.
    """
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    alpha = math.exp(-epsilon)
    weights = alpha**steps * np.where((np.arange(n) == 0) | (np.arange(n) == n - 1), 1, 1 - alpha)
    numerators = np.rint(weights / (1 + alpha) * ONE).astype(np.int64)
    # A share of the uniform channel pays for the roundings.
    numerators = numerators - (numerators >> 40) + (ONE >> 40) // n
    for row in range(n):
        numerators[row, row] += ONE - sum(numerators[row].tolist())
    distance = steps.astype(np.float64)
    exact_epsilon = Fraction(str(epsilon))
    sources, targets = np.nonzero(steps == 1)
    values = np.linspace(0.01, 0.02, len(sources)) / n
    fields: dict[str, Any] = {
        "numerators": numerators,
        "exponent": 62,
        "prior": np.full(n, 1 / n),
        "cost": distance,
        "objective": objective,
        "requirements": (
            Stated.metric(exact_epsilon, distance),
            Stated.graph(exact_epsilon, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)),
            Stated.threshold(2 * exact_epsilon, distance, Fraction(5, 2)),
            Stated.distortion(Fraction(1, 10), distance),
        ),
        "multipliers": Multipliers(
            (
                PairMultipliers(sources, targets, sources, values),
                NO_PAIRS,
                NO_PAIRS,
                FloorMultipliers(np.arange(n), np.arange(n), np.full(n, 0.01)),
            ),
            np.linspace(1, 2, n) if objective == "worst" else None,
        ),
    }
    return Evidence(**{**fields, **changes})


def claims(**changes: Any) -> Evidence:
    """Randomised response with claims in the open: exponents, ratios, and floors with a prior of their own."""
    third = ONE // 3
    fields: dict[str, Any] = {
        "numerators": np.array([[ONE - third, third], [third, ONE - third]]) + np.array([[-1, 1], [1, -1]]) * 4,
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
                NO_FLOOR,
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


def telling(count: int = 4) -> Evidence:
    """Secrets 0 and 1 are told for certain, 2 and 3 share their answers."""
    half = ONE // 2
    numerators = np.array([[ONE, 0, 0, 0], [0, ONE - 5, 5, 0], [0, 0, half, half], [0, 0, half - 1, half + 1]])
    stated = (Stated.graph(Fraction(1), [[2, 3]]),)
    return Evidence(numerators[:count], 62, np.full(count, 1 / count), 1.0 - np.eye(count, 4), "expected", stated)


def anchors() -> Evidence:
    """Anchors in three columns and two rows, between which points are protected; the rows state ratios, too."""
    stated = Stated.dithered("continuous", Fraction(2, 5), 2, (3, 2), (Fraction(1), Fraction(3, 2)))
    sides = [[s, s + 1] for s in (0, 1, 3, 4)], [[s, s + 3] for s in range(3)]
    bounds = [
        Stated.ratios("continuous", Fraction(3, 2), side + np.flip(side, 1).tolist(), part=part)
        for part, side in enumerate(sides, 1)
    ]
    units = np.array([0, 3, 5, 1, 4, 7]) * 2**57
    numerators = np.stack([2**61 + units, 2**61 - units], axis=1)
    cost = np.arange(12.0).reshape(6, 2)
    return Evidence(numerators, 62, np.full(6, 1 / 6), cost, "expected", (stated, *bounds))


def whole(evidence: Evidence, **extra: Any) -> Files:
    """Return the files of a bundle with labels, a table and a report."""
    n, m = evidence.numerators.shape
    labels = [[f"s, {index}" for index in range(n)], [f"o, {index}" for index in range(m)]]
    table = "".join(exact_lines(evidence.numerators, evidence.exponent, *labels)).encode()
    arrays = {"secrets": np.array(labels[0]), "observables": np.array(labels[1])}
    files = {TABLE: table, "report.html": b"<p>"}
    return bundle.encode(evidence, certify(evidence), arrays=arrays, files=files, **extra)


EVIDENCE: Mapping[str, Callable[[], Evidence]] = {
    "expected cost": lambda: line(4, 0.6),
    "worst cost": lambda: line(3, 0.6, "worst"),
    "no multipliers": lambda: line(3, 0.6, multipliers=None),
    "claims": claims,
    "claims, worst cost": lambda: claims(objective="worst"),
    "forbidden answers": forbidden,
    "no requirements": lambda: claims(requirements=(), multipliers=None),
    "telling": telling,
    "points between anchors": anchors,
}


@functools.cache
def made(name: str) -> Mapping[str, bytes]:
    """Return the files of one of these bundles, made once."""
    return whole(EVIDENCE[name]())


def put(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files into a folder."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def repair(files: Mapping[str, bytes], change: Callable[[dict[str, Any]], Any] = lambda _: None) -> Files:
    """Change the certificate, and make all digests fit again, as a clever tamperer would."""
    document = json.loads(files[CERTIFICATE])
    for name in document["files"].keys() & files:
        document["files"][name] = bundle._sha256(files[name])
        if name in document["arrays"]:
            held = _archive.unpack(files[name], name)
            document["arrays"][name] = {key: _archive.digest(array) for key, array in held.items()}
    change(document)
    document["digest"] = bundle.document_digest(document)
    return {**files, CERTIFICATE: json.dumps(document).encode()}


def with_arrays(files: Mapping[str, bytes], file: str, **changes: Any) -> Files:
    """Change arrays, or leave out those that are None; digests stay as they were."""
    held: dict[str, Any] = {**_archive.unpack(files[file], file), **changes}
    return {**files, file: _archive.pack({name: array for name, array in held.items() if array is not None})}


def with_array(files: Mapping[str, bytes], file: str, name: str, values: Any) -> Files:
    """Change an array, whose type stays, and repair all digests."""
    kind = _archive.unpack(files[file], file)[name].dtype
    return repair(with_arrays(files, file, **{name: np.asarray(values, dtype=kind)}))


def moved(files: Mapping[str, bytes], row: int, to: int, source: int, amount: int = 1) -> Files:
    """Move some of the probability of a row to another answer; digests stay as they were."""
    numerators = _archive.unpack(files[CHANNEL], CHANNEL)["numerators"].copy()
    numerators[row, [to, source]] += [amount, -amount]
    return with_arrays(files, CHANNEL, numerators=numerators)


@contextlib.contextmanager
def flushing() -> Iterator[None]:
    """Let this thread take denormal numbers for zero, and write none."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not sys.platform.startswith("linux"):
        pytest.skip("set by a register of x86-64")
    try:
        library = ctypes.CDLL("libm.so.6")
    except OSError:
        pytest.skip("needs the GNU C library")
    before, changed = (ctypes.c_uint32 * 8)(), (ctypes.c_uint32 * 8)()
    library.fegetenv(ctypes.byref(before))
    library.fegetenv(ctypes.byref(changed))
    changed[7] |= 0x8040
    library.fesetenv(ctypes.byref(changed))
    try:
        yield
    finally:
        library.fesetenv(ctypes.byref(before))
