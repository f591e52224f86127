"""The page of a design: facts for its template."""

from __future__ import annotations

import functools
import hashlib
import math
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import escape

import numpy as np

from mechdesign.base._errors import InputError
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._dithering import EUCLIDEAN, Dithered
from mechdesign.certify._revealed import revealed
from mechdesign.data._maps import Outline
from mechdesign.graphs._builders import edge_array
from mechdesign.measures import attack
from mechdesign.measures._baselines import Baseline, baselines, reference_costs
from mechdesign.model._channel import Channel
from mechdesign.model._components import tied
from mechdesign.model._disclosure import disclosed
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import attack_measure, claim_names, cost_measure
from mechdesign.model._words import Measure, bounded, decimal, plain, power, short
from mechdesign.report import _channel_figures as bars
from mechdesign.report import _channel_figures as pictures
from mechdesign.report import _channel_figures as plot
from mechdesign.report import _graph_figures as policy
from mechdesign.report._design_tables import adversaries_section, met, side_by_side, summary
from mechdesign.report._pages import document, figure, section, table, text
from mechdesign.report._private import private
from mechdesign.report._proved import (
    proved,
    stated,
)


def coordinates_section(problem: Problem, certificate: Certificate) -> Iterator[str]:
    """Yield the section on real coordinates; nothing where no requirement is about them."""
    checked = certificate.requirements
    for place, claim in problem.point_bounds.items():
        own = problem.places[place]
        beside = [
            found.realised
            for found, at in zip(checked, problem.places, strict=True)
            if at == own and found.number == "factor"
        ]
        unit = problem.secrets.unit if problem.secrets is not None else ""
        yield section(
            "Real coordinates",
            "<p>The secrets are the corners of a grid, and every point between them is a secret, too: one of the four "
            "corners around it is drawn, the closer the likelier, and answers for it. What is certified holds between "
            "any two points, however close. Points outside are moved to the border first.</p>",
            table((), _rows(claim, checked[place].realised, max(beside, default=1.0), unit), "numbers"),
        )


def _rows(claim: Dithered, tight: float, snapped: float, unit: str) -> Iterator[tuple[str, str]]:
    behind = f" {text(unit)}" if unit else ""
    epsilon, steps = float(claim.epsilon), (float(claim.step_x), float(claim.step_y))
    apart = f"{short(steps[0])} × {short(steps[1])}{behind}"
    yield "Anchors", f"{claim.columns} × {claim.rows}, {apart} apart"
    near = 0.001 / epsilon
    yield (
        f"Two points {short(near, 2)}{behind} apart: the odds between them shift by a factor of at most",
        short(math.exp(tight * near), 6),
    )
    if math.isfinite(snapped):
        yield (
            "The same two points beside a border, if each were moved to the nearest anchor (snapping): up to",
            short(snapped, 4),
        )
        if snapped > 1:
            ratio = math.log(snapped) / (epsilon * near)
            yield "So snapping would leak, at this distance, as much as an ε of", f"{short(ratio * epsilon, 3)}"
    if claim.norm == EUCLIDEAN:
        yield "Planar Laplace noise with this ε moves a point, on average, by", f"{short(2 / epsilon, 4)}{behind}"


def evidence_section(problem: Problem, certificate: Certificate, origin: Origin | None) -> str:
    """Return the section that says what was proved in full, what is stated, and the specification itself."""
    claims = "".join(f"<li>{text(sentence)}</li>" for sentence in proved(problem, certificate))
    rows = [(text(name), text(said)) for name, said in stated(problem, origin)]
    parts = [
        *([f"<p>Proved, in exact arithmetic:</p>\n<ul>{claims}</ul>"] if claims else []),
        "<p>Stated by whoever made this, and not proved:</p>",
        table((), rows),
    ]
    if origin is not None and origin.specification:
        shown = escape(plain(origin.specification))
        parts.append(f"<details><summary>The specification</summary>\n<pre><code>{shown}</code></pre>\n</details>")
    return section("What is proved, and what is stated", *parts)


def html(
    problem: Problem,
    channel: Channel,
    certificate: Certificate,
    origin: Origin | None = None,
    outline: Outline | None = None,
) -> str:
    """Return the report on a channel as one self-contained page; `origin` says where the problem comes from.

    An `outline` is drawn on its maps.

    The same values give the same text. Titles and labels may hold anything: they are shown as they are, never read as
    HTML. Raises InputError when the channel or the certificate is of another problem.
    """
    _check(problem, channel, certificate)
    if certificate.revealed is None:
        # Earlier versions did not say it.
        certificate = replace(certificate, revealed=revealed(channel.numerators))
    title = plain(problem.title).strip() or "Privacy mechanism"
    sections = [
        _header(title, problem, certificate, origin),
        _requirements(problem, certificate),
        *coordinates_section(problem, certificate),
        *adversaries_section(problem, channel),
        *_policy_graph(problem, certificate),
        _costs(problem, channel, certificate, origin),
        *_pictures(problem, channel, outline, origin),
        evidence_section(problem, certificate, origin),
        _provenance(channel, certificate),
        _use(problem),
    ]
    return document(title, sections, maps=True)


def _check(problem: Problem, channel: Channel, certificate: Certificate) -> None:
    if channel.numerators.shape != problem.cost.shape:
        raise InputError(
            "channel", "is of another problem", value=channel.numerators.shape, bound=f"of shape {problem.cost.shape}"
        )
    kinds = tuple(claim.kind for claim in problem.claims)
    found = tuple(checked.kind for checked in certificate.requirements)
    if kinds != found:
        raise InputError("certificate", "is of another problem", value=found, bound=f"on requirements {kinds}")


def _header(title: str, problem: Problem, certificate: Certificate, origin: Origin | None) -> str:
    if certificate.holds:
        verdict = "<strong>Holds.</strong> Every requirement below was checked in exact arithmetic."
    else:
        pair = f" Worst pair of secrets: {_pair(problem, certificate.pair)}." if certificate.pair is not None else ""
        verdict = f"<strong>Does not hold.</strong> {text(certificate.reason)}.{pair}"
    return "\n".join(
        [
            "<header>",
            f"<h1>{escape(title)}</h1>",
            f'<p class="verdict {"holds" if certificate.holds else "fails"}">{verdict}</p>',
            *(f'<p class="verdict fails">{text(said)}</p>' for said in disclosed(problem, certificate.revealed or ())),
            f"<p>{text(summary(problem, certificate))}</p>",
            *(f"<p>{text(note)}.</p>" for note in _on_prior(problem, origin)),
            "</header>",
        ]
    )


def _stands_in(origin: Origin | None) -> bool:
    """Return whether the prior stands in place of a private one, which is left out."""
    return origin is not None and origin.prior == STANDS_IN


def _on_prior(problem: Problem, origin: Origin | None) -> tuple[str, ...]:
    if _stands_in(origin):
        return (f"The prior is {STANDS_IN}",)
    return private(problem, origin)


def _requirements(problem: Problem, certificate: Certificate) -> str:
    if not problem.requirements:
        return section("Requirements", "<p>Nothing was required.</p>")
    rows = []
    for name, checked in zip(claim_names(problem), certificate.requirements, strict=True):
        least, symbol = checked.at_least, checked.symbol
        rows.append(
            (
                text(name),
                f"{'at least' if least else f'{symbol} at most'} {decimal(checked.nominal)}",
                f"{symbol if least else f'{symbol} ='} {bounded(checked.realised, up=not least)}",
                "holds" if checked.holds else "<strong>does not hold</strong>",
            )
        )
    verdicts = table(("Requirement", "Asked for", "Realised", "Verdict"), rows, "numbers")
    note = (
        "<p>Realised is the least ε for which the requirement holds, rounded up, and the adversary’s least expected "
        "error, rounded down. The verdict is decided on exact numbers, not on these.</p>"
    )
    picture = bars.requirement_bars(
        met(problem, certificate),
        "Each dot is a realised value as a part of the nominal one, at the upright line. Dots on the bar are allowed.",
    )
    return section("Requirements", verdicts, note, picture)


def _policy_graph(problem: Problem, certificate: Certificate) -> Iterable[str]:
    """Yield what policy graphs say, and their picture where secrets have places; nothing where there are none."""
    if not problem.graphs:
        return
    labels = tied(len(problem.prior), problem.claims)
    alone = np.flatnonzero(np.bincount(labels)[labels] == 1)
    sentences = [
        "Two secrets joined by an edge cannot be told apart by more than ε. Over k edges they cannot be by more than "
        "kε, and where no path leads from one to the other nothing is required."
    ]
    if certificate.forbidden:
        sentences.append(
            "Answers of infinite cost are forbidden, and never given. So an answer tells to which secrets it is "
            "permitted; where these are a connected component, the policy leaves that open. Components that are to "
            "stay hidden from one another need edges between them."
        )
    if alone.size and alone.size < len(labels):
        sentences.append(
            f"{alone.size} of {len(labels)} secrets are tied to no other: an answer may tell exactly which one it is."
        )
    parts = [f"<p>{' '.join(sentences)}</p>"]
    if problem.secrets is not None and policy.can_draw(problem.secrets):
        edges = np.unique(np.concatenate([edge_array(graph) for graph in problem.graphs.values()]), axis=0)
        parts.append(
            figure(
                functools.partial(policy.policy_picture, problem.secrets, edges, policy.Shown(exposed=alone.tolist())),
                "graph",
                "The policy graph",
                "Each line joins two secrets that must not be told apart by more than ε.",
            )
        )
    yield section("Policy graph", *parts)


def _costs(problem: Problem, channel: Channel, certificate: Certificate, origin: Origin | None) -> str:
    found = cost_measure(problem)
    compared = baselines(problem)
    aim = certificate.objective
    rows = [
        (
            "Expected cost" + (", minimised" if aim == "expected" else ""),
            _cost(certificate.expected_cost, found),
        ),
        ("Worst cost" + (", minimised" if aim == "worst" else ""), _cost(certificate.worst_cost, found)),
        (f"Lower bound of the {aim} cost", _cost(certificate.lower_bound, found, up=False)),
        ("Relative gap", power(certificate.relative_gap)),
    ]
    if certificate.forbidden:
        rows.append(("Forbidden pairs of secret and answer", f"{certificate.forbidden} of {problem.cost.size}"))
    note = (
        "Costs are rounded up and the bound is rounded down. The bound follows from multipliers that are exported with "
        "the channel and can be checked without any solver."
    )
    if _stands_in(origin):
        note = (
            "Expected costs and errors, also those of other mechanisms, are under a uniform prior, which stands in "
            "place of a private one. The channel was not made for it."
        )
    picture = bars.cost_bars(
        certificate.cost,
        certificate.lower_bound,
        certificate.relative_gap,
        reference_costs(problem, compared),
        found.unit,
        _meaning(compared),
    )
    return section(
        "Cost",
        table((), rows, "numbers"),
        f"<p>{note}</p>",
        picture,
        side_by_side(problem, channel, certificate, compared),
    )


def _meaning(compared: Sequence[Baseline]) -> str:
    """Say what the baselines are that there are."""
    names = " ".join(item.name for item in compared)
    sentences = (
        (
            "exponential",
            "The exponential mechanism draws answer o for secret s with probability in proportion to exp(−λ E(s, o)), "
            "with E(s, o) the bound on the logarithm of the odds that the requirements imply, and the largest λ that "
            "keeps them all.",
        ),
        ("planar", "Planar Laplace noise is added to the place, and the nearest answer given."),
        ("remapped", "Remapped, each output is replaced by the answer that is then best on average."),
    )
    return " ".join(said for word, said in sentences if word in names) or "What telling nothing, and the truth, cost."


def _pictures(problem: Problem, channel: Channel, outline: Outline | None, origin: Origin | None) -> Iterable[str]:
    found = attack_measure(problem)
    best = attack.optimal(channel, problem.prior, found.matrix)
    measured = found.name or "error as given"
    shown = pictures.pictures(problem, channel, best.per_secret, found.unit, outline)
    yield shown.data
    believed = "What an adversary is taken to believe before any answer."
    if _stands_in(origin):
        believed = "Uniform, in place of a private one: what is shown below is under it, too."
    yield section("Prior", shown.prior(believed))
    yield section(
        "Answers",
        shown.answers(
            "One panel for each of the most likely secrets, all on one scale; where the secret has a place among the "
            "answers, it is outlined, ringed or blue. An answer that spreads over k observables is as uncertain as a "
            "fair draw from k (the exponential of the entropy).",
        ),
        shown.explorer(),
    )
    yield section(
        "What the adversary still does not know",
        shown.errors(
            "The best attack knows the prior and the mechanism, and guesses so that its error "
            f"({measured}) is least on average. Left: its expected error for each secret. Right: the same against the "
            "prior; secrets that never occur are left out.",
        ),
    )


def _provenance(channel: Channel, certificate: Certificate) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(channel.numerators, dtype="<i8").tobytes()).hexdigest()
    n, m = channel.numerators.shape
    rows = [(text(name.replace("_", " ")), _value(value)) for name, value in certificate.provenance.items()]
    rows.append(("channel", f"{n} × {m} integers over 2<sup>62</sup>"))
    rows.append(("SHA-256 of the integers, row by row, 8 bytes each, low byte first", f"<code>{digest}</code>"))
    return section("Provenance", table((), rows))


def _use(problem: Problem) -> str:
    index = int(plot.most_likely(problem.prior, 1)[0])
    label = plain(problem.secrets.labels[index]) if problem.secrets is not None else str(index)
    commands = (
        "# check privacy and optimality again, without any solver\n"
        "mechdesign verify DIR\n\n"
        "# draw answers for one secret, with the randomness of the operating system\n"
        f"mechdesign sample DIR --secret {shlex.quote(label)}"
    )
    program = (
        "import mechdesign as md\n\n"
        "md.verify(DIR)                     # raises an error that names the worst pair unless it holds\n"
        f"md.Channel.load(DIR).sample({index}, size=10)"
    )
    return section(
        "Verify and sample",
        "<p>With DIR the folder that this report is in:</p>",
        f"<pre><code>{escape(commands)}</code></pre>",
        "<p>The same in Python:</p>",
        f"<pre><code>{escape(program)}</code></pre>",
    )


def _pair(problem: Problem, pair: tuple[int, int]) -> str:
    if problem.secrets is None:
        return f"{pair[0]} and {pair[1]}"
    return " and ".join(text(problem.secrets.labels[index]) for index in pair)


def _cost(value: float, measured: Measure, *, up: bool = True) -> str:
    return text(measured.with_root(value, functools.partial(bounded, up=up)))


def _value(value: str | float | int) -> str:
    return text(short(value, 6) if isinstance(value, float) else str(value))
