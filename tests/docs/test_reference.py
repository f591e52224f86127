"""Each public name has a page, and names in running text lead to the right one or to none."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_docstrings import public_modules

pytest.importorskip("sphinx")
DOCS = Path(__file__).parents[2] / "docs"
sys.path.append(str(DOCS / "_ext"))
autolink = importlib.import_module("autolink")
ranking = importlib.import_module("ranking")
reference = importlib.import_module("reference")

# Aliases of types, tables of specifications, and registries that only the command line lists.
INTERNAL = {
    *("Between", "Claim", "Correlation", "Distance", "Ends", "Epsilon", "Floats", "Hull", "HullChoice", "Integers"),
    *("Outside", "ProgressCallback", "Raw", "States"),
    *("BudgetsFile", "CountsFile", "EdgesFile", "GraphTable", "MatrixFile", "PlacesFile", "PriorTable", "Table"),
    *("CONTESTANTS", "FAMILIES", "MANIFEST", "SUITES"),
}


def undocumented(names, internal):
    documented = {id(value) for value, _ in reference.listed().values()}
    return {
        f"{module}.{name}"
        for module, name in names
        if name not in internal
        and id(value := getattr(importlib.import_module(module), name)) not in documented
        and not inspect.ismodule(value)
    }


def public_names():
    for module in public_modules():
        for name in getattr(importlib.import_module(module), "__all__", ()):
            yield module, name


def test_every_public_name_is_listed_on_a_page_of_the_reference():
    # Add the name to a block of docs/reference/python/*.md.
    assert not undocumented(public_names(), INTERNAL)
    assert undocumented(public_names(), INTERNAL - {"States"}) == {"mechdesign.data.States"}


def test_pages_differ_where_files_of_one_name_are_one():
    pages = [reference.page_of(name) for name in reference.listed()]
    assert len({page.lower() for page in pages}) == len(pages) > 400


def test_names_are_those_that_users_type():
    listed = reference.listed()
    for name in ("design", "Problem", "leakage.LossFunction", "figures.answers", "attack.optimal", "errors.InputError"):
        assert f"mechdesign.{name}" in listed
    problem = listed["mechdesign.Problem"][0]
    other = set(reference.other_names("mechdesign.Problem", problem))
    assert {"mechdesign.model.Problem", "mechdesign.model._problem.Problem"} <= other
    optimal = listed["mechdesign.attack.optimal"][0]
    assert "mechdesign.measures.attack.optimal" in set(reference.other_names("mechdesign.attack.optimal", optimal))


def test_the_page_of_an_object_names_it_and_its_overview():
    text = reference.text_of("mechdesign.errors.InputError", *reference.listed()["mechdesign.errors.InputError"])
    assert ".. autoexception:: mechdesign.errors.InputError" in text
    assert ":doc:`Errors and warnings <errors>`" in text


def entry(name, **fields):
    return SimpleNamespace(docname=f"reference/python/{name}", node_id=name, aliased=False, **fields)


OBJECTS = {
    name: entry(name)
    for name in (
        "mechdesign.design",
        "mechdesign.verify",
        "mechdesign.MetricPrivacy",
        "mechdesign.Ledger",
        "mechdesign.Ledger.spend",
        "mechdesign.Domain",
        "mechdesign.tables.Domain",
        "mechdesign.tables.Policy",
        "mechdesign.solve.find",
        "mechdesign.mechanisms.find",
        "mechdesign.graphs.threshold",
        "mechdesign.leakage.LossFunction",
    )
}
OBJECTS["mechdesign.certify.verify"] = SimpleNamespace(
    docname="reference/python/mechdesign.verify", node_id="mechdesign.verify", aliased=True
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("md.design", "mechdesign.design"),
        ("md.design(problem, tolerance=1e-6)", "mechdesign.design"),
        ("mechdesign.certify.verify", "mechdesign.verify"),
        ("MetricPrivacy(epsilon=…)", "mechdesign.MetricPrivacy"),
        ("Ledger.spend", "mechdesign.Ledger.spend"),
        ("verify(folder)", "mechdesign.verify"),
        ("threshold()", "mechdesign.graphs.threshold"),
        ("tables.Policy", "mechdesign.tables.Policy"),
        ("LossFunction", "mechdesign.leakage.LossFunction"),
        ("md.tables.Domain", "mechdesign.tables.Domain"),
    ],
)
def test_literals_lead_to_the_object_they_name(text, target):
    assert autolink.target_of(text, OBJECTS) == target


@pytest.mark.parametrize(
    "text",
    [
        "verify",
        "design",
        "threshold",
        "find(name)",
        "Domain",
        "Domain(2)",
        "md.nothing",
        "mechdesign",
        "mechdesign.nothing.verify",
        "md.Ledger.nothing",
        "epsilon = 1",
        "--verify",
        "verify.json",
        "design.toml",
        "$ mechdesign verify",
        "Ledger spend",
        "Ledger.",
        ".Ledger.spend()x",
        "",
        " ",
        "1.5",
        "p(o|s)",
        "ln 2",
        "NotOurs",
        "md",
        "md.",
    ],
)
def test_other_literals_are_left_alone(text):
    assert autolink.target_of(text, OBJECTS) is None


def test_commands_lead_to_their_help_and_modules_to_their_page():
    assert autolink.place_of("mechdesign verify DIR", {})[:2] == ("reference/command_line", "mechdesign-verify")
    assert autolink.place_of("mechdesign nothing", {}) is None
    assert autolink.place_of("md.tables", {})[0] == "reference/python/tables"
    assert autolink.place_of("md.nothing", {}) is None


def test_terms_are_found_as_whole_words():
    pattern = autolink._pattern(("tight ε", "prior", "policy graph"))
    text = "Priors, a policy graph and the tight ε; not a priority, nor prior-free."
    assert [found[1] for found in pattern.finditer(text)] == ["Prior", "policy graph", "tight ε"]


def test_compounds_and_greek_letters_are_words():
    from sphinx.search import languages

    words = list(ranking.words_of("Check-ins with ε and md.design", languages["en"]({})))
    assert {"checkin", "epsilon", "mddesign", "design"} <= set(words)
    assert "with" not in words


@pytest.mark.parametrize("path", sorted((DOCS / "inventories").glob("*.txt")), ids=lambda path: path.stem)
def test_inventories_are_sorted_and_well_formed(path):
    head, *_ = lines = path.read_text(encoding="utf-8").splitlines()
    assert head == "# Sphinx inventory version 1"
    assert lines[3:] == sorted(lines[3:])
    for line in lines[3:]:
        assert re.fullmatch(r"[\w.]+ (class|data|exception|function) [\w./]+\.html", line)
