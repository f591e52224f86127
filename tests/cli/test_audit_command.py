"""The command audit: verdicts as exit codes, every form of input, and the page."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md

DOMAIN = md.Domain.grid(3, 2, 3.0, 2.0)
DISTANCE = md.distances.euclidean(DOMAIN)
LAPLACE = md.mechanisms.PlanarLaplace(1.0, DOMAIN).density()
SPEC = """
domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


@pytest.fixture(autouse=True)
def _files() -> None:
    np.savetxt("laplace.csv", LAPLACE, delimiter=",", fmt="%.17g")
    np.save("laplace.npy", LAPLACE)
    np.savez("laplace.npz", LAPLACE)
    sparse.save_npz("identity.npz", sparse.csr_array(np.eye(6)))
    np.savetxt("points.csv", DOMAIN.points, delimiter=",")
    np.savetxt("D.csv", DISTANCE, delimiter=",", fmt="%.17g")
    write("0,1\n1,2\n3,4\n4,5\n", "edges.csv")
    write("place,probability\n" + "".join(f"{i},{i + 1}\n" for i in range(6)), "prior.csv")
    write(SPEC, "spec.toml")
    write("0.75,0.25\n0.25,0.75\n", "r.csv")


def test_a_stated_epsilon_decides_the_exit_code() -> None:
    tight = md.audit(LAPLACE, DISTANCE).epsilon
    for name in ("laplace.csv", "laplace.npy", "laplace.npz"):
        given = ["audit", name, "--distance", "D.csv"]
        assert well(*given).exit_code == 0
        assert "holds" in well(*given, "--epsilon", repr(tight)).stdout, name
        broken = run(*given, "--epsilon", repr(math.nextafter(tight, 0)))
        assert (broken.exit_code, "does not hold" in broken.stdout) == (1, True), name


def test_json_has_everything_and_the_page_is_written(blank_pictures: None) -> None:
    arguments = ["--distance", "euclidean", "--points", "points.csv", "--cost", "euclidean", "--prior", "prior.csv"]
    answer = json.loads(well("audit", "laplace.csv", *arguments, "--json", "-o", "page.html").stdout)
    found = md.audit(LAPLACE, DISTANCE, prior=md.Prior.from_counts(range(1, 7)), cost=DISTANCE)
    assert answer["epsilon"] == found.epsilon
    assert answer["cost"] == found.cost
    assert answer["optimum"] <= answer["cost"]
    assert answer["witness"]["observable"] == found.witness.observable
    assert 'id="pairs"' in Path("page.html").read_text(encoding="utf-8")


def test_no_epsilon_and_a_graph() -> None:
    result = run("audit", "identity.npz", "--graph", "edges.csv", "--json", "--epsilon", "100")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["epsilon"], answer["holds"]) == (1, None, False)
    assert "none holds" in well("audit", "identity.npz", "--distance", "hamming").stdout


def test_a_folder_states_its_epsilon(blank_pictures: None) -> None:
    md.save(md.read_spec("spec.toml").design(), "out", report=False)
    assert "ε = 1" in well("audit", "out").stdout
    assert run("audit", "out", "--epsilon", "0.99").exit_code == 1
    for lone in ("out/channel.npz", "out/channel.csv"):
        well("audit", lone, "--spec", "spec.toml", "--no-optimum")
    assert run("audit", "laplace.csv", "--spec", "spec.toml", "--no-optimum").exit_code == 1


def test_wrong_usage() -> None:
    write("0,0\n", "one.csv")
    write("x,y\n0,0\n1,0\n", "two.csv")
    write("75,25\n25,75\n", "percent.csv")
    write("-0.3,-1.4\n-1.4,-0.3\n", "logarithms.csv")
    write("30.25,-97.75\n30.31,-97.71\n", "degrees.csv")
    cost = "points.csv --weights --distance D.csv --cost D.csv"
    assert_wrong_usage(
        {
            "audit laplace.csv": "give --distance or --graph",
            "audit laplace.csv --distance euclidean": "needs places of the secrets",
            "audit laplace.csv --distance far": "--distance: is not known",
            "audit laplace.csv --distance hamming --graph edges.csv": "not both",
            "audit laplace.csv --distance hamming --epsilon much": "--epsilon: is not a number",
            "audit none.csv --distance hamming": "none.csv: cannot be opened",
            f"audit {cost}": "cost: does not match the channel",
            "audit laplace.csv --graph D.csv": "is not a list of edges",
            "audit r.csv --spec spec.toml": "another number of secrets; found 6; must be 2",
            "audit r.csv --points one.csv --distance euclidean": "does not have a place for each row of the channel",
            "audit r.csv --points two.csv --distance euclidean": "two.csv, line 1: is a header",
            "audit r.csv --points degrees.csv --distance haversine": "ive --spec",
            "audit percent.csv --distance hamming": "found 100;",
            "audit logarithms.csv --distance hamming": "logarithms",
        }
    )
    # What was computed is shown, although its page cannot be written.
    result = run("audit", "laplace.csv", "--distance", "hamming", "-o", "none/page.html")
    assert (result.exit_code, "none" in flat(result.output)) == (2, True)


def test_places_in_a_file_lie_on_a_plane_in_the_unit_of_the_file() -> None:
    write("0,0\n1,0\n", "two.csv")
    said = well("audit", "r.csv", "--distance", "euclidean", "--points", "two.csv").stderr
    assert "in the unit of the coordinates in two.csv" in flat(said).lower()
