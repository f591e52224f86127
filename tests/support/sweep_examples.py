"""What tests of sweeps share: a small specification with lists, and what a table says without its times."""

from __future__ import annotations

import csv
from pathlib import Path

from mechdesign.runs.sweep import parse

TABLES = """
title = "A line"
[domain]
points = [[0, 0], [1, 0], [2, 0], [3, 1]]
unit = "km"
[prior]
counts = [4, 3, 2, 1]
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 0.7
distance = "euclidean"
"""
LISTS = '"privacy.0.epsilon" = [0.2, 0.5, 1, 2]\n"cost.power" = [1, 2]\n"solver.name" = ["auto"]'
FLOOR = f'{TABLES}\n[[privacy]]\nkind = "distortion"\nminimum = 0.1\ndistance = "euclidean"'
DATA = TABLES.replace("counts = [4, 3, 2, 1]", 'csv = { path = "n.csv", column = "n" }')


def text(lists: str = LISTS, tables: str = TABLES) -> str:
    return f"{tables}\n[sweep]\n{lists}\n"


def sweep(lists: str = LISTS, tables: str = TABLES, folder: Path | str = "."):
    return parse(text(lists, tables), folder)


def write_counts(folder: Path, counts: str = "4 3 2 1") -> None:
    (folder / "n.csv").write_text("\n".join(["n", *counts.split(), ""]))


def values(folder: Path) -> list[dict[str, str]]:
    """Return the table of a folder, without what another run may have otherwise."""
    with (folder / "results.csv").open(newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    return [{name: value for name, value in row.items() if not name.endswith("seconds")} for row in rows]
