"""The page on dependencies lists what pyproject.toml asks for, and nothing else."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2]
EVERYONE = "everyone"


def asked_for():
    """Return who asks for each package: everyone, or the extras that do."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {}
    for group, packages in {EVERYONE: project["dependencies"], **project["optional-dependencies"]}.items():
        for package in packages:
            found.setdefault(re.match(r"[\w-]+", package)[0], set()).add(group)
    return found


def rows():
    """Return the cells of each row of the table."""
    page = (PROJECT / "docs" / "contributing" / "dependencies.md").read_text(encoding="utf-8")
    found = re.findall(r"^\|( `.*)\|$", page, flags=re.M)
    return [[cell.strip() for cell in row.split("|")] for row in found]


def test_each_package_has_a_row_and_each_row_a_package():
    listed = {package.strip("`"): {group.strip("` ") for group in groups.split(",")} for package, groups, *_ in rows()}
    assert listed == asked_for()
    assert len(listed) == len(rows())


def test_each_row_says_what_is_earned_and_where():
    assert all(len(row) == 4 and all(row) for row in rows())


def test_the_package_imports_what_its_users_install():
    files = [path.read_text(encoding="utf-8") for path in (PROJECT / "mechdesign").rglob("*.py")]
    for package, groups in asked_for().items():
        if groups - {"test", "lint", "docs", "ci"}:
            wanted = re.compile(rf"^\s*(from|import) {package}\b", flags=re.M)
            assert any(wanted.search(text) for text in files), package
