"""What stands in public folders depends on private data through the outputs alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from public_folders import Case, DrawnOtherwise, Draws, compare, forced, sample_case, table_case, trace_case

from mechdesign.cli import _console as console
from mechdesign.cli import _places as places
from mechdesign.cli import sample
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.specification._table_specification import ReleaseSpecification

# For each kind of release from a table, a seed that soon makes such a case.
TABLES = {"histogram": 5, "sum": 6, "quantiles": 3, "ranges": 6, "kmeans": 5, "workload": 4}


def some(make: Callable[[random.Random], Case], seed: int, words: str = "") -> Case:
    """Return a case whose kind has these words, and whose private files differ."""
    rng = random.Random(seed)
    found = (make(rng) for _ in range(1000))
    return next(case for case in found if words in case.kind and case.private[0] != case.private[1])


def compared(case: Case) -> tuple[str, list[str]]:
    """Compare until the outputs of one history can come from the other, too: they are the system's."""
    ends = (compare(case) for _ in range(30))
    return next(end for end in ends if end[0] != "impossible")


@pytest.mark.parametrize("kind", TABLES)
def test_releases_from_neighbouring_tables_differ_through_their_answers_only(kind: str) -> None:
    assert compared(some(table_case, TABLES[kind], kind)) == ("answered", [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lp", "planar-isotropic, timed"])
def test_traces_of_neighbouring_histories_differ_through_their_outputs_only(kind: str) -> None:
    assert compared(some(trace_case, 1, kind)) == ("answered", [])


def test_answers_for_places_depend_on_them_through_what_was_drawn_only() -> None:
    assert compared(some(sample_case, 1, "-n")) == ("answered", [])


def test_what_stands_in_a_release_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    made = ReleaseSpecification.release

    def leaky(self: ReleaseSpecification, table: Any, **options: Any) -> Any:
        found = made(self, table, **options)
        # The table, as the number of signs of a title.
        object.__setattr__(found, "title", "A" * (sum(Path(table).read_bytes()) % 97))
        return found

    monkeypatch.setattr(ReleaseSpecification, "release", leaky)
    outcome, differences = compared(some(table_case, 7, "histogram"))
    assert outcome == "answered"
    assert {each.split(":")[0] for each in differences} >= {"stdout", "released/report.html"}


def test_what_is_said_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    located = places.locate_secrets

    def talkative(*arguments: Any) -> Any:
        secrets, most = located(*arguments)
        console.say_note(f"the first place is {secrets[0]}")
        return secrets, most

    monkeypatch.setattr(sample, "locate_secrets", talkative)
    differences = compared(some(sample_case, 1, "-n"))[1]
    assert any(each.startswith("stderr: -note: the first place") for each in differences)


def test_draws_that_depend_on_data_are_found() -> None:
    draws, law, values = Draws(), DiscreteLaplace(2), np.arange(3)
    with forced(draws):
        kept = law.add(values)
    draws.given = 0
    with forced(draws):
        assert law.add(values + 5).tolist() == kept.tolist()
        with pytest.raises(DrawnOtherwise, match="more often"):
            law.add(values)
    for other, added in ((DiscreteLaplace(3), values), (law, values[:2])):
        draws.given = 0
        with forced(draws), pytest.raises(DrawnOtherwise, match="is drawn where the neighbour"):
            other.add(added)
