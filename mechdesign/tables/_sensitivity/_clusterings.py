"""Sensitivities of the two queries of k-means: the sizes of the clusters and the sums over the clusters.

A record that moves along an edge from x to y may also move to another cluster. The sum of the old cluster with origin o
then decreases by x − o. The sum of the new cluster with origin o' increases by y − o'. For such a record, the distance
‖x − y‖ in Lemma 6.1 of Blowfish (He et al. 2014) is too small a bound. For example, on a line with centroids 2 and 7,
the move from 4 to 5 changes the sums with origin 0 by 9.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arrays import Integers, as_indices
from mechdesign.base._errors import InputError
from mechdesign.base._names import named
from mechdesign.certify._exact import exact
from mechdesign.tables._line_graphs import AttributeGraph, CompleteGraph, ThresholdGraph
from mechdesign.tables._secret_graphs import BasePolicy, SecretGraph, UnboundedGraph, require_room
from mechdesign.tables._sensitivity._linear import LargestChange, LatticeMatrix, counts, linear

if TYPE_CHECKING:
    from mechdesign.tables._domain import Domain


# For threshold graphs with at most this number of edges, distances for given clusters are computed edge by edge.
_EDGES_TO_WALK = 20_000_000


def kmeans_sizes(policy: BasePolicy, clusters: ArrayLike | None) -> LargestChange:
    """Return the largest change of the sizes of the clusters; its ℓ1 norm equals its squared ℓ2 norm.

    Without `clusters`, the result holds for every clustering that depends only on the numeric attributes.
    """
    labels = _places(policy.domain) if clusters is None else _check_clusters(policy.domain, clusters)
    return counts(policy.secret_graph, labels)


def kmeans_sums(policy: BasePolicy, norm: int, clusters: ArrayLike | None, origins: ArrayLike | None) -> LargestChange:
    """Return the largest change of the sums of the clusters, to the power `norm`.

    Without `clusters`, an edge that changes a numeric attribute may join values x and y in different clusters. The sums
    then change by ‖x − o‖₁ + ‖y − o‖₁ in the ℓ1 norm, or (‖x − o‖₂² + ‖y − o‖₂²)^(1/2) in the ℓ2 norm. If both ends are
    in the same cluster, the change is ‖x − y‖.
    """
    domain, graph = policy.domain, policy.secret_graph
    inner = graph.inner if isinstance(graph, UnboundedGraph) else graph
    if clusters is not None:
        labels = _check_clusters(domain, clusters)
        moved = _about_origins(domain, labels, origins)
        found = [_find_change(inner, moved, labels, norm)]
        radii = _powers(moved.entries, norm)
        farthest, most, unit = int(np.argmax(radii)), int(radii.max()), moved.unit
    else:
        if origins is not None:
            raise InputError(
                "origins", "are given without clusters", remedy="give clusters=, the cluster of each value"
            )
        box = box_of(domain)
        found = list(_any_clusters(inner, domain, box, norm))
        best = {i: int(np.argmax(np.abs(axis))) for i, axis in box.axes.items()}
        most = sum(abs(int(axis[best[i]])) ** norm for i, axis in box.axes.items())
        farthest, unit = _number(domain, best), box.unit
    if inner is not graph:
        found.append(LargestChange(Fraction(most) * unit**norm, (farthest, domain.size)))
    return max(found, key=lambda change: change.power)


@dataclass(frozen=True)
class Box:
    """The numeric attributes relative to the centre of their box; the values of attribute i are `axes[i]` × `unit`."""

    axes: dict[int, Integers]
    unit: Fraction


def box_of(domain: Domain, finer: int = 2) -> Box:
    """Return the box of a domain; raise `InputError` if no attribute is numeric, or if a step is too small."""
    numeric = [(i, attribute) for i, attribute in enumerate(domain.attributes) if attribute.numeric]
    if not numeric:
        raise InputError("domain", "has no numeric attribute", bound="at least one numeric attribute for sums")
    unit = Fraction(1, math.lcm(*(attribute.unit.denominator for _, attribute in numeric)) * finer)
    axes = {}
    largest = 0
    for i, attribute in numeric:
        factor = int(attribute.unit / unit)
        low, high = int(attribute.positions.min()), int(attribute.positions.max())
        largest += (high - low) * factor
        if 4 * largest * largest >= 1 << 62:
            raise InputError(f"domain[{attribute.name!r}]", "has too small a step for exact sums", value=str(unit))
        axes[i] = (attribute.positions - low) * factor - (high - low) * factor // 2
    return Box(axes, unit)


def _any_clusters(part: SecretGraph, domain: Domain, box: Box, norm: int) -> Iterator[LargestChange]:
    radii = {i: np.abs(axis) ** norm for i, axis in box.axes.items()}
    unit = box.unit**norm
    moves = _moves(part, domain)
    if moves is None:
        everywhere = LatticeMatrix(_spread_out(domain, box), box.unit)
        apart = part.largest_sum(_powers(everywhere.entries, norm), _places(domain))
        yield LargestChange(Fraction(apart.value) * unit, apart.edge)
        if norm == 2:
            yield linear(part, everywhere, norm)
        return
    yield _on_a_box(domain, radii, moves, unit)
    if norm == 2:
        yield LargestChange(_longest_squared(part, box) * unit, None, exact=not isinstance(part, ThresholdGraph))


def _moves(part: SecretGraph, domain: Domain) -> AttributeGraph | None:
    """Return the graph of the edges that change one attribute; None if there is no formula for the graph."""
    if isinstance(part, CompleteGraph):
        return AttributeGraph(domain.shape, (None,) * len(domain.shape))
    if isinstance(part, ThresholdGraph):
        return part.alone
    return part if isinstance(part, AttributeGraph) else None


def _powers(entries: Any, norm: int) -> Any:
    """Return the ℓ1 norm or the squared ℓ2 norm of each column."""
    return (np.abs(entries) if norm == 1 else entries**2).sum(axis=0)


def _on_a_box(domain: Domain, radii: dict[int, Integers], moves: AttributeGraph, unit: Fraction) -> LargestChange:
    """Return the largest Σ r_i(x_i) + r_i(y_i) if one attribute changes, and all others stay at their largest r_i."""
    stays = {i: int(np.argmax(radius)) for i, radius in radii.items()}
    best = LargestChange(Fraction(0), None)
    for i, radius in radii.items():
        pair = AttributeGraph((len(radius),), (moves.reaches[i],)).largest_sum(radius)
        if pair.edge is None:
            continue
        total = pair.value + sum(2 * int(radii[j][at]) for j, at in stays.items() if j != i)
        if best.edge is None or total * unit > best.power:
            ends = sorted(_number(domain, {**stays, i: at}) for at in pair.edge)
            best = LargestChange(total * unit, (ends[0], ends[1]))
    return best


def _longest_squared(part: SecretGraph, box: Box) -> Fraction:
    """Return the largest ‖x − y‖₂² over edges in squared units, or an upper bound for a threshold graph."""
    widths = {i: int(axis.max() - axis.min()) for i, axis in box.axes.items()}
    if isinstance(part, CompleteGraph):
        return Fraction(sum(width**2 for width in widths.values()))
    if isinstance(part, AttributeGraph):
        return Fraction(max(part.spread_along(part.shape, i, axis).value ** 2 for i, axis in box.axes.items()))
    assert isinstance(part, ThresholdGraph)
    # The sum of squares is convex in the distances along the axes, so the maximum distributes the threshold over the
    # widest axes first.
    left = part.limit * part.unit / box.unit
    total = Fraction(0)
    for width in sorted(widths.values(), reverse=True):
        step = min(Fraction(width), left)
        total += step**2
        left -= step
    return total


def _find_change(part: SecretGraph, moved: LatticeMatrix, labels: Integers, norm: int) -> LargestChange:
    """Return the largest change for given clusters, or an upper bound if a threshold graph has too many edges."""
    radii = _powers(moved.entries, norm)
    if not isinstance(part, ThresholdGraph) or part.edge_count <= _EDGES_TO_WALK:
        apart = part.largest_sum(radii, labels)
        between = LargestChange(Fraction(apart.value) * moved.unit**norm, apart.edge)
    else:
        apart = CompleteGraph(part.size).largest_sum(radii, labels)
        met = apart.edge is not None and bool(part.has_edge(*apart.edge))
        between = LargestChange(Fraction(apart.value) * moved.unit**norm, apart.edge if met else None, met)
    if part.edge_count <= _EDGES_TO_WALK:
        inside = linear(part, moved, norm, labels)
    else:
        # ‖x − y‖₁ <= ‖x‖₁ + ‖y‖₁ and ‖x − y‖₂² <= 2‖x‖₂² + 2‖y‖₂².
        inside = LargestChange(norm * 2 * int(radii.max()) * moved.unit**norm, None, exact=False)
    return inside if inside.power > between.power else between


def _about_origins(domain: Domain, labels: Integers, origins: ArrayLike | None) -> LatticeMatrix:
    """Return each value minus the origin of its cluster, with one row per numeric attribute."""
    number = int(labels.max()) + 1
    if origins is None:
        box = box_of(domain)
        return LatticeMatrix(_spread_out(domain, box), box.unit)
    given = np.asarray(named(origins, "origins", dtype=object), dtype=object)
    axes = [(i, attribute) for i, attribute in enumerate(domain.attributes) if attribute.numeric]
    if given.ndim != 2 or given.shape[1] != len(axes) or given.shape[0] < number:
        raise InputError(
            "origins", "have the wrong shape", value=given.shape, bound=f"({number}, {len(axes)}), or more rows"
        )
    points = [
        [exact(value, f"origins[{r},{c}]") for c, value in enumerate(row)] for r, row in enumerate(given.tolist())
    ]
    finer = math.lcm(2, *(value.denominator for row in points for value in row))
    largest = max(abs(value) for row in points for value in row)
    if finer >= 1 << 24 or largest * finer >= 1 << 28:
        raise InputError(
            "origins", "have too many digits for exact sums", remedy="round them to multiples of the domain's step"
        )
    box = box_of(domain, finer)
    rows = []
    for column, (i, attribute) in enumerate(axes):
        codes = np.arange(domain.size) // math.prod(domain.shape[i + 1 :]) % domain.shape[i]
        absolute = attribute.positions * int(attribute.unit / box.unit)
        origin = np.array([int(row[column] / box.unit) for row in points], dtype=np.int64)
        rows.append(absolute[codes] - origin[labels])
    return LatticeMatrix(np.array(rows), box.unit)


def _spread_out(domain: Domain, box: Box) -> Integers:
    require_room(domain.size, "k-means under this policy")
    rows = [
        axis[np.arange(domain.size) // math.prod(domain.shape[i + 1 :]) % domain.shape[i]]
        for i, axis in box.axes.items()
    ]
    return np.array(rows)


def _places(domain: Domain) -> Integers | None:
    """Return labels that are equal for values with equal numeric attributes, or None if all labels are different."""
    if all(attribute.numeric for attribute in domain.attributes):
        return None
    require_room(domain.size, "k-means with attributes that are not numeric")
    labels = np.zeros(1, dtype=np.int64)
    for attribute in domain.attributes:
        own = np.arange(attribute.size) if attribute.numeric else np.zeros(attribute.size, dtype=np.int64)
        labels = (labels[:, None] * (int(own.max()) + 1) + own).ravel()
    return labels


def _number(domain: Domain, codes: dict[int, int]) -> int:
    return int(np.ravel_multi_index([codes.get(i, 0) for i in range(len(domain.shape))], domain.shape))


def _check_clusters(domain: Domain, clusters: Any) -> Integers:
    labels = as_indices(clusters, "clusters", domain.size)
    if len(labels) != domain.size:
        raise InputError("clusters", "have the wrong length", value=len(labels), bound=f"one per value, {domain.size}")
    return labels
