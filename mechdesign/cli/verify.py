"""``mechdesign verify``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from mechdesign.base._errors import CertificateError, UnverifiedError
from mechdesign.certify._bundle import Bundle, inspect
from mechdesign.certify._verify import Verified, prove
from mechdesign.cli._console import Text, certificate_tables, certificate_to_json, output, show_verdict, table
from mechdesign.synthesis._folders import require_design


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the recomputed certificate, or the error, as JSON.")
def verify(folder: Path, as_json: bool) -> None:
    """Prove a bundle again, from its files alone: privacy, cost and lower bound, in exact arithmetic.

    The table channel.csv must contain the proved channel. Labels, places, metadata, provenance and the report are not
    proved; the output lists those that the bundle contains.

    The exit code is 0 if all claims hold, and 1 otherwise, with the reason and the worst pair of secrets. If nothing
    was verified, because there is no readable bundle or more memory is needed, the exit code is 2.
    """
    require_design(folder)
    found, verified = _prove_bundle(folder, as_json)
    if as_json:
        certificate = verified.certificate
        said = {**certificate_to_json(certificate), "unproved": list(verified.unproved)}
        click.echo(json.dumps(said, indent=2))
        return
    output().print(f"{folder}: every claim verified.", style="green", soft_wrap=True)
    _show(found, verified)


def _prove_bundle(folder: Path, as_json: bool) -> tuple[Bundle, Verified]:
    """Read a bundle once, and return it with the result of its verification."""
    found = None
    try:
        found = inspect(folder)
        return found, prove(found)
    except UnverifiedError as error:
        raise type(error)(f"{folder} was not verified: {error.reason}") from error
    except CertificateError as error:
        labels = [] if found is None else found.arrays.get("secrets", np.array([])).tolist()
        reason = error.reason + _describe_pair(labels, error.pair)
        if as_json:
            pair = None if error.pair is None else list(error.pair)
            click.echo(json.dumps({"holds": False, "reason": reason, "pair": pair}, indent=2))
        raise CertificateError(f"{folder} does not verify: {reason}", error.pair) from error


def _show(found: Bundle, verified: Verified) -> None:
    # Names and units need more modules than the proof.
    from mechdesign.model._problem_words import claim_names, cost_measure
    from mechdesign.report._headlines import design_headline
    from mechdesign.report._proved import describe_proof, describe_revealed, list_unproved
    from mechdesign.synthesis._bundle import restore_problem

    console, certificate = output(), verified.certificate
    problem, origin = restore_problem(found)
    show_verdict(design_headline(problem, certificate, origin))
    names = claim_names(problem)
    for shown in certificate_tables(
        certificate,
        names,
        cost_measure(problem),
        stands_in=origin is not None and origin.has_substitute_prior,
    ):
        console.print(shown)
        console.print()
    console.print("proved, in exact arithmetic", style="bold")
    for sentence in (*describe_proof(problem, certificate), *describe_revealed(problem, certificate)):
        console.print(f"- {sentence}", soft_wrap=True)
    console.print("\nstated, and not proved", style="bold")
    said = table("", "")
    said.show_header = False
    for name, text in list_unproved(problem, origin):
        said.add_row(name, Text(text))
    console.print(said)
    if verified.unproved:
        console.print("\nin the files, and not proved", style="bold")
        for part in verified.unproved:
            console.print(f"- {part}", soft_wrap=True)
    console.print("\nCheck that these are the requirements, the unit and the prior that you want.")


def _describe_pair(labels: Sequence[object], pair: tuple[int, int] | None) -> str:
    """Return a clause that names a pair of secrets by index and, if there are labels, by label."""
    if pair is None:
        return ""
    names = [
        f"{index} ({labels[index]})" if index < len(labels) and str(labels[index]) != str(index) else str(index)
        for index in pair
    ]
    return f". Worst pair: secrets {names[0]} and {names[1]}"
