"""`mechdesign leakage` and `mechdesign budget`: matrices and budgets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from cli_examples import assert_wrong_usage, flat, run, well, write

import mechdesign as md
from mechdesign import leakage
from mechdesign.data.matrices import read_budgets
from mechdesign.leakage._recursion import windows
from mechdesign.leakage.accounting import begin_ledger
from mechdesign.model._words import at_most

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

MILD = np.array([[0.8, 0.2], [0.2, 0.8]])
OTHER = np.array([[0.8, 0.2], [0.1, 0.9]])


@pytest.fixture(autouse=True)
def _files(_in_an_empty_folder: None) -> None:
    np.savetxt("B.csv", MILD, delimiter=",")
    np.save("F.npy", OTHER)
    sparse.save_npz("S.npz", sparse.csr_array(OTHER))
    write("1,0\n0,1\n", "I.csv")


# --- leakage ---


def test_the_table_rounds_up_what_the_library_finds() -> None:
    shown = well(
        "leakage", "--backward", "B.csv", "--forward", "F.npy", "--epsilon", "0.1", "--steps", "10", "--window", "3"
    ).stdout
    facts, _, table = shown.partition("\nreleases\n")
    lines = table.splitlines()
    assert lines[0].split() == ["release", "ε", "backward", "forward", "temporal"]
    total = leakage.temporal(np.full(10, 0.1), MILD, OTHER)
    assert lines[5].split()[0] == "4"
    assert total[4] <= float(lines[5].split()[-1]) <= total[4] * 1.001
    for name, value in {
        "each release without an end": at_most(leakage.supremum(0.1, MILD, OTHER)),
        "largest of one release": at_most(total.max()),
        "largest of a window": at_most(windows([0.1] * 10, 3, MILD, OTHER).max()),
        "all releases together": "1",
    }.items():
        assert re.search(rf"\n{name} +{value}\n", facts), name


def test_what_is_said_of_leakage_holds_for_an_epsilon_of_every_pair() -> None:
    line = ("--backward", "B.csv", "--steps", "3")
    for command in (("leakage", *line, "--epsilon", "1"), ("budget", *line, "--alpha", "1")):
        assert ", if ε bounds every pair of states." in well(*command).stdout
        assert "must bound every pair of states, and not be per unit of a distance" in flat(
            well(command[0], "-h").stdout
        )


def test_the_limit_of_budgets_is_told_in_full() -> None:
    for alpha in ("1", "0.12345678"):
        said = well("budget", "--backward", "B.csv", "--steps", 3, "--alpha", alpha).stdout
        assert f"no release leaks more than α = {alpha}, if" in said


def test_leakage_that_adds_up_is_warned_of_as_budgets_of_zero_are() -> None:
    reason = "two rows of the backward matrix have disjoint supports, so that leakage adds up without loss"
    given = ("--backward", "I.csv", "--steps", "4")
    for command in (("leakage", *given, "--epsilon", "0.1"), ("budget", *given, "--alpha", "1")):
        assert flat(well(*command).stderr).count(reason) == 1, command
    assert "disjoint" not in well("leakage", "--backward", "B.csv", "--steps", "4", "--epsilon", "0.1").stderr


def test_budgets_are_added_as_they_are_printed() -> None:
    for steps, said in ((3, "0.3"), (6, "0.6"), (7, "0.7")):
        line = ("leakage", "--backward", "I.csv", "--epsilon", "0.1", "--steps", steps, "--window", steps)
        facts = [re.split(r"  +", each.strip()) for each in well(*line).stdout.splitlines()]
        for name in ("largest of one release", "all releases together"):
            assert [name, said] in facts
        assert json.loads(well(*line, "--json").stdout)["all_releases_together"] == float(said)


def test_json_and_csv() -> None:
    arguments = ["--backward", "B.csv", "--epsilon", "0.1", "--steps", "60", "--json", "-o", "table.csv"]
    answer = json.loads(well("leakage", *arguments).stdout)
    expected = leakage.temporal(np.full(60, 0.1), MILD)
    table = np.genfromtxt("table.csv", delimiter=",", names=True)
    assert [each["temporal"] for each in answer["releases"]] == table["temporal"].tolist() == expected.tolist()
    assert answer["file"] == "table.csv"


def test_a_page_is_written_beside_the_table() -> None:
    line = ("leakage", "--backward", "B.csv", "--epsilon", "0.1", "--steps", "3")
    shown = well(*line, "--window", "2", "-o", "table.csv").stdout
    page = Path("table.html").read_text("utf-8")
    # The first sentence of the console is the verdict of the page.
    said = shown.splitlines()[0]
    assert said in re.sub("<.*?>", "", page)
    assert "table.html" in shown
    total = leakage.temporal(np.full(3, 0.1), MILD)
    back = leakage.backward(np.full(3, 0.1), MILD)
    assert f'<th scope="row">1</th><td data-head="backward (BPL)">{at_most(back[1])}</td>' in page
    for name, value in (
        ("Largest of one release", total.max()),
        ("Largest of a window", windows([0.1] * 3, 2, MILD).max()),
        ("Each release without an end", leakage.supremum(0.1, MILD)),
    ):
        assert f'<th scope="row">{name}</th><td>{at_most(value)}</td>' in page, name
    assert "The adversary knows Pr(state before | state now), a matrix of 2 states." in page
    assert "The adversary does not know Pr(next state | state now)." in page
    # No file is replaced, and a table has no other ending.
    Path("fourth.html").write_text("mine")
    assert "already exists" in flat(run(*line, "-o", "fourth.csv").stderr)
    assert not Path("fourth.csv").exists()
    assert "the table is a .csv file" in flat(run(*line, "-o", "plain.txt").stderr)
    assert not Path("plain.txt").exists()


def test_no_bound() -> None:
    shown = well("leakage", "--backward", "I.csv", "--epsilon", "0.1", "--steps", "70").stdout
    assert "no bound" in shown
    assert "10 more" in shown
    answer = json.loads(well("leakage", "--backward", "I.csv", "--epsilon", "0.1", "--steps", "3", "--json").stdout)
    assert answer["each_release_without_an_end"] == "inf"


def test_directions_are_told_apart() -> None:
    for line in ("leakage --backward B.csv --epsilon 0.1 --steps 4", "budget --alpha 1 --backward B.csv --steps 4"):
        said = well(*line.split(), "--forward", "F.npy").stderr
        assert said.count("cannot both be correlations of one chain") == 1


# --- budgets ---


def test_budgets_there_and_back() -> None:
    line = ("budget", "--alpha", "1", "--backward", "B.csv", "--forward", "F.npy")
    shown = well(*line, "--steps", "30", "-o", "b.csv").stdout
    assert re.search(r"1 to 28, each +0\.2038", shown)
    assert "0.2038, for any number of releases" in well(*line).stdout
    assert read_budgets("b.csv").tolist() == leakage.allocate_budget(1.0, 30, MILD, OTHER).tolist()
    back = well("leakage", "--backward", "B.csv", "--forward", "S.npz", "--budgets", "b.csv").stdout
    assert re.search(r"largest of one release +1\n", back)


def test_budgets_without_any_correlation_say_so() -> None:
    independent = "assumes that successive data are independent"
    assert independent in well("budget", "--alpha", "1", "--steps", "3").stderr
    found = json.loads(well("budget", "--alpha", "1", "--steps", "3", "--json").stdout)["budgets"]
    assert [(each["releases"], each["epsilon"]) for each in found] == [("0", 1), ("1", 1), ("2", 1)]
    assert independent not in well("budget", "--alpha", "1", "--steps", "5", "--backward", "B.csv").stderr


def test_the_folder_of_a_chain_stands_for_both_matrices() -> None:
    Path("chain").mkdir()
    for name, matrix in (("backward", MILD), ("forward", OTHER)):
        np.savetxt(f"chain/{name}.csv", matrix, delimiter=",")
    line = ("budget", "--alpha", "1", "--json")
    matrices = well(*line, "--backward", "B.csv", "--forward", "F.npy").stdout
    assert well(*line, "--chain", "chain").stdout == matrices
    leaks = ("leakage", "--epsilon", "0.1", "--steps", "3")
    matrices = well(*leaks, "--backward", "B.csv", "--forward", "F.npy").stdout
    assert well(*leaks, "--chain", "chain").stdout == matrices
    assert_wrong_usage({
        "budget --alpha 1 --chain chain --backward B.csv": "not both",
        "budget --alpha 1 --chain none": "--chain: is not a chain; found 'none'; must be a folder of",
    })  # fmt: skip


def test_budgets_of_zero_are_warned_of_and_none_without_an_end_is_refused() -> None:
    found = well("budget", "--alpha", "1", "--steps", "4", "--backward", "I.csv")
    assert "Releases with ε = 0 must not take place: nothing is left for them." in found.stdout
    said = found.stderr
    assert said.count("warning: no positive budget is possible between the first and the last release") == 1
    assert "spend α/T at each of T releases" in flat(said)
    assert_wrong_usage({"budget --alpha 1 --backward I.csv": "--alpha: leaves no budget for releases without an end"})


def test_numbers_of_steps_are_bounded() -> None:
    begin_ledger("l.json", 2)
    made = "ledger series l.json --alpha 1 --backward B.csv --forward none --history others --steps"
    lines = ("budget --alpha 1 --backward B.csv --steps", "leakage --backward B.csv --epsilon 0.1 --steps", made)
    for number, says in ((10**20, "large"), (100_001, "large"), (0, "small"), (-1, "small")):
        assert_wrong_usage({f"{line} {number}": f"--steps: is too {says}; found {number}" for line in lines})
    for number, says in ((10**20, "large"), (4, "large"), (0, "small"), (-1, "small")):
        line = f"leakage --backward B.csv --epsilon 0.1 --steps 3 --window {number}"
        assert_wrong_usage({line: f"--window: is too {says}; found {number}; must be an integer from 1 to 3"})
    assert "1 to 99998, each" in well("budget", "--alpha", "1", "--backward", "B.csv", "--steps", "100000").stdout


# --- rows of zeros ---


def test_a_row_of_zeros_may_be_any_row_and_is_counted() -> None:
    matrix = np.array([[0.5, 0.3, 0.2], [0, 0, 0], [0.1, 0.8, 0.1]])
    np.savetxt("Z.csv", matrix, delimiter=",")
    np.save("Z.npy", matrix)
    sparse.save_npz("Z.npz", sparse.csr_array(matrix))
    for name in ("Z.csv", "Z.npy", "Z.npz"):
        found = well("leakage", "--backward", name, "--epsilon", "0.1", "--steps", "2", "--json")
        assert f"{name}: 1 of 3 rows are zeros, so they are unknown and may be any row" in flat(found.stderr)
        expected = 0.1 + np.log1p(0.9 * np.expm1(0.1))
        assert json.loads(found.stdout)["largest_of_one_release"] == pytest.approx(expected, rel=1e-14)
        found = well("budget", "--alpha", "1", "--forward", name, "--json")
        assert "1 of 3 rows are zeros" in flat(found.stderr)
        assert json.loads(found.stdout)["constant"] == leakage.constant_budget(1.0, forward=matrix)
    assert "rows are zeros" not in well("leakage", "--backward", "B.csv", "--epsilon", "0.1", "--steps", "2").stderr


def test_names_of_both_directions_are_matched() -> None:
    forward = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]])
    chain = md.MarkovChain(forward)
    backward = chain.reverse(chain.stationary()).matrix
    order = [2, 0, 1]
    for name, matrix, places in (("b.csv", backward, [0, 1, 2]), ("f.csv", forward, order)):
        lines = ["," + ",".join("abc"[place] for place in places)]
        lines += ["abc"[row] + "," + ",".join(map(repr, matrix[row, places].tolist())) for row in places]
        write("\n".join(lines) + "\n", name)
    line = (
        "leakage",
        "--backward",
        "b.csv",
        "--epsilon",
        "0.1",
        "--steps",
        "3",
        "--forward",
        "f.csv",
        "--header",
        "--index",
        "--json",
    )
    found = well(*line)
    assert "warning" not in found.stderr
    expected = leakage.temporal([0.1] * 3, backward, forward)
    np.testing.assert_allclose(
        [each["temporal"] for each in json.loads(found.stdout)["releases"]], expected, rtol=1e-14
    )
    write(Path("f.csv").read_text().replace("a", "d"), "f.csv")
    assert_wrong_usage({" ".join(line): "forward (f.csv)"})


# --- wrong usage ---


def test_wrong_usage() -> None:
    for name, text in {
        "bad.csv": "0.5,0.4\n0.5,0.5\n",
        "text.csv": "a,b\n0.5,0.5\n",
        "ragged.csv": "0.5,0.5\n1\n",
        "empty.csv": "\n",
        "zeros.csv": "0,0\n0,0\n",
        "half.csv": "0.5,0.25\n0,0\n",
        "word.csv": "0.5,0.5\nany\n",
        "three.csv": "1,0,0\n0,1,0\n0,0,1\n",
        "x.npy": "junk",
        "x.npz": "PK\x03\x04junk",
    }.items():
        write(text, name)
    many = "--epsilon 1 --steps 2"
    assert_wrong_usage(
        {
            f"leakage {many}": "give a matrix",
            "leakage --backward B.csv --epsilon 1": "--epsilon and --steps",
            "leakage --backward B.csv --epsilon 1 --budgets b.csv": "give either --budgets, or",
            "leakage --backward B.csv --epsilon -1 --steps 2": "--epsilon: is not accepted; found -1.0",
            "leakage --backward B.csv --epsilon nan --steps 2": "--epsilon: is not accepted; found nan",
            f"leakage --backward bad.csv {many}": "backward (bad.csv)[0]: does not sum to 1; must be",
            f"leakage --backward B.csv --forward bad.csv {many}": "forward (bad.csv)[0]: does not sum to 1; must be",
            f"leakage --backward B.csv --forward three.csv {many}": "another number of states",
            f"leakage --backward zeros.csv {many}": "backward (zeros.csv): has no known row",
            f"leakage --backward half.csv {many}": "backward (half.csv)[0]: does not sum to 1; must be",
            f"leakage --backward word.csv {many}": "word.csv, line 2",
            f"leakage --backward text.csv {many}": "text.csv, line 1: holds texts",
            f"leakage --backward ragged.csv {many}": "ragged.csv, line 2: has the wrong number of fields",
            f"leakage --backward empty.csv {many}": "empty.csv: contains no numbers",
            f"leakage --backward none.csv {many}": "none.csv: cannot be opened (No such file or directory)",
            f"leakage --backward . {many}": "cannot be opened (Is a directory)",
            f"leakage --backward x.npy {many}": "x.npy: is damaged",
            f"leakage --backward x.npz {many}": "x.npz: is damaged",
            f"leakage --chain chain --backward B.csv {many}": "not both",
            f"leakage --example traffic --backward B.csv {many}": "instead",
            f"leakage --backward B.csv {many} -o B.csv/t.csv": "cannot be",
            f"leakage --backward B.csv {many} -o .": "could not be written",
            f"leakage --backward B.csv {many} --window 3": "--window: is too large",
            "leakage --backward B.csv --budgets B.csv": "B.csv, line 1",
            "budget --alpha 0 --backward B.csv": "alpha: leaves no budget; found 0.0",
            "budget --alpha 1 -o b.csv": "give --steps",
            "budget --alpha 1 --steps 2 -o no/b.csv": "could not be written",
            "budget --steps 2": "Missing option '--alpha'",
            "budget --alpha 1 --backward B.csv --steps 4 --forward three.csv": "another number of states",
        }
    )
