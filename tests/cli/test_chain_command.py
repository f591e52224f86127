"""`mechdesign chain`: the matrices of data and of releases, and rows of zeros for states that nobody left."""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md
from mechdesign.base import _atomic
from mechdesign.errors import SpecificationError

ROUND = """
domain = { grid = { columns = 3, rows = 1, south = 50.0, north = 50.01, west = 8.0, east = 8.03 } }
prior = { checkins = { path = "c.csv", user = "user", time = "time" }, smoothing = 0.1 }
cost = { distance = "euclidean" }
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


def read(name: str) -> np.ndarray:
    return np.loadtxt(name, delimiter=",")


@pytest.fixture
def walk() -> str:
    """Write the specification of one person who goes round three cells; return its name."""
    rows = [f"ann,50.005,{8.005 + 0.01 * (minute % 3)},2024-01-01 10:{minute:02}" for minute in range(31)]
    write("user,latitude,longitude,time\n" + "".join(f"{row}\n" for row in rows), "c.csv")
    write(ROUND, "round.toml")
    return "round.toml"


def test_the_chain_of_data_is_private(walk: str) -> None:
    found = well("chain", walk, "-o", "matrices", "--every", "2 min")
    assert "resampled to one every 2 min" in found.stderr
    forward, backward = read("matrices/forward.csv"), read("matrices/backward.csv")
    assert (forward[0].tolist(), backward[0].tolist()) == ([0, 0, 1], [0, 1, 0])
    assert len(Path("matrices/states.csv").read_text().splitlines()) == len(forward) + 1
    says = "matrices holds a chain; choose another folder, or use --overwrite"
    assert_wrong_usage({f"chain {walk} -o matrices": says})
    said = flat(well("chain", walk, "-o", "matrices", "--overwrite").stderr)
    assert "these files are private, because every count of 30 steps can be read from them exactly" in said
    assert stat.S_IMODE(Path("matrices").stat().st_mode) == 0o700
    names = {each.name: stat.S_IMODE(each.stat().st_mode) for each in Path("matrices").iterdir()}
    assert names == dict.fromkeys(("forward.csv", "backward.csv", "states.csv"), 0o600)


def test_the_chain_of_a_release() -> None:
    text = 'cost.distance = "euclidean"\ndomain.grid = { columns = 2, rows = 2, width = 2, height = 2 }\n'
    text += 'prior.uniform = true\nprivacy = [{ kind = "graph", epsilon = 1, blocks = 2 }]\n'
    well("chain", write(text + "release.transition = { neighbours = 4 }\n"))
    # A walk on a graph is its own reverse.
    np.testing.assert_allclose(read("chain/forward.csv"), read("chain/backward.csv"), atol=1e-15)
    write(text, "walk.toml")
    assert_wrong_usage({"chain walk.toml": "prior: does not come from data in order of time"})
    write(text + 'release.transition = { path = "chain/forward.csv" }\n', "again.toml")
    says = "is the file of chain/forward.csv, which must not be overwritten"
    assert_wrong_usage({"chain again.toml": says, "chain again.toml --overwrite": says})
    write("mine", "chain/notes.txt")
    assert_wrong_usage({"chain s.toml --overwrite": "chain holds notes.txt, which does not belong to a chain"})


def test_files_of_others_are_not_taken_for_a_chain(walk: str) -> None:
    for name in ("forward.csv", "backward.csv", "states.csv", "domain.json"):
        write("my own notes", f"mine/{name}")
        says = f"mine holds {name}, which does not belong to a chain"
        assert_wrong_usage({f"chain {walk} -o mine": says, f"chain {walk} -o mine --overwrite": says})
        Path("mine", name).unlink()


def test_what_is_left_of_a_replaced_chain_is_no_chain(walk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    well("chain", walk, "-o", "c")
    # A chain of places has no domain of a table.
    write('{"domain": "0"}', "c/domain.json")
    well("chain", walk, "-o", "c", "--overwrite")
    assert sorted(os.listdir("c")) == ["backward.csv", "forward.csv", "states.csv"]
    genuine = _atomic.os.replace
    for count in range(3, 6):
        left = iter(range(count))

        def replace(*names: object, left: Iterator[int] = left) -> None:
            # The disk fails after three old files are emptied, and none, one or two are written.
            if next(left, None) is None:
                raise OSError(5, "Input/output error")
            genuine(*names)

        with monkeypatch.context() as patched:
            patched.setattr(_atomic.os, "replace", replace)
            assert run("chain", walk, "-o", "c", "--overwrite").exit_code == 2
        assert sorted(os.listdir("c")) == sorted(["forward.csv", "backward.csv", "states.csv"][: count - 3])
        well("chain", walk, "-o", "c", "--overwrite")


def test_a_belief_is_smoothed_in_a_release_and_never_in_files(walk: str) -> None:
    write(ROUND + "[release]\ntransition = { estimated = true, smoothing = 0.1 }\n", "belief.toml")
    chain = md.read_spec("belief.toml").release_settings.transition
    assert (chain.smoothing, chain.unsmoothed().matrix[0, 1]) == (0.1, 1.0)
    well("chain", walk, "-o", "plain")
    assert "counted without smoothing, which is for beliefs" in flat(well("chain", "belief.toml", "-o", "c").stderr)
    assert Path("c/forward.csv").read_bytes() == Path("plain/forward.csv").read_bytes()


# --- ends: trips that end at a place that nobody leaves ---

COUNTS = [[0, 6, 4, 0], [3, 0, 6, 1], [2, 2, 0, 6], [0, 0, 0, 0]]
TRIPS = """
domain.grid = { columns = 4, rows = 1, south = 0, north = 1, west = 0, east = 4 }
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, complete = true }]
[prior.checkins]
path = "trips.csv"
user = "user"
latitude = "lat"
longitude = "lon"
time = "time"
trace = "trip"
[release]
transition = { estimated = true }
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
def test_the_row_of_a_destination_is_zeros_or_stays() -> None:
    notes = flat(well("chain", "trips.toml", "-o", "any").stderr)
    assert "3 steps leave the box, 9.1% of all that start inside; these steps are left out" in notes
    assert "the chain describes people who stay inside" in notes
    assert "nobody was seen to leave 1 of 4 states: their rows in forward.csv are zeros, for any row" in notes
    assert read("any/forward.csv")[3].tolist() == [0, 0, 0, 0]
    np.testing.assert_allclose(read("any/backward.csv")[3], [0, 1 / 7, 6 / 7, 0])
    notes = flat(well("chain", "trips.toml", "-o", "stay", "--ends", "stay").stderr)
    assert "have a 1 on the diagonal" in notes
    assert read("stay/forward.csv")[3].tolist() == [0, 0, 0, 1]
    for name, said in (("any", True), ("stay", False)):
        facts, notes = leak(name)
        assert facts["largest_of_one_release"] == pytest.approx(0.6)
        assert facts["each_release_without_an_end"] == "inf"
        assert ("1 of 4 rows are zeros, so they are unknown and may be any row" in notes) == said
    both = ("--backward", "any/backward.csv", "--forward", "any/forward.csv", "--epsilon", 0.1, "--steps", 6)
    said = flat(well("leakage", *both).stderr)
    assert said.count("warning") == 1
    assert "two rows of the forward matrix may have, because rows are unknown, disjoint supports" in said


@pytest.mark.usefixtures("trips")
def test_a_release_reads_the_matrix_of_a_chain_where_people_stay() -> None:
    for ends in ("stay", "any"):
        well("chain", "trips.toml", "-o", ends, "--ends", ends)
        write(TRIPS.replace("estimated = true", f'path = "{ends}/forward.csv"'), f"{ends}.toml")
    chain = md.read_spec("stay.toml").release_settings.transition
    np.testing.assert_array_equal(chain.matrix, read("stay/forward.csv"))
    with pytest.raises(SpecificationError, match=r'transition\.path\[3\]: is a row of zeros.*ends = "stay"'):
        _ = md.read_spec("any.toml").release_settings


@pytest.mark.usefixtures("trips")
def test_hours_without_steps_stay_if_that_is_stated() -> None:
    hours = 'estimated = true, by = "hour"'
    settings = md.read_spec(write(TRIPS.replace("estimated = true", f'{hours}, ends = "stay"'), "hours.toml"))
    settings = settings.release_settings
    chains = settings.transitions.chains
    assert chains[9].matrix.tolist() == np.eye(4).tolist()
    assert chains[8].matrix[0, 1] == 0.6
    assert any("observed for 93 of 96 rows" in note for note in settings.notes)
    write("state\n0\n1\n", "walk.csv")
    for more in ("estimated = true", 'estimated = true, ends = "any"', hours):
        write(TRIPS.replace("estimated = true", more), "trips.toml")
        assert_wrong_usage({"release trips.toml walk.csv --seed 1": 'Give ends="stay", which puts a 1 on the diagonal'})


def test_points_without_an_order_are_not_counted(walk: str) -> None:
    lines = Path("c.csv").read_text().splitlines()
    # The rows of the person descend in time, but for the last two, which have one time and two places.
    rows = [*lines[:0:-1], lines[1], lines[1].replace("8.005", "8.015")]
    write("\n".join([lines[0], rows[3], *rows[:3], *rows[4:]]) + "\n", "c.csv")
    says = "1 points at the time of the point before"
    assert_wrong_usage({f"chain {walk}": says})
    write(ROUND + "[release]\ntransition = { estimated = true, smoothing = 0.1 }\n", "belief.toml")
    with pytest.raises(SpecificationError, match=f"prior.checkins: have {says}"):
        _ = md.read_spec("belief.toml").release_settings


@pytest.mark.usefixtures("trips")
def test_wrong_usage() -> None:
    write(TRIPS.replace('user = "user"', ""), "nobody.toml")
    write(TRIPS.replace('user = "user"', 'user = "person"'), "other.toml")
    assert_wrong_usage(
        {
            "chain nobody.toml": "prior.checkins.user: is missing",
            "chain other.toml": "person",
            "chain trips.toml --ends leave": "'leave' is not one of 'any', 'stay'",
            "chain trips.toml --ends mixture": "'mixture' is not one of",
            "chain trips.toml --smoothing 0.1": "No such option",
            "chain trips.toml --border state": "No such option",
            "chain trips.toml --time time": "No such option",
            "chain trips.toml --every often": "error: --every",
            "chain trips.toml --gap -1": "error: --gap",
        }
    )
