"""Error messages give the position, the value and the remedy of a mistake: `benchmarks/mistakes.py`."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from mechdesign.errors import InputError


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "mistakes.py"
    spec = importlib.util.spec_from_file_location("mistakes", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module.
    sys.modules["mistakes"] = module
    spec.loader.exec_module(module)
    return module


def test_every_mistake_ends_in_an_error_that_says_where_it_is_and_what_would_do(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    script.prepare()
    made = list(script.mistakes())
    assert len(made) >= 300
    found = {mistake.name: script.fault(mistake) for mistake in made}
    assert {name: said for name, said in found.items() if said[0]} == {}


@pytest.mark.parametrize(
    ("make", "wrong"), [(lambda: 3, "passes unnoticed"), (lambda: {}["a"], "KeyError is not an error of mechdesign")]
)
def test_the_script_notices_what_is_no_typed_error(script, make, wrong):
    assert script.fault(script.Mistake("a mistake", make))[0] == wrong


def test_the_script_notices_messages_that_say_too_little(script):
    def bare():
        raise InputError("a", "is wrong")

    def full():
        raise InputError("a", "is wrong", value=1)

    assert "neither a value" in script.fault(script.Mistake("bare", bare))[0]
    assert "does not name b" in script.fault(script.Mistake("unnamed", full, "b"))[0]
    assert script.fault(script.Mistake("full", full, "a"))[0] == ""
