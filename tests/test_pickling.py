"""What goes to another process and comes back: errors of every class, and what is designed."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import pkgutil
import threading

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base import _errors as errors
from mechdesign.base._values import ReadOnlyMapping

SPECIFICATION = """
domain.points = [[0, 0], [1, 0], [0, 1]]
domain.unit = "km"
prior.counts = [3, 2, 1]
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
solver.options = { presolve = "off" }
"""


@pytest.fixture(scope="module")
def classes() -> list[type[Exception]]:
    """Return every class of error and warning of ours, wherever it stands."""
    for found in pkgutil.walk_packages(md.__path__, "mechdesign."):
        name = found.name.rpartition(".")[2]
        if name != "__main__" and (name != "numba" or importlib.util.find_spec("numba")):
            importlib.import_module(found.name)
    found, waiting = set(), [Exception]
    while waiting:
        for inner in waiting.pop().__subclasses__():
            waiting.append(inner)
            if inner.__module__.startswith("mechdesign"):
                found.add(inner)
    return sorted(found, key=lambda each: (each.__module__, each.__name__))


def made(sort: type[Exception]) -> Exception:
    if issubclass(sort, errors.InputError):
        return sort("epsilon", "is wrong", value=-1, bound=">= 0", remedy="give another")
    if issubclass(sort, errors.LeakageExceededError):
        return sort(3, 0.5, 0.25, "Release less.")
    if issubclass(sort, errors.CertificateError):
        return sort("it does not hold", (1, 2))
    return sort("a message")


def test_every_error_comes_back_from_another_process_as_it_was(classes):
    assert len(classes) > 40
    for sort in classes:
        error = made(sort)
        error.add_note("noted")
        for back in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert type(back) is sort
            assert (str(back), back.args) == (str(error), error.args)
            assert {**vars(back), "error": ""} == {**vars(error), "error": ""}


def test_an_error_of_a_class_with_a_constructor_of_its_own_comes_back():
    back = pickle.loads(pickle.dumps(Own(7)))
    assert (type(back), back.number, str(back)) == (Own, 7, "seven: is wrong; found 7")


class Own(errors.InputError):
    def __init__(self, number: int) -> None:
        super().__init__("seven", "is wrong", value=number)
        self.number = number


def test_a_value_that_cannot_be_pickled_goes_as_its_text():
    for value in (lambda: 0, threading.Lock(), (each for each in ())):
        error = errors.InputError("x", "is wrong", value=value)
        back = pickle.loads(pickle.dumps(error))
        assert str(back) == str(error)
        assert str(back.value) == repr(value)[:120]


def test_errors_are_also_those_of_python_that_callers_catch(classes):
    bases = {
        "InputError": ValueError,
        "StateError": ValueError,
        "ExportError": OSError,
        "MissingDependencyError": ImportError,
        "SpecificationError": md.errors.InputError,
        "TimeLimitError": md.errors.SolverError,
        "SolverInterruptedError": md.errors.SolverError,
    }
    known = {sort.__name__: sort for sort in classes}
    assert [name for name, base in bases.items() if not issubclass(known[name], base)] == []


def test_what_is_designed_can_be_pickled_and_copied():
    given = md.specification.parse(SPECIFICATION)
    problem, design = given.problem(), given.design()
    for thing in (given, given.origin, given.settings, problem, problem.secrets, design, design.certificate):
        for back in (pickle.loads(pickle.dumps(thing)), copy.deepcopy(thing)):
            assert type(back) is type(thing)
    back = pickle.loads(pickle.dumps(design))
    assert (back.certificate, back.origin) == (design.certificate, design.origin)
    assert np.array_equal(pickle.loads(pickle.dumps(given)).design().channel.numerators, design.channel.numerators)
    assert pickle.loads(pickle.dumps(md.sweep.parse(SPECIFICATION + 'sweep = { "privacy.0.epsilon" = [1, 2] }'))).values


def test_a_mapping_that_cannot_be_changed():
    source = {"a": 1}
    mapping = ReadOnlyMapping(source)
    source["b"] = 2
    assert (dict(mapping), mapping | {"c": 3}, "b" in mapping, len(mapping)) == ({"a": 1}, {"a": 1, "c": 3}, False, 1)
    assert mapping == {"a": 1}
    with pytest.raises(TypeError):
        mapping["a"] = 2
