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


@pytest.mark.parametrize("term", TERMS)
def test_the_right_page_is_among_the_first(search, term):
    right = set(TERMS[term])
    assert [page for page in right if not (SITE / f"{page}.html").exists()] == []
    found = search(term)[:SHOWN]
    assert set(found) & right, found


def test_there_are_forty_terms():
    assert len(TERMS) == 40


@pytest.mark.parametrize(
    "query",
    ["", " ", "zzzzqqqq", "()", "--", "…", "a", "the", "\"'", "<b>", "constructor", "__proto__", "md.", "ε" * 300],
)
def test_strange_queries_are_answered(search, query):
    assert isinstance(search(query), list)


def test_the_check_can_fail(search):
    assert "start/nothing" not in search("design")
    assert not search("zzzzqqqq")


@pytest.mark.parametrize(
    ("query", "page"),
    [
        ("md.Problem", "reference/python/mechdesign.Problem"),
        ("mechdesign.leakage.LossFunction", "reference/python/mechdesign.leakage.LossFunction"),
        ("LossFunction", "reference/python/mechdesign.leakage.LossFunction"),
        ("md.design(problem)", "reference/python/mechdesign.design"),
        ("verfy", "try/verify"),
    ],
)
def test_names_and_misspelt_words_are_found(search, query, page):
    assert page in search(query)[:SHOWN]


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
