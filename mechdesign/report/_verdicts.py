"""Verdicts in a sentence: the first lines of reports and of the command line.

Numbers are rounded so that no sentence claims more privacy, or a smaller cost, than was proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from mechdesign.base._arithmetic import decimals
from mechdesign.certify._exact import exact, exact_text
from mechdesign.model._disclosure import describe_cells, list_secrets
from mechdesign.model._origin import STANDS_IN
from mechdesign.model._problem import cost_measure
from mechdesign.model._words import Measure, at_least, at_most, format_bound, power, recognise_measure, short
from mechdesign.report._statements import count_bounded_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mechdesign.certify._certificate import Certificate, Checked
    from mechdesign.measures._audit import Audit, PairLoss
    from mechdesign.model._origin import Origin
    from mechdesign.model._problem import Problem
    from mechdesign.tables._release import Release
    from mechdesign.traces._released import ReleasedTrace

# Relative gap up to which a cost is called optimal.
_OPTIMAL_GAP = 1e-5
# Largest relative gap of a cost that a headline calls close to optimal.
_CLOSE_GAP = 0.1
# Factor of the odds from which protection is called weak, and exponent from which e^x is not written as a number.
_WEAK, _MOST_EXPONENT = 100.0, 690.0
# Relative margin for the rounding of exp and of sums.
_MARGIN = 1e-12


@dataclass(frozen=True)
class Verdict:
    """A verdict for people: one sentence, and whether it is good news."""

    good: bool
    text: str

    def __str__(self) -> str:
        return self.text


def write_odds(exponent: float, digits: int = 3) -> str:
    """Write the factor e^exponent of odds, rounded up; a factor below 100,000 has at most `digits` digits.

    >>> write_odds(1.0), write_odds(23.98661333), write_odds(2000.0), write_odds(math.inf)
    ('2.72', '2.7 × 10¹⁰', 'e^2000', '∞')
    """
    if not math.isfinite(exponent):
        return "∞"
    if exponent > _MOST_EXPONENT:
        return f"e^{at_most(exponent)}"
    factor = math.exp(exponent) * (1 + _MARGIN)
    if factor < 1e5:
        return format_bound(factor, up=True, digits=digits)
    leading, tens = f"{decimals(2, ROUND_CEILING).create_decimal(repr(factor)):.1e}".split("e+")
    return f"{leading} × 10{tens.translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def write_achieved(checked: Checked) -> str:
    """Write the achieved number of a requirement in few digits: an ε rounded up, an error rounded down.

    If the requirement holds and the rounded number would deny that, the required number is returned, which is also a
    bound.
    """
    shown = (at_least if checked.at_least else at_most)(checked.realised)
    if not (checked.holds and math.isfinite(checked.realised)):
        return shown
    required = Fraction(checked.nominal)
    denies = (Fraction(shown) < required) == checked.at_least and Fraction(shown) != required
    return checked.nominal if denies else shown


def judge_design(problem: Problem, certificate: Certificate, origin: Origin | None = None) -> Verdict:
    """Return the verdict on a design: whether its requirements hold, its cost, and its distance from the optimum.

    If its origin says that a uniform prior stands in place of a private one, the verdict is not about the cost.
    """
    if not certificate.holds:
        labels = None if problem.secrets is None else problem.secrets.labels
        pair = [str(index) if labels is None else labels[index] for index in certificate.pair or ()]
        worst = f"; the worst pair of secrets is {' and '.join(pair)}" if pair else ""
        return Verdict(False, f"Does not hold: {certificate.reason}{worst}.")
    private = "Private" if certificate.requirements else "Nothing is required"
    if origin is not None and origin.has_substitute_prior:
        return Verdict(True, f"{private}; the prior is {STANDS_IN}.")
    cost = _describe_cost(certificate.cost, cost_measure(problem), certificate.objective, _has_cells(problem))
    if certificate.lower_bound <= 0 < certificate.cost:
        return Verdict(True, f"{private}: {cost}; no lower bound of the cost has been proved.")
    gap = certificate.relative_gap
    near = "close" if gap <= _CLOSE_GAP else "not proved to be close"
    optimal = "provably optimal" if gap <= _OPTIMAL_GAP else f"{near} to optimal"
    if problem.point_bounds:
        # Between anchors, the bound holds for channels that bound neighbours.
        which, optimal = "no channel with bounds between neighbouring anchors", f"{optimal} between these anchors"
    else:
        which = "no channel with these answers" + " that meets these requirements" * bool(certificate.requirements)
    among = " and gives only permitted answers" if certificate.forbidden else ""
    least = "has a lower cost" if gap <= 0 else f"has a cost lower by more than {power(100 * gap)}%"
    return Verdict(True, f"{private}, and {optimal}: {cost}; {which}{among} {least}.")


def _has_cells(problem: Problem) -> bool:
    """Return whether a place counts as the centre of its cell."""
    return problem.secrets is not None and problem.secrets.cells is not None and not problem.point_bounds


def _describe_cost(cost: float, measured: Measure, objective: str, cells: bool) -> str:
    """Return a clause on a cost, rounded up: a distance, the root of a mean square, or another cost."""
    centres = ", between centres of cells" if cells else ""
    where = "on average" if objective == "expected" else "in the worst case"
    paid = measured.with_unit(at_most(cost))
    if measured.root:
        root = f"{at_most(math.sqrt(cost) * (1 + _MARGIN))} {measured.root}"
        mean = " (root mean square)" if objective == "expected" else " in the worst case"
        return f"answers are off by at most {root}{mean}{centres}"
    if measured.unit:
        return f"answers are off by at most {paid} {where}{centres}"
    return f"an answer costs at most {paid} {where}"


def judge_audit(found: Audit, stated: object = None) -> Verdict:
    """Return the verdict on an audited channel; `stated` is the claimed ε."""
    tight = "no finite ε holds" if found.epsilon == math.inf else f"the tight ε is {at_most(found.epsilon)}"
    good = math.isfinite(found.epsilon) if stated is None else found.holds(stated)
    claim = "" if stated is None else f"ε = {exact_text(exact(stated))} {'holds' if good else 'does not hold'}: "
    return Verdict(good, f"{claim or 'Audited: '}{tight}; {_describe_worst(found, stated)}.")


def _describe_worst(found: Audit, stated: object) -> str:
    """Return the clause on the pair of secrets and the answer that need the largest ε."""
    if found.witness is None:
        return "all bounded pairs of secrets have equal rows, so that an answer does not distinguish them"
    (s, t), o = found.witness
    likely, unlikely = float(found.matrix[s, o]), float(found.matrix[t, o])
    one, other = (name_secret(found, secret) for secret in (s, t))
    apart = _describe_distance(found, s, t)
    if unlikely == 0:
        return f"answer {o} is possible for secret {one} and impossible for secret {other}{apart}"
    said = f"answer {o} is {_ratio(likely / unlikely)} times as likely for secret {one} as for secret {other}{apart}"
    if found.epsilon == math.inf:
        return f"{said}, although the two secrets are at distance 0"
    weight = _find_distance(found, s, t)
    if stated is None or weight is None or found.holds(stated) or weight == 0:
        return said
    allowed = math.exp(min(float(exact(stated)) * weight, _MOST_EXPONENT))
    return f"{said}, where ε = {exact_text(exact(stated))} allows {_ratio(allowed)} times"


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
        said.append(f"Negative entries, which the audit replaces by 0: {found.negative}.")
    if found.revealed:
        have = "have" if len(found.revealed) > 1 else "has"
        said.append(
            f"{list_secrets(found.revealed, len(found.matrix), found.secrets)} {have} an answer that no other secret "
            "can produce: anyone who sees it knows the secret for certain."
        )
    return tuple(said)


def judge_trace(found: ReleasedTrace) -> Verdict:
    """Return the verdict on a released trace: the ε of all steps, and the protection of trajectories."""
    if found.seeded:
        return Verdict(False, "A rehearsal with a seed: publish nothing of it.")
    together = found.composition
    start = "Each step is private" if found.certified else "Not proved, since outputs are floating-point numbers"
    steps = "the step has" if together.releases == 1 else f"all {together.releases} steps together have"
    if math.isfinite(together.bound):
        odds = f"change the odds between two whole trajectories by a factor of up to {write_odds(together.bound)}"
    else:
        odds = "exclude a possible trajectory"
    said = f"{start}: {steps} ε = {exact_text(together.epsilon)} between states that stay joined by an edge"
    return Verdict(found.certified, f"{said}, and the outputs may {odds}.")


def judge_table(release: Release) -> Verdict:
    """Return the verdict on a release from a table: its spending, and its meaning as odds."""
    described = release.description
    if described.rehearsal:
        said = "anyone who knows the seed of the noise can remove the noise"
        return Verdict(False, f"A rehearsal: {said}, so publish nothing of this release.")
    if not (described.epsilon or described.rho):
        return Verdict(True, "Released; nothing was spent: all neighbouring databases have these answers.")
    rows = described.rows_per_person
    meaning = "the guarantee is zero-concentrated differential privacy under the policy"
    if described.epsilon is not None:
        odds = write_odds(float(described.epsilon * rows))
        other = "a neighbouring one" if rows == 1 else "one with neighbouring values in the rows of one person"
        meaning = f"no answer is more than {odds} times as likely under one database as under {other}"
    spent = described.spent if rows == 1 else f"{described.spent} per row, {described.spent_per_person} per person,"
    return Verdict(True, f"Released; {spent} was spent: {meaning}.")


def judge_leakage(largest: float) -> Verdict:
    """Return the verdict on repeated releases, of which none has more than the `largest` temporal leakage."""
    return Verdict(
        True, f"None of these releases leaks more than {write_nats(largest)} nats, if ε bounds every pair of states."
    )


def judge_pairs(releases: int, largest: Mapping[str, float], unit: str) -> Verdict:
    """Return the verdict on the bounds of pairs after a number of releases; `largest` are bounds by their names."""
    sides = {"neighbours": "neighbours", "all_pairs": "any two states"}
    clauses = [f"between {sides[name]} by {_by_factor(value)}" for name, value in largest.items() if name in sides]
    if not clauses:
        return Verdict(True, "There is one state, and nothing to tell it from.")
    count = "One release may" if releases == 1 else f"{releases} releases together may"
    which = "its state" if releases == 1 else "the state at one of them"
    changed = ", and ".join(clauses)
    if math.isfinite(steepest := largest.get("per_unit", math.inf)):
        per = f"{write_nats(steepest)} nats per {unit or 'unit of distance'}"
        return Verdict(True, f"{count} tell up to {per}: the odds on {which} may change {changed}.")
    return Verdict(True, f"{count} change the odds on {which} {changed}.")


def _by_factor(leakage: float) -> str:
    return f"a factor of at most e^{write_nats(leakage)}" if math.isfinite(leakage) else "any factor"


def write_nats(leakage: float) -> str:
    """Write a leakage, rounded up."""
    return at_most(leakage) if math.isfinite(leakage) else "no bound"


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
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else short(float(value), 4)


_LOCAL = (
    "δ = 0. The trust model is local if the channel runs where the secret is known; a server that collects secrets "
    "must be trusted."
)


def limit_design(problem: Problem, certificate: Certificate) -> Iterator[str]:
    """Yield sentences on the limits of the promises of a design."""
    if problem.pair_bounds or problem.point_bounds:
        pairs = [f"{count} of secrets" for count in dict.fromkeys(count_bounded_pairs(problem)) if count]
        which = "any two points between the anchors" if problem.point_bounds else " and ".join(pairs)
        yield f"The unit of privacy is the secret behind one answer, for {which}."
        yield _LOCAL
    else:
        yield "There is no unit of privacy: no pair of secrets has a bound, so this is not differential privacy."
    yield (
        "One answer only. The ε of k independent answers for the same secret is up to k times as large, and answers "
        "about correlated secrets reveal more."
    )
    exponents = [bound.exponents for bound in problem.pair_bounds.values() if len(bound)]
    if exponents:
        most = max(float(each.max()) for each in exponents)
        if most > math.log(_WEAK):
            odds = f"a factor of up to {write_odds(most)}" if math.isfinite(most) else "any factor"
            yield f"Nothing for pairs that are far apart: an answer may change the odds between some of them by {odds}."
        n = len(problem.prior)
        bounded = max(len(bound) for bound in problem.pair_bounds.values())
        if bounded < n * (n - 1):
            yield "Nothing, directly, for pairs without a bound: only chains of bounded pairs limit their odds."
    if problem.floors:
        yield "An error floor holds for its prior only. An adversary with better knowledge has a smaller error."
    which = "Costs and expected errors" if certificate.objective == "expected" else "Expected errors"
    yield f"{which} are averages under the prior of the design. They differ if the true frequencies do."
    if _has_cells(problem):
        yield (
            "Nothing between cells. A place counts as its cell: two neighbours on both sides of a border, however "
            "close, are as far apart as the two cells."
        )
    if coarse := describe_cells(problem):
        yield coarse
    if problem.point_bounds:
        yield "Mechanisms without anchors may cost less."
    yield "Nothing about side channels: when, how often and from which address somebody answers is not hidden."


def limit_audit(found: Audit) -> Iterator[str]:
    """Yield sentences on the limits of an audit."""
    yield f"The unit of privacy is the secret behind one answer, for {len(found.bound)} ordered pairs of secrets."
    yield _LOCAL if math.isfinite(found.epsilon) else "No finite ε holds: this is not differential privacy."
    yield "One answer only. The ε of several answers about one secret add up."
    yield "The audit reads numbers, not code: whether a program draws from these probabilities is not checked."
    yield "Nothing about side channels. A sampler of floating-point noise may reveal more than its probabilities say."


def limit_trace(found: ReleasedTrace) -> Iterator[str]:
    """Yield sentences on the limits of a released trace."""
    edges = found.composition.graph.number_of_edges()
    yield (
        f"The unit of privacy is the state at each step of one trace, for {edges} pairs of states that an edge joins "
        "at every step."
    )
    yield "δ = 0. The trust model is local: the program that knows the true states adds the noise."
    yield "Another run of the same trace adds its ε."
    yield f"{found.history.meaning.rstrip('.')}. The chain that correlates the steps is taken as given."
    if not found.certified:
        yield "Outputs are sums of floating-point noise, whose last bits may reveal more than ε allows."


def limit_table(release: Release) -> Iterator[str]:
    """Yield sentences on the limits of a release from a table."""
    described = release.description
    yield f"The unit of privacy: {described.neighbours} {described.people}"
    central = "The trust model is central: the holder of the table reads all records, and adds the noise."
    yield central if described.rho is not None else f"δ = 0. {central}"
    yield "Budgets of releases under this policy add up; other policies have other neighbours."
    yield "Policy and domain are taken to be public. Time and memory are not hidden."
    yield from described.remarks


def limit_leakage() -> Iterator[str]:
    """Yield sentences on the limits of the leakage of repeated releases."""
    yield "The unit of privacy is the state at one release, of one person or of one table."
    yield "δ = 0. Whether the mechanisms keep their budgets is not checked."
    yield (
        "An ε per unit of distance, or one that bounds only some pairs of states, is not such a budget. Give the "
        "specification, or use Hamming distance, a complete graph, or a radius that covers all pairs."
    )
    yield from _limit_matrices()


def limit_pairs() -> Iterator[str]:
    """Yield sentences on the limits of bounds of pairs after repeated releases."""
    yield "The unit of privacy is the state at one release, of one person, against another state at this release."
    yield "δ = 0. Whether each release meets the requirements is not checked: a certificate proves that."
    yield "Whole ways that differ at several releases are not compared: between them the ε of these releases add up."
    yield "Nothing about two places in one cell, which have one state, and nothing about when somebody reports."
    yield from _limit_matrices()


def _limit_matrices() -> Iterator[str]:
    yield "The matrices are taken as given. Few data miss possible steps, above all those of people not counted."
    yield "Nothing about correlations between people."


def describe_pair(found: Audit, pair: PairLoss) -> tuple[str, ...]:
    """Return the cells of a table on a pair: secrets, answer, both probabilities, and the ε that the pair needs."""
    secrets = " and ".join(name_secret(found, secret) for secret in pair.pair)
    needed = at_most(pair.epsilon) if math.isfinite(pair.epsilon) else "none holds"
    return secrets, str(pair.observable), f"{pair.likely:.4g}", f"{pair.unlikely:.4g}", needed
