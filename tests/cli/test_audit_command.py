"""The command audit: verdicts as exit codes, every form of input, and the page."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from click.testing import CliRunner, Result

import mechdesign as md
from mechdesign.cli import main

DOMAIN = md.Domain.grid(3, 2, 3.0, 2.0)
DISTANCE = md.distances.euclidean(DOMAIN)
LAPLACE = md.mechanisms.PlanarLaplace(1.0, DOMAIN).density()
SPEC = """
domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savetxt("laplace.csv", LAPLACE, delimiter=",", fmt="%.17g")
    np.save("laplace.npy", LAPLACE)
    np.savez("laplace.npz", LAPLACE)
    sparse.save_npz("identity.npz", sparse.csr_array(np.eye(6)))
    np.savetxt("points.csv", DOMAIN.points, delimiter=",")
    np.savetxt("D.csv", DISTANCE, delimiter=",", fmt="%.17g")
    Path("edges.csv").write_text("0,1\n1,2\n3,4\n4,5\n")
    Path("prior.csv").write_text("place,probability\n" + "".join(f"{i},{i + 1}\n" for i in range(6)))
    Path("spec.toml").write_text(SPEC)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["audit", *arguments])


@pytest.mark.parametrize("name", ["laplace.csv", "laplace.npy", "laplace.npz"])
def test_a_stated_epsilon_decides_the_exit_code(files: Path, name: str) -> None:
    tight = md.audit(LAPLACE, DISTANCE).epsilon
    given = [name, "--distance", "D.csv", "--epsilon"]
    held = run(*given, repr(tight))
    assert held.exit_code == 0, held.output
    assert "holds" in held.stdout
    broken = run(*given, repr(math.nextafter(tight, 0)))
    assert broken.exit_code == 1
    assert "does not hold" in broken.stdout
    assert run(name, "--distance", "D.csv").exit_code == 0


def test_json_has_everything(files: Path) -> None:
    arguments = ["--distance", "euclidean", "--points", "points.csv", "--cost", "euclidean", "--prior", "prior.csv"]
    result = run("laplace.csv", *arguments, "--json", "-o", "page.html")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    found = md.audit(LAPLACE, DISTANCE, prior=md.Prior.from_counts(range(1, 7)), cost=DISTANCE)
    assert answer["epsilon"] == found.epsilon
    assert answer["cost"] == found.cost
    assert answer["optimum"] <= answer["cost"]
    assert answer["witness"]["observable"] == found.witness.observable
    assert 'id="pairs"' in Path("page.html").read_text(encoding="utf-8")


def test_no_epsilon_and_a_graph(files: Path) -> None:
    result = run("identity.npz", "--graph", "edges.csv", "--json", "--epsilon", "100")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["epsilon"] is None
    assert answer["holds"] is False
    assert "none holds" in run("identity.npz", "--distance", "hamming").stdout


def test_a_folder_states_its_epsilon(files: Path) -> None:
    made = md.read_spec("spec.toml").design()
    made.save(files / "out")
    result = run("out")
    assert result.exit_code == 0, result.output
    assert "ε = 1" in result.stdout
    assert run("out", "--epsilon", "0.99").exit_code == 1
    for lone in ("out/channel.npz", "out/channel.csv"):
        assert run(lone, "--spec", "spec.toml", "--no-optimum").exit_code == 0
    assert run("laplace.csv", "--spec", "spec.toml", "--no-optimum").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["laplace.csv"], "give --distance or --graph"),
        (["laplace.csv", "--distance", "euclidean"], "needs places of the secrets"),
        (["laplace.csv", "--distance", "far"], "--distance: is not known"),
        (["laplace.csv", "--distance", "hamming", "--graph", "edges.csv"], "not both"),
        (["laplace.csv", "--distance", "hamming", "--epsilon", "much"], "--epsilon: is not a number"),
        (["none.csv", "--distance", "hamming"], "none.csv: cannot be opened"),
        (["points.csv", "--weights", "--distance", "D.csv", "--cost", "D.csv"], "cost: does not match the channel"),
        (["laplace.csv", "--graph", "D.csv"], "is not a list of edges"),
        (["laplace.csv", "--distance", "hamming", "-o", "none/page.html"], "none"),
    ],
)
def test_wrong_input_ends_with_2(files: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output


def test_specifications_and_places_of_another_number_are_refused(files: Path) -> None:
    Path("r.csv").write_text("0.75,0.25\n0.25,0.75\n")
    Path("s.toml").write_text(SPEC)
    Path("one.csv").write_text("0,0\n")
    for options, words in (
        ("--spec s.toml", "another number of secrets; found 6; must be 2"),
        (
            "--points one.csv --distance euclidean",
            "one.csv: does not have a place for each row of the channel; found 1",
        ),
    ):
        result = CliRunner().invoke(main, ["audit", "r.csv", *options.split()])
        assert result.exit_code == 2
        assert words in result.stderr


def test_a_header_above_places_is_named(files: Path) -> None:
    Path("r.csv").write_text("0.75,0.25\n0.25,0.75\n")
    Path("two.csv").write_text("x,y\n0,0\n1,0\n")
    arguments = ["audit", "r.csv", "--distance", "euclidean", "--points", "two.csv"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "two.csv, line 1: is a header; found 2 texts; must be numbers, as in the lines below." in result.stderr
    assert "Remove names of columns and rows" in result.stderr
    Path("two.csv").write_text("0,0\n1,0\n")
    assert CliRunner().invoke(main, arguments).exit_code == 0


def test_places_in_a_file_lie_on_a_plane(files: Path) -> None:
    Path("r.csv").write_text("0.75,0.25\n0.25,0.75\n")
    Path("two.csv").write_text("30.25,-97.75\n30.31,-97.71\n")
    for distance, words in (("euclidean", "in the unit of the coordinates in two.csv"), ("haversine", "give --spec")):
        result = CliRunner().invoke(main, ["audit", "r.csv", "--distance", distance, "--points", "two.csv"])
        assert words.lower() in result.stderr.lower()


def test_sums_of_rows_are_shown_and_logarithms_are_told(files: Path) -> None:
    for text, words in (("75,25\n25,75\n", "found 100;"), ("-0.3,-1.4\n-1.4,-0.3\n", "logarithms")):
        Path("r.csv").write_text(text)
        assert words in CliRunner().invoke(main, ["audit", "r.csv", "--distance", "hamming"]).stderr
