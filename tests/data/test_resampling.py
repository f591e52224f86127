"""Even steps: the chosen points, the cuts of traces, and the summary."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows import each_row

from mechdesign.data.trajectories import Sampling, Trajectory, duration, resample, sampled, seconds_text
from mechdesign.errors import InputError
from mechdesign.specification._steps import Steps

START = np.datetime64("2020-01-01T08:00:00")


def times(*seconds: int) -> np.ndarray:
    return START + np.array(seconds) * np.timedelta64(1, "s")


@each_row(
    ("text", "seconds"),
    [
        ("5 min", 300),
        ("15min", 900),
        ("1 h", 3600),
        ("1.5 hours", 5400),
        ("30 s", 30),
        ("2 days", 172_800),
        ("1 D", 86_400),
    ],
)
def test_lengths_of_time(text: str, seconds: int) -> None:
    assert duration(text, "every") == seconds
    assert duration(seconds_text(seconds), "every") == seconds


@each_row("text", ["5", "min", "0 s", "-5 min", "5 parsecs", "0.3 s", "", "5 min 3 s", 300])
def test_what_is_no_length_of_time(text: object) -> None:
    with pytest.raises(InputError) as raised:
        duration(text, "every")  # type: ignore[arg-type]
    assert raised.value.path == "every"


def test_a_step_takes_the_last_point_until_then() -> None:
    (taken,) = sampled(times(0, 10, 299, 300, 301, 700), Sampling(300, 900))
    # At 0, 300 and 600 s.
    assert taken.tolist() == [0, 3, 4]


def test_traces_are_cut_at_gaps() -> None:
    found = sampled(times(0, 300, 1200, 1201, 2200), Sampling(300, 900))
    assert [taken.tolist() for taken in found] == [[0, 1, 1, 1, 2], [4]]
    assert [taken.tolist() for taken in sampled(times(0, 5, 100), Sampling(None, 50))] == [[0, 1], [2]]


def resampled_by_the_clock(seconds: list[int], every: int | None, gap: int) -> list[list[int]]:
    """Return the points used in each stretch: walk through the seconds, and look back from each of them."""
    stretches: list[list[int]] = [[]]
    for index, now in enumerate(seconds):
        if stretches[-1] and now - seconds[stretches[-1][-1]] > gap:
            stretches.append([])
        stretches[-1].append(index)
    if every is None:
        return stretches
    found = []
    for own in stretches:
        clock = range(seconds[own[0]], seconds[own[-1]] + 1)
        ticks = [now for now in clock if (now - seconds[own[0]]) % every == 0]
        found.append([max(i for i in own if seconds[i] <= tick) for tick in ticks])
    return found


def test_every_gap_around_the_bounds_against_a_clock() -> None:
    # Gaps of nothing, of one step, of the longest gap, and one second below and above each of them.
    every, longest = 3, 7
    count = 0
    for gaps in itertools.product((0, every - 1, every, every + 1, longest - 1, longest, longest + 1), repeat=4):
        seconds = list(itertools.accumulate((5, *gaps)))
        for step in (every, None):
            found = [taken.tolist() for taken in sampled(times(*seconds), Sampling(step, longest))]
            assert found == resampled_by_the_clock(seconds, step, longest), (gaps, step)
            count += len(found)
    assert count > 2 * 7**4


@given(st.lists(st.integers(0, 400), min_size=1, max_size=20), st.integers(1, 100), st.integers(1, 5))
def test_against_a_clock(gaps: list[int], every: int, factor: int) -> None:
    seconds = list(itertools.accumulate(gaps))
    found = [taken.tolist() for taken in sampled(times(*seconds), Sampling(every, every * factor))]
    assert found == resampled_by_the_clock(seconds, every, every * factor)


def test_the_step_and_the_gap_by_default() -> None:
    assert (Sampling(300).gap, Sampling(300, 300).gap, Sampling(None).gap) == (900, 300, None)
    # Without a limit nothing is cut.
    assert [taken.tolist() for taken in sampled(times(0, 10**9), Sampling())] == [[0, 1]]
    assert [taken.tolist() for taken in sampled(times(0, 900, 1801), Sampling(300))] == [[0, 0, 0, 1], [2]]


def test_what_was_dropped_is_said() -> None:
    trace = Trajectory("a", np.zeros(6), np.arange(6.0), times(0, 10, 20, 300, 310, 5000))
    found, facts = resample([trace], Sampling.of("5 min", None))
    assert [len(each) for each in found] == [2, 1]
    assert found[0].longitude.tolist() == [0.0, 3.0]
    assert str(facts) == (
        "6 points (median interval 10 s) resampled to one every 5 min: 3 of them dropped, "
        "cut at 1 gap longer than 15 min"
    )


@each_row(
    ("make", "path"),
    [
        (lambda: Sampling(0), "every"),
        (lambda: Sampling(None, 0), "gap"),
        (lambda: Sampling(300, 200), "gap"),
        (lambda: resample([Trajectory("a", [0.0], [0.0])], Sampling(300)), "time"),
        (lambda: sampled(times(10, 0), Sampling(300)), "times[1]"),
    ],
)
def test_wrong_input(make: object, path: str) -> None:
    with pytest.raises(InputError) as raised:
        make()  # type: ignore[operator]
    assert raised.value.path == path


def test_a_trace_to_be_released() -> None:
    steps = Steps(np.array([0, 1, 0]), times(0, 290, 650)).resampled(Sampling(300, 900))
    assert steps.states.tolist() == [0, 1, 1]
    assert steps.interval == 300
    assert "one every 5 min" in steps.notes[0]
    for wrong, words in (
        (times(0, 5000), "is interrupted after step 0; must be no gap longer than 15 min"),
        (None, "no times"),
    ):
        with pytest.raises(InputError, match=words):
            Steps(np.array([0, 1]), wrong).resampled(Sampling(300, 900))
