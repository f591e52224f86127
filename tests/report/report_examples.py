"""Problems, channels and pages for tests of pictures and pages; no solver is involved."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence
from mechdesign.model import distances
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._domain import Domain
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._threshold import ThresholdPrivacy
from mechdesign.report import _design_page
from mechdesign.solve._contract import Status
from mechdesign.synthesis._result import Design, SolveSummary


def channel(matrix, secrets=(), observables=()) -> Channel:
    """Round a matrix, normalised by rows, to a channel; what is missing goes to the largest entry of each row."""
    matrix = np.asarray(matrix, dtype=np.float64)
    numerators = np.floor(matrix / matrix.sum(axis=1, keepdims=True) * 2.0**61).astype(np.int64) * 2
    for row in numerators:
        row[row.argmax()] += 2**EXPONENT - sum(map(int, row))
    return Channel(numerators, secrets, observables)


def certificate(problem: Problem, made: Channel, provenance=None) -> Certificate:
    stated = problem.stated
    evidence = Evidence(made.numerators, EXPONENT, problem.prior, problem.cost, problem.objective, stated, None)
    return certify(evidence, provenance or {"solver": "none", "solve_seconds": 0.25})


def page_of(problem: Problem, made: Channel, proof: Certificate) -> str:
    """Return the page of a channel that no solver found."""
    return _design_page.html(design_of(problem, made, proof))


def design_of(problem: Problem, made: Channel, proof: Certificate) -> Design:
    return Design(problem, made, proof, None, SolveSummary(Status.OPTIMAL))


def domains() -> dict[str, Domain | None]:
    """Return a domain of every kind that pictures tell apart."""
    rng = np.random.default_rng(7)
    return {
        "grid": Domain.grid(5, 4, 10.0, 4.0),
        "long grid": Domain.grid(20, 2, 300.0, 1.0),
        "one row": Domain.grid(7, 1, 7.0, 1.0),
        "one column": Domain.grid(1, 5, 1.0, 5.0, unit="m"),
        "one cell": Domain.grid(1, 1, 1.0, 1.0),
        "geographic": Domain.geographic_grid(6, 5, 40.70, 40.80, -74.02, -73.92),
        "southern": Domain.geographic_grid(3, 4, -0.05, 0.05, -0.02, 0.06),
        "points": Domain.from_points(rng.normal(size=(30, 2)), unit="km"),
        "one point": Domain.from_points([[3.0, 4.0]]),
        "points on a line": Domain.from_points([[1.0, 5.0], [1.0, 7.0], [1.0, 9.0]]),
        "coordinates": Domain.from_coordinates([52.5, 52.51, 52.53], [13.3, 13.4, 13.35]),
        "one place": Domain.from_coordinates([52.5], [13.3]),
        "numbers": Domain.from_points(np.arange(12.0)[:, None], unit="years"),
        "uneven numbers": Domain.from_points([[0.0], [0.0], [0.5], [40.0]]),
        "space": Domain.from_points(rng.normal(size=(6, 3))),
        "labels": Domain.from_labels(
            ["Sales", "Craft-repair", "$x^2 & <b>", "家族", "a\x00\x0b\u202eb", "$", "\\frac{"]
        ),
        "many labels": Domain.from_labels([f"place {index}" for index in range(90)]),
        "one label": Domain.from_labels(["only"]),
        "none": None,
    }


def prior_of(n: int, zeros: bool = True) -> np.ndarray:
    weights = 1.0 + np.arange(n) % 7
    if zeros and n > 2:
        weights[1::5] = 0
    return weights / weights.sum()


def mixing(n: int, m: int | None = None) -> np.ndarray:
    """Return a channel's matrix with many different entries, and some columns of zeros."""
    m = n if m is None else m
    matrix = np.exp(-0.3 * np.abs(np.arange(n)[:, None] * m / n - np.arange(m)[None, :]))
    if m > 3:
        matrix[:, 2::4] = 0
    return matrix / matrix.sum(axis=1, keepdims=True)


def city(columns: int = 4, rows: int = 3, title: str = "City") -> tuple[Problem, Channel, Certificate]:
    """Return a problem on a grid, a channel that meets its requirements with room to spare, and its certificate."""
    grid = Domain.grid(columns, rows, float(columns), float(rows))
    apart = distances.euclidean(grid)
    prior = prior_of(grid.size)
    requirements = [
        MetricPrivacy("0.6", apart),
        ThresholdPrivacy(1, apart, "1.5"),
        DistortionPrivacy("0.1", apart),
    ]
    problem = Problem(prior, apart, requirements, secrets=grid, observables=grid, title=title)
    made = channel(np.exp(-0.29 * apart), grid.labels, grid.labels)
    return problem, made, certificate(problem, made)


MARKUP = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'&amp;]]>--><style> $\\frac{"
"""A text that would be markup or a formula, were it not escaped."""
HOSTILE = f"{MARKUP}\x00\u202e\ud800\ufffe\uffff"
"""The same with characters that no page may contain."""


class Page(HTMLParser):
    """Checks that elements are closed in order, and collects what a test asks about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.text += data

    def values(self, name: str) -> list[str]:
        return [value for _, key, value in self.attributes if key == name]
