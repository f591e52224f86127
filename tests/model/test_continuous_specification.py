"""Continuous geo-indistinguishability from a specification: anchors, raw visits, and what is wrong with others."""

import json
import re
import warnings

import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from click.testing import CliRunner
from rows import each_row

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.cli import main
from mechdesign.errors import SpacingWarning, SpecificationError
from mechdesign.specification._specification import read_spec
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import estimate

SPECIFICATION = """
title = "Every coordinate"

[domain.anchors]
columns = 4
rows = 3
width = 3.0
height = 2.0

[observables.grid]
columns = 3
rows = 2
width = 3.0
height = 2.0

[prior]
visits = { path = "visits.csv" }

[cost]
distance = "euclidean"

[[privacy]]
kind = "continuous"
epsilon = 1.5

[[privacy]]
kind = "distortion"
minimum = 0.5
distance = "euclidean"
"""


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    points = np.vstack([rng.uniform(0, [3, 2], (80, 2)), [[4.0, 1.0]]])
    lines = [f"{x!r},{y!r}" for x, y in points.tolist()]
    (tmp_path / "visits.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    (tmp_path / "spec.toml").write_text(SPECIFICATION)
    return tmp_path


def test_visits_are_taken_as_they_are(folder):
    specification = read_spec(folder / "spec.toml")
    assert specification.notes == (
        "81 visits are used without rounding",
        "1 of 81 visits outside the anchors are projected to their border",
    )
    problem = specification.problem()
    points = np.loadtxt(folder / "visits.csv", delimiter=",", skiprows=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same = md.Problem.from_visits(points, problem.observables, problem.requirements)
        # An adversary may name anchors and answers.
        named = [
            md.DistortionPrivacy.from_visits("0.5", points, problem.secrets, estimates=each).distance
            for each in (problem.secrets, problem.observables)
        ]
    np.testing.assert_array_equal(problem.cost, same.cost)
    np.testing.assert_array_equal(problem.prior, same.prior)
    np.testing.assert_array_equal(problem.requirements[1].distance, np.vstack(named))


def test_visits_state_their_people(folder):
    """A file with further columns must say whose rows these are, as files of check-ins do."""
    (folder / "visits.csv").write_text("x,y,who\n" + "1,1,ann\n2,1,bob\n1,2,ann\n" * 10 + "1,1, \n")
    for keys, notes in {
        ', user = "who"': "30 visits of 2 user(s) are used without rounding 1 row is left out: 1 without a user",
        ", user = false": "31 visits of 1 user(s) are used without rounding",
    }.items():
        found = spec.parse(SPECIFICATION.replace('"visits.csv"', f'"visits.csv"{keys}'), folder).notes
        assert " ".join(found).replace("prior.visits: ", "") == notes, keys
    for keys, path, problem in (
        ("", "prior.visits.user", "has further columns; must be a column, or false: all rows are one person's"),
        (", user = true", "prior.visits.user", "cannot be true; found True; must be a column, or false"),
        (', user = "age"', "prior.visits", "line 1 has no column 'age'"),
    ):
        with pytest.raises(SpecificationError) as raised:
            _ = spec.parse(SPECIFICATION.replace('"visits.csv"', f'"visits.csv"{keys}'), folder).notes
        assert (raised.value.path, problem in str(raised.value)) == (path, True), keys
    (folder / "visits.csv").write_text("x,y\n0,0\n3,2\n")
    assert spec.parse(SPECIFICATION, folder).notes == ("2 visits are used without rounding",)


def test_the_command_designs_verifies_and_samples(folder, monkeypatch):
    leave_pictures_blank(monkeypatch)
    run = CliRunner().invoke
    found = run(main, ["design", str(folder / "spec.toml"), "-o", str(folder / "out"), "--json"])
    assert found.exit_code == 0, found.output
    stated = [each["requirement"] for each in json.loads(found.stdout)["requirements"]]
    assert stated[0].startswith("continuous privacy, ε per km (Euclidean distance, all")
    assert "between neighbouring anchors along x" in found.output
    page = (folder / "out" / "report.html").read_text()
    assert "<h2>Real coordinates</h2>" in page
    assert "the odds between them change by a factor of at most" in page
    assert run(main, ["verify", str(folder / "out")]).exit_code == 0
    found = run(main, ["sample", str(folder / "out"), "--at", "1.234,0.567"])
    assert found.exit_code == 0, found.output


def test_a_prior_on_the_anchors_themselves_will_do(folder):
    text = SPECIFICATION.replace('visits = { path = "visits.csv" }', "uniform = true")
    problem = spec.parse(text, folder).problem()
    assert problem.prior.tolist() == [1 / 12] * 12
    np.testing.assert_array_equal(problem.cost, md.distances.euclidean(problem.secrets, problem.observables))


def test_check_ins_between_geographic_anchors(folder):
    rng = np.random.default_rng(0)
    rows = [
        f"a,{latitude},{longitude}" for latitude, longitude in rng.uniform([40, 10], [40.1, 10.1], (40, 2)).tolist()
    ]
    (folder / "checkins.csv").write_text("\n".join(["user,latitude,longitude", *rows, "b,41.0,10.0"]) + "\n")
    box = "south = 40.0\nnorth = 40.1\nwest = 10.0\neast = 10.1"
    text = SPECIFICATION.replace("width = 3.0\nheight = 2.0", box).replace("visits = ", "checkins = ")
    text = text.replace('"visits.csv"', '"checkins.csv", user = "user"').replace("epsilon = 1.5", "epsilon = 0.3")
    specification = spec.parse(text, folder)
    assert specification.notes == (
        "40 points of 2 user(s) are used without rounding",
        "1 points outside the box are left out",
    )
    assert specification.problem().secrets.lattice.box == (40.0, 40.1, 10.0, 10.1)


@each_row(
    ("old", "new", "message"),
    [
        ("columns = 4", "columns = 1", "domain.anchors.columns: puts all anchors in a line; found 1"),
        ("[domain.anchors]", "[domain.grid]", "prior.visits: requires a domain of anchors"),
        ("epsilon = 1.5", "epsilon = 0", "privacy[0].epsilon: must be positive"),
        ("epsilon = 1.5", 'epsilon = 1.5\ndistance = "hamming"', "privacy[0].distance: is not known; found 'hamming'"),
        ("epsilon = 1.5", "epsilon = 1.5\nsplit = 1.5", "privacy[0].split: is out of range"),
        ("epsilon = 1.5", 'epsilon = 1.5\ndistance = "manhattan"\nsplit = 0.5', "privacy[0].split: is not allowed"),
        ("visits.csv", "none.csv", "prior.visits.path: "),
        (
            'visits = { path = "visits.csv" }',
            'checkins = { path = "c.csv", user = false }',
            "prior.checkins: requires anchors with lat",
        ),
        ('"visits.csv" }', '"visits.csv" }\nsmoothing = 1', "prior.smoothing: cannot be combined with raw visits"),
        ('[cost]\ndistance = "euclidean"', "[cost]\ngraph = { neighbours = 4 }", "cost: has no named distance"),
        ('[cost]\ndistance = "euclidean"', '[cost]\ndistance = "hamming"', "cost.distance: is not known"),
        ("[cost]", '[cost]\nobjective = "worst"', "cost.objective: is the worst cost"),
        ("[cost]", "[cost]\npower = 0", "cost.power: is out of range"),
    ],
)
def test_wrong_specifications_name_the_key(folder, old, new, message):
    with pytest.raises(SpecificationError, match="^" + re.escape(message)):
        spec.parse(SPECIFICATION.replace(old, new), folder).problem()


def test_continuous_privacy_of_cells_is_refused(folder):
    text = SPECIFICATION.replace("[domain.anchors]", "[domain.grid]")
    text = text.replace('visits = { path = "visits.csv" }', "uniform = true")
    with pytest.raises(
        SpecificationError, match=r"privacy\[0\]\.domain: has no anchors; must be a domain with anchors = "
    ):
        spec.parse(text, folder).problem()


def test_far_anchors_are_warned_of_on_the_command_line(folder):
    (folder / "spec.toml").write_text(SPECIFICATION.replace("epsilon = 1.5", "epsilon = 5"))
    found = CliRunner().invoke(main, ["design", str(folder / "spec.toml"), "-o", str(folder / "out"), "--no-report"])
    assert found.exit_code == 0, found.output
    assert "Keep anchors at most 0.4 km apart" in found.stderr
    with pytest.warns(SpacingWarning):
        read_spec(folder / "spec.toml").problem()


@each_row("side", [9, 10])
def test_the_size_of_a_program_between_anchors_is_predicted(side):
    text = f"""
        domain.anchors = {{ columns = {side}, rows = {side}, width = 3.0, height = 3.0 }}
        observables.grid = {{ columns = 2, rows = 2, width = 3.0, height = 3.0 }}
        prior.uniform = true
        cost.distance = "euclidean"
        privacy = [{{ kind = "continuous", epsilon = 1 }}]
    """
    given = spec.parse(text)
    assert given.size is not None
    assert given.size.symmetries == 8
    rows = 4 * 4 * side * (side - 1)
    assert estimate(given.size, SolveSettings()).rows == rows
    assert str(md.design(given.problem()).summary.plan).startswith(f"{rows} privacy rows")


@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning", "ignore::mechdesign.errors.OutsideWarning")
def test_an_adversary_who_believes_the_answer_is_within_the_floor(folder):
    """Answers are possible guesses: an adversary who repeats the answer does not err by less than the floor."""
    text = SPECIFICATION.replace("minimum = 0.5", "minimum = 0.9").replace("epsilon = 1.5", "epsilon = 6")
    made = spec.parse(text, folder).design()
    floor = made.problem.requirements[1]
    n, m = made.problem.cost.shape
    assert floor.distance.shape == (n + m, n)
    joint = made.problem.prior[:, None] * made.channel.matrix
    believed = float((joint * made.problem.cost).sum())
    assert believed >= 0.9 * (1 - 1e-9)
    # Without the answers among the guesses, the floor would not bound this adversary.
    points = np.loadtxt(folder / "visits.csv", delimiter=",", skiprows=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anchors_only = md.DistortionPrivacy.from_visits("0.9", points, made.problem.secrets)
        problem = md.Problem.from_visits(points, made.problem.observables, [made.problem.requirements[0], anchors_only])
    joint = problem.prior[:, None] * md.design(problem).channel.matrix
    assert float((joint * problem.cost).sum()) < 0.9


@each_row("answers", ['observables.labels = ["near", "far"]', "observables.grid = {S}", ""])
def test_without_visits_places_of_answers_are_guesses_too(answers):
    size = "{ columns = 2, rows = 2, width = 3.0, height = 3.0 }"
    cost = "cost.distance = 'euclidean'" if "labels" not in answers else "cost.matrix = { path = 'none.csv' }"
    text = f"""
        domain.anchors = {{ columns = 3, rows = 3, width = 3.0, height = 3.0 }}
        {answers.replace("{S}", size)}
        prior.uniform = true
        {cost}
        privacy = [
            {{ kind = "continuous", epsilon = 1 }}, {{ kind = "distortion", minimum = 0.1, distance = "euclidean" }},
        ]
    """
    if "labels" in answers:
        with pytest.raises(SpecificationError, match="cost"):
            spec.parse(text).problem()
        return
    problem = spec.parse(text).problem()
    error = problem.requirements[1].distance
    assert error.shape == ((13, 9) if answers else (9, 9))
    np.testing.assert_array_equal(error[:9], md.distances.euclidean(problem.secrets))
    if answers:
        np.testing.assert_allclose(error[9:], md.distances.euclidean(problem.secrets, problem.observables).T)


def test_only_the_guesses_of_an_adversary_include_the_answers():
    text = """
        domain.anchors = { columns = 3, rows = 3, width = 3.0, height = 3.0 }
        observables.grid = { columns = 2, rows = 2, width = 3.0, height = 3.0 }
        prior.uniform = true
        cost.distance = "euclidean"
        privacy = [
            { kind = "metric", epsilon = 1, distance = "euclidean" }, { kind = "continuous", epsilon = 1 },
        ]
    """
    problem = spec.parse(text).problem()
    np.testing.assert_array_equal(problem.requirements[0].distance, md.distances.euclidean(problem.secrets))
