"""The built site, at `MECHDESIGN_SITE`: the search finds the right page, and names lead to the reference."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SITE = Path(os.environ.get("MECHDESIGN_SITE", ""))
TERMS = tomllib.loads((DOCS / "search_terms.toml").read_text(encoding="utf-8"))["terms"]
SHOWN = 3

pytestmark = pytest.mark.skipif("MECHDESIGN_SITE" not in os.environ, reason="set MECHDESIGN_SITE to a built site")


@pytest.fixture(scope="session")
def search():
    """Return the function of a query that lists pages, the best first: the site's own script in V8."""
    racer = pytest.importorskip("py_mini_racer").MiniRacer()
    # In this order search.html loads them.
    for script in ("_static/language_data.js", "search_words.js", "_static/ranking.js"):
        racer.eval("globalThis.window = globalThis;\n" + (SITE / script).read_text(encoding="utf-8"))

    def pages(query: str) -> list[str]:
        found: list[str] = json.loads(
            racer.eval(f"JSON.stringify(Ranking.results({json.dumps(query)}).map((e) => e[0]))")
        )
        return found

    return pages


def test_the_right_page_is_among_the_first(search):
    assert len(TERMS) == 39
    pages = {page for right in TERMS.values() for page in right}
    assert [page for page in pages if not (SITE / f"{page}.html").exists()] == []
    found = {term: search(term)[:SHOWN] for term in TERMS}
    assert {term: pages for term, pages in found.items() if not set(pages) & set(TERMS[term])} == {}


def test_strange_queries_are_answered(search):
    for query in ("", " ", "()", "--", "…", "a", "the", "\"'", "<b>", "constructor", "__proto__", "md.", "ε" * 300):
        assert isinstance(search(query), list), query
    assert search("zzzzqqqq") == []


def test_names_and_misspelt_words_are_found(search):
    expected = {
        "md.Problem": "reference/python/mechdesign.Problem",
        "mechdesign.leakage.LossFunction": "reference/python/mechdesign.leakage.LossFunction",
        "LossFunction": "reference/python/mechdesign.leakage.LossFunction",
        "md.design(problem)": "reference/python/mechdesign.design",
        "verfy": "try/verify",
    }
    found = {query: search(query)[:SHOWN] for query in expected}
    assert {query: pages for query, pages in found.items() if expected[query] not in pages} == {}


def test_objects_are_found_by_every_name_and_exist_once():
    from sphinx.util.inventory import InventoryFile

    with (SITE / "objects.inv").open("rb") as file:
        inventory = InventoryFile.load(file, "", lambda base, uri: uri)
    names = {
        name: entry for kind, entries in inventory.items() if kind.startswith("py:") for name, entry in entries.items()
    }
    for name in ("mechdesign.Problem", "mechdesign.model.Problem", "mechdesign.model._problem.Problem"):
        assert names[name].uri.startswith("reference/python/mechdesign.Problem.html")
    for name in ("mechdesign.leakage.LossFunction", "mechdesign.figures.answers", "mechdesign.report.figures.answers"):
        assert name in names
    assert len({entry.uri for name, entry in names.items()}) < len(names)
