"""Small policies of every kind, each with the rule of its graph in plain words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from database_oracle import edges_by_rule

from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy


@dataclass(frozen=True)
class Example:
    name: str
    domain: Domain
    build: Callable[..., Policy]
    rule: Callable[[tuple, tuple], bool]

    def edges(self, unbounded: bool = False) -> set[frozenset[int]]:
        values = [self.domain.value(index) for index in range(self.domain.size)]
        found = edges_by_rule(values, self.rule)
        return found | {frozenset((x, len(values))) for x in range(len(values))} if unbounded else found

    def pairs(self, unbounded: bool = False) -> np.ndarray:
        """Return the edges as an array, sorted."""
        return np.array(sorted(sorted(edge) for edge in self.edges(unbounded))).reshape(-1, 2)

    def policy(self, **keywords: object) -> Policy:
        return self.build(self.domain, **keywords)


def _differ(x: tuple, y: tuple) -> int:
    return sum(a != b for a, b in zip(x, y, strict=True))


def _far(x: tuple, y: tuple) -> float:
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def _by_attribute(name: str, domain: Domain, theta: dict[str, float | str]) -> Example:
    """Return the attribute policy with thresholds; its rule compares the values of the only attribute that differs."""

    def near(x: tuple, y: tuple) -> bool:
        if _differ(x, y) != 1:
            return False
        axis = next(i for i, (a, b) in enumerate(zip(x, y, strict=True)) if a != b)
        given = theta.get(domain.names[axis])
        values = list(domain.attributes[axis].values)
        if given == "next":
            return abs(values.index(x[axis]) - values.index(y[axis])) == 1
        return given is None or abs(x[axis] - y[axis]) <= given if given != 0 else False

    return Example(name, domain, lambda domain, **more: Policy.attribute(domain, theta=theta, **more), near)


LINE = Domain({"x": range(6)})
UNEVEN = Domain({"x": [0, 1, 2.5, 3, 7, 7.5]})
GRID = Domain({"a": range(3), "b": [0, 2, 3]})
CUBE = Domain({"a": range(2), "b": [1, 4], "c": [0, 1, 5]})
MIXED = Domain({"age": range(4), "sex": ["f", "m"]})
BLOCKS = ["u", "v", "u", "w", "w", "u", "v", "w", "w"]
CHORDS = [(0, 3), (3, 1), (5, 4), (2, 5)]

EXAMPLES = [
    Example("full line", LINE, Policy.full, lambda x, y: True),
    Example("full mixed", MIXED, Policy.full, lambda x, y: True),
    Example("attribute", GRID, Policy.attribute, lambda x, y: _differ(x, y) == 1),
    Example("attribute cube", CUBE, Policy.attribute, lambda x, y: _differ(x, y) == 1),
    Example(
        "partition",
        GRID,
        lambda domain, **keywords: Policy.partition(domain, BLOCKS, **keywords),
        lambda x, y: BLOCKS[GRID.indices([x])[0]] == BLOCKS[GRID.indices([y])[0]],
    ),
    *[
        _by_attribute(f"attribute {theta}", domain, theta)
        for domain, theta in [
            (LINE, {"x": "next"}),
            (LINE, {"x": 2}),
            (UNEVEN, {"x": "next"}),
            (UNEVEN, {"x": 1.5}),
            (GRID, {"b": "next"}),
            (GRID, {"a": 1, "b": 2}),
            (CUBE, {"b": "next", "c": 4}),
            (MIXED, {"age": 2}),
            (MIXED, {"age": 2, "sex": 0}),
        ]
    ],
    *[
        Example(
            f"threshold {theta}",
            domain,
            lambda domain, theta=theta, **keywords: Policy.threshold(domain, theta, **keywords),
            lambda x, y, theta=theta: _far(x, y) <= theta,
        )
        for domain, theta in [(LINE, 2), (LINE, 6), (UNEVEN, 1.5), (UNEVEN, 4.5), (GRID, 1), (GRID, 2), (CUBE, 4)]
    ],
    Example(
        "graph",
        LINE,
        lambda domain, **keywords: Policy.graph(domain, CHORDS, **keywords),
        lambda x, y: (x[0], y[0]) in CHORDS or (y[0], x[0]) in CHORDS,
    ),
]


# Boxes whose axes differ in width and in steps, under thresholds that are met along some axes and not along others.
WIDE = Domain({"a": range(11), "b": range(2)})
THIN = Domain({"a": [0, 0.5, 1, 5], "b": [0, 1, 2, 3, 4, 6.5]})
SLAB = Domain({"a": range(2), "b": [0, 3, 9], "c": range(4)})
FIXED = Domain({"a": range(6), "sex": ["f", "m"], "b": [0, 2, 3]})


def _box(name: str, domain: Domain, theta: float) -> Example:
    return Example(
        f"{name}, threshold {theta}",
        domain,
        lambda domain, **keywords: Policy.threshold(domain, theta, **keywords),
        lambda x, y: _far(x, y) <= theta,
    )


BOXES = [
    *[_box("wide", WIDE, theta) for theta in (1, 5, 10, 11)],
    *[_box("thin", THIN, theta) for theta in (1, 5.5, 6.5, 9)],
    *[_box("slab", SLAB, theta) for theta in (3, 9, 11)],
    _by_attribute("fixed, thresholds on two attributes", FIXED, {"a": 3, "sex": 0, "b": 2}),
    _by_attribute("fixed, a threshold on one attribute", FIXED, {"b": 2}),
    _by_attribute("wide, a threshold on one attribute", WIDE, {"a": 3}),
    _by_attribute("thin, thresholds", THIN, {"a": 1, "b": 2.5}),
    _by_attribute("slab, a threshold and neighbours", SLAB, {"b": "next", "c": 2}),
]
