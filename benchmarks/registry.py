"""What README and site quote: each benchmark with its commands, and by how much its numbers may move."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BENCHMARKS", "Benchmark"]


@dataclass(frozen=True)
class Benchmark:
    """A script of this folder whose output is stored in ``benchmarks/results/NAME.txt`` (``NAME.quick.txt``).

    `spread` is the factor by which any number of its output may differ from the stored one: mostly seconds, which
    depend on the machine and on what else it does.
    """

    name: str
    arguments: str
    quick: str | None
    spread: float
    quoted: str


BENCHMARKS = (
    Benchmark("block_against_highs", "--sides 8 10", "--sides 5 --repeats 1", 2.0, "README: How fast"),
    Benchmark("block_scenes", "", None, 2.0, "README: How fast"),
    Benchmark("block_sizes", "--long", None, 2.0, "README: How fast; the picture growth.png"),
    Benchmark("approximation", "--grid 20x15", "--grid 5x4", 2.0, "README: How fast"),
    Benchmark("lazy_rows", "", None, 2.0, "README: How fast"),
    Benchmark("verify_speed", "", None, 2.0, "README: How fast"),
    Benchmark("policy_scale", "", None, 2.0, "README: How fast"),
    Benchmark("policy_utility", "", None, 1.5, "README: How fast"),
    Benchmark("policy_traces", "", None, 1.5, "README: How fast"),
    Benchmark("leakage_routes", "", None, 3.0, "README: How fast"),
)
