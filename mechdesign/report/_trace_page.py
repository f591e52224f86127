"""The report page of a released trace, which may be published with the trace."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

from mechdesign.certify._exact import as_decimal, exact_text, text_up
from mechdesign.model._words import plain, short
from mechdesign.report import _maps as maps
from mechdesign.report._guarantee import describe_trace
from mechdesign.report._headlines import trace_headline, write_odds
from mechdesign.report._pages import figure, render
from mechdesign.report._trace_figures import has_map, over_time, trace_map
from mechdesign.traces._released import ReleasedTrace, accuracy

# Names of mechanisms in words; other names are shown unchanged.
_MECHANISMS = {
    "planar-isotropic": "planar noise of equal strength in all directions",
    "planar-laplace": "planar Laplace noise",
    "optimal": "channels of least cost",
}
# Maximal number of revealed states that are named.
_NAMED = 5


def html(found: ReleasedTrace) -> str:
    """Return the report as one self-contained page, with the data that it depends on in addition to the outputs."""
    return render("trace.html", **_facts(found))


def _facts(found: ReleasedTrace) -> dict[str, object]:
    together, unit = found.composition, f" {found.domain.unit}" if found.domain.unit else ""
    bound = "no bound"
    if math.isfinite(together.bound):
        nats = text_up(as_decimal(together.bound), 6)
        bound = f"a factor of at most {write_odds(together.bound)} ({nats} nats)"
    count = together.releases
    return {
        "title": plain(found.title).strip() or "Released trace",
        "verdict": trace_headline(found),
        "certified": found.certified,
        "steps": f"{count} step{'s' * (count != 1)}",
        "states": found.domain.size,
        "mechanism": _MECHANISMS.get(found.mechanism, found.mechanism),
        "finished": found.finished,
        "epsilon": exact_text(together.epsilon),
        "edges": together.graph.number_of_edges(),
        "bound": bound,
        "revealing": revealing(found),
        "pictures": dict(_pictures(found)),
        "accuracy": [(row.name, f"{short(row.expected, 4)}{unit}") for row in accuracy(found)],
        "meaning": found.history.meaning,
        "guarantee": describe_trace(found),
    }


def revealing(found: ReleasedTrace) -> str:
    """Return the numbers of states revealed for certain and of revealing steps, as text; "" if no state is revealed."""
    steps = [states for states in found.revealed if states]
    if not steps:
        return ""
    states = sorted(set().union(*steps))
    names = ", ".join(found.domain.labels[state] for state in states[:_NAMED]) + ", …" * (len(states) > _NAMED)
    return f"{len(states)} ({names}), at {len(steps)} of {len(found.revealed)} steps"


def _pictures(found: ReleasedTrace) -> Iterator[tuple[str, object]]:
    """Yield the figures by the headings of their sections."""
    mapped = maps.is_map(found.domain)
    if has_map(found):
        caption = "The released state of each step."
        if mapped:
            caption = (
                "Squares are released places, joined in their order; later steps are darker, and the first has a ring."
            )
        if mapped and found.outputs is not None:
            caption += (
                " Within their state, squares are offset by a fixed pattern, so that they do not hide one another."
            )
        draw = functools.partial(trace_map, found)
        yield "What was released", figure(draw, "map", "The released trace", caption)
    caption = (
        "The degree of protection is the number of states among which a state is hidden. The expected error is the "
        "mean distance of an adversary's best guess, given the transitions and the outputs so far, or all outputs."
    )
    draw = functools.partial(over_time, found)
    yield "Step by step", figure(draw, "steps", "Protection and expected error by step", caption)
