"""``mechdesign verify``."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import click
from rich.text import Text

from mechdesign.certify import bundle
from mechdesign.certify.certificate import Certificate
from mechdesign.certify.exact import exact_text
from mechdesign.certify.verify import Verified, examine
from mechdesign.cli.console import certificate_tables, number, output, table
from mechdesign.errors import CertificateError
from mechdesign.export.folders import is_schedule, read_scheduled, require_design
from mechdesign.export.schedule import SCHEDULE

__all__ = ["verify"]


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the recomputed certificate, or what is wrong, as JSON.")
def verify(directory: Path, as_json: bool) -> None:
    """Prove an export again, from its files alone: privacy, cost and lower bound, in exact arithmetic.

    The table channel.csv must hold the channel that is proved. Labels, places, metadata, provenance and the report are
    not proved; those that the export holds are listed.

    Exits with 0 if everything holds, and with 1 and the reason, and the worst pair of secrets, if anything does not. Of
    a schedule all designs are verified, and that each is for its ε.
    """
    if is_schedule(directory):
        _verify_schedule(directory, as_json)
        return
    require_design(directory)
    verified = _proved(directory, as_json)
    if as_json:
        certificate = verified.certificate
        click.echo(json.dumps({**certificate.to_json(), "unproved": list(verified.unproved)}, indent=2))
        return
    console = output()
    console.print(f"{directory} verifies.\n", style="green", soft_wrap=True)
    _show(directory, verified)


def _proved(directory: Path, as_json: bool) -> Verified:
    try:
        return examine(directory)
    except CertificateError as error:
        reason = error.reason + _named(directory, error.pair) + _elsewhere(directory)
        if as_json:
            pair = None if error.pair is None else list(error.pair)
            click.echo(json.dumps({"holds": False, "reason": reason, "pair": pair}, indent=2))
        raise CertificateError(f"{directory} does not verify: {reason}", error.pair) from error


def _verify_schedule(directory: Path, as_json: bool) -> None:
    """Verify every design of a schedule, and that each is one for its ε."""
    found: list[tuple[str, Fraction, list[int], Certificate]] = []
    for name, (epsilon, steps) in read_scheduled(directory).items():
        certificate = _proved(directory / name, as_json).certificate
        if exact_text(epsilon) not in [checked.nominal for checked in certificate.requirements]:
            raise CertificateError(
                f"{directory / name} verifies, but not for ε = {exact_text(epsilon)}, which {SCHEDULE} says it is for"
            )
        found.append((name, epsilon, steps, certificate))
    if as_json:
        designs = [
            {"folder": name, "epsilon": exact_text(epsilon), "steps": steps, "certificate": certificate.to_json()}
            for name, epsilon, steps, certificate in found
        ]
        click.echo(json.dumps(designs, indent=2))
        return
    console = output()
    releases = sum(len(steps) for _, _, steps, _ in found)
    console.print(
        f"{directory} verifies: {len(found)} designs for {releases} releases.\n", style="green", soft_wrap=True
    )
    shown = table("ε", "releases", "cost", "no less than", "folder", numbers=("releases", "cost", "no less than"))
    for name, epsilon, steps, certificate in found:
        bounds = (number(certificate.cost), number(certificate.lower_bound))
        shown.add_row(exact_text(epsilon), str(len(steps)), *bounds, name)
    console.print(shown)
    if telling := [f"{name} ({len(c.revealed)})" for name, _, _, c in found if c.revealed]:
        console.print(f"\nSecrets are revealed for certain by {', '.join(telling)}.", style="yellow", soft_wrap=True)
    console.print("\nWhat is proved of each in full: `mechdesign verify` on its folder.")


def _show(directory: Path, verified: Verified) -> None:
    # Names and units need more than the proof does.
    from mechdesign.export.sets import load_stated
    from mechdesign.report.names import claim_names
    from mechdesign.report.proved import proved, stated, told
    from mechdesign.report.words import cost_measure

    console, certificate = output(), verified.certificate
    problem, origin = load_stated(directory)
    names = claim_names(problem)
    for shown in certificate_tables(certificate, names, cost_measure(problem)):
        console.print(shown)
        console.print()
    console.print("proved, in exact arithmetic", style="bold")
    for sentence in (*proved(problem, certificate), *told(problem, certificate)):
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
