"""Cells of places, and answers for them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.model._locate import interval

TOKYO = md.Domain.geographic_grid(columns=5, rows=4, south=35.6, north=35.8, west=139.6, east=139.9)
PLANE = md.Domain.grid(columns=4, rows=3, width=4.0, height=3.0)


def problem(secrets: md.Domain, observables: md.Domain | None = None) -> md.Problem:
    observables = observables or secrets
    cost = np.abs(np.arange(secrets.size)[:, None] % 3 - np.arange(observables.size)[None, :] % 3).astype(float)
    requirement = md.MetricPrivacy(1, md.distances.hamming(secrets.size))
    return md.Problem(md.Prior.uniform(secrets.size), cost, [requirement], secrets=secrets, observables=observables)


@given(st.data())
@settings(max_examples=100)
def test_cells_are_those_between_the_borders(data: st.DataObject) -> None:
    columns, rows = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    width, height = data.draw(st.floats(0.1, 100)), data.draw(st.floats(0.1, 100))
    grid = md.Domain.grid(columns, rows, width, height)
    x, y = data.draw(st.floats(0, width)), data.draw(st.floats(0, height))
    row, column = divmod(grid.cell_of(x, y), columns)
    slack = Fraction(1, 10**9)
    assert Fraction(width) * column / columns - slack <= Fraction(x) <= Fraction(width) * (column + 1) / columns + slack
    assert Fraction(height) * row / rows - slack <= Fraction(y) <= Fraction(height) * (row + 1) / rows + slack


@each_row("domain", [TOKYO, PLANE, TOKYO.part([1, 5, 17]), PLANE.part([0, 7])])
def test_every_member_is_its_own_cell(domain: md.Domain) -> None:
    known = domain.places(domain.axes)
    assert known is not None
    assert np.array_equal(domain.cell_of(known[:, 0], known[:, 1]), np.arange(domain.size))


def test_borders_belong_to_the_cell_north_and_east_of_them_and_the_last_to_the_grid() -> None:
    assert [PLANE.cell_of(x, 0.0) for x in (0, math.nextafter(1, 0), 1, 4)] == [0, 0, 1, 3]
    assert PLANE.cell_of(4.0, 3.0) == 11
    assert PLANE.cell_of(x=2.5, y=1.5) == PLANE.cell_of(2.5, 1.5) == 6
    assert interval(np.array([-1.0, 0.0, 1.0, 2.0, 3.0]), np.array([0.0, 1.0, 2.0])).tolist() == [-1, 0, 1, 1, -1]


@each_row("place", [(math.nextafter(35.6, 0), 139.7), (35.7, math.nextafter(139.9, 200))])
def test_just_outside_is_refused_or_taken_to_the_nearest_cell(place: tuple[float, float]) -> None:
    with pytest.raises(InputError, match="lies outside the grid"):
        TOKYO.cell_of(*place)
    inside = np.clip(place, [35.6, 139.6], [35.8, 139.9])
    assert TOKYO.cell_of(*place, outside="nearest") == TOKYO.cell_of(*inside)


def test_the_nearest_cell_is_that_of_the_projection() -> None:
    far = PLANE.cell_of([-5, 1.5, 9, 2.5], [1.5, 7, 9, 1.5], outside="nearest")
    assert np.array_equal(far, [4, 9, 11, 6])


def test_places_that_are_no_grid_take_the_nearest() -> None:
    towns = md.Domain.from_coordinates([52.5, 48.1, 53.6], [13.4, 11.6, 10.0], ["Berlin", "München", "Hamburg"])
    assert towns.cell_of(52.4, 13.0) == 0
    assert towns.cell_of(47.0, 11.0) == 1
    # Hamburg is nearer although fewer degrees lie between here and Berlin: degrees of longitude are short up there.
    assert towns.cell_of(53.4, 11.75) == 2


def test_answers_are_those_of_the_cell_with_labels_and_places() -> None:
    made = md.design(problem(TOKYO))
    cell = TOKYO.cell_of(35.68, 139.75)
    drawn = made.sample_at(35.68, 139.75, size=50, rng=3)
    assert np.array_equal(drawn.index, made.channel.sample(cell, 50, 3))
    assert drawn.label.tolist() == [TOKYO.labels[index] for index in drawn.index]
    assert TOKYO.coordinates is not None
    assert np.array_equal(drawn.place, TOKYO.coordinates[drawn.index])
    assert len(drawn) == 50
    one = made.sample_at(35.68, 139.75, rng=3)
    assert (one.index, one.label) == (int(drawn.index[0]), str(drawn.label[0]))
    assert one.place is not None
    assert one.place.shape == (2,)
    many = made.sample_at([[35.68], [35.7]], [[139.75], [139.61]], rng=3)
    assert many.index.shape == (2, 1)
    assert many.place is not None
    assert many.place.shape == (2, 1, 2)
    with pytest.raises(InputError, match="size: cannot be combined with an array of places"):
        made.sample_at([35.68], [139.75], 2)
    with pytest.raises(InputError, match="lies outside the grid"):
        made.sample_at(0, 0)
    assert made.sample_at(0, 0, outside="nearest", rng=1).index in range(20)


def test_answers_of_other_domains() -> None:
    made = md.design(problem(PLANE, md.Domain.from_labels(["near", "far"])))
    found = made.sample_at(x=1.5, y=2.5)
    assert found.label in ("near", "far")
    assert found.place is None
    cost = np.eye(2)
    nameless = md.design(md.Problem([0.5, 0.5], cost, [md.MetricPrivacy(1, md.distances.hamming(2))]))
    with pytest.raises(InputError, match="secrets: have no places"):
        nameless.sample_at(1, 1)
