"""The problem that `mechdesign.design` solves: a prior, a cost matrix and requirements.

Names for its costs, the adversary's error and its claims stand below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mechdesign.base._arrays import Floats, Integers, as_floats, require
from mechdesign.base._check import as_list, require_kind, require_name
from mechdesign.base._errors import InfeasibleError, InputError, InputWarning
from mechdesign.base._names import Labels, Named, Names, labels_of, opened, require_one_index, unless_numbers
from mechdesign.base._values import ReadOnlyMapping, cached_property
from mechdesign.base._warnings import warn
from mechdesign.certify._claims import Floor, PairBound
from mechdesign.certify._costs import distortion
from mechdesign.certify._dithering import Dithered
from mechdesign.certify._exact import nearest
from mechdesign.certify._stated import Stated
from mechdesign.model import distances
from mechdesign.model._channel import EXPONENT
from mechdesign.model._claims import Claims, label_disclosed_sets, propagate_forbidden
from mechdesign.model._dithering import anchor_means, between
from mechdesign.model._domain import Domain
from mechdesign.model._prior import Prior, as_prior
from mechdesign.model._requirements._requirement import Requirement, as_requirements
from mechdesign.model._words import (
    HAMMING_DISTANCE,
    PLANE_DISTANCE,
    Measure,
    Words,
    clip,
    recognise_distance,
    recognise_measure,
)

if TYPE_CHECKING:
    import networkx as nx


OBJECTIVES = ("expected", "worst")
_FACTS = ("edges_added", "isolated", "within")


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """A design problem: find the channel p(o|s) of least cost that meets every requirement.

    Arrays are taken by position. Series and frames are taken by their names, which are matched with the labels of the
    domains; without a domain, with each other (docs/reference/data_files.md).

    A forbidden answer has infinite cost. If o is forbidden to s, bounds on pairs may also forbid o to other secrets;
    the field `cost` is infinite in all these cases.

    Args:
        prior: Probabilities π of the secrets, (n,); the field `prior` is the float64 array of a `Prior`.
        cost: Cost c(s, o) >= 0 of the answer o for the secret s, (n, m); infinity forbids the answer.
        requirements: Any combination of metric, threshold, graph, continuous and distortion privacy.
        objective: "expected", Σ_s π_s Σ_o p(o|s) c(s, o) (Privacy Games, equation 11), or "worst",
            max_s Σ_o p(o|s) c(s, o) (equation 12).
        secrets: The domain of the secrets (rows), for labels and maps, or None.
        observables: The domain of the observables (columns). By default, it is the domain of the secrets if the cost
            is square and no answer is cheaper for a secret than the secret itself. Otherwise it is None.
        title: The name of the mechanism.
        facts: Remarks from functions that build problems, such as `mechdesign.graphs.problem`: "within", "isolated" and
            "edges_added", as in `SolveSummary`. These remarks do not affect the channel; the certificate shows them.

    Raises:
        InputError: An argument has the wrong shape, sign or sum.
        InfeasibleError: Every answer is forbidden to a secret, or a distortion floor exceeds the largest possible
            distortion, which the message states.

    >>> Problem([0.5, 0.5], [[0, 1], [1, 0]], [])
    Problem(2 secrets, 2 observables, expected cost; no requirement)
    """

    prior: Floats
    cost: Floats
    requirements: tuple[Requirement, ...]
    objective: str = "expected"
    secrets: Domain | None = None
    observables: Domain | None = None
    title: str = ""
    facts: Mapping[str, str | int] = field(kw_only=True)

    def __init__(
        self,
        prior: Prior | ArrayLike,
        cost: ArrayLike,
        requirements: Sequence[Requirement],
        objective: str = "expected",
        secrets: Domain | None = None,
        observables: Domain | None = None,
        title: str = "",
        *,
        facts: Mapping[str, str | int] = ReadOnlyMapping({}),
    ) -> None:
        given, table = as_prior(prior), opened(cost, "cost")
        labels = _labels(secrets, given.names, table.rows, *_names(requirements))
        if secrets is None and unless_numbers(labels):
            secrets = Domain.from_labels(map(str, labels))
        own = unless_numbers(labels_of(table.columns, "cost"))
        if observables is None and own and set(own) != set(labels):
            observables = Domain.from_labels(map(str, own))
        answers = observables.labels if isinstance(observables, Domain) else None
        probabilities = as_prior(given, labels=labels).probabilities
        costs = as_floats(costs_of(table, labels, answers), "cost", "(n, m)")
        n = probabilities.size
        if costs.shape[0] != n or costs.shape[1] == 0:
            raise InputError("cost", "must have a row for every secret", value=costs.shape, bound=f"of shape ({n}, m)")
        require(costs >= 0, costs, "cost", "a number >= 0, or infinity to forbid an answer")
        barred = np.isinf(costs).all(axis=1)
        if barred.any():
            raise InputError(
                f"cost[{int(barred.argmax())}]", "forbids every answer", bound="finite for at least one answer"
            )
        require_name(objective, OBJECTIVES, "objective")
        required = as_requirements(requirements, n, labels=labels)
        _check_domain(secrets, "secrets", n)
        if observables is None and costs.shape[1] == n and bool((costs.diagonal() == costs.min(axis=1)).all()):
            observables = secrets
        _check_domain(observables, "observables", costs.shape[1])
        stated = _as_facts(facts)
        values = (probabilities, costs, required, objective, secrets, observables, str(title), stated)
        names = ("prior", "cost", "requirements", "objective", "secrets", "observables", "title", "facts")
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "cost", propagate_forbidden(costs, self.claims))
        told = label_disclosed_sets(self.cost, self.claims) if self.floors else None
        for place, requirement in enumerate(self.requirements):
            if floors := requirement.floors:
                _check_reachable(f"requirements[{place}].minimum", floors, probabilities, told, self.secrets)
                _check_beliefs(f"requirements[{place}].prior", floors, probabilities)

    @classmethod
    def from_visits(
        cls,
        points: ArrayLike,
        observables: Domain,
        requirements: Sequence[Requirement],
        cost: str | ArrayLike = "euclidean",
        weights: ArrayLike | None = None,
        title: str = "",
    ) -> Problem:
        """Return a problem on anchors from raw visits, without binning them into cells.

        A visit x with probability π(x) is dithered to anchors a with weights w_a(x). The expected cost
        Σ_x π(x) Σ_a w_a(x) Σ_o p(o|a) c(x, o) is the exact cost of answers drawn with `Design.sample_at`. The prior of
        an anchor is π_a = Σ_x π(x) w_a(x), and its cost is Σ_x π(x) w_a(x) c(x, o) / π_a.

        Args:
            points: Visits, (k, 2): x and y in the unit of the anchors, or latitude and longitude in degrees. Points
                outside the rectangle of the anchors are projected onto it, and an `OutsideWarning` counts them.
            observables: The places of the m answers.
            requirements: Requirements, including `ContinuousPrivacy`, whose anchors are the secrets.
            cost: "euclidean", "manhattan" or "chebyshev" for a distance in the plane, "haversine", or an array (k, m)
                with the cost of every answer to every visit.
            weights: Relative weights of the visits, (k,), >= 0; None gives all visits equal weight.
            title: The name of the mechanism.

        Returns:
            The problem.

        Raises:
            InputError: No requirement has anchors, or an argument has the wrong shape.
            InfeasibleError: A floor exceeds the largest possible distortion.
        """
        requirements = as_list(requirements, "requirements", "a list of requirements")
        for index, each in enumerate(requirements):
            require_kind(each, Requirement, f"requirements[{index}]", "MetricPrivacy, …")
        anchors = next((own for each in requirements if (own := each.anchors) is not None), None)
        if anchors is None:
            raise InputError("requirements", "have no anchors", bound="at least one ContinuousPrivacy")
        if not isinstance(observables, Domain):
            raise InputError("observables", "is not a domain", value=type(observables).__name__, bound="a Domain")
        require_one_index({"points": points, "cost": cost})
        costs = (
            between(anchors, points, observables, cost)
            if isinstance(cost, str)
            else as_floats(cost, "cost", "(k, m)", columns=observables.labels)
        )
        require(costs >= 0, costs, "cost", "a number >= 0")
        prior, means = anchor_means(anchors, points, costs, weights, path="cost")
        return cls(prior, means, requirements, "expected", anchors, observables, title)

    def __repr__(self) -> str:
        kinds = ", ".join(requirement.kind for requirement in self.requirements) or "no requirement"
        n, m = self.cost.shape
        return f"Problem({n} secrets, {m} observables, {self.objective} cost; {kinds})"

    @cached_property
    def stated(self) -> tuple[Stated, ...]:
        """The statements of the requirements, in order, one for each claim."""
        return tuple(stated for _, stated in self._numbered)

    @cached_property
    def claims(self) -> Claims:
        """The claims of the requirements, in order, in the form that the verifier checks."""
        return Claims(claim for each in self.requirements for claim in each.claims())

    @property
    def pair_bounds(self) -> Mapping[int, PairBound]:
        """The claims that bound pairs of secrets, by their indices in the list of claims."""
        return self.claims.pair_bounds

    @property
    def point_bounds(self) -> Mapping[int, Dithered]:
        """The claims that bound all points between anchors, by their indices in the list of claims."""
        return self.claims.point_bounds

    @property
    def floors(self) -> Mapping[int, Floor]:
        """The floors on the adversary's expected error, by their indices in the list of claims."""
        return self.claims.floors

    @cached_property
    def graphs(self) -> Mapping[int, nx.Graph]:
        """The policy graphs of graph privacy, by the indices of these requirements."""
        found = ((place, each.graph) for place, each in enumerate(self.requirements))
        return ReadOnlyMapping({place: graph for place, graph in found if graph is not None})

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The index of the requirement of each claim; most requirements make one claim."""
        return tuple(place for place, _ in self._numbered)

    @cached_property
    def _numbered(self) -> tuple[tuple[int, Stated], ...]:
        return tuple((place, stated) for place, each in enumerate(self.requirements) for stated in each.stated())


def largest_distortion(prior: Prior | ArrayLike, distance: ArrayLike, told: ArrayLike | None = None) -> Fraction:
    """Return the largest distortion that a channel can have: the adversary's error if nothing is released.

    The value is min_ŝ Σ_s π_s a(ŝ, s), exact for the given float64 numbers. If every answer reveals which set of a
    partition contains the secret, the value is the sum of these minima over the sets.

    Args:
        prior: Probabilities π of the secrets, (n,).
        distance: Error a(ŝ, s) of each estimate for each secret, (k, n).
        told: The number of the set that contains each secret, (n,); None if one set contains all secrets.

    Returns:
        The largest distortion, in the unit of the distance.

    >>> largest_distortion([0.25, 0.75], [[0, 1], [1, 0]])
    Fraction(1, 4)
    """
    errors = opened(distance, "distance").settled("distance")
    probabilities = as_prior(prior, labels=labels_of(errors.columns, "distance") or None).probabilities
    sets = np.zeros(probabilities.size, dtype=np.int64) if told is None else np.asarray(told, dtype=np.int64)
    constant = np.zeros((sets.size, int(sets.max()) + 1), dtype=np.int64)
    constant[np.arange(sets.size), sets] = 1 << EXPONENT
    return distortion(constant, EXPONENT, probabilities, np.asarray(errors, dtype=np.float64))


def _names(requirements: object) -> Iterator[Names]:
    """Yield the names of the secrets of requirements and of their priors."""
    for each in requirements if isinstance(requirements, Sequence) else ():
        yield getattr(each, "names", ())
        yield from (prior.names for prior in getattr(each, "priors", ()))


def _labels(secrets: object, *names: Names) -> Labels:
    """Return the labels of the secrets: those of their domain; without a domain, the first names that are labels."""
    if isinstance(secrets, Domain):
        return secrets.labels
    return next((own for each in names if (own := labels_of(each, "cost"))), ())


def costs_of(table: Named, labels: Labels, observables: Labels | None) -> NDArray[Any]:
    """Return costs with rows and columns in the order of labels.

    Args:
        table: Costs (n, m).
        labels: The labels of the secrets; empty if they have none.
        observables: The labels of the observables. None if they are unknown: names of columns are then the labels of
            the secrets, or their own.

    Returns:
        The costs, which may still be of a wrong shape or out of range.

    Raises:
        InputError: The names of rows or columns are not the labels.

    >>> costs_of(Named([[1, 2]], ["home"], ["yes", "no"]), ["home"], ["no", "yes"])
    array([[2, 1]])
    """
    if observables is None:
        alike = len(set(table.values.shape)) == 1 or set(table.columns) == set(labels)
        own = labels_of(table.columns, "cost")
        observables = labels if alike and not set(own) - set(labels) else own
    return table.arranged("cost", labels, observables)


def _check_domain(domain: object, name: str, size: int) -> None:
    """Raise `InputError` unless a value is None or a domain of the given size."""
    if domain is None:
        return
    if not isinstance(domain, Domain):
        raise InputError(name, "is not a Domain", value=domain, bound="a Domain, or None")
    if domain.size != size:
        raise InputError(name, "has another size", value=domain.size, bound=str(size))


def _as_facts(facts: Mapping[str, str | int]) -> ReadOnlyMapping[str, str | int]:
    """Return facts, read-only; raise `InputError` for unknown keys."""
    require_kind(facts, Mapping, "facts", "a mapping")
    for name in facts:
        if name not in _FACTS:
            raise InputError("facts", "has an unknown key", value=name, bound=" or ".join(_FACTS))
    return ReadOnlyMapping(facts)


def _check_reachable(
    path: str,
    floors: Sequence[Floor],
    prior: Floats,
    told: Integers | None,
    secrets: Domain | None,
) -> None:
    """Raise `InfeasibleError` if the common minimum of the floors of one requirement is too high."""
    reached = [largest_distortion(floor.prior_or(prior), floor.error, told) for floor in floors]
    least = min(range(len(floors)), key=reached.__getitem__)
    floor, largest = floors[least], reached[least]
    if floor.minimum > largest:
        sets = 1 if told is None else int(told.max()) + 1
        releasing = "nothing" if sets == 1 else f"only which of {sets} sets with disjoint answers contains the secret"
        whose = "this prior" if floor.prior is None else "the prior of this requirement"
        if len(floors) > 1:
            whose = f"all {len(floors)} priors of this requirement (prior[{least}] allows the least error)"
        remedy = "Lower the minimum, or use a flatter prior" + ("" if sets == 1 else ", or forbid fewer answers")
        unit = recognise_distance(floor.error, secrets, secrets).unit
        unit = f" {unit}" if unit else ""
        raise InfeasibleError(
            f"no channel keeps the adversary's expected error at {nearest(floor.minimum):.12g}{unit} under "
            f"{whose}; the largest possible error, releasing {releasing}, is {nearest(largest):.12g}{unit}. {remedy}",
            path,
        )


def _check_beliefs(path: str, floors: Sequence[Floor], prior: Floats) -> None:
    """Warn with `InputWarning` if an adversary's prior includes secrets that the prior of the problem excludes."""
    for index, floor in enumerate(floors):
        if floor.prior is None or not floor.minimum:
            continue
        beyond = np.flatnonzero((prior == 0) & (floor.prior > 0))
        if beyond.size:
            place = path if len(floors) == 1 else f"{path}[{index}]"
            warn(
                f"{place}: gives probability {float(floor.prior[beyond].sum()):.3g} to {beyond.size} secret(s) "
                f"with probability 0 under the prior of the problem, such as secret {int(beyond[0])}. Answers for "
                "these secrets cost nothing, so random answers for them may suffice to meet the floor. The error about "
                "the secrets that do occur can then be smaller than the floor. Smooth the prior of the problem to "
                "prevent this",
                InputWarning,
                stacklevel=4,
            )


def cost_measure(problem: Problem) -> Measure:
    """Return the name and unit of the costs of permitted answers."""
    return recognise_measure(problem.cost, problem.secrets, problem.observables, np.isfinite(problem.cost))


def attack_measure(problem: Problem) -> Measure:
    """Return the error that an adversary minimises, a matrix of estimates by secrets, with its name and unit.

    A problem with distortion floors uses the error of the first floor. Without a floor, the error is the Euclidean
    distance between secrets, or the great-circle distance if plane distances may exceed it. For secrets without places,
    the error is the Hamming distance.
    """
    for floor in problem.floors.values():
        return recognise_measure(floor.error, problem.secrets, problem.secrets)
    secrets = problem.secrets
    if secrets is not None and secrets.points.shape[1]:
        if secrets.plane is None:
            return Measure(distances.euclidean(secrets), "Euclidean distance", clip(secrets.unit))
        if secrets.plane.shorter:
            return Measure(distances.euclidean(secrets), PLANE_DISTANCE, clip(secrets.unit))
        return Measure(distances.haversine(secrets), "great-circle distance", "km")
    return Measure(distances.hamming(len(problem.prior)), HAMMING_DISTANCE)


def claim_names(problem: Problem) -> tuple[str, ...]:
    """Return the names that the requirements give to their claims; a certificate has an entry for each claim."""
    return tuple(name for requirement in problem.requirements for name in requirement.titles(Words(problem.secrets)))


def claimants(problem: Problem) -> tuple[Requirement, ...]:
    """Return the requirement of each claim; a certificate has an entry for each claim."""
    return tuple(problem.requirements[place] for place in problem.places)
