"""`mechdesign examples`, and what the commands do with an embedded example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, run, well

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.specification._document import schema
from mechdesign.specification.examples import EXAMPLES, find


def test_examples_are_listed_and_printed_with_their_comments() -> None:
    shown = well("examples").stdout
    assert EXAMPLES
    for example in EXAMPLES:
        assert f"mechdesign {example.commands[0]} --example {example.name}" in shown
        assert example.takes in shown
        printed = run("examples", example.name).stdout
        assert printed == run("examples", example.file).stdout == example.text
        # How to run it stands in it, but in a matrix, which holds names and numbers only.
        assert example.name == "traffic" or f"mechdesign {example.commands[0]}" in printed
    assert json.loads(well("info", "--schema").stdout) == schema()


@pytest.mark.parametrize("name", [each.name for each in EXAMPLES if "design" in each.commands])
def test_examples_need_no_other_data(name: str) -> None:
    example = find(name)
    given = spec.parse(example.text)
    assert given.problem().title == given.title
    if "policy" in example.commands:
        assert given.policy.graph.number_of_edges() > 0
    if example.trace:
        Path("t.csv").write_text(run("examples", example.trace).stdout)
        assert len(given.steps("t.csv").states) == 12
        assert given.release_settings.table.mechanism == "planar-isotropic"


def test_the_districts_have_no_cell_alone() -> None:
    assert json.loads(well("policy", "--example", "districts", "--json").stdout)["isolated"] == []
    well("design", "--example", "districts", "--no-report")
    assert md.verify("mechanism").relative_gap < 1e-9


@pytest.mark.slow
def test_a_walk_is_released() -> None:
    shown = well("release", "--example", "walk").stdout
    assert "steps 12 states 81" in " ".join(shown.split())
    assert "released/report.html" in shown[shown.index("\nnext") :]
    assert Path("released/release.json").exists()


def test_traffic_leaks() -> None:
    shown = well("leakage", "--example", "traffic").stdout
    assert "mechdesign examples traffic > P.csv" in shown
    Path("P.csv").write_text(find("traffic").text)
    own = well("leakage", "--backward", "P.csv", "--header", "--index", "--epsilon", 0.1, "--steps", 10).stdout
    assert own == shown[: shown.index("\nnext")]
    assert well("leakage", "--example", "traffic", "--steps", 3).stdout.count("0.1 ") < shown.count("0.1 ")


def test_wrong_usage() -> None:
    assert_wrong_usage(
        {
            "examples town": "NAME: is not known; found 'town'; must be one of city",
            "design --example town": "is not an example for `mechdesign design`; found 'town'; must be one of city",
            "design --example traffic": "must be one of city, city-300, districts, walk",
            "policy --example city": "must be one of districts, walk",
            "leakage --example city": "must be one of traffic",
            "design s.toml --example city": "not both",
            "leakage --backward P.csv --example traffic": "instead",
            "policy": "or --example NAME",
            "release": "or --example NAME",
            "release --example city": "must be one of walk",
            "leakage": "or --example NAME",
        }
    )
