"""Dotted paths of keys: their steps, known keys, insertion of values, and the names of data files."""

from __future__ import annotations

import tomllib
from decimal import Decimal

import pytest
from rows import each_row

from mechdesign.base._errors import keys_of
from mechdesign.errors import SpecificationError
from mechdesign.specification._document import files, schema, with_value


def test_values_are_put_into_copies():
    data = {"privacy": [{"epsilon": 1}, {"epsilon": 2}], "cost": {"power": 1}}
    changed = with_value(data, "privacy.1.epsilon", 7, "here")
    assert changed == {"privacy": [{"epsilon": 1}, {"epsilon": 7}], "cost": {"power": 1}}
    assert data["privacy"][1]["epsilon"] == 2
    assert with_value(data, "solver.options.gap", 3, "here")["solver"] == {"options": {"gap": 3}}
    assert with_value(data, "cost", {"scale": 2}, "here")["cost"] == {"scale": 2}


@each_row(
    ("key", "said"),
    [
        ("privacy.2.epsilon", "between 0 and 1"),
        ("cost.power.x", "sweep cost.power"),
        ("privacy.0.epsilon.budgets", "leads through privacy.0.epsilon"),
    ],
)
def test_ways_that_lead_nowhere_are_refused(key, said):
    with pytest.raises(SpecificationError, match=f"(?i){said}"):
        with_value({"privacy": [{"epsilon": Decimal(1)}, {}], "cost": {"power": 1}}, key, 3, "here")


def test_files_are_found_wherever_they_are_named():
    data = tomllib.loads("""
        title = "path"
        prior.checkins = { path = "a.csv", only = 6 }
        cost.matrix.path = "b.csv"
        privacy = [{ epsilon = 1, categories = { path = "d.csv" } }]
        release.transition.path = "e.npy"
        solver.options.path = "none"
    """)
    assert sorted(files(data)) == ["a.csv", "b.csv", "d.csv", "e.npy"]


def test_files_have_no_other_names_in_the_grammar():
    grammar = schema()
    named = {
        key
        for table in grammar["$defs"].values()
        for key, described in table["properties"].items()
        if described.get("type") == "string"
        and described["description"].startswith(("the file", "a file", "the folder", "a folder"))
    }
    assert named <= {"path"}


def test_paths_have_a_step_for_each_name_and_index():
    for path, steps in {
        "blood-type[1].values": ("blood-type", 1, "values"),
        "privacy[0].epsilon": ("privacy", 0, "epsilon"),
        "a": ("a",),
        "a-b.c-d": ("a-b", "c-d"),
        "folder/file.csv": ("folder/file.csv",),
    }.items():
        assert keys_of(path) == steps, path
