"""Errors and their causes show the form of a cell, and the cell itself only on request."""

from __future__ import annotations

import pickle
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run
from rows import each_row

import mechdesign as md
from mechdesign.data import _budgets as budgets
from mechdesign.data import _maps as places
from mechdesign.data import _matrices as channels
from mechdesign.data import _matrices as matrices
from mechdesign.data import _movement as traces
from mechdesign.data import _states as states
from mechdesign.data import _text as text
from mechdesign.data import trajectories
from mechdesign.data._layout import cell, form_of, withheld, withholding
from mechdesign.errors import InputError, MechdesignError, MetricWarning, Shown, Total, showing_values, values_are_shown
from mechdesign.specification._specification import parse
from mechdesign.specification._table_specification import parse as parse_release

SECRETS = [
    "HIV positive seit 2011", "-----BEGIN PRIVATE KEY-----", "46.9512x", "Ada Lovelace", "46.9512 7.4391",
    "079-555-0142", "Garc\u00eda M\u00e1rquez", "4111111111111111x", "1_2345", "0x1Fab", "\u202eevil", "=TRESOR()",
    "'geheim", "-7777.25", "99999.5", "geheim\x1b[2J", "1e9999", "7734/8812", "2011-13-45", "\u0412\u0418\u0427\u0418",
]  # fmt: skip


def test_the_form_of_a_text() -> None:
    for given, expected in {
        "2022-5-2 7:05": "9999-9-9 9:99",
        "": "an empty cell",
        " \t": "a blank cell",
        "3\u200b": "9U+200B",
        "3\u00a0km": "9U+00A0aa",
        "\ufeff7": "U+FEFF9",
        "a\x1b": "aU+001B",
        "l\u043ew": "aU+043Ea",
        "\uff13": "U+FF19",
        "\u0412\u0418\u0427": "aaa",
        "\u2640": "a",
        "\u00bd": "9",
        "x" * 41: "a" * 40 + "\u2026",
        "x" * 40: "a" * 40,
    }.items():
        assert form_of(given) == expected
        assert isinstance(form_of(given), Shown)
        assert cell(given) == expected
    assert form_of("l\u043ew", "l\u043ew") == "aaa"
    assert form_of("a\u2013b", "\u2013") == "a\u2013a"


def test_what_is_withheld() -> None:
    assert withheld(0.25) == "9.99"
    assert withheld((4.5, "x")) == "(9.9, a)"
    assert withheld({"a": "x"}) == "(a)"
    for kept in (3, (3, 4), None, float("inf"), Shown("the columns x"), Total(0.9)):
        assert withheld(kept) == kept
    assert withheld((3, 41), counts=False) == "(9, 99)"
    with showing_values():
        assert values_are_shown()
        assert withheld(0.25) == 0.25
        assert cell("x") == "x"
    assert not values_are_shown()


def test_only_what_is_about_the_file_is_withheld() -> None:
    for below, expected in (("costs", "found 9.9"), ("alpha", "found 0.5")):
        with pytest.raises(InputError) as caught, withholding(below):
            raise InputError("costs[1]", "rise", value=0.5)
        assert expected in str(caught.value)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), str(again.value)) == (str(caught.value), str(caught.value.value))


DOMAIN = md.Domain.grid(2, 2, 2.0, 2.0)
GRID = "domain.grid = { columns = 2, rows = 2, width = 2.0, height = 2.0 }\nprior.uniform = true\n"
METRIC = '[[privacy]]\nkind = "metric"\nepsilon = 1\ndistance = "euclidean"\n'
HAMMING = 'cost.distance = "hamming"\n[[privacy]]\nkind = "metric"\nepsilon = 1\ndistance = "hamming"\n'
EDGES = 'cost.distance = "hamming"\n[[privacy]]\nkind = "graph"\nepsilon = 1\nedges_csv = { path = "FILE" }\n'
AGES = (
    "table.person = false\ndomain.attributes.age = { range = [0, 9] }\n"
    'policy.kind = "full"\nrelease = { kind = "histogram", epsilon = 1 }\n'
)


def problem(of: str) -> Callable[[Path], object]:
    return lambda path: parse(of.replace("FILE", path.name), path.parent).problem()


# Each reader, with a text in which @ is replaced by a wrong cell.
READERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "numbers": (lambda path: text.read_numbers(path, "n"), "n\n1\n@\n"),
    "columns": (lambda path: text.read_columns(path, ["age"]), "Ada,@\n1,2\n"),
    "check-ins": (traces.read_checkins, "user,latitude,longitude\nu,1,2\nu,@,2\n"),
    "longitudes": (traces.read_checkins, "user,latitude,longitude\nu,1,2\nu,1,@\n"),
    "times": (lambda path: traces.read_checkins(path, time="t"), "user,latitude,longitude,t\nu,1,2,@\n"),
    "header": (traces.read_checkins, "Ada,@,3\n1,2,3\n"),
    "keys": (
        lambda path: traces.read_checkins(path, place="p", places={"a": (1.0, 2.0)}),
        "user,p\nu,@\n",
    ),
    "places by key": (lambda path: traces.read_places(path, "k"), "k,latitude,longitude\na,@,1\n"),
    "places": (lambda path: places.read_places(path, ("x", "y")), "x,y\n1,@\n"),
    "states": (lambda path: states.read_states(path, DOMAIN), "0\n@\n"),
    "states by place": (lambda path: states.read_states(path, DOMAIN), "x,y\n1,1\n@,1\n"),
    "steps": (lambda path: states.as_steps(path, DOMAIN), "state,time\n0,2020-01-01\n@,2020-01-02\n"),
    "times of steps": (lambda path: states.as_steps(path, DOMAIN), "state,time\n0,@\n"),
    "first state": (lambda path: states.read_states(path, DOMAIN), "@,7\n1,2\n"),
    "matrix": (lambda path: matrices.read_matrix(path, ","), "1,0\n@,1\n"),
    "free matrix": (matrices.read_matrix, "1 0\n0 @\n"),
    "labelled": (channels.read_labelled, "secret,a,b\nx,1,@\n"),
    "budgets": (budgets.read_budgets, "step,epsilon\n0,@\n"),
    "steps of budgets": (budgets.read_budgets, "step,epsilon\n@,1\n"),
    "header of budgets": (budgets.read_budgets, "@,b\n0,1\n"),
    "prior": (
        problem(GRID.replace("prior.uniform = true", 'prior.csv = { path = "FILE", column = "n" }') + HAMMING),
        "n\n1\n2\n3\n@\n",
    ),
    "cost": (problem(GRID + 'cost.matrix = { path = "FILE" }\n' + METRIC), "0,1,1,1\n1,0,1,1\n1,1,0,@\n1,1,1,0\n"),
    "domain": (
        problem('domain.csv = { path = "FILE", x = "x", y = "y", label = "l" }\nprior.uniform = true\n' + HAMMING),
        "x,y,l\n0,0,home\n@,0,pub\n",
    ),
    "edges": (
        problem(GRID + EDGES),
        "source,target\n0,1\n1,@\n",
    ),
    "table": (lambda path: parse_release(AGES).records.indices(path), "name,age\nAda,3\nBob,@\n"),
}  # fmt: skip


def told(error: BaseException) -> Iterator[str]:
    """Yield the texts of an error and of all its causes."""
    yield "".join(traceback.format_exception(error))
    seen: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo:
        one = todo.pop()
        if one is None or one in seen:
            continue
        seen.append(one)
        yield str(one)
        yield repr(vars(one))
        todo += [one.__cause__, one.__context__]


def failure(read: Callable[[Path], object], path: Path) -> MechdesignError | None:
    """Return the error that a reader raises."""
    try:
        read(path)
    except MechdesignError as error:
        return error
    return None


def parts(secret: str) -> list[str]:
    """Return the parts of a secret that errors must not contain."""
    return [part for part in re.findall(r"\d+\.\d+|[^\W_]{4,}", secret) if part]


@pytest.mark.slow
@each_row("name", READERS)
def test_no_reader_shows_a_cell(tmp_path: Path, name: str) -> None:
    read, content = READERS[name]
    path = tmp_path / "f.csv"
    refused = shown = 0
    for secret in SECRETS:
        path.write_text(content.replace("@", secret.replace("\x1b", "\\u001b") if "{" in content else secret))
        error = failure(read, path)
        if error is None:
            continue
        refused += 1
        for said in (*told(error), str(getattr(error, "value", ""))):
            assert not [part for part in parts(secret) if part in said], (secret, said)
        assert str(error).isprintable()
        with showing_values():
            shown += any(part in str(failure(read, path)) for part in parts(secret))
    # Some secrets are valid values of some columns.
    assert refused >= 15
    # This shows that the check can fail.
    assert shown >= 12 or name in ("no JSON", "positions", "cost", "steps of curves")


@each_row("suffix", [".npy", ".npz", ".csv", ".parquet", ".csv.gz", ".geojson"])
def test_no_first_line_of_another_file_is_shown(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"key{suffix}"
    path.write_text("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ\n")
    readers = [read for read, _ in READERS.values() if suffix in (".csv", ".csv.gz", ".geojson", ".parquet")]
    for read in readers or [matrices.read_matrix]:
        with pytest.raises(MechdesignError) as caught:
            read(path)
        assert not any(word in said for said in told(caught.value) for word in ("-----B", "BEGIN", "MIIEvQ", "PRIVATE"))


def test_coordinates_of_traces_are_not_shown() -> None:
    box = md.Domain.geographic_grid(2, 2, 0, 1, 0, 1)
    with pytest.raises(InputError) as caught:
        trajectories.to_grid([trajectories.Trajectory("u", [46.9512], [7.4391])], box)
    assert "46.95" not in str(caught.value)
    with showing_values(), pytest.raises(InputError, match=r"46\.9512"):
        trajectories.to_grid([trajectories.Trajectory("u", [46.9512], [7.4391])], box)


def test_values_of_keys_options_and_arguments_are_shown() -> None:
    with pytest.raises(InputError, match=r"found -1\.5"):
        md.Prior.from_counts([1, -1.5])
    with pytest.raises(InputError, match="found 'nowhere'"):
        states.as_states(["nowhere"], DOMAIN)
    with pytest.raises(InputError, match="found 'anywhere'"):
        parse(GRID + 'cost.distance = "anywhere"\n' + METRIC).problem()


def test_commands_show_a_cell_when_asked(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(AGES)
    (tmp_path / "t.csv").write_text("name,age\nAda,3\nBob,HIV positive since 2011\n")
    (tmp_path / "P.csv").write_text("1,0\n0,HIV positive\n")
    for command in (
        ("table", tmp_path / "s.toml", tmp_path / "t.csv", "-o", tmp_path / "o"),
        ("leakage", tmp_path / "P.csv", "--epsilon", 1, "--steps", 2),
        ("budget", "--alpha", 1, "--backward", tmp_path / "P.csv"),
        ("audit", tmp_path / "P.csv", "--distance", "hamming"),
    ):
        without, asked = run(*command), run(*command, "--show-values")
        assert (without.exit_code, asked.exit_code) == (2, 2)
        assert "HIV" not in without.output
        assert "found aaa aaaaaaaa" in without.stderr
        assert "HIV positive" in asked.stderr
        assert not values_are_shown()


READING = "init design sweep attack audit sample policy release chain leakage budget inspect"


@each_row("command", READING.split())
def test_every_command_that_reads_data_takes_the_option(command: str) -> None:
    assert "--show-values" in run(command, "--help").stdout


def test_sums_of_rows_are_shown(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "P.csv", [[0.25, 0.5], [0.0, 1.0]], delimiter=",")
    said = run("leakage", tmp_path / "P.csv", "--epsilon", 1, "--steps", 2).stderr
    assert "does not sum to 1; found 0.75" in said


@each_row(
    ("rows", "says"),
    [
        ("0,46.9512\n7.4391,0\n", "is not symmetric: [0,1] and [1,0] differ"),
        ("46.9512,1\n1,0\n", "[0,0] is above 0"),
        ("0,1,46.9512\n1,0,1\n46.9512,1,0\n", "[0,2] is more than [0,1] + [1,2]"),
    ],
)
def test_a_warning_of_a_matrix_in_a_file_names_entries_and_no_values(tmp_path: Path, rows: str, says: str) -> None:
    (tmp_path / "d.csv").write_text(rows)
    n = rows.count("\n")
    text = f"domain.grid = {{ columns = {n}, rows = 1, width = {n}.0, height = 1.0 }}\nprior.uniform = true\n"
    text += 'cost.distance = "hamming"\n[[privacy]]\nkind = "metric"\nepsilon = 1\nmatrix = { path = "d.csv" }\n'
    with pytest.warns(MetricWarning) as caught:
        parse(text, tmp_path).problem()
    said = " ".join(str(each.message) for each in caught)
    assert says in said
    assert "46.95" not in said
    assert "7.43" not in said
    with showing_values(), pytest.warns(MetricWarning, match=r"46\.9512"):
        parse(text, tmp_path).problem()
    # Errors show the values of arrays that are passed in Python.
    with pytest.warns(MetricWarning, match=r"46\.9512"):
        md.distances.check_metric(np.array([list(map(float, row.split(","))) for row in rows.split()]))
