"""What designs, figures and solvers change of the process is changed once for all, and put back by the last."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pytest
from rows import each_row

import mechdesign as md
from mechdesign.base._process import SharedSettings, UpperLimit, ignore_warnings
from mechdesign.base._warnings import collect_warnings, suppress_warnings, warn
from mechdesign.errors import MetricWarning
from mechdesign.report._style import report_style, reproducible


def interleave(first, second):
    """Enter the first, then the second, leave the first, then the second, each in a thread of its own."""
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as two:
        for context, thread in ((first, one), (second, two)):
            thread.submit(context.__enter__).result()
        yield
        one.submit(first.__exit__, None, None, None).result()
        yield
        two.submit(second.__exit__, None, None, None).result()


USERS = {
    "pictures": (report_style, report_style),
    "picture and saving": (report_style, reproducible),
    "saving and picture": (reproducible, report_style),
}


@each_row("name", USERS)
def test_settings_of_pictures_are_the_callers_again_after_users_that_overlap(name):
    with matplotlib.rc_context({"font.size": 31, "axes.grid": True, "text.color": "red"}):
        before, filters = dict(matplotlib.rcParams), list(warnings.filters)
        first, second = USERS[name]
        for _ in interleave(first(), second()):
            assert matplotlib.rcParams["svg.hashsalt"] == "mechdesign"
            if second is report_style:
                assert matplotlib.rcParams["font.size"] == 8.5
                assert not matplotlib.rcParams["axes.grid"]
        assert dict(matplotlib.rcParams) == before
        assert warnings.filters == filters


def test_what_the_caller_changes_meanwhile_stays():
    with matplotlib.rc_context():
        with report_style():
            matplotlib.rcParams["font.size"] = 17
        assert matplotlib.rcParams["font.size"] == 17


def test_figures_from_threads_leave_the_settings_as_they_were():
    line = md.Domain.grid(3, 1, 3.0, 1.0)
    before, filters = dict(matplotlib.rcParams), list(warnings.filters)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: md.figures.graph(line, [[0, 1]]), range(2)))
    assert dict(matplotlib.rcParams) == before
    assert warnings.filters == filters


@each_row("numbers", [(1, 2), (2, 1), (1, 1), (2, 2)])
def test_the_least_number_holds_and_the_last_user_puts_back_the_first(numbers):
    said = [8]

    def limit(number: int):
        before = said[-1]
        said.append(number)
        return lambda: said.append(before)

    setting = UpperLimit(limit, said.append)
    steps = interleave(setting.at_most(numbers[0]), setting.at_most(numbers[1]))
    next(steps)
    assert said[-1] == min(numbers)
    next(steps)
    assert said[-1] == numbers[1]
    assert list(steps) == []
    assert said[-1] == 8


def test_a_setting_with_an_error_in_its_block_is_put_back():
    values = {"a": 1}
    settings = SharedSettings(lambda: values)

    def fail() -> None:
        with settings.set_to(lambda _: {"a": 2}):
            assert values == {"a": 2}
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert values == {"a": 1}


def test_a_filter_leaves_those_of_the_caller_alone():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        for _ in interleave(ignore_warnings(message="hum"), ignore_warnings(message="hum")):
            warnings.warn("hum along", UserWarning, stacklevel=1)
            warnings.warn("other", UserWarning, stacklevel=1)
            # Added by the caller meanwhile.
            warnings.filterwarnings("ignore", message="later")
        assert [str(each.message) for each in caught] == ["other", "other"]
        assert len(warnings.filters) == len(before) + 1
        with ignore_warnings(message="hum"):
            warnings.resetwarnings()


def test_what_one_thread_leaves_out_another_one_is_told():
    inside, said = threading.Event(), threading.Event()

    def quietly() -> None:
        with suppress_warnings(MetricWarning):
            inside.set()
            said.wait(10)
            warn("left out", MetricWarning)

    filters = list(warnings.filters)
    with ThreadPoolExecutor(1) as pool:
        quiet = pool.submit(quietly)
        inside.wait(10)
        with pytest.warns(MetricWarning, match="triangle"):
            md.MetricPrivacy(1, [[0, 1, 5], [1, 0, 1], [5, 1, 0]])
        said.set()
        quiet.result()
    assert warnings.filters == filters


def test_collected_warnings_are_those_asked_for_only():
    with collect_warnings(MetricWarning) as found:
        warn("kept", MetricWarning)
        with pytest.warns(UserWarning, match="said"):
            warn("said", UserWarning)
    assert [str(each) for each in found] == ["kept"]
    with pytest.warns(MetricWarning) as told:
        warn("here", MetricWarning)
    assert told[0].filename == __file__


def test_solvers_in_threads_leave_the_filters_of_warnings_alone():
    changed: list[object] = []
    before = list(warnings.filters)
    distance = 1 - np.eye(3)
    problem = md.Problem([0.5, 0.25, 0.25], distance, [md.MetricPrivacy(1, distance)])
    from scipy.optimize import linprog

    def watching(*arguments, **keywords):
        changed.append(list(warnings.filters) == before)
        return linprog(*arguments, **keywords)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("scipy.optimize.linprog", watching)
        md.design(problem, solver="scipy")
    assert changed
    assert all(changed)
