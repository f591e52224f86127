"""Dotted paths of keys: their steps, known keys, insertion of values, and the names of data files."""

from __future__ import annotations

import tomllib
from decimal import Decimal

import pytest
from rows import each_row

from mechdesign.base._errors import keys_of
from mechdesign.errors import SpecificationError
from mechdesign.specification._grammar import check_key, files, schema, with_value


@each_row(
    "key",
    [
        "title", "privacy", "privacy.0", "privacy.0.epsilon", "privacy.11.epsilon", "privacy.0.edges.0.1",
        "privacy.0.categories.3", "privacy.0.categories.column", "prior.checkins.only", "prior.counts.3",
        "prior.simulated.centres.0.weight", "domain.grid.columns", "observables.grid.south", "cost.power",
        "policy.delta", "policy.support.0", "release.seed", "release.transition.path", "release.initial.uniform",
        "solver.tolerance", "solver.options.symmetry", "solver.options.a.b",
    ],
)  # fmt: skip
def test_keys_of_the_grammar_are_known(key):
    check_key(key, "here")


@each_row(
    ("key", "said"),
    [
        ("", "is not a key"),
        ("nothing", "one of cost, domain"),
        ("sweep", "is not a key"),
        ("version", "is not a key"),
        ("privacy.0.epsilom", "mean epsilon"),
        ("privacy.epsilon", "as in privacy.0"),
        ("privacy.x.epsilon", "as in privacy.0"),
        ("privacy.-1.epsilon", "as in privacy.0"),
        ("privacy.²", "as in privacy.0"),
        ("cost.power.x", "cost.power is a value"),
        ("cost..power", "is not a key"),
        ("cost.", "is not a key"),
        ("prior.checkins.nobody", "one of every, gap, latitude"),
        ("prior.counts.first", "as in prior.counts.0"),
        ("solver.name.x", "solver.name is a value"),
    ],
)
def test_other_keys_are_refused(key, said):
    with pytest.raises(SpecificationError, match=said) as raised:
        check_key(key, "here")
    assert raised.value.path == "here"


def test_every_key_of_the_schema_is_known():
    grammar = schema()
    for key in grammar["properties"].keys() - {"version", "sweep"}:
        check_key(key, "here")
    for name, top in (
        ("DomainTable", "domain"),
        ("PriorTable", "prior"),
        ("CostTable", "cost"),
        ("SolverTable", "solver"),
    ):
        for key in grammar["$defs"][name]["properties"]:
            check_key(f"{top}.{key}", "here")
    for required in grammar["properties"]["privacy"]["items"]["anyOf"]:
        for key in grammar["$defs"][required["$ref"].rpartition("/")[2]]["properties"]:
            check_key(f"privacy.0.{key}", "here")


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
