"""The examples in docstrings run as they stand."""

from __future__ import annotations

import doctest
import importlib.util
import itertools
import pkgutil
from pathlib import Path

import pytest

import mechdesign

# These run the command, or import packages that are optional and not here.
NEEDS = {
    "numba": "numba",
}
LEFT_OUT = ("__main__", *(name for name, package in NEEDS.items() if not importlib.util.find_spec(package)))
# Their examples draw whole pages.
SLOW = ("mechdesign.report._saving", "mechdesign.report._design_figures")
MODULES = [
    "mechdesign",
    *(found.name for found in pkgutil.walk_packages(mechdesign.__path__, "mechdesign.")),
]
FINDER = doctest.DocTestFinder(exclude_empty=True)


def groups() -> dict[str, list[str]]:
    """Return the modules of each room, a few at a time."""
    found = {}
    fast = [name for name in MODULES if name not in SLOW and name.rpartition(".")[2] not in LEFT_OUT]
    for room, names in itertools.groupby(fast, lambda name: name.split(".")[1:2]):
        listed = list(names)
        for start in range(0, len(listed), 6):
            found[f"{'.'.join(room) or 'face'}-{start // 6}"] = listed[start : start + 6]
    return found


GROUPS = groups()


def run_examples(names: list[str]) -> int:
    """Run the examples of modules, and return how many there were."""
    tried, said = 0, list[str]()
    for name in names:
        for test in FINDER.find(importlib.import_module(name)):
            runner = doctest.DocTestRunner(verbose=False)
            tried += runner.run(test, out=said.append).attempted
    assert not said, "".join(said)
    return tried


@pytest.mark.parametrize("group", GROUPS)
def test_examples_in_docstrings(group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(GROUPS[group])


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_examples_that_draw_pages(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_examples([name])


def test_examples_are_found_and_a_wrong_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_examples(["mechdesign.leakage._recursion", "mechdesign.model._prior"]) > 5
    (tmp_path / "wrong_example.py").write_text('"""Add.\n\n>>> 1 + 1\n3\n"""\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AssertionError, match="Expected"):
        run_examples(["wrong_example"])
