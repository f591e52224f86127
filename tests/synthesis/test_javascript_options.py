"""The JavaScript module refuses places given in two forms, unknown options, and random functions that do nothing."""

from __future__ import annotations

from typing import Any

import pytest
from rows import each_row

import mechdesign as md
from mechdesign.synthesis.formats._format import Exported
from mechdesign.synthesis.formats._registry import FORMATS

pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")

from javascript import Module

PLACE = {"lat": 40.1, "lon": 0.1}
BYTES = bytes(range(8))


@pytest.fixture(scope="module")
def module() -> Module:
    domain = md.Domain.geographic_grid(2, 2, 40.0, 41.0, 0.0, 1.0)
    distance = md.distances.euclidean(domain)
    requirement = md.MetricPrivacy("0.01", distance)
    design = md.design(md.Problem(md.Prior.uniform(4), distance, [requirement], secrets=domain, observables=domain))
    exported = Exported(design.problem, design.channel, design.certificate)
    return Module(b"".join(FORMATS["js"].parts(exported)).decode())


ONE_FORM = r"give only one of \{lat, lon\}, \{x, y\} and \{secret\}"
NO_PLACE = "outside applies to places, not to secrets"


@each_row(
    ("place", "options", "said"),
    [
        *[(PLACE | more, {}, ONE_FORM) for more in ({"secret": 0}, {"secret": None}, {"x": 1.0}, {"x": 1.0, "y": 1.0})],
        *[
            (PLACE, {option: 1}, f"the option {option} is not known")
            for option in ("outsid", "reach", "remember", "seed")
        ],
        ({"secret": 1}, {"outside": "nearest"}, NO_PLACE),
    ],
)
def test_wrong_places_and_options_are_refused(
    module: Module, place: dict[str, Any], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RuntimeError, match=said):
        module.draw(place, BYTES, **options)
    if said != NO_PLACE:
        with pytest.raises(RuntimeError, match=said):
            module.call("cell", place, options)


def test_options_are_an_object_and_other_keys_of_a_place_are_ignored(module: Module) -> None:
    for wrong in ("nearest", None):
        with pytest.raises(RuntimeError, match="options must be an object"):
            module.call("cell", PLACE, wrong)
    assert module.call("cell", PLACE | {"accuracy": 20}, {}) == 0


def test_a_random_function_that_fills_nothing_is_refused(module: Module) -> None:
    assert [each["index"] for each in module.draw(PLACE, bytes(8))] == [0]
    assert [each["index"] for each in module.draw(PLACE, b"\xff" * 8)] == [3]
    for function in ("() => {}", "(bytes) => bytes", "Math.random", "async () => 1"):
        with pytest.raises(RuntimeError, match="random did not fill the given bytes"):
            module.call("draws_with", PLACE, function)
    with pytest.raises(RuntimeError, match="random must be a function"):
        module.call("draws_with", PLACE, "5")
