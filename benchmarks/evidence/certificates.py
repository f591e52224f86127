"""Compare the certificates of 40 fixed problems to the last digit, after changes that must not change any number.

    python benchmarks/evidence/certificates.py -o before.json
    python benchmarks/evidence/certificates.py --compare before.json

The problems cover every kind of requirement, every back end, every policy for rows, both objectives, forbidden answers
and parts. Each problem takes at most a few seconds on one thread. The output contains each field of a certificate
except provenance, the status, the solver and the SHA-256 of the channel's numerators. The comparison is exact, so both
runs need the same machine and libraries: other processors and versions round differently. The script exits with 1 if
anything differs.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import mechdesign as md

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import options, show, write

Case = Callable[[], md.Design]
Record = dict[str, Any]

TOLERANCE = 1e-9
PACKAGES = ("clarabel", "cvxpy", "highspy", "networkx", "numba", "numpy", "scipy")
SOLVERS = (
    "auto", "block", "cvxpy", "highs", "highs-ipx", "highs-pdlp", "highs-simplex", "scipy"
)  # fmt: skip


def solve(problem: md.Problem, solver: str = "auto", **settings: Any) -> Case:
    """Return a case: a function that designs the problem on one thread."""
    return functools.partial(md.design, problem, solver=solver, tolerance=TOLERANCE, threads=1, **settings)


def grid(columns: int, rows: int) -> md.Domain:
    """Return a grid of unit cells."""
    return md.Domain.grid(columns=columns, rows=rows, width=float(columns), height=float(rows))


def uneven(n: int) -> md.Prior:
    """Return a prior of some likely and some unlikely secrets."""
    return md.Prior.from_counts(1 + np.arange(n) ** 2 % 7)


def peaked(n: int) -> md.Prior:
    """Return the prior that halves from each secret to the next."""
    return md.Prior.from_counts(np.ldexp(1.0, -np.arange(n)))


def city(
    columns: int,
    rows: int,
    prior: Callable[[int], md.Prior] = uneven,
    *,
    epsilon: Any = 1,
    minimum: Any = None,
    objective: str = "expected",
) -> md.Problem:
    """Return a problem on a grid: squared cost, metric privacy, and, with a minimum, distortion privacy."""
    domain = grid(columns, rows)
    distance = md.distances.euclidean(domain)
    asked: list[Any] = [md.MetricPrivacy(epsilon, distance)]
    if minimum is not None:
        asked.append(md.DistortionPrivacy(minimum, distance))
    return md.Problem(prior(domain.size), distance**2, asked, objective, domain, domain)


def back_ends() -> Iterator[tuple[str, Case]]:
    """Yield one problem for every solver."""
    problem = city(4, 3, minimum="1.04")
    for solver in SOLVERS:
        yield f"solver {solver}", solve(problem, solver)


def row_policies() -> Iterator[tuple[str, Case]]:
    """Yield a problem for each way to choose the rows of the program."""
    for rows in ("all", "reduced", "lazy", "near"):
        yield f"rows {rows}", solve(city(5, 4), "highs-simplex", rows=rows)
    yield "rows lazy, interior points", solve(city(6, 5, minimum="1.7", objective="worst"), "highs-ipx", rows="lazy")


def large() -> Iterator[tuple[str, Case]]:
    """Yield the larger cases: features of the block method, and HiGHS on problems where the block method stalls."""
    uniform = md.Prior.uniform
    yield "block, NumPy", solve(city(8, 6), "block", options={"arrays": "numpy"})
    yield "block, floor", solve(city(8, 6, minimum="2.3"), "block", options={"arrays": "numpy"})
    yield "block, worst cost", solve(city(6, 4, objective="worst"), "block", options={"arrays": "numpy"})
    yield "block, peaked prior", solve(city(6, 5, peaked, epsilon="0.6"), "block")
    yield "block, symmetry off", solve(city(6, 6, uniform), "block", options={"symmetry": False})
    yield "auto, symmetric", solve(city(10, 10, uniform, epsilon=Fraction(3, 5)))
    yield "auto, block then HiGHS", solve(city(7, 6, minimum="1.96"))


def kinds() -> Iterator[tuple[str, Case]]:
    """Yield problems with the kinds of requirement, alone and together, for both objectives."""
    domain = grid(4, 3)
    distance, steps = md.distances.euclidean(domain), md.distances.manhattan(domain)
    metric = md.MetricPrivacy(Fraction(1, 2), distance)
    threshold = md.ThresholdPrivacy(Decimal("0.8"), steps, 2)
    graph = md.GraphPrivacy("1", nx.cycle_graph(domain.size))
    floor = md.DistortionPrivacy("1.2", distance)
    for name, asked, solver, objective in (
        ("graph", [graph], "block", "expected"),
        ("distortion", [floor], "auto", "expected"),
        ("threshold, distortion", [threshold, floor], "scipy", "worst"),
        ("metric, threshold, graph, distortion", [metric, threshold, graph, floor], "highs-ipx", "expected"),
        ("graph, distortion, worst cost", [graph, floor], "cvxpy", "worst"),
        ("none", [], "auto", "expected"),
    ):
        problem = md.Problem(uneven(domain.size), md.distances.chebyshev(domain), asked, objective)
        yield name, solve(problem, solver)


def shapes() -> Iterator[tuple[str, Case]]:
    """Yield problems with observables other than the secrets, secrets at distance 0, and forbidden answers."""
    secrets, observables = grid(4, 3), grid(3, 2)
    distance = md.distances.euclidean(secrets)
    fewer = md.distances.euclidean(secrets, observables)
    metric = md.MetricPrivacy("0.7", distance)
    yield "fewer observables", solve(md.Problem(peaked(12), fewer, [metric], "expected", secrets, observables))
    metric = md.MetricPrivacy("0.7", md.distances.euclidean(observables))
    yield "more observables, worst cost", solve(md.Problem(peaked(6), fewer.T, [metric], "worst"))

    column = np.arange(12) % 4
    merged = md.MetricPrivacy("1.5", np.abs(np.subtract.outer(column, column)))
    yield "secrets at distance 0", solve(md.Problem(uneven(12), distance, [merged]))
    yield "secrets at distance 0, worst cost", solve(md.Problem(uneven(12), distance, [merged], "worst"), "block")

    cost = np.where(distance > 3, np.inf, distance)[:, 1:]
    pairs = md.GraphPrivacy(1, nx.Graph([(k, k + 1) for k in range(0, 12, 2)]))
    yield "forbidden answers", solve(md.Problem(peaked(12), cost, [pairs]), "scipy")
    halves = np.where(np.equal.outer(column < 2, column < 2), distance, np.inf)
    metric = md.MetricPrivacy("0.7", halves)
    yield "equal parts, worst cost", solve(md.Problem(md.Prior.uniform(12), halves, [metric], "worst"))


def random_instances() -> Iterator[tuple[str, Case]]:
    """Yield problems with random places, priors and costs, from fixed seeds."""
    for seed, solver in ((1, "auto"), (2, "block")):
        rng = np.random.default_rng(seed)
        points, counts, cost = 5 * rng.random((14, 2)), rng.integers(0, 50, 14), rng.random((14, 17))
        asked = [md.MetricPrivacy("1.2", md.distances.euclidean(points))]
        yield f"random {seed}", solve(md.Problem(md.Prior.from_counts(counts), cost, asked), solver)


def policies() -> Iterator[tuple[str, Case]]:
    """Yield optimal channels under policy graphs."""
    domain = grid(6, 3)
    blocks = md.graphs.blocks(domain, 3)
    floor = md.DistortionPrivacy("0.9", md.distances.euclidean(domain))
    left = md.graphs.constrain(blocks, [0, 1, 3, 7, 10, 17])
    asked = {
        "whole map": {"graph": blocks, "epsilon": "0.5", "prior": peaked(18), "within": "map"},
        "floor": {"graph": blocks, "epsilon": 2, "prior": uneven(18), "requirements": [floor]},
        "repair": {"graph": left, "epsilon": 1, "isolated": "repair"},
    }
    for name, stated in asked.items():
        yield f"policy, {name}", solve(md.graphs.problem(domain, **stated))


def compiled() -> Iterator[tuple[str, Case]]:
    """Yield the case that loads Numba. This case is the last, because old versions used Numba for all later cases."""
    yield "block, Numba", solve(city(8, 6), "block", options={"arrays": "numba"})


def cases() -> dict[str, Case]:
    """Return the 40 cases by name."""
    families = (back_ends, row_policies, large, kinds, shapes, random_instances, policies, compiled)
    return dict(case for family in families for case in family())


def record(design: md.Design) -> Record:
    """Return the numbers of a design that are compared."""
    certificate = {
        field.name: getattr(design.certificate, field.name)
        for field in dataclasses.fields(design.certificate)
        if field.name != "provenance"
    }
    certificate["requirements"] = [dataclasses.asdict(checked) for checked in design.certificate.requirements]
    numerators = np.ascontiguousarray(design.channel.numerators, dtype="<i8")
    return {
        "status": str(getattr(design.status, "value", design.status)),
        "solver": design.certificate.provenance.get("solver", "not said"),
        "channel": hashlib.sha256(numerators.tobytes()).hexdigest(),
        "certificate": certificate,
    }


def run(chosen: Mapping[str, Case]) -> dict[str, Record]:
    """Design all cases, and print the time of each."""
    records = {}
    for name, case in chosen.items():
        clock = time.perf_counter()
        made = case()
        # Values are compared as JSON reads them back, so that a pair is a list in both records.
        records[name] = json.loads(json.dumps(record(made)))
        seconds, gap = time.perf_counter() - clock, made.certificate.relative_gap
        print(f"{name:<40}{records[name]['solver']:<16}{seconds:6.2f} s   gap {gap:.1e}", flush=True)
    return records


def environment() -> dict[str, str]:
    """Return the facts about the machine and the libraries that determine the last digits."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    simd = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return {"python": platform.python_version(), "machine": " ".join((platform.machine(), *simd)), **versions}


def leaves(value: Any, path: str = "") -> dict[str, Any]:
    """Return the texts and numbers of nested lists and objects, by path."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return {name: leaf for key, inner in items for name, leaf in leaves(inner, f"{path}.{key}").items()}
    return {path.removeprefix("."): value}


def differences(old: Record, new: Record) -> list[str]:
    """Return the missing fields and the differences of numbers, field by field."""
    before, now = leaves(old), leaves(new)
    return [
        f"{path}: {change(value, now.get(path, 'missing'))}" for path, value in before.items() if now.get(path) != value
    ]


def change(old: Any, new: Any) -> str:
    """Describe the difference between two values."""
    try:
        by = Decimal(str(new)) - Decimal(str(old))
    except ArithmeticError:
        return f"{old} → {new}"
    return f"{old} → {new}, by {float(by):.1e}"


def compare(old: Mapping[str, Record], new: Mapping[str, Record]) -> bool:
    """Print the differences of the cases in `new`; return whether there are none."""
    found = {name: differences(old[name], now) if name in old else ["not in the file"] for name, now in new.items()}
    rows = [{"problem": name, "differs": "\n".join(each) or "identical"} for name, each in found.items()]
    show({"problem": "{problem}", "differs": "{differs}"}, rows, 160, title="Compared to the last digit")
    same = sum(not each for each in found.values())
    print(f"{same} of {len(new)} identical")
    return same == len(new)


def main() -> int:
    """Run the cases, write the results, and compare them with another run."""
    arguments = options(__doc__, output=Path, compare=Path, only="")
    old = json.loads(arguments.compare.read_text(encoding="utf-8")) if arguments.compare else None
    new = {"environment": environment(), "cases": run({k: v for k, v in cases().items() if arguments.only in k})}
    if arguments.output:
        write(arguments.output, new)
    if old is None:
        return 0
    for name, version in old["environment"].items():
        if new["environment"].get(name) != version:
            print(f"another {name}: {version}, now {new['environment'][name]}")
    return 0 if compare(old["cases"], new["cases"]) else 1


if __name__ == "__main__":
    sys.exit(main())
