"""The problems of a suite as MPS files, so that others can run them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mechdesign.base._atomic import write_file
from mechdesign.bench.families import FAMILIES
from mechdesign.bench.families.family import RowPairs
from mechdesign.bench.fractions import reduced
from mechdesign.bench.suites import find_suite
from mechdesign.bench.suites import problems
from mechdesign.base._errors import ExportError
from mechdesign.synthesis.formats._plain import mps
from mechdesign.solve._linear import to_mps
from mechdesign.base._check import as_path

__all__ = ["export_mps"]


def export_mps(
    suite: str, directory: str | os.PathLike[str], progress: Callable[[Path], None] | None = None
) -> tuple[Path, ...]:
    """Write every linear program of a suite in free MPS format: what contestants that take rows are given, to the bit.

    Args:
        suite: "small", "medium" or "large".
        directory: The folder to write.
        progress: Called with each file.

    Returns:
        The files: one for each problem, or one for each pair of rows.

    Raises:
        InputError: There is no such suite.
        ExportError: A file cannot be written.
    """
    directory = as_path(directory, "directory")
    folder = Path(directory)
    found = problems(find_suite(suite))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"{folder} cannot be made: {error.strerror or error}") from error
    written: list[Path] = []
    for family, n, seed in found:
        instance = FAMILIES[family].make(n, seed)
        name = f"{family}-{n}-{seed}"
        if isinstance(instance, RowPairs):
            programs = {f"{name}-{index}": to_mps(each.program) for index, each in enumerate(reduced(instance))}
        else:
            programs = {name: mps(instance)}
        for stem, lines in programs.items():
            path = folder / f"{stem}.mps"
            write_file(path, (line.encode() for line in lines))
            written.append(path)
            if progress is not None:
                progress(path)
    return tuple(written)
