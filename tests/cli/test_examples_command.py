"""`mechdesign examples`, and what the commands do with an embedded example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.specification.examples import EXAMPLES, find


def test_all_examples_are_listed():
    shown = run("examples")
    assert shown.exit_code == 0
    for example in EXAMPLES:
        assert f"mechdesign {example.commands[0]} --example {example.name}" in shown.stdout
        assert example.takes in shown.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_are_printed_with_their_comments(example):
    printed = run("examples", example.name).stdout
    assert printed.startswith("# ")
    assert printed == run("examples", example.file).stdout == example.text
    # How to run it stands in it.
    assert f"mechdesign {example.commands[0]}" in printed


@pytest.mark.parametrize("name", [each.name for each in EXAMPLES if "design" in each.commands])
def test_examples_need_no_other_data(name):
    example = find(name)
    given = spec.parse(example.text)
    assert given.problem().title == given.title
    if "policy" in example.commands:
        assert given.policy.graph.number_of_edges() > 0
    if example.trace:
        Path("t.csv").write_text(run("examples", example.trace).stdout)
        assert len(given.states("t.csv")) == 12
        assert given.release_settings.table.mechanism == "planar-isotropic"


def test_the_districts_have_no_cell_alone():
    shown = run("policy", "--example", "districts", "--no-repair", "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["isolated"] == []
    shown = run("policy", "--example", "districts", "--no-repair").stdout
    assert "mechdesign design --example districts" in shown
    made = run("design", "--example", "districts", "--no-report")
    assert made.exit_code == 0, made.output
    assert md.verify("mechanism").relative_gap < 1e-9


@pytest.mark.slow
def test_a_walk_is_released():
    result = run("release", "--example", "walk")
    assert result.exit_code == 0, result.output
    assert "12 steps of 81 states" in result.stdout
    assert "released/report.html" in result.stdout[result.stdout.index("\nnext") :]
    assert Path("released/release.json").exists()
    Path("t.csv").write_text("state\n0\n")
    own = run("release", "--example", "walk", "-o", "own")
    assert own.exit_code == 0


def test_traffic_leaks():
    result = run("leakage", "--example", "traffic")
    assert result.exit_code == 0, result.output
    assert "mechdesign examples traffic > P.csv" in result.stdout
    Path("P.csv").write_text(find("traffic").text)
    own = run("leakage", "P.csv", "--epsilon", 0.1, "--steps", 10)
    assert own.stdout == result.stdout[: result.stdout.index("\nnext")]
    assert run("leakage", "--example", "traffic", "--steps", 3).stdout.count("0.1 ") < result.stdout.count("0.1 ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["examples", "town"], "NAME: is not known; found 'town'; must be one of city"),
        (["design", "--example", "town"], "example: is not known"),
        (["design", "--example", "traffic"], "--example traffic is for `mechdesign leakage`"),
        (
            ["policy", "--example", "city"],
            "--example city is for `mechdesign design`; this command runs districts, walk",
        ),
        (["leakage", "--example", "city"], "is for `mechdesign design`; this command runs traffic"),
        (["design", "s.toml", "--example", "city"], "not both"),
        (["leakage", "P.csv", "--example", "traffic"], "not both"),
        (["policy"], "or --example NAME"),
        (["release"], "or --example NAME"),
        (["release", "--example", "city"], "is for `mechdesign design`"),
        (["leakage"], "or --example NAME"),
    ],
)
def test_what_is_no_example(arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in " ".join(result.stderr.split())
    assert not list(Path().iterdir())


def test_the_schema_is_printed():
    printed = json.loads(run("info", "--schema").stdout)
    assert printed == spec.schema()
