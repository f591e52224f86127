"""Memory: what the machine has, and what the limits of a process and its container leave."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mechdesign.base import _machine as limits
from mechdesign.base._machine import free_memory, memory_below_limits
from mechdesign.certify import _memory as memory
from mechdesign.errors import CertificateError
from mechdesign.solve._blocks.memory import find_allowed_memory

resource = pytest.importorskip("resource", reason="limits of addresses are those of POSIX")
GIB = 2**30


@pytest.fixture(name="group")
def machine(tmp_path, monkeypatch):
    """Give a machine with 8 GiB available; the function limits a control group of the process."""
    monkeypatch.setattr(limits, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(limits, "_OWN_GROUP", tmp_path / "cgroup")
    monkeypatch.setattr(limits, "_GROUPS", tmp_path / "groups")
    monkeypatch.setitem(sys.modules, "psutil", None)
    (tmp_path / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable: {8 * 2**20} kB\n")
    (tmp_path / "cgroup").write_text("0::/user/job\n")

    def write(folder: str, most: str, held: int, unused: int) -> None:
        place = tmp_path / "groups" / folder
        place.mkdir(parents=True, exist_ok=True)
        stat = f"anon 5\ninactive_file {unused}\n"
        for name, text in (("memory.max", most), ("memory.current", str(held)), ("memory.stat", stat)):
            (place / name).write_text(f"{text}\n")

    return write


def test_without_limits_it_is_what_the_machine_has(group, monkeypatch):
    assert memory_below_limits() is None
    assert free_memory() == 8 * GIB
    Path(limits._MEMINFO).unlink()
    assert free_memory() is None
    monkeypatch.delitem(sys.modules, "psutil")
    assert free_memory() > 0


def test_the_tightest_of_all_groups_above_counts(group):
    group("user/job", "max", 7, 0)
    assert memory_below_limits() is None
    group("user", str(2 * GIB), GIB, GIB // 4)
    assert free_memory() == memory_below_limits() == GIB + GIB // 4
    group("user/job", str(GIB), GIB // 2, 0)
    assert memory_below_limits() == GIB // 2
    group("user/job", str(GIB), 2 * GIB, 0)
    assert memory_below_limits() == 0


def test_addresses_count_with_those_that_are_never_filled(group, tmp_path, monkeypatch):
    page, stated = resource.getpagesize(), {resource.RLIMIT_AS: 4 * GIB}
    monkeypatch.setattr(resource, "getrlimit", lambda number: (stated[number], resource.RLIM_INFINITY))
    monkeypatch.setattr(limits, "_STATM", tmp_path / "statm")
    # A process with 2 GiB of addresses, half of them filled.
    (tmp_path / "statm").write_text(f"{2 * GIB // page} {GIB // page} 0 0 0 0 0\n")
    assert memory_below_limits() == memory_below_limits(GIB) == 2 * GIB
    assert free_memory(GIB + 2**20) == 2 * GIB - 2**20
    stated[resource.RLIMIT_AS] = GIB
    assert memory_below_limits() == 0
    group("user", str(GIB), GIB // 2, 0)
    stated[resource.RLIMIT_AS] = resource.RLIM_INFINITY
    assert memory_below_limits(GIB) == GIB // 2
    monkeypatch.setitem(sys.modules, "resource", None)
    assert memory_below_limits(GIB) == GIB // 2


def test_in_a_container_the_group_is_at_the_root(group):
    group(".", str(3 * GIB), GIB, 0)
    assert free_memory() == 2 * GIB
    group(".", "many", GIB, 0)
    assert free_memory() == 8 * GIB


def test_estimates_and_refusals_are_measured_by_them(group, monkeypatch):
    group("user", str(GIB), 0, 0)
    most = find_allowed_memory()
    assert most is not None
    assert GIB <= most < 8 * GIB
    # A limit of one's own does not lift that of the container.
    assert find_allowed_memory(100 * GIB) == pytest.approx(most, rel=0.01)
    assert find_allowed_memory(GIB / 2) == GIB / 2
    for stated in ("", "8"):
        monkeypatch.setenv(memory.VARIABLE, stated)
        memory.require_room(GIB // 2, 0, "verifying")
        with pytest.raises(CertificateError, match=r"GiB are allowed or left"):
            memory.require_room(2 * GIB, 0, "verifying")
