"""Design what the slider on the landing page shows: ``python docs/precompute.py`` writes ``docs/results/slider.json``.

Each combination of ε and floor is designed, saved, and verified from its files by both verifiers. Bounds are rounded
against the mechanism: ε, factors, costs and gaps up, floors down. Probabilities are stored in thousandths.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from measure import RESULTS, machine

import mechdesign as md
from mechdesign.base._atomic import write_file
from mechdesign.certify import distortion, expected_cost, float_down, float_up
from mechdesign.certify.second_verifier import prove
from mechdesign.model._words import format_bound, relative

SPECIFICATION = Path(__file__).parent / "_static" / "slider" / "city.toml"
EPSILONS_PER_KM = ("0.2", "0.35", "0.5", "0.7", "0.85", "1", "1.2", "1.4", "1.7", "2", "2.5", "3")
# The last floor is more than the expected error of somebody who sees no answer at all.
FLOORS_KM = ("0", "1", "1.5", "2.2")
DIGITS = 4
Entry = dict[str, Any]


def problem(epsilon: str, floor: str) -> md.Problem:
    """Return the problem of the specification with another ε per km, and another floor in km; "0" is no floor."""
    base = md.read_spec(SPECIFICATION).problem()
    distance = md.distances.euclidean(base.secrets)
    requirements: list[Any] = [md.MetricPrivacy(epsilon, distance)]
    if floor != "0":
        requirements.append(md.DistortionPrivacy(floor, distance))
    places = base.secrets
    return md.Problem(base.prior, base.cost, requirements, secrets=places, title=base.title)


def design(epsilon: str, floor: str) -> md.Design | None:
    """Return the design, or None if no channel keeps both requirements."""
    try:
        return md.design(problem(epsilon, floor), tolerance=md.read_spec(SPECIFICATION).settings.tolerance)
    except md.errors.InfeasibleError:
        return None


def certify_again(made: md.Design) -> None:
    """Save a design and verify its files with both verifiers; both raise an error if a claim does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        md.save(made, folder, report=False)
        md.verify(folder)
        prove(Path(folder))


def up(value: float | Fraction) -> str:
    """Write a number with `DIGITS` significant digits, rounded up.

    >>> up(1.2301), up(Fraction(1, 3)), up(2.0)
    ('1.231', '0.3334', '2')
    """
    return format_bound(float_up(Fraction(value)), up=True, digits=DIGITS)


def down(value: float | Fraction) -> str:
    """Write a number with `DIGITS` significant digits, rounded down.

    >>> down(1.2399), down(Fraction(2, 3)), down(2.0)
    ('1.239', '0.6666', '2')
    """
    return format_bound(float_down(Fraction(value)), up=False, digits=DIGITS)


def odds(epsilon: str) -> str:
    """Return the factor e^ε by which an answer changes the odds between two cells with centres 1 km apart, rounded up.

    >>> odds("1"), odds("0.7")
    ('2.719', '2.014')
    """
    return up(math.exp(float(epsilon)) * (1 + 1e-14))


def entry(made: md.Design, distance: Any) -> Entry:
    """Return what the page shows of a design; `distance` (n, n) is in km."""
    channel, certificate, prior = made.channel, made.certificate, made.problem.prior
    exact = channel.numerators, channel.denominator.bit_length() - 1, prior
    thousandths = np.rint(channel.matrix * 1000).astype(int)
    used = np.flatnonzero(thousandths.any(axis=0))
    return {
        "realised": up(certificate.epsilon[0]),
        "error": up(expected_cost(*exact, distance)),
        "attack": down(distortion(*exact, distance)),
        "cost": up(certificate.cost),
        "gap": relative(certificate.relative_gap),
        "answers": used.tolist(),
        "rows": thousandths[:, used].tolist(),
    }


def table(designs: list[list[Entry | None]]) -> dict[str, Any]:
    """Return a row for each ε: the odds at 1 km, and the expected error with each floor."""
    names = ["no floor" if floor == "0" else f"floor {floor} km" for floor in FLOORS_KM]
    rows = []
    for epsilon, found in zip(EPSILONS_PER_KM, designs, strict=True):
        errors = [f"{each['error']} km" if each else "none exists" for each in found]
        rows.append([f"{epsilon} per km", f"{odds(epsilon)}", *errors])
    return {"columns": ["ε", "odds at 1 km change by at most", *names], "rows": rows}


def main() -> None:
    """Compute all designs and store them."""
    kept: dict[str, Any] = {"command": "python docs/precompute.py", "machine": machine()}
    base = problem(EPSILONS_PER_KM[0], "0")
    distance = md.distances.euclidean(base.secrets)
    designs: list[list[Entry | None]] = []
    values: dict[str, float] = {"designs": 0}
    for epsilon in EPSILONS_PER_KM:
        row: list[Entry | None] = []
        for floor in FLOORS_KM:
            made = design(epsilon, floor)
            if made is not None:
                certify_again(made)
                name = f"ε {epsilon}, floor {floor}"
                values["designs"] += 1
                values |= {f"{name}, cost": made.certificate.cost}
                values |= {f"{name}, gap": made.certificate.relative_gap}
            row.append(None if made is None else entry(made, distance))
            print(epsilon, floor, "infeasible" if made is None else row[-1]["error"], flush=True)
        designs.append(row)
    kept |= {"table": table(designs), "values": values}
    kept["slider"] = {
        "cells": [8, 6],
        "prior": [float(f"{100 * share:.2g}") for share in base.prior],
        "blind": up(min(map(Fraction, (distance @ base.prior).tolist()))),
        "epsilons": EPSILONS_PER_KM,
        "odds": [odds(epsilon) for epsilon in EPSILONS_PER_KM],
        "floors": FLOORS_KM,
        "first": {"epsilon": EPSILONS_PER_KM.index("1"), "floor": 0, "cell": int(np.argmax(base.prior))},
        "designs": designs,
    }
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
    # A line for each design, so that a change is a line.
    for mark in ('{"realised"', '"table"', '"values"', '"slider"'):
        text = text.replace(mark, f"\n{mark}")
    write_file(RESULTS / "slider.json", [f"{text}\n".encode()])


if __name__ == "__main__":
    sys.exit(main())
