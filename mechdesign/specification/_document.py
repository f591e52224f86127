"""A whole specification, and its ``[solver]`` table."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mechdesign.model._grammar import Raw, Table, holds
from mechdesign.specification._domains import DomainTable, ObservablesTable
from mechdesign.specification._measures import CostTable
from mechdesign.specification._policy import LedgerTable, PolicyTable, ReleaseTable
from mechdesign.specification._priors import PriorTable
from mechdesign.synthesis._settings import TOLERANCE, Rows

VERSION = 1
"""The version of the grammar; a specification of another one is refused."""

_LISTS = msgspec.Meta(
    extra_json_schema={
        "properties": {
            "mode": {"enum": ["product", "zip"], "default": "product", "description": "how lists go together"}
        },
        "additionalProperties": {"type": "array", "minItems": 1},
    },
    extra={"tables": ()},
)


class SolverTable(Table, frozen=True):
    """How programs are solved: the arguments of `mechdesign.design`.

    Attributes:
        name: "auto", or a solver that `mechdesign info` lists.
        tolerance: the relative gap to ask for.
        time_limit: the time limit in seconds.
        rows: which privacy rows the solver sees.
        threads: how many threads the solver may use.
        options: options of the solver, under its own names.
    """

    name: str = "auto"
    tolerance: float = TOLERANCE
    time_limit: float | None = None
    rows: Rows = "auto"
    threads: int | None = None
    options: Raw = msgspec.field(default_factory=dict)


class Document(Table, frozen=True):
    """A specification: what the secrets are, how likely each is, what a wrong answer costs, what must be protected.

    Attributes:
        domain: the secrets.
        prior: how likely each secret is.
        cost: what an answer costs.
        privacy: what must be protected: at least one requirement, all of which are kept.
        version: the version of this grammar.
        title: what the mechanism is called in reports.
        observables: the answers, where they are others than the secrets: some of them, a coarser grid, or a domain.
        policy: how a policy graph is kept.
        release: how a trace is released.
        ledger: where what a trace spends is recorded.
        solver: how programs are solved.
        sweep: lists of values for keys, for `mechdesign sweep`: the path of each, such as "privacy.0.epsilon", with its
            values; and the mode, "product" (each value with each) or "zip" (the first ones together, and so on).
    """

    domain: Annotated[Raw, holds(DomainTable)]
    prior: Annotated[Raw, holds(PriorTable)]
    cost: Annotated[Raw, holds(CostTable)]
    privacy: list[Raw]
    version: int = VERSION
    title: str = ""
    observables: Annotated[Raw, holds(ObservablesTable)] | None = None
    policy: Annotated[Raw, holds(PolicyTable)] = msgspec.field(default_factory=dict)
    release: Annotated[Raw, holds(ReleaseTable)] = msgspec.field(default_factory=dict)
    ledger: Annotated[Raw, holds(LedgerTable)] | None = None
    solver: Annotated[Raw, holds(SolverTable)] = msgspec.field(default_factory=dict)
    sweep: Annotated[Raw, _LISTS] = msgspec.field(default_factory=dict)
