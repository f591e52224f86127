"""Inputs with which `benchmarks/attacks/fuzz.py` once found an untyped error, and a few new ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from attacks import fuzz

FOUND = sorted((Path(__file__).parent / "reference" / "fuzzed").iterdir())


@pytest.fixture(scope="module")
def targets() -> dict[str, fuzz.Target]:
    return fuzz.targets()


def test_what_found_something_ends_in_a_typed_error(tmp_path: Path, targets: dict[str, fuzz.Target]) -> None:
    assert FOUND
    for folder in FOUND:
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        (name,) = [name for name in targets if folder.name.startswith(name.replace(" ", "-") + "-")]
        outcome, reason = fuzz.tried(targets[name], files, tmp_path)
        assert not reason, folder.name
        assert outcome.endswith("Error"), folder.name


def test_every_reader_reads_what_is_right_and_refuses_what_is_not(
    tmp_path: Path, targets: dict[str, fuzz.Target]
) -> None:
    dice = random.Random(7)
    for name, target in targets.items():
        assert fuzz.tried(target, target.files, tmp_path) == ("read", ""), name
        for _ in range(4):
            file = dice.choice(target.changed)
            files = {**target.files, file: fuzz.changed(target.files[file], file, dice)}
            if target.repair is not None:
                target.repair(files)
            _, reason = fuzz.tried(target, files, tmp_path)
            assert not reason, f"{name}: {reason}"
