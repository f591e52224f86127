"""The reference of Python: a page for each public object, under the name that users type.

``{objects} MODULE`` lists names of a module, one a line, and shows a table of them with their summaries; ``*Error``
is for all names of the module that end so. Before pages are read, each listed name gets a page in
``reference/python``, which git ignores. An object is found under every name by which it can be imported.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry
from sphinx.environment import BuildEnvironment
from sphinx.ext.intersphinx import resolve_reference_any_inventory
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import TypeAliasForwardRef
from sphinx.util.nodes import make_refnode

FOLDER = "reference/python"
PAGES = Path(__file__).parents[1] / FOLDER
_BLOCK = re.compile(r"^```\{objects\} (\S+)\n(.*?)^```$", flags=re.M | re.S)
# The navigation of pages that are in no table of contents.
_DRAWN: dict[str, str] = {}
# Names of other packages as our annotations write them.
_SHORT = {"np": "numpy", "nx": "networkx", "sparse": "scipy.sparse"}
_OURS = {
    "ArrayLike": "numpy.typing.ArrayLike",
    "Figure": "matplotlib.figure.Figure",
    "Flags": "numpy.ndarray",
    "Floats": "numpy.ndarray",
    "Fraction": "fractions.Fraction",
    "Integers": "numpy.ndarray",
    "NDArray": "numpy.ndarray",
    "Names": "tuple",
    "Path": "pathlib.Path",
    "matplotlib.axes._axes.Axes": "matplotlib.axes.Axes",
    "networkx.classes.graph.Graph": "networkx.Graph",
    "numpy.random._generator.Generator": "numpy.random.Generator",
    "scipy.sparse._base.sparray": "scipy.sparse.sparray",
    "scipy.sparse._csr.csr_array": "scipy.sparse.csr_array",
}


def names_in(module: str, lines: str) -> Iterator[str]:
    """Yield the names of a block, with patterns filled in."""
    for line in lines.split():
        if line.startswith("*"):
            yield from (name for name in sorted(pkgutil.resolve_name(module).__all__) if fnmatchcase(name, line))
        else:
            yield line


@cache
def listed() -> dict[str, tuple[Any, str]]:
    """Return every documented object by its full name, with the overview page that lists it."""
    found: dict[str, tuple[Any, str]] = {}
    # The index repeats some.
    for page in sorted(PAGES.glob("*.md"), key=lambda page: page.stem == "index"):
        for module, lines in _BLOCK.findall(page.read_text(encoding="utf-8")):
            for name in names_in(module, lines):
                found.setdefault(f"{module}.{name}", (getattr(pkgutil.resolve_name(module), name), page.stem))
    return found


def overview_of(module: str) -> str | None:
    """Return the page that lists the names of a module."""
    pages = [overview for name, (_, overview) in listed().items() if name.rpartition(".")[0] == module]
    return f"{FOLDER}/{max(pages, key=pages.count) if module != 'mechdesign' else 'index'}" if pages else None


def page_of(name: str) -> str:
    """Return the page of an object; two names that differ in case alone differ in more on disk."""
    value, _ = listed()[name]
    lower = {other.lower() for other in listed() if other != name}
    return f"{FOLDER}/{name}{'_class' if inspect.isclass(value) and name.lower() in lower else ''}"


def text_of(name: str, value: Any, overview: str) -> str:
    """Return the page of an object."""
    title = PAGES.joinpath(f"{overview}.md").read_text(encoding="utf-8").split("\n", 1)[0].strip("# ")
    module = name.rpartition(".")[0]
    if inspect.isclass(value):
        kind, options = ("autoexception" if issubclass(value, BaseException) else "autoclass"), "   :members:\n"
    else:
        kind, options = ("autofunction" if inspect.isroutine(value) else "autodata"), ""
    return (
        f":orphan:\n\n{name}\n{'=' * len(name)}\n\n.. container:: above\n\n"
        f"   :doc:`Python <index>` › :doc:`{title} <{overview}>`\n\n"
        f".. py:currentmodule:: {module}\n\n.. {kind}:: {name}\n{options}"
    )


def write_pages(app: Sphinx) -> None:
    """Write the pages that changed and remove those of objects that are listed no longer."""
    listed.cache_clear()
    _DRAWN.clear()
    made = {f"{page_of(name)}.rst": text_of(name, *entry) for name, entry in listed().items()}
    for old in PAGES.glob("mechdesign.*.rst"):
        if f"{FOLDER}/{old.name}" not in made:
            old.unlink()
    for name, text in made.items():
        path = PAGES.parents[1] / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def summary(value: Any) -> str:
    """Return the first line of a docstring; data have none of their own."""
    own = inspect.getdoc(value) if inspect.isclass(value) or inspect.isroutine(value) else ""
    return (own or "").split("\n", 1)[0]


class Objects(SphinxDirective):
    """``{objects} MODULE`` shows a table of names and summaries."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        module = self.arguments[0]
        self.env.note_dependency(__file__)
        rows = []
        for name in names_in(module, "\n".join(self.content)):
            value, _ = listed()[f"{module}.{name}"]
            shown = f"{module.removeprefix('mechdesign').lstrip('.')}.{name}".lstrip(".")
            link = addnodes.pending_xref(
                "",
                nodes.literal("", shown),
                refdomain="py",
                reftype="obj",
                reftarget=f"{module}.{name}",
                refexplicit=True,
            )
            words = nodes.paragraph()
            for at, part in enumerate(re.split(r"`+([^`]+)`+", summary(value))):
                words += nodes.literal("", part) if at % 2 else nodes.Text(part)
            rows.append(nodes.row("", nodes.entry("", nodes.paragraph("", "", link)), nodes.entry("", words)))
        group = nodes.tgroup("", nodes.colspec(colwidth=30), nodes.colspec(colwidth=70), cols=2)
        head = [nodes.entry("", nodes.paragraph("", word)) for word in ("name", "summary")]
        group += nodes.thead("", nodes.row("", *head))
        group += nodes.tbody("", *rows)
        table = nodes.table("", group, classes=["objects"])
        domain = self.env.get_domain("py")
        if overview_of(module) == self.env.docname and domain.data["modules"].get(module) is None:
            table["ids"].append(f"module-{module}")
            domain.note_module(module, f"module-{module}", "", "", False)  # type: ignore[attr-defined]
        return [table]


def other_names(name: str, value: Any) -> Iterator[str]:
    """Yield the names under which the defining module and the real name of the public module have an object, too."""
    own = name.rpartition(".")[2]
    home = getattr(value, "__module__", None) or ""
    if home.startswith("mechdesign"):
        yield f"{home}.{getattr(value, '__name__', own)}"
    real = pkgutil.resolve_name(name.rpartition(".")[0]).__name__
    yield f"{real}.{own}"


def add_other_names(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Let every name of an object, and of its members, lead to its page."""
    objects = env.get_domain("py").data["objects"]
    for name, (value, _) in listed().items():
        members = [key for key in objects if key.startswith(f"{name}.") and not objects[key].aliased]
        for other in set(other_names(name, value)) - {name}:
            for key in [name, *members]:
                if key in objects and (entry := objects[key]).docname == page_of(name):
                    objects.setdefault(
                        other + key[len(name) :], ObjectEntry(entry.docname, entry.node_id, entry.objtype, aliased=True)
                    )
    return []


def find(env: BuildEnvironment, target: str, docname: str) -> tuple[str, ObjectEntry] | None:
    """Return the one object that a name in a docstring means: of the same room, or else of the whole package."""
    objects = env.get_domain("py").data["objects"]
    ending = f".{target.lstrip('.')}"
    found = {name: entry for name, entry in objects.items() if name.endswith(ending) and not entry.aliased}
    if len(found) > 1:
        rooms = {name for name, (value, _) in listed().items() if page_of(name) == docname}
        room = next((listed()[name][0].__module__.split(".")[1] for name in rooms), None)
        found = {name: entry for name, entry in found.items() if room and _room(name) == room} or found
    return next(iter(found.items())) if len(found) == 1 else None


def _room(name: str) -> str | None:
    while name and name not in listed():
        name = name.rpartition(".")[0]
    home = getattr(listed()[name][0], "__module__", None) if name else None
    return home.split(".")[1] if home and home.count(".") else None


def resolve(app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Resolve what the domain does not find: short names, and objects of other packages."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    first, _, rest = target.partition(".")
    outside = f"{_SHORT[first]}.{rest}" if first in _SHORT else _OURS.get(target, target)
    if outside.partition(".")[0] in ("fractions", "matplotlib", "networkx", "numpy", "pathlib", "scipy", "tuple"):
        elsewhere = node.deepcopy()
        elsewhere["reftype"], elsewhere["reftarget"] = "obj", outside
        return resolve_reference_any_inventory(env, False, elsewhere, content)
    if node["reftype"] != "mod" and (found := find(env, target, node.get("refdoc", ""))):
        name, entry = found
        return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, name)
    return None


def share_navigation(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Draw the navigation of these pages once: none of them is in it, so it is the same on all."""
    if page.startswith(f"{FOLDER}/mechdesign."):
        draw = context["toctree"]
        context["toctree"] = lambda **options: _navigation(draw, options)


def _navigation(draw: Any, options: dict[str, Any]) -> str:
    key = repr(sorted(options.items()))
    if key not in _DRAWN:
        _DRAWN[key] = draw(**options)
    return _DRAWN[key]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive, the pages and the names."""
    app.add_directive("objects", Objects)
    app.connect("builder-inited", write_pages)
    app.connect("env-updated", add_other_names)
    # Sphinx 9.0 shows aliases inside of other types by their repr.
    TypeAliasForwardRef.__repr__ = lambda alias: f"~{alias.name}"  # type: ignore[method-assign]
    app.connect("missing-reference", resolve, priority=400)
    app.connect("html-page-context", share_navigation, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
