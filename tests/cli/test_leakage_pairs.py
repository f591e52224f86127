"""`mechdesign leakage SPEC.toml`: what repeated releases tell about pairs of secrets."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md
from mechdesign.base._deadline import promise
from mechdesign.cli import _pairs
from mechdesign.errors import SolverError, SolverInterruptedError
from mechdesign.leakage import _recursion as recursion

# Four cells in two rows; people stay with probability 1/2, or go to a cell that shares a side.
WALK = np.array([[2, 1, 1, 0], [1, 2, 0, 1], [1, 0, 2, 1], [0, 1, 1, 2]]) / 4
CELLS = md.Domain.grid(2, 2, 3.0, 2.0)
PLACES = ["0.75,0.5", "2.25,0.5", "0.75,1.5", "2.25,1.5"]
DISTANCES = md.distances.euclidean(CELLS)
BOUNDS = md.leakage.pairs(md.MetricPrivacy("0.5", DISTANCES))
GRID = """
title = "Four cells"
domain.grid = { columns = 2, rows = 2, width = 3.0, height = 2.0, unit = "km" }
prior.uniform = true
cost.distance = "euclidean"
"""
SIZE, EARTH = 'width = 3.0, height = 2.0, unit = "km"', "south = 1, north = 2, west = 3, east = 5"
METRIC = '[[privacy]]\nkind = "metric"\nepsilon = 0.5\ndistance = "euclidean"\n'
FLOOR = '[[privacy]]\nkind = "distortion"\nminimum = 0.1\ndistance = "hamming"\n'
LINE = ("leakage", "city.toml", "--chain", "chain", "--steps", "13")


pytestmark = pytest.mark.usefixtures("blank_pictures")


@pytest.fixture(autouse=True)
def _files(_in_an_empty_folder: None) -> None:
    write(GRID + METRIC + FLOOR, "city.toml")
    write_chain(WALK, list(range(4)))


def write_chain(matrix: np.ndarray[Any, Any], states: list[int], labels: str = "0123") -> None:
    """Write the folder of a chain as `mechdesign chain` does."""
    Path("chain").mkdir(exist_ok=True)
    chain = md.MarkovChain(matrix)
    for name, each in (("forward", chain), ("backward", chain.reverse(chain.stationary()))):
        np.savetxt(f"chain/{name}.csv", each.matrix, delimiter=",", fmt="%.17g")
    rows = [f"{row},{state},{labels[state]},{PLACES[state]}" for row, state in enumerate(states)]
    write("\n".join(["row,state,label,x,y", *rows]) + "\n", "chain/states.csv")


def matrices() -> tuple[Any, Any]:
    return tuple(np.loadtxt(f"chain/{name}.csv", delimiter=",") for name in ("backward", "forward"))


def test_the_numbers_are_those_of_the_functions() -> None:
    found = json.loads(well(*LINE, "--json", "-o", "out.csv").stdout)
    backward, forward = matrices()
    told = {count: md.leakage.temporal([BOUNDS] * count, backward, forward).max(axis=0) for count in (1, 2, 5, 13)}
    told["inf"] = md.leakage.supremum(BOUNDS, backward, forward).bounds
    touching = [pair for s, t in md.graphs.neighbours8(CELLS).edges for pair in ((s, t), (t, s))]
    assert [row["releases"] for row in found["after"]] == list(told)
    for row, each in zip(found["after"], told.values(), strict=True):
        assert row["neighbours"] == max(each[pair] for pair in touching)
        assert row["all_pairs"] == each.max()
        with np.errstate(invalid="ignore"):
            steepest = np.nanmax(each / DISTANCES)
        assert steepest <= row["per_unit"] <= steepest * (1 + 2**-51)
        for name, unit in (("neighbours", None), ("all_pairs", None), ("per_unit", DISTANCES)):
            s, t = (int(label.removeprefix("cell ")) for label in row[f"{name}_pair"])
            assert each[s, t] / (1 if unit is None else unit[s, t]) == pytest.approx(row[name], rel=1e-15), name
    # One release has the ε of the specification, and the diameter bounds every pair by 13 of its own bounds only.
    assert found["after"][0]["per_unit"] == 0.5
    assert found["after"][3]["neighbours"] < 13 * BOUNDS.max()
    assert found["unit"] == "km"
    assert found["any_number_of_releases"] == "every pair has a bound if the matrices stay the same at every step"
    with open("out.csv", encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [float(row["all_pairs"]) for row in table] == [row["all_pairs"] for row in found["after"]]
    assert [row["releases"] for row in table] == ["1", "2", "5", "13", "inf"]


@pytest.mark.usefixtures("drawn")
def test_the_page_repeats_the_numbers() -> None:
    shown = well(*LINE[:-1], "2", "-o", "out.csv").stdout
    page = Path("out.html").read_text("utf-8")
    assert shown.splitlines()[0] in re.sub("<.*?>", "", page)
    rows = [re.split(r"  +", line.strip()) for line in shown.partition("\nafter\n")[2].splitlines()[1:]]
    assert [row[0] for row in rows] == ["1", "2", "any number"]
    table = page.partition("<h2>Largest bounds, in nats</h2>")[2].partition("</table>")[0]
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in table.splitlines() if "<td" in line]
    assert cells == rows
    assert page.count(">releases: ") == 3
    for name in ("cell 0", "cell 3"):
        assert f'<th scope="row">{name}</th>' in page


def test_states_that_the_chain_leaves_out_have_no_bounds() -> None:
    kept = [0, 1, 3]
    part = WALK[np.ix_(kept, kept)] / WALK[np.ix_(kept, kept)].sum(axis=1, keepdims=True)
    write_chain(part, kept)
    result = well(*LINE, "--json")
    assert "1 states of city.toml are not in the chain: nothing is said about them" in result.stderr
    expected = md.leakage.temporal([BOUNDS[np.ix_(kept, kept)]] * 13, *matrices()).max()
    last = json.loads(result.stdout)["after"][-2]
    assert (last["releases"], last["all_pairs"]) == (13, expected)
    assert set(last["all_pairs_pair"]) <= {"cell 0", "cell 1", "cell 3"}


def test_matrices_are_matched_with_labels() -> None:
    # Names are told in full.
    labels = ["a", "b", "c", "a place with a name of two lines or so"]
    line = ("leakage", "places.toml", "--steps", "3", "--json")
    points = "domain.points = [[0, 0], [1, 0], [0, 1], [1, 1]]\n"
    write(f"{points}domain.labels = {json.dumps(labels)}\n" + GRID.partition("}\n")[2] + METRIC, "places.toml")
    order = [3, 0, 1, 2]
    rows = [[labels[i], *(repr(float(WALK[i, j])) for j in order)] for i in order]
    write("\n".join(",".join(row) for row in [["", *(labels[j] for j in order)], *rows]) + "\n", "F.csv")
    named = json.loads(well(*line, "--forward", "F.csv", "--header", "--index").stdout)
    plain = json.loads(well(*line, "--forward", "chain/forward.csv").stdout)
    assert named["after"] == plain["after"]
    # Places without cells have no neighbours.
    assert "neighbours" not in named["after"][0]
    assert named["unit"] is None
    assert named["after"][0]["all_pairs_pair"] == [labels[0], labels[3]]
    write(Path("F.csv").read_text().replace("a", "x"), "F.csv")
    assert_wrong_usage({" ".join([*line, "--forward", "F.csv", "--header", "--index"]): "forward (F.csv)"})


def test_a_graph_has_neighbours_and_pairs_without_a_bound() -> None:
    write(GRID + '[[privacy]]\nkind = "graph"\nepsilon = 0.5\nedges = [[0, 1], [2, 3]]\n', "city.toml")
    shown = well("leakage", "city.toml", "--chain", "chain", "--steps", "2").stdout
    assert "between any two states by any factor" in shown
    first = json.loads(well(*LINE[:-1], "2", "--json").stdout)["after"][0]
    assert (first["neighbours"], first["all_pairs"], first["per_unit"]) == (0.5, "inf", "inf")
    assert "\nany number of releases   no bound is known for" in shown


def test_many_states_have_bounds_on_edges_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pairs, "MOST_STATES", 3)
    result = well(*LINE, "--json")
    assert "only neighbours have programs, so bounds are looser" in flat(result.stderr)
    found = json.loads(result.stdout)
    edges = md.graphs.neighbours8(CELLS)
    expected = md.leakage.temporal([BOUNDS] * 13, *matrices(), edges=edges).max()
    assert [row["releases"] for row in found["after"]] == [1, 2, 5, 13]
    assert found["after"][-1]["all_pairs"] == expected
    assert "not computed" in found["any_number_of_releases"]


def test_no_number_of_releases_tells_more_than_any_number() -> None:
    # The recursion rises without end, and a power of the matrix bounds every pair.
    write(GRID + METRIC.replace("0.5", "2"), "city.toml")
    after = json.loads(well(*LINE[:-1], "10", "--json").stdout)["after"]
    backward, forward = matrices()
    assert md.leakage.temporal([4 * BOUNDS] * 10, backward, forward).max() > 1.4 * after[-1]["all_pairs"]
    for name in ("neighbours", "all_pairs", "per_unit"):
        values = [row[name] for row in after]
        assert values == sorted(values), name


def test_what_is_not_decided_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SolverError("the pair (0, 1) is open")

    monkeypatch.setattr("mechdesign.leakage._recursion.supremum", fail)
    found = json.loads(well(*LINE, "--json").stdout)
    assert [row["releases"] for row in found["after"]] == [1, 2, 5, 13]
    assert found["any_number_of_releases"] == "not decided: the pair (0, 1) is open"


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SolverInterruptedError("stopped")])
@pytest.mark.parametrize("kept", [4, 2, 1, 0])
def test_ctrl_c_keeps_the_bounds_that_are_found(
    monkeypatch: pytest.MonkeyPatch, kept: int, stop: BaseException
) -> None:
    count = 0

    def interrupt(whole: Any) -> Any:
        def bound(*arguments: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            # Otherwise the process would end before the page is drawn.
            assert promise() == "keeping the bounds found so far"
            if count > kept:
                raise stop
            return whole(*arguments, **options)

        return bound

    for name in ("temporal", "supremum"):
        monkeypatch.setattr(recursion, name, interrupt(getattr(recursion, name)))
    ended = run(*LINE, "--json", "-o", "evening.csv")
    assert ended.exit_code == 130
    if not kept:
        assert "stopped" in ended.stderr
        assert not {"evening.csv", "evening.html"} & {*os.listdir()}
        return
    found = json.loads(ended.stdout)
    assert [row["releases"] for row in found["after"]] == [1, 2, 5, 13][:kept]
    assert found["any_number_of_releases"] == "not computed: stopped"
    assert len(Path("evening.csv").read_text().splitlines()) == kept + 1
    assert "not computed: stopped" in Path("evening.html").read_text()


def test_a_quotient_is_rounded_up() -> None:
    pairs, third = ~np.eye(2, dtype=bool), 1 / 3
    assert Fraction(third) < Fraction(1, 3)
    found, _ = _pairs._at_largest(1.0 * pairs, pairs, 3.0 * pairs)
    assert found == math.nextafter(third, 1)
    assert _pairs._at_largest(1.0 * pairs, pairs, 4.0 * pairs) == (0.25, (0, 1))


def test_numbers_of_releases() -> None:
    assert [list(_pairs._counts(steps)) for steps in (1, 2, 3, 10, 24)] == [
        [1], [1, 2], [1, 3], [1, 2, 5, 10], [1, 2, 5, 10, 24],
    ]  # fmt: skip


def states_csv(*rows: str) -> str:
    """Return a file of states, each with the place of the state of its row."""
    return "\n".join(["row,state,label,x,y", *(f"{row},{PLACES[int(row[0])]}" for row in rows)]) + "\n"


def test_wrong_usage() -> None:
    places = ", ".join(f"[{x}, 0]" for x in range(_pairs.MOST_STATES + 1))
    rest = GRID.partition("}\n")[2]
    anchors = GRID.replace("grid", "anchors")
    for name, text in {
        "floor.toml": GRID + FLOOR,
        "plane.toml": anchors + '[[privacy]]\nkind = "continuous"\nepsilon = 0.5\n',
        "many.toml": f"domain.points = [{places}]\n{rest}{METRIC}",
        "earth.toml": GRID.replace(SIZE, EARTH) + METRIC,
        "two.csv": "0.5,0.5\n0.5,0.5\n",
        "named.csv": "," + ",".join("wxyz") + "\n" + "".join(f"{name}{',0.5,0.5,0,0'}\n" for name in "wxyz"),
        "held.csv": "",
    }.items():  # fmt: skip
        write(text, name)
    np.savetxt("many.csv", np.eye(_pairs.MOST_STATES + 1), delimiter=",")
    for name, states in {
        "label": states_csv("0,0,0", "1,1,1", "2,2,2", "3,3,home"),
        "order": states_csv("1,1,1", "0,0,0", "2,2,2", "3,3,3"),
        "beyond": states_csv("0,4,4"),
        "fewer": states_csv("0,0,0", "1,1,1"),
        "moved": states_csv("0,0,0", "1,1,1").replace("2.25,", "2.5,"),
        "nowhere": "row,state,label\n0,0,0\n",
        "earth": "row,state,label,latitude,longitude\n0,0,0,1.25,3.5\n",
        "north": "row,state,label,latitude,longitude\n0,0,0,north,3.5\n",
        "table": "row,label\n0,a\n",
        "word": states_csv("0,one,1"),
    }.items():
        shutil.copytree("chain", name)
        write(states, f"{name}/states.csv")
    chain = "--chain chain --steps 3"
    assert_wrong_usage({
        f"leakage city.toml {chain} --epsilon 1": "SPEC.toml states what a release reveals: no --epsilon",
        f"leakage city.toml {chain} --budgets b.csv": "no --epsilon, --budgets, --window or --example",
        f"leakage city.toml {chain} --window 2": "no --epsilon, --budgets, --window or --example",
        "leakage city.toml --example traffic --steps 3": "no --epsilon, --budgets, --window or --example",
        "leakage city.toml --steps 3": "give a matrix: --chain, --backward or --forward",
        "leakage city.toml --chain chain": "give --steps, the number of releases",
        "leakage city.toml --chain chain --steps 0": "--steps: is too small; found 0; must be an integer from 1",
        f"leakage none.toml {chain}": "none.toml",
        f"leakage two.csv {chain}": "two.csv",
        f"leakage floor.toml {chain}": "privacy[0]: bounds no pairs of secrets",
        f"leakage plane.toml {chain}": "privacy[0]: bounds all points of the plane, and two points of one cell differ",
        "leakage many.toml --backward many.csv --steps 3": "many.toml: has too many states without neighbours; found",
        "leakage city.toml --backward two.csv --steps 3": "backward (two.csv): has another number of states; found 2",
        "leakage city.toml --forward named.csv --header --index --steps 3": "forward (named.csv): has a name that",
        "leakage city.toml --chain label --steps 3": "label/states.csv, line 5: does not fit the specification; must",
        "leakage city.toml --chain order --steps 3": "order/states.csv, line 3: does not fit the specification",
        "leakage city.toml --chain beyond --steps 3": "beyond/states.csv, line 2: does not fit the specification",
        "leakage city.toml --chain fewer --steps 3": "backward (fewer/backward.csv): has another number of states",
        "leakage city.toml --chain moved --steps 3": "moved/states.csv, line 3: does not fit the specification",
        "leakage city.toml --chain nowhere --steps 3": "nowhere/states.csv, line 1: does not fit the specification",
        "leakage city.toml --chain table --steps 3": "table/states.csv, line 1: does not fit the specification",
        "leakage city.toml --chain word --steps 3": "word/states.csv, line 2: does not fit the specification",
        "leakage city.toml --chain earth --steps 3": "earth/states.csv, line 1: does not fit the specification",
        "leakage earth.toml --chain north --steps 3": "north/states.csv, line 2: does not fit the specification",
        f"leakage earth.toml {chain}": "Count the chain with this specification: mechdesign chain SPEC.toml",
        f"leakage city.toml {chain} -o held.csv": "already exists",
        f"leakage city.toml {chain} -o page.html": "the table is a .csv file, and its page the .html file beside it",
        f"leakage city.toml {chain} -o page": "the table is a .csv file",
        f"leakage city.toml {chain} -o no/page.csv": "no",
    })  # fmt: skip


def test_the_place_of_a_state_is_compared() -> None:
    write(GRID.replace(SIZE, EARTH) + METRIC, "e.toml")
    domain = md.read_spec("e.toml").domain
    rows = [f"{i},{i},{i},{lat!r},{lon!r}" for i, (lat, lon) in enumerate(domain.degrees.tolist())]
    for shift, wrong in ((0.0, False), (0.01, True)):
        moved = [row.replace(",1.25,", f",{1.25 + shift!r},") for row in rows]
        write("\n".join(["row,state,label,latitude,longitude", *moved]) + "\n", "chain/states.csv")
        line = ("leakage", "e.toml", "--chain", "chain", "--steps", "2")
        if wrong:
            assert_wrong_usage({" ".join(line): "chain/states.csv, line 2: does not fit the specification"})
        else:
            assert math.isfinite(json.loads(well(*line, "--json").stdout)["after"][-1]["all_pairs"])
