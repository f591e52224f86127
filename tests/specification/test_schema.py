"""The JSON schema and the reader accept and refuse the same specifications."""

from __future__ import annotations

import tomllib
from typing import get_args

import pytest
from rows import each_row

from mechdesign.errors import SpecificationError
from mechdesign.model._grammar import Distance
from mechdesign.specification import examples
from mechdesign.specification._document import Document, schema
from mechdesign.specification._measures import DISTANCES
from mechdesign.specification._specification import parse
from mechdesign.specification._table_specification import ReleaseDocument
from mechdesign.specification._table_specification import parse as parse_release

jsonschema = pytest.importorskip("jsonschema")


@pytest.fixture(scope="module")
def validator():
    grammar = schema()
    jsonschema.Draft202012Validator.check_schema(grammar)
    return jsonschema.Draft202012Validator(grammar)


SMALL = """
domain.labels = ["a", "b"]
prior.uniform = true
cost.distance = "hamming"
privacy = [{ kind = "metric", epsilon = 1.5, distance = "hamming" }]
"""


@each_row(
    ("old", "new", "accepted"),
    [
        ("", "", True),
        ("epsilon = 1.5", 'epsilon = "1/3"', True),
        ('kind = "metric"', 'kind = "distortion", minimum = 0.1', False),
        ('kind = "metric"', 'kind = "metrik"', False),
        ("epsilon", "epsilom", False),
        ("uniform = true", "counts = [1, 2]\nprior.uniform = true", False),
        ("uniform = true", "uniform = 3", False),
        ('labels = ["a", "b"]', 'labels = ["a", "b"]\ndomain.points = [[0], [1]]', True),
        ('labels = ["a", "b"]', 'labels = ["a", "b"]\ndomain.line = 2', False),
        ('cost.distance = "hamming"', 'cost.distance = "humming"', False),
        ('cost.distance = "hamming"', "", False),
        ("domain", "version = 2\ndomain", False),
        ("domain", 'solver.rows = "few"\ndomain', False),
        ('[{ kind = "metric", epsilon = 1.5, distance = "hamming" }]', "[]", False),
        ('kind = "metric", epsilon = 1.5, distance = "hamming"', 'kind = "graph", epsilon = 1, edges = [[0, 1]]', True),
    ],
)
def test_schema_and_reader_agree(validator, tmp_path, old, new, accepted):
    (tmp_path / "b.csv").write_text("step,epsilon\n0,1\n")
    text = SMALL.replace(old, new, 1)
    assert validator.is_valid(tomllib.loads(text)) == accepted
    if accepted:
        assert parse(text, tmp_path).problem().prior.size == 2
    else:
        with pytest.raises(SpecificationError):
            parse(text, tmp_path).problem()


@each_row("name", [example.name for example in examples.EXAMPLES if "design" in example.commands])
def test_the_embedded_specifications_are_valid(validator, name):
    validator.validate(tomllib.loads(examples.find(name).text))


@each_row(
    ("old", "new", "accepted"),
    [
        ("", "", True),
        ("epsilon = 0.5", "rho = 0.5", True),
        ("theta", "thetta", False),
        ("range = [0, 99]", "low = 0, high = 9, step = 1", True),
        ('kind = "quantiles"', 'kind = "qantiles"', False),
        ("[domain]", 'ledger.path = "l.json"\n[domain]', True),
    ],
)
def test_schema_and_reader_agree_on_releases(old, new, accepted):
    text = examples.find("admissions").text.replace(old, new, 1)
    found = jsonschema.Draft202012Validator(schema(ReleaseDocument))
    assert found.is_valid(tomllib.loads(text)) == accepted
    if accepted:
        parse_release(text)
    else:
        with pytest.raises(SpecificationError):
            parse_release(text)


@each_row("document", [Document, ReleaseDocument])
def test_every_key_is_described(document):
    grammar = schema(document)
    for name, table in [("document", grammar), *grammar["$defs"].items()]:
        assert table["description"], name
        for key, described in table["properties"].items():
            assert described.get("description"), f"{name}.{key}"
            assert "null" not in str(described)


def test_names_of_distances():
    assert get_args(Distance) == tuple(DISTANCES)
