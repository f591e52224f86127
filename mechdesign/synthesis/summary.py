"""How a design was found: typed facts, from which the provenance of its certificate is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mechdesign.solve._contract import Status

__all__ = ["SolveSummary"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
