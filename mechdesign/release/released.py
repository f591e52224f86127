"""A released trace: every step, what all of them say together, and the files of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from mechdesign.certify._exact import exact_text
from mechdesign.base._values import cached_property
from mechdesign.base._errors import ReportError
from mechdesign.synthesis._folders import NO_FILES
from mechdesign.synthesis._folders import Files
from mechdesign.synthesis._folders import further_files
from mechdesign.model import distances
from mechdesign.model._domain import Domain
from mechdesign.model._markov import MarkovChain
from mechdesign.model._markov import VaryingChain
from mechdesign.model._prior import Prior
from mechdesign.release.adversary import Adversary
from mechdesign.release.adversary import Beliefs
from mechdesign.release.composition import Composition
from mechdesign.release.composition import compose
from mechdesign.release.files import OUTPUTS
from mechdesign.release.files import OWN
from mechdesign.release.files import STEPS
from mechdesign.release.files import check_release_target
from mechdesign.release.files import manifest
from mechdesign.release.files import outputs_csv
from mechdesign.release.files import steps_json
from mechdesign.release.files import write_channels
from mechdesign.release.files import write_files
from mechdesign.release.files import write_outputs
from mechdesign.release.history import History
from mechdesign.release.outcome import Release
from mechdesign.release.problem import without_prior
from mechdesign.synthesis._result import Design
from mechdesign.base._arrays import Floats
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_path

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
            channels: Write the channel of each step, too, for `mechdesign.certify._verify.verify`. Unless `history` lets them tell the
                prior, a uniform one stands in its place, and nothing is claimed of costs.
            force: Write into a folder that holds other files, beside them.
            overwrite: Replace a release that stands there; a rehearsal is always replaced.

        Raises:
            ExportError: The files may not, or cannot, be written.
            InputError: A name in `files` is taken or no plain file name, or a content is not bytes.
            ReportError: The outputs are written, and another file cannot be made or written.
        """
        target = as_path(folder, "folder")
        further = further_files(files, OWN)
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
