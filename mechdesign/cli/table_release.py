"""What `mechdesign inspect` shows of a release from a table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.certify._exact import exact_text
from mechdesign.cli.console import Text
from mechdesign.cli.console import output
from mechdesign.cli.console import say_json
from mechdesign.cli.console import say_note
from mechdesign.cli.console import table

if TYPE_CHECKING:
    from mechdesign.tables._release import Release

__all__ = ["ANSWERS", "show_release"]

ANSWERS = "answers.csv"
"""The file by which a release from a table is known."""


def show_release(directory: Path, as_json: bool) -> None:
    """Show the release from a table in a folder; one that is unsound opens as well, with a warning."""
    # Imported late: `inspect` of a design does not need it.
    from mechdesign.tables._files import load

    release = load(directory)
    facts = _facts(release)
    if as_json:
        described = release.description
        said = {**facts, "unsound": described.unsound, "remarks": list(described.remarks)}
        say_json(said)
        return
    console = output()
    console.print(Text(f"Release from a table: {release.description.what}", "bold"))
    shown = table("", "")
    shown.show_header = False
    for name, fact in facts.items():
        shown.add_row(name, Text(fact, "bold" if name == "verdict" else ""))
    console.print(shown)
    # What an unsound release says of itself beyond this rests on too few neighbours.
    if not release.description.unsound:
        for remark in release.description.remarks:
            say_note(remark)


def _facts(release: Release) -> dict[str, str]:
    described = release.description
    return {
        **({"verdict": "unsound: the noise may be too small for the policy"} if described.unsound else {}),
        "policy": described.policy,
        "neighbours": described.neighbours,
        "definition": described.definition,
        "mechanism": described.mechanism,
        "spent": described.spent if described.epsilon or described.rho else "nothing",
        "answers": f"{len(release):,}, in steps of {exact_text(described.step)}",
        "noise": "a given generator: a rehearsal" if described.rehearsal else "the operating system's randomness",
    }
