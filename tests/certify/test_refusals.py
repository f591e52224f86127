"""What makes no claim, no evidence and no bundle: one table for each door."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from bundles import NO_FLOOR, NO_PAIRS, line
from refusals import Mistake, assert_refused

from mechdesign.base._arrays import as_nonnegative, as_whole_numbers
from mechdesign.certify._bundle import encode
from mechdesign.certify._certificate import certify
from mechdesign.certify._claims import ExponentBound, Floor, PairBound, RatioBound
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._evidence import Evidence, FloorMultipliers, Multipliers, PairMultipliers
from mechdesign.certify._stated import Stated
from mechdesign.errors import InputError

E = Fraction(3, 5)
SQUARE = np.zeros((2, 2))


def mistakes(*table: tuple[str, Callable[[], object]], says: str = "") -> list[Mistake]:
    """Return rows of the place that is named and what makes the mistake."""
    return [Mistake(f"{row}: {path}", make, path, says, InputError) for row, (path, make) in enumerate(table)]


def ratio(factor: Any = 1, tops: Any = (1,), bottoms: Any = (1,), targets: Any = (1,)) -> RatioBound:
    return RatioBound("ratio", factor, [0], list(targets), list(tops), list(bottoms))


def test_claims() -> None:
    assert_refused(
        mistakes(
            ("epsilon", lambda: ExponentBound("metric", Fraction(0), [0], [1], [1.0])),
            ("pairs", lambda: ExponentBound("metric", E, [0, 1], [1], [1.0])),
            ("sources[0]", lambda: ExponentBound("metric", E, [-1], [1], [1.0])),
            ("sources", lambda: ExponentBound("metric", E, [0.5], [1], [1.0])),
            ("weights[0]", lambda: ExponentBound("metric", E, [0], [1], [-1.0])),
            ("weights[0]", lambda: ExponentBound("metric", E, [0], [1], [math.nan])),
            ("weights[0]", lambda: ExponentBound("metric", E, [0], [1], [math.inf])),
            ("sources", lambda: ExponentBound("metric", E, [[0]], [[1]], [[1.0]])),
            ("distance", lambda: PairBound.metric(E, [[0, 1]])),
            ("distance", lambda: PairBound.metric(E, [0.0])),
            ("distance", lambda: PairBound.metric(E, np.zeros((2, 1)))),
            ("distance[0,1]", lambda: PairBound.metric(E, [[0, math.nan], [1, 0]])),
            ("distance[0,1]", lambda: PairBound.metric(E, [[0, -1], [1, 0]])),
            ("distance", lambda: PairBound.metric(E, [["a"]])),
            ("edges[0,1]", lambda: PairBound.graph(E, 2, [[0, 2]])),
            ("edges[0,0]", lambda: PairBound.graph(E, 2, [[-1, 0]])),
            ("edges", lambda: PairBound.graph(E, 2, [[0, 1, 1]])),
            ("edges", lambda: PairBound.graph(E, 2, [0, 1])),
            ("edges[0,0]", lambda: PairBound.graph(E, 2, np.array([[2**63, 0]], dtype=np.uint64))),
            ("minimum", lambda: Floor(Fraction(-1), [[1.0]])),
            ("error", lambda: Floor(Fraction(1), np.zeros((0, 2)))),
            ("error", lambda: Floor(Fraction(1), [1.0, 2.0])),
            ("error[0,0]", lambda: Floor(Fraction(1), [[math.inf]])),
            ("prior", lambda: Floor(Fraction(0), np.eye(2), prior=[0.5, 0.6])),
            ("prior", lambda: Floor(Fraction(0), np.eye(2), prior=[0.5, 0.25])),
            ("prior", lambda: Floor(Fraction(0), np.eye(2), prior=[1.0])),
            ("pairs[0]", lambda: ratio(1, [1], [2])),
            ("pairs[0]", lambda: ratio(2, [1], [3])),
            *(
                ("factor", lambda factor=factor: ratio(factor))
                for factor in (0, -1, "much", 2**63, Fraction(2**63 + 1, 2**63))
            ),
            ("numerators[0]", lambda: ratio(1, [0])),
            ("pairs", lambda: ratio(1, [1, 1])),
        )
    )


def test_statements() -> None:
    assert_refused(
        mistakes(
            ("kind", lambda: Stated("euclid", {"epsilon": E}, {"distance": SQUARE})),
            ("numbers", lambda: Stated("metric", {"epsilon": E, "radius": E}, {"distance": SQUARE})),
            ("epsilon", lambda: Stated.metric(Fraction(0), SQUARE)),
            ("radius", lambda: Stated.threshold(E, SQUARE, Fraction(-1))),
            ("minimum", lambda: Stated.distortion(Fraction(-1), SQUARE)),
            ("distance", lambda: Stated.metric(E, SQUARE).claim(3)),
            ("error", lambda: Stated.distortion(E, SQUARE).claim(3)),
            ("error", lambda: Stated.distortion(E, np.ones((3, 2))).claim(4)),
            ("error", lambda: Stated.floor("x", E, np.eye(2), [0.5, 0.5]).claim(3)),
            ("name", lambda: Stated.pairs("metric", E, [[0, 1]], [1.0])),
            ("name", lambda: Stated.pairs("", E, [[0, 1]], [1.0])),
            ("name", lambda: Stated.pairs("A b", E, [[0, 1]], [1.0])),
            ("name", lambda: Stated("metric", {"epsilon": E}, {"distance": np.eye(2)}, "x")),
            ("arrays", lambda: Stated("floor", {"minimum": E}, {"prior": np.ones(1)}, "x")),
            ("part", lambda: Stated.floor("x", E, np.eye(2), part=-1)),
            ("pairs[0,1]", lambda: Stated.pairs("x", E, [[0, 5]], [1.0]).claim(3)),
            # What holds for no number of secrets is refused at once.
            ("pairs[0]", lambda: Stated.ratios("near", Fraction(1), [[0, 1]], [1], [2])),
            ("columns", lambda: Stated.dithered("own", E, 2, (3, 2), (E, E)).claim(5)),
            *(
                (name, lambda name=name: Stated("dithered", {**DITHERED, name: Fraction(5, 2)}, {}, "own"))
                for name in ("norm", "columns", "rows")
            ),
        )
    )


def dithered(**changes: Any) -> Dithered:
    given = {"epsilon": 1, "norm": 2, "columns": 2, "rows": 2, "step_x": 1, "step_y": 1}
    return Dithered("x", **{**given, **changes})


DITHERED = {"epsilon": E, "norm": Fraction(2), "columns": Fraction(2), "rows": Fraction(2), "step_x": E, "step_y": E}


def test_claims_between_points() -> None:
    assert (dithered().nominal, dithered().norm, dithered().columns, dithered().rows) == (1, 2, 2, 2)
    wrong = {
        "epsilon": (0, -1, "x"),
        **dict.fromkeys(("step_x", "step_y"), (0, -1, "x", "0.99e-100", "1.01e100", "1e-400")),
        "norm": (3, -1, "1/2"),
        **dict.fromkeys(("columns", "rows"), (1, 0, -2, "5/2")),
    }
    table = [(name, value) for name, values in wrong.items() for value in values]
    assert_refused(
        mistakes(*((name, lambda name=name, value=value: dithered(**{name: value})) for name, value in table))
    )


def evidence(**changes: Any) -> Evidence:
    fields: dict[str, Any] = {
        "numerators": [[1, 3, 0], [2, 2, 0]],
        "exponent": 2,
        "prior": [0.5, 0.5],
        "cost": [[0, 1, 1], [1, 0, 1]],
        "objective": "expected",
        "requirements": (Stated.graph(E, [[0, 1]]), Stated.distortion(Fraction(0), np.ones((4, 2)))),
        "multipliers": None,
    }
    return Evidence(**{**fields, **changes})


def test_evidence() -> None:
    evidence(multipliers=Multipliers((PairMultipliers([1], [0], [2], [1.0]), FloorMultipliers([3], [2], [1.0]))))
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("numerators[1]", {"numerators": [[1, 3, 0], [2, 2, 1]]}),
        ("numerators[1]", {"numerators": [[1, 3, 0], [2, 1, 0]]}),
        ("numerators[0]", {"numerators": [[0, 0, 0], [0, 0, 0]]}),
        ("numerators[0,0]", {"numerators": [[-1, 5, 0], [2, 2, 0]]}),
        ("numerators[0,1]", {"numerators": [[5, -1, 0], [2, 2, 0]]}),
        ("numerators", {"numerators": [[5, 0, 0], [2, 2, 0]]}),
        ("numerators", {"numerators": [[0.5, 0.5, 0], [0.5, 0.5, 0]]}),
        ("numerators", {"numerators": np.zeros((0, 2), dtype=np.int64)}),
        # The sum of this row is 4 modulo 2**64.
        ("numerators", {"numerators": [[1, 3] + [2**62] * 4, [2, 2] + [0] * 4]}),
        *(("exponent", {"exponent": value}) for value in (0, 63, -1, True, 2.0, np.int64(2))),
        ("numerators", {"exponent": 62, "numerators": [[2**62, 1, 0], [2**61, 2**61, 0]]}),
        ("prior", {"prior": [0.5, 0.4]}),
        ("prior[1]", {"prior": [1.5, -0.5]}),
        ("prior", {"prior": [1.0]}),
        ("prior[0]", {"prior": [math.nan, 1]}),
        ("cost", {"cost": [[0, 1, 1]]}),
        ("cost[1,1]", {"cost": [[0, 1, 1], [1, math.nan, 1]]}),
        ("cost[1]", {"cost": [[0, 1, 1], [math.inf] * 3]}),
        ("cost[1,1]", {"cost": [[0, 1, 1], [1, -1, 1]]}),
        ("objective", {"objective": "best"}),
        ("requirements[0].distance", {"requirements": (Stated.metric(E, np.ones((3, 3))),)}),
        ("requirements[0].edges[0,1]", {"requirements": (Stated.graph(E, [[0, 2]]),)}),
        *(
            (f"multipliers{path}", {"multipliers": Multipliers(entries, *weights)})
            for path, entries, *weights in (
                (".requirements", (NO_PAIRS,)),
                (".requirements[0]", (NO_FLOOR, NO_FLOOR)),
                (".requirements[1]", (NO_PAIRS, NO_PAIRS)),
                (".weights", (NO_PAIRS, NO_FLOOR), [1.0]),
                (".requirements[0].observables[0]", (PairMultipliers([0], [1], [3], [1.0]), NO_FLOOR)),
                (".requirements[0].sources[0]", (PairMultipliers([2], [1], [0], [1.0]), NO_FLOOR)),
                (".requirements[0].targets[0]", (PairMultipliers([0], [2], [0], [1.0]), NO_FLOOR)),
                (".requirements[1].estimates[0]", (NO_PAIRS, FloorMultipliers([4], [0], [1.0]))),
                (".requirements[1].observables[0]", (NO_PAIRS, FloorMultipliers([0], [3], [1.0]))),
            )
        ),
    ]
    assert_refused(mistakes(*((path, lambda changes=changes: evidence(**changes)) for path, changes in wrong)))


def test_multipliers() -> None:
    assert_refused(
        mistakes(
            ("values[0]", lambda: PairMultipliers([0], [1], [0], [-1e-9])),
            ("values[0]", lambda: PairMultipliers([0], [1], [0], [math.nan])),
            ("multipliers", lambda: PairMultipliers([0], [1], [0], [])),
            ("multipliers", lambda: FloorMultipliers([0], [0, 1], [1.0])),
            ("weights", lambda: Multipliers((), [0.0, 0.0])),
            ("weights", lambda: Multipliers((), [[1.0]])),
            ("weights[0]", lambda: Multipliers((), [-1.0, 2.0])),
        )
    )


def test_each_array_of_a_value() -> None:
    whole, values = np.zeros(2, dtype=np.int64), np.ones(2)
    names = ("sources", "targets", "observables", "values", "numerators", "denominators")
    fields = dict(zip(names, (whole, whole + 1, whole, values, whole + 2, whole + 1), strict=True))
    makers: list[tuple[Callable[..., object], tuple[str, ...]]] = [
        (PairMultipliers, ("sources", "targets", "observables", "values")),
        (FloorMultipliers, ("sources", "observables", "values")),
        (lambda *arrays: ExponentBound("x", Fraction(1), *arrays), ("sources", "targets", "values")),
        (lambda *arrays: RatioBound("x", Fraction(1), *arrays), ("sources", "targets", "numerators", "denominators")),
    ]
    rows = []
    for make, used in makers:
        make(*(fields[name] for name in used))
        for name in used:
            array = fields[name]
            wrong = [array[:1], array[None], array - 9, array.astype(str), array.astype(complex)]
            wrong += [array + 0.5, array.astype(bool)] if array.dtype.kind == "i" else [array * math.nan]
            wrong += [array * math.inf] if array.dtype.kind == "f" else []
            wrong += [array * 0] if name in ("numerators", "denominators") else []
            for each in wrong:
                given = [each if other == name else fields[other] for other in used]
                rows.append(("", lambda make=make, given=given: make(*given)))
    assert len(rows) > 90
    assert_refused(mistakes(*rows))


def test_arrays() -> None:
    odd = [np.zeros(2, dtype=kind) for kind in (complex, str, "datetime64[D]", "timedelta64[D]", "S3")]
    rows: list[tuple[str, Callable[[], object]]] = [
        ("x", lambda check=check, array=array: check(array, "x", 1))
        for array in [*odd, np.array([None, {}])]
        for check in (as_nonnegative, as_whole_numbers)
    ]
    rows += [("x", lambda: as_whole_numbers(np.array([True]), "x", 1)), ("x", lambda: as_whole_numbers([1.0], "x", 1))]
    for check in (as_nonnegative, as_whole_numbers):
        assert check(np.ones((2, 2), dtype=np.int64), "x", 2).shape == (2, 2)
        rows += [
            ("x", lambda check=check, axes=axes: check(np.ones((2,) * axes, dtype=np.int64), "x", 2))
            for axes in (0, 1, 3)
        ]
    assert_refused(mistakes(*rows))


def test_what_files_cannot_hold() -> None:
    made = line(3, 0.6)
    certificate = certify(made)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("arrays", {"arrays": {"numerators": np.zeros(2)}}),
        ("arrays", {"arrays": {"requirement_9_error": np.zeros(2)}}),
        ("arrays", {"arrays": {"../x": np.zeros(2)}}),
        ("arrays", {"arrays": {"labels": np.array([{}], dtype=object)}}),
        ("arrays", {"arrays": {"when": np.array(["2020-01-01"], dtype="datetime64[D]")}}),
        *(("files", {"files": {name: b""}}) for name in ("channel.npz", "../x", ".hidden", "certificate.json")),
        ("metadata", {"metadata": {"x": object()}}),
        ("metadata", {"metadata": {"x": float("nan")}}),
    ]
    assert_refused(mistakes(*((path, lambda extra=extra: encode(made, certificate, **extra)) for path, extra in wrong)))


def test_the_bound_that_is_missed_and_the_place_are_said() -> None:
    rows = [
        ("epsilon", "is not positive; found '0'; must be above 0", lambda: Stated.metric(Fraction(0), SQUARE)),
        ("minimum", "is negative; found '-1'; must be at least 0", lambda: Stated.distortion(Fraction(-1), SQUARE)),
        ("pairs[0]", "has a factor below 1; found '1/2'", lambda: ratio(1, [1], [2])),
        (
            "norm",
            "is not a whole number; found '5/2'",
            lambda: Stated("dithered", {**DITHERED, "norm": Fraction(5, 2)}, {}, "x"),
        ),
    ]
    assert_refused([Mistake(says, make, path, says, InputError) for path, says, make in rows])
