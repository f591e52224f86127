"""What tests of specifications share: small tables, and how they are put together."""

from __future__ import annotations

import pytest
from refusals import Mistake, fault

from mechdesign import specification as spec
from mechdesign.errors import SpecificationError

GRID = "domain.grid = { columns = 3, rows = 2, width = 3.0, height = 2.0 }"
BOX = "domain.grid = { columns = 2, rows = 2, south = 40.0, north = 40.2, west = -74.2, east = -74.0 }"
LABELS = 'domain.labels = ["a", "b", "c"]'
UNIFORM = "prior.uniform = true"
EUCLIDEAN = 'cost.distance = "euclidean"'
HAMMING = 'cost.distance = "hamming"'
METRIC = 'privacy = [{ kind = "metric", epsilon = 0.5, distance = "hamming" }]'
CHECKINS = "who,lat,lon,at\n6,40.05,-74.15,1\n6,40.15,-74.05,2\nbo,40.05,-74.05,3\n6,41.0,-74.05,4\n"


def document(domain=GRID, prior=UNIFORM, cost=HAMMING, privacy=METRIC, rest=""):
    # Keys before tables: `rest` may hold tables.
    return "\n".join([domain, prior, cost, privacy, rest])


def problem(folder=".", **parts):
    return spec.parse(document(**parts), folder).problem()


def requirement(table, folder=".", domain=GRID):
    return problem(folder, domain=domain, privacy=f"privacy = [{table}]").requirements[0]


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def failure(text, folder="."):
    with pytest.raises(SpecificationError) as raised:
        spec.parse(text, folder).problem()
    return raised.value


def assert_refused_texts(table, make=lambda text, folder: problem_of(text, folder), folder="."):
    """Check that each row (text, path, part of the message) is refused at that path, in the words of the file."""
    faults = []
    for text, path, *says in table:
        found, message = fault(
            Mistake(text, lambda text=text: make(text, folder), path, "".join(says), SpecificationError)
        )
        if found or not message.startswith(f"{path}:") or "Decimal" in message:
            faults.append(f"{text}: {found or message}")
    assert table, "there is no row in the table"
    assert not faults, "\n".join(faults)


def problem_of(text, folder="."):
    return spec.parse(text, folder).problem()
