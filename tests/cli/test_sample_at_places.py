"""`mechdesign sample`: answers for secrets and for places, how many, places outside, and true places that stay."""

from __future__ import annotations

import csv
import os
import re
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md
from mechdesign.cli._places import _pair, find_option, locate_secrets
from mechdesign.errors import ExportError, InputError
from mechdesign.model._answers import answers
from mechdesign.synthesis._folders import check_no_input_in

GRID = "grid = { columns = 4, rows = 3, south = 35.6, north = 35.8, west = 139.6, east = 139.9 }"
POINTS = """csv = { path = "poi.csv", latitude = "lat", longitude = "lon", label = "id" }"""
METRIC = 'privacy = [{ kind = "metric", epsilon = 0.5, distance = "euclidean" }]'
GRAPH = 'privacy = [{ kind = "graph", epsilon = 1, neighbours = 8 }]'
ANCHORS = "anchors = { columns = 3, rows = 3, south = 35.6, north = 35.8, west = 139.6, east = 139.9 }"
CONTINUOUS = 'privacy = [{ kind = "continuous", epsilon = 0.5 }]'
COINCIDE = 'points = [[0, 0], [0, 0]]\ndomain.unit = "km"'
HAMMING = 'privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]'
KINDS = {
    "grid": (GRID, METRIC),
    "points": (POINTS, METRIC),
    "support": (GRID, f"policy.support = [0, 1, 5, 6]\n{GRAPH}"),
    "delta": (GRID, f"policy.delta = 0.5\n{GRAPH}"),
    "anchors": (ANCHORS, CONTINUOUS),
    "one": (COINCIDE, HAMMING),
}
PRIORS = {"delta": "prior.counts = [9, 9, 1, 1, 1, 9, 9, 1, 1, 1, 1, 1]"}


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designs")
    (folder / "poi.csv").write_text("id,lat,lon\na,35.60,139.6\nb,35.61,139.6\nc,35.63,139.6\n")
    for name, (domain, privacy) in KINDS.items():
        prior = PRIORS.get(name, "prior.uniform = true")
        cost = "hamming" if name == "one" else "euclidean"
        text = f'title = "Tokyo"\ndomain.{domain}\n{prior}\ncost.distance = "{cost}"\n{privacy}\n'
        (folder / f"{name}.toml").write_text(text)
        shown = well("design", folder / f"{name}.toml", "-o", folder / name, "--no-report").stdout
        assert name != "grid" or " --at " in flat(shown)
    return folder


@pytest.fixture
def city(designs: Path) -> Path:
    return designs / "grid"


# --- secrets ---


def test_samples_are_those_of_the_channel(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = md.Channel.load(made)
    monkeypatch.setattr(md.Channel, "sample", partialmethod(md.Channel.sample, rng=7))
    expected = channel.sample("pub", 200)
    drawn = well("sample", made, "--secret", "pub", "--size", 200).stdout.splitlines()
    assert drawn == [channel.observables[index] for index in expected]
    well("sample", made, "--secret", 2, "--size", 200, "-o", "drawn.csv")
    rows = list(csv.DictReader(Path("drawn.csv").read_text().splitlines()))
    assert [int(row["observable_index"]) for row in rows] == expected.tolist()
    assert [row["observable"] for row in rows] == drawn
    drawn_for_real = well("sample", made, "--secret", "home")
    assert (drawn_for_real.stdout.strip() in channel.observables, drawn_for_real.stderr) == (True, "")
    assert well("sample", made, "--secret", "home", "--size", 0).stdout == ""


def test_numbers_that_are_labels_are_no_indices() -> None:
    distance = md.distances.hamming(2)
    domain = md.Domain.from_labels(["1", "2"])
    md.save(
        md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)], secrets=domain)), "m", report=False
    )
    well("sample", "m", "--secret", "2")
    assert_wrong_usage({"sample m --secret 0": "is not a label; it is not read as an index"})


# --- places ---


def test_an_answer_for_a_place_is_a_place(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(md.Channel, "sample", partialmethod(md.Channel.sample, rng=5))
    drawn = well("sample", city, "--at", "35.68,139.75", "-n", 20).stdout.splitlines()
    domain = md.Domain.geographic_grid(4, 3, 35.6, 35.8, 139.6, 139.9)
    expected = domain.coordinates[md.Channel.load(city).sample([domain.cell_of(35.68, 139.75)] * 20)]
    assert [[float(part) for part in line.split(",")] for line in drawn] == expected.tolist()
    well("sample", city, "--at", "35.68,139.75", "-o", "drawn.csv")
    (row,) = csv.DictReader(Path("drawn.csv").read_text().splitlines())
    assert list(row) == ["observable_index", "observable", "latitude", "longitude"]


COLLIDING = [[1.0000001, 2], [1.0000002, 2], [1234567.25, 2], [1234567.5, 2], [0.1 + 0.2, 1e-9], [-0.0, 1e-9]]
PLACES = {
    "a fine grid": md.Domain.geographic_grid(20, 9, 35.6, 35.60027, 139.7, 139.7006),
    "a grid across 180 degrees": md.Domain.geographic_grid(7, 3, -18.3, -16.1, 177.3, 182.9),
    "a grid in the plane": md.Domain.grid(7, 9, 1e-7, 3e9),
    "some cells": md.Domain.grid(5, 4, 1.0, 1.0).part([0, 3, 7, 19]),
    "anchors": md.Domain.anchors(4, 7, 1.0, 0.7),
    "points": md.Domain.from_points(COLLIDING),
    "points on the Earth": md.Domain.from_coordinates([40.73000004, 40.73000005, -33.9], [-73.98, -73.98, 151.2]),
    "labels": md.Domain.from_labels(["a", "b"]),
}


def test_coordinates_that_a_command_suggests_find_the_same_place_again() -> None:
    for name, domain in PLACES.items():
        for index in range(domain.size):
            option, text = find_option(domain, index).split()
            assert option == ("--secret" if name == "labels" else "--at"), name
            if option == "--at":
                found, _ = locate_secrets(domain, _pair(None, None, text), None)
                assert found.tolist() == [index], (name, text)
    # Six digits, or as many as find the place.
    assert find_option(md.Domain.grid(3, 1, 1.0, 1.0), 0) == "--at 0.166667,0.5"
    assert find_option(PLACES["points"], 3) == "--at 1234567.5,2"
    # Of two secrets at one place, no coordinates find the second.
    twice = md.Domain.from_points([[0, 0], [1, 1], [1, 1]])
    assert [find_option(twice, index) for index in range(3)] == ["--at 0,0", "--at 1,1", "--secret 2"]
    assert find_option(None, 3) == "--secret 3"


def random_domain(kind: int, rng: np.random.Generator) -> md.Domain:
    columns, rows = rng.integers(2, 4, 2).tolist()
    width, height = (10.0 ** rng.uniform(-6, 6, 2)).tolist()
    south, west = float(rng.uniform(-59, 59)), float(rng.uniform(-180, 180))
    if kind == 0:
        return md.Domain.grid(columns, rows, width, height)
    if kind == 1:
        # Some of these grids cross 180 degrees.
        return md.Domain.geographic_grid(columns, rows, south, south + 0.9, west, west + float(rng.uniform(0.001, 120)))
    if kind == 2:
        return md.Domain.anchors(columns, rows, width, height)
    if kind == 3:
        return md.Domain.from_points(rng.normal(size=(5, 2)) * width + height)
    near = rng.uniform(-1e-6, 1e-6, (2, 5))
    return md.Domain.from_coordinates(south + near[0], np.clip(west + near[1], -180, 180))


def test_the_coordinates_of_an_answer_and_of_a_suggestion_find_it_again() -> None:
    rng = np.random.default_rng(7)
    for trial, domain in enumerate([*PLACES.values(), *(random_domain(trial % 5, rng) for trial in range(30))]):
        if domain.points.shape[1] != 2 or domain.size > 30:
            continue
        channel = md.Channel(np.eye(domain.size, dtype=np.int64) << 62)
        for index, place in enumerate(answers(channel, domain, np.arange(domain.size)).place.tolist()):
            for text in (",".join(map(repr, place)), find_option(domain, index).removeprefix("--at ")):
                found, _ = locate_secrets(domain, _pair(None, None, text), None)
                assert found.tolist() == [index], (trial, text)


def test_a_file_of_places_becomes_a_file_of_answers(city: Path) -> None:
    write("user,latitude,longitude\na,35.7,139.7\nb,35.61,139.61\n", "p.csv")
    result = well("sample", city, "--input", "p.csv", "-n", 2, "-o", "out.csv")
    assert re.search(r"file +out.csv\nanswers +4\n", result.stdout)
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert [row["row"] for row in rows] == ["0", "0", "1", "1"]
    # What was read, true places and users among them, is not written.
    assert list(rows[0]) == ["row", "observable_index", "observable", "latitude", "longitude"]


def test_the_largest_number_of_answers_for_one_place_is_said_on_the_console_alone(city: Path) -> None:
    # The first and the third are two places in one cell.
    write("latitude,longitude\n35.61,139.61\n35.7,139.7\n35.62,139.62\n", "p.csv")
    result = well("sample", city, "--input", "p.csv", "-n", 3, "-o", "out.csv")
    assert "up to 6 answers for one place: 6 times the ε; keep this number as private as the places" in result.stderr
    assert "times" not in Path("out.csv").read_text()
    assert "times" not in result.stdout
    shown = well("sample", city, "--input", "p.csv")
    assert "up to 2 answers for one place: 2 times the ε" in shown.stderr
    assert "ε" not in shown.stdout
    assert "up to 4 answers for one place: 4 times the ε\n" in well("sample", city, "--secret", "1", "-n", 4).stderr
    for once in (["--secret", "1"], ["--at", "35.68,139.75"], ["--at", "35.68,139.75", "-n", 0]):
        assert "times the ε" not in well("sample", city, *once).stderr
    # Between anchors one place is one pair of coordinates.
    write("x,y\n0.5,0.5\n0.5,0.25\n0.5,0.5\n", "p.csv")
    drawn, most = locate_secrets(md.Domain.anchors(3, 2, 2.0, 1.0), None, Path("p.csv"), draws=5)
    assert (len(drawn), most) == (15, 10)


# --- places outside ---


def test_places_outside(city: Path) -> None:
    write("latitude,longitude\n35.7,139.7\n36,139.7\n37,139.7\n", "p.csv")
    says = "p.csv, line 3: lies outside the grid, as do 1 others"
    assert_wrong_usage({f"sample {city} --input p.csv -o out.csv": says})
    taken = well("sample", city, "--input", "p.csv", "--outside", "nearest")
    assert "2 of 3 places lie outside the grid: the nearest cell is taken" in taken.stderr
    assert len(taken.stdout.splitlines()) == 4


@pytest.mark.slow
def test_the_other_side_of_the_earth_is_refused(designs: Path) -> None:
    for kind in ("grid", "points", "support", "delta", "anchors"):
        for place in ("-35.61,139.80", "0,0", "35.61,-139.61"):
            folder = designs / kind
            for more in ((), ("--outside", "refuse")):
                refused = run("sample", folder, "--at", place, *more)
                assert (refused.exit_code, refused.stdout) == (2, ""), (kind, place)
                assert "--at: lies outside" in refused.stderr or "--at: is far from every place" in refused.stderr
                assert "--outside nearest" in refused.stderr
            taken = well("sample", folder, "--at", place, "--outside", "nearest")
            assert (len(taken.stdout.splitlines()), "the place lies outside" in taken.stderr) == (1, True)
            write(f"latitude,longitude\n35.605,139.605\n{place}\n{place}\n", "p.csv")
            refused = run("sample", folder, "--input", "p.csv", "-o", "out.csv")
            assert (refused.exit_code, "p.csv, line 3" in refused.stderr) == (2, True), (kind, place)
            assert place.split(",", maxsplit=1)[0] not in refused.stderr.replace("from 0 to", "")
            assert not Path("out.csv").exists()
            taken = well("sample", folder, "--input", "p.csv", "--outside", "nearest")
            assert "2 of 3 places lie outside" in taken.stderr


def test_a_cell_that_is_no_secret_is_refused(designs: Path) -> None:
    for kind in ("support", "delta"):
        well("sample", designs / kind, "--at", "35.61,139.61")
        assert_wrong_usage({f"sample {designs / kind} --at 35.79,139.61": "--at: lies in a cell that is not a secret"})


def test_the_reach_of_places(designs: Path) -> None:
    # Between nearest neighbours there are 1.11 km and 2.22 km; the place is 3.34 km from the last one.
    assert run("sample", designs / "points", "--at", "35.66,139.6").exit_code == 2
    well("sample", designs / "points", "--at", "35.66,139.6", "--outside", "nearest")
    well("sample", designs / "points", "--at", "35.65,139.6")
    # Places that do not lie apart have no reach.
    well("sample", designs / "one", "--at", "0,9", "--outside", "nearest")


# --- wrong usage ---


def test_wrong_usage(designs: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KINDS:
        Path(name).symlink_to(designs / name, target_is_directory=True)
    write("x,y\n1,2\n", "x.csv")
    write("latitude,longitude\nnorth,2\n", "bad.csv")
    write("latitude,longitude\n100,2\n", "far.csv")
    write("latitude;longitude\n35.7;139.7\n", "semicolons.csv")
    write("lat,lon\n35.7,139.7\n", "short.csv")
    some = "home, work, pub, or an index from 0 to 3"
    write("latitude,longitude\n35.7,139.7\n35.7,139.7\n", "two.csv")
    reach = "within 2.224 km of a place of the domain. Leave it out, or take the nearest place with --outside nearest"
    assert_wrong_usage(
        {
            **{
                f"sample made --secret {secret}": f"--secret {secret}: is not a secret; must be a label such as {some}"
                for secret in ("cinema", "4", "-1", "1.0", "nan")
            },
            "sample made --secret home --size -1": "--size",
            "sample made --secret home -n 1000001": "--size: is too large for 1 place; found 1000001; must be at most",
            f"sample made --secret home -n {10**20}": "at most 1,000,000, since each answer spends the budget",
            "sample grid --input two.csv -n 500001": "is too large for 2 places; found 500001; must be at most 500,000",
            "sample made": "give one of --secret, --at and --input",
            "sample made/channel.csv --secret 0": "channel.csv: is a file; must be a folder",
            "sample made --secret 0 --outside nearest": "goes with",
            "sample grid --at 35.7": "is not two numbers separated by a comma",
            "sample grid --at 35.7,1_3": "is not two numbers separated by a comma",
            "sample grid --at nan,139.7": "--at (latitude): is not accepted",
            "sample grid --at 139.7,35.7": "Latitude comes first",
            "sample grid --at 35.7,139.7 --secret 1": "give one of --secret, --at and --input",
            "sample grid --input none.csv": "none.csv: cannot be opened",
            "sample grid --input x.csv": "x.csv, line 1: has no column 'latitude'",
            "sample grid --input short.csv": "short.csv, line 1: has no column 'latitude'",
            "sample grid --input semicolons.csv": "pd.read_csv(",
            "sample grid --input bad.csv": "bad.csv, line 2, column latitude: is not a number",
            "sample grid --input far.csv": "line 2: is not accepted: latitude and longitude look interchanged",
            "sample grid --at 35.7,139.7 -o none/out.csv": "none",
            "sample points --at 35.66,139.6": reach,
            "sample one --at 0,0": "--at: cannot be matched, because all places of the domain coincide. Take the",
        }
    )
    with pytest.raises(InputError, match=r"--at: gives a place, but .* Give the secret with --secret"):
        locate_secrets(md.Domain.from_labels(["a", "b"]), (1.0, 2.0), None)


# --- files that stay ---

TRUE = "latitude,longitude\n35.61,139.61\n"


def test_true_places_are_never_overwritten(city: Path, tmp_path: Path) -> None:
    write(TRUE, "p.csv")
    Path("below").mkdir()
    Path("link.csv").symlink_to("p.csv")
    Path("chain.csv").symlink_to("link.csv")
    os.link("p.csv", "hard.csv")
    Path("other").symlink_to(".", target_is_directory=True)
    names = ("p.csv", "./p.csv", "below/../p.csv", "link.csv", "hard.csv", "chain.csv", "other/p.csv")
    for name in (*names, str(tmp_path / "p.csv")):
        assert_wrong_usage({f"sample {city} --input p.csv -o {name}": "choose another"})
        assert_wrong_usage({f"sample {city} --input {name} -o p.csv": "choose another"})
    assert Path("link.csv").is_symlink()
    well("sample", city, "--input", "p.csv", "-o", "other/q.csv")


def test_only_files_can_be_overwritten() -> None:
    here, file, device = Path(), Path("a.csv"), Path(os.devnull)
    check_no_input_in(here, ["a.csv"], {"--input": file})
    check_no_input_in(device.parent, [device.name], {"--input": device})
    file.write_text("")
    check_no_input_in(here, ["a.csv", "b.csv"], {"--input": Path("b.csv")})
    os.link(file, "hard.csv")
    for name in ("a.csv", "hard.csv"):
        with pytest.raises(ExportError, match=f"{name} is the file of --input, which must not be overwritten"):
            check_no_input_in(here, ["b.csv", name], {"--other": Path("b.csv"), "--input": file})


def test_commands_write_onto_no_file(made: Path) -> None:
    write("0.9,0.1\n0.2,0.8\n", "m.csv")
    write("a page\n", "made/report.html")
    write("mine", "other.toml")
    Path("l.csv").symlink_to("m.csv")
    lines = (
        "sample made --at 0,0 -o made/channel.csv",
        "sample made --secret 0 -o other.toml",
        "leakage --backward m.csv --epsilon 1 --steps 2 -o m.csv",
        "budget --alpha 1 --steps 2 --backward m.csv -o l.csv",
        "audit m.csv --distance hamming -o m.csv",
        "export made --format csv -o made/channel.csv",
        "export made --format csv -o other.toml",
    )
    assert_wrong_usage(dict.fromkeys(lines, "already exists, and is not replaced: choose another name"))
