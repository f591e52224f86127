from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from click.testing import CliRunner, Result

from mechdesign import leakage
from mechdesign.cli import main
from mechdesign.cli._console import at_most

# The formulas hold for any two matrices, also for those that no chain has.
pytestmark = pytest.mark.filterwarnings("ignore::mechdesign.errors.CorrelationWarning")

MILD = np.array([[0.8, 0.2], [0.2, 0.8]])
OTHER = np.array([[0.8, 0.2], [0.1, 0.9]])


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savetxt("B.csv", MILD, delimiter=",")
    np.save("F.npy", OTHER)
    sparse.save_npz("S.npz", sparse.csr_array(OTHER))
    Path("I.csv").write_text("# identity\n1;0\n\n0;1\n")
    Path("bad.csv").write_text("0.5,0.4\n0.5,0.5\n")
    Path("text.csv").write_text("a,b\n0.5,0.5\n")
    Path("ragged.csv").write_text("0.5,0.5\n1\n")
    Path("empty.csv").write_text("\n")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_table(files: Path) -> None:
    result = run("leakage", "B.csv", "--forward", "F.npy", "--epsilon", "0.1", "--steps", "10", "--window", "3")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["release", "epsilon", "backward", "forward", "temporal"]
    total = leakage.temporal(np.full(10, 0.1), MILD, OTHER)
    assert lines[5].split()[0] == "4"
    shown = float(lines[5].split()[-1])
    # Losses are rounded up to 4 digits.
    assert total[4] <= shown <= total[4] * 1.001
    facts = dict(re.split(r"  +", line.strip()) for line in lines[13:])
    assert facts["each release, over an infinite horizon"] == at_most(leakage.supremum(0.1, MILD, OTHER))
    assert facts["any 3 successive releases together"] == at_most(leakage.windows([0.1] * 10, 3, MILD, OTHER).max())
    assert facts["all releases together"] == "1"


@pytest.mark.parametrize(("steps", "shown"), [(3, "0.3"), (6, "0.6"), (7, "0.7")])
def test_budgets_are_added_as_they_are_printed(files: Path, steps: int, shown: str) -> None:
    Path("I.csv").write_text("1,0\n0,1\n")
    result = run("leakage", "I.csv", "--epsilon", "0.1", "--steps", str(steps), "--window", str(steps))
    facts = [re.split(r"  +", line.strip()) for line in result.stdout.splitlines()]
    for name in ("largest leakage of one release", "all releases together"):
        assert [name, shown] in facts
    assert json.loads(run("leakage", "I.csv", "--epsilon", "0.1", "--steps", str(steps), "--json").stdout)["facts"][
        "total"
    ] == float(shown)


def test_json_csv_and_plot(files: Path) -> None:
    arguments = ["B.csv", "--epsilon", "0.1", "--steps", "60", "--json", "-o", "table.csv", "--plot", "p.png"]
    result = run("leakage", *arguments)
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    expected = leakage.temporal(np.full(60, 0.1), MILD)
    assert answer["temporal"] == expected.tolist()
    table = np.genfromtxt("table.csv", delimiter=",", names=True)
    assert table["temporal"].tolist() == expected.tolist()
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_no_bound(files: Path) -> None:
    result = run("leakage", "I.csv", "--epsilon", "0.1", "--steps", "50")
    assert "no bound" in result.stdout
    assert "10 more" in result.stdout
    answer = json.loads(run("leakage", "I.csv", "--epsilon", "0.1", "--steps", "3", "--json").stdout)
    assert answer["facts"]["supremum"] is None


def test_budgets_there_and_back(files: Path) -> None:
    result = run("budget", "--alpha", "1", "--steps", "30", "--backward", "B.csv", "--forward", "F.npy", "-o", "b.csv")
    assert result.exit_code == 0, result.output
    assert re.search(r"1 to 28, each +0\.2038", result.stdout)
    expected = leakage.allocate_budget(1.0, 30, MILD, OTHER)
    assert leakage.read_budgets("b.csv").tolist() == expected.tolist()
    back = run("leakage", "B.csv", "--forward", "S.npz", "--budgets", "b.csv")
    assert back.exit_code == 0, back.output
    assert re.search(r"largest leakage of one release +1\n", back.stdout)


def test_one_budget_for_ever_and_a_plot(files: Path) -> None:
    for_ever = run("budget", "--alpha", "1", "--backward", "B.csv", "--forward", "F.npy")
    assert re.search(r"all, for any number of releases +0\.2038", for_ever.stdout)
    assert re.search(r"^0 +1$", run("budget", "--alpha", "1", "--steps", "1").stdout, re.MULTILINE)
    answer = json.loads(run("budget", "--alpha", "1", "--steps", "3", "--json").stdout)
    assert answer["budgets"] == pytest.approx([1] * 3)
    result = run("budget", "--alpha", "1", "--steps", "5", "--backward", "B.csv", "--plot", "p.svg")
    assert result.exit_code == 0, result.output
    assert "<svg" in Path("p.svg").read_text(encoding="utf-8")


def test_warns_of_zero_budgets(files: Path) -> None:
    result = run("budget", "--alpha", "1", "--steps", "4", "--backward", "I.csv")
    assert result.exit_code == 0
    assert result.stderr.count("warning: no positive budget is possible over an infinite horizon") == 1
    assert result.stderr.count("warning: no positive budget is possible in the 2 releases") == 1


MANY = ["--epsilon", "1", "--steps", "2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["leakage", *MANY], "give a matrix"),
        (["leakage", "B.csv", "--epsilon", "1"], "give --epsilon and --steps"),
        (["leakage", "B.csv", "--epsilon", "1", "--budgets", "b.csv"], "give either --budgets or"),
        (["leakage", "B.csv", "--epsilon", "-1", "--steps", "2"], "--epsilon: is not accepted; found -1.0"),
        (["leakage", "B.csv", "--epsilon", "nan", "--steps", "2"], "--epsilon: is not accepted; found nan"),
        (["leakage", "bad.csv", *MANY], "backward (bad.csv)[0]: does not sum to 1; found 0.9"),
        (["leakage", "B.csv", "--forward", "bad.csv", *MANY], "forward (bad.csv)[0]: does not sum to 1; found 0.9"),
        (["leakage", "text.csv", *MANY], "text.csv, line 1: is a header; found 2 texts"),
        (["leakage", "ragged.csv", *MANY], "ragged.csv, line 2: has the wrong number of fields"),
        (["leakage", "empty.csv", *MANY], "empty.csv: is empty; must be at least one line of numbers"),
        (["leakage", "none.csv", *MANY], "none.csv: cannot be opened (No such file or directory)"),
        (["leakage", ".", *MANY], "cannot be opened (Is a directory)"),
        (["leakage", "B.csv", *MANY, "--plot", "p.xyz"], "--plot: has an unknown suffix; found 'p.xyz'"),
        (["leakage", "B.csv", *MANY, "-o", "B.csv/t.csv"], "cannot be"),
        (["leakage", "B.csv", *MANY, "-o", "."], "could not be written"),
        (["leakage", "B.csv", *MANY, "--window", "3"], "--window: is too large"),
        (["leakage", "B.csv", "--budgets", "B.csv"], "wrong header"),
        (["budget", "--alpha", "0", "--backward", "B.csv"], "alpha: leaves no budget; found 0.0"),
        (["budget", "--alpha", "1", "-o", "b.csv"], "give --steps"),
        (["budget", "--alpha", "1", "--steps", "2", "-o", "no/b.csv"], "could not be written"),
        (["budget", "--steps", "2"], "Missing option '--alpha'"),
    ],
)
def test_errors_name_the_remedy(files: Path, arguments: list[str], message: str) -> None:
    before = sorted(os.listdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
    assert sorted(os.listdir()) == before


def test_damaged_arrays(files: Path) -> None:
    Path("x.npy").write_bytes(b"junk")
    Path("x.npz").write_bytes(b"PK\x03\x04junk")
    for name, problem in (("x.npy", "is not a NumPy file"), ("x.npz", "is not a sparse matrix of SciPy")):
        assert f"{name}: {problem}" in run("leakage", name, *MANY).stderr


both_commands = pytest.mark.parametrize(
    "command", [["leakage", "B.csv", "--epsilon", "0.1"], ["budget", "--alpha", "1", "--backward", "B.csv"]]
)


@both_commands
def test_directions_of_different_chains_are_warned_of_once(files: Path, command: list[str]) -> None:
    result = run(*command, "--steps", "4", "--forward", "F.npy")
    assert result.exit_code == 0
    assert result.stderr.count("cannot both be correlations of one chain") == 1


@both_commands
def test_matrices_of_different_sizes_are_refused(files: Path, command: list[str]) -> None:
    Path("three.csv").write_text("1,0,0\n0,1,0\n0,0,1\n")
    result = run(*command, "--steps", "4", "--forward", "three.csv")
    assert result.exit_code == 2
    assert "another number of states" in result.stderr


def test_a_matrix_of_the_other_direction_is_told_of(files: Path) -> None:
    from mechdesign.data._chain_counts import CHAIN_COUNTS, counts_file
    from mechdesign.model._markov import MarkovChain

    chain = MarkovChain.from_traces([[0, 1, 1, 0, 1, 0, 0, 1]], n=2)
    content = {"forward.csv": b"0.25,0.75\n0.5,0.5\n", "backward.csv": b"0.3,0.7\n0.6,0.4\n"}
    for name, data in {**content, CHAIN_COUNTS: counts_file(chain, content)}.items():
        Path(name).write_bytes(data)
    words = "is the forward matrix of its chain, but is used as the backward matrix"
    assert words in run("leakage", "forward.csv", "--epsilon", "0.1", "--steps", "2").stderr
    assert words not in run("leakage", "backward.csv", "--epsilon", "0.1", "--steps", "2").stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("leakage B.csv --epsilon 0.1 --steps 3 -o a.svg --plot ./a.svg", "--plot: is the file of --output"),
        ("budget --alpha 1 --steps 3 --backward B.csv --tolerance 0.1", "give --cost with"),
        ("budget --alpha 1 --steps 3 --backward B.csv --cost c.csv --weights w.csv", "zero in every row"),
    ],
)
def test_options_without_a_meaning_are_refused(files: Path, line: str, words: str) -> None:
    Path("c.csv").write_text("epsilon,cost\n0,3\n1,1\n")
    Path("w.csv").write_text("weight\n0\n0\n0\n")
    result = run(*line.split())
    assert result.exit_code == 2
    assert words in result.stderr


def test_budgets_without_any_correlation_say_so(files: Path) -> None:
    assert "assumes that successive data are independent" in run("budget", "--alpha", "1", "--steps", "3").stderr
    assert "knows nothing" not in run("budget", "--alpha", "1", "--steps", "3", "--backward", "B.csv").stderr
