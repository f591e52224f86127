"""``mechdesign inspect`` and ``mechdesign compare``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.base._files import write_output
from mechdesign.certify._exact import exact_text
from mechdesign.certify._revealed import revealed
from mechdesign.cli._console import (
    Text,
    certificate_tables,
    certificate_to_json,
    output,
    say_json,
    say_note,
    say_private_folders,
    show_next,
    table,
)
from mechdesign.model._channel import Channel
from mechdesign.model._disclosure import list_secrets
from mechdesign.model._origin import STANDS_IN
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import claim_names, cost_measure
from mechdesign.model._words import percent, short
from mechdesign.report._private import private
from mechdesign.report._proved import count_bounded_pairs
from mechdesign.synthesis._folders import SET, check_outputs, require_design
from mechdesign.synthesis._result import Design

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mechdesign.certify._certificate import Certificate
    from mechdesign.model._origin import Origin
    from mechdesign.tables._release import Release


@click.command()
@click.argument("directories", metavar="A B …", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", "page", metavar="FILE.html", type=click.Path(path_type=Path), help="Also write a page.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as JSON.")
def compare(directories: tuple[Path, ...], page: Path | None, as_json: bool) -> None:
    """Compare designs: costs, requirements and adversaries, and with -o their maps side by side.

    A, B, … are folders written by `mechdesign design`. Numbers are read from their certificates, which `mechdesign
    verify` proves again; attacks are computed here.
    """
    if len(directories) < 2:
        raise InputError("A B …", "is one design", value=str(directories[0]), bound="two folders or more")
    if page is not None and page.suffix.lower() not in (".html", ".htm"):
        raise InputError("--output", "is not the name of a page", value=str(page), bound="a name that ends in .html")
    for each in directories:
        require_design(each)
    check_outputs(page, inputs={f"{each}, {name}": each / name for each in directories for name in SET})
    # Imported late, since `inspect` does not need it.
    from mechdesign.report._compare_page import attack_design, differences, headline, heads, html, rows

    read = [Design.load(each) for each in directories]
    designs = [
        attack_design(name, each.problem, each.channel, each.certificate, each.origin)
        for name, each in zip(_names(directories), read, strict=True)
    ]
    notes, found = differences(designs), rows(designs)
    listed = [(shown.name, each.problem, each.origin) for shown, each in zip(designs, read, strict=True)]
    said = say_private_folders(listed, "this comparison")
    names = [each.name for each in designs]
    if as_json:
        # The last column, for people only, is the difference of two designs.
        lines = {line[0]: dict(zip(names, line[1:], strict=False)) for line in found}
        say_json({"designs": names, "differences": notes, "table": lines})
    else:
        shown = table(*heads(designs), numbers=heads(designs)[1:])
        for line in found:
            shown.add_row(*line)
        output().print(f"{headline(designs)}\n", style="bold", soft_wrap=True)
        output().print(shown)
        for note in notes:
            say_note(note)
    if page is not None:
        write_output(page, [html(designs, said).encode()])
        if not as_json:
            show_next({str(page): "the comparison with maps side by side: open it in a browser"})


def _names(directories: tuple[Path, ...]) -> list[str]:
    """Return the names of the folders, or their paths if two are equal; bytes that are no text become escapes."""
    names = [each.resolve().name for each in directories]
    if len(set(names)) < len(names):
        names = [str(each) for each in directories]
    return [os.fsencode(each).decode(errors="backslashreplace") for each in names]


ANSWERS = "answers.csv"
"""The file that identifies a release from a table."""


def show_release(folder: Path, as_json: bool) -> None:
    """Show the release from a table in a folder."""
    # Imported late, since `inspect` of a design does not need it.
    from mechdesign.tables._files import load

    release = load(folder)
    facts = _release_facts(release)
    if as_json:
        say_json({**facts, "remarks": list(release.description.remarks)})
        return
    console = output()
    console.print(Text(f"Release from a table: {release.description.what}", "bold"))
    shown = table("", "")
    shown.show_header = False
    for name, fact in facts.items():
        shown.add_row(name, Text(fact))
    console.print(shown)
    for remark in release.description.remarks:
        say_note(remark)


def _release_facts(release: Release) -> dict[str, str]:
    described = release.description
    return {
        "policy": described.policy,
        "neighbours": described.neighbours,
        "definition": described.definition,
        "mechanism": described.mechanism,
        "spent": described.spent if described.epsilon or described.rho else "nothing",
        "answers": f"{len(release):,}, in steps of {exact_text(described.step)}",
        "noise": "a generator of the caller: this is a rehearsal"
        if described.rehearsal
        else "the operating system's randomness",
    }


_MOST = 5


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--report", "page", metavar="FILE.html", type=click.Path(path_type=Path),
    help="Write the report again.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def inspect(folder: Path, page: Path | None, as_json: bool) -> None:
    """Show the contents of a folder written by `mechdesign design`: secrets, prior, answers, certificate, files.

    For a folder written by `mechdesign table`, show the answers, the protected values and the spent budget.

    Nothing is proved here: use `mechdesign verify`.
    """
    if page is None and (folder / ANSWERS).is_file():
        show_release(folder, as_json)
        return
    require_design(folder)
    check_outputs(page, inputs={})
    design = Design.load(folder)
    problem, certificate = design.problem, design.certificate
    facts = _facts(problem, design.channel, design.origin)
    files = {each.name: each.stat().st_size for each in sorted(folder.iterdir()) if each.is_file()}
    if page is not None:
        from mechdesign.report._design_page import html

        write_output(page, [html(problem, design.channel, certificate, design.origin).encode()])
    if as_json:
        proved = certificate_to_json(certificate)
        say_json({"title": problem.title, **facts, "files": files, "certificate": proved})
        return
    _show(problem, certificate, design.origin, facts, files)
    show_next({
        **({str(page): "the report: open it in a browser"} if page is not None else {}),
        f"mechdesign verify {folder}": "prove the design again, from the files alone",
        f"mechdesign compare {folder} OTHER": "compare this design with another design",
    })  # fmt: skip


def _show(
    problem: Problem,
    certificate: Certificate,
    origin: Origin | None,
    facts: Mapping[str, str],
    files: Mapping[str, int],
) -> None:
    """Show the facts of a design, its files with their sizes, its certificate, and its provenance."""
    console = output()
    console.print(Text(problem.title or "Privacy mechanism", "bold"))
    shown = table("", "")
    shown.show_header = False
    for name, fact in facts.items():
        shown.add_row(name, Text(fact))
    shown.add_row("files", Text(", ".join(f"{name} ({_size(size)})" for name, size in files.items())))
    console.print(shown)
    console.print()
    stands_in = origin is not None and origin.has_substitute_prior
    for each in certificate_tables(
        certificate,
        claim_names(problem),
        cost_measure(problem),
        bounded=count_bounded_pairs(problem),
        stands_in=stands_in,
    ):
        console.print(each)
        console.print()
    for name, value in sorted(certificate.provenance.items()):
        if value:
            console.print(f"{name.replace('seconds', 'time').replace('_', ' ')}: {_fact(name, value)}", soft_wrap=True)


def _facts(problem: Problem, channel: Channel, origin: Origin | None) -> dict[str, str]:
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
        "revealed for certain": list_secrets(found, n, domain)
        if (found := revealed(channel.numerators))
        else "no secret",
        "never given": f"{int((channel.numerators == 0).sum())} of {n * m} pairs of a secret and an answer",
        **({"private": "; ".join(told)} if (told := private(problem, origin)) else {}),
    }


def _fact(name: str, value: str | int | float) -> str:
    if name == "memory_estimate" and not isinstance(value, str):
        return _size(round(value))
    if name.endswith("seconds") and not isinstance(value, str):
        return f"{short(value)} s"
    return short(value) if isinstance(value, float) else str(value)


def _size(count: int) -> str:
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{max(1, round(count / 1e3))} kB"
