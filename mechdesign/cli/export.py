"""``mechdesign export``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from mechdesign.atomic import write_file
from mechdesign.certify.certificate import Certificate
from mechdesign.export import formats, sets
from mechdesign.export.files import check_writable
from mechdesign.model.channel import Channel
from mechdesign.model.problem import Problem

__all__ = ["export"]

_PIECE = 4096


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--format", "form", required=True, type=click.Choice(["csv", "json", "parquet", "mps"]))
@click.option("-o", "--output", "target", metavar="FILE", type=click.Path(path_type=Path), help="Else standard output.")
@click.option("--all-rows", is_flag=True, help="With mps: a privacy row for every pair, also those that others imply.")
def export(directory: Path, form: str, target: Path | None, all_rows: bool) -> None:
    """Write the channel in DIR for other programs: csv, json and parquet; or mps, the linear program that it solves."""
    if all_rows and form != "mps":
        raise click.UsageError("--all-rows goes with --format mps")
    if target is not None and target.is_dir():
        raise click.UsageError(f"{target} is a folder, not a file")
    if target is not None:
        check_writable(target.parent)
    parts = _parts(form, all_rows, *sets.load(directory))
    if target is not None:
        write_file(target, parts)
        return
    if form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for the eye: name a file with -o")
    for part in parts:
        # In pieces below the size of its buffer: of a larger one, Python may lose the end on a full disk, silently.
        for start in range(0, len(part), _PIECE):
            sys.stdout.buffer.write(part[start : start + _PIECE])


def _parts(form: str, all_rows: bool, problem: Problem, channel: Channel, certificate: Certificate) -> Iterator[bytes]:
    if form == "csv":
        yield formats.to_csv(channel).encode()
    elif form == "json":
        yield formats.to_json(problem, channel, certificate).encode() + b"\n"
    elif form == "parquet":
        yield formats.to_parquet(channel)
    else:
        from mechdesign.synthesis.mps import mps

        for line in mps(problem, all_rows):
            yield line.encode()
