"""What commands say of data: the order of points in time, files of other formats, and never a list of true places."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from cli_examples import flat, run, well, write

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
    Path("points.toml").unlink(missing_ok=True)
    made = well("init", "points.csv", "--cells", 9, "-o", "points.toml", *options)
    found = well("chain", "points.toml", "--overwrite")
    return Path("chain/forward.csv").read_text(encoding="utf-8"), flat(made.output), flat(found.stderr)


def stamped(form: str = "{}") -> list[str]:
    return [f"p,{form.format(time)},{place}" for time, place in POINTS]


def test_points_with_the_newest_first_are_put_in_order() -> None:
    for name, form in (("time", "{}"), ("tracked_at", "{} UTC"), ("Date and Time", "{} +0000"), ("when", "{}Z")):
        matrix, made, _ = chain(f"user,{name},lat,lon", stamped(form))
        assert matrix == FORWARD, name
        assert "times 2023-03-01 08:10:00 to 2023-03-06 17:10:00 (UTC)" in made
        # The times of people are not kept with the specification.
        assert "2023" not in Path("points.toml").read_text(encoding="utf-8")


def test_rows_without_a_time_are_left_out_and_counted() -> None:
    missing = [f"p,,{POINTS[0][1]}", f"p,NaT,{POINTS[1][1]}"]
    matrix, made, found = chain("user,time,lat,lon", [*stamped(), *missing])
    assert matrix == FORWARD
    said = "2 rows are left out: 1 without a time, 1 with a time that cannot be read"
    assert said in made
    assert f"prior.checkins: {said}" in found
    assert f"prior.checkins: {said}" in md.read_spec("points.toml").notes
    # Blank times at the top of a table leave the column, if so many may be left out.
    lines = [*[f"p,,{POINTS[0][1]}"] * 2500, *stamped()]
    matrix, made, _ = chain("user,time,lat,lon", lines, "--missing", "0.98")
    assert matrix == FORWARD
    assert "missing = 0.98" in Path("points.toml").read_text(encoding="utf-8")
    assert "2500 rows are left out: 2500 without a time" in made


def test_forms_of_times_are_kept() -> None:
    moments = [(datetime.fromisoformat(f"{time}+00:00"), place) for time, place in POINTS]
    for form in ("%Y%m%d%H%M", "%d.%m.%Y %H:%M", "unix"):
        written = [(str(int(at.timestamp())) if form == "unix" else at.strftime(form), place) for at, place in moments]
        matrix, *_ = chain("user,time,lat,lon", [f"p,{text},{place}" for text, place in written], "--time-format", form)
        assert matrix == FORWARD, form
        assert f"time_format = {json.dumps(form)}" in Path("points.toml").read_text(encoding="utf-8")


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


WALK = """
domain.grid = { columns = 4, rows = 4, width = 4.0, height = 4.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, blocks = 2 }]
[release]
transition = { neighbours = 8 }
every = "1 day"
"""


@pytest.fixture
def specifications() -> None:
    checkins = 'prior = { checkins = { path = "p.csv", user = false }, smoothing = 1 }'
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
