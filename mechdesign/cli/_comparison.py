"""The comparison of several designs: in what they differ, their costs, requirements, and errors of attacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mechdesign.cli._found import Found, Shown
from mechdesign.measures import attack
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem, attack_measure, claim_names, claimants, cost_measure
from mechdesign.model._words import at_least, at_most, power, short
from mechdesign.report._verdicts import write_achieved
from mechdesign.synthesis._result import Design


def compare(designs: Mapping[str, Design]) -> Found:
    """Compare designs by their names; costs are ranked only if they can be compared."""
    names, (first, *others) = list(designs), designs.values()
    differ = dict.fromkeys(
        f"{sentence} ({names[0]} and {name})" if len(names) > 2 else sentence
        for name, other in zip(names[1:], others, strict=True)
        for sentence in _differences(first, other)
    )
    broken = [name for name, each in designs.items() if not each.certificate.holds]
    if broken:
        said = f"The requirements of {', '.join(broken)} do not hold."
    elif differ:
        said = "The costs are not ranked, because the designs differ in more than the numbers of their requirements."
    else:
        said = _rank(designs)
    facts = {name: _facts(each) for name, each in designs.items()}
    return Found(said, {"differences": list(differ), "designs": facts})


def _rank(designs: Mapping[str, Design]) -> str:
    """Return a sentence on the cheapest and the dearest design."""
    low, high = (pick(designs, key=lambda name: designs[name].certificate.cost) for pick in (min, max))
    costs = [designs[name].certificate.cost for name in (low, high)]
    measured = cost_measure(designs[low].problem)
    least, most = (measured.with_unit(at_most(cost)) for cost in costs)
    if costs[0] == costs[1] or not np.isfinite(costs[1]):
        return f"All designs cost {least}." if costs[0] == costs[1] else "A design gives forbidden answers."
    return f"{low} costs {100 * (1 - costs[0] / costs[1]):.3g}% less than {high}: {least} instead of {most}."


def _facts(design: Design) -> dict[str, object]:
    """Return the facts of one design, which the facts of the others stand beside."""
    problem, certificate = design.problem, design.certificate
    measured, error = cost_measure(problem), attack_measure(problem)
    gap = "no bound" if certificate.lower_bound <= 0 < certificate.cost else power(certificate.relative_gap)
    costs = {"expected_cost": certificate.expected_cost, "worst_cost": certificate.worst_cost}
    return {
        "secrets": len(problem.prior),
        "observables": problem.cost.shape[1],
        "holds": certificate.holds,
        "objective": f"{certificate.objective} cost",
        **{name: Shown(cost, measured.with_unit(at_most(cost))) for name, cost in costs.items()},
        "lower_bound": Shown(certificate.lower_bound, measured.with_unit(at_least(certificate.lower_bound))),
        "relative_gap": Shown(certificate.relative_gap, gap),
        "secrets_revealed_for_certain": len(certificate.revealed),
        **{
            name: Shown(
                {"required": checked.nominal, "achieved": checked.realised},
                f"{write_achieved(checked)} ({'at least' if checked.at_least else 'at most'} {checked.nominal})",
            )
            for name, checked in zip(_number(claim_names(problem)), certificate.requirements, strict=True)
        },
        **{
            f"error of the {name} attack": Shown(value, f"{short(value, 4)} {error.unit}".rstrip())
            for name, value in _attack(design).items()
        },
    }


def _attack(design: Design) -> dict[str, float]:
    """Return the expected error of each attack that needs no program."""
    channel, prior, error = design.channel, design.problem.prior, attack_measure(design.problem).matrix
    games = {"optimal": attack.optimal, "prior-free": attack.prior_free}
    if error.shape[0] == error.shape[1]:
        games["Bayes"] = attack.bayes
    return {name: float(game(channel, prior, error).distortion) for name, game in games.items()}


def _number(names: Sequence[str]) -> list[str]:
    """Return names, of which equal ones are numbered."""
    return [
        f"{name}, {1 + names[:place].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _differences(one: Design, other: Design) -> Iterator[str]:
    """Yield a sentence for all in which two designs differ, but for the numbers of their requirements."""
    first, second = one.problem, other.problem
    if not _same_domain(first.secrets, second.secrets) or first.prior.shape != second.prior.shape:
        yield "The secrets differ."
        return
    if not np.array_equal(first.prior, second.prior):
        yield "The priors differ: expected costs and errors average over the secrets with different weights."
    elif first.objective == "expected" and any(
        each.origin is not None and each.origin.has_substitute_prior for each in (one, other)
    ):
        yield "A uniform prior stands in place of a private one: expected costs are not those of the true prior."
    if not np.array_equal(first.cost, second.cost) or cost_measure(first).unit != cost_measure(second).unit:
        yield "The cost matrices differ."
    if first.objective != second.objective:
        yield "The objectives differ: one is the expected cost, the other the worst cost."
    here, there = (_number([f"{each.kind} privacy" for each in claimants(problem)]) for problem in (first, second))
    for name in dict.fromkeys((*here, *there)):
        if name not in here or name not in there:
            yield f"Only one of them requires {name}."
        elif said := _difference(_bounds(first, here.index(name)), _bounds(second, there.index(name))):
            yield f"{said} ({name})."


def _bounds(problem: Problem, place: int) -> dict[str, object]:
    """Return what a claim bounds, by the words for it, without its number."""
    if (floor := problem.floors.get(place)) is not None:
        return {"The errors": floor.error, "The priors of a floor": floor.prior}
    if (points := problem.point_bounds.get(place)) is not None:
        return {"The anchors": replace(points, epsilon=Fraction(1))}
    bound = problem.pair_bounds[place]
    order = np.lexsort((bound.targets, bound.sources))
    return {
        "The radii": getattr(claimants(problem)[place], "radius", None),
        "The bounded pairs": np.column_stack((bound.sources, bound.targets))[order],
        "The distances": np.column_stack(bound.terms)[order],
    }


def _difference(first: Mapping[str, object], second: Mapping[str, object]) -> str:
    """Return the sentence on the first thing in which two claims differ, or ""."""
    if first.keys() != second.keys():
        return "The bounds differ in kind"
    return next((f"{name} differ" for name, value in first.items() if not _equal(value, second[name])), "")


def _equal(first: object, second: object) -> bool:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return np.array_equal(first, second)
    return type(first) is type(second) and first == second


def _same_domain(first: Domain | None, second: Domain | None) -> bool:
    if first is None or second is None:
        return first is second
    # Points are relative to a corner if the domain has degrees.
    here, there = (each.points if each.coordinates is None else each.coordinates for each in (first, second))
    return first.labels == second.labels and first.unit == second.unit and np.array_equal(here, there)
