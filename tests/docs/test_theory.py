"""Theory pages and code refer to each other: sections name their files, and files name their section."""

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
THEORY = PROJECT / "docs" / "theory"
# Pages whose sections name their files; a file without a path is in this folder.
PAGES = ("interior_point", "column_generation", "block_arithmetic")
FOLDER = PROJECT / "mechdesign" / "solve" / "_blocks"
# Every one of these files must name a section.
DOCUMENTED = [
    *sorted(FOLDER.glob("[!_]*.py")),
    *sorted((FOLDER / "kernels").glob("*.py")),
    PROJECT / "mechdesign" / "solve" / "_column_generation.py",
]
MAX_WORDS = 1500


def sections_by_file(pages):
    """Return the (page, section) pairs that name each file, from lines of the form "Files: `a.py`, `b.py`."."""
    found, section = {}, None
    for page, text in pages.items():
        for line in text.splitlines():
            if heading := re.match(r"##+ (.+)", line):
                section = heading.group(1)
            elif line.startswith("Files: "):
                for name in re.findall(r"`([^`]+)`", line):
                    place = PROJECT / name if name.startswith("mechdesign/") else FOLDER / name
                    found.setdefault(place, set()).add((page, section))
    return found


def named_section(source):
    """Return the page and the section that a module docstring names, or None."""
    found = re.search(r"(?m)^Theory: (\w+), (.+)\.$", ast.get_docstring(ast.parse(source)) or "")
    return found.groups() if found else None


def count_words(text):
    """Count the words of a page; a formula is one word."""
    return len(re.sub(r"\$\$.*?\$\$|\$[^$]*\$", "X", text, flags=re.S).split())


@pytest.fixture(scope="module")
def sections():
    return sections_by_file({page: (THEORY / f"{page}.md").read_text(encoding="utf-8") for page in PAGES})


def test_sections_name_existing_files(sections):
    assert sections
    assert [place for place in sections if not place.exists()] == []


def test_files_name_a_section_that_names_them(sections):
    named = {path: named_section(path.read_text(encoding="utf-8")) for path in DOCUMENTED}
    assert {path.name: section for path, section in named.items() if section not in sections.get(path, set())} == {}


def test_named_files_name_a_section(sections):
    files = [place for place in sections if place.suffix == ".py"]
    assert [place for place in files if named_section(place.read_text(encoding="utf-8")) is None] == []


@pytest.mark.parametrize("page", sorted(THEORY.glob("*.md")), ids=lambda page: page.stem)
def test_a_page_has_at_most_1500_words(page):
    assert count_words(page.read_text(encoding="utf-8")) <= MAX_WORDS


def test_the_checks_can_fail():
    one = "## One\n\nFiles: `a.py`, `mechdesign/solve/b.py`.\n\n## Two\n\nFiles: `a.py`.\n"
    found = sections_by_file({"page": one, "other": "## One\n\nFiles: `c.py`.\n"})
    assert found == {
        FOLDER / "a.py": {("page", "One"), ("page", "Two")},
        PROJECT / "mechdesign/solve/b.py": {("page", "One")},
        FOLDER / "c.py": {("other", "One")},
    }
    assert named_section('"""Solve.\n\nTheory: page, One.\n"""') == ("page", "One")
    assert named_section('"""Solve.\n\nTheory of one page.\n"""') is None
    assert count_words("word " * 1501) > MAX_WORDS
    assert count_words("a $x = 1 + 2$ b\n\n$$\ny = 3\n$$\n") == 4
