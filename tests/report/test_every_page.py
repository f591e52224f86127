"""Every kind of page is well formed, escapes what it is given, asks nothing of the network, and is the same twice."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from report_examples import HOSTILE, MARKUP, Page, certificate, city, mixing, page_of

import mechdesign as md
from mechdesign.report import _audit_page, _leakage_page, _table_page, _trace_page
from mechdesign.report._verdicts import judge_pairs
from mechdesign.tables._files import Published
from mechdesign.traces._released import History

LABELS = [f"{index} {MARKUP}" for index in range(3)]


def design_page() -> str:
    problem, made, _ = city(title=HOSTILE)
    return page_of(problem, made, certificate(problem, made, {HOSTILE: HOSTILE, "rows": 3}))


def audit_page() -> str:
    points = md.Domain.from_points([[0.0], [1.0], [3.0]], LABELS, unit=HOSTILE)
    return _audit_page.html(md.audit(mixing(3), distance=md.distances.euclidean(points), secrets=points))


def table_page() -> str:
    domain = md.tables.Domain({MARKUP: [f"a{MARKUP}", f"b{MARKUP}"]})
    release = md.tables.Histogram().release([f"a{MARKUP}"], md.tables.Policy.full(domain), epsilon=1, rng=1)
    return _table_page.html(Published(release, MARKUP))


def trace_page() -> str:
    domain = md.Domain.from_points([[0.0], [1.0], [3.0]], LABELS, unit=MARKUP)
    trace = md.traces.Trace(domain, md.graphs.line(3), 1, np.full((3, 3), 1 / 3), np.full(3, 1 / 3), rng=1)
    steps = (trace.step(0), trace.step(1))
    history = History()
    args = (steps, trace.transition, trace.initial, True, True, history)
    return _trace_page.html(md.traces.ReleasedTrace(MARKUP, MARKUP, *args))


def leakage_page() -> str:
    backward = md.leakage.LossFunction([[0.8, 0.2], [0.0, 0.0]])
    budgets = np.full(3, 0.1)
    columns = {"epsilon": budgets, "forward": budgets}
    columns |= {"backward": md.leakage.backward(budgets, backward), "temporal": md.leakage.temporal(budgets, backward)}
    return _leakage_page.html(columns, {MARKUP: 1.0}, backward, None)


def pairs_page() -> str:
    domain = md.Domain.from_points([[0.0], [1.0], [3.0]], LABELS, unit=MARKUP)
    forward = md.leakage.LossFunction(np.full((3, 3), 1 / 3))
    bounds = np.array([[0, 1, np.inf], [1, 0, 2], [3, 2, 0]])
    largest = {"per_unit": (2.0, (LABELS[1], LABELS[0])), "all_pairs": (np.inf, (LABELS[0], LABELS[2]))}
    told = [_leakage_page.Told(count, bounds, largest) for count in (1, 2, np.inf)]
    said = judge_pairs(2, {name: value for name, (value, _) in largest.items()}, MARKUP)
    return _leakage_page.html_of_pairs(said, HOSTILE, (domain, LABELS), told, MARKUP, MARKUP, (None, forward))


KINDS: dict[str, Callable[[], str]] = {
    "design": design_page,
    "audit": audit_page,
    "table": table_page,
    "trace": trace_page,
    "leakage": leakage_page,
    "pairs": pairs_page,
}


@pytest.fixture(scope="module", params=KINDS)
def page(request: pytest.FixtureRequest) -> str:
    return KINDS[request.param]()


def test_a_page_is_well_formed_and_what_it_was_given_is_text(page: str) -> None:
    read = Page(page)
    page.encode()
    assert "img" not in read.elements
    assert read.elements.count("style") == 1
    assert [name for _, name, _ in read.attributes if name.startswith("on")] == []
    assert read.elements.count("h1") == 1
    assert not {"\x00", "\u202e"} & set(page)
    assert "<script>alert(1)</script>" in read.text
    assert read.elements.count("figure") == read.elements.count("figcaption")
    # Each picture has a title and a description.
    assert read.elements.count("title") == read.elements.count("svg") + 1
    referred = {*read.values("aria-labelledby"), *read.values("aria-describedby")}
    assert len(referred) >= 2 * read.elements.count("svg") > 0
    assert referred <= set(read.values("id"))


def test_a_page_asks_nothing_of_the_network(page: str) -> None:
    read = Page(page)
    # Data, which no browser runs, and the one script whose digest the page states.
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert read.elements.count("script") == len(scripts)
    for attributes, text in scripts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert attributes == ' type="application/json"' or f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert "link" not in read.elements
    assert [
        value for value in read.values("href") if not value.startswith(("#", "data:image/png", "data:text/csv"))
    ] == []
    assert read.values("src") == []
    # No addresses anywhere, in style sheets or namespaces either.
    plain = re.sub(r'"data:[^"]*"|"(channel|beliefs)":"[^"]*"', "", page)
    found = re.findall(r"https?:(?!//www\.w3\.org/2000/svg\b)|[^:<]//\w|@import|fetch\(|XMLHttp|import\(", plain)
    assert found == []


def test_identifiers_of_a_page_are_unique_and_references_lead_to_them(page: str) -> None:
    read = Page(page)
    identifiers = read.values("id")
    assert len(identifiers) == len(set(identifiers))
    # The style sheet is that of all pages, and some have no map that is hatched.
    drawn = re.sub(r"<style.*?</style>", "", page, flags=re.DOTALL)
    wanted = set(re.findall(r"url\(#([^)]*)\)", drawn)) | {v[1:] for v in read.values("href") if v.startswith("#")}
    assert wanted <= set(identifiers)


def test_a_page_can_be_read_in_light_and_dark_mode(page: str) -> None:
    modes = dict(re.findall(r"--(\w+): light-dark\((.*?)\)", page))
    for mode in (0, 1):
        colours = {name: both.split(", ")[mode] for name, both in modes.items()}
        for ink in ("ink", "muted", "accent", "good", "bad"):
            assert min(contrast(colours[ink], colours[under]) for under in ("paper", "panel")) > 4.5, ink
    # Figures stand on light paper in both modes.
    assert re.search(r"figure \{[^}]*color-scheme: light;", page)
    assert "@media print" in page


def test_numbers_of_a_picture_stand_beside_it(page: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", page, re.DOTALL)
    assert figures
    assert [each[:60] for each in figures if "<details>" not in each or "<table" not in each] == []


def contrast(first: str, second: str) -> float:
    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(first), luminance(second)))
    return (light + 0.05) / (dark + 0.05)


def test_a_page_says_its_unit_and_delta(page: str) -> None:
    limits = page.partition("<h2>What this does not promise</h2>")[2].partition("</section>")[0]
    assert "The unit of privacy" in limits
    assert "δ = 0" in limits


@pytest.mark.parametrize("kind", ["audit", "table", "leakage", "pairs"])
def test_the_same_values_give_the_same_page(kind: str) -> None:
    first = KINDS[kind]()
    assert KINDS[kind]() == first
    assert not re.search(r"\b20[2-9]\d-\d\d-\d\d", first)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["design", "trace"])
def test_pages_made_at_the_same_time_are_the_same(kind: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: KINDS[kind](), range(2))
    assert first == second
