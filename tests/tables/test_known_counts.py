"""Releases under publicly known counts: their descriptions, and refusals."""

from __future__ import annotations

import itertools
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from releases import strategy_of

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import InputError
from mechdesign.specification._table_specification import parse
from mechdesign.tables._domain import Domain
from mechdesign.tables._linear_queries import step_of
from mechdesign.tables._policy import ALONE, KNOWN_COUNTS, Policy
from mechdesign.tables._queries._cumulative import Cumulative
from mechdesign.tables._queries._kmeans import KMeans
from mechdesign.tables._queries._linear import Histogram, Linear
from mechdesign.tables._workload import all_ranges, prefixes

TEN = Domain({"x": range(10)})
HALF = np.arange(10) < 5
LINE = Policy.threshold(TEN, 1, constraints=[HALF])
DATA = [0, 1, 1, 3, 5, 6, 9] * 20
ANY = "from any value to any other"


def inspected(folder: Path, *options: str) -> tuple[str, str]:
    result = CliRunner().invoke(main, ["inspect", str(folder), *options])
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split()), " ".join(result.stderr.split())


def test_a_release_names_its_definition_wherever_it_is_read(tmp_path):
    for policy, definition in ((LINE, KNOWN_COUNTS), (Policy.threshold(TEN, 1), ALONE)):
        found = Histogram().release(DATA, policy, epsilon=1)
        assert found.description.definition == policy.definition == definition
        folder = tmp_path / definition[:5]
        md.save(found, folder)
        said = json.loads((folder / "release.json").read_text(encoding="utf-8"))
        assert (said["version"], said["definition"]) == (1, definition)
        assert definition in (folder / "report.html").read_text(encoding="utf-8")
        loaded = md.tables.load(folder)
        assert loaded.description == found.description
        text, _ = inspected(folder)
        assert definition.split(".")[0] in text
    assert "at least one record changes from one value to another at a distance of at most 1 in x" in LINE.neighbours
    assert f"the other records that differ change {ANY}, and no" in LINE.neighbours
    unbounded = Policy.full(TEN, constraints=[HALF], unbounded=True)
    assert f"change {ANY}, or to being absent, or back, and no" in unbounded.neighbours


def test_other_versions_and_definitions_are_refused(tmp_path):
    md.save(Histogram().release(DATA, LINE, epsilon=1), tmp_path, report=False)
    header = tmp_path / "release.json"
    whole = json.loads(header.read_text(encoding="utf-8"))
    for change in ({"version": 2}, {"definition": None}, {"definition": 5}):
        header.write_text(json.dumps({**whole, **change}), encoding="utf-8")
        with pytest.raises(InputError, match="not contain a readable release"):
            md.tables.load(tmp_path)


def test_a_cumulative_histogram_has_the_noise_of_the_policy():
    found = Cumulative(mechanism="ordered").release(DATA, LINE, epsilon="0.5", rng=3)
    assert found.noise.node_scale == LINE.sensitivity("cumulative") * 2 == 16
    assert found.answers[-1] == len(DATA)
    assert (np.diff(found.answers) >= 0).all()
    assert list(found.labels) == ["x"]
    planned = Cumulative().plan(LINE, epsilon="0.5").taken
    assert planned.name == "ordered"
    assert planned.error == pytest.approx(np.sqrt((found.standard_errors**2).mean()))
    with pytest.raises(InputError, match="known counts"):
        Cumulative(mechanism="hierarchical").plan(LINE, epsilon=1)
    with pytest.raises(InputError, match="auto"):
        Cumulative(mechanism="ordered").release(DATA, Policy.threshold(TEN, 1, unbounded=True), epsilon=1)
    with pytest.raises(InputError, match="differs from the count"):
        Cumulative(mechanism="ordered").release(DATA, Policy.threshold(TEN, 1, constraints=[(HALF, 1)]), epsilon=1)
    # A policy by blocks, without known counts, has no θ either.
    blocks = Policy.partition(TEN, np.arange(10) // 5)
    assert Cumulative(mechanism="ordered").release(DATA, blocks, epsilon=1, rng=1).noise.node_scale == 4
    exact = Cumulative(mechanism="ordered").release(DATA, Policy.graph(TEN, []), epsilon=1)
    assert (exact.epsilon, exact.answers.tolist()) == (0, np.cumsum(np.bincount(DATA, minlength=10)).tolist())


def test_what_a_refusal_names_as_its_remedy_works():
    # A strategy is refused: the queries themselves are answered.
    with pytest.raises(InputError, match="noise is then added to each"):
        strategy_of("prefixes", LINE)
    answered = Linear(prefixes(10)).release(DATA, LINE, epsilon=1, rng=1)
    assert list(answered.labels) == ["first", "last"]
    plan = prefixes(10).plan(LINE, epsilon=1)
    assert plan.taken.error == answered.standard_errors[0]
    assert KNOWN_COUNTS in plan.remarks
    with pytest.raises(InputError, match="publicly known counts"):
        prefixes(10).using("optimal").plan(LINE, epsilon=1)
    # Records that come and go, and known counts: cumulative counts are answered.
    both = Policy.threshold(TEN, 1, constraints=[HALF], unbounded=True)
    assert len(Cumulative().release(DATA, both, rho=1, rng=1)) == 10
    # Known counts are answered without noise.
    known = Linear(HALF.astype(int)).release(DATA, LINE, epsilon=1)
    assert (known.epsilon, known.answers.tolist()) == (0, [80.0])


def test_weights_of_a_workload():
    assert step_of(np.array([[0.1, 0.25], [3.0, 0.0]])) == Fraction(1, 20)
    wide = Domain({"x": range(300)})
    with pytest.raises(InputError, match="too many weights"):
        Linear(all_ranges(300)).release([1], Policy.full(wide), epsilon=1)


def test_k_means_is_refused_with_the_reason():
    reason = "known counts.*release a histogram.*no bound on their joint change is proven"
    full = Policy.full(TEN, constraints=[HALF])
    for asked in (
        lambda: md.tables.KMeans(2, iterations=3).release(DATA, full, epsilon=1),
        lambda: KMeans(2, iterations=3).plan(full, epsilon=1),
        lambda: full.sensitivity("kmeans-sum"),
        lambda: full.sensitivity("kmeans-size", clusters=HALF.astype(int)),
    ):
        with pytest.raises(InputError, match="(?i)" + reason):
            asked()
    # Before the table is looked at.
    with pytest.raises(InputError, match="known counts"):
        md.tables.KMeans(2, iterations=3).release(["no value"], full, epsilon=1)


def test_specifications_under_known_counts():
    for policy, release in itertools.product(
        ('kind = "attribute", theta = { x = "next" }', 'kind = "full"'),
        (
            'kind = "histogram", epsilon = 1',
            'kind = "sum", rho = 1',
            'kind = "cdf", epsilon = 1',
            'kind = "quantiles", epsilon = 1, probabilities = [0.5]',
            'kind = "ranges", epsilon = 1, ranges = [[0, 2], [3, 9]]',
            'kind = "cdf", rho = 1',
            'kind = "ranges", rho = 1, ranges = [[0, 2], [3, 9]]',
            'kind = "workload", rho = 1, marginals = [["x"]]',
        ),
    ):
        constraints = "[{ where = { x = { low = 0, high = 4 } }, count = 80 }]"
        given = parse(
            "table.person = false\ndomain.attributes.x = { range = [0, 9] }\n"
            f"policy = {{ {policy}, constraints = {constraints} }}\nrelease = {{ {release} }}\n"
        )
        plan = given.plan()
        # The command line asks how much room the files take.
        assert given.output_size() > given.output_size(report=False) > 100_000
        found = given.release({"x": DATA}, rng=1).release
        assert plan.neighbours == found.description.neighbours
        assert found.description.definition == KNOWN_COUNTS
        assert found.standard_errors.max() > 0.9, (policy, release)
        if plan.queries == len(found):
            assert plan.taken.error == pytest.approx(np.sqrt((found.standard_errors**2).mean())), (policy, release)
        with pytest.raises(InputError, match=r"policy\.constraints|constraints\[0\]"):
            given.release({"x": [0, 9]}, rng=1)


def test_float_weights_in_a_specification(tmp_path):
    np.savetxt(tmp_path / "w.csv", [[0.1] * 5 + [0.25] * 5, [0] * 5 + [1.5] * 5], delimiter=",")
    given = parse(
        "table.person = false\ndomain.attributes.x = { range = [0, 9] }\n"
        'policy = { kind = "threshold", theta = 1, constraints = [{ where = { x = { low = 0, high = 3 } } }] }\n'
        'release = { kind = "workload", epsilon = 1, matrix = { path = "w.csv" } }\n',
        tmp_path,
    )
    found = given.release({"x": DATA}, rng=1).release
    assert found.description.step == Fraction(1, 20)
    assert given.plan().taken.error == pytest.approx(found.standard_errors[0])


def test_named_weights_in_a_specification_are_matched_with_the_values(tmp_path):
    rows = np.arange(20.0).reshape(2, 10) / 4
    for name, order in (("ages", range(10, 20)), ("turned", range(19, 9, -1))):
        columns = [age - 10 for age in order]
        lines = [list(order), *rows[:, columns].tolist()]
        (tmp_path / f"{name}.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    text = (
        "table.person = false\ndomain.attributes.x = { range = [10, 19] }\npolicy.kind = 'full'\n"
        'release = { kind = "workload", epsilon = 1, matrix = { path = "ages.csv", header = true } }\n'
    )
    data = {"x": np.arange(10, 20)}
    answers = [
        parse(each, tmp_path).release(data, rng=1).release.answers for each in (text, text.replace("ages", "turned"))
    ]
    assert np.array_equal(*answers)
    (tmp_path / "ages.csv").write_text((tmp_path / "ages.csv").read_text().replace("10,11", "10,21"))
    with pytest.raises(InputError, match=r"release\.matrix: .*has a name that is no label"):
        parse(text, tmp_path).release(data, rng=1)
