"""The report page on a release from a table: the answers, their errors and the budget spent."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from mechdesign.certify._exact import exact_text
from mechdesign.model._words import short
from mechdesign.report import _table_figures as pictures
from mechdesign.report._guarantee import describe_table
from mechdesign.report._headlines import describe_errors, table_headline, write_count, write_odds
from mechdesign.report._pages import figure, render, typeset
from mechdesign.tables._files import Published
from mechdesign.tables._queries._cumulative_release import CumulativeRelease
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import Release

# Maximal number of rows on the page; the file of answers has all rows.
_ROWS = 30
# Maximal ε for which e^ε is written as a number.
_LARGEST_EXPONENT = 30


def html(publication: Published) -> str:
    """Return the report on a release as one self-contained page; equal releases give equal text."""
    return render("table.html", **_facts(publication))


def _facts(publication: Published) -> dict[str, object]:
    release = publication.release
    described = release.description
    free = not (described.epsilon or described.rho)
    what, count = described.what, len(release)
    return {
        "title": publication.title.strip() or what.capitalize(),
        "verdict": table_headline(release),
        "free": free,
        "said": f"{what[:1].upper() + what[1:]}: {count:,} answer{'s' * (count != 1)}.",
        "policy": described.policy,
        "neighbours": described.neighbours,
        "definition": described.definition,
        "people": described.people,
        "epsilon": described.epsilon is not None,
        "factor": _factor(described.epsilon),
        "rho": short(float(described.rho), 4) if described.rho is not None else "",
        "noise": [
            ("Mechanism", typeset(described.mechanism) if described.mechanism != "none" else "no noise"),
            ("Spent", "nothing" if free else described.spent),
            ("Noise in steps of", _step(described.step)),
        ],
        "answers": list(_answers(publication)),
        "error": describe_errors(release),
        "confidence": f"{short(100 * float(described.confidence), 4)} %",
        "remarks": described.remarks,
        "ranges": bool(publication.ranges),
        "quantiles": bool(publication.quantiles),
        "guarantee": describe_table(described),
    }


def _step(step: Fraction) -> str:
    return exact_text(step) if step > 1e-6 else f"{float(step):.3g}"


def _factor(epsilon: Fraction | None) -> str:
    """Return " = e^ε" as a readable number, rounded up, or ""."""
    if epsilon is None or epsilon > _LARGEST_EXPONENT:
        return ""
    return f" = {write_odds(float(epsilon))}"


def _answers(publication: Published) -> Iterator[dict[str, object]]:
    """Yield sections on the answers, each with a heading and a figure, a table or both."""
    release = publication.release
    if isinstance(release, CumulativeRelease):
        draw = functools.partial(pictures.cdf_picture, release, publication.quantiles)
        caption = (
            "The line is the released share of records at or below each value; the band shows the interval of each "
            "value separately."
        ) + (" Dots are quantiles with their intervals." if publication.quantiles else "")
        yield _section("Distribution", figure(draw, "cdf", "Released distribution function", caption))
        if publication.quantiles:
            found = [(exact_text(e.probability), e.value, f"{e.low} to {e.high}") for e in publication.quantiles]
            yield _section("Quantiles", None, ("Probability", "Value", "Interval"), found)
        if publication.ranges:
            draw = functools.partial(pictures.ranges_picture, publication.ranges)
            picture = figure(draw, "ranges", "Released ranges", _BARS_SAY)
            yield _section("Ranges", picture, ("Range", "Records", *_HEADS), _range_rows(publication))
    elif isinstance(release, ClusteringRelease):
        caption = "Numbers identify the clusters. Sizes are noisy, and may be very inaccurate for small clusters."
        draw = functools.partial(pictures.clusters_picture, release)
        picture = figure(draw, "clusters", "Released centroids", caption)
        yield _section("Clusters", picture, ("Cluster", "Size", *release.attributes), _cluster_rows(release))
    else:
        draw = functools.partial(pictures.answers_picture, release)
        picture = figure(draw, "answers", "Released answers", _BARS_SAY)
        rows = _answer_rows(release) if len(release) <= _ROWS else []
        yield _section("Answers", picture, (*release.labels, "Answer", *_HEADS), rows)


_BARS_SAY = "A thin line, or the band, shows the interval of each answer separately."
_HEADS = ("Standard error", "Interval")


def _section(
    heading: str, picture: object, heads: tuple[str, ...] = (), rows: Sequence[object] = ()
) -> dict[str, object]:
    return {"heading": heading, "picture": picture, "heads": heads, "rows": rows}


def _range_rows(publication: Published) -> list[tuple[str, ...]]:
    return [
        (
            f"{each.first} to {each.last}",
            *_numbers(each.estimate.value, each.estimate.standard_error, each.estimate.low, each.estimate.high),
        )
        for each in publication.ranges[:_ROWS]
    ]


def _cluster_rows(release: ClusteringRelease) -> list[tuple[str, ...]]:
    sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
    rows = zip(sizes.tolist(), release.centroids.tolist(), strict=True)
    return [(str(number), write_count(size), *map(write_count, place)) for number, (size, place) in enumerate(rows)][
        :_ROWS
    ]


def _answer_rows(release: Release) -> list[tuple[str, ...]]:
    numbers = zip(release.answers, release.standard_errors, release.low, release.high, strict=True)
    labels = zip(*release.labels.values(), strict=True)
    return [(*map(str, label), *_numbers(*found)) for label, found in zip(labels, numbers, strict=True)]


def _numbers(value: float, error: float, low: float, high: float) -> tuple[str, str, str]:
    return write_count(value), write_count(error), f"{write_count(low)} to {write_count(high)}"
