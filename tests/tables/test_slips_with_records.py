"""Arguments of another kind or another shape than was meant."""

import pytest

import mechdesign as md
from mechdesign.errors import InputError, SpecificationError
from mechdesign.specification._table_specification import read

PLACES = md.tables.Domain({"x": range(4), "y": range(4)})


def test_points_are_assigned_with_the_attributes_of_the_clusters():
    found = md.tables.KMeans(2, iterations=1).release([(0, 0), (3, 3)], md.tables.Policy.full(PLACES), epsilon=1, rng=1)
    assert found.assign([[0.0, 0.0]]).shape == (1,)
    for width in (1, 3):
        with pytest.raises(InputError, match="points: has the wrong number of columns"):
            found.assign([[0.0] * width])


def test_files_that_are_none_are_named(tmp_path):
    wrong = tmp_path / "ages.csv"
    wrong.write_text("age,name\n3,x\n")
    with pytest.raises(SpecificationError, match=r"ages.csv: is not valid TOML.*key = value"):
        read(wrong)
    with pytest.raises(InputError, match="a folder in which a release was saved"):
        md.tables.load(tmp_path)
