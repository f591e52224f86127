"""Theory pages and code refer to each other: sections name their files, and files name their section."""

import ast
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
# Pages whose sections name their files, and the folder of files without a path.
FOLDERS = {"interior_point": PROJECT / "mechdesign" / "solve" / "_blocks"}
# Every one of these files must name a section.
DOCUMENTED = {
    "interior_point": [
        *sorted(FOLDERS["interior_point"].glob("[!_]*.py")),
        *sorted((FOLDERS["interior_point"] / "kernels").glob("*.py")),
        PROJECT / "mechdesign" / "solve" / "_column_generation.py",
    ]
}


def sections_by_file(text, folder):
    """Return the set of sections that name each file, from lines of the form "Files: `a.py`, `b.py`."."""
    found, section = {}, None
    for line in text.splitlines():
        if heading := re.match(r"##+ (.+)", line):
            section = heading.group(1)
        elif line.startswith("Files: "):
            for name in re.findall(r"`([^`]+)`", line):
                place = PROJECT / name if name.startswith("mechdesign/") else folder / name
                found.setdefault(place, set()).add(section)
    return found


def named_section(source, page):
    """Return the section of a page that a module docstring names, or None."""
    found = re.search(rf"(?m)^Theory: {page}, (.+)\.$", ast.get_docstring(ast.parse(source)) or "")
    return found.group(1) if found else None


@pytest.mark.parametrize("page", FOLDERS)
def test_sections_name_existing_files(page):
    text = (PROJECT / "docs" / "theory" / f"{page}.md").read_text(encoding="utf-8")
    missing = [place for place in sections_by_file(text, FOLDERS[page]) if not place.exists()]
    assert not missing


@pytest.mark.parametrize("page", FOLDERS)
def test_files_name_a_section_that_names_them(page):
    text = (PROJECT / "docs" / "theory" / f"{page}.md").read_text(encoding="utf-8")
    sections = sections_by_file(text, FOLDERS[page])
    wrong = {
        path.name: section
        for path in DOCUMENTED[page]
        if (section := named_section(path.read_text(encoding="utf-8"), page)) not in sections.get(path, set())
    }
    assert not wrong


@pytest.mark.parametrize("page", FOLDERS)
def test_named_files_name_a_section(page):
    text = (PROJECT / "docs" / "theory" / f"{page}.md").read_text(encoding="utf-8")
    files = [place for place in sections_by_file(text, FOLDERS[page]) if place.suffix == ".py"]
    assert files
    assert [place for place in files if named_section(place.read_text(encoding="utf-8"), page) is None] == []


def test_the_checks_can_fail():
    text = "## One\n\nFiles: `a.py`, `mechdesign/solve/b.py`.\n\n## Two\n\nFiles: `a.py`.\n"
    found = sections_by_file(text, Path("folder"))
    assert found == {Path("folder/a.py"): {"One", "Two"}, PROJECT / "mechdesign/solve/b.py": {"One"}}
    assert named_section('"""Solve.\n\nTheory: page, One.\n"""', "page") == "One"
    assert named_section('"""Solve.\n\nTheory: page, One.\n"""', "other") is None
