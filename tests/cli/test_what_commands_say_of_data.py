"""What commands say of data: the order of points in time, files of other formats, and never a list of true places."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, contents, flat, run, well, write

import mechdesign as md

PLACES = ((46.9512, 7.4391), (46.9561, 7.4472), (46.9604, 7.4555))
# In a circle, every hour: 0, 1, 2, 0 and so on, the newest first.
POINTS = [
    (f"2023-03-{1 + k // 10:02d} {8 + k % 10:02d}:10:00", f"{PLACES[k % 3][0]},{PLACES[k % 3][1]}")
    for k in reversed(range(60))
]
SAID = "in the order of the file"
FORWARD = "0.0,1.0,0.0\n0.0,0.0,1.0\n1.0,0.0,0.0\n"


def chain(header: str, rows: list[str], *options: str) -> tuple[str, str, str]:
    """Return the matrix that is counted in a table, and what `init` and `chain` say."""
    write("\n".join([header, *rows, ""]), "points.csv")
    made = well("init", "points.csv", "--cells", 9, "-o", "points.toml", "--overwrite", *options)
    found = well("chain", "points.toml")
    return Path("chain/forward.csv").read_text(encoding="utf-8"), flat(made.stderr), flat(found.stderr)


def stamped(form: str = "{}") -> list[str]:
    return [f"p,{form.format(time)},{place}" for time, place in POINTS]


def test_points_with_the_newest_first_are_put_in_order() -> None:
    for name, form in (("time", "{}"), ("tracked_at", "{} UTC"), ("Date and Time", "{} +0000"), ("stamp", "{}")):
        options = ["--time", "stamp"] if name == "stamp" else []
        matrix, *said = chain(f"user,{name},lat,lon", stamped(form), *options)
        assert matrix == FORWARD, name
        for text in said:
            assert "times from 2023-03-01 08:10:00 to 2023-03-06 17:10:00 (UTC): points are in the order of" in text
            assert SAID not in text


def test_rows_without_a_time_are_left_out_and_counted() -> None:
    missing = [f"p,,{POINTS[0][1]}", f"p,NaT,{POINTS[1][1]}"]
    matrix, made, found = chain("user,time,lat,lon", [*stamped(), *missing])
    assert matrix == FORWARD
    assert "2 rows without a time are left out" in made
    assert "prior.checkins: 2 rows without a time are left out" in found
    assert "prior.checkins: 2 rows without a time are left out" in md.read_spec("points.toml").notes
    # Blank times at the top of a table leave the column, if so many may be left out.
    lines = [*[f"p,,{POINTS[0][1]}"] * 2500, *stamped()]
    matrix, made, _ = chain("user,time,lat,lon", lines, "--missing", "0.98")
    assert matrix == FORWARD
    assert "missing = 0.98" in Path("points.toml").read_text(encoding="utf-8")
    assert "2500 rows without a time are left out" in made
    assert_wrong_usage({"init points.csv": "2500 of 2560 rows would be left out: 2500 without a time"})


def test_the_order_of_the_file_is_said() -> None:
    unread = "the column time is not read: line 2: time is not a time; found aaaaa 9999-99-99 99:99:99"
    named = "name the column, --time COLUMN, if the time is in one of these: stamp"
    empty = "the column time is not read: it contains no times in the first 300 lines"
    for header, rows, words in (
        ("stamp", stamped(), named),
        ("x", stamped("none"), SAID),
        ("time", stamped("about {}"), unread),
        ("time", [f"p,,{place}" for _, place in POINTS] * 5, empty),
    ):
        _, made, found = chain(f"user,{header},lat,lon", rows)
        assert words in made
        assert SAID in made
        assert f"prior.checkins: no times are read: points are {SAID}" in found
        # The times of people are not kept with the specification, nor with what is designed.
        assert "2023" not in Path("points.toml").read_text(encoding="utf-8")


def test_a_chain_says_which_times_it_does_not_read() -> None:
    """A specification names no column of times, and the table has one."""
    for name, form, words in (
        ("time", "{}", "the column time contains times, but was not selected"),
        ("time", "about {}", "the column time is not read: line 2: time is not a time; found aaaaa 9999-99-99"),
        ("stamp", "{}", "name the column, --time COLUMN, if the time is in one of these: stamp"),
    ):
        chain(f"user,{name},lat,lon", stamped(form))
        text = Path("points.toml").read_text(encoding="utf-8")
        write(text.replace(f'time = "{name}"\n', ""), "points.toml")
        said = flat(well("chain", "points.toml").stderr)
        assert f"prior.checkins: no times are read: points are {SAID}" in said
        assert words in said


@pytest.mark.parametrize("form", ["%Y%m%d%H", "%d.%m.%Y %H:%M", "unix"])
def test_what_is_said_of_times_is_kept(form: str) -> None:
    moments = [(datetime.fromisoformat(f"{time}+00:00"), place) for time, place in POINTS]
    written = [(str(int(at.timestamp())) if form == "unix" else at.strftime(form), place) for at, place in moments]
    rows = [f"p,{text},{place}" for text, place in written]
    if form == "%d.%m.%Y %H:%M":
        matrix, *said = chain("user,time,lat,lon", rows)
        assert matrix == FORWARD
        assert all('the day comes first in time (--time-format "%m.%d.%Y"' in text for text in said)
    elif form != "unix":
        _, made, found = chain("user,time,lat,lon", rows)
        assert "the column time is not read: line 2: time" in made
        assert f'--time-format "{form[:8]}' in made
        assert SAID in found
    matrix, _, found = chain("user,time,lat,lon", rows, "--time-format", form)
    assert matrix == FORWARD
    assert SAID not in found
    assert f"time_format = {json.dumps(form)}" in Path("points.toml").read_text(encoding="utf-8")


WALK = """
domain.grid = { columns = 4, rows = 4, width = 4.0, height = 4.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, blocks = 2 }]
[release]
transition = { neighbours = 8 }
every = "1 day"
"""


def test_wrong_usage() -> None:
    write("user,time,lat,lon\np,20230401,48.1,7.1\n", "points.csv")
    write("time,state\n20230401,5\n20230402,6\n20230403,10\n", "trace.csv")
    write(WALK, "days.toml")
    write(WALK + 'time_format = "%H"\n', "hours.toml")
    form = "init points.csv --time-format"
    assert_wrong_usage(
        {
            f"{form} %d.%m.%Y": "--time-format: does not match any column of times; found '%d.%m.%Y'",
            f"{form} %c": "--time-format: has %c, which is not supported",
            "release days.toml trace.csv --seed 1": '--time-format "%Y%m%d"',
            "release hours.toml trace.csv": "release.time_format: has no year",
        }
    )


@pytest.mark.usefixtures("blank_pictures")
def test_a_trace_says_its_times_and_publishes_none() -> None:
    write(WALK, "days.toml")
    write("time,state\n20230401,5\n20230402,6\n20230403,10\n", "trace.csv")
    said = well("release", "days.toml", "trace.csv", "--seed", 1, "--time-format", "%Y%m%d").stderr
    assert "trace: times from 2023-04-01 00:00:00 to 2023-04-03 00:00:00 (UTC): steps are in the order" in said
    assert len(Path("released/released.csv").read_text(encoding="utf-8").split()) == 4
    # In the specification likewise.
    write(WALK + 'time = "when"\ntime_format = "%Y%m%d"\n', "days.toml")
    write("when,state\n20230401,5\nNaT,5\n20230402,6\n", "trace.csv")
    again = "release days.toml trace.csv --seed 1 --overwrite"
    assert_wrong_usage({again: "trace.csv, line 3: has no time"})
    assert "1 row without a time is left out" in well(*again.split(), "--missing", 0.34).stderr
    assert not any(b"2023" in content for content in contents("released").values())


# --- files of other formats, and lists of places ---

MANY = [(46.95 + k / 10**5, 7.44 + k / 10**5) for k in range(3000)]
SPECIFICATION = """
domain.grid = { columns = 2, rows = 2, south = 46.9, north = 47.1, west = 7.4, east = 7.6 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""
GEOJSON = json.dumps({"type": "FeatureCollection", "features": [{"coordinates": [b, a]} for a, b in MANY]})
TEXTS = {
    "GeoJSON": GEOJSON,
    "GPX": '<?xml version="1.0"?>\n<gpx>' + "".join(f'<trkpt lat="{a}" lon="{b}"/>' for a, b in MANY) + "</gpx>",
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
COMMANDS = (
    "init p.csv",
    "design checkins.toml",
    "design counts.toml",
    "chain walk.toml",
    "release trace.toml p.csv",
    "sample made --input p.csv",
    "leakage p.csv --epsilon 1 --steps 2",
    "budget --alpha 1 --backward p.csv --steps 2",
)


@pytest.fixture
def specifications() -> None:
    checkins = 'prior = { checkins = { path = "p.csv", user = "" }, smoothing = 1 }'
    counts = 'prior.csv = { path = "p.csv", column = "count" }'
    write(SPECIFICATION.replace("prior.uniform = true", checkins), "checkins.toml")
    write(SPECIFICATION.replace("prior.uniform = true", counts), "counts.toml")
    write(WALK.replace("{ neighbours = 8 }", '{ path = "p.csv" }'), "walk.toml")
    write(WALK, "trace.toml")
    md.save(md.specification.parse(SPECIFICATION).design(), "made", report=False)


@pytest.mark.usefixtures("specifications")
@pytest.mark.slow
def test_no_list_of_places_is_printed() -> None:
    for name, text in LISTS.items():
        write(text, "p.csv")
        for command in COMMANDS:
            found = run(*command.split())
            assert found.exit_code == 2, (name, command, found.output)
            assert len(found.output) < 550, (name, command)
            assert found.output.count("46.9") <= 1, (name, command, found.output)
            assert "7.4401" not in found.output, (name, command)
