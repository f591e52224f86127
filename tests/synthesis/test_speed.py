"""Estimated times are the work multiplied by the machine's slowness, which is measured in less than a second."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from mechdesign.synthesis import _sizes as speed
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import Size, Speed, compute_slowness, estimate, find_largest, measure_speed
from solvers.estimates import PROGRAMS

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_measured_speed_follows_the_clock(monkeypatch):
    monkeypatch.setattr(speed, "_MEASUREMENT_S", 0.01)
    found = [measure_speed(threads) for threads in (1, 2)]
    assert all(0 < value < 10 for each in found for value in (each.factor, each.sweep, each.sparse))


def test_the_time_grows_with_the_slowness_and_nothing_else_changes():
    settings, size = SolveSettings("block"), Size(100, 100)
    once, thrice = estimate(size, settings), estimate(size, settings, 3.0)
    assert thrice.seconds == pytest.approx(3 * once.seconds)
    assert replace(thrice, seconds=once.seconds, allowed=once.allowed) == once
    assert find_largest(size, settings, slowness=30.0) < find_largest(size, settings)
    slow = Speed(*(2 * value for value in (speed._REFERENCE.factor, speed._REFERENCE.sweep, speed._REFERENCE.sparse)))
    assert compute_slowness(slow) == 2.0


def test_the_worst_cost_takes_longer_and_symmetry_less():
    settings = SolveSettings("block")
    plain = estimate(Size(300, 300), settings).seconds
    assert estimate(Size(300, 300, worst=True), settings).seconds > 2 * plain
    assert estimate(Size(300, 300, floors=1), settings).seconds > plain
    assert estimate(Size(300, 300, symmetries=8), settings).seconds < plain / 4


def test_stored_times_are_mostly_within_a_factor_of_two():
    """The stored rows come from `benchmarks/solvers/estimates.py`, and do not depend on this machine."""
    from mechdesign.specification._specification import parse

    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) == 20
    lines = (BENCHMARKS / "results" / "estimates.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["name"]: row for row in map(json.loads, lines)}
    outside = []
    for program in PROGRAMS:
        given, row = parse(program.text), rows.get(program.name)
        assert given.size is not None
        if row is not None:
            slow = math.sqrt(compute_slowness(Speed(**row["before"])) * compute_slowness(Speed(**row["after"])))
            ratio = estimate(given.size, given.settings, slow).seconds / row["seconds"]
            outside += [] if 0.5 <= ratio <= 2 else [(program.name, ratio)]
    assert len(rows) >= 15
    assert len(outside) <= len(rows) // 10
