"""Isolated secrets are refused unless the caller accepts them, and revealed secrets are reported."""

from __future__ import annotations

import functools
import json
import math
import re
import warnings
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.certify._claims import ExponentBound, Floor, RatioBound
from mechdesign.certify._stated import Stated
from mechdesign.errors import InputError, RevealedWarning, SpacingWarning
from mechdesign.model._claims import Claims
from mechdesign.model._disclosure import bounds_pairs, describe_disclosure, find_loose, find_untied
from mechdesign.model._requirements._kinds import ClaimedPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.report._verdicts import limit_design
from mechdesign.synthesis._design import synthesise
from mechdesign.synthesis._settings import SolveSettings

# Two clusters and a place far from both.
PLACES = md.Domain.from_points([[0, 0], [1, 0], [0, 1], [9, 0], [9.5, 0], [30, 0]], labels=list("abcdef"), unit="km")
DISTANCE = md.distances.euclidean(PLACES)
APART = np.where(np.eye(6) > 0, 0.0, math.inf)
ALL = r"bound no pair of secrets, .* found 6 of 6 secrets \(a, b, c, d, e, f\)"


def problem(*requirements: Requirement) -> md.Problem:
    return md.Problem(np.full(6, 1 / 6), DISTANCE, requirements, "expected", PLACES, PLACES)


def one_way(pairs: list[list[int]], n: int, factor: Fraction = Fraction(2)) -> ClaimedPrivacy:
    return ClaimedPrivacy([Stated.ratios("one-way", factor, pairs)], n)


def quietly(asked: md.Problem, **options: object) -> md.Design:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RevealedWarning)
        return md.design(asked, isolated="release", **options)  # type: ignore[arg-type]


def by_definition(rows: np.ndarray) -> tuple[int, ...]:
    others = [np.delete(rows, s, axis=0).sum(axis=0) for s in range(len(rows))]
    return tuple(s for s in range(len(rows)) if ((rows[s] > 0) & (others[s] == 0)).any())


ISOLATED: dict[str, tuple[list[Requirement], str, tuple[int, ...]]] = {
    "nothing required": ([], ALL, (0, 1, 2, 3, 4, 5)),
    "infinite distances": ([md.MetricPrivacy(1, APART)], ALL, (0, 1, 2, 3, 4, 5)),
    "a graph without edges": ([md.GraphPrivacy(1, nx.empty_graph(6))], ALL, (0, 1, 2, 3, 4, 5)),
    "pairs of oneself": ([one_way([[s, s] for s in range(6)], 6)], ALL, (0, 1, 2, 3, 4, 5)),
    "a radius below all": ([md.ThresholdPrivacy(1, DISTANCE, 0.25)], ALL, (0, 1, 2, 3, 4, 5)),
    "a radius below some": (
        [md.ThresholdPrivacy(1, DISTANCE, 0.5)],
        r"leave some secrets without a bound.*found 4 of 6 secrets \(a, b, c, f\)\. Increase the radius from 0\.5 to 1",
        (0, 1, 2, 5),
    ),
    "a place far from all": (
        [md.ThresholdPrivacy(1, DISTANCE, 2)],
        r"1 of 6 secrets \(f\)\. Increase the radius from 2 to 20\.5",
        (5,),
    ),
    "two requirements": (
        [md.GraphPrivacy(1, md.graphs.from_edges(6, [(0, 1), (1, 2)])), md.ThresholdPrivacy(1, DISTANCE, 0.5)],
        r"1 of 6 secrets \(f\)",
        (5,),
    ),
    "a floor beside": (
        [md.DistortionPrivacy("0.1", DISTANCE), md.GraphPrivacy(1, md.graphs.from_edges(6, [(0, 1), (1, 2), (3, 4)]))],
        r"1 of 6 secrets \(f\). Bound pairs that contain them",
        (),
    ),
    "a graph without edges beside a floor": (
        [md.DistortionPrivacy("0.1", DISTANCE), md.GraphPrivacy(1, nx.empty_graph(6))], ALL, (),
    ),
}  # fmt: skip


@each_row(("requirements", "message", "revealed"), ISOLATED.values())
def test_isolated_secrets_are_refused_unless_accepted(
    requirements: list[Requirement], message: str, revealed: tuple[int, ...]
) -> None:
    asked = problem(*requirements)
    for arguments in ({}, {"isolated": "refuse"}):
        with pytest.raises(InputError, match=message) as caught:
            md.design(asked, **arguments)  # type: ignore[arg-type]
        assert caught.value.path == "requirements"
        assert caught.value.remedy.endswith('or accept this with isolated="release"')
    made = quietly(asked)
    assert made.summary.isolated == made.certificate.provenance["isolated"] == "release"
    found = made.certificate.revealed
    assert found == by_definition(made.channel.numerators)
    # A floor over all secrets may also hide an isolated secret.
    assert found is not None
    assert set(revealed) <= set(found)
    if revealed:
        named = f"{len(found)} of 6 secrets ({', '.join(PLACES.labels[s] for s in found)}) ha"
        with pytest.warns(RevealedWarning) as caught_warnings:
            md.design(asked, isolated="release")
        (warning,) = caught_warnings
        assert str(warning.message).startswith(named)
        assert warning.filename == __file__


def test_a_single_secret_is_refused_whatever_is_required() -> None:
    one = np.zeros((1, 1))
    for requirements in ([], [md.MetricPrivacy(1, one)], [md.ThresholdPrivacy(1, one, 5)]):
        asked = md.Problem([1.0], [[0.5, 0.25]], requirements)
        with pytest.raises(
            InputError, match="requirements: cannot protect the only secret, which every answer reveals"
        ):
            md.design(asked)
        with pytest.warns(RevealedWarning, match="^There is a single secret, and every answer reveals it"):
            made = md.design(asked, isolated="release")
        assert made.certificate.revealed == (0,)


def test_a_radius_at_and_below_the_nearest_neighbour() -> None:
    line = md.Domain.from_points([[0.0], [1.0], [2.0]])
    distance = md.distances.euclidean(line)

    def asked(radius: str) -> md.Problem:
        return md.Problem(np.full(3, 1 / 3), distance, [md.ThresholdPrivacy(1, distance, radius)])

    assert md.design(asked("1")).certificate.revealed == ()
    with pytest.raises(InputError, match="3 of 3 secrets"):
        md.design(asked("0.999"))


def test_a_bound_in_one_direction_connects_both_and_revealed_secrets_are_reported() -> None:
    cost = 1 - np.eye(2)
    for pair, other in (([[0, 1]], 1), ([[1, 0]], 0)):
        asked = md.Problem([0.5, 0.5], cost, [one_way(pair, 2)])
        with pytest.warns(RevealedWarning, match=rf"1 of 2 secrets \({other}\)"):
            made = md.design(asked)
        assert made.certificate.revealed == by_definition(made.channel.numerators)
        assert made.summary.isolated is None
        # The wording depends on whether the solver returns a vertex.
        assert describe_disclosure(asked, (other,)) == (
            f"1 of 2 secrets ({other}) has an answer that no other secret can produce: anyone who sees it knows the "
            "secret for certain.",
        )
        assert describe_disclosure(asked, ())[0].startswith(
            "No bound below 2^62 limits how much likelier an answer may be for 1"
        )


def test_different_requirements_may_connect_different_secrets() -> None:
    far = APART.copy()
    far[5, 3] = 4.0
    made = md.design(problem(md.ThresholdPrivacy(1, DISTANCE, 1), md.MetricPrivacy(1, np.minimum(far, far.T))))
    assert made.certificate.revealed == ()


def test_distortion_alone_bounds_no_pair_and_warns() -> None:
    for minimum in ("0", "0.4"):
        with pytest.warns(
            RevealedWarning, match=r"No requirement bounds a pair of secrets: an answer may rule out any"
        ):
            made = md.design(problem(md.DistortionPrivacy(minimum, DISTANCE)))
        assert made.certificate.revealed == by_definition(made.channel.numerators)
    # With a pair bound there is no warning.
    md.design(problem(md.DistortionPrivacy("0.4", DISTANCE), md.MetricPrivacy(1, DISTANCE)))


@each_row(("epsilon", "said"), [("42.97", False), ("42.98", True), ("800", True)])
def test_a_bound_of_2_to_the_62_gives_no_noticeable_protection(epsilon: str, said: bool) -> None:
    """2^62 is e^42.975: an ε per metre instead of per km soon exceeds it."""
    line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    asked = md.Problem(np.full(3, 1 / 3), line, [md.MetricPrivacy(epsilon, line)])
    if not said:
        assert md.design(asked).certificate.revealed == ()
        return
    with pytest.warns(RevealedWarning, match=r"^No bound below 2\^62 .* 3 of 3 secrets \(0, 1, 2\)"):
        made = md.design(asked)
    # A probability of 2^-62 for another secret satisfies the definition, but gives no noticeable protection.
    assert made.certificate.revealed == ()
    assert made.channel.matrix.diagonal().tolist() == [1.0, 1.0, 1.0]


@each_row("isolated", ["repair", "hull", "accept", "", None, True, 1])
def test_other_values_of_isolated_are_refused(isolated: object) -> None:
    with pytest.raises(InputError, match=r"^isolated: is not known.*must be one of refuse, release"):
        md.design(problem(md.MetricPrivacy(1, DISTANCE)), isolated=isolated)  # type: ignore[arg-type]


def test_problems_with_isolated_secrets_are_still_valid(tmp_path: Path) -> None:
    made = quietly(problem(md.ThresholdPrivacy(1, DISTANCE, 0.5)))
    md.save(made, tmp_path, report=False)
    assert md.verify(tmp_path).revealed == (0, 1, 2, 5)
    assert second_verifier.prove(tmp_path)[-1].endswith("; revealed for certain: secrets [0, 1, 2, 5]")
    loaded = md.Design.load(tmp_path)
    stated, certificate = loaded.problem, loaded.certificate
    assert certificate.revealed == (0, 1, 2, 5)
    assert stated.requirements[0].kind == "threshold"
    assert json.loads((tmp_path / "certificate.json").read_text())["certificate"]["revealed"] == [0, 1, 2, 5]


def test_internal_designs_are_not_checked() -> None:
    made = synthesise(problem(), SolveSettings())
    assert made.certificate.revealed == (0, 1, 2, 3, 4, 5)
    identity = np.eye(6)
    found = md.audit(identity, distance=APART, cost=DISTANCE)
    assert (found.revealed, found.epsilon) == ((0, 1, 2, 3, 4, 5), 0.0)
    two = md.graphs.from_edges(6, [(0, 1)])
    audited = md.audit(0.5 * identity + np.eye(6)[:, [1, 0, 2, 3, 4, 5]] / 2, graph=two, cost=DISTANCE, secrets=PLACES)
    assert audited.revealed == (2, 3, 4, 5)
    assert md.audit([[1.0, 1e-300], [1.0, 0.0]], distance=[[0, 1], [1, 0]]).revealed == (0,)


def test_all_points_between_anchors_are_connected() -> None:
    anchors = md.Domain.anchors(columns=3, rows=2, width=2.0, height=1.0)
    cost = md.distances.euclidean(anchors)
    made = md.design(md.Problem(np.full(6, 1 / 6), cost, [md.ContinuousPrivacy("0.2", anchors)], "expected", anchors))
    assert made.certificate.revealed == ()
    dithered = Claims(md.ContinuousPrivacy("0.2", anchors).claims()[:1])
    assert not find_untied(6, dithered).size
    assert not find_loose(6, dithered).size


def test_isolated_secrets_follow_the_definition() -> None:
    rng = np.random.default_rng(42)
    limit = 62 * math.log(2) - 1e-9
    for _ in range(200):
        n, claims, pairs = int(rng.integers(1, 7)), [], []
        for _ in range(int(rng.integers(0, 3))):
            sources, targets = rng.integers(n, size=(2, int(rng.integers(0, 4))))
            if rng.random() < 0.5:
                weights = rng.choice([0.0, 1.0, 1e9], size=len(sources))
                claims.append(ExponentBound("x", Fraction(1), sources, targets, weights))
            else:
                tops = rng.choice([1, 2**61, 2**62], size=len(sources))
                claims.append(RatioBound("x", Fraction(1), sources, targets, tops, np.ones(len(sources), dtype=int)))
                weights = np.log(tops.astype(float))
            pairs += [(s, t, w) for s, t, w in zip(sources, targets, weights, strict=True) if s != t]
        claims.append(Floor(Fraction(0), np.zeros((1, n))))
        alone = [s for s in range(n) if all(s not in pair[:2] for pair in pairs)]
        limited = {s for s, _, w in pairs if w < limit} | {t for _, t, w in pairs if w == 0}
        hardly = [s for s in range(n) if s not in alone and s not in limited]
        assert find_untied(n, Claims(claims)).tolist() == alone
        assert find_loose(n, Claims(claims)).tolist() == hardly
        assert bounds_pairs(Claims(claims)) == (len(claims) > 1)


# --- cells that are far apart for ε ---------------------------------------------------------------------------------


def test_cells_too_far_apart_for_metric_privacy_are_warned_of() -> None:
    town = md.Domain.grid(columns=3, rows=2, width=3.0, height=2.0, unit="km")
    apart, other = md.distances.euclidean(town), 1.0 - np.eye(6)
    metric = functools.partial(md.MetricPrivacy, distance=apart)
    places = md.Domain.from_points(town.points, unit="km")
    rows = {
        "at the bound": ([metric(2)], town, ""),
        "above it": ([metric("2.01")], town, "1 km apart, and ε times this spacing is 2.01. .* at most 0.995 km apart"),
        "the stricter of two": ([metric(3), metric(4)], town, "ε times this spacing is 3.* a factor of 20.1"),
        "a part of a grid": ([metric(3)], town.part(range(6)), "Neighbouring cells are 1 km apart"),
        "ε of every pair": ([md.MetricPrivacy(3, other)], town, ""),
        "neighbours bounded by a threshold": ([metric(3), md.ThresholdPrivacy(1, apart, 1)], town, ""),
        "places without cells": ([metric(3)], places, ""),
    }
    for name, (asked, secrets, said) in rows.items():
        given = md.Problem(np.full(6, 1 / 6), apart, asked, secrets=secrets)
        with warnings.catch_warnings(record=True, action="always") as found:
            made = md.design(given, tolerance=0.1)
        assert [each.category for each in found] == [SpacingWarning] * bool(said), name
        limits = " ".join(limit_design(given, made.certificate))
        assert re.search(said, str(found[0].message)) if said else "Neighbouring cells" not in limits, name
        assert not said or str(found[0].message) in limits, name
