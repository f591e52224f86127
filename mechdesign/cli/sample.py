"""``mechdesign sample``."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import click

from mechdesign.errors import InputError
from mechdesign.export.folders import require_design
from mechdesign.model.channel import Channel

__all__ = ["sample"]


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--secret", required=True, metavar="SECRET", help="The true secret: its label, or its index.")
@click.option("--size", metavar="N", type=click.IntRange(min=0), default=1, show_default=True, help="How many draws.")
@click.option("--seed", metavar="S", type=click.IntRange(min=0), help="For reproducible draws; never for real privacy.")
@click.option("--csv", "as_csv", is_flag=True, help="Print index and label of each draw as CSV, with a header.")
def sample(directory: Path, secret: str, size: int, seed: int | None, as_csv: bool) -> None:
    """Draw observables for a secret, exactly with the certified probabilities: a label a line.

    The randomness is the operating system's unless a seed is given.
    """
    require_design(directory)
    channel = Channel.load(directory)
    drawn = channel.sample(_index(channel, secret), size, seed).tolist()
    labels = channel.observables or tuple(map(str, range(channel.numerators.shape[1])))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if as_csv:
        writer.writerow(["observable_index", "observable"])
        writer.writerows([index, labels[index]] for index in drawn)
    else:
        for index in drawn:
            click.echo(labels[index])


def _index(channel: Channel, secret: str) -> int:
    if secret in channel.secrets:
        return channel.secrets.index(secret)
    n = channel.numerators.shape[0]
    if secret.isascii() and secret.isdecimal() and int(secret) < n:
        return int(secret)
    some = ", ".join(channel.secrets[:3])
    bound = f"an index from 0 to {n - 1}" + (f", or a label such as {some}" if some else "")
    raise InputError("--secret", "is not known", value=secret, bound=bound)
