"""``mechdesign verify``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from mechdesign.base._errors import CertificateError, UnverifiedError
from mechdesign.certify._bundle import Bundle, inspect
from mechdesign.certify._verify import Verified, prove
from mechdesign.cli._console import progress
from mechdesign.cli._found import FILE, Found, command
from mechdesign.synthesis._folders import require_design


@command
@click.argument("folder", metavar="DIR", type=FILE)
def verify(folder: Path) -> Found:
    """Prove a bundle again from its files alone: privacy, cost and lower bound, in exact arithmetic.

    Labels, places, metadata, provenance and the report are not proved; the output lists what the bundle contains of
    them. The table channel.csv must contain the proved channel.

    The exit code is 0 if all claims hold; 1 if one fails, with the worst pair of secrets, or if the bundle is damaged
    or of another version; and 2 if there is no bundle, or it cannot be read.

    Example: mechdesign verify city
    """
    require_design(folder)
    found = None
    try:
        with progress("verifying in exact arithmetic"):
            found = inspect(folder)
            verified = prove(found)
        return _found(folder, found, verified)
    except UnverifiedError as error:
        raise type(error)(f"{folder} was not verified: {error.reason}") from error
    except CertificateError as error:
        labels = [] if found is None else found.arrays.get("secrets", np.array([])).tolist()
        said = f"{folder} does not verify: {error.reason}{_describe_pair(labels, error.pair)}"
        return Found(said, {"holds": False, "reason": error.reason, "pair": error.pair}, 1)


def _found(folder: Path, found: Bundle, verified: Verified) -> Found:
    # Names and units need more modules than the proof.
    from mechdesign.cli._certificates import certificate_facts
    from mechdesign.report._statements import describe_proof, describe_revealed, list_unproved
    from mechdesign.report._verdicts import judge_design
    from mechdesign.synthesis._bundle import restore_problem

    certificate = verified.certificate
    problem, origin = restore_problem(found)
    facts = {
        **certificate_facts(problem, certificate, origin),
        "proved": [*describe_proof(problem, certificate), *describe_revealed(problem, certificate)],
        "stated_and_not_proved": [f"{name}: {text}" if name else text for name, text in list_unproved(problem, origin)],
        "in_the_files_and_not_proved": list(verified.unproved),
    }
    return Found(f"{folder}: every claim verified. {judge_design(problem, certificate, origin)}", facts)


def _describe_pair(labels: Sequence[object], pair: tuple[int, int] | None) -> str:
    """Return a clause that names a pair of secrets by index and, if there are labels, by label."""
    if pair is None:
        return ""
    names = [
        f"{index} ({labels[index]})" if index < len(labels) and str(labels[index]) != str(index) else str(index)
        for index in pair
    ]
    return f". Worst pair: secrets {names[0]} and {names[1]}"
