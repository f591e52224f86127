"""Find the symmetries of a block program, by matching rows that look alike from a few base rows.

An automorphism is fixed by where it sends a *base*: rows b1, b2, … such that no two rows have the same relations to all
of them (three points on a grid). Every consistent choice of images of the base is tried, completed to a permutation of
the rows by matching relations, and accepted only after the whole program has been compared, row by row, to a relative
tolerance of 1e-9: rows of little weight count as much as others. What such differences do to a solution is smaller than
that, and bounds are recomputed without symmetry anyway.
"""

from __future__ import annotations

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.symmetry import Symmetry, trivial_symmetry

_TOLERANCE = 1e-9
_MAX_BASE = 8
_MAX_ORDER = 64
_SEED = 20


def find_symmetry(program: BlockProgram) -> Symmetry:
    """Return the full symmetry group, or the trivial one where it is too large or too tangled to be listed."""
    if program.worst is not None and not np.array_equal(program.worst.row, np.arange(program.rows)):
        return trivial_symmetry(program)
    if any(floor.rewards is not None for floor in program.floors):
        # Columns alike may earn different things.
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
    """Return the group that permutations (k, n) generate, as (G, n), or None when it has more than 64 elements."""
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
    """Tell whether a permutation (n,) of the rows leaves the program as it is, with a fitting one of the columns."""
    return _match_columns_and_estimates(program, element) is not None


def make_symmetry(program: BlockProgram, rows: Integers) -> Symmetry:
    """Return the symmetry group given by a group of permutations of the rows (G, n), after checking it.

    Columns and estimates are matched; permutations under which the program changes are left out, and the trivial group
    is returned unless those that remain form a group.
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
    # Identical columns could be matched in different ways; orbits need one action of the group.
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
    """Return what happens to columns and estimates under a permutation of the rows, None where the program changes."""
    # Not for an infinite difference: both sides are infinite there.
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
    """Return one number for each ordered pair of rows that every symmetry leaves as it is (n, n).

    It mixes exponents, and the inner products of rows of costs and of columns of errors, with fixed random factors.
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
    """Group rows whose sorted relations agree."""
    generator = np.random.default_rng(_SEED)
    weights = generator.uniform(0.5, 1.5, (2, relations.shape[0]))
    both = np.sort(relations, axis=1) @ weights[0] + np.sort(relations, axis=0).T @ weights[1]
    return _cluster_values(both)


def _cluster_values(values: Floats) -> Integers:
    """Return the numbers of the clusters of values that lie within the tolerance of their neighbours."""
    order = np.argsort(values)
    scale = max(1.0, float(np.abs(values).max()))
    breaks = np.diff(values[order]) > _TOLERANCE * scale
    labels = np.empty(values.size, dtype=np.int64)
    labels[order] = np.concatenate([[0], np.cumsum(breaks)])
    return labels


def _describe_rows(relations: Floats, base: list[int], colours: Integers) -> Floats:
    """Return what each row looks like from the base (n, 1 + 2 |base|)."""
    return np.hstack([colours[:, None].astype(float), relations[:, base], relations[base].T])


def _group_rows(relations: Floats, base: list[int], colours: Integers) -> Integers:
    """Group rows that look alike from the base."""
    signatures = _describe_rows(relations, base, colours)
    generator = np.random.default_rng(_SEED)
    return _cluster_values(signatures @ generator.uniform(0.5, 1.5, signatures.shape[1]))


def _choose_base(relations: Floats) -> list[int] | None:
    """Return few rows from which all rows look different, or None when that takes too many."""
    colours = _colour_rows(relations)
    base: list[int] = []
    while True:
        cells = _group_rows(relations, base, colours) if base else colours
        sizes = np.bincount(cells)
        if sizes.max() == 1:
            return base or [0]
        if len(base) == _MAX_BASE:
            return None
        # A row of the smallest cell that still has several has the fewest images.
        several = np.flatnonzero(sizes > 1)
        base.append(int(np.flatnonzero(cells == several[sizes[several].argmin()])[0]))


def _find_images(relations: Floats, base: list[int]) -> list[list[int]] | None:
    """Return the images of the base that keep its colours and relations, or None when there are too many."""
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
    """Return the permutation of rows that sends `base` to `image`, or None when there is none."""
    colours = _colour_rows(relations)
    return _match_rows(_describe_rows(relations, base, colours), _describe_rows(relations, image, colours))


def _match_rows(first: Floats, second: Floats) -> Integers | None:
    """Return γ with second[γ[i]] = first[i] for all rows i, or None; equal rows are matched in order."""
    generator = np.random.default_rng(_SEED)
    # Rows of different sums differ; of a thousand rows two may come close in one sum, but not in all three.
    weights = generator.uniform(0.5, 1.5, (first.shape[1], 3))
    scale = max(float(np.abs(first).max(initial=0.0)), 1e-300)
    sums = np.vstack([first, second]) @ weights / scale
    labels = np.column_stack([_cluster_values(column) for column in sums.T])
    one, two = np.split(np.unique(labels, axis=0, return_inverse=True)[1].ravel(), 2)
    result = np.empty(first.shape[0], dtype=np.int64)
    result[np.argsort(one, kind="stable")] = np.argsort(two, kind="stable")
    return result if _are_alike(second[result], first) else None


def _scale_rows(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the largest entry of each row, and the matrix with its rows divided by these."""
    sizes = np.abs(matrix).max(axis=1, initial=0.0)
    return sizes, matrix / np.where(sizes > 0, sizes, 1.0)[:, None]


def _are_close(first: Floats, second: Floats) -> bool:
    """Tell whether two vectors agree to the tolerance, entry by entry."""
    return bool((np.abs(first - second) <= _TOLERANCE * np.maximum(first, second)).all())


def _are_alike(first: Floats, second: Floats) -> bool:
    """Tell whether two arrays agree to the tolerance, relative to the largest finite entry."""
    finite = np.isfinite(second)
    if not np.array_equal(finite, np.isfinite(first)):
        return False
    scale = float(np.abs(second[finite]).max(initial=0.0))
    return bool((np.abs(first[finite] - second[finite]) <= _TOLERANCE * scale).all())
