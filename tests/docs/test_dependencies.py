"""The page on dependencies lists what pyproject.toml asks for, and nothing else."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "contributing" / "dependencies.md").read_text(encoding="utf-8")
DECLARED = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EVERYONE = "everyone"


def asked_for(project):
    """Return who asks for each package: everyone, or the extras that do."""
    found = {}
    for group, packages in {EVERYONE: project["dependencies"], **project["optional-dependencies"]}.items():
        for package in packages:
            found.setdefault(re.match(r"[\w-]+", package)[0], set()).add(group)
    return found


def rows(page):
    """Return the cells of each row of the table."""
    return [[cell.strip() for cell in row.split("|")] for row in re.findall(r"^\|( `.*)\|$", page, flags=re.M)]


def differences(page, project):
    """Return the packages whose rows and whose requirements are not the same, or that have two rows."""
    listed = [
        (package.strip("`"), {group.strip("` ") for group in groups.split(",")}) for package, groups, *_ in rows(page)
    ]
    names, wanted = [name for name, _ in listed], asked_for(project)
    twice = {name for name in names if names.count(name) > 1}
    return twice | {name for name in wanted.keys() | set(names) if wanted.get(name) != dict(listed).get(name)}


def test_each_package_has_a_row_and_each_row_a_package():
    assert differences(PAGE, DECLARED) == set()


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (r"^\| `rich` .*\n", "", {"rich"}),
        (r"^(\| `rich` .*\n)", r"\1\1", {"rich"}),
        (r"^\| `rich` ", "| `poor` ", {"rich", "poor"}),
        (r"^(\| `rich` \|) everyone ", r"\1 `fast` ", {"rich"}),
        (r"^(\| `numba` \| `fast`), `test` ", r"\1 ", {"numba"}),
    ],
    ids=["no row", "two rows", "another package", "another extra", "an extra is missing"],
)
def test_a_wrong_row_is_found(old, new, found):
    page, changed = re.subn(old, new, PAGE, flags=re.M)
    assert changed == 1
    assert differences(page, DECLARED) == found


def test_a_requirement_without_a_row_is_found():
    more = DECLARED | {"dependencies": [*DECLARED["dependencies"], "poor>=1"]}
    assert differences(PAGE, more) == {"poor"}


def test_each_row_says_what_is_earned_and_where():
    assert all(len(row) == 4 and all(row) for row in rows(PAGE))


def test_the_package_imports_what_its_users_install():
    files = [path.read_text(encoding="utf-8") for path in (PROJECT / "mechdesign").rglob("*.py")]
    for package, groups in asked_for(DECLARED).items():
        if groups - {"test", "lint", "docs", "ci"}:
            wanted = re.compile(rf"^\s*(from|import) {package}\b", flags=re.M)
            assert any(wanted.search(text) for text in files), package
