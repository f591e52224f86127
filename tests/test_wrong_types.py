"""What is handed over and is of another type is refused by the name of the argument, never by an error of Python."""

from __future__ import annotations

import numpy as np
import pytest

import mechdesign as md
from mechdesign.base._check import as_list, as_path, require_kind
from mechdesign.errors import InputError

WRONG = [None, 5, 1.5, True, b"", {}, [None], object(), {1}, np.array(["a"]), lambda: 1]


@pytest.fixture(scope="module")
def made():
    domain = md.Domain.grid(2, 1, 2.0, 1.0)
    distance = md.distances.euclidean(domain)
    requirements = [md.MetricPrivacy(1, distance)]
    return md.design(md.Problem([0.5, 0.5], distance, requirements, secrets=domain, observables=domain))


CALLS = {
    "folder": [
        lambda d, w: d.save(w),
        lambda d, w: d.load(w),
        lambda _, w: md.verify(w),
        lambda _, w: md.tables.load(w),
    ],
    "path": [
        lambda _, w: md.Channel.load(w),
        lambda _, w: md.read_spec(w),
        lambda _, w: md.sweep.read(w),
        lambda _, w: md.data.read_checkins(w),
        lambda _, w: md.data.read_places(w, "id"),
        lambda _, w: md.leakage.read_budgets(w),
    ],
    "design": [lambda _, w: md.figures.answers(w), lambda _, w: md.figures.costs(w), lambda _, w: md.figures.prior(w)],
    "domain": [
        lambda _, w: md.figures.graph(w, [[0, 1]]),
        lambda _, w: md.figures.trace(w, [0, 1]),
        lambda _, w: md.tables.marginals(w),
        lambda _, w: md.data.to_grid([], w),
    ],
    "policy": [lambda _, w: md.tables.sensitivity(w, "histogram"), lambda _, w: md.tables.optimal_attribute(w, 1)],
    "text": [lambda _, w: md.specification.parse(w), lambda _, w: md.sweep.parse(w)],
    "graph": [lambda _, w: md.distances.shortest_path(w)],
    "channel": [lambda _, w: md.traces.adversarial_privacy(w, [0.5, 0.5])],
    "stage": [lambda _, w: md.traces.stage_level(w), lambda _, w: md.traces.level_against(w, [0])],
    "other": [lambda d, w: d.certificate.differences(w)],
    "axes": [lambda d, w: d.problem.secrets.places(w)],
    "kind": [lambda _, w: md.mechanisms.register(w)],
    "table": [lambda _, w: md.MetricPrivacy.from_table(w, None)],
}
CASES = [(name, index) for name, calls in CALLS.items() for index in range(len(calls))]


@pytest.mark.parametrize(("name", "index"), CASES)
def test_whatever_is_handed_over_is_named(made, tmp_path, monkeypatch, name, index):
    monkeypatch.chdir(tmp_path)
    for wrong in WRONG:
        with pytest.raises(InputError) as caught:
            CALLS[name][index](made, wrong)
        assert caught.value.path.startswith(name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda w: md.traces.compose(w),
        lambda w: md.traces.VaryingChain(w),
        lambda w: md.MarkovChain.from_traces(w, 2),
        lambda w: md.leakage.users([0.1], w),
        lambda w: md.Domain.from_labels(w),
        lambda w: md.MetricPrivacy.from_stated(w, 2),
    ],
)
def test_lists_are_lists(call):
    for wrong in (None, 5, "x", b"", [None], [5], object()):
        with pytest.raises(InputError):
            call(wrong)


def test_a_function_of_progress_takes_one_argument(made):
    with pytest.raises(InputError, match="takes other arguments"):
        md.SolveSettings(progress=lambda: None)
    assert md.SolveSettings(progress=lambda moment: None).progress is not None


def test_what_is_of_the_right_type_passes(tmp_path):
    assert as_path(tmp_path, "a") == as_path(str(tmp_path), "a") == tmp_path
    assert as_list((1, 2), "a", "numbers") == [1, 2]
    require_kind(1, int | float, "a", "a number")
    with pytest.raises(InputError, match="found 'str'; must be a number"):
        require_kind("1", int | float, "a", "a number")
    for wrong in (b"a", "a\0b", 5):
        with pytest.raises(InputError, match="is not a path"):
            as_path(wrong, "a")
