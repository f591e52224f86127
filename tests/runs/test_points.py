"""What a sweep asks for, and what is refused before anything runs."""

from __future__ import annotations

import functools
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from refusals import Mistake, assert_refused
from sweep_examples import DATA, TABLES, sweep, text

from mechdesign.errors import (
    ExportError,
    InputError,
    MetricWarning,
    MissingDependencyError,
    SpecificationError,
    StateError,
)
from mechdesign.runs import sweep as module
from mechdesign.runs._points import MAX_POINTS, cell, parse, points, read
from mechdesign.runs.sweep import run
from mechdesign.specification._specification import parse as parse_spec

EPSILON = '"privacy.0.epsilon" = [0.2, 0.5]'


def test_a_product_takes_each_value_with_each():
    asked = sweep('"privacy.0.epsilon" = [0.2, 1]\n"cost.power" = [1, 2, 3]')
    found = points(asked)
    assert len(asked) == len(found) == 6
    assert [point.values["cost.power"] for point in found] == [1, 2, 3, 1, 2, 3]
    assert [point.values["privacy.0.epsilon"] for point in found] == [Decimal("0.2")] * 3 + [1] * 3


def test_a_zip_takes_values_side_by_side():
    asked = sweep('"privacy.0.epsilon" = [0.2, 1]\n"cost.power" = [1, 2]\nmode = "zip"')
    assert [tuple(point.values.values()) for point in points(asked)] == [(Decimal("0.2"), 1), (1, 2)]


def test_cells_are_numbers_only_if_these_are_the_values():
    given = {"0.1": 0.1, "0.10000000000000000001": "0.10000000000000000001", "1e999": "1E+999"}
    assert {text: cell(Decimal(text)) for text in given} == given
    assert (cell(True), cell([Decimal("0.5"), "ε"])) == (True, '[0.5, "ε"]')


def test_only_counts_of_data_are_private():
    assert sweep().private == ""
    assert "counted" in sweep(tables=DATA).private


def test_values_are_put_where_their_paths_lead():
    asked = sweep('"solver.tolerance" = [1e-3]\n"privacy" = [[{ kind = "graph", epsilon = 1, complete = true }]]')
    tables = points(asked)[0].specification.tables
    assert tables["solver"] == {"tolerance": Decimal("1e-3")}
    assert [entry["kind"] for entry in tables["privacy"]] == ["graph"]
    # The specification itself is as it was.
    assert "solver" not in asked.tables


LISTS = {
    "no list": ("", "sweep", "has no key to sweep"),
    "a mode alone": ('mode = "zip"', "sweep", "has no key to sweep"),
    "another mode": (f'{EPSILON}\nmode = "cross"', "sweep.mode", '"product" or "zip"'),
    "no value": ('"privacy.0.epsilon" = []', 'sweep."privacy.0.epsilon"', "is empty"),
    "no brackets": ('"privacy.0.epsilon" = 0.5', 'sweep."privacy.0.epsilon"', "Write it in [ ]"),
    "too far": ('"privacy.1.epsilon" = [1]', 'sweep."privacy.1.epsilon"', "between 0 and 0"),
    "through a number": ('"privacy.0.epsilon.budgets" = ["b.csv"]', "sweep.", "leads through privacy.0.epsilon"),
    "no quotes": ("privacy.0.epsilon = [1]", "sweep.privacy", "in quotes"),
    "inside another": ('"cost" = [{}]\n"cost.power" = [1]', 'sweep."cost.power"', "is inside cost"),
    "lengths": (f'{EPSILON}\n"cost.power" = [1, 2, 3]\nmode = "zip"', 'sweep."cost.power"', "must be 2 values"),
    "too many": (
        '"cost.power" = {0}\n"cost.scale" = {0}'.format([*range(1, 400)]), "sweep", f"at most {MAX_POINTS}",
    ),
}  # fmt: skip
VALUES = {
    "misspelt": ('"privacy.0.epsilom" = [1]', 'sweep."privacy.0.epsilom"[0]', "Did you mean epsilon"),
    "another version": ('"version" = [2]', 'sweep."version"[0]', "must be one of 1"),
    "negative": ('"privacy.0.epsilon" = [1, -1]', 'sweep."privacy.0.epsilon"[1]', "found -1"),
    "a word": ('"privacy.0.epsilon" = [1, "one"]', 'sweep."privacy.0.epsilon"[1]', "found 'one'"),
    "a distance": ('"privacy.0.distance" = ["euclidean", "haversine"]', 'sweep."privacy.0.distance"[1]', "latitudes"),
    "a solver": ('"solver.name" = ["auto", "magic"]', 'sweep."solver.name"[1]', "found 'magic'"),
    "prior": ('"prior.only" = [1]', 'sweep."prior.only"', "one of"),
    "missing": ('"prior.checkins.only" = [6, 41]', "prior.checkins.path", "is missing"),
    "unknown": ('"privacy.0.radius" = [1]', 'sweep."privacy.0.radius"[0]', "not a known key"),
    "together": ('"privacy.0.kind" = ["threshold"]', "privacy[0].radius", "privacy.0.kind = threshold"),
    "exclusive": ('"domain.line" = [4]', "domain", "exclude each other"),
    "counts": ('"prior.counts" = [[1, 2]]', 'sweep."prior.counts"[0]', "found 2"),
    "no file": ('"prior.csv" = [{ path = "none.csv", column = "n" }]', 'sweep."prior.csv"[0]', "."),
}


def test_wrong_lists_are_refused_with_their_key() -> None:
    sizes = f'"cost.power" = {[*range(1, 401)]}\n"cost.scale" = {[*range(1, 251)]}'
    assert len(sweep(sizes)) == MAX_POINTS
    assert_refused(Mistake(name, functools.partial(sweep, lists), *more) for name, (lists, *more) in LISTS.items())


def test_wrong_values_are_refused_before_anything_runs(tmp_path: Path) -> None:
    def make(lists: str) -> object:
        own = "prior.c" in lists and "prior.counts" not in lists
        tables = TABLES.replace("counts = [4, 3, 2, 1]", "") if own else TABLES
        return run(sweep(lists, tables, tmp_path), tmp_path / "out")

    assert_refused(Mistake(name, functools.partial(make, lists), *more) for name, (lists, *more) in VALUES.items())
    assert not (tmp_path / "out").exists()


def test_a_specification_without_lists_is_no_sweep_and_one_with_them_no_design(tmp_path):
    with pytest.raises(SpecificationError, match=r"Add \[sweep\]"):
        parse(TABLES)
    with pytest.raises(SpecificationError, match="mechdesign sweep"):
        parse_spec(text())
    with pytest.raises(SpecificationError, match="cannot be opened"):
        read(tmp_path / "none.toml")


def test_solvers_that_are_not_installed_are_refused(tmp_path, monkeypatch):
    from mechdesign.solve import _registry as registry

    monkeypatch.setattr(registry.Solver, "installed", property(lambda self: self.package != "cvxpy"))
    with pytest.raises(MissingDependencyError, match="cvxpy"):
        run(sweep('"solver.name" = ["auto", "cvxpy"]'), tmp_path / "out")


def test_the_same_design_twice_is_refused(tmp_path):
    for lists in (
        '"privacy.0.epsilon" = [0.5, 1, 0.50]',
        '"privacy.0.epsilon" = [1, 1.0]',
        '"cost.power" = [1, 2, 1]\n"cost.scale" = [3, 3, 3]\nmode = "zip"',
    ):
        with pytest.raises(SpecificationError, match="as number 0 and number"):
            points(sweep(lists))


def test_names_depend_on_the_values_and_not_on_their_notation_or_order():
    def names(lists: str) -> list[str]:
        return [point.name for point in points(sweep(lists))]

    assert names('"privacy.0.epsilon" = [0.5, 1]') == names('"privacy.0.epsilon" = [5e-1, 1.0]')
    assert names('"privacy.0.epsilon" = [0.5]\n"cost.power" = [1]') == names(
        '"cost.power" = [1]\n"privacy.0.epsilon" = [0.50]'
    )
    assert names('"privacy.0.epsilon" = [0.5, 2]')[0] == names('"privacy.0.epsilon" = [3, 0.5]')[1]
    found = names('"privacy.0.epsilon" = [0.5, 0.5000000001, "1/2"]')
    assert len({*found}) == 3
    assert all(len(name) == 16 for name in found)


def test_data_that_designs_share_are_read_once(tmp_path, monkeypatch):
    from mechdesign.data import labels as labelled
    from mechdesign.specification import _priors as priors

    read_counts = labelled.read_counts
    count = []
    monkeypatch.setattr(priors, "read_counts", lambda *args: count.append(1) or read_counts(*args))
    tables = TABLES.replace("counts = [4, 3, 2, 1]", "")
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("n\n4\n3\n2\n1\n")
    lists = """
        "privacy.0.epsilon" = [1, 2, 3, 4, 5]
        "prior.csv" = [{ path = "a.csv", column = "n" }, { path = "b.csv", column = "n" }]
    """
    assert len(points(sweep(lists, tables, tmp_path))) == 10
    assert len(count) == 2


def test_warnings_about_data_are_given_once(tmp_path):
    (tmp_path / "d.csv").write_text("0,1,9,1\n1,0,1,1\n9,1,0,1\n1,1,1,0\n")
    tables = TABLES.replace('epsilon = 0.7\ndistance = "euclidean"', 'epsilon = 0.7\nmatrix.path = "d.csv"')
    with pytest.warns(MetricWarning) as said:
        points(sweep('"privacy.0.epsilon" = [1, 2, 3]', tables, tmp_path))
    assert len(said) == 1


def test_the_table_has_a_column_for_each_requirement_of_any_point(tmp_path):
    edges = '{ kind = "graph", epsilon = 1, complete = true }'
    floor = '{ kind = "distortion", minimum = 0.1, distance = "euclidean" }'
    asked = sweep(f'"privacy" = [[{edges}], [{edges}, {edges}, {floor}], [{edges}, {floor}, {floor}]]')
    module._write_table(tmp_path, asked, points(asked), [])
    header = (tmp_path / "results.csv").read_text().split(",")
    assert header[5:9] == ["tight_epsilon", "tight_epsilon_2", "distortion", "distortion_2"]


def test_workers_have_our_versions_of_all_that_a_design_depends_on():
    own = module._find_versions()
    module._require_versions({"a": own})
    for name in ("mechdesign", "numpy", "scipy", "highspy"):
        with pytest.raises(InputError, match=f"the worker b has other versions; found {{'{name}': '0'}}"):
            module._require_versions({"a": own, "b": own | {name: "0"}})


def test_a_worker_of_another_version_makes_nothing(tmp_path):
    (task,) = module._plan(points(sweep('"cost.power" = [1]')), tmp_path)
    with pytest.raises(StateError, match=r"a worker has mechdesign .*, not 0\. Install the same version"):
        module._solve(replace(task, wanted=replace(task.wanted, version="0")))


WRONG = {
    "no process": ({"jobs": 0}, "jobs", "is too small"),
    "a negative number": ({"jobs": -1}, "jobs", "is too small"),
    "half a process": ({"jobs": 1.5}, "jobs", "integer"),
    "a word": ({"jobs": "two"}, "jobs", "integer"),
    "a truth value": ({"jobs": True}, "jobs", "integer"),
    "both": ({"jobs": 2, "dask": "tcp://127.0.0.1:1"}, "jobs", "Dask cluster"),
    "no address": ({"dask": True}, "dask", "tcp://"),
    "part 0": ({"part": "0/3"}, "part", "3/16"),
    "part 4 of 3": ({"part": "4/3"}, "part", "3/16"),
    "a part of none": ({"part": "1/0"}, "part", "3/16"),
    "one number": ({"part": "3"}, "part", "3/16"),
    "a sign": ({"part": "-1/3"}, "part", "3/16"),
    "blanks": ({"part": "1 / 3"}, "part", "3/16"),
    "other digits": ({"part": "１/３"}, "part", "3/16"),
    "no text": ({"part": (1, 3)}, "part", "3/16"),
    "no truth value": ({"retry": "yes"}, "retry", "True or False"),
}


def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path):
    assert_refused(
        Mistake(name, functools.partial(run, sweep(), tmp_path / "out", **given), *more)
        for name, (given, *more) in WRONG.items()
    )
    assert not (tmp_path / "out").exists()


def test_folders_that_are_no_sweep_are_refused(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "results.csv").write_text("mine")
    (tmp_path / "file").write_text("")
    (tmp_path / "design").mkdir()
    (tmp_path / "design" / "certificate.json").write_text("{}")
    for name, said in (("thesis", "results.csv"), ("file", "not a folder"), ("design", "certificate.json")):
        with pytest.raises(ExportError, match=said):
            run(sweep(), tmp_path / name, jobs=1)
    assert (tmp_path / "thesis" / "results.csv").read_text() == "mine"
