"""One table of tampered bundles, for all who verify: each change stands in a group, with a name.

The verifiers of `READERS` judge every change. Where a person reads why, the reason of the first verifier is given.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import math
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from bundles import ONE, Files, made, moved, put, repair, with_array, with_arrays

from mechdesign.certify import _archive, second_verifier
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import CERTIFICATE, CHANNEL, DUAL, TABLE
from mechdesign.certify._certificate import certify
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError

Make = Callable[[Files], Files]
Document = dict[str, Any]
GONE = object()


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a bundle: its name, the bundle, the function that makes it, and what the first verifier says.

    `broken` tells that a bound between secrets no longer holds, which the exported JavaScript finds as well.
    """

    name: str
    base: str
    make: Make = field(repr=False)
    says: str = ""
    broken: bool = False

    @functools.cached_property
    def files(self) -> Files:
        """The tampered files, which differ from those of the bundle."""
        files = self.make(dict(made(self.base)))
        assert files != made(self.base), f"{self.name} changes nothing"
        return files


# What is changed


def at(*path: Any) -> Make:
    """Set a key of certificate.json, remove it if the value is `GONE`, or apply the value if it is a function."""
    *keys, last, value = path

    def change(document: Document) -> None:
        inner: Any = document
        for key in keys:
            inner = inner[key]
        if value is GONE:
            del inner[last]
        else:
            inner[last] = value(inner[last]) if callable(value) else value

    return lambda files: repair(files, change)


def array(file: str, name: str, values: Any) -> Make:
    return lambda files: with_array(files, file, name, values)


def arrays(file: str, **changes: Any) -> Make:
    return lambda files: repair(with_arrays(files, file, **changes))


def dual(requirement: int, **changes: Any) -> Make:
    """Set the multipliers of a requirement; indices are of the type that files have."""
    held = {
        f"requirement_{requirement}_{name}": np.asarray(values, dtype=np.float64 if name == "values" else np.int32)
        for name, values in changes.items()
    }
    return arrays(DUAL, **held)


def content(name: str, change: Callable[[bytes], bytes | None]) -> Make:
    """Change the bytes of a file, or remove it; no digest is repaired."""

    def make(files: Files) -> Files:
        new = change(files.pop(name))
        return files if new is None else {**files, name: new}

    return make


def flip(name: str, place: Callable[[int], int]) -> Make:
    def change(old: bytes) -> bytes:
        new = bytearray(old)
        new[place(len(old))] ^= 1
        return bytes(new)

    return content(name, change)


def then(one: Make, other: Make) -> Make:
    return lambda files: other(one(files))


def rows(base: str, *table: tuple[Any, ...]) -> list[Change]:
    """Return rows of (name, make), with the reason and whether a bound is broken if they are given."""
    return [Change(name, base, *rest) for name, *rest in table]


def fields(base: str, *table: tuple[tuple[Any, ...], str]) -> list[Change]:
    """Return rows that set a key of certificate.json: its path with the value, and the reason."""
    shown = [f"{' '.join(map(str, path[:-1]))} = {getattr(path[-1], '__name__', path[-1])!r:.40}" for path, _ in table]
    return [Change(f"{place}: {shown[place]}", base, at(*path), says) for place, (path, says) in enumerate(table)]


SAID = "certificate", "requirements"


def states(*path: Any) -> Make:
    """State another number of a requirement, in the certificate as well."""
    *_, index, name, value = path
    return then(at(*path), at(*SAID, index, "radius" if name == "radius" else "nominal", value))


# Numbers and texts of the certificate, all digests repaired

BOTH_WAYS = (-math.inf, math.inf)
NUMBERS = fields(
    "expected cost",
    *(
        (("certificate", name, lambda old, way=way: math.nextafter(old, way)), f"claims {name}")
        for name in ("expected_cost", "worst_cost", "relative_gap", "lower_bound")
        for way in BOTH_WAYS
    ),
    *(
        (("certificate", name, lambda old, last=last: old[:-1] + last), f"claims {name}")
        for name in ("expected_cost_text", "worst_cost_text")
        for last in "059"
    ),
    *((("certificate", name, 0.0), f"claims {name}") for name in ("expected_cost", "worst_cost", "relative_gap")),
    *((("certificate", name, "0"), f"claims {name}") for name in ("expected_cost_text", "worst_cost_text")),
    *((("certificate", "lower_bound", value), "claims lower_bound") for value in (0.0, 0.5, -1.0, "inf")),
    *((("certificate", "lower_bound", lambda old, by=by: old * by), "claims lower_bound") for by in (0.999, 1.001)),
    (("certificate", "lower_bound", "x"), "lower_bound is not a number"),
    (("certificate", "lower_bound", 0), "lower_bound"),
)
VERDICTS = fields(
    "expected cost",
    (("certificate", "holds", False), "claims holds"),
    (("certificate", "holds", 1), "holds"),
    (("certificate", "reason", "x"), "claims reason"),
    (("certificate", "pair", [0, 1]), "claims pair"),
    (("certificate", "forbidden", 1), "claims forbidden"),
    (("certificate", "forbidden", False), "forbidden"),
    (("certificate", "objective", "worst"), "claims objective"),
    (("certificate", "provenance", {"a": []}), "provenance"),
    (("certificate", []), "certificate is not an object"),
    *(((*SAID, 0, "realised", value), "claims requirements") for value in (0.1, 0.59, 0.61, "inf")),
    *(
        ((*SAID, 0, "realised", lambda old, way=way: math.nextafter(old, way)), "claims requirements")
        for way in BOTH_WAYS
    ),
    *(((*SAID, 0, "nominal", value), "claims requirements") for value in ("0.1", "0.5")),
    ((*SAID, 0, "holds", False), "claims requirements"),
    ((*SAID, 0, "kind", "graph"), "claims requirements"),
    *(((*SAID, 2, "radius", value), "claims requirements") for value in ("1", "9")),
    *(((*SAID, 3, "realised", value), "claims requirements") for value in (0.1, 1.0)),
    ((*SAID, lambda old: old[:-1]), "claims requirements"),
)
# fmt: off
SECRETS = [
    [0], [1], [], [0, 1, 2], [1, 0], [0, 0, 1], [0, 3], [2, 3], [0, -3], [0.0, 1.0], [False, True], ["0", "1"],
    [[0, 1]], [0, 1, None], "[0, 1]", "none", {"0": 1}, None, 0, 2, True, 1.5,
]
# fmt: on
REVEALED = fields("telling", *((("certificate", "revealed", claimed), "revealed") for claimed in (*SECRETS, GONE)))
HIDDEN = fields(
    "expected cost", *((("certificate", "revealed", claimed), "revealed") for claimed in SECRETS if claimed != [])
)

# What is asked for, all digests repaired

REQUIREMENTS = fields(
    "expected cost",
    *((("schema", value), "schema") for value in ("mechdesign-certificate/1", "mechdesign-certificate/3", None)),
    (("objective", "worst"), "claims objective"),
    (("objective", "best"), "objective: is unknown"),
    *((("objective", value), "objective") for value in (1, ["expected"])),
    (("requirements", {}), "requirements is not a list"),
    (("requirements", []), "belongs to no requirement"),
    (("requirements", lambda old: old[::-1]), "missing"),
    (("requirements", 3, GONE), "belongs to no requirement"),
    (("requirements", 0, 7), r"requirements\[0\] has an unknown kind"),
    (("requirements", 0, {"kind": "metric"}), "must have the texts epsilon"),
    *((("requirements", 0, "kind", value), "an unknown kind") for value in ("ratio", ["metric"], None)),
    (("requirements", 0, "kind", "graph"), "missing"),
    (("requirements", 0, "radius", "1"), "and no other fields"),
    *((("requirements", 0, "epsilon", value), "epsilon") for value in ("0", "-1", "nan", "1e99999", "1e999999999")),
    (("requirements", 0, "epsilon", 0.6), "must have the texts epsilon and"),
    (("requirements", 0, "epsilon", "0.5"), r"requirements\[0\] \(metric privacy, epsilon 0.5\) does not hold"),
    (("requirements", 0, "epsilon", "0.7"), "claims requirements"),
    (("requirements", 2, "radius", "2.75"), "claims requirements"),
    (("requirements", 2, "radius", 2.5), "must have the texts epsilon, radius and"),
    (("requirements", 3, "minimum", "1"), r"requirements\[3\] \(distortion privacy, minimum 1\)"),
    (("requirements", 3, "minimum", "5"), "does not hold"),
    (("requirements", 3, "minimum", "0.01"), "claims"),
)
RATIO, DOUBT = ("requirements", 1), ("requirements", 2)
CLAIMS = [
    *fields(
        "claims",
        ((*RATIO, "factor", "1.5"), "the certificate claims"),
        ((*RATIO, "factor", "0.25"), "has a factor below 1"),
        ((*RATIO, "factor", "0"), "factor: is not positive"),
        ((*RATIO, "name", "metric"), "is the name of another kind"),
        ((*RATIO, "name", "other"), "the certificate claims"),
        ((*RATIO, "name", 7), "must have the texts name, factor"),
        ((*RATIO, "part", [1]), "part: is not the number of a claim"),
        ((*RATIO, "kind", "ratio"), "an unknown kind"),
        ((*DOUBT, "minimum", "0.26"), "expected error, under the prior of this"),
        ((*DOUBT, "kind", "distortion"), "and no other fields"),
        ((*SAID, 1, "number", "epsilon"), "the certificate claims"),
        ((*SAID, 1, "number", "size"), "number is not one of"),
        ((*SAID, 1, "realised", 0.9), "the certificate claims"),
        (("requirements", 3, GONE), "belongs to no requirement"),
        (("schema", "mechdesign-certificate/3"), "this version of mechdesign reads only"),
    ),
    *rows(
        "claims",
        # No multiplier stands for this floor: nothing else tells.
        ("a larger floor, stated", states("requirements", 3, "minimum", "0.34"), "does not hold"),
        ("a prior that is not a distribution", array(CHANNEL, "requirement_2_prior", [0.25, 0.85]), "prior"),
        ("a prior that is kept", array(CHANNEL, "requirement_2_prior", [0.26, 0.74]), "the certificate claims"),
        ("another prior", array(CHANNEL, "requirement_2_prior", [0.2, 0.8]), "under the prior of this"),
        ("a pair beyond the secrets", array(CHANNEL, "requirement_1_pairs", [[0, 1], [1, 2]]), "pairs"),
        ("a term of 0", array(CHANNEL, "requirement_1_numerators", [0, 4]), "numerators"),
        ("a larger ratio", array(CHANNEL, "requirement_1_numerators", [3, 4]), "the certificate claims"),
    ),
]
POINTS = [
    *fields(
        "points between anchors",
        (("requirements", 0, "epsilon", "0.3"), r"continuous privacy, epsilon 0\.3\) does not hold: between anchors"),
        (("requirements", 0, "epsilon", "0.7"), "the certificate claims"),
        (("requirements", 0, "norm", "0"), "does not hold"),
        (("requirements", 0, "norm", "1"), "the certificate claims"),
        (("requirements", 0, "norm", "3"), "norm: is not known"),
        (("requirements", 0, "norm", "1/2"), "norm"),
        (("requirements", 0, "columns", "4"), "columns times rows is 8"),
        (("requirements", 0, lambda old: {**old, "columns": "2", "rows": "3"}), "does not hold|the certificate claims"),
        (("requirements", 0, lambda old: {**old, "columns": "1", "rows": "6"}), "columns: is out of range"),
        (("requirements", 0, "step_x", "0.5"), "does not hold"),
        (("requirements", 0, "step_x", "0"), "step_x: is not positive"),
        (("requirements", 0, "step_y", "1e-101"), "step_y"),
        (("requirements", 1, "name", "dithered"), "is the name of another kind"),
    ),
]

# Bounds between secrets that no longer hold, and those that do but are not what is certified, all digests repaired

STEPS = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))


def shift(row: int, to: int, source: int, amount: int = 1) -> Make:
    """Move probability; the table of the channel goes, which would tell as well."""
    return lambda files: repair(
        moved({name: held for name, held in files.items() if name != TABLE}, row, to, source, amount),
        lambda document: document["files"].pop(TABLE),
    )


BROKEN = [
    *(
        Change(name, "expected cost", make, says, broken=True)
        for name, make, says in (
            ("much more truth", shift(1, 1, 2, 2**30), r"requirements\[0\] \(metric privacy, epsilon 0.6\)"),
            ("far more truth", shift(1, 1, 0, 2**55), r"requirements\[0\] \(metric privacy, epsilon 0.6\)"),
            ("a smaller ε", states("requirements", 0, "epsilon", "0.5"), r"metric privacy, epsilon 0.5\)"),
            ("a hardly smaller ε", states("requirements", 0, "epsilon", "0.59"), r"requirements\[0\].*does not hold"),
            ("a smaller ε of a graph", states("requirements", 1, "epsilon", "0.5"), r"graph privacy, epsilon 0.5\)"),
            ("a larger radius", states("requirements", 2, "radius", "3.5"), r"requirements\[2\] \(threshold privacy"),
            ("smaller distances", array(CHANNEL, "requirement_0_distance", STEPS * 0.99), "does not hold"),
            ("half the distances", array(CHANNEL, "requirement_0_distance", STEPS / 2), "does not hold"),
            ("a further edge", array(CHANNEL, "requirement_1_edges", [[0, 3]] * 3), "does not hold"),
            ("all within the radius", array(CHANNEL, "requirement_2_distance", STEPS / 2), "does not hold"),
        )
    ),
    *(
        Change(name, "claims", make, says, broken=True)
        for name, make, says in (
            ("a smaller factor", states("requirements", 1, "factor", "0.9"), "does not hold"),
            ("a smaller weight", array(CHANNEL, "requirement_0_weights", [2.0, 0.9]), "does not hold"),
            ("a smaller numerator", array(CHANNEL, "requirement_1_numerators", [1, 4]), "does not hold"),
            ("a larger denominator", array(CHANNEL, "requirement_1_denominators", [1, 3]), "does not hold"),
            ("nine units more truth", shift(0, 0, 1, 9), "does not hold"),
        )
    ),
    Change("twice the slope", "points between anchors", at("requirements", 0, "step_x", "0.5"), "does not hold", True),
]

# Arrays, all digests repaired

ARRAYS = rows(
    "expected cost",
    ("a unit moved", shift(1, 0, 1), "claims"),
    ("a unit too many", array(CHANNEL, "numerators", [[ONE, 0, 0, 1]] * 4), "numerators"),
    *((f"exponent = {n}", array(CHANNEL, "exponent", n), "exponent|numerators") for n in (0, 61, 63, 10**6, 2**50)),
    *(
        (f"prior = {values}", array(CHANNEL, "prior", values), says)
        for values, says in (
            ([0.4, 0.1, 0.25, 0.25], "claims expected_cost"),
            ([0.5, 0.5, 0.5, -0.5], r"prior\[3\]"),
            ([0.5, 0.5, 0.5, 0.5], "prior: does not sum to 1"),
        )
    ),
    ("costs doubled", array(CHANNEL, "cost", 2 * STEPS), "claims expected_cost"),
    ("costs of NaN", array(CHANNEL, "cost", np.full((4, 4), np.nan)), "cost"),
    ("costs without end", array(CHANNEL, "cost", np.full((4, 4), np.inf)), "cost"),
    ("a cost without end", array(CHANNEL, "cost", np.where(STEPS == 3, np.inf, STEPS)), "an infinite cost forbids"),
    (
        "a cost without end, and counted",
        then(array(CHANNEL, "cost", np.where(STEPS == 3, np.inf, STEPS)), at("certificate", "forbidden", 2)),
        "an infinite cost forbids",
    ),
    ("costs of more answers", array(CHANNEL, "cost", np.ones((4, 5))), "cost: does not match the channel"),
    ("negative distances", array(CHANNEL, "requirement_0_distance", -STEPS), "distance"),
    ("fewer distances", array(CHANNEL, "requirement_0_distance", np.ones((3, 3))), r"requirements\[0\].distance"),
    ("more distances", array(CHANNEL, "requirement_0_distance", np.ones((5, 5))), r"requirements\[0\].distance"),
    ("an edge beyond the secrets", array(CHANNEL, "requirement_1_edges", [[0, 4]]), "edges"),
    ("an edge below them", array(CHANNEL, "requirement_1_edges", [[0, -1]]), "edges"),
    ("small errors", array(CHANNEL, "requirement_3_error", np.full((4, 4), 0.01)), "does not hold"),
    ("half the errors", array(CHANNEL, "requirement_3_error", STEPS / 2), "claims"),
    ("no errors", array(CHANNEL, "requirement_3_error", np.zeros((0, 4))), "error"),
    ("errors of NaN", array(CHANNEL, "requirement_3_error", np.full((4, 4), np.nan)), r"error\[0,0\]"),
    ("other labels", array(CHANNEL, "secrets", ["a", "b", "c", "d"]), r"channel\.csv"),
    ("labels alike", arrays(CHANNEL, secrets=np.array(["a"] * 4)), "4 different labels"),
    ("too few labels", arrays(CHANNEL, secrets=np.array(["a"])), "4 different labels"),
    ("labels in rows", arrays(CHANNEL, observables=np.array([["a", "b"]])), "4 different labels"),
    (
        "half of a character",
        lambda files: with_arrays(files, CHANNEL, note=np.array(["a\ud800"])),
        "contains malformed texts",
    ),
)
SHAPES = rows(
    "expected cost",
    *(
        (f"no {name}", arrays(CHANNEL, **{name: None}), f"array {name} is missing")
        for name in ("numerators", "exponent", "prior", "cost", "requirement_1_edges")
    ),
    ("an array too many", arrays(CHANNEL, requirement_9_error=np.zeros((1, 1))), "requirement_9_error belongs to no"),
    ("numerators as floats", arrays(CHANNEL, numerators=np.eye(4)), "numerators is <f8 with 2 axes, not <i8"),
    ("exponent in a list", arrays(CHANNEL, exponent=np.array([62])), "exponent is <i8 with 1 axes"),
    ("prior of half the bits", arrays(CHANNEL, prior=np.full(4, 0.25, dtype=np.float32)), "prior is <f4"),
    ("an entry shorter than it is said to be", lambda files: _longer_entry(files), "does not match its size"),
    *(
        (f"10^17 rows without columns of {name}", arrays(CHANNEL, **{name: np.zeros((10**17, 0), dtype=kind)}), "")
        for name, kind in (("numerators", np.int64), ("cost", np.float64), ("requirement_0_distance", np.float64))
    ),
)
# Multipliers: of pairs and rows that no requirement has beside valid ones, and others than those that were certified
NEXT = {"sources": [0, 1, 1, 2], "targets": [1, 0, 2, 1], "observables": [0, 1, 2, 3]}
FAR = {"sources": [0, 1, 0], "targets": [1, 0, 3], "observables": [0, 1, 2], "values": [1e-3] * 3}
MULTIPLIERS = [
    *rows(
        "expected cost",
        (
            "none",
            lambda files: repair({k: v for k, v in files.items() if k != DUAL} | {CERTIFICATE: _undual(files)}),
            "claims lower_bound",
        ),
        ("another value", array(DUAL, "requirement_0_values", [0.01] * 6), "claims lower_bound"),
        ("half of those of a floor", array(DUAL, "requirement_3_values", [0.005] * 4), "claims lower_bound"),
        ("negative", array(DUAL, "requirement_0_values", [-1.0] * 6), r"values\[0\]"),
        ("without end", array(DUAL, "requirement_0_values", [np.inf] * 6), "values"),
        ("too large", array(DUAL, "requirement_0_values", [1e3] * 6), "claims lower_bound"),
        ("too large for a floor", array(DUAL, "requirement_3_values", [50.0, 0.0, 0.0, 0.0]), "claims lower_bound"),
        ("of other answers", array(DUAL, "requirement_0_observables", [1, 1, 1, 2, 2, 2]), "claims lower_bound"),
        ("of other secrets", array(DUAL, "requirement_0_sources", [2, 3, 3, 3, 1, 0]), "claims lower_bound"),
        ("of other estimates", array(DUAL, "requirement_3_estimates", [1, 1, 1, 1]), "claims lower_bound"),
        ("of other answers to estimates", array(DUAL, "requirement_3_observables", [1, 1, 1, 1]), "claims lower_bound"),
        ("of answers beyond", array(DUAL, "requirement_0_observables", [9] * 6), r"observables\[0\]"),
        ("of one answer beyond", array(DUAL, "requirement_0_observables", [0, 1, 1, 2, 2, 4]), r"observables\[5\]"),
        ("of secrets below", array(DUAL, "requirement_0_targets", [-1] * 6), "targets"),
        ("of secrets beyond", array(DUAL, "requirement_0_sources", [9] * 6), r"sources\[0\]"),
        ("of estimates beyond", array(DUAL, "requirement_3_estimates", [4] * 4), "estimates"),
        ("of one estimate beyond", array(DUAL, "requirement_3_estimates", [0, 1, 2, 4]), "estimates"),
        ("fewer values", arrays(DUAL, requirement_0_values=np.zeros(2)), "different lengths"),
        ("no values", arrays(DUAL, requirement_0_values=None), "requirement_0_values is missing"),
        ("of another array", arrays(DUAL, extra=np.zeros(2)), "array extra belongs to no requirement"),
        ("weights of fewer secrets", arrays(DUAL, weights=np.ones(3)), "weights"),
        ("of secrets and themselves", array(DUAL, "requirement_0_targets", [0, 0, 1, 1, 2, 2]), "which is not bounded"),
        (
            "of one and itself beside others",
            array(DUAL, "requirement_0_targets", [1, 0, 2, 1, 3, 3]),
            r"the pair \(3, 3\), which is not bounded",
        ),
        (
            "of a pair that a graph lacks",
            dual(1, sources=[0], targets=[3], observables=[0], values=[1.0]),
            r"the pair \(0, 3\), which is not bounded",
        ),
        ("of such a pair beside others", dual(1, **FAR), r"the pair \(0, 3\), which is not bounded"),
        ("of a pair beyond the radius beside others", dual(2, **FAR), r"the pair \(0, 3\), which is not bounded"),
        ("of value 0 beside others", dual(1, **{**FAR, "values": [1e-3, 1e-3, 0.0]}), "which is not bounded"),
    ),
    *rows(
        "claims",
        ("of the way back of a pair", array(DUAL, "requirement_0_targets", [0]), "which is not bounded"),
        (
            "of the way back beside a pair",
            dual(0, sources=[0, 1], targets=[1, 0], observables=[0, 0], values=[1e-3, 1e-3]),
            "which is not bounded",
        ),
        (
            "of a ratio to itself beside others",
            dual(1, sources=[0, 1, 1], targets=[1, 0, 1], observables=[0, 1, 1], values=[1 / 6, 1 / 6, 1.0]),
            "which is not bounded",
        ),
        ("too large for ratios", array(DUAL, "requirement_1_values", [1.0, 1.0]), "claims lower_bound"),
        ("larger than certified", dual(3, estimates=[0, 1], observables=[0, 1], values=[0.01, 0.01]), "lower_bound"),
    ),
    *rows(
        "worst cost",
        ("equal weights", array(DUAL, "weights", [1.0, 1.0, 1.0]), "claims lower_bound"),
        ("weights of 0", array(DUAL, "weights", [0.0, 0.0, 0.0]), "weights"),
        ("no weights", arrays(DUAL, weights=None), "claims lower_bound"),
        ("negative weights", array(DUAL, "weights", [1.0, 1.5, -2.0]), "weights"),
    ),
]


def _undual(files: Files) -> bytes:
    document = json.loads(files[CERTIFICATE])
    del document["files"][DUAL], document["arrays"][DUAL]
    return json.dumps(document).encode()


# Each array, with its digests as they were

UNREPAIRED = rows(
    "expected cost",
    *(
        (
            f"{name} of {file}",
            lambda files, file=file, name=name: with_arrays(files, file, **{name: _other(files, file, name)}),
            f"array {name} of {file} does not match its digest",
        )
        for file, names in (
            (CHANNEL, "numerators exponent prior cost"),
            (CHANNEL, "requirement_0_distance requirement_1_edges requirement_2_distance requirement_3_error"),
            (DUAL, "requirement_0_sources requirement_0_targets requirement_0_observables requirement_0_values"),
            (DUAL, "requirement_3_estimates requirement_3_observables requirement_3_values"),
        )
        for name in names.split()
    ),
)


def _other(files: Files, file: str, name: str) -> np.ndarray[Any, Any]:
    changed = _archive.unpack(files[file], file)[name].copy()
    if name == "requirement_1_edges":
        changed[0] = 0, 3
    elif changed.dtype.kind == "f":
        changed *= 0.5
    else:
        changed.flat[0] += 1 if changed.flat[0] == 0 else -1
    return changed


# Files: their bytes, their presence, their digests

JSON_OF_NO_CERTIFICATE = [
    (b"", "not valid JSON"), (b"[]", "not an object"), (b"null", "not an object"), (b"\xff", "not valid JSON"),
    (b"[" * 100_000, "not valid JSON"), (b'{"schema": NaN}', "NaN is not a number"),
    (b'{"schema": 1e999}', "not valid JSON"), (b'{"a": 1, "a": 1}', "a key occurs twice"),
    (b"9" * 5000, "not valid JSON"), (b"{}", "schema"),
    (b'{"schema": "mechdesign-certificate/2"}', "missing or unknown keys: "),
]  # fmt: skip
BYTES = rows(
    "expected cost",
    *(
        (f"{name} is missing", content(name, lambda _: None), f"bundle: {name} is missing")
        for name in (CHANNEL, DUAL, TABLE, "report.html", CERTIFICATE)
    ),
    *(
        (f"{name}: {what}", content(name, change), says)
        for name in (CHANNEL, DUAL, TABLE, "report.html")
        for what, change, says in (
            ("empty", lambda _: b"", ""),
            ("without its end", lambda old: old[:-1], ""),
            ("a byte more", lambda old: old + b"x", f"{name} does not match its digest"),
        )
    ),
    *((f"a bit of {name}", flip(name, lambda size: size // 2), "") for name in (CHANNEL, DUAL, TABLE)),
    ("the first bit of multipliers", flip(DUAL, lambda _: 0), ""),
    *(
        (f"certificate: {text[:30]!r}", content(CERTIFICATE, lambda _, text=text: text), says)
        for text, says in JSON_OF_NO_CERTIFICATE
    ),
    ("a certificate without its end", content(CERTIFICATE, lambda old: old[:-3]), "not valid JSON"),
    *(
        (
            f"{old!r} in the certificate",
            content(CERTIFICATE, lambda text, old=old, new=new: text.replace(old, new)),
            says,
        )
        for old, new, says in (
            (b'"metric"', b'"metrid"', "unknown kind"),
            (b'"0.6"', b'"0.7"', "does not match its own digest"),
            (b'"holds": true', b'"holds": 1', "holds"),
        )
    ),
    ("a number is halved", content(CERTIFICATE, lambda text: _halved(text)), "does not match its own digest"),
)
LISTS = fields(
    "expected cost",
    (("files", {}), r"does not list channel.npz|other files"),
    *((("files", name, "0"), "not a valid file name") for name in ("../../etc/passwd", CERTIFICATE, ".x", "a/b")),
    (("files", CHANNEL, 5), "does not match its digest"),
    (("arrays", CHANNEL, 5), "arrays of channel.npz"),
    (("arrays", CHANNEL, {}), "does not match its digest"),
    (("arrays", CHANNEL, "prior", "0" * 64), "array prior of channel.npz does not match its digest"),
    (("arrays", CHANNEL, "labels", "0"), "array labels of channel.npz is missing"),
    (("arrays", "x.npz", {}), "exactly the archives that it lists"),
    (("metadata", None), "metadata is not an object"),
    (("extra", None), "missing or unknown keys: extra"),
    (("audited_by", "me"), "missing or unknown keys: audited_by"),
)


def _halved(text: bytes) -> bytes:
    document = json.loads(text)
    document["certificate"]["requirements"][0]["realised"] /= 2
    return json.dumps(document).encode()


def longer(name: str, digits: str) -> Make:
    """Write more digits of a number, which its float does not print; its value as a float stays."""
    return content(
        CERTIFICATE,
        lambda text: re.sub(rf'("{name}": [0-9]+\.[0-9]+)', rf"\g<1>{digits}", text.decode(), count=1).encode(),
    )


def numbered(text: str) -> Make:
    """Put a number into the metadata, which only its digest covers."""
    with_number = at("metadata", "number", 12345.5)
    return then(with_number, content(CERTIFICATE, lambda old: old.replace(b"12345.5", text.encode())))


WITHOUT_END = ("1e-99999999", "0e99999999", "1e999", "1" + "0" * 2000 + ".0", "0." + "1" * 2000)
DECIMALS = rows(
    "expected cost",
    *(
        (f"{digits} after {name}", longer(name, digits), "is not a number that a float prints")
        for name in ("lower_bound", "expected_cost", "realised")
        for digits in ("00000000000000000001", "0000000009")
    ),
    *((f"a number of {len(text)} digits, {text[:12]}", numbered(text), "") for text in WITHOUT_END),
)
TABLES = [
    Change(f"{what}{', not listed' * (not listed)}", "expected cost", make, r"channel\.csv")
    for what, change in (
        ("a probability", lambda text: text.replace(b"0.", b"0.0", 1)),
        ("a heading", lambda text: text.replace(b"secret,", b"observable,", 1)),
        ("a secret", lambda text: text.replace(b"s, 0", b"s, 1", 1)),
        ("an answer", lambda text: text.replace(b"o, 0", b"o, 1", 1)),
        ("a line fewer", lambda text: text[: text.rindex(b"\n", 0, -1) + 1]),
        ("a line more", lambda text: text + text[text.rindex(b"\n", 0, -1) + 1 :]),
        ("nothing", lambda text: b""),
    )
    for listed, make in (
        (True, then(content(TABLE, change), repair)),
        # People sample from channel.csv, also where the certificate no longer lists it.
        (False, then(content(TABLE, change), at("files", TABLE, GONE))),
    )
]


def _longer_entry(files: Files) -> Files:
    """Let the archive say that its first entry is longer than it is."""
    changed = bytearray(files[CHANNEL])
    # A byte of the size of the first entry, in the directory at the end of the archive.
    changed[changed.find(b"PK\x01\x02") + 25] += 1
    document = json.loads(files[CERTIFICATE])
    document["files"][CHANNEL] = bundle._sha256(bytes(changed))
    document["digest"] = bundle.document_digest(document)
    return {**files, CHANNEL: bytes(changed), CERTIFICATE: json.dumps(document).encode()}


def groups(most: int = 16, **named: list[Change]) -> dict[str, list[Change]]:
    """Return the rows by the name of their group, in parts of few rows."""
    return {
        f"{name.replace('_', ' ')} {start // most + 1}": found[start : start + most]
        for name, found in named.items()
        for start in range(0, len(found), most)
    }


GROUPS = groups(
    numbers=NUMBERS,
    verdicts=VERDICTS,
    revealed=REVEALED,
    hidden=HIDDEN,
    requirements=REQUIREMENTS,
    claims=CLAIMS,
    points=POINTS,
    broken=BROKEN,
    arrays=ARRAYS,
    shapes=SHAPES,
    multipliers=MULTIPLIERS,
    unrepaired=UNREPAIRED,
    bytes=BYTES,
    lists=LISTS,
    decimals=DECIMALS,
    tables=TABLES,
)

# Who judges: each returns why it refuses a bundle, or nothing


def first(folder: Path) -> str:
    """Ask the first verifier; any error but those that it promises is raised."""
    try:
        verify(folder)
    except CertificateError as error:
        return error.reason
    return ""


def second(folder: Path) -> str:
    """Ask the second verifier, whose every error is a refusal."""
    try:
        second_verifier.prove(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


@functools.cache
def page() -> types.ModuleType:
    """Return what the page that verifies runs in the browser, beside which the site has the second verifier."""
    source = Path(__file__).parents[2] / "docs" / "_static" / "verify" / "bundle.py"
    spec = importlib.util.spec_from_file_location("verifying_page", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = sys.modules.get("second_verifier")
    sys.modules["second_verifier"] = second_verifier
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["second_verifier"]
        if before is not None:
            sys.modules["second_verifier"] = before
    return module


def in_page(folder: Path) -> str:
    """Ask the page, as if the folder was chosen there; without a certificate it does not decide."""
    found = page().verify({f"city/{path.name}": path.read_bytes() for path in folder.iterdir()})
    assert "claims" not in found or found["verdict"] == "accepted"
    return "" if found["verdict"] == "accepted" else f"{found['verdict']}: {found['lines'][0]}"


def javascript(folder: Path) -> str:
    """Export the channel of a bundle and its bounds as JavaScript, and ask the module that it makes."""
    from javascript import Module

    import mechdesign as md
    from mechdesign.model._requirements._kinds import ClaimedPrivacy
    from mechdesign.synthesis.formats import Exported
    from mechdesign.synthesis.formats._registry import FORMATS

    found = bundle.inspect(folder).evidence
    asked = [ClaimedPrivacy([stated], found.secrets) for stated in found.requirements]
    problem = md.Problem(found.prior, found.cost, asked, found.objective)
    exported = Exported(problem, md.Channel(found.numerators), certify(found))
    verdict = Module(b"".join(FORMATS["js"].parts(exported, {})).decode()).verify()
    return "" if verdict["holds"] else str(verdict["reason"])


READERS: Mapping[str, Callable[[Path], str]] = {
    "first verifier": first,
    "second verifier": second,
    "page": in_page,
    "JavaScript": javascript,
}


def judged(changes: list[Change], reader: str, folder: Path) -> Iterator[tuple[Change, str]]:
    """Yield the changes that a reader judges, with its reason; JavaScript knows bounds between secrets alone."""
    for change in changes:
        if reader == "JavaScript" and not change.broken:
            continue
        for path in folder.iterdir():
            path.unlink()
        yield change, READERS[reader](put(folder, change.files))
