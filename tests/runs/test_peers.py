"""The comparison with libqif, but for libqif itself."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md
from mechdesign.runs._families import FAMILIES
from mechdesign.runs._phases import Verdict

_PATH = Path(__file__).parents[2] / "benchmarks" / "solvers" / "peers_qif.py"
_SPEC = importlib.util.spec_from_file_location("peers_qif", _PATH)
peers_qif = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(peers_qif)

PROBLEM = FAMILIES["grid"].make(16, 0)


def test_what_qif_returns_is_judged_like_any_solver():
    made = md.design(PROBLEM, tolerance=1e-9)
    answer = {"matrix": made.channel.matrix.tolist(), "seconds": 1.0, "version": "0"}
    row = peers_qif.judged(PROBLEM, answer, made.certificate.lower_bound)
    assert (row["claimed"], row["certified"]) == (Verdict.OPTIMAL, Verdict.OPTIMAL)
    assert row["tight_epsilon"] == pytest.approx(0.6)
    spoilt = made.channel.matrix.copy()
    spoilt[0, np.argmax(spoilt[0])] = 0.0
    row = peers_qif.judged(PROBLEM, answer | {"matrix": spoilt.tolist()}, made.certificate.lower_bound)
    assert row["certified"] is Verdict.NOT_PRIVATE
    assert row["tight_epsilon"] == math.inf


def test_failures_stay_in():
    assert peers_qif.judged(PROBLEM, {"failure": Verdict.TIMEOUT, "seconds": 5.0}, 0.0)["certified"] is Verdict.TIMEOUT
    empty = {"matrix": [], "seconds": 1.0, "version": "0"}
    assert peers_qif.judged(PROBLEM, empty, 0.0)["claimed"] is Verdict.FAILED


def test_an_interpreter_without_qif_is_a_failure_with_its_message():
    import sys

    row = peers_qif.ask(Path(sys.executable), PROBLEM, 60.0)
    if "failure" in row:
        assert row["failure"] is Verdict.FAILED
        assert "qif" in row["message"]
