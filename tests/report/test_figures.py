from __future__ import annotations

import json

import pytest

import run
from papers import Experiment, Figure, MovedError, StaleResultError, Verdict, all_experiments, all_figures, figure


@pytest.fixture
def squares(tmp_path, monkeypatch) -> Experiment:
    """Give an experiment whose results are stored in a folder of its own."""
    monkeypatch.setattr("figures.experiments.RESULTS", tmp_path)
    return experiment_of(lambda numbers: [{"x": x, "square": float(x * x)} for x in numbers])


def experiment_of(compute, **changes) -> Experiment:
    settings = {"small": {"numbers": [1, 2]}, "full": {"numbers": [1, 2, 3]}, "keys": ("x",), "spread": {"square": 0.1}}
    return Experiment("squares", compute, **settings | changes)


def test_rows_come_back_as_stored(squares):
    squares.store()
    assert squares.stored().rows == [{"x": 1, "square": 1.0}, {"x": 2, "square": 4.0}, {"x": 3, "square": 9.0}]
    assert str(squares.recompute()) == "2 rows computed again; largest differences: square 0.0e+00"


def test_what_was_never_stored_says_how_to_store_it(squares):
    with pytest.raises(StaleResultError, match=r"run\.py --only squares"):
        squares.stored()


def test_changed_rows_are_noticed(squares):
    squares.store()
    content = json.loads(squares.path.read_text())
    content["full"]["rows"][0]["square"] = 1.5
    squares.path.write_text(json.dumps(content))
    with pytest.raises(StaleResultError, match="was changed"):
        squares.stored()


def test_other_parameters_are_noticed(squares):
    squares.store()
    other = experiment_of(squares.compute, full={"numbers": [4]})
    assert len(other.stored("small").rows) == 2
    with pytest.raises(StaleResultError, match="other parameters"):
        other.stored("full")


def test_other_data_are_noticed(tmp_path, monkeypatch, squares):
    monkeypatch.setenv("MECHDESIGN_DATA", str(tmp_path))
    (tmp_path / "numbers.csv").write_text("1")
    read = experiment_of(lambda folder, numbers: [{"x": 1, "square": 1.0}], data=("numbers.csv",))
    read.store()
    assert read.checked().startswith("1 rows computed again")
    (tmp_path / "numbers.csv").write_text("2")
    with pytest.raises(StaleResultError, match="other data"):
        read.stored()
    (tmp_path / "numbers.csv").unlink()
    assert read.missing_data == ("numbers.csv",)
    assert len(read.stored().rows) == 1
    assert read.checked().startswith("Not computed again here: numbers.csv not found.")


@pytest.mark.parametrize(("factor", "moves"), [(1.09, False), (1.12, True)])
def test_numbers_may_move_by_their_spread(squares, factor, moves):
    squares.store()
    moved = experiment_of(lambda numbers: [{"x": x, "square": factor * x * x} for x in numbers])
    if moves:
        with pytest.raises(MovedError, match=r"square of \(1,\) was 1 and is 1.12"):
            moved.recompute()
    else:
        moved.recompute()


def test_missing_rows_have_moved(squares):
    squares.store()
    with pytest.raises(MovedError, match="only once"):
        experiment_of(lambda numbers: [{"x": 1, "square": 1.0}]).recompute()


@pytest.mark.parametrize(("held", "outcome"), [(3, "holds"), (1, "holds in part"), (0, "does not come out here")])
def test_verdicts(held, outcome):
    assert Verdict(held, 3, "…").outcome == outcome


@pytest.mark.parametrize(
    ("after", "found"),
    [
        ("a  12 s, 3.0 GB", []),
        ("a 19.9 s, 3.0 GB", []),
        ("a  20.1 s, 3.0 GB", ["10 is now 20.1 in: a 20.1 s, 3.0 GB"]),
        ("b  10 s, 3.0 GB", ["the output has another form than the stored one"]),
    ],
)
def test_printed_numbers_are_compared_one_by_one(after, found):
    assert run.compare_texts("a 10 s, 3.0 GB", after, 2.0) == found


def test_measured_values_are_compared_by_their_kind():
    before = {"design": 1.0, "design, gap": 1e-8, "gone": 1.0}
    assert run.compare_values(before, before) == []
    assert run.compare_values(before, {"design": 1.9, "design, gap": 9e-8, "gone": 1.0}) == []
    found = run.compare_values(before, {"design": 2.1, "design, gap": 2e-7, "new": 1.0})
    assert sorted(found) == [
        "design was 1 and is 2.1",
        "design, gap was 1e-08 and is 2e-07",
        "gone is there only once",
        "new is there only once",
    ]


@pytest.mark.parametrize("name", all_experiments())
def test_every_experiment_is_stored_whole(name):
    for setting in ("small", "full"):
        assert all_experiments()[name].stored(setting).rows


@pytest.mark.slow
@pytest.mark.parametrize("name", all_figures())
def test_every_figure_is_drawn_and_judged_in_the_small_setting_too(name):
    shown: Figure = figure(name)
    stored = shown.experiment.stored("small")
    verdict = shown.verdict(stored)
    assert 0 <= verdict.held <= verdict.cases
    assert shown.png(stored, dpi=40).startswith(b"\x89PNG")


def test_unknown_names_are_answered_with_those_that_there_are():
    with pytest.raises(KeyError, match="privacy_games_2a"):
        figure("privacy_games_9")
