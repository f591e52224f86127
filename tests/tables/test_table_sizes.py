"""Large domains: closed forms, or a refusal before an array of all values fills the memory."""

from __future__ import annotations

import math
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from releases import release_by, strategy_of

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.specification._table_specification import parse
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._trees import choose_tree
from mechdesign.tables._secret_graphs import LARGEST_ARRAY, require_room
from mechdesign.tables._sensitivity._sensitivity import sensitivity
from mechdesign.tables._workload import all_ranges

resource = pytest.importorskip("resource")

# 10^15 values.
LARGE = Domain({f"a{i}": range(10) for i in range(15)})
SMALL = Domain({"x": range(4), "y": [0, 3, 4], "z": range(2)})


@contextmanager
def memory(limit):
    """Limit the further memory of the process to a number of bytes."""
    statistics = Path("/proc/self/statm")
    if not statistics.exists():
        pytest.skip("this system does not say how much memory the process has")
    now = int(statistics.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (now + limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def made(domain, unbounded):
    size = domain.size
    first, second = domain.names[:2]
    yield Policy.full(domain, unbounded=unbounded)
    yield Policy.attribute(domain, unbounded=unbounded)
    yield Policy.threshold(domain, 2, unbounded=unbounded)
    yield Policy.attribute(domain, theta=dict.fromkeys(domain.names, 0) | {second: 3}, unbounded=unbounded)
    yield Policy.graph(domain, [(0, size - 1), (1, 2)], unbounded=unbounded)
    yield Policy.attribute(domain, theta={first: "next"}, unbounded=unbounded)
    if unbounded:
        yield Policy.graph(domain, [(0, None), (size - 1, None), (3, 5)], unbounded=True)
        yield Policy.graph(domain, [], unbounded=True)


def test_sums_along_an_attribute_are_those_over_all_edges():
    for unbounded in (False, True):
        partition = Policy.partition(SMALL, np.arange(24) % 5, unbounded=unbounded)
        for policy in (*made(SMALL, unbounded), partition):
            edges = policy.secret_graph.edges()
            for axis, attribute in enumerate(SMALL.attributes):
                weights = np.append(np.array([int(SMALL.value(x)[axis]) for x in range(24)]), 0)
                largest = np.abs(weights[edges[:, 0]] - weights[edges[:, 1]]).max()
                for norm in (1, 2):
                    found = sensitivity(policy, "sum", norm, attribute=attribute.name)
                    assert found.power == largest**norm, (policy, attribute)
                    x, y = found.witness
                    assert bool(policy.secret_graph.has_edge(x, y))
                    assert abs(weights[x] - weights[y]) == largest


def test_the_sum_of_one_of_many_attributes_needs_no_memory():
    row = tuple(range(10)) + (0,) * 5
    expected = [[9, 9, 2, 0, 9, 1], [9, 9, 9, 9, 9, 9, 9, 9]]
    with memory(2**30):
        for unbounded, values in ((False, expected[0]), (True, expected[1])):
            for policy, value in zip(made(LARGE, unbounded), values, strict=True):
                found = md.tables.Sum("a0").release([row] * 3, policy, epsilon=10**6)
                assert sensitivity(policy, "sum", attribute="a0").value == value
                assert found.answers.tolist() == [0]
        # An explicit graph has no closed form for clusters.
        with pytest.raises(InputError, match="too many values"):
            md.tables.KMeans(2, iterations=1).release([row], Policy.graph(LARGE, [(0, 1)]), epsilon=1)


def test_what_would_fill_the_memory_is_refused():
    calls = [
        lambda: md.tables.marginals(Domain({f"a{i}": range(10) for i in range(8)}), 2).matrix(),
        lambda: md.tables.marginals(Domain({f"a{i}": range(2) for i in range(50)}), 25),
        lambda: md.tables.marginals(LARGE, [["a0"]]).gram(),
        lambda: md.tables.marginals(Domain({"a": range(2**23)}), [["a"]]),
        lambda: strategy_of("ranges", Policy.full(Domain({"a": range(10**5)}))),
        lambda: strategy_of("identity", Policy.full(Domain({"a": range(10**12)}))),
        lambda: md.tables.Cumulative().plan(Policy.full(Domain({"a": range(10**12)})), epsilon=1),
        lambda: sensitivity(Policy.full(Domain({"a": range(10**12)})), "cumulative"),
        lambda: md.tables.Sum().release([1], Policy.full(Domain({"a": range(10**12)})), epsilon=1),
        lambda: Policy.threshold(Domain({"a": range(10**12)}), 1),
        lambda: Policy.threshold(Domain({"a": range(10**12)}), 2),
    ]
    for call in calls:
        with memory(2**30), pytest.raises(InputError, match="too many"):
            call()


def test_just_inside_and_just_outside_each_bound():
    require_room(LARGEST_ARRAY, "this")
    with pytest.raises(InputError, match="too many values for this"):
        require_room(LARGEST_ARRAY + 1, "this")
    # 2^26 coefficients, and one table more.
    domain = Domain({f"a{i}": range(2) for i in range(13)})
    assert math.comb(13, 2) * domain.size < 2**26
    assert md.tables.marginals(domain, [["a0"]] * 64).matrix().shape == (128, 2**13)
    with pytest.raises(InputError, match="too many coefficients"):
        md.tables.marginals(domain, [[]] * (2**13 + 1)).matrix()
    with pytest.raises(InputError, match="too many ranges"):
        all_ranges(11_586)


def test_a_histogram_may_have_as_many_numbers_as_its_error_says(monkeypatch):
    # Three labels, the answer, its standard error and two ends, for each of eight values.
    domain = Domain({f"a{i}": range(2) for i in range(3)})
    monkeypatch.setattr("mechdesign.tables._queries._linear._MOST_NUMBERS", 8 * 7)
    assert len(md.tables.Histogram().release([(0,) * 3], Policy.full(domain), epsilon=1)) == 8
    monkeypatch.setattr("mechdesign.tables._queries._linear._MOST_NUMBERS", 8 * 7 - 1)
    with pytest.raises(InputError, match="too many values for a histogram; found 8; must be at most 7 with 7 columns"):
        md.tables.Histogram().release([(0,) * 3], Policy.full(domain), epsilon=1)


def test_a_histogram_whose_labels_would_fill_the_memory_is_refused():
    wide = Domain({f"a{i}": range(10) for i in range(8)})
    with memory(2**27), pytest.raises(InputError, match="too many values for a histogram"):
        md.tables.Histogram().release([(0,) * 8], Policy.full(wide), epsilon=1)


def test_more_clusters_than_fit_into_the_memory_are_refused():
    with memory(2**27), pytest.raises(InputError, match="k: is too large; found 1000000000"):
        md.tables.KMeans(10**9, iterations=1).release([1, 2], Policy.threshold(Domain({"x": range(4)}), 1), epsilon=1)


def test_ranges_of_a_large_domain_are_refused():
    for error in (
        lambda: choose_tree(2**40, 2**39, 1),
        lambda: choose_tree(2**40, 3, 1).error,
    ):
        with memory(2**27), pytest.raises(InputError, match="domain: has too many values for ranges"):
            error()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "line", "threshold"])
def test_laplace_strategies_are_found_where_budgets_of_levels_vanish(kind):
    domain = Domain({"a": range(64)})
    policy = {
        "full": Policy.full(domain, unbounded=True),
        "line": Policy.threshold(domain, 1, unbounded=True),
        "threshold": Policy.threshold(domain, 5, unbounded=True),
    }[kind]
    found = strategy_of("ranges", policy, "laplace")
    assert np.isfinite([error for _, _, error in found.candidates]).all()
    release = release_by(found, [3, 3, 60], epsilon=10**9)
    low, high = release.labels["first"], release.labels["last"]
    true = [sum(low_ <= x <= high_ for x in (3, 3, 60)) for low_, high_ in zip(low, high, strict=True)]
    np.testing.assert_allclose(release.answers, true, atol=1e-3)


def test_a_long_label_counts_in_the_estimate_of_the_answers():
    sizes = []
    for length in (1, 1000):
        spec = parse(
            "table.person = false\n"
            f'domain.attributes.x = {{ values = ["{"a" * length}", "b"] }}\npolicy.kind = "full"\n'
            'release = { kind = "histogram", epsilon = 1 }\n'
        )
        sizes.append(spec.output_size())
    # Two answers, and a label is written once or, of a range, twice.
    assert sizes[1] - sizes[0] == 2 * 2 * 999
