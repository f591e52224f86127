"""The pictures of a released trace, those for all, and the files that show the true states, for its owner only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.model._domain import Domain
from mechdesign.traces._adversary import Measurable
from mechdesign.traces._adversary import degrees_of
from mechdesign.traces._composition import Composition
from mechdesign.traces._stage import Release
from mechdesign.report import maps
from mechdesign.report.style import figure_bytes
from mechdesign.report.traces import over_time_picture
from mechdesign.report.traces import trace_picture
from mechdesign.base._arrays import Integers

__all__ = ["over_time", "private_files", "public_pictures", "trace_map"]


class Drawable(Measurable, Protocol):
    """What the pictures show of a released trace; see `mechdesign.traces._released.ReleasedTrace`."""

    @property
    def releases(self) -> tuple[Release, ...]: ...
    @property
    def outputs(self) -> Integers | None: ...
    @property
    def composition(self) -> Composition: ...


def public_pictures(found: Drawable) -> dict[str, bytes]:
    """Return the pictures that may be published, by name; what they depend on, `ReleasedTrace.history` says."""
    files = {"over-time.svg": figure_bytes(over_time(found))}
    if (drawn := trace_map(found)) is not None:
        files["map.svg"] = figure_bytes(drawn)
    return files


def over_time(found: Drawable) -> Figure:
    """Show over the steps who protects whom, and how far an adversary expects to be off."""
    stages = [release.stage for release in found.releases]
    degrees = [stage.degrees[stage.members] for stage in stages]
    likely = [stage.prior[stage.members] / stage.prior[stage.members].sum() for stage in stages]
    least = [int(of.min()) for of in degrees]
    panels: list[tuple[str, dict[str, ArrayLike]]] = [
        ("degree of protection", {
            "of the least protected": least,
            "expected": [float(weights @ of) for weights, of in zip(likely, degrees, strict=True)],
        }),
        (f"expected error{_in_unit(found.domain)}", {
            "at once": found.beliefs.expected_error(found.lengths),
            "from the whole trace": found.beliefs.expected_error(found.lengths, "smoothed"),
        }),
    ]  # fmt: skip
    count = len(stages)
    title = f"{count} release{'s' * (count > 1)}, ε = {exact_text(found.composition.epsilon)} in all; " + (
        f"every state is hidden among at least {min(least)}" if min(least) > 1 else "some state is exposed"
    )
    return over_time_picture(panels, title)


def private_files(found: Drawable, true: Integers) -> dict[str, bytes]:
    """Return the files that show the true states, shape (steps,), by name: they are for the owner of the trace."""
    apart = np.sqrt(((found.places - found.domain.points[true]) ** 2).sum(axis=1))
    errors = found.beliefs.errors(true, found.lengths)
    degrees = degrees_of(found.releases, true)
    panels: list[tuple[str, dict[str, ArrayLike]]] = [
        ("degree of protection", {"of the true state": degrees}),
        (f"distance{_in_unit(found.domain)}", {
            "released from true": apart,
            "best guess at once": errors,
            "from the whole trace": found.beliefs.errors(true, found.lengths, "smoothed"),
        }),
    ]  # fmt: skip
    unit = f" {found.domain.unit}" if found.domain.unit else ""
    title = f"For the owner only: outputs are {apart.mean():.3g}{unit} off, the best guess at once {errors.mean():.3g}"
    rows: list[Sequence[object]] = [("step", "state", "label", "distance", "degree_of_protection", "belief")]
    beliefs = found.beliefs.mass(true)
    for step, state in enumerate(true.tolist()):
        row = (step, state, found.domain.labels[state], float(apart[step]), int(degrees[step]), float(beliefs[step]))
        rows.append(row)
    files = {
        "true.csv": csv_text(rows).encode(),
        "true-over-time.svg": figure_bytes(over_time_picture(panels, title + unit)),
    }
    if (drawn := trace_map(found, true)) is not None:
        files["true-map.svg"] = figure_bytes(drawn)
    return files


def trace_map(found: Drawable, truth: Integers | None = None) -> Figure | None:
    """Show the released trace, with `truth`, shape (steps,), for its owner only; None for places without a map."""
    outputs = found.outputs
    if outputs is not None:
        return trace_picture(found.domain, outputs, truth)
    if maps.kind(found.domain) in ("grid", "points"):
        return trace_picture(found.domain, [], truth, found.places)
    return None


def _in_unit(domain: Domain) -> str:
    return f" ({domain.unit})" if domain.unit else ""
