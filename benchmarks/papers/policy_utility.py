"""Compare the errors of the papers' mechanisms and of the LP channel under policy graphs, on real check-ins.

    python benchmarks/papers/policy_utility.py [--data FOLDER] [--output FOLDER] [--side 20]

The pictures extend Figures 6 and 7 of PGLP by more lines. Check-ins of Foursquare users in New York (the folder
`foursquare_nyc_marc`) are counted in side × side cells of Manhattan. The policies are those of PGLP: G_k9, G_k16 and
G_k25 join the cells of blocks of 3 × 3, 4 × 4 and 5 × 5. G_poi joins cells of the same category within 6 × 6 cells; the
category of a cell is the most frequent category of its check-ins. All mechanisms have the same graph, prior, ε and
answers (all cells of the map), and are certified. The "block" mechanisms only answer with cells of the secret's
component. The errors E_eu (in km), E_r (for regions of 5 × 5 cells) and E_poi (for categories) are exact expectations,
not samples. The LP channel minimises E_eu; a run stops if another mechanism has a smaller E_eu.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import mechdesign as md
from mechdesign.measures import _utility as metrics
from mechdesign.report._style import headline, in_report_style, new_figure

EPSILONS = (0.5, 1.0, 2.0)
MECHANISMS = ("P-LM", "P-PIM", "P-PIM, block", "LP", "LP, block")
MEASURES = ("E_eu", "E_r", "E_poi")
BOX = {"south": 40.70, "north": 40.80, "west": -74.02, "east": -73.92}
Errors = dict[tuple[str, float, str], tuple[float, ...]]


def categories(folder: Path, domain: md.Domain) -> list[str]:
    """Return the category of each cell: the most frequent category of its check-ins, or "none" without check-ins."""
    counts: list[Counter[str]] = [Counter() for _ in range(domain.size)]
    cells = domain.cells
    with (folder / "specific_train.csv").open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            up = (float(line["lat"]) - BOX["south"]) / (BOX["north"] - BOX["south"])
            right = (float(line["lon"]) - BOX["west"]) / (BOX["east"] - BOX["west"])
            if 0 <= up < 1 and 0 <= right < 1:
                counts[int(up * cells.rows) * cells.columns + int(right * cells.columns)][line["category"]] += 1
    return [min(count, key=lambda name: (-count[name], name)) if count else "none" for count in counts]


def within_components(domain: md.Domain, graph: nx.Graph, epsilon: float) -> NDArray[np.float64]:
    """Return the matrix of P-PIM with outputs snapped to the nearest cell of the secret's own component."""
    matrix = np.zeros((domain.size, domain.size))
    for component in md.graphs.components(graph):
        mechanism = md.mechanisms.PlanarIsotropic(epsilon, domain, graph.subgraph(component))
        matrix[np.ix_(component, component)] = mechanism.channel(domain.points[component]).matrix
    return matrix


def channels(
    domain: md.Domain, graph: nx.Graph, epsilon: float, prior: md.Prior
) -> dict[str, md.Channel | NDArray[np.float64]]:
    """Return the channel of each mechanism; rows and columns are the cells of the map."""
    shared = {"graph": graph, "epsilon": epsilon, "prior": prior, "isolated": "release"}
    # Random graphs have isolated cells, as in the paper; these cells are revealed.
    with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
        optimal = {
            name: md.design(md.graphs.problem(domain, within=within, **shared), tolerance=1e-6).channel
            for name, within in (("LP", "map"), ("LP, block", "component"))
        }
    return {
        "P-LM": md.mechanisms.Laplace(epsilon, domain, graph).channel(domain),
        "P-PIM": md.mechanisms.PlanarIsotropic(epsilon, domain, graph).channel(domain),
        "P-PIM, block": within_components(domain, graph, epsilon),
        **optimal,
    }


def measure(domain: md.Domain, labels: list[str], prior: md.Prior, policies: dict[str, nx.Graph]) -> Errors:
    """Return E_eu, E_r and E_poi of every mechanism under every policy and ε."""
    regions = metrics.regions(domain, 5)
    found: Errors = {}
    for policy, graph in policies.items():
        for epsilon in EPSILONS:
            clock = time.perf_counter()
            for name, channel in channels(domain, graph, epsilon, prior).items():
                found[policy, epsilon, name] = (
                    metrics.euclidean_error(channel, prior, domain),
                    metrics.mismatch_error(channel, prior, regions),
                    metrics.mismatch_error(channel, prior, labels),
                )
            best = found[policy, epsilon, "LP"][0]
            for name in MECHANISMS:
                if found[policy, epsilon, name][0] < best * (1 - 1e-6):
                    raise SystemExit(f"{name} beats the LP channel under {policy} at ε = {epsilon}: that is a bug")
            print(f"{policy}, ε = {epsilon}: {time.perf_counter() - clock:.1f} s", flush=True)
    return found


def show(found: Errors, policies: dict[str, nx.Graph]) -> None:
    """Print a table."""
    table = Table("policy", "ε", *(f"{measure} {name}" for measure in MEASURES for name in MECHANISMS))
    for policy in policies:
        for epsilon in EPSILONS:
            numbers = (found[policy, epsilon, name][index] for index in range(3) for name in MECHANISMS)
            table.add_row(policy, str(epsilon), *(f"{number:.3f}" for number in numbers))
    Console(width=200).print(table)


@in_report_style
def picture(found: Errors, policies: dict[str, nx.Graph]) -> Figure:
    """Draw the errors against ε, a row for each measure and a column for each policy."""
    figure = new_figure(9.0, 6.0)
    axes = figure.subplots(3, len(policies), sharex=True, sharey="row")
    colours = ("#9a6700", "#1a7f37", "#1a7f37", "#0b5cad", "#0b5cad")
    for row, (index, label) in enumerate(
        enumerate(("mean error E_eu (km)", "wrong region E_r", "wrong category E_poi"))
    ):
        for panel, policy in zip(axes[row], policies, strict=True):
            for name, colour in zip(MECHANISMS, colours, strict=True):
                values = [found[policy, epsilon, name][index] for epsilon in EPSILONS]
                panel.plot(
                    EPSILONS, values, color=colour, marker="o", ms=4, ls=":" if "block" in name else "-", label=name
                )
            panel.set_xscale("log", base=2)
            panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            panel.grid(axis="y")
            if row == 0:
                panel.set_title(policy)
        axes[row][0].set_ylabel(label)
        axes[row][0].set_ylim(0, 1.05 * max(errors[index] for errors in found.values()))
    for panel in axes[-1]:
        panel.set_xlabel("ε per edge")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(MECHANISMS), fontsize=8.5
    )
    headline(figure, "Under the same policy the LP channel has the least error")
    return figure


def main() -> None:
    """Run the experiment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given = os.environ.get("MECHDESIGN_DATA")
    default = Path(given) if given else Path(__file__).parents[3] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default)
    parser.add_argument("--output", type=Path, default=Path("policy-utility"))
    parser.add_argument("--side", type=int, default=20)
    options = parser.parse_args()
    folder = options.data / "foursquare_nyc_marc"
    domain = md.Domain.geographic_grid(options.side, options.side, *BOX.values())
    traces = md.data.read_checkins(folder / "specific_train.csv", user="label", latitude="lat", longitude="lon")
    counts = md.data.to_grid(traces, domain).counts()
    prior = md.Prior.from_counts(counts, smoothing=1.0)
    labels = categories(folder, domain)
    policies = {f"G_k{k * k}": md.graphs.blocks(domain, k) for k in (3, 4, 5)}
    policies["G_poi"] = md.graphs.categories(labels, metrics.regions(domain, 6).tolist())
    print(f"{int(counts.sum())} check-ins in {domain.size} cells")
    found = measure(domain, labels, prior, policies)
    show(found, policies)
    options.output.mkdir(parents=True, exist_ok=True)
    picture(found, policies).savefig(options.output / "policy_utility.png", dpi=150)
    print(f"picture: {options.output / 'policy_utility.png'}")


if __name__ == "__main__":
    main()
