"""Blowfish policies: a domain, a secret graph and publicly known counts, which define neighbouring databases."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers, read_only
from mechdesign.base._check import as_truth
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import exact, exact_text
from mechdesign.model.distances import margin, reach
from mechdesign.tables._domain import Attribute, Domain
from mechdesign.tables._known_counts import as_constraints
from mechdesign.tables._line_graphs import (
    AttributeGraph,
    CompleteGraph,
    PartitionGraph,
    ThresholdGraph,
    block_numbers,
    reach_within,
)
from mechdesign.tables._secret_graphs import BasePolicy, ExplicitGraph, SecretGraph, UnboundedGraph, require_room
from mechdesign.tables._sensitivity._sensitivity import sensitivity

ConstraintsLike = Iterable[object]

ALONE = "Neighbours are those of Definition 4.1 of Blowfish (He et al. 2014): one record changes along an edge."
"""The definition for policies without publicly known counts."""

KNOWN_COUNTS = (  # words: ok, because published files hold this text
    "Under known counts one record that changes must do so along an edge of the policy, and the others may change from "
    "any value to any other. All neighbours of Definition 4.1 of Blowfish (He et al. 2014) are among these, as printed "
    "and where every changed record is asked to move along an edge."
)
"""The definition for policies with publicly known counts."""

# Exact distances are sums over the attributes; distances up to this bound cannot overflow an int64.
_LARGEST_DISTANCE = 2**61


@dataclass(frozen=True, eq=False)
class Policy(BasePolicy):
    """A Blowfish policy P = (domain, secret graph, constraints) (He et al. 2014, Definition 3.1).

    Build a policy with `full`, `attribute`, `partition`, `threshold` or `graph`. All these methods accept two keywords:

    - ``constraints``: the publicly known counts, as 0/1 arrays of shape (|T|,) with 1 for the counted values, or as
      pairs (array, known count);
    - ``unbounded``: whether a record may also be added or removed. The null node, with index |T|, represents absence.
      Edges join the null node to every value, unless an explicit graph joins it only to some values.

    Attributes:
        domain: the domain of the records.
        secret_graph: the graph whose edges join values that must stay indistinguishable.
        constraints: the publicly known counts.
        unbounded: whether a record may be added or removed.

    >>> policy = Policy.full(Domain({"age": range(100)}))
    >>> policy.sensitivity("histogram"), policy.steps
    (2, 99)
    """

    @classmethod
    def full(cls, domain: Domain, *, constraints: ConstraintsLike = (), unbounded: bool = False) -> Policy:
        """Return the policy with the complete graph; without known counts, its guarantee is differential privacy.

        Args:
            domain: the domain of the records.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        >>> Policy.full(Domain({"age": range(100)})).sensitivity("cumulative")
        99
        """
        return cls._build(domain, CompleteGraph(_require_domain(domain).size), constraints, unbounded)

    @classmethod
    def attribute(
        cls,
        domain: Domain,
        *,
        theta: Mapping[str, float | Fraction | str] | None = None,
        constraints: ConstraintsLike = (),
        unbounded: bool = False,
    ) -> Policy:
        """Return the policy that joins values that differ in exactly one attribute, by at most its threshold.

        Args:
            domain: the domain of the records.
            theta: the threshold of each attribute, by its name. An attribute with a number θ changes by at most θ, in
                its unit; floats are read as in `threshold`. An attribute with ``"next"`` changes to the next or the
                previous value. An attribute with 0 never changes: it is public. Unless `unbounded` is set or counts
                are known, queries on public attributes alone are exact and cost nothing. All other attributes change
                to any value.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        Raises:
            InputError: `theta` names no attribute of the domain, is out of range, or is given for values that are not
                ascending numbers. Or no attribute may change.

        >>> domain = Domain({"age": range(100), "diagnosis": ["flu", "cold", "none"]})
        >>> policy = Policy.attribute(domain, theta={"age": 5})
        >>> policy.sensitivity("sum", attribute="age"), policy.sensitivity("histogram")
        (5, 2)
        >>> Policy.attribute(Domain({"age": [0, 1, 10]}), theta={"age": "next"}).sensitivity("sum")
        9
        >>> from mechdesign.tables import marginals
        >>> by_diagnosis = marginals(domain, [["diagnosis"]])
        >>> by_diagnosis.plan(Policy.attribute(domain, theta={"diagnosis": 0}), epsilon=1).spends
        'nothing'
        """
        return cls._build(domain, _attribute(_require_domain(domain), theta, unbounded), constraints, unbounded)

    @classmethod
    def partition(
        cls, domain: Domain, labels: ArrayLike, *, constraints: ConstraintsLike = (), unbounded: bool = False
    ) -> Policy:
        """Return the policy that joins values in the same block; each record's block may be released exactly.

        Args:
            domain: the domain of the records.
            labels: the block of each value, a string or number, shape (|T|,).
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        Raises:
            InputError: `labels` does not have one entry for each value.
        """
        return cls._build(
            domain, PartitionGraph(block_numbers(_require_domain(domain), labels)), constraints, unbounded
        )

    @classmethod
    def threshold(
        cls,
        domain: Domain,
        theta: float | Fraction | str,
        *,
        constraints: ConstraintsLike = (),
        unbounded: bool = False,
    ) -> Policy:
        """Return the policy that joins values at an ℓ1 distance of at most θ, in the unit of the numeric attributes.

        The distance is the sum of the differences of all attributes; `attribute` has a threshold for each of them.
        Floats among the values and θ are read as the decimals that Python prints. For rounded floats, a distance may
        exceed θ by a relative 1e-9, or by 4 units in the last place of the largest value.

        Args:
            domain: the domain of the records.
            theta: the threshold θ, at least the smallest distance between two values.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        Raises:
            InputError: θ is out of range, or an attribute does not consist of ascending numbers.
        """
        return cls._build(domain, _build_threshold(_require_domain(domain), theta), constraints, unbounded)

    @classmethod
    def graph(
        cls,
        domain: Domain,
        graph: nx.Graph | Iterable[tuple[int | None, int | None]],
        *,
        constraints: ConstraintsLike = (),
        unbounded: bool = False,
    ) -> Policy:
        """Return the policy with a given graph.

        Args:
            domain: the domain of the records.
            graph: an undirected networkx graph whose nodes are the indices of the values, or a list of edges. With
                ``unbounded``, None represents the null node.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        Raises:
            InputError: The graph is directed, has a loop, or has a node that is not a value.
        """
        return cls._build(domain, _explicit(_require_domain(domain), graph, unbounded), constraints, unbounded)

    @classmethod
    def _build(cls, domain: Domain, graph: SecretGraph, constraints: ConstraintsLike, unbounded: bool) -> Policy:
        as_truth(unbounded, "unbounded")
        if unbounded and not graph.has_null:
            graph = UnboundedGraph(graph)
        known = as_constraints(constraints, domain)
        if any(constraint.known is not None for constraint in known):
            # The integer program is loaded only if it is needed.
            from mechdesign.tables._known_counts import check_consistent

            check_consistent(known, domain.size)
        return cls(domain, graph, known, unbounded)

    @property
    def steps(self) -> int | None:
        """Return θ if edges between values are exactly the pairs whose indices differ by at most θ, else None."""
        return self.secret_graph.steps

    @property
    def neighbours(self) -> str:
        """Return a sentence that defines neighbouring databases, which a release must not distinguish.

        >>> print(Policy.attribute(Domain({"age": range(100)}), theta={"age": "next"}).neighbours)
        Two databases are neighbours if they have the same number of records and differ in the value of one record, \
which changes from one value of age to the next or the previous one.
        """
        change = self.secret_graph.phrase
        if not self.constraints:
            if self.unbounded:
                return f"Two databases are neighbours if they differ in one record, which changes {change}."
            return (
                "Two databases are neighbours if they have the same number of records and differ in the value of one "
                f"record, which changes {change}."
            )
        number = len(self.constraints)
        known = "the publicly known count" if number == 1 else f"all {number} publicly known counts"
        size = "" if self.unbounded else "have the same number of records, "
        others = "from any value to any other" + (", or to being absent, or back" if self.unbounded else "")
        clauses = (
            f"{size}both agree with {known}",
            "and differ in at least one record",
            f"where at least one record changes {change}",
            f"the other records that differ change {others}",
            f"and no smaller part of these changes alone would lead to a database that agrees with {known}.",
        )
        return f"Two databases are neighbours if they {', '.join(clauses)}"

    @property
    def definition(self) -> str:
        """Return the source of the definition of neighbouring databases.

        >>> print(Policy.full(Domain({"age": range(100)})).definition)
        Neighbours are those of Definition 4.1 of Blowfish (He et al. 2014): one record changes along an edge.
        """
        return KNOWN_COUNTS if self.constraints else ALONE

    def check_counts(self, counts: ArrayLike) -> None:
        """Check that a histogram has the publicly known counts.

        Args:
            counts: the histogram, shape (|T|,).

        Raises:
            InputError: The histogram violates a known count.
        """
        histogram = named(counts, "counts", dtype=object)
        if histogram.shape != (self.domain.size,):
            raise InputError("counts", "have the wrong shape", value=histogram.shape, bound=f"({self.domain.size},)")
        for index, constraint in enumerate(self.constraints):
            found = sum(histogram[constraint.counted].tolist())
            if constraint.known is not None and found != constraint.known:
                # The message omits the count in the data, because it is not publicly known.
                raise InputError(
                    f"constraints[{index}]",
                    "differs from the count in the data",
                    value=constraint.known,
                    bound="the count in the data",
                    remedy="correct the known count, or give the constraint without it",
                )

    def sensitivity(self, query: Any, norm: int = 1, **options: Any) -> Any:
        """Return the policy-specific global sensitivity of a query.

        Args:
            query: "histogram", "cumulative", "sum", "kmeans-sum" or "kmeans-size"; or an array (|T|,) or (q, |T|) of
                what a record with each value adds to the answers; or a function that answers for a database, an int64
                array of the positions of its records' values.
            norm: 1 for the ℓ1 norm, 2 for the ℓ2 norm.
            **options: `attribute` of a sum, `partition` of a histogram, `clusters` and `origins` of k-means, or the
                number of `records` for a function.

        Returns:
            The sensitivity, as an int or a Fraction if it is exact, else as a float that is rounded up.

        >>> domain = Domain({"age": range(100)})
        >>> Policy.full(domain).sensitivity("cumulative"), Policy.threshold(domain, 5).sensitivity("cumulative")
        (99, 5)
        """
        return sensitivity(self, query, norm, **options).value


def as_policy(policy: object) -> Policy:
    """Return the given object if it is a policy; raise `InputError` if it is not."""
    if not isinstance(policy, Policy):
        raise InputError("policy", "is not a policy", value=type(policy).__name__, bound="a mechdesign.tables.Policy")
    return policy


def _require_domain(domain: object) -> Domain:
    if not isinstance(domain, Domain):
        raise InputError(
            "domain", "is not a domain of tables", value=type(domain).__name__, remedy="use mechdesign.tables.Domain"
        )
    return domain


def _attribute(domain: Domain, theta: object, unbounded: bool) -> SecretGraph:
    if theta is None:
        theta = {}
    if not isinstance(theta, Mapping):
        bound = 'a threshold for each of some attributes, such as {"age": 5}'
        raise InputError("theta", "is not a mapping from attributes to thresholds", value=theta, bound=bound)
    for name in theta:
        if name not in domain.names:
            bound = f"one of {', '.join(domain.names)}"
            raise InputError(f"theta[{name!r}]", "is not an attribute of the domain", value=name, bound=bound)
    reaches = tuple(_reach_by(each, theta[each.name]) if each.name in theta else None for each in domain.attributes)
    graph = AttributeGraph(domain.shape, reaches)
    if not theta:
        return graph
    if graph.crossing() is None and not unbounded:
        raise InputError("theta", "lets no attribute change", value=dict(theta), bound="at least one that may change")
    given = [(name, theta[name]) for name in domain.names if name in theta]
    changes = [_change_by(name, each) for name, each in given if _is_next(each) or exact(each)]
    if free := [name for name in domain.names if name not in theta]:
        changes.append(f"from one value of {' or '.join(free)} to any other")
    phrase = ", or ".join(changes)
    return replace(graph, phrase=phrase if len(domain.names) == 1 else f"{phrase}, with all other attributes unchanged")


def _reach_by(attribute: Attribute, theta: object) -> Integers | None:
    """Return the largest index to which each value may change, or None if each may change to any other."""
    path = f"theta[{attribute.name!r}]"
    require_room(attribute.size, "a threshold of an attribute")
    numbers = np.arange(attribute.size)
    remedy = "leave the attribute out of theta: it may then change to any value"
    if _is_next(theta):
        _require_ascending([attribute], path, remedy)
        return np.minimum(numbers + 1, attribute.size - 1)
    try:
        limit = exact(theta, path)
    except InputError as error:
        bound = 'a number of at least 0, or "next"'
        raise InputError(path, error.problem, value=theta, bound=bound) from error
    if not limit:
        return numbers
    if limit < 0:
        raise InputError(path, "is negative", value=theta, bound=">= 0")
    positions, steps, _ = _measure(theta, [attribute], path, remedy)
    return reach_within(positions[0], steps)


def _is_next(theta: object) -> bool:
    return isinstance(theta, str) and theta == "next"


def _change_by(name: str, theta: object) -> str:
    if _is_next(theta):
        return f"from one value of {name} to the next or the previous one"
    return f"from one value of {name} to another at a distance of at most {exact_text(exact(theta))}"


def _build_threshold(domain: Domain, theta: object) -> SecretGraph:
    if isinstance(theta, Mapping):
        bound = "one number, for the sum of the differences of all attributes"
        remedy = 'use the policy "attribute", which limits each attribute on its own'
        raise InputError("theta", "is a mapping", value=dict(theta), bound=bound, remedy=remedy)
    numeric = [each.name for each in domain.attributes if each.numeric]
    if len(numeric) == 1:
        remedy = f'use the policy "attribute" with a threshold for {numeric[0]}'
        remedy += "; it also protects the others, one at a time"
    else:
        # The policy "attribute" would leave out the pairs that differ in several numeric attributes.
        remedy = 'use the policy "graph" with the pairs of values to protect, or "full", which protects all pairs'
    positions, steps, unit = _measure(theta, domain.attributes, "theta", remedy)
    phrase = f"from one value to another at a distance of at most {exact_text(exact(theta))} in "
    phrase += " + ".join(domain.names)
    if len(domain.attributes) == 1:
        return AttributeGraph(domain.shape, (reach_within(positions[0], steps),), "threshold", phrase)
    return ThresholdGraph(domain.shape, positions, steps, unit, phrase)


def _measure(
    theta: object, attributes: Sequence[Attribute], path: str, remedy: str
) -> tuple[tuple[Integers, ...], int, Fraction]:
    """Return the values of attributes and the threshold at `path` as multiples of a common unit, and the unit."""
    limit = exact(theta, path)
    _require_ascending(attributes, path, remedy)
    unit = Fraction(1, math.lcm(*(attribute.unit.denominator for attribute in attributes)))
    positions = tuple(_scale_positions(attribute, unit, len(attributes)) for attribute in attributes)
    diameter = sum(int(axis[-1] - axis[0]) for axis in positions)
    gaps = [int(np.diff(axis).min()) for axis in positions if len(axis) > 1]
    if limit <= 0:
        raise InputError(path, "is not positive", value=theta, bound="> 0")
    within = _reach(limit, theta, [value for attribute in attributes for value in _ends(attribute)])
    if within < min(gaps) * unit:
        least = exact_text(min(gaps) * unit)
        raise InputError(path, "is below the smallest distance", value=theta, bound=f"at least {least}")
    most = max(Fraction(math.prod(map(len, positions))), (diameter + min(gaps)) * unit)
    if limit > most:
        raise InputError(path, "is larger than the domain", value=theta, bound=f"at most {exact_text(most)}")
    return positions, min(int(within / unit), diameter), unit


def _require_ascending(attributes: Sequence[Attribute], path: str, remedy: str) -> None:
    """Raise `InputError` unless the values are ascending numbers, at least two in some attribute."""
    for each in attributes:
        if not each.ascending:
            problem = "is not in ascending order" if each.numeric else "is not a numeric attribute"
            raise InputError(
                path,
                f"needs an order, but {each.name} {problem}",
                bound="numbers in ascending order for a distance threshold",
                remedy=f"list the values of {each.name} in ascending order" if each.numeric else remedy,
            )
    if all(each.size == 1 for each in attributes):
        raise InputError(path, "limits a change of value, but there is only one value", bound="two values or more")


def _scale_positions(attribute: Attribute, unit: Fraction, count: int) -> Integers:
    """Return values as multiples of the unit; raise `InputError` if a sum over `count` attributes may overflow."""
    factor = int(attribute.unit / unit)
    if int(np.abs(attribute.positions[[0, -1]]).max()) * factor * count > _LARGEST_DISTANCE:
        raise InputError(
            f"domain[{attribute.name!r}]",
            "has too small a step",
            bound="distances that fit an int64 in multiples of the common step",
        )
    return attribute.positions * factor


def _reach(limit: Fraction, theta: object, ends: list[Hashable]) -> Fraction:
    """Return the largest distance that a threshold permits, including a tolerance for rounded floats.

    For example, the distance from 0.2 to 0.1 + 0.2, which prints as 0.30000000000000004, is within the threshold 0.1.
    See `mechdesign.distances.reach`.
    """
    floats = [abs(float(end)) for end in ends if isinstance(end, float)]
    if not floats and (not isinstance(theta, float) or limit.denominator == 1):
        return limit
    return Fraction(reach(limit, margin([[max(floats, default=0.0)]])))


def _ends(attribute: Attribute) -> list[Hashable]:
    """Return the first value of an attribute, the last value and, if there is one, a value that is a float."""
    values = attribute.values
    if isinstance(values, range):
        return [values[0], values[-1]]
    return [values[0], values[-1], next((value for value in values if isinstance(value, float)), values[0])]


def _explicit(domain: Domain, graph: object, unbounded: bool) -> SecretGraph:
    if isinstance(graph, nx.Graph):
        if graph.is_directed():
            raise InputError("graph", "is directed", bound="an undirected graph")
        _check_nodes(graph.nodes, domain.size, unbounded, "graph")
        pairs: list[Any] = list(graph.edges())
    elif isinstance(graph, np.ndarray):
        pairs = graph.tolist()
    else:
        try:
            pairs = list(graph)  # type: ignore[call-overload]
        except TypeError as error:
            raise InputError(
                "graph", "is not a graph", value=graph, bound="a networkx graph or a list of edges"
            ) from error
    edges = np.zeros((len(pairs), 2), dtype=np.int64)
    for index, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InputError(f"graph[{index}]", "is not an edge", value=pair, bound="a pair of indices of values")
        _check_nodes(pair, domain.size, unbounded, f"graph[{index}]")
        if pair[0] == pair[1]:
            raise InputError(f"graph[{index}]", "joins a value to itself", value=pair, bound="two different values")
        edges[index] = [domain.size if node is None else int(node) for node in pair]
    listed = np.unique(np.sort(edges, axis=1), axis=0)
    read_only(listed)
    return ExplicitGraph(domain.size, listed)


def _check_nodes(nodes: Iterable[object], size: int, unbounded: bool, path: str) -> None:
    for node in nodes:
        if node is None and unbounded:
            continue
        if node is None:
            raise InputError(
                path, "has the null node", remedy="set unbounded of the policy if records may be added or removed"
            )
        if isinstance(node, bool | np.bool_) or not isinstance(node, int | np.integer) or not 0 <= node < size:
            raise InputError(path, "has a node that is not a value", value=node, bound=f"an index from 0 to {size - 1}")


# The names of the fields of a graph that do not affect its edges.
_WORDS = ("kind", "phrase")
_DIGITS = 16


def describe_policy(policy: Policy) -> str:
    """Return a short description of a policy."""
    kind = {"graph": "explicit graph", "full": "full domain"}.get(policy.secret_graph.kind, policy.secret_graph.kind)
    values = [f"{each.size:,} value{'s' * (each.size > 1)} of {each.name}" for each in policy.domain.attributes]
    text = f"Blowfish policy ({kind}) on {' × '.join(values)}"
    if public := _public_attributes(policy):
        text += f", where {' and '.join(public)} {'are' if len(public) > 1 else 'is'} public"
    if policy.unbounded:
        text += ", with records added or removed"
    if policy.constraints:
        number = len(policy.constraints)
        text += f", with {number} publicly known count{'s' if number > 1 else ''}"
    return text


def _public_attributes(policy: Policy) -> list[str]:
    """Return the names of the attributes that all neighbours agree on: queries on them alone have sensitivity 0."""
    graph = policy.secret_graph
    if policy.constraints or not isinstance(graph, AttributeGraph):
        return []
    axes = zip(policy.domain.attributes, graph.reaches, strict=True)
    return [each.name for each, reach in axes if reach is not None and (reach == np.arange(each.size)).all()]


def name_policy(policy: Policy) -> str:
    """Return the name of a policy in a ledger: its description, and a digest of its domain, edges and known counts.

    Policies with the same name have the same neighbours. Policies with the same edges may have different names if they
    were built differently.

    >>> from mechdesign.tables import Domain
    >>> name_policy(Policy.full(Domain({"age": range(100)})))
    'Blowfish policy (full domain) on 100 values of age [37f2d9499c6ae21e]'
    """
    parts: list[object] = [(attribute.name, attribute.values) for attribute in policy.domain.attributes]
    known = sorted((each.counted.tobytes().hex(), repr(each.known)) for each in policy.constraints)
    parts += [_content(policy.secret_graph), known, policy.unbounded]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:_DIGITS]
    return f"{describe_policy(policy)} [{digest}]"


def _content(graph: SecretGraph) -> tuple[object, ...]:
    """Return the plain values that determine a graph's edges; their `repr` is the same in every run of the program."""
    return type(graph).__name__, *_fields(graph)


def _fields(graph: SecretGraph) -> Iterator[object]:
    for each in fields(graph):  # type: ignore[arg-type]
        if each.name in _WORDS:
            continue
        value = getattr(graph, each.name)
        yield each.name, [_plain(part) for part in (value if isinstance(value, tuple) else (value,))]


def _plain(value: object) -> object:
    if isinstance(value, SecretGraph):
        return _content(value)
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.astype("<i8").tobytes()).hexdigest()
    assert value is None or isinstance(value, bool | int | Fraction)
    return value
