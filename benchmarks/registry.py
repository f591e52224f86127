"""The benchmarks and measurements that give the numbers in README and site, with commands and tolerances."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BENCHMARKS", "GAP_SPREAD", "MEASUREMENTS", "SECONDS_SPREAD", "Benchmark"]

MEASUREMENTS = ("first_minute", "highs", "sizes", "bench", "peers", "same_epsilon", "requirements", "epsilons", "costs")
"""Measurements of docs/measure.py for README and site."""

# Factors by which the values of these measurements may differ, for seconds and for certified gaps.
SECONDS_SPREAD, GAP_SPREAD = 2.0, 10.0


@dataclass(frozen=True)
class Benchmark:
    """A script of this folder whose output is stored in ``benchmarks/results/NAME.txt`` (``NAME.quick.txt``).

    `spread` is the factor by which any number of the output may differ from the stored one. Most numbers are seconds,
    which depend on the machine and its load. `quoted` names the statements that use numbers of this output.
    """

    name: str
    arguments: str
    quick: str | None
    spread: float
    quoted: str


BENCHMARKS = (
    Benchmark("block_against_highs", "--sides 8 10", "--sides 5 --repeats 1", 2.0, "speed beside HiGHS"),
    Benchmark("block_scenes", "", None, 2.0, "300 secrets, every kind of requirement, real check-ins"),
    Benchmark("block_generation", "", "--random 1000", 2.0, "column generation compared with all blocks at once"),
    Benchmark("rays", "--sides 10 20 50", "--sides 10 20 --exact", 2.0, "thousands of secrets"),
    Benchmark("block_sizes", "--long --plot notebooks/pictures/growth.png", None, 2.0, "growth, with the picture"),
    Benchmark("approximation", "--grid 20x15", "--grid 5x4", 2.0, "the effect of dropping far pairs"),
    Benchmark("lazy_rows", "", "--side 5 --repeats 1", 2.0, "lazy rows compared with all rows"),
    Benchmark("verify_speed", "", "8 6", 2.0, "verifying"),
    Benchmark("policy_scale", "", "12", 2.0, "policy graphs of 2,500 cells"),
    Benchmark("policy_utility", "", None, 1.5, "noise and least-cost channels on real check-ins"),
    Benchmark("policy_traces", "", None, 1.5, "traces under policy graphs"),
    Benchmark("blowfish_figures", "", None, 1.5, "k-means and ranges under policies, in tables"),
    Benchmark("leakage_routes", "", "--quick", 3.0, "the hull compared with the paper's algorithms"),
    Benchmark("leakage_precompute", "", "--sizes 30 --repeats 1", 2.0, "loss functions of 1,000 states"),
)
