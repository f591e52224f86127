"""Release a trace for `mechdesign release`, and make the files of it: those for all, and those for its owner only."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.certify.exact import exact_text
from mechdesign.cli.correlations import figure_bytes
from mechdesign.errors import InputError
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.model.markov import MarkovChain
from mechdesign.model.prior import Prior
from mechdesign.release.adversary import Adversary, Beliefs, degrees_of
from mechdesign.release.composition import Composition, compose
from mechdesign.release.files import OUTPUTS, STEPS, outputs_csv, steps_json
from mechdesign.release.outcome import Release
from mechdesign.release.trace import Trace
from mechdesign.report import maps
from mechdesign.report.traces import over_time_picture, trace_picture
from mechdesign.solvers.contract import Progress, ProgressCallback, Status
from mechdesign.spec.specification import named
from mechdesign.synthesis.certified import Design

__all__ = ["Findings", "find", "largest_gap", "private_files", "public_files", "run"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# What a step may find wrong with the specification.
_KEYS = {
    "snap": "release.snap",
    "epsilon": "privacy.epsilon",
    "solver": "solver.name",
    "rows": "solver.rows",
    "options": "solver.options",
}


@dataclass(frozen=True, eq=False)
class Findings:
    """What was released, and what follows for whoever knows what the designer knows."""

    releases: tuple[Release, ...]
    composition: Composition
    beliefs: Beliefs
    lengths: Floats

    @property
    def domain(self) -> Domain:
        """The states."""
        return self.releases[0].stage.domain

    @property
    def outputs(self) -> Integers | None:
        """The released states, shape (T,); None where outputs are places."""
        found = [release.output for release in self.releases if release.output is not None]
        return np.array(found, dtype=np.int64) if found else None

    @property
    def places(self) -> Floats:
        """The released places, shape (T, d)."""
        return np.array([release.coordinates for release in self.releases])


def run(
    trace: Trace, states: Integers, epsilons: Sequence[Fraction | None], path: str, live: ProgressCallback | None
) -> tuple[list[Release], bool]:
    """Release the states one by one; return what was released, and whether the user stopped before the end.

    Raises `InputError` naming the step of a state that cannot be the true one; `path` names the trace.
    """
    releases: list[Release] = []
    started = time.perf_counter()
    try:
        for step, (state, epsilon) in enumerate(zip(states.tolist(), epsilons, strict=True)):
            if live is not None:
                live(Progress(f"step {step + 1} of {len(states)}", time.perf_counter() - started))
            releases.append(_step(trace, state, epsilon, f"{path}, step {step}"))
            mechanism = releases[-1].stage.fitted.mechanism
            # A solver that is stopped gives the best channel that it has.
            if isinstance(mechanism, Design) and mechanism.status is Status.INTERRUPTED:
                return releases, True
    except KeyboardInterrupt:
        return releases, True
    return releases, False


def largest_gap(releases: Sequence[Release]) -> float:
    """Return how far, at most, the channel of a step may be from the optimal one; 0 for mechanisms that are none."""
    designs = [release.stage.fitted.mechanism for release in releases]
    return max((made.certificate.relative_gap for made in designs if isinstance(made, Design)), default=0.0)


def find(releases: Sequence[Release], transition: MarkovChain, initial: Prior) -> Findings:
    """Return what some releases say together, from the first step of a trace on."""
    beliefs = Adversary(transition, initial).watch(releases)
    return Findings(tuple(releases), compose(releases), beliefs, distances.euclidean(releases[0].stage.domain))


def public_files(found: Findings) -> dict[str, bytes]:
    """Return the files that may be published, by name: they depend on the truth through the outputs alone."""
    files = {
        OUTPUTS: outputs_csv(found.releases, found.domain),
        STEPS: steps_json(found.releases, found.beliefs),
    }
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
    files["over-time.svg"] = figure_bytes(over_time_picture(panels, title))
    if (drawn := _map(found, None)) is not None:
        files["map.svg"] = drawn
    return files


def private_files(found: Findings, truth: Integers) -> dict[str, bytes]:
    """Return the files that show the true states, by name: they are for the owner of the trace."""
    true = truth[: len(found.releases)]
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
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["step", "state", "label", "distance", "degree_of_protection", "belief"])
    beliefs = found.beliefs.mass(true)
    for step, state in enumerate(true.tolist()):
        row = (step, state, found.domain.labels[state], float(apart[step]), int(degrees[step]), float(beliefs[step]))
        rows.writerow(row)
    files = {
        "true.csv": text.getvalue().encode(),
        "true-over-time.svg": figure_bytes(over_time_picture(panels, title + unit)),
    }
    if (drawn := _map(found, true)) is not None:
        files["true-map.svg"] = drawn
    return files


def _step(trace: Trace, state: int, epsilon: Fraction | None, path: str) -> Release:
    try:
        with named(_KEYS):
            return trace.step(state, epsilon=epsilon)
    except InputError as error:
        if error.path != "true_state":
            raise
        raise InputError(
            path,
            error.problem,
            value=trace.domain.labels[state],
            bound=error.bound,
            remedy="smooth the transitions, or give a delta in [policy]: then the nearest possible state is released",
        ) from error


def _map(found: Findings, truth: Integers | None) -> bytes | None:
    outputs = found.outputs
    if outputs is not None:
        return figure_bytes(trace_picture(found.domain, outputs, truth))
    if maps.kind(found.domain) in ("grid", "points"):
        return figure_bytes(trace_picture(found.domain, [], truth, found.places))
    return None


def _in_unit(domain: Domain) -> str:
    return f" ({domain.unit})" if domain.unit else ""
