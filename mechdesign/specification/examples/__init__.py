"""The embedded examples: specifications, and what goes with them, that need no other data."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._errors import InputError


@dataclass(frozen=True)
class Example:
    """An embedded example.

    Attributes:
        name: what it is called.
        file: its file.
        commands: the commands that run it, the one it is for first.
        summary: what it shows, in a line.
        takes: how long that takes on two cores, in words.
        trace: the file of the trace, or the table, that goes with it, if there is one.
    """

    name: str
    file: str
    commands: Sequence[str]
    summary: str
    takes: str
    trace: str = ""

    @property
    def text(self) -> str:
        """The file, with its comments."""
        return text_of(self.file)


EXAMPLES = (
    Example(
        "city", "city.toml", ("design",),
        "metric and distortion privacy in a simulated city of 88 cells", "8 s",
    ),
    Example(
        "city-300", "city-300.toml", ("design",),
        "the same city in 300 cells, the size of the papers", "2 to 3 min",
    ),
    Example(
        "districts", "districts.toml", ("policy", "design"),
        "a policy graph: answers reveal the district, not the cell", "5 s",
    ),
    Example(
        "walk", "walk.toml", ("release", "policy", "design"),
        "a walk of 12 steps, released under a policy graph", "5 s", "walk.csv",
    ),
    Example(
        "admissions", "admissions.toml", ("blowfish",),
        "quartiles of a table of ages: near ages must not be told apart", "3 s", "admissions.csv",
    ),
    Example(
        "traffic", "traffic.csv", ("leakage",),
        "what 10 releases leak when places follow one another", "2 s",
    ),
)  # fmt: skip
"""All examples, the shortest way in first."""


def find(name: str) -> Example:
    """Return the example of a name; raise `InputError` for another one."""
    for example in EXAMPLES:
        if example.name == name:
            return example
    raise InputError("example", "is not known", value=name, bound=f"one of {', '.join(each.name for each in EXAMPLES)}")


def text_of(file: str) -> str:
    """Return an embedded file."""
    return importlib.resources.files(__name__).joinpath(file).read_text(encoding="utf-8")


def on_disk(file: str) -> AbstractContextManager[Path]:
    """Return a context in which an embedded file has a path."""
    return importlib.resources.as_file(importlib.resources.files(__name__).joinpath(file))
