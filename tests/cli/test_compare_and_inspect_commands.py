"""`mechdesign compare` and `mechdesign inspect`."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, well

import mechdesign as md
from mechdesign.measures import attack


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folders of two designs on one line of places, and of one without places."""
    folder = tmp_path_factory.mktemp("designs")
    line = md.Domain.grid(3, 2, 3.0, 2.0)
    distance = md.distances.euclidean(line)
    prior = [0.3, 0.1, 0.2, 0.1, 0.2, 0.1]
    for name, epsilon in (("low", "0.5"), ("high", "1.54239721751818088")):
        requirements = [md.MetricPrivacy(epsilon, distance)]
        problem = md.Problem(prior, distance, requirements, secrets=line, observables=line, title=name)
        md.save(md.design(problem), folder / name, report=False)
    design_on(md.Domain.from_labels(["a", "b"]), folder / "other")
    return folder


def design_on(domain: md.Domain, folder: Path, likeliest: int = 0) -> Path:
    weights = [2.0 if index == likeliest else 1.0 for index in range(domain.size)]
    distance = md.distances.hamming(domain.size)
    problem = md.Problem(md.Prior.from_counts(weights), distance, [md.MetricPrivacy(1, distance)], secrets=domain)
    md.save(md.design(problem), folder, report=False)
    return folder


def test_compare_shows_costs_and_adversaries_of_each(folders: Path) -> None:
    found = json.loads(well("compare", folders / "low", folders / "high", "--json").stdout)
    assert found["designs"] == ["low", "high"]
    assert found["differences"] == []
    low, high = (float(found["table"]["cost"][name].split()[0]) for name in ("low", "high"))
    assert low > high
    design = md.Design.load(folders / "low")
    best = attack.optimal(design.channel, design.problem.prior, design.problem.cost).distortion
    assert found["table"]["error of the optimal attack"]["low"] == f"{best:.4g} km"
    # A long number is shortened to the side that asks less.
    (shown,) = (line for name, line in found["table"].items() if name.startswith("metric"))
    assert shown["high"].endswith("(at most 1.542398)")
    assert "holds" in well("compare", folders / "low", folders / "high").stdout


@pytest.mark.slow
def test_the_page_asks_nothing_of_the_network(folders: Path) -> None:
    well("compare", folders / "low", folders / "high", "-o", "both.html")
    text = Path("both.html").read_text(encoding="utf-8")
    assert (text.count("<figure"), text.count('role="img"')) == (3, 6)
    assert "script-src 'sha256-" in text
    well("inspect", folders / "low", "--report", "page.html")
    design = md.Design.load(folders / "low")
    assert Path("page.html").read_text(encoding="utf-8") == md.report.html(design)


TOWN = md.Domain.geographic_grid(2, 2, 35.0, 35.1, 139.0, 139.1)
NEAR = md.Domain.from_points([[0, 0], [1, 0]], ["a", "b"])
PAIRS = (
    # Two boxes of one size have equal points, since these are counted from a corner.
    (TOWN, md.Domain.geographic_grid(2, 2, 35.3, 35.4, 139.0, 139.1), 3, "one, for cell 3"),
    (NEAR, md.Domain.from_points([[0, 0], [2, 0]], ["a", "b"]), 1, "one, for b"),
    (NEAR, md.Domain.from_points([[1, 0], [9, 0]], ["b", "c"]), 1, "for b, the likeliest secret of one"),
)


@pytest.mark.parametrize(("first", "second", "likeliest", "said"), PAIRS)
def test_two_places_are_not_shown_as_one(
    blank_pictures: None, first: md.Domain, second: md.Domain, likeliest: int, said: str
) -> None:
    one, two = design_on(first, Path("one"), likeliest), design_on(second, Path("two"))
    found = json.loads(well("compare", one, two, "--json", "-o", "page.html").stdout)
    page = Path("page.html").read_text(encoding="utf-8")
    assert said in page
    assert "The secrets differ." in found["differences"]
    assert ("for the likeliest secret of each design: the secrets differ" in page) == said.startswith("one, ")


def test_wrong_usage(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders)
    assert_wrong_usage(
        {
            "compare low": "is one design",
            "compare low nowhere": "nowhere",
            "compare low high -o page.pdf": "ends in .html",
            "inspect nowhere": "nowhere",
        }
    )


def test_inspect_says_what_is_there(folders: Path) -> None:
    text = well("inspect", folders / "low").stdout
    for said in ("3 × 2 cells", "most likely 0 (30%)", "metric privacy", "certificate.json", "solver"):
        assert said in text
    found = json.loads(well("inspect", folders / "low", "--json").stdout)
    assert found["certificate"]["holds"]
    assert found["files"]["channel.npz"] > 100


def test_the_claims_of_a_continuous_requirement_have_names() -> None:
    plan = md.Domain.anchors(columns=3, rows=3, width=2.0, height=2.0, unit="km")
    requirements = [md.ContinuousPrivacy("1", plan)]
    cost = md.distances.euclidean(plan)
    md.save(
        md.design(md.Problem(md.Prior.uniform(9), cost, requirements, secrets=plan, observables=plan)),
        "d",
        report=False,
    )
    lines = well("inspect", "d").stdout.splitlines()
    for name in ("continuous privacy, ε per km (Euclidean distance, all points)", "anchors along x", "anchors along y"):
        assert sum(name in line and "≤" in line for line in lines) == 1
    for axis in ("x", "y"):
        assert any(line.startswith(f"bounded, between neighbouring anchors along {axis}  ") for line in lines)


def test_inspect_of_a_release_has_no_empty_heading() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"x": ["a", "b"]}))
    md.save(md.tables.Histogram().release(["a", "b"], policy, epsilon=1), "out", report=False)
    lines = well("inspect", "out").stdout.splitlines()
    title = next(index for index, line in enumerate(lines) if "Release from a table" in line)
    assert lines[title + 1].strip()


def test_inspect_of_a_release_shows_what_its_description_says() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"x": list("abcd")}), unbounded=True)
    noises = {None: "the operating system's randomness", 1: "a generator of the caller: this is a rehearsal"}
    for seed, noise in noises.items():
        release = md.tables.Histogram().release(["a", "b"], policy, epsilon=1, rng=seed)
        md.save(release, f"out {seed}", report=False)
        found = json.loads(well("inspect", f"out {seed}", "--json").stdout)
        assert (found.pop("noise"), found.pop("answers")) == (noise, "4, in steps of 1")
        assert found == {name: getattr(release.description, name) for name in found} | {
            "remarks": list(release.description.remarks)
        }
        assert {"policy", "neighbours", "definition", "mechanism", "spent"} < set(found)


def test_names_that_are_no_text_are_compared(folders: Path, tmp_path: Path) -> None:
    strange = tmp_path / os.fsdecode(b"bad\xff")
    try:
        shutil.copytree(folders / "low", strange)
    except OSError:
        pytest.skip("the file system has only names that are texts")
    page = tmp_path / "page.html"
    assert "bad\\xff" in well("compare", strange, folders / "high", "-o", page).stdout
    assert "bad\\xff" in page.read_text(encoding="utf-8")
