"""Blowfish policies: a domain, a secret graph and publicly known counts, which define neighbouring databases."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers, as_array, read_only
from mechdesign.base._check import as_truth
from mechdesign.base._display import card
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact, exact_text
from mechdesign.model.distances import margin, reach
from mechdesign.tables._definitions import ALONE, KNOWN_COUNTS
from mechdesign.tables._domain import Attribute, Domain
from mechdesign.tables._policies._cliques import AttributeGraph, CompleteGraph, PartitionGraph, block_numbers
from mechdesign.tables._policies._graphs import ExplicitGraph, NullGraph, SecretGraph, UnionGraph, require_room
from mechdesign.tables._policies._known_counts import Constraint, as_constraints
from mechdesign.tables._policies._thresholds import OrderedGraph, ThresholdGraph
from mechdesign.tables._sensitivity._sensitivity import sensitivity

ConstraintsLike = Iterable[object]

# Exact distances are sums over the attributes; distances up to this bound cannot overflow an int64.
_LARGEST_DISTANCE = 2**61


@dataclass(frozen=True, eq=False)
class Policy:
    """A Blowfish policy P = (domain, secret graph, constraints) (He et al. 2014, Definition 3.1).

    Build a policy with `full`, `attribute`, `partition`, `threshold`, `line`, `graph` or `union`. All these methods
    except `union` accept two keywords:

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

    domain: Domain
    secret_graph: SecretGraph
    constraints: tuple[Constraint, ...] = ()
    unbounded: bool = field(default=False)

    def _repr_html_(self) -> str:
        return card("Policy", [("policy", describe_policy(self)), ("neighbours", self.neighbours)])

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
    def attribute(cls, domain: Domain, *, constraints: ConstraintsLike = (), unbounded: bool = False) -> Policy:
        """Return the policy that joins values that differ in exactly one attribute.

        Args:
            domain: the domain of the records.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.
        """
        return cls._build(domain, AttributeGraph(_require_domain(domain).shape), constraints, unbounded)

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
        attributes: Sequence[str] | None = None,
        constraints: ConstraintsLike = (),
        unbounded: bool = False,
    ) -> Policy:
        """Return the policy that joins values at an ℓ1 distance of at most θ, in the unit of the numeric attributes.

        On one attribute with values one unit apart, θ = 1 gives the line, and θ = |T| − 1 or |T| the complete graph.
        Floats among the values and θ are read as the decimals that Python prints. For rounded floats, a distance may
        exceed θ by a relative 1e-9, or by 4 units in the last place of the largest value.

        Args:
            domain: the domain of the records.
            theta: the threshold θ, at least the smallest distance between two values.
            attributes: the attributes that may change, whose values are ascending numbers; by default all attributes.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        Raises:
            InputError: θ is out of range, or an attribute does not consist of ascending numbers.
        """
        return cls._build(domain, _threshold(_require_domain(domain), theta, attributes), constraints, unbounded)

    @classmethod
    def line(cls, domain: Domain, *, constraints: ConstraintsLike = (), unbounded: bool = False) -> Policy:
        """Return the policy that joins each value of one ordered attribute to the next one.

        Args:
            domain: a domain with a single attribute, whose values are ascending numbers.
            constraints: the publicly known counts.
            unbounded: whether a record may be added or removed.

        Returns:
            The policy.

        Raises:
            InputError: The domain has several attributes, or its values are not ascending numbers.
        """
        name = _require_domain(domain).ordered_attribute("a line policy").name
        require_room(domain.size, "a line policy")
        reach = np.minimum(np.arange(domain.size) + 1, domain.size - 1)
        phrase = f"from one value of {name} to the next or the previous one"
        return cls._build(domain, OrderedGraph(reach, "line", phrase), constraints, unbounded)

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
    def union(cls, *policies: Policy) -> Policy:
        """Return the policy with the edges and the known counts of several policies on one domain.

        Args:
            *policies: the policies, at least one.

        Returns:
            The policy.

        Raises:
            InputError: There is no policy, or the domains differ.
        """
        if not policies:
            raise InputError("policies", "are empty", bound="at least one policy")
        domain = as_policy(policies[0], "policies[0]").domain
        parts: list[SecretGraph] = []
        constraints: list[Constraint] = []
        for index, policy in enumerate(policies):
            if as_policy(policy, f"policies[{index}]").domain != domain:
                raise InputError(f"policies[{index}]", "has another domain", value=policy.domain, bound=repr(domain))
            graph = policy.secret_graph
            parts += graph.parts if isinstance(graph, UnionGraph) else (graph,)
            constraints += [new for new in policy.constraints if not any(new == old for old in constraints)]
        null = [part for part in parts if part.kind == "null"][:1]
        parts = [part for part in parts if part.kind != "null"] + null
        graph = parts[0] if len(parts) == 1 else UnionGraph(tuple(parts))
        return cls._build(domain, graph, constraints, any(policy.unbounded for policy in policies))

    @classmethod
    def _build(cls, domain: Domain, graph: SecretGraph, constraints: ConstraintsLike, unbounded: bool) -> Policy:
        as_truth(unbounded, "unbounded")
        if unbounded and not graph.has_null:
            graph = UnionGraph((graph, NullGraph(domain.size)))
        known = as_constraints(constraints, domain.size)
        if any(constraint.known is not None for constraint in known):
            # The integer program is loaded only if it is needed.
            from mechdesign.tables._policies._contradictions import check_consistent

            check_consistent(known, domain.size)
        return cls(domain, graph, known, unbounded)

    @property
    def steps(self) -> int | None:
        """Return θ if edges between values are exactly the pairs whose indices differ by at most θ, else None."""
        graph = self.secret_graph
        if isinstance(graph, UnionGraph):
            rest = [part for part in graph.parts if part.kind != "null"]
            return rest[0].steps if len(rest) == 1 else None
        return graph.steps

    @property
    def neighbours(self) -> str:
        """Return a sentence that defines neighbouring databases, which a release must not distinguish.

        >>> print(Policy.line(Domain({"age": range(100)})).neighbours)
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

        >>> print(Policy.line(Domain({"age": range(100)})).definition)
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
        histogram = as_array(counts, "counts")
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
                    remedy="correct the known count, or omit the constraint",
                )

    def sensitivity(self, query: Any, norm: int = 1, **options: Any) -> Any:
        """Return the policy-specific global sensitivity of a query; `mechdesign.tables.sensitivity` describes it.

        Args:
            query: the query, given as a name, weights or a function.
            norm: 1 for the ℓ1 norm, 2 for the ℓ2 norm.
            **options: further keywords of `mechdesign.tables.sensitivity`.

        Returns:
            The sensitivity, as an int or a Fraction if it is exact, else as a float that is rounded up.

        >>> domain = Domain({"age": range(100)})
        >>> Policy.line(domain).sensitivity("cumulative"), Policy.threshold(domain, 5).sensitivity("cumulative")
        (1, 5)
        """
        return sensitivity(self, query, norm, **options).value


def as_policy(policy: object, path: str = "policy") -> Policy:
    """Return the given object if it is a policy; raise `InputError` if it is not."""
    if not isinstance(policy, Policy):
        raise InputError(path, "is not a policy", value=type(policy).__name__, bound="a mechdesign.tables.Policy")
    return policy


def _require_domain(domain: object) -> Domain:
    if not isinstance(domain, Domain):
        raise InputError(
            "domain", "is not a domain of tables", value=type(domain).__name__, remedy="use mechdesign.tables.Domain"
        )
    return domain


def _threshold(domain: Domain, theta: object, names: Sequence[str] | None) -> SecretGraph:
    chosen = domain.names if names is None else _choose_names(domain, names)
    limit = exact(theta, "theta")
    for name in chosen:
        attribute = domain.attribute(name)
        if not attribute.ascending:
            raise InputError(
                f"domain[{name!r}]",
                "is not in ascending order" if attribute.numeric else "is not a numeric attribute",
                bound="numbers in ascending order for a distance threshold",
                remedy='name the attributes that may change, as in attributes=["age"]',
            )
    unit = _common_unit([domain.attribute(name).unit for name in chosen])
    positions = tuple(
        _scale_positions(each, unit, len(chosen)) if each.name in chosen else None for each in domain.attributes
    )
    axes = [axis for axis in positions if axis is not None]
    diameter = sum(int(axis[-1] - axis[0]) for axis in axes)
    gaps = [int(np.diff(axis).min()) for axis in axes if len(axis) > 1]
    if limit <= 0:
        raise InputError("theta", "is not positive", value=theta, bound="> 0")
    if not gaps:
        raise InputError("domain", "has a single value on the attributes of the threshold", bound="at least two")
    within = _reach(limit, theta, [value for name in chosen for value in _ends(domain.attribute(name))])
    if within < min(gaps) * unit:
        least = exact_text(min(gaps) * unit)
        raise InputError("theta", "is below the smallest distance", value=theta, bound=f"at least {least}")
    most = max(Fraction(domain.size), (diameter + min(gaps)) * unit)
    if limit > most:
        raise InputError("theta", "is larger than the domain", value=theta, bound=f"at most {exact_text(most)}")
    steps = min(int(within / unit), diameter)
    phrase = f"from one value to another at a distance of at most {exact_text(limit)} in {' + '.join(chosen)}"
    if names is not None and len(chosen) < len(domain.names):
        phrase += ", with the rest unchanged"
    if len(domain.attributes) == 1 and axes:
        reach = np.searchsorted(axes[0], axes[0] + steps, side="right") - 1
        return OrderedGraph(reach, "threshold", phrase)
    return ThresholdGraph(domain.shape, positions, steps, unit, phrase)


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


def _choose_names(domain: Domain, names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not names:
        raise InputError("attributes", "is not a list of names", value=names, bound="at least one name")
    found = tuple(domain.attribute(name).name for name in names)
    if len(set(found)) < len(found):
        raise InputError("attributes", "name an attribute twice", value=list(names))
    return found


def _common_unit(units: list[Fraction]) -> Fraction:
    return Fraction(1, math.lcm(*(unit.denominator for unit in units)))


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
            raise InputError(path, "has the null node", remedy="set unbounded=True if records may be added or removed")
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
    if policy.unbounded:
        text += ", with records added or removed"
    if policy.constraints:
        number = len(policy.constraints)
        text += f", with {number} publicly known count{'s' if number > 1 else ''}"
    return text


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
        parts = value if isinstance(value, tuple) else (value,)
        found = [_plain(part) for part in parts]
        # The order of the parts of a union does not affect its edges.
        yield each.name, sorted(map(repr, found)) if isinstance(parts[0], SecretGraph) else found


def _plain(value: object) -> object:
    if isinstance(value, SecretGraph):
        return _content(value)
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.astype("<i8").tobytes()).hexdigest()
    assert value is None or isinstance(value, bool | int | Fraction)
    return value
