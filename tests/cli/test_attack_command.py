"""`mechdesign attack`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, well, write

import mechdesign as md
from mechdesign.base import _errors as errors

FUNCTIONS = {
    "optimal": "optimal",
    "bayes": "Bayes",
    "prior_free": "prior-free",
    "minimax": "min-max",
    "pairwise_minimax": "pairwise min-max",
}


def attacks(*arguments: object) -> dict[str, dict[str, float]]:
    """Return the rows of the table of attacks by the name of the attack."""
    return {each["attack"]: each for each in json.loads(well("attack", *arguments, "--json").stdout)["attacks"]}


def test_errors_are_those_of_the_library(made: Path) -> None:
    found = attacks(made, "--pairwise")
    channel = md.Channel.load(made)
    prior, error = np.array([0.4, 0.3, 0.2, 0.1]), 1 - np.eye(4)
    for name, shown in FUNCTIONS.items():
        attacked = getattr(md.attack, name)(channel, prior, error)
        assert found[shown]["value"] == pytest.approx(attacked.distortion, rel=1e-6), name
        assert found[shown]["expected_error"] == pytest.approx(prior @ attacked.per_secret, rel=1e-6), name
    # What a pair counts may be less than what the optimal attack errs by; the expected error never is.
    best = found["optimal"]["value"]
    assert min(each["expected_error"] for each in found.values()) == pytest.approx(best)
    assert found["pairwise min-max"]["value"] < best
    assert "pairwise min-max" in well("attack", made, "--pairwise").stdout


def test_another_prior_is_believed_and_the_true_one_weighs(made: Path) -> None:
    write("weight\n1\n1\n1\n7\n", "p.csv")
    expected = md.attack.optimal(
        md.Channel.load(made), [0.1, 0.1, 0.1, 0.7], 1 - np.eye(4), truth=[0.4, 0.3, 0.2, 0.1]
    ).distortion
    found = attacks(made, "--prior", "p.csv")["optimal"]
    assert found["value"] == found["expected_error"] == pytest.approx(expected)


def test_attacks_that_take_too_long(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object, **__: object) -> None:
        raise errors.TimeLimitError("late")

    monkeypatch.setattr("mechdesign.measures.attack.pairwise_minimax", late)
    assert "not found in 60 s" in well("attack", made, "--pairwise").stdout
    assert attacks(made, "--pairwise")["pairwise min-max"]["expected_error"] is None


def test_wrong_usage(made: Path) -> None:
    write("name,weight\na,1\nb,1\nc,1\nd,7\n", "p.csv")
    write("weight\n1\n1\n", "two.csv")
    write("weight\n0\n0\n0\n0\n", "none.csv")
    assert_wrong_usage(
        {
            "attack made --prior p.csv": "p.csv, line 1: has no column 'label'",
            "attack made --prior two.csv": "found 2; must be 4",
            "attack made --prior none.csv": "none.csv: has no positive weight",
        }
    )
    (made / "channel.csv").unlink()
    assert_wrong_usage({"attack made": "channel.csv is missing"})
