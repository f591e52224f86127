"""`mechdesign sample`: places outside are refused for every kind of domain, and true places are never overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_examples import run

from mechdesign.errors import ExportError
from mechdesign.synthesis._folders import check_no_input

GRID = "grid = { columns = 4, rows = 3, south = 35.6, north = 35.8, west = 139.6, east = 139.9 }"
POINTS = """csv = { path = "poi.csv", latitude = "lat", longitude = "lon", label = "id" }"""
METRIC = 'privacy = [{ kind = "metric", epsilon = 0.5, distance = "euclidean" }]'
SUPPORT = """policy.support = [0, 1, 5, 6]
privacy = [{ kind = "graph", epsilon = 1, neighbours = 8 }]"""
DELTA = """policy.delta = 0.5
privacy = [{ kind = "graph", epsilon = 1, neighbours = 8 }]"""
ANCHORS = "anchors = { columns = 3, rows = 3, south = 35.6, north = 35.8, west = 139.6, east = 139.9 }"
CONTINUOUS = 'privacy = [{ kind = "continuous", epsilon = 0.5 }]'
PRIORS = {"delta": "prior.counts = [9, 9, 1, 1, 1, 9, 9, 1, 1, 1, 1, 1]"}
KINDS = {
    "grid": (GRID, METRIC), "points": (POINTS, METRIC), "support": (GRID, SUPPORT), "delta": (GRID, DELTA),
    "anchors": (ANCHORS, CONTINUOUS),
}  # fmt: skip


@pytest.fixture(scope="module")
def designs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designs")
    (folder / "poi.csv").write_text("id,lat,lon\na,35.60,139.6\nb,35.61,139.6\nc,35.63,139.6\n")
    for name, (domain, privacy) in KINDS.items():
        prior = PRIORS.get(name, "prior.uniform = true")
        text = f'domain.{domain}\n{prior}\ncost.distance = "euclidean"\n{privacy}\n'
        (folder / f"{name}.toml").write_text(text)
        made = run("design", folder / f"{name}.toml", "-o", folder / name, "--no-report")
        assert made.exit_code == 0, made.output
    (folder / "one.toml").write_text(
        'domain.points = [[0, 0], [0, 0]]\ndomain.unit = "km"\nprior.uniform = true\ncost.distance = "hamming"\n'
        'privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]\n'
    )
    assert run("design", folder / "one.toml", "-o", folder / "one", "--no-report").exit_code == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["-35.61,139.80", "0,0", "35.61,-139.61"])
def test_the_other_side_of_the_earth_is_refused(designs: Path, kind: str, place: str) -> None:
    for more in ((), ("--outside", "refuse")):
        refused = run("sample", designs / kind, "--at", place, *more)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "--at: lies outside" in refused.stderr or "--at: is far from every place" in refused.stderr
        assert "--outside nearest" in refused.stderr
    taken = run("sample", designs / kind, "--at", place, "--outside", "nearest")
    assert (taken.exit_code, len(taken.stdout.splitlines())) == (0, 1)
    assert "the place lies outside" in taken.stderr
    Path("p.csv").write_text(f"lat,lon\n35.605,139.605\n{place}\n{place}\n")
    refused = run("sample", designs / kind, "--input", "p.csv", "-o", "out.csv")
    assert refused.exit_code == 2
    assert "p.csv, row 2" in refused.stderr
    assert place.split(",", maxsplit=1)[0] not in refused.stderr.replace("from 0 to", "")
    assert not Path("out.csv").exists()
    taken = run("sample", designs / kind, "--input", "p.csv", "--outside", "nearest")
    assert "2 of 3 places lie outside" in taken.stderr


@pytest.mark.parametrize("kind", ["support", "delta"])
def test_a_cell_that_is_no_secret_is_refused(designs: Path, kind: str) -> None:
    assert run("sample", designs / kind, "--at", "35.61,139.61").exit_code == 0
    refused = run("sample", designs / kind, "--at", "35.79,139.61")
    assert (refused.exit_code, "--at: lies in a cell that is not a secret" in refused.stderr) == (2, True)


def test_the_reach_of_places(designs: Path) -> None:
    # Between nearest neighbours there are 1.11 km and 2.22 km; the place is 3.34 km from the last one.
    for reach, code in ((None, 2), ("3.3km", 2), ("3.4km", 0), ("3.4 km", 0), ("3.4", 0), ("1e3km", 0)):
        found = run("sample", designs / "points", "--at", "35.66,139.6", *(() if reach is None else ("--reach", reach)))
        assert (reach, found.exit_code) == (reach, code)
    refused = run("sample", designs / "points", "--at", "35.66,139.6")
    assert "must be within 2.224 km of a place of the domain. Leave it out, give a larger --reach" in refused.stderr
    assert run("sample", designs / "points", "--at", "35.65,139.6").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("points", "--at", "35.6,139.6", "--reach", "2mi"), "--reach: is in another unit; found '2mi'; must be in km"),
        (("points", "--at", "35.6,139.6", "--reach", "far"), "'far' is not a distance such as 2km"),
        (("points", "--at", "35.6,139.6", "--reach", "-1km"), "'-1km' is not a distance such as 2km"),
        (("points", "--at", "35.6,139.6", "--reach", "1e999km"), "'1e999km' is not a distance such as 2km"),
        (("points", "--secret", "a", "--reach", "2km"), "--reach goes with --at and --input"),
        (("grid", "--at", "35.7,139.7", "--reach", "2km"), "--reach: does not apply to this domain"),
        (("support", "--at", "35.61,139.61", "--reach", "2km"), "--reach: does not apply to this domain"),
        (("anchors", "--at", "35.7,139.7", "--reach", "2km"), "--reach: does not apply to this domain"),
        (("one", "--at", "0,0"), "--reach: is missing, and has no default because all places of the domain coincide"),
    ],
)
def test_wrong_reaches(designs: Path, arguments: tuple[str, ...], message: str) -> None:
    found = run("sample", designs / arguments[0], *arguments[1:])
    assert (found.exit_code, found.stdout) == (2, "")
    assert message in " ".join(found.stderr.split())


def test_a_reach_for_places_that_do_not_lie_apart(designs: Path) -> None:
    assert run("sample", designs / "one", "--at", "0,1", "--reach", "1km").exit_code == 0
    assert run("sample", designs / "one", "--at", "0,1.001", "--reach", "1km").exit_code == 2
    assert run("sample", designs / "one", "--at", "0,9", "--outside", "nearest").exit_code == 0


# --- the true places -------------------------------------------------------------------------------------------------

TRUE = "lat,lon\n35.61,139.61\n35.7,139.7\n"


@pytest.mark.parametrize("name", ["p.csv", "./p.csv", "below/../p.csv", "link.csv", "hard.csv", "chain.csv", "{}"])
def test_true_places_are_never_overwritten(designs: Path, tmp_path: Path, name: str) -> None:
    Path("p.csv").write_text(TRUE)
    Path("below").mkdir()
    Path("link.csv").symlink_to("p.csv")
    Path("chain.csv").symlink_to("link.csv")
    os.link("p.csv", "hard.csv")
    target = name.format(tmp_path / "p.csv")
    for source, written in (("p.csv", target), (target, "p.csv")):
        refused = run("sample", designs / "grid", "--input", source, "-o", written)
        assert refused.exit_code == 2
        assert "is the file of --input, which must not be overwritten; choose another name" in refused.stderr
    assert Path("p.csv").read_text() == TRUE
    assert Path("link.csv").is_symlink()
    assert Path("hard.csv").read_text() == TRUE


def test_only_files_can_be_overwritten(tmp_path: Path) -> None:
    file, device = tmp_path / "a.csv", Path(os.devnull)
    check_no_input(file, {"--input": file})
    check_no_input(device, {"--input": device})
    file.write_text("")
    check_no_input(file, {"--input": tmp_path / "b.csv", "--other": None})
    with pytest.raises(ExportError, match=r"is the file of --input, which must not be overwritten"):
        check_no_input(file, {"--input": file})


def test_answers_and_pages_are_never_written_onto_a_design(designs: Path) -> None:
    grid = designs / "grid"
    for name in ("channel.csv", "certificate.json"):
        refused = run("sample", grid, "--at", "35.61,139.61", "-o", grid / name)
        assert refused.exit_code == 2
        assert f"is the file of DIR, {name}, which must not be overwritten" in refused.stderr
    assert run("verify", grid).exit_code == 0
    (grid / "report.html").write_text("a page\n")
    refused = run("compare", grid, designs / "one", "-o", grid / "report.html")
    assert refused.exit_code == 2
    assert "report.html, which must not be overwritten" in refused.stderr
    (grid / "report.html").unlink()


def test_true_places_behind_a_folder_with_another_name(designs: Path) -> None:
    Path("real").mkdir()
    Path("real/p.csv").write_text(TRUE)
    Path("other").symlink_to("real", target_is_directory=True)
    assert run("sample", designs / "grid", "--input", "real/p.csv", "-o", "other/p.csv").exit_code == 2
    assert Path("real/p.csv").read_text() == TRUE
    assert run("sample", designs / "grid", "--input", "real/p.csv", "-o", "other/q.csv").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("leakage", "m.csv", "--epsilon", 1, "--steps", 2, "-o", "m.csv"), "m.csv is the file of P.csv"),
        (
            ("budget", "--alpha", 1, "--steps", 2, "--backward", "m.csv", "-o", "l.csv"),
            "l.csv is the file of --backward",
        ),
        (("audit", "m.csv", "--distance", "hamming", "-o", "m.csv"), "m.csv is the file of FILE"),
        (("export", "{}/grid", "--format", "csv", "-o", "{}/grid/channel.csv"), "is the file of DIR, channel.csv"),
    ],
)
def test_other_commands_do_not_write_onto_what_they_read(
    designs: Path, arguments: tuple[object, ...], words: str
) -> None:
    Path("m.csv").write_text("0.9,0.1\n0.2,0.8\n")
    Path("l.csv").symlink_to("m.csv")
    found = run(*(str(each).format(designs) for each in arguments))
    assert found.exit_code == 2
    assert words in found.stderr
    assert Path("m.csv").read_text() == "0.9,0.1\n0.2,0.8\n"
    assert run("verify", designs / "grid").exit_code == 0
