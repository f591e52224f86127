"""The table of old and new names in the changelog: it covers every public name of before, and leads somewhere."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
BEFORE: dict[str, list[str]] = json.loads(
    (PROJECT / "tests" / "reference" / "names_before_rooms.json").read_text(encoding="utf-8")
)
PUBLIC = [
    *(
        f"mechdesign.{name}"
        for name in ("certify", "model", "synthesis", "synthesis.formats", "certify.second_verifier")
    ),
    "mechdesign.model.distances",
    "mechdesign.leakage.cao2019",
    "mechdesign.errors",
    "mechdesign",
]
ROWS = re.findall(r"^\| `(mechdesign[\w.]*)`: (.*) \| (.*) \|$", CHANGELOG, re.MULTILINE)


def listed() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for module, names, _ in ROWS:
        found.setdefault(module, set()).update(re.findall(r"`(\w+)`", names))
    return found


def lacking(rows: dict[str, set[str]]) -> list[str]:
    return [
        f"{module}.{name}" for module, names in BEFORE.items() for name in names if name not in rows.get(module, ())
    ]


def test_every_public_name_of_before_is_listed() -> None:
    assert sum(map(len, BEFORE.values())) > 900
    assert not lacking(listed())


def test_the_check_can_fail() -> None:
    rows = listed()
    rows["mechdesign.model.channel"] = rows["mechdesign.model.channel"] - {"Channel"}
    assert lacking(rows) == ["mechdesign.model.channel.Channel"]


@pytest.mark.parametrize(("module", "names", "new"), ROWS)
def test_new_names_are_there(module: str, names: str, new: str) -> None:
    if new.startswith("no promise"):
        (file,) = re.findall(r"`([\w/]+\.py)`", new)
        assert (PROJECT / "mechdesign" / file).is_file()
        return
    for place in re.findall(r"`((?:md|mechdesign)[\w.]*)[^`]*`", new):
        full = re.sub(r"^md\b", "mechdesign", place).rstrip(".")
        each = [f"{full}.{name}" for name in re.findall(r"`(\w+)`", names)] if "….`" in new or "….…" in new else [full]
        if new.endswith(".…`") and "leakage_" not in new:
            each = [f"{full}.{name}" for name in re.findall(r"`(\w+)`", names)]
        for name in each:
            if not name.endswith("leakage_"):
                assert found(name) is not None


def found(name: str) -> object:
    """Return what a name means to a user: modules that are not public are no way to it."""
    for public in sorted(PUBLIC, key=len, reverse=True):
        if name == public or name.startswith(f"{public}."):
            value: object = importlib.import_module(public)
            for part in name.removeprefix(public).split(".")[1:]:
                value = getattr(value, part)
            return value
    raise AssertionError(name)


DOCUMENTED = sorted(
    {
        name
        for page in [*(PROJECT / "docs").rglob("*.md"), PROJECT / "README.md"]
        for name in re.findall(r"\bmd(?:\.[A-Za-z]\w*)+(?![\w…])", page.read_text(encoding="utf-8"))
    }
)


def test_every_name_that_the_documentation_shows_is_there() -> None:
    assert len(DOCUMENTED) > 100
    missing = []
    for name in DOCUMENTED:
        found = importlib.import_module("mechdesign")
        for part in name.split(".")[1:]:
            if not hasattr(found, part):
                # Fields of values that are made in a constructor.
                if not isinstance(found, type) or part not in getattr(found, "__annotations__", {}):
                    missing.append(name)
                break
            found = getattr(found, part)
    assert not missing
