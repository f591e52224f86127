"""Traces and tables of places in a wrong form."""

import pytest

import mechdesign as md
from mechdesign.errors import InputError, InterchangedWarning

CITY = md.Domain.geographic_grid(2, 2, 40.7, 40.8, -74.0, -73.9)


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("user,lat,lon\n6,40.75,-73.95\n6,40.76,-73.94\n")
    return path


def test_columns_that_are_interchanged_warn(table):
    with pytest.warns(InterchangedWarning, match="visits.csv: all points are south of 60 degrees south"):
        md.data.read_checkins(table, latitude="lon", longitude="lat")
    assert len(md.data.read_checkins(table, latitude="lat", longitude="lon")) == 1


def test_one_trace_and_other_things_are_refused(table):
    traces = md.data.read_checkins(table, latitude="lat", longitude="lon")
    with pytest.raises(InputError, match=r"traces: is not a list; found 'Trajectory'.*\[trace\]"):
        md.data.to_grid(traces[0], CITY)
    with pytest.raises(InputError, match=r"traces\[0\]: has another type; found 'tuple'"):
        md.data.to_grid([(40.75, -73.95)], CITY)
    visits = md.data.to_grid(traces, CITY)
    assert visits.counts("6").sum() == 2
    with pytest.raises(InputError, match=r"user: has no visits; found 6; .*as a string"):
        visits.counts(6)


def test_a_key_of_places_needs_the_places(table):
    with pytest.raises(InputError, match="places: are missing"):
        md.data.read_checkins(table, place="user")


def test_budgets_in_another_order_say_how_steps_are_counted(tmp_path):
    path = tmp_path / "budgets.csv"
    path.write_text("step,epsilon\n1,0.1\n2,0.2\n")
    with pytest.raises(InputError, match=r"line 2: is out of order.*(?i:write one line for each step from 0)"):
        md.leakage.read_budgets(path)
