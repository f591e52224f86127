"""`mechdesign sample` for places, and the map that `mechdesign export` writes."""

from __future__ import annotations

import csv
import io
import itertools
import json
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.cli._places import locate_secrets
from mechdesign.errors import InputError

SPECIFICATION = """
title = "Tokyo"
[domain]
grid = { columns = 4, rows = 3, south = 35.6, north = 35.8, west = 139.6, east = 139.9 }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.5
distance = "euclidean"
"""


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    (folder / "s.toml").write_text(SPECIFICATION)
    result = run("design", folder / "s.toml", "-o", folder / "out", "--no-report")
    assert result.exit_code == 0, result.output
    assert " --at " in " ".join(result.stdout.split())
    return folder / "out"


def test_an_answer_for_a_place_is_a_place(city: Path) -> None:
    result = run("sample", city, "--at", "35.68,139.75", "-n", 20, "--seed", 5)
    assert "up to 20 answers for one place: 20 times the ε\n" in result.stderr
    drawn = result.stdout.splitlines()
    channel = md.Channel.load(city)
    domain = md.Domain.geographic_grid(4, 3, 35.6, 35.8, 139.6, 139.9)
    expected = domain.coordinates[channel.sample(domain.cell_of(35.68, 139.75), (20,), 5)]
    assert [[float(part) for part in line.split(",")] for line in drawn] == expected.tolist()
    rows = list(csv.DictReader(io.StringIO(run("sample", city, "--at", "35.68,139.75", "--csv").stdout)))
    assert list(rows[0]) == ["observable_index", "observable", "latitude", "longitude"]


def test_a_file_of_places_becomes_a_file_of_answers(city: Path) -> None:
    Path("p.csv").write_text("user,Lat,LNG\na,35.7,139.7\nb,35.61,139.61\n")
    result = run("sample", city, "--input", "p.csv", "-n", 2, "-o", "out.csv")
    assert result.exit_code == 0, result.stderr
    assert "out.csv contains 4 answers" in result.stderr
    assert "up to 2 answers for one place: 2 times the ε" in result.stderr
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert [row["row"] for row in rows] == ["0", "0", "1", "1"]
    # What was read, true places and users among them, is not written.
    assert list(rows[0]) == ["row", "observable_index", "observable", "latitude", "longitude"]
    seeded = [run("sample", city, "--input", "p.csv", "--seed", 1).stdout for _ in range(2)]
    assert seeded[0] == seeded[1]


def test_the_largest_number_of_answers_for_one_place_is_said_on_the_console_alone(city: Path) -> None:
    # The first and the third are two places in one cell.
    Path("p.csv").write_text("lat,lon\n35.61,139.61\n35.7,139.7\n35.62,139.62\n")
    result = run("sample", city, "--input", "p.csv", "-n", 3, "-o", "out.csv")
    assert "up to 6 answers for one place: 6 times the ε; keep this number as private as the places" in result.stderr
    assert "times" not in Path("out.csv").read_text()
    assert "times" not in result.stdout
    shown = run("sample", city, "--input", "p.csv")
    assert "up to 2 answers for one place: 2 times the ε" in shown.stderr
    assert "ε" not in shown.stdout
    assert "up to 4 answers for one place: 4 times the ε\n" in run("sample", city, "--secret", "1", "-n", 4).stderr
    for once in (["--secret", "1"], ["--at", "35.68,139.75"], ["--at", "35.68,139.75", "-n", 0]):
        assert "times the ε" not in run("sample", city, *once).stderr


def test_between_anchors_one_place_is_one_pair_of_coordinates() -> None:
    Path("p.csv").write_text("x,y\n0.5,0.5\n0.5,0.25\n0.5,0.5\n")
    drawn, most = locate_secrets(md.Domain.anchors(3, 2, 2.0, 1.0), None, Path("p.csv"), draws=5)
    assert (len(drawn), most) == (15, 10)


def test_places_outside(city: Path) -> None:
    Path("p.csv").write_text("latitude,longitude\n35.7,139.7\n36,139.7\n37,139.7\n")
    refused = run("sample", city, "--input", "p.csv", "-o", "out.csv")
    assert refused.exit_code == 2
    assert "p.csv, row 2: lies outside the grid, as do 1 others; found (99.9, 999.9)" in refused.stderr
    assert "--outside nearest" in refused.stderr
    assert not Path("out.csv").exists()
    taken = run("sample", city, "--input", "p.csv", "--outside", "nearest")
    assert "2 of 3 places lie outside the grid, and are replaced by the nearest cell" in taken.stderr
    assert len(taken.stdout.splitlines()) == 4
    assert "the place lies outside" in run("sample", city, "--at", "36,139.7", "--outside", "nearest").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "35.7"], "is not two numbers separated by a comma"),
        (["--at", "35.7,1_3"], "is not two numbers separated by a comma"),
        (["--at", "nan,139.7"], "--at (latitude): is not accepted"),
        (["--at", "139.7,35.7"], "Latitude comes first"),
        (["--at", "35.7,139.7", "--secret", "1"], "give one of --secret, --at and --input"),
        ([], "give one of --secret, --at and --input"),
        (["--input", "none.csv"], "none.csv: cannot be opened"),
        (["--input", "x.csv"], "x.csv: has no column for the latitude"),
        (["--input", "bad.csv"], "bad.csv, row 1: lat is not a number; found aaaaa"),
        (["--input", "far.csv"], "row 1: lat is out of range: latitude and longitude look interchanged"),
        (["--at", "35.7,139.7", "-o", "none/out.csv"], "none"),
    ],
)
def test_mistakes(city: Path, arguments: list[str], message: str) -> None:
    Path("x.csv").write_text("x,y\n1,2\n")
    Path("bad.csv").write_text("lat,lon\nnorth,2\n")
    Path("far.csv").write_text("lat,lon\n100,2\n")
    result = run("sample", city, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr.replace("\n", " ")
    assert result.stdout == ""


def test_names_have_no_place(made: Path) -> None:
    with pytest.raises(
        InputError, match=r"--at: gives a place, but the secrets have no places.* Give the secret with --secret"
    ):
        locate_secrets(md.Domain.from_labels(["a", "b"]), (1.0, 2.0), None)
    result = run("export", made, "--format", "geojson", "-o", "f.geojson")
    assert result.exit_code == 2
    assert "have no latitude and longitude, which GeoJSON needs" in result.stderr
    assert not Path("f.geojson").exists()


def test_the_map_holds_cells_prior_and_answers(city: Path) -> None:
    assert run("export", city, "-o", "f.geojson").exit_code == 0
    found = json.loads(Path("f.geojson").read_text())
    assert (found["type"], found["title"], len(found["features"])) == ("FeatureCollection", "Tokyo", 12)
    channel, area = md.Channel.load(city), 0.0
    for index, feature in enumerate(found["features"]):
        properties = feature["properties"]
        assert properties["index"] == index
        assert properties["prior"] == pytest.approx(1 / 12)
        assert properties["answer_probability"] == pytest.approx(channel.matrix[:, index].mean())
        ring = feature["geometry"]["coordinates"][0]
        assert ring[0] == ring[-1]
        signed = sum(a[0] * b[1] - b[0] * a[1] for a, b in itertools.pairwise(ring)) / 2
        # Counter-clockwise, as RFC 7946 wants it.
        assert signed > 0
        area += signed
    assert area == pytest.approx(0.2 * 0.3)


def test_answers_are_told_from_places(made):
    Path("places.csv").write_text("x,y\n0.5,0.5\n")
    assert run("sample", made, "--input", "places.csv", "-o", "answers.csv").exit_code == 0
    assert "not true places" in run("sample", made, "--input", "answers.csv", "-o", "again.csv").stderr
    assert "not true places" not in run("sample", made, "--input", "places.csv", "-o", "once.csv").stderr


@pytest.mark.parametrize("options", [("--secret", "0", "--outside", "nearest"), ("--at", "0.5,0.5", "--latitude", "x")])
def test_options_of_other_places_are_refused(made, options):
    result = run("sample", made, *options)
    assert result.exit_code == 2
    assert "goes with" in result.stderr


def test_a_file_is_no_folder_to_sample_from(made):
    assert "channel.csv: is a file; must be a folder" in run("sample", made / "channel.csv", "--secret", "0").stderr
