"""`python -m mechdesign.certify DIR`, in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundles import line, made, put, repair, whole

from mechdesign.certify.__main__ import main
from mechdesign.certify._bundle import encode
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence

USAGE = "usage: python -m mechdesign.certify DIR\n"


def test_help_and_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for asked in (["-h"], ["--help"]):
        assert main(asked) == 0
        assert capsys.readouterr() == (USAGE, "")
    for wrong in ([], ["a", "b"], ["-x"], ["--force"], ["-h", "-h"], ["-h", "a"]):
        assert main(wrong) == 2, wrong
        assert capsys.readouterr() == ("", USAGE)


def test_what_is_proved_is_printed_line_by_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    put(tmp_path, whole(line(4, 0.6), metadata={"title": "line"}))
    assert main([str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0] == f"{tmp_path} verifies."
    assert [each.partition(":")[0] for each in lines[1:5]] == [
        "metric privacy, epsilon 0.6",
        "graph privacy, epsilon 0.6",
        "threshold privacy, epsilon 1.2, radius 2.5",
        "distortion privacy, minimum 0.1",
    ]
    assert lines[5].startswith("expected cost under the prior in the files: 0.")
    assert "; no such channel costs less than 0." in lines[5]
    assert lines[6:] == [
        "stated, not proved: labels and places in channel.npz: observables, secrets",
        "stated, not proved: metadata: title",
        "stated, not proved: report.html",
    ]


def test_the_reason_and_the_pair_are_printed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    put(tmp_path, repair(made("expected cost"), lambda d: d["requirements"][0].update(epsilon="0.5")))
    assert main([str(tmp_path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{tmp_path} does not verify: requirements[0] (metric privacy, epsilon 0.5) does not hold")
    assert "(worst pair of secrets: " in err
    put(tmp_path, repair(made("expected cost"), lambda d: d["certificate"].update(holds=False)))
    assert main([str(tmp_path)]) == 1
    assert "pair of secrets" not in capsys.readouterr().err


def test_the_worst_cost_is_printed_where_it_counts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evidence = Evidence([[1, 1], [1, 1]], 1, [0.75, 0.25], [[0.0, 1.0], [2.0, 0.0]], "worst", ())
    put(tmp_path, encode(evidence, certify(evidence)))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "worst cost 1.0; no such channel costs less than 0.0"
