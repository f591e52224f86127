"""Specifications that read ε from a file of budgets."""

from __future__ import annotations

from fractions import Fraction

import pytest
from rows import each_row
from spec_examples import LABELS, assert_refused_texts, document, write

from mechdesign import specification as spec
from mechdesign.errors import MetricWarning, SpecificationError

BUDGETS = 'privacy = [{ kind = "metric", epsilon = { budgets = "b.csv" }, distance = "hamming" }]'


def scheduled(folder, text, privacy=BUDGETS, **parts):
    write(folder, "b.csv", text)
    return spec.parse(document(privacy=privacy, **parts), folder)


def test_one_problem_for_each_distinct_budget(tmp_path):
    given = scheduled(tmp_path, "step,epsilon\n0,0.5\n1,0.1\n2,0.10\n3,0.75\n")
    assert given.schedule.epsilons == (Fraction(1, 2), Fraction(1, 10), Fraction(1, 10), Fraction(3, 4))
    assert given.schedule.distinct == (Fraction(1, 2), Fraction(1, 10), Fraction(3, 4))
    assert given.schedule.steps(Fraction(1, 10)) == [1, 2]
    problems = list(given.problems())
    assert [made.requirements[0].epsilon for made in problems] == list(given.schedule.distinct)
    assert problems[0].cost.tolist() == problems[2].cost.tolist()
    assert given.notes == ()
    with pytest.raises(SpecificationError, match=r"privacy\[0\].epsilon: contains 3 distinct ε"):
        given.problem()


def test_one_budget_is_one_problem(tmp_path):
    given = scheduled(tmp_path, "step,epsilon\n0,0.123456789012345678901\n1,0.123456789012345678901\n")
    assert given.problem() is next(given.problems())
    assert given.problem().requirements[0].epsilon == Fraction("0.123456789012345678901")
    assert spec.parse(document()).schedule is None
    assert [made.title for made in spec.parse(document()).problems()] == [""]


def test_the_other_requirements_stay(tmp_path):
    tables = """
    [[privacy]]
    kind = "graph"
    epsilon = 2
    neighbours = 4
    [[privacy]]
    kind = "threshold"
    epsilon = { budgets = "b.csv" }
    radius = 9
    distance = "euclidean"
    """
    given = scheduled(tmp_path, "step,epsilon\n0,1\n1,3\n", privacy="", rest=tables)
    found = [[float(requirement.epsilon) for requirement in made.requirements] for made in given.problems()]
    assert found == [[2, 1], [2, 3]]
    assert given.notes == ()


@each_row(
    ("table", "words"),
    [
        ('kind = "metric", distance = "euclidean"', "up to 2.23607 units apart, so a release may leak 2.23607 ε"),
        ('kind = "threshold", distance = "euclidean", radius = 1', "some pairs of secrets have no direct bound"),
        ('kind = "graph", neighbours = 4', "some pairs of secrets have no direct bound"),
        ('kind = "graph", radius = 9, distance = "euclidean"', None),
    ],
)
def test_what_budgets_do_not_account_for_is_noted(tmp_path, table, words):
    privacy = f'privacy = [{{ epsilon = {{ budgets = "b.csv" }}, {table} }}]'
    notes = scheduled(tmp_path, "step,epsilon\n0,0.5\n", privacy=privacy).notes
    assert notes == () if words is None else words in notes[0]


def test_warnings_of_a_schedule_are_given_once(tmp_path):
    write(tmp_path, "d.csv", "0,1,5\n1,0,1\n5,1,0\n")
    privacy = 'privacy = [{ kind = "metric", epsilon = { budgets = "b.csv" }, matrix = { path = "d.csv" } }]'
    given = scheduled(tmp_path, "step,epsilon\n0,1\n1,3\n2,4\n", privacy=privacy, domain=LABELS)
    with pytest.warns(MetricWarning) as caught:
        assert len(list(given.problems())) == 3
    assert len(caught) == 1


WRONG = [
    (BUDGETS.replace("budgets =", "budget ="), "privacy[0].epsilon.budget", "Did you mean budgets?"),
    (BUDGETS.replace('"b.csv"', "3"), "privacy[0].epsilon.budgets", "must be a string"),
    (BUDGETS.replace('budgets = "b.csv"', ""), "privacy[0].epsilon.budgets", "is missing"),
    (BUDGETS.replace("metric", "distortion"), "privacy[0].epsilon", "is not a known key"),
    (
        BUDGETS.replace("}]", '}, { kind = "graph", epsilon = { budgets = "b.csv" }, neighbours = 4 }]'),
        "privacy[1].epsilon",
        "comes from a file, and so does privacy[0].epsilon",
    ),
]
WRONG_FILES = [
    ("step,epsilon\n0,-1\n", "line 2, column epsilon is negative; found -9"),
    ("step,epsilon\n0,nan\n", "line 2, column epsilon is not a number; found aaa"),
    ("0.1\n", "has the wrong header"),
    ("step,epsilon\n", "contains no budgets"),
]


def test_wrong_schedules(tmp_path):
    assert_refused_texts([(document(privacy=BUDGETS), "privacy[0].epsilon.budgets", "b.csv cannot be opened")])
    write(tmp_path, "b.csv", "step,epsilon\n0,1\n")
    assert_refused_texts([(document(privacy=privacy), *row) for privacy, *row in WRONG], folder=tmp_path)
    for text, says in WRONG_FILES:
        write(tmp_path, "b.csv", text)
        assert_refused_texts([(document(privacy=BUDGETS), "privacy[0].epsilon.budgets", says)], folder=tmp_path)
