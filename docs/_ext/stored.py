"""The stored results of measurements, ``docs/results/*.json``, as numbers and tables in Markdown."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
_PACKAGES = (("Python", "python"), ("NumPy", "numpy"), ("mechdesign", "mechdesign"))


@cache
def load(name: str) -> dict[str, Any]:
    """Return a stored result."""
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


def value(text: str) -> str:
    """Return what ``name:key`` or ``name:key|format`` stands for."""
    place, _, form = text.partition("|")
    name, _, key = place.partition(":")
    return format(load(name)["values"][key], form)


def origin(name: str) -> str:
    """Say in a line where a result comes from."""
    machine = load(name)["machine"]
    packages = ", ".join(f"{label} {machine[key]}" for label, key in _PACKAGES)
    return (
        f"{load(name)['command']}, {machine['date']}, commit {machine['commit']}: {machine['processor']}, "
        f"{machine['cores']} cores, load {machine['load']} before; {packages}"
    )


def markdown(name: str, places: str = "") -> str:
    """Return the table of a result in Markdown: all rows, or those at the places, counted from 1."""
    table = load(name)["table"]
    chosen = [table["rows"][int(place) - 1] for place in places.split()] or table["rows"]
    rows = [table["columns"], ["---"] * len(table["columns"]), *chosen]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def with_tables(text: str) -> str:
    """Return a text with each table between ``<!-- results NAME ROWS -->`` and ``<!-- end -->`` as it is stored now."""
    load.cache_clear()
    return re.sub(
        r"(<!-- results (\w+)([\d ]*) -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}\n{markdown(found[2], found[3])}\n*{origin(found[2])}.*\n\n{found[4]}",
        text,
        flags=re.S,
    )
