"""`mechdesign init`: from raw data to a specification that is designed as it is, and what is noticed in data."""

from __future__ import annotations

import gzip
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md
from mechdesign.specification._origin import without_comments


def checkins(count: int = 400) -> list[tuple[str, float, float, str]]:
    """Return user, latitude, longitude and time of people about a town, and a few far away."""
    generator = np.random.default_rng(2)
    start = np.datetime64("2021-03-01T06:00:00")
    rows = []
    for index in range(count):
        far = index % 40 == 0
        latitude, longitude = generator.normal([48.2, 16.37], 0.03) if not far else (35.0, 139.0)
        rows.append((f"u{index % 3}", latitude, longitude, f"{start + np.timedelta64(120 * index, 's')}Z"))
    return rows


ROWS = checkins()
RNG = np.random.default_rng(1)
CITY = RNG.normal([35.68, 139.75], 0.03, (300, 2))
COUNTRY = RNG.uniform([31, 130], [44, 144], (255, 2))


def table(name: str, header: str, rows: list[str], compress: bool = False) -> None:
    content = "\n".join([header, *rows, ""]).encode()
    Path(name).write_bytes(gzip.compress(content) if compress else content)


@pytest.fixture
def data() -> str:
    table("data.csv", "User ID,Lat,Lng,UTC time", [f"{u},{a:.6f},{o:.6f},{t}" for u, a, o, t in ROWS])
    return "data.csv"


def init(*parts: object, cells: int = 64) -> tuple[str, str]:
    """Write points of one person, propose a specification for them, and return it and what was said."""
    places = np.vstack([np.atleast_2d(np.asarray(part, dtype=float)) for part in parts])
    table("points.csv", "latitude,longitude", [f"{a:.6f},{o:.6f}" for a, o in places.tolist()])
    Path("made.toml").unlink(missing_ok=True)
    found = well("init", "points.csv", "--user", "", "-o", "made.toml", "--cells", cells)
    return Path("made.toml").read_text(), flat(found.stderr)


def proposed(name: str = "made.toml") -> Any:
    return md.read_spec(name).problem()


# --- proposals ---


def test_a_proposal_is_designed_and_exported_without_its_prior(data: str, blank_pictures: None) -> None:
    well("init", data, "--cells", 9, "-o", "made.toml")
    given = md.read_spec("made.toml")
    box = given.domain.geographic
    assert box.south < 48.2 < box.north < box.south + 0.2
    assert box.west < 16.37 < box.east
    problem = given.problem()
    assert 6 <= problem.secrets.size <= 12
    assert [each.kind for each in problem.requirements] == ["metric"]
    assert "points outside the box are left out, 10% of all" in " ".join(given.notes)
    well("design", "made.toml", "-o", "made", "--no-report")
    well("export", "made", "--without-prior", "-o", "public")
    assert md.verify("public").holds


def test_epsilon_is_ln_4_over_the_width_of_a_cell_and_not_more(data: str) -> None:
    for cells in (4, 9, 64, 400):
        Path("made.toml").unlink(missing_ok=True)
        well("init", data, "--cells", cells, "-o", "made.toml")
        problem = proposed()
        grid = problem.secrets.cells
        width = max(grid.width / grid.columns, grid.height / grid.rows)
        assert 0.9 * math.log(4) < problem.requirements[0].epsilon * width <= math.log(4)
        # The comment states no smaller factor of the odds than what is kept.
        stated = re.search(r"exp\((\S+) ε\)", Path("made.toml").read_text())
        assert stated is not None
        assert width <= float(stated[1]) <= 1.01 * width


def test_the_floor_that_is_shown_can_be_added(data: str) -> None:
    well("init", data, "--cells", 9, "-o", "made.toml")
    text = Path("made.toml").read_text()
    write(re.sub(r"^# (\[\[privacy\]\]|kind =|minimum =|distance =)", r"\1", text, flags=re.MULTILINE), "floor.toml")
    assert [each.kind for each in proposed("floor.toml").requirements] == ["metric", "distortion"]


@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning")
def test_a_proposal_of_anchors_is_designed_as_it_is(data: str) -> None:
    well("init", data, "--cells", 9, "-o", "cells.toml")
    well("init", data, "--cells", 9, "--anchors", "-o", "made.toml")
    cells, given = proposed("cells.toml"), proposed()
    assert given.observables.points.tolist() == cells.secrets.points.tolist()
    lattice, grid = given.secrets.lattice, cells.secrets.cells
    assert (lattice.columns, lattice.rows) == (grid.columns + 1, grid.rows + 1)
    assert [each.kind for each in given.requirements] == ["continuous"]
    assert given.requirements[0].epsilon == cells.requirements[0].epsilon
    assert md.read_spec("made.toml").design().certificate.holds


def test_a_proposal_names_columns_and_data_and_no_user_and_no_folder_above(data: str, tmp_path: Path) -> None:
    shown = well("init", data, "--cells", 9).stdout
    well("init", data, "--cells", 9, "-o", "made.toml")
    assert shown == Path("made.toml").read_text(encoding="utf-8")
    lines = [line.partition("  # ")[0] for line in shown.splitlines()]
    for line in ('user = "User ID"', 'latitude = "Lat"', 'longitude = "Lng"', 'time = "UTC time"', 'path = "data.csv"'):
        assert line in lines
    # In another folder, the data are where they were.
    Path("specs").mkdir()
    well("init", tmp_path / data, "--cells", 9, "-o", tmp_path / "specs" / "made.toml")
    text = Path("specs/made.toml").read_text(encoding="utf-8")
    assert {'path = "../data.csv"', 'title = "Points of data"'} <= set(text.splitlines())
    assert '# only = "…"' in text
    assert not any(secret in text for secret in ("u0", "u1", "u2", str(tmp_path)))
    assert proposed("specs/made.toml").secrets.size >= 6
    # A wrong user is refused without naming others.
    write(shown.replace('# only = "…"', 'only = "zoe"'), "zoe.toml")
    says = "prior.checkins.only: is not a user; found 'zoe'; must be one of the 3 users in the data"
    assert_wrong_usage({"design zoe.toml -o out": says})


def test_parquet_is_read() -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    columns = {name: [row[place] for row in ROWS] for place, name in enumerate(("user", "latitude", "longitude"))}
    parquet.write_table(arrow.table(columns), "data.parquet")
    well("init", "data.parquet", "--cells", 9, "-o", "made.toml")
    assert proposed().secrets.size >= 6


def test_a_folder_of_trajectories_is_read() -> None:
    rows = [f"{a:.6f},{o:.6f},0,492,39744.25,2008-10-23,06:{k:02}:00" for k, (_, a, o, _) in enumerate(ROWS[1:40])]
    write(
        "\n".join([*["header"] * 6, *rows, "lost,16.3,0,492,39744.25,2008-10-23,07:00:00"]), "plt/ada/Trajectory/1.plt"
    )
    found = well("init", "plt", "--missing", 0.1, "--cells", 9, "-o", "made.toml")
    assert "1 row is left out: 1 with a place that cannot be read" in flat(found.stderr)
    text = Path("made.toml").read_text()
    assert "missing = 0.1  # given by --missing" in text
    assert "ada" not in text
    assert proposed().secrets.size >= 6


def test_the_box_crosses_the_meridian_of_180_degrees() -> None:
    places = [(-16.8 + index / 1000, 179.99 if index % 3 else -179.99) for index in range(60)]
    _, said = init(places, cells=9)
    assert "0 points inside" not in said
    box = md.read_spec("made.toml").domain.geographic
    assert box.west < 180 < box.east < box.west + 0.1


# --- people ---

PEOPLE = "user device_id MMSI individual-local-identifier vehicle_id imei participant subject_id phone card_id"
PLACES = [(46.951, 7.441), (46.962, 7.452), (46.973, 7.463)]


def rounds(column: str) -> None:
    """Write the rows of three people who go round three places, each at the same steps."""
    rows = [
        f"2024-05-01T{8 + k // 12:02d}:{5 * (k % 12):02d}:{20 * u:02d}Z,{4711 + u},{a},{o}"
        for k in range(20)
        for u in range(3)
        for a, o in [PLACES[(k + u) % 3]]
    ]
    table("p.csv", f"time,{column},lat,lon", rows)


def test_the_points_of_people_are_not_joined_whatever_their_column_is_called() -> None:
    for name in [*PEOPLE.split(), "animal_id", "agentID", "rider"]:
        rounds(name)
        Path("p.toml").unlink(missing_ok=True)
        well("init", "p.csv", "-o", "p.toml", "--cells", "9")
        assert f'user = "{name}"' in Path("p.toml").read_text(), name
    said = well("chain", "p.toml", "-o", "chain")
    assert "57 steps of 3 user(s) counted" in flat(said.output)
    # The next place is always known, so that no budget holds for ever.
    line = "budget --alpha 1 --backward chain/backward.csv --forward chain/forward.csv"
    assert_wrong_usage({line: "--alpha: leaves no budget for releases without an end"})


def test_a_file_without_people_is_asked_about_and_what_is_answered_is_written() -> None:
    for name, says in (
        ("id", "id may be people"),
        ("name", "name may be people"),
        ("speed", "names no column of people"),
    ):
        rounds(name)
        assert f'line 1: {says}. Name it: --user COLUMN, or --user ""' in flat(run("init", "p.csv").stderr), name
    shown = well("init", "p.csv", "--user", "", "--cells", 9).stdout
    assert "user = false  # given by --user: all rows are one person's" in shown


# --- what is noticed ---


def test_what_looks_wrong_in_data_is_told() -> None:
    assert "every point has the same latitude" in init([(48.25, o) for _, _, o, _ in ROWS], cells=9)[0]
    # Smoothing above what was counted.
    text, _ = init(CITY, cells=9)
    assert "hardly depends on the data" not in " ".join(md.read_spec("made.toml").notes)
    write(text.replace("smoothing = 0.01", "smoothing = 1000"), "smooth.toml")
    assert "prior.smoothing: 1000, added to each" in " ".join(md.read_spec("smooth.toml").notes)


def test_points_at_zero_zero_are_told_and_do_not_make_the_box() -> None:
    for zeros in (1, 130):
        text, said = init(CITY, np.zeros((zeros, 2)), cells=16)
        words = f"points at 0,0, which often means a missing place: {zeros}"
        assert words in said
        assert words in text
        box = md.read_spec("made.toml").domain.geographic
        assert 35 < box.south < 35.68 < box.north < 36
    assert "at 0,0" not in init(CITY, cells=16)[1]


def test_a_box_that_leaves_most_out_and_a_place_that_holds_most_are_told() -> None:
    text, said = init(COUNTRY, cells=16)
    assert "of 255 points, fewer than the 20 that a prior needs: the other points are far away" in said
    assert "# contains 1 of 255." in text or "# contains 2 of 255." in text
    # Of the points in the city, all but a few are in its box.
    for many, told in ((200, False), (400, True)):
        assert ("the other points are far away" in init(CITY, np.resize(COUNTRY, (many, 2)), cells=16)[1]) == told
        one_place = init(CITY, np.tile([[35.69, 139.69]], (many, 1)), cells=16)[1]
        assert ("points in the box are at exactly one place" in one_place) == told


# --- a table of places ---


def visits(header: str = "poiID,name,poiLat,poiLon", key: str = "poiID", place: str = "poiID") -> None:
    columns = header.split(",")
    values = [dict(zip(columns[2:], map(str, point), strict=True)) | {key: f"p{k}"} for k, point in enumerate(CITY)]
    table("places.csv", header, [",".join(each.get(column, "x") for column in columns) for each in values])
    table("visits.csv", f"user,{place}", [f"u{k % 3},p{k * 7 % 300}" for k in range(200)])


def test_a_table_of_places_is_joined() -> None:
    named = ("--key", "wo", "--latitude", "hoch", "--longitude", "quer")
    Path("specs").mkdir()
    for names, options in (
        ((), ()),
        (("id,name,lat,lon", "id", "venueId"), ()),
        (("wo,name,hoch,quer", "wo", "wo"), named),
        (("code,name,lat,lon", "code", "where"), ("--key", "code", "--place", "where")),
    ):
        visits(*names)
        line = ("init", "visits.csv", "--places", "places.csv", "--cells", 9, "-o", "specs/made.toml")
        Path("specs/made.toml").unlink(missing_ok=True)
        well(*line, *options)
        assert 'path = "../places.csv"' in Path("specs/made.toml").read_text()
        given = md.read_spec("specs/made.toml")
        assert 6 <= given.problem().secrets.size <= 12
        assert any(note.endswith(" points of 3 user(s) counted") for note in given.notes)


# --- wrong usage ---


def test_wrong_usage(data: str) -> None:
    visits()
    table("few.csv", "user,latitude,longitude", [f"{u},{a},{o}" for u, a, o, _ in ROWS[:19]])
    table("enough.csv", "user,latitude,longitude", [f"{u},{a},{o}" for u, a, o, _ in ROWS[:20]])
    table("zeros.csv", "user,latitude,longitude", ["u,0.5,0.5"] * 19 + ["u,0,0"] * 50)
    table("cut.csv.gz", "uid,lat,lon", ["u,48,16"] * 99, True)
    Path("cut.csv.gz").write_bytes(Path("cut.csv.gz").read_bytes()[:40])
    write("mine", "mine.toml")
    joined = "init visits.csv --places places.csv"
    assert_wrong_usage(
        {
            "init data.csv -o mine.toml": "mine.toml already exists, and is not replaced: choose another name",
            "init cut.csv.gz": "cut.csv.gz: is not a whole gzip file",
            "init none.csv": "cannot be opened",
            "init data.csv --cells 3": "--cells: is out of range; found 3; must be between 4 and 2500",
            "init data.csv --encoding none": "--encoding: is not an encoding",
            "init data.csv --missing 2": "--missing: is not a share",
            "init data.csv --time-format %Q": "--time-format: ",
            "init few.csv": "has too few points other than 0,0 to propose a grid; found 19; must be at least 20",
            "init zeros.csv": "has too few points other than 0,0 to propose a grid; found 19; must be at least 20",
            "init . --user u": "--user: is for tables",
            "init visits.csv": "the table that poiID refers to: --places FILE",
            "init visits.csv --place poiID": "--place: is for a table of places",
            "init visits.csv --places none.csv": "none.csv: cannot be opened",
            f"{joined} --key nope": "--key: is not a column of places.csv; found 'nope'",
            f"{joined} --place nope": "--place: is not a column of visits.csv; found 'nope'",
            f"{joined} --latitude nope": "--latitude: is not a column of places.csv; found 'nope'",
            "init visits.csv --places visits.csv": "visits.csv, line 1: names no latitude",
            f"{joined} -o places.csv": "places.csv already exists",
            "init visits.csv -o visits.csv": "visits.csv already exists",
        }
    )
    well("init", "enough.csv", "--cells", 9)


# --- comments ---

COMMENTS = (
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
)


def test_comments_stay_out_of_what_is_exported(blank_pictures: None) -> None:
    for text, kept in COMMENTS:
        assert without_comments(text) == kept
    text = '# for ann\ntitle = "No. #1"  # and bob\ndomain.grid = { columns = 2, rows = 1, width = 2, height = 1 }\n'
    text += '\n# of ann\n\nprior.uniform = true\ncost.distance = "euclidean"\n'
    text += "privacy = [ # carl\n{ kind = 'metric', epsilon = 1, distance = \"euclidean\" }]"
    well("design", write(text, "made.toml"), "-o", "out")
    for name in ("certificate.json", "report.html"):
        kept = Path("out", name).read_text(encoding="utf-8")
        assert "No. #1" in kept
        assert not any(person in kept for person in ("for ann", "of ann", "bob", "carl"))
    # A specification that differs in comments replaces it.
    well("design", write(text.replace("ann", "dora"), "other.toml"), "-o", "out", "--no-report")
