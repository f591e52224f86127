"""Small steps between a table and what is read of it: labels beside numbers, order of values, texts, levels."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.cli import main
from mechdesign.specification._table_specification import parse
from mechdesign.tables._release import _quote
from mechdesign.tables._strategies._classical import build_hierarchical_levels, build_ordered_hierarchical_levels

T = md.tables


def test_each_answer_stands_beside_its_label() -> None:
    place = T.Domain({"x": ["a", "b", "c"]})
    found = T.release_histogram(["a"] * 5 + ["c"] * 9, T.Policy.full(place), epsilon=1000, rng=1)
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", found._repr_html_())
    for label, answer in zip("abc", found.answers.tolist(), strict=True):
        assert cells[cells.index(label) + 1] == f"{answer:.4g}", cells


def test_values_in_any_order_are_nearest_by_their_size() -> None:
    for values in ([30, 10, 20], [10, 20, 30], [20, 30, 10]):
        attribute = T.Domain({"x": values}).attributes[0]
        asked = np.array([10.0, 29.0, 19.0, 14.9, 15.1, 34.9])
        nearest = [int(np.abs(np.array(values) - each).argmin()) for each in asked]
        assert attribute.nearest_codes(asked, "data").tolist() == nearest, values


def test_texts_are_cells_for_every_reader_of_csv() -> None:
    for text in ("a\rb", "a\nb", "a,b", 'a"b', "plain", " a "):
        [[cell]] = list(csv.reader(io.StringIO(f"{_quote(text)}\r\n", newline="")))
        assert cell == text
        assert (_quote(text)[0] == '"') == any(mark in text for mark in ',"\r\n')


def test_levels_of_trees_are_blocks_of_each_width_below_theta() -> None:
    for size, theta, fanout in ((16, 4, 2), (16, 4, 4), (16, 5, 2), (27, 9, 3), (10, 2, 2)):
        levels = build_ordered_hierarchical_levels(size, theta, fanout)
        widths = [fanout**power for power in range(20) if fanout**power < theta]
        assert len(levels) == 1 + len(widths)
        for level, width in zip(levels[1:], widths[::-1], strict=True):
            assert level.sum(axis=1).max() == width
            assert (level.sum(axis=0) == 1).all()
    for size, fanout in ((16, 2), (16, 4), (17, 2), (27, 3)):
        levels = build_hierarchical_levels(size, fanout)
        assert len(levels) == 1 + sum(fanout**power < size for power in range(20))


def test_known_tables_are_pairs_also_for_counts_of_zero() -> None:
    place = T.Domain({"sex": ["f", "m"], "age": range(3)})
    for table in ([0, 0], [3, 0], [2, 5]):
        made = T.marginal_constraints(place, ["sex"], table)
        assert [(known, array.tolist()) for array, known in made] == [
            (known, [index // 3 == row for index in range(6)]) for row, known in enumerate(table)
        ]
    half = np.arange(6) < 3
    assert_refused(
        [
            Mistake(name, lambda entry=entry: T.Policy.full(place, constraints=[entry]), "constraints[0]")
            for name, entry in {
                "nothing": [],
                "three arrays": [half, half, half],
                "a pair of pairs": (half, 1, 2),
            }.items()
        ]
    )


SPEC = """
domain.attributes.x = { range = [0, 9] }
policy.kind = "full"
release = { kind = "kmeans", epsilon = 1000, k = 2, iterations = 1, initial = [[0.0], [1.0]] }
"""


def test_initial_centroids_of_a_specification_are_those_of_the_release() -> None:
    spec = parse(SPEC)
    query = spec.query if hasattr(spec, "query") else spec.table.query(spec.domain, None)
    assert np.asarray(query.initial).tolist() == [[0.0], [1.0]]
    assert (query.k, query.iterations) == (2, 1)


def test_a_long_label_counts_in_the_estimate_of_the_answers() -> None:
    sizes = []
    for length in (1, 1000):
        spec = parse(
            f'domain.attributes.x = {{ values = ["{"a" * length}", "b"] }}\npolicy.kind = "full"\n'
            'release = { kind = "histogram", epsilon = 1 }\n'
        )
        sizes.append(spec.table.size(spec.domain, None)[1])
    assert sizes[1] - sizes[0] == 999


def test_inspect_of_a_release_has_no_empty_heading(tmp_path: Path) -> None:
    place = T.Domain({"x": ["a", "b"]})
    T.release_histogram(["a", "b"], T.Policy.full(place), epsilon=1).save(tmp_path / "out")
    done = CliRunner().invoke(main, ["inspect", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    title = next(index for index, line in enumerate(lines) if "Release from a table" in line)
    assert lines[title + 1].strip()


def test_policy_names_its_example() -> None:
    done = CliRunner().invoke(main, ["policy", "--example", "districts", "--no-repair"])
    assert done.exit_code == 0, done.output
    assert "Districts of a city" in done.stdout.splitlines()[0]


def test_two_notes_on_records_are_both_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("x,count\n1,3\n5,2\n")
    Path("s.toml").write_text(
        'domain.attributes.x = { range = [0, 9] }\npolicy.kind = "full"\n'
        'release = { kind = "ranges", epsilon = 1, ranges = [[0, 2], [2, 9]] }\n'
    )
    done = CliRunner().invoke(main, ["table", "s.toml", "t.csv"])
    assert done.exit_code == 0, done.output
    assert "count is not read" in " ".join(done.output.split()) or "is not read" in done.output
    assert "both" in done.output or "2" in [word for line in done.stderr.splitlines() for word in line.split()]
