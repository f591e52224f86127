"""A proof without room, and children that do not end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.base import _process as process
from mechdesign.errors import BracketWarning, SolverError
from mechdesign.solve import _apart as apart
from mechdesign.synthesis import _design as designs

DOMAIN = md.Domain.grid(columns=4, rows=3, width=4.0, height=3.0)
DISTANCE = md.distances.euclidean(DOMAIN)
PROBLEM = md.Problem(md.Prior.uniform(12), DISTANCE, [md.MetricPrivacy(1, DISTANCE)])


@pytest.mark.parametrize("solver", ["block", "highs"])
def test_without_room_for_the_proof_the_channel_is_kept(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    best = md.design(PROBLEM, solver=solver)
    recover, calls = designs.recover_design, []

    def tight(form, candidate, *rest):
        calls.append(candidate.multipliers is not None)
        if candidate.multipliers is not None:
            raise MemoryError
        return recover(form, candidate, *rest)

    monkeypatch.setattr(designs, "recover_design", tight)
    with pytest.warns(BracketWarning):
        made = md.design(PROBLEM, solver=solver)
    assert calls == [True, False]
    assert made.certificate.holds
    assert made.certificate.lower_bound == 0
    assert made.certificate.expected_cost == pytest.approx(best.certificate.expected_cost, rel=1e-5)
    assert "not enough memory" in made.summary.message


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="process groups are those of POSIX")
def test_a_wrapper_script_whose_child_lives_on_is_not_waited_for(tmp_path: Path, monkeypatch) -> None:
    script = tmp_path / "app.sh"
    script.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nsleep 300\n")
    script.chmod(0o755)
    monkeypatch.setattr(process, "GREETING_S", 1.0)
    monkeypatch.setattr(apart, "GREETING_S", 1.0)
    monkeypatch.setattr(sys, "executable", str(script))
    began = time.monotonic()
    with pytest.raises(SolverError, match="did not identify itself"):
        md.design(PROBLEM, solver="highs-pdlp")
    assert time.monotonic() - began < 60
    group = int((tmp_path / "pid").read_text())
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the group of the script lives on")
