"""Memory: what the machine has, and what limits of the process and of its container leave."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from rows import each_row

from mechdesign.base import _machine as control_groups
from mechdesign.base import _machine as limits
from mechdesign.base._machine import free_memory, memory_below_limits
from mechdesign.certify import _memory as memory
from mechdesign.errors import CertificateError
from mechdesign.solve._blocks.memory import find_allowed_memory

resource = pytest.importorskip("resource")
GIB, PAGE = 2**30, os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Give a machine with 8 GiB available and no limits, whose files may be changed."""
    monkeypatch.setattr(limits, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(control_groups, "_OWN", tmp_path / "proc/self/cgroup")
    monkeypatch.setattr(control_groups, "_GROUPS", tmp_path / "groups")
    found = dict.fromkeys((resource.RLIMIT_AS, resource.RLIMIT_DATA), resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda number: (found[number], found[number]))

    def write(**files: str) -> None:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    write(proc__meminfo=f"MemTotal: 1 kB\nMemAvailable: {8 * 2**20} kB\n", proc__self__statm="1000 10 5 1 0 700 0\n")
    return found, write


@each_row(("pages", "expected"), [(16, None), (2**14 - 1, None), (2**14, 2**26), (2**20, 2**32)])
def test_a_memory_in_which_python_could_not_run_is_ignored(pages, expected, machine, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_PROC", tmp_path / "nowhere")
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": pages, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert free_memory() == expected


def test_a_system_without_the_module_resource_has_no_limits(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "resource", None)
    assert memory_below_limits() is None


def test_without_limits_it_is_what_the_machine_has(machine):
    assert memory_below_limits() is None
    assert free_memory() == 8 * GIB


@each_row(("name", "held"), [("RLIMIT_AS", 1000), ("RLIMIT_DATA", 700)])
def test_limits_of_the_process_count_with_what_it_holds(machine, name, held):
    found, _ = machine
    found[getattr(resource, name)] = GIB
    assert free_memory() == memory_below_limits() == GIB - held * PAGE
    found[getattr(resource, name)] = PAGE
    assert memory_below_limits() == 0
    found[getattr(resource, name)] = 100 * GIB
    assert free_memory() == 8 * GIB


def group(
    write, folder: str, most: str, held: int, unused: int, names=("memory.max", "memory.current", "inactive_file")
):
    for name, text in zip((*names[:2], "memory.stat"), (most, held, f"anon 5\n{names[2]} {unused}\n"), strict=True):
        write(**{f"groups__{folder}__{name}".replace("/", "__"): f"{text}\n"})


def test_the_tightest_of_all_groups_above_counts(machine):
    _, write = machine
    write(proc__self__cgroup="0::/user/job\n")
    group(write, "user/job", "max", 7, 0)
    assert memory_below_limits() is None
    group(write, "user", str(2 * GIB), GIB, GIB // 4)
    assert free_memory() == memory_below_limits() == GIB + GIB // 4
    group(write, "user/job", str(GIB), GIB // 2, 0)
    assert memory_below_limits() == GIB // 2


def test_in_a_container_the_group_is_at_the_root(machine):
    _, write = machine
    write(proc__self__cgroup="0::/docker/0123\n")
    group(write, ".", str(3 * GIB), GIB, 0)
    assert free_memory() == 2 * GIB


def test_groups_of_version_1_count(machine):
    _, write = machine
    write(proc__self__cgroup="5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n")
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    group(write, "memory/job", str(2 * GIB), GIB, 0, names)
    assert free_memory() == GIB
    # Without a limit version 1 states a number above all memory.
    group(write, "memory/job", str(2**63 - 4096), GIB, 0, names)
    assert free_memory() == 8 * GIB


def test_files_that_say_nothing_of_use_are_no_limits(machine):
    _, write = machine
    write(proc__self__cgroup="\nnonsense\n0::\n")
    group(write, ".", "many", 1, 1)
    assert memory_below_limits() is None
    Path(limits._PROC / "meminfo").unlink()
    assert free_memory() == os.sysconf("SC_PHYS_PAGES") * PAGE


def test_estimates_and_refusals_are_measured_by_them(machine):
    found, _ = machine
    found[resource.RLIMIT_DATA] = GIB
    most = find_allowed_memory()
    assert most is not None
    assert GIB - 1000 * PAGE <= most < 8 * GIB
    # Of addresses, some are taken and never filled.
    found[resource.RLIMIT_AS] = 7 * GIB
    assert find_allowed_memory() == most
    found[resource.RLIMIT_AS] = GIB
    assert find_allowed_memory() < most
    found[resource.RLIMIT_AS] = resource.RLIM_INFINITY
    # A limit of one's own does not lift that of the process.
    assert find_allowed_memory(100 * GIB) == most
    assert find_allowed_memory(GIB / 2) == GIB / 2
    memory.require_room(GIB // 2, 2 * GIB, "verifying")
    with pytest.raises(CertificateError, match="limits of this process leave"):
        memory.require_room(GIB, 2 * GIB, "verifying")
    with pytest.raises(CertificateError, match="are allowed"):
        memory.require_room(3 * GIB, 2 * GIB, "verifying")
