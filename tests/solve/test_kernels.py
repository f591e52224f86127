"""The contract of the block solver's kernels: each against plain formulas, and all of them against one another."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from block_cases import grid, iterates, violation
from refusals import Mistake, assert_refused
from rows import each_row

from mechdesign.errors import InputError, MissingDependencyError
from mechdesign.solve._block_angular import BlockProgram
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.kernels import numpy as kernel_numpy
from mechdesign.solve._blocks.kernels.filled import FilledKernel
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.newton import StallError, factor_blocks
from mechdesign.solve._blocks.step import take_step
from mechdesign.solve._blocks.symmetry import find_symmetry
from mechdesign.solve._contract import Options, Status

HAS_NUMBA = importlib.util.find_spec("numba") is not None
NUMBA = pytest.param(
    "numba",
    marks=[
        pytest.mark.skipif(not HAS_NUMBA, reason="numba is an extra and not installed"),
        # The first use after an installation compiles for seconds.
        pytest.mark.slow,
    ],
)
KERNELS = ["numpy", NUMBA]
PROGRAMS = {
    "metric": grid(4, 3),
    "few-columns": BlockProgram(np.ascontiguousarray(grid(4, 3).cost[:, :2]), grid(4, 3).exponents),
    "one-row": BlockProgram(np.array([[1.0, 2.0, 0.5]]), np.array([[np.inf]])),
    "joint": grid(3, 3, floor=0.8),
    "worst-joint": grid(3, 3, floor=0.8, worst=True),
    "threshold": grid(4, 3, masked=lambda distance: distance > 1.5),
}


def on_each_program(test):
    """Run a test of a kernel on each program, with tiles so small that it meets the seams between them."""

    @pytest.mark.usefixtures("seams")
    @each_row("program", PROGRAMS)
    def run(name, program):
        test(Case(name, PROGRAMS[program]))

    return run


class Case:
    """A kernel after a few iterations, steps u to try, and the plain (B, n, n) arrays that belong to them."""

    def __init__(self, name, program):
        self.layout = layout = lay_out(program)
        self.kernel = choose(name, 0)(layout, 1)
        self.blocks = iterates(layout, self.kernel, 3)
        self.iterate, self.ratios, self.x = self.blocks.iterate, self.blocks.ratios, self.blocks.x
        rng = np.random.default_rng(5)
        self.u = 0.3 * rng.standard_normal((layout.blocks, layout.rows))
        self.y = self.kernel.multipliers().copy()
        x = self.x
        self.z = layout.ratios * x[:, None, :] - x[:, :, None]
        dx = x * self.u
        self.q = (layout.ratios * dx[:, None, :] - dx[:, :, None]) / self.z
        self.bound = np.ones(layout.ratios.shape, dtype=bool) if layout.free is None else ~layout.free

    def adjoint(self, values):
        return (self.layout.ratios * values).sum(axis=1) - values.sum(axis=2)

    def targets(self, slot):
        """Recover φ from how y advances, and return to the y before."""
        before = self.kernel.multipliers().copy()
        self.ratios.advance(self.x, self.u, slot, 0.5)
        after = self.kernel.multipliers().copy()
        rest = np.divide(after, before, out=np.ones_like(before), where=before > 0)
        phi = (rest - 0.5) / 0.5 + self.q
        self.kernel.multipliers()[:] = before
        return phi


@pytest.fixture(params=KERNELS)
def name(request):
    return request.param


@pytest.fixture
def seams(monkeypatch):
    monkeypatch.setattr(kernel_numpy, "_TILE_ENTRIES", 30)


@on_each_program
def test_start(case):
    layout = case.layout
    case.ratios.start(case.x, 0.5)
    assert np.allclose(case.kernel.multipliers(), 0.5 * layout.weights / case.z, rtol=1e-12, atol=0)


@on_each_program
def test_predict(case):
    low, high = case.ratios.affine_ratio_test(case.x, case.u)
    assert low == pytest.approx(-case.q.min(), rel=1e-5)
    assert high == pytest.approx(1 + case.q.max(), rel=1e-5)


@on_each_program
def test_targets_and_their_adjoint_product_belong_together(case):
    """Whatever rounding does to the targets, steps and adjoint products use the same ones, to double precision."""
    ratios, layout = case.ratios, case.layout
    centre = 0.1 * case.blocks.mu
    adjoint = ratios.mehrotra(case.x, case.u, centre)
    phi = case.targets(0)
    scale = np.abs(case.adjoint(case.y * np.abs(phi))).max()
    assert np.abs(adjoint - case.adjoint(case.y * phi)).max() <= 1e-12 * scale
    with np.errstate(invalid="ignore"):
        kappa = centre * layout.weights / (case.y * case.z)
    expected = kappa + case.q * (1 + case.q)
    assert np.allclose(phi[:, case.bound], expected[:, case.bound], rtol=3e-6, atol=1e-6)

    primal, dual = ratios.ratio_test(case.x, case.u, 0, store_for_corrector=True)
    change = (phi - 1 - case.q)[:, case.bound]
    assert primal == pytest.approx(case.q.min(), rel=1e-5)
    assert dual == pytest.approx(change.min(), rel=1e-5, abs=1e-5)

    adjoint = ratios.centrality(case.x, case.u, 0, 0.7, 0.4, centre)
    assert np.array_equal(case.targets(0), phi)
    corrected = case.targets(1)
    assert np.abs(adjoint - case.adjoint(case.y * corrected)).max() <= 1e-12 * scale
    product = (1 + 0.7 * case.q) * (1 + 0.4 * (phi - 1 - case.q))
    wanted = phi + np.maximum(np.clip(product, 0.1 * kappa, 10 * kappa) - product, -10 * kappa)
    size = np.abs(kappa) + np.abs(product) + np.abs(phi)
    assert (np.abs(corrected - wanted) <= 1e-5 * size)[:, case.bound].all()


@on_each_program
def test_free_pairs_never_move(case):
    case.ratios.mehrotra(case.x, case.u, case.blocks.mu)
    case.ratios.advance(case.x, case.u, 0, 0.9)
    assert (case.kernel.multipliers()[:, ~case.bound] == 0).all()
    assert (case.kernel.multipliers()[:, case.bound] != 0).all()


@pytest.mark.usefixtures("seams")
@each_row(("program", "spare"), product(list(PROGRAMS)[::2], [False, True]))
def test_what_is_kept_stays(name, program, spare):
    """A step without correctors leaves it alone; what is kept anew replaces it only in spare memory."""
    case = Case(name, PROGRAMS[program])
    kept = case.ratios.keep(spare=spare)
    case.ratios.mehrotra(case.x, case.u, case.blocks.mu)
    case.ratios.ratio_test(case.x, case.u, 0, store_for_corrector=False)
    case.ratios.advance(case.x, case.u, 0, 0.1)
    moved = case.kernel.multipliers().copy()
    assert not np.array_equal(moved, case.y)
    assert np.array_equal(kept(), case.y)
    again = case.ratios.keep(spare=spare)
    assert np.array_equal(again(), moved)
    assert np.array_equal(kept(), moved if spare else case.y)


@on_each_program
def test_an_iterate_that_is_not_the_newest_is_refused(case):
    step = take_step(case.blocks)
    assert step.iterate.number == case.iterate.number + 1
    for stale in (lambda: take_step(case.blocks), lambda: factor_blocks(case.layout, case.ratios, case.iterate)):
        with pytest.raises(RuntimeError, match="belong to iterate 4"):
            stale()
    assert factor_blocks(case.layout, case.ratios, step.iterate).iterate is step.iterate


def _plain_hessians(case):
    """Return each block's Hessian in relative steps, from the rows themselves."""
    layout, auxiliary, point = case.layout, case.layout.auxiliary, case.iterate
    n = layout.rows
    for block in range(layout.blocks):
        x = point.points[block]
        rows, weights = [], []
        for s in range(n):
            for t in range(n):
                row = np.zeros(layout.width)
                row[t] += layout.ratios[s, t] * x[t]
                row[s] -= x[s]
                rows.append(row)
                weights.append(case.y[block, s, t] / case.z[block, s, t])
        for index, error in enumerate(layout.errors):
            for h in range(error.shape[0]):
                row = np.concatenate([error[h] * x[:n], np.zeros(layout.floors)])
                row[n + index] = -x[n + index]
                rows.append(row)
                weights.append((auxiliary.floor(point.y, index) / auxiliary.floor(point.z, index))[block, h])
            own = np.zeros(layout.width)
            own[n + index] = x[n + index]
            rows.append(own)
            weights.append((auxiliary.contributions(point.y) / auxiliary.contributions(point.z))[block, index])
        matrix = np.array(rows)
        yield matrix.T @ (np.array(weights)[:, None] * matrix)


@on_each_program
def test_hessians_solves_and_schur_complement(case):
    layout, blocks, points = case.layout, case.blocks, case.iterate.points
    right = np.random.default_rng(1).random((layout.blocks, layout.width))
    u = blocks.solve(right)
    total = np.zeros((layout.links, layout.links))
    scale = layout.link_scale(points)
    for block, hessian in enumerate(_plain_hessians(case)):
        assert np.allclose(hessian @ u[block], points[block] * right[block], rtol=1e-7, atol=1e-11)
        inverse = np.linalg.inv(hessian)[np.ix_(layout.link_variables, layout.link_variables)]
        total += layout.counts[block] * inverse * scale[block][:, None] * scale[block]
    assert np.allclose(blocks.schur, total, rtol=1e-6, atol=1e-9 * np.abs(total).max())
    assert np.allclose(blocks.adjoint[:, : layout.rows], _whole_adjoint(case), rtol=1e-10, atol=1e-13)


def _whole_adjoint(case):
    layout = case.layout
    out = np.zeros((layout.blocks, layout.width))
    out[:, : layout.rows] = case.adjoint(case.y)
    layout.auxiliary.add_adjoint(case.iterate.y, out)
    return out[:, : layout.rows]


@on_each_program
def test_a_slack_that_is_not_positive_is_noticed(case):
    if case.layout.rows == 1:
        return  # a single row has no ratios
    points = case.iterate.points.copy()
    points[0, 0] = 1e6
    with pytest.raises(StallError, match="cannot be factored"):
        factor_blocks(case.layout, case.ratios, replace(case.iterate, points=points))
    z = case.iterate.z.copy()
    if z.size:
        z[0] = 0.0
        with pytest.raises(StallError, match="a slack non-positive"):
            factor_blocks(case.layout, case.ratios, replace(case.iterate, z=z))


def _trace(kernel, layout):
    """Put a kernel through a fixed sequence of calls; yield what each one returns, and how exact it is to be."""
    rng = np.random.default_rng(3)
    blocks, n, width = layout.blocks, layout.rows, layout.width
    points = rng.uniform(0.5, 1.0, (blocks, width)) / blocks
    # Rows of x are close enough for all slacks to be positive.
    points[:, :n] = (1.0 + 0.05 * rng.random((blocks, n))) / blocks
    x, u = np.ascontiguousarray(points[:, :n]), 0.3 * rng.standard_normal((blocks, n))
    roots, counts = x.argmax(axis=1), rng.uniform(1.0, 2.0, blocks)
    adjoint, products, columns = np.zeros((blocks, n)), np.zeros(blocks), np.empty((blocks, width))

    def run(name, *arguments, **named):
        starts = range(0, blocks, kernel.batch)
        call = getattr(kernel, name)
        return [call(0, slice(start, min(start + kernel.batch, blocks)), *arguments, **named) for start in starts]

    def adjoints(name, *arguments):
        adjoint[:] = 0.0
        run(name, x, u, *arguments, adjoint)
        return adjoint.copy()

    def extremes(last, name, *arguments, **named):
        parts = np.array(run(name, x, u, *arguments, **named))
        return np.array([parts[:, 0].min(), last(parts[:, 1])])

    run("start", x, 0.5)
    yield "start", kernel.multipliers().copy(), 1e-12
    assert np.array_equal(kernel.diagonals(), kernel.multipliers().diagonal(axis1=1, axis2=2))
    floors = [(rng.uniform(0.1, 1.0, (blocks, len(error))), rng.uniform(1.0, 2.0, blocks)) for error in layout.errors]
    for ratio, _ in floors:
        # Estimates that do not take part, others in each block.
        ratio[rng.random(ratio.shape) < 0.3] = 0.0
    sides, edges = 0.1 * rng.random((blocks, width - n)), np.empty((blocks, width))
    # A kernel need not keep the Hessians of one batch when it assembles the next.
    for start in range(0, blocks, kernel.batch):
        batch = slice(start, min(start + kernel.batch, blocks))
        assert kernel.assemble(0, batch, x, adjoint, products)
        for index, (ratio, own) in enumerate(floors):
            kernel.add_floor(0, batch, index, points, ratio, own)
        edges[batch] = np.hstack([0.1 * points[batch, :n] * adjoint[batch], sides[batch]])
        assert kernel.factor(0, batch, roots, edges, 10.0 + products) == 0.0
        kernel.accumulate(0, batch, roots, layout.link_scale(points), counts, columns)
    yield "adjoint", adjoint.copy(), 1e-12
    yield "products", products.copy(), 1e-12
    yield "schur", np.triu(kernel.schur()), 1e-12
    yield "columns", columns.copy(), 1e-12
    assert not kernel.schur().any()
    right = rng.random((blocks, width))
    run("solve", right)
    yield "solve", right, 1e-12
    yield "affine ratio test", extremes(np.max, "affine_ratio_test"), 1e-5
    yield "mehrotra", adjoints("mehrotra", 0.1), 1e-5
    yield "ratio test", extremes(np.min, "ratio_test", 0, store_for_corrector=True), 1e-5
    yield "centrality", adjoints("centrality", 0, 0.7, 0.4, 0.1), 1e-5
    before = kernel.multipliers().copy()
    run("advance", x, u, 1, 0.2)
    yield "advance", kernel.multipliers().copy(), 1e-5
    assert np.array_equal(before > 0, np.broadcast_to(layout.weights > 0, before.shape))


@each_row("program", PROGRAMS)
def test_every_call_agrees_with_the_first_kernel(name, program):
    layout = lay_out(PROGRAMS[program])
    _assert_agrees(layout, choose(name, 0)(layout, 1))


@pytest.fixture(scope="module")
def uncompiled():
    """Return the kernel of Numba with its passes left as they are written, which needs neither Numba nor a compiler."""
    path = importlib.util.find_spec(f"{choose.__module__}.numba").origin
    spec = importlib.util.spec_from_file_location("uncompiled_passes", path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "numba", SimpleNamespace(njit=lambda **options: lambda function: function))
        spec.loader.exec_module(module)
    return module.KERNEL


# Compiled passes warn of nothing.
@np.errstate(all="ignore")
@each_row("program", ["few-columns", "one-row", "joint", "worst-joint", "threshold"])
def test_passes_for_numba_agree_with_the_first_kernel_before_they_are_compiled(uncompiled, program):
    layout = lay_out(PROGRAMS[program])
    _assert_agrees(layout, uncompiled(layout, 1))


def test_packed_factors_of_few_bounds_solve_like_the_first_kernel():
    """Estimates that do not take part leave room in the memory for rows of a floor."""
    layout = lay_out(PROGRAMS["joint"])
    rng = np.random.default_rng(7)
    points = rng.uniform(0.5, 1.0, (layout.blocks, layout.width)) / layout.blocks
    points[:, : layout.rows] = (1.0 + 0.05 * rng.random((layout.blocks, layout.rows))) / layout.blocks
    x = np.ascontiguousarray(points[:, : layout.rows])
    ratios = [rng.uniform(0.1, 1.0, (layout.blocks, len(error))) for error in layout.errors]
    for ratio in ratios:
        ratio[rng.random(ratio.shape) < 0.5] = 0.0
    edges, right = 0.05 * rng.random((2, layout.blocks, layout.width))
    solved = []
    for kernel in (kernel_numpy.NumpyKernel(layout, 1), FilledKernel(layout, 1)):
        found = right.copy()
        for block in range(layout.blocks):
            one = slice(block, block + 1)
            adjoint, products = np.zeros(x.shape), np.zeros(layout.blocks)
            kernel.start(0, one, x, 0.5)
            assert kernel.assemble(0, one, x, adjoint, products)
            for index, ratio in enumerate(ratios):
                kernel.add_floor(0, one, index, points, ratio, np.ones(layout.blocks))
            assert kernel.factor(0, one, x.argmax(axis=1), edges, np.full(layout.blocks, 10.0)) == 0.0
            kernel.solve(0, one, found)
        solved.append(found)
    assert np.allclose(*solved, rtol=1e-4, atol=1e-4 * np.abs(solved[0]).max())


def _assert_agrees(layout, kernel):
    reference = choose("numpy", 0)(layout, 1)
    kernel.batch = min(kernel.batch, 2)
    for (call, expected, accuracy), (_, found, _) in zip(
        _trace(reference, layout), _trace(kernel, layout), strict=True
    ):
        size = np.abs(expected).max(initial=1e-300)
        assert np.abs(found - expected).max() <= accuracy * size, call


def test_hessians_that_rounding_made_indefinite_are_regularised(name):
    case = Case(name, PROGRAMS["metric"])
    layout, kernel = case.layout, case.kernel
    first, roots = slice(0, min(2, kernel.batch)), np.zeros(layout.blocks, dtype=np.int64)
    x, edges, corners = case.x, np.zeros((layout.blocks, layout.width)), np.ones(layout.blocks)

    def factor():
        adjoint, products = np.zeros(x.shape), np.zeros(layout.blocks)
        assert kernel.assemble(0, first, x, adjoint, products)
        return kernel.factor(0, first, roots, edges, corners)

    assert factor() == 0.0
    edges[0, 1:] = np.sqrt(case.blocks.products.max())
    corners[0] = -1.0
    assert factor() == np.inf


LARGER = {
    "metric": grid(6, 5),
    "huge": grid(6, 5, 20.0),
    "joint": grid(5, 5, 0.6, "hamming", floor=0.7),
    "worst-joint": grid(4, 4, 0.6, "hamming", floor=0.5, worst=True),
    "threshold": grid(6, 5, masked=lambda distance: distance > 1.5),
}


@functools.cache
def with_numpy(program, symmetric):
    symmetry = find_symmetry(LARGER[program]) if symmetric else None
    options = Options(extra={"arrays": "numpy"})
    return symmetry, solve_by_interior_point(LARGER[program], options, symmetry=symmetry)


@pytest.mark.parametrize("name", KERNELS[1:], indirect=True)
@each_row(("program", "symmetric"), product(LARGER, [False, True]))
def test_all_kernels_solve_alike(name, program, symmetric):
    symmetry, expected = with_numpy(program, symmetric)
    found = solve_by_interior_point(LARGER[program], Options(extra={"arrays": name}), symmetry=symmetry)
    assert found.status is expected.status is Status.OPTIMAL
    assert abs(found.iterations - expected.iterations) <= 2
    assert found.upper == pytest.approx(expected.upper, rel=6e-7)
    assert found.lower <= expected.upper
    assert violation(LARGER[program], found.x) <= 1e-8


def test_kernels_reach_a_tight_tolerance(name):
    found = solve_by_interior_point(grid(7, 7), Options(extra={"arrays": name}), gap=1e-9)
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= 1.2e-9 * found.upper


def test_what_is_imported_already_does_not_change_the_choice(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", sys)
    assert choose(None, 1000) is kernel_numpy.NumpyKernel


def test_choices_that_cannot_be_had_are_refused(monkeypatch):
    def solve(**extra):
        return lambda: solve_by_interior_point(grid(2, 2), Options(extra=extra))

    assert_refused(
        [
            Mistake(
                "unknown library",
                solve(arrays="fortran"),
                "options.extra.arrays",
                "must be numpy, numba, sparse",
                InputError,
            ),
            Mistake("a device", solve(device="cuda"), "options.extra.device", "must be symmetry, memory", InputError),
        ]
    )
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"mechdesign\[fast\]"):
        solve_by_interior_point(grid(2, 2), Options(extra={"arrays": "numba"}))
    assert choose(None, 10**9) is kernel_numpy.NumpyKernel
