"""Trajectories, and their visits to the cells of a grid."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import FrozenInstanceError
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows import each_row

import mechdesign as md
from mechdesign.data.trajectories import Trajectory, Visits, as_states, to_grid
from mechdesign.errors import InputError
from mechdesign.model._domain import Domain


class Series(list):
    """A series of pandas: values with an index."""

    def __init__(self, values, index):
        super().__init__(values)
        self.index = index


BEIJING = {"south": 39.7, "north": 40.2, "west": 116.0, "east": 116.8}


def test_a_trace_cannot_be_changed():
    latitude = np.array([1.0, 2.0])
    trace = Trajectory("ann", latitude, [3.0, 4.0], np.array([5, 6], dtype="datetime64[s]"))
    latitude[0] = 9.0
    assert trace.latitude.tolist() == [1.0, 2.0]
    assert len(trace) == 2
    for held in (trace.latitude, trace.longitude, trace.time):
        with pytest.raises(ValueError, match="read-only"):
            held[0] = held[1]
    with pytest.raises(FrozenInstanceError):
        trace.user = "bob"


@each_row(
    ("build", "path", "words"),
    [
        (lambda: Trajectory("", [0], [0]), "user", "not a name"),
        (lambda: Trajectory("a", [], []), "latitude", "empty"),
        (lambda: Trajectory("a", [0, 90.001], [0, 0]), "latitude[1]", "90.001"),
        (lambda: Trajectory("a", [0, 0], [0, -180.001]), "longitude[1]", "-180.001"),
        (lambda: Trajectory("a", [0, math.nan], [0, 0]), "latitude[1]", "nan"),
        (lambda: Trajectory("a", [0], [0, 0]), "longitude", "another length"),
        (lambda: Trajectory("a", [0], [0], np.array([1, 2], dtype="datetime64[s]")), "time", "(1,)"),
        (lambda: Trajectory("a", [0], [0], np.array(["NaT"], dtype="datetime64[s]")), "time[0]", "date and time"),
        (lambda: Trajectory("a", [0], [0], np.array([2**62], dtype="datetime64[D]")), "time[0]", "1 to 9999"),
        (lambda: Trajectory("a", [0], [0], ["yesterday"]), "time", "no times"),
        (lambda: Trajectory("a", [0, 0], [0, 0], ["2026-01-02", "2026-01-01"]), "time[1]", "not before"),
        (lambda: Trajectory("a", Series([0, 1], "pq"), Series([0, 1], "qp")), "longitude", "another index"),
        (lambda: as_states({"0": 1}, Domain.from_labels(["0"])), "trace", "not a list"),
        (lambda: as_states({"0"}, Domain.from_labels(["0"])), "trace", "not a list"),
        (lambda: Domain.from_labels({"a", "b"}), "labels", "not a list"),
    ],
)
def test_wrong_traces_are_refused(build, path, words):
    with pytest.raises(InputError) as raised:
        build()
    assert raised.value.path == path
    assert words in str(raised.value)


UNIT = Domain.geographic_grid(columns=4, rows=2, south=0, north=2, west=0, east=4)


def test_cell_centres_are_in_their_own_cells():
    for domain in (UNIT, Domain.geographic_grid(20, 15, **BEIJING)):
        visits = to_grid([Trajectory("u", domain.coordinates[:, 0], domain.coordinates[:, 1])], domain)
        assert visits.cells[0].tolist() == list(range(domain.size))


@each_row(
    ("latitude", "longitude", "cell"),
    [
        (0, 0, 0),
        (0, 1, 1),
        (math.nextafter(1, 0), math.nextafter(1, 0), 0),
        (1, 1, 5),
        (2, 4, 7),
        (2, 0, 4),
        (0, 4, 3),
        (0, math.nextafter(4, 5), None),
        (math.nextafter(2, 3), 0, None),
        (-5e-324, 0, None),
        (0, -5e-324, None),
    ],
)
def test_borders(latitude, longitude, cell):
    # This point is always inside the box.
    visits = to_grid([Trajectory("u", [0.5, latitude], [0.5, longitude])], UNIT)
    assert visits.cells[0].tolist() == ([0] if cell is None else [0, cell])
    assert visits.outside == (cell is None)


def test_traces_are_split_where_they_leave_the_box():
    ann = Trajectory("ann", [0.5, 0.5, 9, 1.5, 9, 9, 1.5, 1.5], [0.5, 1.5, 0, 3.5, 0, 0, 0.5, 0.5])
    away = Trajectory("away", [9.0], [9.0])
    bob = Trajectory("bob", [9.0, 0.5], [0.0, 2.5])
    visits = to_grid(iter([ann, away, bob]), UNIT)
    assert [cells.tolist() for cells in visits.cells] == [[0, 1], [7], [4, 4], [2]]
    assert visits.users == ("ann", "ann", "ann", "bob")
    assert (visits.inside, visits.outside) == (6, 5)
    assert visits.counts().tolist() == [1, 1, 1, 0, 2, 0, 0, 1]
    assert visits.counts().dtype == np.int64
    assert visits.counts("bob").tolist() == [0, 0, 1, 0, 0, 0, 0, 0]
    assert [cells.tolist() for cells in visits.of("ann")] == [[0, 1], [7], [4, 4]]
    with pytest.raises(ValueError, match="read-only"):
        visits.cells[0][0] = 1
    with pytest.raises(InputError, match=r"found 'away'; must be one of the 2 users with visits$"):
        visits.of("away")
    with pytest.raises(InputError, match="has no visits"):
        visits.counts("carl")


point = st.tuples(st.integers(-1, 5).map(lambda x: x / 2), st.integers(-1, 9).map(lambda x: x / 2))


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from("ab"), st.lists(point, min_size=1, max_size=12)), max_size=4))
def test_to_grid_against_a_plain_loop(raw):
    steps, counts, outside = Counter(), Counter(), 0
    for user, points in raw:
        cells = []
        for latitude, longitude in points:
            inside = 0 <= latitude <= 2 and 0 <= longitude <= 4
            cells.append(min(int(latitude), 1) * 4 + min(int(longitude), 3) if inside else None)
        outside += cells.count(None)
        counts.update((user, cell) for cell in cells if cell is not None)
        steps.update((user, a, b) for a, b in pairwise(cells) if a is not None and b is not None)
    traces = [Trajectory(user, [p[0] for p in points], [p[1] for p in points]) for user, points in raw]
    if not counts:
        with pytest.raises(InputError, match="inside the box"):
            to_grid(traces, UNIT)
        return
    visits = to_grid(traces, UNIT)
    assert (visits.inside, visits.outside) == (counts.total(), outside)
    found = Counter(
        (user, int(a), int(b))
        for user, cells in zip(visits.users, visits.cells, strict=True)
        for a, b in pairwise(cells)
    )
    assert found == steps
    for user in set(visits.users):
        assert visits.counts(user).tolist() == [counts[user, cell] for cell in range(8)]


@each_row(
    ("call", "path", "words"),
    [
        (lambda: to_grid([], Domain.grid(2, 2, 1, 1)), "domain", "geographic_grid"),
        (lambda: to_grid([], UNIT), "traces", "none of the 0 points"),
        (lambda: to_grid([Trajectory("u", [3.5], [1.0])], UNIT), "traces", "latitude and longitude look interchanged"),
        (
            lambda: to_grid([Trajectory("u", [40.0], [-74.0])], UNIT),
            "traces",
            "none of the 1 points is inside the box; must be within latitude 0 to 2, longitude 0 to 4. Check the box",
        ),
        (lambda: Visits((np.array([0, 8]),), ("u",), 2, 0, UNIT), "cells[0][1]", "between 0 and 7"),
        (lambda: Visits((np.array([0]),), (), 1, 0, UNIT), "users", "another length"),
    ],
)
def test_wrong_grids_are_refused(call, path, words):
    with pytest.raises(InputError) as raised:
        call()
    assert raised.value.path == path
    assert words in str(raised.value)


CITY = md.Domain.geographic_grid(2, 2, 40.7, 40.8, -74.0, -73.9)


def test_one_trace_and_other_things_are_refused():
    trace = md.data.Trajectory("6", [40.75, 40.76], [-73.95, -73.94])
    with pytest.raises(InputError, match=r"traces: is not a list; found 'Trajectory'.*\[trace\]"):
        md.data.to_grid(trace, CITY)
    with pytest.raises(InputError, match=r"traces\[0\]: has another type; found 'tuple'"):
        md.data.to_grid([(40.75, -73.95)], CITY)
    visits = md.data.to_grid([trace], CITY)
    assert visits.counts("6").sum() == 2
    with pytest.raises(InputError, match=r"user: has no visits; found 6; .*as a string"):
        visits.counts(6)
