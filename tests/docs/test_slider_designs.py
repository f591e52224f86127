"""The stored designs of the slider: rounded against the mechanism, and what `md.design` gives now."""

from __future__ import annotations

import copy
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from long import mostly_long

import mechdesign as md

DOCS = Path(__file__).parents[2] / "docs"
STORED = json.loads((DOCS / "results" / "slider.json").read_text(encoding="utf-8"))
SLIDER = STORED["slider"]
PLACES = [(e, f) for e in range(len(SLIDER["epsilons"])) for f in range(len(SLIDER["floors"]))]


@pytest.fixture(scope="module")
def precompute() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(DOCS), *sys.path])
        import precompute

        yield precompute


def faults(slider: dict[str, Any]) -> set[str]:
    """Return what is wrong with stored designs, as far as their numbers alone can say."""
    found = set()
    for epsilon, odds in zip(slider["epsilons"], slider["odds"], strict=True):
        if not math.exp(float(epsilon)) <= float(odds) <= 1.001 * math.exp(float(epsilon)):
            found.add("odds")
    for e, f in PLACES:
        design, floor = slider["designs"][e][f], float(slider["floors"][f])
        if design is None:
            found |= {"missing"} if floor <= float(slider["blind"]) else set()
            continue
        error, attack, cost = (float(design[key]) for key in ("error", "attack", "cost"))
        sums = [sum(row) for row in design["rows"]]
        wrong = {
            "epsilon": float(design["realised"]) > float(slider["epsilons"][e]),
            "floor": attack < floor,
            "attack": attack > error,
            # The square of the mean is at most the mean of the squares; both are rounded up.
            "cost": (error - 0.001) ** 2 > cost,
            "rows": len(sums) != 48 or not all(950 <= total <= 1050 for total in sums),
            "answers": any(len(row) != len(design["answers"]) for row in design["rows"]),
        }
        found |= {name for name, is_wrong in wrong.items() if is_wrong}
    return found


def test_stored_designs_are_consistent() -> None:
    assert faults(SLIDER) == set()
    assert sum(design is not None for row in SLIDER["designs"] for design in row) == STORED["values"]["designs"] == 36
    parts = (STORED["table"]["rows"], SLIDER["epsilons"], SLIDER["odds"], SLIDER["designs"])
    for row, epsilon, odds, designs in zip(*parts, strict=True):
        errors = [f"{design['error']} km" if design else "none exists" for design in designs]
        assert row == [f"{epsilon} per km", odds, *errors]


def test_wrong_designs_are_found() -> None:
    changes: list[tuple[str, Callable[[Any], object]]] = [
        ("odds", lambda slider: slider["odds"].__setitem__(0, "1.2")),
        ("missing", lambda slider: slider["designs"][3].__setitem__(1, None)),
        ("epsilon", lambda slider: slider["designs"][-1][1].update(realised="3.01")),
        ("floor", lambda slider: slider["designs"][-1][1].update(attack="0.9")),
        ("attack", lambda slider: slider["designs"][-1][1].update(attack="9")),
        ("cost", lambda slider: slider["designs"][-1][1].update(cost="0.9")),
        ("rows", lambda slider: slider["designs"][-1][1].update(rows=[[900]] * 48)),
        ("answers", lambda slider: slider["designs"][-1][1].update(answers=[1])),
    ]
    for fault, change in changes:
        changed = copy.deepcopy(SLIDER)
        change(changed)
        assert fault in faults(changed), fault


@pytest.mark.slow
@pytest.mark.parametrize(("e", "f"), mostly_long([(5, 2), (0, 0), (5, 0), (7, 1), (11, 0), (11, 3)], 2))
def test_a_stored_design_is_what_design_gives_now_within_its_gap(precompute: ModuleType, e: int, f: int) -> None:
    epsilon, floor = SLIDER["epsilons"][e], SLIDER["floors"][f]
    made, stored = precompute.design(epsilon, floor), SLIDER["designs"][e][f]
    assert (made is None) == (stored is None)
    if made is None:
        return
    cost, gap = (STORED["values"][f"ε {epsilon}, floor {floor}, {name}"] for name in ("cost", "gap"))
    assert cost * (1 - gap) <= made.certificate.expected_cost
    assert made.certificate.lower_bound <= cost
    assert float(stored["cost"]) >= cost
    problem, shares = made.problem, np.zeros_like(made.channel.matrix)
    error = (problem.prior[:, None] * md.distances.euclidean(problem.secrets) * made.channel.matrix).sum()
    assert float(stored["error"]) == pytest.approx(error, rel=2e-3)
    # The map is that of the design: its answers in thousandths have about the same cost.
    shares[:, stored["answers"]] = np.array(stored["rows"]) / 1000
    assert (problem.prior[:, None] * problem.cost * shares).sum() == pytest.approx(cost, rel=0.05)


def test_rounding_is_against_the_mechanism(precompute: ModuleType) -> None:
    for value in (0.1, 1.2345678, 2 / 3, 1e-9, 5, 20.0855):
        assert float(precompute.up(value)) >= value >= float(precompute.down(value))
        assert float(precompute.up(value)) <= 1.002 * value
        assert float(precompute.down(value)) >= 0.998 * value
