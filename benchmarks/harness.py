"""Shared parts of the scripts: options, runs in separate processes, times side by side, tables, and stores of rows.

A script puts this folder on its path before it imports from here: `sys.path.insert(0, str(Path(__file__).parents[1]))`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import string
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import IO, Any

from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parents[1]
RESULTS = PROJECT / "benchmarks" / "results"
ROWS = PROJECT / "build" / "benchmarks"
"""The folder of raw rows, which Git ignores."""

DATA = Path(os.environ.get("MECHDESIGN_DATA") or PROJECT.parent / "shared" / "data")

Facts = dict[str, Any]


def options(doc: str | None, action: tuple[str, ...] = (), **defaults: Any) -> argparse.Namespace:
    """Read the command line; `--help` shows the docstring of the script.

    Args:
        doc: The docstring of the script.
        action: Words; the first argument must be one of them.
        defaults: The options by name. The default tells the type: False is a flag, and a list takes several values.
            A tuple of texts is a choice, whose default is the first text. A list of one tuple takes several of its
            texts, by default all. A type is an option without a default. `output` is also `-o`.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if action:
        parser.add_argument("action", choices=action)
    for name, default in defaults.items():
        flags = ["--" + name.replace("_", "-"), *(["-o"] if name == "output" else [])]
        match default:
            case bool():
                parser.add_argument(*flags, action="store_true")
            case [tuple() as choices]:
                parser.add_argument(*flags, nargs="+", choices=choices, default=list(choices))
            case list():
                parser.add_argument(*flags, nargs="+", type=type(default[0]) if default else str, default=default)
            case tuple():
                parser.add_argument(*flags, choices=default, default=default[0])
            case type():
                parser.add_argument(*flags, type=default)
            case _:
                parser.add_argument(*flags, type=type(default), default=default)
    return parser.parse_args()


def shape(grid: str) -> tuple[int, int]:
    """Return the columns and rows of a grid such as "20x15"."""
    columns, rows = map(int, grid.split("x"))
    return columns, rows


def apart(call: Callable[..., Facts], *arguments: Any) -> Facts:
    """Call a function in a new process; add its wall and processor seconds and the peak memory of the process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_measured, call, arguments).result()


def _measured(call: Callable[..., Facts], arguments: tuple[Any, ...]) -> Facts:
    clock, spent = time.perf_counter(), time.process_time()
    found = call(*arguments)
    spent, clock = time.process_time() - spent, time.perf_counter() - clock
    return {"seconds": clock, "processor": spent, "peak": peak()} | found


def commit() -> str:
    """Return the commit of this checkout, which ends with "-dirty" if files have changed since."""
    command = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def origin() -> str:
    """Return where and when a result comes from: version, commit, date and processors."""
    return f"mechdesign {version('mechdesign')}, commit {commit()}, {time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores"


def peak() -> int:
    """Return the most bytes of memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def side_by_side(contestants: Mapping[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Time all methods alternately, in `repeats` rounds, so that drifts of the machine affect all of them equally."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, run in contestants.items():
            clock = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - clock)
    return seconds


class _Cells(string.Formatter):
    """Formats of cells: a missing value is an empty cell, and the format GB divides bytes."""

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key))

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None:
            return ""
        return f"{value / 1e9:.2f}" if format_spec == "GB" else format(value, format_spec)


def show(
    columns: Mapping[str, str], rows: Iterable[Facts], width: int = 120, title: str = "", to: IO[str] | None = None
) -> None:
    """Print a table whose cells are the texts of `columns`, by heading, filled with each row."""
    table, cells = Table(*columns, title=title or None), _Cells()
    for row in rows:
        table.add_row(*(cells.vformat(text, (), row) for text in columns.values()))
    Console(width=width, file=to).print(table)


class Store:
    """Rows in a file of JSON lines, added as soon as they are known, so that a stopped run goes on.

    `known` has the values of `keys` of all rows. A line without its end was interrupted and does not count.
    """

    def __init__(self, path: Path | None, *keys: str) -> None:
        self.path, self.keys = path, keys
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path and path.exists() else []
        self.rows: list[Facts] = [json.loads(line) for line in lines if line.endswith("\n")]
        self.known = {self._key(row) for row in self.rows}

    def add(self, row: Facts) -> None:
        """Keep a row."""
        self.rows.append(row)
        self.known.add(self._key(row))
        if self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _key(self, row: Facts) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.keys)


def write(path: Path, found: Any) -> None:
    """Write a result as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
