"""The control groups that Linux has put the process in, by which containers and batch systems limit it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_groups", "read_lines"]

_OWN, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def find_groups(controller: str) -> Iterator[tuple[int, Path]]:
    """Yield the version, 1 or 2, and the folder of each group that may limit "cpu" or "memory", the innermost first."""
    for line in read_lines(_OWN):
        hierarchy, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if hierarchy == "0" and not controllers:
            version, root = 2, _GROUPS
        elif controller in controllers.split(","):
            version, root = 1, _GROUPS / controller
        else:
            continue
        # In a container the path may be that of the host: then the group is at the root.
        group = root / path.strip("/")
        for folder in (group, *group.parents):
            yield version, folder
            if folder == root:
                break


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file of the system, none where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
