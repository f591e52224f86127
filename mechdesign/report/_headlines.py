"""Verdicts in a sentence: the first lines of reports and of the command line.

Numbers are rounded so that no sentence claims more privacy, or a smaller cost, than was proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.certify._dithering import EUCLIDEAN
from mechdesign.certify._exact import exact, exact_text
from mechdesign.model._disclosure import list_secrets
from mechdesign.model._origin import STANDS_IN
from mechdesign.model._problem_words import cost_measure
from mechdesign.model._words import Measure, format_bound, power, recognise_measure, short

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mechdesign.certify._certificate import Certificate, Checked
    from mechdesign.measures._audit import Audit, PairLoss
    from mechdesign.model._origin import Origin
    from mechdesign.model._problem import Problem
    from mechdesign.tables._release import Release
    from mechdesign.traces._released import ReleasedTrace

# Significant digits for people.
_DIGITS = 4
# Relative gap up to which a cost is called optimal.
_OPTIMAL_GAP = 1e-5
# Largest relative gap of a cost that a headline calls close to optimal.
_CLOSE_GAP = 0.1
# Factor of the odds from which protection is called weak, and exponent from which e^x is not written as a number.
_WEAK, _MOST_EXPONENT = 100.0, 690.0
# Relative margin for the rounding of exp and of sums.
_MARGIN = 1e-12


@dataclass(frozen=True)
class Headline:
    """A verdict for people.

    Attributes:
        good: Whether the verdict is good news.
        short: The verdict in a few words, with a full stop.
        long: The sentences that explain it, with full stops.
    """

    good: bool
    short: str
    long: str

    def __str__(self) -> str:
        return f"{self.short} {self.long}".rstrip()


def write_odds(exponent: float) -> str:
    """Write the factor e^exponent of odds, rounded up.

    >>> write_odds(1.0), write_odds(23.98661333), write_odds(2000.0), write_odds(math.inf)
    ('2.72', '2.7 × 10¹⁰', 'e^2000', '∞')
    """
    if not math.isfinite(exponent):
        return "∞"
    if exponent > _MOST_EXPONENT:
        return f"e^{format_bound(exponent, up=True, digits=_DIGITS)}"
    factor = math.exp(exponent) * (1 + _MARGIN)
    if factor < 1e5:
        return format_bound(factor, up=True, digits=3)
    tens = int(math.log10(factor))
    digits = math.ceil(factor / 10.0 ** (tens - 1))
    if digits >= 100:
        digits, tens = 10, tens + 1
    raised = str(tens).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits / 10:.1f} × 10{raised}"


def write_achieved(checked: Checked) -> str:
    """Write the achieved number of a requirement in few digits: an ε rounded up, an error rounded down.

    If the requirement holds and the rounded number would deny that, the required number is returned, which is also a
    bound.
    """
    shown = format_bound(checked.realised, up=not checked.at_least, digits=_DIGITS)
    if not (checked.holds and math.isfinite(checked.realised)):
        return shown
    required = Fraction(checked.nominal)
    denies = (Fraction(shown) < required) == checked.at_least and Fraction(shown) != required
    return checked.nominal if denies else shown


def design_headline(problem: Problem, certificate: Certificate, origin: Origin | None = None) -> Headline:
    """Return the verdict on a design: whether its requirements hold, its cost, and its distance from the optimum.

    If its origin says that a uniform prior stands in place of a private one, the verdict is not about the cost.
    """
    if not certificate.holds:
        pair = ""
        if certificate.pair is not None:
            names = [
                str(index) if problem.secrets is None else problem.secrets.labels[index] for index in certificate.pair
            ]
            pair = f" Worst pair of secrets: {' and '.join(names)}."
        return Headline(False, "Does not hold.", f"{certificate.reason}.{pair}")
    private = "Private" if certificate.requirements else "Nothing is required"
    if origin is not None and origin.has_substitute_prior:
        return Headline(True, f"{private}.", f"The prior is {STANDS_IN}.")
    cost = _describe_cost(certificate.cost, cost_measure(problem), certificate.objective, _has_cells(problem))
    if certificate.lower_bound <= 0 < certificate.cost:
        return Headline(True, f"{private}.", f"{cost}. No lower bound of the cost has been proved.")
    gap = certificate.relative_gap
    anchored = " between these anchors" if problem.point_bounds else ""
    optimal = (
        f", and provably optimal{anchored}."
        if gap <= _OPTIMAL_GAP
        else f", and {'close' if gap <= _CLOSE_GAP else 'not proved to be close'} to optimal{anchored}: "
        f"the gap is {_percent(gap)}."
    )
    among = " and gives only permitted answers" if certificate.forbidden else ""
    # The bound holds for the answers of the problem; between anchors, for channels that bound neighbours.
    answers = "no channel with these answers"
    which = f"{answers} that meets these requirements{among}" if certificate.requirements else f"{answers}{among}"
    if problem.point_bounds:
        which = f"no channel with bounds between neighbouring anchors{among}"
    least = f"{which} has a lower cost" if gap <= 0 else f"{which} has a cost lower by more than {_percent(gap)}"
    noise = " " + _compare_noise(problem) if problem.point_bounds else ""
    return Headline(True, f"{private}{optimal}", f"{cost}; {least}.{noise}")


def _compare_noise(problem: Problem) -> str:
    """Return a sentence on planar Laplace noise, which protects all points without anchors."""
    unit = problem.secrets.unit if problem.secrets is not None else ""
    euclidean = [float(claim.epsilon) for claim in problem.point_bounds.values() if claim.norm == EUCLIDEAN]
    if not euclidean or problem.objective != "expected" or cost_measure(problem).unit != unit:
        return "Mechanisms without anchors may cost less."
    noise = short(2 / min(euclidean), 4)
    return f"Mechanisms without anchors may cost less: planar Laplace noise is off by {noise} {unit}."


def _has_cells(problem: Problem) -> bool:
    """Return whether a place counts as the centre of its cell."""
    return problem.secrets is not None and problem.secrets.cells is not None and not problem.point_bounds


def _describe_cost(cost: float, measured: Measure, objective: str, cells: bool) -> str:
    """Return a clause on a cost, rounded up: a distance, the root of a mean square, or another cost."""
    centres = ", between centres of cells" if cells else ""
    where = "on average" if objective == "expected" else "in the worst case"
    paid = measured.with_unit(format_bound(cost, up=True, digits=_DIGITS))
    if measured.root:
        root = f"{format_bound(math.sqrt(cost) * (1 + _MARGIN), up=True, digits=_DIGITS)} {measured.root}"
        mean = " (root mean square)" if objective == "expected" else " in the worst case"
        return f"Answers are off by at most {root}{mean}{centres}"
    if measured.unit:
        return f"Answers are off by at most {paid} {where}{centres}"
    return f"An answer costs at most {paid} {where}"


def _percent(gap: float) -> str:
    return f"{power(100 * gap)}%"


def audit_headline(found: Audit, stated: object = None, optimum: bool = False) -> Headline:
    """Return the verdict on an audited channel; `stated` is the claimed ε, and `optimum` compares the cost."""
    tight = "no finite ε holds" if found.epsilon == math.inf else f"the tight ε is {_up(found.epsilon)}"
    good = math.isfinite(found.epsilon) if stated is None else found.holds(stated)
    if stated is None:
        short = f"{tight[0].upper()}{tight[1:]}."
    else:
        short = f"ε = {exact_text(exact(stated))} {'holds' if good else 'does not hold'}: {tight}."
    parts = [_describe_worst(found, stated)]
    if optimum and found.cost and found.optimum is not None:
        unit = _cost_unit(found)
        least, paid = format_bound(found.optimum, up=False, digits=_DIGITS), _up(found.cost)
        parts.append(f"The channel costs {paid}{unit}; no channel with the tight ε costs less than {least}{unit}.")
    return Headline(good, short, " ".join(filter(None, parts)))


def _describe_worst(found: Audit, stated: object) -> str:
    """Return the sentence on the pair of secrets and the answer that need the largest ε."""
    if found.witness is None:
        return "All bounded pairs of secrets have equal rows: an answer does not distinguish them."
    (s, t), o = found.witness
    likely, unlikely = float(found.matrix[s, o]), float(found.matrix[t, o])
    one, other = (name_secret(found, secret) for secret in (s, t))
    apart = _describe_distance(found, s, t)
    if unlikely == 0:
        return f"Answer {o} is possible for secret {one} and impossible for secret {other}{apart}."
    said = f"Answer {o} is {_ratio(likely / unlikely)} times as likely for secret {one} as for secret {other}{apart}"
    if found.epsilon == math.inf:
        return f"{said}, although the two secrets are at distance 0."
    weight = _find_distance(found, s, t)
    if stated is None or weight is None or found.holds(stated) or weight == 0:
        return f"{said}."
    allowed = math.exp(min(float(exact(stated)) * weight, _MOST_EXPONENT))
    return f"{said}; ε = {exact_text(exact(stated))} allows {_ratio(allowed)} times."


def _ratio(value: float) -> str:
    return f"{value:.3g}" if value < 1e5 else write_odds(math.log(value)) if math.isfinite(value) else "∞"


def _find_distance(found: Audit, s: int, t: int) -> float | None:
    match = np.flatnonzero((found.bound.sources == s) & (found.bound.targets == t))
    return float(found.bound.weights[match[0]]) if match.size else None


def _describe_distance(found: Audit, s: int, t: int) -> str:
    """Return the distance of two secrets in their unit, or an empty text if the ε is not per unit of this distance."""
    weight, measured = _find_distance(found, s, t), measure_distances(found)
    return f", {measured.with_unit(f'{weight:.3g}')} away" if weight is not None and measured.unit else ""


def measure_distances(found: Audit) -> Measure:
    """Return the distances of an audited channel between places; without places, name and unit are empty."""
    n = len(found.matrix)
    matrix, counts = np.zeros((n, n)), np.zeros((n, n), dtype=np.bool_)
    matrix[found.bound.sources, found.bound.targets] = found.bound.weights
    counts[found.bound.sources, found.bound.targets] = True
    if found.secrets is None or not found.secrets.points.shape[1]:
        return Measure(matrix)
    return recognise_measure(matrix, found.secrets, found.secrets, counts)


def _cost_unit(found: Audit) -> str:
    costs, secrets = found.costs, found.secrets
    if costs is None or secrets is None or costs.shape[0] != costs.shape[1] or not np.isfinite(costs).all():
        return ""
    unit = recognise_measure(costs, secrets, secrets).unit
    return f" {unit}" if unit else ""


def name_secret(found: Audit, secret: int) -> str:
    """Return the label of a secret of an audited channel, or its index."""
    return str(secret) if found.secrets is None else found.secrets.labels[secret]


def describe_rows(found: Audit) -> tuple[str, ...]:
    """Return sentences on the row sums, the negative entries and the revealed secrets of an audited matrix."""
    if found.deviation == 0:
        said = ["Every row sums to exactly 1."]
    else:
        said = [
            f"Row sums deviate from 1 by up to {found.deviation:.3g}; each row was divided by its exact sum, as a "
            "sampler that uses the entries as weights would do."
        ]
    if found.deviation > 0.01:
        said.append("The deviation is large: rows must be secrets, and columns must be observables.")
    if found.negative:
        count = found.negative
        said.append(
            f"{count} entr{'y is' if count == 1 else 'ies are'} negative; the audit replaces "
            f"{'it' if count == 1 else 'them'} by 0."
        )
    if found.revealed:
        have = "have" if len(found.revealed) > 1 else "has"
        said.append(
            f"{list_secrets(found.revealed, len(found.matrix), found.secrets)} {have} an answer that no other secret "
            "can produce: anyone who sees it knows the secret for certain."
        )
    return tuple(said)


def trace_headline(found: ReleasedTrace) -> Headline:
    """Return the verdict on a released trace: the ε of a step and of all steps, and the protection of trajectories."""
    together = found.composition
    count = together.releases
    each = {release.stage.epsilon for release in found.releases}
    per_step = exact_text(each.pop()) if len(each) == 1 else ""
    total = exact_text(together.epsilon)
    said = [
        f"All {count} steps together: ε = {total} between states that stay joined by an edge."
        if count > 1
        else f"The step has ε = {total} between states that are joined by an edge.",
        _describe_trajectories(together.bound),
    ]
    if not found.certified:
        return Headline(
            False, "Not proved.", " ".join(["Outputs are floating-point numbers: this is a simulation.", *said])
        )
    short = "Each step is private" + (f" (ε = {per_step})." if per_step and count > 1 else ".")
    if found.seeded:
        return Headline(False, "A rehearsal with a seed: publish nothing of it.", " ".join([short, *said]))
    return Headline(True, short, " ".join(said))


def _describe_trajectories(bound: float) -> str:
    """Return a sentence on the odds between any two possible trajectories, whose logarithm is at most `bound`."""
    if not math.isfinite(bound):
        return "Whole trajectories are not protected: some outputs exclude a possible trajectory."
    odds = f"the odds between two of them by a factor of up to {write_odds(bound)}"
    if bound >= math.log(_WEAK):
        return f"Whole trajectories are hardly protected: the outputs may change {odds}."
    return f"Whole trajectories: the outputs change {odds}."


def table_headline(release: Release) -> Headline:
    """Return the verdict on a release from a table: its spending, its meaning as odds, and the errors of answers."""
    described, error = release.description, describe_errors(release)
    errors = f"The standard error of an answer is {error}." if error else "The answers are exact."
    if described.rehearsal:
        return Headline(
            False,
            "A rehearsal.",
            "The noise came from a given generator. Anyone who knows its seed can remove the noise: publish nothing of "
            f"this release. {errors}",
        )
    if not (described.epsilon or described.rho):
        return Headline(
            True, "Released; nothing was spent.", f"All neighbouring databases have these answers. {errors}"
        )
    rows = described.rows_per_person
    if described.epsilon is not None:
        odds = write_odds(float(described.epsilon * rows))
        other = "a neighbouring one" if rows == 1 else "one with neighbouring values in the rows of one person"
        meaning = f"No answer is more than {odds} times as likely under one database as under {other}."
    else:
        meaning = "The guarantee is zero-concentrated differential privacy under the policy."
    noise = "The noise came from the operating system’s randomness."
    spent = described.spent if rows == 1 else f"{described.spent} per row, {described.spent_per_person} per person,"
    return Headline(True, f"Released; {spent} was spent.", f"{meaning} {errors} {noise}")


def describe_errors(release: Release) -> str:
    """Return the range of the standard errors of a release, or "" for exact answers."""
    errors = release.standard_errors
    least, largest = float(errors.min(initial=math.inf)), float(errors.max(initial=0.0))
    if not largest:
        return ""
    low, high = write_count(least), write_count(largest)
    if low == high:
        return high
    return f"{low} to {high}" if least else f"at most {high}"


def write_count(value: float) -> str:
    """Write a count, or an error of counts: whole numbers in full, others with 4 digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else short(float(value), _DIGITS)


def describe_limits(problem: Problem, certificate: Certificate) -> tuple[str, ...]:
    """Return sentences on the limits of the promises of a design."""
    return tuple(_limits(problem, certificate))


def _limits(problem: Problem, certificate: Certificate) -> Iterator[str]:
    exponents = [bound.exponents for bound in problem.pair_bounds.values() if len(bound)]
    yield (
        "One answer only. Several answers for the same secret add up: the ε of k independent answers is up to k times "
        "as large."
    )
    if exponents:
        most = max(float(each.max()) for each in exponents)
        if most > math.log(_WEAK):
            odds = f"a factor of up to {write_odds(most)}" if math.isfinite(most) else "any factor"
            yield (
                f"Nothing for pairs that are far apart. An answer may change the odds between some bounded pairs by "
                f"{odds}: these secrets are practically distinguishable."
            )
        n = len(problem.prior)
        bounded = max(len(bound) for bound in problem.pair_bounds.values())
        if bounded < n * (n - 1):
            yield "Nothing, directly, for pairs without a bound: only chains of bounded pairs limit their odds."
    if problem.floors:
        yield "An error floor holds for its prior only. An adversary with better knowledge has a smaller error."
    yield (
        "Costs and expected errors are averages under the prior of the design. They differ if the true frequencies do."
        if certificate.objective == "expected"
        else "Expected errors are averages under the prior of the design. They differ if the true frequencies do."
    )
    if _has_cells(problem):
        yield (
            "Nothing between cells. A place counts as its cell: two neighbours on both sides of a border, however "
            "close, are as far apart as the two cells."
        )
    yield "Nothing about side channels: when, how often and from which address somebody answers is not hidden."


def _up(value: float) -> str:
    return format_bound(value, up=True, digits=_DIGITS)


def describe_pair(found: Audit, pair: PairLoss) -> tuple[str, ...]:
    """Return the cells of a table on a pair: secrets, answer, both probabilities, and the ε that the pair needs."""
    secrets = " and ".join(name_secret(found, secret) for secret in pair.pair)
    needed = _up(pair.epsilon) if math.isfinite(pair.epsilon) else "none holds"
    return secrets, str(pair.observable), f"{pair.likely:.4g}", f"{pair.unlikely:.4g}", needed
