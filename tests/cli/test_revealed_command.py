"""What commands say of secrets that answers reveal: refused, accepted by [policy] isolated, and shown ever after."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, leave_pictures_blank, well, write

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.errors import RevealedWarning, SpecificationError
from mechdesign.runs import sweep

PLACES = """
title = "Five places"
domain.points = [[0, 0], [1, 0], [0, 1], [9, 0], [30, 0]]
domain.labels = ["a", "b", "c", "d", "e"]
domain.unit = "km"
prior.uniform = true
cost.distance = "euclidean"
"""
THRESHOLD = PLACES + 'privacy = [{ kind = "threshold", epsilon = 1, radius = 1, distance = "euclidean" }]\n'
ACCEPTED = THRESHOLD + 'policy.isolated = "release"\n'
HIDDEN = THRESHOLD.replace("radius = 1", "radius = 30")
SAID = (
    "2 of 5 secrets (d, e) have an answer that no other secret can produce: "
    "anyone who sees it knows the secret for certain."
)
GRAPH = 'privacy = [{ kind = "graph", epsilon = 1, edges = [["a", "b"]] }]'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("accepted")
    with pytest.warns(
        RevealedWarning, match=r"^2 of 5 secrets \(d, e\) have an answer that no other secret can produce"
    ):
        found = spec.parse(ACCEPTED).design()
    with pytest.MonkeyPatch.context() as patched:
        leave_pictures_blank(patched)
        md.save(found, folder / "made")
    return folder / "made"


def test_they_are_refused_with_the_key_that_accepts_them() -> None:
    write(THRESHOLD)
    says = (
        "error: privacy: leave some secrets without a bound, so the best channel would release them exactly; found 2 "
        "of 5 secrets (d, e). Increase the radius from 1 to 8, which reaches a neighbour of d, or accept this with "
        '[policy] isolated = "release"'
    )
    assert_wrong_usage({"design s.toml": says})


def test_every_kind_of_specification_refuses_and_accepts() -> None:
    one = PLACES.replace("[0, 0], [1, 0], [0, 1], [9, 0], [30, 0]", "[0, 0]").replace('"a", "b", "c", "d", "e"', '"a"')
    for name, text in {
        "radius": THRESHOLD.replace("radius = 1", "radius = 0.9"),
        "graph": PLACES + GRAPH.replace('["a", "b"]', '["a", "b"], ["b", "c"]'),
        "one possible secret": PLACES + f'{GRAPH}\npolicy.support = ["a"]',
        "two possible secrets": PLACES + f'{GRAPH}\npolicy.support = ["a", "c"]',
        "one secret": one + 'privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]',
    }.items():
        with pytest.raises(SpecificationError, match=r"^privacy: .*\[policy\] isolated = \"release\""):
            spec.parse(text).design()
        with pytest.warns(RevealedWarning):
            found = spec.parse(text + '\npolicy.isolated = "release"\n').design()
        assert found.certificate.revealed, name
        assert found.summary.isolated == "release", name


def test_without_a_graph_only_isolated_may_be_said_and_only_so() -> None:
    for policy, path in {
        'policy.isolated = "repair"': "policy.isolated",
        'policy.isolated = "hull"': "policy.isolated",
        'policy.isolated = "accept"': "policy.isolated",
        'policy = { isolated = "release", within = "map" }': "policy",
        'policy.within = "map"': "policy",
    }.items():
        with pytest.raises(SpecificationError) as caught:
            spec.parse(THRESHOLD + policy)
        assert caught.value.path == path, policy


def test_the_design_says_how_many_and_which() -> None:
    result = well("design", write(ACCEPTED), "--no-report")
    assert result.stderr == f"warning: {SAID} All certified claims hold.\n"
    assert re.search(r"\nrevealed +2\n", result.stdout)
    assert json.loads(well("design", "s.toml", "--no-report", "--json").stdout)["revealed"] == [3, 4]


def test_verify_and_inspect_say_it(made: Path) -> None:
    assert f"{SAID}\n" in well("verify", made).stdout
    assert json.loads(well("verify", made, "--json").stdout)["revealed"] == [3, 4]
    assert "2 of 5 secrets (d, e)" in well("inspect", made).stdout
    found = json.loads(well("inspect", made, "--json").stdout)
    assert found["revealed_for_certain"] == "2 of 5 secrets (d, e)"


def test_nobody_is_revealed_and_inspect_counts() -> None:
    md.save(spec.parse(HIDDEN).design(), "hidden", report=False)
    with pytest.warns(RevealedWarning):
        md.save(spec.parse(ACCEPTED).design(), "made", report=False)
    assert "No secret is revealed for certain: at least two secrets" in well("verify", "hidden").stdout
    assert json.loads(well("inspect", "hidden", "--json").stdout)["revealed_for_certain"] == "no secret"
    shown = well("inspect", "made", "hidden").stdout
    (line,) = (each for each in shown.splitlines() if "revealed for certain" in each)
    assert line.split()[-2:] == ["2", "0"]


def test_the_report_says_it_beside_the_verdict(made: Path) -> None:
    assert f'<p class="verdict fails">{SAID}</p>' in (made / "report.html").read_text(encoding="utf-8")
    # A requirement without pairs is not praised.
    with pytest.warns(RevealedWarning):
        found = spec.parse(ACCEPTED.replace("radius = 1", "radius = 0.5")).design()
    assert "<strong>bounds no pair of secrets</strong>" in md.report.html(found)


def test_a_sweep_counts_them_and_a_refused_design_is_a_failed_row(blank_pictures: None) -> None:
    lists = '[sweep]\n"privacy.0.radius" = [1, 30]\n"policy.isolated" = ["refuse", "release"]\n'
    rows = sweep.run(sweep.parse(THRESHOLD + lists, "."), "swept", jobs=1)
    assert [row["status"] for row in rows] == ["failed", "done", "done", "done"]
    assert "found 2 of 5 secrets (d, e)" in str(rows[0]["message"])
    assert [row.get("revealed") for row in rows] == [None, 2, 0, 0]


def test_audit_says_it() -> None:
    write("1,0,0\n0,0.5,0.5\n0,0.5,0.5\n", "p.csv")
    audit = ("audit", "p.csv", "--distance", "hamming")
    assert "1 of 3 secrets (0) has an answer that no other secret can produce" in well(*audit).stdout
    assert json.loads(well(*audit, "--json").stdout)["revealed"] == [0]
