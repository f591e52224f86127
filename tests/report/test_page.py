from __future__ import annotations

import base64
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose
from report_examples import certificate, channel, city, domains, mixing, prior_of

from mechdesign.errors import InputError
from mechdesign.measures._baselines import combine_bounds, exponential
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import answers, attack_measure, cost_measure, requirement_name
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._threshold import ThresholdPrivacy
from mechdesign.model._words import decimal, recognise_measure
from mechdesign.report._design_page import html
from mechdesign.report._design_tables import summary

VOID = {"meta"}


class Page(HTMLParser):
    """Checks that elements are closed in order, and collects what a test asks about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]


@pytest.fixture(scope="module")
def report() -> str:
    return html(*city())


def test_page_is_well_formed_and_complete(report):
    page = Page(report)
    headings = re.findall(r"<h[12]>(.*?)</h", report)
    assert headings == [
        "City", "Requirements", "Cost", "What this does not promise", "Prior", "Answers",
        "What the adversary still does not know", "What is proved, and what is stated",
        "In the terms of NIST SP 800-226", "Provenance",
        "Verify and sample",
    ]  # fmt: skip
    assert page.elements.count("figure") == page.elements.count("figcaption") == page.elements.count("h3") == 6
    labels = page.values("aria-label")
    # A map of the prior, six of answers, two of a chosen secret, one of errors, and a scatter plot; costs and
    # requirements, each twice.
    assert len(labels) - 1 == page.values("role").count("img") == 15
    assert "On this page" in labels
    assert all(len(label) > 40 for label in labels if label != "On this page")
    for expected in (
        "Private.",
        "metric privacy, ε per km (Euclidean distance)",
        "ε at most 0.6",
        "solve seconds",
        "0.25",
        "mechdesign verify DIR",
        "Relative gap",
        "Anyone who sees an answer can",
    ):
        assert expected in page.text


def test_page_asks_nothing_of_the_network(report):
    page = Page(report)
    # Data, which no browser runs, and the one script whose digest the page states.
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", report, re.DOTALL)
    assert [attributes for attributes, _ in scripts] == [' type="application/json" id="data"', ""]
    digest = base64.b64encode(hashlib.sha256(scripts[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in report
    assert "link" not in page.elements
    assert not [value for value in page.values("href") if not value.startswith(("#", "data:image/png"))]
    assert page.values("src") == []
    # No addresses anywhere, in style sheets or namespaces either.
    plain = re.sub(r'"data:[^"]*"|"(channel|beliefs)":"[^"]*"', "", report)
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg\b)|[^:]//\w|@import|fetch\(|XMLHttp|import\(", plain)
    assert "default-src 'none'" in report


def test_identifiers_are_unique_and_references_lead_to_them(report):
    page = Page(report)
    identifiers = page.values("id")
    assert len(identifiers) == len(set(identifiers))
    wanted = set(re.findall(r"url\(#([^)]*)\)", report)) | {v[1:] for v in page.values("href") if v.startswith("#")}
    assert wanted <= set(identifiers)


def test_pictures_follow_light_and_dark_mode(report):
    pictures = "".join(re.findall(r"<svg.*?</svg>", report, flags=re.DOTALL))
    for colour in ("#1b1f24", "#59636e", "#c9d1d9", "#0b5cad"):
        assert colour not in pictures
    assert "g.numbers .on { fill: var(--paper)" in report
    assert report.count("prefers-color-scheme: dark") == 2
    # The colours of maps are classes, which differ between the modes, and not pixels.
    assert "<image" not in report
    assert {len(set(re.findall(r"\.p9{fill:(#\w+)}", report))), len(set(re.findall(r"\.e9{fill:(#\w+)}", report)))} == {
        2
    }
    assert "@media print" in report


def contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_text_can_be_read_in_both_modes(report):
    modes = [
        dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", report, re.DOTALL)
    ]
    assert len(modes) == 2
    for colours in modes:
        for ink in ("ink", "muted", "accent", "good", "bad"):
            assert contrast(colours[ink], colours["paper"]) > 4.5
            assert contrast(colours[ink], colours["panel"]) > 4.5


def test_the_same_values_give_the_same_page(report):
    assert html(*city()) == report
    assert not re.search(r"\b20[2-9]\d-\d\d-\d\d", report)


def test_pages_made_at_the_same_time_are_the_same(report):
    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(lambda _: html(*city()), range(2))) == {report}


@pytest.mark.slow
def test_a_channel_for_300_secrets_makes_a_small_page():
    page = html(*city(20, 15))
    assert len(page.encode()) < 400_000


HOSTILE = (
    "\"><script>alert(1)</script><img src=x onerror=alert(2)>'&amp;]]>--><style>\x00\u202e\ud800\ufffe\uffff $\\frac{"
)


def test_titles_labels_units_and_provenance_are_never_html():
    labels = [f"{HOSTILE} {index}" for index in range(4)]
    secrets = Domain.from_points(np.arange(8.0).reshape(4, 2), labels, unit=HOSTILE)
    apart = distances.euclidean(secrets)
    problem = Problem(
        prior_of(4), apart, [MetricPrivacy("0.1", apart)], secrets=secrets, observables=secrets, title=HOSTILE
    )
    made = channel(np.exp(-apart))
    found = certificate(problem, made, {HOSTILE: HOSTILE, "rows": 3})
    assert not found.holds
    text = html(problem, made, found)
    page = Page(text)
    assert "img" not in page.elements
    assert page.elements.count("style") == 1
    assert page.elements.count("script") == 2
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert "\x00" not in text
    assert "\u202e" not in text
    text.encode()


def test_labels_without_places_are_never_html():
    labels = Domain.from_labels([f"{index} {HOSTILE}" for index in range(3)])
    problem = Problem(np.full(3, 1 / 3), 1 - np.eye(3), [], secrets=labels)
    made = channel(np.eye(3) + 0.1)
    page = Page(html(problem, made, certificate(problem, made)))
    assert "img" not in page.elements
    assert page.elements.count("script") == 2


def test_a_channel_that_does_not_hold_is_said_not_to():
    problem, _, _ = city(title="")
    made = channel(np.exp(-0.9 * np.asarray(problem.cost)))
    found = certificate(problem, made)
    assert not found.holds
    text = html(problem, made, found)
    page = Page(text)
    assert "Does not hold." in page.text
    assert "Private, and" not in page.text
    assert "Worst pair of secrets: " in page.text
    assert "2 of 3 requirements do not hold" in text
    assert "<h1>Privacy mechanism</h1>" in text


@pytest.mark.parametrize(
    ("name", "objective"),
    [("one cell", "worst"), ("none", "worst"), ("many labels", "expected"), ("coordinates", "expected")],
)
def test_pages_of_every_kind_of_domain(name, objective):
    domain = domains()[name]
    n = 5 if domain is None else domain.size
    cost = np.abs(np.subtract.outer(np.arange(n, dtype=float), np.arange(n)))
    graph = nx.path_graph(n)
    problem = Problem(prior_of(n), cost, [GraphPrivacy(1, graph)], objective, secrets=domain)
    made = channel(mixing(n) + 0.01)
    Page(html(problem, made, certificate(problem, made)))


def test_observables_may_be_of_another_domain_and_number():
    secrets, observables = Domain.grid(3, 2, 3.0, 2.0), Domain.grid(2, 2, 3.0, 2.0)
    cost = distances.euclidean(secrets, observables)
    problem = Problem(prior_of(6), cost, [], secrets=secrets, observables=observables)
    made = channel(mixing(6, 4) + 0.01)
    assert "Nothing was required." in html(problem, made, certificate(problem, made))
    assert cost_measure(problem).name == "Euclidean distance"


def test_a_channel_or_certificate_of_another_problem_is_refused():
    problem, made, found = city()
    other = city(3, 3)
    with pytest.raises(InputError, match=r"channel: belongs to another problem"):
        html(problem, other[1], found)
    bare = Problem(problem.prior, problem.cost, [])
    with pytest.raises(InputError, match=r"certificate: belongs to another problem"):
        html(bare, made, found)


# --- what numbers mean -------------------------------------------------------------------------------------------


def test_distances_are_recognised_by_their_values():
    grid = Domain.geographic_grid(3, 2, 40.7, 40.8, -74.0, -73.9)
    for name, function in (
        ("plane distance ≤ great circle", distances.euclidean),
        ("Manhattan distance", distances.manhattan),
        ("Chebyshev distance", distances.chebyshev),
        ("great-circle distance", distances.haversine),
    ):
        found = recognise_measure(function(grid), grid, grid)
        assert (found.name, found.unit) == (name, "km")
    assert recognise_measure(distances.hamming(grid), grid, grid).name == "Hamming distance"
    assert recognise_measure(distances.hamming(3), None, None).name == "Hamming distance"
    doubled = recognise_measure(2 * distances.euclidean(grid), grid, grid)
    assert (doubled.name, doubled.unit) == ("", "")


def test_the_attack_is_measured_by_the_first_floor_else_by_the_places_else_by_identity():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    error = distances.manhattan(grid)
    prior, cost = np.full(4, 0.25), distances.euclidean(grid)
    floors = [DistortionPrivacy("0.1", error), DistortionPrivacy("0.1", cost)]
    assert attack_measure(Problem(prior, cost, floors, secrets=grid)).name == "Manhattan distance"
    assert attack_measure(Problem(prior, cost, [], secrets=grid)).name == "Euclidean distance"
    assert attack_measure(Problem(prior, cost, [])).name == "Hamming distance"
    labels = Domain.from_labels(list("abcd"))
    assert attack_measure(Problem(prior, cost, [], secrets=labels)).name == "Hamming distance"


def test_answers_without_a_domain_are_secrets_only_where_the_truth_is_cheapest():
    grid = Domain.grid(2, 2, 2.0, 2.0)
    prior, apart = np.full(4, 0.25), distances.euclidean(grid)
    assert answers(Problem(prior, apart, [], secrets=grid)) is grid
    assert answers(Problem(prior, apart[::-1], [], secrets=grid)) is None
    assert answers(Problem(prior, apart[:, :3], [], secrets=grid)) is None


def test_requirements_are_named_with_their_units():
    grid = Domain.grid(2, 2, 2.0, 2.0, unit="m")
    apart = distances.euclidean(grid)
    problem = Problem(np.full(4, 0.25), apart, [], secrets=grid)
    names = [
        requirement_name(problem, requirement)
        for requirement in (
            MetricPrivacy(1, apart),
            MetricPrivacy(1, apart * 3),
            ThresholdPrivacy(1, apart, "1.25"),
            GraphPrivacy(1, nx.path_graph(4)),
            DistortionPrivacy(0, apart),
        )
    ]
    assert names == [
        "metric privacy, ε per m (Euclidean distance)",
        "metric privacy, ε per unit of distance",
        "threshold privacy, ε within 1.25 m (Euclidean distance)",
        "graph privacy, ε per edge (3 edges)",
        "distortion privacy, expected error in m (Euclidean distance)",
    ]


def test_summary_states_the_promises():
    problem, _, found = city()
    text = summary(problem, found)
    assert "two secrets 1 km apart by a factor of at most 1.83" in text
    assert "two secrets within 1.5 km of each other by a factor of at most 2.72" in text
    assert "off by at least 0.1 km on average" in text


def test_decimals():
    assert [decimal(text) for text in ("0", "-1/8", "1/3", "100", "12345678901234567890", "1e-7")] == [
        "0", "−0.125", "1/3", "100", "12345678901234567890", "0.0000001"
    ]  # fmt: skip


# --- the metric that bounds imply ------------------------------------------------------------------------------------


def test_combined_bounds_are_shortest_paths():
    graph = nx.Graph([(0, 1), (1, 2), (3, 4)])
    problem = Problem(np.full(5, 0.2), 1 - np.eye(5), [GraphPrivacy("0.5", graph)])
    bound = combine_bounds(problem)
    assert_allclose(bound[0], [0, 0.5, 1.0, np.inf, np.inf])
    mechanism = exponential(bound)
    assert_allclose(mechanism.sum(axis=1), 1)
    assert mechanism[0, 3] == 0
    assert combine_bounds(Problem(np.full(5, 0.2), 1 - np.eye(5), [])) is None


def test_zero_distances_are_edges():
    apart = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]])
    problem = Problem(np.full(3, 1 / 3), apart, [MetricPrivacy(1, apart)])
    assert_allclose(combine_bounds(problem), apart)
