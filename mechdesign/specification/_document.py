"""The structure of a whole specification, and its ``[solver]`` table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from mechdesign.model._grammar import FilesTable, PriorTable, Raw, Table, says
from mechdesign.specification._domains import DomainTable, ObservablesTable
from mechdesign.specification._ledgers import LedgerTable
from mechdesign.specification._measures import CostTable, PrivacyTable
from mechdesign.specification._policy import PolicyTable
from mechdesign.specification._read import VERSION
from mechdesign.specification._steps import ReleaseTable
from mechdesign.synthesis._settings import TOLERANCE, Rows

_LISTS = msgspec.Meta(
    description='lists of values for keys, for `mechdesign sweep`: dotted paths such as "privacy.0.epsilon", with '
    'lists of values; and the mode, "product" (all combinations) or "zip" (the first values together, and so on).',
    extra_json_schema={
        "properties": {
            "mode": {"enum": ["product", "zip"], "default": "product", "description": "how lists are combined"}
        },
        "additionalProperties": {"type": "array", "minItems": 1},
    },
)


class SolverTable(Table, frozen=True):
    """Settings of the solver: arguments of `mechdesign.design`.

    >>> SolverTable(tolerance=1e-4).name
    'auto'

    Attributes:
        name: "auto", or a solver that `mechdesign info` lists.
        tolerance: Relative gap at which to stop.
        time_limit: Time limit in seconds, or None.
        rows: The privacy constraints that the solver gets.
        threads: Number of threads, or None for the solver's default.
        options: Options of the solver, by the solver's names for them.
    """

    name: Annotated[str, says('"auto", or a solver that `mechdesign info` lists.')] = "auto"
    tolerance: Annotated[float, says("the relative gap at which to stop.")] = TOLERANCE
    time_limit: Annotated[float | None, says("the time limit in seconds.")] = None
    rows: Annotated[Rows, says("the privacy constraints that the solver gets.")] = "auto"
    threads: Annotated[int | None, says("the number of threads.")] = None
    options: Annotated[Raw, says("options of the solver, by its own names.")] = msgspec.field(default_factory=dict)


class Document(Table, frozen=True):
    """A specification: the secrets, the prior, the costs of answers, and the privacy requirements.

    >>> sorted(Document.__struct_fields__)[:4]
    ['cost', 'domain', 'files', 'ledger']

    Attributes:
        domain: The secrets.
        prior: The probability of each secret.
        cost: The cost of each answer.
        privacy: The requirements, at least one. The channel meets all requirements.
        files: The layout of all files.
        version: The version of this grammar.
        title: The title of the mechanism in reports.
        observables: The answers, if they differ from the secrets.
        policy: The treatment of policy graphs.
        release: The release of a trace.
        ledger: The ledger that records the budget of a trace, or None.
        solver: The settings of the solver.
        sweep: Lists of values for keys, for `mechdesign sweep`.
    """

    domain: Annotated[DomainTable, says("the secrets.")]
    prior: Annotated[PriorTable, says("the probability of each secret.")]
    cost: Annotated[CostTable, says("the cost of each answer.")]
    privacy: Annotated[
        list[PrivacyTable],
        says("the privacy requirements, at least one; all of them are kept.", min_length=1),
    ]
    files: Annotated[FilesTable, says("the layout of all files.")] = msgspec.field(default_factory=FilesTable)
    version: Annotated[Literal[1], says("the version of this grammar.")] = VERSION
    title: Annotated[str, says("the title of the mechanism in reports.")] = ""
    observables: Annotated[
        ObservablesTable | None,
        says(
            "the answers, if they differ from the secrets: a subset of the secrets, a coarser grid, or another domain."
        ),
    ] = None
    policy: Annotated[PolicyTable, says("the treatment of policy graphs.")] = msgspec.field(default_factory=PolicyTable)
    release: Annotated[ReleaseTable, says("the release of a trace.")] = msgspec.field(default_factory=ReleaseTable)
    ledger: Annotated[LedgerTable | None, says("the ledger that records the budget of a trace.")] = None
    solver: Annotated[SolverTable, says("the settings of the solver.")] = msgspec.field(default_factory=SolverTable)
    sweep: Annotated[Raw, _LISTS] = msgspec.field(default_factory=dict)


ARGUMENTS: Mapping[str, str] = MappingProxyType(
    {
        **{
            name: f"{table}.{name}"
            for table, kind in (("release", ReleaseTable), ("policy", PolicyTable), ("solver", SolverTable))
            for name in kind.__struct_fields__
        },
        "solver": "solver.name",
        # Names of options of a solver.
        "options.extra": "solver.options",
        "graph": "privacy",
        "requirements": "privacy",
        "points": "domain",
        "method": "policy.repair",
    }
)
"""The key of a specification for each argument of the functions that design channels and release traces."""
