"""A released trace: every step, what all of them say together, and the files of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.atomic import make_folder, write_file
from mechdesign.certify.exact import exact_text
from mechdesign.computed import cached_property
from mechdesign.errors import InputError, ReportError
from mechdesign.export.files import check_writable
from mechdesign.model import distances
from mechdesign.model.domain import Domain
from mechdesign.model.markov import MarkovChain, VaryingChain
from mechdesign.model.prior import Prior
from mechdesign.ownership import note_readers
from mechdesign.release.adversary import Adversary, Beliefs
from mechdesign.release.composition import Composition, compose
from mechdesign.release.files import (
    OUTPUTS,
    REPORT,
    STEPS,
    check_release_target,
    manifest,
    outputs_csv,
    steps_json,
    write_channels,
    write_files,
    write_outputs,
)
from mechdesign.release.history import History
from mechdesign.release.outcome import Release
from mechdesign.release.problem import without_prior
from mechdesign.synthesis.certified import Design
from mechdesign.validation import Floats, Integers, as_array

if TYPE_CHECKING:
    import os

__all__ = ["ReleasedTrace"]


def __dir__() -> list[str]:
    return sorted(__all__)


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

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The files that may be published, by name, but for the manifest."""
        from mechdesign.release.page import html
        from mechdesign.release.pictures import public_pictures

        return self.answers | public_pictures(self) | {REPORT: html(self).encode()}

    @property
    def is_spent(self) -> str:
        """Say that the budgets of the steps are spent, for whoever cannot use the files; rehearsals spend nothing."""
        if self.seeded:
            return "Nothing is spent"
        return f"ε = {exact_text(sum((release.stage.epsilon for release in self.releases), Fraction(0)))} is spent"

    def manifest(self) -> dict[str, Any]:
        """Return what ``release.json`` holds: what all steps guarantee together, and digests of the other files."""
        return self._manifest(self.files)

    def _manifest(self, files: dict[str, bytes]) -> dict[str, Any]:
        entries = [release.entry for release in self.releases if release.entry is not None]
        made = (self.title, self.mechanism, self.composition, self.randomness, self.history)
        return manifest(*made, files, entries)

    def save(
        self, directory: str | os.PathLike[str], *, channels: bool = False, force: bool = False, overwrite: bool = True
    ) -> None:
        """Write the files that may be published, and, only where all steps were released, the manifest.

        The outputs come first, pages and pictures last: whatever happens to these, the outputs stand.

        Args:
            directory: A folder.
            channels: Write the channel of each step, too, for `mechdesign.verify`. Unless `history` lets them tell the
                prior, a uniform one stands in its place, and nothing is claimed of costs.
            force: Write into a folder that holds other files, beside them.
            overwrite: Replace a release that stands there; a rehearsal is always replaced.

        Raises:
            ExportError: The files may not, or cannot, be written.
            ReportError: The outputs are written, and another file cannot be made or written.
        """
        folder = Path(directory)
        check_release_target(folder, force, overwrite)
        write_outputs(folder, outputs_csv(self.releases, self.domain))
        designs = [design for release in self.releases if (design := release.stage.design)] if channels else []
        if not self.history.tells_prior:
            designs = [without_prior(design) for design in designs]
        try:
            write_files(folder, self.answers, self._manifest(self.answers) if self.finished else None)
            write_channels(folder, designs)
            write_files(folder, self.files, self.manifest() if self.finished else None)
        except Exception as error:
            raise ReportError(
                f"what was released is in {folder / OUTPUTS}, and complete. {self.is_spent}: do not release it again. "
                f"Of the other files some are missing ({error})"
            ) from error

    def save_truth(self, directory: str | os.PathLike[str], truth: Sequence[int] | Integers) -> None:
        """Write what shows the true states, for their owner only; `truth` holds the true state of each step.

        New files have the mode 0600, and a new folder has 0700. Files that stand there keep theirs, with an
        `ExposedFileWarning` where others can read them.
        """
        from mechdesign.release.pictures import private_files

        folder = Path(directory)
        true = as_array(truth, "truth", np.int64)
        if len(true) < len(self.releases):
            raise InputError("truth", "ends before the trace", value=len(true), bound=f"{len(self.releases)} states")
        check_writable(folder)
        make_folder(folder, private=True)
        for name, content in private_files(self, true[: len(self.releases)]).items():
            note_readers(folder / name)
            write_file(folder / name, [content], private=True)
