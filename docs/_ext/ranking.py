"""The words of each page, for the ranking of the search: ``search_words.js``, read by ``_static/ranking.js``.

A word counts more in a title than in a heading, more there than in text, and least in code. Each folder of pages has
a weight.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_annotation, desc_parameterlist, desc_returns, literal_emphasis
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.search import SearchLanguage
from sphinx.search.en import SearchEnglish

TITLE, KEYWORD, HEADING, TEXT, CODE = 12.0, 8.0, 4.0, 1.0, 0.5
# The first prefix that fits counts.
WEIGHTS = {
    "reference/python/mechdesign.": 0.5,
    "reference/python/": 0.6,
    "reference/index": 0.3,
    "reference/command_line": 0.6,
    "index": 0.5,
    "project/": 0.4,
    "extending/": 0.6,
    "architecture": 0.3,
    "theory/": 0.8,
    "gallery": 0.3,
    "glossary": 1.5,
}
NAME, START = "search_words.js", "const SearchWords = "
_WORD = re.compile(r"\w+(?:[-.]\w+)*")
# The words of a name in camel case.
_HUMP = re.compile(r"[A-Z][a-z]+")
_ENGLISH = SearchEnglish({})
_GREEK = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "π": "pi"}


def words_of(text: str, language: SearchLanguage) -> Iterator[str]:
    """Yield the stems of a text: of "check-ins" check, ins and checkins, of "LossFunction" its two words, too."""
    for found in _WORD.findall(text):
        parts = re.split(r"[-.]", found)
        joined = ["".join(parts)] if len(parts) > 1 else []
        humps = [hump for part in parts for hump in _HUMP.findall(part) if hump != part]
        for part in (*parts, *joined, *humps):
            word = _GREEK.get(part, part).lower()
            if language.word_filter(word):
                yield language.stem(word)


def counts_of(document: nodes.document, language: SearchLanguage) -> Counter[str]:
    """Return how much each word counts on a page."""
    counts: Counter[str] = Counter()
    for text, weight in _texts(document, TEXT):
        for word in words_of(text, language):
            counts[word] += weight  # type: ignore[assignment]
    return counts


_TYPES = desc_parameterlist | desc_annotation | desc_returns | literal_emphasis


def _texts(node: nodes.Node, weight: float) -> Iterator[tuple[str, float]]:
    # Types are no words.
    if isinstance(node, nodes.comment | nodes.math | nodes.raw | _TYPES):
        return
    if isinstance(node, nodes.Text):
        yield node.astext(), weight
    elif isinstance(node, nodes.meta) and node.get("name") == "keywords":
        yield node["content"], KEYWORD
    elif isinstance(node, nodes.Element) and "no-search" not in node.get("classes", ()):
        for child in node.children:
            yield from _texts(child, _weight(node, weight))


def _weight(node: nodes.Element, weight: float) -> float:
    if isinstance(node, nodes.title):
        return TITLE if isinstance(node.parent.parent, nodes.document) else HEADING
    if isinstance(node, nodes.term):
        return KEYWORD
    return CODE if isinstance(node, nodes.literal_block | nodes.doctest_block) else weight


def read_page(app: Sphinx, document: nodes.document) -> None:
    """Count the words of a page that is read, perhaps by a process of its own."""
    counts = counts_of(document, _ENGLISH)
    _pages(app.env)[app.env.docname] = {word: round(count, 1) for word, count in counts.items()}


def forget(_app: Sphinx, env: BuildEnvironment, page: str) -> None:
    """Forget a page that is read again or gone."""
    _pages(env).pop(page, None)


def merge(_app: Sphinx, env: BuildEnvironment, pages: set[str], other: BuildEnvironment) -> None:
    """Take over the pages that another process read."""
    _pages(env).update({page: found for page, found in _pages(other).items() if page in pages})


def _pages(env: BuildEnvironment) -> dict[str, dict[str, float]]:
    if not hasattr(env, "ranking_words"):
        env.ranking_words = {}  # type: ignore[attr-defined]
    return env.ranking_words  # type: ignore[attr-defined, no-any-return]


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the words of all pages."""
    if error or app.builder.format != "html":
        return
    counted = _pages(app.env)
    pages = sorted(set(counted) & app.env.found_docs)
    words: dict[str, list[tuple[int, float]]] = {}
    for at, page in enumerate(pages):
        for word, count in sorted(counted[page].items()):
            words.setdefault(word, []).append((at, count))
    objects = app.env.get_domain("py").data["objects"]
    made = {
        "pages": pages,
        "titles": [app.env.titles[page].astext() for page in pages],
        "weights": [next((each for start, each in WEIGHTS.items() if page.startswith(start)), 1.0) for page in pages],
        "lengths": [round(sum(counted[page].values())) for page in pages],
        "words": words,
        "names": {
            name: [pages.index(entry.docname), entry.node_id]
            for name, entry in sorted(objects.items())
            if not entry.aliased and entry.docname in counted
        },
    }
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    (Path(app.outdir) / NAME).write_text(f"{START}{text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the counting."""
    app.connect("doctree-read", read_page)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("build-finished", write)
    return {"version": "1", "env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}
