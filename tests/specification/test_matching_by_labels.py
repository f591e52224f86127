"""Specifications name secrets by labels or positions, and match files with a row for each secret by their labels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from rows import each_row

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import SpecificationError
from mechdesign.specification._specification import parse

LABELS = 'domain.labels = ["A", "B", "C"]\n'
HOUSES = 'domain.labels = ["3", "2", "1", "0"]\n'
REST = 'cost.distance = "hamming"\n'
METRIC = 'privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]\n'
UNIFORM = "prior.uniform = true\n"


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def counted(label):
    return LABELS + f'prior.csv = {{ path = "counts.csv", column = "n", label = {label} }}\n' + REST + METRIC


def test_counts_are_matched_with_the_secrets_by_the_declared_column_or_taken_in_order():
    Path("counts.csv").write_text("place,n\nC,3\nB,2\nA,1\n")
    for label, counts in (('"place"', [1, 2, 3]), ("false", [3, 2, 1])):
        given = parse(counted(label))
        assert given.problem().prior.tolist() == pytest.approx([count / 6 for count in counts])
        assert given.notes == ()


def test_the_first_mismatch_of_a_file_of_counts_is_refused_by_its_line_and_shows_no_cell():
    for text, words in (
        ("place,n\nC,3\nD,2\nA,1\n", "line 3, column place is not the label of a secret"),
        ("place,n\nB,x\nC,3\nA,1\n", "line 2, column n is not a number"),
        ("place,n\nB,1\nC,-3\nA,1\n", "line 3, column n is negative"),
    ):
        Path("counts.csv").write_text(text)
        with pytest.raises(SpecificationError) as caught:
            parse(counted('"place"')).problem()
        assert (caught.value.path, words in str(caught.value), caught.value.value) == ("prior.csv", True, None)


def test_a_column_of_labels_is_declared():
    Path("counts.csv").write_text("place,n\nC,3\nB,2\nA,1\n")
    with pytest.raises(SpecificationError, match=r"^prior\.csv\.label: .*label = false for rows in their order"):
        parse(counted("'x'").replace(", label = 'x'", "")).problem()
    Path("counts.csv").write_text("n\n3\n2\n1\n")
    for label in (", label = 'x'", ""):
        given = parse(counted("'x'").replace(", label = 'x'", label.replace("'x'", "false")))
        assert given.problem().prior.tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6])


def test_categories_are_matched_by_their_labels():
    Path("kinds.csv").write_text("where,kind\nC,home\nA,home\nB,work\n")
    kinds = 'categories = { path = "kinds.csv", column = "kind", label = "where" }'
    graph = f'privacy = [{{ kind = "graph", epsilon = 1, {kinds} }}]\npolicy.isolated = "release"\n'
    text = LABELS + UNIFORM + REST + graph
    assert sorted(parse(text).problem().requirements[0].graph.edges) == [(0, 2)]
    Path("kinds.csv").write_text("where,kind\nC,home\nA,home\nD,work\n")
    with pytest.raises(SpecificationError, match="line 4, column where is not the label"):
        parse(text).problem()


# --- matrices ---------------------------------------------------------------------------------------------------------

TOWNS = ["home", "work", "gym", "pub"]
AT = {"home": 0, "work": 1, "gym": 5, "pub": 9}


def write_distances(name, rows, columns=None):
    """Write the distances between places, with the names of rows and columns."""
    lines = [[place, *(abs(AT[place] - AT[other]) for other in columns or rows)] for place in rows]
    text = "\n".join(",".join(map(str, line)) for line in [["", *(columns or rows)], *lines])
    Path(name).write_text(text + "\n", encoding="utf-8")


def designed_by(file, cost="asked.csv", kind='kind = "metric", epsilon = 1', key="header = true, index = true"):
    matrix = f"{{ path = {file!r}, {key} }}"
    costs = f"cost.matrix = {{ path = '{cost}', header = true, index = true }}\n"
    return parse(f"domain.labels = {TOWNS}\nprior.uniform = true\n{costs}privacy = [{{ {kind}, matrix = {matrix} }}]\n")


KINDS = (
    'kind = "metric", epsilon = 1',
    'kind = "threshold", epsilon = 1, radius = 2',
    'kind = "graph", epsilon = 1, radius = 1',
)


@each_row("kind", KINDS)
def test_names_of_matrices_in_another_order_are_matched_with_the_labels(kind):
    write_distances("asked.csv", TOWNS)
    rest = 'policy.isolated = "release"\n' if "graph" in kind else ""
    wanted = bounds(designed_by("asked.csv", kind=kind), rest)
    for rows, columns in ((sorted(TOWNS), None), (TOWNS, sorted(TOWNS)), (TOWNS[::-1], TOWNS)):
        write_distances("other.csv", rows, columns)
        assert bounds(designed_by("other.csv", cost="other.csv", kind=kind), rest) == wanted


def bounds(given, rest):
    problem = parse(given.text + rest).problem() if rest else given.problem()
    bound = next(iter(problem.claims.exponent_bounds.values()))
    return problem.cost.tolist(), sorted(
        zip(bound.sources.tolist(), bound.targets.tolist(), bound.weights.tolist(), strict=True)
    )


NAMES = [
    ([*TOWNS[:3], "bar"], None, "header = true, index = true", "privacy[0].matrix"),
    (TOWNS[:3], None, "header = true, index = true", "privacy[0].matrix"),
    ([*TOWNS[:3], "gym"], None, "header = true, index = true", "privacy[0].matrix"),
    ([*TOWNS[:3], " pub"], None, "header = true, index = true", "privacy[0].matrix"),
    ([*TOWNS[:3], "Pub"], None, "header = true, index = true", "privacy[0].matrix"),
    (sorted(TOWNS), None, "header = true, index = 'ignore'", "privacy[0].matrix"),
    (sorted(TOWNS), None, "header = 'ignore', index = true", "privacy[0].matrix"),
    (TOWNS, None, "header = true", "privacy[0].matrix"),
    (TOWNS, None, "index = true", "privacy[0].matrix"),
    (TOWNS, None, "header = 1", "privacy[0].matrix.header"),
    (TOWNS, None, "index = 'yes'", "privacy[0].matrix.index"),
    (TOWNS, None, "numbered = true", "privacy[0].matrix.numbered"),
]


def test_other_names_of_matrices_are_refused():
    write_distances("asked.csv", TOWNS)
    for rows, columns, key, path in NAMES:
        AT.update({name: 9 for name in rows if name not in AT})
        write_distances("other.csv", rows, columns)
        with pytest.raises(SpecificationError) as caught:
            designed_by("other.csv", key=key).problem()
        assert caught.value.path == path, (rows, key, str(caught.value))


def test_names_of_costs_are_those_of_secrets_and_answers():
    answers = "observables.labels = ['yes', 'no']\n"
    Path("cost.csv").write_text(",no,yes\nwork,1,2\nhome,3,4\n")
    text = "domain.labels = ['home', 'work']\n" + answers + UNIFORM + METRIC
    cost = 'cost.matrix = { path = "cost.csv", header = true, index = true }\n'
    assert parse(text + cost).problem().cost.tolist() == [[4, 3], [2, 1]]
    with pytest.raises(SpecificationError, match=r"^cost\.matrix: has a name that is no label"):
        parse((text + cost).replace("'no'", "'never'")).problem()


def test_names_may_be_skipped_and_positions_are_no_names():
    write_distances("asked.csv", TOWNS)
    write_distances("sorted.csv", sorted(TOWNS))
    taken = designed_by("sorted.csv", key="header = 'ignore', index = 'ignore'").problem()
    assert taken.requirements[0].distance[0].tolist() == [0, 5, 4, 4]
    AT.update({"0": 0, "1": 1, "2": 5, "3": 9})
    for order in ("0123", "3120"):
        write_distances("counted.csv", list(order))
        assert designed_by("counted.csv").problem().requirements[0].distance[0].tolist() == [0, 1, 5, 9]


@each_row("edges", ['[["3", "2"]]', '[["A", "B"]]', "[[0, 1]]", '[["A", 1]]'])
def test_edges_name_labels_by_texts_and_positions_by_integers(edges):
    labels = HOUSES if "3" in edges else LABELS
    graph = f'privacy = [{{ kind = "graph", epsilon = 1, edges = {edges} }}]\npolicy.isolated = "release"\n'
    assert list(parse(labels + UNIFORM + REST + graph).policy.graph.edges) == [(0, 1)]


@each_row(
    ("labels", "edges", "path"),
    [
        (HOUSES, "[[0, 1]]", "privacy[0].edges[0][0]"),
        (HOUSES, '[["3", 1]]', "privacy[0].edges[0][1]"),
        (LABELS, '[["0", "1"]]', "privacy[0].edges[0][0]"),
        (LABELS, "[[0, 3]]", "privacy[0].edges[0][1]"),
    ],
)
def test_other_ends_of_edges_are_refused(labels, edges, path):
    graph = f'privacy = [{{ kind = "graph", epsilon = 1, edges = {edges} }}]\npolicy.isolated = "release"\n'
    with pytest.raises(SpecificationError) as caught:
        parse(labels + UNIFORM + REST + graph).problem()
    assert caught.value.path == path


@each_row(
    ("key", "path"),
    [("policy.support = [0, 1]", "policy.support[0]"), ("observables.subset = [3, 2]", "observables.subset[0]")],
)
def test_other_lists_of_secrets_take_no_positions_where_labels_are_whole_numbers(key, path):
    graph = 'privacy = [{ kind = "graph", epsilon = 1, complete = true }]\n'
    text = HOUSES + UNIFORM + REST + key + "\n" + graph
    with pytest.raises(SpecificationError) as caught:
        read(text)
    assert caught.value.path == path
    assert read(text.replace("[0, 1]", '["0", "1"]').replace("[3, 2]", '["3", "2"]')) is not None


def read(text):
    given = parse(text)
    return given.problem() and given.policy


def test_edges_in_a_file_are_labels_where_these_are_numbers():
    Path("edges.csv").write_text("source,target\n3,2\n0,1\n")
    graph = 'privacy = [{ kind = "graph", epsilon = 1, edges_csv.path = "edges.csv" }]\npolicy.isolated = "release"\n'
    assert sorted(parse(HOUSES + UNIFORM + REST + graph).policy.graph.edges) == [(0, 1), (2, 3)]
    assert sorted(parse("domain.line = 4\n" + UNIFORM + REST + graph).policy.graph.edges) == [(0, 1), (2, 3)]
    with pytest.raises(SpecificationError, match="line 2, column source is not a secret"):
        parse(LABELS + UNIFORM + REST + graph).problem()
    Path("edges.csv").write_text("source,target\n")
    with pytest.raises(SpecificationError, match=r"edges\.csv contains no edges"):
        parse(LABELS + UNIFORM + REST + graph).problem()


def test_a_label_that_no_line_can_hold_is_not_shown():
    Path("places.csv").write_text("name,x,y\nhome,0,0\nhidden\x07,1,0\n")
    domain = "domain.csv = { path = 'places.csv', label = 'name', x = 'x', y = 'y' }\n"
    with pytest.raises(SpecificationError, match="line 3, column name") as caught:
        parse(domain + UNIFORM + REST + METRIC).problem()
    assert "hidden" not in str(caught.value)


# --- commands ---------------------------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture(scope="module")
def designed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    md.save(parse(HOUSES + UNIFORM + REST + METRIC.replace("= 1,", "= 30,")).design(), folder / "made", report=False)
    return folder / "made"


def test_a_secret_on_the_command_line_is_a_label_where_labels_are_numbers(designed):
    # With such a large ε the answer is the secret itself.
    assert run("sample", designed, "--secret", "3").stdout == "3\n"
    assert run("sample", designed, "--secret", "0").stdout == "0\n"
    refused = run("sample", designed, "--secret", "4")
    assert refused.exit_code == 2
    assert "not read as an index" in " ".join(refused.stderr.split())


def test_an_attacker_s_prior_is_matched_by_labels(designed):
    for name, text in {
        "prior.csv": "label,weight\n0,97\n1,1\n2,1\n3,1\n",
        "more.csv": "weight,size,label\n1,5,1\n97,6,0\n1,7,2\n1,8,3\n",
        "order.csv": "weight\n1\n1\n1\n97\n",
    }.items():
        Path(name).write_text(text)
    found = {run("attack", designed, "--prior", f"{name}.csv", "--json").stdout for name in ("prior", "more", "order")}
    assert len(found) == 1
    for text, words in {
        "label,weight\n0,97\n1,1\n2,1\n9,1\n": "line 5, column label: is not the label of a secret",
        "house,weight\n0,97\n1,1\n2,1\n3,1\n": "has no column 'label'",
        "label;weight\n0;97\n1;1\n2;1\n3;1\n": "pd.read_csv(",
        "weight\n97\n1\n1\n-2\n": "wrong.csv, line 5, column weight: is negative",
    }.items():
        Path("wrong.csv").write_text(text)
        refused = run("attack", designed, "--prior", "wrong.csv")
        assert (refused.exit_code, words in " ".join(refused.stderr.split())) == (2, True), (words, refused.stderr)


def test_a_channel_with_labels_is_audited_in_the_order_of_the_specification():
    Path("spec.toml").write_text(
        'domain.points = [[0.0], [1.0], [2.0]]\ndomain.labels = ["A", "B", "C"]\n'
        'prior.uniform = true\ncost.distance = "euclidean"\n'
        'privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]\n'
    )
    rows = {"A": "0.5,0.3,0.2", "B": "0.3,0.4,0.3", "C": "0.2,0.3,0.5"}
    found = []
    for order in ("ABC", "CAB"):
        Path("c.csv").write_text("secret,A,B,C\n" + "".join(f"{name},{rows[name]}\n" for name in order))
        found.append(run("audit", "c.csv", "--spec", "spec.toml", "--json"))
    assert found[0].exit_code == 0
    assert found[0].stdout == found[1].stdout
    for wrong, words in (
        ("ABD", "has a name that is no label"),
        ("ABB", "has a name more than once; found 'B'"),
        ("AB", "lacks a label; found 'C'"),
    ):
        Path("c.csv").write_text("secret,A,B,C\n" + "".join(f"{name},{rows.get(name, rows['C'])}\n" for name in wrong))
        refused = run("audit", "c.csv", "--spec", "spec.toml")
        assert refused.exit_code == 2
        assert words in " ".join(refused.stderr.split())


def test_edges_of_an_audit_name_labels_where_these_are_numbers(designed):
    Path("edges.csv").write_text("3,2\n")
    found = run("audit", designed, "--graph", "edges.csv", "--json")
    assert sorted(json.loads(found.stdout)["worst_pairs"][0]["secrets"]) == [0, 1]
    Path("edges.csv").write_text("3,4\n")
    assert "not read as an index" in " ".join(run("audit", designed, "--graph", "edges.csv").stderr.split())
