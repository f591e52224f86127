"""The stored designs of the slider: rounded against the mechanism, and what `md.design` gives now."""

import copy
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
STORED = json.loads((DOCS / "results" / "slider.json").read_text(encoding="utf-8"))
SLIDER = STORED["slider"]
PLACES = [(e, f) for e in range(len(SLIDER["epsilons"])) for f in range(len(SLIDER["floors"]))]
SAMPLE = [(0, 0), (5, 0), (5, 2), (7, 1), (11, 0), (11, 3)]


@pytest.fixture(scope="module")
def precompute():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(DOCS), *sys.path])
        import precompute

        yield precompute


def faults(slider):
    """Return what is wrong with stored designs, as far as their numbers alone can say."""
    found = []
    for epsilon, odds in zip(slider["epsilons"], slider["odds"], strict=True):
        if not math.exp(float(epsilon)) <= float(odds) <= 1.001 * math.exp(float(epsilon)):
            found.append("odds")
    for e, f in PLACES:
        design, floor = slider["designs"][e][f], float(slider["floors"][f])
        if design is None:
            found += ["missing"] if floor <= float(slider["blind"]) else []
            continue
        error, attack, cost = (float(design[key]) for key in ("error", "attack", "cost"))
        found += ["epsilon"] if float(design["realised"]) > float(slider["epsilons"][e]) else []
        found += ["floor"] if attack < floor else []
        found += ["attack"] if attack > error else []
        # The square of the mean is at most the mean of the squares; both are rounded up.
        found += ["cost"] if (error - 0.001) ** 2 > cost else []
        sums = [sum(row) for row in design["rows"]]
        found += ["rows"] if len(sums) != 48 or not all(950 <= total <= 1050 for total in sums) else []
        found += ["answers"] if any(len(row) != len(design["answers"]) for row in design["rows"]) else []
    return found


def test_stored_designs_are_consistent():
    assert faults(SLIDER) == []
    assert sum(design is not None for row in SLIDER["designs"] for design in row) == STORED["values"]["designs"] == 36


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("realised", "3.01", "epsilon"),
        ("attack", "0.9", "floor"),
        ("attack", "9", "attack"),
        ("cost", "0.9", "cost"),
        ("rows", [[1000]] * 47, "rows"),
        ("rows", [[900]] * 48, "rows"),
        ("answers", [1], "answers"),
    ],
)
def test_a_wrong_design_is_found(key, value, fault):
    changed = copy.deepcopy(SLIDER)
    changed["designs"][-1][1][key] = value
    assert fault in faults(changed)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda slider: slider["odds"].__setitem__(0, "1.2"), "odds"),
        (lambda slider: slider["odds"].__setitem__(0, "1.3"), "odds"),
        (lambda slider: slider["designs"][3].__setitem__(1, None), "missing"),
    ],
)
def test_wrong_odds_and_missing_designs_are_found(change, fault):
    changed = copy.deepcopy(SLIDER)
    change(changed)
    assert fault in faults(changed)


def test_the_table_has_the_numbers_of_the_designs():
    for row, epsilon, odds, designs in zip(
        STORED["table"]["rows"], SLIDER["epsilons"], SLIDER["odds"], SLIDER["designs"], strict=True
    ):
        errors = [f"{design['error']} km" if design else "none exists" for design in designs]
        assert row == [f"{epsilon} per km", odds, *errors]


@pytest.mark.slow
@pytest.mark.parametrize(("e", "f"), SAMPLE)
def test_a_stored_design_is_what_design_gives_now_within_its_gap(precompute, e, f):
    epsilon, floor = SLIDER["epsilons"][e], SLIDER["floors"][f]
    made, stored = precompute.design(epsilon, floor), SLIDER["designs"][e][f]
    assert (made is None) == (stored is None)
    if made is not None:
        cost, gap = (STORED["values"][f"ε {epsilon}, floor {floor}, {name}"] for name in ("cost", "gap"))
        certificate = made.certificate
        assert cost * (1 - gap) <= certificate.expected_cost
        assert certificate.lower_bound <= cost
        assert float(stored["cost"]) >= cost
        assert float(stored["error"]) == pytest.approx(error_of(made), rel=2e-3)
        # The map is that of the design: its answers in thousandths have about the same cost.
        problem, shares = made.problem, np.zeros_like(made.channel.matrix)
        shares[:, stored["answers"]] = np.array(stored["rows"]) / 1000
        assert (problem.prior[:, None] * problem.cost * shares).sum() == pytest.approx(cost, rel=0.05)


def error_of(made):
    from mechdesign import distances

    return float((made.problem.prior[:, None] * distances.euclidean(made.problem.secrets) * made.channel.matrix).sum())


def test_rounding_is_against_the_mechanism(precompute):
    for value in (0.1, 1.2345678, 2 / 3, 1e-9, 5, 20.0855):
        assert float(precompute.up(value)) >= value >= float(precompute.down(value))
        assert float(precompute.up(value)) <= 1.002 * value
        assert float(precompute.down(value)) >= 0.998 * value
