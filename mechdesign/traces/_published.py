"""A released trace that is read from its public files."""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from mechdesign.base._arrays import Floats, Integers, read_only
from mechdesign.base._check import as_path
from mechdesign.base._errors import CertificateError, InputError
from mechdesign.base._files import read_regular
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._exact import exact
from mechdesign.certify._texts import from_cell

OUTPUTS, STEPS, MANIFEST = "released.csv", "steps.json", "release.json"
SCHEMA = "mechdesign-release/1"

_Size = Annotated[int, msgspec.Meta(ge=1)]


class _Together(msgspec.Struct, frozen=True):
    """The joint guarantee of all steps."""

    epsilon: str
    level: float | None
    realised: float | None
    meaning: str


class _Manifest(msgspec.Struct, frozen=True):
    """The content of ``release.json``."""

    schema: str
    title: str
    mechanism: str
    steps: _Size
    randomness: str
    composition: _Together
    files: dict[str, str]
    entries: list[str] = []


class _Step(msgspec.Struct, frozen=True):
    """An entry of ``steps.json``."""

    step: int
    epsilon: str
    certificate: dict[str, Any] | None


@dataclass(frozen=True, eq=False, repr=False)
class PublishedTrace:
    """The content of the public files of a released trace. The files contain neither the chain nor the beliefs.

    Attributes:
        title: The title of the trace.
        mechanism: The name of the mechanism in a specification.
        states: The released states, int64 (T,); None if coordinates were released.
        labels: The labels of the released states; empty if coordinates were released.
        places: The released places, float64 (T, d).
        epsilons: The ε of each step, in nats.
        certificates: The certificate of each step; None for a step without a proof.
        epsilon: The joint ε of all steps for the edges in all their policy graphs.
        level: The joint ε of all steps for any two possible trajectories, from the hulls and graphs; None if it is
            infinite.
        realised: The joint ε for any two possible trajectories, from the numbers of the channels; None if it is
            unknown.
        meaning: The joint guarantee of all steps, in words.
        randomness: The source of the random bits.
        entries: The numbers of the entries in a ledger.

    >>> import tempfile
    >>> import mechdesign as md
    >>> from mechdesign.traces._released import History
    >>> domain, graph = md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2)
    >>> trace = md.traces.Trace(domain, graph, 1, [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], rng=1)
    >>> steps = (trace.step(0), trace.step(0))
    >>> released = md.traces.ReleasedTrace(
    ...     "walk", "planar-isotropic", steps, trace.transition, trace.initial, True, True, History()
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     md.save(released, folder, report=False)
    ...     published = md.traces.ReleasedTrace.load(folder)
    >>> published, published.states.tolist(), published.epsilon
    (PublishedTrace(2 steps, planar-isotropic), [0, 1], Fraction(2, 1))
    """

    title: str
    mechanism: str
    states: Integers | None
    labels: tuple[str, ...]
    places: Floats
    epsilons: tuple[Fraction, ...]
    certificates: tuple[Certificate | None, ...]
    epsilon: Fraction
    level: float | None
    realised: float | None
    meaning: str
    randomness: str
    entries: tuple[str, ...]

    def __repr__(self) -> str:
        return f"PublishedTrace({len(self.places)} steps, {self.mechanism})"


def load_published(folder: str | os.PathLike[str]) -> PublishedTrace:
    """Read the files of a saved `ReleasedTrace` and check the digests of the outputs and the steps.

    Args:
        folder: The folder of the released trace.

    Returns:
        The content of the public files.

    Raises:
        InputError: A file is missing or damaged, has an unknown schema, or does not match its digest in the manifest.
    """
    place = as_path(folder, "folder")
    manifest = _decode(place, MANIFEST, _read(place, MANIFEST), _Manifest)
    if manifest.schema != SCHEMA:
        raise _make_damage_error(
            place, MANIFEST, f"has the schema {manifest.schema!r}, but this version reads {SCHEMA!r}"
        )
    rows, described = (_read(place, name) for name in (OUTPUTS, STEPS))
    for name, content in ((OUTPUTS, rows), (STEPS, described)):
        if hashlib.sha256(content).hexdigest() != manifest.files.get(name):
            raise _make_damage_error(place, name, f"does not match its digest in {MANIFEST}")
    steps = _decode(place, STEPS, described, list[_Step])
    if [each.step for each in steps] != list(range(manifest.steps)):
        raise _make_damage_error(place, STEPS, f"does not have steps 0 to {manifest.steps - 1}")
    states, labels, places = _outputs(place, rows, manifest.steps)
    try:
        proofs = [None if each.certificate is None else Certificate.from_json(each.certificate) for each in steps]
        epsilons = tuple(exact(each.epsilon, "epsilon") for each in steps)
        together = exact(manifest.composition.epsilon, "composition.epsilon")
    except (CertificateError, InputError) as error:
        raise _make_damage_error(place, STEPS, str(error)) from error
    return PublishedTrace(
        manifest.title,
        manifest.mechanism,
        states,
        labels,
        places,
        epsilons,
        tuple(proofs),
        together,
        manifest.composition.level,
        manifest.composition.realised,
        manifest.composition.meaning,
        manifest.randomness,
        tuple(manifest.entries),
    )


def _read(folder: Path, name: str) -> bytes:
    try:
        return read_regular(folder / name)
    except OSError as error:
        raise _make_damage_error(folder, name, f"cannot be read: {error.strerror or error}") from error


def _decode(folder: Path, name: str, content: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _make_damage_error(folder, name, str(error)) from error


def _outputs(folder: Path, content: bytes, steps: int) -> tuple[Integers | None, tuple[str, ...], Floats]:
    """Return the states, labels and places in ``released.csv``."""
    try:
        head, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
        if [row[0] for row in rows] != [str(step) for step in range(steps)] or {len(row) for row in rows} != {
            len(head)
        }:
            raise ValueError(f"does not have a row for each of {steps} steps")
        named = "state" in head
        axes = [index for index, name in enumerate(head) if name in ("x", "y", "z") or name[1:].isdigit()]
        places = np.array([_numbers(row, axes) for row in rows])
        states = np.array([int(row[1]) for row in rows], dtype=np.int64) if named else None
        labels = tuple(from_cell(row[2]) for row in rows) if named else ()
    except (ValueError, IndexError, OverflowError, csv.Error) as error:
        raise _make_damage_error(folder, OUTPUTS, str(error)) from error
    for array in (places, *([] if states is None else [states])):
        read_only(array)
    return states, labels, places


def _numbers(row: Sequence[str], axes: Sequence[int]) -> list[float]:
    found = [float(row[index]) for index in axes]
    if not np.isfinite(found).all():
        raise ValueError("contains a coordinate that is not finite")
    return found


def _make_damage_error(folder: Path, name: str, problem: str) -> InputError:
    remedy = "restore the files as they were written"
    problem = f"does not contain a readable released trace: {name} {problem}"
    return InputError("folder", problem, value=str(folder), remedy=remedy)
