"""Exact releases with other releases: those that a ledger allows protect every edge of every policy, by brute force."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from long import mostly_long
from releases import release_by, release_counts, strategy_of

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import ExactReleaseError, InputError
from mechdesign.specification._table_specification import parse
from mechdesign.tables._charges import (
    classes_of_rows,
    classes_of_sum,
    components,
    digest_of_domain,
)
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._workload import MatrixQueries, marginals, ranges_of

B = md.tables
LINE = Domain({"v": range(4)})
TABLE = Domain({"a": [0, 1, 2], "b": [0, 5]})
WEIGHTS = [[1, 1, 0, 0, 2, 2], [0, 0, 3, 3, 1, 1]]


def policies(domain):
    size = domain.size
    yield Policy.full(domain)
    yield Policy.full(domain, unbounded=True)
    yield Policy.partition(domain, [x * 2 // size for x in range(size)])
    yield Policy.partition(domain, [(x + 1) // 2 for x in range(size)])
    yield Policy.partition(domain, range(size))
    yield Policy.graph(domain, [(0, 1), (2, 3)])
    yield Policy.graph(domain, [(0, 1), (2, 3), (1, None)], unbounded=True)
    yield Policy.graph(domain, [(0, None)], unbounded=True)
    if domain is TABLE:
        yield Policy.attribute(domain, theta={"a": 1, "b": 0})
        yield Policy.attribute(domain, theta={"a": 0, "b": 5})
        yield Policy.attribute(domain)
        yield Policy.attribute(domain, theta={"a": 1})


def releases(domain):
    """Yield the queries as functions of a table and a policy."""
    size = domain.size
    yield lambda table, policy, **more: B.Histogram().release(policy=policy, epsilon=1, positions=table, **more)
    blocks = [x // 2 for x in range(size)]
    yield lambda table, policy, **more: B.Histogram(blocks).release(policy=policy, rho=1, positions=table, **more)
    if domain is TABLE:
        yield lambda table, policy, **more: B.Sum("b").release(policy=policy, epsilon=1, positions=table, **more)
        yield lambda table, policy, **more: B.Linear(WEIGHTS).release(policy=policy, epsilon=1, positions=table, **more)
        yield lambda table, policy, **more: release_by(prepared("b", policy), positions=table, rho=1, **more)
    else:
        yield lambda table, policy, **more: B.Cumulative(mechanism="ordered").release(table, policy, epsilon=1, **more)
        yield lambda table, policy, **more: release_by(prepared("ranges", policy), table, rho=1, **more)


@functools.cache
def prepared(workload, policy):
    return strategy_of(marginals(TABLE, [["b"]]) if workload == "b" else [(0, 1), (2, 3)], policy, kind="identity")


def exact_answers(release, policy, table):
    """Return the exact content of a release: its answers, or its public totals."""
    found = release(table, policy)
    if not (found.epsilon or found.rho):
        return found.answers.tolist()
    said = " ".join(found.description.remarks)
    if "number of records is public" in said or "not protect the number of records" in said:
        return len(table)
    if "of the policy's graph" in said:
        # Of the table that has no record the component is that of absence.
        graph = nx.Graph(policy.secret_graph.edges().tolist())
        graph.add_nodes_from(range(policy.domain.size + 1))
        found = [frozenset(part) for part in nx.connected_components(graph)]
        return [sum(x in part for x in table) for part in found if policy.domain.size not in part]
    return None


@functools.cache
def keeps(release, policy, other):
    """Return whether exact answers under one policy are equal on all neighbouring tables of another policy."""
    for x, y in other.secret_graph.edges().tolist():
        for rest in (0, policy.domain.size - 1):
            one, two = ([rest] + [end] * (end < policy.domain.size) for end in (x, y))
            if exact_answers(release, policy, one) != exact_answers(release, policy, two):
                return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("domain", mostly_long([LINE, TABLE]), ids=["line", "table"])
def test_a_ledger_refuses_where_an_edge_would_not_be_left_and_nowhere_else(domain):
    dice = np.random.default_rng(8)
    asked = []
    for policy, release in itertools.product(policies(domain), releases(domain)):
        try:
            release([0, 1], policy)
        except InputError:
            continue
        asked.append((policy, release))
    pairs = list(itertools.product(asked, repeat=2))
    outcomes = {True: 0, False: 0}
    for index in dice.permutation(len(pairs))[:90]:
        (first, one), (second, two) = pairs[index]
        ledger = md.Ledger()
        one([0, 1], first, ledger=ledger)
        allowed = first is second or (keeps(one, first, second) and keeps(two, second, first))
        outcomes[allowed] += 1
        try:
            two([0, 1], second, ledger=ledger)
        except ExactReleaseError:
            assert not allowed, (first, second, ledger.entries)
            two([0, 1], second, ledger=ledger, together=True)
        else:
            assert allowed, (first, second, ledger.entries)
        assert [entry.together for entry in ledger.entries] == [False, not allowed]
    assert min(outcomes.values()) > 20


def test_an_exact_release_has_the_remark_of_its_plan():
    exact = Policy.partition(LINE, range(4))
    for query in (B.Cumulative(), B.Quantiles([0.5]), B.Ranges([(0, 1)]), B.Cumulative(mechanism="ordered")):
        found = query.release([0, 1, 2], exact, epsilon=1).description
        assert found.remarks == query.plan(exact, epsilon=1).remarks, query
        assert (found.epsilon, len(found.remarks)) == (0, 1), query


def test_queries_on_public_attributes_alone_are_exact_and_free():
    for size, more, spends in ((3, {}, "nothing"), (200, {}, "nothing"), (3, {"unbounded": True}, "ε = 1")):
        domain = Domain({"age": range(size), "region": ["n", "s"]})
        policy = Policy.attribute(domain, theta={"region": 0}, **more)
        region = np.tile([0, 1], size)
        for query in (B.Histogram(region), marginals(domain, [["region"]]), B.Linear(region)):
            assert query.plan(policy, epsilon=1).spends == spends, (size, query)
        totals = B.Histogram().release([(0, "n"), (1, "n"), (2, "s")], policy, epsilon=1, rng=1)
        released = totals.answers.reshape(size, 2).sum(axis=0)
        # Up to 256 values a strategy is taken, which uses the exact totals.
        assert (np.abs(released - [2, 1]).max() < 1e-9) == (size == 3 and not more), (size, more)


def test_two_partitions_that_cross_do_not_tell_the_whole_table():
    first, second = ([0, 0, 1, 1], [0, 1, 1, 2])
    ledger = md.Ledger(epsilon=1)
    one = Policy.partition(LINE, first)
    found = B.Histogram(first).release([0, 1, 3], one, epsilon=1, ledger=ledger)
    (entry,) = ledger.entries
    assert (entry.epsilon, entry.number) == (0, found.description.entry)
    assert entry.components == entry.classes
    with pytest.raises(ExactReleaseError, match=r'"histogram of a partition".*conflicts with "histogram.*--together'):
        B.Histogram(second).release([0, 1, 3], Policy.partition(LINE, second), epsilon=1, ledger=ledger)
    assert ledger.entries == (entry,)
    assert ledger.remaining_epsilon == 1
    # With together=True the two releases reveal the whole table, so they are otherwise refused.
    insisted = B.Histogram(second).release(
        [0, 1, 3], Policy.partition(LINE, second), epsilon=1, ledger=ledger, together=True
    )
    (low, high), (alone, middle, last) = found.answers.tolist(), insisted.answers.tolist()
    assert [alone, low - alone, high - last, last] == [1, 1, 0, 1]
    assert middle == low - alone + high - last


TWO_BLOCKS = Policy.partition(LINE, [0, 0, 1, 1])
EXACT = {
    "histogram": lambda **more: B.Histogram().release([0], Policy.partition(LINE, range(4)), epsilon=1, **more),
    "blocks": lambda **more: B.Histogram([0, 0, 1, 1]).release(
        [0], Policy.partition(LINE, [0, 0, 1, 1]), epsilon=1, **more
    ),
    "sum": lambda **more: B.Sum().release([0], Policy.partition(LINE, range(4)), epsilon=1, **more),
    "linear": lambda **more: B.Linear([1, 1, 0, 0]).release([0], Policy.partition(LINE, [0, 0, 1, 1]), rho=1, **more),
    "strategy": lambda **more: release_by(
        strategy_of([(0, 1)], Policy.partition(LINE, [0, 0, 1, 1])), [0], rho=1, **more
    ),
    "kmeans": lambda **more: B.KMeans(2, iterations=1).release(
        [0], Policy.partition(LINE, range(4)), epsilon=1, **more
    ),
    "cumulative": lambda **more: B.Cumulative(mechanism="ordered").release(
        [0], Policy.partition(LINE, range(4)), epsilon=1, **more
    ),
}
NOISY = {
    "histogram": lambda **more: B.Histogram().release([0], Policy.full(LINE), epsilon=1, **more),
    "sum": lambda **more: B.Sum().release([0], Policy.full(LINE), rho=1, **more),
    "linear": lambda **more: B.Linear([1, 0, 0, 0]).release([0], Policy.full(LINE), epsilon=1, **more),
    "strategy": lambda **more: release_by(strategy_of([(0, 1)], Policy.full(LINE)), [0], rho=1, **more),
    "kmeans": lambda **more: B.KMeans(2, iterations=1).release([0], Policy.full(LINE), epsilon=1, **more),
    "ordered": lambda **more: release_counts([1, 0, 0, 0], 3, 1, **more),
    "tree": lambda **more: release_counts([1, 0, 0, 0], 4, 1, "ordered-hierarchical", **more),
    "hierarchical": lambda **more: release_counts([1, 0, 0, 0], len([1, 0, 0, 0]), 1, "hierarchical", **more),
}


def test_each_place_without_noise_is_an_entry_and_is_refused_beside_a_policy_that_protects():
    for kind in EXACT:
        be_refused_beside_a_policy_that_protects(kind)


def be_refused_beside_a_policy_that_protects(kind):
    ledger = md.Ledger()
    found = EXACT[kind](ledger=ledger)
    (entry,) = ledger.entries
    assert (found.epsilon or 0, entry.epsilon, entry.rho) == (0, 0, None)
    assert entry.classes is not None
    assert entry.domain == digest_of_domain(LINE)
    # A repeated release is allowed, and other releases are not affected.
    EXACT[kind](ledger=ledger)
    # k-means does not say which values it tells apart: a noisy release passes.
    if kind != "kmeans":
        with pytest.raises(ExactReleaseError, match="earlier release is exact"):
            NOISY["histogram"](ledger=ledger)
    other = md.Ledger()
    NOISY["histogram"](ledger=other)
    with pytest.raises(ExactReleaseError, match="cannot be decided" if kind == "kmeans" else "new release is exact"):
        EXACT[kind](ledger=other)
    assert len(other.entries) == 1
    EXACT[kind](ledger=other, together=True)
    assert [each.together for each in other.entries] == [False, True]


def test_noisy_releases_pass_and_say_what_their_policy_joins():
    for kind in NOISY:
        pass_and_say_what_the_policy_joins(kind)


def pass_and_say_what_the_policy_joins(kind):
    ledger = md.Ledger()
    found = NOISY[kind](ledger=ledger)
    name = "value" if kind in ("ordered", "tree", "hierarchical") else "v"
    (entry,) = ledger.entries
    assert entry.components.text() == "0*4 1"
    assert entry.domain == digest_of_domain(Domain({name: range(4)}))
    assert found.description.entry == entry.number
    B.Histogram().release([0], Policy.threshold(LINE, 1), epsilon=1, ledger=ledger)
    B.Histogram().release([(0, 0)], Policy.full(TABLE), epsilon=1, ledger=ledger)
    with pytest.raises(ExactReleaseError):
        EXACT["histogram"](ledger=ledger)
    NOISY[kind](ledger=ledger, together=True)
    assert ledger.entries[-1].together


DOUBTFUL = {
    "another domain": lambda ledger: B.Histogram().release([(0, 0)], Policy.full(TABLE), epsilon=1, ledger=ledger),
    "by hand": lambda ledger: ledger.spend("a", "b", epsilon=1),
    "known counts": lambda ledger: B.Histogram().release(
        [0], Policy.threshold(LINE, 1, constraints=[[1, 1, 0, 0]]), epsilon=1, ledger=ledger
    ),
    "k-means": lambda ledger: EXACT["kmeans"](ledger=ledger),
}


@pytest.mark.parametrize("kind", DOUBTFUL)
def test_where_it_cannot_be_decided_exact_releases_are_refused_and_noisy_ones_pass(kind):
    ledger = md.Ledger()
    DOUBTFUL[kind](ledger)
    # The policy of this exact release is not the policy of k-means.
    exact = EXACT["blocks"]
    with pytest.raises(ExactReleaseError, match=r"cannot be decided, because"):
        exact(ledger=ledger)
    for noisy in NOISY.values():
        noisy(ledger=ledger)
    other = md.Ledger()
    exact(ledger=other)
    if kind == "k-means":
        with pytest.raises(ExactReleaseError, match="cannot be decided"):
            DOUBTFUL[kind](other)
    else:
        DOUBTFUL[kind](other)


def test_an_exact_release_under_known_counts_is_refused_beside_another_policy_and_not_beside_its_own():
    policy = Policy.partition(LINE, [0, 0, 1, 1], constraints=[[1, 1, 0, 0]])
    ledger = md.Ledger()
    for _ in range(2):
        B.Histogram([0, 0, 1, 1]).release([0], policy, epsilon=1, ledger=ledger)
    assert ledger.entries[0].components is None
    with pytest.raises(ExactReleaseError, match="known counts"):
        EXACT["blocks"](ledger=ledger)


def test_the_number_of_records_is_told_where_nobody_can_be_absent():
    def count(ledger):
        return NOISY["strategy"](ledger=ledger)

    ledger = md.Ledger()
    # Entries of other domains and by hand do not keep a noisy release from giving it.
    DOUBTFUL["another domain"](ledger)
    DOUBTFUL["by hand"](ledger)
    count(ledger)
    B.Histogram().release([0], Policy.threshold(LINE, 1), epsilon=1, ledger=ledger)
    with pytest.raises(ExactReleaseError, match="earlier release is exact"):
        B.Histogram().release([0], Policy.full(LINE, unbounded=True), epsilon=1, ledger=ledger)
    # Exactly, and nothing else: under a policy of another domain where nobody can be absent, and where somebody can.
    only = Policy.partition(LINE, [0] * 4)
    for unbounded, refused in ((False, False), (True, True)):
        other = md.Ledger()
        B.Linear(np.eye(6)).release([(0, 0)], Policy.full(TABLE, unbounded=unbounded), epsilon=1, ledger=other)
        if refused:
            with pytest.raises(ExactReleaseError, match="domains differ"):
                B.Histogram([0] * 4).release([0], only, epsilon=1, ledger=other)
        else:
            B.Histogram([0] * 4).release([0], only, epsilon=1, ledger=other)


def test_groups_of_different_people_do_not_meet():
    ledger = md.Ledger()
    blocks = Policy.partition(LINE, [0, 0, 1, 1])
    north, south = (B.part_of(ledger, blocks, "clinics", part=name) for name in ("north", "south"))
    EXACT["blocks"](ledger=north)
    EXACT["blocks"](ledger=south)
    full = B.part_of(ledger, Policy.full(LINE), "clinics", part="east")
    NOISY["histogram"](ledger=full)
    with pytest.raises(ExactReleaseError):
        NOISY["histogram"](ledger=B.part_of(ledger, Policy.full(LINE), "clinics", part="north"))
    with pytest.raises(ExactReleaseError):
        NOISY["histogram"](ledger=ledger)


def test_insisting_is_true_or_false():
    for release, together in itertools.product((*EXACT.values(), *NOISY.values()), (1, None, "yes")):
        with pytest.raises(InputError, match="together"):
            release(together=together)


@pytest.mark.parametrize(
    "domain", [LINE, TABLE, Domain({"x": ["a", "b"], "y": [2, -2, 0]})], ids=["line", "table", "texts"]
)
def test_components_and_classes_are_those_of_plain_lists(domain):
    size = domain.size
    for policy in policies(domain) if domain in (LINE, TABLE) else ():
        graph = nx.Graph(policy.secret_graph.edges().tolist())
        graph.add_nodes_from(range(size + 1))
        found = components(policy).labels
        for x, y in itertools.combinations(range(size + 1), 2):
            assert (found[x] == found[y]) == nx.has_path(graph, x, y)
    for attribute in domain.attributes:
        if attribute.numeric:
            place = domain.names.index(attribute.name)
            weights = [domain.value(x)[place] for x in range(size)] + [0]
            assert same(classes_of_sum(domain, attribute.name).labels, weights)
    dice = np.random.default_rng(2)
    for _ in range(20):
        rows = dice.integers(-1, 2, (3, size))
        columns = [tuple(column) for column in rows.T.tolist()] + [(0,) * 3]
        assert same(classes_of_rows(rows).labels, columns)
        assert same(classes_of_rows(rows * -0.5).labels, columns)
        assert same(MatrixQueries(rows * 0.5).classes().labels, columns)
        ranges = [tuple(sorted(pair)) for pair in dice.integers(0, size, (70, 2)).tolist()][: int(dice.integers(1, 70))]
        inside = [tuple(low <= x <= high for low, high in ranges) for x in range(size + 1)]
        inside[-1] = (False,) * len(ranges)
        assert same(ranges_of(domain, ranges).classes().labels, inside)


def same(labels, keys):
    pairs = itertools.combinations(range(len(keys)), 2)
    return len(labels) == len(keys) and all((labels[x] == labels[y]) == (keys[x] == keys[y]) for x, y in pairs)


def test_a_domain_is_known_by_names_and_values():
    assert digest_of_domain(Domain({"v": [0, 1, 2, 3]})) == digest_of_domain(Domain({"v": range(4)}))
    assert digest_of_domain(Domain({"v": [0.0, 1.0]})) == digest_of_domain(Domain({"v": range(2)}))
    others = [{"w": range(4)}, {"v": range(1, 5)}, {"v": range(5)}, {"v": ["0", "1", "2", "3"]}, {"v": range(0, 8, 2)}]
    others += [{"v": [0, 1, 2, 4]}, {"v": range(2), "u": range(2)}, {"v": [3, 2, 1, 0]}, {"v": [0, 1, 2, 1e-300]}]
    assert len({digest_of_domain(Domain(each)) for each in (*others, {"v": range(4)})}) == len(others) + 1


def test_large_domains_have_short_entries(tmp_path):
    domain = Domain({"x": range(300), "y": range(400)})
    ledger = md.Ledger(path=tmp_path / "l.json")
    # Exact in x where only y may change, and the other way round.
    along = {
        name: Policy.attribute(domain, theta={name: 3, other: 0})
        for name, other in itertools.permutations(domain.names)
    }
    B.Sum("x").release([(1, 2)], along["y"], epsilon=1, ledger=ledger)
    B.Histogram().release([(1, 2)], along["y"], epsilon=1, ledger=ledger)
    for exact, policy in (("y", "x"), ("x", "x")):
        with pytest.raises(ExactReleaseError, match="earlier release is exact" if exact == "x" else "release is exact"):
            B.Sum(exact).release([(1, 2)], along[policy], epsilon=1, ledger=ledger)
    assert (tmp_path / "l.json").stat().st_size < 10_000
    # The domain has too many values to be listed.
    huge = Domain({f"a{i}": range(10) for i in range(15)})
    assert components(Policy.full(huge)).text() == "0*1000000000000000 1"
    assert components(Policy.attribute(huge, unbounded=True)).text() == "0*1000000000000001"
    public = dict.fromkeys(huge.names, 0)
    assert components(Policy.attribute(huge, theta={"a1": 2})).text() == "0*1000000000000000 1"
    still = Policy.attribute(huge, theta=public | {"a1": 2})
    assert components(still) is None
    own = md.Ledger()
    for _ in range(2):
        B.Sum("a0").release([(0,) * 15], still, epsilon=1, ledger=own)
    with pytest.raises(ExactReleaseError, match="too large to be compared"):
        B.Sum("a0").release([(0,) * 15], Policy.attribute(huge, theta=public | {"a2": 2}), epsilon=1, ledger=own)


SPEC = """
table.person = false
domain.attributes.v = { range = [0, 3] }
policy = { kind = "partition", blocks = { labels = LABELS } }
release = { kind = "histogram", epsilon = 1, partition = { labels = LABELS } }
ledger = { path = "l.json", epsilon = 1 }
"""


def test_a_specification_and_the_command_refuse_and_can_be_told_to_insist(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("v\n0\n1\n3\n", encoding="utf-8")
    results = []
    for name, labels, more in (("one", "[0, 0, 1, 1]", []), ("two", "[0, 1, 1, 2]", []), ("two", "", ["--together"])):
        if labels:
            Path(f"{name}.toml").write_text(SPEC.replace("LABELS", labels), encoding="utf-8")
        results.append(CliRunner().invoke(main, ["table", f"{name}.toml", "t.csv", "-o", f"out-{name}", *more]))
    assert [result.exit_code for result in results] == [0, 2, 0], [result.output for result in results]
    assert "--together" in " ".join(results[1].output.split())
    assert [entry.together for entry in md.Ledger(path="l.json").entries] == [False, True]
    given = parse(SPEC.replace("LABELS", "[0, 1, 1, 2]"))
    other = md.Ledger()
    EXACT["blocks"](ledger=other)
    with pytest.raises(ExactReleaseError):
        given.release({"v": [0]}, ledger=other)
    given.release({"v": [0]}, ledger=other, together=True)


def test_a_cumulative_histogram_of_a_specification_is_entered_under_its_own_policy():
    head = (
        'table.person = false\ndomain.attributes.v = { range = [0, 3] }\npolicy = { kind = "threshold", theta = 2 }\n'
    )
    for kind, more in (("cdf", ""), ("quantiles", ", probabilities = [0.5]"), ("ranges", ", ranges = [[0, 2]]")):
        ledger = md.Ledger()
        release = f'release = {{ kind = "{kind}", epsilon = 1{more} }}'
        found = parse(head + release).release({"v": [0, 1]}, ledger=ledger)
        (entry,) = ledger.entries
        assert (entry.domain, entry.classes.text()) == (digest_of_domain(LINE), "0*4 1"), kind
        assert "threshold" in entry.policy
        assert entry.number == found.release.description.entry
