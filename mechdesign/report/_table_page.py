"""The page and the figures of a release from a table: answers, their errors and intervals, and the budget spent."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import require_kind
from mechdesign.certify._exact import exact_text
from mechdesign.model._words import clip, short
from mechdesign.report._maps import number_axis
from mechdesign.report._page import Picture, Prose, Row, Section, Table, first_rows, page
from mechdesign.report._style import ACCENT, MUTED, SERIES, WIDTH, drawn, ink, report_style
from mechdesign.report._verdicts import describe_errors, judge_table, limit_table, write_count
from mechdesign.tables._files import Published
from mechdesign.tables._queries._cumulative_release import CumulativeRelease, NamedQuantile, NamedRange
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Maximal number of queries that are shown by name, of bars (more are drawn as a line with a band), of points of a line,
# which is finer than the resolution of the figure, and of pairs of attributes.
_NAMED, _BARS, _POINTS, _PAIRS = 30, 150, 2000, 6
# Largest number of values between which steps are drawn; with more values, steps would be invisible.
_STEPS = 400
_FILES = (
    "answers.csv has all answers, release.json all other facts in exact numbers. This page was computed from the "
    "released answers alone, and contains nothing else of the data."
)


@report_style()
def html(publication: Published) -> str:
    """Return the page of a release, which contains nothing else of the data than the answers."""
    release = publication.release
    described, error = release.description, describe_errors(release)
    free = not (described.epsilon or described.rho)
    rows = [
        ("Answers", f"{len(release):,}: {described.what}"),
        ("Policy", described.policy),
        ("Mechanism", described.mechanism if described.mechanism != "none" else "no noise"),
        ("Spent", "nothing" if free else described.spent),
        ("Noise in steps of", exact_text(step) if (step := described.step) > 1e-6 else f"{float(step):.3g}"),
    ]
    definition = [described.definition]
    if described.rho:
        definition.append(
            "For every α above 1, the Rényi divergence of order α between the answers on two neighbouring databases is "
            f"at most α·{short(float(described.rho), 4)}: this is zero-concentrated differential privacy."
        )
    exact, sure = ["The answers are exact."], short(100 * float(described.confidence), 4)
    if error:
        exact = [
            f"The standard error of an answer is {error}; it follows from the noise alone.",
            f"Each interval contains the true answer with a probability of at least {sure}%.",
            "This holds for each interval separately, so that some of many intervals will miss.",
        ]
    sections = [
        *_answers(publication),
        Section("How exact the answers are", [Prose(exact)]),
        Section("What is protected", [Table(rows), Prose(definition)]),
        Section("What this does not promise", [Prose(list(limit_table(release)), "list")]),
        Section("Files", [Prose([_FILES])]),
    ]  # fmt: skip
    title = publication.title if publication.title.strip() else described.what.capitalize()
    return page(title, judge_table(release), sections)


def _answers(publication: Published) -> Iterator[Section]:
    """Yield sections on the answers, each with a figure and its numbers."""
    release, quantiles = publication.release, publication.quantiles
    alone, made = "Intervals are those of each answer separately.", release_figure(release, quantiles)
    if isinstance(release, CumulativeRelease):
        title, said = "The share of records at or below each value", alone + " Dots are quantiles." * bool(quantiles)
        found = [(exact_text(each.probability), each.value, f"{each.low} to {each.high}") for each in quantiles]
        numbers = Table(found, ("Probability", "Value", "Interval")) if quantiles else _all(release, "Value", "Records")
        yield Section("Distribution", [Picture("cdf", title, said, made, numbers)])
        if publication.ranges:
            names = [f"{each.first} to {each.last}" for each in publication.ranges]
            estimates = [each.estimate for each in publication.ranges]
            each_range = [(each.value, each.standard_error, each.low, each.high) for each in estimates]
            made, table = ranges_figure(publication.ranges), _table(("Range", "Records"), names, each_range)
            said = describe_shown("first", len(names), "ranges") + alone
            yield Section("Ranges", [Picture("ranges", "Records in each range", said, made, table)])
    elif isinstance(release, ClusteringRelease):
        pairs = math.comb(len(release.attributes), 2)
        said = f"The first {_PAIRS} of {pairs} pairs of attributes. " * (pairs > _PAIRS)
        said += "Numbers identify the clusters. Sizes are noisy, and may be very inaccurate for small clusters."
        sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
        numbered = enumerate(np.column_stack((sizes, release.centroids)).tolist())
        rows = [(str(number), *map(write_count, cluster)) for number, cluster in numbered]
        table = first_rows(rows, ("Cluster", "Size", *release.attributes))
        yield Section("Clusters", [Picture("clusters", "Centroids", said, made, table)])
    else:
        table = _all(release, "Answer to", "Answer")
        said = describe_shown("largest", len(release), "answers") * _name_lines(release) + alone
        yield Section("Answers", [Picture("intervals", "Answers with their intervals", said, made, table)])


def _all(release: Release, *heads: str) -> Table:
    """Return the table of all answers."""
    numbers = np.column_stack((release.answers, release.standard_errors, release.low, release.high)).tolist()
    return _table(heads, (_name_answer(release, index) for index in range(len(release))), numbers)


def _table(heads: Row, names: Iterable[str], numbers: Iterable[Sequence[float]]) -> Table:
    """Return the table of named values with their standard errors and intervals."""
    rows = [
        (name, write_count(value), write_count(error), f"{write_count(low)} to {write_count(high)}")
        for name, (value, error, low, high) in zip(names, numbers, strict=True)
    ]
    return first_rows(rows, (*heads, "Standard error", "Interval"))


def release(release: Release, axes: Axes | Sequence[Axes] | None = None) -> Figure:
    """Show a release from a table: its clusters, its distribution function, or its answers with their intervals.

    Args:
        release: A release from a table.
        axes: Axes of another figure to draw on; by default those of a new figure. Clusters need one for each pair of
            their attributes, at most six.

    Returns:
        The figure.

    Raises:
        InputError: If `release` is not a release from a table, or if the axes are of another number.

    Example:
        >>> from mechdesign.tables import Cumulative, Domain, Policy
        >>> policy = Policy.threshold(Domain({"age": range(5)}), 1)
        >>> found = Cumulative().release(policy=policy, counts=[5, 0, 0, 7, 1], epsilon=100, rng=1)
        >>> release(found).axes[0].get_ylabel()
        'share of records'
    """
    require_kind(release, Release, "release", "a release from a table")
    return release_figure(release, axes=axes)


def release_figure(
    release: Release, quantiles: Sequence[NamedQuantile] = (), axes: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Return the figure of a release; quantiles are shown on a distribution function."""
    if isinstance(release, ClusteringRelease):
        return _clusters(release, axes)
    named = _name_lines(release)
    height = 0.7 + 0.22 * min(len(release), _NAMED) if named else 3.2
    return drawn(axes, height, _draw_release, release, quantiles)


def _name_lines(release: Release) -> bool:
    """Return whether the figure of a release names each answer in a line of its own, and so has no place for many."""
    return not isinstance(release, CumulativeRelease) and _along(release) is None


def describe_shown(which: str, count: int, what: str) -> str:
    """Return the start of a caption if a figure with named lines shows not all of `count` lines, or else ""."""
    return f"The {which} {_NAMED} of {count} {what}. " if count > _NAMED else ""


def _along(release: Release) -> Floats | None:
    """Return the values of the only attribute of a release as numbers, or None if answers are shown by name."""
    found = _numbers(next(iter(release.labels.values()))) if len(release.labels) == 1 else None
    return found if found is not None and len(found) > 2 else None


def _draw_release(axes: Axes, release: Release, quantiles: Sequence[NamedQuantile] = ()) -> None:
    if isinstance(release, CumulativeRelease):
        _draw_distribution(axes, release, quantiles)
        return
    what = "records" if release.description.what.startswith("histogram") else "answer"
    if (along := _along(release)) is not None:
        _draw_along(axes, along, release)
        axes.set_xlabel(clip(next(iter(release.labels)), 40))
        axes.set_ylabel(what)
        return
    order = np.arange(len(release))
    if len(release) > _NAMED:
        order = np.argsort(-release.answers, kind="stable")[:_NAMED]
    names = [_name_answer(release, index) for index in order.tolist()]
    draw_counts(axes, names, release.answers[order], release.low[order], release.high[order], what)


def ranges_figure(ranges: Sequence[NamedRange]) -> Figure:
    """Return the figure of the number of records in each range, with its interval."""
    chosen = ranges[:_NAMED]
    names = [f"{clip(each.first)} to {clip(each.last)}" for each in chosen]
    numbers = np.array([(each.estimate.value, each.estimate.low, each.estimate.high) for each in chosen]).T
    return drawn(None, 0.7 + 0.22 * len(names), draw_counts, names, *numbers, "records")


def draw_counts(axes: Axes, names: Sequence[str], values: Floats, low: Floats, high: Floats, what: str) -> None:
    """Draw one named answer per line with its interval, the first on top."""
    places = np.arange(len(names))
    axes.hlines(places, low, high, color=ACCENT, linewidth=3.5, alpha=0.35)
    axes.plot(values, places, "o", color=ACCENT, markersize=4.5)
    axes.set_yticks(places, [clip(name, 28) for name in names])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel(what)
    axes.grid(axis="x")
    _plain_numbers(axes)


def _draw_along(axes: Axes, along: Floats, release: Release) -> None:
    """Draw answers with their intervals over the values of a numeric attribute: as bars, or as a line with a band."""
    if len(along) <= _BARS:
        axes.bar(along, release.answers, 0.8 * np.diff(np.sort(along)).min(), color=ACCENT, alpha=0.45, linewidth=0)
        axes.vlines(along, release.low, release.high, color=ink(axes), linewidth=0.9)
    else:
        keep = _thin_indices(len(along))
        axes.fill_between(along[keep], release.low[keep], release.high[keep], color=ACCENT, alpha=0.22, linewidth=0)
        axes.plot(along[keep], release.answers[keep], color=ACCENT, linewidth=0.8)
    axes.axhline(0, color=MUTED, linewidth=0.6)
    _plain_numbers(axes, both=True)


def _draw_distribution(axes: Axes, release: CumulativeRelease, quantiles: Sequence[NamedQuantile]) -> None:
    """Draw the share of records at or below each value, with a band, and quantiles."""
    name, labels = next(iter(release.labels.items()))
    found = _numbers(labels)
    along = np.arange(len(release), dtype=np.float64) if found is None else found
    keep, share, stepped = _thin_indices(len(along)), release.records, len(along) <= _STEPS
    low, high = (ends[keep] / share for ends in (release.low, release.high))
    axes.fill_between(along[keep], low, high, step="post" if stepped else None, color=ACCENT, alpha=0.22, linewidth=0)
    drawstyle = "steps-post" if stepped else "default"
    axes.plot(along[keep], release.answers[keep] / share, color=ACCENT, linewidth=1.4, drawstyle=drawstyle)
    for each in quantiles:
        at, left, right = (_position(text, along, labels) for text in (each.value, each.low, each.high))
        height = float(each.probability)
        axes.plot([left, right], [height, height], color=SERIES[1], linewidth=1.6, solid_capstyle="butt", zorder=4)
        axes.plot(at, height, "o", color=SERIES[1], markersize=4.5, zorder=5)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel(clip(name, 40))
    axes.set_ylabel("share of records")
    axes.grid(axis="y")
    _plain_numbers(axes)


def _clusters(release: ClusteringRelease, axes: Axes | Sequence[Axes] | None) -> Figure:
    """Show centroids over the first pairs of attributes, as dots as large as the clusters."""
    centroids, names = release.centroids, [clip(name, 24) for name in release.attributes]
    sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
    found: list[tuple[int, int | None]] = [*itertools.combinations(range(len(names)), 2)]
    pairs = found[:_PAIRS] or [(0, None)]

    def draw(*panels: Axes) -> None:
        for panel, (first, second) in zip(panels, pairs, strict=True):
            _draw_dots(panel, centroids[:, first], None if second is None else centroids[:, second], sizes)
            panel.set_xlabel(names[first])
            panel.set_ylabel("" if second is None else names[second])

    columns = min(len(pairs), 2)
    height = (1.2 if len(names) == 1 else WIDTH / columns) * -(-len(pairs) // columns) + 0.3
    return drawn(axes, height, draw, count=len(pairs))


def _draw_dots(axes: Axes, x: Floats, y: Floats | None, sizes: Floats) -> None:
    heights = np.zeros(len(x)) if y is None else y
    area = np.clip(sizes, 0, None) / max(float(sizes.max(initial=0)), 1.0)
    axes.scatter(x, heights, s=40 + 500 * area, color=ACCENT, alpha=0.35, linewidth=0)
    axes.scatter(x, heights, s=14, color=ink(axes), linewidth=0)
    for number, place in enumerate(zip(x, heights, strict=True)):
        axes.annotate(str(number), place, xytext=(6, 4), textcoords="offset points")
    axes.margins(0.18)
    axes.grid(True)
    _plain_numbers(axes, both=y is not None)
    if y is None:
        axes.set_yticks([])


def _plain_numbers(axes: Axes, both: bool = False) -> None:
    for axis in (axes.xaxis, axes.yaxis)[: 1 + both]:
        number_axis(axis, 5, "{:,.6g}".format)


def _numbers(labels: NDArray[Any]) -> Floats | None:
    """Return labels as numbers, or None if one is not a number or two are equal."""
    try:
        found = np.asarray(labels, dtype=np.float64)
    except ValueError:
        return None
    return found if np.isfinite(found).all() and len(np.unique(found)) == len(found) else None


def _position(text: str, along: Floats, labels: NDArray[Any]) -> float:
    try:
        return float(text)
    except ValueError:
        return float(along[[str(label) for label in labels].index(text)])


def _name_answer(release: Release, index: int) -> str:
    """Return the name of an answer: its value, its range, or its values of several attributes."""
    columns = list(release.labels)
    if columns == ["first", "last"]:
        return f"{release.labels['first'][index]} to {release.labels['last'][index]}"
    if len(columns) == 1:
        return str(release.labels[columns[0]][index])
    return ", ".join(f"{name} = {release.labels[name][index]}" for name in columns)


def _thin_indices(size: int) -> Integers:
    return np.unique(np.linspace(0, size - 1, min(size, _POINTS)).round().astype(np.int64))
