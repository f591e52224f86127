from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sparse
from click.testing import CliRunner, Result

from mechdesign import leakage as room
from mechdesign.leakage_commands import budget, leakage, read_matrix

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


def run(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments))  # type: ignore[arg-type]


def test_table(files: Path) -> None:
    result = run(leakage, "B.csv", "--forward", "F.npy", "--epsilon", "0.1", "--steps", "10", "--window", "3")
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].split() == ["release", "epsilon", "backward", "forward", "temporal"]
    total = room.temporal(np.full(10, 0.1), MILD, OTHER)
    assert float(lines[5].split()[-1]) == pytest.approx(total[4], abs=1e-6)
    assert f"for ever: {room.supremum(0.1, MILD, OTHER):.6f}" in result.output
    assert "any 3 together" in result.output


def test_json_csv_and_plot(files: Path) -> None:
    arguments = ["B.csv", "--epsilon", "0.1", "--steps", "60", "--json", "-o", "table.csv", "--plot", "p.png"]
    result = run(leakage, *arguments)
    assert result.exit_code == 0, result.output
    answer = json.loads(result.output)
    expected = room.temporal(np.full(60, 0.1), MILD)
    assert answer["temporal"] == expected.tolist()
    table = np.genfromtxt("table.csv", delimiter=",", names=True)
    assert table["temporal"].tolist() == expected.tolist()
    assert Path("p.png").read_bytes().startswith(b"\x89PNG")


def test_no_bound(files: Path) -> None:
    result = run(leakage, "I.csv", "--epsilon", "0.1", "--steps", "50")
    assert "go on for ever: no bound" in result.output
    assert "10 more" in result.output
    assert (
        json.loads(run(leakage, "I.csv", "--epsilon", "0.1", "--steps", "3", "--json").output)["facts"]["supremum"]
        is None
    )


def test_budgets_there_and_back(files: Path) -> None:
    result = run(budget, "--alpha", "1", "--steps", "30", "--backward", "B.csv", "--forward", "F.npy", "-o", "b.csv")
    assert result.exit_code == 0, result.output
    assert "each of the 28 between: 0.203872" in result.output
    expected = room.allocate_budget(1.0, 30, MILD, OTHER)
    assert room.read_budgets("b.csv").tolist() == expected.tolist()
    back = run(leakage, "B.csv", "--forward", "S.npz", "--budgets", "b.csv")
    assert back.exit_code == 0, back.output
    assert "the most that one release leaks: 1.000000" in back.output


def test_one_budget_for_ever_and_a_plot(files: Path) -> None:
    assert (
        "constant, for any number of releases: 0.203872"
        in run(budget, "--alpha", "1", "--backward", "B.csv", "--forward", "F.npy").output
    )
    assert run(budget, "--alpha", "1", "--steps", "1").output.endswith("one release: 1\n")
    result = run(budget, "--alpha", "1", "--steps", "5", "--backward", "B.csv", "--plot", "p.svg")
    assert result.exit_code == 0, result.output
    assert "<svg" in Path("p.svg").read_text()


def test_warns_of_zero_budgets(files: Path) -> None:
    result = run(budget, "--alpha", "1", "--steps", "4", "--backward", "I.csv")
    assert result.exit_code == 0
    assert "warning: no positive budget is possible for ever" in result.stderr


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        (leakage, ["--epsilon", "1", "--steps", "2"], "give a matrix"),
        (leakage, ["B.csv", "--epsilon", "1"], "give --epsilon and --steps"),
        (leakage, ["B.csv", "--epsilon", "-1", "--steps", "2"], r"epsilons[0]: is not accepted; found -1.0"),
        (leakage, ["bad.csv", "--epsilon", "1", "--steps", "2"], "bad.csv)[0]: does not sum to 1; found 0.9"),
        (leakage, ["text.csv", "--epsilon", "1", "--steps", "2"], "text.csv, line 1: is not a row of numbers"),
        (leakage, ["ragged.csv", "--epsilon", "1", "--steps", "2"], "ragged.csv, line 2: differs in length"),
        (leakage, ["empty.csv", "--epsilon", "1", "--steps", "2"], "holds no numbers"),
        (leakage, ["none.csv", "--epsilon", "1", "--steps", "2"], "does not exist"),
        (leakage, ["B.csv", "--epsilon", "1", "--steps", "2", "--plot", "p.xyz"], "p.xyz: cannot be written"),
        (leakage, ["B.csv", "--epsilon", "1", "--steps", "2", "-o", "no/t.csv"], "cannot be written"),
        (leakage, ["B.csv", "--epsilon", "1", "--steps", "2", "--window", "3"], "width: is too large"),
        (budget, ["--alpha", "0", "--backward", "B.csv"], "alpha: leaves no budget; found 0.0"),
        (budget, ["--alpha", "1", "-o", "b.csv"], "give --steps"),
        (budget, ["--alpha", "1", "--steps", "2", "-o", "no/b.csv"], "could not be written"),
        (leakage, ["B.csv", "--budgets", "B.csv"], "wrong header"),
    ],
)
def test_errors_name_the_remedy(files: Path, command: object, arguments: list[str], message: str) -> None:
    result = run(command, *arguments)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output


def test_damaged_arrays(files: Path) -> None:
    Path("x.npy").write_bytes(b"junk")
    Path("x.npz").write_bytes(b"PK\x03\x04junk")
    for name in ("x.npy", "x.npz"):
        assert "cannot be read as a matrix" in run(leakage, name, "--epsilon", "1", "--steps", "2").output
    assert read_matrix(Path("I.csv")).tolist() == [[1, 0], [0, 1]]
