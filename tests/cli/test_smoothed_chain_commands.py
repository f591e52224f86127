"""`mechdesign chain`: matrices, their counts and ends, and what `leakage` and `budget` say of these."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, well, write

import mechdesign as md
from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_of
from mechdesign.errors import SmoothedChainWarning

SPECIFICATION = """
domain = { grid = { columns = 3, rows = 1, south = 50.0, north = 50.01, west = 8.0, east = 8.03 } }
prior = { checkins = { path = "c.csv", time = "time" }, smoothing = 0.1 }
cost = { distance = "euclidean" }
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


def read(name: str) -> np.ndarray:
    return np.loadtxt(name, delimiter=",")


# --- matrices ---


def test_the_chain_of_data_and_of_a_release(smoothed: Path) -> None:
    found = well("chain", smoothed.parent / "s.toml", "-o", "matrices", "--every", "2 min")
    assert "resampled to one every 2 min" in found.stderr
    forward, backward = read("matrices/forward.csv"), read("matrices/backward.csv")
    assert (forward[0].tolist(), backward[0].tolist()) == ([0, 0, 1], [0, 1, 0])
    assert len(Path("matrices/states.csv").read_text().splitlines()) == len(forward) + 1
    text = 'cost.distance = "euclidean"\ndomain.grid = { columns = 2, rows = 2, width = 2, height = 2 }\n'
    text += 'prior.uniform = true\nprivacy = [{ kind = "graph", epsilon = 1, blocks = 2 }]\n'
    well("chain", write(text + "release.transition = { neighbours = 4 }\n"))
    # A walk on a graph is its own reverse.
    np.testing.assert_allclose(read("chain/forward.csv"), read("chain/backward.csv"), atol=1e-15)
    write(text, "walk.toml")
    assert_wrong_usage({"chain walk.toml": "prior: does not come from data in order of time"})


# --- counts ---


@pytest.fixture(scope="module")
def smoothed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the smoothed chain of one who goes round three cells; beside it the plain one."""
    folder = tmp_path_factory.mktemp("chain")
    rows = [f"ann,50.005,{8.005 + 0.01 * (minute % 3)},2024-01-01 10:{minute:02}" for minute in range(31)]
    (folder / "c.csv").write_text("user,latitude,longitude,time\n" + "".join(f"{row}\n" for row in rows))
    (folder / "s.toml").write_text(SPECIFICATION)
    said = flat(well("chain", folder / "s.toml", "-o", folder / "smoothed", "--smoothing", 0.1).stderr)
    assert "warning: the matrices were counted with smoothing 0.1" in said
    assert "these files are private, because every count of 30 steps can be read from them exactly" in said
    well("chain", folder / "s.toml", "-o", folder / "plain")
    return folder / "smoothed"


@pytest.fixture
def copied(smoothed: Path) -> Path:
    return Path(shutil.copytree(smoothed, "c"))


def test_counts_stand_with_the_matrices_and_are_private(smoothed: Path) -> None:
    for name, smoothing in (("smoothed", 0.1), ("plain", 0.0)):
        folder = smoothed.parent / name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()} == {0o600}
        for direction, step in (("forward", (0, 1)), ("backward", (1, 0))):
            found = counts_of(folder / f"{direction}.csv")
            assert found is not None
            assert (found.smoothing, found.counts[step], found.counts.sum()) == (smoothing, 10, 30)


def test_leakage_and_budget_say_what_the_counts_alone_give(smoothed: Path) -> None:
    leak = ("leakage", "--epsilon", 0.1, "--steps", 10, "--json", "--forward")
    found = well(*leak, smoothed / "forward.csv")
    assert "by the counts alone, for which no positive constant budget bounds the leakage" in found.stderr
    alone = json.loads(found.stdout)["by the counts alone"]
    assert alone == json.loads(well(*leak, smoothed.parent / "plain" / "forward.csv").stdout)["facts"]
    assert alone["largest"] == pytest.approx(1.0)
    budget = ("budget", "--alpha", 1, "--forward", smoothed / "forward.csv")
    found = well(*budget, "--steps", 4, "--json")
    assert "smoothing 0.1" in found.stderr
    shown = json.loads(found.stdout)
    assert shown["constant"] > 0
    assert shown["by the counts alone"]["constant"] == 0
    assert "by the counts alone" in well(*budget).stdout


def test_counts_of_other_matrices_are_not_used_and_that_is_said(copied: Path, smoothed: Path) -> None:
    leak = ("leakage", "--epsilon", 0.1, "--steps", 3, "--forward")
    write("0.5,0.5\n0.25,0.75\n", "c/forward.csv")
    assert "belongs to other matrices" in well(*leak, "c/forward.csv").stderr
    # A matrix under another name is the same matrix.
    shutil.copy(smoothed / "forward.csv", "c/P.csv")
    assert "smoothing 0.1" in well(*leak, "c/P.csv").stderr
    (copied / CHAIN_COUNTS).unlink()
    assert "smoothing" not in well(*leak, "c/P.csv").stderr


def test_a_malformed_file_of_counts_is_refused(copied: Path) -> None:
    says = f"{CHAIN_COUNTS}: cannot be read"
    write("[", f"c/{CHAIN_COUNTS}")
    assert_wrong_usage({"leakage --forward c/forward.csv --epsilon 1 --steps 2": says})


def test_an_older_file_of_counts_goes_when_nothing_is_counted(copied: Path) -> None:
    text = SPECIFICATION.replace('checkins = { path = "c.csv", time = "time" }, smoothing = 0.1', "uniform = true")
    well("chain", write(text + "[release]\ntransition = { neighbours = 4 }\n"), "-o", copied)
    assert not (copied / CHAIN_COUNTS).exists()


def test_a_specification_with_a_smoothed_chain_warns(smoothed: Path) -> None:
    def transition(text: str) -> Any:
        (smoothed.parent / "r.toml").write_text(f"{SPECIFICATION}[release]\ntransition = {text}\n")
        return md.read_spec(smoothed.parent / "r.toml").release_settings.transition

    said = r"makes all 9 steps possible; 3 of them occur in the counts\. With the counts alone"
    with pytest.warns(SmoothedChainWarning, match=said):
        assert transition("{ estimated = true, smoothing = 0.1 }").smoothing == 0.1
    # So does one that names the matrix that `chain` wrote.
    with pytest.warns(SmoothedChainWarning, match=r"transition\.path: smoothing 0\.1 .* 3 of them occur in the counts"):
        assert transition('{ path = "smoothed/forward.csv" }').unsmoothed().matrix[0, 1] == 1
    assert transition('{ path = "plain/forward.csv" }').smoothing == 0


# --- ends: trips that end at a place that nobody leaves ---

COUNTS = [[0, 6, 4, 0], [3, 0, 6, 1], [2, 2, 0, 6], [0, 0, 0, 0]]
TRIPS = """
domain.grid = { columns = 4, rows = 1, south = 0, north = 1, west = 0, east = 4 }
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, complete = true }]
prior = { checkins = { path = "trips.csv", latitude = "lat", longitude = "lon", time = "time", trace = "trip" } }
release.transition = { estimated = true }
"""


@pytest.fixture
def trips() -> None:
    """Write trips of one step each; after three of them people leave the box."""
    lines = ["user,trip,time,lat,lon"]
    steps = (pair for pair in itertools.product(range(4), repeat=2) for _ in range(COUNTS[pair[0]][pair[1]]))
    for trip, pair in enumerate(steps):
        points = [(0.5, cell + 0.5) for cell in pair] + ([(9.0, 9.0)] if trip % 10 == 0 else [])
        lines += [f"u{trip % 3},{trip},2021-03-01T08:0{at}:00Z,{y},{x}" for at, (y, x) in enumerate(points)]
    write("\n".join(lines) + "\n", "trips.csv")
    write(TRIPS, "trips.toml")


def leak(name: str) -> tuple[dict[str, Any], str]:
    found = well("leakage", "--forward", f"{name}/forward.csv", "--epsilon", 0.1, "--steps", 6, "--json")
    return json.loads(found.stdout), flat(found.stderr)


@pytest.mark.usefixtures("trips")
def test_a_destination_stays() -> None:
    notes = flat(well("chain", "trips.toml", "-o", "stay").stderr)
    assert "3 steps leave the box, 9.1% of all that start inside; these steps are left out" in notes
    assert "the chain describes people who stay inside" in notes
    assert "nobody was seen to leave 1 of 4 states: forward.csv has a 1 on their diagonal" in notes
    assert read("stay/forward.csv")[3].tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(read("stay/backward.csv")[3], [0, 1 / 7, 6 / 7, 0])
    answer, notes = leak("stay")
    assert answer["facts"]["largest"] == pytest.approx(0.6)
    assert answer["facts"]["supremum"] is None
    assert answer["mixture"]["largest"] == pytest.approx(0.3881, abs=5e-5)
    assert answer["mixture"]["supremum"] == pytest.approx(0.6459, abs=5e-5)
    assert "1 of 4 states of the forward matrix" in notes
    assert "Only because of the ends, no budget holds over an infinite horizon" in notes
    both = ("stay/backward.csv", "--forward", "stay/forward.csv")
    shown = well("leakage", *both, "--epsilon", 0.1, "--steps", 6)
    assert re.search(r"largest leakage of one release +0\.6 +0\.4755", shown.stdout)
    assert "warning" not in shown.stderr


@pytest.mark.usefixtures("trips")
def test_words_stand_for_rows_and_smoothing_is_said() -> None:
    for ends, value in (("mixture", 0.3881), ("any", 0.6)):
        well("chain", "trips.toml", "-o", ends, "--ends", ends)
        assert Path(ends, "forward.csv").read_text().splitlines()[3] == ends
        assert leak(ends)[0]["facts"]["largest"] == pytest.approx(value, abs=5e-5)
    assert "mixture" not in leak("mixture")[0]
    assert leak("any")[0]["mixture"]["largest"] == pytest.approx(0.3881, abs=5e-5)
    found = well("chain", "trips.toml", "-o", "smooth", "--smoothing", 0.1, "--ends", "any")
    assert "their rows in forward.csv come from smoothing = 0.1 alone" in flat(found.stderr)
    assert read("smooth/forward.csv")[3].tolist() == [0.25] * 4
    assert "mixture" not in leak("smooth")[0]


@pytest.mark.usefixtures("trips")
def test_budgets_show_both() -> None:
    well("chain", "trips.toml", "-o", "stay")
    budget = ("budget", "--alpha", 1, "--forward", "stay/forward.csv")
    found = well(*budget, "--steps", 5)
    assert re.search(r"1 to 3, each +0 +0\.1351", found.stdout)
    assert re.search(r"all, for any number of releases +0 +0\.1351", found.stdout)
    assert "no positive budget is possible over an infinite horizon: because of ends alone" in flat(found.stderr)
    answer = json.loads(well(*budget, "--json").stdout)
    assert (answer["constant"], answer["budgets"]) == (0, None)
    assert answer["mixture"]["constant"] == pytest.approx(0.13516, abs=1e-5)
    assert "mixture" not in well("budget", "--alpha", 1, "--steps", 3, "--backward", "stay/backward.csv").output


@pytest.mark.usefixtures("trips")
def test_people_who_leave_the_box() -> None:
    found = well("chain", "trips.toml", "-o", "out", "--border", "state", "--ends", "mixture")
    assert "these steps lead to the state outside" in flat(found.stderr)
    assert Path("out/states.csv").read_text().splitlines()[-1] == "4,4,outside,,"
    rows = Path("out/forward.csv").read_text().splitlines()
    # Two of the three trips that go on outside are at a before, the other one at b; none is at e.
    assert rows[3:5] == ["mixture", "mixture"]
    assert [float(row.split(",")[4]) > 0 for row in rows[:3]] == [True, True, False]
    # The specification may say it, and the command line counts more.
    write(TRIPS.replace("estimated = true", 'estimated = true, border = "state", ends = "any"'), "trips.toml")
    well("chain", "trips.toml", "-o", "again")
    assert Path("again/forward.csv").read_text().splitlines()[4] == "any"
    well("chain", "trips.toml", "-o", "cut", "--border", "cut", "--ends", "stay")
    assert len(Path("cut/forward.csv").read_text().splitlines()) == 4
    with pytest.raises(md.errors.SpecificationError, match=r"transition\.border: is not supported for a release"):
        _ = md.read_spec("trips.toml").release_settings


@pytest.mark.usefixtures("trips")
def test_a_release_takes_people_to_stay_and_nothing_else() -> None:
    settings = md.read_spec("trips.toml").release_settings
    assert settings.transition.matrix[3].tolist() == [0, 0, 0, 1]
    assert any("observed from 1 of 4 states: the chain stays in them" in note for note in settings.notes)
    # Hours without steps stay, too.
    hours = write(TRIPS.replace("estimated = true", 'estimated = true, by = "hour"'), "hours.toml")
    settings = md.read_spec(hours).release_settings
    chains = settings.transitions.chains
    assert chains[9].matrix.tolist() == np.eye(4).tolist()
    assert chains[8].matrix[0, 1] == 0.6
    assert any("observed from 93 of 96 states of 24 chains" in note for note in settings.notes)
    write("0\n1\n", "walk.csv")
    for name, more in (("mixture", ""), ("any", ""), ("any", ', by = "hour"')):
        write(TRIPS.replace("estimated = true", f'estimated = true, ends = "{name}"{more}'), "trips.toml")
        says = "release.transition.ends: does not give a Markov chain"
        remedy = 'Use ends = "stay", which puts a 1 on the diagonal'
        assert_wrong_usage({"release trips.toml walk.csv --seed 1": says})
        assert_wrong_usage({"release trips.toml walk.csv --seed 1": remedy})


@pytest.mark.usefixtures("trips")
def test_wrong_usage() -> None:
    write("0.5,0.5\n0,0\n", "zeros.csv")
    write("0.5,0.25,0.25\nany\n", "wide.csv")
    write("0.5,0.25\nany\n", "half.csv")
    write("any\nany\n", "words.csv")
    assert_wrong_usage(
        {
            "chain trips.toml --ends leave": "'leave' is not one of 'stay', 'mixture', 'any'",
            "chain trips.toml --border wall": "'wall' is not one of 'cut', 'state'",
            "leakage --forward zeros.csv --epsilon 1 --steps 2": "zeros.csv, line 2: is a row of zeros",
            "leakage wide.csv --epsilon 1 --steps 2": "backward (wide.csv): has the wrong shape",
            "leakage half.csv --epsilon 1 --steps 2": "backward (half.csv)[0]: does not sum to 1",
            "budget --alpha 1 --forward words.csv": "words.csv: has no known row",
        }
    )
