"""Memory: addresses that are never filled, a proof without room, and children that do not end."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

import mechdesign as md
from mechdesign.base import _machine as machine
from mechdesign.base import _process as process
from mechdesign.errors import BracketWarning, SolverError
from mechdesign.solve import _apart as apart
from mechdesign.solve._blocks import memory
from mechdesign.synthesis import _design as designs

resource = pytest.importorskip("resource")
DOMAIN = md.Domain.grid(columns=4, rows=3, width=4.0, height=3.0)
DISTANCE = md.distances.euclidean(DOMAIN)
PROBLEM = md.Problem(md.Prior.uniform(12), DISTANCE, [md.MetricPrivacy(1, DISTANCE)])


def test_addresses_that_are_never_filled_count_under_a_limit_of_addresses(tmp_path: Path, monkeypatch) -> None:
    page, limit = os.sysconf("SC_PAGE_SIZE"), 2**30
    (tmp_path / "self").mkdir()
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    monkeypatch.setattr(machine, "_OWN", tmp_path / "none")
    for name in ("RLIMIT_AS", "RLIMIT_DATA"):
        limits = {getattr(resource, name): limit}
        monkeypatch.setattr(resource, "getrlimit", lambda n, k=limits: (k.get(n, resource.RLIM_INFINITY),) * 2)
        for size, resident, data in ((60_000, 20_000, 15_000), (200_000, 20_000, 15_000)):
            (tmp_path / "self/statm").write_text(f"{size} {resident} 5 1 0 {data} 0\n")
            held = page * (size if name == "RLIMIT_AS" else data)
            assert machine.memory_below_limits() == limit - held
            # Of 400 MB that are never filled, a part is taken already.
            left = max(0, 400_000_000 - page * (size - resident)) if name == "RLIMIT_AS" else 0
            assert machine.memory_below_limits(400_000_000) == max(0, limit - held - left)


def test_the_block_method_reserves_them() -> None:
    free = memory.find_allowed_memory()
    assert free is None or free > 0
    before = resource.getrlimit(resource.RLIMIT_AS)
    held = (
        int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        if sys.platform == "linux"
        else 0
    )
    if not held:
        pytest.skip("the system does not tell what the process holds")
    resource.setrlimit(resource.RLIMIT_AS, (held + 2_000_000_000, before[1]))
    try:
        assert memory.find_allowed_memory() <= free
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


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
