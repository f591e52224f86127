"""What commands say of data: the order of points in time, files of other formats, and never a list of true places."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md

PLACES = ((46.9512, 7.4391), (46.9561, 7.4472), (46.9604, 7.4555))
# In a circle, every hour: 0, 1, 2, 0 and so on, the newest first.
POINTS = [
    (f"2023-03-{1 + k // 10:02d} {8 + k % 10:02d}:10:00", f"{PLACES[k % 3][0]},{PLACES[k % 3][1]}")
    for k in reversed(range(60))
]
SAID = "in the order of the file"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def chain(header: str, rows: list[str], *options: str) -> tuple[str, str, str]:
    """Return the matrix that is counted in a table, and what `init` and `chain` say."""
    Path("points.csv").write_text("\n".join([header, *rows, ""]), encoding="utf-8")
    made = run("init", "points.csv", "--cells", 9, "-o", "points.toml", "--overwrite", *options)
    assert made.exit_code == 0, made.output
    found = run("chain", "points.toml")
    assert found.exit_code == 0, found.output
    return Path("chain/forward.csv").read_text(encoding="utf-8"), made.stderr, found.stderr


FORWARD = "0.0,1.0,0.0\n0.0,0.0,1.0\n1.0,0.0,0.0\n"


@pytest.mark.parametrize("name", ["time", "tracked_at", "Date and Time", "stamp"])
@pytest.mark.parametrize("form", ["{}", "{} UTC", "{} +0000"])
def test_points_with_the_newest_first_are_put_in_order(name: str, form: str) -> None:
    rows = [f"p,{form.format(time)},{place}" for time, place in POINTS]
    matrix, made, found = chain(f"user,{name},lat,lon", rows, *(["--time", "stamp"] if name == "stamp" else []))
    assert matrix == FORWARD
    for said in (made, found):
        assert "times from 2023-03-01 08:10:00 to 2023-03-06 17:10:00 (UTC): points are in the order of their" in said
        assert SAID not in said


def test_a_row_without_a_time_is_left_out_and_counted() -> None:
    rows = [f"p,{time},{place}" for time, place in POINTS]
    matrix, made, found = chain("user,time,lat,lon", [*rows, f"p,,{POINTS[0][1]}", f"p,NaT,{POINTS[1][1]}"])
    assert matrix == FORWARD
    assert "2 rows without a time are left out" in made
    assert "prior.checkins: 2 rows without a time are left out" in found
    assert "prior.checkins: 2 rows without a time are left out" in md.read_spec("points.toml").notes


@pytest.mark.parametrize(
    ("header", "form", "words"),
    [
        ("stamp", "{}", "name the column, --time COLUMN, if the time is in one of these: stamp"),
        ("x", "none", SAID),
        (
            "time",
            "about {}",
            "the column time is not read: line 2: time is not a time; found aaaaa 9999-99-99 99:99:99",
        ),
    ],
)
def test_the_order_of_the_file_is_said(header: str, form: str, words: str) -> None:
    rows = [f"p,{form.format(time)},{place}" for time, place in POINTS]
    _, made, found = chain(f"user,{header},lat,lon", rows)
    assert words in made
    assert SAID in made
    assert f"prior.checkins: no times are read: points are {SAID}" in found
    # The times of people are not kept with the specification, nor with what is designed.
    assert "2023" not in Path("points.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "form", "words"),
    [
        ("time", "{}", "the column time contains times, but was not selected"),
        ("time", "about {}", "the column time is not read: line 2: time is not a time; found aaaaa 9999-99-99"),
        ("stamp", "{}", "name the column, --time COLUMN, if the time is in one of these: stamp"),
    ],
)
def test_a_chain_says_which_times_it_does_not_read(name: str, form: str, words: str) -> None:
    """A specification names no column of times, and the table has one."""
    rows = [f"p,{form.format(time)},{place}" for time, place in POINTS]
    chain(f"user,{name},lat,lon", rows)
    text = Path("points.toml").read_text(encoding="utf-8")
    Path("points.toml").write_text(text.replace(f'time = "{name}"\n', ""), encoding="utf-8")
    found = run("chain", "points.toml")
    assert f"prior.checkins: no times are read: points are {SAID}" in found.stderr
    assert words in " ".join(found.stderr.split())


def test_blank_times_at_the_top_of_a_table_leave_the_column() -> None:
    rows = [f"p,{time},{place}" for time, place in POINTS]
    lines = [*[f"p,,{POINTS[0][1]}"] * 2500, *rows]
    matrix, made, _ = chain("user,time,lat,lon", lines, "--missing", "0.98")
    assert matrix == FORWARD
    assert "missing = 0.98" in Path("points.toml").read_text(encoding="utf-8")
    assert "2500 of 2560 rows would be left out: 2500 without a time" in run("init", "points.csv").stderr
    assert "2500 rows without a time are left out" in made
    _, made, _ = chain("user,time,lat,lon", [f"p,,{place}" for _, place in POINTS] * 5)
    assert "the column time is not read: it contains no times in the first 300 lines" in made
    assert SAID in made


@pytest.mark.parametrize("form", ["%Y%m%d%H", "%Y%m%d%H%M%S", "%d.%m.%Y %H:%M", "unix"])
def test_what_is_said_of_times_is_kept(form: str) -> None:
    moments = [(datetime.fromisoformat(f"{time}+00:00"), place) for time, place in POINTS]
    written = [(str(int(at.timestamp())) if form == "unix" else at.strftime(form), place) for at, place in moments]
    rows = [f"p,{text},{place}" for text, place in written]
    if form == "%d.%m.%Y %H:%M":
        matrix, made, found = chain("user,time,lat,lon", rows)
        assert matrix == FORWARD
        for said in (made, found):
            assert 'the day comes first in time (--time-format "%m.%d.%Y"' in " ".join(said.split())
    elif form != "unix":
        _, made, found = chain("user,time,lat,lon", rows)
        assert "the column time is not read: line 2: time" in made
        assert f'--time-format "{form[:8]}' in made
        assert SAID in found
        assert run("chain", "points.toml", "--time", "time").exit_code == 2
        asked = run("chain", "points.toml", "--time", "time", "--time-format", form)
        assert asked.exit_code == 0, asked.output
        assert Path("chain/forward.csv").read_text(encoding="utf-8") == FORWARD
    matrix, _, found = chain("user,time,lat,lon", rows, "--time-format", form)
    assert matrix == FORWARD
    assert SAID not in found
    assert f"time_format = {json.dumps(form)}" in Path("points.toml").read_text(encoding="utf-8")


def test_a_form_that_does_not_fit_is_refused() -> None:
    Path("points.csv").write_text("user,time,lat,lon\np,20230401,48.1,7.1\n", encoding="utf-8")
    for form, words in (
        ("%d.%m.%Y", "--time-format: does not match any column of times; found '%d.%m.%Y'"),
        ("%c", "--time-format: has %c, which is not supported"),
    ):
        found = run("init", "points.csv", "--time-format", form)
        assert (found.exit_code, words in found.stderr) == (2, True), found.stderr


WALK = """
domain.grid = { columns = 4, rows = 4, width = 4.0, height = 4.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, blocks = 2 }]
[release]
transition = { neighbours = 8 }
every = "1 day"
"""


def test_a_trace_says_its_times() -> None:
    Path("days.toml").write_text(WALK, encoding="utf-8")
    Path("trace.csv").write_text("time,state\n20230401,5\n20230402,6\n20230403,10\n", encoding="utf-8")
    refused = run("release", "days.toml", "trace.csv", "--seed", 1)
    assert refused.exit_code == 2
    assert "trace.csv, line 2: time is a number that may be a date, or seconds since 1970" in refused.stderr
    assert '--time-format "%Y%m%d"' in refused.stderr
    assert not Path("released").exists()
    found = run("release", "days.toml", "trace.csv", "--seed", 1, "--time-format", "%Y%m%d")
    assert found.exit_code == 0, found.output
    assert "trace: times from 2023-04-01 00:00:00 to 2023-04-03 00:00:00 (UTC): steps are in the order" in found.stderr
    assert len(Path("released/released.csv").read_text(encoding="utf-8").split()) == 4
    # In the specification likewise, and nothing of it is published.
    Path("days.toml").write_text(WALK + 'time = "when"\ntime_format = "%Y%m%d"\n', encoding="utf-8")
    Path("trace.csv").write_text("when,state\n20230401,5\nNaT,5\n20230402,6\n", encoding="utf-8")
    refused = run("release", "days.toml", "trace.csv", "--seed", 1, "--overwrite")
    assert (refused.exit_code, "trace.csv, line 3: has no time" in refused.stderr) == (2, True)
    found = run("release", "days.toml", "trace.csv", "--seed", 1, "--overwrite", "--missing", 0.34)
    assert found.exit_code == 0, found.output
    assert "1 row without a time is left out" in found.stderr
    assert not any(b"2023" in path.read_bytes() for path in Path("released").iterdir())
    Path("days.toml").write_text(WALK + 'time_format = "%H"\n', encoding="utf-8")
    assert "release.time_format: has no year" in run("release", "days.toml", "trace.csv").stderr


def test_a_chain_without_check_ins_has_no_times() -> None:
    Path("days.toml").write_text(WALK, encoding="utf-8")
    found = run("chain", "days.toml", "--time-format", "unix")
    assert found.exit_code == 2
    assert "--time-format: applies to check-ins only" in found.stderr


# --- files of other formats, and lists of places -------------------------------------------------------------------

MANY = [(46.95 + k / 10**5, 7.44 + k / 10**5) for k in range(3000)]
SPECIFICATION = """
domain.grid = { columns = 2, rows = 2, south = 46.9, north = 47.1, west = 7.4, east = 7.6 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""
TEXTS = {
    "GeoJSON": json.dumps({"type": "FeatureCollection", "features": [{"coordinates": [b, a]} for a, b in MANY]}),
    "JSON": json.dumps({"locations": [{"latitudeE7": int(a * 1e7), "longitudeE7": int(b * 1e7)} for a, b in MANY]}),
    "JSON lines": "\n".join(json.dumps({"lat": a, "lon": b}) for a, b in MANY),
    "JSON list": json.dumps(MANY, indent=1),
    "GPX": '<?xml version="1.0"?>\n<gpx>' + "".join(f'<trkpt lat="{a}" lon="{b}"/>' for a, b in MANY) + "</gpx>",
    "KML": "<kml><coordinates>" + " ".join(f"{b},{a},0" for a, b in MANY) + "</coordinates></kml>",
    "XML": "<points><point>" + " ".join(f"{b},{a},0" for a, b in MANY) + "</point></points>",
    "NMEA": "".join(f"$GPGGA,120000,{a * 100},N,{b * 100},E,1\n" for a, b in MANY),
}
LISTS = {
    "one line": ",".join(f"{a} {b}" for a, b in MANY),
    "no separator": " ".join(f"{a} {b}" for a, b in MANY),
    "no header": "\n".join(f"{a},{b}" for a, b in MANY),
    "semicolons": "\n".join(f"{a};{b}" for a, b in MANY),
    "a script": f"var points = {json.dumps(MANY)};",
    "a line in a cell": "latitude,longitude\n" + f'"LINESTRING({", ".join(f"{b} {a}" for a, b in MANY)})",7\n',
    "many columns": ",".join(f"column{k}" for k in range(3000)) + "\n",
}


def commands(name: str) -> list[tuple[object, ...]]:
    checkins = f'prior = {{ checkins = {{ path = "{name}", user = "" }}, smoothing = 1 }}'
    counts = f'prior.csv = {{ path = "{name}", column = "count" }}'
    for file, prior in (("checkins.toml", checkins), ("counts.toml", counts)):
        Path(file).write_text(SPECIFICATION.replace("prior.uniform = true", prior), encoding="utf-8")
    Path("walk.toml").write_text(WALK.replace("{ neighbours = 8 }", f'{{ path = "{name}" }}'), encoding="utf-8")
    Path("trace.toml").write_text(WALK, encoding="utf-8")
    return [
        ("init", name),
        ("design", "checkins.toml"),
        ("design", "counts.toml"),
        ("chain", "walk.toml"),
        ("release", "trace.toml", name),
        ("sample", "made", "--input", name),
        ("leakage", name, "--epsilon", 1, "--steps", 2),
        ("budget", "--alpha", 1, "--backward", name, "--cost", name, "--steps", 2),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designs") / "made"
    md.specification.parse(SPECIFICATION).design().save(folder)
    return folder


@pytest.mark.parametrize("name", [*TEXTS, "compressed"])
def test_other_formats_are_named_in_a_line(made: Path, name: str) -> None:
    Path("made").symlink_to(made)
    if name == "compressed":
        Path("p.csv").write_bytes(gzip.compress(TEXTS["GeoJSON"].encode()))
    else:
        Path("p.csv").write_text(TEXTS[name], encoding="utf-8")
    form = "GeoJSON" if name == "compressed" else name.partition(" ")[0]
    for command in commands("p.csv"):
        found = run(*command)
        assert found.exit_code == 2, (command, found.output)
        assert f"is {form}; must be a table such as CSV or Parquet. Export the data as CSV" in found.stderr, command
        assert len(found.output) < 250


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_no_list_of_places_is_printed(made: Path, name: str) -> None:
    Path("made").symlink_to(made)
    Path("p.csv").write_text(LISTS[name], encoding="utf-8")
    for command in commands("p.csv"):
        found = run(*command)
        assert found.exit_code == 2, (command, found.output)
        assert len(found.output) < 550, command
        assert found.output.count("46.9") <= 1, (command, found.output)
        assert "7.4401" not in found.output
