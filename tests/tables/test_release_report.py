"""The report on a release: its content, its independence from other files, and the absence of the data."""

from __future__ import annotations

import functools
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

import mechdesign as md
from mechdesign.errors import ExportError, InputError
from mechdesign.report import _saving as saving
from mechdesign.report._table_page import describe_shown, ranges_figure, release_figure
from mechdesign.specification._table_specification import parse
from mechdesign.tables._files import Published

AGE = "table.person = false\ndomain.attributes.age = { range = [0, 99] }\n"
LINE = 'policy = { kind = "threshold", theta = 1 }\n'
PLACE = """
table.person = false
domain.attributes = { x = { range = [0, 9] }, y = { range = [0, 9] }, z = { range = [0, 9] } }
policy = { kind = "threshold", theta = 2 }
"""
RELEASES = {
    "histogram": (AGE + LINE, '{ kind = "histogram", epsilon = 1 }'),
    "two attributes": (
        "table.person = false\n"
        'domain.attributes = { x = { range = [0, 9] }, sex = { values = ["f", "m"] } }\npolicy.kind = "attribute"\n',
        '{ kind = "histogram", rho = 1 }',
    ),
    "blocks": (AGE + LINE, '{ kind = "histogram", epsilon = 1, partition = { width = 30 } }'),
    "sum": (AGE + LINE, '{ kind = "sum", epsilon = 1 }'),
    "cdf": (AGE + LINE, '{ kind = "cdf", epsilon = 1 }'),
    "quantiles": (AGE + LINE, '{ kind = "quantiles", epsilon = 1, probabilities = [0.5] }'),
    "ranges": (AGE + LINE, '{ kind = "ranges", epsilon = 1, ranges = [[0, 17], [18, 99]] }'),
    "workload": (AGE + LINE, '{ kind = "workload", rho = 1, marginals = [["age"]] }'),
    "k-means": (PLACE, '{ kind = "kmeans", epsilon = 1, k = 3, iterations = 2 }'),
    "k-means on one": (AGE + LINE, '{ kind = "kmeans", epsilon = 1, k = 3, iterations = 2 }'),
}


def data(size=300):
    rng = np.random.default_rng(6)
    return {name: rng.integers(0, 10, size) for name in ("x", "y", "z")} | {
        "age": rng.integers(0, 100, size),
        "sex": rng.choice(["f", "m"], size),
    }


def published(kind, rng=1, title="Ages <at> admission & more"):
    more, release = RELEASES[kind]
    return parse(f'title = "{title}"\n{more}release = {release}\n').release(data(), rng=rng)


class _Page(HTMLParser):
    """Collects the words of a page and whatever could be fetched."""

    def __init__(self, text):
        super().__init__()
        self.words, self.fetched, self.scripts, self.pictures = [], [], 0, 0
        self.feed(text)
        self.words = " ".join(" ".join(self.words).split())

    def handle_data(self, data):
        self.words.append(data)

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        self.pictures += tag == "svg"
        self.fetched += [v for k, v in attrs if k in ("src", "href") and not v.startswith(("#", "data:"))]


@pytest.mark.slow
@pytest.mark.parametrize("kind", RELEASES)
def test_a_page_says_what_was_released_in_words(kind):
    found = published(kind)
    page, described = _Page(saving.html(found)), found.release.description
    assert page.pictures >= 1
    assert (page.scripts, page.fetched) == (0, [])
    for words in (
        "Ages <at> admission & more",
        described.neighbours,
        described.policy,
        described.spent,
        described.mechanism,
        "A rehearsal:",
        "How exact the answers are",
        "at least 95%",
        *described.remarks,
    ):
        assert " ".join(words.split()) in page.words, words


@functools.cache
def page_of(kind, rng=1):
    return saving.html(published(kind, rng))


def test_what_is_published_is_a_function_of_the_answers():
    found = published("quantiles")
    again = Published(replace(found.release), found.title, found.ranges, found.quantiles)
    assert saving.html(again) == page_of("quantiles")
    # Other data with the same noisy answers give the same page: nothing but the release is kept.
    assert set(vars(found)) == {"release", "title", "ranges", "quantiles"}


def test_the_report_of_what_is_loaded_is_that_of_what_was_released(tmp_path):
    for kind in ("quantiles", "k-means on one"):
        found = published(kind)
        md.save(found, tmp_path / kind)
        assert (tmp_path / kind / "report.html").read_text(encoding="utf-8") == page_of(kind)
    loaded = md.tables.load(tmp_path / kind)
    assert saving.html(Published(loaded, found.title)) == page_of(kind)


def test_a_release_that_counts_says_so():
    page = _Page(page_of("histogram", None))
    assert "A rehearsal" not in page.words
    assert "Released; ε = 1 was spent" in page.words
    assert "2.72 times as likely" in page.words
    # Most of a hundred counts are left to the file.
    assert "the first 40 of 100" in page.words


def test_exact_answers_say_so():
    more = AGE + 'policy = { kind = "partition", blocks = { width = 50 } }\n'
    found = parse(more + 'release = { kind = "histogram", epsilon = 1, partition = { width = 50 } }\n').release(data())
    page = _Page(saving.html(found))
    for words in ("nothing was spent", "The answers are exact.", "leaves these answers exact", "0 to 49"):
        assert words in page.words


def test_tables_hold_the_numbers():
    found = published("ranges")
    page = _Page(saving.html(found))
    for each in found.ranges:
        assert f"{each.first} to {each.last}" in page.words
        assert f"{each.estimate.value:,.0f}" in page.words or f"{each.estimate.value:.4g}" in page.words


def test_a_caption_says_which_answers_the_figure_shows():
    domain = md.tables.Domain({"place": [f"place {number}" for number in range(31)]})
    policy = md.tables.Policy.full(domain)
    found = md.tables.Histogram().release(policy=policy, counts=[1] * 31, epsilon=1, rng=1)
    assert "The largest 30 of 31 answers." in _Page(saving.html(found)).words
    assert describe_shown("largest", 30, "answers") == ""


@pytest.fixture
def unfinished(monkeypatch):
    """Leave figures without a layout, which takes longer than drawing on their axes."""
    monkeypatch.setattr("mechdesign.report._style.finish", lambda _: None)


@pytest.mark.usefixtures("unfinished")
def test_pictures_of_counts():
    histogram = release_figure(published("histogram").release)
    assert len(histogram.axes[0].patches) == 100
    assert histogram.axes[0].get_ylabel() == "records"
    blocks = release_figure(published("blocks").release).axes[0]
    assert (blocks.get_xlabel(), blocks.get_yticklabels()[0].get_text()) == ("records", "0 to 29")
    workload = release_figure(published("workload").release).axes[0]
    assert (workload.get_xlabel(), len(workload.get_yticks())) == ("answer", 30)
    many = md.tables.Histogram().release(
        [1], md.tables.Policy.full(md.tables.Domain({"age": range(5000)})), epsilon=1, rng=1
    )
    assert len(release_figure(many).axes[0].lines[0].get_xdata()) == 2000


def test_a_release_is_drawn_on_axes_of_ones_own():
    left, right = Figure().subplots(1, 2)
    release = published("histogram").release
    assert md.figures.release(release, axes=right) is right.get_figure()
    assert [bar.get_height() for bar in right.patches] == release.answers.tolist()
    assert not left.patches
    panels, clusters = Figure().subplots(3), published("k-means").release
    assert md.figures.release(clusters, axes=panels) is panels[0].get_figure()
    assert all(panel.get_xlabel() for panel in panels)
    with pytest.raises(InputError, match="axes: are of another number; found 1; must be 3, one for each panel"):
        md.figures.release(clusters, axes=left)


@pytest.mark.usefixtures("unfinished")
def test_pictures_of_ranges_quantiles_and_clusters():
    assert ranges_figure(published("ranges").ranges).axes[0].get_xlabel() == "records"
    quantiles = published("quantiles")
    dots = [
        line
        for line in release_figure(quantiles.release, quantiles.quantiles).axes[0].lines
        if line.get_marker() == "o"
    ]
    assert [line.get_ydata()[0] for line in dots] == [0.5]
    assert len(release_figure(published("k-means").release).axes) == 3
    assert len(release_figure(published("k-means on one").release).axes) == 1
    names = ", ".join(f"a{i} = {{ range = [0, 3] }}" for i in range(5))
    release = 'release = { kind = "kmeans", epsilon = 1, k = 2 }'
    wide = parse(f'table.person = false\ndomain.attributes = {{ {names} }}\npolicy.kind = "full"\n{release}\n').release(
        {f"a{i}": [0, 1, 3] for i in range(5)}, rng=1
    )
    assert len(release_figure(wide.release).axes) == 6


def test_folders(tmp_path):
    folder = tmp_path / "out"
    md.save(published("ranges"), folder)
    assert (folder / "ranges.csv").exists()
    md.save(published("quantiles"), folder, report=False)
    assert sorted(path.name for path in folder.iterdir()) == ["answers.csv", "quantiles.csv", "release.json"]
    (folder / "mine.txt").write_text("mine")
    with pytest.raises(ExportError, match=r"mine\.txt"):
        md.save(published("histogram"), folder, report=False)
    assert (folder / "mine.txt").read_text() == "mine"
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="is not a folder"):
        md.save(published("histogram"), tmp_path / "file", report=False)
