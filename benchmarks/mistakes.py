"""Make mistakes on purpose, and check the messages.

    python benchmarks/mistakes.py [--only TEXT] [--show]

The script makes some 500 mistakes in specifications, in tables of data, and in arguments of the library and of the
command line. Each mistake must end in a typed error that names the place of the mistake (a file, a key or an argument).
The error also names the actual value, the accepted values, or a remedy. The script prints offenders: mistakes that pass
unnoticed or raise a different exception, and mistakes whose message lacks such a text. With --show it prints all
messages. The exit code is 1 if there is an offender.
"""

# ruff: noqa: E501 - the tables of mistakes are read more easily in long lines
from __future__ import annotations

import argparse
import copy
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main as command
from mechdesign.errors import InputError, MechdesignError
from mechdesign.specification._specification import from_tables

GRID = {"columns": 2, "rows": 2, "width": 2.0, "height": 2.0}
BOX = {"columns": 2, "rows": 2, "south": 35.6, "north": 35.8, "west": 139.6, "east": 139.9}
BASE: dict[str, Any] = {
    "domain": {"grid": GRID},
    "prior": {"uniform": True},
    "cost": {"distance": "euclidean"},
    "privacy": [{"kind": "metric", "epsilon": 1, "distance": "euclidean"}],
}
MISSING = object()
NUMBERS = ("three", "", -1, [1], {"a": 1}, True, float("nan"), float("inf"))
TEXTS = (3, 1.5, True, ["euclidean"], {"a": 1}, "", "euclidian")


@dataclass(frozen=True)
class Mistake:
    """A mistake: the function that makes it, and a text that the message must contain, such as the key."""

    name: str
    make: Callable[[], object]
    names: str = ""


def mistakes() -> Iterator[Mistake]:
    """Yield every mistake; they are made in an empty folder, into which `prepare` has written data."""
    yield from in_specifications()
    yield from in_tables()
    yield from in_arguments()
    yield from with_records()
    yield from with_chains_and_traces()
    yield from on_the_command_line()
    yield from with_files_of_ones_own()


def prepare() -> None:
    """Write valid data and a design into this folder."""
    Path("good.csv").write_text("latitude,longitude,user\n35.7,139.7,a\n35.65,139.8,b\n")
    Path("counts.csv").write_text("count\n1\n2\n3\n4\n")
    Path("s.toml").write_text(
        "domain.grid = { columns = 2, rows = 2, width = 2, height = 2 }\nprior.uniform = true\n"
        'cost.distance = "euclidean"\nprivacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]\n'
    )
    problem().save("made")
    Path("chain.csv").write_text("0.9,0.1\n0.2,0.8\n")


def problem() -> md.Design:
    """Return a small design."""
    return from_tables(copy.deepcopy(BASE)).design()


# Specifications


def in_specifications() -> Iterator[Mistake]:
    """Yield mistakes in keys and values of a specification."""
    for path, wrong in (
        ("domain.grid.columns", (*NUMBERS[:6], 0, 1.5, 5001)),
        ("domain.grid.rows", (0, -3, 2.5, "2", 10**9)),
        ("domain.grid.width", (*NUMBERS, 0)),
        ("domain.grid.height", (0, "2 km")),
        ("domain.grid.unit", (3, ["km"])),
        ("domain.grid", ([2, 2], 4, "2x2")),
        ("domain", (MISSING, [], "grid", {})),
        ("prior.uniform", (False, "yes", 1)),
        ("prior", (MISSING, "uniform", [0.5, 0.5], {}, {"unifrom": True}, {"uniform": True, "counts": [1, 1, 1, 1]})),
        (
            "prior.probabilities",
            ([0.5, 0.5], [0.5, 0.5, 0.5, -0.5], [1, 1, 1, 1], "uniform", [0.25] * 5, [float("nan")] * 4),
        ),
        ("prior.counts", ([0, 0, 0, 0], [1, 2, 3], [-1, 1, 1, 1], "1,2", [float("inf"), 1, 1, 1])),
        ("prior.smoothing", (-1, "a")),
        ("cost.distance", TEXTS),
        ("cost", (MISSING, "euclidean", {}, {"distance": "euclidean", "matrix": "m.csv"}, {"csv": "cost.csv"})),
        ("privacy", (MISSING, [], "metric", [[]], {"kind": "metric"}, [3])),
        ("privacy.0.kind", (MISSING, *TEXTS, "metrics", "local")),
        ("privacy.0.epsilon", (MISSING, *NUMBERS, 0, "1/0", "0.1.2", "log(2)")),
        ("privacy.0.distance", (MISSING, *TEXTS)),
        ("privacy.0.radius", (1, "x")),
        ("privacy.0.epsilom", (1,)),
        ("privacy.0.graph", ({"steps": 4}, "grid")),
        ("solver.name", ("cplex", 3, "", "hihgs")),
        ("solver.tolerance", (*NUMBERS[:6], 0)),
        ("solver.time_limit", (0, -3, "1h", True)),
        ("solver.rows", ("some", 3)),
        ("solver.threads", (0, -1, 1.5, "2")),
        ("solver.options", ({"memory": "2 GB"}, {"symetry": True}, {"symmetry": "no"}, 3)),
        ("solver.gap", (1e-6,)),
        ("title", (3, ["a"])),
        ("version", (2, "1")),
        ("observables", ("secrets", {}, {"grid": {"columns": 2}}, {"labels": []})),
        ("policy", ({"within": "map"}, "component")),
        ("sweep", ({"epsilon": [1, 2]},)),
        ("secrets", ({"grid": GRID},)),
        ("releases", ({},)),
    ):
        for value in wrong:
            yield _specified(path, value)
    for path, wrong in (
        ("domain.grid.south", (35.9, "35", 100, 139.6, MISSING)),
        ("domain.grid.west", (140, 181, MISSING)),
        ("domain.grid.width", (3,)),
        (
            "prior.checkins",
            ("good.csv", {"path": "none.csv"}, {}, {"path": "good.csv", "latitude": "lat"}, {"path": 3}),
        ),
        ("prior.plt", ({"path": "none"}, {"path": "."}, "folder")),
        (
            "prior.csv",
            ({"path": "counts.csv"}, {"path": "none.csv", "count": "count"}, {"path": "counts.csv", "column": "n"}),
        ),
    ):
        for value in wrong:
            yield _specified(path, value, BOX)
    places = [[0, 0], [1, 1]]
    for key, value in (
        ("points", [[0, 0], [1]]), ("points", []), ("points", [["a", "b"]]), ("points", 3), ("line", 0), ("line", -1), ("line", 2.5),
        ("labels", []), ("labels", ["a", "a"]), ("labels", "ab"), ("labels", [1, 2]), ("labels", ["a", ""]),
        ("csv", {"path": "none.csv", "x": "x", "y": "y"}), ("csv", {"path": "good.csv", "x": "latitude"}), ("csv", "good.csv"),
        ("csv", {"path": "good.csv", "latitude": "longitude", "longitude": "latitude"}), ("lines", 3), ("points", {"a": 1}),
        ("points", [[float("nan"), 0.0], [1.0, 1.0]]),
    ):  # fmt: skip
        yield Mistake(f"domain.{key} = {value!r}", lambda k=key, v=value: _design({**BASE, "domain": {k: v}}), "domain")
    more = {"domain": {"points": places, "labels": ["a"]}}
    yield Mistake("fewer labels than points", lambda: _design({**BASE, **more}), "labels")
    for name, text in (
        ("no equals sign", "domain\n"), ("a key twice", "title = 'a'\ntitle = 'b'\n"), ("an open text", "title = 'a\n"),
        ("no value", "title =\n"), ("empty", ""), ("a binary file", "\0\1\2"), ("JSON", "{}"), ("a bare word", "title = yes\n"),
    ):  # fmt: skip
        yield Mistake(f"TOML: {name}", lambda t=text: _read(t), "")
    kinds = (
        {"kind": "threshold", "epsilon": 1, "distance": "euclidean"}, {"kind": "threshold", "epsilon": 1, "radius": -1, "distance": "euclidean"},
        {"kind": "graph", "epsilon": 1}, {"kind": "graph", "epsilon": 1, "graph": {}}, {"kind": "graph", "epsilon": 1, "graph": {"steps": 3}},
        {"kind": "graph", "epsilon": 1, "graph": {"edges": [[0, 9]]}}, {"kind": "graph", "epsilon": 1, "graph": {"edges": [[0]]}},
        {"kind": "distortion", "distance": "euclidean"}, {"kind": "distortion", "minimum": 99, "distance": "euclidean"},
        {"kind": "distortion", "minimum": -1, "distance": "euclidean"}, {"kind": "distortion", "minimum": "much", "distance": "euclidean"},
        {"kind": "metric", "epsilon": {"budgets": "none.csv"}, "distance": "euclidean"},
        {"kind": "metric", "epsilon": {"budgets": "counts.csv"}, "distance": "euclidean"}, {"kind": "metric", "epsilon": {}, "distance": "euclidean"},
        {"kind": "metric", "epsilon": 1, "matrix": {"path": "none.csv"}}, {"kind": "metric", "epsilon": 1, "matrix": {"path": "chain.csv"}},
        {"kind": "metric", "epsilon": 1, "distance": "haversine"},
    )  # fmt: skip
    for kind in kinds:
        yield Mistake(f"privacy = {json.dumps(kind)}", lambda k=kind: _design({**BASE, "privacy": [k]}), "")


def _specified(path: str, value: object, grid: dict[str, Any] = GRID) -> Mistake:
    def make() -> object:
        tables = copy.deepcopy({**BASE, "domain": {"grid": grid}})
        *way, last = path.split(".")
        table: Any = tables
        for step in way:
            table = table[int(step)] if step.isdecimal() else table.setdefault(step, {})
        if way == ["prior"] and last != "smoothing" and last != "uniform":
            table.clear()
        if value is MISSING:
            del table[last]
        else:
            table[last] = value
        return _design(tables)

    shown = "left out" if value is MISSING else f"= {value!r}"
    return Mistake(f"{path} {shown}", make, path.split(".")[0])


def _design(tables: dict[str, Any]) -> object:
    return from_tables(copy.deepcopy(tables)).design()


def _read(text: str) -> object:
    Path("wrong.toml").write_text(text)
    return md.read_spec("wrong.toml").design()


# Tables of data


def in_tables() -> Iterator[Mistake]:
    """Yield mistakes in files of data."""
    head = "latitude,longitude,user\n"
    for name, text in (
        ("empty", ""), ("only a header", head), ("a text in place of a number", f"{head}north,139.7,a\n"), ("a line with a missing field", f"{head}35.7,139.7\n"),
        ("a line with an additional field", f"{head}35.7,139.7,a,b\n"), ("swapped", f"{head}139.7,35.7,a\n"), ("all outside", f"{head}0,0,a\n"),
        ("an empty field", f"{head},139.7,a\n"), ("NaN", f"{head}nan,139.7,a\n"), ("points and commas", f'{head}"35,7",139.7,a\n35.8,139.7,a\n'),
        ("blanks between columns", "latitude longitude user\n35.7 139.7 a\n"), ("no header", "35.7,139.7,a\n"), ("a column twice", "latitude,latitude,user\n1,2,a\n"),
        ("an open quote", f'{head}"35.7,139.7,a\n'), ("binary", "\0\1"), ("underscores", f"{head}3_5.7,139.7,a\n"), ("infinite", f"{head}inf,139.7,a\n"),
    ):  # fmt: skip
        yield Mistake(f"check-ins: {name}", lambda t=text: _checkins(t), "bad.csv")
    for name, text in (
        ("not square", "1,0\n"), ("rows whose sum is not 1", "0.5,0.4\n0.5,0.5\n"), ("negative", "1.5,-0.5\n0.5,0.5\n"), ("text", "a,b\nc,d\n"),
        ("ragged", "1,0\n1\n"), ("empty", ""), ("NaN", "nan,1\n0.5,0.5\n"), ("a header", "x,y\n1,0\n0,1\n"),
    ):  # fmt: skip
        yield Mistake(
            f"chain: {name}", lambda t=text: _cli("leakage", _bad(t), "--epsilon", "0.1", "--steps", "3"), "bad.csv"
        )
    for name, text in (
        ("empty", ""), ("negative", "epsilon\n-1\n"), ("text", "epsilon\nmuch\n"), ("NaN", "epsilon\nnan\n"), ("another column", "eps,x\n1,2\n"),
    ):  # fmt: skip
        yield Mistake(f"budgets: {name}", lambda t=text: _cli("leakage", "chain.csv", "--budgets", _bad(t)), "bad.csv")
    for name, text in (
        ("empty", ""), ("text", "count\na\nb\nc\nd\n"), ("too few", "count\n1\n"), ("too many", "count\n1\n1\n1\n1\n1\n"), ("negative", "count\n1\n1\n1\n-1\n"),
        ("all zero", "count\n0\n0\n0\n0\n"),
    ):  # fmt: skip
        yield Mistake(
            f"counts: {name}",
            lambda t=text: _counts(t),
            "bad.csv" if name not in ("too few", "too many", "all zero", "negative") else "prior",
        )
    for name, text in (
        ("empty", ""), ("only a header", "latitude,longitude\n"), ("no such columns", "a,b\n1,2\n"), ("text", "x,y\na,1\n"), ("outside", "x,y\n9,9\n"),
        ("a column twice", "x,x,y\n1,1,1\n"), ("NaN", "x,y\nnan,1\n"), ("ragged", "x,y\n1\n"), ("degrees", "lat,lon\n1,1\n"),
    ):  # fmt: skip
        yield Mistake(f"places: {name}", lambda t=text: _cli("sample", "made", "--input", _bad(t)), "bad.csv")


def _bad(text: str) -> str:
    Path("bad.csv").write_text(text)
    return "bad.csv"


def _checkins(text: str) -> object:
    columns = {"path": _bad(text), "latitude": "latitude", "longitude": "longitude", "user": "user"}
    return _design({**BASE, "domain": {"grid": BOX}, "prior": {"checkins": columns, "smoothing": 1}})


def _counts(text: str) -> object:
    return _design({**BASE, "prior": {"csv": {"path": _bad(text), "column": "count"}}})


# Arguments of the library


def in_arguments() -> Iterator[Mistake]:
    """Yield wrong arguments of functions and classes."""
    domain = md.Domain.grid(2, 2, 2.0, 2.0)
    distance = md.distances.euclidean(domain)
    made = problem()
    good = made.problem

    def stated(**changed: Any) -> object:
        arguments = {
            "prior": [0.25] * 4,
            "cost": distance,
            "requirements": [md.MetricPrivacy(1, distance)],
            "secrets": domain,
        }
        return md.Problem(**(arguments | changed))

    for name, values in {
        "prior": ([1, 1, 1, 1], [0.5, 0.5], "uniform", [[0.25] * 4], [0.5, 0.5, 0.5, -0.5], None, [float("nan")] * 4),
        "cost": ([1, 2], -distance, "euclidean", distance[:2], None, distance * float("nan")),
        "requirements": ([1], "metric", [md.MetricPrivacy(1, distance[:2, :2])], None),
        "objective": ("mean", 3, None),
        "secrets": (md.Domain.grid(3, 1, 1.0, 1.0), "grid", 4),
        "observables": (md.Domain.grid(3, 1, 1.0, 1.0), 4),
    }.items():
        for value in values:
            yield Mistake(f"Problem({name}={_shown(value)})", lambda n=name, v=value: stated(**{n: v}), "")
    for name, values in {
        "solver": ("cplex", 3, None), "tolerance": (0, -1, "small", float("nan"), None), "time_limit": (0, "1 h", -1), "rows": ("some", 3),
        "threads": (0, 1.5, "2"), "options": ({"a": 1}, [1], "fast"), "progress": (3,),
    }.items():  # fmt: skip
        for value in values:
            yield Mistake(
                f"design({name}={value!r})", lambda n=name, v=value: md.design(good, **{"solver": "block", n: v}), ""
            )
    for name, call in {
        "design(3)": lambda: md.design(3), "sample(9)": lambda: made.channel.sample(9), "sample('x')": lambda: made.channel.sample("x"),
        "sample(0, -1)": lambda: made.channel.sample(0, -1), "sample(0, 1.5)": lambda: made.channel.sample(0, 1.5), "sample(None)": lambda: made.channel.sample(None),
        "sample(0, rng='a')": lambda: made.channel.sample(0, 1, "a"), "sample_at(9, 9)": lambda: made.sample_at(9, 9), "sample_at('a', 1)": lambda: made.sample_at("a", 1),
        "sample_at(1)": lambda: made.sample_at(1), "sample_at()": lambda: made.sample_at(), "sample_at(1, [1])": lambda: made.sample_at(1, [1]),
        "sample_at(nan, 1)": lambda: made.sample_at(float("nan"), 1), "sample_at(1, 1, -1)": lambda: made.sample_at(1, 1, -1),
        "sample_at([1], [1], 2)": lambda: made.sample_at([1], [1], 2), "sample_at(1, 1, outside='no')": lambda: made.sample_at(1, 1, outside="no"),
        "sample_at(None, None)": lambda: made.sample_at(None, None), "sample_at(x=1)": lambda: made.sample_at(x=1),
        "grid(0, 2)": lambda: md.Domain.grid(0, 2, 1, 1), "grid('a', 2)": lambda: md.Domain.grid("a", 2, 1, 1), "grid(2, 2, -1)": lambda: md.Domain.grid(2, 2, -1, 1),
        "geographic_grid swapped": lambda: md.Domain.geographic_grid(2, 2, 139.6, 139.9, 35.6, 35.8), "geographic_grid whose south is above its north": lambda: md.Domain.geographic_grid(2, 2, 36, 35, 1, 2),
        "from_points([])": lambda: md.Domain.from_points([]), "from_points(1)": lambda: md.Domain.from_points(1), "from_labels('ab')": lambda: md.Domain.from_labels("ab"),
        "from_labels([])": lambda: md.Domain.from_labels([]), "from_labels(twice)": lambda: md.Domain.from_labels(["a", "a"]),
        "from_coordinates with values out of range": lambda: md.Domain.from_coordinates([100], [0]), "from_coordinates lengths": lambda: md.Domain.from_coordinates([1, 2], [0]),
        "MetricPrivacy(0)": lambda: md.MetricPrivacy(0, distance), "MetricPrivacy('a')": lambda: md.MetricPrivacy("a", distance), "MetricPrivacy(1, [1])": lambda: md.MetricPrivacy(1, [1]),
        "MetricPrivacy(1, -d)": lambda: md.MetricPrivacy(1, -distance), "MetricPrivacy(nan)": lambda: md.MetricPrivacy(float("nan"), distance),
        "MetricPrivacy('1/0')": lambda: md.MetricPrivacy("1/0", distance), "ThresholdPrivacy(1, d, -1)": lambda: md.ThresholdPrivacy(1, distance, -1),
        "GraphPrivacy(1, [])": lambda: md.GraphPrivacy(1, []), "DistortionPrivacy(-1)": lambda: md.DistortionPrivacy(-1, distance),
        "DistortionPrivacy('a')": lambda: md.DistortionPrivacy("a", distance), "Prior.uniform(0)": lambda: md.Prior.uniform(0), "Prior.uniform('4')": lambda: md.Prior.uniform("4"),
        "Prior.from_counts([])": lambda: md.Prior.from_counts([]), "Prior.from_counts([0])": lambda: md.Prior.from_counts([0, 0]), "Prior.from_counts(-)": lambda: md.Prior.from_counts([-1, 2]),
        "Channel([[1]])": lambda: md.Channel(np.array([[1]])), "Channel(floats)": lambda: md.Channel(np.array([[1.0]])), "Channel('a')": lambda: md.Channel("a"),
        "Channel.from_matrix(sums)": lambda: md.Channel.from_matrix([[0.5, 0.4]]), "Channel.from_matrix(-)": lambda: md.Channel.from_matrix([[1.5, -0.5]]),
        "Channel.from_matrix('a')": lambda: md.Channel.from_matrix("a"), "Channel.from_matrix([])": lambda: md.Channel.from_matrix([]),
        "Channel.load(none)": lambda: md.Channel.load("none"), "verify(none)": lambda: md.verify("none"), "read_spec(none)": lambda: md.read_spec("none.toml"),
        "read_spec(folder)": lambda: md.read_spec("made"), "distances.euclidean(3)": lambda: md.distances.euclidean(3), "haversine(plane)": lambda: md.distances.haversine(domain),
        "hamming(0)": lambda: md.distances.hamming(0), "save(file)": lambda: made.save("s.toml"),
        "read_checkins(none)": lambda: md.data.read_checkins("none.csv"), "read_plt(none)": lambda: md.data.read_plt("none"),
        "to_grid(plane)": lambda: md.data.to_grid([], domain), "cell_of(9, 9)": lambda: domain.cell_of(9, 9), "part([9])": lambda: domain.part([9]),
    }.items():  # fmt: skip
        yield Mistake(name, call, "")


def _shown(value: object) -> str:
    return repr(value)[:60].replace("\n", " ")


def with_records() -> Iterator[Mistake]:
    """Yield mistakes with tables of records, policies, releases and ledgers."""
    ages = md.tables.Domain({"age": range(17, 91)})
    people = md.tables.Domain({"age": range(17, 91), "sex": ["f", "m"]})
    full, line, two = md.tables.Policy.full(ages), md.tables.Policy.line(ages), md.tables.Policy.full(people)

    def counted(data: object, policy: Any = full, epsilon: object = 1, **more: Any) -> object:
        return md.tables.release_histogram(data, policy, epsilon, **more)

    made = md.tables.release_cumulative([30, 31, 60], line, 1, rng=1)
    clusters = md.tables.kmeans(
        [(20, 1), (40, 2)],
        2,
        md.tables.Policy.full(md.tables.Domain({"x": range(50), "y": range(4)})),
        epsilon=1,
        iterations=1,
        rng=1,
    )
    for name, call in {
        "ages as texts": lambda: counted(["39", "50"]), "a missing age": lambda: counted([39, float("nan")]),
        "a histogram passed as records": lambda: counted([0] * 16 + [395]),
        "values with a leading blank": lambda: counted({"age": [39], "sex": [" m"]}, two), "columns interchanged": lambda: counted([("m", 39)], two),
        "columns that differ in length": lambda: counted({"age": [39, 40], "sex": ["m"]}, two), "an array whose rows are attributes": lambda: counted(np.ones((2, 5)), two),
        "a column that contains counts by value": lambda: counted({"age": {39: 10}}), "a path passed as a table": lambda: counted("good.csv"),
        "a value passed as a position": lambda: counted(None, positions=[80]), "positions passed in addition to data": lambda: counted([39], positions=[1]),
        "a domain given by its two ends": lambda: counted([39], md.tables.Policy.line(md.tables.Domain({"age": (17, 90)}))), "a domain whose values are one text": lambda: md.tables.Domain({"sex": "fm"}),
        "θ as a text with its unit": lambda: md.tables.Policy.threshold(ages, "5 years"),
        "θ in days": lambda: md.tables.Policy.threshold(ages, 1825), "cut points passed as blocks": lambda: md.tables.Policy.partition(ages, [30, 50]),
        "a union of policies in a list": lambda: md.tables.Policy.union([full, line]),
        "known counts without a list around them": lambda: md.tables.Policy.full(ages, constraints=([1] * 74, 5)), "a domain passed as a policy": lambda: counted([39], ages),
        "ε and ρ": lambda: counted([39], rho=1), "ε with a decimal comma": lambda: counted([39], epsilon="1,5"),
        "a confidence given in per cent": lambda: counted([39], confidence=95), "a class passed as a ledger": lambda: counted([39], ledger=md.Ledger),
        "a quantile given in per cent": lambda: md.tables.quantile(made, 50), "a range whose ends are exchanged": lambda: md.tables.range_query(made, 60, 30),
        "a range below the domain": lambda: md.tables.range_query(made, 0, 30), "shares passed as counts": lambda: md.tables.ordered([0.5, 0.5], 1, 1),
        "a name of a workload passed as queries": lambda: md.tables.release_linear([39], full, "ranges", epsilon=1), "points with the wrong number of coordinates": lambda: clusters.assign([[1, 2, 3]]),
        "initial centroids outside the domain": lambda: md.tables.kmeans([39], 1, full, epsilon=1, iterations=1, initial=[[300]]), "ε passed for Gaussian noise": lambda: md.tables.strategy("ranges", line).release([39], epsilon=1),
        "a prior that is one count too short": lambda: md.tables.optimal_count(4, 1, prior=[0.25] * 4), "counts passed as a prior": lambda: md.tables.optimal_count(4, 1, prior=[1, 1, 1, 1, 1]),
        "a ledger charged with a negative ε": lambda: md.Ledger(epsilon=1).spend("a", "b", epsilon=-1), "a release in a folder that does not exist": lambda: md.tables.load("nowhere"),
        "a table of data read as a release": lambda: md.specification.read("good.csv"), "a design specification read as a release": lambda: md.specification.read("s.toml"),
    }.items():  # fmt: skip
        yield Mistake(name, call, "")


def with_chains_and_traces() -> Iterator[Mistake]:
    """Yield mistakes with policy graphs, chains, accountants, traces, figures and sweeps."""
    chain, city, made = md.MarkovChain([[0.8, 0.2], [0.1, 0.9]]), md.Domain.grid(3, 2, 3.0, 2.0), problem()
    box = md.Domain.geographic_grid(2, 2, 35.6, 35.8, 139.6, 139.9)
    visited = md.data.read_checkins("good.csv")
    text, swept = Path("s.toml").read_text(), 'sweep = { "privacy.0.epsilon" = [1, 2, 1] }'
    for name, call in {
        "distances passed as places": lambda: md.graphs.threshold(md.distances.euclidean(city), 1), "edges that number cells from 1": lambda: md.graphs.from_edges(6, [(5, 6)]),
        "a mask passed as places": lambda: md.graphs.constrain(md.graphs.line(3), [True, False, True]), "δ given in per cent": lambda: md.graphs.delta_set([0.5, 0.5], 5),
        "one trace without a list around it": lambda: md.MarkovChain.from_traces([0, 1, 0], n=2), "states that are numbered from 1": lambda: md.MarkovChain.from_traces([[1, 2]], n=2),
        "one ε passed as a list of budgets": lambda: md.leakage.temporal(0.1, chain, chain), "steps and α in the wrong order": lambda: md.leakage.allocate_budget(30, 0.5, chain, chain),
        "a window that numbers releases from 1": lambda: md.leakage.window([0.1] * 3, 1, 4, chain, chain),
        "a specification loaded as an accountant": lambda: md.leakage.Accountant.load("s.toml"),
        "a single trace passed as a list of traces": lambda: md.data.to_grid(visited[0], box), "a column of places without a table of places": lambda: md.data.read_checkins("good.csv", place="user"),
        "a share given in per cent": lambda: md.data.read_checkins("good.csv", missing=20), "a number passed as a user": lambda: md.data.to_grid(visited, box).counts(6),
        "edges of a figure that number cells from 1": lambda: md.figures.graph(city, [(5, 6)]), "a true trace that is longer than the release": lambda: md.figures.trace(city, [0, 1], [0, 1, 2]),
        "a figure that shows no answers": lambda: md.figures.answers(made, 0), "a design passed as a channel": lambda: md.attack.optimal(made, [0.25] * 4, np.ones((4, 4))),
        "masses whose sum is not 1": lambda: md.mechanisms.additive({0: 0.5}, 2), "the arguments of a rule in the wrong order": lambda: md.mechanisms.PlanarLaplace(city, 1.0),
        "a sweep that lists a value twice": lambda: md.sweep.run(md.sweep.parse(text + swept), "swept", jobs=1), "ε passed as a solver setting": lambda: md.specification.parse(text).design(epsilon=2), "a path passed as the text of a specification": lambda: md.specification.parse("s.toml"),
        "budgets that number steps from 1": lambda: md.leakage.read_budgets(_bad("step,epsilon\n1,0.1\n")),
    }.items():  # fmt: skip
        yield Mistake(name, call, "")


# The command line


def on_the_command_line() -> Iterator[Mistake]:
    """Yield wrong arguments of commands."""
    for line in (
        "desing s.toml", "design none.toml", "design s.toml --solver cplex", "design s.toml --tolerance 0", "design s.toml --tolerance small",
        "design s.toml --time-limit -1", "design s.toml --rows some", "design s.toml --threads 0", "design made", "design s.toml -o s.toml",
        "design s.toml --example city", "design --example none", "design s.toml t.toml", "design s.toml --epsilon 1", "design good.csv",
        "verify", "verify none", "verify s.toml", "verify .", "sample made", "sample made --secret 9", "sample made --secret north", "sample none --secret 1",
        "sample made --at 1", "sample made --at 1,2,3", "sample made --at a,b", "sample made --at 9,9", "sample made --at 1,1 --secret 1",
        "sample made --at nan,1", "sample made --input none.csv", "sample made --input good.csv", "sample made --secret 1 -n -1", "sample made --secret 1 --seed a",
        "sample made --at 1,1 --outside drop", "sample made --secret 1 -o none/x.csv", "export made", "export made --format xml", "export made -o x.xml",
        "export none --format csv", "export made --format csv --all-rows", "export made --format geojson", "export made --format csv -o none/x.csv",
        "attack", "attack none", "attack s.toml", "policy s.toml", "policy none.toml", "release s.toml good.csv", "release s.toml",
        "leakage", "leakage none.csv", "leakage none.csv --epsilon 1 --steps 3", "leakage chain.csv --epsilon -1 --steps 3",
        "leakage chain.csv --epsilon a --steps 3", "leakage chain.csv --epsilon 1 --steps 0", "budget --alpha -1 --steps 3 --backward chain.csv",
        "budget --steps 3", "budget --alpha a --steps 3", "budget --alpha 1 --steps 0 --backward chain.csv", "budget --alpha 1 --backward good.csv --steps 3",
        "examples none", "bench --suite none", "sweep s.toml", "blowfish none.toml", "info extra", "init", "init none.csv", "init made", "chain none.toml", "chain s.toml", "audit", "audit none.csv", "audit chain.csv --distance euclidian",
        "compare", "compare made", "compare made none", "inspect", "inspect none", "inspect s.toml",
    ):  # fmt: skip
        yield Mistake(f"mechdesign {line}", partial(_cli, *line.split()), "")


class UsageError(MechdesignError):
    """The output of the command line for a wrong call, which names the wrong option."""


def _cli(*words: str) -> object:
    result = CliRunner().invoke(command, list(words))
    if result.exit_code == 0:
        return result.stdout
    if isinstance(result.exception, SystemExit) and result.exit_code in (1, 2, 3) and "error" in result.stderr.lower():
        raise UsageError(result.stderr.strip())
    raise result.exception or RuntimeError(f"exit code {result.exit_code}, and no word")


# Files of the users

TIMED = "user,time,latitude,longitude\n" + "".join(
    f"{'ab'[k % 2]},2021-03-01T08:{k:02d}:00Z,35.{60 + k},139.{65 + k}\n" for k in range(20)
)
PLT = "39.906631,116.385564,0,492,40097.5864583333,2009-10-11,14:04:30\n"
NAMED = 'domain.labels = ["home", "work", "pub"]\nprior.csv = { path = "w.csv", column = "n" }\ncost.distance = "hamming"\nprivacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]\n'
AGES = 'domain.attributes.age = { range = [0, 99] }\npolicy = { kind = "threshold", theta = 5 }\nrelease = { kind = "ranges", ranges = [[0, 17], [18, 99]], epsilon = 0.5 }\n'
WALK = 'domain.grid = { columns = 2, rows = 2, width = 2, height = 2 }\nprior.uniform = true\ncost.distance = "euclidean"\nprivacy = [{ kind = "graph", epsilon = 1, neighbours = 4 }]\nrelease.transition = { neighbours = 4 }\n'


def with_files_of_ones_own() -> Iterator[Mistake]:
    """Yield mistakes with files as users have them: written by other tools, incomplete, confused, or overwritten."""
    body = TIMED.splitlines()
    for name, text, named in (
        ("one file with the exports of two tools", TIMED + "a,03/04/2021 8:00,35.7,139.7\n" * 2, "day first"),
        ("times as Excel's numbers of days", TIMED.replace("2021-03-01T08:", "44256."), "time"),
        ("times without a date", TIMED.replace("2021-03-01T", "").replace("Z", ""), "date"),
        ("a column of row names written by R", "\n".join([body[0], *(f"{k},{row}" for k, row in enumerate(body[1:]))]), "fields"),
        ("lines that end in a comma", "\n".join([body[0], *(f"{row}," for row in body[1:])]), "fields"),
        ("lines that are quoted as a whole", "\n".join(f'"{row}"' for row in body), "user"),
        ("a pointer file of Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "git lfs pull"),
        ("HTML", "<html><table><tr><td>user</td></tr></table></html>", "HTML"), ("SQL", "INSERT INTO t VALUES (1, 2);\n", "user"),
        ("hemispheres", TIMED.replace(",139", "N,139"), "latitude"), ("millionths of degrees", TIMED.replace("35.", "35000"), "latitude"),
        ("decimal points lost in a spreadsheet", TIMED.replace("35.", "35.000.0"), "latitude"), ("Web Mercator", TIMED.replace(",35.", ",42573"), "latitude"),
        ("no sign", TIMED.replace(",139.", ",-139."), "inside the box"), ("the number 999 for a missing place", TIMED.replace("a,2021-03-01T08:00:00Z,35.60", "a,2021-03-01T08:00:00Z,999") + "a,2021-03-01T09:00:00Z,999,999\n", "latitude"),
    ):  # fmt: skip
        yield Mistake(f"check-ins: {name}", lambda t=text: _timed(t), named)
    for key, value in (
        ("time_format", "YYYY-MM-DD"), ("time_format", "%A %H"), ("time_zone", "CET+1"), ("time_zone", "Tokyo"), ("missing", 20), ("longitudes", "0"),
        ("only", "ann"), ("every", "5"), ("every", "5m"), ("gap", "1 min"),
    ):  # fmt: skip
        yield Mistake(f"check-ins: {key} = {value!r}", lambda k=key, v=value: _timed(TIMED, **{k: v}), key)
    for name, text, named in (
        ("no header lines", PLT * 9, "line 1"), ("a header that contains only names", "latitude,longitude,zero,altitude,days,date,time\n" + PLT * 9, "line 2"),
        ("swapped", "x\n" * 6 + PLT.replace("39.906631,116.385564", "116.385564,39.906631"), "interchanged"),
        ("from a spreadsheet", "x\n" * 6 + PLT.replace(",", ";"), "fields"),
    ):  # fmt: skip
        yield Mistake(f"trajectory: {name}", lambda t=text: _trajectory(t), named)
    for name, text, named in (
        ("a last line with totals", "place,n\nhome,1\nwork,2\npub,3\nTotal,6\n", "row 4"), ("capitals", "place,n\nPub,3\nHome,1\nWork,2\n", "place"),
        ("a label twice", "place,n\nhome,1\nhome,2\npub,3\n", "row 2"), ("thousands", 'place,n\nhome,"1,234"\nwork,2\npub,3\n', "decimal"),
    ):  # fmt: skip
        yield Mistake(f"weights: {name}", lambda t=text: _made("design s2.toml", {"s2.toml": NAMED, "w.csv": t}), named)
    yield Mistake(
        "weights that number cells from 1",
        lambda: _made(
            "design s2.toml",
            {
                "s2.toml": WALK.replace("uniform = true", 'csv = { path = "w.csv", column = "n" }'),
                "w.csv": "cell,n\n4,1\n3,1\n2,1\n1,7\n",
            },
        ),
        "cell",
    )
    files = {
        "g.toml": WALK,
        "ages.toml": AGES,
        "ages.csv": "age\n36\n",
        "r.csv": "0.75,0.25\n0.25,0.75\n",
        "c.csv": "epsilon,cost\n0,3\n1,1\n",
    }
    for line, more, named in (
        ("release g.toml t.csv", {"t.csv": "user,state\nann,0\nbob,3\n"}, "several people"), ("release g.toml t.csv", {"t.csv": "state\n1\n4\n"}, "line 3"),
        ("release g.toml t.csv", {"t.csv": "0,1,3\n"}, "line 1"), ("release g.toml t.csv -o o --truth o/t", {"t.csv": "0\n"}, "--truth"),
        ("design ages.toml", {}, "mechdesign blowfish"), ("blowfish g.toml ages.csv", {}, "mechdesign design"), ("blowfish ages.csv ages.toml", {}, "ages.csv"),
        ("blowfish ages.toml t.csv", {"t.csv": "Age\n36\n"}, "Age"), ("blowfish ages.toml t.csv", {"t.csv": "age\n36 years\n"}, "row 1"),
        ("blowfish ages.toml ages.csv --ledger ages.csv", {}, "not a ledger"), ("audit r.csv --spec g.toml", {}, "--spec"),
        ("audit r.csv --distance haversine --points p.csv", {"p.csv": "35.6,139.7\n35.7,139.8\n"}, "--spec"),
        ("audit p.csv --distance hamming", {"p.csv": "75,25\n25,75\n"}, "found 100;"), ("audit r.csv --distance hamming -o r.csv", {}, "r.csv"),
        ("inspect made --report made/certificate.json", {}, "choose another name"), ("sample made --secret 0 --outside nearest", {}, "--outside"),
        ("sample made/channel.csv --secret 0", {}, "a folder"), ("leakage r.csv --epsilon 0.1 --steps 3 -o a.svg --plot a.svg", {}, "--plot"),
        ("leakage r.csv --budgets b.csv", {"b.csv": "step,epsilon\n1,0.1\n2,0.1\n"}, "step 0"), ("budget --alpha 1 --steps 3 --backward r.csv --tolerance 0.1", {}, "--cost"),
        ("budget --alpha 1 --backward r.csv --cost c.csv --weights w.csv", {"w.csv": "weight\n0\n0\n"}, "w.csv"), ("budget --alpha 1 --steps 3 --backward r.csv -o r.csv", {}, "r.csv"),
    ):  # fmt: skip
        yield Mistake(f"mechdesign {line} {more or ''}", lambda w=line, m=more: _made(w, {**files, **m}), named)


def _made(line: str, files: dict[str, str]) -> object:
    for name, text in files.items():
        Path(name).write_text(text)
    return _cli(*line.split())


def _timed(text: str, **keys: object) -> object:
    columns = {"path": _bad(text), "time": "time", **keys}
    tables = {**BASE, "domain": {"grid": BOX}, "prior": {"checkins": columns, "smoothing": 1}}
    if "gap" in keys:
        columns["every"] = "5 min"
    return _design(tables)


def _trajectory(text: str) -> object:
    Path("plt").mkdir(exist_ok=True)
    Path("plt", "a.plt").write_text(text)
    return _design({**BASE, "domain": {"grid": BOX}, "prior": {"plt": {"path": "plt"}, "smoothing": 1}})


# Check of one message


def fault(mistake: Mistake) -> tuple[str, str]:
    """Make a mistake; return the fault of the message (empty if it is correct) and the message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = mistake.make()
    except MechdesignError as error:
        message = str(error)
        if mistake.names not in message:
            return f"the message does not name {mistake.names}", message
        if isinstance(error, InputError) and not (
            error.path and (error.bound or error.remedy or error.value is not None)
        ):
            return "the error has neither a value nor a bound nor a remedy", message
        return "", message
    except Exception as error:
        return f"{type(error).__name__} is not an error of mechdesign", str(error)
    return "passes unnoticed", repr(found)[:80]


def main() -> int:
    """Make all mistakes, print offenders, and return the exit code."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--only", default="", help="mistakes whose name holds this text")
    arguments.add_argument("--show", action="store_true", help="print all messages")
    given = arguments.parse_args()
    count = offenders = 0
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        prepare()
        for mistake in mistakes():
            if given.only not in mistake.name:
                continue
            count += 1
            wrong, message = fault(mistake)
            offenders += bool(wrong)
            if wrong or given.show:
                print(f"{'OFFENDER' if wrong else 'ok'}  {mistake.name}\n    {wrong or ''}\n    {message}")
    print(f"{count} mistakes, {offenders} offenders")
    return int(offenders > 0)


if __name__ == "__main__":
    sys.exit(main())
