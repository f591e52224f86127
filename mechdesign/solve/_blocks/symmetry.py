"""Symmetries of a block program: permutations of rows and columns that leave it unchanged.

The images of the rows of a *base* determine an automorphism. A base is a sequence of rows, such as three points of a
grid, to which all rows of the program have different relations. The search tries every consistent choice of images of
the base. It extends each choice to a row permutation by matching relations. The search accepts the permutation if the
permuted program equals the program within a relative tolerance of 1e-9. Differences within the tolerance hardly change
a solution, and bounds are recomputed without symmetry.

Theory: block_method, Symmetry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockProgram


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A group of G permutations of rows, columns, estimates and worst-cost members, starting with the identity.

    Element γ maps row s to rows[γ, s], column o to columns[γ, o], and so on. The program is invariant:
    exponents[γs, γt] = exponents[s, t], cost[γs, γo] = cost[s, o], and error[γh, γs] = error[h, s]. The worst cost is
    invariant in the same way.

    Attributes:
        rows: Images of the rows (G, n).
        columns: Images of the columns (G, m).
        members: Images of the members of the worst cost (G, q).
        estimates: Images of the estimates (G, k) of each floor.
    """

    rows: Integers
    columns: Integers
    members: Integers
    estimates: tuple[Integers, ...]

    @property
    def order(self) -> int:
        """Number G of group elements."""
        return int(self.rows.shape[0])

    def representatives(self, columns: int) -> tuple[Integers, Integers]:
        """Return one column of each orbit and the sizes of the orbits."""
        least = self.columns.min(axis=0)
        kept, counts = np.unique(least, return_counts=True)
        assert int(counts.sum()) == columns
        return kept.astype(np.int64), counts.astype(np.int64)

    def origins(self, columns: int) -> tuple[Integers, Integers]:
        """For every column, return its orbit's index and an element that maps the orbit's representative to it."""
        kept, _ = self.representatives(columns)
        mover = np.zeros(columns, dtype=np.int64)
        orbit = np.zeros(columns, dtype=np.int64)
        for index in range(kept.size - 1, -1, -1):
            for element in range(self.order - 1, -1, -1):
                column = self.columns[element, kept[index]]
                mover[column], orbit[column] = element, index
        return mover, orbit


def trivial_symmetry(program: BlockProgram) -> Symmetry:
    """Return the group that contains only the identity."""
    members = program.worst.row.size if program.worst is not None else 0
    identity = [np.arange(size, dtype=np.int64)[None, :] for size in (program.rows, program.columns, members)]
    estimates = tuple(np.arange(floor.error.shape[0])[None, :] for floor in program.floors)
    return Symmetry(identity[0], identity[1], identity[2], estimates)


_TOLERANCE = 1e-9
_MAX_BASE = 8
_MAX_ORDER = 64
_SEED = 20


def find_symmetry(program: BlockProgram) -> Symmetry:
    """Return the full symmetry group, or the trivial group if the full group is too large or too hard to enumerate."""
    if program.worst is not None and not np.array_equal(program.worst.row, np.arange(program.rows)):
        return trivial_symmetry(program)
    if any(floor.rewards is not None for floor in program.floors):
        # Equal columns may have different rewards.
        return trivial_symmetry(program)
    relations = _mix_relations(program)
    base = _choose_base(relations)
    if base is None:
        return trivial_symmetry(program)
    images = _find_images(relations, base)
    if images is None:
        return trivial_symmetry(program)
    found = []
    for image in images:
        rows = _complete(relations, base, image)
        if rows is not None:
            found.append(rows)
    return make_symmetry(program, np.array(found, dtype=np.int64).reshape(-1, program.rows))


def generate_group(permutations: Integers) -> Integers | None:
    """Return the group (G, n) that permutations (k, n) generate, or None if it has more than 64 elements."""
    identity = np.arange(permutations.shape[1])
    found = {tuple(identity.tolist()): identity}
    fresh = [identity]
    while fresh:
        element = fresh.pop()
        for permutation in permutations:
            product = permutation[element]
            key = tuple(product.tolist())
            if key not in found:
                found[key] = product
                fresh.append(product)
        if len(found) > _MAX_ORDER:
            return None
    return np.array(list(found.values()), dtype=np.int64)


def is_invariant(program: BlockProgram, element: Integers) -> bool:
    """Return whether a row permutation (n,), combined with some column permutation, preserves the program."""
    return _match_columns_and_estimates(program, element) is not None


def make_symmetry(program: BlockProgram, rows: Integers) -> Symmetry:
    """Check a group of row permutations (G, n), and return the symmetry group that they define.

    The matching permutations of columns and estimates are computed. Row permutations that change the program are
    removed. If the remaining permutations do not form a group, the trivial group is returned.
    """
    identity = trivial_symmetry(program)
    n = program.rows
    rows = np.unique(np.vstack([np.arange(n)[None, :], rows]), axis=0)
    if program.worst is not None and not np.array_equal(program.worst.row, np.arange(n)):
        return identity
    kept: list[tuple[Integers, Integers, list[Integers]]] = []
    for element in rows:
        images = _match_columns_and_estimates(program, element)
        if images is not None:
            kept.append((element, *images))
        if len(kept) > _MAX_ORDER:
            return identity
    members = [element if program.worst is not None else element[:0] for element, _, _ in kept]
    listed = {tuple(element.tolist()) for element, _, _ in kept}
    closed = all(tuple(a[b].tolist()) in listed for a, _, _ in kept for b, _, _ in kept)
    if not closed:
        return identity
    # Equal columns can be matched in several ways, but the column permutations must form a group action.
    matched = np.array([columns for _, columns, _ in kept])
    lookup = {tuple(element.tolist()): index for index, (element, _, _) in enumerate(kept)}
    for i, (a, _, _) in enumerate(kept):
        for j, (b, _, _) in enumerate(kept):
            if not np.array_equal(matched[i][matched[j]], matched[lookup[tuple(a[b].tolist())]]):
                return identity
    return Symmetry(
        np.array([element for element, _, _ in kept]),
        matched,
        np.array(members, dtype=np.int64),
        tuple(np.array([found[index] for _, _, found in kept]) for index in range(len(program.floors))),
    )


def _match_columns_and_estimates(program: BlockProgram, element: Integers) -> tuple[Integers, list[Integers]] | None:
    """Return the images of columns and estimates under a row permutation, or None if it changes the program."""
    # In this comparison, infinite exponents are equal.
    if not _are_alike(program.exponents[np.ix_(element, element)], program.exponents):
        return None
    sizes, cost = _scale_rows(program.cost if program.worst is None else program.worst.cost)
    errors = [_scale_rows(floor.error.T) for floor in program.floors]
    if not all(_are_close(scales[element], scales) for scales in (sizes, *(scales for scales, _ in errors))):
        return None
    columns = _match_rows(cost.T, cost[element].T)
    estimates = [_match_rows(error.T, error[element].T) for _, error in errors]
    found = [estimate for estimate in estimates if estimate is not None]
    return (columns, found) if columns is not None and len(found) == len(estimates) else None


def _mix_relations(program: BlockProgram) -> Floats:
    """Return numbers (n, n) for ordered pairs of rows, such that every symmetry preserves the numbers.

    Each number combines the exponent, inner products of rows of the costs, and inner products of columns of the errors.
    The factors of this combination are random but fixed.
    """
    generator = np.random.default_rng(_SEED)
    finite = np.isfinite(program.exponents)
    largest = float(program.exponents[finite].max(initial=1.0))
    parts = [np.where(finite, np.where(finite, program.exponents, 0.0) / largest, -1.0)]
    for matrix in (
        program.cost,
        *(floor.error.T for floor in program.floors),
        *((program.worst.cost,) if program.worst is not None else ()),
    ):
        gram = matrix @ matrix.T
        parts.append(gram / max(float(np.abs(gram).max()), 1e-300))
    total = np.zeros_like(parts[0])
    for part in parts:
        total += generator.uniform(0.5, 1.5) * part
    total = total / max(float(np.abs(total).max()), 1e-300)
    np.fill_diagonal(total, total.diagonal() + 3.0)
    return total


def _colour_rows(relations: Floats) -> Integers:
    """Give rows whose sorted relations agree the same number."""
    generator = np.random.default_rng(_SEED)
    weights = generator.uniform(0.5, 1.5, (2, relations.shape[0]))
    both = np.sort(relations, axis=1) @ weights[0] + np.sort(relations, axis=0).T @ weights[1]
    return _cluster_values(both)


def _cluster_values(values: Floats) -> Integers:
    """Return the cluster number of each value; neighbours in sorted order within the tolerance are in one cluster."""
    order = np.argsort(values)
    scale = max(1.0, float(np.abs(values).max()))
    breaks = np.diff(values[order]) > _TOLERANCE * scale
    labels = np.empty(values.size, dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(breaks)])
    return labels


def _describe_rows(relations: Floats, base: list[int], colours: Integers) -> Floats:
    """Return the relations of each row to the base, and its colour (n, 1 + 2 |base|)."""
    return np.hstack([colours[:, None].astype(float), relations[:, base], relations[base].T])


def _group_rows(relations: Floats, base: list[int], colours: Integers) -> Integers:
    """Group rows with equal relations to the base."""
    signatures = _describe_rows(relations, base, colours)
    generator = np.random.default_rng(_SEED)
    return _cluster_values(signatures @ generator.uniform(0.5, 1.5, signatures.shape[1]))


def _choose_base(relations: Floats) -> list[int] | None:
    """Return a few rows to which all rows have different relations, or None if that needs more than 8 rows."""
    colours = _colour_rows(relations)
    base: list[int] = []
    while True:
        cells = _group_rows(relations, base, colours) if base else colours
        sizes = np.bincount(cells)
        if sizes.max() == 1:
            return base or [0]
        if len(base) == _MAX_BASE:
            return None
        # A row from the smallest group with at least two rows has the fewest possible images.
        several = np.flatnonzero(sizes > 1)
        base.append(int(np.flatnonzero(cells == several[sizes[several].argmin()])[0]))


def _find_images(relations: Floats, base: list[int]) -> list[list[int]] | None:
    """Return the images of the base that preserve colours and relations, or None if too many images exist."""
    colours = _colour_rows(relations)
    partial: list[list[int]] = [[]]
    for index, row in enumerate(base):
        grown: list[list[int]] = []
        for image in partial:
            fits = colours == colours[row]
            for before, target in zip(base[:index], image, strict=True):
                fits &= np.abs(relations[:, target] - relations[row, before]) <= 10 * _TOLERANCE
                fits &= np.abs(relations[target] - relations[before, row]) <= 10 * _TOLERANCE
            grown.extend([*image, candidate] for candidate in np.flatnonzero(fits).tolist())
        partial = grown
        if len(partial) > 100 * _MAX_ORDER:
            return None
    return partial


def _complete(relations: Floats, base: list[int], image: list[int]) -> Integers | None:
    """Return the row permutation that maps `base` to `image` and preserves all relations to it, or None."""
    colours = _colour_rows(relations)
    return _match_rows(_describe_rows(relations, base, colours), _describe_rows(relations, image, colours))


def _match_rows(first: Floats, second: Floats) -> Integers | None:
    """Return a permutation γ with second[γ[i]] = first[i] for all rows i, or None; match equal rows in order."""
    generator = np.random.default_rng(_SEED)
    # One random sum of different rows may agree by chance, but three are very unlikely to agree.
    weights = generator.uniform(0.5, 1.5, (first.shape[1], 3))
    scale = max(float(np.abs(first).max(initial=0.0)), 1e-300)
    sums = np.vstack([first, second]) @ weights / scale
    labels = np.column_stack([_cluster_values(column) for column in sums.T])
    one, two = np.split(np.unique(labels, axis=0, return_inverse=True)[1].ravel(), 2)
    result = np.empty(first.shape[0], dtype=np.int64)
    result[np.argsort(one, kind="stable")] = np.argsort(two, kind="stable")
    return result if _are_alike(second[result], first) else None


def _scale_rows(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the largest absolute entry of each row, and the matrix with each row divided by it."""
    sizes = np.abs(matrix).max(axis=1, initial=0.0)
    return sizes, matrix / np.where(sizes > 0, sizes, 1.0)[:, None]


def _are_close(first: Floats, second: Floats) -> bool:
    """Return whether all entries of two vectors agree within the relative tolerance."""
    return bool((np.abs(first - second) <= _TOLERANCE * np.maximum(first, second)).all())


def _are_alike(first: Floats, second: Floats) -> bool:
    """Return whether two arrays agree within the tolerance, relative to the largest finite entry."""
    finite = np.isfinite(second)
    if not np.array_equal(finite, np.isfinite(first)):
        return False
    scale = float(np.abs(second[finite]).max(initial=0.0))
    return bool((np.abs(first[finite] - second[finite]) <= _TOLERANCE * scale).all())
