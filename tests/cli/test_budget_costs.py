"""The command budget with costs: from files and from a specification, with weights and windows; and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from mechdesign import leakage
from mechdesign.cli import main
from mechdesign.data._budgets import read_weights
from mechdesign.errors import InputError

MILD = np.array([[0.8, 0.2], [0.2, 0.8]])
CURVE = ([0.0, 0.5, 1.0, 2.0], [2.0, 1.0, 0.5, 0.2])
SPEC = """
domain.labels = ["a", "b", "c"]
prior.uniform = true
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savetxt("B.csv", MILD, delimiter=",")
    points = [f"{epsilon},{cost}" for epsilon, cost in zip(*CURVE, strict=True)]
    Path("one.csv").write_text("epsilon,cost\n" + "\n".join(points) + "\n")
    Path("each.csv").write_text("step,epsilon,cost\n" + "".join(f"{step},{p}\n" for step in range(3) for p in points))
    Path("rising.csv").write_text("epsilon,cost\n0,1\n1,2\n")
    Path("order.csv").write_text("step,epsilon,cost\n0,0,1\n2,0,1\n")
    Path("head.csv").write_text("eps,cost\n0,1\n")
    Path("far.csv").write_text("epsilon,cost\n3,1\n4,0\n")
    Path("weights.csv").write_text("weight\n1\n0\n2\n")
    Path("negative.csv").write_text("weight\n1\n-1\n")
    Path("spec.toml").write_text(SPEC)
    Path("two.toml").write_text(
        SPEC.replace("privacy = [", 'privacy = [{ kind = "metric", epsilon = 2, distance = "hamming" }, ')
    )
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["budget", "--alpha", "1", "--backward", "B.csv", *arguments])


def test_one_curve_for_all(files: Path) -> None:
    result = run("--steps", "3", "--cost", "one.csv", "--json", "-o", "b.csv", "--plot", "b.png")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    best = leakage.best_budgets(1.0, [CURVE] * 3, MILD)
    assert answer["budgets"] == best.epsilons.tolist() == leakage.read_budgets("b.csv").tolist()
    assert answer["lower_bound"] <= answer["cost"] <= answer["allocated"]
    assert Path("b.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("steps", ["012", "021", "123", "001"])
def test_weights_beside_steps_are_those_of_their_releases(tmp_path: Path, steps: str) -> None:
    (tmp_path / "w.csv").write_text("step,weight\n" + "".join(f"{step},{n}\n" for n, step in enumerate(steps)))
    if steps == "012":
        assert read_weights(tmp_path / "w.csv").tolist() == [0, 1, 2]
        return
    with pytest.raises(InputError, match=r"row \d: is out of order; .* must be step"):
        read_weights(tmp_path / "w.csv")


def test_a_table_with_weights_and_windows(files: Path) -> None:
    result = run("--cost", "each.csv", "--weights", "weights.csv", "--window", "2")
    assert result.exit_code == 0, result.output
    assert "No 2 successive releases leak more than 1." in result.stdout
    assert "no budgets cost less than" in result.stdout
    answer = json.loads(run("--cost", "each.csv", "--weights", "weights.csv", "--window", "2", "--json").stdout)
    assert leakage.windows(answer["budgets"], 2, MILD).max() <= 1


def test_a_specification_is_designed_for(files: Path) -> None:
    result = run("--cost", "spec.toml", "--weights", "weights.csv", "--json", "-o", "b.csv")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert leakage.temporal(answer["budgets"], MILD).max() <= 1
    # Randomised response on three values: 2 / (2 + e^ε) is the least cost, and 2/3 that of releasing nothing.
    cost = sum(weight * 2 / (2 + np.exp(epsilon)) for weight, epsilon in zip([1, 0, 2], answer["budgets"], strict=True))
    assert answer["cost"] == pytest.approx(cost, rel=1e-6)
    assert answer["lower_bound"] <= answer["cost"]
    assert "costs are certified at" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--weights", "weights.csv"], "give --cost"),
        (["--cost", "one.csv"], "do not give their number"),
        (["--cost", "one.csv", "--steps", "2", "--weights", "weights.csv"], "different numbers of releases, [2, 3]"),
        (["--cost", "rising.csv", "--steps", "2"], "must not rise"),
        (["--cost", "order.csv"], "row 2: is out of order; found 9 (9 stands for any digit); must be step 1"),
        (["--cost", "head.csv", "--steps", "2"], "has the wrong header"),
        (["--cost", "far.csv", "--steps", "2"], "is larger than the budget of any release"),
        (["--cost", "one.csv", "--weights", "negative.csv"], "row 2, column weight: is not a weight"),
        (["--cost", "none.csv", "--steps", "2"], "cannot be opened"),
        (["--cost", "two.toml", "--steps", "2"], "has 2 tables with epsilon"),
        (["--cost", "one.csv", "--steps", "2", "--tolerance", "-1"], "tolerance: is negative"),
        (["--cost", "one.csv", "--steps", "2", "--window", "3"], "window: is too large"),
    ],
)
def test_wrong_input_ends_with_2(files: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
