"""Write the files of a chain from a specification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import structs

from mechdesign.base._errors import SpecificationError
from mechdesign.certify._texts import csv_text
from mechdesign.leakage._estimate import Correlations
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import ChainTable
from mechdesign.model._markov import MarkovChain, OpenChain
from mechdesign.specification._chains import build_correlations
from mechdesign.specification._specification import Specification


def chain_files(
    given: Specification,
    every: str | None = None,
    gap: str | None = None,
    ends: Literal["any", "stay"] | None = None,
) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files ``forward.csv``, ``backward.csv`` and ``states.csv`` of a chain, and notes for the user.

    The chain comes from ``[release]``, or is counted from the data of the prior; it is never smoothed. The arguments
    `every`, `gap` and `ends` override keys of the chain. An unknown row is written as zeros.
    """
    stated, prior = given.document.release.transition, given.document.prior
    if stated is None and (prior.checkins or prior.plt) is None:
        remedy = "add [release] with transition = { … }"
        raise SpecificationError("prior", "does not come from data in order of time", remedy=remedy)
    options = {"every": every, "gap": gap, "ends": ends}
    changed = {name: value for name, value in options.items() if value is not None}
    chain = structs.replace(stated or ChainTable(estimated=True), **changed)
    found, notes = build_correlations(chain, given.source / "release" / "transition", given.domain, prior)
    if chain.smoothing:
        notes += ("the chain is counted without smoothing, which is for beliefs: it would lower the leakage",)
    files = {
        "forward.csv": matrix_bytes(found.forward),
        "backward.csv": matrix_bytes(found.backward),
        "states.csv": _states(found, given.domain),
    }
    return files, (*notes, *_notes(found, given.domain))


def _notes(found: Correlations, domain: Domain) -> Iterator[str]:
    """Yield notes about states that are left out, about unknown rows, and about private counts in the files."""
    if left_out := domain.size - len(found.states):
        yield f"{left_out} of {domain.size} states were never visited, and are left out"
    for name, verb, chain, states in (
        ("forward.csv", "leave", found.forward, found.never_left),
        ("backward.csv", "enter", found.backward, found.never_entered),
    ):
        if len(states):
            row = "are zeros, for any row" if isinstance(chain, OpenChain) else "have a 1 on the diagonal (ends = stay)"
            yield f"nobody was seen to {verb} {len(states)} of {len(found.states)} states: their rows in {name} {row}"
    if found.steps:
        yield (
            f"the matrices were counted from data: these files are private, because every count of {found.steps} steps "
            "can be read from them exactly"
        )


def matrix_bytes(chain: MarkovChain | OpenChain) -> bytes:
    """Return the content of the file of a matrix: a line of numbers for each row."""
    return "".join(f"{','.join(map(repr, row))}\n" for row in chain.matrix.tolist()).encode()


def _states(found: Correlations, domain: Domain) -> bytes:
    degrees = domain.degrees
    rows: list[list[object]] = [["row", "state", "label", *(("latitude", "longitude") if degrees is not None else ())]]
    for row, state in enumerate(found.states.tolist()):
        place = [] if degrees is None else [repr(value) for value in degrees[state].tolist()]
        rows.append([row, state, domain.labels[state], *place])
    return csv_text(rows).encode()
