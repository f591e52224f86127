"""The machine: the processors and the memory that this process may use, and whether threads can be started."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

_CPUINFO, _MEMINFO, _STATM = Path("/proc/cpuinfo"), Path("/proc/meminfo"), Path("/proc/self/statm")
_OWN_GROUP, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def count_processors() -> int:
    """Return the number of processors that this process may use; with joblib, a quota of the container also counts."""
    # joblib rejects some values of its environment variables (ValueError).
    with contextlib.suppress(ImportError, ValueError):
        from joblib.externals.loky import cpu_count

        return int(cpu_count())
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def name_processor() -> str:
    """Return the name of the processor; only Linux states the model."""
    models = (line.partition(":")[2].strip() for line in _read(_CPUINFO) if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def free_memory(addresses: int = 0) -> int | None:
    """Return the bytes that this process can still use without swapping; None if the system does not report this."""
    known = [each for each in (_available(), memory_below_limits(addresses)) if each is not None]
    return min(known, default=None)


def memory_below_limits(addresses: int = 0) -> int | None:
    """Return the bytes that the limits of this process leave, or None without a limit.

    The limits are RLIMIT_AS (`ulimit -v`) and the control groups (version 2). RLIMIT_AS also counts addresses that are
    never filled: in all, `addresses`.
    """
    left = [*_below_address_limit(addresses)]
    for line in _read(_OWN_GROUP):
        group = _GROUPS / line.removeprefix("0::").strip("/")
        # In a container this path may be a path on the host; the group of the container is then the root folder.
        for folder in (group, *group.parents):
            most, held = _read(folder / "memory.max"), _read(folder / "memory.current")
            if most and held and most[0].isdecimal():
                # The kernel can reclaim unused file pages.
                unused = [int(each.split()[1]) for each in _read(folder / "memory.stat") if "inactive_file" in each]
                left.append(int(most[0]) - int(held[0]) + sum(unused))
    return max(0, min(left)) if left else None


def _below_address_limit(addresses: int) -> Iterator[int]:
    # Windows and WebAssembly have no such limit.
    with contextlib.suppress(ImportError):
        import resource

        limit, held = resource.getrlimit(resource.RLIMIT_AS)[0], _read(_STATM)
        if limit != resource.RLIM_INFINITY and held:
            taken, resident = (int(pages) * resource.getpagesize() for pages in held[0].split()[:2])
            yield limit - taken - max(0, addresses - (taken - resident))


def _available() -> int | None:
    for line in _read(_MEMINFO):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    with contextlib.suppress(ImportError):
        import psutil

        return int(psutil.virtual_memory().available)
    return None


def _read(path: Path) -> list[str]:
    """Return the lines of a system file; an empty list if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def is_webassembly() -> bool:
    """Return whether this is WebAssembly, where neither threads nor processes can be started."""
    return sys.platform in ("emscripten", "wasi")


def count_threads(most: int) -> int:
    """Start threads for a moment, and return how many further threads, at most `most`, can run.

    Containers and users may have a limit on processes, which includes threads.
    """
    end = threading.Event()
    started: list[threading.Thread] = []
    # Python reports: can't start new thread.
    with contextlib.suppress(RuntimeError):
        for _ in range(most):
            thread = threading.Thread(target=end.wait, daemon=True)
            thread.start()
            started.append(thread)
    end.set()
    for thread in started:
        thread.join()
    return len(started)
