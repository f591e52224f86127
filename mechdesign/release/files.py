"""The files of a released trace: outputs, proofs and pictures, all of them public, and a manifest that comes last.

Where prior, chain and policy were not counted in data, nothing in them depends on the true states but through the
outputs; else the manifest says under ``depends_on`` what they depend on. ``released.csv`` has a line for each step:
``step`` (from 0), ``state`` and ``label`` where outputs are states, and where they lie: ``x``, ``y``, … in the unit of
the domain, ``latitude`` and ``longitude`` of states that have them. ``steps.json`` says for each step what was kept,
and holds the proof: ε, what was possible, the edges of the policy graph, degrees of protection, and the certificate of
the channel. With the channels themselves there is an exported set for each step, for `mechdesign.certify._verify.verify`.
``release.json``, the manifest, says what all steps guarantee together and holds the SHA-256 of the other files. It is
removed first and written last: where it stands, the files that it names are whole and of one run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mechdesign.base._atomic import write_file
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.base._errors import ExportError
from mechdesign.synthesis._folders import SET
from mechdesign.synthesis._folders import check_folder
from mechdesign.synthesis._folders import refusal_of_second
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.release.adversary import Beliefs
from mechdesign.release.adversary import expected_error
from mechdesign.release.composition import Composition
from mechdesign.release.composition import stage_level
from mechdesign.release.history import History
from mechdesign.release.outcome import Release
from mechdesign.synthesis._result import Design
from mechdesign.base._version import __version__

__all__ = [
    "CHANNELS",
    "FILES",
    "MANIFEST",
    "OUTPUTS",
    "OWN",
    "PRIVATE",
    "REPORT",
    "SCHEMA",
    "STEPS",
    "check_release_target",
    "holds_release",
    "manifest",
    "outputs_csv",
    "steps_json",
    "write_channels",
    "write_files",
    "write_outputs",
]

OUTPUTS, STEPS, MANIFEST, CHANNELS = "released.csv", "steps.json", "release.json", "channels"
REPORT = "report.html"
SCHEMA = "mechdesign-release/1"

_PICTURES = ("map.svg", "over-time.svg", REPORT)
OWN = (OUTPUTS, STEPS, MANIFEST, CHANNELS)
"""What a released trace has in its folder of itself, without pictures and page."""
FILES = (OUTPUTS, STEPS, MANIFEST, *_PICTURES)
"""The files of a released trace, but for its channels."""
PRIVATE = ("true.csv", "true-over-time.svg", "true-map.svg")
"""The files that show the true states, which are written into a folder of their own."""
_PUBLISHED = (OUTPUTS, MANIFEST)
_REHEARSAL = "a rehearsal, not to be published"


def outputs_csv(releases: Sequence[Release], domain: Domain) -> bytes:
    """Return ``released.csv``; numbers have every digit."""
    d = domain.points.shape[1]
    places = ["x", "y", "z"][:d] if d <= 3 else [f"x{axis}" for axis in range(d)]
    snapped = releases[0].output is not None
    degrees = domain.degrees if snapped else None
    head = ["step", *(["state", "label"] if snapped else []), *places]
    rows: list[Sequence[object]] = [head + (["latitude", "longitude"] if degrees is not None else [])]
    for step, release in enumerate(releases):
        row: list[object] = [step]
        if release.output is not None:
            row += [release.output, domain.labels[release.output]]
        row += map(repr, release.coordinates.tolist())
        if degrees is not None:
            row += map(repr, degrees[release.output].tolist())
        rows.append(row)
    return csv_text(rows).encode()


def steps_json(releases: Sequence[Release], beliefs: Beliefs) -> bytes:
    """Return ``steps.json``; nodes are indices of states, `beliefs` those of whoever knows what the designer knows."""
    errors = {
        "at_once": _errors(releases, beliefs, "posteriors"),
        "from_the_whole_trace": _errors(releases, beliefs, "smoothed"),
    }
    steps = []
    for step, release in enumerate(releases):
        described = _described(release)
        described["expected_error"] = {name: values[step] for name, values in errors.items()}
        steps.append({"step": step, **described})
    return json.dumps(steps, indent=1).encode()


def manifest(
    title: str,
    mechanism: str,
    composition: Composition,
    randomness: str,
    history: History,
    files: Mapping[str, bytes],
    entries: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the manifest of `files`; `randomness` says where the outputs come from, but never from which seed.

    `entries` are the random numbers of the entries in a ledger that were made for the steps.
    """
    return {
        "schema": SCHEMA,
        "mechdesign": __version__,
        "title": title,
        "mechanism": mechanism,
        "steps": composition.releases,
        "randomness": randomness,
        "depends_on": history.to_json(),
        "composition": {
            "epsilon": exact_text(composition.epsilon),
            "common_edges": composition.graph.number_of_edges(),
            "level": _finite(composition.level),
            "realised": None if composition.realised is None else _finite(composition.realised),
            "meaning": str(composition),
        },
        "entries": list(entries),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in sorted(files.items())},
    }


def check_release_target(directory: Path, force: bool = False, overwrite: bool = True) -> None:
    """Raise `ExportError` unless a released trace may and can be written into `directory`.

    It may when the folder does not exist or is empty, or holds a rehearsal; with `overwrite` also when it holds any
    released trace, whole or interrupted. With `force` it may beside anything else: files of other names are never
    touched.
    """
    ours = {*OWN, *_PICTURES}

    def is_ours(entry: Path) -> bool:
        # What a killed run leaves is called `.NAME.????????.partial`.
        name = entry.name
        if entry.is_dir():
            return name == CHANNELS
        return name in ours or (name.endswith(".partial") and name[1:].rsplit(".", 2)[0] in ours)

    check_folder(directory, is_ours, "a released trace", force)
    if not overwrite and holds_release(directory):
        raise refusal_of_second(directory, "a released trace")


def holds_release(directory: Path) -> bool:
    """Whether a folder holds a release, whole or not, that was no rehearsal."""
    return any((directory / file).is_file() for file in _PUBLISHED) and not _is_rehearsal(directory)


def _is_rehearsal(directory: Path) -> bool:
    try:
        document = json.loads((directory / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        # An unfinished run, whose outputs somebody may have seen.
        return False
    return isinstance(document, dict) and str(document.get("randomness")).endswith(_REHEARSAL)


def write_outputs(directory: Path, outputs: bytes) -> None:
    """Write the outputs of a trace, after what an older run has left is removed, its manifest before all else.

    Raises `ExportError` when that fails.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / MANIFEST).unlink(missing_ok=True)
        for name in (OUTPUTS, STEPS, *_PICTURES):
            (directory / name).unlink(missing_ok=True)
        _remove_channels(directory / CHANNELS)
    except OSError as error:
        raise ExportError(f"{directory} cannot be written: {error.strerror or error}") from error
    write_file(directory / OUTPUTS, [outputs])


def write_channels(directory: Path, designs: Sequence[Design]) -> None:
    """Write the channels of the steps, each a set of its own: ``channels/step-0`` and so on."""
    for step, design in enumerate(designs):
        design.save(directory / CHANNELS / f"step-{step}")


def write_files(directory: Path, files: Mapping[str, bytes], described: Mapping[str, Any] | None) -> None:
    """Write files and, last, the manifest; None for a run that did not finish."""
    for name, content in files.items():
        write_file(directory / name, [content])
    if described is not None:
        write_file(directory / MANIFEST, [json.dumps(described, indent=2).encode()])


def _remove_channels(folder: Path) -> None:
    """Remove the exported sets of all steps, and the folders that are empty then: only files that are ours."""
    for path in folder.glob("step-*/*"):
        if path.name in SET:
            path.unlink()
    for place in (*folder.glob("step-*"), folder):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()


def _errors(releases: Sequence[Release], beliefs: Beliefs, which: str) -> list[float]:
    """Return the error, in the unit of the domain, that the best estimate of each step is expected to have."""
    lengths = distances.euclidean(releases[0].stage.domain)
    found: list[float] = expected_error(getattr(beliefs, which), lengths)[0].tolist()
    return found


def _described(release: Release) -> dict[str, Any]:
    stage = release.stage
    everyone = len(stage.members) == stage.domain.size
    degrees = stage.degrees[stage.members]
    weights = stage.prior[stage.members]
    return {
        "epsilon": exact_text(stage.epsilon),
        "possible": "all" if everyone else stage.members.tolist(),
        "edges": stage.graph.number_of_edges(),
        "added": [] if stage.repair is None else [list(edge) for edge in stage.repair.added],
        "hull": {"dimension": stage.hull.dimension, "volume": stage.hull.volume},
        "degree_of_protection": {
            "least": int(degrees.min()),
            "expected": float(weights @ degrees / weights.sum()),
        },
        "level": _finite(stage_level(stage)),
        "realised": None if stage.realised is None else _finite(stage.realised),
        "certificate": None if release.certificate is None else release.certificate.to_json(),
    }


def _finite(value: float) -> float | None:
    """Return a number as JSON has it: null means that there is no bound."""
    return value if math.isfinite(value) else None
