"""``mechdesign export``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mechdesign.errors import InputError
from mechdesign.export.files import check_writable
from mechdesign.export.folders import require_design
from mechdesign.formats import FORMATS, Exported, Format, format_of

__all__ = ["export"]

_PIECE = 4096


def _looked_up(_: click.Context, __: click.Parameter, name: str | None) -> Format | None:
    """Return the format of that name when it is asked for: other packages may add some."""
    try:
        return None if name is None else FORMATS[name]
    except InputError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    callback=_looked_up,
    help=f"One of {', '.join(FORMATS)}; unless the ending of FILE tells.",
)
@click.option("-o", "--output", "target", metavar="FILE", type=click.Path(path_type=Path), help="Else standard output.")
@click.option("--all-rows", is_flag=True, help="With mps: a privacy row for every pair, also those that others imply.")
def export(directory: Path, form: Format | None, target: Path | None, all_rows: bool) -> None:
    """Write the channel in DIR for other programs.

    \b
    csv, json, npz, parquet   the channel: as text, as arrays, as a table
    js                        a module for apps: exact sampling, and a check of every pair bound
    geojson                   domain, prior and answers, for maps
    mps                       the linear program that the channel solves
    """  # noqa: D301 - click wants the control character
    if form is None:
        if target is None:
            raise click.UsageError("name a format with --format, or a file with -o")
        try:
            form = format_of(target)
        except InputError as error:
            raise click.UsageError(f"{error}; or name a format with --format") from error
    if all_rows and "all_rows" not in form.options:
        raise click.UsageError("--all-rows goes with --format mps")
    if target is not None and target.is_dir():
        raise click.UsageError(f"{target} is a folder, not a file")
    if target is not None:
        check_writable(target.parent)
    options = {"all_rows": True} if all_rows else {}
    require_design(directory)
    exported = Exported.load(directory)
    if target is not None:
        form.write(exported, target, options)
        return
    if not form.text and sys.stdout.isatty():
        raise click.UsageError(f"{form.name} is not for the eye: name a file with -o")
    for part in form.parts(exported, options):
        # In pieces below the size of its buffer: of a larger one, Python may lose the end on a full disk, silently.
        for start in range(0, len(part), _PIECE):
            sys.stdout.buffer.write(part[start : start + _PIECE])
