"""Each page says its warnings and limits where they apply, and only there; its columns hold what their heads say."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from report_examples import Page, certificate, channel, design_of, mixing

import mechdesign as md
from mechdesign.measures import attack
from mechdesign.measures._baselines import baselines
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.report import _audit_page, _design_page, _leakage_page, _table_page, _trace_page
from mechdesign.report._design_page import list_adversaries, side_by_side
from mechdesign.report._statements import COUNTED, STEPS, WRITTEN, private
from mechdesign.report._verdicts import (
    describe_pair,
    describe_rows,
    judge_table,
    judge_trace,
    limit_design,
    limit_leakage,
    limit_table,
    limit_trace,
)
from mechdesign.tables._files import Published
from mechdesign.traces._released import History

FAR = "Nothing for pairs that are far apart"
TOWN = md.Domain.grid(3, 2, 3.0, 2.0, unit="km")
KM = md.distances.euclidean(TOWN)
LINE = md.Domain.from_points([[0.0], [1.0], [3.0]], unit="km")
PLACED = md.distances.euclidean(LINE)
PRIOR = np.array([0.3, 0.1, 0.2, 0.1, 0.2, 0.1])


@pytest.fixture(autouse=True)
def blank(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_pictures_blank(monkeypatch)


def text_of(page: str) -> str:
    return re.sub(r"\s+", " ", Page(page).text)


def design(problem: md.Problem, matrix: np.ndarray, **origin: object) -> md.Design:
    made = channel(matrix)
    found = design_of(problem, made, certificate(problem, made))
    return replace(found, origin=Origin(**origin)) if origin else found


def test_limits_of_a_design() -> None:
    path = nx.path_graph(6)
    for name, requirement, says, hides in (
        ("all pairs", md.MetricPrivacy(1, KM), ["for all 30 ordered pairs", "correlated"], ["pairs without a bound"]),
        ("edges", md.GraphPrivacy(1, path), ["for 10 of 30 ordered pairs", "pairs without a bound"], [FAR]),
        # e^4.59 < 100 < e^4.62
        ("near", md.ThresholdPrivacy("4.59", KM, 9), [], [FAR]),
        ("far", md.ThresholdPrivacy("4.62", KM, 9), [FAR], []),
    ):
        problem = md.Problem(PRIOR, KM, [requirement], secrets=TOWN)
        said = " ".join(limit_design(problem, certificate(problem, channel(np.full((6, 6), 1 / 6)))))
        assert [words for words in says if words not in said] == [], name
        assert [words for words in hides if words in said] == [], name


def test_rows_of_an_audited_matrix() -> None:
    for name, matrix, says, hides in (
        ("exact", [[0.5, 0.5], [0.25, 0.75]], "Every row sums to exactly 1", "deviate"),
        ("rounded", [[0.505, 0.5], [0.25, 0.75]], "Row sums deviate from 1", "is large"),
        ("wrong", [[0.53, 0.5], [0.25, 0.75]], "The deviation is large", "no other secret"),
        ("revealing", [[1.0, 0.0], [0.5, 0.5]], "has an answer that no other secret can produce", "deviate"),
    ):
        said = " ".join(describe_rows(md.audit(matrix, md.distances.hamming(2), weights=True)))
        assert says in said, name
        assert hides not in said, name
    found = md.audit([[0.75, 0.25], [0.5, 0.5]], md.distances.hamming(2))
    [pair, *_] = found.worst_pairs(1)
    assert describe_pair(found, pair)[2:4] == (f"{pair.likely:.4g}", f"{pair.unlikely:.4g}")
    assert pair.likely > pair.unlikely


def test_numbers_of_an_audit_never_claim_too_much() -> None:
    found = md.audit(mixing(3), distance=PLACED, secrets=LINE, cost=PLACED, prior=[0.5, 0.3, 0.2])
    facts = dict(_audit_page._facts(found, optimum=True))
    assert Fraction(facts["Tight ε per unit of distance, rounded up"]) >= Fraction(found.epsilon)
    assert Fraction(facts["Lower bound of the cost of all channels with the tight ε"]) <= Fraction(found.optimum)
    assert Fraction(facts["Cost (expected), rounded up"]) >= Fraction(found.cost)


def trace(**changes: object) -> SimpleNamespace:
    graph, history = nx.path_graph(3), SimpleNamespace(meaning="Nothing depends on data.")
    together = SimpleNamespace(releases=2, epsilon=Fraction(1, 2), bound=3.0, graph=graph)
    return SimpleNamespace(
        **{"seeded": False, "certified": True, "composition": together, "history": history} | changes
    )


def test_the_verdict_and_the_limits_of_a_trace() -> None:
    floats = "Outputs are sums of floating-point noise"
    for name, found, good, says in (
        ("released", trace(), True, "Each step is private: all 2 steps together have ε = 0.5"),
        ("rehearsal", trace(seeded=True), False, "publish nothing"),
        ("floats", trace(certified=False), False, "Not proved"),
        ("both", trace(seeded=True, certified=False), False, "publish nothing"),
    ):
        verdict, limits = judge_trace(found), " ".join(limit_trace(found))
        assert (verdict.good, says in str(verdict)) == (good, True), name
        assert (floats in limits) == (not found.certified), name
        assert "2 pairs of states" in limits, name


def released(finished: bool = True) -> md.traces.ReleasedTrace:
    transition = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    steps = md.traces.Trace(LINE, nx.path_graph(3), "1/2", transition, [0.6, 0.3, 0.1], rng=1)
    released = (steps.step(0), steps.step(1), steps.step(1))
    return md.traces.ReleasedTrace("", "optimal", released, steps.transition, steps.initial, True, finished, History())


def test_columns_of_the_page_of_a_trace() -> None:
    found = released(finished=False)
    rows = dict(re.findall(r'<th scope="row">([^<]*)</th><td>([^<]*)</td>', _trace_page.html(found)))
    assert rows["Steps"] == "3, then the run was stopped"
    assert (rows["ε of a step"], rows["ε of all steps together"]) == ("0.5", "1.5")
    protection, errors = (each for each in _trace_page._pictures(found) if each.name in ("protection", "errors"))
    for step, row in enumerate(protection.numbers.rows):
        assert float(row[1]) == min(found.releases[step].stage.degrees[found.releases[step].stage.members])
    for column, kind in enumerate(("posteriors", "smoothed"), 1):
        expected = found.beliefs.expected_error(found.lengths, kind)
        assert [float(row[column]) for row in errors.numbers.rows] == pytest.approx(expected, rel=1e-2), kind
    assert "then the run was stopped" not in text_of(_trace_page.html(released()))


def test_the_page_of_a_release_from_a_table() -> None:
    policy = md.tables.Policy.full(md.tables.Domain({"age": range(4)}))
    release = md.tables.Histogram().release([1, 2, 2], policy, epsilon=1, rng=1)
    three = replace(release.description, rehearsal=False, rows_per_person=3, remarks=("The number is public.",))
    drawn = replace(release, description=three)
    # e^3 for the three rows of a person
    assert "ε = 1 per row, ε = 3 per person, was spent: no answer is more than 20.1 times" in str(judge_table(drawn))
    assert "in the rows of one person" in str(judge_table(drawn))
    assert "The number is public." in [*limit_table(drawn)]
    page = text_of(_table_page.html(Published(drawn, "")))
    assert "contains nothing else of the data" in page
    # The folder has a file of this name with all answers, and a picture has only the first.
    assert 'download="answers.csv"' not in _table_page.html(Published(drawn, ""))
    assert "Rényi" not in page
    concentrated = md.tables.Histogram().release([1, 2, 2], policy, rho="1/4", rng=1)
    assert "at most α·0.25" in text_of(_table_page.html(Published(concentrated, "")))
    for row, low, high in zip(_table_page._all(drawn, "Answer to", "Answer").rows, drawn.low, drawn.high, strict=True):
        assert [float(each.replace(",", "")) for each in row[3].split(" to ")] == pytest.approx([low, high], rel=1e-3)


def test_the_scale_of_noise_is_in_the_unit_of_the_answers() -> None:
    attribute = md.tables.Domain({"age": range(32)}), md.tables.Domain({"height": [0, 0.5, 1.5]})
    ages, heights = (md.tables.Policy.full(each) for each in attribute)
    for release, says in (
        (md.tables.all_ranges(32).release([1, 2], ages, epsilon="0.1", rng=1), "noise of scale 20 on each in steps of"),
        (md.tables.Sum().release([0.5, 1.5], heights, epsilon=1, rng=1), "noise of scale 1.5 on each answer, in steps"),
        (md.tables.Sum().release([0.5, 1.5], heights, rho="1/2", rng=1), "of standard deviation 1.5 on each answer"),
    ):
        assert says in text_of(_table_page.html(Published(release, ""))), says


def test_the_page_of_leakage_says_what_the_adversary_knows() -> None:
    backward = md.leakage.LossFunction([[0.8, 0.2], [0.0, 0.0]])
    budgets = np.array([0.1, 0.2])
    columns = {"epsilon": budgets, "backward": budgets, "forward": 2 * budgets, "temporal": 3 * budgets}
    text = text_of(_leakage_page.html(columns, {}, backward, None))
    for words in (
        "None of these releases leaks more than 0.6001 nats",
        "The adversary knows Pr(state before | state now), a matrix of 2 states; 1 of its rows are unknown",
        "The adversary does not know Pr(next state | state now).",
        *limit_leakage(),
        "Nothing about correlations between people.",
    ):
        assert words in text.replace("0.6 nats", "0.6001 nats"), words


def test_tables_of_a_design_hold_what_their_heads_say() -> None:
    prior = np.array([0.5, 0.3, 0.2])
    floor = md.DistortionPrivacy("0.1", PLACED, prior=[0.1, 0.1, 0.8])
    found = design(md.Problem(prior, PLACED**2, [md.MetricPrivacy(3, PLACED), floor], secrets=LINE), mixing(3))
    [_, believed] = sorted(list_adversaries(found).rows, key=lambda row: row[0] != "the prior of the mechanism")
    guess = attack.optimal(found.channel, [0.1, 0.1, 0.8], PLACED)
    truth = attack.optimal(found.channel, [0.1, 0.1, 0.8], PLACED, truth=prior)
    numbers = [float(cell.split()[0]) for cell in believed[1:]]
    assert numbers == pytest.approx([guess.distortion, truth.distortion], rel=1e-3)
    assert numbers[0] != numbers[1]
    [own] = [row for row in side_by_side(found, baselines(found.problem)).rows if row[0] == "this design"]
    best = attack.optimal(found.channel, prior, PLACED).distortion
    # Costs are rounded up.
    cost = Fraction(own[2].split()[0])
    assert found.certificate.cost <= cost <= found.certificate.cost * (1 + 1e-4)
    assert own[3].startswith(f"{best:.4g} ")


def test_secrets_whose_names_begin_alike_have_a_column_each() -> None:
    names = [f"University of California, {town}" for town in ("Berkeley", "Davis")]
    secrets = md.Domain.from_labels(names)
    problem = md.Problem([0.75, 0.25], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))], secrets=secrets)
    found = design(problem, np.array([[0.6, 0.4], [0.4, 0.6]]))
    [answers] = [each for each in _design_page._maps(found, False) if getattr(each, "name", "") == "answers"]
    assert answers.numbers.heads == ("Answer", *names)
    assert [len(row) for row in answers.numbers.rows] == [3, 3]


def test_a_page_says_that_it_shows_no_secret_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = design(md.Problem(PRIOR, KM, [md.MetricPrivacy(1, KM)], secrets=TOWN), np.exp(-KM / 2))
    said = "The channel has too many probabilities for this page to show one secret at a time."
    for most, there in ((36, True), (35, False)):
        monkeypatch.setattr("mechdesign.report._explorer._MOST_PROBABILITIES", most)
        page = _design_page.html(found)
        assert (said in text_of(page), "script-src" in page) == (not there, there), most


def test_the_odds_between_two_close_points_are_rounded_up() -> None:
    for epsilon in ("1", "0.15", "0.7"):
        near = {"1": "0.001", "0.15": "0.0067", "0.7": "0.0014"}[epsilon]
        claim = SimpleNamespace(epsilon=Fraction(epsilon), columns=2, rows=2, step_x=1.0, step_y=1.0)
        problem = SimpleNamespace(secrets=None, point_bounds={0: claim})
        checked = SimpleNamespace(requirements=[SimpleNamespace(realised=float(epsilon))])
        [section] = _design_page._coordinates(problem, checked)
        _, (close, odds) = section.parts[1].rows
        assert close.startswith(f"Two points {near} apart")
        most = math.exp(float(epsilon) * float(near))
        assert most <= float(odds) <= most + 2e-5


def test_the_page_of_a_design_warns_where_it_must() -> None:
    flat, revealing = np.full((6, 6), 1 / 6), np.full((6, 6), 0.2)
    revealing[0], revealing[1:, 0] = [1, 0, 0, 0, 0, 0], 0
    path, empty = nx.path_graph(6), nx.empty_graph(6)
    path.remove_edge(0, 1)
    kept, alone = md.MetricPrivacy(1, KM), "1 of 6 secrets have no edge"
    unknown = "The source of the prior is not known. If the prior was counted in data, the folder is private"
    cheap = "under a uniform prior, which replaces a private one"
    for name, requirement, matrix, origin, says, hides in (
        ("unknown", kept, flat, {}, [unknown], [cheap, "for certain", alone]),
        ("known", kept, flat, {"prior": "uniform"}, [], [unknown, cheap]),
        ("counted", kept, flat, {"prior": "counts"}, [COUNTED], [cheap]),
        ("revealing", md.GraphPrivacy(1, path), revealing, {}, [alone, "knows the secret for certain"], []),
        ("no pairs", md.GraphPrivacy(1, empty), flat, {}, ["bounds no pair of secrets"], ["have no edge"]),
        ("replaced", kept, flat, {"prior": STANDS_IN}, [cheap, "A uniform prior replaces the private one."], [unknown]),
    ):
        problem = md.Problem(PRIOR, KM, [requirement], secrets=TOWN)
        page = _design_page.html(design(problem, matrix, **origin))
        text = text_of(page)
        assert [words for words in says if words not in text] == [], name
        assert [words for words in hides if words in text] == [], name
        # Warnings stand above all sections.
        warnings = {unknown, COUNTED, "knows the secret for certain"} & set(says)
        assert all(words in page.partition("</header>")[0] for words in warnings), name


def test_notes_on_private_data_say_where_the_counts_are() -> None:
    problem = md.Problem(PRIOR, KM, [md.MetricPrivacy(1, KM)], secrets=TOWN)
    for specification, says in (
        ("prior.counts = [1, 2]", (WRITTEN,)),
        ('prior.visits = "v.csv"', (COUNTED,)),
        ('prior.checkins.path = "c.csv"', (COUNTED,)),
        (
            'prior.counts = [1, 2]\nprivacy = [{ kind = "graph", epsilon = 1, edges = { estimated = true } }]',
            (WRITTEN, STEPS),
        ),
    ):
        assert private(problem, Origin(specification=specification, prior="counts")) == says, specification


def test_numbers_on_the_page_of_a_design() -> None:
    found = design(md.Problem(PRIOR, KM, [md.MetricPrivacy(1, KM)], secrets=TOWN), np.exp(-KM / 2))
    found = replace(found, certificate=replace(found.certificate, lower_bound=0.123456789))
    page = _design_page.html(found)
    [(_, cells)] = re.findall(r'<th scope="row">(Lower bound of the expected cost)</th><td>(.*?) km</td>', page)
    assert Fraction(cells) <= Fraction(found.certificate.lower_bound)
    [errors] = [each for each in _design_page._maps(found, False) if getattr(each, "name", "") == "error"]
    wrong = attack.optimal(found.channel, PRIOR, KM).per_secret
    assert [float(row[1]) for row in errors.numbers.rows] == pytest.approx(wrong, rel=1e-2)
    cost = KM.copy()
    cost[0, 5] = np.inf
    matrix = np.full((6, 6), 0.2)
    matrix[:, 5] = 0
    some = design(md.Problem(PRIOR, cost, [md.MetricPrivacy(1, KM)], secrets=TOWN), matrix)
    permits = "Each secret permits only 5 of 6 answers"
    assert permits in text_of(_design_page.html(some))
    assert "permits only" not in text_of(page)
