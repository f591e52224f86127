"""`mechdesign init`: from raw data to a specification that is designed as it is, and what is noticed in data."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, well, write

import mechdesign as md
from mechdesign.mechanisms._planar_laplace import planar_laplace
from mechdesign.specification._origin import without_comments
from mechdesign.specification._proposal import LEVELS, noise_cost, worthwhile_epsilon


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
POLAR = RNG.uniform([88, -180], [89.99, 180], (200, 2))


def table(name: str, header: str, rows: list[str], compress: bool = False) -> None:
    content = "\n".join([header, *rows, ""]).encode()
    Path(name).write_bytes(gzip.compress(content) if compress else content)


@pytest.fixture
def data() -> str:
    table("data.csv", "User ID,Lat,Lng,UTC time", [f"{u},{a:.6f},{o:.6f},{t}" for u, a, o, t in ROWS])
    return "data.csv"


def init(*parts: object, **options: object) -> tuple[str, str]:
    """Write points, propose a specification for them, and return it and what was said."""
    places = np.vstack([np.atleast_2d(np.asarray(part, dtype=float)) for part in parts])
    table("points.csv", "latitude,longitude", [f"{a:.6f},{o:.6f}" for a, o in places.tolist()])
    more = [part for key, value in options.items() for part in (f"--{key}", value)]
    found = well("init", "points.csv", "-o", "made.toml", "--overwrite", *more)
    return Path("made.toml").read_text(), flat(found.stderr)


def proposed(name: str = "made.toml") -> Any:
    return md.read_spec(name).problem()


# --- proposals ---


@pytest.mark.parametrize("form", ["commas", "tabs, packed", "semicolons, no users"])
def test_a_proposal_is_designed_as_it_is(data: str, form: str) -> None:
    name = {"commas": data, "tabs, packed": "data.tsv.gz"}.get(form, "nobody.csv")
    table("data.tsv.gz", "uid\tlongitude\tlatitude", [f"{u}\t{o}\t{a}" for u, a, o, _ in ROWS], True)
    table("nobody.csv", "lat;lon", [f"{a};{o}" for _, a, o, _ in ROWS])
    well("init", name, "--cells", 9, "-o", "made.toml")
    given = md.read_spec("made.toml")
    box = given.domain.geographic
    assert box.south < 48.2 < box.north < box.south + 0.2
    assert box.west < 16.37 < box.east
    assert 6 <= given.problem().secrets.size <= 12
    assert given.design().certificate.holds
    assert "points outside the box are left out, 10% of all" in " ".join(given.notes)


@pytest.mark.filterwarnings("ignore::mechdesign.errors.SpacingWarning")
def test_a_proposal_of_anchors_is_designed_as_it_is(data: str) -> None:
    well("init", data, "--cells", 9, "-o", "cells.toml")
    well("init", data, "--cells", 9, "--anchors", "-o", "made.toml")
    cells, given = proposed("cells.toml"), proposed()
    assert given.observables.points.tolist() == cells.secrets.points.tolist()
    lattice, grid = given.secrets.lattice, cells.secrets.cells
    assert (lattice.columns, lattice.rows) == (grid.columns + 1, grid.rows + 1)
    assert [each.kind for each in given.requirements] == ["continuous", "distortion"]
    assert given.requirements[0].epsilon == cells.requirements[0].epsilon
    assert md.read_spec("made.toml").design().certificate.holds


def test_a_proposal_names_columns_and_data_and_no_user_and_no_folder_above(data: str, tmp_path: Path) -> None:
    shown = well("init", data, "--cells", 9).stdout
    well("init", data, "--cells", 9, "-o", "made.toml")
    assert shown == Path("made.toml").read_text(encoding="utf-8")
    for line in ('user = "User ID"', 'latitude = "Lat"', 'longitude = "Lng"', 'time = "UTC time"', 'path = "data.csv"'):
        assert line in shown.splitlines()
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


def test_the_box_crosses_the_meridian_of_180_degrees() -> None:
    places = [(-16.8 + index / 1000, 179.99 if index % 3 else -179.99) for index in range(60)]
    _, said = init(places, cells=9)
    assert "0 points inside" not in said
    box = md.read_spec("made.toml").domain.geographic
    assert box.west < 180 < box.east < box.west + 0.1
    # The same places, from 0 to 360 degrees.
    text, said = init([(a, round(o % 360, 2)) for a, o in places], cells=9)
    assert "20 of 60 values in longitude are beyond 180 degrees" in said
    assert f"east = {box.east!r}" in text
    assert_wrong_usage({"init points.csv --longitudes 180": "20 of 60 rows would be left out"})


@pytest.mark.filterwarnings("always::mechdesign.errors.InputWarning")
def test_what_looks_wrong_in_data_is_told() -> None:
    zeros = "2 points are outside the box with a latitude or longitude of 0"
    assert zeros in init(CITY, [[0, 139.7], [35.6, 0]])[1]
    # Within the box they are places like others, as in Greenwich.
    assert "or longitude of 0" not in init(CITY - [0, 139.75], [[35.68, 0]])[1]
    interchanged = init([(-74 + k / 1000, 40.7 + k / 1000) for k in range(60)], cells=9)[1]
    assert interchanged.count("latitude and longitude look interchanged") == 1
    assert "every point has the same latitude" in init([(48.25, o) for _, _, o, _ in ROWS], cells=9)[0]
    # Smoothing above what was counted.
    text, _ = init(CITY, cells=9)
    assert "hardly depends on the data" not in " ".join(md.read_spec("made.toml").notes)
    write(text.replace("smoothing = 0.01", "smoothing = 1000"), "smooth.toml")
    assert "prior.smoothing: 1000, added to each" in " ".join(md.read_spec("smooth.toml").notes)


def test_points_at_zero_zero_are_told_and_do_not_make_the_box() -> None:
    for zeros, words in ((1, "1 point is at 0,0"), (130, "130 points are at 0,0")):
        text, said = init(CITY, np.zeros((zeros, 2)), cells=16)
        assert f"{words}, which often means a missing place" in said
        assert words in text
        box = md.read_spec("made.toml").domain.geographic
        assert 35 < box.south < 35.68 < box.north < 36
    assert "at 0,0" not in init(CITY, cells=16)[1]


def test_a_box_that_leaves_most_out_and_a_place_that_holds_most_are_told() -> None:
    text, said = init(COUNTRY, cells=16)
    assert "of 255 points, fewer than the 20 that a prior needs: the other points are far away" in said
    assert "# and contains 1 of 255." in text or "# and contains 2 of 255." in text
    # Of the points in the city, all but a few are in its box.
    for many, told in ((200, False), (400, True)):
        assert ("the other points are far away" in init(CITY, np.resize(COUNTRY, (many, 2)), cells=16)[1]) == told
        one_place = init(CITY, np.tile([[35.69, 139.69]], (many, 1)), cells=16)[1]
        assert ("points in the box are at exactly one place" in one_place) == told


def test_hours_are_no_times() -> None:
    table("hours.csv", "latitude,longitude,time", [f"{a},{o},{index % 24}" for index, (_, a, o, _) in enumerate(ROWS)])
    found = well("init", "hours.csv", "--cells", 9)
    says = "the column time is not read: line 2: time is a number, but as seconds since 1970 it is before 1980"
    assert says in flat(found.stderr)
    assert "time =" not in found.stdout
    assert "# every" not in found.stdout


# --- epsilon ---


def test_where_noise_is_never_worth_its_cost_it_is_said() -> None:
    text, said = init(POLAR, cells=16)
    assert "planar Laplace noise costs more than half as much as no release for every ε from 0.1 to 20 per km" in said
    assert "# ε was chosen from the data. For all of 0.1, 0.2, 0.5, …, 20 per km" in text


def _exact_cost(domain: md.Domain, prior: np.ndarray, epsilon: Fraction) -> float:
    masses = planar_laplace(float(epsilon), domain.points, domain.points)
    return float((prior @ (masses * md.distances.euclidean(domain))).sum())


def test_epsilon_is_the_least_that_is_worth_its_cost() -> None:
    text, _ = init(CITY, cells=16)
    assert "# ε was chosen from the data: it is the least of 0.1, 0.2, 0.5, …, 20 per km" in text
    given = md.read_spec("made.toml")
    problem = given.problem()
    chosen = Fraction(problem.requirements[0].epsilon)
    worth = worthwhile_epsilon(problem.secrets, md.Prior(problem.prior))
    assert worth.epsilon == chosen
    before = LEVELS[LEVELS.index(chosen) - 1]
    costs = [_exact_cost(problem.secrets, problem.prior, epsilon) for epsilon in (before, chosen)]
    assert costs[1] <= worth.nothing / 2 < costs[0]
    assert given.design().certificate.cost < worth.nothing / 2


def test_drawn_noise_costs_what_its_law_does() -> None:
    domain = md.Domain.geographic_grid(5, 4, 48.1, 48.2, 16.2, 16.4)
    prior = md.Prior.from_counts(np.arange(1.0, 21.0))
    for epsilon in LEVELS[1:5]:
        exact = _exact_cost(domain, prior.probabilities, epsilon)
        assert noise_cost(domain, prior, epsilon) == pytest.approx(exact, rel=0.03)
    # All points in one cell leave no epsilon.
    cells = md.Domain.geographic_grid(2, 2, 48.1, 48.2, 16.2, 16.4)
    assert worthwhile_epsilon(cells, md.Prior([1.0, 0.0, 0.0, 0.0])).epsilon is None


# --- a table of places ---


def visits(header: str = "poiID,name,poiLat,poiLon", key: str = "poiID", place: str = "poiID") -> None:
    columns = header.split(",")
    values = [dict(zip(columns[2:], map(str, point), strict=True)) | {key: f"p{k}"} for k, point in enumerate(CITY)]
    table("places.csv", header, [",".join(each.get(column, "x") for column in columns) for each in values])
    table("visits.csv", f"user;{place}", [f"u{k % 3};p{k * 7 % 300}" for k in range(200)])


def test_a_table_of_places_is_joined() -> None:
    named = ("--key", "wo", "--latitude", "breite", "--longitude", "laenge")
    Path("specs").mkdir()
    for names, options in (
        ((), ()),
        (("id,name,lat,lon", "id", "venueId"), ()),
        (("wo,name,breite,laenge", "wo", "wo"), named),
        (("code,name,lat,lon", "code", "where"), ("--key", "code", "--place", "where")),
    ):
        visits(*names)
        line = ("init", "visits.csv", "--places", "places.csv", "--cells", 9, "-o", "specs/made.toml", "--overwrite")
        assert "300 places" in well(*line, *options).stderr, options
        assert 'path = "../places.csv"' in Path("specs/made.toml").read_text()
        given = md.read_spec("specs/made.toml")
        assert 6 <= given.problem().secrets.size <= 12
        assert any(note.endswith(" points of 3 user(s) counted") for note in given.notes)


# --- wrong usage ---


def test_wrong_usage(data: str) -> None:
    visits()
    table("swapped.csv", "user,latitude,longitude", [f"{u},{min(o + 80, 170)},{a}" for u, a, o, _ in ROWS])
    table("bare.csv", "u1,48.1,16.2", ["u2,48.2,16.3"])
    table("whole.csv", "latitude,longitude", [f"{round(a)},{o}" for _, a, o, _ in ROWS])
    table("few.csv", "latitude,longitude", [f"{a},{o}" for _, a, o, _ in ROWS[:19]])
    table("enough.csv", "latitude,longitude", [f"{a},{o}" for _, a, o, _ in ROWS[:20]])
    table("zeros.csv", "latitude,longitude", ["0.5,0.5"] * 19 + ["0,0"] * 50)
    table("hours.csv", "latitude,longitude,time", [f"{a},{o},{k % 24}" for k, (_, a, o, _) in enumerate(ROWS)])
    table("other.csv", "name,value", ["a,1"])
    for name in ("one", "two"):
        write("", f"sets/{name}/000/Trajectory/a.plt")
    Path("latin.csv").write_bytes("user,latitude,longitude\nJörg,48,16\n".encode("latin-1"))
    table("cut.csv.gz", "uid,lat,lon", ["u,48,16"] * 99, True)
    Path("cut.csv.gz").write_bytes(Path("cut.csv.gz").read_bytes()[:40])
    Path("archive.csv").write_bytes(b"PK\x03\x04 and so on")
    write("mine", "mine.toml")
    joined = "init visits.csv --places places.csv"
    assert_wrong_usage(
        {
            "init data.csv -o mine.toml": "--overwrite",
            "init swapped.csv": "latitude and longitude look interchanged",
            "init bare.csv": "has no header line",
            "init other.csv": "no column that looks like a latitude",
            "init other.csv --latitude height": "--latitude: is not a column",
            "init latin.csv": "is not a text in UTF-8",
            "init cut.csv.gz": "is compressed by gzip and damaged",
            "init archive.csv": "is a ZIP archive",
            "init none.csv": "cannot be opened",
            "init data.csv --cells 3": "--cells: is out of range; found 3; must be between 4 and 2500",
            "init data.csv --encoding none": "encoding",
            "init data.csv --latitude Lat --longitude Lat": "is also the column of --latitude; found 'Lat'",
            "init whole.csv": "column latitude: contains only whole numbers",
            "init few.csv": "too few points to propose a grid; found 19; must be at least 20",
            "init zeros.csv": "too few points other than 0,0 to propose a grid; found 19; must be at least 20",
            "init sets": "one of its subfolders with trajectories: one, two",
            "init sets --places places.csv": "--places: cannot be used with a folder",
            "init hours.csv --time time": "time is a number, but as seconds since 1970 it is before 1980",
            "init hours.csv --time time --time-format unix": "--time: is within a day of 1970-01-01",
            "init visits.csv": "or --places FILE for the table of places that poiID refers to",
            "init visits.csv --place poiID": "--place and --key need --places FILE",
            "init visits.csv --places none.csv": "none.csv: cannot be opened",
            f"{joined} --key nope": "--key: is not a column; found 'nope'",
            f"{joined} --place nope": "--place: is not a column; found 'nope'",
            f"{joined} --latitude nope": "--latitude: is not a column; found 'nope'",
            f"{joined} --key name": "name has a different place in an earlier row",
            "init visits.csv --places visits.csv": "visits.csv: has no column that looks like a latitude",
            f"{joined} -o places.csv --overwrite": "places.csv is the file of --places",
            "init visits.csv -o visits.csv --overwrite": "visits.csv is the file of DATA",
        }
    )
    well("init", "enough.csv", "--cells", 9)
    well("init", "data.csv", "-o", "mine.toml", "--overwrite")


# --- layouts: every command that reads a text tells what it recognised once, and takes what is said instead ---


def test_init_reads_what_a_spreadsheet_wrote() -> None:
    rows = "".join(f"p\t{46.9 + k / 777:.4f}\t{7.4 + k / 555:.4f}\n".replace(".", ",") for k in range(60))
    Path("t.csv").write_text("Nutzer\tBreite\tLänge\n" + rows, encoding="utf-16")
    named = ("init", "t.csv", "--latitude", "Breite", "--longitude", "Länge", "--cells", 9)
    found = well(*named)
    for note in ("byte order mark", "separated by tabs", "column Breite: commas", "column Länge: commas"):
        assert found.stderr.count(note) == 1
    assert 'delimiter = "\\t"' in found.stdout
    said = well(*named, "--delimiter", "\t", "--decimal", ",", "--encoding", "utf-16")
    assert "commas" not in said.stderr
    assert 'decimal = ","' in said.stdout
    assert 'encoding = "utf-16"' in said.stdout


def test_matrices_and_records_are_asked_about() -> None:
    write(";0;1;2\n0;0,5;0,25;0,25\n1;0,25;0,5;0,25\n2;0,25;0,25;0,5\n", "m.csv")
    for line in (
        "leakage m.csv --epsilon 0.1 --steps 2",
        "budget --alpha 1 --backward m.csv",
        "audit m.csv --distance hamming --no-optimum",
    ):
        assert_wrong_usage({line: "--header, --numbered"})
        found = well(*line.split(), "--header", "--numbered")
        assert found.stderr.count("commas are read as decimal marks") == 1
    attributes = "table.person = false\n"
    attributes += 'domain.attributes = { a = { values = ["x", "y"] }, b = { values = [0.5, 1.5] } }\n'
    write(f'{attributes}policy.kind = "full"\nrelease = {{ kind = "histogram", epsilon = 300 }}\n')
    write("sep=;\na; b\nx; 0,5\ny; 1,5\ny; 1,5\n", "t.csv")
    found = well("table", "s.toml", "t.csv", "-o", "out", "--no-report")
    counts = [int(line.rsplit(",", 1)[1]) for line in Path("out/answers.csv").read_text().split()[1:]]
    assert counts == [1, 0, 0, 2]
    assert "commas are read as decimal marks" in found.stderr
    assert_wrong_usage({"table s.toml t.csv -o other --decimal .": "t.csv"})


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
