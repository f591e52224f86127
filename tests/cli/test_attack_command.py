"""`mechdesign attack`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.base import _errors as errors


def test_attack(made):
    result = run("attack", made, "--json", "--pairwise")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    channel = md.Channel.load(made)
    prior, error = np.array([0.4, 0.3, 0.2, 0.1]), 1 - np.eye(4)
    for name, value in found["errors"].items():
        assert value == pytest.approx(getattr(md.attack, name)(channel, prior, error).distortion, rel=1e-6)
        per_secret = getattr(md.attack, name)(channel, prior, error).per_secret
        assert found["expected_errors"][name] == pytest.approx(prior @ per_secret, rel=1e-6)
    assert found["measure"] == "Hamming distance"
    # What a pair counts may be less than what the optimal attack errs by; the expected error never is.
    assert min(found["expected_errors"].values()) == pytest.approx(found["errors"]["optimal"])
    assert found["errors"]["pairwise_minimax"] < found["errors"]["optimal"]
    shown = run("attack", made, "--pairwise")
    for words in ("Hamming distance", "optimal", "Bayes", "prior-free", "min-max", "pairwise min-max"):
        assert words in shown.stdout


def test_attack_with_another_prior(made, tmp_path):
    (tmp_path / "p.csv").write_text("name,weight\na,1\nb,1\nc,1\nd,7\n")
    result = run("attack", made, "--prior", "p.csv", "--column", "weight", "--json")
    expected = md.attack.optimal(
        md.Channel.load(made), [0.1, 0.1, 0.1, 0.7], 1 - np.eye(4), truth=[0.4, 0.3, 0.2, 0.1]
    ).distortion
    assert json.loads(result.stdout)["errors"]["optimal"] == pytest.approx(expected)
    wrong = run("attack", made, "--prior", "p.csv")
    assert wrong.exit_code == 2
    assert "no column 'probability'" in wrong.stderr
    (tmp_path / "p.csv").write_text("probability\n1\n1\n")
    assert "found 2; must be 4" in run("attack", made, "--prior", "p.csv").stderr


def test_attacks_that_take_too_long(made, monkeypatch):
    def late(*_, **__):
        raise errors.TimeLimitError("late")

    monkeypatch.setattr("mechdesign.measures.attack.pairwise_minimax", late)
    assert "not found" not in run("attack", made).stdout
    assert "runs with --pairwise" in run("attack", made).stdout
    result = run("attack", made, "--time-limit", 5, "--pairwise")
    assert result.exit_code == 0
    assert "not found in 5 s" in result.stdout
    assert run("attack", made, "--time-limit", 0).exit_code == 2


def test_attack_needs_a_whole_export(made):
    (made / "channel.csv").unlink()
    result = run("attack", made)
    assert result.exit_code == 1
    assert "channel.csv is missing" in result.stderr


def test_another_prior_may_have_decimal_commas(made, tmp_path):
    (tmp_path / "p.csv").write_text("probability\n0.1\n0.2\n0.3\n0.4\n")
    expected = run("attack", made, "--prior", "p.csv", "--json")
    (tmp_path / "p.csv").write_text("probability;x\n0,1;a\n0,2;b\n0,3;c\n0,4;d\n")
    result = run("attack", made, "--prior", "p.csv", "--json")
    assert "commas are read as decimal marks" in result.stderr
    assert result.stdout == expected.stdout
