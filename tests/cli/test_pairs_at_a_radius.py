"""`design` says how many pairs are bounded; `verify` and `inspect` say which an earlier version left free."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.certify._stated import Stated

STREET = """
title = "A street"
domain.grid = {{ columns = 5, rows = 1, width = {width}, height = 1.0, unit = "{unit}" }}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{privacy}]
"""
THRESHOLD = '{{ kind = "threshold", epsilon = 1, radius = {radius}, distance = "euclidean" }}'


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Give a design of a requirement as it was once stated: of six pairs of neighbours two lie 2⁻⁵³ too far apart."""
    domain = md.Domain.grid(columns=4, rows=1, width=0.4, height=0.1, unit="km")
    distance = np.array(md.distances.euclidean(domain))
    distance[1, 2] = distance[2, 1] = 0.10000000000000003
    requirement = md.ThresholdPrivacy.from_stated([Stated.threshold(Fraction(1), distance, Fraction(1, 10))], 4)
    problem = md.Problem(md.Prior.uniform(4), distance, [requirement], secrets=domain, observables=domain)
    folder = tmp_path_factory.mktemp("old") / "old"
    md.design(problem).save(folder)
    return folder


@pytest.mark.parametrize(("width", "unit", "radius"), [("0.5", "km", "0.1"), ("500.0", "m", "100")])
def test_design_says_how_many_pairs_are_bounded(tmp_path, width, unit, radius):
    path = tmp_path / "s.toml"
    floor = '{ kind = "distortion", minimum = 0, distance = "hamming" }'
    privacy = f"{THRESHOLD.format(radius=radius)}, {floor}"
    path.write_text(STREET.format(width=width, unit=unit, privacy=privacy), encoding="utf-8")
    said = run("design", path, "-o", "made", "--no-report")
    assert said.exit_code == 0, said.output
    assert "bounded by threshold privacy 8 of 20 ordered pairs" in flat(said.output)
    assert "bounded by distortion" not in said.output
    proved = run("verify", "made")
    assert proved.exit_code == 0
    assert "8 of 20 ordered pairs of secrets" in flat(proved.output)
    assert "leaves" not in proved.output
    assert "left free" not in run("inspect", "made").output
    assert json.loads(run("verify", "made", "--json").stdout)["left_free"] == []
    second_verifier.prove(Path("made"))


def test_all_pairs_and_no_pairs(tmp_path):
    path = tmp_path / "s.toml"
    metric = '{ kind = "metric", epsilon = 1, distance = "euclidean" }'
    path.write_text(STREET.format(width=5.0, unit="km", privacy=metric), encoding="utf-8")
    assert "bounded by metric privacy all 20 ordered pairs" in flat(
        run("design", path, "-o", "all", "--no-report").output
    )
    path.write_text(
        STREET.format(width=5.0, unit="km", privacy='{ kind = "distortion", minimum = 0, distance = "hamming" }'),
        encoding="utf-8",
    )
    assert "bounded by" not in run("design", path, "-o", "none", "--no-report").output


def test_an_older_design_is_judged_by_its_pairs_and_what_it_leaves_free_is_said(old):
    said = run("verify", old)
    assert said.exit_code == 0, said.output
    assert "for 4 of 12 ordered pairs" in flat(said.output)
    sentence = (
        "requirements[0] (threshold privacy, ε within 0.1 km (Euclidean distance)) does not bound 2 of 12 ordered pairs"
    )
    assert sentence in flat(said.output)
    assert sentence in flat(run("inspect", old).output)
    assert json.loads(run("verify", old, "--json").stdout)["left_free"][0].startswith(sentence)
    assert "left free" in json.loads(run("inspect", old, "--json").stdout)
    second_verifier.prove(old)


def test_a_policy_graph_without_an_edge_warns_once(tmp_path):
    path = tmp_path / "s.toml"
    graph = '{ kind = "graph", epsilon = 1, radius = 0.05, distance = "euclidean" }'
    path.write_text(STREET.format(width=0.5, unit="km", privacy=graph), encoding="utf-8")
    said = flat(run("policy", path).stderr)
    assert said.count("the policy graph of 5 secrets has no edge: no two secrets are within 0.05 of each other") == 1
