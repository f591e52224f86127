"""``mechdesign verify``."""

from __future__ import annotations

import json
from pathlib import Path

import click
from rich.text import Text

from mechdesign.certify import bundle
from mechdesign.certify.verify import Verified, examine
from mechdesign.cli.console import certificate_tables, output, table
from mechdesign.errors import CertificateError

__all__ = ["verify"]


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the recomputed certificate, or what is wrong, as JSON.")
def verify(directory: Path, as_json: bool) -> None:
    """Prove an export again, from its files alone: privacy, cost and lower bound, in exact arithmetic.

    The table channel.csv must hold the channel that is proved. Labels, places, metadata, provenance and the report are
    not proved; those that the export holds are listed.

    Exits with 0 if everything holds, and with 1 and the reason, and the worst pair of secrets, if anything does not.
    """
    try:
        verified = examine(directory)
    except CertificateError as error:
        reason = error.reason + _named(directory, error.pair) + _elsewhere(directory)
        if as_json:
            pair = None if error.pair is None else list(error.pair)
            click.echo(json.dumps({"holds": False, "reason": reason, "pair": pair}, indent=2))
        raise CertificateError(f"{directory} does not verify: {reason}", error.pair) from error
    if as_json:
        certificate = verified.certificate
        click.echo(json.dumps({**certificate.to_json(), "unproved": list(verified.unproved)}, indent=2))
        return
    console = output()
    console.print(f"{directory} verifies.\n", style="green", soft_wrap=True)
    _show(directory, verified)


def _show(directory: Path, verified: Verified) -> None:
    # Names and units need more than the proof does.
    from mechdesign.export.sets import load_stated
    from mechdesign.report.names import claim_names
    from mechdesign.report.proved import proved, stated
    from mechdesign.report.words import cost_measure

    console, certificate = output(), verified.certificate
    problem, origin = load_stated(directory)
    names = claim_names(problem)
    for shown in certificate_tables(certificate, names, cost_measure(problem)):
        console.print(shown)
        console.print()
    console.print("proved, in exact arithmetic", style="bold")
    for sentence in proved(problem, certificate):
        console.print(f"- {sentence}", soft_wrap=True)
    console.print("\nstated, and not proved", style="bold")
    said = table("", "")
    said.show_header = False
    for name, text in stated(problem, origin):
        said.add_row(name, Text(text))
    console.print(said)
    if verified.unproved:
        console.print("\nin the files, and not proved", style="bold")
        for part in verified.unproved:
            console.print(f"- {part}", soft_wrap=True)
    console.print("\nCheck that these are the requirements, the unit and the prior that you want.")


def _elsewhere(directory: Path) -> str:
    """Return where the channels of a released trace are, if it is one."""
    from mechdesign.release.files import CHANNELS, MANIFEST

    if not (directory / MANIFEST).exists():
        return ""
    return (
        f". This is a released trace: the channel of its first step is {CHANNELS}/step-0, and so on, where "
        "`mechdesign release` was asked for --channels"
    )


def _named(directory: Path, pair: tuple[int, int] | None) -> str:
    """Return a clause that names a pair of secrets by index and, where there are labels, by label."""
    if pair is None:
        return ""
    labels: list[str] = []
    try:
        arrays = bundle.inspect(directory).arrays
        if "secrets" in arrays:
            labels = [str(label) for label in arrays["secrets"].tolist()]
    except CertificateError:
        pass
    names = [
        f"{index} ({labels[index]})" if index < len(labels) and labels[index] != str(index) else str(index)
        for index in pair
    ]
    return f". Worst pair: secrets {names[0]} and {names[1]}"
