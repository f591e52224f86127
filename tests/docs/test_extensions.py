"""The site's own extensions: names in running text lead to the right page or to none."""

from __future__ import annotations

import doctest
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import click
import pytest

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"

NAMES = (
    *("design", "verify", "MetricPrivacy", "Ledger", "Ledger.spend", "Domain", "tables.Domain", "tables.Policy"),
    *("solve.find", "mechanisms.find", "graphs.threshold", "leakage.LossFunction"),
)
OBJECTS = {
    name: SimpleNamespace(docname=f"reference/python/{name}", node_id=name, aliased=False)
    for name in (f"mechdesign.{name}" for name in NAMES)
}
OBJECTS["mechdesign.certify.verify"] = SimpleNamespace(
    docname="reference/python/mechdesign.verify", node_id="mechdesign.verify", aliased=True
)


@pytest.fixture(scope="module", autouse=True)
def _extensions() -> Iterator[None]:
    """Make the extensions importable, where Sphinx is installed."""
    pytest.importorskip("sphinx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(EXTENSIONS)])
        yield


def imported(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_the_page_of_commands_shows_what_help_prints() -> None:
    from click.testing import CliRunner

    from mechdesign.cli import main

    for words in (["leakage"], ["ledger", "new"]):
        command = main
        for word in words:
            command = command.get_command(click.Context(command), word)
        printed = CliRunner().invoke(main, [*words, "--help"], prog_name="mechdesign").output
        shown = imported("generated").help_text(command, f"mechdesign {' '.join(words)}")
        assert shown.split() == printed.split(), words


def test_literals_lead_to_the_object_they_name() -> None:
    expected = {
        "md.design": "design",
        "md.design(problem, tolerance=1e-6)": "design",
        "mechdesign.certify.verify": "verify",
        "MetricPrivacy(epsilon=…)": "MetricPrivacy",
        "Ledger.spend": "Ledger.spend",
        "verify(folder)": "verify",
        "threshold()": "graphs.threshold",
        "tables.Policy": "tables.Policy",
        "LossFunction": "leakage.LossFunction",
        "md.tables.Domain": "tables.Domain",
    }
    assert {text: imported("autolink").target_of(text, OBJECTS) for text in expected} == {
        text: f"mechdesign.{name}" for text, name in expected.items()
    }


def test_other_literals_are_left_alone() -> None:
    others = (
        *("verify", "design", "threshold", "Domain", "Domain(2)", "md.nothing", "mechdesign"),
        *("mechdesign.nothing.verify", "md.Ledger.nothing", "epsilon = 1", "--verify", "verify.json", "design.toml"),
        *("$ mechdesign verify", "Ledger spend", "Ledger.", ".Ledger.spend()x", "", " ", "1.5", "p(o|s)", "ln 2"),
        *("NotOurs", "md", "md."),
    )
    assert {
        text: found for text in others if (found := imported("autolink").target_of(text, OBJECTS)) is not None
    } == {}


def test_commands_lead_to_their_help_and_modules_to_their_page() -> None:
    autolink = imported("autolink")
    assert autolink.place_of("mechdesign verify DIR", {})[:2] == ("reference/command_line", "mechdesign-verify")
    assert autolink.place_of("mechdesign nothing", {}) is None
    assert autolink.place_of("md.tables", {})[0] == "reference/python/tables"
    assert autolink.place_of("md.nothing", {}) is None


def test_names_are_those_that_users_type() -> None:
    listed = imported("reference").listed()
    for name in ("design", "Problem", "leakage.LossFunction", "figures.answers", "attack.optimal", "errors.InputError"):
        assert f"mechdesign.{name}" in listed
    problem = set(imported("reference").other_names("mechdesign.Problem", listed["mechdesign.Problem"][0]))
    assert "mechdesign.model._problem.Problem" in problem
    text = imported("reference").text_of("mechdesign.errors.InputError", *listed["mechdesign.errors.InputError"])
    assert ".. autoexception:: mechdesign.errors.InputError" in text


def test_terms_are_whole_words() -> None:
    pattern = imported("autolink")._pattern(("tight ε", "prior", "policy graph"))
    text = "Priors, a policy graph and the tight ε; not a priority, nor prior-free."
    assert [found[1] for found in pattern.finditer(text)] == ["Prior", "policy graph", "tight ε"]


def test_examples_in_docstrings() -> None:
    tried = 0
    for path in sorted(EXTENSIONS.glob("*.py")):
        results = doctest.testmod(imported(path.stem))
        assert results.failed == 0, path.name
        tried += results.attempted
    assert tried > 1
