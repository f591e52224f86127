"""Attributes of truth values: accepted spellings of cells, and the remedy for other cells."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from rows import each_row

from mechdesign.data.table import read_table
from mechdesign.errors import InputError, SpecificationError
from mechdesign.specification._read import Source, convert
from mechdesign.specification._table_sections import RecordsTable, build_records, value_numbers


def records(values):
    return build_records(convert({"attributes": {"paid": {"values": values}}}, RecordsTable), Source() / "domain")


def indices(values, table):
    return records(values).indices(read_table(table, ["paid"])).tolist()


@each_row("cells", [["true", "false"], ["True", "False"], ["TRUE", "FALSE"], [" true", "false "]])
def test_all_spellings_are_read(tmp_path, cells):
    (tmp_path / "t.csv").write_text("paid,id\n" + "".join(f"{cell},1\n" for cell in cells), encoding="utf-8")
    assert indices([True, False], tmp_path / "t.csv") == [0, 1]
    assert indices([False, True], tmp_path / "t.csv") == [1, 0]


def test_parquet_and_python_hold_them(tmp_path):
    parquet.write_table(pa.table({"paid": [True, False, True]}), tmp_path / "t.parquet")
    assert indices([False, True], tmp_path / "t.parquet") == [1, 0, 1]
    assert indices([False, True], {"paid": [True, False]}) == [1, 0]


def test_ratios_are_no_numbers():
    for cell in ("4/2", "2/1", " 4/2 "):
        with pytest.raises(InputError, match="is outside the domain"):
            indices([1, 2], {"paid": [cell]})
    assert indices([1, 2], {"paid": ["2.0", "1"]}) == [1, 0]


@each_row("cell", ["1", "yes", "wahr", "t"])
def test_other_cells_are_refused_with_the_remedy(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"paid,id\n{cell},1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"must be one of True, False\. List the values as they are spelled"):
        indices([True, False], tmp_path / "t.csv")


def test_texts_stay_texts(tmp_path):
    (tmp_path / "t.csv").write_text("paid,id\nTrue,1\n", encoding="utf-8")
    assert indices(["true", "True"], tmp_path / "t.csv") == [1]
    assert indices(["True", False], tmp_path / "t.csv") == [0]


def test_a_specification_names_them(tmp_path):
    attribute = records([False, True]).domain.attribute("paid")
    assert value_numbers(attribute, True, Source()) == [1]
    assert value_numbers(attribute, [False, True], Source()) == [0, 1]


def test_what_is_no_value_is_refused_by_its_place():
    import datetime

    for wrong in (datetime.date(2020, 1, 1), [1], {"a": 1}):
        with pytest.raises(SpecificationError, match=r"domain\.attributes\.paid\.values\[1\]: is not a value of a"):
            records(["a", wrong])


def test_blanks_are_no_empty_cell(tmp_path):
    (tmp_path / "t.csv").write_text("paid,id\n  ,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"must be one of 'x', ''\. .*Leave the cell empty, without blanks"):
        indices(["x", ""], tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"must be one of 'x'\. .*add \"\" to values"):
        indices(["x"], tmp_path / "t.csv")


def test_texts_that_are_the_same_once_letters_are_joined_are_refused():
    with pytest.raises(SpecificationError, match=r"values\[1\]: repeats values\[0\]"):
        records(["\u00e9", "e\u0301"])


@each_row("kind", [pa.float32(), pa.float64()])
def test_nan_in_parquet_is_a_missing_value(tmp_path, kind):
    parquet.write_table(pa.table({"paid": pa.array([1.0, float("nan"), 2.0, None], kind)}), tmp_path / "t.parquet")
    assert indices([1, 2, ""], tmp_path / "t.parquet") == [0, 2, 1, 2]
    with pytest.raises(InputError, match="row 1, column paid: has no value"):
        indices([1, 2], tmp_path / "t.parquet")
