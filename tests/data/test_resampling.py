"""Even steps: the chosen points, the cuts of traces, and the summary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechdesign.data._resampling import Sampling, duration, resample, sampled, seconds_text
from mechdesign.data._states import as_steps
from mechdesign.data._trajectories import Trajectory
from mechdesign.errors import InputError
from mechdesign.model._domain import Domain

START = np.datetime64("2020-01-01T08:00:00")


def times(*seconds: int) -> np.ndarray:
    return START + np.array(seconds) * np.timedelta64(1, "s")


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("text", ["5", "min", "0 s", "-5 min", "5 parsecs", "0.3 s", "", "5 min 3 s", 300])
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


@given(st.lists(st.integers(0, 400), min_size=1, max_size=30), st.integers(1, 100), st.integers(1, 5))
def test_against_the_definition(gaps: list[int], every: int, factor: int) -> None:
    seconds = np.cumsum(gaps)
    sampling = Sampling(every, every * factor)
    expected: list[list[int]] = []
    stretch: list[int] = []
    stretches: list[list[int]] = []
    for index in range(len(seconds)):
        if stretch and seconds[index] - seconds[stretch[-1]] > every * factor:
            stretches.append(stretch)
            stretch = []
        stretch.append(index)
    for own in [*stretches, stretch]:
        tick, taken = seconds[own[0]], []
        while tick <= seconds[own[-1]]:
            taken.append(max(i for i in own if seconds[i] <= tick))
            tick += every
        expected.append(taken)
    assert [taken.tolist() for taken in sampled(times(*seconds), sampling)] == expected


def test_what_was_dropped_is_said() -> None:
    trace = Trajectory("a", np.zeros(6), np.arange(6.0), times(0, 10, 20, 300, 310, 5000))
    found, facts = resample([trace], Sampling.of("5 min", None))
    assert [len(each) for each in found] == [2, 1]
    assert found[0].longitude.tolist() == [0.0, 3.0]
    assert str(facts) == (
        "6 points (median interval 10 s) resampled to one every 5 min: 3 of them dropped, "
        "cut at 1 gap longer than 15 min"
    )


@pytest.mark.parametrize(
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


def test_a_trace_to_be_released(tmp_path: object) -> None:
    domain = Domain.from_labels(["home", "work"])
    given_steps = {"state": ["home", "work", "home"], "time": times(0, 290, 650)}
    steps, sentence = as_steps(given_steps, domain).resampled(Sampling(300, 900))
    assert steps.states.tolist() == [0, 1, 1]
    assert steps.interval == 300
    assert "one every 5 min" in sentence
    for wrong, words in (
        (
            {"state": ["home", "work"], "time": times(0, 5000)},
            "is interrupted after step 0; found 9999-99-99a99:99:99, aaaa 9999-99-99a",
        ),
        ({"state": ["home", "work"]}, "no times"),
    ):
        with pytest.raises(InputError, match=words):
            as_steps(wrong, domain).resampled(Sampling(300, 900))
    with pytest.raises(InputError, match="earlier than the step before it"):
        as_steps({"state": ["home", "work"], "time": times(10, 0)}, domain)
