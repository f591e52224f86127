"""Where randomness comes from: what may be published is drawn from the operating system, bit by bit."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import mechdesign as md
from mechdesign.mechanisms._discrete import DiscreteGaussian, DiscreteLaplace

GRID = md.Domain.grid(2, 2, 2.0, 2.0)
BLOCK = md.graphs.blocks(GRID, 2)
CHANNEL = md.mechanisms.RandomisedResponse(1, 4).channel()


def snapped() -> object:
    return md.traces.Trace(GRID, BLOCK, 1, np.full((4, 4), 0.25), np.full(4, 0.25)).step(0).output


EXACT: dict[str, Callable[[], object]] = {
    "a channel": lambda: CHANNEL.sample(0, 50),
    "a channel, one draw": lambda: CHANNEL.sample(2),
    "a channel, a secret for each draw": lambda: CHANNEL.sample([0, 1, 2, 3]),
    "a finite mechanism": lambda: md.mechanisms.Geometric(1, 5).sample(0, 50),
    "discrete Laplace noise": lambda: DiscreteLaplace(3).sample(50),
    "discrete Gaussian noise": lambda: DiscreteGaussian(9).sample(50),
    "a snapped trace": snapped,
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Count the bytes that the operating system gives, and let no generator of NumPy be made."""
    counts: list[int] = []
    system = secrets.token_bytes

    def counted(size: int) -> bytes:
        counts.append(size)
        return system(size)

    def refuse(*_: object) -> None:
        raise AssertionError("a generator was made")

    monkeypatch.setattr(secrets, "token_bytes", counted)
    for name in ("default_rng", "Generator", "PCG64", "SeedSequence", "random", "RandomState"):
        monkeypatch.setattr(np.random, name, refuse)
    return counts


def test_exact_samplers_draw_from_the_operating_system(drawn: list[int]) -> None:
    for name, sample in EXACT.items():
        drawn.clear()
        sample()
        assert sum(drawn) >= 8, name


def test_a_draw_takes_eight_bytes_of_its_own(drawn: list[int]) -> None:
    CHANNEL.sample(0, 50)
    assert drawn == [400]
