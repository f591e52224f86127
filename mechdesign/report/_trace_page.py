"""The report of a released trace: one page that may be published with it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mechdesign.certify._exact import exact_text, printed, text_up
from mechdesign.model._words import plain, short
from mechdesign.report import _maps as maps
from mechdesign.report._pages import document, figure, section, table, text
from mechdesign.report._trace_figures import over_time, trace_map
from mechdesign.traces._released import ReleasedTrace, accuracy

# So many of the states revealed are named.
_NAMED = 5


def html(found: ReleasedTrace) -> str:
    """Return the report as one self-contained page; it says what it depends on beyond the outputs."""
    title = plain(found.title).strip() or "Released trace"
    return document(title, [_header(title, found), _guarantee(found), *_shown(found), _accuracy(found), _use(found)])


def _header(title: str, found: ReleasedTrace) -> str:
    if found.certified:
        verdict = "<strong>Holds.</strong> Every step was checked in exact arithmetic."
    else:
        verdict = "<strong>Not proved.</strong> Outputs are floating-point numbers: a simulation."
    sentences = [f"{_steps(found)} of {found.domain.size} states were released by {found.mechanism}."]
    if found.seeded:
        sentences.append("The outputs come from a seed: this is a rehearsal, never to be published.")
    if not found.finished:
        sentences.append("The run was stopped before the end of the trace.")
    return "\n".join(
        [
            "<header>",
            f"<h1>{text(title)}</h1>",
            f'<p class="verdict {"holds" if found.certified else "fails"}">{verdict}</p>',
            f"<p>{text(' '.join(sentences))}</p>",
            "</header>",
        ]
    )


def _guarantee(found: ReleasedTrace) -> str:
    together = found.composition
    bound = f"at most {text_up(printed(together.bound), 6)}" if math.isfinite(together.bound) else "no bound"
    rows = [
        ("ε of all steps together", text(exact_text(together.epsilon))),
        ("Edges of the policy graph that every step kept", str(together.graph.number_of_edges())),
        ("Logarithm of the odds of any two possible trajectories, changed by", bound),
    ]
    if said := revealing(found):
        rows.append(("States that an answer reveals for certain", text(said)))
    note = (
        "Two states joined by an edge that every step kept cannot be told apart by more than ε, by all outputs "
        "together. Another run of the same trace would add its ε."
    )
    return section("What all steps tell together", table((), rows, "numbers"), f"<p>{text(note)}</p>")


def revealing(found: ReleasedTrace) -> str:
    """Say how many states are revealed for certain, and at how many steps; nothing where none is."""
    steps = [states for states in found.revealed if states]
    if not steps:
        return ""
    states = sorted(set().union(*steps))
    names = ", ".join(found.domain.labels[state] for state in states[:_NAMED]) + ", …" * (len(states) > _NAMED)
    return f"{len(states)} ({names}), at {len(steps)} of {len(found.revealed)} steps"


def _shown(found: ReleasedTrace) -> Iterator[str]:
    drawn = trace_map(found)
    if drawn is not None:
        mapped = maps.kind(found.domain) in ("grid", "points")
        caption = (
            "Squares are released places, joined in their order: the later a step, the darker; the first has a ring."
            if mapped
            else "The released state of each step."
        )
        if mapped and found.outputs is not None:
            caption += " Within their state, squares are spread by a fixed pattern, so that none hides another."
        yield section("What was released", figure(drawn, "map", "The released trace", caption))
    caption = (
        "The degree of protection is the number of states among which a state is hidden. The expected error is how far "
        "off somebody expects to be who knows the transitions, and guesses as well as the outputs so far, or all of "
        "them, allow."
    )
    yield section("Step by step", figure(over_time(found), "steps", "Protection and expected error by step", caption))


def _accuracy(found: ReleasedTrace) -> str:
    unit = f" {found.domain.unit}" if found.domain.unit else ""
    rows = [(text(row.name), text(f"{short(row.expected, 4)}{unit}")) for row in accuracy(found)]
    note = (
        "Averages over the steps, as somebody expects who knows transitions and outputs. How far off they truly "
        "are is not public."
    )
    return section("How far off", table(("", "Expects to be off by"), rows, "numbers"), f"<p>{note}</p>")


def _use(found: ReleasedTrace) -> str:
    files = (
        "released.csv has the outputs, steps.json the proof of each step, and release.json the digests of all files."
    )
    return section("Files", f"<p>{text(files)} {text(found.history.meaning)}</p>")


def _steps(found: ReleasedTrace) -> str:
    count = found.composition.releases
    return f"{count} step{'s' * (count != 1)}"
