"""``mechdesign verify``."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import click
import numpy as np

from mechdesign.base._errors import CertificateError, UnverifiedError
from mechdesign.certify._bundle import Bundle, inspect
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._exact import exact_text
from mechdesign.certify._memory import MEMORY_GIB
from mechdesign.certify._stated import FORMS
from mechdesign.certify._verify import Verified, prove
from mechdesign.cli._console import Text, at_least, at_most, certificate_tables, output, show_verdict, table
from mechdesign.model._requirements._extensions import finding_extensions
from mechdesign.synthesis._folders import SCHEDULE, is_schedule, read_scheduled, require_design

UNPROVED_ALPHA = (
    "The joint leakage of the releases, the α of their budgets, is not proved here. This leakage depends on a "
    "transition matrix, which these files do not contain: `mechdesign leakage` computes it from that matrix and "
    "the budgets."
)
"""Note that the verified designs of a schedule do not prove the joint leakage of its releases."""


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the recomputed certificate, or the error, as JSON.")
@click.option(
    "--memory",
    metavar="GIB",
    type=float,
    default=MEMORY_GIB,
    show_default=True,
    help="Limit on the memory that the verification is estimated to need.",
)
@click.option(
    "--extensions",
    is_flag=True,
    help="Load requirements of other packages for their names; the proof uses only the files.",
)
def verify(folder: Path, as_json: bool, memory: float, extensions: bool) -> None:
    """Prove a bundle again, from its files alone: privacy, cost and lower bound, in exact arithmetic.

    The table channel.csv must contain the proved channel. Labels, places, metadata, provenance and the report are not
    proved; the output lists those that the bundle contains.

    The exit code is 0 if all claims hold, and 1 otherwise, with the reason and the worst pair of secrets. If nothing
    was verified, the exit code is 2 (there is no readable bundle) or 3 (more memory is needed). For a schedule, all
    designs and their ε are verified, but not the joint leakage of its releases, the α of its budgets.
    """
    with finding_extensions(extensions):
        _verify(folder, as_json, memory)


def _verify(folder: Path, as_json: bool, memory: float) -> None:
    if is_schedule(folder):
        _verify_schedule(folder, as_json, memory)
        return
    require_design(folder)
    found, verified = _prove_bundle(folder, as_json, memory)
    if as_json:
        certificate = verified.certificate
        said = {**certificate.to_json(), "unproved": list(verified.unproved)}
        click.echo(json.dumps(said, indent=2))
        return
    output().print(f"{folder}: every claim verified.", style="green", soft_wrap=True)
    _show(found, verified)


def _prove_bundle(folder: Path, as_json: bool, memory: float) -> tuple[Bundle, Verified]:
    """Read a bundle once, and return it with the result of its verification."""
    found = None
    try:
        found = inspect(folder, memory)
        return found, prove(found, memory)
    except UnverifiedError as error:
        raise type(error)(f"{folder} was not verified: {error.reason}") from error
    except CertificateError as error:
        labels = [] if found is None else found.arrays.get("secrets", np.array([])).tolist()
        reason = error.reason + _describe_pair(labels, error.pair)
        if as_json:
            pair = None if error.pair is None else list(error.pair)
            click.echo(json.dumps({"holds": False, "reason": reason, "pair": pair}, indent=2))
        raise CertificateError(f"{folder} does not verify: {reason}", error.pair) from error


def _verify_schedule(folder: Path, as_json: bool, memory: float) -> None:
    """Verify every design of a schedule, and its ε."""
    found: list[VerifiedDesign] = []
    for name, (epsilon, steps) in read_scheduled(folder).items():
        held, verified = _prove_bundle(folder / name, as_json, memory)
        named = tuple(FORMS[stated.kind].named for stated in held.evidence.requirements)
        found.append(VerifiedDesign(name, epsilon, tuple(steps), verified, named))
    places = find_scheduled_requirements(found, folder)
    if as_json:
        designs = [
            {
                "folder": design.name,
                "epsilon": exact_text(design.epsilon),
                "requirements": list(places),
                "steps": list(design.steps),
                "certificate": design.certificate.to_json(),
                "unproved": [*design.verified.unproved, UNPROVED_ALPHA],
            }
            for design in found
        ]
        click.echo(json.dumps(designs, indent=2))
        return
    console = output()
    releases = sum(len(design.steps) for design in found)
    console.print(
        f"{folder}: every claim of {len(found)} designs for {releases} releases verified.\n",
        style="green",
        soft_wrap=True,
    )
    first = found[0].certificate.requirements
    kinds = ", ".join(dict.fromkeys(f"{first[place].kind} privacy" for place in places))
    console.print(f"ε is the parameter of {kinds}.", soft_wrap=True)
    shown = table("ε", "releases", "cost", "no less than", "folder", numbers=("releases", "cost", "no less than"))
    for design in found:
        bounds = (at_most(design.certificate.cost), at_least(design.certificate.lower_bound))
        shown.add_row(exact_text(design.epsilon), str(len(design.steps)), *bounds, design.name)
    console.print(shown)
    if telling := [f"{each.name} ({len(each.certificate.revealed)})" for each in found if each.certificate.revealed]:
        console.print(f"\nSecrets are revealed for certain by {', '.join(telling)}.", style="yellow", soft_wrap=True)
    others = [checked for place, checked in enumerate(first) if place not in places]
    if others:
        said = ", ".join(f"{checked.kind} privacy, {checked.symbol} {checked.nominal}" for checked in others)
        console.print(f"\n{found[0].name} also guarantees: {said}.", soft_wrap=True)
    console.print(f"\n{UNPROVED_ALPHA}", soft_wrap=True)
    console.print("To see all proved claims of a design, run `mechdesign verify` on its folder.")


@dataclass(frozen=True)
class VerifiedDesign:
    """A verified design of a schedule: its folder, the ε of the schedule, and the releases.

    `named` contains True for each requirement that is a generic claim with the name of another requirement.
    """

    name: str
    epsilon: Fraction
    steps: tuple[int, ...]
    verified: Verified
    named: tuple[bool, ...]

    @property
    def certificate(self) -> Certificate:
        """The recomputed certificate."""
        return self.verified.certificate


def find_scheduled_requirements(found: Sequence[VerifiedDesign], folder: Path) -> tuple[int, ...]:
    """Return the requirements that have the ε of the schedule in all designs.

    The designs of one schedule differ only in this ε: all their other ε, radii and floors must be equal.

    Raises `CertificateError` if no requirement has this ε in all designs, or if the designs differ otherwise.
    """
    places = set(range(len(found[0].certificate.requirements)))
    for design in found:
        checked = enumerate(design.certificate.requirements)
        text = exact_text(design.epsilon)
        places &= {place for place, each in checked if each.number == "epsilon" and each.nominal == text}
        if not places:
            raise CertificateError(f"{folder / design.name} verifies, but not for ε = {text}, its value in {SCHEDULE}")
    for design in found[1:]:
        if _others(design, places) != _others(found[0], places):
            raise CertificateError(
                f"{folder / design.name} and {found[0].name} verify, but do not belong to one schedule: they "
                "differ in more than the ε of their releases"
            )
    return tuple(sorted(places))


def _others(design: VerifiedDesign, places: Set[int]) -> list[object]:
    """Return kind, nominal value and radius of each requirement; a value that may follow the schedule's ε is empty."""
    checked = enumerate(zip(design.named, design.certificate.requirements, strict=True))
    return [
        (each.kind, "" if named or place in places else each.nominal, each.radius) for place, (named, each) in checked
    ]


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
