"""``mechdesign inspect``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from mechdesign.certify._exact import exact_text
from mechdesign.certify._privacy import revealed
from mechdesign.cli._certificates import certificate_facts
from mechdesign.cli._console import progress, say_private_folders
from mechdesign.cli._found import FILE, Found, Shown, command
from mechdesign.model._disclosure import list_secrets
from mechdesign.model._origin import STANDS_IN
from mechdesign.model._words import percent, short
from mechdesign.report._statements import private
from mechdesign.report._verdicts import judge_design, judge_table
from mechdesign.synthesis._folders import require_design
from mechdesign.synthesis._result import Design

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWERS = "answers.csv"
"""The file that identifies a release from a table."""

_MOST = 5


@command
@click.argument("folders", metavar="DIR...", nargs=-1, required=True, type=FILE)
def inspect(folders: tuple[Path, ...]) -> Found:
    """Show what is in a folder of `mechdesign design` or `mechdesign table`, or compare several designs.

    One design: secrets, prior, answers, certificate, files and provenance. Several: their costs, requirements and
    errors of attacks side by side, and all in which they differ. Costs are ranked only if everything but the numbers
    of the requirements is equal. Nothing is proved here: use `mechdesign verify`.

    Example: mechdesign inspect city town
    """
    if len(folders) == 1 and (folders[0] / ANSWERS).is_file():
        return _inspect_release(folders[0])
    for folder in folders:
        require_design(folder)
    designs = [Design.load(folder) for folder in folders]
    return _inspect(folders[0], designs[0]) if len(designs) == 1 else _compare(folders, designs)


def _inspect(folder: Path, design: Design) -> Found:
    files = {each.name: each.stat().st_size for each in sorted(folder.iterdir()) if each.is_file()}
    facts = {
        "title": design.problem.title or None,
        **_facts(design),
        **certificate_facts(design.problem, design.certificate, design.origin),
        "files": {name: Shown(size, _size(size)) for name, size in files.items()},
        "provenance": {name: _fact(name, value) for name, value in sorted(design.certificate.provenance.items())},
        "next": [f"mechdesign verify {shlex.quote(str(folder))}    # prove the design again, from the files alone"],
    }
    return Found(
        f"{folder}, as its files say: {judge_design(design.problem, design.certificate, design.origin)}", facts
    )


def _compare(folders: Sequence[Path], designs: Sequence[Design]) -> Found:
    # Imported late, since one design does not need it.
    from mechdesign.cli._comparison import compare

    names = _names(folders)
    say_private_folders(
        [(name, each.problem, each.origin) for name, each in zip(names, designs, strict=True)], "this comparison"
    )
    with progress(f"attacking {len(designs)} channels"):
        return compare(dict(zip(names, designs, strict=True)))


def _names(folders: Sequence[Path]) -> list[str]:
    """Return the names of the folders, or their paths if two are equal; bytes that are no text become escapes."""
    names = [each.resolve().name for each in folders]
    if len(set(names)) < len(names):
        names = [str(each) for each in folders]
    names = [f"{name} ({place})" if names.count(name) > 1 else name for place, name in enumerate(names)]
    return [os.fsencode(each).decode(errors="backslashreplace") for each in names]


def _inspect_release(folder: Path) -> Found:
    # Imported late, since a design does not need it.
    from mechdesign.tables._files import load

    release = load(folder)
    described = release.description
    facts = {
        "release": described.what,
        "policy": described.policy,
        "neighbours": described.neighbours,
        "definition": described.definition,
        "mechanism": described.mechanism,
        "spent": described.spent if described.epsilon or described.rho else "nothing",
        "answers": f"{len(release):,}, in steps of {exact_text(described.step)}",
        "noise": "a generator of the caller: this is a rehearsal"
        if described.rehearsal
        else "the operating system's randomness",
        "remarks": list(described.remarks),
    }
    return Found(f"{folder}, as its files say: {judge_table(release)}", facts)


def _facts(design: Design) -> dict[str, object]:
    problem, channel, origin = design.problem, design.channel, design.origin
    prior, domain = problem.prior, problem.secrets
    n, m = channel.numerators.shape
    likely = np.argsort(-prior, kind="stable")[:_MOST].tolist()
    named = [f"{domain.labels[index] if domain is not None else index} ({percent(prior[index])})" for index in likely]
    rows = channel.matrix
    spread = np.exp(-(rows * np.log(rows, out=np.zeros_like(rows), where=rows > 0)).sum(axis=1))
    possible = int((prior > 0).sum())
    stands_in = origin is not None and origin.has_substitute_prior
    return {
        "secrets": str(domain) if domain is not None else str(n),
        "observables": "the secrets" if problem.observables is domain and domain is not None else str(m),
        "prior": STANDS_IN if stands_in else f"{possible} of {n} secrets can occur; most likely {', '.join(named)}",
        "answers": f"spread over {short(float(spread.min()), 3)} to {short(float(spread.max()), 3)} observables",
        "revealed_for_certain": list_secrets(found, n, domain)
        if (found := revealed(channel.numerators))
        else "no secret",
        "never_given": f"{int((channel.numerators == 0).sum())} of {n * m} pairs of a secret and an answer",
        "private": "; ".join(private(problem, origin)) or None,
    }


def _fact(name: str, value: str | int | float) -> object:
    if name == "memory_estimate" and not isinstance(value, str):
        return Shown(value, _size(round(value)))
    if name.endswith("seconds") and not isinstance(value, str):
        return Shown(value, f"{short(value)} s")
    return value


def _size(count: int) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"
