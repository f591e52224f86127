"""The end of the road: an integer channel is certified, and becomes a design."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import Certificate
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence
from mechdesign.certify._evidence import Multipliers
from mechdesign.certify._exact import exact
from mechdesign.data._bounds import allowed_gib
from mechdesign.base._display import card
from mechdesign.base._display import heat_map
from mechdesign.base._errors import InputError
from mechdesign.base._errors import ReportError
from mechdesign.export import sets
from mechdesign.export.files import NO_FILES
from mechdesign.export.files import SET_OF_DESIGN
from mechdesign.export.files import Files
from mechdesign.export.files import check_target
from mechdesign.export.files import further_files
from mechdesign.export.without_prior import check_public_target
from mechdesign.export.without_prior import without_prior
from mechdesign.model._answers import Answers
from mechdesign.model._answers import sample_at
from mechdesign.model._channel import EXPONENT
from mechdesign.model._channel import Channel
from mechdesign.model._problem import Origin
from mechdesign.model._locate import Outside
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.synthesis.summary import SolveSummary
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_path
from mechdesign.base._check import as_truth
from mechdesign.base._version import __version__

__all__ = ["Design", "certified"]


def __dir__() -> list[str]:
    return sorted(__all__)


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A channel, the problem it answers, and the proof of both its privacy and its cost.

    `multipliers` prove the lower bound; `summary` says how all this was found, and `origin`, where it is known, where
    the problem comes from.
    """

    problem: Problem
    channel: Channel
    certificate: Certificate
    multipliers: Multipliers | None
    summary: SolveSummary
    origin: Origin | None = None

    def __repr__(self) -> str:
        return f"Design({self.channel!r}, {self.certificate!r})"

    def _repr_html_(self) -> str:
        n, m = self.channel.numerators.shape
        facts = [("secrets, observables", f"{n}, {m}"), ("found", f"{self.status}, by {self.summary.solver}")]
        picture = heat_map(self.channel.matrix, "Probability of each observable for each secret")
        return card(self.problem.title or "Design", facts, picture) + self.certificate._repr_html_()

    def to_pandas(self) -> Any:
        """Return the channel as a pandas data frame; see `Channel.to_pandas`."""
        return self.channel.to_pandas()

    @property
    def status(self) -> Status:
        """How the search ended: "optimal", or why it stopped early."""
        return self.summary.status

    def noted(self, **changes: object) -> Design:
        """Return this design with other facts in its summary, and in the provenance of its certificate."""
        summary = replace(self.summary, **changes)  # type: ignore[arg-type]
        return replace(self, summary=summary, certificate=replace(self.certificate, provenance=_provenance(summary)))

    def evidence(self) -> Evidence:
        """Return what the certificate was computed from."""
        return _evidence(self.problem, self.channel.numerators, self.multipliers)

    def sample_at(
        self,
        latitude: ArrayLike | None = None,
        longitude: ArrayLike | None = None,
        size: int | tuple[int, ...] | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        x: ArrayLike | None = None,
        y: ArrayLike | None = None,
        outside: Outside = "refuse",
        reach: float | None = None,
    ) -> Answers:
        """Draw answers for places, exactly as certified for the secrets they belong to.

        See `mechdesign.model._answers.sample_at`, which takes the same arguments: latitude and longitude, or x and y on
        the plane.
        """
        given = (self.problem, self.channel, latitude, longitude, size, rng)
        return sample_at(*given, x=x, y=y, outside=outside, reach=reach)

    @in_own_arithmetic
    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        files: Files[Design] = NO_FILES,
        overwrite: bool = True,
        prior: bool = True,
        **unknown: object,
    ) -> None:
        """Write ``channel.npz``, ``channel.csv``, ``dual.npz``, the further `files` and, last, ``certificate.json``.

        `mechdesign.certify._verify.verify` never accepts a mixture of an older set and this one. The files hold the prior: one that was
        counted in data can be read from them, count by count. A page goes with them by `md.report.save`.

        Args:
            folder: Folder to write, made where there is none.
            files: Further files of the set by name, or a function that returns them for the design that is written. The
                certificate holds their digests. Where the function fails, the set is written without them.
            overwrite: Whether to replace a set of another origin that stands there.
            prior: Whether the files hold the prior. Without it a uniform one stands in its place, the lower bound is 0,
                and the origin, the multipliers and the summary are left out: see `mechdesign.export.without_prior`. The
                folder is then a new or empty one, or holds a design without its prior.

        Raises:
            ExportError: The files may not, or cannot, be written.
            ReportError: The further files alone cannot be made; the other files are written.
            InputError: The prior is to be left out, and a requirement is stated under it, or costs tell it; or `prior`
                is no truth value; or a name in `files` is taken or no plain file name, or a content is not bytes.
        """
        for name in unknown:
            raise InputError(
                name,
                "is no argument of Design.save",
                bound="files, overwrite or prior",
                remedy="a design with its page is written by md.report.save(design, folder)",
            )
        target, made = as_path(folder, "folder"), self
        further = further_files(files, SET_OF_DESIGN)
        if not as_truth(prior, "prior"):
            check_public_target(target)
            public = without_prior(self.problem, self.channel)
            summary = SolveSummary(Status.STATED)
            made = Design(public.problem, self.channel, public.certificate, None, summary, public.origin)
        if not overwrite:
            check_target(target, force=True, overwrite=False, origin=made.origin)
        added, failure = dict[str, bytes](), None
        try:
            added = further(made)
        except Exception as error:  # Whatever drawing raises, what was solved is not to be lost.
            failure = error
        proof = (made.certificate, made.evidence())
        bundle.write(target, sets.encode(made.problem, made.channel, *proof, made.origin, added))
        if failure is not None:
            raise ReportError(
                f"the design is in {target}, and complete. Only further files, such as a page, are missing ({failure})"
            ) from failure

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Design:
        """Return the design that stands in a folder, as `save` wrote it.

        The digests of the files are checked, and nothing else: `mechdesign.certify._verify.verify` proves what the certificate claims.
        The summary holds what the provenance of the certificate tells, which nobody proves.

        Raises:
            CertificateError: The set is incomplete, malformed or describes no problem.
        """
        found = bundle.read(as_path(folder, "folder"), allowed_gib())
        problem, origin = sets.stated_of(found)
        channel = Channel.from_arrays(found.evidence.numerators, found.evidence.exponent, found.arrays)
        summary = SolveSummary.from_provenance(found.certificate.provenance)
        return cls(problem, channel, found.certificate, found.evidence.multipliers, summary, origin)


def certified(
    problem: Problem, numerators: Integers, multipliers: Multipliers | None, tolerance: float, summary: SolveSummary
) -> Design:
    """Certify a channel, numerators (n, m) over 2^62, in exact arithmetic.

    What is called optimal is what the certificate proves to `tolerance`, whatever a solver thinks of its own numbers.
    Raises CertificateError should the channel not keep a requirement.
    """
    certificate = certify(_evidence(problem, numerators, multipliers))
    certificate.require()
    if summary.status in (Status.OPTIMAL, Status.STALLED):
        close = exact(certificate.relative_gap) <= exact(tolerance)
        summary = replace(summary, status=Status.OPTIMAL if close else Status.STALLED)
    elif summary.status is Status.ITERATION_LIMIT and exact(certificate.relative_gap) <= exact(tolerance):
        # A solver may go on looking for what it has.
        summary = replace(summary, status=Status.OPTIMAL)
    labels = [domain.labels if domain is not None else () for domain in (problem.secrets, problem.observables)]
    channel = Channel(numerators, *labels)
    return Design(problem, channel, replace(certificate, provenance=_provenance(summary)), multipliers, summary)


def _provenance(summary: SolveSummary) -> dict[str, str | int | float]:
    return {"mechdesign": __version__, "numpy": np.__version__, **summary.provenance()}


def _evidence(problem: Problem, numerators: Integers, multipliers: Multipliers | None) -> Evidence:
    return Evidence(numerators, EXPONENT, problem.prior, problem.cost, problem.objective, problem.stated, multipliers)
