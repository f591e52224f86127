"""The report: one page of HTML that holds everything, pictures included, and asks nothing of the network."""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Iterable
from html import escape

import numpy as np

from mechdesign.attacks import attack
from mechdesign.certify.certificate import Certificate
from mechdesign.errors import InputError
from mechdesign.model.channel import Channel
from mechdesign.model.forbidden import tied
from mechdesign.model.problem import Problem
from mechdesign.report import dots, plot, policy
from mechdesign.report.adversaries import adversaries_section
from mechdesign.report.coordinates import coordinates_section
from mechdesign.report.document import document, figure, section, table, text
from mechdesign.report.references import reference_costs
from mechdesign.report.scales import power, short
from mechdesign.report.sentences import claim_names, met, summary
from mechdesign.report.words import answers, attack_measure, cost_measure, decimal, plain
from mechdesign.requirements.graph import graph_requirements

__all__ = ["html"]


def html(problem: Problem, channel: Channel, certificate: Certificate) -> str:
    """Return the report on a channel as one self-contained page.

    The same values give the same text. Titles and labels may hold anything: they are shown as they are, never read as
    HTML. Raises InputError when the channel or the certificate is of another problem.
    """
    _check(problem, channel, certificate)
    title = plain(problem.title).strip() or "Privacy mechanism"
    sections = [
        _header(title, problem, certificate),
        _requirements(problem, certificate),
        *coordinates_section(problem, certificate),
        *adversaries_section(problem, channel),
        *_policy_graph(problem, certificate),
        _costs(problem, certificate),
        *_pictures(problem, channel),
        _provenance(channel, certificate),
        _use(problem),
    ]
    return document(title, sections)


def _check(problem: Problem, channel: Channel, certificate: Certificate) -> None:
    if channel.numerators.shape != problem.cost.shape:
        raise InputError(
            "channel", "is of another problem", value=channel.numerators.shape, bound=f"of shape {problem.cost.shape}"
        )
    kinds = tuple(claim.kind for claim in problem.claims)
    found = tuple(checked.kind for checked in certificate.requirements)
    if kinds != found:
        raise InputError("certificate", "is of another problem", value=found, bound=f"on requirements {kinds}")


def _header(title: str, problem: Problem, certificate: Certificate) -> str:
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
            f"<p>{text(summary(problem, certificate))}</p>",
            "</header>",
        ]
    )


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
                f"{symbol if least else f'{symbol} ='} {_exact(checked.realised)}",
                "holds" if checked.holds else "<strong>does not hold</strong>",
            )
        )
    verdicts = table(("Requirement", "Asked for", "Realised", "Verdict"), rows, "numbers")
    note = (
        "<p>Realised is the least ε for which the requirement holds, rounded up, and the adversary’s least expected "
        "error, rounded down. The verdict is decided on exact numbers, not on these.</p>"
    )
    picture = figure(
        dots.requirements_picture(met(problem, certificate)),
        "requirements",
        "Requirements against what was realised",
        "Each dot is a realised value as a part of the nominal one, at the upright line. Dots on the bar are allowed.",
    )
    return section("Requirements", verdicts, note, picture)


def _policy_graph(problem: Problem, certificate: Certificate) -> Iterable[str]:
    """Yield what policy graphs say, and their picture where secrets have places; nothing where there are none."""
    graphs = [each for _, each in graph_requirements(problem.requirements)]
    if not graphs:
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
        edges = np.unique(np.concatenate([each.edges for each in graphs]), axis=0)
        parts.append(
            figure(
                policy.policy_picture(problem.secrets, edges, policy.Shown(exposed=alone.tolist())),
                "graph",
                "The policy graph",
                "Each line joins two secrets that must not be told apart by more than ε.",
            )
        )
    yield section("Policy graph", *parts)


def _costs(problem: Problem, certificate: Certificate) -> str:
    found = cost_measure(problem)
    aim = certificate.objective
    rows = [
        (
            "Expected cost" + (", minimised" if aim == "expected" else ""),
            _number(certificate.expected_cost, found.unit),
        ),
        ("Worst cost" + (", minimised" if aim == "worst" else ""), _number(certificate.worst_cost, found.unit)),
        (f"Lower bound of the {aim} cost", _number(certificate.lower_bound, found.unit)),
        ("Relative gap", power(certificate.relative_gap)),
    ]
    if certificate.forbidden:
        rows.append(("Forbidden pairs of secret and answer", f"{certificate.forbidden} of {problem.cost.size}"))
    note = (
        "<p>Costs are rounded up and the bound is rounded down. The bound follows from multipliers that are exported "
        "with the channel and can be checked without any solver.</p>"
    )
    picture = figure(
        dots.cost_picture(
            certificate.cost,
            certificate.lower_bound,
            certificate.relative_gap,
            reference_costs(problem),
            aim,
            found.unit,
        ),
        "cost",
        "Cost against its lower bound and against other mechanisms",
        "The exponential mechanism draws answer o for secret s with probability in proportion to exp(−E(s, o)/2), with "
        "E(s, o) the bound on the logarithm of the odds that the requirements imply; remapped, each of its outputs is "
        "replaced by the answer that is then best on average.",
    )
    return section("Cost", table((), rows, "numbers"), note, picture)


def _pictures(problem: Problem, channel: Channel) -> Iterable[str]:
    found = attack_measure(problem)
    best = attack.optimal(channel, problem.prior, found.matrix)
    shown = answers(problem)
    yield section(
        "Prior",
        figure(
            plot.prior_picture(problem.prior, problem.secrets),
            "prior",
            "Prior probability of each secret",
            "What an adversary is taken to believe before any answer.",
        ),
    )
    yield section(
        "Answers",
        figure(
            plot.outputs_picture(channel.matrix, problem.prior, problem.secrets, shown),
            "answers",
            "Probability of each answer for the most likely secrets",
            "One panel for each of the most likely secrets, all on one scale; where the secret has a place among the "
            "answers, it is outlined, ringed or blue. An answer that spreads over k observables is as uncertain as a "
            "fair draw from k (the exponential of the entropy).",
        ),
    )
    measured = found.name or "error as given"
    yield section(
        "What the adversary still does not know",
        figure(
            plot.error_picture(best.per_secret, problem.prior, problem.secrets, found.unit),
            "error",
            "Expected error of the best attack for each secret",
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


def _number(value: float, unit: str) -> str:
    return f"{_exact(value)} {text(unit)}".rstrip()


def _exact(value: float) -> str:
    """Write all digits: fewer would be rounded, and not always to the side that is proved."""
    return repr(float(value)) if math.isfinite(value) else short(value)


def _value(value: str | float | int) -> str:
    return text(short(value, 6) if isinstance(value, float) else str(value))
