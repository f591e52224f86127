"""The page of the leakage of repeated releases: leakage over time, its largest values, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mechdesign.base._arrays import Floats
from mechdesign.leakage._loss import LossFunction
from mechdesign.report._leakage_figures import SERIES_OF_LEAKAGE, leakage_figure
from mechdesign.report._page import Picture, Prose, Section, Table, first_rows, page
from mechdesign.report._style import report_style
from mechdesign.report._verdicts import judge_leakage, limit_leakage, write_nats, write_odds


@report_style()
def html(
    columns: Mapping[str, Floats],
    facts: Mapping[str, float],
    backward: LossFunction | None,
    forward: LossFunction | None,
) -> str:
    """Return the page of releases; `columns` are their leakages and budgets by name, and `facts` leakages by name."""
    columns = {name: columns[name] for name in SERIES_OF_LEAKAGE}
    rows = [(str(step), *map(write_nats, each)) for step, each in enumerate(zip(*columns.values(), strict=True))]
    said = (
        "Backward leakage is that of a release with all earlier ones, forward leakage with all later ones, temporal "
        "leakage with both."
    )
    numbers = first_rows(rows, ("Release", *SERIES_OF_LEAKAGE.values()))
    picture = Picture("leakage", "Leakage of each release", said, leakage_figure(columns), numbers)
    largest = float(columns["temporal"].max())
    odds = "Factor by which all releases together may change the odds between two states at one release"
    table = [(name.replace("_", " ").capitalize(), write_nats(value)) for name, value in facts.items()]
    sections = [
        Section("Leakage over time", [picture]),
        Section("Largest leakages, in nats", [Table([*table, (odds, write_odds(largest))])]),
        Section("What was assumed", [Prose([*_assumed(backward, forward)], "list")]),
        Section("What this does not promise", [Prose([*limit_leakage()], "list")]),
    ]
    return page("Leakage of repeated releases", judge_leakage(largest), sections)


def _assumed(backward: LossFunction | None, forward: LossFunction | None) -> Iterator[str]:
    yield "Each budget bounds every pair of states, and each release draws its own noise."
    for name, loss in (("Pr(state before | state now)", backward), ("Pr(next state | state now)", forward)):
        if loss is None:
            yield f"The adversary does not know {name}."
            continue
        count = len(loss.unknown)
        rows = f"; {count} of its rows are unknown, and may be any row" * bool(count)
        yield f"The adversary knows {name}, a matrix of {loss.n} states{rows}."
