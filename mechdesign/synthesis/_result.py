"""The result of a design: `Design` is a certified channel with its problem, and `SolveSummary` describes the search.

`withhold_prior` publishes a design with a uniform prior in place of its private prior, and without a certified cost.
Metric, threshold and graph privacy compare rows of the channel, so their proofs hold under any prior. Everything that
depends on the prior is left out: the multipliers of the lower bound, the summary, and the origin of the problem. The
integers of the channel do not change; they were optimised for the true prior (see docs/howto/export.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._arrays import Integers
from mechdesign.base._check import as_path
from mechdesign.base._display import card
from mechdesign.base._errors import BracketWarning, CertificateError, InputError, ReportError
from mechdesign.base._version import __version__
from mechdesign.base._warnings import warn
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import Certificate, certify
from mechdesign.certify._evidence import Evidence, Multipliers
from mechdesign.certify._exact import exact
from mechdesign.model._answers import Answers, sample_at
from mechdesign.model._channel import EXPONENT, Channel
from mechdesign.model._locate import Outside
from mechdesign.model._origin import STANDS_IN, Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.solve._contract import Status
from mechdesign.synthesis import _bundle as sets
from mechdesign.synthesis._folders import NO_FILES, SET_OF_DESIGN, Files, check_folder, check_target, prepare_files
from mechdesign.synthesis._settings import SolveSettings

_REMEDY = "to publish a design, design again without it, or with a uniform prior or one from public data"


@dataclass(frozen=True, eq=False)
class PublicDesign:
    """The published version of a design: the problem with a uniform prior, its certificate and its origin."""

    problem: Problem
    certificate: Certificate
    origin: Origin


def find_obstacle(problem: Problem) -> InputError | None:
    """Return the error of `withhold_prior` for a problem, or None if its designs can be published."""
    for index, floor in problem.floors.items():
        return InputError(
            f"requirements[{problem.places[index]}]",
            f"is {floor.kind} privacy, which depends on a prior: it cannot be proved without one",
            bound="requirements on pairs of secrets, such as metric, threshold and graph privacy",
            remedy=_REMEDY,
        )
    if problem.secrets is not None and problem.secrets.lattice is not None:
        return InputError(
            "cost",
            "is the cost of anchors, a mean over visits, and reveals the visits like the prior",
            bound="secrets that are not anchors",
            remedy=_REMEDY,
        )
    return None


def withhold_prior(problem: Problem, channel: Channel) -> PublicDesign:
    """Return the publishable version of a design; it depends on the prior only through the channel.

    Args:
        problem: The problem with its true prior.
        channel: The certified channel.

    Returns:
        The problem with a uniform prior, its certificate and its origin.

    Raises:
        InputError: A requirement depends on a prior, such as distortion privacy. The error is also raised if the
            secrets are anchors, whose costs are means over the same visits as the prior.
    """
    obstacle = find_obstacle(problem)
    if obstacle is not None:
        raise obstacle
    public = replace(problem, prior=Prior.uniform(len(problem.prior)).probabilities)
    evidence = Evidence(channel.numerators, EXPONENT, public.prior, public.cost, public.objective, public.stated)
    certificate = certify(evidence, {"mechdesign": __version__})
    certificate.require()
    return PublicDesign(public, certificate, Origin(prior=STANDS_IN))


# Keys of provenance that differ from the fields' names, because bundles have used these keys since the first version.
_PROVENANCE_KEYS = {"dilation": "stretch", "seconds": "solve_seconds"}
_FIELDS_LEFT_OUT = ("message", "status")
# Accepted types of a value in the provenance, by the annotation of the value's field.
_TYPES_BY_ANNOTATION: Mapping[Any, tuple[type, ...]] = {
    "str | None": (str,),
    "int | None": (int,),
    "float | None": (float, int),
}


@dataclass(frozen=True, repr=False)
class SolveSummary:
    """A description of the search for a channel. Fields that do not apply are None.

    Attributes:
        status: How the search ended. It is OPTIMAL only if the certificate proves the requested gap.
        message: Final message of the solver, or of the method that used it.
        mechanism: Name of the mechanism, if the channel was given rather than searched for.
        plan: The chosen rows and solver, with the reason.
        solver: Name of the solver, as in `mechdesign info`. Several names are separated by commas.
        solver_version: Version that the solver reports.
        rows_policy: Rows of the program: "all", "reduced", "lazy", "near" or "rays".
        program_rows: Number of rows of the last program.
        program_columns: Number of columns of the last program.
        blocks: Number of blocks in the block method, one for each orbit of columns.
        symmetries: Order of the symmetry group that was used.
        rounds: Number of programs solved in sequence, each with more rows or new prices.
        iterations: Number of iterations of the solver.
        memory_estimate: Memory in bytes that the block method expected to need.
        primal_residual: Largest violation of a row at the solver's solution.
        dual_residual: Largest infeasibility of a reduced cost.
        dilation: For near rows, the factor by which ε was divided.
        parts: Number of independent parts of the problem.
        programs: Number of distinct programs among the parts.
        proposals: Number of channels that column generation mixed.
        seconds: Time in seconds until the solver finished. With several parts, this time includes rounding and
            certifying.
        privacy_weight: Largest mixing weight that rounding used to meet the privacy bounds.
        floor_weight: Weight of the constant channel that rounding mixed in to meet distortion floors.
        rounding_seconds: Time in seconds for rounding.
        proving_seconds: Time in seconds that the block method spent on its lower bound. This time is included in
            `seconds` and may exceed the time limit.
        certifying_seconds: Time in seconds for the exact check.
        within: The answers that a policy permits: "component" or "map".
        isolated: How isolated secrets were treated, such as isolated nodes of a policy graph.
        edges_added: Number of edges added to a policy graph to protect isolated nodes.
        tried: All attempts in order, each with its outcome.

    >>> SolveSummary(Status.OPTIMAL, solver="block", iterations=12, seconds=0.25)
    SolveSummary(optimal, block, 0.25 s)
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
        """Return the status, the solver or mechanism, and the time."""
        time = "" if self.seconds is None else f", {self.seconds:.3g} s"
        return f"SolveSummary({self.status}, {self.solver or self.mechanism}{time})"

    def provenance(self) -> dict[str, str | int | float]:
        """Return the fields as the certificate stores them. They are for display; no claim depends on them.

        >>> SolveSummary(Status.OPTIMAL, solver="block", iterations=12).provenance()
        {'solver': 'block', 'iterations': 12, 'status': 'optimal'}
        """
        found: dict[str, str | int | float] = {}
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "tried":
                # The plan already describes a single attempt.
                value = "; ".join(self.tried) if len(self.tried) > 1 else None
            if value is not None and name not in _FIELDS_LEFT_OUT:
                found[_PROVENANCE_KEYS.get(name, name)] = value
        return {**found, "status": self.status.value}

    @classmethod
    def from_provenance(cls, provenance: Mapping[str, object]) -> SolveSummary:
        """Return the summary that the provenance of a certificate describes.

        Unknown keys and values of another type are ignored. If there is no status, the summary gets the status STATED:
        the channel was given, not designed.

        Args:
            provenance: Provenance of a certificate, as `SolveSummary.provenance` returns it.

        Returns:
            The summary with all recognised fields.

        >>> SolveSummary.from_provenance({"solver": "block", "iterations": 12, "status": "optimal"}).iterations
        12
        """
        found: dict[str, Any] = {}
        for each in fields(cls):
            value = provenance.get(_PROVENANCE_KEYS.get(each.name, each.name))
            if each.name not in (*_FIELDS_LEFT_OUT, "tried") and isinstance(value, _TYPES_BY_ANNOTATION[each.type]):
                found[each.name] = value
        status, tried = provenance.get("status"), provenance.get("tried")
        return cls(
            status=Status(str(status)) if status in [*Status] else Status.STATED,
            tried=tuple(tried.split("; ")) if isinstance(tried, str) else (),
            **found,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """A certified channel with the problem it solves.

    Attributes:
        problem: The problem that the channel solves.
        channel: The channel p(o|s), shape (n, m), in integers over 2^62.
        certificate: Proof of the requirements, the cost and the lower bound.
        multipliers: Multipliers that prove the lower bound, or None.
        summary: Summary of the search for the channel.
        origin: The source of the problem, such as its specification, or None if it is unknown.

    >>> import mechdesign as md
    >>> distance = md.distances.hamming(md.Domain.from_labels(["yes", "no"]))
    >>> problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy("1.1", distance)])
    >>> result = md.design(problem)
    >>> str(result.status), result.channel.matrix.round(4).tolist()
    ('optimal', [[0.7503, 0.2497], [0.2497, 0.7503]])
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
        return card(self.problem.title or "Design", [*facts, *self.certificate.facts])

    @property
    def status(self) -> Status:
        """How the search ended: "optimal", or the reason for an early stop."""
        return self.summary.status

    def noted(self, **changes: object) -> Design:
        """Return this design with changed fields in its summary and in the provenance of its certificate.

        Args:
            **changes: New values of fields of `SolveSummary`.

        Returns:
            The changed design; the original design is not modified.
        """
        summary = replace(self.summary, **changes)  # type: ignore[arg-type]
        return replace(
            self, summary=summary, certificate=replace(self.certificate, provenance=_make_provenance(summary))
        )

    def evidence(self) -> Evidence:
        """Return the evidence from which the certificate was computed."""
        return _make_evidence(self.problem, self.channel.numerators, self.multipliers)

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
        """Draw answers for places: each place is mapped to its secret, whose certified row is sampled exactly.

        The coordinates are either latitude and longitude, or x and y.

        Args:
            latitude: Latitude in degrees: a number, or an array with one place per entry.
            longitude: Longitude in degrees, like `latitude`.
            size: Number of answers for a single place; k answers spend k times the ε.
            rng: Generator or seed, for tests and simulations only. By default, the random bits come from the operating
                system.
            x: First coordinate on the plane, in the unit of the secrets: a number or an array.
            y: Second coordinate on the plane, like `x`.
            outside: How to treat places outside: "refuse" them, or map them to the "nearest" secret.
            reach: Largest distance from a place to its nearest secret, in the unit of the secrets. This argument
                applies only to secrets that are neither cells nor anchors.

        Returns:
            The index of each answer, with its label and its place.
        """
        given = (self.problem, self.channel, latitude, longitude, size, rng)
        return sample_at(*given, x=x, y=y, outside=outside, reach=reach)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Design:
        """Return the design in a folder that `mechdesign.save` wrote.

        Only the digests of the files are checked; `mechdesign.verify` proves the claims of the certificate. The summary
        comes from the certificate's provenance, which is not verified.

        Args:
            folder: Folder of the bundle.

        Returns:
            The design with its problem, channel and certificate.

        Raises:
            CertificateError: The bundle is incomplete or malformed, or does not describe a problem.
        """
        with bundle.naming(folder):
            found = bundle.read(as_path(folder, "folder"))
            problem, origin = sets.restore_problem(found)
            channel = Channel.from_arrays(found.evidence.numerators, found.evidence.exponent, found.arrays)
            _check_belongs(found.certificate, problem)
        summary = SolveSummary.from_provenance(found.certificate.provenance)
        return cls(problem, channel, found.certificate, found.evidence.multipliers, summary, origin)


def _check_belongs(certificate: Certificate, problem: Problem) -> None:
    """Raise `CertificateError` if a certificate that was only read names requirements or secrets of another problem."""
    n, secrets = len(problem.prior), (*(certificate.pair or ()), *certificate.revealed)
    if len(certificate.requirements) != len(problem.claims) or not all(0 <= secret < n for secret in secrets):
        raise CertificateError("malformed certificate: it belongs to another problem")


@in_own_arithmetic
def write_design(
    design: Design, folder: Path, *, files: Files[Design] = NO_FILES, overwrite: bool = True, prior: bool = True
) -> None:
    """Write a bundle: ``channel.npz``, ``channel.csv``, ``dual.npz``, `files`, and finally ``certificate.json``.

    `mechdesign.verify` never accepts a mixture of files from an older bundle and this bundle.

    Args:
        design: The design.
        folder: Folder to write; it is created if necessary.
        files: Additional files of the bundle by name, or a function that returns them for the written design. The
            certificate contains their digests. If the function fails, the bundle is written without them.
        overwrite: Whether to replace an existing bundle.
        prior: Whether the files contain the prior. Without it, they contain a uniform prior and a lower bound of 0,
            and no origin, multipliers and summary. The folder must then be new or empty.

    Raises:
        ExportError: The folder must not or cannot be written.
        ReportError: Only the additional files could not be generated; all other files were written.
        InputError: The prior cannot be left out, since a requirement or the costs depend on it. The error is also
            raised if a file name is taken or not plain.
    """
    further = prepare_files(files, SET_OF_DESIGN)
    if not prior:
        # Files of a design with its prior could remain in any other folder and reveal the prior.
        check_folder(folder, (), "a design without its prior")
        public = withhold_prior(design.problem, design.channel)
        summary = SolveSummary(Status.STATED)
        design = Design(public.problem, design.channel, public.certificate, None, summary, public.origin)
    check_target(folder, overwrite)
    added, failure = dict[str, bytes](), None
    try:
        added = further(design)
    except Exception as error:  # A failure while a page is drawn must not lose the design.
        failure = error
    proof = (design.certificate, design.evidence())
    bundle.write(folder, sets.encode(design.problem, design.channel, *proof, design.origin, added))
    if failure is not None:
        raise ReportError(
            f"the design in {folder} is complete; only additional files, such as a page, are missing ({failure})"
        ) from failure


def certify_design(
    problem: Problem, numerators: Integers, multipliers: Multipliers | None, tolerance: float, summary: SolveSummary
) -> Design:
    """Certify a channel, numerators (n, m) over 2^62, in exact arithmetic.

    The status is OPTIMAL only if the certificate proves a gap of at most `tolerance`, whatever the solver reported.
    Raises CertificateError if the channel violates a requirement.
    """
    certificate = certify(_make_evidence(problem, numerators, multipliers))
    certificate.require()
    if summary.status in (Status.OPTIMAL, Status.STALLED):
        close = exact(certificate.relative_gap) <= exact(tolerance)
        summary = replace(summary, status=Status.OPTIMAL if close else Status.STALLED)
    elif summary.status is Status.ITERATION_LIMIT and exact(certificate.relative_gap) <= exact(tolerance):
        # A solver may reach the gap without noticing it.
        summary = replace(summary, status=Status.OPTIMAL)
    labels = [domain.labels if domain is not None else () for domain in (problem.secrets, problem.observables)]
    channel = Channel(numerators, *labels)
    return Design(problem, channel, replace(certificate, provenance=_make_provenance(summary)), multipliers, summary)


def _make_provenance(summary: SolveSummary) -> dict[str, str | int | float]:
    return {"mechdesign": __version__, "numpy": np.__version__, **summary.provenance()}


def _make_evidence(problem: Problem, numerators: Integers, multipliers: Multipliers | None) -> Evidence:
    return Evidence(numerators, EXPONENT, problem.prior, problem.cost, problem.objective, problem.stated, multipliers)


# Relative gap up to which a design that missed its tolerance gives no warning. Rays usually reach this gap on grids.
USUAL_GAP = 0.02


def is_wide(made: Design, settings: SolveSettings) -> bool:
    """Return whether the relative gap is above both the tolerance and 2 %."""
    return made.certificate.relative_gap > max(settings.tolerance, USUAL_GAP)


# Causes of a wide bracket after a search over some rows, and remedies.
_WIDE = {
    ("rays", Status.STALLED): ("rays stalled", 'For up to a few hundred secrets, leave rows at "auto"'),
    ("near", Status.STALLED): ("near pairs only were bounded", 'rows="lazy" adds the others where they matter'),
}


def warn_if_wide(made: Design, settings: SolveSettings) -> Design:
    """Return the design; if its gap exceeds the tolerance and 2 %, issue a `BracketWarning` that states its bracket."""
    if is_wide(made, settings):
        certificate = made.certificate
        gap = certificate.relative_gap
        proved = f"{gap:.2g} of the cost" if gap < 1 else "the whole cost, since there is no positive lower bound"
        what, remedy = _WIDE.get((settings.rows, made.status), (made.status, "Allow more time or steps"))
        warn(
            f"{what}: the least cost lies between {certificate.lower_bound:.6g} "
            f"and {certificate.cost:.6g}, a bracket of {proved}; the tolerance is {settings.tolerance:.3g}. The "
            f"privacy guarantee does not depend on it. {remedy}",
            BracketWarning,
            stacklevel=4,
        )
    return made
