"""The report page of a design: the values for its template."""

from __future__ import annotations

import functools
import hashlib
import math
import shlex
from collections.abc import Iterator, Sequence

import numpy as np

from mechdesign.base._arrays import Floats
from mechdesign.base._errors import InputError
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._dithering import EUCLIDEAN, Dithered
from mechdesign.graphs._builders import edge_array
from mechdesign.measures import attack
from mechdesign.measures._baselines import Baseline, baselines, reference_costs
from mechdesign.model._channel import Channel
from mechdesign.model._components import label_tied_secrets
from mechdesign.model._disclosure import describe_disclosure
from mechdesign.model._domain import Domain
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import attack_measure, claim_names, cost_measure
from mechdesign.model._words import Measure, format_bound, percent, plain, power, short
from mechdesign.report import _channel_figures as plot
from mechdesign.report import _graph_figures as policy
from mechdesign.report._channel_figures import most_likely, secret_title
from mechdesign.report._design_tables import adversaries_table, list_requirement_bars, side_by_side, summary
from mechdesign.report._explorer import explorer
from mechdesign.report._guarantee import describe_design
from mechdesign.report._headlines import describe_limits, design_headline, write_achieved
from mechdesign.report._pages import Strong, figure, panels, render
from mechdesign.report._private import private
from mechdesign.report._proved import describe_proof, list_unproved
from mechdesign.report._style import report_style

# Facts of the provenance that a reader can use; `mechdesign inspect` shows all.
_SHOWN = (
    "mechdesign", "numpy", "plan", "solver", "solver_version", "status", "solve_seconds", "certifying_seconds",
)  # fmt: skip


def html(
    problem: Problem,
    channel: Channel,
    certificate: Certificate,
    origin: Origin | None = None,
) -> str:
    """Return the report on a channel as one self-contained page.

    `origin` describes the source of the problem's data.  Equal values give equal
    text. Titles and labels may contain any text, which is escaped in the HTML. Raises `InputError` if the channel or
    the certificate belongs to another problem.
    """
    _check(problem, channel, certificate)
    compared, index = baselines(problem), int(most_likely(problem.prior, 1)[0])
    facts: dict[str, object] = {
        "title": plain(problem.title).strip() or "Privacy mechanism",
        "verdict": design_headline(problem, certificate, origin),
        "disclosed": describe_disclosure(problem, certificate.revealed),
        "summary": summary(problem, certificate),
        "notes": _on_prior(problem, origin),
        "requirements": list(_requirements(problem, certificate)),
        "coordinates": list(_coordinates(problem, certificate)),
        "adversaries": adversaries_table(problem, channel),
        "graph": _policy_graph(problem, certificate),
        "forbidden": certificate.forbidden,
        "guarantee": describe_design(problem, channel, certificate, origin),
        "costs": list(_costs(problem, certificate, _stands_in(origin))),
        "stands_in": _stands_in(origin),
        "compared": side_by_side(problem, channel, certificate, compared),
        "proved": describe_proof(problem, certificate),
        "stated": list(list_unproved(problem, origin)),
        "specification": origin.specification if origin is not None else "",
        "limits": describe_limits(problem, certificate),
        "provenance": [
            (name.replace("_", " "), _value(value)) for name, value in certificate.provenance.items() if name in _SHOWN
        ],
        "shape": channel.numerators.shape,
        "digest": hashlib.sha256(np.ascontiguousarray(channel.numerators, dtype="<i8").tobytes()).hexdigest(),
        "index": index,
        "secret": shlex.quote(plain(problem.secrets.labels[index]) if problem.secrets is not None else str(index)),
    }
    with report_style():
        facts |= _pictures(problem, channel, certificate, compared)
    return render("design.html", **facts)


def _coordinates(problem: Problem, certificate: Certificate) -> Iterator[list[tuple[str, str]]]:
    """Yield the guarantees for real coordinates, for each requirement on continuous privacy."""
    checked = certificate.requirements
    for place, claim in problem.point_bounds.items():
        own = problem.places[place]
        beside = [
            found.realised
            for found, at in zip(checked, problem.places, strict=True)
            if at == own and found.number == "factor"
        ]
        unit = problem.secrets.unit if problem.secrets is not None else ""
        yield list(_rows(claim, checked[place].realised, max(beside, default=1.0), unit))


def _rows(claim: Dithered, tight: float, snapped: float, unit: str) -> Iterator[tuple[str, str]]:
    behind = f" {unit}" if unit else ""
    epsilon, steps = float(claim.epsilon), (float(claim.step_x), float(claim.step_y))
    apart = f"{short(steps[0])} × {short(steps[1])}{behind}"
    yield "Anchors", f"{claim.columns} × {claim.rows}, {apart} apart"
    near = 0.001 / epsilon
    yield (
        f"Two points {short(near, 2)}{behind} apart: the odds between them change by a factor of at most",
        short(math.exp(tight * near), 6),
    )
    if math.isfinite(snapped):
        yield (
            "The same two points on two sides of a border, each moved to its nearest anchor (snapping): up to",
            short(snapped, 4),
        )
        if snapped > 1:
            ratio = math.log(snapped) / (epsilon * near)
            yield "At this distance, snapping would leak as much as an ε of", f"{short(ratio * epsilon, 3)}"
    if claim.norm == EUCLIDEAN:
        yield "Planar Laplace noise with this ε moves a point, on average, by", f"{short(2 / epsilon, 4)}{behind}"


def _check(problem: Problem, channel: Channel, certificate: Certificate) -> None:
    if channel.numerators.shape != problem.cost.shape:
        raise InputError(
            "channel",
            "belongs to another problem",
            value=channel.numerators.shape,
            bound=f"of shape {problem.cost.shape}",
        )
    kinds = tuple(claim.kind for claim in problem.claims)
    found = tuple(checked.kind for checked in certificate.requirements)
    if kinds != found:
        raise InputError("certificate", "belongs to another problem", value=found, bound=f"on requirements {kinds}")


def _stands_in(origin: Origin | None) -> bool:
    """Return whether the design contains a uniform prior in place of a private prior."""
    return origin is not None and origin.has_substitute_prior


def _on_prior(problem: Problem, origin: Origin | None) -> tuple[str, ...]:
    if _stands_in(origin):
        return (f"The prior is {STANDS_IN}",)
    return private(problem, origin)


def _requirements(problem: Problem, certificate: Certificate) -> Iterator[tuple[str, ...]]:
    for name, checked in zip(claim_names(problem), certificate.requirements, strict=True):
        least, symbol = checked.at_least, checked.symbol
        yield (
            name,
            f"{'at least' if least else f'{symbol} at most'} {checked.nominal}",
            f"{symbol if least else f'{symbol} ='} {write_achieved(checked)}",
            "holds" if checked.holds else Strong("does not hold"),
        )


def _policy_graph(problem: Problem, certificate: Certificate) -> dict[str, object] | None:
    """Return the facts about policy graphs, with a picture if secrets have places; None without policy graphs."""
    if not problem.graphs:
        return None
    labels = label_tied_secrets(len(problem.prior), problem.claims)
    alone = np.flatnonzero(np.bincount(labels)[labels] == 1)
    picture = None
    if problem.secrets is not None and policy.can_draw(problem.secrets):
        edges = np.unique(np.concatenate([edge_array(graph) for graph in problem.graphs.values()]), axis=0)
        picture = figure(
            functools.partial(policy.policy_picture, problem.secrets, edges, policy.GraphMarks(exposed=alone.tolist())),
            "graph",
            "The policy graph",
            "Each line joins two secrets that the answer must not distinguish by more than ε.",
        )
    return {"alone": alone.size, "secrets": len(labels), "picture": picture}


def _costs(problem: Problem, certificate: Certificate, stands_in: bool) -> Iterator[tuple[str, str]]:
    found, aim = cost_measure(problem), certificate.objective
    how = ", under a uniform prior" if stands_in else ""
    yield ("Cost (expected)" if aim == "expected" else "Expected cost") + how, _cost(certificate.expected_cost, found)
    yield "Cost (worst)" if aim == "worst" else "Worst cost", _cost(certificate.worst_cost, found)
    yield "Lower bound of the cost", _cost(certificate.lower_bound, found, up=False)
    yield "Relative gap", power(certificate.relative_gap)
    if certificate.forbidden:
        yield "Forbidden pairs of secret and answer", f"{certificate.forbidden} of {problem.cost.size}"


def _meaning(compared: Sequence[Baseline]) -> str:
    """Return sentences that explain the given baselines."""
    names = " ".join(item.name for item in compared)
    sentences = (
        (
            "exponential",
            "The exponential mechanism draws answer o for secret s with probability proportional to exp(−λ E(s, o)). "
            "Here E(s, o) is the bound that the requirements imply on the logarithm of the odds. "
            "The factor λ is the largest that meets all requirements.",
        ),
        ("planar", "Planar Laplace noise is added to the place, and the nearest possible answer is released."),
        (
            "coordinates",
            "Noise on the coordinates is not a channel between anchors, so it may cost less than the bound.",
        ),
        ("remapped", "Remapping replaces each output by the answer with the least expected cost given this output."),
    )
    meanings = [said for word, said in sentences if word in names]
    return " ".join(meanings) or "The costs of an answer independent of the secret, and of the true answer."


def _describe(values: Floats, domain: Domain | None, what: str, title: str = "", unit: str = "%") -> dict[str, str]:
    """Return the HTML attributes that describe a map to screen readers."""
    most = int(np.argmax(values))
    name = plain(domain.labels[most]) if domain is not None else str(most)
    largest = percent(values[most]) if unit == "%" else short(float(values[most]))
    said = f"{title + ': ' if title else ''}{what}, {len(values)} values, the largest {largest} at {name}"
    return {"role": "img", "aria-label": plain(said)}


def _pictures(
    problem: Problem,
    channel: Channel,
    certificate: Certificate,
    compared: Sequence[Baseline],
) -> dict[str, object]:
    """Return the figures of a page."""
    prior, secrets, domain = problem.prior, problem.secrets, problem.observables
    measured = attack_measure(problem)
    errors = attack.optimal(channel, prior, measured.matrix).per_secret
    each = "probability of each answer"
    unit, wrong = measured.unit, "adversary’s expected error" + (f" ({measured.unit})" if measured.unit else "")
    rows = {
        index: f"{secret_title(secrets, index)}, prior {percent(prior[index])}" for index in most_likely(prior).tolist()
    }
    proved_gap = certificate.lower_bound, certificate.relative_gap
    references = reference_costs(problem, compared)
    draw = functools.partial
    pictures = (
        figure(
            draw(plot.requirements_picture, list_requirement_bars(problem, certificate)), "requirements", "Requirements"
        ),
        figure(
            draw(
                plot.cost_picture, certificate.cost, *proved_gap, references, cost_measure(problem).unit,
            ),
            "cost", "Cost",
        ),
        panels(
            draw(plot.prior_picture, prior, secrets), "prior",
            parts={"prior": _describe(prior, secrets, "prior probability")},
        ),
        panels(
            draw(plot.outputs_picture, channel.matrix, prior, secrets, domain), "answers",
            parts={
                f"row-{index}": _describe(channel.matrix[index], domain, each, title)
                for index, title in rows.items()
            },
        ),
        panels(
            draw(plot.error_picture, errors, prior, secrets, unit), "error",
            parts={
                "error": _describe(errors, secrets, wrong, unit=unit),
                "scatter": {"role": "img", "aria-label": plain(
                    f"Expected error against prior for {np.count_nonzero(prior)} secrets; the mean is "
                    f"{short(float(prior @ errors))} {unit}".rstrip()
                )},
            },
        ),
    )  # fmt: skip
    return {
        "pictures": {picture["name"]: picture for picture in pictures},
        "explorer": explorer(secrets, domain, channel.matrix, prior),
        "measured": measured.name or "error as given",
        "meaning": _meaning(compared),
    }


def _cost(value: float, measured: Measure, *, up: bool = True) -> str:
    return measured.with_root(value, functools.partial(format_bound, up=up, digits=5))


def _value(value: str | float | int) -> str:
    return short(value, 6) if isinstance(value, float) else str(value)
