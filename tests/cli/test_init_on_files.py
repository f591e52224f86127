"""What `mechdesign init` recognises in files of ten makes, what it asks for, and what it refuses."""

from __future__ import annotations

import gzip
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cli_examples import flat, run, well
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.data.table import Layout
from mechdesign.specification import _recognise as words
from mechdesign.specification._recognise import recognise

START = datetime(2024, 5, 10, 6, tzinfo=UTC)
PLACES = [(46.951, 7.441), (46.962, 7.452), (46.973, 7.463), (46.984, 7.431)]


@dataclass(frozen=True)
class Point:
    """A check-in of one of three people who go round four places."""

    person: int
    place: int
    time: datetime

    @property
    def latitude(self) -> float:
        return PLACES[self.place][0]

    @property
    def longitude(self) -> float:
        return PLACES[self.place][1]


POINTS = [Point(k % 3, (k // 3 + k) % 4, START + timedelta(hours=7 * k, seconds=k)) for k in range(60)]


@dataclass(frozen=True)
class Made:
    """A file, the options that it needs, and what is recognised beyond coordinates, people and times."""

    name: str
    header: str
    row: Callable[[Point], str]
    columns: dict[str, str]
    layout: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    encoding: str = "utf-8"

    def write(self, folder: Path) -> Path:
        content = "\n".join([self.header, *map(self.row, POINTS), ""]).encode(self.encoding)
        path = folder / self.name
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        return path


def comma(degrees: float) -> str:
    return str(degrees).replace(".", ",")


MADE = (
    Made(
        "spreadsheet.csv",
        "Benutzer;Name des Ortes;Breite;Länge;Zeit",
        lambda p: f"Jörg {p.person};x;{comma(p.latitude)};{comma(p.longitude)};{p.time:%d.%m.%Y %H:%M}",
        {"user": "Benutzer", "latitude": "Breite", "longitude": "Länge", "time": "Zeit"},
        {"delimiter": ";", "decimal": ",", "encoding": "windows-1252", "time_format": "%d.%m.%Y %H:%M"},
        encoding="windows-1252",
    ),
    Made(
        "marked.txt",
        "User ID\tLat\tLng\tUTC time",
        lambda p: f"ü{p.person}\t{p.latitude}\t{p.longitude}\t{p.time:%Y-%m-%dT%H:%M:%SZ}",
        {"user": "User ID", "latitude": "Lat", "longitude": "Lng", "time": "UTC time"},
        {"delimiter": "\t", "encoding": "utf-16"},
        encoding="utf-16",
    ),
    Made(
        "scooters.csv.gz",
        "rider_id|ts_ms|lat|lng|ride_id",
        lambda p: f"{p.person}|{p.time.timestamp() * 1000:.0f}|{p.latitude}|{p.longitude}|r{p.person}",
        {"user": "rider_id", "latitude": "lat", "longitude": "lng", "time": "ts_ms", "trace": "ride_id"},
        {"delimiter": "|", "time_format": "unix-ms"},
    ),
    Made(
        "movebank.csv",
        "event-id,visible,timestamp,location-long,location-lat,tag-local-identifier,individual-local-identifier,study-name",
        lambda p: f"7,true,{p.time:%Y-%m-%d %H:%M:%S.000},{p.longitude},{p.latitude},t,stork {p.person},storks",
        {
            "user": "individual-local-identifier",
            "latitude": "location-lat",
            "longitude": "location-long",
            "time": "timestamp",
        },
    ),
    Made(
        "ships.csv",
        "MMSI,BaseDateTime,LAT,LON,SOG,VesselName",
        lambda p: f"{366000000 + p.person},{p.time:%Y-%m-%dT%H:%M:%S},{p.latitude},{p.longitude},0.1,SHIP {p.person}",
        {"user": "MMSI", "latitude": "LAT", "longitude": "LON", "time": "BaseDateTime"},
    ),
    Made(
        "foursquare.tsv",
        "userId\tvenueId\tvenueCategory\tlatitude\tlongitude\ttimezoneOffset\tutcTimestamp",
        lambda p: f"{p.person}\t{p.place}\tBar\t{p.latitude}\t{p.longitude}\t60\t{p.time:%a %b %d %H:%M:%S +0000 %Y}",
        {"user": "userId", "latitude": "latitude", "longitude": "longitude", "time": "utcTimestamp"},
        {"delimiter": "\t", "time_format": "%a %b %d %H:%M:%S %z %Y"},
    ),
    Made(
        "taxis.csv",
        "taxi_id,pickup_datetime,pickup_longitude,pickup_latitude,fare",
        lambda p: f"{p.person},{p.time:%m/%d/%Y %I:%M:%S %p},{p.longitude},{p.latitude},9.5",
        {"user": "taxi_id", "latitude": "pickup_latitude", "longitude": "pickup_longitude", "time": "pickup_datetime"},
        {"time_format": "%m/%d/%Y %I:%M:%S %p"},
    ),
    Made(
        "gbif.csv",
        "id;decimalLatitude;decimalLongitude;eventDate",
        lambda p: f"{p.person};{p.latitude};{p.longitude};{p.time:%Y%m%d%H%M%S}",
        {"user": "id", "latitude": "decimalLatitude", "longitude": "decimalLongitude", "time": "eventDate"},
        {"delimiter": ";", "time_format": "%Y%m%d%H%M%S"},
        {"user": "id"},
    ),
    Made(
        "axes.csv",
        "t,x,y,participant",
        lambda p: f"{p.time.timestamp():.0f},{p.longitude},{p.latitude},{p.person}",
        {"user": "participant", "latitude": "y", "longitude": "x", "time": "t"},
        {"time_format": "unix"},
    ),
    Made(
        "keys.csv",
        "account;poiID;date;fare",
        lambda p: f"{p.person};p{p.place};{p.time:%d-%b-%Y %H:%M};1",
        {"user": "account", "place": "poiID", "time": "date"},
        {"delimiter": ";", "time_format": "%d-%b-%Y %H:%M"},
        {"places": "places.csv"},
    ),
)  # fmt: skip


def places(folder: Path) -> Path:
    lines = [f"p{k};{latitude};{longitude}" for k, (latitude, longitude) in enumerate(PLACES)]
    (folder / "places.csv").write_text("\n".join(["poiID;poiLat;poiLon", *lines, ""]))
    return folder / "places.csv"


def options_of(made: Made, folder: Path) -> dict[str, Any]:
    return made.options | ({"places": places(folder)} if "places" in made.options else {})


def test_ten_files_are_recognised_and_read_as_they_are(tmp_path: Path) -> None:
    for made in MADE:
        found = recognise(made.write(tmp_path), options_of(made, tmp_path))
        assert dict(found.columns) == made.columns, made.name
        assert asdict(found.layout) == asdict(Layout()) | made.layout, made.name
        assert set(found.how) >= {*made.columns, *made.layout}, made.name
        assert sum(map(len, found.traces)) == len(POINTS), made.name
        for number, trace in enumerate(found.traces):
            own = [point for point in POINTS if point.person == number]
            assert [(a, b) for a, b in zip(trace.latitude, trace.longitude, strict=True)] == [
                (p.latitude, p.longitude) for p in own
            ], made.name


@pytest.mark.slow
def test_what_is_proposed_for_ten_files_is_designed_and_exported_without_its_prior(blank_pictures: None) -> None:
    for made in MADE:
        made.write(Path())
        options = [
            part for name, value in options_of(made, Path()).items() for part in (f"--{name.replace('_', '-')}", value)
        ]
        text = assert_designed(made.name, options, cells=9)
        for key, value in {**made.layout, **made.columns}.items():
            shown = value.replace("\t", "\\t")
            assert any(line.startswith(f'{key} = "{shown}"  # ') for line in text.splitlines()), (made.name, key)


def assert_designed(name: str, options: Sequence[object], cells: int) -> str:
    """Fail if the proposal for a file is not designed or exported without its prior; return the proposal."""
    Path("made.toml").unlink(missing_ok=True)
    for folder in ("made", "public"):
        shutil.rmtree(folder, ignore_errors=True)
    well("init", name, "-o", "made.toml", "--cells", cells, *options)
    well("design", "made.toml", "-o", "made", "--no-report")
    well("export", "made", "--without-prior", "-o", "public")
    certificate, public = md.verify("made"), md.verify("public")
    problem = md.read_spec("made.toml").problem()
    grid = problem.secrets.cells
    width = max(grid.width / grid.columns, grid.height / grid.rows)
    epsilon = problem.requirements[0].epsilon
    assert [each.kind for each in problem.requirements] == ["metric"]
    assert 0.9 * math.log(4) / width < epsilon <= math.log(4) / width
    assert certificate.holds
    assert public.holds
    for made in ("made", "public"):
        shutil.rmtree(made)
    return Path("made.toml").read_text()


@pytest.mark.slow
def test_what_is_proposed_for_real_data_is_designed_and_exported_without_its_prior(
    data_folder: Path, blank_pictures: None
) -> None:
    movement = [
        path for name in ("foursquare*/*.csv", "gowalla*/*.csv", "geolife*/*/") for path in data_folder.glob(name)
    ]
    others = [*data_folder.glob("uci/*"), *data_folder.glob("geolife*/*/*/labels.txt")]
    assert movement
    assert others
    for path in movement:
        made = assert_designed(str(path), (), cells=25)
        assert ('user = "label"  # each tid has one label' in made) == (path.suffix == ".csv")
    for path in others:
        assert "names no latitude" in flat(run("init", path).stderr)
    assert "init takes its folder" in run("init", next(data_folder.glob("geolife*/*/*/Trajectory/*.plt"))).stderr


# --- what cannot be told ---


def write(name: str, header: str, *rows: str, count: int = 30, encoding: str = "utf-8") -> Path:
    path = Path(name)
    path.write_bytes("\n".join([header, *(rows * count)[:count], ""]).encode(encoding))
    return path


def asking(name: str, text: str, path: str, says: str, **asked: Any) -> Mistake:
    header, *rows = text.split("\n")
    return Mistake(name, lambda: recognise(write("f.csv", header, *rows), asked), path, says)


AT = "46.95,7.44"
CLOCK = "user,lat,lon,time\n"


def test_traces_tell_whether_a_label_is_a_person() -> None:
    found = recognise(write("f.csv", "tid,label,lat,lon", f"1,ann,{AT}", f"2,ann,{AT}", f"3,bob,{AT}"), {})
    assert found.columns["user"] == "label"
    assert found.how["user"] == "each tid has one label; check that these are people"


def test_what_cannot_be_told_is_asked_for_by_its_option() -> None:
    first, user = "f.csv, line 1", '--user COLUMN, or --user ""'
    assert_refused(
        [
            asking("no people", f"lat,lon\n{AT}", first, user),
            asking("an id", f"id,lat,lon\n1,{AT}", first, "id may be people. Name it: --user COLUMN"),
            asking("a name", f"name,lat,lon\nx,{AT}", first, "name may be people"),
            asking("a label", f"label,lat,lon\n2,{AT}", first, "label may be people"),
            asking("a label for each trace", f"tid,label,lat,lon\n1,2,{AT}\n2,3,{AT}", first, "label may be people"),
            asking(
                "traces of several labels",
                f"tid,label,lat,lon\n1,2,{AT}\n1,3,{AT}\n2,3,{AT}",
                first,
                "label may be people",
            ),
            asking("a vendor", f"vendor_id,lat,lon\nx,{AT}", first, "vendor_id may be people"),
            asking(
                "two columns of people",
                f"user,device_id,lat,lon\na,1,{AT}\na,2,{AT}",
                first,
                f"user and device_id may each be people. Name it: {user}",
            ),
            asking(
                "two latitudes",
                "user,start_lat,start_lon,end_lat,end_lon\nu,46.9,7.4,46.8,7.4",
                first,
                "start_lat and end_lat may each be the latitude",
            ),
            asking("two traces", f"user,trip_id,session,lat,lon\nu,1,2,{AT}", first, "--trace COLUMN"),
            asking(
                "day or month first",
                f"{CLOCK}u,{AT},04/04/2012 18:00\nu,{AT},05/04/2012 18:00",
                "f.csv, line 3, column time",
                '--time-format "%d/%m/%Y %H:%M", or --time-format "%m/%d/%Y %H:%M"',
            ),
            asking("day or month first, points", f"{CLOCK}u,{AT},3.4.12", "f.csv, line 2, column time", "%m.%d.%y"),
            asking(
                "two times",
                "user,created_at,start_time,lat,lon\n" + "\n".join(
                    f"u,2021-01-0{k} 08:0{k}:00,2021-02-0{k} 09:1{k}:00,{AT}" for k in range(1, 9)
                ),
                first,
                "created_at and start_time may each be the time",
            ),
            asking(
                "date and time of day",
                f"user,date,time,lat,lon\nu,2021-01-01,08:00,{AT}\nu,2021-01-02,09:00,{AT}",
                first,
                'frame["date"] = frame["date"] + " " + frame["time"]',
            ),
            asking("hours", f"{CLOCK}u,{AT},7\nu,{AT},8", "f.csv, line 2, column time", '--time COLUMN, "" for no'),
            asking("a zone", f"{CLOCK}u,{AT},2021-01-01 08:00 CET", "f.csv, line 2, column time", "--time-format"),
            asking("two delimiters", "user\tlat,lon\nu\t46.95,7.44", first, "--delimiter CHARACTER"),
            asking("spaces", "user lat lon\nu 46.95 7.44", first, "has a single column"),
            asking("0 to 360", f"user,lat,lon\nu,{AT}\nu,46.95,200.5", "f.csv, line 3, column lon", "% 360 - 180"),
            asking("no header", f"u,{AT}\nu,{AT}", first, "is no header line"),
            asking("whole numbers", "user,x,y\nu,7,46\nu,8,47", "f.csv, line 2, column y", "--latitude COLUMN"),
            asking("places", "user,poi_id\nu,7", first, "the table that poi_id refers to: --places FILE"),
        ]
    )  # fmt: skip


def test_an_option_answers_each_question() -> None:
    path = write("f.csv", "user,device,lat,lon,time", f"a,1,{AT},03/04/2012", f"a,2,{AT},05/06/2012")
    for asked, columns, form in (
        ({"user": "user", "time_format": "%d/%m/%Y"}, {"user": "user", "time": "time"}, "%d/%m/%Y"),
        ({"user": "device", "time": ""}, {"user": "device"}, None),
        ({"user": "", "time_format": "%m/%d/%Y"}, {"time": "time"}, "%m/%d/%Y"),
    ):
        found = recognise(path, asked)
        assert dict(found.columns) == columns | {"latitude": "lat", "longitude": "lon"}, asked
        assert found.layout.time_format == form
        assert len(found.traces) == (1 if asked["user"] in ("", "user") else 2)


def test_words_of_names() -> None:
    people = (
        "user user_id uid userID MMSI individual-local-identifier vehicle_id imei participant subject_id phone card_id "
        "device_id deviceid animal_id agent_id client account rider_id person driver taxi_id USER_NAME customerNumber"
    )
    people += " courier_id Benutzer plate_number subscriberHash"
    traces = "tid trip_id tripID session trajectory_id"
    times = "time timestamp datetime date ts_ms UTCTime created_at BaseDateTime t epoch fixTime"
    others = "id name label lat flat type user_type card_type day hour timezone time_spent weather price belong"
    header = " ".join((people, traces, times, others)).split()
    assert words._names(header, words._PEOPLE) == people.split()
    assert words._names(header, words._TRACES) == traces.split()
    assert words._names(header, words._TIMES, words._BESIDE_TIMES) == times.split()


# --- wrong input ---


def test_wrong_input() -> None:
    good = f"user,lat,lon,time\nu,{AT},2021-01-01 08:00\nv,{AT},2021-01-01 09:00"
    write("g.csv", "user,poi", "u,a", "v,b")
    write("p.csv", "poi,lat,lon", "a,46.9,7.4")
    write("s.csv", "poi;lat;lon", "a;46.9;7.4")
    Path("folder").mkdir()
    kinds = {"x.csv": b"PK\x03\x04..", "g.geojson": b'\n{"type": 1}', "k.csv": b"<kml>", "d.csv": b"SQLite format 3"}
    for name, content in kinds.items():
        Path(name).write_bytes(content)
    Path("zeros.csv").write_bytes("user,lat,lon\nu,46.9,7.4\n".encode("utf-16-le"))
    Path("shift.csv").write_bytes("user,lat,lon\n\x81ü,46.9,7.4\n".encode("latin-1"))
    Path("empty.csv").write_bytes(b"")

    def table(name: str, text: str, path: str, says: str = "", **asked: Any) -> Mistake:
        return asking(name, text, path, says, **asked)

    def file(name: str, says: str, **asked: Any) -> Mistake:
        return Mistake(name, lambda: recognise(Path(name), asked), name, says)

    assert_refused(
        [
            file("none.csv", "cannot be opened"),
            file("empty.csv", ""),
            file("x.csv", "is an Excel workbook"),
            file("g.geojson", "is JSON, such as GeoJSON"),
            file("k.csv", "is XML"),
            file("d.csv", "is a SQLite database"),
            file("zeros.csv", "--encoding utf-16-le"),
            file("shift.csv", "is neither UTF-8 nor windows-1252"),
            Mistake("empty folder", lambda: recognise(Path("folder"), {}), "folder", "contains no"),
            Mistake("folder", lambda: recognise(Path("folder"), {"user": "u"}), "--user", "is for tables"),
            table("no such column", good, "--user", "is not a column of f.csv", user="nobody"),
            table("no latitude", good, "--latitude", "is not a column", latitude=""),
            table("one column twice", good, "--longitude", "is also the column", latitude="lat", longitude="lat"),
            table("no such time", good, "--time", "is not a column", time="when"),
            table("a form without times", good, "--time-format", "--time COLUMN", time="", time_format="unix"),
            table("another form", good, "f.csv, line 2", "", time_format="unix"),
            table("no share", good, "missing", "", missing=1.5),
            table("no delimiter", good, "delimiter", "", delimiter=";;"),
            table("no encoding", good, "encoding", "", encoding="klingon"),
            table("no text", good.replace("v", "é"), "f.csv, line", "", encoding="ascii"),
            table("a key without places", good, "--key", "--places FILE", key="k"),
            table("blank times", f"{good}\nu,{AT},", "f.csv, line 4, column time", "set missing = 0.34"),
            table("two layouts", "user,poi\nu,a", "s.csv, line 1", "in the layout of f.csv", places=Path("s.csv")),
            table("no row", "user,lat,lon", "f.csv", "", missing=0.0),
            table("swapped", good.replace(AT, "107.44,46.95"), "f.csv, line 2", ""),
            table("ragged", good + ",1", "f.csv, line 3", ""),
            table("a column twice", good.replace("time", "lon"), "f.csv", ""),
            table("no such key", "user,poi\nu,a", "--key", "", places=Path("p.csv"), key="k"),
            table("no places", "user,poi\nu,a", "g.csv, line 1", "names no latitude", places=Path("g.csv")),
            table("a file of places that is none", "user,poi\nu,a", "none.csv", "", places=Path("none.csv")),
        ]
    )  # fmt: skip
