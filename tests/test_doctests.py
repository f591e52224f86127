"""The examples in docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import pytest

import mechdesign

# They import packages that are optional.
OPTIONAL = ("mechdesign.solve._blocks.kernels.torch", "mechdesign.solve._blocks.kernels.accelerator")


def modules():
    names = [found.name for found in pkgutil.walk_packages(mechdesign.__path__, "mechdesign.")]
    return [
        "mechdesign",
        *(name for name in names if not name.endswith("__main__") and "torch" not in name and name not in OPTIONAL),
    ]


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not doctest.testmod(importlib.import_module(name)).failed


def test_there_are_examples():
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for name in modules() for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) > 20
