"""The explorer of a page: its tables are the channel and the beliefs of Bayes, its places are those of the domain."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from numpy.testing import assert_allclose
from report_examples import HOSTILE, Page, channel, city, domains, mixing, page_of, prior_of

from mechdesign.measures import attack
from mechdesign.model._domain import Domain
from mechdesign.report._explorer import POLICY, explorer

KINDS = domains()
# As much of a page as the script uses.
PAGE = """
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const atob = (text) => { const bits = [...text.replace(/=+$/, "")]
    .map((each) => LETTERS.indexOf(each).toString(2).padStart(6, "0")).join("");
  return bits.match(/.{8}/g).map((each) => String.fromCharCode(parseInt(each, 2))).join(""); };
const part = (name) => ({ textContent: name, width: 0, height: 0, dataset: {}, drawn: [],
  getContext() { return new Proxy({}, { get: (kept, key) => kept[key] ?? ((...each) => this.drawn.push([key, ...each])),
    set: (kept, key, value) => (kept[key] = value, true) }); },
  setAttribute(key, value) { this.dataset[key] = value; },
  getBoundingClientRect() { return { left: 10, top: 20, width: this.width / 2, height: this.height / 2 }; },
  addEventListener(kind, work) { this[kind] = work; },
  replaceChildren() { this.lines = []; },
  insertRow() { const row = []; this.lines.push(row);
    return { insertCell: () => ({ set textContent(text) { row.push(text); } }) }; } });
const picture = () => { const parts = {}; return { querySelector: (name) => (parts[name] ??= part(name)) }; };
const pictures = [picture(), picture()];
const select = { options: [], add(option) { this.options.push(option); },
  addEventListener(_, work) { this.work = work; } };
class Option { constructor(...each) { return each; } }
const figure = { querySelectorAll: () => pictures,
  querySelector: (name) => (name === "select" ? select : { textContent: DATA }) };
const document = { getElementById: () => figure };
const pick = (secret) => { select.value = String(secret); select.work(); return JSON.stringify(pictures.map((each) =>
  ["tbody", "p", "canvas"].map((name) => each.querySelector(name))
    .map((found) => found.lines ?? found.dataset["aria-label"] ?? found.textContent))); };
const tap = (place, kind, x, y) => { const canvas = pictures[place].querySelector("canvas");
  canvas[kind]({ x: 10 + x / 2, y: 20 + y / 2 });
  return [String(select.value), pictures[place].querySelector("p").textContent]; };
"""


def parts(figure: str) -> tuple[dict[str, Any], str]:
    """Return the data and the script of an explorer."""
    data, script = re.findall(r"<script[^>]*>(.*?)</script>", figure, re.DOTALL)
    return json.loads(data), script


def run(figure: str) -> Any:
    """Run the script of an explorer in an engine, with a small page."""
    racer = pytest.importorskip("py_mini_racer", reason="mini-racer, of the extra test, is not installed")
    data, script = parts(figure)
    engine = racer.MiniRacer()
    engine.eval(f"const DATA = {json.dumps(json.dumps(data))};{PAGE}{script}")
    return engine


def numbers(table: list[list[str]], names: list[str]) -> np.ndarray[Any, Any]:
    """Return the probabilities of a table in the order of the members."""
    found: dict[str, str] = dict(table)
    assert len(table) == len(found) == len(names)
    return np.array([1e-6 if "most" in found[name] else float(found[name].rstrip("%")) / 100 for name in names])


def beliefs(matrix: np.ndarray[Any, Any], prior: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return matrix @ np.asarray(attack.bayes(matrix, prior, 1 - np.eye(len(prior))).strategy)


def test_the_tables_are_the_channel_and_the_beliefs_of_bayes() -> None:
    for name, m in (("grid", 20), ("labels", 4), ("points", 30)):
        domain = KINDS[name]
        assert domain is not None
        n = domain.size
        matrix, prior = np.asarray(channel(mixing(n, m)).matrix), prior_of(n)
        figure = explorer(domain, domain if m == n else None, matrix, prior)
        engine, (first, second) = run(figure), parts(figure)[0]["panels"]
        expected = beliefs(matrix, prior)
        for secret in range(n):
            (answers, said, label), (confused, _, _) = json.loads(engine.call("pick", secret))
            assert_allclose(numbers(answers, first["names"]), matrix[secret], rtol=0.06, atol=2e-6, err_msg=name)
            assert_allclose(numbers(confused, second["names"]), expected[secret], rtol=0.06, atol=2e-6, err_msg=name)
            assert [float(text.split("%")[0].split()[-1]) for _, text in answers] == sorted(
                (float(text.split("%")[0].split()[-1]) for _, text in answers), reverse=True
            )
            assert said.startswith(f"Most: {answers[0][0]}: {answers[0][1]}")
            assert label == f"h4, {m} values. {said}"


def test_what_occurs_is_never_written_as_zero_and_what_does_not_is() -> None:
    matrix = np.array([[0.5, 1e-9, 0.5 - 1e-9, 0.0], [0.25, 0.25, 0.5, 0.0]])
    (table, said, _), _ = json.loads(run(explorer(None, None, matrix, [0.5, 0.5])).call("pick", 0))
    assert sorted(table) == [["0", "50%"], ["1", "at most 0.0001%"], ["2", "50%"], ["3", "0%"]]
    assert said == "Most: 0: 50%; 2: 50%; 1: at most 0.0001%"
    (table, said, _), _ = json.loads(run(explorer(None, None, np.eye(2), [0.5, 0.5])).call("pick", 1))
    assert (table, said) == ([["1", "100%"], ["0", "0%"]], "Most: 1: 100%")


def test_a_number_is_true_to_the_digits_that_are_shown() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.dirichlet(np.full(400, 0.3), 3)
    matrix[1:] = 0
    matrix[1, :2], matrix[2, :3] = (0.998, 0.002), (0.99499, 0.004, 0.00101)
    engine = run(explorer(None, None, matrix, np.full(3, 1 / 3)))
    for secret, row in enumerate(matrix):
        (table, _, _), _ = json.loads(engine.call("pick", secret))
        for name, text in table:
            share = row[int(name)]
            if share > 1e-6 * 1.0002:
                digit = 10.0 ** (np.floor(np.log10(share)) - (1 if share < 0.995 else 2))
                assert abs(float(text.rstrip("%")) / 100 - share) < 0.52 * digit, (name, text, share)
            else:
                assert text == ("at most 0.0001%" if share else "0%")


def test_a_page_of_300_secrets_holds_three_bytes_for_each_probability() -> None:
    matrix = np.asarray(channel(mixing(300) + 1e-3).matrix)
    data, _ = parts(explorer(None, None, matrix, prior_of(300)))
    assert len(data["channel"]) == 240_000


def test_an_answer_that_never_occurs_teaches_nothing() -> None:
    (_, _, _), (table, _, _) = json.loads(run(explorer(None, None, np.eye(3), [0.0, 0.25, 0.75])).call("pick", 0))
    assert table == [["2", "75%"], ["1", "25%"], ["0", "0%"]]


def test_a_tap_chooses_the_secret_that_is_drawn_there() -> None:
    for name in ("grid", "geographic", "points", "numbers", "labels", "one column", "one cell", "none"):
        domain = KINDS[name]
        n = 7 if domain is None else domain.size
        figure = explorer(domain, domain, channel(mixing(n)).matrix, prior_of(n))
        engine, panel = run(figure), parts(figure)[0]["panels"][1]
        for index, (x, y, width, height) in enumerate(panel["boxes"]):
            found = engine.eval(f'JSON.stringify(tap(1, "click", {x}, {y}))')
            assert json.loads(found)[0] == str(index), name
            assert 0 <= x - width / 2 + 0.1 <= x + width / 2 <= 1000.1, name
            assert 0 <= y - height / 2 + 0.6 <= y + height / 2 <= panel["height"] + 0.6, name
        # The pointer shows a number, and chooses nothing.
        x, y, *_ = panel["boxes"][0]
        chosen, said = json.loads(engine.eval(f'JSON.stringify(tap(1, "pointermove", {x}, {y}))'))
        assert chosen == str(n - 1), name
        assert said.startswith(f"{panel['names'][0]}: "), name


def test_north_is_up_and_maps_are_to_scale() -> None:
    panel = parts(explorer(KINDS["grid"], KINDS["grid"], np.eye(20), prior_of(20)))[0]["panels"][1]
    boxes = np.array(panel["boxes"])
    # 5 × 4 cells of 2 × 1 km.
    assert panel["height"] == 400
    assert_allclose(boxes[:, 2:], np.tile([200.0, 100.0], (20, 1)))
    assert_allclose(boxes[0, :2], [100, 350])
    assert_allclose(boxes[6, :2], [300, 250])
    assert panel["names"][6] == "6 (3, 1.5)"
    degrees = parts(explorer(KINDS["geographic"], None, np.ones((30, 1)), prior_of(30)))[0]["panels"][1]
    assert degrees["names"][0] == "0 (40.7100, -74.0117)"


def test_answers_elsewhere_choose_no_secret() -> None:
    secrets, others = Domain.grid(3, 2, 3.0, 2.0), Domain.grid(2, 2, 3.0, 2.0)
    engine = run(explorer(secrets, others, channel(mixing(6, 4) + 0.01).matrix, prior_of(6)))
    before = engine.eval("String(select.value)")
    assert json.loads(engine.eval('JSON.stringify(tap(0, "click", 100, 100))'))[0] == before
    assert engine.eval("select.options.length") == 6


def test_it_begins_at_the_likeliest_secret_and_is_shown_by_the_script_alone() -> None:
    figure = explorer(None, None, np.eye(3), [0.2, 0.5, 0.3])
    assert figure.startswith(
        '<figure id="explorer" aria-labelledby="explorer-title" aria-describedby="explorer-text" hidden>'
    )
    engine = run(figure)
    assert engine.eval("String(select.value)") == "1"
    assert engine.eval("figure.hidden") is False


def test_a_large_channel_has_no_explorer_unless_few_answers_occur() -> None:
    for used, there in ((300, True), (301, False)):
        matrix = np.zeros((1000, 1000))
        matrix[:, :used] = 1 / used
        assert bool(explorer(None, None, matrix, np.full(1000, 1e-3))) is there


def test_names_stay_text_and_the_page_runs_this_script_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = Domain.from_labels([HOSTILE, "<!--", "b"])
    figure = explorer(labels, labels, np.eye(3), [0.2, 0.5, 0.3])
    page = Page(figure)
    assert page.elements.count("script") == 2
    assert "<" not in re.findall(r'json">(.*?)</script>', figure)[0]
    digest = base64.b64encode(hashlib.sha256(parts(figure)[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" == POLICY
    leave_pictures_blank(monkeypatch)
    assert POLICY in Page(page_of(*city())).values("content")[0]
