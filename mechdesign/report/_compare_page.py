"""The comparison page of several designs: costs, requirements, adversaries, and maps on one scale."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from matplotlib.figure import Figure

from mechdesign.base._arrays import Floats
from mechdesign.certify._certificate import Certificate, Checked
from mechdesign.measures import attack
from mechdesign.model._channel import Channel
from mechdesign.model._domain import Domain
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem
from mechdesign.model._problem_words import answers, attack_measure, claimants, cost_measure, requirement_name
from mechdesign.model._words import format_bound, plain, power, short
from mechdesign.report._channel_figures import Panel, most_likely, panels_picture
from mechdesign.report._compare_figure import DesignPoint, PrivacyAxis, compare_picture
from mechdesign.report._explorer import name_of, panel_attributes, series_block, view
from mechdesign.report._guarantee import describe_comparison, describe_design
from mechdesign.report._headlines import write_achieved
from mechdesign.report._maps import in_unit
from mechdesign.report._pages import figure, panels, render
from mechdesign.report._scales import error_scale, probability_scale

# Maximal characters of a nominal value; longer values are rounded.
_MAX_CHARACTERS = 9


@dataclass(frozen=True, eq=False)
class ComparedDesign:
    """One of the compared designs, and the errors of attacks on it.

    Attributes:
        name: Name of the design.
        problem: The design problem.
        channel: The designed channel.
        certificate: The certificate of the channel.
        errors: Expected error of each attack, by its name, in `unit`.
        per_secret: Expected error of the optimal attack for each secret, shape (n,).
        unit: Unit of errors.
        origin: The sources of the problem's data, if they are known.
    """

    name: str
    problem: Problem
    channel: Channel
    certificate: Certificate
    errors: dict[str, float]
    per_secret: Floats
    unit: str
    origin: Origin | None = None


def attack_design(
    name: str, problem: Problem, channel: Channel, certificate: Certificate, origin: Origin | None = None
) -> ComparedDesign:
    """Attack a design, and return it with the errors of the attacks."""
    measure = attack_measure(problem)
    best = attack.optimal(channel, problem.prior, measure.matrix)
    found = {"optimal": best.distortion}
    if measure.matrix.shape[0] == measure.matrix.shape[1]:
        found["Bayes"] = attack.bayes(channel, problem.prior, measure.matrix).distortion
    found["prior-free"] = attack.prior_free(channel, problem.prior, measure.matrix).distortion
    return ComparedDesign(name, problem, channel, certificate, found, best.per_secret, measure.unit, origin)


def differences(designs: Sequence[ComparedDesign]) -> tuple[str, ...]:
    """Return sentences on secrets, priors, costs and objectives that differ, so that numbers are not comparable."""
    first, *others = (each.problem for each in designs)
    found = []
    if any(
        not _same_domain(first.secrets, other.secrets) or first.prior.shape != other.prior.shape for other in others
    ):
        found.append("The secrets differ.")
    elif any(not np.array_equal(first.prior, other.prior) for other in others):
        found.append("The priors differ: expected costs and errors average over the secrets with different weights.")
    if any(not np.array_equal(first.cost, other.cost) for other in others):
        found.append("The cost matrices differ.")
    if any(first.objective != other.objective for other in others):
        found.append("The objectives differ: some designs minimise the expected cost, others the worst cost.")
    return tuple(found)


DIFFERENCE = "difference"
"""Head of the last column for two designs: the change from the first to the second."""


def headline(designs: Sequence[ComparedDesign]) -> str:
    """Return a sentence that compares the costs of the designs, and the errors of the best attack."""
    if any(not one.certificate.holds for one in designs):
        names = [one.name for one in designs if not one.certificate.holds]
        return f"The requirements of {', '.join(names)} do not hold."
    if said := _find_difference_of_costs(designs):
        return f"{said}: costs are not comparable."
    low = min(designs, key=lambda one: one.certificate.cost)
    high = max(designs, key=lambda one: one.certificate.cost)
    if low.certificate.cost == high.certificate.cost:
        return f"All designs cost {_cost(low, low.certificate.cost)}."
    saved = 1 - low.certificate.cost / high.certificate.cost
    cheaper = f"{low.name} costs {short(100 * saved, 2)}% less than {high.name}"
    paid = f"{_cost(low, low.certificate.cost)} instead of {_cost(high, high.certificate.cost)}"
    said = f"{cheaper}: {paid}"
    if low.unit != high.unit:
        return f"{said}."
    one, other = low.errors["optimal"], high.errors["optimal"]
    attacked = f"the best attack is off by {_error(low, 'optimal')} instead of {_error(high, 'optimal')}"
    return f"{said}. {'In return, ' if one < other else 'Also, '}{attacked}."


def _find_difference_of_costs(designs: Sequence[ComparedDesign]) -> str:
    """Return why the costs of designs are not comparable, or "" if they are."""
    if len({(cost_measure(one.problem).unit, one.certificate.objective) for one in designs}) > 1:
        return "The designs have different units of cost or different objectives"
    if designs[0].certificate.objective == "worst":
        return ""
    names = [one.name for one in designs if one.origin is not None and one.origin.has_substitute_prior]
    return f"A uniform prior stands in place of the private one of {', '.join(names)}" if names else ""


def heads(designs: Sequence[ComparedDesign]) -> tuple[str, ...]:
    """Return the heads of the table: a quantity, the names of the designs, and for two designs their difference."""
    return ("", *(one.name for one in designs), *([DIFFERENCE] if len(designs) == 2 else []))


def rows(designs: Sequence[ComparedDesign]) -> list[tuple[str, ...]]:
    """Return the rows of the table: a quantity, its value for each design, and for two designs their difference."""

    def line(name: str, values: Iterator[str], numbers: Sequence[float | None] = ()) -> tuple[str, ...]:
        last = (_write_change(*numbers) if len(numbers) == 2 else "",) if len(designs) == 2 else ()
        return (name, *values, *last)

    certificates = [one.certificate for one in designs]
    aims = {each.objective for each in certificates}
    named = {aim: "cost" if aims == {aim} else f"{aim} cost" for aim in ("expected", "worst")}
    found = [
        line("secrets, observables", (f"{len(one.problem.prior)}, {one.problem.cost.shape[1]}" for one in designs)),
        line("holds", ("yes" if one.certificate.holds else "no" for one in designs)),
        line(
            named["expected"],
            (_cost(one, one.certificate.expected_cost) for one in designs),
            [each.expected_cost for each in certificates],
        ),
        line(
            named["worst"],
            (_cost(one, one.certificate.worst_cost) for one in designs),
            [each.worst_cost for each in certificates],
        ),
        line(
            "lower bound",
            (_cost(one, one.certificate.lower_bound, up=False) for one in designs),
            [each.lower_bound for each in certificates],
        ),
        line("relative gap", (_gap(one.certificate) for one in designs)),
        line("secrets revealed for certain", (str(len(one.certificate.revealed)) for one in designs)),
    ]
    names = dict.fromkeys(
        requirement_name(one.problem, requirement) for one in designs for requirement in claimants(one.problem)
    )
    found += [
        line(name, (_list_values(one, name) for one in designs), [_find_value(one, name) for one in designs])
        for name in names
    ]
    for name in dict.fromkeys(name for one in designs for name in one.errors):
        errors = [one.errors.get(name) for one in designs]
        found.append(line(f"error of the {name} attack", (_error(one, name) for one in designs), errors))
    return found


def html(designs: Sequence[ComparedDesign], said: str = "") -> str:
    """Return the comparison as one self-contained page; `said` is its first sentence."""
    return render(
        "compare.html",
        title="Comparison: " + ", ".join(plain(each.name) for each in designs),
        said=said,
        headline=headline(designs),
        holds=all(each.certificate.holds for each in designs),
        notes=differences(designs),
        heads=heads(designs),
        rows=rows(designs),
        picture=_draw_costs(designs),
        guarantee=describe_comparison(
            {one.name: describe_design(one.problem, one.channel, one.certificate, one.origin) for one in designs}
        ),
        **_pictures(designs),
    )


def _draw_costs(designs: Sequence[ComparedDesign]) -> dict[str, object] | None:
    """Return the figure of costs against privacy, or None if the designs share no cost or no quantity of privacy."""
    compared = _find_privacy(designs)
    finite = all(math.isfinite(one.certificate.cost) for one in designs)
    if compared is None or not finite or _find_difference_of_costs(designs):
        return None
    axis, values = compared
    cost = f"cost{in_unit(cost_measure(designs[0].problem).unit)}"
    points = [
        DesignPoint(one.name, value, one.certificate.cost, one.certificate.lower_bound)
        for one, value in zip(designs, values, strict=True)
    ]
    data = [("design", axis.label, cost, f"lower bound of the {cost}")]
    data += [
        (
            each.name,
            format_bound(each.privacy, up=not axis.larger),
            format_bound(each.cost, up=True),
            format_bound(each.lower_bound, up=False),
        )
        for each in points
    ]
    return figure(
        functools.partial(compare_picture, points, axis, cost),
        "costs",
        "Cost against privacy",
        "Lines below points go down to the lower bounds, where they can be seen.",
        {
            f"point-{index}": {"title": "\n".join(f"{head}: {cell}" for head, cell in zip(data[0], row, strict=True))}
            for index, row in enumerate(data[1:])
        },
        data,
    )


def _find_privacy(designs: Sequence[ComparedDesign]) -> tuple[PrivacyAxis, list[float]] | None:
    """Return a quantity of privacy that all designs have, and its values; the first with different values, if any.

    The quantities are the achieved numbers of common requirements, and the error of the best attack.
    """
    found: list[tuple[PrivacyAxis, list[float]]] = []
    for requirement, checked in zip(claimants(designs[0].problem), designs[0].certificate.requirements, strict=True):
        name = requirement_name(designs[0].problem, requirement)
        achieved = [_find_value(one, name) for one in designs]
        values = [value for value in achieved if value is not None and math.isfinite(value)]
        if len(values) == len(designs):
            found.append((PrivacyAxis(plain(name), checked.at_least), values))
    if len({one.unit for one in designs}) == 1:
        label = f"expected error of the best attack{in_unit(designs[0].unit)}"
        found.append((PrivacyAxis(label, larger=True), [one.errors["optimal"] for one in designs]))
    different = (each for each in found if len({short(value, 3) for value in each[1]}) > 1)
    return next(different, found[-1] if found else None)


def _pictures(designs: Sequence[ComparedDesign]) -> dict[str, object]:
    """Return the figures of a comparison, each with one scale for all designs, and the script's data for the maps."""
    views = {f"secrets-{i}": view(one.problem.secrets, len(one.problem.prior)) for i, one in enumerate(designs)}
    views |= {f"answers-{i}": view(answers(one.problem), one.problem.cost.shape[1]) for i, one in enumerate(designs)}
    chosen = int(most_likely(designs[0].problem.prior, 1)[0])
    # Show the likeliest secret of the first design if all designs have it, or else the likeliest secret of each design.
    found = [_counterpart(designs[0].problem, chosen, one.problem) for one in designs]
    shared = None not in found
    shown_of = [int(most_likely(one.problem.prior, 1)[0]) for one in designs]
    if shared:
        shown_of = [index for index in found if index is not None]
    names = [name_of(one.problem.secrets, index) for one, index in zip(designs, shown_of, strict=True)]
    rows_of = [one.channel.matrix[index] for one, index in zip(designs, shown_of, strict=True)]
    series = {f"error-{i}": (one.per_secret, plain(one.unit), "error") for i, one in enumerate(designs)}
    series |= {f"row-{i}": (row, "%", "answered") for i, row in enumerate(rows_of)}
    errors = [Panel(one.problem.secrets, one.per_secret, one.name, f"error-{i}") for i, one in enumerate(designs)]
    subject = "for the likeliest secret of each design: the secrets differ"
    if shared:
        subject = f"for {names[0]}, the likeliest secret of {designs[0].name}"
    given = [
        Panel(
            answers(one.problem), row, one.name if shared else f"{one.name}, for {names[i]}", f"row-{i}",
            shown_of[i] if answers(one.problem) is one.problem.secrets else None,
        )
        for i, (one, row) in enumerate(zip(designs, rows_of, strict=True))
    ]  # fmt: skip
    return {
        "data": series_block(views, series),
        "errors": panels(
            functools.partial(_errors, designs, errors),
            "errors",
            {
                each.name: panel_attributes(
                    each.values, each.domain, each.name, f"secrets-{i}", "expected error", each.title, designs[i].unit
                )
                for i, each in enumerate(errors)
            },
        ),
        "answers": panels(
            functools.partial(_answers, given, f"Probability of each answer {subject}"),
            "answers",
            {
                each.name: panel_attributes(
                    each.values, each.domain, each.name, f"answers-{i}", "probability of each answer", each.title
                )
                for i, each in enumerate(given)
            },
        ),
    }


def _errors(designs: Sequence[ComparedDesign], shown: Sequence[Panel]) -> Figure:
    units = {one.unit for one in designs}
    unit = f" ({plain(units.pop())})" if len(units) == 1 and designs[0].unit else ""
    scale = error_scale(np.concatenate([each.values for each in shown]), f"adversary’s expected error{unit}")
    return panels_picture(shown, scale, "Expected error of the best attack for each secret")


def _answers(shown: Sequence[Panel], finding: str) -> Figure:
    values = np.concatenate([each.values for each in shown])
    scale = probability_scale(values, "probability of the answer, p(o|s)")
    return panels_picture(shown, scale, finding, "never answered" if (values == 0).any() else "")


def _counterpart(first: Problem, index: int, other: Problem) -> int | None:
    """Return the index of the secret with equal label and place in another problem, or None if it is missing."""
    here, there = first.secrets, other.secrets
    if here is None or there is None:
        return index if here is there and len(first.prior) == len(other.prior) else None
    if _same_domain(here, there):
        return index
    # Cells of two different grids cover different areas, even if their labels are equal.
    label = here.labels[index]
    if here.cells is not None or there.cells is not None or label not in there.labels:
        return None
    match = there.labels.index(label)
    return match if _places([index], here) == _places([match], there) else None


def _same_domain(first: Domain | None, second: Domain | None) -> bool:
    if first is None or second is None:
        return first is second
    same = first.labels == second.labels
    return same and _places(range(first.size), first) == _places(range(second.size), second)


def _places(members: Iterable[int], domain: Domain) -> tuple[object, ...]:
    """Return coordinates of members: degrees if the domain has them, because its points are relative to a corner."""
    places = domain.points if domain.coordinates is None else domain.coordinates
    return domain.coordinates is None, domain.unit, places[list(members)].tolist()


def _write_change(first: float | None, second: float | None) -> str:
    """Return the change from the first to the second number in percent, "=" for equal ones, or "" if undefined."""
    if first is None or second is None or not (math.isfinite(first) and math.isfinite(second)) or first <= 0:
        return ""
    change = 100 * (second / first - 1)
    if abs(change) < 0.05:
        return "="
    return f"{'+' if change > 0 else '−'}{short(abs(change), 2 if abs(change) < 100 else 3)}%"


def _find_value(one: ComparedDesign, name: str) -> float | None:
    """Return the achieved number of the only requirement with a name, or None."""
    found = [
        checked.realised
        for requirement, checked in zip(claimants(one.problem), one.certificate.requirements, strict=True)
        if requirement_name(one.problem, requirement) == name
    ]
    return found[0] if len(found) == 1 else None


def _cost(one: ComparedDesign, value: float, *, up: bool = True) -> str:
    return cost_measure(one.problem).with_unit(format_bound(value, up=up, digits=5))


def _gap(certificate: Certificate) -> str:
    return "no bound" if certificate.lower_bound <= 0 < certificate.cost else power(certificate.relative_gap)


def _error(one: ComparedDesign, name: str) -> str:
    if name not in one.errors:
        return "–"
    return f"{short(one.errors[name], 4)} {one.unit}".rstrip()


def _list_values(one: ComparedDesign, name: str) -> str:
    found = [
        f"{write_achieved(checked)} ({_format_nominal(checked)})"
        for requirement, checked in zip(claimants(one.problem), one.certificate.requirements, strict=True)
        if requirement_name(one.problem, requirement) == name
    ]
    return ", ".join(found) or "not required"


def _format_nominal(checked: Checked) -> str:
    """Return the nominal value in few digits, rounded so that the requirement is not overstated."""
    asked = checked.nominal
    if len(asked) > _MAX_CHARACTERS:
        asked = format_bound(float(Fraction(asked)), up=not checked.at_least)
    return f"{'at least' if checked.at_least else 'at most'} {asked}"
