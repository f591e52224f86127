"""Two neighbouring tables have outcomes of one kind: type, shapes, fields and words, the empty table included."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from releases import release_by, strategy_of

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import InputError
from mechdesign.mechanisms._discrete import LARGEST_VALUE
from mechdesign.report import _saving as saving
from mechdesign.specification._table_specification import parse
from mechdesign.tables._domain import Domain
from mechdesign.tables._files import Published
from mechdesign.tables._policy import Policy

DOMAIN = Domain({"age": range(4), "dose": [0.5, 1, 2]})
POLICIES = {
    "full": Policy.full(DOMAIN, unbounded=True),
    "attribute": Policy.attribute(DOMAIN, unbounded=True),
    "partition": Policy.partition(DOMAIN, [x // 4 for x in range(12)], unbounded=True),
    "threshold": Policy.threshold(DOMAIN, 1, unbounded=True),
    "presence": Policy.graph(DOMAIN, [(x, None) for x in range(12)], unbounded=True),
    "some": Policy.graph(DOMAIN, [(x, None) for x in range(5)] + [(0, 1)], unbounded=True),
}
STRATEGIES = {
    (name, noise): strategy_of("identity", policy, noise)
    for name, policy in POLICIES.items()
    for noise in ("laplace", "gaussian")
}
HUGE = np.full((1, 12), 2**60)
CENTRES = [[0.0, 0.5], [3.0, 2.0]]
RELEASES = {
    "histogram": lambda name, table: md.tables.Histogram().release(table, POLICIES[name], epsilon=1),
    "blocks": lambda name, table: md.tables.Histogram([x // 3 for x in range(12)]).release(
        table, POLICIES[name], rho=1
    ),
    "linear": lambda name, table: md.tables.Linear(np.arange(24).reshape(2, 12)).release(
        table, POLICIES[name], epsilon=1
    ),
    "huge weights": lambda name, table: md.tables.Linear(HUGE).release(table, POLICIES[name], epsilon=2**20),
    "sum": lambda name, table: md.tables.Sum("dose").release(table, POLICIES[name], epsilon=1),
    "kmeans": lambda name, table: md.tables.KMeans(2, iterations=2, initial=CENTRES).release(
        table, POLICIES[name], epsilon=1
    ),
    "laplace strategy": lambda name, table: release_by(STRATEGIES[name, "laplace"], table, epsilon=1),
    "gaussian strategy": lambda name, table: release_by(STRATEGIES[name, "gaussian"], table, rho=1),
}


def neighbours(dice, name, first):
    """Return a table and a neighbour of it under a policy; the smaller one is empty where `first` is 0."""
    edges = POLICIES[name].secret_graph.edges()
    rest = dice.integers(0, 12, first).tolist()
    if first == 0:
        edges = edges[edges[:, 1] == 12]
    x, y = edges[dice.integers(len(edges))].tolist()
    found = [table + [value] * (value < 12) for table, value in ((rest, x), (rest, y))]
    return [[DOMAIN.value(number) for number in table] for table in found]


def outcome(kind, name, table):
    """Return all of an outcome but the noisy numbers."""
    try:
        found = RELEASES[kind](name, table)
    except Exception as error:
        return type(error), str(error)
    arrays = {name: (array.dtype.kind, array.shape, array.tolist()) for name, array in found.labels.items()}
    shapes = {name: column.shape for name, column in found._columns().items()}
    parameters = found._parameters().keys()
    return type(found), found.description, arrays, shapes, found.standard_errors.tolist(), list(parameters)


@pytest.mark.slow
@pytest.mark.parametrize("kind", RELEASES)
def test_outcomes_of_neighbours_are_of_one_kind(kind):
    dice = np.random.default_rng(34)
    for pair in range(200):
        name = [*POLICIES][pair % len(POLICIES)]
        # An empty table, a table of one record, and tables in which most values are absent.
        one, other = neighbours(dice, name, (0, 1, 5)[pair % 3])
        first = outcome(kind, name, one)
        assert not issubclass(first[0], Exception), first
        assert first == outcome(kind, name, other), (name, one, other)


EMPTY = [[], (), np.zeros(0, dtype=np.int64), np.zeros((0, 2)), {"age": [], "dose": []}]


def test_every_form_of_an_empty_table_is_a_table():
    for table, (kind, release) in itertools.product(EMPTY, RELEASES.items()):
        assert DOMAIN.indices(table).shape == (0,)
        assert len(release("full", table)) > 0, kind


def test_an_empty_table_is_refused_where_the_number_of_records_is_public(monkeypatch):
    bounded = Policy.full(DOMAIN)
    monkeypatch.setitem(POLICIES, "full", bounded)
    for noise in ("laplace", "gaussian"):
        monkeypatch.setitem(STRATEGIES, ("full", noise), strategy_of("identity", bounded, noise))
    for release in RELEASES.values():
        with pytest.raises(InputError, match="number of records is public"):
            release("full", [])


def test_answers_too_large_are_clipped_where_the_number_of_records_is_private_and_refused_where_it_is_public():
    # With an ε this large the noise is 0.
    found = md.tables.Linear(HUGE).release(policy=POLICIES["full"], epsilon=2**70, positions=[0, 1, 2])
    assert found.answers.tolist() == [float(LARGEST_VALUE)]
    found = md.tables.Linear(-HUGE).release(policy=POLICIES["full"], epsilon=2**70, positions=[0, 1, 2])
    assert found.answers.tolist() == [-float(LARGEST_VALUE)]
    assert md.tables.Linear(HUGE).release(policy=Policy.full(DOMAIN), epsilon=1, positions=[0, 1]).answers.tolist() == [
        2.0**61
    ]
    with pytest.raises(InputError, match="too large"):
        md.tables.Linear(HUGE).release(policy=Policy.full(DOMAIN), epsilon=1, positions=[0, 1, 2])


def test_a_point_is_rounded_whatever_the_other_points_are():
    domain = Domain({"x": [0, 10, 20]})
    policy = Policy.full(domain)
    for points in ([(3,), (4,)], [(3,), (4.5,)]):
        found = md.tables.KMeans(1, iterations=1, initial=[[0.0]]).release(points, policy, epsilon=10**6)
        assert found.centroids.tolist() == [[0.0]]


SPECIFIED = {
    "histogram": 'kind = "histogram"\nepsilon = 1',
    "sum": 'kind = "sum"\nattribute = "age"\nepsilon = 1',
    "kmeans": 'kind = "kmeans"\nk = 2\nepsilon = 1\niterations = 2',
    "workload": 'kind = "workload"\nmarginals = [["age"], ["sex"]]\nrho = 1',
}
HEAD = (
    'table.person = false\ndomain.attributes = { age = { range = [0, 3] }, sex = { values = ["f", "m"] } }\n'
    'policy = { kind = "full", unbounded = true }\n[release]\n'
)


@pytest.mark.parametrize("kind", SPECIFIED)
def test_the_command_says_the_same_of_an_empty_table_and_of_one_record(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(HEAD + SPECIFIED[kind], encoding="utf-8")
    results = []
    for rows in ("", "2,f\n"):
        Path("t.csv").write_text("age,sex\n" + rows, encoding="utf-8")
        done = CliRunner().invoke(main, ["table", "s.toml", "t.csv", "-o", "out", "--no-report", "--overwrite"])
        assert done.exit_code == 0, done.output
        results.append((sorted(path.name for path in Path("out").iterdir()), md.tables.load("out").description))
        assert "contains no record" not in done.output
    assert results[0] == results[1]


def test_a_publication_of_an_empty_table_has_a_report():
    release = md.tables.Histogram().release([], POLICIES["presence"], epsilon=10**6)
    assert "<svg" in saving.html(Published(release, "nobody"))


def test_the_command_refuses_an_empty_table_under_a_public_number_of_records():
    head = (
        "table.person = false\ndomain.attributes.age = { range = [0, 3] }\n"
        'policy = { kind = "threshold", theta = 1 }\n[release]\n'
    )
    given = parse(head + SPECIFIED["histogram"])
    with pytest.raises(InputError, match="contains no record"):
        given.release({"age": []})
