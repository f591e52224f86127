"""Specifications of releases from tables: the grammar, the built values, and the refused keys."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from rows import each_row
from spec_examples import assert_refused_texts

import mechdesign as md
from mechdesign.data.table import read_table
from mechdesign.errors import InputError, SpecificationError
from mechdesign.specification import _table_specification as table_specification_module
from mechdesign.specification._table_sections import _ALLOWED
from mechdesign.specification._table_specification import ReleaseSpecification, parse, read
from mechdesign.tables._files import Published

AGE = "table.person = false\ndomain.attributes.age = { range = [0, 9] }\n"
BOTH = 'table.person = false\ndomain.attributes = { age = { range = [0, 3] }, sex = { values = ["f", "m"] } }\n'
FULL = 'policy.kind = "full"\n'
HISTOGRAM = 'release = { kind = "histogram", epsilon = 1 }\n'


def policy_of(text, domain=AGE, folder="."):
    return parse(domain + text + HISTOGRAM, folder).policy


def indices(given, table):
    return given.records.indices(read_table(table, given.domain.names, given.source.layout)).tolist()


def edges(policy):
    return sorted(map(tuple, policy.secret_graph.edges().tolist()))


# --- domains -------------------------------------------------------------------------------------------------------


@each_row(
    ("described", "values"),
    [
        ("{ range = [-2, 2] }", [-2, -1, 0, 1, 2]),
        ('{ values = ["f", "m"] }', ["f", "m"]),
        ('["f", "m"]', ["f", "m"]),
        ("[0.1, 2, 30]", [0.1, 2, 30]),
        ("[true, false]", [True, False]),
        ("{ values = [0.1, 2, 30] }", [0.1, 2, 30]),
        ("{ low = 0, high = 10, step = 5 }", [0, 5, 10]),
        ("{ low = 1.4, high = 1.7, step = 0.1 }", [1.4, 1.5, 1.6, 1.7]),
        ('{ low = 0, high = 1, step = "1/4" }', [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_values(described, values):
    found = parse(f"table.person = false\ndomain.attributes.x = {described}\n{FULL}{HISTOGRAM}").domain.attributes[0]
    assert list(found.values) == values
    # 0.1 is one tenth, not the float next to it.
    if found.numeric:
        assert found.positions[0] * found.unit == Fraction(str(values[0]))


def test_tables_are_read_as_the_library_reads_them(tmp_path):
    given = parse(
        "table.person = false\n"
        'domain.attributes = { sex = { values = ["f", "m"] }, x = { low = 0, high = 1, step = 0.1 } }\n'
        + FULL
        + HISTOGRAM
    )
    (tmp_path / "t.csv").write_text('x,other,sex\n0.3,"a,b",m\n1,,f\n0.70,,f\n')
    found = indices(given, tmp_path / "t.csv")
    assert found == given.domain.indices([("m", 0.3), ("f", 1.0), ("f", 0.7)]).tolist()
    assert indices(given, {"sex": ["m", "f", "f"], "x": [0.3, 1.0, 0.7]}) == found
    assert indices(given, {"sex": np.array(["m", "f", "f"]), "x": np.array([0.3, 1.0, 0.7])}) == found


def test_numbers_between_values_are_rounded_where_it_says_so(tmp_path):
    text = AGE.replace("range = [0, 9]", "low = 0, high = 1, step = 0.25, round = true") + FULL + HISTOGRAM
    rounding, strict = parse(text), parse(text.replace("true", "false"))
    (tmp_path / "t.csv").write_text("age\n0.1\n0.13\n1.12\n-0.12\n0.5\n")
    assert indices(rounding, tmp_path / "t.csv") == [0, 1, 4, 0, 2]
    assert indices(rounding, {"age": [0.1, 0.13, 1.12, -0.12, 0.5]}) == [0, 1, 4, 0, 2]
    with pytest.raises(InputError, match=r"line 2, column age: is outside the domain; must be one of 0\.0"):
        indices(strict, tmp_path / "t.csv")
    for wrong in ("1.2", "-0.2", "nan", "x", "0,5", "1_0", "inf"):
        (tmp_path / "t.csv").write_text(f'age\n0.5\n"{wrong}"\n')
        with pytest.raises(InputError, match="line 3, column age: is outside the domain"):
            indices(rounding, tmp_path / "t.csv")
    with pytest.raises(InputError, match="row 1, column age: is outside the domain"):
        indices(rounding, {"age": [0.5, 1.2]})


def test_rounding_takes_the_nearest_value_and_nothing_beyond_half_a_step():
    for low, high, step in ((0, 1, "0.25"), (-3, 3, "1.5"), (10, 10, "1"), (0, 2, "2")):
        table = f'{{ low = {low}, high = {high}, step = "{step}", round = true }}'
        given = parse(f"table.person = false\ndomain.attributes.x = {table}\n{FULL}{HISTOGRAM}")
        wide = Fraction(step)
        values = [low + wide * k for k in range(int((high - low) / wide) + 1)]
        for number in (low - 2 * wide + wide * Fraction(k, 8) for k in range(int((high - low) / wide) * 8 + 33)):
            # Of two that are equally near, the lower one; a domain of one value has no step to round to.
            nearest = min(values, key=lambda value: (abs(value - number), value))
            taken = number == low if len(values) == 1 else abs(nearest - number) <= wide / 2
            if taken:
                assert indices(given, {"x": [float(number)]}) == [values.index(nearest)], (table, number)
            else:
                with pytest.raises(InputError, match="outside the domain"):
                    indices(given, {"x": [float(number)]})


# --- policies ------------------------------------------------------------------------------------------------------


@each_row(
    ("text", "domain", "wanted"),
    [
        (FULL, AGE, lambda d: md.tables.Policy.full(d)),
        ('policy.kind = "attribute"\n', BOTH, lambda d: md.tables.Policy.attribute(d)),
        ('policy = { kind = "threshold", theta = 1 }\n', AGE, lambda d: md.tables.Policy.threshold(d, 1)),
        ('policy = { kind = "threshold", theta = 3 }\n', AGE, lambda d: md.tables.Policy.threshold(d, 3)),
        (
            'policy = { kind = "attribute", theta = { age = "next", sex = 0 } }\n',
            BOTH,
            lambda d: md.tables.Policy.attribute(d, theta={"age": "next", "sex": 0}),
        ),
        (
            'policy = { kind = "attribute", theta = { age = 2.0 } }\n',
            BOTH,
            lambda d: md.tables.Policy.attribute(d, theta={"age": 2}),
        ),
        (
            'policy = { kind = "partition", blocks = { width = 4 } }\n',
            AGE,
            lambda d: md.tables.Policy.partition(d, np.arange(10) // 4),
        ),
        (
            'policy = { kind = "partition", blocks = { by = ["sex"] } }\n',
            BOTH,
            lambda d: md.tables.Policy.partition(d, ["f", "m"] * 4),
        ),
        (
            'policy = { kind = "partition", blocks = { labels = [1, 1, 2, 2, 2, 2, 3, 3] } }\n',
            BOTH,
            lambda d: md.tables.Policy.partition(d, [1, 1, 2, 2, 2, 2, 3, 3]),
        ),
        (
            'policy = { kind = "graph", edges = [[0, 9], [3, 4]] }\n',
            AGE,
            lambda d: md.tables.Policy.graph(d, [(0, 9), (3, 4)]),
        ),
        (
            'policy = { kind = "graph", edges = [[[0, "f"], [3, "m"]]] }\n',
            BOTH,
            lambda d: md.tables.Policy.graph(d, [(0, 7)]),
        ),
        ('policy = { kind = "full", unbounded = true }\n', AGE, lambda d: md.tables.Policy.full(d, unbounded=True)),
    ],
)
def test_policies(text, domain, wanted):
    found = policy_of(text, domain)
    other = wanted(found.domain)
    assert edges(found) == edges(other)
    assert found.neighbours == other.neighbours


def test_policies_of_every_kind_know_the_counts_and_protect_presence():
    keys = {
        "full": "",
        "attribute": ", theta = { age = 2 }",
        "partition": ", blocks.width = 5",
        "threshold": ", theta = 2",
        "graph": ", edges = [[0, 9], [3, 4]]",
    }
    assert set(keys) == set(_ALLOWED)
    for kind, more in keys.items():
        bare, known, presence = (
            policy_of(f'policy = {{ kind = "{kind}"{more}{rest} }}\n')
            for rest in ("", ", constraints = [{ where = { age = [0, 1] }, count = 3 }]", ", unbounded = true")
        )
        assert not bare.constraints
        [constraint] = known.constraints
        assert (constraint.known, np.flatnonzero(constraint.counted).tolist()) == (3, [0, 1]), kind
        assert (bare.unbounded, known.unbounded, presence.unbounded) == (False, False, True), kind
        assert edges(known) == edges(bare), kind


def test_edges_from_a_file(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n0,9\n3,4\n")
    assert edges(policy_of('policy = { kind = "graph", edges_csv = { path = "e.csv" } }\n', folder=tmp_path)) == [
        (0, 9), (3, 4),
    ]  # fmt: skip


def test_constraints():
    text = """
[table]
person = false
[domain]
attributes = { age = { range = [0, 3] }, sex = { values = ["f", "m"] } }
[policy]
kind = "full"
[[policy.constraints]]
where = { sex = "f", age = { low = 1, high = 2 } }
count = 5
[[policy.constraints]]
marginal = ["sex"]
[[policy.constraints]]
where = { age = [0, 3] }
[release]
kind = "histogram"
epsilon = 1
"""
    found = parse(text).policy.constraints
    assert [each.known for each in found] == [5, None, None, None]
    assert found[0].counted.astype(int).tolist() == [0, 0, 1, 0, 1, 0, 0, 0]
    assert found[1].counted.astype(int).tolist() == [1, 0] * 4
    assert found[3].counted.astype(int).tolist() == [1, 1, 0, 0, 0, 0, 1, 1]


def test_contradictory_counts_are_named_as_they_are_written():
    known = """
    { marginal = ["sex"], counts = [3, 4] }, { where = { age = 0 }, count = 8 }, { where = { age = 1 }, count = 2 }
    """
    with pytest.raises(SpecificationError) as caught:
        policy_of(f'policy = {{ kind = "full", constraints = [{known.strip()}] }}\n', BOTH)
    shown = str(caught.value)
    assert "contradict each other" in shown
    assert "policy.constraints[0].counts[0] = 3" in shown
    assert "policy.constraints[0].counts[1] = 4" in shown
    assert "policy.constraints[1] = 8" in shown
    assert "policy.constraints[2]" not in shown


# --- errors --------------------------------------------------------------------------------------------------------


KNOWN = 'policy = { kind = "full", constraints = [{ where = { age = 1 } }] }'

# Each row: what is written, the path of the error, and a part of its message where the path does not say it all.

ATTRIBUTES = [
    ("{ rnge = [0, 1] }", "domain.attributes.x.rnge", "mean range"),
    ("{ range = [3, 1] }", "domain.attributes.x.range", "ends before"),
    ("{ range = [0, 99999999] }", "domain.attributes.x.range", "too many"),
    ("{ values = [] }", "domain.attributes.x", "no values"),
    ('{ values = ["a", "a"] }', "domain.attributes.x[1]", "repeats"),
    ("{ low = 0, high = 1 }", "domain.attributes.x.step", "is missing"),
    ("{ low = 0, high = 1, step = 0.3 }", "domain.attributes.x.high", "step"),
    ("{ low = 0, high = 1, step = 0 }", "domain.attributes.x.step", "> 0"),
    ("{ range = [0, 1], step = 2 }", "domain.attributes.x", "or step"),
    ('{ values = ["a"], round = true }', "domain.attributes.x.round", "ascending"),
    ("[]", "domain.attributes.x", "no values"),
    ('["a", "a"]', "domain.attributes.x[1]", "repeats"),
    ('[["a"]]', "domain.attributes.x[0]", "in quotes"),
    ("[1e500]", "domain.attributes.x[0]", "out of range"),
    ("[9223372036854775808]", "domain.attributes.x[0]", "64 bits"),
    ('"a"', "domain.attributes.x", "a table or a list"),
]
POLICIES = [
    ('policy.kind = "ful"', "policy.kind", "mean full"),
    ('policy.kind = "threshold"', "policy.theta", "is missing"),
    ('policy = { kind = "threshold", theta = 0 }', "policy.theta", "not positive"),
    ('policy = { kind = "threshold", theta = 11 }', "policy.theta", "larger than the domain"),
    ('policy = { kind = "full", theta = 1 }', "policy.theta", "cannot be combined with"),
    ('policy.kind = "partition"', "policy.blocks", "is missing"),
    ('policy = { kind = "partition", blocks = { labels = [1] } }', "policy.blocks.labels", "1"),
    ('policy = { kind = "partition", blocks = { by = ["sx"] } }', "policy.blocks.by", "domain"),
    ('policy.kind = "graph"', "policy", "no edges"),
    ('policy = { kind = "graph", edges = [[0, 12]] }', "policy.edges[0][1]", "a value of age"),
    ('policy = { kind = "full", constraints = [{ where = { agee = 1 } }] }', "policy.constraints[0].where"),
    ('policy = { kind = "full", constraints = [{ where = { age = 12 } }] }', "policy.constraints[0].where.age"),
    (
        'policy = { kind = "full", constraints = [{ marginal = ["age"], counts = [1] }] }',
        "policy.constraints[0].counts",
        "10 counts",
    ),
    (
        'policy = { kind = "full", constraints = [{ where = { age = 1 }, counts = [1] }] }',
        "policy.constraints[0].counts",
        "where",
    ),
]
POLICIES_OF_TWO = [
    ('policy = { kind = "threshold", theta = 1 }', "policy.theta", "also protects the others, one at a time"),
    ('policy = { kind = "threshold", theta = { age = 1 } }', "policy.theta", 'the policy "attribute"'),
    ('policy = { kind = "attribute", theta = { age = "Next" } }', "policy.theta.age", '"next"'),
    ('policy = { kind = "attribute", theta = { age = -1 } }', "policy.theta.age", ">= 0"),
    ('policy = { kind = "attribute", theta = 1 }', "policy.theta", "a mapping"),
    ('policy = { kind = "attribute", theta = { ages = 1 } }', "policy.theta.ages", "one of age, sex"),
    ('policy = { kind = "attribute", theta = { age = 0.5 } }', "policy.theta.age", "at least 1"),
    ('policy = { kind = "attribute", theta = { sex = "next" } }', "policy.theta.sex", "Leave the attribute out"),
    ('policy = { kind = "attribute", theta = { age = 0, sex = 0 } }', "policy.theta", "lets no attribute change"),
    ('policy = { kind = "partition", blocks = { width = 2 } }', "policy.blocks.width", ">="),
    ('policy = { kind = "graph", edges = [[0, 1]] }', "policy.edges[0][0]", "is not a value"),
]
RELEASES = [
    ("", "release", "is missing"),
    ("HISTOGRAM\npolcy = 1", "polcy", "Did you mean policy"),
    ("HISTOGRAM\nversion = 2", "version", "must be one of 1"),
    ("release.epsilon = 1", "release.kind", "histogram, cdf"),
    ('release = { kind = "histgram", epsilon = 1 }', "release.kind", "mean histogram"),
    ('release = { kind = "histogram" }', "release", "epsilon, rho"),
    ('release = { kind = "histogram", epsilon = 1, rho = 1 }', "release", "exclude each other"),
    ('release = { kind = "histogram", epsilon = 0 }', "release.epsilon", "not positive"),
    ('release = { kind = "cdf", epsilon = -1.5 }', "release.epsilon", "found -1.5"),
    ('release = { kind = "histogram", epsilon = 1, confidence = 1 }', "release.confidence", "out of range"),
    (
        'release = { kind = "quantiles", epsilon = 1, probabilities = [0.5, 1.5] }',
        "release.probabilities[1]",
        "at most 1",
    ),
    ('release = { kind = "ranges", epsilon = 1, ranges = [] }', "release.ranges", "length >= 1"),
    ('release = { kind = "kmeans", epsilon = 1, k = 0 }', "release.k", ">= 1"),
    ("HISTOGRAM\nledger = { epsilon = 1 }", "ledger.path", "is missing"),
    ('HISTOGRAM\nledger = { path = "l", division = "x" }', "ledger.part", "is missing"),
]
WHOLE = [
    ("", "domain", "is missing"),
    ("table.person = false\ndomain.attributes = {}\n" + FULL + HISTOGRAM, "domain.attributes", "no attribute"),
    ("domain = 1", "domain", "a table"),
    ("domain =", "specification", "not valid TOML"),
]


def test_wrong_keys_are_named():
    for table, before, after in (
        (WHOLE, "", ""),
        (ATTRIBUTES, "table.person = false\ndomain.attributes.x = ", "\n" + FULL + HISTOGRAM),
        (POLICIES, AGE, "\n" + HISTOGRAM),
        (POLICIES_OF_TWO, BOTH, "\n" + HISTOGRAM),
        (RELEASES, AGE + FULL, ""),
    ):
        rows = [(before + text.replace("HISTOGRAM", HISTOGRAM) + after, *row) for text, *row in table]
        assert_refused_texts(rows, lambda text, folder: parse(text))


GONE = ("policy", "added or removed")
BLOCKS = 'policy = { kind = "partition", blocks = { width = 3 } }'
UNFIT = [
    (FULL, 'kind = "ranges", epsilon = 1, ranges = [[0, 12]]', "release.ranges[0]", "not a value of age"),
    (FULL, 'kind = "ranges", epsilon = 1, ranges = [[5, 2]]', "release.ranges[0]", "ends before"),
    (FULL, 'kind = "sum", epsilon = 1, attribute = "height"', "release.attribute", "not in the domain"),
    (FULL, 'kind = "workload", epsilon = 1', "release", "marginals, matrix"),
    (FULL, 'kind = "workload", epsilon = 1, marginals = [["sex"]]', "release.marginals[0]", "not known"),
    (FULL, 'kind = "cdf", epsilon = 1, fanout = 1', "release.fanout", "2"),
    ('policy = { kind = "full", unbounded = true }', 'kind = "quantiles", epsilon = 1, probabilities = [0.5]', *GONE),
    (BLOCKS, 'kind = "cdf", epsilon = 1, mechanism = "hierarchical"', "policy", "full or a threshold"),
    (FULL, 'kind = "cdf", rho = 1, mechanism = "ordered"', "release.rho", "two-sided geometric"),
    (FULL, 'kind = "cdf"', "release", "epsilon, rho"),
    (KNOWN, 'kind = "kmeans", epsilon = 1, k = 2', "policy", "publicly known counts"),
    (FULL, 'kind = "histogram", epsilon = 1, partition = { width = 0 }', "release.partition.width", ">= 1"),
]


def test_releases_that_do_not_fit_are_refused_before_any_data():
    rows = [(f"{AGE}{policy}\nrelease = {{ {release} }}\n", *row) for policy, release, *row in UNFIT]
    assert_refused_texts(rows, lambda text, folder: parse(text).plan())
    assert_refused_texts(rows, lambda text, folder: parse(text).release({"age": [1, 2]}, rng=1))


def test_names_in_the_package(tmp_path):
    (tmp_path / "s.toml").write_text(AGE + FULL + HISTOGRAM)
    given = table_specification_module.read(tmp_path / "s.toml")
    assert isinstance(given, ReleaseSpecification)
    assert isinstance(given.plan(), md.tables.Plan)
    published = given.release({"age": [1, 2, 3]}, rng=1, ledger=(ledger := md.Ledger(epsilon=1)))
    assert isinstance(published, Published)
    assert ledger.spent.epsilon == 1
    with pytest.raises(SpecificationError, match="cannot be opened"):
        read(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecificationError, match="UTF-8"):
        read(tmp_path / "bytes.toml")
