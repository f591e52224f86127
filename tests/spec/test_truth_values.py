"""An attribute of truth values is read from cells that spell them, and other cells are refused with a remedy."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from mechdesign.errors import InputError, SpecificationError
from mechdesign.spec.blowfish.attributes import build_records, value_numbers


def records(values):
    return build_records({"attributes": {"paid": {"values": values}}}, "domain")


@pytest.mark.parametrize("cells", [["true", "false"], ["True", "False"], ["TRUE", "FALSE"], [" true", "false "]])
def test_all_spellings_are_read(tmp_path, cells):
    (tmp_path / "t.csv").write_text("paid,id\n" + "".join(f"{cell},1\n" for cell in cells), encoding="utf-8")
    assert records([True, False]).indices(tmp_path / "t.csv").tolist() == [0, 1]
    assert records([False, True]).indices(tmp_path / "t.csv").tolist() == [1, 0]


def test_parquet_and_python_hold_them(tmp_path):
    parquet.write_table(pa.table({"paid": [True, False, True]}), tmp_path / "t.parquet")
    assert records([False, True]).indices(tmp_path / "t.parquet").tolist() == [1, 0, 1]
    assert records([False, True]).indices({"paid": [True, False]}).tolist() == [1, 0]


@pytest.mark.parametrize("cell", ["1", "yes", "wahr", "t"])
def test_other_cells_are_refused_with_the_remedy(tmp_path, cell):
    (tmp_path / "t.csv").write_text(f"paid,id\n{cell},1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"must be one of true, false\. State the values as the cells spell them"):
        records([True, False]).indices(tmp_path / "t.csv")


def test_texts_stay_texts(tmp_path):
    (tmp_path / "t.csv").write_text("paid,id\nTrue,1\n", encoding="utf-8")
    assert records(["true", "True"]).indices(tmp_path / "t.csv").tolist() == [1]
    assert records(["True", False]).indices(tmp_path / "t.csv").tolist() == [0]


def test_a_specification_names_them(tmp_path):
    attribute = records([False, True]).domain.attribute("paid")
    assert value_numbers(attribute, True, "release.count") == [1]
    assert value_numbers(attribute, [False, True], "release.count") == [0, 1]


def test_what_is_no_value_is_refused_by_its_place():
    import datetime

    for wrong in (datetime.date(2020, 1, 1), [1], {"a": 1}):
        with pytest.raises(SpecificationError, match=r"domain\.attributes\.paid\.values\[1\]: is no value of a column"):
            records(["a", wrong])
