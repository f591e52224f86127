"""Folders that hold something else than a design, and files with the longest names."""

from __future__ import annotations

import os

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.base._atomic import make_hidden_name, write_file
from mechdesign.cli import main
from mechdesign.errors import ExportError
from mechdesign.leakage.accounting import Ledger


@pytest.mark.parametrize(("file", "what"), [("answers.csv", "a release from a table"), ("released.csv", "a trace")])
@pytest.mark.parametrize("line", [["verify"], ["sample", "--secret", "0"], ["export", "--format", "json"], ["audit"]])
def test_a_release_is_told_from_a_design_that_does_not_hold(tmp_path, line, file, what):
    (tmp_path / file).write_text("x")
    (tmp_path / "release.json").write_text("{}")
    result = CliRunner().invoke(main, [line[0], str(tmp_path), *line[1:]])
    assert result.exit_code == 2
    assert what.removeprefix("a ") in result.stderr
    assert "not a design" in result.stderr


def test_a_folder_of_neither_is_no_export(tmp_path):
    result = CliRunner().invoke(main, ["verify", str(tmp_path)])
    assert result.exit_code == 2


@pytest.mark.parametrize("name", ["a" * 255, "a" * 233 + ".csv", "é" * 127, "a" * 237])
def test_the_longest_names_are_taken(tmp_path, name):
    write_file(tmp_path / name, [b"text"])
    assert (tmp_path / name).read_bytes() == b"text"
    assert os.listdir(tmp_path) == [name]
    with pytest.raises(ExportError, match="name too long"):
        write_file(tmp_path / (name + "a" * 255), [b"text"])


def test_hidden_names_of_long_names_differ():
    first, second = make_hidden_name("a" * 255, ".lock"), make_hidden_name("a" * 254 + "b", ".lock")
    assert first != second
    assert len(first) == len(second) == 255
    assert make_hidden_name("a" * 249, ".lock") == f".{'a' * 249}.lock"
    assert "~" in make_hidden_name("a" * 250, ".lock")


def test_a_ledger_of_the_longest_name(tmp_path):
    path = tmp_path / ("l" * 250 + ".json")
    md.Ledger(epsilon=1, path=path).spend("a count", "anyone", epsilon="0.5")
    assert Ledger.existing(path).remaining_epsilon * 2 == 1
