"""Coarse problems: cluster the rows of a program to predict the columns that the full program uses.

If the exponents between two rows are small, the rows are similar in every channel that satisfies the ratio bounds. One
row of the coarse problem therefore represents a cluster of rows. The costs and errors of this row are sums over the
cluster. The exponent between two clusters is the mean over their pairs of rows. If all exponents are finite, the
geometric means of a channel's rows satisfy the bounds of the coarse problem. The optimal value of the coarse problem is
not a bound for the full program. Yet nearly the same columns are optimal in both problems. If a pair of rows has no
bound, its exponent is the length of the shortest path along bounds between the two rows. Two clusters then have a bound
if at least one pair of their rows has a bound.

Theory: block_method, Initial working set.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockProgram, imply_exponents


def aggregate_rows(program: BlockProgram, count: int) -> BlockProgram:
    """Return the coarse problem of `program` with at most `count` clusters of rows."""
    implied = program.exponents
    if np.isinf(implied).sum() > program.rows:
        implied = imply_exponents(implied)
    cluster = _cluster_rows(implied, count)
    member = np.zeros((int(cluster.max()) + 1, program.rows))
    member[cluster, np.arange(program.rows)] = 1.0
    joined = member @ np.isfinite(program.exponents) @ member.T > 0
    exponents = np.where(joined, _average_exponents(implied, member), np.inf)
    np.fill_diagonal(exponents, np.inf)
    floors = tuple(replace(floor, error=floor.error @ member.T) for floor in program.floors)
    worst = program.worst
    if worst is not None:
        worst = replace(worst, row=cluster[worst.row])
    return BlockProgram(member @ program.cost, exponents, floors, worst)


def _cluster_rows(implied: Floats, count: int) -> Integers:
    """Return the cluster of each row, by average-linkage clustering with exponents as distances."""
    apart = np.maximum(implied, implied.T)
    finite = np.isfinite(apart)
    apart = np.where(finite, apart, 2 * apart[finite].max(initial=1.0))
    np.fill_diagonal(apart, 0.0)
    tree = hierarchy.average(squareform(apart, checks=False))
    # Cut the tree by the number of clusters and not by height, because many merges on a grid have equal heights.
    cluster: Integers = hierarchy.cut_tree(tree, [min(count, len(apart))])[:, 0].astype(np.int64)
    return cluster


def _average_exponents(implied: Floats, member: Floats) -> Floats:
    """Return the mean of the finite exponents between the rows of each pair of clusters."""
    finite = np.isfinite(implied)
    np.fill_diagonal(finite, False)
    counts = member @ finite @ member.T
    sums = member @ np.where(finite, implied, 0.0) @ member.T
    means: Floats = np.divide(sums, counts, out=np.full(counts.shape, np.inf), where=counts > 0)
    return means
