"""Concurrent solves share only counted settings of the process, and give the same numbers as separate solves."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from block_cases import ARRAYS, grid
from threadpoolctl import ThreadpoolController

import mechdesign as md
from mechdesign.solve import _threads as blas
from mechdesign.solve._blocks.interior_point import solve_by_interior_point
from mechdesign.solve._blocks.symmetry import find_symmetry
from mechdesign.solve._contract import Options
from mechdesign.solve._threads import blas_threads


def count_blas_threads():
    """Return the numbers of threads of the libraries that solves use, also of those loaded by other packages."""
    return [library["num_threads"] for library in blas._controller().info()]


@pytest.fixture
def two_blas_threads():
    """Set the number from a thread that has ended, because a running thread may prevent others from setting it."""

    def set_threads(number):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(ThreadpoolController().limit, limits=number, user_api="blas").result()

    before = count_blas_threads()
    set_threads(2)
    if 2 not in count_blas_threads():
        pytest.skip("the BLAS here has one thread")
    yield count_blas_threads()
    set_threads(max(before))


def test_the_last_of_several_users_restores_the_threads_of_blas(two_blas_threads):
    entered, leave = threading.Event(), threading.Event()

    def other():
        with blas_threads(1):
            entered.set()
            assert leave.wait(60)

    with ThreadPoolExecutor(1) as pool:
        with blas_threads(1):
            assert set(count_blas_threads()) == {1}
            done = pool.submit(other)
            assert entered.wait(60)
        # The first user has finished, the second has not.
        assert set(count_blas_threads()) == {1}
        leave.set()
        done.result()
    assert count_blas_threads() == two_blas_threads


@pytest.mark.parametrize("numbers", [(2, 1), (1, 2)])
def test_users_that_want_different_numbers_have_the_least_and_put_back_what_was(two_blas_threads, numbers):
    first, second = map(blas_threads, numbers)
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        one.submit(first.__enter__).result()
        two.submit(second.__enter__).result()
        assert set(count_blas_threads()) == {1}
        one.submit(first.__exit__, None, None, None).result()
        assert max(count_blas_threads()) == numbers[1]
        two.submit(second.__exit__, None, None, None).result()
    assert count_blas_threads() == two_blas_threads


def test_an_error_restores_the_threads_of_blas(two_blas_threads):
    with pytest.raises(ZeroDivisionError), blas_threads(1):
        raise ZeroDivisionError
    assert count_blas_threads() == two_blas_threads


@pytest.mark.parametrize("arrays", ARRAYS)
def test_solves_at_once_give_what_they_give_alone(arrays):
    """Results are equal to the last bit with several threads each, and floating-point error handling is unchanged."""
    pytest.importorskip(arrays)
    programs = [grid(5, 4, floor=0.7, cost="hamming"), grid(6, 4), grid(4, 4, worst=True)]
    barrier = threading.Barrier(len(programs))

    def solve(program, *, together):
        if together:
            barrier.wait(60)
        before = np.geterr()
        found = solve_by_interior_point(
            program, Options(threads=2, extra={"arrays": arrays}), gap=1e-6, symmetry=find_symmetry(program)
        )
        assert np.geterr() == before
        return found

    alone = [solve(program, together=False) for program in programs]
    with ThreadPoolExecutor(len(programs)) as pool:
        futures = [pool.submit(solve, program, together=True) for program in programs]
        at_once = [future.result() for future in futures]
    for one, other in zip(alone, at_once, strict=True):
        assert one.history[-1].lower == other.history[-1].lower
        assert np.array_equal(one.x, other.x)
        assert np.array_equal(one.multipliers.ratios.values, other.multipliers.ratios.values)
        assert (one.lower, one.upper, one.iterations) == (other.lower, other.upper, other.iterations)


def test_designs_at_once_give_what_they_give_alone():
    """Concurrent designs by every solver give the same result as separate ones."""

    def problem(columns, rows, kind):
        x, y = np.meshgrid(np.arange(float(columns)), np.arange(float(rows)))
        d = md.distances.euclidean(np.c_[x.ravel(), y.ravel()])
        prior = np.random.default_rng(columns).dirichlet(np.ones(len(d)))
        requirements = [md.MetricPrivacy("0.6", d)]
        if kind == "joint":
            requirements.append(md.DistortionPrivacy(0.5 * float((np.array(d) @ prior).min()), d))
        return md.Problem(prior, d, requirements)

    asked = [(problem(4, 4, "metric"), "block"), (problem(4, 3, "joint"), "block"), (problem(3, 3, "metric"), "auto")]

    def design(pair):
        made = md.design(pair[0], solver=pair[1], tolerance=1e-6)
        return made.channel.numerators, made.certificate.cost, made.certificate.lower_bound

    alone = [design(pair) for pair in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        at_once = list(pool.map(design, asked))
    for one, other in zip(alone, at_once, strict=True):
        assert np.array_equal(one[0], other[0])
        assert one[1:] == other[1:]
