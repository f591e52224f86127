"""A released trace and its files.

The channel of a step, and what it is expected to cost, follow from prior, chain and policy. Where these were counted in
the history of the person whose trace is released, public files tell of that history; where the trace itself is part of
it, they tell of the true states, without any noise.

Where prior, chain and policy were not counted in data, nothing in them depends on the true states but through the
outputs; else the manifest says under ``depends_on`` what they depend on. ``released.csv`` has a line for each step:
``step`` (from 0), ``state`` and ``label`` where outputs are states, and where they lie: ``x``, ``y``, … in the unit of
the domain, ``latitude`` and ``longitude`` of states that have them. ``steps.json`` says for each step what was kept,
and holds the proof: ε, what was possible, the edges of the policy graph, degrees of protection, and the certificate of
the channel. With the channels themselves there is an exported set for each step, for `mechdesign.verify`.
``release.json``, the manifest, says what all steps guarantee together and holds the SHA-256 of the other files. It is
removed first and written last: where it stands, the files that it names are whole and of one run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._atomic import write_file
from mechdesign.base._check import as_path
from mechdesign.base._errors import ExportError, ReportError
from mechdesign.base._values import cached_property
from mechdesign.base._version import __version__
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.synthesis._folders import NO_FILES, SET, Files, check_folder, make_second_release_error, prepare_files
from mechdesign.synthesis._result import Design
from mechdesign.traces._adversary import Adversary, Beliefs, expected_error
from mechdesign.traces._composition import Composition, compose, stage_level
from mechdesign.traces._published import MANIFEST, OUTPUTS, SCHEMA, STEPS, PublishedTrace, load_published
from mechdesign.traces._stage import Release, without_prior

if TYPE_CHECKING:
    import os


_NOTHING = "nothing in this folder depends on the true states but through the outputs"


@dataclass(frozen=True)
class History:
    """Where prior, chain and policy of a trace come from, by keys of its specification, and what follows from that.

    Attributes:
        counted: what was counted in data.
        given: what stands in files or in the specification as numbers, of which nobody here knows where they are from.
        within: whether counted rows lie between the first and the last time of the trace; None where that is not known.
        others: whether the owner states that data and numbers are not of the person whose trace it is.

    >>> History().meaning
    'Nothing in this folder depends on the true states but through the outputs.'
    >>> History(("prior.checkins",), within=True).meaning
    'Costs and channels depend on the data that were counted for prior.checkins, and so on the true states.'
    """

    counted: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    within: bool | None = None
    others: bool = False

    @property
    def tells_prior(self) -> bool:
        """Whether public channels may hold the prior: nothing was counted, and what was given is stated."""
        return not self.counted and (not self.given or self.others)

    @property
    def meaning(self) -> str:
        """What the public files depend on, in sentences."""
        if not self.counted and not self.given:
            return f"{_NOTHING.capitalize()}."
        parts = [f"the data that were counted for {', '.join(self.counted)}"] * bool(self.counted)
        parts += [f"the numbers at {', '.join(self.given)}"] * bool(self.given)
        depends = f"Costs and channels depend on {' and on '.join(parts)}"
        if self.others:
            return f"{depends}. The owner states that these are not of this person: if so, {_NOTHING}."
        if not self.counted:
            return f"{depends}. Unless these come from data of this person, {_NOTHING}."
        if self.within:
            return f"{depends}, and so on the true states."
        if self.within is None:
            return f"{depends}. Whether the trace is among these is not known: if so, they depend on the true states."
        return f"{depends}. No row of these data lies between the first and the last time of the trace."

    def to_json(self) -> dict[str, Any]:
        """Return what the manifest says."""
        return {
            "counted": list(self.counted),
            "given": list(self.given),
            "stated": "others" if self.others else None,
            "meaning": self.meaning,
        }


CHANNELS = "channels"
REPORT = "report.html"

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


def check_release_target(folder: Path, force: bool = False, overwrite: bool = True) -> None:
    """Raise `ExportError` unless a released trace may and can be written into `folder`.

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

    check_folder(folder, is_ours, "a released trace", force)
    if not overwrite and holds_release(folder):
        raise make_second_release_error(folder, "a released trace")


def holds_release(folder: Path) -> bool:
    """Whether a folder holds a release, whole or not, that was no rehearsal."""
    return any((folder / file).is_file() for file in _PUBLISHED) and not _is_rehearsal(folder)


def _is_rehearsal(folder: Path) -> bool:
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        # An unfinished run, whose outputs somebody may have seen.
        return False
    return isinstance(document, dict) and str(document.get("randomness")).endswith(_REHEARSAL)


def write_outputs(folder: Path, outputs: bytes) -> None:
    """Write the outputs of a trace, after what an older run has left is removed, its manifest before all else.

    Raises `ExportError` when that fails.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / MANIFEST).unlink(missing_ok=True)
        for name in (OUTPUTS, STEPS, *_PICTURES):
            (folder / name).unlink(missing_ok=True)
        _remove_channels(folder / CHANNELS)
    except OSError as error:
        raise ExportError(f"{folder} cannot be written: {error.strerror or error}") from error
    write_file(folder / OUTPUTS, [outputs])


def write_channels(folder: Path, designs: Sequence[Design]) -> None:
    """Write the channels of the steps, each a set of its own: ``channels/step-0`` and so on."""
    for step, design in enumerate(designs):
        design.save(folder / CHANNELS / f"step-{step}")


def write_files(folder: Path, files: Mapping[str, bytes], described: Mapping[str, Any] | None) -> None:
    """Write files and, last, the manifest; None for a run that did not finish."""
    for name, content in files.items():
        write_file(folder / name, [content])
    if described is not None:
        write_file(folder / MANIFEST, [json.dumps(described, indent=2).encode()])


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


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTrace:
    """What was released along a trace, and what follows for whoever knows what the designer knows.

    What it depends on beyond the outputs, `history` says.

    Attributes:
        title: what the trace is called.
        mechanism: the mechanism, by its name in a specification.
        releases: the release of each step, at least one.
        transition: how states follow one another, as the adversary knows it, too.
        initial: what was believed before the first step.
        seeded: whether the outputs come from a seed, and must not be published.
        finished: whether all steps were released; False after Ctrl-C.
        history: what prior, chain and policy were counted in.
    """

    title: str
    mechanism: str
    releases: tuple[Release, ...]
    transition: MarkovChain | VaryingChain
    initial: Prior
    seeded: bool
    finished: bool
    history: History

    def __repr__(self) -> str:
        return f"ReleasedTrace({len(self.releases)} steps of {self.domain.size} states, {self.mechanism})"

    @property
    def domain(self) -> Domain:
        """The states."""
        return self.releases[0].stage.domain

    @property
    def outputs(self) -> Integers | None:
        """The released states, shape (steps,); None where outputs are places."""
        found = [release.output for release in self.releases if release.output is not None]
        return np.array(found, dtype=np.int64) if found else None

    @property
    def places(self) -> Floats:
        """The released places, shape (steps, d)."""
        return np.array([release.coordinates for release in self.releases])

    @property
    def relative_gap(self) -> float:
        """How far, at most, the channel of a step may be from the optimal one; 0 for mechanisms of noise."""
        designs = [release.stage.fitted.mechanism for release in self.releases]
        return max((made.certificate.relative_gap for made in designs if isinstance(made, Design)), default=0.0)

    @property
    def certified(self) -> bool:
        """Whether every step is proved in exact arithmetic; places that are no states are not."""
        proofs = [release.certificate for release in self.releases]
        return all(proof is not None and proof.holds for proof in proofs)

    @property
    def revealed(self) -> tuple[tuple[int, ...], ...]:
        """For each step the states that an answer reveals for certain; none where outputs are places."""
        proofs = [(release.stage.members, release.certificate) for release in self.releases]
        return tuple(
            () if proof is None else tuple(members[list(proof.revealed or ())].tolist()) for members, proof in proofs
        )

    @property
    def randomness(self) -> str:
        """Where the outputs come from, and whether that makes the run a rehearsal."""
        if self.seeded:
            return "a seed: a rehearsal, not to be published"
        if any(release.output is None for release in self.releases):
            return "floating-point noise: a rehearsal, not to be published"
        return "the operating system"

    @cached_property
    def composition(self) -> Composition:
        """What all steps tell together."""
        return compose(self.releases)

    @cached_property
    def beliefs(self) -> Beliefs:
        """What an adversary believes who knows the transitions and the initial distribution."""
        return Adversary(self.transition, self.initial).watch(self.releases)

    @cached_property
    def lengths(self) -> Floats:
        """The distances between states, shape (n, n)."""
        return distances.euclidean(self.domain)

    @cached_property
    def answers(self) -> dict[str, bytes]:
        """The files of what was released, by name: the outputs, and what is known of each step."""
        return {OUTPUTS: outputs_csv(self.releases, self.domain), STEPS: steps_json(self.releases, self.beliefs)}

    @property
    def is_spent(self) -> str:
        """Say that the budgets of the steps are spent, for whoever cannot use the files; rehearsals spend nothing."""
        if self.seeded:
            return "Nothing is spent"
        return f"ε = {exact_text(sum((release.stage.epsilon for release in self.releases), Fraction(0)))} is spent"

    def manifest(self, files: Mapping[str, bytes] = NO_FILES) -> dict[str, Any]:
        """Return what ``release.json`` holds: what all steps guarantee together, and digests of the other files.

        Args:
            files: What goes with the outputs and the proofs, such as pictures and a page, by name.
        """
        entries = [release.entry for release in self.releases if release.entry is not None]
        made = (self.title, self.mechanism, self.composition, self.randomness, self.history)
        return manifest(*made, self.answers | {**files}, entries)

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> PublishedTrace:
        """Read what `save` wrote: a `PublishedTrace`, since the files hold neither chain nor beliefs.

        Raises:
            InputError: A file is missing, damaged, or not the one that the manifest describes.
        """
        return load_published(folder)

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        files: Files[ReleasedTrace] = NO_FILES,
        channels: bool = False,
        force: bool = False,
        overwrite: bool = True,
    ) -> None:
        """Write the outputs, the proofs, the further `files` and, only where all steps were released, the manifest.

        The outputs come first, further files last: whatever happens to these, the outputs stand. `md.report.save`
        writes the pictures and the page, too.

        Args:
            folder: A folder.
            files: Further files that may be published, by name, or a function that returns them for this trace. It is
                called when the outputs and the proofs are written, and the manifest holds the digests of all.
            channels: Write the channel of each step, too, for `mechdesign.verify`. Unless `history` lets them tell the
                prior, a uniform one stands in its place, and nothing is claimed of costs.
            force: Write into a folder that holds other files, beside them.
            overwrite: Replace a release that stands there; a rehearsal is always replaced.

        Raises:
            ExportError: The files may not, or cannot, be written.
            InputError: A name in `files` is taken or no plain file name, or a content is not bytes.
            ReportError: The outputs are written, and another file cannot be made or written.
        """
        target = as_path(folder, "folder")
        further = prepare_files(files, OWN)
        check_release_target(target, force, overwrite)
        write_outputs(target, outputs_csv(self.releases, self.domain))
        designs = [design for release in self.releases if (design := release.stage.design)] if channels else []
        if not self.history.tells_prior:
            designs = [without_prior(design) for design in designs]
        try:
            write_files(target, self.answers, self.manifest() if self.finished else None)
            write_channels(target, designs)
            if added := further(self):
                write_files(target, added, self.manifest(added) if self.finished else None)
        except Exception as error:
            raise ReportError(
                f"what was released is in {target / OUTPUTS}, and complete. {self.is_spent}: do not release it again. "
                f"Of the other files some are missing ({error})"
            ) from error


@dataclass(frozen=True)
class Accuracy:
    """How far off something is, on average over the steps, in the unit of the domain.

    Attributes:
        name: What it is.
        expected: What whoever knows the transitions and the initial distribution expects after all outputs: public.
        true: How far it is from the true states, where they are given: for their owner only.
    """

    name: str
    expected: float
    true: float | None


def accuracy(found: ReleasedTrace, truth: Integers | None = None) -> tuple[Accuracy, ...]:
    """Return how useful the outputs are, and how well an adversary guesses at once and from the whole trace.

    Args:
        found: The released trace.
        truth: The true state of each step, shape (steps,); without it only what is public is returned.
    """
    beliefs, lengths = found.beliefs, found.lengths
    offsets = found.places[:, None, :] - found.domain.points[None, :, :]
    apart = np.sqrt((offsets**2).sum(axis=2))
    useful = None if truth is None else apart[np.arange(len(truth)), truth]
    rows = [("utility: the released place", (beliefs.smoothed * apart).sum(axis=1), useful)]
    for name, which in (("at once", "posteriors"), ("from the whole trace", "smoothed")):
        erred = None if truth is None else beliefs.errors(truth, lengths, which)
        rows.append((f"adversary: the best guess, {name}", beliefs.expected_error(lengths, which), erred))
    return tuple(
        Accuracy(name, float(expected.mean()), None if true is None else float(true.mean()))
        for name, expected, true in rows
    )
