"""From raw data to a specification that is designed as it is, and to the matrices of its chain."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.data._movement import read_checkins
from mechdesign.specification._origin import without_comments


def checkins(seed: int = 2, count: int = 400) -> list[tuple[str, float, float, str]]:
    """Return user, latitude, longitude and time of people about a town, and a few far away."""
    generator = np.random.default_rng(seed)
    start = np.datetime64("2021-03-01T06:00:00")
    rows = []
    for index in range(count):
        far = index % 40 == 0
        latitude, longitude = generator.normal([48.2, 16.37], 0.03) if not far else (35.0, 139.0)
        rows.append((f"u{index % 3}", latitude, longitude, f"{start + np.timedelta64(120 * index, 's')}Z"))
    return rows


def write(path: Path, header: str, rows: list[str], compress: bool = False) -> None:
    content = "\n".join([header, *rows, ""]).encode()
    path.write_bytes(gzip.compress(content) if compress else content)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = checkins()
    write(tmp_path / "data.csv", "User ID,Lat,Lng,UTC time", [f"{u},{a:.6f},{o:.6f},{t}" for u, a, o, t in rows])
    write(tmp_path / "data.tsv.gz", "uid\tlongitude\tlatitude", [f"{u}\t{o}\t{a}" for u, a, o, _ in rows], True)
    write(tmp_path / "nobody.csv", "lat;lon", [f"{a};{o}" for _, a, o, _ in rows])
    write(tmp_path / "swapped.csv", "user,latitude,longitude", [f"{u},{min(o + 80, 170)},{a}" for u, a, o, _ in rows])
    write(tmp_path / "bare.csv", "u1,48.1,16.2", ["u2,48.2,16.3"])
    write(tmp_path / "whole.csv", "latitude,longitude", [f"{round(a)},{o}" for _, a, o, _ in rows])
    write(tmp_path / "few.csv", "latitude,longitude", [f"{a},{o}" for _, a, o, _ in rows[:19]])
    hours = [f"{a},{o},{index % 24}" for index, (_, a, o, _) in enumerate(rows)]
    write(tmp_path / "hours.csv", "latitude,longitude,time", hours)
    for name in ("one", "two"):
        (tmp_path / "sets" / name / "000" / "Trajectory").mkdir(parents=True)
        (tmp_path / "sets" / name / "000" / "Trajectory" / "a.plt").write_text("")
    write(tmp_path / "other.csv", "name,value", ["a,1"])
    (tmp_path / "latin.csv").write_bytes("user,latitude,longitude\nJörg,48,16\n".encode("latin-1"))
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "data.tsv.gz").read_bytes()[:200])
    (tmp_path / "archive.csv").write_bytes(b"PK\x03\x04 and so on")
    return tmp_path


@pytest.mark.parametrize("name", ["data.csv", "data.tsv.gz", "nobody.csv"])
def test_a_proposal_is_designed_as_it_is(folder: Path, name: str) -> None:
    found = run("init", name, "--cells", 9, "-o", "made.toml")
    assert found.exit_code == 0, found.output
    given = md.read_spec(folder / "made.toml")
    problem = given.problem()
    box = problem.secrets.geographic
    assert box.south < 48.2 < box.north
    assert box.west < 16.37 < box.east
    assert box.north - box.south < 0.2
    assert 6 <= problem.secrets.size <= 12
    assert given.design().certificate.holds
    assert "10 points outside the box are left out" in " ".join(given.notes) or problem.prior.size


@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning")
def test_a_proposal_of_anchors_is_designed_as_it_is(folder: Path) -> None:
    assert run("init", "data.csv", "--cells", 9, "-o", "cells.toml").exit_code == 0
    found = run("init", "data.csv", "--cells", 9, "--anchors", "-o", "made.toml")
    assert found.exit_code == 0, found.output
    cells, given = (md.read_spec(folder / name).problem() for name in ("cells.toml", "made.toml"))
    assert given.observables.points.tolist() == cells.secrets.points.tolist()
    lattice, grid = given.secrets.lattice, cells.secrets.cells
    assert (lattice.columns, lattice.rows) == (grid.columns + 1, grid.rows + 1)
    assert [each.kind for each in given.requirements] == ["continuous", "distortion"]
    assert given.requirements[0].epsilon == cells.requirements[0].epsilon
    assert md.read_spec(folder / "made.toml").design().certificate.holds
    text = (folder / "made.toml").read_text()
    assert "Coarse anchors may cost more." in text
    assert "Places on both sides of a border" not in text


def test_a_proposal_on_standard_output_is_the_same(folder: Path) -> None:
    shown = run("init", "data.csv", "--cells", 9)
    run("init", "data.csv", "--cells", 9, "-o", "made.toml")
    assert shown.stdout == (folder / "made.toml").read_text(encoding="utf-8")
    for line in ('user = "User ID"', 'latitude = "Lat"', 'longitude = "Lng"', 'time = "UTC time"', 'path = "data.csv"'):
        assert line in shown.stdout.splitlines()
    # In another folder, the data are where they were.
    (folder / "specs").mkdir()
    run("init", "data.csv", "--cells", 9, "-o", "specs/made.toml")
    assert md.read_spec(folder / "specs" / "made.toml").problem().secrets.size >= 6


def test_an_older_specification_is_kept(folder: Path) -> None:
    (folder / "mine.toml").write_text("mine")
    found = run("init", "data.csv", "-o", "mine.toml")
    assert (found.exit_code, (folder / "mine.toml").read_text()) == (2, "mine")
    assert "--overwrite" in found.stderr
    assert run("init", "data.csv", "-o", "mine.toml", "--overwrite").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["swapped.csv"], "latitude and longitude look interchanged"),
        (["bare.csv"], "has no header line"),
        (["other.csv"], "no column that looks like a latitude"),
        (["other.csv", "--latitude", "height"], "--latitude: is not a column"),
        (["latin.csv"], "is not a text in UTF-8"),
        (["cut.csv.gz"], "is compressed by gzip and damaged"),
        (["archive.csv"], "is a ZIP archive"),
        (["none.csv"], "cannot be opened"),
        (["data.csv", "--cells", "3"], "--cells: is out of range; found 3; must be between 4 and 2500"),
        (["data.csv", "--cells", "0"], "--cells: is out of range"),
        (["data.csv", "--latitude", "Lat", "--longitude", "Lat"], "is also the column of --latitude; found 'Lat'"),
        (["whole.csv"], "column latitude: contains only whole numbers"),
        (["few.csv"], "too few points to propose a grid; found 19; must be at least 20"),
        (["sets"], "one of its subfolders with trajectories: one, two"),
        (["hours.csv", "--time", "time"], "line 2: time is a number, but as seconds since 1970 it is before 1980"),
        (["hours.csv", "--time", "time", "--time-format", "unix"], "--time: is within a day of 1970-01-01"),
    ],
)
def test_wrong_data(folder: Path, arguments: list[str], words: str) -> None:
    found = run("init", *arguments)
    assert found.exit_code == 2, found.output
    assert words in found.stderr


def test_parquet(folder: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    rows = checkins()
    names = ("user", "latitude", "longitude", "time")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    parquet.write_table(arrow.table(columns), folder / "data.parquet")
    found = read_checkins(folder / "data.parquet", time="time")
    again = read_checkins(folder / "data.csv", "User ID", "Lat", longitude="Lng", time="UTC time")
    assert [trace.user for trace in found] == [trace.user for trace in again]
    for one, other in zip(found, again, strict=True):
        np.testing.assert_allclose(one.latitude, other.latitude, atol=1e-6)
        np.testing.assert_array_equal(one.time, other.time)
    assert run("init", "data.parquet", "--cells", 9, "-o", "made.toml").exit_code == 0
    assert md.read_spec(folder / "made.toml").problem().secrets.size >= 6


def test_places_joined_by_key(folder: Path) -> None:
    write(folder / "places.csv", "id,lat,lon", ["p1,48.2,16.3", "p2,48.3,16.4"])
    write(folder / "visits.csv", "user,venue", ["a,p1", "a,p2", "b,p1"])
    box = "domain.grid = { columns = 2, rows = 1, south = 48.1, north = 48.4, west = 16.25, east = 16.45 }"
    where = '{ path = "places.csv", key = "id", latitude = "lat", longitude = "lon" }'
    text = (
        f'{box}\nprior.checkins = {{ path = "visits.csv", place = "venue", places = {where} }}\ncost.distance = '
        '"euclidean"\nprivacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]'
    )
    np.testing.assert_allclose(md.specification.parse(text, folder).problem().prior, [2 / 3, 1 / 3])
    write(folder / "places.csv", "id,lat,lon", ["p1,48.2,16.3"])
    with pytest.raises(md.errors.SpecificationError, match="line 3 venue is not in the table of places; found a9"):
        md.specification.parse(text, folder).problem()
    with pytest.raises(md.errors.SpecificationError, match=r"prior\.checkins\.places: is missing"):
        md.specification.parse(text.replace(f", places = {where}", ""), folder).problem()


def test_the_chain_of_data(folder: Path) -> None:
    assert run("init", "data.csv", "--cells", 9, "-o", "made.toml").exit_code == 0
    found = run("chain", "made.toml", "-o", "matrices", "--every", "10 min")
    assert found.exit_code == 0, found.output
    assert "resampled to one every 10 min" in found.stderr
    forward, backward = (
        np.loadtxt(folder / "matrices" / f"{name}.csv", delimiter=",") for name in ("forward", "backward")
    )
    states = (folder / "matrices" / "states.csv").read_text().splitlines()
    assert len(states) == len(forward) + 1 == len(backward) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert md.leakage.temporal([0.1, 0.1], backward, forward).max() <= 0.2
    shown = run("leakage", "matrices/backward.csv", "--forward", "matrices/forward.csv", "--epsilon", 0.1, "--steps", 3)
    assert (shown.exit_code, shown.stderr) == (0, "")
    smoothed = run("chain", "made.toml", "-o", "all", "--smoothing", 0.1)
    assert smoothed.exit_code == 0
    assert len((folder / "all" / "states.csv").read_text().splitlines()) == md.read_spec("made.toml").domain.size + 1


def test_the_chain_of_a_release(folder: Path) -> None:
    text = "domain.grid = { columns = 2, rows = 2, width = 2, height = 2 }\nprior.uniform = true"
    text += '\ncost.distance = "euclidean"'
    text += '\nprivacy = [{ kind = "graph", epsilon = 1, blocks = 2 }]\nrelease.transition = { neighbours = 4 }'
    (folder / "walk.toml").write_text(text)
    assert run("chain", "walk.toml").exit_code == 0
    forward, backward = (
        np.loadtxt(folder / "chain" / f"{name}.csv", delimiter=",") for name in ("forward", "backward")
    )
    # A walk on a graph is its own reverse.
    np.testing.assert_allclose(forward, backward, atol=1e-15)
    (folder / "walk.toml").write_text(text.split("\nrelease")[0])
    refused = run("chain", "walk.toml")
    assert refused.exit_code == 2
    assert "prior: does not come from data in order of time" in refused.stderr


def test_a_proposal_names_no_user_and_no_folder_above(folder: Path) -> None:
    (folder / "specs").mkdir()
    assert run("init", folder / "data.csv", "--cells", 9, "-o", folder / "specs" / "made.toml").exit_code == 0
    text = (folder / "specs" / "made.toml").read_text(encoding="utf-8")
    assert 'path = "../data.csv"' in text.splitlines()
    assert '# only = "…"' in text
    assert 'title = "Points of data"' in text.splitlines()
    for secret in ("u0", "u1", "u2", str(folder)):
        assert secret not in text
    assert md.read_spec(folder / "specs" / "made.toml").problem().secrets.size >= 6


def test_comments_stay_out_of_what_is_exported(folder: Path) -> None:
    text = '# for ann\ntitle = "No. #1"  # and bob\ndomain.grid = { columns = 2, rows = 1, width = 2, height = 1 }\n'
    text += '\n# of ann\n\nprior.uniform = true\ncost.distance = "euclidean"\n'
    text += "privacy = [ # carl\n{ kind = 'metric', epsilon = 1, distance = \"euclidean\" }]"
    (folder / "made.toml").write_text(text)
    assert run("design", "made.toml", "-o", "out").exit_code == 0
    for name in ("certificate.json", "report.html"):
        kept = (folder / "out" / name).read_text(encoding="utf-8")
        assert "No. #1" in kept
        assert not any(person in kept for person in ("for ann", "of ann", "bob", "carl"))
    # The same specification again replaces it, and so does one that differs in comments.
    (folder / "other.toml").write_text(text.replace("ann", "dora"))
    assert run("design", "other.toml", "-o", "out", "--no-report").exit_code == 0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("a = 1", "a = 1"),
        ("a = 1\n\n\nb = 2\n", "a = 1\n\n\nb = 2\n"),
        ("a = 1 # x", "a = 1"),
        ("# x", ""),
        ("a = 1\n\n# x\n# y\n\nb = 2\n", "a = 1\n\nb = 2\n"),
        ('a = "\\"# no" # x', 'a = "\\"# no"'),
        ("a = '# no \\' # x", "a = '# no \\'"),
        ('a = """\n# no\n"" # no\n""""" # x', 'a = """\n# no\n"" # no\n"""""'),
        ("a = '''\n# no\n\n'# no''''' # x", "a = '''\n# no\n\n'# no'''''"),
        ('"a#" = [ # x\n  1, # y\n  nan ]', '"a#" = [\n  1,\n  nan ]'),
        ('a = "" # "x"\nb = """""" # \'\nc = 3', 'a = ""\nb = """"""\nc = 3'),
    ],
)
def test_comments_are_left_out_and_strings_are_not(text: str, kept: str) -> None:
    assert without_comments(text) == kept


def test_hours_are_no_times(folder: Path) -> None:
    found = run("init", "hours.csv", "--cells", 9)
    assert found.exit_code == 0, found.output
    assert (
        "the column time is not read: line 2: time is a number, but as seconds since 1970 it is before 1980"
        in " ".join(found.stderr.split())
    )
    assert "time =" not in found.stdout
    assert "# every" not in found.stdout


def test_nineteen_points_are_too_few_and_twenty_are_not(folder: Path) -> None:
    write(folder / "enough.csv", "latitude,longitude", [f"{a},{o}" for _, a, o, _ in checkins()[:20]])
    assert run("init", "enough.csv", "--cells", 9).exit_code == 0


def test_a_box_across_the_meridian_of_180_degrees_is_proposed(folder: Path) -> None:
    places = [(-16.8 + index / 1000, 179.99 if index % 3 else -179.99) for index in range(60)]
    write(folder / "fiji.csv", "latitude,longitude", [f"{a},{o}" for a, o in places])
    found = run("init", "fiji.csv", "--cells", 9, "-o", "fiji.toml")
    assert found.exit_code == 0, found.output
    assert "0 points inside" not in found.stderr
    box = md.read_spec(folder / "fiji.toml").domain.geographic
    assert box is not None
    assert box.west < 180 < box.east < box.west + 0.1
    # The same places, from 0 to 360 degrees.
    write(folder / "fiji.csv", "latitude,longitude", [f"{a},{o % 360:.2f}" for a, o in places])
    found = run("init", "fiji.csv", "--cells", 9)
    assert "20 of 60 values in longitude are beyond 180 degrees" in " ".join(found.stderr.split())
    assert f"east = {box.east!r}" in found.stdout
    refused = run("init", "fiji.csv", "--longitudes", "180")
    assert (refused.exit_code, "20 of 60 rows would be left out" in refused.stderr) == (2, True)


@pytest.mark.filterwarnings("always::mechdesign.errors.InterchangedWarning")
def test_interchanged_places_that_are_possible_are_doubted(folder: Path) -> None:
    write(folder / "ice.csv", "latitude,longitude", [f"{-74 + k / 1000},{40.7 + k / 1000}" for k in range(60)])
    found = run("init", "ice.csv", "--cells", 9)
    assert found.exit_code == 0, found.output
    assert " ".join(found.stderr.split()).count("latitude and longitude look interchanged") == 1


def test_a_column_that_is_constant_is_told(folder: Path) -> None:
    write(folder / "line.csv", "latitude,longitude", [f"48.25,{o}" for _, _, o, _ in checkins()])
    found = run("init", "line.csv", "--cells", 9)
    assert found.exit_code == 0, found.output
    assert "every point has the same latitude" in found.stdout


def test_smoothing_above_what_was_counted_is_told(folder: Path) -> None:
    assert run("init", "data.csv", "--cells", 9, "-o", "made.toml").exit_code == 0
    text = (folder / "made.toml").read_text(encoding="utf-8")
    given = md.read_spec(folder / "made.toml")
    assert "hardly depends on the data" not in " ".join(given.notes)
    (folder / "made.toml").write_text(text.replace("smoothing = 0.01", "smoothing = 1000"), encoding="utf-8")
    assert "prior.smoothing: 1000, added to each" in " ".join(md.read_spec(folder / "made.toml").notes)


def test_a_wrong_user_is_refused_without_naming_others(folder: Path) -> None:
    assert run("init", "data.csv", "--cells", 9, "-o", "made.toml").exit_code == 0
    text = (folder / "made.toml").read_text(encoding="utf-8").replace('# only = "…"', 'only = "zoe"')
    (folder / "made.toml").write_text(text, encoding="utf-8")
    found = run("design", "made.toml", "-o", "out")
    assert found.exit_code == 2
    assert "prior.checkins.only: is not a user; found 'zoe'" in found.stderr
    assert not any(name in found.stderr for name in ("u0", "u1", "u2"))
