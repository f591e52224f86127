"""Mistakes on purpose, a function for each door: specifications, files of data, arguments, and the command line.

Each must end in a typed error that names its place (a file, a key or an argument), and what was found, what is accepted
or a remedy. They are made in a folder into which `prepare` has written data.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from refusals import Mistake
from releases import release_by, release_counts, strategy_of

import mechdesign as md
from mechdesign.cli import main as command
from mechdesign.data.matrices import read_budgets, read_labelled
from mechdesign.errors import InputError, MechdesignError, SpecificationError
from mechdesign.graphs._builders import delta_set
from mechdesign.runs.sweep import read as read_sweep
from mechdesign.specification._specification import from_tables
from mechdesign.specification._table_specification import read
from mechdesign.tables._sensitivity._sensitivity import sensitivity
from mechdesign.traces._composition import stage_level

GRID = {"columns": 2, "rows": 2, "width": 2.0, "height": 2.0}
BOX = {"columns": 2, "rows": 2, "south": 35.6, "north": 35.8, "west": 139.6, "east": 139.9}
BASE: dict[str, Any] = {
    "domain": {"grid": GRID},
    "prior": {"uniform": True},
    "cost": {"distance": "euclidean"},
    "privacy": [{"kind": "metric", "epsilon": 1, "distance": "euclidean"}],
}
SPECIFICATION = """domain.grid = { columns = 2, rows = 2, width = 2, height = 2 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""
MISSING, NAN, INF = object(), float("nan"), float("inf")
NUMBERS = ("three", "", -1, [1], {"a": 1}, True, NAN, INF)
TEXTS = (3, 1.5, True, ["euclidean"], {"a": 1}, "", "euclidian")
WRONG = (None, 5, 1.5, True, b"", {}, [None], object(), {1}, np.array(["a"]), lambda: 1)
"""Values of other types than those that an argument takes."""


class UsageError(MechdesignError):
    """What the command line says of a wrong call, without the lines on its use."""


def prepare() -> None:
    """Write valid data and a design into this folder."""
    Path("good.csv").write_text("latitude,longitude,user\n35.7,139.7,a\n35.65,139.8,b\n")
    Path("counts.csv").write_text("count\n1\n2\n3\n4\n")
    Path("s.toml").write_text(SPECIFICATION)
    Path("chain.csv").write_text("0.9,0.1\n0.2,0.8\n")
    md.save(small_design(), "made", report=False)


def small_design() -> md.Design:
    return from_tables(copy.deepcopy(BASE)).design()


def each(who: str, path: str, call: Callable[[Any], object], *values: object) -> Iterator[Mistake]:
    """Yield a mistake for each wrong value of one argument."""
    for value in values:
        shown = " ".join(repr(value)[:80].split())
        yield Mistake(f"{who}: {path} = {shown}", partial(call, value), path, error=InputError)


# Specifications


def in_specifications() -> Iterator[Mistake]:
    """Yield mistakes in keys and values of a specification."""
    for path, wrong in (
        ("domain.grid.columns", (*NUMBERS[:6], 0, 1.5)),
        ("domain.grid.rows", (0, -3, 2.5, "2")),
        ("domain.grid.width", (*NUMBERS, 0)),
        ("domain.grid.height", (0, "2 km")),
        ("domain.grid.unit", (3, ["km"])),
        ("domain.grid", ([2, 2], 4, "2x2", GRID | {"columns": 5001}, GRID | {"rows": 10**9}, BOX | {"width": 3})),
        ("domain", (MISSING, [], "grid", {})),
        ("prior.uniform", (False, "yes", 1)),
        ("prior", (MISSING, "uniform", [0.5, 0.5], {}, {"unifrom": True}, {"uniform": True, "counts": [1, 1, 1, 1]})),
        ("prior.probabilities", ([0.5, 0.5], [0.5, 0.5, 0.5, -0.5], [1, 1, 1, 1], "uniform", [0.2] * 5, [NAN] * 4)),
        ("prior.counts", ([0, 0, 0, 0], [1, 2, 3], [-1, 1, 1, 1], "1,2", [INF, 1, 1, 1])),
        ("prior.smoothing", (1, "a")),
        ("cost.distance", TEXTS),
        ("cost", (MISSING, "euclidean", {}, {"distance": "euclidean", "matrix": {"path": "m.csv"}}, {"csv": "c.csv"})),
        ("privacy", (MISSING, [], "metric", [[]], {"kind": "metric"}, [3])),
        ("privacy.0.kind", (MISSING, *TEXTS, "metrics", "local")),
        ("privacy.0.epsilon", (MISSING, *NUMBERS, 0, "1/0", "0.1.2", "log(2)")),
        ("privacy.0.distance", TEXTS),
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
        ("prior.checkins", ("good.csv", {"path": "no"}, {}, {"path": "good.csv", "latitude": "lat"}, {"path": 3})),
        ("prior.plt", ({"path": "none"}, {"path": "."}, "folder")),
        ("prior.csv", ({"path": "counts.csv"}, {"path": "no", "count": "n"}, {"path": "counts.csv", "column": "n"})),
    ):
        for value in wrong:
            yield _specified(path, value, BOX)
    degrees = {"path": "good.csv", "latitude": "longitude", "longitude": "latitude"}
    for key, wrong in {
        "points": ([[0, 0], [1]], [], [["a", "b"]], 3, {"a": 1}, [[NAN, 0.0], [1.0, 1.0]]),
        "line": (0, -1, 2.5),
        "labels": ([], ["a", "a"], "ab", [1, 2], ["a", ""]),
        "csv": ("good.csv", {"path": "no", "x": "x", "y": "y"}, {"path": "good.csv", "x": "latitude"}, degrees),
        "lines": (3,),
    }.items():
        yield from each(
            "a domain", f"domain.{key}", lambda value, k=key: _design({**BASE, "domain": {k: value}}), *wrong
        )
    fewer = {"domain": {"points": [[0, 0], [1, 1]], "labels": ["a"]}}
    yield Mistake("fewer labels than points", lambda: _design({**BASE, **fewer}), "domain.labels")
    negative = {"prior": {"counts": [1, 1, 1, 1], "smoothing": -1}}
    yield Mistake("a negative smoothing", lambda: _design({**BASE, **negative}), "prior.smoothing")
    for name, text in {
        "no equals sign": "domain\n",
        "a key twice": "title = 'a'\ntitle = 'b'\n",
        "an open text": "title = 'a\n",
        "no value": "title =\n",
        "a binary file": "\0\1\2",
        "JSON": "{}",
        "a bare word": "title = yes\n",
    }.items():
        yield Mistake(f"TOML: {name}", partial(_read, text), "wrong.toml", "is not valid TOML", SpecificationError)
    yield Mistake("an empty file", partial(_read, ""), "domain", error=SpecificationError)
    yield from _of_requirements()


def _of_requirements() -> Iterator[Mistake]:
    metric, graph = {"kind": "metric", "distance": "euclidean"}, {"kind": "graph", "epsilon": 1}
    distortion = {"kind": "distortion", "distance": "euclidean"}
    for key, wrong in (
        ("radius", {"kind": "threshold", "epsilon": 1, "distance": "euclidean"}),
        ("radius", {"kind": "threshold", "epsilon": 1, "radius": -1, "distance": "euclidean"}),
        ("", {"kind": "metric", "epsilon": 1}),
        ("", graph),
        ("graph", graph | {"graph": {"edges": [[0, 9]]}}),
        ("edges[0]", graph | {"edges": [[0, 9]]}),
        ("edges[0]", graph | {"edges": [[0]]}),
        ("neighbours", graph | {"neighbours": 3}),
        ("complete", graph | {"complete": False}),
        ("minimum", distortion),
        ("minimum", distortion | {"minimum": 99}),
        ("minimum", distortion | {"minimum": -1}),
        ("minimum", distortion | {"minimum": "much"}),
        ("epsilon", metric | {"epsilon": {}}),
        ("matrix.path", {"kind": "metric", "epsilon": 1, "matrix": {"path": "none.csv"}}),
        ("matrix", {"kind": "metric", "epsilon": 1, "matrix": {"path": "chain.csv"}}),
        ("distance", {"kind": "metric", "epsilon": 1, "distance": "haversine"}),
    ):
        place = f"privacy[0].{key}" if key else "privacy[0]"
        yield Mistake(f"privacy = {wrong}", partial(_design, {**BASE, "privacy": [wrong]}), place)


def _specified(path: str, value: object, grid: dict[str, Any] = GRID) -> Mistake:
    *way, last = path.split(".")

    def make() -> object:
        tables = copy.deepcopy({**BASE, "domain": {"grid": grid}})
        table: Any = tables
        for step in way:
            table = table[int(step)] if step.isdecimal() else table.setdefault(step, {})
        if way == ["prior"] and last not in ("smoothing", "uniform"):
            table.clear()
        if value is MISSING:
            del table[last]
        else:
            table[last] = value
        return _design(tables)

    shown = "left out" if value is MISSING else f"= {value!r}"
    return Mistake(f"{path} {shown}", make, path.replace(".0.", "[0]."), error=SpecificationError)


def _design(tables: dict[str, Any]) -> object:
    return from_tables(copy.deepcopy(tables)).design()


def _read(text: str) -> object:
    Path("wrong.toml").write_text(text)
    return md.read_spec("wrong.toml").design()


# Files of data


def in_files_of_data() -> Iterator[Mistake]:
    """Yield mistakes in files of data."""
    head = "latitude,longitude,user\n"
    for name, text in {
        "empty": "",
        "only a header": head,
        "a text in place of a number": f"{head}north,139.7,a\n",
        "a line with a missing field": f"{head}35.7,139.7\n",
        "a line with an additional field": f"{head}35.7,139.7,a,b\n",
        "swapped": f"{head}139.7,35.7,a\n",
        "all outside": f"{head}0,0,a\n",
        "an empty field": f"{head},139.7,a\n",
        "NaN": f"{head}nan,139.7,a\n",
        "points and commas": f'{head}"35,7",139.7,a\n35.8,139.7,a\n',
        "blanks between columns": "latitude longitude user\n35.7 139.7 a\n",
        "no header": "35.7,139.7,a\n",
        "a column twice": "latitude,latitude,user\n1,2,a\n",
        "an open quote": f'{head}"35.7,139.7,a\n',
        "binary": "\0\1",
        "underscores": f"{head}3_5.7,139.7,a\n",
        "infinite": f"{head}inf,139.7,a\n",
    }.items():
        says = "box" if name == "all outside" else "bad.csv"
        yield Mistake(f"check-ins: {name}", partial(_checkins, text), "prior.checkins", says, SpecificationError)
    for name, text in {
        "not square": "1,0\n",
        "rows whose sum is not 1": "0.5,0.4\n0.5,0.5\n",
        "negative": "1.5,-0.5\n0.5,0.5\n",
        "text": "a,b\nc,d\n",
        "ragged": "1,0\n1\n",
        "empty": "",
        "NaN": "nan,1\n0.5,0.5\n",
        "a header": "x,y\n1,0\n0,1\n",
    }.items():
        yield _told(
            f"chain: {name}", "leakage --backward bad.csv --epsilon 0.1 --steps 3", "bad.csv", {"bad.csv": text}
        )
    for name, text, says in (
        ("empty", "", "header"),
        ("negative", "step,epsilon\n0,-1\n", "line 2"),
        ("text", "step,epsilon\n0,much\n", "line 2"),
        ("NaN", "step,epsilon\n0,nan\n", "line 2"),
        ("from step 1", "step,epsilon\n1,0.1\n2,0.1\n", "step 0"),
        ("another column", "eps,x\n1,2\n", "no column"),
    ):
        yield _told(f"budgets: {name}", "leakage --backward chain.csv --budgets bad.csv", says, {"bad.csv": text})
    for name, text, path, says in (
        ("empty", "", "prior.csv", "bad.csv"),
        ("text", "count\na\nb\nc\nd\n", "prior.csv", "bad.csv, line 2"),
        ("too few", "count\n1\n", "prior.csv", "found 1"),
        ("too many", "count\n1\n1\n1\n1\n1\n", "prior.csv", "found 5"),
        ("negative", "count\n1\n1\n1\n-1\n", "prior.csv", ""),
        ("all zero", "count\n0\n0\n0\n0\n", "prior.csv", "positive"),
    ):
        yield Mistake(f"counts: {name}", partial(_counts, text), path, says, SpecificationError)
    for name, text in {
        "empty": "",
        "only a header": "latitude,longitude\n",
        "no such columns": "a,b\n1,2\n",
        "text": "x,y\na,1\n",
        "outside": "x,y\n9,9\n",
        "a column twice": "x,x,y\n1,1,1\n",
        "NaN": "x,y\nnan,1\n",
        "ragged": "x,y\n1\n",
        "degrees": "lat,lon\n1,1\n",
    }.items():
        yield _told(f"places: {name}", "sample made --input bad.csv", "bad.csv", {"bad.csv": text})


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
    domain, three = md.Domain.grid(2, 2, 2.0, 2.0), md.Domain.grid(3, 1, 1.0, 1.0)
    d = md.distances.euclidean(domain)
    made = small_design()
    good, channel = made.problem, made.channel

    def stated(name: str, value: object) -> object:
        right = {"prior": [0.25] * 4, "cost": d, "requirements": [md.MetricPrivacy(1, d)], "secrets": domain}
        return md.Problem(**(right | {name: value}))

    for name, wrong in {
        "prior": ([1, 1, 1, 1], "uniform", [[0.25] * 4], [0.5, 0.5, 0.5, -0.5], None, [NAN] * 4),
        "cost": ([1, 2], -d, "euclidean", d[:2], None, d * NAN),
        "requirements": ([1], "metric", [md.MetricPrivacy(1, d[:2, :2])], None),
        "objective": ("mean", 3, None),
        "secrets": (three, "grid", 4),
        "observables": (three, 4),
    }.items():
        yield from each("Problem", name, partial(stated, name), *wrong)
    # Which of the two is too short cannot be known.
    yield Mistake("Problem: a prior of two", lambda: stated("prior", [0.5, 0.5]), "cost")
    for name, wrong in {
        "solver": ("cplex", 3, None),
        "tolerance": (0, -1, "small", NAN, None),
        "time_limit": (0, "1 h", -1),
        "rows": ("some", 3),
        "threads": (0, 1.5, "2"),
        "options": ({"a": 1}, [1], "fast"),
        "progress": (3, lambda: None),
    }.items():
        yield from each("design", name, lambda v, n=name: md.design(good, **({"solver": "block"} | {n: v})), *wrong)
    yield from each("design", "problem", md.design, 3)
    yield from each("sample", "secret", channel.sample, 9, "x", None)
    yield from each("sample", "size", lambda v: channel.sample(0, v), -1, 1.5)
    yield from each("sample", "rng", lambda v: channel.sample(0, 1, v), "a")
    yield from each("sample_at", "x", lambda v: made.sample_at(v, 1), "a", NAN, None)
    yield from each("sample_at", "y", lambda v: made.sample_at(1, v), [1], None)
    yield from each("sample_at", "place", lambda v: made.sample_at(*v), (9, 9))
    yield from each("sample_at", "size", lambda v: made.sample_at(*v), (1, 1, -1), ([1], [1], 2))
    yield from each("sample_at", "outside", lambda v: made.sample_at(1, 1, outside=v), "no")
    yield from each("grid", "columns", lambda v: md.Domain.grid(v, 2, 1, 1), 0, "a")
    yield from each("grid", "width", lambda v: md.Domain.grid(2, 2, v, 1), -1)
    borders = (139.6, 139.9, 35.6, 35.8), (36, 35, 1, 2)
    yield from each("geographic_grid", "south", lambda v: md.Domain.geographic_grid(2, 2, *v), *borders)
    yield from each("from_points", "points", md.Domain.from_points, [], 1)
    yield from each("from_labels", "labels", md.Domain.from_labels, "ab", [], ["a", "a"])
    yield from each("from_coordinates", "latitude[0]", lambda v: md.Domain.from_coordinates(v, [0]), [100])
    yield from each("from_coordinates", "longitude", lambda v: md.Domain.from_coordinates([1, 2], v), [0])
    yield from each("MetricPrivacy", "epsilon", lambda v: md.MetricPrivacy(v, d), 0, "a", NAN, "1/0")
    yield from each("MetricPrivacy", "distance", lambda v: md.MetricPrivacy(1, v), [1], -d)
    yield from each("ThresholdPrivacy", "radius", lambda v: md.ThresholdPrivacy(1, d, v), -1)
    yield from each("GraphPrivacy", "graph", lambda v: md.GraphPrivacy(1, v), [])
    yield from each("DistortionPrivacy", "minimum", lambda v: md.DistortionPrivacy(v, d), -1, "a")
    yield from each("Prior.uniform", "n", md.Prior.uniform, 0, "4")
    yield from each("Prior.from_counts", "counts", md.Prior.from_counts, [], [0, 0], [-1, 2])
    yield from each("Channel", "numerators", md.Channel, np.array([[1]]), np.array([[1.0]]), "a")
    yield from each("Channel.from_matrix", "matrix", md.Channel.from_matrix, [[0.5, 0.4]], [[1.5, -0.5]], "a", [])
    yield from each("read_spec", "made", md.read_spec, "made")
    yield from each("read_spec", "none.toml", md.read_spec, "none.toml")
    yield from each("euclidean", "domain", md.distances.euclidean, 3)
    yield from each("haversine", "domain", md.distances.haversine, domain)
    yield from each("hamming", "domain", md.distances.hamming, 0)
    yield from each("read_checkins", "none.csv", md.data.read_checkins, "none.csv")
    yield from each("read_plt", "folder", md.data.read_plt, "none")
    yield from each("to_grid", "domain", lambda v: md.data.to_grid([], v), domain)
    yield from each("cell_of", "place", lambda v: domain.cell_of(*v), (9, 9))
    yield from each("part", "members[0]", domain.part, [9])
    yield Mistake("Channel.load(none)", lambda: md.Channel.load("none"), says="none is missing")
    yield Mistake("verify(none)", lambda: md.verify("none"), says="none does not exist")
    yield Mistake("save(file)", lambda: md.save(made, "s.toml", report=False), says="choose another one")


def of_another_type() -> Iterator[Mistake]:
    """Yield arguments of another type than those that are taken; none of them writes a file."""
    made, places = small_design(), md.Domain.grid(2, 1, 2.0, 1.0)
    for path, calls in {
        "folder": (lambda wrong: md.save(made, wrong), made.load, md.verify, md.tables.load),
        "path": (*(md.Channel.load, md.read_spec, read_sweep, read_budgets, read_labelled),),
        "source": (md.data.read_checkins, lambda wrong: md.data.read_places(wrong, "id")),
        "design": (md.figures.answers, md.figures.costs, md.figures.prior),
        "domain": (
            lambda wrong: md.figures.graph(wrong, [[0, 1]]),
            lambda wrong: md.figures.trace(wrong, [0, 1]),
            lambda wrong: md.data.to_grid([], wrong),
            md.tables.marginals,
        ),
        "policy": (lambda wrong: sensitivity(wrong, "histogram"),),
        "problem": (md.measures.baselines,),
        "text": (md.specification.parse, md.sweep.parse),
        "graph": (md.distances.shortest_path,),
        "channel": (lambda wrong: md.traces.adversarial_privacy(wrong, [0.5, 0.5]),),
        "stage": (stage_level,),
        "other": (made.certificate.differences,),
        "axes": (places.places,),
    }.items():
        for number, call in enumerate(calls):
            yield from each(f"function {number}", path, call, *WRONG)
    lists = (None, 5, "x", b"", [5], object())
    for name, call in {
        "compose": md.traces.compose,
        "VaryingChain": md.traces.VaryingChain,
        "from_traces": lambda wrong: md.MarkovChain.from_traces(wrong, 2),
        "users": lambda wrong: md.leakage.users([0.1], wrong),
        "from_labels": md.Domain.from_labels,
        "from_stated": lambda wrong: md.MetricPrivacy.from_stated(wrong, 2),
    }.items():
        yield from each(name, "", call, *lists)


def with_records() -> Iterator[Mistake]:
    """Yield mistakes with tables of records, policies, releases and ledgers."""
    tables = md.tables
    ages, box = tables.Domain({"age": range(17, 91)}), tables.Domain({"x": range(50), "y": range(4)})
    full, line = tables.Policy.full(ages), tables.Policy.threshold(ages, 1)
    two = tables.Policy.full(tables.Domain({"age": range(17, 91), "sex": ["f", "m"]}))
    ends = tables.Policy.threshold(tables.Domain({"age": (17, 90)}), 73)
    made = tables.Cumulative(mechanism="ordered").release([30, 31, 60], line, epsilon=1, rng=1)
    points = [(20, 1), (40, 2)]
    clusters = tables.KMeans(2, iterations=1).release(points, tables.Policy.full(box), epsilon=1, rng=1)

    def counted(data: object, policy: Any = full, epsilon: object = 1, **more: Any) -> object:
        return tables.Histogram().release(data, policy, epsilon=epsilon, **more)

    for name, path, call in (
        ("ages as texts", "data['age'], row 0", lambda: counted(["39", "50"])),
        ("a missing age", "data['age'], row 1", lambda: counted([39, NAN])),
        ("a histogram passed as records", "data['age'], row 0", lambda: counted([0] * 16 + [395])),
        ("values with a leading blank", "data['sex'], row 0", lambda: counted({"age": [39], "sex": [" m"]}, two)),
        ("columns interchanged", "data['age'], row 0", lambda: counted([("m", 39)], two)),
        ("columns that differ in length", "data", lambda: counted({"age": [39, 40], "sex": ["m"]}, two)),
        ("an array whose rows are attributes", "data", lambda: counted(np.ones((2, 5)), two)),
        ("a column that contains counts by value", "data['age']", lambda: counted({"age": {39: 10}})),
        ("a path passed as a table", "data", lambda: counted("good.csv")),
        ("a value passed as a position", "positions[0]", lambda: counted(None, positions=[80])),
        ("positions passed in addition to data", "positions", lambda: counted([39], positions=[1])),
        ("a domain given by its two ends", "data['age'], row 0", lambda: counted([39], ends)),
        ("a domain whose values are one text", "domain['sex']", lambda: tables.Domain({"sex": "fm"})),
        ("θ as a text with its unit", "theta", lambda: tables.Policy.threshold(ages, "5 years")),
        ("θ in days", "theta", lambda: tables.Policy.threshold(ages, 1825)),
        ("cut points passed as blocks", "labels", lambda: tables.Policy.partition(ages, [30, 50])),
        ("θ of an attribute without its name", "theta", lambda: tables.Policy.attribute(ages, theta=5)),
        ("known counts alone", "constraints[1]", lambda: tables.Policy.full(ages, constraints=([1] * 74, 5))),
        ("a domain passed as a policy", "policy", lambda: counted([39], ages)),
        ("ε and ρ", "epsilon", lambda: counted([39], rho=1)),
        ("ε with a decimal comma", "epsilon", lambda: counted([39], epsilon="1,5")),
        ("a confidence given in per cent", "confidence", lambda: counted([39], confidence=95)),
        ("a class passed as a ledger", "ledger", lambda: counted([39], ledger=md.Ledger)),
        ("a quantile given in per cent", "probability", lambda: tables.quantile(made, 50)),
        ("a range whose ends are exchanged", "low", lambda: tables.range_query(made, 60, 30)),
        ("a range below the domain", "low", lambda: tables.range_query(made, 0, 30)),
        ("shares passed as counts", "counts[0]", lambda: release_counts([0.5, 0.5], 1, 1)),
        ("a workload's name as queries", "queries", lambda: tables.Linear("ranges").release([39], full, epsilon=1)),
        ("points with another number of coordinates", "points", lambda: clusters.assign([[1, 2, 3]])),
        (
            "initial centroids outside the domain",
            "initial[0]",
            lambda: tables.KMeans(1, iterations=1, initial=[[300]]).release([39], full, epsilon=1),
        ),
        ("ε for Gaussian noise", "epsilon", lambda: release_by(strategy_of("ranges", line), [39], epsilon=1)),
        ("a prior that is one count too short", "prior", lambda: tables.optimal_count(4, 1, prior=[0.25] * 4)),
        ("counts passed as a prior", "prior", lambda: tables.optimal_count(4, 1, prior=[1, 1, 1, 1, 1])),
        ("a ledger charged with a negative ε", "epsilon", lambda: md.Ledger(epsilon=1).spend("a", "b", epsilon=-1)),
        ("a release in a folder that does not exist", "nowhere", lambda: tables.load("nowhere")),
        ("a table of data read as a release", "good.csv", lambda: read("good.csv")),
        ("a design's specification read as a release", "privacy", lambda: read("s.toml")),
    ):
        yield Mistake(name, call, path, error=InputError)


def with_chains_and_traces() -> Iterator[Mistake]:
    """Yield mistakes with policy graphs, chains, accountants, traces, figures and sweeps."""
    chain, city, made = md.MarkovChain([[0.8, 0.2], [0.1, 0.9]]), md.Domain.grid(3, 2, 3.0, 2.0), small_design()
    box = md.Domain.geographic_grid(2, 2, 35.6, 35.8, 139.6, 139.9)
    visited = md.data.read_checkins("good.csv")
    twice = md.sweep.parse(SPECIFICATION + 'sweep = { "privacy.0.epsilon" = [1, 2, 1] }')
    for name, path, call in (
        ("distances passed as places", "domain", lambda: md.graphs.threshold(md.distances.euclidean(city), 1)),
        ("edges that number cells from 1", "edges[0]", lambda: md.graphs.from_edges(6, [(5, 6)])),
        ("a mask of places", "support", lambda: md.graphs.constrain(md.graphs.line(3), [True, False, True])),
        ("δ given in per cent", "delta", lambda: delta_set([0.5, 0.5], 5)),
        ("one trace without a list around it", "traces", lambda: md.MarkovChain.from_traces([0, 1, 0], n=2)),
        ("states that are numbered from 1", "traces[0][1]", lambda: md.MarkovChain.from_traces([[1, 2]], n=2)),
        ("one ε passed as a list of budgets", "epsilons", lambda: md.leakage.temporal(0.1, chain, chain)),
        ("steps and α in the wrong order", "steps", lambda: md.leakage.allocate_budget(30, 0.5, chain, chain)),
        ("releases numbered from 1", "stop", lambda: md.leakage.window([0.1] * 3, 1, 4, chain, chain)),
        ("a single trace passed as a list of traces", "traces", lambda: md.data.to_grid(visited[0], box)),
        ("places without their table", "places", lambda: md.data.read_checkins("good.csv", place="user")),
        ("a share given in per cent", "missing", lambda: md.data.read_checkins("good.csv", missing=20)),
        ("a number passed as a user", "user", lambda: md.data.to_grid(visited, box).counts(6)),
        ("edges of a figure that number cells from 1", "edges[0]", lambda: md.figures.graph(city, [(5, 6)])),
        ("a true trace longer than the release", "truth", lambda: md.figures.trace(city, [0, 1], [0, 1, 2])),
        ("a figure that shows no answers", "count", lambda: md.figures.answers(made, 0)),
        ("a design as a channel", "channel", lambda: md.attack.optimal(made, [0.25] * 4, np.ones((4, 4)))),
        ("arguments in the wrong order", "epsilon", lambda: md.mechanisms.PlanarLaplace(city, 1.0)),
        ("a sweep that lists a value twice", "sweep", lambda: md.sweep.run(twice, "swept", jobs=1)),
        ("ε as a setting of a solver", "epsilon", lambda: md.specification.parse(SPECIFICATION).design(epsilon=2)),
        ("a path passed as a text", "specification", lambda: md.specification.parse("s.toml")),
        ("steps numbered from 1", "bad.csv, line 2", lambda: read_budgets(_bad("step,epsilon\n1,0.1\n"))),
    ):
        yield Mistake(name, call, path, error=InputError)
    opens = partial(md.Ledger, path="s.toml")
    yield Mistake("a specification opened as a ledger", opens, says="s.toml is not a ledger: it is not JSON")


# The command line


def on_the_command_line() -> Iterator[Mistake]:
    """Yield wrong arguments of commands; each is followed by what the message names."""
    for line, says in {
        "desing s.toml": "'design'",
        "design none.toml": "none.toml",
        "design s.toml --tolerance 0": "--tolerance",
        "design s.toml --tolerance small": "--tolerance",
        "design s.toml --time-limit -1": "--time-limit",
        "design s.toml --rows all": "--rows",
        "design made": "made",
        "design s.toml -o s.toml": "s.toml",
        "design s.toml --example city": "--example",
        "design --example none": "example",
        "design s.toml t.toml": "t.toml",
        "design s.toml --epsilon 1": "--epsilon",
        "design good.csv": "good.csv",
        "verify": "DIR",
        "verify none": "none",
        "verify s.toml": "s.toml",
        "verify .": "made",
        "sample made": "--secret",
        "sample made --secret 9": "--secret",
        "sample made --secret north": "--secret",
        "sample none --secret 1": "none",
        "sample made --at 1": "--at",
        "sample made --at 1,2,3": "--at",
        "sample made --at a,b": "--at",
        "sample made --at 9,9": "--at",
        "sample made --at 1,1 --secret 1": "--at",
        "sample made --at nan,1": "--at",
        "sample made --input none.csv": "none.csv",
        "sample made --input good.csv": "good.csv",
        "sample made --secret 1 -n -1": "'-n'",
        "sample made --secret 1 --seed 1": "--seed",
        "sample made --at 1,1 --outside drop": "--outside",
        "sample made --secret 0 --outside nearest": "--outside",
        "sample made --secret 1 -o none/x.csv": "none/x.csv",
        "sample made/channel.csv --secret 0": "a folder",
        "export made": "--format",
        "export made --format xml": "--format",
        "export made -o x.xml": "x.xml",
        "export none --format csv": "none",
        "export made --format geojson": "latitude",
        "export made --format csv -o none/x.csv": "none/x.csv",
        "attack": "DIR",
        "attack none": "none",
        "attack s.toml": "s.toml",
        "policy s.toml": "privacy",
        "policy none.toml": "none.toml",
        "release s.toml good.csv": "privacy[0].kind",
        "release s.toml": "TRACE.csv",
        "leakage": "--forward",
        "leakage --backward none.csv": "--epsilon",
        "leakage --backward none.csv --epsilon 1 --steps 3": "none.csv",
        "leakage --backward chain.csv --epsilon -1 --steps 3": "--epsilon",
        "leakage --backward chain.csv --epsilon a --steps 3": "--epsilon",
        "leakage --backward chain.csv --epsilon 1 --steps 0": "--steps",
        "leakage --backward chain.csv --epsilon 0.1 --steps 3 -o a.svg --plot a.svg": "--plot",
        "budget --alpha -1 --steps 3 --backward chain.csv": "--alpha",
        "budget --steps 3": "--alpha",
        "budget --alpha a --steps 3": "--alpha",
        "budget --alpha 1 --steps 0 --backward chain.csv": "--steps",
        "budget --alpha 1 --steps 3 --backward good.csv": "good.csv",
        "budget --alpha 1 --steps 3 --backward chain.csv -o chain.csv": "chain.csv",
        "examples none": "NAME",
        "bench --suite none": "--suite",
        "sweep s.toml": "[sweep]",
        "table none.toml": "none.toml",
        "info extra": "extra",
        "init": "DATA",
        "init none.csv": "none.csv",
        "init made": "made",
        "chain none.toml": "none.toml",
        "chain s.toml": "transition",
        "audit": "FILE",
        "audit none.csv": "none.csv",
        "audit chain.csv --distance euclidian": "--distance",
        "audit chain.csv --distance hamming -o chain.csv": "chain.csv",
        "audit chain.csv --spec s.toml": "--spec",
        "inspect made none": "none",
        "inspect": "DIR",
        "inspect none": "none",
        "inspect s.toml": "s.toml",
    }.items():
        yield _told(f"mechdesign {line}", line, says)


def _told(name: str, line: str, says: str, files: dict[str, str] | None = None) -> Mistake:
    """Return a mistake of the command line, whose message says a text, with files that are written first."""
    return Mistake(name, partial(_run, line, files or {}), says=says, error=UsageError)


def _run(line: str, files: dict[str, str]) -> object:
    for name, text in files.items():
        Path(name).write_text(text)
    result = CliRunner().invoke(command, line.split())
    if result.exit_code == 0:
        return result.stdout
    if isinstance(result.exception, SystemExit) and result.exit_code in (1, 2, 3) and "error" in result.stderr.lower():
        raise UsageError(result.stderr.rpartition("\n\n")[2].strip())
    raise result.exception or RuntimeError(f"exit code {result.exit_code}, and no word")


# Files of the users

TIMED = "user,time,latitude,longitude\n" + "".join(
    f"{'ab'[k % 2]},2021-03-01T08:{k:02d}:00Z,35.{60 + k},139.{65 + k}\n" for k in range(20)
)
PLT = "39.906631,116.385564,0,492,40097.5864583333,2009-10-11,14:04:30\n"
NAMED = """domain.labels = ["home", "work", "pub"]
prior.csv = { path = "w.csv", column = "n", label = "place" }
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
"""
AGES = """table.person = false
domain.attributes.age = { range = [0, 99] }
policy = { kind = "threshold", theta = 5 }
release = { kind = "ranges", ranges = [[0, 17], [18, 99]], epsilon = 0.5 }
"""
WALK = """domain.grid = { columns = 2, rows = 2, width = 2, height = 2 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, neighbours = 4 }]
release.transition = { neighbours = 4 }
"""


def with_files_of_ones_own() -> Iterator[Mistake]:
    """Yield mistakes with files as users have them: written by other tools, incomplete, confused, or overwritten."""
    first, *rows = TIMED.splitlines()
    missing = TIMED.replace("a,2021-03-01T08:00:00Z,35.60", "a,2021-03-01T08:00:00Z,999")
    for name, text, says in (
        ("exports of two tools in one file", TIMED + "a,03/04/2021 8:00,35.7,139.7\n" * 2, "is not a time"),
        ("times as Excel's numbers of days", TIMED.replace("2021-03-01T08:", "44256."), "time"),
        ("times without a date", TIMED.replace("2021-03-01T", "").replace("Z", ""), "not a time"),
        ("names of rows", "\n".join([first, *(f"{k},{row}" for k, row in enumerate(rows))]), "fields"),
        ("lines that end in a comma", "\n".join([first, *(f"{row}," for row in rows)]), "fields"),
        ("lines that are quoted as a whole", "\n".join(f'"{row}"' for row in (first, *rows)), "user"),
        ("Git LFS", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n", "no column"),
        ("HTML", "<html><table><tr><td>user</td></tr></table></html>", "no column"),
        ("SQL", "INSERT INTO t VALUES (1, 2);\n", "user"),
        ("hemispheres", TIMED.replace(",139", "N,139"), "latitude"),
        ("millionths of degrees", TIMED.replace("35.", "35000"), "latitude"),
        ("lost decimal points", TIMED.replace("35.", "35.000.0"), "latitude"),
        ("Web Mercator", TIMED.replace(",35.", ",42573"), "latitude"),
        ("no sign", TIMED.replace(",139.", ",-139."), "inside the box"),
        ("999 for a missing place", missing + "a,2021-03-01T09:00:00Z,999,999\n", "latitude"),
    ):
        yield Mistake(f"check-ins: {name}", partial(_timed, text, {}), "prior.checkins", says, SpecificationError)
    for key, wrong in {
        "time_format": ("YYYY-MM-DD", "%A %H"),
        "time_zone": ("CET+1", "Tokyo"),
        "missing": (20,),
    }.items():
        yield from each("check-ins", f"files.{key}", lambda v, k=key: _timed(TIMED, {k: v}), *wrong)
    for key, wrong in {"only": ("ann",), "every": ("5", "5m"), "gap": ("1 min",), "user": (True, "", "ann")}.items():
        path = "prior.checkins" if key == "user" else f"prior.checkins.{key}"
        yield from each("check-ins", path, lambda v, k=key: _timed(TIMED, {}, **{k: v}), *wrong)
    for name, text, says in (
        ("no header lines", PLT * 9, "line 1"),
        ("only names", "latitude,longitude,zero,altitude,days,date,time\n" + PLT * 9, "line 1"),
        ("swapped", "x\n" * 6 + PLT.replace("39.906631,116.385564", "116.385564,39.906631"), "interchanged"),
        ("from a spreadsheet", "x\n" * 6 + PLT.replace(",", ";"), "fields"),
    ):
        yield Mistake(f"trajectory: {name}", partial(_trajectory, text), "prior.plt", says, SpecificationError)
    for name, text, says in (
        ("a last line with totals", "place,n\nhome,1\nwork,2\npub,3\nTotal,6\n", "line 5"),
        ("capitals", "place,n\nPub,3\nHome,1\nWork,2\n", "place"),
        ("a label twice", "place,n\nhome,1\nhome,2\npub,3\n", "line 3"),
        ("thousands", 'place,n\nhome,"1,234"\nwork,2\npub,3\n', "line 2"),
    ):
        yield _told(f"weights: {name}", "design named.toml", says, {"named.toml": NAMED, "w.csv": text})
    cells = {
        "cells.toml": WALK.replace("uniform = true", 'csv = { path = "w.csv", column = "n", label = "cell" }'),
        "w.csv": "cell,n\n4,1\n3,1\n2,1\n1,7\n",
    }
    yield _told("weights that number cells from 1", "design cells.toml", "cell", cells)
    files = {"g.toml": WALK, "ages.toml": AGES, "ages.csv": "age\n36\n", "c.csv": "epsilon,cost\n0,3\n1,1\n"}
    two_people = "user,state\nann,0\nbob,3\n"
    for line, says, more in (
        ("release g.toml t.csv", "release.user", {"t.csv": two_people}),
        ("release g.toml t.csv", "line 3", {"t.csv": "state\n1\n4\n"}),
        ("release g.toml t.csv", "column of states", {"t.csv": "0,1,3\n"}),
        ("release g.toml t.csv -o o --truth o/t", "--truth", {"t.csv": "state\n0\n"}),
        ("design ages.toml", "mechdesign table", {}),
        ("table g.toml ages.csv", "mechdesign design", {}),
        ("table ages.csv ages.toml", "ages.csv", {}),
        ("table ages.toml t.csv", "capitals", {"t.csv": "Age\n36\n"}),
        ("table ages.toml t.csv", "line 2", {"t.csv": "age\n36 years\n"}),
        ("table ages.toml ages.csv --ledger ages.csv", "not a ledger", {}),
        ("audit chain.csv --distance haversine", "--spec", {}),
        ("audit p.csv --distance hamming", "Divide percentages", {"p.csv": "75,25\n25,75\n"}),
    ):
        yield _told(f"mechdesign {line} {more or ''}", line, says, {**files, **more})


def _timed(text: str, files: dict[str, object], **keys: object) -> object:
    columns = {"path": _bad(text), "user": "user", "time": "time", **keys}
    tables = {**BASE, "files": files, "domain": {"grid": BOX}, "prior": {"checkins": columns, "smoothing": 1}}
    if "gap" in keys:
        columns["every"] = "5 min"
    return _design(tables)


def _trajectory(text: str) -> object:
    Path("plt").mkdir(exist_ok=True)
    Path("plt", "a.plt").write_text(text)
    return _design({**BASE, "domain": {"grid": BOX}, "prior": {"plt": {"path": "plt"}, "smoothing": 1}})
