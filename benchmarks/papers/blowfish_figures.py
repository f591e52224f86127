"""The gain from policies on real databases: the k-means and range figures of Blowfish (He et al. 2014).

    python benchmarks/papers/blowfish_figures.py [--quick] [--data FOLDER] [--output FOLDER]

- Figures 1(a) to 1(d) show SuLQ k-means with 4 clusters and 10 iterations. The objective (squared distance to the
  nearest centroid) is relative to scikit-learn's k-means (the best of 10 starts). The pictures show mean and
  quartiles over repetitions. Figure 1(a) uses check-ins in the western USA on a grid of 0.05 degrees. Figures 1(b) and
  1(c) use 1 % of UCI Skin Segmentation, and 1,000 simulated points in four dimensions. Figure 1(d) uses Skin
  Segmentation, complete and sampled. The full policy is differential privacy. Lemma 6.1 of the paper uses 2θ as the
  sensitivity of the sums, which is not private. If an edge crosses the border between two clusters, the sums change by
  the distances of both ends from the reference point. Therefore each policy is shown twice: with the correct
  sensitivity, and with the lemma's sensitivity, as in the paper.
- Figures 2(b) and 2(c) show the mean squared error of random ranges by the ordered hierarchical mechanism against ε,
  for several θ. The data are the capital losses of UCI Adult and the latitudes of the check-ins. Errors before and
  after isotonic regression are compared with the planned error and the formula of Theorem 7.2.
- The last picture shows measured and planned errors of the ordered, the ordered hierarchical and the hierarchical
  mechanism against θ at ε = 1.

MECHDESIGN_DATA names the folder of the data, which contains `uci` and `gowalla_marc`. Only k-means needs scikit-learn
(`pip install scikit-learn`).
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from mechdesign.report._style import headline, in_report_style, new_figure
from mechdesign.tables._domain import Domain
from mechdesign.tables._policy import Policy
from mechdesign.tables._queries._cumulative import ordered, ordered_hierarchical
from mechdesign.tables._queries._kmeans import kmeans
from mechdesign.tables._queries._trees import budget_split, ordered_error, plan_ranges

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Clusterings = dict[tuple[str, float], Floats]
Policies = dict[str, tuple[Policy, float]]

EPSILONS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
CLUSTERS, ITERATIONS = 4, 10
STEP = 0.05
WEST = {"south": 30.0, "north": 49.95, "west": -125.0, "east": -110.05}
KM_PER_DEGREE = 111.2
LEMMA = ", by Lemma 6.1"
DP = "differential privacy"
STYLES = ("#D55E00", "#0b5cad", "#009E73", "#CC79A7", "#1b1f24", "#E69F00", "#56B4E9")


def checkins(folder: Path) -> Floats:
    """Return latitude and longitude of the check-ins in the box, (n, 2)."""
    places = []
    for name in ("train.csv", "test.csv"):
        with (folder / "gowalla_marc" / name).open(encoding="utf-8", newline="") as lines:
            places += [(float(line["lat"]), float(line["lon"])) for line in csv.DictReader(lines)]
    found = np.array(places)
    low, high = np.array([WEST["south"], WEST["west"]]), np.array([WEST["north"], WEST["east"]])
    return found[((found >= low) & (found <= high)).all(axis=1)]


def skin(folder: Path) -> Integers:
    """Return the colours of the pixels, (n, 3), each from 0 to 255."""
    return np.loadtxt(folder / "uci" / "Skin_NonSkin.txt", delimiter=",", skiprows=1, dtype=np.int64, usecols=(0, 1, 2))


def capital_losses(folder: Path) -> Integers:
    """Return, for each amount of dollars, the number of people with this capital loss, (4357,)."""
    with (folder / "uci" / "adult.csv").open(encoding="utf-8", newline="") as lines:
        losses = [int(line["capital-loss"]) for line in csv.DictReader(lines)]
    return np.bincount(losses, minlength=4357)


def on_grid(domain: Domain, numbers: Integers) -> Integers:
    """Return the index of each record's value in the domain, given the indices (n, d) of its attributes' values."""
    return np.ravel_multi_index(tuple(numbers.T), domain.shape)


def objective(points: Floats, weights: Integers, centroids: Floats) -> float:
    """Return the sum of squared distances to the nearest centroid."""
    least = np.full(len(points), np.inf)
    for centroid in centroids:
        np.minimum(least, ((points - centroid) ** 2).sum(axis=1), out=least)
    return float((least * weights).sum())


def reference(points: Floats) -> float:
    """Return the objective of scikit-learn's k-means."""
    try:
        from sklearn.cluster import KMeans
    except ImportError:
        sys.exit("k-means is compared with scikit-learn's: pip install scikit-learn")
    return float(KMeans(CLUSTERS, n_init=10, random_state=0).fit(points).inertia_)


def by_the_lemma(
    points: Floats, weights: Integers, ends: Floats, theta: float, epsilon: float, rng: np.random.Generator
) -> Floats:
    """Return the centroids of SuLQ k-means with the sensitivity 2θ of Lemma 6.1; **this is not private**."""
    # Sums are relative to the middle of the box, as in the package, so that only the sensitivity differs.
    middle = ends.mean(axis=0)
    points, ends = points - middle, ends - middle
    centroids = rng.uniform(*ends, (CLUSTERS, points.shape[1]))
    share = epsilon / ITERATIONS / 2
    for _ in range(ITERATIONS):
        apart = ((points[:, None, :] - centroids) ** 2).sum(axis=2)
        members = (np.argmin(apart, axis=1)[:, None] == np.arange(CLUSTERS)) * weights[:, None]
        # If θ is 0, the policy protects nothing, so the sizes of the clusters get no noise.
        sizes = members.sum(axis=0) + rng.laplace(0, 2 * (theta > 0) / share, CLUSTERS)
        sums = members.T @ points + rng.laplace(0, 2 * theta / share, centroids.shape)
        means = np.clip(sums / np.maximum(sizes, 1)[:, None], *ends)
        centroids = np.where(sizes[:, None] >= 1, means, centroids)
    return centroids + middle


def cluster(
    domain: Domain, records: Integers, policies: Policies, epsilons: Iterable[float], repeats: int
) -> Clusterings:
    """Return the objective of each repetition as a multiple of the reference, by policy and ε."""
    axes = [np.array([float(value) for value in attribute.values]) for attribute in domain.attributes]
    values, weights = np.unique(records, return_counts=True)
    codes = np.unravel_index(values, domain.shape)
    points = np.column_stack([axis[code] for axis, code in zip(axes, codes, strict=True)])
    best = reference(np.repeat(points, weights, axis=0))
    rng = np.random.default_rng(1)
    ends = np.array([[axis[0] for axis in axes], [axis[-1] for axis in axes]])
    found: Clusterings = {}
    for name, (policy, theta) in policies.items():
        for epsilon in epsilons:
            held = (
                kmeans(
                    None, CLUSTERS, policy, epsilon=epsilon, iterations=ITERATIONS, rng=rng, positions=records
                ).centroids
                for _ in range(repeats)
            )
            stated = (by_the_lemma(points, weights, ends, theta, epsilon, rng) for _ in range(repeats))
            for key, made in ((name, held), (f"{name}{LEMMA}", stated)):
                found[key, epsilon] = np.array([objective(points, weights, each) / best for each in made])
    return found


def thresholds(domain: Domain, thetas: Mapping[str, float]) -> Policies:
    """Return policies by name, each with its θ: the full policy (differential privacy) and threshold policies."""
    diameter = sum(float(attribute.values[-1]) - float(attribute.values[0]) for attribute in domain.attributes)
    return {DP: (Policy.full(domain), diameter)} | {
        name: (Policy.threshold(domain, theta), theta) for name, theta in thetas.items()
    }


def clustering_figures(folder: Path, quick: bool) -> dict[str, tuple[str, Clusterings]]:
    """Return title and objectives of each of Figures 1(a) to 1(c), by the name of the figure."""
    repeats, epsilons = (5, (0.1, 0.4, 1.0)) if quick else (50, EPSILONS)
    found = {}
    rng = np.random.default_rng(2014)

    places = checkins(folder)
    grid = Domain({"latitude": _steps(WEST["south"], 400), "longitude": _steps(WEST["west"], 300)})
    corner = np.array([WEST["south"], WEST["west"]])
    records = on_grid(grid, np.rint((places - corner) / STEP).astype(np.int64))
    kilometres = {f"θ = {km} km": round(km / KM_PER_DEGREE / STEP) * STEP for km in (1000, 500, 100)}
    policies = thresholds(grid, {name: round(theta, 2) for name, theta in kilometres.items()})
    title = f"Figure 1(a), with {len(records):,} check-ins"
    found["figure-1a"] = (title, cluster(grid, records, policies, epsilons, repeats))

    colours = Domain(dict.fromkeys("bgr", range(256)))
    pixels = skin(folder)
    sample = on_grid(colours, rng.permutation(pixels)[: len(pixels) // 100])
    policies = thresholds(colours, {f"θ = {theta}": theta for theta in (256, 128, 64, 32)})
    title = f"Figure 1(b): {len(sample):,} pixels of Skin Segmentation"
    found["figure-1b"] = (title, cluster(colours, sample, policies, epsilons, repeats))

    hundredths = [round(step / 100, 2) for step in range(101)]
    cube = Domain(dict.fromkeys("wxyz", hundredths))
    centres = rng.uniform(size=(CLUSTERS, 4))
    points = np.clip(centres[rng.integers(CLUSTERS, size=1000)] + rng.normal(0, 0.2, (1000, 4)), 0, 1)
    policies = thresholds(cube, {f"θ = {theta}": theta for theta in (1.0, 0.5, 0.25, 0.1)})
    records = on_grid(cube, np.rint(points * 100).astype(np.int64))
    found["figure-1c"] = ("Figure 1(c): 1,000 simulated points", cluster(cube, records, policies, epsilons, repeats))
    return found


def size_figure(folder: Path, quick: bool) -> Clusterings:
    """Return the objectives of Figure 1(d), by size of the data and policy."""
    repeats, epsilons = (3, (0.1, 1.0)) if quick else (50, EPSILONS)
    colours = Domain(dict.fromkeys("bgr", range(256)))
    pixels = np.random.default_rng(2014).permutation(skin(folder))
    policies = thresholds(colours, {"θ = 128": 128})
    found: Clusterings = {}
    for name, part in (("1 %", 100), ("10 %", 10), ("all", 1)):
        made = cluster(colours, on_grid(colours, pixels[: len(pixels) // part]), policies, epsilons, repeats)
        found |= {(f"{name}|{policy}", epsilon): values for (policy, epsilon), values in made.items()}
    return found


def range_errors(
    counts: Integers, thetas: Mapping[str, int], epsilons: Iterable[float], repeats: int, queries: int
) -> dict[tuple[str, float], tuple[float, float, float, float]]:
    """Return four mean squared errors of random ranges: before and after inference, planned, and by formula."""
    size = len(counts)
    rng = np.random.default_rng(7)
    low, high = np.sort(rng.integers(0, size, (2, queries)), axis=0)
    truth = _ranges(np.cumsum(counts).astype(np.float64), low, high)
    found = {}
    for name, theta in thetas.items():
        for epsilon in epsilons:
            plan = plan_ranges(size, theta, epsilon)
            errors = []
            for _ in range(repeats):
                release = ordered_hierarchical(counts, theta, epsilon, fanout=plan.fanout, rng=rng)
                errors.append(
                    [((_ranges(f, low, high) - truth) ** 2).mean() for f in (release.linear, release.answers)]
                )
            before, after = np.mean(errors, axis=0)
            formula = budget_split(size, theta, plan.fanout, epsilon=epsilon)[2]
            found[name, epsilon] = (float(before), float(after), plan.error, formula)
    return found


def against_theta(counts: Integers, thetas: Sequence[int], repeats: int) -> dict[str, list[float]]:
    """Return planned and measured mean squared errors of random ranges at ε = 1, by mechanism and θ."""
    size, rng = len(counts), np.random.default_rng(8)
    low, high = np.sort(rng.integers(0, size, (2, 3000)), axis=0)
    truth = _ranges(np.cumsum(counts).astype(np.float64), low, high)
    rows: dict[str, list[float]] = {}
    for theta in thetas:
        plan = plan_ranges(size, theta, 1)
        rows.setdefault("ordered, planned", []).append(ordered_error(size, theta, 1))
        rows.setdefault("ordered hierarchical, planned", []).append(plan.error)
        rows.setdefault("hierarchical, planned", []).append(plan_ranges(size, size, 1).error)
        for name, make in (
            ("ordered", lambda theta=theta: ordered(counts, theta, 1, rng=rng)),
            (
                "ordered hierarchical",
                lambda plan=plan: ordered_hierarchical(counts, plan.theta, 1, fanout=plan.fanout, rng=rng),
            ),
        ):
            made = [make() for _ in range(repeats)]
            for what, column in (("measured", "linear"), ("after inference", "answers")):
                errors = [((_ranges(getattr(release, column), low, high) - truth) ** 2).mean() for release in made]
                rows.setdefault(f"{name}, {what}", []).append(float(np.mean(errors)))
    return rows


@in_report_style
def clustering_picture(found: Clusterings, title: str) -> Figure:
    """Draw means and quartiles of objectives against ε, with a line for each policy."""
    figure = new_figure(6.4, 4.0)
    axes = figure.subplots()
    for name, colour in zip([each for each in _names(found) if LEMMA not in each], STYLES, strict=False):
        for key, style in ((name, "-"), (name + LEMMA, ":")):
            epsilons = [epsilon for policy, epsilon in found if policy == key]
            values = [found[key, epsilon] for epsilon in epsilons]
            middle = np.array([each.mean() for each in values])
            label = name if style == "-" else None
            axes.plot(epsilons, middle, style, color=colour, marker="o", markersize=3.5, linewidth=1.3, label=label)
            if style == "-":
                ends = np.array([np.quantile(each, (0.25, 0.75)) for each in values]).T
                axes.vlines(epsilons, *ends, color=colour, linewidth=1, alpha=0.6)
    axes.plot([], [], ":", color="#59636e", linewidth=1.3, label="by Lemma 6.1: not private")
    axes.axhline(1, color="#59636e", linewidth=0.8)
    _log(axes.yaxis)
    axes.set_xlabel("ε")
    axes.set_ylabel("objective / that of k-means without privacy")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=8.5, ncols=3)
    headline(figure, title)
    return figure


@in_report_style
def size_picture(found: Clusterings) -> Figure:
    """Draw the objective under differential privacy as a multiple of the policy's, by size of the data."""
    figure = new_figure(6.4, 3.8)
    axes = figure.subplots()
    for size, colour in zip(("1 %", "10 %", "all"), STYLES, strict=False):
        epsilons = [epsilon for name, epsilon in found if name == f"{size}|θ = 128"]
        means = {
            name: np.array([found[f"{size}|{name}", epsilon].mean() for epsilon in epsilons])
            for name in (DP, "θ = 128", DP + LEMMA, "θ = 128" + LEMMA)
        }
        ratios, stated = means[DP] / means["θ = 128"], means[DP + LEMMA] / means["θ = 128" + LEMMA]
        axes.plot(epsilons, stated, ":", color=colour, marker="o", markersize=3.5, linewidth=1.3)
        axes.plot(
            epsilons, ratios, color=colour, marker="o", markersize=3.5, linewidth=1.3, label=f"{size} of the pixels"
        )
    axes.plot([], [], ":", color="#59636e", linewidth=1.3, label="by Lemma 6.1: not private")
    axes.axhline(1, color="#59636e", linewidth=0.8)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("ε")
    axes.set_ylabel("objective, differential privacy / θ = 128")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=8.5, ncols=3)
    headline(figure, "Figure 1(d): Skin Segmentation, gain from the policy against the size of the data")
    return figure


@in_report_style
def ranges_picture(found: Mapping[tuple[str, float], tuple[float, ...]], title: str) -> Figure:
    """Draw errors of ranges against ε: planned (lines), before inference (dots), after inference (crosses)."""
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    for name, colour in zip(_names(found), STYLES, strict=False):
        epsilons = [epsilon for policy, epsilon in found if policy == name]
        before, after, planned, _ = np.array([found[name, epsilon] for epsilon in epsilons]).T
        axes.plot(epsilons, planned, color=colour, linewidth=1.2, label=name)
        axes.plot(epsilons, before, "o", color=colour, markersize=4, markerfacecolor="none")
        axes.plot(epsilons, after, "x", color=colour, markersize=4.5)
    _log(axes.yaxis)
    axes.set_xlabel("ε")
    axes.set_ylabel("mean squared error of a range")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=8.5, ncols=4)
    headline(figure, f"{title}: planned (lines), measured (rings), after isotonic regression (crosses)")
    return figure


@in_report_style
def theta_picture(rows: Mapping[str, Sequence[float]], thetas: Sequence[int], size: int) -> Figure:
    """Draw errors of ranges against θ."""
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    colours = {"ordered": STYLES[0], "ordered hierarchical": STYLES[1], "hierarchical": STYLES[4]}
    for name, values in rows.items():
        mechanism, what = name.split(", ")
        style = {"planned": "-", "measured": "o", "after inference": "x"}[what]
        axes.plot(
            thetas,
            values,
            style,
            color=colours[mechanism],
            markersize=4.5,
            markerfacecolor="none",
            linewidth=1.2,
            label=name,
        )
    _log(axes.xaxis)
    _log(axes.yaxis)
    axes.set_xlabel("θ")
    axes.set_ylabel("mean squared error of a range, ε = 1")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", fontsize=8.5, ncols=2)
    headline(figure, f"Ranges of {size:,} values: the weaker the policy, the smaller the error")
    return figure


def clustering_table(found: Clusterings, title: str) -> Table:
    table = Table(title=f"{title}: mean objective (quartiles) as a multiple of k-means without privacy")
    epsilons = sorted({epsilon for _, epsilon in found})
    table.add_column("policy")
    for epsilon in epsilons:
        table.add_column(f"ε = {epsilon}", justify="right")
    for name in _names(found):
        cells = []
        for epsilon in epsilons:
            low, high = np.quantile(found[name, epsilon], (0.25, 0.75))
            cells.append(f"{found[name, epsilon].mean():.2f} ({low:.2f}, {high:.2f})")
        table.add_row(name.replace("|", ", "), *cells)
    return table


def ranges_table(found: Mapping[tuple[str, float], tuple[float, ...]], title: str) -> Table:
    table = Table(title=f"{title}: mean squared error of a range")
    for heading in ("policy", "ε", "linear", "inferred", "planned", "formula", "linear / planned"):
        table.add_column(heading, justify="left" if heading == "policy" else "right")
    for (name, epsilon), (before, after, planned, formula) in found.items():
        cells = [f"{value:,.4g}" for value in (before, after, planned, formula)]
        table.add_row(name, str(epsilon), *cells, f"{before / planned:.3f}")
    return table


def theta_table(rows: Mapping[str, Sequence[float]], thetas: Sequence[int]) -> Table:
    table = Table(title="Mean squared error of a range at ε = 1, by θ")
    for heading in ("θ", *rows):
        table.add_column(heading, justify="right")
    for theta, *values in zip(thetas, *rows.values(), strict=True):
        table.add_row(str(theta), *(f"{value:,.4g}" for value in values))
    return table


def _log(axis: XAxis | YAxis) -> None:
    """Make an axis logarithmic, with ticks at 1, 2 and 5 times powers of ten if the axis spans few powers."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = axis.get_data_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 200 else (1,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _names(found: Iterable[tuple[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for name, _ in found))


def _ranges(cumulative: Floats, low: Integers, high: Integers) -> Floats:
    sums = np.concatenate([[0.0], cumulative])
    return sums[high + 1] - sums[low]


def _steps(start: float, count: int) -> list[float]:
    return [round(start + STEP * step, 2) for step in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions and budgets")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("MECHDESIGN_DATA", "shared/data")))
    parser.add_argument("--output", type=Path, default=Path("blowfish-figures"), help="folder for the pictures")
    options = parser.parse_args()
    if not (options.data / "uci").is_dir():
        sys.exit(f"no folder uci in {options.data}: set MECHDESIGN_DATA, or say --data FOLDER")
    options.output.mkdir(parents=True, exist_ok=True)
    console = Console(width=170)
    quick = options.quick

    def show(name: str, table: Table, picture: Figure) -> None:
        console.print(table)
        picture.savefig(options.output / f"{name}.png", dpi=130)

    repeats, epsilons, queries = (10, (0.1, 1.0), 1000) if quick else (50, EPSILONS, 10_000)
    losses = capital_losses(options.data)
    latitudes = np.bincount(np.rint((checkins(options.data)[:, 0] - WEST["south"]) / STEP).astype(int), minlength=400)
    loss_thetas = {DP: len(losses)} | {f"θ = {theta}": theta for theta in (1000, 500, 100, 50, 10, 1)}
    kilometres = {f"θ = {km} km": round(km / KM_PER_DEGREE / STEP) for km in (500, 50)} | {"θ = 5.6 km": 1}
    for name, title, counts, thetas in (
        ("figure-2b", "Figure 2(b), capital losses", losses, loss_thetas),
        ("figure-2c", "Figure 2(c), latitudes of check-ins", latitudes, {DP: 400} | kilometres),
    ):
        errors = range_errors(counts, thetas, epsilons, repeats, queries)
        show(name, ranges_table(errors, title), ranges_picture(errors, title))
    thetas = (1, 4, 16, 64, 256, 1024, 4096) if quick else (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    rows = against_theta(losses, thetas, repeats)
    show("ranges-by-theta", theta_table(rows, thetas), theta_picture(rows, thetas, len(losses)))
    for name, (title, found) in clustering_figures(options.data, quick).items():
        show(name, clustering_table(found, title), clustering_picture(found, title))
    sizes = size_figure(options.data, quick)
    show("figure-1d", clustering_table(sizes, "Figure 1(d), Skin Segmentation"), size_picture(sizes))


if __name__ == "__main__":
    main()
