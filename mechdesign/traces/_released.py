"""A released trace and its files.

The channel of a step and its expected cost depend on the prior, the chain and the policy. If the chain, for example,
was estimated from the history of the traced person, the public files reveal information about this history. If the
history contains the trace, the files reveal information about the true states without noise.

If the prior, the chain and the policy do not depend on data, the files depend on the true states only through the
outputs. Otherwise the files also depend on data, which ``depends_on`` in the manifest lists.

``released.csv`` has a row for each step with ``step``, counted from 0. If outputs are states, each row has ``state``
and ``label``. The columns of the places are ``x``, ``y``, … in the unit of the domain, and ``latitude`` and
``longitude`` if known. ``steps.json`` contains the guarantee of each step and its proof. The main entries of a step are
ε, the possible states, the number of edges, degrees of protection, and the certificate. If the channels are saved, each
step has a bundle for `mechdesign.verify`. ``release.json`` is the manifest, with the joint guarantee and digests of the
files. `write_trace` removes the manifest first and writes it last. So if the manifest exists, its files are
complete and belong to one run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._atomic import replacing, write_file
from mechdesign.base._errors import ReportError
from mechdesign.base._values import cached_property
from mechdesign.base._version import __version__
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import csv_text
from mechdesign.leakage._plans import OUTSIDE
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._locate import name_axes
from mechdesign.model._markov import MarkovChain, VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.synthesis._folders import ADD_UP, NO_FILES, SET, Files, check_folder, prepare_files, read_object
from mechdesign.synthesis._result import Design, write_design
from mechdesign.traces._adversary import Adversary, Beliefs, expected_error
from mechdesign.traces._composition import Composition, compose, stage_level
from mechdesign.traces._published import MANIFEST, OUTPUTS, SCHEMA, STEPS, PublishedTrace, load_published
from mechdesign.traces._stage import Release, without_prior

if TYPE_CHECKING:
    import os


_TRUE = "the folder depends on the true states without noise"
_NOTHING = "nothing in this folder depends on the true states except through the outputs"


@dataclass(frozen=True)
class History:
    """The sources of the prior, the chain and the policy of a trace, and the privacy of files that depend on them.

    Attributes:
        counted: The keys of the specification whose values were counted in data.
        given: The keys of the specification whose values are numbers of unknown origin.
        stated: What the owner of the trace states about the data and numbers: "others" if they come from other people,
            "own" if they may come from the person of the trace, or None.

    >>> History().meaning
    'Nothing in this folder depends on the true states except through the outputs.'
    >>> print(History(("prior.checkins",), stated="own").meaning)
    Costs and channels depend on the data that were counted for prior.checkins. The owner states that these come from \
this person: if the trace is among them, the folder depends on the true states without noise.
    """

    counted: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    stated: Literal["others", "own"] | None = None

    @property
    def tells_prior(self) -> bool:
        """Whether public channels may contain the prior: no data were counted, and all numbers come from others."""
        return not self.counted and (not self.given or self.stated == "others")

    @property
    def meaning(self) -> str:
        """Sentences that state on which data the public files depend."""
        if not self.counted and not self.given:
            return f"{_NOTHING.capitalize()}."
        parts = [f"the data that were counted for {', '.join(self.counted)}"] * bool(self.counted)
        parts += [f"the numbers at {', '.join(self.given)}"] * bool(self.given)
        depends = f"Costs and channels depend on {' and on '.join(parts)}"
        if self.stated == "others":
            return f"{depends}. The owner states that these do not belong to this person: if so, {_NOTHING}."
        if self.stated == "own":
            return f"{depends}. The owner states that these come from this person: if the trace is among them, {_TRUE}."
        return f"{depends}. Unless these come from data of this person, {_NOTHING}."

    def to_json(self) -> dict[str, Any]:
        """Return the entry ``depends_on`` of the manifest."""
        return {
            "counted": list(self.counted),
            "given": list(self.given),
            "stated": self.stated,
            "meaning": self.meaning,
        }


CHANNELS = "channels"
REPORT = "report.html"
OWN = (OUTPUTS, STEPS, MANIFEST, CHANNELS)
"""The files and folders of a released trace, without the page."""
FILES = (OUTPUTS, STEPS, MANIFEST, REPORT)
"""The files of a released trace, except its channels."""
TRUTH = {"true.csv": "step,state,label,"}
"""The table of the true states, with a pattern of its beginning."""
PRIVATE = (*TRUTH, "true-over-time.svg", "true-map.svg")
"""The files that show the true states; they are written to a separate folder."""
_PUBLISHED = {OUTPUTS: "step,(state,label|x)", MANIFEST: r'\{\s*"schema": "mechdesign-release/'}
_REHEARSAL = "a rehearsal, not to be published"


def outputs_csv(releases: Sequence[Release], domain: Domain) -> bytes:
    """Return ``released.csv``, with all digits of the numbers."""
    places = name_axes(domain.points.shape[1])
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
    """Return ``steps.json``, where nodes are indices of states.

    Args:
        releases: The release of each step.
        beliefs: The beliefs of an adversary who knows the same chain and initial distribution as the designer.

    Returns:
        The content of the file.
    """
    errors = {
        "at_once": _errors(releases, beliefs, "posteriors"),
        "from_the_whole_trace": _errors(releases, beliefs, "smoothed"),
    }
    steps = []
    for step, release in enumerate(releases):
        described = _describe_release(release)
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
    """Return the manifest of `files`.

    `randomness` names the source of the random bits, but never a seed. `entries` contains the random number of the
    ledger entry of each step.
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


def check_release_target(folder: Path, overwrite: bool = True) -> None:
    """Raise `ExportError` unless a released trace can be written to `folder` without the loss of other files.

    The folder must be new, or empty, or contain only a rehearsal. With `overwrite` the folder may contain any released
    trace, complete or interrupted.
    """
    held = "" if overwrite or not holds_release(folder) else f"a released trace, and {ADD_UP}"
    check_folder(folder, (*FILES, f"{CHANNELS}/"), "a released trace", first=_PUBLISHED, held=held)


def holds_release(folder: Path) -> bool:
    """Return whether a folder contains a complete or interrupted release that is not a rehearsal."""
    rehearsed = str(read_object(folder / MANIFEST).get("randomness")).endswith(_REHEARSAL)
    return any((folder / file).is_file() for file in _PUBLISHED) and not rehearsed


def write_channels(folder: Path, designs: Sequence[Design]) -> None:
    """Write the channel of each step as a separate bundle, ``channels/step-0`` and so on; remove those of other steps.

    Folders that become empty are removed, and other files are kept.
    """
    steps = [folder / CHANNELS / f"step-{step}" for step in range(len(designs))]
    for path in (folder / CHANNELS).glob("step-*/*"):
        if path.name in SET and path.parent not in steps:
            path.unlink()
    for place in (*(folder / CHANNELS).glob("step-*"), folder / CHANNELS):
        if place.is_dir() and not any(place.iterdir()):
            place.rmdir()
    for step, design in zip(steps, designs, strict=True):
        write_design(design, step)


def write_files(folder: Path, files: Mapping[str, bytes], described: Mapping[str, Any] | None) -> None:
    """Write files, and then the manifest `described`; it is None, and not written, for an unfinished run."""
    for name, content in files.items():
        write_file(folder / name, [content])
    if described is not None:
        write_file(folder / MANIFEST, [json.dumps(described, indent=2).encode()])


def _errors(releases: Sequence[Release], beliefs: Beliefs, which: str) -> list[float]:
    """Return the expected error of the best estimate at each step, in the unit of the domain."""
    lengths = _guess_errors(releases[0].stage.domain)
    found: list[float] = expected_error(getattr(beliefs, which), lengths)[0].tolist()
    return found


def _describe_release(release: Release) -> dict[str, Any]:
    stage = release.stage
    everyone = len(stage.members) == stage.domain.size
    degrees = stage.degrees[stage.members]
    weights = stage.prior[stage.members]
    return {
        "epsilon": exact_text(stage.epsilon),
        "possible": "all" if everyone else stage.members.tolist(),
        "edges": stage.graph.number_of_edges(),
        "added": [] if stage.repair is None else [list(edge) for edge in stage.repair.added],
        "hull": None if stage.hull is None else {"dimension": stage.hull.dimension, "volume": stage.hull.volume},
        "degree_of_protection": {
            "least": int(degrees.min()),
            "expected": float(weights @ degrees / weights.sum()),
        },
        "level": _finite(stage_level(stage)),
        "realised": None if stage.realised is None else _finite(stage.realised),
        "certificate": None if release.certificate is None else release.certificate.to_json(),
    }


def _finite(value: float) -> float | None:
    """Return a finite number unchanged, and None for infinity; JSON writes None as null."""
    return value if math.isfinite(value) else None


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTrace:
    """The outputs of a trace, with the beliefs of an adversary who knows the designer's model.

    In addition to the true states, a trace may depend on the data that `history` describes.

    Attributes:
        title: The title of the trace.
        mechanism: The name of the mechanism in a specification.
        releases: The release of each step, at least one.
        transition: The Markov chain, or one chain for each step, which the adversary also knows.
        initial: The distribution of the first state, which the adversary also knows.
        seeded: Whether the outputs come from a seed and must not be published.
        finished: Whether all steps were released; False after Ctrl-C.
        history: The sources of the prior, the chain and the policy.

    >>> import mechdesign as md
    >>> domain, graph = md.Domain.grid(2, 1, 2.0, 1.0), md.graphs.complete(2)
    >>> trace = md.traces.Trace(domain, graph, 1, [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], rng=1)
    >>> steps = (trace.step(0), trace.step(0))
    >>> released = ReleasedTrace(
    ...     "walk", "planar-isotropic", steps, trace.transition, trace.initial, True, True, History()
    ... )
    >>> released.outputs.tolist(), released.certified, released.randomness
    ([0, 1], True, 'a seed: a rehearsal, not to be published')
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
        """The released states, shape (steps,); None if outputs are coordinates."""
        found = [release.output for release in self.releases if release.output is not None]
        return np.array(found, dtype=np.int64) if found else None

    @property
    def places(self) -> Floats:
        """The released places, shape (steps, d)."""
        return np.array([release.coordinates for release in self.releases])

    @property
    def relative_gap(self) -> float:
        """The largest certified gap of the channels of all steps; 0 for noise mechanisms."""
        designs = [release.stage.fitted.mechanism for release in self.releases]
        return max((made.certificate.relative_gap for made in designs if isinstance(made, Design)), default=0.0)

    @property
    def certified(self) -> bool:
        """Whether every step has a proof in exact arithmetic; a release of coordinates has no proof."""
        proofs = [release.certificate for release in self.releases]
        return all(proof is not None and proof.holds for proof in proofs)

    @property
    def revealed(self) -> tuple[tuple[int, ...], ...]:
        """The states that an answer reveals with certainty, for each step; empty if outputs are coordinates."""
        proofs = [(release.stage.members, release.certificate) for release in self.releases]
        return tuple(
            () if proof is None else tuple(members[list(proof.revealed or ())].tolist()) for members, proof in proofs
        )

    @property
    def randomness(self) -> str:
        """The source of the random bits, and whether it makes the run a rehearsal."""
        if self.seeded:
            return "a seed: a rehearsal, not to be published"
        if any(release.output is None for release in self.releases):
            return "floating-point noise: a rehearsal, not to be published"
        return "the operating system"

    @cached_property
    def composition(self) -> Composition:
        """The joint guarantee of all steps."""
        return compose(self.releases)

    @cached_property
    def beliefs(self) -> Beliefs:
        """The beliefs of an adversary who knows the transitions and the initial distribution."""
        return Adversary(self.transition, self.initial).watch(self.releases)

    @cached_property
    def lengths(self) -> Floats:
        """The distances between states, shape (n, n)."""
        return _guess_errors(self.domain)

    @cached_property
    def answers(self) -> dict[str, bytes]:
        """The contents of ``released.csv`` and ``steps.json``, by file name."""
        return {OUTPUTS: outputs_csv(self.releases, self.domain), STEPS: steps_json(self.releases, self.beliefs)}

    @property
    def is_spent(self) -> str:
        """A sentence about the spent budget, for error messages; rehearsals spend no budget."""
        if self.seeded:
            return "Nothing is spent"
        return f"ε = {exact_text(sum((release.stage.epsilon for release in self.releases), Fraction(0)))} is spent"

    def manifest(self, files: Mapping[str, bytes] = NO_FILES) -> dict[str, Any]:
        """Return the content of ``release.json``: the joint guarantee of all steps and the digests of the other files.

        Args:
            files: The contents of further files, such as a page, by name.

        Returns:
            The manifest.
        """
        entries = [release.entry for release in self.releases if release.entry is not None]
        made = (self.title, self.mechanism, self.composition, self.randomness, self.history)
        found = manifest(*made, self.answers | {**files}, entries)
        if entries and any(release.stage.series is False for release in self.releases):
            found["composition"]["meaning"] += f" {OUTSIDE}"
        return found

    @staticmethod
    def load(folder: str | os.PathLike[str]) -> PublishedTrace:
        """Read the files that `mechdesign.save` wrote; they contain neither the chain nor the beliefs.

        Args:
            folder: The folder of the released trace.

        Returns:
            The content of the public files.

        Raises:
            InputError: A file is missing or damaged, or does not match its digest in the manifest.
        """
        return load_published(folder)


def write_trace(
    trace: ReleasedTrace,
    folder: Path,
    *,
    files: Files[ReleasedTrace] = NO_FILES,
    channels: bool = False,
    overwrite: bool = True,
) -> None:
    """Write the outputs, the proofs and `files`, and the manifest if all steps were released.

    The outputs are written first and `files` last, so an error in `files` does not lose the outputs.

    Args:
        trace: The released trace.
        folder: The folder of the files.
        files: Further public files, by name, or a function that returns them for this trace. The function is called
            after the outputs and the proofs are written. The manifest contains the digests of all files.
        channels: Whether to write the channel of each step for `mechdesign.verify`. If `history` does not permit a
            public prior, the channels contain a uniform prior and make no claim about costs.
        overwrite: Whether to replace an existing release; a rehearsal is always replaced.

    Raises:
        ExportError: The folder contains other files or a release, or cannot be written.
        InputError: A name in `files` is reserved or is not a plain file name, or a content is not bytes.
        ReportError: The outputs are written, but another file could not be built or written.
    """
    further = prepare_files(files, OWN)
    check_release_target(folder, overwrite)
    with replacing(folder, (MANIFEST, OUTPUTS, STEPS, REPORT)):
        write_file(folder / OUTPUTS, [outputs_csv(trace.releases, trace.domain)])
        try:
            designs = [design for release in trace.releases if (design := release.stage.design)] if channels else []
            if not trace.history.tells_prior:
                designs = [without_prior(design) for design in designs]
            write_files(folder, trace.answers, None)
            write_channels(folder, designs)
            write_files(folder, {}, trace.manifest() if trace.finished else None)
            if added := further(trace):
                write_files(folder, added, trace.manifest(added) if trace.finished else None)
        except Exception as error:
            raise ReportError(
                f"the outputs in {folder / OUTPUTS} are complete. {trace.is_spent}: do not release the trace again. "
                f"Some other files are missing ({error})"
            ) from error


def _guess_errors(domain: Domain) -> Floats:
    """Return the error of each guess for each state: its distance; over a domain of labels, 1 for another state."""
    return distances.euclidean(domain) if domain.points.shape[1] else distances.hamming(domain.size)


@dataclass(frozen=True)
class Accuracy:
    """The error of the outputs or of a guess, averaged over the steps, in the unit of the domain.

    Over a domain of labels, an error is the probability of another state.

    Attributes:
        name: The description of the outputs or of the guess.
        expected: The expected error under the beliefs of an adversary who knows all outputs; this number is public.
        true: The actual error, which only the owner of the true states may see; None without true states.
    """

    name: str
    expected: float
    true: float | None


def accuracy(found: ReleasedTrace, truth: Integers | None = None) -> tuple[Accuracy, ...]:
    """Return the mean errors of the outputs, and of an adversary's guesses at each time and from the whole trace.

    Args:
        found: The released trace.
        truth: The true state of each step, shape (steps,). Without true states, only the public errors are returned.

    Returns:
        The errors of the outputs, of the guesses at each time, and of the guesses from the whole trace.
    """
    beliefs, lengths = found.beliefs, found.lengths
    if found.domain.points.shape[1]:
        apart = np.sqrt(((found.places[:, None, :] - found.domain.points[None, :, :]) ** 2).sum(axis=2))
    else:
        apart = lengths[[release.output for release in found.releases if release.output is not None]]
    useful = None if truth is None else apart[np.arange(len(truth)), truth]
    rows = [("utility: the released place", (beliefs.smoothed * apart).sum(axis=1), useful)]
    for name, which in (("at once", "posteriors"), ("from the whole trace", "smoothed")):
        erred = None if truth is None else beliefs.errors(truth, lengths, which)
        rows.append((f"adversary: the best guess, {name}", beliefs.expected_error(lengths, which), erred))
    return tuple(
        Accuracy(name, float(expected.mean()), None if true is None else float(true.mean()))
        for name, expected, true in rows
    )
