"""Experiments: rows computed from parameters and data, stored with digests of both, and compared when recomputed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import mechdesign as md
from harness import commit
from mechdesign.base._atomic import write_file

__all__ = ["Comparison", "Experiment", "MovedError", "Row", "Rows", "StaleResultError", "Stored", "data_folder"]

Row = dict[str, Any]
Rows = list[Row]

RESULTS = Path(__file__).parents[2] / "notebooks" / "results"


class StaleResultError(RuntimeError):
    """A stored result is missing, was changed, or was computed from different parameters or data."""


class MovedError(RuntimeError):
    """A recomputed number differs from the stored number by more than its stated spread."""


def data_folder() -> Path:
    """Return the folder of real data, which may be missing: MECHDESIGN_DATA, or ``shared/data`` in this checkout."""
    named = os.environ.get("MECHDESIGN_DATA")
    return Path(named) if named else Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Stored:
    """The rows of one setting of an experiment, and their origin."""

    rows: Rows
    parameters: Mapping[str, Any]
    data: Mapping[str, str]
    made_with: Mapping[str, Any]

    @property
    def origin(self) -> str:
        """Return one line that says when, and with which versions, the rows were computed."""
        made = self.made_with
        return (
            f"{len(self.rows)} rows, computed on {made['date']} with mechdesign {made['mechdesign']} (commit "
            f"{made['commit']}), NumPy {made['numpy']} and Python {made['python']} in {made['seconds']:.0f} s"
        )


@dataclass(frozen=True)
class Comparison:
    """The differences of recomputed numbers from stored numbers: the largest difference of each column."""

    rows: int
    differences: Mapping[str, float]
    moved: tuple[str, ...]

    def __str__(self) -> str:
        found = ", ".join(f"{column} {difference:.1e}" for column, difference in self.differences.items())
        return f"{self.rows} rows computed again; largest differences: {found}"


@dataclass(frozen=True)
class Experiment:
    """An experiment: a computation whose rows figures draw and judge.

    Attributes:
        name: Name of the experiment, and of the file with its results.
        compute: Function that yields rows, given the parameters of a setting. If the experiment has `data`, their
            folder is the first argument.
        small: Parameters with which the experiment takes seconds, for tests and for readers of a notebook.
        full: Parameters of the experiment behind the stored figures.
        keys: Columns that identify a row.
        spread: Largest allowed difference of each compared column: a share of the larger value or, for values below
            one, an absolute number. Columns that are neither in `spread` nor in `keys` are not compared.
        data: Files of real data that the experiment reads; a folder stands for all its files.
    """

    name: str
    compute: Callable[..., Iterable[Row]]
    small: Mapping[str, Any]
    full: Mapping[str, Any]
    keys: tuple[str, ...]
    spread: Mapping[str, float]
    data: tuple[str, ...] = field(default=())

    @property
    def path(self) -> Path:
        """The file with the stored rows of this experiment."""
        return RESULTS / f"{self.name}.json"

    @property
    def missing_data(self) -> tuple[str, ...]:
        """The files of real data that this experiment needs and that are missing."""
        folder = data_folder()
        return tuple(name for name in self.data if not (folder / name).exists())

    def run(self, setting: str = "small") -> Stored:
        """Compute the rows of a setting, "small" or "full"."""
        clock = time.perf_counter()
        arguments = (data_folder(),) if self.data else ()
        rows = [_plain(row) for row in self.compute(*arguments, **self._parameters(setting))]
        made = {
            "date": datetime.now(UTC).date().isoformat(),
            "commit": commit(),
            "mechdesign": md.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "seconds": round(time.perf_counter() - clock, 1),
        }
        return Stored(rows, self._parameters(setting), self._digests(), made)

    def store(self, settings: Iterable[str] = ("small", "full")) -> None:
        """Compute the given settings, and store their rows."""
        for setting in settings:
            self.keep(setting, self.run(setting))

    def keep(self, setting: str, found: Stored) -> None:
        """Store the rows of a setting; the stored rows of the other setting remain."""
        content = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        inputs = {"experiment": self.name, "parameters": found.parameters, "data": found.data}
        content[setting] = {
            "made_with": dict(found.made_with),
            "inputs": inputs,
            "inputs_sha256": _digest(inputs),
            "rows_sha256": _digest(found.rows),
            "rows": found.rows,
        }
        RESULTS.mkdir(exist_ok=True)
        write_file(self.path, [_text(content).encode()])

    def stored(self, setting: str = "full") -> Stored:
        """Return stored rows, after checking that they are whole and belong to these parameters and data.

        Raises:
            StaleResultError: The rows are missing, or were computed from different parameters or data.
        """
        remedy = f"run: python benchmarks/run.py --only {self.name}"
        try:
            entry = json.loads(self.path.read_text(encoding="utf-8"))[setting]
        except (OSError, KeyError) as error:
            raise StaleResultError(f"{self.path.name} has no {setting} setting; {remedy}") from error
        inputs = entry["inputs"]
        if _digest(entry["rows"]) != entry["rows_sha256"] or _digest(inputs) != entry["inputs_sha256"]:
            raise StaleResultError(f"{self.path.name} was changed after it was written; {remedy}")
        if inputs["parameters"] != _plain(self._parameters(setting)):
            raise StaleResultError(f"{self.path.name} was computed with other parameters; {remedy}")
        if not self.missing_data and inputs["data"] != self._digests():
            raise StaleResultError(f"{self.path.name} was computed from other data; {remedy}")
        return Stored(entry["rows"], inputs["parameters"], inputs["data"], entry["made_with"])

    def recompute(self, setting: str = "small") -> Comparison:
        """Compute a setting again and compare it with the stored rows.

        Raises:
            MovedError: A number differs from the stored number by more than its spread.
        """
        comparison = self.compare(self.stored(setting), self.run(setting))
        if comparison.moved:
            raise MovedError(f"{self.name}: " + "; ".join(comparison.moved[:5]))
        return comparison

    def checked(self) -> str:
        """Return a sentence with the result of recomputing the small setting, or the reason for omitting it."""
        if self.missing_data:
            return (
                f"Not computed again here: {', '.join(self.missing_data)} not found. Set MECHDESIGN_DATA to the folder "
                "of the data sets; until then the figures show what is stored."
            )
        return f"{self.recompute()}."

    def compare(self, before: Stored, after: Stored) -> Comparison:
        """Compare two runs of the same setting, row by row."""
        old, new = self._by_key(before.rows), self._by_key(after.rows)
        moved = [f"row {key} is there only once" for key in old.keys() ^ new.keys()]
        differences = dict.fromkeys(self.spread, 0.0)
        for key in old.keys() & new.keys():
            for column, spread in self.spread.items():
                was, now = old[key][column], new[key][column]
                if isinstance(was, str | bool) or was is None or now is None:
                    if was != now:
                        moved.append(f"{column} of {key} was {was} and is {now}")
                    continue
                if was != now:
                    difference = abs(was - now) / max(abs(was), abs(now), 1.0)
                    differences[column] = max(differences[column], difference)
                    if not difference <= spread:
                        moved.append(f"{column} of {key} was {was:.6g} and is {now:.6g}")
        return Comparison(len(new), differences, tuple(moved))

    def _parameters(self, setting: str) -> Mapping[str, Any]:
        return {"small": self.small, "full": self.full}[setting]

    def _digests(self) -> dict[str, str]:
        folder = data_folder()
        return {name: _digest_of(folder / name) for name in self.data}

    def _by_key(self, rows: Rows) -> dict[tuple[Any, ...], Row]:
        found = {tuple(row[key] for key in self.keys): row for row in rows}
        if len(found) != len(rows):
            raise ValueError(f"{self.name}: rows with the same {', '.join(self.keys)}")
        return found


def _plain(value: Any) -> Any:
    """Return `value` in a form that JSON can store; floats keep ten significant digits, and infinities become text."""
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else str(value)
    return value


def _digest_of(path: Path) -> str:
    """Return the SHA-256 of a file; for a folder, the SHA-256 of the names and digests of its files."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        return _digest([[file.relative_to(path).as_posix(), _digest_of(file)] for file in files])
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(value: Any) -> str:
    text = json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _text(content: Mapping[str, Any]) -> str:
    """Return JSON with a line for each row, so that differences can be read."""
    parts = []
    for setting, entry in sorted(content.items()):
        rows = ",\n   ".join(json.dumps(row, ensure_ascii=False) for row in entry["rows"])
        head = json.dumps({name: value for name, value in entry.items() if name != "rows"}, ensure_ascii=False)
        parts.append(f' "{setting}": {head[:-1]},\n  "rows": [\n   {rows}\n  ]}}')
    return "{\n" + ",\n".join(parts) + "\n}\n"
