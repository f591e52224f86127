"""The embedded examples: specifications with their data."""

from __future__ import annotations

import importlib.resources
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from mechdesign.base._check import require_name


@dataclass(frozen=True)
class Example:
    """An embedded example.

    Attributes:
        name: The name of the example.
        file: The file of the example.
        commands: The commands that can run the example, the main command first.
        summary: The topic, in one line.
        takes: The run time on two cores, in words.
        trace: The file of its trace or table, or "".

    >>> find("walk").trace
    'walk.csv'
    """

    name: str
    file: str
    commands: Sequence[str]
    summary: str
    takes: str
    trace: str = ""

    @property
    def text(self) -> str:
        """The text of the file, with comments."""
        return text_of(self.file)


EXAMPLES = (
    Example(
        "city", "city.toml", ("design",),
        "metric and distortion privacy in a simulated city of 88 cells", "8 s",
    ),
    Example(
        "city-300", "city-300.toml", ("design",),
        "the same city in 300 cells, as many as in the papers", "2 to 3 min",
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
        "admissions", "admissions.toml", ("table",),
        "quartiles of a table of ages, with nearby ages indistinguishable", "3 s", "admissions.csv",
    ),
    Example(
        "traffic", "traffic.csv", ("leakage",),
        "the leakage of 10 releases of correlated places", "2 s",
    ),
)  # fmt: skip
"""All examples, the best introduction first."""


def find(name: str) -> Example:
    """Return the example with a name.

    Args:
        name: The name.

    Returns:
        The example.

    Raises:
        InputError: No example has this name.

    >>> find("city").file
    'city.toml'
    """
    examples = {each.name: each for each in EXAMPLES}
    return examples[require_name(name, examples, "--example")]


def text_of(file: str) -> str:
    """Return the text of an embedded file.

    Args:
        file: The name of the file.

    Returns:
        The text.

    >>> text_of("walk.csv").splitlines()[0]
    'x,y'
    """
    return importlib.resources.files(__name__).joinpath(file).read_text(encoding="utf-8")


def on_disk(file: str) -> AbstractContextManager[Path]:
    """Return a context manager that provides the path of an embedded file.

    Args:
        file: The name of the file.

    Returns:
        A context manager whose value is the path.

    >>> with on_disk("city.toml") as path:
    ...     path.name
    'city.toml'
    """
    return importlib.resources.as_file(importlib.resources.files(__name__).joinpath(file))
