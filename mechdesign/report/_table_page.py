"""The page of a release from a table: the answers, their errors and the budget spent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mechdesign.certify._exact import exact_text
from mechdesign.model._words import short
from mechdesign.report import _table_figures as figures
from mechdesign.report._page import Picture, Prose, Row, Section, Table, first_rows, page
from mechdesign.report._style import report_style
from mechdesign.report._verdicts import describe_errors, judge_table, limit_table, write_count
from mechdesign.tables._files import Published
from mechdesign.tables._queries._cumulative_release import CumulativeRelease
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import Release


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
        Section("Files", [Prose(["answers.csv has all answers, release.json all other facts in exact numbers."])]),
    ]  # fmt: skip
    title = publication.title if publication.title.strip() else described.what.capitalize()
    return page(title, judge_table(release), sections)


def _answers(publication: Published) -> Iterator[Section]:
    """Yield sections on the answers, each with a figure and its numbers."""
    release, quantiles = publication.release, publication.quantiles
    alone, made = "Intervals are those of each answer separately.", figures.release_figure(release, quantiles)
    if isinstance(release, CumulativeRelease):
        title, said = "The share of records at or below each value", alone + " Dots are quantiles." * bool(quantiles)
        found = [(exact_text(each.probability), each.value, f"{each.low} to {each.high}") for each in quantiles]
        numbers = Table(found, ("Probability", "Value", "Interval")) if quantiles else _all(release, "Value", "Records")
        yield Section("Distribution", [Picture("cdf", title, said, made, numbers)])
        if publication.ranges:
            names = [f"{each.first} to {each.last}" for each in publication.ranges]
            estimates = [each.estimate for each in publication.ranges]
            each_range = [(each.value, each.standard_error, each.low, each.high) for each in estimates]
            made, table = figures.ranges_figure(publication.ranges), _table(("Range", "Records"), names, each_range)
            said = figures.describe_shown("first", len(names), "ranges") + alone
            yield Section("Ranges", [Picture("ranges", "Records in each range", said, made, table)])
    elif isinstance(release, ClusteringRelease):
        said = "Numbers identify the clusters. Sizes are noisy, and may be very inaccurate for small clusters."
        sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
        numbered = enumerate(np.column_stack((sizes, release.centroids)).tolist())
        rows = [(str(number), *map(write_count, cluster)) for number, cluster in numbered]
        table = first_rows(rows, ("Cluster", "Size", *release.attributes))
        yield Section("Clusters", [Picture("clusters", "Centroids", said, made, table)])
    else:
        table = _all(release, "Answer to", "Answer")
        said = figures.describe_shown("largest", len(release), "answers") * figures.name_lines(release) + alone
        yield Section("Answers", [Picture("answers", "Answers with their intervals", said, made, table)])


def _all(release: Release, *heads: str) -> Table:
    """Return the table of all answers."""
    numbers = np.column_stack((release.answers, release.standard_errors, release.low, release.high)).tolist()
    return _table(heads, (figures.name_answer(release, index) for index in range(len(release))), numbers)


def _table(heads: Row, names: Iterable[str], numbers: Iterable[Sequence[float]]) -> Table:
    """Return the table of named values with their standard errors and intervals."""
    rows = [
        (name, write_count(value), write_count(error), f"{write_count(low)} to {write_count(high)}")
        for name, (value, error, low, high) in zip(names, numbers, strict=True)
    ]
    return first_rows(rows, (*heads, "Standard error", "Interval"))
