"""Design and SolveSummary."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_path, as_truth
from mechdesign.base._display import card, picture
from mechdesign.base._errors import BracketWarning, InputError, ReportError
from mechdesign.base._version import __version__
from mechdesign.base._warnings import warn
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence, Multipliers
from mechdesign.certify._exact import exact
from mechdesign.data._bounds import memory_limit_gib
from mechdesign.model._answers import Answers, sample_at
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._locate import Outside
from mechdesign.model._origin import Origin
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.synthesis import _bundle as sets
from mechdesign.synthesis._folders import NO_FILES, SET_OF_DESIGN, Files, check_target, further_files
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._without_prior import check_public_target, without_prior

# What provenance calls by another name: bundles have had these keys from the first version on.
_KEYS = {"dilation": "stretch", "seconds": "solve_seconds"}
_UNWRITTEN = ("message", "status")
# What a fact may be, by the annotation of its field.
_FORMS: Mapping[Any, tuple[type, ...]] = {"str | None": (str,), "int | None": (int,), "float | None": (float, int)}


@dataclass(frozen=True, repr=False)
class SolveSummary:
    """How a design was found; a field that does not apply is None.

    Attributes:
        status: How the search ended. OPTIMAL only where the certificate proves the gap that was asked for.
        message: What the solver said, or what was done about it.
        plan: The rows and the solver, and why.
        solver: Name of the solver, as in `mechdesign info`; several with commas where parts had different ones.
        solver_version: Its version, in its own words.
        rows_policy: The rows of the program: "all", "reduced", "lazy" or "near".
        program_rows: Rows of the program solved last.
        program_columns: Its columns.
        rounds: Programs solved one after the other, with more rows or new prices each.
        blocks: Blocks of the block method, one for each orbit of columns.
        symmetries: Order of the group of symmetries used.
        iterations: Iterations of the solver.
        memory_estimate: Bytes that the block method expected to take.
        primal_residual: Largest violation of a row by the solver's own numbers.
        dual_residual: Largest infeasibility of a reduced cost.
        dilation: For near rows, the factor by which ε was divided.
        parts: Sets of secrets that no requirement ties together.
        programs: Different programs among the parts.
        proposals: Channels that column generation mixed.
        seconds: Time from the start to the solver's answer; in parts, with the rounding and certifying of each.
        privacy_weight: Largest weight with which rounding mixed rows to meet the privacy bounds.
        floor_weight: Weight of the constant channel that rounding mixed in to meet distortion floors.
        rounding_seconds: Time that rounding took, after the solver's answer.
        proving_seconds: In the block method, the part of `seconds` that went into the proof of its bound; it comes on
            top of a time limit.
        certifying_seconds: Time that the exact check took, after rounding.
        tried: What was tried, in order, with what came of it.
        mechanism: The mechanism whose channel this is, where none was searched for.
        within: Which answers a policy permits: "component" or "map".
        isolated: What was done with secrets that nothing ties to another, such as isolated nodes of a policy graph.
        edges_added: Edges added to a policy graph to protect isolated nodes.
    """

    status: Status
    message: str = ""
    mechanism: str | None = None
    plan: str | None = None
    solver: str | None = None
    solver_version: str | None = None
    rows_policy: str | None = None
    program_rows: int | None = None
    program_columns: int | None = None
    blocks: int | None = None
    symmetries: int | None = None
    rounds: int | None = None
    iterations: int | None = None
    memory_estimate: int | None = None
    primal_residual: float | None = None
    dual_residual: float | None = None
    dilation: float | None = None
    parts: int | None = None
    programs: int | None = None
    proposals: int | None = None
    seconds: float | None = None
    privacy_weight: float | None = None
    floor_weight: float | None = None
    rounding_seconds: float | None = None
    proving_seconds: float | None = None
    certifying_seconds: float | None = None
    within: str | None = None
    isolated: str | None = None
    edges_added: int | None = None
    tried: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Say how it ended, by which solver and when: the fields say the rest."""
        time = "" if self.seconds is None else f", {self.seconds:.3g} s"
        return f"SolveSummary({self.status}, {self.solver or self.mechanism}{time})"

    def provenance(self) -> dict[str, str | int | float]:
        """Return the facts as a certificate keeps them, for display: nothing rests on them.

        >>> SolveSummary(Status.OPTIMAL, solver="block", iterations=12).provenance()
        {'solver': 'block', 'iterations': 12, 'status': 'optimal'}
        """
        found: dict[str, str | int | float] = {}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "tried":
                # What was tried once is said by the plan.
                value = "; ".join(self.tried) if len(self.tried) > 1 else None
            if value is not None and name not in _UNWRITTEN:
                found[_KEYS.get(name, name)] = value
        return {**found, "status": self.status.value}

    @classmethod
    def from_provenance(cls, provenance: Mapping[str, object]) -> SolveSummary:
        """Return the facts that the provenance of a certificate tells; others, or of another form, are left out.

        Without a status it is that of a channel that was given.

        >>> SolveSummary.from_provenance({"solver": "block", "iterations": 12, "status": "optimal"}).iterations
        12
        """
        found: dict[str, Any] = {}
        for each in fields(cls):
            value = provenance.get(_KEYS.get(each.name, each.name))
            if each.name not in (*_UNWRITTEN, "tried") and isinstance(value, _FORMS[each.type]):
                found[each.name] = value
        status, tried = provenance.get("status"), provenance.get("tried")
        return cls(
            status=Status(str(status)) if status in [*Status] else Status.STATED,
            tried=tuple(tried.split("; ")) if isinstance(tried, str) else (),
            **found,
        )


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
        shown = picture("heat_map", self.channel.matrix, "Probability of each observable for each secret")
        return card(self.problem.title or "Design", facts, shown) + self.certificate._repr_html_()

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

        See `mechdesign.model.sample_at`, which takes the same arguments: latitude and longitude, or x and y on
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

        `mechdesign.verify` never accepts a mixture of an older set and this one. The files hold the prior: one that was
        counted in data can be read from them, count by count. A page goes with them by `md.report.save`.

        Args:
            folder: Folder to write, made where there is none.
            files: Further files of the set by name, or a function that returns them for the design that is written. The
                certificate holds their digests. Where the function fails, the set is written without them.
            overwrite: Whether to replace a set of another origin that stands there.
            prior: Whether the files hold the prior. Without it a uniform one stands in its place, the lower bound is 0,
                and the origin, the multipliers and the summary are left out: see `mechdesign.synthesis._without_prior`.
                The folder is then a new or empty one, or holds a design without its prior.

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

        The digests of the files are checked, and nothing else: `mechdesign.verify` proves what the certificate claims.
        The summary holds what the provenance of the certificate tells, which nobody proves.

        Raises:
            CertificateError: The set is incomplete, malformed or describes no problem.
        """
        found = bundle.read(as_path(folder, "folder"), memory_limit_gib())
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


# A relative gap that rays are known to reach on what they are made for.
_USUAL = 0.02


def stalled(made: Design, settings: SolveSettings) -> bool:
    """Tell whether rays ended by themselves, with a bracket above the tolerance and above 2 %."""
    wide = made.certificate.relative_gap > max(settings.tolerance, _USUAL)
    return settings.rows == "rays" and made.status is Status.STALLED and wide


def warn_if_stalled(made: Design, settings: SolveSettings) -> Design:
    """Return a design; raise a `BracketWarning` first where it has stalled, with its bracket."""
    if stalled(made, settings):
        certificate = made.certificate
        worst = certificate.objective == "worst"
        cost = certificate.worst_cost if worst else certificate.expected_cost
        gap = certificate.relative_gap
        proved = f"{gap:.2g} of the cost" if gap < 1 else "all of the cost, which nothing bounds from below"
        warn(
            f"rays stalled: the least cost lies between {certificate.lower_bound:.6g} and {cost:.6g}, a bracket of "
            f"{proved}; {settings.tolerance:.3g} was asked for. Privacy is certified all the same. For up to a few "
            'hundred secrets leave rows at "auto"',
            BracketWarning,
            stacklevel=4,
        )
    return made
