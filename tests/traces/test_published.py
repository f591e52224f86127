"""A released trace from its public files: what was written comes back, and what is damaged is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.traces import PublishedTrace, ReleasedTrace

WALK = """
domain.grid = { columns = 3, rows = 1, width = 3.0, height = 1.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = "0.5", blocks = 3 }]
release = { mechanism = "%s", transition = { neighbours = 4 }%s }
"""


def released(folder: Path, mechanism: str = "lp", more: str = "") -> ReleasedTrace:
    (folder / "t.csv").write_text("state\n0\n1\n1\n")
    return md.specification.parse(WALK % (mechanism, more)).release(folder / "t.csv", seed=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    md.save(released(tmp_path), tmp_path / "made", report=False)
    return tmp_path / "made"


@pytest.mark.parametrize("mechanism", ["lp", "planar-isotropic"])
def test_what_was_saved_is_loaded(tmp_path: Path, mechanism: str) -> None:
    made = released(tmp_path, mechanism)
    md.save(made, tmp_path / "made", report=False)
    found = ReleasedTrace.load(tmp_path / "made")
    assert isinstance(found, PublishedTrace)
    assert np.array_equal(found.states, made.outputs)
    assert np.array_equal(found.places, made.places)
    assert found.labels == tuple(made.domain.labels[state] for state in made.outputs)
    assert found.epsilons == (Fraction(1, 2),) * 3
    assert (found.epsilon, found.level, found.realised) == (
        made.composition.epsilon,
        made.composition.level,
        made.composition.realised,
    )
    for mine, theirs in zip(found.certificates, made.releases, strict=True):
        assert theirs.certificate is not None
        assert mine is not None
        assert mine.differences(theirs.certificate) == ()
    assert "rehearsal" in found.randomness
    assert not found.places.flags.writeable


def test_places_that_are_no_states_are_loaded(tmp_path: Path) -> None:
    made = released(tmp_path, "planar-isotropic", ", snap = false")
    md.save(made, tmp_path / "made", report=False)
    found = ReleasedTrace.load(tmp_path / "made")
    assert (found.states, found.labels) == (None, ())
    assert np.array_equal(found.places, made.places)
    assert found.certificates == (None,) * 3


def edit(folder: Path, name: str, change: Callable[[Any], Any], repair: bool = True) -> None:
    """Change a JSON file, and with `repair` its digest in the manifest."""
    path = folder / name
    content = change(json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(content), encoding="utf-8")
    if repair and name != "release.json":
        digest(folder, name)


def digest(folder: Path, name: str) -> None:
    manifest = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "release.json").write_text(json.dumps(manifest), encoding="utf-8")


def rows(change: Callable[[str], str]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        path = folder / "released.csv"
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
        digest(folder, "released.csv")

    return changed


def manifest(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: edit(folder, "release.json", lambda found: found | changes)


def steps(change: Callable[[Any], Any]) -> Callable[[Path], None]:
    return lambda folder: edit(folder, "steps.json", change)


WRONG: dict[str, Callable[[Path], object]] = {
    "no manifest": lambda folder: (folder / "release.json").unlink(),
    "no outputs": lambda folder: (folder / "released.csv").unlink(),
    "no steps": lambda folder: (folder / "steps.json").unlink(),
    "a manifest that is no JSON": lambda folder: (folder / "release.json").write_text("{"),
    "a manifest of another kind": lambda folder: (folder / "release.json").write_text("[]"),
    "a manifest in another encoding": lambda folder: (folder / "release.json").write_bytes(b"\xff\xfe{}"),
    "another schema": manifest(schema="mechdesign-release/9"),
    "no title": lambda folder: edit(folder, "release.json", lambda f: {k: v for k, v in f.items() if k != "title"}),
    "steps in words": manifest(steps="three"),
    "no step": manifest(steps=0),
    "fewer steps than outputs": manifest(steps=2),
    "more steps than outputs": manifest(steps=4),
    "an epsilon that is not a number": lambda folder: edit(
        folder, "release.json", lambda f: f | {"composition": f["composition"] | {"epsilon": "half"}}
    ),
    "outputs that were changed": lambda folder: (folder / "released.csv").write_text("step,state,label,x,y\n"),
    "steps that were changed": lambda folder: edit(folder, "steps.json", lambda f: f[::-1], repair=False),
    "steps in another order": steps(lambda f: f[::-1]),
    "a step twice": steps(lambda f: [f[0], *f[:2]]),
    "a step without epsilon": steps(lambda f: [{k: v for k, v in f[0].items() if k != "epsilon"}, *f[1:]]),
    "a step of another epsilon": steps(lambda f: [f[0] | {"epsilon": "much"}, *f[1:]]),
    "a certificate that is none": steps(lambda f: [f[0] | {"certificate": {"holds": True}}, *f[1:]]),
    "an empty table": rows(lambda text: ""),
    "a missing row": rows(lambda text: "\n".join(text.splitlines()[:-1]) + "\n"),
    "a row without its places": rows(lambda text: text.replace(text.splitlines()[1], "0,1,1")),
    "a place that is not a number": rows(lambda text: text.replace("0.5", "here")),
    "a place that is not finite": rows(lambda text: text.replace("0.5", "nan")),
    "a state that is not a number": rows(lambda text: text.replace("\n0,", "\n0,x")),
}


def test_what_is_damaged_is_refused(folder: Path) -> None:
    files = {file: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    says = "does not contain a readable released trace"
    for name, spoil in WRONG.items():
        spoil(folder)
        assert_refused([Mistake(name, lambda: ReleasedTrace.load(folder), "folder", says, InputError)])
        for file, content in files.items():
            file.write_bytes(content)
    assert len(ReleasedTrace.load(folder).labels) == 3


def test_an_unfinished_run_is_no_released_trace(tmp_path: Path) -> None:
    from dataclasses import replace

    md.save(replace(released(tmp_path), finished=False), tmp_path / "made", report=False)
    with pytest.raises(InputError, match=r"release\.json cannot be read"):
        ReleasedTrace.load(tmp_path / "made")
