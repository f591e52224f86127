"""Trips that end at a place that nobody leaves: from a table of them to leakage and budgets."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run

import mechdesign as md

COUNTS = [[0, 6, 4, 0], [3, 0, 6, 1], [2, 2, 0, 6], [0, 0, 0, 0]]
SPEC = """
domain.grid = { columns = 4, rows = 1, south = 0, north = 1, west = 0, east = 4 }
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, complete = true }]
prior = { checkins = { path = "trips.csv", latitude = "lat", longitude = "lon", time = "time", trace = "trip" } }
release.transition = { estimated = true }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with trips of one step each; after three of them people leave the box."""
    monkeypatch.chdir(tmp_path)
    lines = ["user,trip,time,lat,lon"]
    steps = (pair for pair in itertools.product(range(4), repeat=2) for _ in range(COUNTS[pair[0]][pair[1]]))
    for trip, pair in enumerate(steps):
        points = [(0.5, cell + 0.5) for cell in pair] + ([(9.0, 9.0)] if trip % 10 == 0 else [])
        lines += [f"u{trip % 3},{trip},2021-03-01T08:0{at}:00Z,{y},{x}" for at, (y, x) in enumerate(points)]
    (tmp_path / "trips.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "trips.toml").write_text(SPEC)
    return tmp_path


def said(text: str) -> str:
    return " ".join(text.split())


def leak(name: str, *more: object) -> tuple[dict[str, object], str]:
    found = run("leakage", "--forward", f"{name}/forward.csv", "--epsilon", 0.1, "--steps", 6, "--json", *more)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout), said(found.stderr)


def test_a_destination_stays(folder: Path) -> None:
    found = run("chain", "trips.toml", "-o", "stay")
    assert found.exit_code == 0, found.output
    notes = said(found.stderr)
    assert "3 steps leave the box, 9.1% of all that start inside; these steps are left out" in notes
    assert "the chain describes people who stay inside" in notes
    assert "nobody was seen to leave 1 of 4 states: forward.csv has a 1 on their diagonal" in notes
    forward, backward = (np.loadtxt(folder / "stay" / f"{name}.csv", delimiter=",") for name in ("forward", "backward"))
    assert forward[3].tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(backward[3], [0, 1 / 7, 6 / 7, 0])
    answer, notes = leak("stay")
    assert answer["facts"]["largest"] == pytest.approx(0.6)
    assert answer["facts"]["supremum"] is None
    assert answer["mixture"]["largest"] == pytest.approx(0.3881, abs=5e-5)
    assert answer["mixture"]["supremum"] == pytest.approx(0.6459, abs=5e-5)
    assert "1 of 4 states of the forward matrix" in notes
    assert "Only because of the ends, no budget holds over an infinite horizon" in notes
    shown = run("leakage", "stay/backward.csv", "--forward", "stay/forward.csv", "--epsilon", 0.1, "--steps", 6)
    assert re.search(r"largest leakage of one release +0\.6 +0\.4755", shown.stdout)
    assert "warning" not in shown.stderr


def test_words_stand_for_rows(folder: Path) -> None:
    for ends, value in (("mixture", 0.3881), ("any", 0.6)):
        assert run("chain", "trips.toml", "-o", ends, "--ends", ends).exit_code == 0
        assert (folder / ends / "forward.csv").read_text().splitlines()[3] == ends
        assert leak(ends)[0]["facts"]["largest"] == pytest.approx(value, abs=5e-5)
    assert "mixture" not in leak("mixture")[0]
    assert leak("any")[0]["mixture"]["largest"] == pytest.approx(0.3881, abs=5e-5)


def test_budgets_show_both(folder: Path) -> None:
    assert run("chain", "trips.toml", "-o", "stay").exit_code == 0
    found = run("budget", "--alpha", 1, "--steps", 5, "--forward", "stay/forward.csv")
    assert found.exit_code == 0, found.output
    assert re.search(r"1 to 3, each +0 +0\.1351", found.stdout)
    assert re.search(r"all, for any number of releases +0 +0\.1351", found.stdout)
    assert "no positive budget is possible over an infinite horizon: because of ends alone" in said(found.stderr)
    answer = json.loads(run("budget", "--alpha", 1, "--forward", "stay/forward.csv", "--json").stdout)
    assert (answer["constant"], answer["budgets"]) == (0, None)
    assert answer["mixture"]["constant"] == pytest.approx(0.13516, abs=1e-5)
    (folder / "costs.csv").write_text("epsilon,cost\n0,3\n0.5,1.5\n1,0.8\n")
    with_costs = ["budget", "--alpha", 1, "--steps", 2, "--forward", "stay/forward.csv", "--cost", "costs.csv"]
    shown = run(*with_costs, "--tolerance", 0.5)
    costs = [float(found[1]) for found in re.finditer(r"(?:these budgets|under mixture) +([\d.]+)", shown.stdout)]
    assert len(costs) == 2
    assert costs[1] <= costs[0]
    assert "mixture" not in run("budget", "--alpha", 1, "--steps", 3, "--backward", "stay/backward.csv").output


def test_people_who_leave_the_box(folder: Path) -> None:
    found = run("chain", "trips.toml", "-o", "out", "--border", "state", "--ends", "mixture")
    assert found.exit_code == 0, found.output
    assert "these steps lead to the state outside" in said(found.stderr)
    assert (folder / "out" / "states.csv").read_text().splitlines()[-1] == "4,4,outside,,"
    rows = (folder / "out" / "forward.csv").read_text().splitlines()
    assert rows[4] == "mixture"
    # Two of the three trips that go on outside are at a before, the other one at b; none is at e.
    assert rows[3] == "mixture"
    assert [float(row.split(",")[4]) > 0 for row in rows[:3]] == [True, True, False]
    # The specification may say it, and the command line counts more.
    text = SPEC.replace("estimated = true", 'estimated = true, border = "state", ends = "any"')
    (folder / "trips.toml").write_text(text)
    assert run("chain", "trips.toml", "-o", "again").exit_code == 0
    assert (folder / "again" / "forward.csv").read_text().splitlines()[4] == "any"
    assert run("chain", "trips.toml", "-o", "cut", "--border", "cut", "--ends", "stay").exit_code == 0
    assert len((folder / "cut" / "forward.csv").read_text().splitlines()) == 4
    with pytest.raises(md.errors.SpecificationError, match=r"transition\.border: is not supported for a release"):
        _ = md.read_spec("trips.toml").release_settings


def test_smoothing_is_said(folder: Path) -> None:
    found = run("chain", "trips.toml", "-o", "smooth", "--smoothing", 0.1, "--ends", "any")
    assert "their rows in forward.csv come from smoothing = 0.1 alone" in said(found.stderr)
    rows = np.loadtxt(folder / "smooth" / "forward.csv", delimiter=",")
    assert rows[3].tolist() == [0.25] * 4
    assert "mixture" not in leak("smooth")[0]


def test_a_release_takes_people_to_stay_and_nothing_else(folder: Path) -> None:
    settings = md.read_spec("trips.toml").release_settings
    assert settings.transition.matrix[3].tolist() == [0, 0, 0, 1]
    assert any("observed from 1 of 4 states: the chain stays in them" in note for note in settings.notes)
    (folder / "walk.csv").write_text("0\n1\n")
    for ends in ("mixture", "any"):
        (folder / "trips.toml").write_text(SPEC.replace("estimated = true", f'estimated = true, ends = "{ends}"'))
        found = run("release", "trips.toml", "walk.csv", "-o", "released", "--seed", 1)
        assert found.exit_code == 2
        assert "release.transition.ends: does not give a Markov chain" in found.stderr
        assert 'Use ends = "stay", which puts a 1 on the diagonal' in found.stderr
        assert not (folder / "released").exists()


def test_hours_without_steps_stay(folder: Path) -> None:
    text = SPEC.replace("estimated = true", 'estimated = true, by = "hour"')
    (folder / "trips.toml").write_text(text)
    settings = md.read_spec("trips.toml").release_settings
    chains = settings.transitions.chains
    assert chains[9].matrix.tolist() == np.eye(4).tolist()
    assert chains[8].matrix[0, 1] == 0.6
    assert any("observed from 93 of 96 states of 24 chains" in note for note in settings.notes)
    (folder / "trips.toml").write_text(text.replace("estimated", 'ends = "any", estimated'))
    with pytest.raises(md.errors.SpecificationError, match=r"transition\.ends: does not give a Markov chain"):
        _ = md.read_spec("trips.toml").release_settings


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chain", "trips.toml", "--ends", "leave"], "'leave' is not one of 'stay', 'mixture', 'any'"),
        (["chain", "trips.toml", "--border", "wall"], "'wall' is not one of 'cut', 'state'"),
        (
            ["leakage", "--forward", "zeros.csv", "--epsilon", "1", "--steps", "2"],
            "zeros.csv, line 2: is a row of zeros",
        ),
        (["leakage", "wide.csv", "--epsilon", "1", "--steps", "2"], "backward (wide.csv): has the wrong shape"),
        (["leakage", "half.csv", "--epsilon", "1", "--steps", "2"], "backward (half.csv)[0]: does not sum to 1"),
        (["budget", "--alpha", "1", "--forward", "words.csv"], "words.csv: has no known row"),
    ],
)
def test_wrong_words(folder: Path, arguments: list[str], words: str) -> None:
    (folder / "zeros.csv").write_text("0.5,0.5\n0,0\n")
    (folder / "wide.csv").write_text("0.5,0.25,0.25\nany\n")
    (folder / "half.csv").write_text("0.5,0.25\nany\n")
    (folder / "words.csv").write_text("any\nany\n")
    found = run(*arguments)
    assert found.exit_code == 2
    assert words in found.stderr
