"""The page of a design: its sections, and its tables of mechanisms and adversaries."""

from __future__ import annotations

import functools
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from mechdesign.base._arrays import Floats
from mechdesign.certify._certificate import Certificate
from mechdesign.graphs._builders import edge_array
from mechdesign.measures import attack
from mechdesign.measures._baselines import TUNED, Baseline, baselines, bounds
from mechdesign.model._channel import Channel
from mechdesign.model._claims import label_tied_secrets
from mechdesign.model._disclosure import describe_disclosure
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem, attack_measure, claim_names, cost_measure
from mechdesign.model._words import Measure, Words, format_bound, percent, plain, power, recognise_measure, short
from mechdesign.report import _design_figures as figures
from mechdesign.report import _graph_figures as policy
from mechdesign.report._explorer import explorer
from mechdesign.report._maps import height_of_figure, in_unit, name_of
from mechdesign.report._page import Code, Picture, Prose, Row, Section, Strong, Table, first_rows, members_table, page
from mechdesign.report._statements import list_unproved, private
from mechdesign.report._style import drawn, report_style
from mechdesign.report._verdicts import judge_design, limit_design, write_achieved, write_odds
from mechdesign.synthesis._result import Design

# Facts of the provenance that a reader can use; `mechdesign inspect` shows all.
_SHOWN = (
    "mechdesign", "numpy", "plan", "solver", "solver_version", "status", "solve_seconds", "certifying_seconds",
)  # fmt: skip


@report_style()
def html(design: Design) -> str:
    """Return the page of a design."""
    problem, certificate, origin = design.problem, design.certificate, design.origin
    # A uniform prior may stand in place of a private one.
    stands_in = origin is not None and origin.has_substitute_prior
    notes = [] if stands_in else [f"{each}." for each in private(problem, origin)]
    title = problem.title if problem.title.strip() else "Privacy mechanism"
    sections = [
        Section("Requirements", [*_requirements(problem, certificate)]),
        Section("Cost", [*_costs(design, stands_in)]),
        Section("What this does not promise", [Prose([*limit_design(problem, certificate)], "list")]),
        *_coordinates(problem, certificate),
        *_adversaries(design),
        *_policy_graph(problem, certificate),
        Section("Answers, and what they let an adversary guess", [*_maps(design, stands_in)]),
        Section("Stated, and not proved", [*_stated(problem, origin)]),
        Section("Provenance", [Table([*_provenance(design.channel, certificate)])]),
        Section("Verify and sample", [*_commands(problem)]),
    ]
    warnings = describe_disclosure(problem, certificate.revealed)
    return page(title, judge_design(problem, certificate, origin), sections, warnings, notes)


def _requirements(problem: Problem, certificate: Certificate) -> Iterator[Prose | Table]:
    if not problem.requirements:
        yield Prose(["Nothing was required."])
        return
    rows = [
        (
            name,
            f"{'at least' if checked.at_least else f'{checked.symbol} at most'} {checked.nominal}",
            f"{checked.symbol if checked.at_least else f'{checked.symbol} ='} {write_achieved(checked)}",
            _judge(problem, place, checked.holds),
        )
        for place, (name, checked) in enumerate(zip(claim_names(problem), certificate.requirements, strict=True))
    ]
    yield Table(rows, ("Requirement", "Required", "Achieved", "Verdict"))
    words = Words(problem.secrets)
    first, *more = [requirement.promise(words) for requirement in problem.requirements]
    if certificate.holds:
        yield Prose([f"Anyone who sees an answer can {first}.", *(f"They can also {each}." for each in more)])
    counts = np.isfinite(problem.cost).sum(axis=1)
    if (least := int(counts.min())) < problem.cost.shape[1]:
        each = f"{least}" if least == counts.max() else f"{least} to {counts.max()}"
        yield Prose([
            f"Each secret permits only {each} of {problem.cost.shape[1]} answers, which may reveal something about it."
        ])  # fmt: skip
    yield Prose(["Exact arithmetic proves each verdict. Achieved values are rounded: an ε up, an error down."])


def _judge(problem: Problem, place: int, holds: bool) -> str:
    """Return the verdict on a requirement; one without pairs of secrets is not praised."""
    if place in problem.pair_bounds and not len(problem.pair_bounds[place]):
        return Strong("bounds no pair of secrets")
    return "holds" if holds else Strong("does not hold")


def _costs(design: Design, stands_in: bool) -> Iterator[Prose | Table | Picture]:
    problem, certificate = design.problem, design.certificate
    compared, measured = baselines(problem), cost_measure(problem)
    uniform = " under a uniform prior" if stands_in else ""
    rows = [
        (f"Expected cost{uniform}", _cost(certificate.expected_cost, measured)),
        ("Worst cost", _cost(certificate.worst_cost, measured)),
        (f"Lower bound of the {certificate.objective} cost", _cost(certificate.lower_bound, measured, up=False)),
        ("Relative gap", power(certificate.relative_gap)),
    ]
    if certificate.forbidden:
        rows.append(("Forbidden pairs of secret and answer", f"{certificate.forbidden} of {problem.cost.size}"))
    yield Picture(
        "cost", "Cost beside that of other mechanisms with the same answers", _meaning(compared),
        figures.costs_figure(design, compared), side_by_side(design, compared),
    )  # fmt: skip
    yield Table(rows)
    if stands_in:
        yield Prose([
            "Expected costs and errors, also of other mechanisms, are under a uniform prior, which replaces a private "
            "one. The channel was designed for the private prior."
        ])  # fmt: skip
        return
    yield Prose([
        "Costs are rounded up, and the lower bound is rounded down; its multipliers are saved with the channel, and "
        "can be checked without a solver. The tight ε is the smallest that holds, rounded up. The adversary’s error is "
        "that of the best attack."
    ])  # fmt: skip


_MEANINGS = {
    TUNED: (
        "The tuned exponential mechanism draws answer o for secret s with probability proportional to exp(−λ E(s, o)). "
        "Here E(s, o) is the bound that the requirements imply on the logarithm of the odds. The factor λ is the "
        "largest that meets all bounds on pairs; without tuning it is 1/2."
    ),
    "planar": "Planar Laplace noise is added to the place, and the nearest possible answer is released.",
    "coordinates": "Noise on the coordinates is not a channel between anchors, so it may cost less than the bound.",
    "remapped": "Remapping replaces each output by the answer with the least expected cost given this output.",
}


def _meaning(compared: Sequence[Baseline]) -> str:
    """Return sentences that explain the given baselines."""
    names = " ".join(item.name for item in compared)
    meanings = [said for word, said in _MEANINGS.items() if word in names]
    return " ".join(meanings) or "The costs of an answer independent of the secret, and of the true answer."


def _coordinates(problem: Problem, certificate: Certificate) -> Iterator[Section]:
    """Yield a section on real coordinates for each requirement on continuous privacy."""
    said = (
        "The secrets are the corners of a grid, and every point between them is also a secret: dithering draws one of "
        "the four corners around it, closer ones with a larger probability, and draws the answer for this corner. The "
        "certificate holds for any two points, however close. Points outside the grid are first moved to its border."
    )
    unit = f" {problem.secrets.unit}".rstrip() if problem.secrets is not None else ""
    for place, claim in problem.point_bounds.items():
        near = short(0.001 / float(claim.epsilon), 2)
        apart = [short(float(step)) for step in (claim.step_x, claim.step_y)]
        odds = write_odds(certificate.requirements[place].realised * float(near), 6)
        close = f"Two points {near}{unit} apart: the odds between them change by a factor of at most"
        anchors = f"{claim.columns} × {claim.rows}, {' × '.join(apart)}{unit} apart"
        yield Section("Real coordinates", [Prose([said]), Table([("Anchors", anchors), (close, odds)])])


def _adversaries(design: Design) -> Iterator[Section]:
    if not any(floor.prior is not None for floor in design.problem.floors.values()):
        return
    said = [
        "Each adversary makes the best guess under their own prior. The error expected is that under this prior, which "
        "the floors bound. The error in truth is that of this guess under the prior of the mechanism."
    ]
    yield Section("Adversaries", [Prose(said), list_adversaries(design)])


def _policy_graph(problem: Problem, certificate: Certificate) -> Iterator[Section]:
    if not problem.graphs:
        return
    said = [
        "Answers distinguish two secrets joined by an edge by at most ε, and secrets k edges apart by at most kε.",
        "Nothing is required of secrets that no path connects.",
    ]
    if certificate.forbidden:
        said.append(
            "Answers of infinite cost are forbidden, and are never given, so an answer reveals to which secrets it is "
            "permitted. Components that must remain hidden from one another need edges between them."
        )
    labels = label_tied_secrets(len(problem.prior), problem.claims)
    alone = np.flatnonzero(np.bincount(labels)[labels] == 1)
    if 0 < alone.size < len(labels):
        said.append(f"{alone.size} of {len(labels)} secrets have no edge: an answer may reveal such a secret exactly.")
    parts: list[Prose | Picture] = [Prose(said)]
    if problem.secrets is not None and policy.can_draw(problem.secrets):
        edges = np.unique(np.concatenate([edge_array(graph) for graph in problem.graphs.values()]), axis=0)
        marks = policy.GraphMarks(exposed=alone.tolist())
        made = drawn(None, height_of_figure(problem.secrets), policy.draw_graph, problem.secrets, edges, marks)
        names = problem.secrets.labels
        numbers = first_rows([(names[s], names[t]) for s, t in edges.tolist()], ("Secret", "Secret"))
        caption = f"{len(edges)} edges; each joins two secrets that an answer must not distinguish by more than ε."
        parts.append(Picture("graph", "The policy graph", caption, made, numbers))
    yield Section("Policy graph", parts)


def _maps(design: Design, stands_in: bool) -> Iterator[Picture | Markup | Prose]:
    problem, matrix = design.problem, design.channel.matrix
    prior, secrets, observables = problem.prior, problem.secrets, problem.observables
    likely, measured = figures.most_likely(prior).tolist(), attack_measure(problem)
    heads = [name_of(secrets, index) for index in likely]
    said = "The probability of each answer. The secret itself is marked."
    yield Picture(
        "answers", "Answers for the most likely secrets", said, figures.answers(design),
        members_table("Answer", observables, dict(zip(heads, matrix[likely], strict=True)), percent),
    )  # fmt: skip
    said = "The probability of each secret."
    if stands_in:
        said = (
            "A uniform prior replaces the private one. The errors and beliefs below are also under the uniform prior."
        )
    yield Picture(
        "prior", "Prior", said, figures.prior(design),
        members_table("Secret", secrets, {"Prior": prior}, percent),
    )  # fmt: skip
    errors = figures.expected_errors(design)
    finding = figures.error_finding(errors, prior, measured.unit)
    yield Picture(
        "error", f"What the adversary still does not know ({measured.name or 'error as given'})",
        f"{finding} This attack knows the prior and the mechanism.", figures.errors(design),
        members_table("Secret", secrets, {f"Expected error{in_unit(measured.unit)}": errors}, short),
    )  # fmt: skip
    yield explorer(secrets, observables, matrix, prior) or Prose([
        "The channel has too many probabilities for this page to show one secret at a time."
    ])  # fmt: skip


def _stated(problem: Problem, origin: Origin | None) -> Iterator[Prose | Table | Code]:
    yield Prose(["Requirements, costs and their bound are proved. The author of this design states the following."])
    yield Table(list(list_unproved(problem, origin)))
    if origin is not None and origin.specification:
        yield Code(origin.specification, "The specification")


def _provenance(channel: Channel, certificate: Certificate) -> Iterator[Row]:
    for name, value in certificate.provenance.items():
        if name in _SHOWN:
            yield name.replace("_", " "), short(value, 6) if isinstance(value, float) else str(value)
    n, m = channel.numerators.shape
    yield "channel", f"{n} × {m} integers over 2^62"
    digest = hashlib.sha256(np.ascontiguousarray(channel.numerators, dtype="<i8").tobytes()).hexdigest()
    yield "SHA-256 of the integers, row by row, 8 bytes each, low byte first", digest


def _commands(problem: Problem) -> Iterator[Prose | Code]:
    index = int(figures.most_likely(problem.prior, 1)[0])
    secret = shlex.quote(plain(problem.secrets.labels[index]) if problem.secrets is not None else str(index))
    yield Prose(["In the folder of this page:"])
    yield Code(
        f"mechdesign verify .    # proves privacy and cost again, without any solver\n"
        f"mechdesign sample . --secret {secret}"
    )


def _cost(value: float, measured: Measure, *, up: bool = True) -> str:
    return measured.with_root(value, functools.partial(format_bound, up=up, digits=5))


@dataclass(frozen=True)
class DesignAdversary:
    """One adversary against a channel, with expected errors in floating point.

    Attributes:
        name: Name of the adversary's prior.
        expected: Expected error of the best attack under this prior.
        real: Error of that attack under the problem's prior.
        unit: Unit of errors.
    """

    name: str
    expected: float
    real: float
    unit: str


def adversaries(problem: Problem, channel: Channel) -> Iterator[DesignAdversary]:
    """Yield the adversary of each floor with its own prior, and for each error matrix the one with the true prior."""
    known: list[Floats] = []
    for place in dict.fromkeys(problem.places):
        floors = problem.requirements[place].floors
        believed = [floor.prior for floor in floors if floor.prior is not None]
        name = f"the prior of requirement {place + 1}"
        named = [(f"{name} {at}" if len(believed) > 1 else name, own) for at, own in enumerate(believed, 1)]
        if floors and not any(np.array_equal(floors[0].error, error) for error in known):
            known.append(floors[0].error)
            named.insert(0, ("the prior of the mechanism", problem.prior))
        for name, belief in named:
            error = floors[0].error
            expected = attack.optimal(channel, belief, error).distortion
            real = attack.optimal(channel, belief, error, truth=problem.prior).distortion
            unit = recognise_measure(error, problem.secrets, problem.secrets).unit
            yield DesignAdversary(name, expected, real, unit)


def list_adversaries(design: Design) -> Table:
    """Return the adversaries, those with the least expected errors first."""
    found = sorted(adversaries(design.problem, design.channel), key=lambda one: one.expected)
    rows = [
        (one.name, *(f"{short(each, 4)} {one.unit}".rstrip() for each in (one.expected, one.real))) for one in found
    ]
    return first_rows(rows, ("What the adversary believes", "Error expected", "Error in truth"))


def side_by_side(design: Design, compared: Iterable[Baseline]) -> Table:
    """Return a row for each mechanism, cheapest first, with its name, tight ε, cost and the adversary's error."""
    problem, certificate = design.problem, design.certificate
    error, cost, asked = attack_measure(problem), cost_measure(problem), bounds(problem)
    tight = tuple(certificate.requirements[index].realised for index in asked)
    factors = [problem.claims[index].number == "factor" for index in asked]
    erred = attack.optimal(design.channel, problem.prior, error.matrix).distortion
    rows: list[tuple[str, float, float, tuple[float, ...] | None]] = [
        (Strong("this design"), certificate.cost, erred, tight)
    ]
    rows += [
        (item.name + (f" ({item.note})" if item.note else ""), item.cost, item.error, item.tight) for item in compared
    ]
    shown = [
        (name, _tight(levels, factors), _cost(paid, cost), error.with_unit(short(wrong, 4)))
        for name, paid, wrong, levels in sorted(rows, key=lambda row: row[1])
    ]
    return Table(shown, ("Mechanism", "Tight ε", "Cost", "Adversary’s error"))


def _tight(levels: tuple[float, ...] | None, factors: Sequence[bool]) -> str:
    if levels is None:
        return "not computed at this size"
    named = zip(levels, factors, strict=True)
    return (
        ", ".join("factor " * is_factor + format_bound(level, up=True, digits=4) for level, is_factor in named) or "–"
    )
