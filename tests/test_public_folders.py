"""What stands in public folders depends on private data through the outputs alone: `benchmarks/attacks/public_folders.py`."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mechdesign.cli import _console as console
from mechdesign.cli import _places as places
from mechdesign.cli import sample
from mechdesign.mechanisms._discrete import DiscreteLaplace
from mechdesign.specification._table_specification import ReleaseSpecification
from mechdesign.traces import _released as files
from mechdesign.traces import _released as released
from mechdesign.traces._stage import Stage


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[1] / "benchmarks" / "attacks" / "public_folders.py"
    spec = importlib.util.spec_from_file_location("public_folders", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["public_folders"] = module
    spec.loader.exec_module(module)
    return module


def some(script: ModuleType, name: str, seed: int, words: str = "") -> Any:
    """Return a case whose kind has these words, and whose private files differ."""
    rng = random.Random(seed)
    found = (getattr(script, name)(rng) for _ in range(1000))
    return next(case for case in found if words in case.kind and case.private[0] != case.private[1])


def compared(script: ModuleType, case: Any) -> tuple[str, list[str]]:
    """Compare until the outputs of one history can come from the other, too: they are the system's."""
    ends = (script.compare(case) for _ in range(30))
    return next(end for end in ends if end[0] != "impossible")


@pytest.mark.parametrize(
    ("kind", "seed"), [("histogram", 5), ("sum", 6), ("quantiles", 3), ("ranges", 6), ("kmeans", 5), ("workload", 4)]
)
def test_releases_from_neighbouring_tables_differ_through_their_answers_only(
    script: ModuleType, kind: str, seed: int
) -> None:
    assert compared(script, some(script, "table_case", seed, kind)) == ("answered", [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lp", "planar-isotropic, timed"])
def test_traces_of_neighbouring_histories_differ_through_their_outputs_only(script: ModuleType, kind: str) -> None:
    assert compared(script, some(script, "trace_case", 1, kind)) == ("answered", [])


def test_answers_for_places_depend_on_them_through_what_was_drawn_only(script: ModuleType) -> None:
    assert compared(script, some(script, "sample_case", 1, "-n")) == ("answered", [])


def test_what_stands_in_a_table_release_otherwise_is_found(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some(script, "table_case", 5, "histogram")
    made = ReleaseSpecification.release

    def leaky(self: ReleaseSpecification, table: Any, **options: Any) -> Any:
        found = made(self, table, **options)
        # The table, as the number of signs of a title.
        object.__setattr__(found, "title", "A" * (sum(Path(table).read_bytes()) % 97))
        return found

    monkeypatch.setattr(ReleaseSpecification, "release", leaky)
    outcome, differences = compared(script, case)
    assert outcome == "answered"
    assert any(each.startswith("stdout: -A") for each in differences)


def test_what_stands_in_a_trace_otherwise_is_found(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some(script, "trace_case", 1, "planar-isotropic, timed")
    draw, written, seen = Stage.draw, files.steps_json, []

    def watched(self: Stage, state: int, *rest: Any, **options: Any) -> Any:
        seen.append(int(state))
        return draw(self, state, *rest, **options)

    monkeypatch.setattr(Stage, "draw", watched)
    monkeypatch.setattr(released, "steps_json", lambda *arguments: written(*arguments) + b" " * seen[-1])
    assert any("released/steps.json: sizes" in each for each in compared(script, case)[1])


def test_what_is_said_otherwise_is_found(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    case = some(script, "sample_case", 1, "-n")
    located = places.locate_secrets

    def talkative(*arguments: Any) -> Any:
        secrets, most = located(*arguments)
        console.say_note(f"the first place is {secrets[0]}")
        return secrets, most

    monkeypatch.setattr(sample, "locate_secrets", talkative)
    assert any(each.startswith("stderr: -note: the first place") for each in compared(script, case)[1])


def test_draws_that_depend_on_data_are_found(script: ModuleType) -> None:
    draws = script.Draws()
    law, values = DiscreteLaplace(2), np.arange(3)
    with script.forced(draws):
        kept = law.add(values)
    draws.given = 0
    with script.forced(draws):
        assert law.add(values + 5).tolist() == kept.tolist()
        with pytest.raises(script.DrawnOtherwise, match="more often"):
            law.add(values)
    for other, added in ((DiscreteLaplace(3), values), (law, values[:2])):
        draws.given = 0
        with script.forced(draws), pytest.raises(script.DrawnOtherwise, match="is drawn where the neighbour"):
            other.add(added)


def test_the_lists_of_what_is_left_out_are_short(script: ModuleType) -> None:
    # A field that is added here is one that nobody compares.
    assert set(script.CLOCK) == {"console", "steps.json", "certificate.json", "ledger.json"}
    assert set(script.RANDOM) == {"ledger.json", "release.json"}
    text = b'{"solve_seconds": 0.25, "expected_cost": 0.5}'
    assert script._without_chance("steps.json", text) == b'{, "expected_cost": 0.5}'
    assert script._without_chance("released.csv", text) == text
