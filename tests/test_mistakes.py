"""Mistakes end in typed errors that name their place, and a value, a bound or a remedy: a test for each door."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import mistakes
import pytest
from refusals import Mistake, assert_refused, fault

import mechdesign as md
from mechdesign.base._check import as_list, as_path, require_kind
from mechdesign.errors import CertificateError, InputError


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder in which mistakes are made."""
    folder = tmp_path_factory.mktemp("mistakes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        mistakes.prepare()
    return folder


@pytest.mark.parametrize(
    ("door", "least"),
    [
        (mistakes.in_specifications, 200),
        (mistakes.in_files_of_data, 45),
        (mistakes.in_arguments, 100),
        (mistakes.with_records, 35),
        (mistakes.with_chains_and_traces, 20),
        (mistakes.on_the_command_line, 80),
        (mistakes.with_files_of_ones_own, 45),
    ],
)
def test_every_mistake_is_refused(
    door: Callable[[], Iterable[Mistake]], least: int, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(prepared)
    made = list(door())
    assert len({mistake.name for mistake in made}) == len(made) >= least
    assert_refused(made)


def test_values_of_another_type_are_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_refused(mistakes.of_another_type())
    assert list(tmp_path.iterdir()) == []


def test_what_is_of_the_right_type_passes(tmp_path: Path) -> None:
    assert as_path(tmp_path, "a") == as_path(str(tmp_path), "a") == tmp_path
    assert as_list((1, 2), "a", "numbers") == [1, 2]
    require_kind(1, int | float, "a", "a number")
    assert md.SolveSettings(progress=lambda moment: None).progress is not None
    wrong = (
        Mistake("a text", lambda: require_kind("1", int | float, "a", "a number"), "a", "must be a number"),
        *mistakes.each("as_path", "a", lambda value: as_path(value, "a"), b"a", "a\0b", "", 5),
    )
    assert_refused(wrong)


def test_faults_of_errors_are_noticed() -> None:
    def refuse(error: Exception) -> Callable[[], object]:
        def make() -> object:
            raise error

        return make

    bare, full = refuse(InputError("a", "is wrong")), refuse(InputError("a", "is wrong", value=1))
    found = [
        fault(Mistake("", make, **stated))[0]
        for make, stated in (
            (lambda: 3, {}),
            (refuse(KeyError("a")), {}),
            (refuse(CertificateError("a")), {"error": InputError}),
            (bare, {}),
            (full, {"path": "b"}),
            (full, {"says": "c"}),
            (full, {"path": "a", "says": "wrong", "error": InputError}),
        )
    ]
    assert [bool(said) for said in found] == [True] * 6 + [False]
