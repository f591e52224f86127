"""The page of a release from a table: the answers, their errors and the budget spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from mechdesign.certify._exact import exact_text
from mechdesign.model._words import short
from mechdesign.report import _table_figures as figures
from mechdesign.report._page import Code, Picture, Prose, Row, Section, Table, first_rows, page
from mechdesign.report._style import report_style
from mechdesign.report._verdicts import describe_errors, judge_table, limit_table, write_count
from mechdesign.tables._files import Published
from mechdesign.tables._queries._cumulative_release import CumulativeRelease
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import Release

_HEADS = ("Standard error", "Interval")


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
        ("Noise in steps of", _step(described.step)),
    ]
    definition = [described.definition, *([_define_rho(described.rho)] if described.rho else [])]
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
        Section("Files", [
            Prose([
                "answers.csv contains one answer per line, with its standard error and interval. release.json contains "
                "all other facts in exact numbers, and the digest of the answers."
            ]),
            Code("mechdesign inspect .    # in the folder of this page"),
        ]),
    ]  # fmt: skip
    title = publication.title if publication.title.strip() else described.what.capitalize()
    return page(title, judge_table(release), sections)


def _step(step: Fraction) -> str:
    return exact_text(step) if step > 1e-6 else f"{float(step):.3g}"


def _define_rho(rho: Fraction) -> str:
    """Return the definition of zero-concentrated differential privacy."""
    return (
        "For every α above 1, the Rényi divergence of order α between the answers on two neighbouring databases is at "
        f"most α·{short(float(rho), 4)}: this release satisfies zero-concentrated differential privacy."
    )


def _answers(publication: Published) -> Iterator[Section]:
    """Yield sections on the answers, each with a figure and its numbers."""
    release = publication.release
    alone = "Intervals are those of each answer separately."
    if isinstance(release, CumulativeRelease):
        quantiles = publication.quantiles
        title, said = "The share of records at or below each value", alone + " Dots are quantiles." * bool(quantiles)
        found = [(exact_text(each.probability), each.value, f"{each.low} to {each.high}") for each in quantiles]
        numbers = Table(found, ("Probability", "Value", "Interval"))
        if not quantiles:
            numbers = first_rows(_rows(release), ("Value", "Records", *_HEADS))
        made = figures.release_figure(release, quantiles)
        yield Section("Distribution", [Picture("cdf", title, said, made, numbers)])
        if publication.ranges:
            table = first_rows(_range_rows(publication), ("Range", "Records", *_HEADS))
            made = figures.ranges_figure(publication.ranges)
            said = figures.describe_shown("first", len(publication.ranges), "ranges") + alone
            yield Section("Ranges", [Picture("ranges", "Records in each range", said, made, table)])
    elif isinstance(release, ClusteringRelease):
        said = "Numbers identify the clusters. Sizes are noisy, and may be very inaccurate for small clusters."
        table = first_rows(_cluster_rows(release), ("Cluster", "Size", *release.attributes))
        made = figures.release_figure(release)
        yield Section("Clusters", [Picture("clusters", "Centroids", said, made, table)])
    else:
        table = first_rows(_rows(release), ("Answer to", "Answer", *_HEADS))
        made = figures.release_figure(release)
        said = figures.describe_shown("largest", len(release), "answers") * figures.name_lines(release) + alone
        yield Section("Answers", [Picture("answers", "Answers with their intervals", said, made, table)])


def _range_rows(publication: Published) -> Sequence[Row]:
    return [
        (f"{each.first} to {each.last}", *_numbers(*(getattr(each.estimate, name) for name in _NUMBERS)))
        for each in publication.ranges
    ]


def _cluster_rows(release: ClusteringRelease) -> Sequence[Row]:
    sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
    rows = zip(sizes.tolist(), release.centroids.tolist(), strict=True)
    return [(str(number), write_count(size), *map(write_count, place)) for number, (size, place) in enumerate(rows)]


def _rows(release: Release) -> Sequence[Row]:
    numbers = (release.answers, release.standard_errors, release.low, release.high)
    found = enumerate(zip(*(each.tolist() for each in numbers), strict=True))
    return [(figures.name_answer(release, index), *_numbers(*each)) for index, each in found]


_NUMBERS = ("value", "standard_error", "low", "high")


def _numbers(value: float, error: float, low: float, high: float) -> tuple[str, str, str]:
    return write_count(value), write_count(error), f"{write_count(low)} to {write_count(high)}"
