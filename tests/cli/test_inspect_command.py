"""`mechdesign inspect` of one folder, and of several."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, run, well, write

import mechdesign as md
from mechdesign.certify._exact import exact_text
from mechdesign.measures import attack

pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.RevealedWarning")


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


def design_on(domain: md.Domain, folder: Path) -> Path:
    weights = [2.0 if index == 0 else 1.0 for index in range(domain.size)]
    distance = md.distances.hamming(domain.size)
    problem = md.Problem(md.Prior.from_counts(weights), distance, [md.MetricPrivacy(1, distance)], secrets=domain)
    md.save(md.design(problem), folder, report=False)
    return folder


def compared(*folders: Path | str) -> dict[str, object]:
    return json.loads(well("inspect", *folders, "--json").stdout)


def test_several_designs_are_compared(folders: Path) -> None:
    found = compared(folders / "low", folders / "high")
    assert list(found["designs"]) == ["low", "high"]
    assert found["differences"] == []
    low, high = (found["designs"][name] for name in ("low", "high"))
    assert low["expected_cost"] > high["expected_cost"]
    assert found["said"].startswith("high costs ")
    design = md.Design.load(folders / "low")
    best = attack.optimal(design.channel, design.problem.prior, design.problem.cost).distortion
    assert low["error of the optimal attack"] == pytest.approx(best, rel=1e-12)
    (name,) = (each for each in high if each.startswith("metric"))
    assert high[name]["required"] == "1.54239721751818088"
    assert "holds" in well("inspect", folders / "low", folders / "high").stdout


LABELS = 'title = "four"\ndomain.labels = ["home", "work", "gym", "pub"]\nprior.counts = [5, 4, 2, 1]\n'
LABELS += 'cost.distance = "hamming"\npolicy.isolated = "release"\n'
METRIC = '{{ kind = "metric", epsilon = {}, matrix = {{ path = "{}.csv" }} }}'
FLOOR = ', {{ kind = "distortion", minimum = 0.3, matrix = {{ path = "{}.csv" }} }}'
THRESHOLD = '{{ kind = "threshold", epsilon = 1, radius = {}, matrix = {{ path = "{}.csv" }} }}'
EDGES = '{{ kind = "graph", epsilon = 1, edges = {} }}'
DIFFERENT = {
    "edges": (
        EDGES.format('[["home", "work"], ["work", "gym"]]'),
        EDGES.format('[["gym", "pub"], ["work", "pub"]]'),
        "The bounded pairs differ (graph privacy)",
    ),
    "distances": (METRIC.format(1, "a"), METRIC.format(1, "b"), "The distances differ (metric privacy)"),
    "pairs of a threshold": (THRESHOLD.format(4, "a"), THRESHOLD.format(4, "b"), "The bounded pairs differ"),
    "radii": (THRESHOLD.format(4, "a"), THRESHOLD.format(5, "a"), "The radii differ (threshold privacy)"),
    "errors of a floor": (
        METRIC.format(1, "a") + FLOOR.format("a"),
        METRIC.format(1, "a") + FLOOR.format("b"),
        "The errors differ (distortion privacy)",
    ),
    "kinds": (METRIC.format(1, "a") + FLOOR.format("a"), METRIC.format(1, "a"), "Only one of them requires distortion"),
    "ε alone": (METRIC.format(1, "a"), METRIC.format(2, "a"), ""),
}


def test_differences_of_requirements_are_told_and_costs_then_not_ranked() -> None:
    write("0,1,5,9\n1,0,4,8\n5,4,0,4\n9,8,4,0\n", "a.csv")
    write("0,5,4,4\n5,0,9,1\n4,9,0,8\n4,1,8,0\n", "b.csv")
    for case, (first, second, says) in DIFFERENT.items():
        for name, privacy in (("one", first), ("two", second)):
            spec = md.specification.parse(f"{LABELS}privacy = [{privacy}]\n")
            md.save(spec.design(), name, report=False, overwrite=True)
        found = compared("one", "two")
        assert bool(found["differences"]) == bool(says), (case, found["differences"])
        assert says in "".join(found["differences"]), case
        assert ("% less than" in found["said"]) == (not says), case
        assert says in well("inspect", "one", "two").stdout, case


NEAR = md.Domain.from_points([[0, 0], [1, 0]], ["a", "b"])
PAIRS = (
    # Two boxes of one size have equal points, since these are counted from a corner.
    (
        md.Domain.geographic_grid(2, 2, 35.0, 35.1, 139.0, 139.1),
        md.Domain.geographic_grid(2, 2, 35.3, 35.4, 139.0, 139.1),
    ),
    (NEAR, md.Domain.from_points([[0, 0], [2, 0]], ["a", "b"])),
    (NEAR, md.Domain.from_points([[1, 0], [9, 0]], ["b", "c"])),
)


def test_other_secrets_are_told() -> None:
    for number, pair in enumerate(PAIRS):
        one, two = (design_on(domain, Path(f"{number}{name}")) for domain, name in zip(pair, "ab", strict=True))
        assert compared(one, two)["differences"] == ["The secrets differ."]


def test_wrong_usage(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders)
    assert_wrong_usage({"inspect": "DIR", "inspect low nowhere": "nowhere", "inspect nowhere": "nowhere"})
    assert_wrong_usage({"inspect -- --json": "--json: does not exist"})


def test_inspect_says_what_is_there(folders: Path) -> None:
    text = well("inspect", folders / "low").stdout
    for said in ("3 × 2 cells", "most likely 0 (30%)", "metric privacy", "certificate.json", "solver"):
        assert said in text
    found = json.loads(well("inspect", folders / "low", "--json").stdout)
    assert found["holds"]
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
    found = json.loads(well("inspect", "d", "--json").stdout)["requirements"]
    names = [each["requirement"] for each in found]
    for name in ("continuous privacy, ε per km (Euclidean distance, all points)", "anchors along x", "anchors along y"):
        assert sum(name in each for each in names) == 1
    assert sum("ordered pairs" in (each["bounded"] or "") for each in found) >= 2
    assert compared("d", "d")["differences"] == []


def test_inspect_of_a_release_shows_what_its_description_says() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"x": list("abcd")}), unbounded=True)
    noises = {None: "the operating system's randomness", 1: "a generator of the caller: this is a rehearsal"}
    for (seed, noise), budget in zip(noises.items(), ("epsilon", "rho"), strict=True):
        release = md.tables.Histogram().release(["a", "b"], policy, **{budget: 1}, rng=seed)
        md.save(release, f"out {seed}", report=False)
        found = json.loads(well("inspect", f"out {seed}", "--json").stdout)
        steps = f"4, in steps of {exact_text(release.description.step)}"
        assert (found.pop("noise"), found.pop("answers")) == (noise, steps)
        assert found.pop("release") == release.description.what
        verdict = "A rehearsal: " if seed else "Released; ε = 1 was spent: "
        assert found.pop("said").startswith(f"out {seed}, as its files say: {verdict}")
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
    assert "bad\\xff" in run("inspect", strange, folders / "high").stdout
