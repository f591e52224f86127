"""The page of a released trace, which may be published with the trace."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mechdesign.base._arrays import Floats
from mechdesign.certify._exact import as_decimal, exact_text, text_up
from mechdesign.model._words import short
from mechdesign.report import _trace_figures as figures
from mechdesign.report._maps import in_unit, is_map
from mechdesign.report._page import Picture, Prose, Section, Table, first_rows, page
from mechdesign.report._style import report_style
from mechdesign.report._verdicts import judge_trace, limit_trace, write_odds
from mechdesign.traces._planner import OPTIMAL
from mechdesign.traces._released import ReleasedTrace, accuracy

# Names of mechanisms in words; other names are shown unchanged.
_MECHANISMS = {
    "planar-isotropic": "planar noise of equal strength in all directions",
    "planar-laplace": "planar Laplace noise",
    OPTIMAL: "channels of least cost",
}
# Maximal number of revealed states that are named.
_NAMED = 5


@report_style()
def html(found: ReleasedTrace) -> str:
    """Return the page of a released trace."""
    together, unit = found.composition, f" {found.domain.unit}" if found.domain.unit else ""
    bound = "no bound"
    if math.isfinite(together.bound):
        nats = text_up(as_decimal(together.bound), 6)
        bound = f"a factor of at most {write_odds(together.bound)} ({nats} nats)"
    rows = [
        ("Steps", str(together.releases) + ("" if found.finished else ", then the run was stopped")),
        ("States", str(found.domain.size)),
        ("Mechanism", _MECHANISMS.get(found.mechanism, found.mechanism)),
        ("ε of all steps together", exact_text(together.epsilon)),
        ("Edges that the policy graphs of all steps share", str(together.graph.number_of_edges())),
        ("Maximal change of the odds between any two possible trajectories", bound),
    ]
    if told := list_revealed(found):
        rows.append(("States that an answer reveals for certain", told))
    errors = [(row.name, f"{short(row.expected, 4)}{unit}") for row in accuracy(found)]
    files = "released.csv has the outputs, steps.json the proof of each step, release.json the digests of all files."
    sections = [
        Section("What all steps tell together", [
            Table(rows),
            Prose(["Every step was checked in exact arithmetic."] if found.certified else []),
        ]),
        Section("Step by step", list(_pictures(found))),
        Section("How far off", [
            Table(errors, ("Who", "Expects to be off by")),
            Prose([
                "Expected errors, averaged over the steps, for someone who knows the transitions and the outputs. The "
                "actual errors are not public."
            ]),
        ]),
        Section("What this does not promise", [Prose(list(limit_trace(found)), "list")]),
        Section("Files", [Prose([files])]),
    ]  # fmt: skip
    return page(found.title if found.title.strip() else "Released trace", judge_trace(found), sections)


def list_revealed(found: ReleasedTrace) -> str:
    """Return the numbers of states revealed for certain and of revealing steps, as text; "" if no state is revealed."""
    steps = [states for states in found.revealed if states]
    if not steps:
        return ""
    states = sorted(set().union(*steps))
    names = ", ".join(found.domain.labels[state] for state in states[:_NAMED]) + ", …" * (len(states) > _NAMED)
    return f"{len(states)} ({names}), at {len(steps)} of {len(found.revealed)} steps"


def _pictures(found: ReleasedTrace) -> Iterator[Picture]:
    if figures.can_draw(found):
        if found.outputs is not None:
            said = "The released state of each step."
            if is_map(found.domain):
                said = "The released state of each step, spread within its place so that steps do not hide one another."
            released = [found.domain.labels[state] for state in found.outputs.tolist()]
        else:
            said = "The released places in their order."
            released = [", ".join(map(short, place)) for place in found.places.tolist()]
        numbers = first_rows([(str(step), each) for step, each in enumerate(released)], ("Step", "Released"))
        yield Picture("map", "The released trace", said, figures.trace_figure(found), numbers)
    stages = [release.stage for release in found.releases]
    degrees = [stage.degrees[stage.members] for stage in stages]
    likely = [stage.prior[stage.members] / stage.prior[stage.members].sum() for stage in stages]
    expected = [float(weights @ of) for weights, of in zip(likely, degrees, strict=True)]
    protection = {"of the least protected state": [float(of.min()) for of in degrees], "expected": expected}
    said = "The number of states among which a state is hidden."
    yield _over_time("protection", "Degree of protection", said, "", protection)
    names = {"posteriors": "from the outputs so far", "smoothed": "from the whole trace"}
    errors = {name: found.beliefs.expected_error(found.lengths, kind) for kind, name in names.items()}
    said = "The mean distance of the best guess, given the transitions and the outputs."
    yield _over_time("errors", "Expected error", said, in_unit(found.domain.unit), errors)


def _over_time(name: str, title: str, said: str, unit: str, series: Mapping[str, Sequence[float] | Floats]) -> Picture:
    """Return the picture of named series over the steps."""
    steps = [(str(step), *map(short, each)) for step, each in enumerate(zip(*series.values(), strict=True))]
    made = figures.series_figure(f"{title.lower()}{unit}", series)
    return Picture(name, title, said, made, first_rows(steps, ("Step", *series)))
