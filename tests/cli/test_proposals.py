"""What `mechdesign init` notices in data, how it chooses ε, and tables of places that it joins."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.mechanisms._planar_laplace import planar_laplace
from mechdesign.specification._proposal import LEVELS, noise_cost, worthwhile_epsilon

RNG = np.random.default_rng(1)
CITY = RNG.normal([35.68, 139.75], 0.03, (300, 2))
COUNTRY = RNG.uniform([31, 130], [44, 144], (255, 2))
POLAR = RNG.uniform([88, -180], [89.99, 180], (200, 2))


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def init(*parts: object, name: str = "data.csv", **options: object) -> tuple[str, str]:
    """Write points, propose a specification for them, and return it and what was said."""
    places = np.vstack([np.atleast_2d(np.asarray(part, dtype=float)) for part in parts])
    rows = [f"{a:.6f},{o:.6f}" for a, o in places.tolist()]
    Path(name).write_text("\n".join(["latitude,longitude", *rows, ""]))
    more = [part for key, value in options.items() for part in (f"--{key}", value)]
    found = run("init", name, "-o", "made.toml", "--overwrite", *more)
    assert found.exit_code == 0, found.output
    return Path("made.toml").read_text(), " ".join(found.stderr.split())


@pytest.mark.parametrize("zeros", [1, 130])
def test_points_at_zero_zero_are_told_and_do_not_make_the_box(zeros: int) -> None:
    text, said = init(CITY, np.zeros((zeros, 2)))
    words = f"{zeros} points are at 0,0" if zeros > 1 else "1 point is at 0,0"
    assert f"{words}, which often means a missing place" in said
    assert words in text
    box = md.read_spec("made.toml").domain.geographic
    assert box is not None
    assert 35 < box.south < 35.68 < box.north < 36
    assert "at 0,0" not in init(CITY)[1]


def test_points_with_one_coordinate_of_zero_are_told() -> None:
    assert "2 points are outside the box with a latitude or longitude of 0" in init(CITY, [[0, 139.7], [35.6, 0]])[1]
    # Within the box they are places like others, as in Greenwich.
    greenwich = CITY - [0, 139.75]
    assert "or longitude of 0" not in init(greenwich, [[35.68, 0]])[1]


def test_only_points_at_zero_zero_are_too_few() -> None:
    rows = ["0.5,0.5"] * 19 + ["0,0"] * 50
    Path("zeros.csv").write_text("\n".join(["latitude,longitude", *rows, ""]))
    found = run("init", "zeros.csv")
    assert found.exit_code == 2
    assert "too few points other than 0,0 to propose a grid; found 19; must be at least 20" in found.stderr


def test_a_box_that_holds_few_points_is_told() -> None:
    text, said = init(COUNTRY)
    assert "of 255 points, fewer than the 20 that a prior needs: the other points are far away" in said
    assert "# and contains 1 of 255." in text or "# and contains 2 of 255." in text


# Of the points in the city, all but a few are in its box.
@pytest.mark.parametrize(("far", "told"), [(200, False), (400, True)])
def test_a_box_with_less_than_half_of_the_points_is_told(far: int, told: bool) -> None:
    assert ("the other points are far away" in init(CITY, np.resize(COUNTRY, (far, 2)))[1]) == told


@pytest.mark.parametrize(("many", "told"), [(200, False), (400, True)])
def test_a_place_that_holds_most_points_is_told(many: int, told: bool) -> None:
    said = init(CITY, np.tile([[35.69, 139.69]], (many, 1)))[1]
    assert ("points in the box are at exactly one place" in said) == told


def test_where_noise_is_never_worth_its_cost_it_is_said() -> None:
    text, said = init(POLAR)
    assert "planar Laplace noise costs more than half as much as no release for every ε from 0.1 to 20 per km" in said
    assert "# ε was chosen from the data. For all of 0.1, 0.2, 0.5, …, 20 per km" in text
    assert "fewer than the 20 that a prior needs" in said


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


def _exact_cost(domain: md.Domain, prior: np.ndarray, epsilon: Fraction) -> float:
    masses = planar_laplace(float(epsilon), domain.points, domain.points)
    return float((prior @ (masses * md.distances.euclidean(domain))).sum())


def test_drawn_noise_costs_what_its_law_does() -> None:
    domain = md.Domain.geographic_grid(5, 4, 48.1, 48.2, 16.2, 16.4)
    prior = md.Prior.from_counts(np.arange(1.0, 21.0))
    for epsilon in LEVELS[1:5]:
        assert noise_cost(domain, prior, epsilon) == pytest.approx(
            _exact_cost(domain, prior.probabilities, epsilon), rel=0.03
        )


def test_all_points_in_one_cell_leave_no_epsilon() -> None:
    domain = md.Domain.geographic_grid(2, 2, 48.1, 48.2, 16.2, 16.4)
    assert worthwhile_epsilon(domain, md.Prior([1.0, 0.0, 0.0, 0.0])).epsilon is None


# --- a table of places -----------------------------------------------------------------------------------------------


def visits(header: str = "poiID,name,poiLat,poiLon", key: str = "poiID", place: str = "poiID") -> None:
    columns = header.split(",")
    values = [dict(zip(columns[2:], map(str, point), strict=True)) | {key: f"p{k}"} for k, point in enumerate(CITY)]
    places = [",".join(each.get(column, "x") for column in columns) for each in values]
    Path("places.csv").write_text("\n".join([header, *places, ""]))
    rows = [f"u{k % 3};p{k * 7 % 300}" for k in range(200)]
    Path("visits.csv").write_text("\n".join([f"user;{place}", *rows, ""]))


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ({}, ()),
        ({"header": "id,name,lat,lon", "key": "id", "place": "venueId"}, ()),
        ({"header": "wo,name,breite,laenge", "key": "wo", "place": "wo"},
         ("--key", "wo", "--latitude", "breite", "--longitude", "laenge")),
        ({"header": "code,name,lat,lon", "key": "code", "place": "where"}, ("--key", "code", "--place", "where")),
    ],
)  # fmt: skip
def test_a_table_of_places_is_joined(names: dict[str, str], options: tuple[str, ...]) -> None:
    visits(**names)
    Path("specs").mkdir()
    found = run("init", "visits.csv", "--places", "places.csv", "--cells", 9, "-o", "specs/made.toml", *options)
    assert found.exit_code == 0, found.output
    assert "300 places" in found.stderr
    assert 'path = "../places.csv"' in Path("specs/made.toml").read_text()
    given = md.read_spec("specs/made.toml")
    assert 6 <= given.problem().secrets.size <= 12
    assert any(note.endswith(" points of 3 user(s) counted") for note in given.notes)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            (),
            "COLUMN and --longitude COLUMN, or --places FILE for the table of places that poiID refers to",
        ),
        (("--place", "poiID"), "--place and --key need --places FILE"),
        (("--places", "none.csv"), "none.csv: cannot be opened"),
        (("--places", "places.csv", "--key", "nope"), "--key: is not a column; found 'nope'"),
        (("--places", "places.csv", "--place", "nope"), "--place: is not a column; found 'nope'"),
        (("--places", "places.csv", "--latitude", "nope"), "--latitude: is not a column; found 'nope'"),
        (("--places", "places.csv", "--key", "name"), "name has a different place in an earlier row"),
        (("--places", "visits.csv"), "visits.csv: has no column that looks like a latitude"),
        (("--places", "places.csv", "-o", "places.csv", "--overwrite"), "places.csv is the file of --places"),
        (("-o", "visits.csv", "--overwrite"), "visits.csv is the file of DATA"),
    ],
)
def test_wrong_tables_of_places(arguments: tuple[str, ...], words: str) -> None:
    visits()
    before = [Path(name).read_bytes() for name in ("places.csv", "visits.csv")]
    found = run("init", "visits.csv", *arguments)
    assert found.exit_code == 2
    assert words.lower() in " ".join(found.stderr.split()).lower()
    assert [Path(name).read_bytes() for name in ("places.csv", "visits.csv")] == before


def test_a_folder_of_trajectories_joins_nothing() -> None:
    Path("folder").mkdir()
    found = run("init", "folder", "--places", "places.csv")
    assert (found.exit_code, "--places: cannot be used with a folder" in found.stderr) == (2, True)
