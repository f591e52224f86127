"""`python -m mechdesign.certify DIR`, in this process."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from certify_examples import line
from test_verify import FILES, OLD, put, repair

from mechdesign.certify.__main__ import main
from mechdesign.certify._bundle import encode
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._stated import Stated
from mechdesign.certify._table import exact_lines

USAGE = "usage: python -m mechdesign.certify DIR [--memory GIB]\n"


@pytest.mark.parametrize("asked", ["-h", "--help"])
def test_help_is_printed(capsys: pytest.CaptureFixture[str], asked: str) -> None:
    assert main([asked]) == 0
    assert capsys.readouterr() == (USAGE, "")


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["-x"], ["--force"], ["-h", "-h"], ["-h", "a"]])
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", USAGE)


def test_what_is_proved_is_printed_line_by_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(OLD)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == f"{OLD} verifies."
    assert [each.partition(":")[0] for each in lines[1:5]] == [
        "metric privacy, epsilon 0.7",
        "threshold privacy, epsilon 1.5, radius 2",
        "graph privacy, epsilon 1",
        "distortion privacy, minimum 0.2",
    ]
    assert lines[5].startswith("expected cost under the prior in the files: 0.")
    assert "; no such channel costs less than 0." in lines[5]
    assert lines[6:] == [
        "stated, not proved: labels and places in channel.npz: observables, secrets, secrets_points",
        "stated, not proved: metadata: observables, secrets, title",
        "stated, not proved: provenance: the maker of the channel and the method",
    ]


def test_files_that_nothing_proves_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence = line(4, 0.6)
    table = "".join(exact_lines(evidence.numerators, evidence.exponent, "0123", "0123")).encode()
    put(tmp_path, encode(evidence, certify(evidence), files={"channel.csv": table, "report.html": b"<p>"}))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[6:] == ["stated, not proved: report.html"]


def test_the_reason_and_the_pair_are_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    put(tmp_path, repair(FILES, lambda d: d["requirements"][0].update(epsilon="0.5")))
    assert main([str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{tmp_path} does not verify: requirements[0] (metric privacy, epsilon 0.5) does not hold")
    assert "(worst pair of secrets: " in err
    put(tmp_path, repair(FILES, lambda d: d["certificate"].update(holds=False)))
    assert main([str(tmp_path)]) == 1
    assert "pair of secrets" not in capsys.readouterr().err


def test_a_radius_is_printed_where_there_is_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence = line(
        3, 0.6, requirements=(Stated.threshold(Fraction(2), np.ones((3, 3)), Fraction(1)),), multipliers=None
    )
    put(tmp_path, encode(evidence, certify(evidence)))
    assert main([str(tmp_path)]) == 0
    assert "threshold privacy, epsilon 2, radius 1: holds; least epsilon " in capsys.readouterr().out


def test_the_worst_cost_is_printed_where_it_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence = Evidence([[1, 1], [1, 1]], 1, [0.75, 0.25], [[0.0, 1.0], [2.0, 0.0]], "worst", ())
    put(tmp_path, encode(evidence, certify(evidence)))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "worst cost 1.0; no such channel costs less than 0.0"
