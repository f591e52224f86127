"""The check of sentences and names finds every kind of fault, and finds none in plain English."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from papers import all_figures

SCRIPT = Path(__file__).parents[2] / ".ci" / "words.py"
if not SCRIPT.exists():
    pytest.skip("the check is part of a checkout", allow_module_level=True)
spec = importlib.util.spec_from_file_location("words", SCRIPT)
assert spec is not None
assert spec.loader is not None
words = importlib.util.module_from_spec(spec)
sys.modules["words"] = words
spec.loader.exec_module(words)


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("This is no channel.", "is no"),
        ("It holds so many rows.", "so many"),
        ("The bound beside the cost.", "beside"),
        ("Rows of which some are zero.", "of which"),
        ("Whoever reads this can check it.", "whoever"),
        ("Return what the solver says.", "what"),
        ("Where the gap is zero, stop.", "Where"),
        ("Tell whether the row is zero.", "tell whether"),
        ("The sum is likewise zero.", "archaic"),
        ("The loss as a part of the gap.", "as a part of"),
        ("Price as many as there are.", "as many"),
        ("One " + "word " * 25 + "ends.", "27 words"),
    ],
)
def test_faults_are_found(sentence: str, rule: str) -> None:
    found = list(words.faults(words.Sentence(SCRIPT, 1, "comment", sentence)))
    assert any(rule.lower() in fault.lower() for fault in found)


@pytest.mark.parametrize(
    "sentence",
    [
        "If there is no floor, the cost is zero.",
        "The solver is no longer needed.",
        "What did the solver return?",
        "One " + "word " * 23 + "ends.",
        "Minimise `what it is` over $of which$ channels.",
    ],
)
def test_plain_sentences_pass(sentence: str) -> None:
    assert not list(words.faults(words.Sentence(SCRIPT, 1, "comment", sentence)))


@pytest.mark.parametrize("name", all_figures())
def test_claims_and_findings_of_the_gallery_are_plain(name: str) -> None:
    figure = all_figures()[name]
    lines = "\n".join([figure.claim, figure.verdict().found, figure.alt]).splitlines()
    sentences = [words.Sentence(SCRIPT, 1, "message", part) for line in lines for part in words.split(line)]
    assert sentences
    assert [fault for sentence in sentences for fault in words.faults(sentence)] == []


def test_every_kind_of_sentence_is_read(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        '''"""First sentence. Second one:

    a = formula

- An item.
"""
# A comment in
# two lines.
def f(x):
    """Summary.

    Args:
        x: The number of rows.

    >>> f(1)
    ignored
    """
    raise ValueError(f"rows must be positive, got {x}")
''',
        encoding="utf-8",
    )
    found = [(sentence.kind, sentence.line, sentence.text) for sentence in words.sentences([file])]
    assert found == [
        ("docstring", 1, "First sentence."),
        ("docstring", 1, "Second one:"),
        ("docstring", 5, "An item."),
        ("docstring", 10, "Summary."),
        ("docstring", 13, "The number of rows."),
        ("message", 18, "rows must be positive, got `X`"),
        ("comment", 7, "A comment in two lines."),
    ]


def test_pages_are_read_without_code_and_formulas(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\nOne. Two\nlines.\n\n```\ncode here\n```\n\n$$\nx = 1\n$$\n\n- Item.\n", encoding="utf-8"
    )
    assert [sentence.text for sentence in words.sentences([page])] == ["One.", "Two lines.", "Item."]


@pytest.mark.parametrize(
    ("name", "is_found"),
    [("_checked", True), ("told_of", True), ("check", False), ("speed", False), ("embed_rows", False)],
)
def test_participles_are_found(name: str, is_found: bool) -> None:
    assert words.is_participle(name) is is_found


def test_public_names_may_stay(tmp_path: Path) -> None:
    package = tmp_path / "package"
    for room in ("one", "two"):
        (package / room).mkdir(parents=True)
        (package / room / "__init__.pyi").write_text("from ._a import A as A\n")
        (package / room / "_a.py").write_text("class A:\n    def kept(self): ...\n    def _kept(self): ...\n")
    assert [found.rsplit(": ", 1)[1] for found in words.check_names(package)] == ["_kept", "_kept"]


def test_names_of_two_classes_and_participles_are_found(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("class A:\n    def checked(self): ...\n    @property\n    def kept(self): ...\n")
    (package / "b.py").write_text("class A: ...\n")
    assert [found.rsplit(": ", 1)[1] for found in words.check_names(package)] == ["checked", "A"]
