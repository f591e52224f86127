"""What version 0.1.0 promised is there, and called as it was: the table is `reference/public_names.toml`."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import tomllib
from inspect import Parameter
from pathlib import Path
from typing import Any

import click
import pytest

import mechdesign as md
from mechdesign.cli import main

PROMISED = tomllib.loads((Path(__file__).parent / "reference" / "public_names.toml").read_text(encoding="utf-8"))
SOLVERS = (
    "auto",
    "block",
    "highs",
    "highs-simplex",
    "highs-ipx",
    "highs-pdlp",
    "scipy",
    "scipy-ds",
    "scipy-ipm",
    "cvxpy",
)


def find(name: str) -> Any:
    return pkgutil.resolve_name(f"mechdesign.{name}")


def lacking(promised: str, function: Any) -> str:
    """Return what of a promised signature a function no longer takes, nothing where it takes all of it."""
    old = inspect.signature(eval(f"lambda {promised[1:-1]}: None")).parameters
    now = inspect.signature(function)
    named = [p.name for p in old.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    by_name = {p.name: p for p in old.values() if p.kind is not Parameter.VAR_POSITIONAL}
    only_by_name = {p.name: 0 for p in old.values() if p.kind is Parameter.KEYWORD_ONLY}
    needed = [p.name for p in by_name.values() if p.default is Parameter.empty]
    try:
        placed = list(now.bind(*named, **only_by_name).arguments)
        now.bind(**by_name)
        now.bind(**dict.fromkeys(needed))
    except TypeError as error:
        return str(error)
    if placed[: len(named)] != named:
        return f"the order {named}: it is {placed}"
    changed = [
        name
        for name, parameter in by_name.items()
        if name not in needed and name in now.parameters and now.parameters[name].default != parameter.default
    ]
    return f"the default of {changed}" if changed else ""


@pytest.mark.parametrize("name", PROMISED["calls"])
def test_calls_are_taken(name: str) -> None:
    assert not lacking(PROMISED["calls"][name], find(name))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, c, b=1: None,
        lambda b, a, c=1: None,
        lambda a, b=2, *, c=1: None,
        lambda a, b=1: None,
        lambda a, b, c=1: None,
        lambda a, b=1, *, c=1, d: None,
    ],
)
def test_the_check_can_fail(function: Any) -> None:
    assert lacking("(a, b=1, *, c=1)", function)


@pytest.mark.parametrize(
    "function", [lambda a, b=1, *, c=1: None, lambda a, b=1, c=1, d=1: None, lambda a, b=1, **old: None]
)
def test_the_check_allows_more(function: Any) -> None:
    assert not lacking("(a, b=1, *, c=1)", function)


def members(kind: type) -> set[str]:
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {*dir(kind), *(field.name for field in fields)}


@pytest.mark.parametrize("name", PROMISED["members"])
def test_members_are_there(name: str) -> None:
    assert set(PROMISED["members"][name]) <= members(find(name))


@pytest.mark.parametrize("name", PROMISED["errors"])
def test_errors_are_caught_as_before(name: str) -> None:
    assert {base.__name__ for base in find(name).__mro__} >= set(PROMISED["errors"][name])


@pytest.mark.parametrize("name", PROMISED["commands"])
def test_options_are_taken(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    taken = {text for option in command.params for text in (*option.opts, *option.secondary_opts)}
    assert taken >= set(PROMISED["commands"][name])


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_are_named_as_before(solver: str) -> None:
    distance = md.distances.hamming(2)
    problem = md.Problem(prior=[0.5, 0.5], cost=distance, requirements=[md.MetricPrivacy(epsilon=1, distance=distance)])
    made = md.design(problem, solver=solver, tolerance=1e-6)
    assert made.status == "optimal"
    assert made.certificate.provenance["solver"] == ("highs-simplex" if solver == "auto" else solver)
    assert made.channel.denominator == 2**62
    assert [sum(row) for row in made.channel.numerators.tolist()] == [2**62] * 2
    (checked,) = made.certificate.requirements
    assert {"kind", "nominal", "realised", "holds", "radius"} <= members(type(checked))
