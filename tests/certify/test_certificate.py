from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign.certify import _costs as costs
from mechdesign.certify._bracket import lower_bound
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence, Multipliers, PairMultipliers
from mechdesign.certify._exact import exact
from mechdesign.certify._stated import Stated
from mechdesign.errors import CertificateError

ONE = 2**62


def response(n: int = 3, epsilon: float = 1.0, **changes: Any) -> Evidence:
    """Return randomised response: optimal for the complete graph, a uniform prior and Hamming cost."""
    lie = math.floor(ONE / (n - 1 + math.exp(epsilon))) + 2**10
    numerators = np.full((n, n), lie)
    np.fill_diagonal(numerators, ONE - (n - 1) * lie)
    # Complementary slackness: y(s,t,o) with s = o for all t, of the one value that leaves all r[s,o] of a row equal.
    sources, targets = np.nonzero(~np.eye(n, dtype=bool))
    values = np.full(len(sources), 1 / (n * (n - 1 + math.exp(epsilon))))
    fields: dict[str, Any] = {
        "numerators": numerators,
        "exponent": 62,
        "prior": np.full(n, 1 / n),
        "cost": 1 - np.eye(n),
        "objective": "expected",
        "requirements": (Stated.graph(exact(epsilon), np.argwhere(np.triu(np.ones((n, n)), 1))),),
        "multipliers": Multipliers((PairMultipliers(sources, targets, sources, values),)),
    }
    return Evidence(**{**fields, **changes})


def test_randomised_response_is_certified_optimal() -> None:
    for n, epsilon in itertools.product((2, 3, 7), (0.01, 0.6, 1.0, 5.0)):
        certificate = certify(response(n, epsilon), {"solver": "by hand"})
        best = (n - 1) / (n - 1 + math.exp(epsilon))
        assert certificate.holds
        assert certificate.reason == ""
        assert certificate.pair is None
        assert certificate.expected_cost == pytest.approx(best, rel=1e-13)
        assert certificate.worst_cost == pytest.approx(best, rel=1e-13)
        assert certificate.lower_bound <= best + 1e-15
        assert 0 <= certificate.relative_gap < 1e-12
        assert certificate.epsilon == certificate.epsilon[:1]
        assert epsilon - 1e-12 < certificate.epsilon[0] <= epsilon
        assert certificate.distortion == ()
        assert certificate.provenance["solver"] == "by hand"
        certificate.require()


def test_numbers_are_rounded_outwards() -> None:
    evidence = response(3, 1.0)
    certificate = certify(evidence)
    lie = int(evidence.numerators[0, 1])
    prior = Fraction(1 / 3)
    expected = 3 * prior * Fraction(2 * lie, ONE)
    assert 0 <= exact(certificate.expected_cost) - expected < Fraction(1, 10**15)
    assert 0 <= Fraction(certificate.expected_cost_text) - expected < Fraction(1, 10**29)
    assert 0 <= Fraction(certificate.worst_cost_text) - Fraction(2 * lie, ONE) < Fraction(1, 10**29)
    gap = (expected - exact(certificate.lower_bound)) / expected
    assert 0 <= exact(certificate.relative_gap) - gap < Fraction(1, 10**20)


@pytest.mark.parametrize("objective", ["expected", "worst"])
def test_every_number_is_rounded_to_its_safe_side_by_less_than_a_step(objective: str) -> None:
    """A cost's printed decimal is not below it, a bound's not above it: among 60 problems each way occurs."""
    random = np.random.default_rng(11)
    moved = {"expected": 0, "worst": 0, "bound": 0, "gap": 0, "distortion": 0}
    for _ in range(60):
        rows = random.integers(1, 2**61, (2, 1))
        numerators = np.concatenate([rows, 2**62 - rows], axis=1)
        cost, error = random.random((2, 2)), random.random((2, 2))
        prior = random.random(2)
        stated = (Stated.distortion(Fraction(0), error),)
        evidence = Evidence(numerators, 62, prior / prior.sum(), cost, objective, stated)
        found = certify(evidence)
        expected = costs.expected_cost(numerators, 62, evidence.prior, cost)
        worst = costs.worst_cost(numerators, 62, cost)
        assert exact(math.nextafter(found.expected_cost, 0)) < expected <= exact(found.expected_cost)
        assert exact(math.nextafter(found.worst_cost, 0)) < worst <= exact(found.worst_cost)
        for text, cost_of in ((found.expected_cost_text, expected), (found.worst_cost_text, worst)):
            assert 0 <= Fraction(text) - cost_of < cost_of / 10**29
        least = Fraction(lower_bound(evidence))
        assert exact(found.lower_bound) <= least < exact(math.nextafter(found.lower_bound, 9))
        cost_of = worst if objective == "worst" else expected
        gap = (cost_of - exact(found.lower_bound)) / cost_of
        assert exact(math.nextafter(found.relative_gap, 0)) < gap <= exact(found.relative_gap)
        (total,) = found.distortion
        true = costs.distortion(numerators, 62, evidence.prior, error)
        assert exact(total) <= true < exact(math.nextafter(total, 9))
        # Rounding to the nearest float instead would go the wrong way.
        moved["expected"] += exact(float(expected)) < expected
        moved["worst"] += exact(float(worst)) < worst
        moved["bound"] += exact(float(least)) > least
        moved["gap"] += exact(float(gap)) < gap
        moved["distortion"] += exact(float(true)) > true
    assert min(moved.values()) > 5


def test_worst_cost_is_the_objective_when_asked() -> None:
    cost = np.array([[0.0, 1.0], [2.0, 0.0]])
    stated = (Stated.graph(Fraction(1), [[0, 1]]),)
    evidence = Evidence([[ONE // 2, ONE // 2]] * 2, 62, [0.5, 0.5], cost, "worst", stated)
    certificate = certify(evidence)
    assert (certificate.cost, certificate.worst_cost, certificate.expected_cost) == (1.0, 1.0, 0.75)
    assert certificate.lower_bound == 0
    assert certificate.relative_gap == 1
    assert certify(replace(evidence, objective="expected")).cost == 0.75


def test_a_broken_pair_bound_names_itself() -> None:
    certificate = certify(response(3, 1.0, requirements=(Stated.graph(Fraction(1, 2), [[1, 2]]),), multipliers=None))
    assert not certificate.holds
    assert certificate.pair in {(1, 2), (2, 1)}
    assert certificate.reason.startswith("requirements[0] (graph privacy, epsilon 0.5) does not hold: p(")
    assert "the least epsilon that holds is 0.99999" in certificate.reason
    with pytest.raises(CertificateError, match=r"requirements\[0\]") as caught:
        certificate.require()
    assert caught.value.pair == certificate.pair


def test_the_second_requirement_is_checked_too() -> None:
    edges = [[0, 1]]
    identity = np.array([[ONE, 0], [0, ONE]])
    stated = (Stated.graph(Fraction(1), np.zeros((0, 2))), Stated.graph(Fraction(2), edges))
    certificate = certify(Evidence(identity, 62, [0.5, 0.5], 1 - np.eye(2), "expected", stated))
    assert [checked.holds for checked in certificate.requirements] == [True, False]
    assert certificate.epsilon == (0.0, math.inf)
    assert certificate.reason.startswith("requirements[1] (graph privacy, epsilon 2)")
    assert certificate.reason.endswith("no epsilon holds")


def test_a_floor_is_decided_to_the_last_unit() -> None:
    """The best attack on this channel errs by (ONE // 4 + 1 + ONE // 4) / ONE / 2 exactly."""
    quarter = ONE // 4
    numerators = np.array([[3 * quarter, quarter], [quarter + 1, 3 * quarter - 1]])
    true = Fraction(2 * quarter + 1, 2 * ONE)
    for minimum, holds in ((true, True), (true + Fraction(1, 10**60), False), (true - Fraction(1, 10**60), True)):
        stated = (Stated.distortion(minimum, 1 - np.eye(2)),)
        certificate = certify(Evidence(numerators, 62, [0.5, 0.5], 1 - np.eye(2), "expected", stated))
        assert certificate.holds is holds
        assert certificate.distortion == (0.25,)
        assert certificate.epsilon == ()
        assert certificate.pair is None
        assert ("the best attack's expected error is only 0.25" in certificate.reason) is not holds


def test_free_channels_have_no_gap() -> None:
    certificate = certify(Evidence([[1, 1]], 1, [1.0], [[0.0, 0.0]], "expected", ()))
    assert certificate.holds
    assert (certificate.expected_cost, certificate.lower_bound, certificate.relative_gap) == (0, 0, 0)


def test_a_gap_beside_a_tiny_cost_is_measured_by_the_largest_cost() -> None:
    certificate = certify(Evidence([[2, 0], [2, 0]], 1, [0.5, 0.5], [[1e-12, 1.0], [1e-12, 0.0]], "expected", ()))
    assert certificate.relative_gap == pytest.approx(0.5e-3, rel=1e-12)


def test_a_forbidden_answer_costs_nothing_while_it_is_never_given() -> None:
    cost = np.array([[0.0, 1.0, math.inf], [2.0, 0.0, math.inf]])
    keeping = np.array([[ONE // 2, ONE // 2, 0]] * 2)
    stated = (Stated.graph(Fraction(1), [[0, 1]]),)
    found = certify(Evidence(keeping, 62, [0.5, 0.5], cost, "expected", stated))
    assert found.holds
    assert (found.forbidden, found.expected_cost, found.worst_cost) == (2, 0.75, 1.0)
    assert found.lower_bound == 0
    for objective in ("expected", "worst"):
        for prior in ([0.5, 0.5], [1.0, 0.0]):
            giving = keeping - [[0, 0, 0], [0, 1, -1]]
            broken = certify(Evidence(giving, 62, prior, cost, objective, ()))
            assert not broken.holds
            assert broken.reason == "secret 1 gives observable 2, which an infinite cost forbids"
            assert (broken.expected_cost, broken.worst_cost, broken.relative_gap) == (math.inf,) * 3
            assert broken.pair is None
            assert Certificate.from_json(json.loads(json.dumps(broken.to_json(), allow_nan=False))) == broken
    # A broken requirement is said first, with its pair.
    both = certify(Evidence(keeping - [[0, 0, 0], [0, 1, -1]], 62, [0.5, 0.5], cost, "expected", stated))
    assert both.reason.startswith("requirements[0] (graph privacy, epsilon 1)")
    assert both.pair == (1, 0)


def test_it_is_shown_in_few_digits() -> None:
    plain = replace(certify(response()), relative_gap=0.125)
    shown = "graph privacy: ε 1 of 1, cost: 0.423883, relative gap: "
    assert repr(plain) == f"Certificate(holds: yes, {shown}0.12)"
    assert repr(replace(plain, holds=False, reason="too much")) == f"Certificate(holds: no, too much, {shown}0.12)"
    # A gap says nothing where the lower bound is 0, unless the cost is.
    assert repr(replace(plain, lower_bound=0.0)) == f"Certificate(holds: yes, {shown}no bound)"
    free = replace(plain, expected_cost=0.0, lower_bound=0.0, relative_gap=0.0)
    assert repr(free).endswith("cost: 0, relative gap: 0)")


def test_json_round_trips() -> None:
    broken = certify(response(2, 1.0, requirements=(Stated.graph(Fraction(1, 3), [[0, 1]]),), multipliers=None))
    open_ = certify(
        Evidence([[2, 0], [0, 2]], 1, [0.5, 0.5], np.ones((2, 2)), "worst", (Stated.graph(Fraction(1), [[0, 1]]),)),
        {"seconds": 1.5, "rows": 3, "solver": "none", "best": math.inf},
    )
    for certificate in (certify(response()), broken):
        again = Certificate.from_json(json.loads(json.dumps(certificate.to_json(), allow_nan=False)))
        assert again == certificate
        assert again.differences(certificate) == ()
    again = Certificate.from_json(json.loads(json.dumps(open_.to_json(), allow_nan=False)))
    assert again.differences(open_) == ()
    assert again.epsilon == (math.inf,)


def test_malformed_json_is_refused() -> None:
    values = certify(response()).to_json()
    texts = {"reason", "objective", "expected_cost_text", "worst_cost_text"}
    for name in values:
        # A certificate need not say which secrets are revealed.
        if name != "revealed":
            with pytest.raises(CertificateError, match=name):
                Certificate.from_json({key: value for key, value in values.items() if key != name})
        for wrong in (None, 1, [1], {"a": []}, "nan", [1.5, 2], [{"kind": "graph"}]):
            if (name, wrong) in (("pair", None), ("forbidden", 1), ("revealed", [1])):
                continue
            if name not in texts or not isinstance(wrong, str):
                with pytest.raises(CertificateError, match="malformed"):
                    Certificate.from_json({**values, name: wrong})


def test_numbers_of_claims_in_the_open_are_named() -> None:
    near = Stated.pairs("near", Fraction(3), [[0, 1]], [1.0])
    plain, opened = (certify(response(requirements=(stated,), multipliers=None)) for stated in (graph_of_two(), near))
    (entry,) = opened.to_json()["requirements"]
    assert entry["number"] == "epsilon"
    assert "number" not in plain.to_json()["requirements"][0]
    assert Certificate.from_json(opened.to_json()) == opened
    for change in ({"number": "size"}, {"number": 1}):
        with pytest.raises(CertificateError, match="malformed certificate: number is"):
            Certificate.from_json({**opened.to_json(), "requirements": [{**entry, **change}]})


def graph_of_two() -> Stated:
    return Stated.graph(Fraction(3), [[0, 1]])


def test_differences_are_named() -> None:
    certificate = certify(response())
    assert replace(certificate, lower_bound=0.0, holds=False).differences(certificate) == ("holds", "lower_bound")
    assert replace(certificate, provenance={"a": 1}).differences(certificate) == ()
