"""Sentences about what a series promises, and what it assumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mechdesign.certify._exact import exact_text
from mechdesign.leakage._contents import Contents
from mechdesign.leakage._entries import Entry, TimeStep, totals
from mechdesign.leakage._series import Series, place_of

OUTSIDE = (
    "This release is outside the series of the ledger: the limit of the leakage does not count what it tells about "
    "the same values."
)
"""The sentence about a release with ``series=False``."""


def promises(contents: Contents, entry: Entry) -> tuple[str, ...]:
    """Return the sentences about an entry of a ledger with a series."""
    series = contents.series
    assert series is not None
    if entry.step is None:
        return (OUTSIDE,)
    before = contents.entries[: contents.entries.index(entry) + 1]
    epsilon = exact_text(entry.epsilon) if entry.epsilon is not None else ""
    return (
        f"This release (step {entry.step}): ε = {epsilon} between any two values of a person at this step.",
        f"All releases so far together ({len(before)}): {totals(before)}, whatever all values of a person are.",
        f"Each value, given all releases of the series and the correlation: α = {exact_text(series.alpha)}.",
        *_left_out(before, entry.step),
        *assumptions(series),
        *([_DIVISION] if any(each.part is not None for each in before) else []),
    )


def _left_out(entries: Sequence[Entry], step: TimeStep) -> Iterator[str]:
    """Yield a sentence if steps lie between a time step and the nearest one of the entries."""
    others = {entry.step for entry in entries if entry.step is not None} - {step}
    if others:
        nearest = min(others, key=lambda other: abs(place_of(other) - place_of(step)))
        count = abs(place_of(nearest) - place_of(step)) - 1
        if count:
            yield (
                f"Steps left out between {nearest} and {step} at this time: {count}. What was released there before is "
                "not counted; what is released there later is."
            )


def assumptions(series: Series) -> tuple[str, ...]:
    """Return the sentences about what the limit α assumes."""
    sides = {"backward": series.backward, "forward": series.forward}
    several = [name for name, losses in sides.items() if len(losses) > 1]
    unknown = [name for name, losses in sides.items() if not any(losses)]
    return (
        "The limit α assumes that a person has one row at each step, and that the chain holds for each person and at "
        "every step. Groups of people that move in "
        "different ways can leak more than a chain counted over all of them says.",
        *([_CANDIDATES] if several else []),
        *(_UNKNOWN.format(side=name) for name in unknown),
        *([_OWN] if series.history == "own" else []),
    )


_CANDIDATES = (
    "The candidates bound an adversary who knows which of them is true, not one who is unsure: mixtures can leak more."
)
_UNKNOWN = (
    "The limit α assumes that the adversary does not know the {side} correlation. Who knows the other one and how many "
    "people have each value knows it too, and the bound is then too small."
)
_OWN = "ε was chosen from these people's own data; the limit α does not cover what ε tells about them."
_DIVISION = (
    "Groups of a division are public, tell nothing about the values, and nobody changes the group within a step; a "
    "correction for somebody who did is charged under another division."
)
