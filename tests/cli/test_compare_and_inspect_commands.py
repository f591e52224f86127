from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.measures import attack


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Give the folders of two designs on one line of places, and of one without places."""
    folder = tmp_path_factory.mktemp("designs")
    line = md.Domain.grid(3, 2, 3.0, 2.0)
    distance = md.distances.euclidean(line)
    for name, epsilon in (("low", "0.5"), ("high", "1")):
        problem = md.Problem(
            [0.3, 0.1, 0.2, 0.1, 0.2, 0.1], distance, [md.MetricPrivacy(epsilon, distance)], secrets=line,
            observables=line, title=name,
        )  # fmt: skip
        md.design(problem).save(folder / name)
    labels = md.Domain.from_labels(["a", "b"])
    alike = md.distances.hamming(2)
    md.design(md.Problem([0.5, 0.5], alike, [md.MetricPrivacy(1, alike)], secrets=labels)).save(folder / "other")
    return folder


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result.output


def test_compare_shows_costs_and_adversaries_of_each(folders):
    found = json.loads(run("compare", folders / "low", folders / "high", "--json"))
    assert found["designs"] == ["low", "high"]
    assert found["differences"] == []
    low, high = (float(found["table"]["expected cost"][name].split()[0]) for name in ("low", "high"))
    assert low > high
    design = md.Design.load(folders / "low")
    problem, channel = design.problem, design.channel
    best = attack.optimal(channel, problem.prior, problem.cost).distortion
    assert found["table"]["error of the optimal attack"]["low"] == f"{best:.4g} km"
    assert "holds" in run("compare", folders / "low", folders / "high")


def test_compare_writes_a_page_that_asks_nothing_of_the_network(folders, tmp_path):
    page = tmp_path / "both.html"
    run("compare", folders / "low", folders / "high", "-o", page)
    text = page.read_text(encoding="utf-8")
    assert text.count("<figure") == 3
    assert text.count('role="img"') == 6
    assert "script-src 'sha256-" in text
    assert 'data-shows="error-1"' in text
    assert "All on one scale" in text


def test_designs_of_other_secrets_are_said_to_be(folders, tmp_path):
    page = tmp_path / "other.html"
    found = json.loads(run("compare", folders / "low", folders / "other", "--json", "-o", page))
    assert found["differences"][0] == "The secrets differ."
    assert "not required" in json.dumps(found["table"])
    assert page.stat().st_size > 10_000


def design_on(domain, folder, likeliest=0, epsilon="1"):
    n = domain.size
    weights = [2.0 if index == likeliest else 1.0 for index in range(n)]
    distance = md.distances.hamming(n)
    problem = md.Problem(md.Prior.from_counts(weights), distance, [md.MetricPrivacy(epsilon, distance)], secrets=domain)
    md.design(problem).save(folder)
    return folder


TOWN = md.Domain.geographic_grid(2, 2, 35.0, 35.1, 139.0, 139.1)


@pytest.mark.parametrize(
    ("first", "second", "likeliest", "said"),
    [
        # Two boxes of one size have equal points, since these are counted from a corner.
        (TOWN, md.Domain.geographic_grid(2, 2, 35.3, 35.4, 139.0, 139.1), 3, "one, for cell 3"),
        (TOWN, md.Domain.geographic_grid(3, 2, 35.0, 35.1, 139.0, 139.1), 3, "one, for cell 3"),
        (md.Domain.from_labels(["a", "b"]), md.Domain.from_labels(["b", "c"]), 0, "one, for a"),
        (
            md.Domain.from_points([[0, 0], [1, 0]], ["a", "b"]), md.Domain.from_points([[0, 0], [2, 0]], ["a", "b"]),
            1, "one, for b",
        ),
        (TOWN, TOWN, 3, "for cell 3, the likeliest secret of one"),
        (
            md.Domain.from_points([[0, 0], [1, 0]], ["a", "b"]), md.Domain.from_points([[1, 0], [9, 0]], ["b", "c"]),
            1, "for b, the likeliest secret of one",
        ),
    ],
)  # fmt: skip
def test_two_places_are_not_shown_as_one(tmp_path, first, second, likeliest, said):
    one = design_on(first, tmp_path / "one", likeliest)
    two = design_on(second, tmp_path / "two")
    found = json.loads(run("compare", one, two, "--json", "-o", tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert said in page
    assert ("The secrets differ." in found["differences"]) == (first is not second)
    assert ("for the likeliest secret of each design: the secrets differ" in page) == said.startswith("one, ")


def test_a_long_number_is_shortened_to_the_side_that_asks_less(tmp_path):
    two = [design_on(TOWN, tmp_path / name, epsilon=e) for name, e in (("one", "1.54239721751818088"), ("two", "0.5"))]
    table = json.loads(run("compare", *two, "--json"))["table"]
    found = next(line for name, line in table.items() if name.startswith("metric"))
    assert found["one"].endswith("(at most 1.542398)")
    assert found["two"].endswith("(at most 0.5)")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("compare", "low"), "is one design"),
        (("compare", "low", "nowhere"), "nowhere"),
        (("compare", "low", "high", "-o", "page.pdf"), "ends in .html"),
        (("inspect", "nowhere"), "nowhere"),
        (("inspect", "low", "--outline", "x.geojson"), "without --report"),
        (("inspect", "low", "--report", "page.html", "--outline", "x.geojson"), "cannot be opened"),
    ],
)
def test_wrong_arguments_are_refused(folders, monkeypatch, arguments, said):
    monkeypatch.chdir(folders)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (1, 2)
    assert said in result.output
    assert not (folders / "page.html").exists()


def test_inspect_says_what_is_there(folders):
    text = run("inspect", folders / "low")
    for said in ("3 × 2 cells", "most likely 0 (30%)", "metric privacy", "certificate.json", "solver"):
        assert said in text
    found = json.loads(run("inspect", folders / "low", "--json"))
    assert found["certificate"]["holds"]
    assert found["files"]["channel.npz"] > 100


def test_the_claims_of_a_continuous_requirement_have_names(tmp_path):
    plan = md.Domain.anchors(columns=3, rows=3, width=2.0, height=2.0, unit="km")
    problem = md.Problem(
        md.Prior.uniform(9), md.distances.euclidean(plan), [md.ContinuousPrivacy("1", plan)], secrets=plan,
        observables=plan,
    )  # fmt: skip
    md.design(problem).save(tmp_path / "d")
    text = run("inspect", tmp_path / "d")
    for name in ("continuous privacy, ε per km (Euclidean distance, all points)", "anchors along x", "anchors along y"):
        assert sum(name in line and "≤" in line for line in text.splitlines()) == 1
    bounded = [line for line in text.splitlines() if line.startswith("bounded")]
    assert [line.partition("   ")[0] for line in bounded] == [
        "bounded, between neighbouring anchors along x", "bounded, between neighbouring anchors along y",
    ]  # fmt: skip


def test_inspect_draws_an_outline(folders, tmp_path):
    coast, page = tmp_path / "coast.geojson", tmp_path / "page.html"
    coast.write_text('{"type": "LineString", "coordinates": [[0, 0], [3, 2]]}', encoding="utf-8")
    run("inspect", folders / "low", "--report", page, "--outline", coast)
    assert page.read_text(encoding="utf-8").count('href="#outline-') >= 9
