"""Errors about a file with private places show the form of a cell, and never a first line of data."""

from __future__ import annotations

from pathlib import Path

import pytest
from mechdesign.data._matrices import read_labelled
from rows import each_row

from mechdesign.data._layout import cell, form_of
from mechdesign.data._text import columns_text, read_rows
from mechdesign.data.budgets import read_budgets
from mechdesign.errors import InputError, showing_values

PLACES = ["46.950001 7.440007", "46950001,7440007", "46.95;7.44", "LINESTRING (7.440007 46.950001, 7.440028 46.950014)"]


@each_row("text", PLACES)
def test_a_cell_with_several_coordinates_is_shown_without_digits(text: str) -> None:
    assert not set("0123456789") - {"9"} & set(cell(text))
    for field in (f"POINT ({text})", text):
        assert not any(part in columns_text(["user", field]) for part in ("46", "7.4"))


@each_row("text", ["46.9512", "north", "12", "2023-04-01", "a 7", "x" * 40])
def test_of_a_single_value_the_form_is_shown(text: str) -> None:
    assert cell(text) == form_of(text)
    assert set(cell(text)) <= set("9a.- ")
    with showing_values():
        assert cell(text) == text


def test_names_of_columns_are_shown() -> None:
    assert columns_text(["user", "lat_2", "lon_2", "2nd"]) == "the columns user, lat_2, lon_2, 2nd"
    assert columns_text(["Alter", "Farbe"], ["alter"]) == "the columns Alter, Farbe"
    for line in (
        ["user", "46°57'0.004\"N"],
        ["7 4", *(f"{k:04d} and {k:04d}" for k in range(9))],
        ["Ada", "HIV positive"],
        ["name", "2012-04-03 18:00"],
    ):
        shown = columns_text(line, ["age"])
        assert shown.endswith(", ".join(map(form_of, line))[:150])
        assert "only their form is shown" in shown
        with showing_values():
            assert ", ".join(line)[:150] in columns_text(line)


@each_row("blanks", ["\n", "  \n\n", "\n" * 3000])
def test_other_formats_are_named_after_blanks_too(tmp_path: Path, blanks: str) -> None:
    (tmp_path / "p.csv").write_text(blanks + '{"type": "FeatureCollection", "features": [[7.440007, 46.950001]]}\n')
    with pytest.raises(InputError, match="GeoJSON") as caught:
        list(read_rows(tmp_path / "p.csv", ","))
    assert "46.95" not in str(caught.value)


def test_a_file_of_blanks_ends(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(" \n" * 5000)
    assert len(list(read_rows(tmp_path / "p.csv", ","))) == 5000


@each_row("content", ['{"type": "FeatureCollection"}', "step,epsilon\n0,46.950001 7.440007\n"])
def test_files_of_budgets_are_read_alike(tmp_path: Path, content: str) -> None:
    (tmp_path / "b.csv").write_text(content)
    with pytest.raises(InputError) as caught:
        read_budgets(tmp_path / "b.csv")
    assert "46.95" not in str(caught.value)


def test_a_cell_of_a_channel_is_shown_alike(tmp_path: Path) -> None:
    (tmp_path / "channel.csv").write_text("secret,a,b\nhome,0.5,46.950001 7.440007 46.950014 7.440028\n")
    with pytest.raises(InputError, match=r"line 2, column 3: is not a number; found 99\.999999 9") as caught:
        read_labelled(tmp_path / "channel.csv")
    assert "46.95" not in str(caught.value)
