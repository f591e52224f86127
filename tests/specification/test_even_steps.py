"""Time steps of chains and traces: even steps, chains for each hour, and warnings if the steps differ."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from rows import each_row

from mechdesign import specification as spec
from mechdesign.errors import InputWarning, SpecificationError
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._words import Words
from mechdesign.runs import sweep
from mechdesign.specification._read import Source
from mechdesign.specification._specification import Specification, read_spec
from mechdesign.specification._steps import Steps

BOX = "domain.grid = { columns = 2, rows = 1, south = 40.0, north = 40.1, west = -74.2, east = -74.0 }"
# Seconds and cell: about one point a minute, then a gap of an hour.
POINTS = [(0, 0), (10, 1), (65, 0), (120, 1), (3900, 1), (3965, 0)]
LONGITUDE = (-74.15, -74.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = ["user,latitude,longitude,time"]
    start = np.datetime64("2020-01-01T08:00:00")
    lines += [f"a,40.05,{LONGITUDE[cell]},{start + np.timedelta64(at, 's')}" for at, cell in POINTS]
    (tmp_path / "c.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "swap.csv").write_text("0,1\n1,0\n")
    (tmp_path / "stay.csv").write_text("1,0\n0,1\n")
    (tmp_path / "mix.csv").write_text("0.5,0.5\n0.5,0.5\n")
    return tmp_path


def read(folder: Path, transition: str, rest: str = "", prior: str = "") -> Specification:
    data = f'prior = {{ checkins = {{ path = "c.csv", user = "user", time = "time"{prior} }}, smoothing = 1 }}'
    graph = 'privacy = [{ kind = "graph", epsilon = 1, complete = true }]'
    release = f'[release]\nhistory = "others"\ntransition = {{ {transition} }}\n{rest}'
    return spec.parse(f'{BOX}\n{data}\ncost.distance = "hamming"\n{graph}\n{release}', folder)


def test_steps_of_a_minute_leave_out_what_lies_between(folder: Path) -> None:
    found = read(folder, 'estimated = true, smoothing = 1, every = "1 min"').release_settings
    # Cells 0, 1, 1 at 0, 60 and 120 s; after the gap, cell 1 at 3900 s and 3960 s.
    expected = MarkovChain.from_traces([[0, 1, 1], [1, 1]], 2, 1.0)
    np.testing.assert_array_equal(found.transition.matrix, expected.matrix)
    assert found.transitions.every == 60
    assert found.notes == (
        "prior.checkins: 6 points (median interval 55 s) resampled to one every 1 min: 2 of them dropped, "
        "cut at 1 gap longer than 3 min",
        "release.transition: 3 steps of 1 user(s) counted",
    )


def test_the_prior_can_be_counted_at_even_steps_too(folder: Path) -> None:
    given = read(folder, "estimated = true, smoothing = 1", prior=', every = "1 min", gap = "2 min"')
    np.testing.assert_allclose(given.problem().prior, [2 / 7, 5 / 7])
    assert any("cut at 1 gap longer than 2 min" in note for note in given.notes)
    assert given.release_settings.transitions.every == 60


def test_uneven_steps_are_stated(folder: Path) -> None:
    notes = read(folder, "estimated = true, smoothing = 1").release_settings.notes
    assert "a median interval of 55 s" in notes[0]


def trace(*seconds: int) -> dict[str, object]:
    times = np.datetime64("2020-01-01T07:59:00") + np.array(seconds) * np.timedelta64(1, "s")
    return {"state": [0, 1, 0][: len(seconds)], "time": times}


def test_a_chain_and_a_trace_of_other_steps(folder: Path) -> None:
    given = read(folder, 'path = "mix.csv", every = "5 min"')
    assert len(given.release(trace(0, 300, 600), seed=1).releases) == 3
    with pytest.raises(SpecificationError, match="differs from the steps of the trace") as raised:
        given.release(trace(0, 60, 120), seed=1)
    assert raised.value.path == "release.transition.every"
    # A trace without times is assumed to have the same steps as the chain.
    assert len(given.release([0, 1], seed=1).releases) == 2
    with pytest.warns(InputWarning, match="median interval of 55 s"):
        read(folder, "estimated = true, smoothing = 1").release(trace(0, 300, 600), seed=1)


def test_a_trace_is_brought_to_even_steps(folder: Path) -> None:
    given = read(folder, 'path = "mix.csv", every = "1 min"', 'every = "1 min"\ngap = "10 min"')
    found = given.release(trace(0, 70, 200), seed=1)
    # States at 0, 60, 120 and 180 s.
    assert len(found.releases) == 4
    assert given.steps(trace(0, 70, 200)).states.tolist() == [0, 0, 1, 1]


def test_chains_of_each_step_and_each_hour(folder: Path) -> None:
    by_step = read(folder, 'paths = ["swap.csv", "stay.csv"], by = "step"')
    found = by_step.release([0, 1, 1], seed=1)
    assert isinstance(found.transition, VaryingChain)
    assert [each.tolist() for each in (found.transition.at(0).matrix[0], found.transition.at(1).matrix[0])] == [
        [0.0, 1.0],
        [1.0, 0.0],
    ]
    with pytest.raises(SpecificationError, match="ends before the trace"):
        by_step.release([0, 1, 1, 1], seed=1)
    hours = read(folder, 'paths = ["' + '", "'.join(["stay.csv"] * 8 + ["swap.csv"] * 16) + '"], by = "hour"')
    found = hours.release(trace(0, 300, 600) | {"state": [0, 0, 1]}, seed=1)
    # What is believed before a step follows from the chain of that step.
    for released in (by_step.release([0, 1, 1], seed=1), found):
        for index, (one, following) in enumerate(itertools.pairwise(released.releases)):
            expected = one.posterior @ released.transition.at(index).matrix
            np.testing.assert_allclose(following.stage.prior, expected, rtol=1e-12)
    # The chain stays until 7:59, and swaps the states from 8:00 on.
    assert found.transition.at(0).matrix.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert found.transition.at(1).matrix.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(SpecificationError, match="needs a trace with times"):
        hours.release([0, 0, 1], seed=1)


def test_hours_counted_in_data(folder: Path) -> None:
    given = read(folder, 'estimated = true, by = "hour", smoothing = 1, every = "1 min"')
    chains = given.release_settings.transitions.chains
    assert len(chains) == 24
    np.testing.assert_array_equal(chains[8].matrix, MarkovChain.from_traces([[0, 1, 1]], 2, 1.0).matrix)
    np.testing.assert_array_equal(chains[9].matrix, MarkovChain.from_traces([[1, 1]], 2, 1.0).matrix)
    np.testing.assert_array_equal(chains[0].matrix, np.full((2, 2), 0.5))


# Seconds since midnight and cell, for two people: steps that stay within an hour, cross one hour, several hours and
# midnight, start or end at the very hour, and end a second before it.
PEOPLE = {
    "a": [(0, 0), (3599, 1), (3600, 0), (7199, 0), (7200, 1), (7260, 1), (10_799, 0), (18_000, 1), (21_600, 1)],
    "b": [(82_799, 0), (82_800, 1), (86_399, 0), (86_400, 1), (90_000, 0), (172_799, 0), (172_801, 1), (180_000, 1)],
}


def counted_by_hour(every: int | None, gap: int | None) -> list[list[list[float]]]:
    """Count the steps of each hour of the day by the time at which a step starts, one step after the other."""
    counts = [[[0.0, 0.0], [0.0, 0.0]] for _ in range(24)]
    for points in PEOPLE.values():
        stretches = [[points[0]]]
        for before, point in itertools.pairwise(points):
            if gap is not None and point[0] - before[0] > gap:
                stretches.append([])
            stretches[-1].append(point)
        for stretch in stretches:
            used = stretch
            if every is not None:
                ticks = range(stretch[0][0], stretch[-1][0] + 1, every)
                used = [next(point for point in reversed(stretch) if point[0] <= tick) for tick in ticks]
            for (now, cell), (_, then) in itertools.pairwise(used):
                counts[now // 3600 % 24][cell][then] += 1.0
    return counts


def test_a_step_counts_for_the_hour_in_which_it_starts(tmp_path: Path) -> None:
    midnight = np.datetime64("2020-01-01T00:00:00")
    rows = [
        f"{person},40.05,{LONGITUDE[cell]},{midnight + np.timedelta64(at, 's')}"
        for person, points in PEOPLE.items()
        for at, cell in points
    ]
    (tmp_path / "c.csv").write_text("\n".join(["user,latitude,longitude,time", *rows]) + "\n")
    for every, gap in ((None, None), (None, 3600), (None, 3599), (600, 3600), (3600, 7200), (60, 10_800)):
        keys = "".join(f', {key} = "{value} s"' for key, value in (("every", every), ("gap", gap)) if value)
        given = read(tmp_path, f'estimated = true, by = "hour", smoothing = 1{keys}')
        expected = counted_by_hour(every, gap)
        chains = given.release_settings.transitions.chains
        assert [chain.counts.tolist() for chain in chains] == expected, (every, gap)
        assert len({str(counts) for counts in expected}) > 3
        # A trace takes, for each step, the chain of the hour in which that step starts.
        at = midnight + np.array([at for at, _ in PEOPLE["b"]]) * np.timedelta64(1, "s")
        steps = Steps(np.zeros(len(at), dtype=np.int64), at)
        found = dataclasses.replace(given.release_settings.transitions, every=None, median=None).along(steps, Source())
        for step, (start, _) in enumerate(PEOPLE["b"][:-1]):
            assert found.at(step) is chains[start // 3600 % 24], (every, gap, step)


@each_row(
    ("transition", "rest", "path", "words"),
    [
        ('estimated = true, smoothing = 1, every = "5 parsec"', "", "release.transition.every", "length of time"),
        ('path = "mix.csv", gap = "5 min"', "", "release.transition.gap", "cannot be combined with path"),
        ('path = "mix.csv", by = "hour"', "", "release.transition.by", "cannot be combined with path"),
        ('paths = ["mix.csv"]', "", "release.transition.by", "is missing"),
        ('paths = ["mix.csv"], by = "hour"', "", "release.transition.paths", "24 files"),
        ('estimated = true, smoothing = 1, by = "step"', "", "release.transition.by", "cannot be combined with data"),
        ('paths = ["mix.csv", "no.csv"], by = "step"', "", "release.transition.paths[1]", "cannot be opened"),
        ('paths = ["mix.csv", "c.csv"], by = "step"', "", "release.transition.paths[1]", "c.csv, line 1"),
        ('path = "no.csv"', "", "release.transition.path", "cannot be opened"),
        ('paths = ["mix.csv", ""], by = "step"', "", "release.transition.paths[1]", "is empty"),
        ('path = "c.csv"', "", "release.transition.path", "c.csv, line 1"),
        ('path = "mix.csv", header = "yes"', "", "release.transition.header", "one of"),
        ('path = "mix.csv"', 'every = "5"', "release.every", "length of time"),
        ('path = "mix.csv"', "smoothing = 1", "release.smoothing", "not a known key"),
    ],
)
def test_wrong_keys(folder: Path, transition: str, rest: str, path: str, words: str) -> None:
    with pytest.raises(SpecificationError) as raised:
        read(folder, transition, rest).release(trace(0, 60), seed=1)
    assert raised.value.path == path
    assert words in str(raised.value)


def test_errors_in_toml_name_the_file(tmp_path: Path) -> None:
    for read_file in (read_spec, sweep.read):
        (tmp_path / "broken.toml").write_text("title = ")
        with pytest.raises(SpecificationError, match="is not valid TOML") as raised:
            read_file(tmp_path / "broken.toml")
        assert raised.value.path == str(tmp_path / "broken.toml")
        # Python would advise to raise its own limit.
        (tmp_path / "broken.toml").write_text("title = " + "9" * 5000)
        with pytest.raises(SpecificationError, match=r"value has 5000 digits$"):
            read_file(tmp_path / "broken.toml")


def test_a_mechanism_for_each_user(folder: Path) -> None:
    with (folder / "c.csv").open("a") as file:
        file.write(f"b,40.05,{LONGITUDE[0]},2020-01-01T08:00:00\n")
    text = (
        f'{BOX}\nprior = {{ checkins = {{ path = "c.csv", user = "user" }}, smoothing = 1 }}\ncost.distance = "hamming"'
    )
    text += '\nprivacy = [{ kind = "metric", epsilon = 1, distance = "hamming" }]'
    text += '\n[sweep]\n"prior.checkins.only" = ["a", "b"]'
    planned = sweep.parse(text, folder)
    assert [point.values["prior.checkins.only"] for point in sweep.points(planned)] == ["a", "b"]


def test_epsilon_is_per_unit() -> None:
    for unit, one in (("miles", "mile"), ("feet", "foot"), ("km", "km"), ("hours", "hour"), ("", "unit of distance")):
        domain = Domain.from_points([[0.0], [1.0], [3.0]], unit=unit)
        distance = distances.euclidean(domain)
        assert MetricPrivacy(1, distance).title(Words(domain)) == f"metric privacy, ε per {one} (Euclidean distance)"
