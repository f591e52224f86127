"""The report on a release from a table: one page that says in words what was released and at what cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from mechdesign.model._words import decimal, short
from mechdesign.report import _table_figures as pictures
from mechdesign.report._pages import document, figure, section, table, text
from mechdesign.tables._files import Published
from mechdesign.tables._queries._cumulative import CumulativeRelease
from mechdesign.tables._queries._kmeans import ClusteringRelease
from mechdesign.tables._release import Description, Release

# More rows than this are left to the file of answers.
_ROWS = 30
# Beyond it e^ε is written as a power.
_LARGEST_EXPONENT = 30


def html(publication: Published) -> str:
    """Return the report on a release as one self-contained page; the same values give the same text."""
    release = publication.release
    title = publication.title.strip() or release.description.what.capitalize()
    return document(
        title,
        [
            _header(title, release),
            _protection(release.description),
            *_answers(publication),
            _exactness(release),
            _left_exact(release.description),
            _files(publication),
        ],
    )


def _header(title: str, release: Release) -> str:
    described = release.description
    if described.unsound:
        verdict = f"<strong>An earlier version made this release.</strong> {text(described.definition)}"
    elif described.rehearsal:
        verdict = (
            "<strong>A rehearsal.</strong> The noise came from a given generator. Whoever knows its seed can undo it: "
            "publish nothing of this."
        )
    else:
        spent = "Nothing was spent" if _free(described) else f"{text(described.spent)} was spent"
        verdict = f"<strong>Released.</strong> {spent}. The noise came from the operating system’s randomness."
    count = len(release)
    return "\n".join(
        [
            "<header>",
            f"<h1>{text(title)}</h1>",
            f'<p class="verdict {"fails" if described.rehearsal or described.unsound else "holds"}">{verdict}</p>',
            f"<p>{_sentence(described.what)} {count:,} answer{'s' * (count != 1)}. Everything on this page was "
            "computed from the released answers alone; the data are nowhere in it.</p>",
            "</header>",
        ]
    )


def _protection(described: Description) -> str:
    parts = [
        f"<p>{text(described.policy)}.</p>",
        f"<p>{text(described.neighbours)}</p>",
        f"<p>{text(described.definition)}</p>",
        f"<p>{_meaning(described)}</p>",
    ]
    mechanism = described.mechanism if described.mechanism != "none" else "no noise"
    rows = [
        ("Mechanism", text(mechanism)),
        ("Spent", "nothing" if _free(described) else text(described.spent)),
        (
            "Noise in steps of",
            text(decimal(described.step)) if described.step > 1e-6 else f"{float(described.step):.3g}",
        ),
    ]
    return section("What is protected", *parts, table((), rows))


def _meaning(described: Description) -> str:
    if described.unsound:
        return "What this page says of noise, ε and exact answers holds for the neighbours named here alone."
    if _free(described):
        return "No two neighbouring databases differ in these answers, so that they tell nothing that is protected."
    if described.epsilon is not None:
        return (
            f"Whatever is released is at most e<sup>ε</sup>{_factor(described.epsilon)} times as likely under one "
            "database as under any neighbour of it, whatever else the reader knows of the other records. Releases "
            "under this policy add up: two of them protect with the sum of their ε. Of releases under other policies, "
            "whose neighbours are others, this page says nothing."
        )
    assert described.rho is not None
    return (
        "This is zero-concentrated differential privacy, along the policy: the Rényi divergence of order α between the "
        f"answers on two neighbouring databases is at most α·{short(float(described.rho), 4)}, for every α above 1. "
        "Releases under this policy add up: two of them protect with the sum of their ρ. Of releases under other "
        "policies, whose neighbours are others, this page says nothing."
    )


def _factor(epsilon: Fraction) -> str:
    """Return " = e^ε" where that is a number one can read."""
    return f" = {short(math.exp(float(epsilon)), 4)}" if epsilon <= _LARGEST_EXPONENT else ""


def _answers(publication: Published) -> Iterator[str]:
    release = publication.release
    if isinstance(release, CumulativeRelease):
        yield section(
            "Distribution",
            figure(
                functools.partial(pictures.cdf_picture, release, publication.quantiles),
                "cdf",
                "Released distribution function",
                "The line is the released share of records at or below each value, the band the interval of each "
                "value on its own." + (" Dots are quantiles, with their intervals." if publication.quantiles else ""),
            ),
        )
        if publication.quantiles:
            rows = [
                (text(decimal(each.probability)), text(each.value), f"{text(each.low)} to {text(each.high)}")
                for each in publication.quantiles
            ]
            yield section("Quantiles", table(("Probability", "Value", "Interval"), rows, "numbers"))
        if publication.ranges:
            yield section(
                "Ranges",
                figure(
                    functools.partial(pictures.ranges_picture, publication.ranges),
                    "ranges",
                    "Released ranges",
                    _BARS_SAY,
                ),
                _range_table(publication),
            )
        return
    if isinstance(release, ClusteringRelease):
        yield section(
            "Clusters",
            figure(
                functools.partial(pictures.clusters_picture, release),
                "clusters",
                "Released centroids",
                "Numbers are those of the clusters. Sizes are noisy and may be far off for small clusters.",
            ),
            _cluster_table(release),
        )
        return
    parts = [figure(functools.partial(pictures.answers_picture, release), "answers", "Released answers", _BARS_SAY)]
    if len(release) <= _ROWS:
        parts.append(_answer_table(release))
    yield section("Answers", *parts)


_BARS_SAY = "A thin line, or the band, shows the interval of each answer on its own."


def _range_table(publication: Published) -> str:
    rows = [
        (
            f"{text(each.first)} to {text(each.last)}",
            _number(each.estimate.value),
            _number(each.estimate.standard_error),
            f"{_number(each.estimate.low)} to {_number(each.estimate.high)}",
        )
        for each in publication.ranges[:_ROWS]
    ]
    return table(("Range", "Records", "Standard error", "Interval"), rows, "numbers")


def _cluster_table(release: ClusteringRelease) -> str:
    sizes = release.answers[np.asarray(release.labels["quantity"]) == "size"]
    rows = [
        (str(number), _number(size), *(_number(entry) for entry in centroid))
        for number, (size, centroid) in enumerate(zip(sizes.tolist(), release.centroids.tolist(), strict=True))
    ]
    return table(("Cluster", "Size", *map(text, release.attributes)), rows[:_ROWS], "numbers")


def _answer_table(release: Release) -> str:
    names = [text(name) for name in release.labels]
    columns = [[text(str(entry)) for entry in column] for column in release.labels.values()]
    numbers = zip(release.answers, release.standard_errors, release.low, release.high, strict=True)
    rows: Iterable[tuple[str, ...]] = (
        (*label, _number(answer), _number(error), f"{_number(low)} to {_number(high)}")
        for label, (answer, error, low, high) in zip(zip(*columns, strict=True), numbers, strict=True)
    )
    return table((*names, "Answer", "Standard error", "Interval"), rows, "numbers")


def _exactness(release: Release) -> str:
    errors = release.standard_errors
    least, largest = float(errors.min(initial=math.inf)), float(errors.max(initial=0.0))
    sure = f"{short(100 * float(release.description.confidence), 4)} %"
    if not largest:
        return section("How exact the answers are", "<p>They are exact.</p>")
    spread = _number(largest) if least == largest else f"{_number(least)} to {_number(largest)}"
    return section(
        "How exact the answers are",
        f"<p>The standard error of an answer is {spread}. It follows from the noise alone and does not depend on the "
        f"data. Each interval, taken on its own, contains the true answer with a probability of at least {sure}; of "
        "many intervals some will miss.</p>",
    )


def _left_exact(described: Description) -> str:
    items = "".join(f"<li>{text(remark)}</li>" for remark in described.remarks)
    return section("What else to know", f"<ul>{items}</ul>" if items else "<p>Nothing.</p>")


def _files(publication: Published) -> str:
    rows = [
        ("<code>answers.csv</code>", "an answer a line, with its standard error and interval"),
        ("<code>release.json</code>", "everything else, in exact numbers, with the digest of the answers"),
    ]
    if publication.ranges:
        rows.append(("<code>ranges.csv</code>", "the ranges"))
    if publication.quantiles:
        rows.append(("<code>quantiles.csv</code>", "the quantiles"))
    code = "import mechdesign as md\n\nrelease = md.tables.load(DIR)      # the folder that this page is in"
    return section("Files", table((), rows), f"<pre><code>{text(code)}</code></pre>")


def _free(described: Description) -> bool:
    return not (described.epsilon or described.rho)


def _sentence(what: str) -> str:
    return f"{text(what[:1].upper() + what[1:])}:"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else short(float(value), 4)
