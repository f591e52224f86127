"""What people see of values at a prompt and in a notebook: short texts, small pages, data frames, and clean names."""

from __future__ import annotations

import base64
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base._display import card, data_frame, picture
from mechdesign.errors import ExportError, MissingDependencyError
from mechdesign.graphs._geometry._hull import SensitivityHull

MODULES = [name for name in md.__all__ if isinstance(getattr(md, name), type(sys))]


@pytest.fixture(scope="module")
def design() -> md.Design:
    city = md.Domain.geographic_grid(4, 3, 40.70, 40.80, -74.02, -73.92)
    distance = md.distances.euclidean(city)
    problem = md.Problem(
        md.Prior.from_counts(np.arange(12.0)), distance, [md.MetricPrivacy("0.5", distance)], secrets=city,
        observables=city, title="<b>City</b>",
    )  # fmt: skip
    return md.design(problem)


@pytest.fixture(scope="module")
def values(design) -> dict[str, object]:
    chain = md.MarkovChain(np.full((20, 20), 0.05))
    return {
        "domain": design.problem.secrets,
        "labels": md.Domain.from_labels(["<i>", "b"]),
        "prior": md.Prior.from_counts(np.arange(12.0)),
        "channel": design.channel,
        "certificate": design.certificate,
        "design": design,
        "hull": SensitivityHull.of([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
        "loss": md.leakage.LossFunction(chain),
        "chain": chain,
        "problem": design.problem,
        "summary": design.summary,
        "evidence": design.evidence(),
        "attack": md.attack.optimal(design.channel, design.problem.prior, design.problem.cost),
    }


@pytest.fixture(scope="module")
def tables(design) -> dict[str, object]:
    policy = md.tables.Policy.full(md.tables.Domain({"<i>": range(100)}))
    return {
        "policy": policy,
        "plan": md.tables.plan_histogram(policy, epsilon=1),
        "release": md.tables.release_histogram([1, 2, 2], policy, epsilon=1, rng=1),
        "audit": md.audit(design.channel, md.distances.euclidean(design.problem.secrets)),
        "ledger": md.leakage.accounting.Ledger(epsilon=1),
    }


def test_tables_in_notebooks_show_their_numbers(tables):
    assert "expected error" in tables["plan"]._repr_html_()
    assert "all but" in tables["release"]._repr_html_()
    assert "worst pairs" in tables["audit"]._repr_html_()


def test_figures_show_in_notebooks_without_further_commands(design):
    content, size = md.figures.prior(design)._repr_mimebundle_()
    assert base64.b64decode(content["image/png"]).startswith(b"\x89PNG")
    assert size["image/png"]["width"] > size["image/png"]["height"] > 0 or size["image/png"]["height"] > 0


class Balanced(HTMLParser):
    """Checks that elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        pass


NAMES = (
    "domain", "labels", "prior", "channel", "certificate", "design", "hull", "loss", "chain", "problem", "summary",
    "evidence", "attack",
)  # fmt: skip


@each_row("name", NAMES)
def test_values_are_short_at_a_prompt(values, name):
    text = repr(values[name])
    assert len(text) <= 260
    assert "\n" not in text
    assert "array" not in text
    assert text.startswith(type(values[name]).__name__)


@each_row("name", [*NAMES[:10], "attack", "policy", "plan", "release", "audit", "ledger"])
def test_values_are_small_pages_in_a_notebook(values, tables, name):
    text = (values | tables)[name]._repr_html_()
    Balanced(text)
    assert len(text) < 20_000
    assert not re.search(r"<script|https?:|\bon\w+=|<b>City|<i>", text)


def test_the_picture_of_a_large_channel_stays_small():
    text = picture("heat_map", np.random.default_rng(1).random((500, 700)), "p")
    assert len(text) < 80_000
    assert '<img alt="p" src="data:image/svg+xml;base64,' in text
    assert "<svg" not in text


def test_facts_are_never_html():
    text = card("<u>", [("<a>", "&")])
    assert "<u>" not in text
    assert "<a>" not in text
    assert "&amp;" in text


def test_data_frames(values, design):
    pytest.importorskip("pandas")
    places = values["domain"].to_pandas()
    assert list(places.columns) == ["label", "x", "y", "latitude", "longitude"]
    assert len(places) == 12
    assert values["labels"].to_pandas()["label"].tolist() == ["<i>", "b"]
    assert values["prior"].to_pandas()["probability"].sum() == pytest.approx(1)
    channel = design.to_pandas()
    assert channel.index.tolist() == list(design.channel.secrets)
    assert np.array_equal(channel.to_numpy(), design.channel.matrix)
    assert list(values["loss"].to_pandas().columns) == ["start", "Q", "D"]


def test_without_pandas_the_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingDependencyError, match="pip install pandas"):
        data_frame({"a": [1]})


@each_row("name", MODULES)
def test_public_modules_list_their_public_names(name):
    module = getattr(md, name)
    assert dir(module) == sorted(module.__all__)
    for each in module.__all__:
        assert getattr(module, each) is not None


def test_the_package_lists_its_public_names():
    assert dir(md) == sorted(md.__all__)


@each_row("name", ["answers", "costs", "requirements"])
def test_figures_of_a_design_have_titles(design, name):
    assert getattr(md.figures, name)(design).get_suptitle()


def test_figures_of_a_design_are_written_as_files(design, tmp_path):
    figure = md.figures.prior(design)
    assert figure.get_suptitle()
    for name in ("prior.svg", "prior.pdf"):
        md.figures.save_figure(figure, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(ExportError, match="must end with the suffix of a format"):
        md.figures.save_figure(figure, tmp_path / "prior.xyz")
    assert not (tmp_path / "prior.xyz").exists()
