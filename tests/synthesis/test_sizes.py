"""Memory and time of a design are estimated before anything is built."""

from __future__ import annotations

import itertools
import re
import tracemalloc

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base._deadline import Deadline
from mechdesign.errors import SolverError, TooLargeError
from mechdesign.solve._blocks import memory
from mechdesign.specification._specification import Specification, parse
from mechdesign.synthesis._attempts import first_attempt
from mechdesign.synthesis._blocks import solve_form_by_blocks
from mechdesign.synthesis._normal import normalise
from mechdesign.synthesis._parts import split
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import (
    Size,
    check_size,
    count_symmetries,
    estimate,
    find_largest,
    size_of,
)

SPECIFICATION = """
domain.grid = {{ columns = {side}, rows = {side}, width = 10, height = 10 }}
prior.{prior}
cost.distance = "euclidean"
privacy = [{{ kind = "{kind}", epsilon = 1, {key} }}]
solver.options = {{ memory = {memory} }}
"""


UNIFORM, EUCLIDEAN = "uniform = true", 'distance = "euclidean"'
PEOPLE = "simulated = { centres = [{ x = 1, y = 1, spread = 2, weight = 1 }] }"


def specification(
    side: int, memory: float, prior: str = UNIFORM, kind: str = "metric", key: str = EUCLIDEAN
) -> Specification:
    return parse(SPECIFICATION.format(side=side, memory=memory, prior=prior, kind=kind, key=key))


def test_problems_that_are_too_large_are_refused_before_anything_is_built() -> None:
    asked = specification(60, 4e9)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError) as caught:
            asked.design()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # No matrix over all pairs of cells was allocated, not even of single bytes.
    assert most < 3600**2
    assert "_data" not in vars(asked)
    message = str(caught.value)
    assert message.startswith("domain: 3600 secrets and 3600 observables do not fit into memory (block: 46,643 million")
    for remedy in ("secrets and as many answers would fit", "policy graph", "answers ([observables]", 'rows = "rays"'):
        assert remedy in message


def test_the_limit_is_the_same_for_problems() -> None:
    domain = md.Domain.grid(8, 8, 8, 8)
    distance = md.distances.euclidean(domain)
    problem = md.Problem(np.arange(1, 65) / 2080, distance, [md.MetricPrivacy(1, distance)], secrets=domain)
    with pytest.raises(TooLargeError, match="problem: 64 secrets and 64 observables do not fit into memory"):
        md.design(problem, "block", options={"memory": 1e6})
    # Unconnected secrets count separately.
    alone = np.where(np.eye(64) + np.eye(64)[::-1] > 0, distance, np.inf)
    apart = md.Problem(np.full(64, 1 / 64), distance, [md.MetricPrivacy(1, alone)])
    assert size_of(apart, split(apart)[0]).secrets == 2


@pytest.mark.parametrize("solver", ["block", "highs-ipx"])
def test_suggested_sizes_fit(solver: str) -> None:
    settings = SolveSettings(solver, options={"memory": 2e9})
    size = Size(2000, 2000)
    most = find_largest(size, settings)
    assert 50 < most < 2000
    for count, fits in ((most, True), (most + 1, False)):
        assert estimate(Size(count, count), settings).fits is fits
    with pytest.raises(TooLargeError, match=f"Up to {most} secrets and as many answers would fit"):
        check_size(size, settings)
    check_size(Size(100, 100), SolveSettings())


def test_estimates_grow_with_the_problem_and_shrink_with_symmetries(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every estimate includes the memory that the process already uses.
    monkeypatch.setattr(memory, "_resident_bytes", lambda: 0)
    settings = SolveSettings()
    sizes = [Size(100, 100), Size(200, 100), Size(200, 200), Size(400, 400, floors=1)]
    found = [estimate(size, settings) for size in sizes]
    for one, two in itertools.pairwise(found):
        assert one.memory < two.memory
        assert one.rows < two.rows
    every = estimate(Size(400, 400), settings)
    assert estimate(Size(400, 400, symmetries=8), settings).memory < every.memory / 2
    # Column generation reduces the estimate with floors, but not for the worst cost, nor if it is turned off.
    assert found[-1].memory < 0.6 * every.memory
    assert estimate(Size(400, 400, floors=1, worst=True), settings).memory > every.memory
    off = SolveSettings(options={"generation": False})
    assert estimate(Size(400, 400, floors=1), off).memory > every.memory
    assert estimate(Size(10, 10), settings).solver == "highs-simplex"


def test_the_estimate_of_the_block_method_is_at_most_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = md.Domain.grid(7, 6, 7, 6)
    distance = md.distances.euclidean(domain)
    prior = np.random.default_rng(1).dirichlet(np.ones(42))
    problem = md.Problem(prior, distance, [md.MetricPrivacy(1, distance)], secrets=domain, observables=domain)
    size = size_of(problem, split(problem)[0])
    assert size == Size(42, 42, 0, 1)
    said = estimate(size, SolveSettings("block"))
    monkeypatch.setattr(memory, "find_allowed_memory", lambda limit=None: 1.0)
    form = normalise(problem)
    with pytest.raises(SolverError) as caught:
        solve_form_by_blocks(first_attempt(form, "block"), SolveSettings("block"), Deadline())
    own = re.search(r"needs about ([0-9.]+) GB for 42 blocks of 42 rows", str(caught.value))
    assert own is not None
    assert said.memory <= float(own[1]) * 1e9 + 5e7


def test_sizes_of_specifications() -> None:
    assert specification(20, 1e9).size == Size(400, 400, 0, 8)
    assert specification(20, 1e9, prior=PEOPLE).size == Size(400, 400, 0, 1)
    # Thresholds and graphs may give several independent parts.
    assert specification(20, 1e9, kind="graph", key="neighbours = 4").size is None
    assert count_symmetries(None) == 64
    assert count_symmetries(md.Domain.grid(4, 3, 4, 3)) == 4
