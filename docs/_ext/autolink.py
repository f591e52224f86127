"""Links that nobody has to write: names of the package in running text, and the first mention of a glossary term.

A literal such as ``md.design``, ``MetricPrivacy(epsilon=…)``, ``Ledger.spend`` or ``mechdesign verify DIR`` leads to
its page in the reference, unless it could mean two objects. In the folders of `LINKED`, the first mention of a term
leads to the glossary. Headings, code and existing links are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import reference
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

LINKED = ("start/", "tutorials/", "howto/", "theory/")
# Pages whose literals are names of files and keys, or that list names themselves.
_UNLINKED = ("reference/", "glossary")
_NAME = re.compile(r"((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(\(.*\))?", flags=re.S)
_COMMAND = re.compile(r"mechdesign ([a-z]+)\b")
# The pages that mention an object, by the page of the object.
_USERS: dict[str, set[str]] = {}
# Terms that are ordinary words.
_ORDINARY = {"cost", "secret"}


def place_of(text: str, objects: dict[str, Any]) -> tuple[str, str, str] | None:
    """Return page, anchor and full name of what a literal means, or None."""
    if target := target_of(text, objects):
        return objects[target].docname, objects[target].node_id, target
    if (command := _COMMAND.match(text)) and command[1] in commands():
        return commands()[command[1]], f"mechdesign-{command[1]}", f"mechdesign {command[1]}"
    module = f"mechdesign.{text.partition('.')[2]}"
    overview = reference.overview_of(module) if re.fullmatch(r"(md|mechdesign)\.[\w.]+", text) else None
    return (overview, "", module) if overview else None


@cache
def commands() -> dict[str, str]:
    """Return the page of each command of the command line."""
    page = reference.PAGES.parent / "command_line.md"
    names = re.findall(r"^```{command-help} (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {name: "reference/command_line" for line in names for name in line.split()}


def target_of(text: str, objects: dict[str, Any]) -> str | None:
    """Return the full name of the object that a literal means, or None."""
    found = _NAME.fullmatch(text)
    if not found:
        return None
    name, called = found[1], found[2] is not None
    first, _, rest = name.partition(".")
    if first in ("md", "mechdesign"):
        name = f"mechdesign.{rest}"
        return _canonical(name, objects) if rest else None
    if not (called or re.search("[A-Z]", name)):
        return None  # a key, a command or a variable
    candidates = {key for key, entry in objects.items() if key.endswith(f".{name}") and not entry.aliased}
    if "." not in name:
        candidates &= set(reference.listed())
    return candidates.pop() if len(candidates) == 1 else None


def _canonical(name: str, objects: dict[str, Any]) -> str | None:
    entry = objects.get(name)
    if entry is None:
        return None
    return next(key for key, each in objects.items() if not each.aliased and each.node_id == entry.node_id)


def literals(document: nodes.document) -> Iterator[nodes.literal]:
    """Yield the literals of running text and tables."""
    for node in document.findall(nodes.literal):
        above = node.parent
        while above is not None and not isinstance(above, nodes.title | nodes.reference | addnodes.pending_xref):
            above = above.parent
        if above is None and "code" not in node["classes"]:
            yield node


class LinkNames(SphinxPostTransform):
    """Make literals into links to the reference."""

    default_priority = 20

    def run(self, **options: Any) -> None:
        """Change the document in place."""
        page = self.env.current_document.docname
        if page.startswith(_UNLINKED) and page != "reference/errors":
            return
        objects = self.env.get_domain("py").data["objects"]
        for node in list(literals(self.document)):
            if place := place_of(node.astext(), objects):
                other, anchor, title = place
                node.replace_self(make_refnode(self.app.builder, page, other, anchor, node.deepcopy(), title))


@cache
def _pattern(terms: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted(terms, key=len, reverse=True)
    return re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, longest))})s?(?![\w-])", flags=re.I)


class LinkTerms(SphinxPostTransform):
    """Link the first mention of each term of the glossary."""

    default_priority = 25

    def run(self, **options: Any) -> None:
        """Change the document in place."""
        page = self.env.current_document.docname
        if not page.startswith(LINKED):
            return
        terms = {
            name.lower(): (place, anchor)
            for name, _, kind, place, anchor, _ in self.env.get_domain("std").get_objects()
            if kind == "term" and name.lower() not in _ORDINARY
        }
        seen: set[str] = set()
        for text in list(self.document.findall(nodes.Text)):
            if terms and _is_running(text):
                parts = list(self._parts(text.astext(), terms, seen, page))
                if len(parts) > 1:
                    text.parent.replace(text, parts)

    def _parts(self, text: str, terms: dict[str, Any], seen: set[str], page: str) -> Iterator[nodes.Node]:
        done = 0
        for found in _pattern(tuple(terms)).finditer(text):
            term = found[1].lower()
            if term not in seen:
                seen.add(term)
                place, anchor = terms[term]
                yield nodes.Text(text[done : found.start()])
                words = nodes.inline("", found[0], classes=["term"])
                yield make_refnode(self.app.builder, page, place, anchor, words)
                done = found.end()
        yield nodes.Text(text[done:])


_NOT_RUNNING = (
    nodes.title,
    nodes.caption,
    nodes.reference,
    nodes.FixedTextElement,
    nodes.literal,
    nodes.math,
    nodes.table,
    addnodes.pending_xref,
    addnodes.desc,
    addnodes.toctree,
)


def _is_running(text: nodes.Text) -> bool:
    above, paragraph = text.parent, False
    while above is not None:
        if isinstance(above, _NOT_RUNNING):
            return False
        paragraph |= isinstance(above, nodes.paragraph)
        above = above.parent
    return paragraph


def add_uses(app: Sphinx, tree: nodes.document, page: str) -> None:
    """Name, at the end of the page of an object, the pages that mention it."""
    users = _users(app.env).get(page)
    if users:
        words = nodes.paragraph("", "Used in: ", classes=["uses"])
        for at, user in enumerate(sorted(users)):
            title = nodes.Text(app.env.titles[user].astext())
            words += [nodes.Text(", ")] if at else []
            words += make_refnode(app.builder, page, user, None, title)
        next(iter(tree.findall(nodes.section))).append(words)


def _users(env: BuildEnvironment) -> dict[str, set[str]]:
    if not _USERS:
        objects = env.get_domain("py").data["objects"]
        for page in env.found_docs:
            if page.startswith((*LINKED, "project/extending")):
                for node in literals(env.get_doctree(page)):
                    if target := target_of(node.astext(), objects):
                        _USERS.setdefault(objects[target].docname, set()).add(page)
    return _USERS


def forget(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Forget who mentioned what in an earlier build."""
    _USERS.clear()
    return []


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the transforms."""
    app.connect("env-updated", forget)
    app.add_post_transform(LinkNames)
    app.add_post_transform(LinkTerms)
    app.connect("doctree-resolved", add_uses)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
