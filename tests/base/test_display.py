"""What people see of values at a prompt and in a notebook: short texts, tables of facts, and clean names."""

from __future__ import annotations

import base64
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base._display import card
from mechdesign.errors import ExportError
from mechdesign.graphs._hull import SensitivityHull

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
def cards(design) -> dict[str, str]:
    policy = md.tables.Policy.full(md.tables.Domain({"<i>": range(100)}))
    shown = {
        "design": design,
        "audit": md.audit(design.channel, md.distances.euclidean(design.problem.secrets)),
        "release": md.tables.Histogram().release([1, 2, 2], policy, epsilon=1, rng=1),
    }
    return {name: value._repr_html_() for name, value in shown.items()}


def test_cards_say_what_was_found(design, cards):
    pair = md.audit(design.channel, md.distances.euclidean(design.problem.secrets)).worst_pairs(1)[0].pair
    for name, facts in (
        ("design", ("found", "metric privacy", "of 0.5", "relative gap")),
        ("audit", ("tight ε", " and ".join(design.problem.secrets.labels[secret] for secret in pair))),
        ("release", ("ε = 1", "answers", "100", "all but")),
    ):
        for fact in facts:
            assert fact in cards[name], (name, fact)


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


def test_cards_are_small_tables_of_facts(cards):
    for name, text in cards.items():
        Balanced(text)
        assert len(text) < 5_000, name
        assert not re.search(r"<script|<img|https?:|\bon\w+=|<b>City|<i>", text), name


def test_facts_are_never_html():
    text = card("<u>", [("<a>", "&")])
    assert "<u>" not in text
    assert "<a>" not in text
    assert "&amp;" in text


@each_row("name", MODULES)
def test_public_modules_list_their_public_names(name):
    module = getattr(md, name)
    assert dir(module) == sorted(module.__all__)
    for each in module.__all__:
        assert getattr(module, each) is not None


def test_the_package_lists_its_public_names():
    assert dir(md) == sorted(md.__all__)


def test_figures_of_a_design_are_written_as_files(design, tmp_path):
    figure = md.figures.prior(design)
    for name in ("prior.svg", "prior.pdf"):
        md.figures.save_figure(figure, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(ExportError, match="must end with the suffix of a format"):
        md.figures.save_figure(figure, tmp_path / "prior.xyz")
    assert not (tmp_path / "prior.xyz").exists()
