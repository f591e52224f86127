"""Record numbers that a change of the interface must not move, and compare them with an earlier record.

    python benchmarks/record_numbers.py --store FILE.json [--quick]
    python benchmarks/record_numbers.py --against FILE.json [--quick] [--gone TEXT ...]

The numbers are the solves of `record_solves.py`, but those that Ctrl-C ends; 40 pairs of chains with leakages, suprema
and budgets; 40 policies of tables with sensitivities; 20 policy graphs with exposures and repairs; 20 readings of real
data with visits and chains; 5 seeded releases of tables and 2 of traces. `MECHDESIGN_DATA` names the folder of the real
data; records contain counts of these data, so they are not published. A record takes minutes, a quick one seconds.

Costs, lower bounds and realised ε may differ by the gaps of the two records, and a gap may double; all other numbers
may differ by a relative 1e-12. Each difference is printed with its name. The exit code is 1 if there is a difference,
or if a number is missing whose name contains none of the texts of `--gone`. Both records must come from one machine
with the same libraries. Only the functions of the first section, which take plain data, call the package, and change
with its interface.
"""

from __future__ import annotations

import csv
import functools
import importlib.util
import json
import math
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import mechdesign as md
import record_solves
from harness import DATA, options, origin, write
from mechdesign.graphs._exposure import protected_pairs
from mechdesign.leakage._recursion import windows
from mechdesign.tables._sensitivity._sensitivity import sensitivity

RELATIVE = 1e-12
PARTS = ("solves", "leakages", "sensitivities", "exposures", "chains", "releases")
# Every how many cases of a part `--quick` takes one.
QUICK = 5


# ---------------------------------------------------------------------------------------------------------------------
# Calls of the package


def leak(budgets: Any, backward: Any, forward: Any, alpha: float) -> dict[str, Any]:
    """Return leakages, suprema, values of the loss function and budgets that keep α."""
    both = [md.leakage.LossFunction(matrix, cache=False) for matrix in (backward, forward)]
    return {
        "backward": md.leakage.backward(budgets, both[0]),
        "forward": md.leakage.forward(budgets, both[1]),
        "temporal": md.leakage.temporal(budgets, *both),
        "windows": [float(windows(budgets, width, *both).max()) for width in (1, 3, len(budgets))],
        "loss": [both[0](value) for value in (0.01, 0.1, 1.0, 10.0)],
        "supremum": [both[0].supremum(0.05), both[1].supremum(0.05), md.leakage.supremum(0.05, *both)],
        "constant": md.leakage.constant_budget(alpha, *both),
        "allocated": md.leakage.allocate_budget(alpha, 12, *both),
    }


def spend_least(alpha: float, curves: Sequence[Any], backward: Any, forward: Any) -> dict[str, Any]:
    """Return budgets of least cost."""
    best = md.leakage.best_budgets(alpha, curves, backward, forward)
    return {"cost": best.cost, "bound": best.lower_bound, "constant": best.constant, "allocated": best.allocated}


def make_policy(
    attributes: Mapping[str, Any], kind: str, setting: Any = None, counts: Any = (), unbounded: bool = False
) -> Any:
    """Return a policy; the setting of the kind "thetas" is the threshold of each attribute, or None for any value."""
    domain, policy = md.tables.Domain(attributes), md.tables.Policy
    match kind:
        case "full":
            return policy.full(domain, constraints=counts, unbounded=unbounded)
        case "line":
            theta: Any = dict.fromkeys(domain.names, "next")
            return policy.attribute(domain, theta=theta, constraints=counts, unbounded=unbounded)
        case "thetas":
            return policy.attribute(domain, theta={name: each for name, each in setting.items() if each is not None})
        case _:
            return getattr(policy, kind)(domain, setting, constraints=counts, unbounded=unbounded)


def bound_changes(policy: Any, queries: Sequence[Any]) -> list[Any]:
    """Return the sensitivities of queries under a policy, in both norms."""
    made = make_policy(*policy)
    return [[sensitivity(made, query, norm, **more).value for query, more in queries] for norm in (1, 2)]


def expose(points: Any, graph: Any) -> dict[str, Any]:
    """Return the exposed secrets of a policy graph, its protected pairs and its hull."""
    hull = md.graphs.sensitivity_hull(points, graph)
    return {
        "exposed": [md.graphs.exposed(points, graph, kind) for kind in ("graph", "component")],
        "degrees": list(md.graphs.degree_of_protection(points, graph).values()),
        "pairs": len(protected_pairs(points, graph)),
        "hull": [hull.volume, np.sort(hull.vertices, axis=0)],
    }


def mend(points: Any, graph: Any, method: str) -> dict[str, Any]:
    """Return the edges that a repair adds, and the volumes of the hulls."""
    found = md.graphs.repair(points, graph, method)
    return {"added": found.added, "volumes": [found.hull_before.volume, found.hull_after.volume]}


@functools.cache
def read_people(source: str) -> Any:
    """Return the trajectories of a source of real data."""
    if source == "geolife":
        return md.data.read_plt(DATA / "geolife_trackintel" / "geolife_long_10_MB")
    path = DATA / {"foursquare": "foursquare_nyc_marc/specific_train.csv", "gowalla": "gowalla_marc/train.csv"}[source]
    return md.data.read_checkins(path, user="label", latitude="lat", longitude="lon", trace="tid")


def count_steps(source: str, shape: Any, box: Sequence[float], every: int | None, chain: Any) -> dict[str, Any]:
    """Return the visits of real people in a grid, and chains and priors that are counted in them."""
    south, north, west, east = box
    domain = md.Domain.geographic_grid(*shape, south=south, north=north, west=west, east=east)
    traces = read_people(source)
    if every:
        traces, _ = md.data.resample(traces, md.data.Sampling(every=every))
    visits = md.data.to_grid(traces, domain)
    found = md.leakage.correlations_from_traces(visits, domain.size, **chain)
    return {
        "visits": [visits.inside, visits.outside, len(visits.cells), visits.counts()],
        "first": visits.cells[0],
        "prior": md.Prior.from_counts(visits.counts(), 0.5).probabilities,
        "states": found.states,
        "steps": [found.steps, found.leaving, len(found.never_left), len(found.never_entered)],
        "initial": found.initial.probabilities,
        "chains": [found.forward.matrix, found.backward.matrix],
    }


def answer(query: str, setting: Any, data: Any, policy: Any, budget: Mapping[str, float]) -> dict[str, Any]:
    """Return the answers of a seeded release of a table."""
    made = make_policy(*policy)
    if query == "marginals":
        asked = md.tables.marginals(made.domain, setting).using("auto")
    else:
        asked = getattr(md.tables, query)(**setting)
    release = asked.release(data, made, **budget, rng=1)
    return {"answers": release.answers, "errors": release.standard_errors}


def walk(states: Sequence[int], epsilon: float, mechanism: str) -> dict[str, Any]:
    """Return the outputs of a seeded trace in a city of 4 × 4 cells, and what an observer then believes."""
    city = md.Domain.grid(4, 4, 4.0, 4.0)
    chain, prior = md.leakage.smooth(np.eye(16), 0.05), np.full(16, 1 / 16)
    trace = md.traces.Trace(city, md.graphs.blocks(city, 2), epsilon, chain, prior, mechanism, rng=1)
    found = [trace.step(state) for state in states]
    return {"outputs": [each.coordinates for each in found], "beliefs": [each.posterior for each in found]}


# ---------------------------------------------------------------------------------------------------------------------
# Inputs: each case is a name, a function and its arguments


def solves() -> Iterator[tuple[Any, ...]]:
    """Yield the solves of `record_solves.py` whose packages are installed, but those that Ctrl-C ends."""
    for case in record_solves.cases():
        if case.group != "stopped" and all(map(importlib.util.find_spec, case.needs)):
            yield case.name, solve, case


def solve(case: record_solves.Case) -> dict[str, Any]:
    """Return a cost, its lower bound, and, of a design, what its requirements realise."""
    found = case.run()
    return {"cost": found["upper"], "bound": found["lower"], "epsilon": found.get("realised"), "holds": found["holds"]}


def leakages() -> Iterator[tuple[Any, ...]]:
    """Yield 40 pairs of chains of four shapes; four of them also have costs."""
    for seed in range(40):
        rng, size = np.random.default_rng(seed), 2 + seed % 9
        shapes = {
            "dense": rng.dirichlet(np.ones(size), size),
            "staying": 0.9 * np.eye(size) + 0.1 * rng.dirichlet(np.ones(size), size),
            "sparse": np.eye(size) / 2 + np.roll(np.eye(size), 1, axis=1) / 2,
            "uneven": rng.dirichlet(np.full(size, 0.2), size) * 0.95 + 0.05 / size,
        }
        shape = list(shapes)[seed % 4]
        backward, forward = shapes[shape], rng.dirichlet(np.ones(size), size)
        budgets = rng.uniform(0, 0.5, 5 + seed % 20)
        yield f"{seed} {shape}", leak, budgets, backward, forward, 0.5 + seed % 3
        if seed < 4:
            curves = [([0, 0.5, 1, 2], weight * np.array([3, 1.5, 0.8, 0.3])) for weight in rng.uniform(0.1, 1, 6)]
            yield f"{seed} least cost", spend_least, 1.0, curves, backward, forward


def sensitivities() -> Iterator[tuple[Any, ...]]:
    """Yield 40 policies of six kinds, some with known counts or unbounded, and queries under each."""
    people = {"age": range(0, 60, 5), "sex": ["f", "m"], "score": [0, 1, 3]}
    heights = {"height": [0, 1, 4, 5, 9, 10, 11, 20]}
    for seed in range(40):
        rng, kind = np.random.default_rng(seed), ("thetas", "line", "threshold", "full", "partition", "graph")[seed % 6]
        attributes: Any = heights if kind in ("line", "threshold") or seed % 12 in (3, 10) else people
        size = math.prod(map(len, attributes.values()))
        settings: Any = {
            "thetas": {"age": [5, 10, None][seed // 6 % 3], "sex": None, "score": [1, 2, None][seed // 18]},
            "threshold": int(rng.integers(1, 12)),
            "partition": rng.integers(0, 4, size),
            "graph": nx.gnm_random_graph(size, size, seed=seed),
        }
        counts: Any = [(rng.random(size) < 0.3, None)] if seed >= 30 and kind != "thetas" else ()
        policy = attributes, kind, settings.get(kind), counts, seed % 5 == 4 and kind != "thetas"
        queries = [
            ("histogram", {}),
            ("histogram", {"partition": rng.integers(0, 3, size)}),
            (rng.integers(-3, 4, (3, size)), {}),
            *(("sum", {"attribute": name}) for name in attributes if name != "sex"),
            *([("cumulative", {})] if attributes is heights else []),
        ]
        yield f"{seed} {kind}", bound_changes, policy, queries


def exposures() -> Iterator[tuple[Any, ...]]:
    """Yield 20 policy graphs on random places, and three repairs of each."""
    for seed in range(20):
        rng, size = np.random.default_rng(seed), 6 + seed % 5
        points = rng.uniform(0, 4, (size, 2)).round(3)
        graph = nx.gnm_random_graph(size, size // 2 + seed % 4, seed=seed)
        yield f"{seed} exposed", expose, points, graph
        for method in ("area", "nearest", "exhaustive") if size < 8 else ("area", "nearest"):
            yield f"{seed} {method}", mend, points, graph, method


def chains() -> Iterator[tuple[Any, ...]]:
    """Yield 20 readings of real data: three sources, several grids, steps and treatments of ends."""
    boxes = {
        "geolife": (39.7, 40.2, 116.0, 116.8),
        "foursquare": (40.55, 40.99, -74.05, -73.7),
        "gowalla": (30.1, 30.6, -98.0, -97.5),
    }
    chain = ({"ends": "stay"}, {"smoothing": 0.01}, {"ends": "any"}, {"border": "state", "ends": "stay"})
    for number in range(20):
        source, shape = list(boxes)[number % 3], (3 + number % 4, 4 + number % 3)
        every = 300 if source == "geolife" and number % 2 else None
        yield f"{number} {source}", count_steps, source, shape, boxes[source], every, chain[number % 4]


def releases() -> Iterator[tuple[Any, ...]]:
    """Yield five seeded releases of the real table, and two of traces."""
    with (DATA / "uci" / "adult.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["age"]) <= 90][:5000]
    ages: Any = {"age": [int(row["age"]) for row in rows]}
    both = ages | {"sex": [row["sex"] for row in rows]}
    values: Any = {"age": range(17, 91), "sex": ["Male", "Female"]}
    for query, setting, data, policy, budget in (
        ("Histogram", {}, both, ("thetas", {"age": 5, "sex": None}), {"epsilon": 1}),
        ("Sum", {"attribute": "age"}, ages, ("threshold", 10), {"epsilon": 0.5}),
        ("Cumulative", {}, ages, ("line",), {"epsilon": 0.5}),
        ("marginals", 1, both, ("full",), {"rho": 0.5}),
        ("KMeans", {"k": 3, "iterations": 4}, ages, ("threshold", 20), {"epsilon": 2}),
    ):
        yield query, answer, query, setting, data, ({name: values[name] for name in data}, *policy), budget
    for mechanism in ("planar-isotropic", "lp"):
        yield f"trace {mechanism}", walk, (5, 6, 6, 10), 1.0, mechanism


# ---------------------------------------------------------------------------------------------------------------------
# Recording and comparing


def record(parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Return the numbers by name, in the form of JSON."""
    numbers: dict[str, Any] = {}
    for part in parts:
        spent = time.process_time()
        cases = list(globals()[part]())[:: QUICK if quick else 1]
        for name, call, *arguments in cases:
            try:
                numbers[f"{part}: {name}"] = json.loads(json.dumps(call(*arguments), default=plain))
            except md.errors.MechdesignError as error:
                numbers[f"{part}: {name}"] = f"{type(error).__name__}: {error}"
        print(f"{part}: {len(cases)} cases, {time.process_time() - spent:.0f} processor seconds", flush=True)
    return numbers


def plain(value: Any) -> Any:
    """Return an array, a fraction or a number of NumPy as JSON holds it."""
    return value.tolist() if hasattr(value, "tolist") else float(value)


def differences(before: Any, after: Any, place: str, gap: float = RELATIVE) -> Iterator[str]:
    """Yield the places where two values differ by more than a relative gap, or by more than the gaps of two costs."""
    if isinstance(before, dict) and isinstance(after, dict):
        gaps = [abs(1 - each["bound"] / each["cost"]) for each in (before, after) if each.get("cost")]
        if len(gaps) == 2 and gaps[1] > 2 * gaps[0] + 1e-8:
            yield f"{place}: gap {gaps[0]:.2g} and {gaps[1]:.2g}"
        for name in dict.fromkeys([*before, *after]):
            allowed = sum(gaps, RELATIVE) if name in ("cost", "bound", "epsilon") else RELATIVE
            yield from differences(before.get(name), after.get(name), f"{place}, {name}", allowed)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{place} {index}", gap)
    elif before != after:
        numbers = isinstance(before, int | float) and isinstance(after, int | float)
        if not (numbers and math.isclose(before, after, rel_tol=gap)):
            yield f"{place}: {str(before)[:60]} and {str(after)[:60]}"


def main() -> int:
    """Read the command line."""
    given = options(__doc__, store=Path, against=Path, parts=[PARTS], quick=False, gone=[])
    warnings.simplefilter("ignore")
    numbers = record(given.parts, given.quick)
    if given.store:
        write(given.store, {"origin": origin(), "numbers": numbers})
    if not given.against:
        return 0
    before = json.loads(given.against.read_text(encoding="utf-8"))["numbers"]
    wanted = [] if given.quick else [name for name in before if name.split(":")[0] in given.parts]
    missing = [name for name in wanted if name not in numbers]
    found = [line for name in numbers for line in differences(before.get(name), numbers[name], name)]
    print(*found, *(f"{name}: missing" for name in missing), sep="\n")
    print(f"{len(numbers)} records: {len(found)} numbers differ, {len(missing)} records are missing")
    return 1 if found or any(not any(text in name for text in given.gone) for name in missing) else 0


if __name__ == "__main__":
    sys.exit(main())
