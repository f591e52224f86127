"""What commands say of secrets that answers reveal: refused, accepted by [policy] isolated, and shown ever after."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.certify import _bundle as bundle
from mechdesign.errors import InputError, RevealedWarning, SpecificationError
from mechdesign.report import _saving as saving
from mechdesign.runs import _tasks as tasks
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
SAID = (
    "2 of 5 secrets (d, e) have an answer that no other secret can produce: "
    "anyone who sees it knows the secret for certain."
)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str) -> str:
    Path("s.toml").write_text(text, encoding="utf-8")
    return "s.toml"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("accepted")
    with pytest.warns(
        RevealedWarning, match=r"^2 of 5 secrets \(d, e\) have an answer that no other secret can produce"
    ):
        saving.save(spec.parse(ACCEPTED).design(), folder / "made")
    return folder / "made"


def test_they_are_refused_with_the_key_that_accepts_them() -> None:
    result = run("design", write(THRESHOLD))
    assert result.exit_code == 2
    assert result.stderr == (
        "error: privacy: leave some secrets without a bound, so the best channel would release them exactly; found 2 "
        "of 5 secrets (d, e). Increase the radius from 1 to 8, which reaches a neighbour of d, or accept this with "
        '[policy] isolated = "release"\n'
    )
    assert not Path("s").exists()


@pytest.mark.parametrize(
    "text",
    [
        PLACES + 'privacy = [{ kind = "threshold", epsilon = 1, radius = 0.9, distance = "euclidean" }]',
        PLACES + 'privacy = [{ kind = "graph", epsilon = 1, edges = [["a", "b"], ["b", "c"]] }]',
        PLACES + 'privacy = [{ kind = "graph", epsilon = 1, edges = [["a", "b"]] }]\npolicy.support = ["a"]',
        PLACES + 'privacy = [{ kind = "graph", epsilon = 1, edges = [["a", "b"]] }]\npolicy.support = ["a", "c"]',
        PLACES.replace("[0, 0], [1, 0], [0, 1], [9, 0], [30, 0]", "[0, 0]").replace('"a", "b", "c", "d", "e"', '"a"')
        + 'privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]',
    ],
    ids=["radius", "graph", "one possible secret", "two possible secrets", "one secret"],
)
def test_every_kind_of_specification_refuses_and_accepts(text: str) -> None:
    with pytest.raises(SpecificationError, match=r"^privacy: .*\[policy\] isolated = \"release\""):
        spec.parse(text).design()
    accepted = spec.parse(text + '\npolicy.isolated = "release"\n')
    with pytest.warns(RevealedWarning):
        found = accepted.design()
    assert found.certificate.revealed
    assert found.summary.isolated == "release"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (THRESHOLD + 'policy.isolated = "repair"', "policy.isolated"),
        (THRESHOLD + 'policy.isolated = "hull"', "policy.isolated"),
        (THRESHOLD + 'policy.isolated = "accept"', "policy.isolated"),
        (THRESHOLD + 'policy = { isolated = "release", within = "map" }', "policy"),
        (THRESHOLD + 'policy.within = "map"', "policy"),
    ],
)
def test_without_a_graph_only_isolated_may_be_said_and_only_so(text: str, path: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        spec.parse(text)
    assert caught.value.path == path


def test_the_design_says_how_many_and_which() -> None:
    result = run("design", write(ACCEPTED), "--no-report")
    assert result.exit_code == 0
    assert result.stderr == f"warning: {SAID} All certified claims hold.\n"
    assert "secrets revealed for certain" in result.stdout
    shown = run("design", write(ACCEPTED), "--no-report", "--json")
    assert json.loads(shown.stdout)["revealed"] == [3, 4]


def test_verify_says_it_of_this_and_of_earlier_versions(made: Path) -> None:
    old = Path(shutil.copytree(made, "old"))
    document = json.loads((old / bundle.CERTIFICATE).read_text())
    del document["certificate"]["revealed"]
    document["digest"] = bundle.document_digest(document)
    (old / bundle.CERTIFICATE).write_text(json.dumps(document))
    for folder in (made, old):
        result = run("verify", folder)
        assert result.exit_code == 0
        assert f"- {SAID}\n" in result.stdout
        assert json.loads(run("verify", folder, "--json").stdout)["revealed"] == [3, 4]
        looked = run("inspect", folder)
        assert "2 of 5 secrets (d, e)" in looked.stdout
        assert json.loads(run("inspect", folder, "--json").stdout)["revealed for certain"] == "2 of 5 secrets (d, e)"


def test_verify_says_that_nobody_is_revealed() -> None:
    spec.parse(THRESHOLD.replace("radius = 1", "radius = 30")).design().save("hidden")
    assert "- No secret is revealed for certain: at least two secrets" in run("verify", "hidden").stdout
    assert json.loads(run("inspect", "hidden", "--json").stdout)["revealed for certain"] == "no secret"


def test_the_report_says_it_beside_the_verdict(made: Path) -> None:
    page = (made / "report.html").read_text(encoding="utf-8")
    assert f'<p class="verdict fails">{SAID}</p>' in page


def test_a_report_of_a_requirement_without_pairs_does_not_praise_it(tmp_path: Path) -> None:
    text = THRESHOLD.replace("radius = 1", "radius = 0.5") + 'policy.isolated = "release"\n'
    with pytest.warns(RevealedWarning):
        saving.save(spec.parse(text).design(), tmp_path / "all")
    page = (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    assert "The requirement bounds no pair of secrets" in page
    assert "room to spare" not in page


def test_compare_counts_them(made: Path) -> None:
    spec.parse(THRESHOLD.replace("radius = 1", "radius = 30")).design().save("hidden")
    line = next(each for each in run("compare", made, "hidden").stdout.splitlines() if "revealed for certain" in each)
    assert line.split()[-2:] == ["2", "0"]


def test_schedules_say_it() -> None:
    Path("budgets.csv").write_text("step,epsilon\n0,1\n1,2\n2,1\n")
    text = ACCEPTED.replace("epsilon = 1", 'epsilon = { budgets = "budgets.csv" }')
    result = run("design", write(text), "--no-report", "-o", "many")
    assert result.exit_code == 0
    # Two designs, one sentence.
    assert result.stderr.count("2 of 5 secrets (d, e)") == 1
    shown = run("verify", "many").stdout
    assert "Secrets are revealed for certain by epsilon-1 (2), epsilon-2 (2)." in shown


def test_a_sweep_counts_them_and_a_refused_design_is_a_failed_row() -> None:
    swept = tasks.parse(
        THRESHOLD + '[sweep]\n"privacy.0.radius" = [1, 30]\n"policy.isolated" = ["refuse", "release"]\n', "."
    )
    found = sweep.run(swept, "swept", jobs=1)
    rows = [row.values for row in found.rows]
    assert [row["status"] for row in rows] == ["failed", "done", "done", "done"]
    assert "found 2 of 5 secrets (d, e)" in str(rows[0]["message"])
    assert [row.get("revealed") for row in rows] == [None, 2, 0, 0]


def test_audit_says_it() -> None:
    Path("p.csv").write_text("1,0,0\n0,0.5,0.5\n0,0.5,0.5\n")
    result = run("audit", "p.csv", "--distance", "hamming")
    assert "1 of 3 secrets (0) has an answer that no other secret can produce" in result.stdout
    assert json.loads(run("audit", "p.csv", "--distance", "hamming", "--json").stdout)["revealed"] == [0]


def test_epsilon_per_metre_is_noticed() -> None:
    text = PLACES + 'privacy = [{ kind = "metric", epsilon = 0.8e3, distance = "euclidean" }]'
    result = run("design", write(text), "--no-report")
    assert result.exit_code == 0
    assert "warning: No bound below 2^62 limits how much likelier an answer may be for 5 of 5 secrets" in result.stderr
    assert "- No bound below 2^62 limits" in run("verify", "s").stdout


def test_they_are_no_input_error_of_the_problem() -> None:
    assert spec.parse(THRESHOLD).problem().requirements[0].kind == "threshold"
    with pytest.raises(InputError):
        md.design(spec.parse(THRESHOLD).problem())
