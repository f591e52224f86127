"""Names, settings and values at a wrong place in a specification."""

import pytest
from rows import each_row

import mechdesign as md
from mechdesign.errors import InputError, SpecificationError

TEXT = """
domain.line = 3
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "metric", epsilon = 1, distance = "euclidean" }]
"""


def test_the_name_of_a_file_is_not_its_text():
    with pytest.raises(SpecificationError, match="use read_spec"):
        md.specification.parse("city.toml")


@each_row("name", ["epsilon", "toleranze"])
def test_what_is_no_setting_is_named(name):
    with pytest.raises(InputError, match=f"{name}: is not a setting of a solver.*tolerance"):
        md.specification.parse(TEXT).design(**{name: 1})


def test_an_address_is_a_text(tmp_path):
    pytest.importorskip("distributed")
    asked = md.sweep.parse(f'{TEXT}sweep = {{ "privacy.0.epsilon" = [1, 2] }}')
    with pytest.raises(InputError, match="dask: has another type; found 'bool'"):
        md.sweep.run(asked, tmp_path / "swept", dask=True)
