"""Single precision at wide gaps: the path and the values do not change, and failures switch to double precision."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from block_cases import LARGE, agree, grid, iterates, violation
from long import mostly_long
from test_sparse_blocks import program_on, roads, squares

from mechdesign.errors import SolverError
from mechdesign.solve._block_angular import lower_bound
from mechdesign.solve._blocks import interior_point as solve_module
from mechdesign.solve._blocks import memory, newton
from mechdesign.solve._blocks.column_generation import should_generate_columns, solve_block_program
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.kernels import choose
from mechdesign.solve._blocks.kernels.direct_lapack import DirectLapack
from mechdesign.solve._blocks.kernels.lapack import Lapack, address
from mechdesign.solve._blocks.kernels.tridiagonal import Factors
from mechdesign.solve._blocks.kernels.wrapped_lapack import WrappedLapack
from mechdesign.solve._blocks.layout import lay_out
from mechdesign.solve._blocks.newton import Targets, refine_direction, solve_newton
from mechdesign.solve._blocks.step import take_step
from mechdesign.solve._contract import Options, Status

pytestmark = pytest.mark.slow

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="numba is an extra and not installed"
)
DENSE = ["numpy", pytest.param("numba", marks=needs_numba)]
# All reference values are copied from `test_block.py`.
VALUE_AT_100 = 2.09408236


def _affine(blocks):
    return Targets(np.zeros_like(blocks.x), np.zeros(blocks.layout.auxiliary.size))


@pytest.mark.parametrize("kind_of_lapack", [DirectLapack, WrappedLapack])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("size", mostly_long([1, 49, 131, 2, 7, 48, 100, 200], 3))
def test_factor_inverse_and_solution(size, single, kind_of_lapack):
    rng = np.random.default_rng(size)
    root = rng.standard_normal((size, size + 3))
    matrix = root @ root.T + size * np.eye(size)
    lapack, kind, accuracy = (
        kind_of_lapack(size, single=single),
        np.float32 if single else np.float64,
        1e-4 if single else 1e-12,
    )
    factor = matrix.astype(kind)
    assert lapack.factor(factor) == 0.0
    assert np.triu(factor).T @ np.triu(factor) == pytest.approx(matrix, rel=accuracy, abs=accuracy * size)
    packed = np.empty(size * (size + 1) // 2, dtype=kind)
    lapack.pack(address(factor), address(packed))
    assert (packed == factor[np.triu_indices(size)]).all()
    right = rng.standard_normal(size)
    found = right.astype(kind)
    lapack.solve(address(packed), address(found))
    assert found == pytest.approx(np.linalg.solve(matrix, right), rel=accuracy, abs=accuracy)
    lapack.invert(address(factor))
    assert np.triu(factor) == pytest.approx(np.triu(np.linalg.inv(matrix)), rel=accuracy, abs=accuracy)


@pytest.mark.parametrize("kind_of_lapack", [DirectLapack, WrappedLapack])
def test_matrices_that_fail_in_single_precision_use_double(kind_of_lapack):
    matrix = np.ones((3, 3)) + 1e-9 * np.eye(3)
    assert kind_of_lapack(3, single=True).factor(matrix.astype(np.float32)) == np.inf
    assert kind_of_lapack(3).factor(matrix) == 0.0


@pytest.mark.parametrize("kind_of_lapack", [DirectLapack, WrappedLapack])
def test_a_matrix_that_is_not_definite_is_regularised_or_refused(kind_of_lapack):
    nearly = np.ones((2, 2))
    assert 0.0 < kind_of_lapack(2).factor(nearly) < 1e-2
    assert kind_of_lapack(2).factor(np.array([[1.0, 2.0], [2.0, 1.0]])) == np.inf


def test_a_solve_without_ctypes_gives_the_same_optimum(monkeypatch):
    program, options = grid(6, 6), Options(threads=1, extra={"arrays": "numpy"})
    best = solve_by_interior_point(program, options)
    monkeypatch.setattr("mechdesign.solve._blocks.kernels.numpy.Lapack", WrappedLapack)
    found = solve_by_interior_point(program, options)
    assert found.status is Status.OPTIMAL
    assert found.upper == pytest.approx(best.upper, rel=1e-6)
    assert len(found.history) == pytest.approx(len(best.history), abs=2)


@pytest.mark.parametrize("arrays", [*DENSE, "sparse"])
def test_the_direction_that_is_taken_meets_the_linking_rows(arrays):
    sparse = arrays == "sparse"
    layout = lay_out(program_on(roads(120, 1)) if sparse else grid(10, 10))
    kernel = choose(arrays, 0, sparse)(layout, 1)
    kernel.set_precision(1.0)
    blocks = iterates(layout, kernel, 4)
    assert kernel.single_inverses
    targets, system = _affine(blocks), blocks.system()
    rough = solve_newton(system, targets)
    refined = refine_direction(system, targets, rough)
    assert 1e-11 < rough.link_residual < 1e-3
    assert refined.link_residual <= 1e-11
    kernel.set_precision(0.0)
    exact = newton.factor_blocks(layout, blocks.ratios, blocks.iterate)
    double = solve_newton(exact.system(), targets)
    assert double.link_residual <= 1e-11
    assert blocks.schur == pytest.approx(exact.schur, rel=1e-3, abs=1e-5 * exact.schur.max())
    assert refined.u == pytest.approx(double.u, abs=1e-2 * np.abs(double.u).max())
    assert refine_direction(exact.system(), targets, double) is double


@pytest.mark.parametrize("arrays", mostly_long(DENSE))
def test_slacks_and_multipliers_stay_positive(arrays, monkeypatch):
    """Refining changes the direction. Near the end, step lengths of the unrefined direction are too long."""
    rough = []

    def checked(blocks, **options):
        step, kernel = take_step(blocks, **options), blocks.ratios.kernel
        rough.append(kernel.single_inverses)
        assert kernel.multipliers().min() > 0
        assert step.iterate.points.min() > 0
        assert step.iterate.z.min(initial=1.0) > 0
        return step

    monkeypatch.setattr(solve_module, "take_step", checked)
    assert solve_by_interior_point(grid(10, 10), Options(extra={"arrays": arrays})).status is Status.OPTIMAL
    assert rough[0]
    assert not rough[-1]


@pytest.mark.parametrize("arrays", DENSE)
@pytest.mark.parametrize("gap", mostly_long([1e-7, 1e-1, 1e-2, 1e-3, 1e-5]))
def test_values_are_those_of_double_precision(arrays, gap):
    program, options = grid(10, 10), Options(extra={"arrays": arrays})
    found = solve_by_interior_point(program, options, gap=gap)
    assert found.status is Status.OPTIMAL
    assert found.lower <= VALUE_AT_100 * (1 + 1e-8)
    assert found.upper >= VALUE_AT_100 * (1 - 1e-8)
    assert found.upper - found.lower <= gap * found.upper
    assert found.lower == pytest.approx(lower_bound(program, found.multipliers))
    assert violation(program, found.x) <= 1e-7


@pytest.mark.parametrize("arrays", DENSE)
def test_blocks_that_single_precision_cannot_factor_are_factored_in_double(arrays, monkeypatch):
    program, options = grid(10, 10), Options(threads=1, extra={"arrays": arrays})
    best = solve_by_interior_point(program, options)
    try_factor, asked = Lapack.try_factor, []

    def poor(self, matrix):
        if matrix.dtype == np.float32:
            asked.append(matrix.shape)
            if len(asked) % 3 == 0:
                return False
        return try_factor(self, matrix)

    monkeypatch.setattr(Lapack, "try_factor", poor)
    found = solve_by_interior_point(program, options)
    assert len(asked) > 300
    assert found.status is Status.OPTIMAL
    assert found.upper == pytest.approx(VALUE_AT_100, rel=1e-6)
    # The other blocks remain in single precision, and the path does not change.
    assert len(found.history) == pytest.approx(len(best.history), abs=6)


def test_a_stall_of_sparse_blocks_in_single_precision_is_none_in_double(monkeypatch):
    factor, failed = Factors.factor, []

    def poor(self, own, beside, excess, *, exact):
        if self.kind is np.float32:
            failed.append(own[0].shape)
            return False
        return factor(self, own, beside, excess, exact=exact)

    program, options = program_on(roads(120, 1)), Options(threads=1)
    best = solve_by_interior_point(program, options, gap=1e-6)
    monkeypatch.setattr(Factors, "factor", poor)
    found = solve_by_interior_point(program, options, gap=1e-6)
    assert found.status is best.status is Status.OPTIMAL
    assert found.upper == pytest.approx(best.upper, rel=2e-6)
    assert len(failed) == 1, "double precision is for good, and no diagonal is raised before"


@pytest.mark.parametrize("cost", mostly_long(["euclidean", "hamming"]))
def test_large_programs_without_floors_merge_columns(cost):
    program, gap = grid(10, 10, cost=cost), 1e-4
    assert should_generate_columns(program, tuning=LARGE.generation)
    found = solve_block_program(program, gap=gap, tuning=LARGE)
    assert found.status is Status.OPTIMAL
    assert found.upper - found.lower <= gap * found.upper
    agree(found, program)
    assert violation(program, found.x) <= 1e-7


@pytest.mark.parametrize("arrays", [*DENSE, "sparse"])
def test_released_arrays_are_not_those_of_the_proof(arrays):
    program = program_on(squares(8, 8)) if arrays == "sparse" else grid(8, 8)
    layout = lay_out(program)
    kernel = choose(arrays, 0, arrays == "sparse")(layout, 1)
    iterates(layout, kernel, 4)
    kept, before = kernel.keep(), kernel.multipliers().copy()
    kernel.release()
    assert (kernel.multipliers() == before).all()
    assert (kept() == before).all()


def test_memory_of_the_end_is_checked_before_the_start():
    """With 1,024 rows and columns, a gap of 1e-4 took 15.6 GB, and a gap of 1e-6 would take 24 GB."""
    assert 15e9 < memory.merging_memory(1024, 1024, 1e-4) < 17e9
    # Smaller programs may keep all columns.
    assert memory.merging_memory(300, 300, 1e-6) == memory.block_memory(300, 300, 300, gap=1e-6) > 1e9
    budget = memory.MemoryBudget(17e9, 0, True)
    assert budget.fits(memory.merging_memory(1024, 1024, 1e-4))
    with pytest.raises(SolverError, match=r"2\d\.\d GB .* 1024 .* 17\.0 GB"):
        budget.require(memory.merging_memory(1024, 1024, 1e-6), 1024, 1024)


def test_generation_without_floors_is_refused_before_anything_is_done():
    told = []
    with pytest.raises(SolverError, match=r"100 .* 0\.0 GB"):
        solve_block_program(grid(10, 10), Options(progress=told.append, extra={"generation": True, "memory": 1e6}))
    assert not told
