"""Specifications in TOML, and the problems, designs, policies and traces that they describe.

A specification has a ``title`` and the tables ``[domain]``, ``[prior]``, ``[cost]``, and ``[[privacy]]`` once for each
requirement. The tables ``[observables]``, ``[policy]``, ``[release]``, ``[ledger]`` and ``[solver]`` are optional. File
names are relative to the folder of the specification. `mechdesign info --schema` prints the grammar as a JSON
schema. The other modules of this folder define and read the tables.

``epsilon``, ``radius``, ``minimum`` and ``delta`` are exact: 0.1 is one tenth, and a string such as "1/3" is accepted.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from msgspec import structs

from mechdesign.base._arrays import Floats
from mechdesign.base._check import as_path, require_kind
from mechdesign.base._deadline import ProgressCallback
from mechdesign.base._errors import (
    InputError,
    SpecificationError,
    withholding_values,
)
from mechdesign.base._values import cached_property
from mechdesign.certify._texts import require_plain, require_plain_texts
from mechdesign.data.trajectories import Sampling
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Raw
from mechdesign.model._origin import Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.specification._designs import check_solver, design_problem, predict_size
from mechdesign.specification._document import Document, SolverTable
from mechdesign.specification._domains import build_domain, build_observables, doubts_of
from mechdesign.specification._ledgers import open_ledger
from mechdesign.specification._measures import Measures, price_visits, read_raw_visits
from mechdesign.specification._origin import build_origin
from mechdesign.specification._policy import (
    PolicyTable,
    ReleaseSettings,
    SpecifiedPolicy,
    build_policy,
    build_release,
    build_settings,
)
from mechdesign.specification._priors import build_prior, sampling_of
from mechdesign.specification._read import Source, convert, read_text, tables_of
from mechdesign.specification._steps import States, Steps, read_steps
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import Size, check_size

if TYPE_CHECKING:
    from mechdesign.graphs._overview import Overview
    from mechdesign.synthesis._result import Design
    from mechdesign.traces._released import ReleasedTrace
    from mechdesign.traces._stage import Release


# Keys of domains whose texts appear in reports.
_DISPLAYED_KEYS = ("labels", "unit", "grid", "anchors")
# Settings of the solver on which no design depends.
_WITHOUT_EFFECT = ("progress", "threads")


class _Data(NamedTuple):
    """The data that all problems of a specification share."""

    prior: Prior
    cost: Floats
    objective: str
    measures: Measures
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Specification:
    """A specification of a design or a trace, checked and converted. Data files are read on first use.

    Attributes:
        title: The title of the mechanism.
        settings: The settings of ``[solver]``.
        source: The folder for relative file names, and the layout of files.
        document: The tables as structures.
        tables: The tables as nested dictionaries, as parsed from TOML.
        text: The text of the specification, or "" if it was given as tables.

    >>> specification = parse('''
    ... domain.labels = ["yes", "no"]
    ... prior.uniform = true
    ... cost.distance = "hamming"
    ... privacy = [{ kind = "metric", epsilon = 1.1, distance = "hamming" }]
    ... ''')
    >>> specification.domain.labels
    ('yes', 'no')
    """

    title: str
    settings: SolveSettings
    source: Source
    document: Document
    tables: Raw
    text: str = ""

    def __repr__(self) -> str:
        return f"Specification({self.title!r}, folder={str(self.folder)!r})"

    def with_data_of(self, other: Specification) -> Specification:
        """Return a copy of this specification that reuses the data of another specification.

        Data are reused if both specifications have the same folder, layout, secrets, observables, prior and cost.

        Args:
            other: The other specification.

        Returns:
            The copy.
        """
        require_kind(other, Specification, "other", "a Specification")
        mine, its = self.document, other.document
        shared = ("domain", "observables", "prior", "cost", "files")
        same = all(getattr(mine, name) == getattr(its, name) for name in shared)
        made = replace(self)
        if same and self.folder == other.folder and "_data" in vars(other):
            # `cached_property` stores its value here.
            vars(made)["_data"] = vars(other)["_data"]
        return made

    @cached_property
    def domain(self) -> Domain:
        """The secrets."""
        return build_domain(self.document.domain, self.source / "domain")

    @property
    def folder(self) -> Path:
        """The folder for relative file names."""
        return self.source.folder

    def problem(self) -> Problem:
        """Return the problem.

        Returns:
            The problem.

        Raises:
            SpecificationError: A key is wrong.
            InfeasibleError: A floor is higher than any channel reaches.
        """
        return self._problem

    def check(self) -> None:
        """Raise an error if a key is wrong, without solving any program."""
        _ = self._problem, self.policy_settings

    def design(self, **changed: Any) -> Design:
        """Design and certify the least-cost channel, with policy graphs treated according to ``[policy]``.

        Args:
            **changed: Fields of `SolveSettings` that override ``[solver]``: ``solver``, ``tolerance``,
                ``time_limit``, ``rows``, ``threads``, ``options`` and ``progress``.

        Returns:
            The design.

        Raises:
            SpecificationError: A key is wrong.
            InfeasibleError: A floor is higher than any channel reaches.
            TooLargeError: The problem does not fit into memory; nothing was built.
            SolverError: The solver failed.

        Warns:
            RevealedWarning: See `mechdesign.design`.
        """
        # Imported here, so that wrong input is refused without loading solvers.
        from mechdesign.synthesis._design import warn_revealed

        settings = _override(self.settings, changed)
        check_solver(settings.solver, "solver" if "solver" in changed else "solver.name")
        self.check_size(settings)
        made = design_problem(self._problem, self.policy_settings, settings, changed)
        warn_revealed(made)
        return replace(made, origin=self.origin_with(changed))

    @property
    def size(self) -> Size | None:
        """The size of the program, predicted before it is built; None if it depends on graphs or files."""
        return predict_size(self.document, *self._domains)

    def check_size(self, settings: SolveSettings | None = None) -> None:
        """Raise `TooLargeError` if the program does not fit into memory, before it is built.

        If `size` is None, the check does nothing.

        Args:
            settings: Settings of the solver; by default those of the specification.

        Raises:
            TooLargeError: The program does not fit into memory.
        """
        if settings is not None:
            require_kind(settings, SolveSettings, "settings", "SolveSettings, or None")
        chosen = self.settings if settings is None else settings
        check_solver(chosen.solver, "solver.name")
        if self.size is not None:
            check_size(self.size, chosen, "domain")

    def overview(self, repair: bool = True) -> Overview:
        """Return an overview of the policy graph: components, exposed secrets and a possible repair.

        Args:
            repair: Whether to compute the edges of a repair.

        Returns:
            The overview.

        Raises:
            SpecificationError: The specification has no policy graph.
        """
        from mechdesign.graphs._overview import overview

        policy, problem = self.policy, self._problem
        support = policy.settings.possible(problem.prior)
        method = policy.settings.repair if repair else None
        return overview(policy.graph, problem.secrets, support, hull=policy.settings.hull, method=method)

    def steps(self, trace: States) -> Steps:
        """Return the states and times of a trace; with ``every`` in ``[release]`` the trace is resampled.

        Args:
            trace: The true state of each step, see `release`.

        Returns:
            The trace, with sentences for the user.
        """
        secrets, table, source = self._problem.secrets, self.document.release, self.source / "release"
        assert secrets is not None
        sampling = sampling_of(table, source)
        found = read_steps(trace, table, source, secrets)
        return found if sampling == Sampling() else found.resampled(sampling)

    def release(
        self,
        trace: States,
        *,
        seed: int | None = None,
        ledger: Ledger | None = None,
        progress: ProgressCallback | None = None,
        keep: Callable[[ReleasedTrace], None] | None = None,
        own_history: bool = False,
        series: Literal[False] | None = None,
    ) -> ReleasedTrace:
        """Release a trace step by step, according to ``[policy]`` and ``[release]``, and certify each step.

        Args:
            trace: The true state of each step: indices or labels, or an array (steps, 2) of x and y in the unit of the
                domain. Or a file, a DataFrame or a mapping with the columns ``state``, ``latitude`` and ``longitude``,
                or ``x`` and ``y``, and optionally ``time``; ``[release]`` gives columns other names.
            seed: A seed for a rehearsal, which overrides that of ``[release]``. Without a seed the randomness comes
                from the operating system. Anyone who learns the seed of a published trace can recover the truth.
            ledger: A ledger that is charged with the ε of each step before the step is drawn, instead of the ledger of
                ``[ledger]``. Rehearsals do not charge ``[ledger]``.
            progress: Called with a `Progress` before each step.
            keep: Called with the steps released so far if a later step fails after a ledger was charged, because their
                budget is spent.
            own_history: Accept that prior, chain or policy were counted from data of the person of the trace, as
                ``history = "own"`` in ``[release]`` states. Published files then depend on these data.
            series: False for a ledger with a series of table releases, whose leakage does not count the trace.

        Returns:
            The released trace; after Ctrl-C the steps so far, if there are any.

        Raises:
            SpecificationError: A key is wrong, or not supported for a trace, or ``[release]`` does not state whose data
                were counted.
            InputError: A state is unknown, or impossible as the true state.
            BudgetExceededError: The steps would exceed the budget of the ledger; nothing was released.
        """
        from mechdesign.specification._traces import (
            declared_history,
            release_trace,
            require_budget,
            require_steps,
            start_trace,
        )
        from mechdesign.traces._released import ReleasedTrace

        require_steps(self.document)
        problem, settings = self.problem(), self.release_settings
        history = declared_history(self.document, self.source, own_history)
        steps = self.steps(trace)
        transition = settings.transitions.along(steps, Source(("release", "transition")))
        seed = settings.table.seed if seed is None else seed
        charged = self.ledger() if ledger is None and seed is None else ledger
        if charged is not None:
            require_budget(charged, self.policy.epsilon, len(steps.states), series)
        started = start_trace(problem, self.policy, settings, self.settings, transition, seed, charged, series)

        def collect(releases: Sequence[Release], finished: bool) -> ReleasedTrace:
            made = (transition, settings.initial, seed is not None, finished, history)
            return ReleasedTrace(self.title, settings.table.mechanism, tuple(releases), *made)

        return release_trace(started, steps, collect, None if charged is None else keep, progress)

    def ledger(self) -> Ledger | None:
        """Open the ledger of ``[ledger]``.

        Returns:
            The ledger, or None if the specification has no ``[ledger]``.

        Raises:
            LedgerError: The file is damaged, or was created with another budget.
            SpecificationError: The ledger would be created outside the folder of the specification, or without a
                budget.
        """
        table = self.document.ledger
        if table is None:
            return None
        return open_ledger(self.folder, table.path, table.epsilon, table.rho)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the data for the user, such as ``"312 points outside the box are left out"``."""
        # Building the requirements reads their files and collects notes.
        _ = self._problem
        return (*self._data.notes, *itertools.chain(*self._data.measures.said.values()), *self._doubts())

    def _doubts(self) -> Iterator[str]:
        """Yield notes about possible mistakes: names of columns, and costs that make the truth too expensive."""
        for name in ("domain", "observables"):
            yield from doubts_of(getattr(self.document, name), self.source / name)
        cost = self._data.cost
        if self.document.cost.matrix is not None and self._domains[1] is self._domains[0]:
            dear = int((np.diagonal(cost) > cost.min(axis=1)).sum())
            if dear:
                yield f"cost.matrix: another answer costs less than the truth for {dear} of {len(cost)} secrets"

    @cached_property
    def origin(self) -> Origin:
        """The origin of the problem, as designs store it: the text without comments, the prior, digests of the data."""
        return build_origin(self.tables, self.text, self.folder, self._data.notes)

    def origin_with(self, changed: Mapping[str, Any]) -> Origin:
        """Return the origin of a design with changed settings of the solver.

        Args:
            changed: The settings that override ``[solver]``, as in `design`.

        Returns:
            The origin as it is stored with the design.
        """
        settings = {name: str(value) for name, value in changed.items() if name not in _WITHOUT_EFFECT}
        return replace(self.origin, settings=settings)

    @cached_property
    def policy(self) -> SpecifiedPolicy:
        """The policy graph, which is the union of the graphs of all ``[[privacy]]`` tables, with its settings.

        Raises `SpecificationError` if there is no graph, or if graphs have different ε.
        """
        return build_policy(self._problem, self.policy_settings)

    @cached_property
    def policy_settings(self) -> PolicyTable:
        """The settings of ``[policy]``."""
        return build_settings(self.document.policy, self.source / "policy", self._data.measures.graphs)

    @cached_property
    def release_settings(self) -> ReleaseSettings:
        """The settings of ``[release]``; raise `SpecificationError` if it has no transitions."""
        return build_release(
            self.document.release, self.source / "release", self._data.measures.graphs, self._data.prior
        )

    @cached_property
    def _domains(self) -> tuple[Domain, Domain]:
        """The secrets and the observables; building them takes little time."""
        return self.domain, self._observables[0]

    @cached_property
    def _observables(self) -> tuple[Domain, tuple[int, ...] | None]:
        """The observables, and their indices if they are a subset of the secrets."""
        if self.document.observables is None:
            return self.domain, None
        return build_observables(self.document.observables, self.source / "observables", self.domain)

    @cached_property
    def _data(self) -> _Data:
        document, source = self.document, self.source
        secrets, (observables, subset) = self._domains[0], self._observables
        visits = read_raw_visits(document.prior, source / "prior", secrets)
        if visits is not None:
            mean_prior, means = price_visits(visits, secrets, observables, document.cost, source / "cost")
            measures = Measures(secrets, observables, document.prior, subset, visits.points)
            return _Data(mean_prior, means, "expected", measures, visits.notes)
        prior, notes = build_prior(document.prior, source / "prior", secrets)
        measures = Measures(secrets, observables, document.prior, subset)
        cost, objective = measures.cost(document.cost, source / "cost")
        return _Data(prior, cost, objective, measures, notes)

    @cached_property
    def _problem(self) -> Problem:
        data = self._data
        requirements = [
            data.measures.requirement(table, self.source / "privacy" / index)
            for index, table in enumerate(self.document.privacy)
        ]
        secrets, observables = data.measures.secrets, data.measures.observables
        with self.source.keys({"requirements": "privacy"}), withholding_values():
            return Problem(data.prior, data.cost, requirements, data.objective, secrets, observables, self.title)


def _override(settings: SolveSettings, changed: Mapping[str, Any]) -> SolveSettings:
    """Return settings with changed fields; raise `InputError` for an unknown field."""
    known = [each.name for each in fields(SolveSettings)]
    for name in changed:
        if name not in known:
            remedy = "write it in the specification, or sweep over it"
            raise InputError(name, "is not a setting of a solver", bound=f"one of {', '.join(known)}", remedy=remedy)
    return replace(settings, **changed)


def read_spec(path: str | os.PathLike[str]) -> Specification:
    """Read a specification of a design or a trace from a file.

    Args:
        path: File to read, in TOML.

    Returns:
        The specification.

    Raises:
        SpecificationError: A key is wrong; the message names the key, the value and the accepted values.

    >>> from mechdesign.specification import examples
    >>> with examples.on_disk("districts.toml") as file:
    ...     specification = read_spec(file)
    >>> specification.title
    'Districts of a city'
    """
    path = as_path(path, "path")
    text = read_text(path)
    return replace(from_tables(tables_of(text, os.fspath(path)), Path(path).parent), text=text)


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> Specification:
    """Read a specification of a design or a trace from a text.

    Args:
        text: The text, in TOML.
        base_folder: The folder for relative file names.

    Returns:
        The specification.

    >>> specification = parse('''
    ... title = "Randomised response"
    ... domain.labels = ["yes", "no"]
    ... prior.uniform = true
    ... cost.distance = "hamming"
    ... privacy = [{ kind = "metric", epsilon = 1.1, distance = "hamming" }]
    ... ''')
    >>> specification.problem()
    Problem(2 secrets, 2 observables, expected cost; metric)
    >>> round(specification.design().certificate.cost, 6)
    0.24974
    """
    return replace(from_tables(tables_of(text), base_folder), text=text)


def from_tables(data: Raw, base_folder: str | os.PathLike[str] = ".") -> Specification:
    """Return the specification with the given tables.

    Args:
        data: Tables as nested dictionaries, as `tables_of` returns them.
        base_folder: The folder for relative file names.

    Returns:
        The specification.

    Raises:
        SpecificationError: A key is wrong.

    >>> privacy = [{"kind": "metric", "epsilon": 1, "distance": "hamming"}]
    >>> data = {"domain": {"labels": ["a", "b"]}, "prior": {"uniform": True}, "cost": {"distance": "hamming"}}
    >>> from_tables({**data, "privacy": privacy}).problem()
    Problem(2 secrets, 2 observables, expected cost; metric)
    """
    source = Source(folder=Path(base_folder))
    with source.keys():
        require_plain_texts(data, "", lines=True)
    if isinstance(domain := data.get("domain"), dict) and "attributes" in domain:
        problem, remedy = (
            "belongs to a specification of a release from a table",
            "use `mechdesign table`, or give tables to `mechdesign chain`",
        )
        raise SpecificationError("domain.attributes", problem, remedy=remedy)
    document = convert(data, Document)
    _require_graphs(document, data)
    with source.keys():
        # Texts in bundles must have a single line.
        require_plain(document.title, "title")
        for name in ("domain", "observables"):
            table = data.get(name, {})
            require_plain_texts({key: table[key] for key in _DISPLAYED_KEYS if key in table}, name)
    if document.sweep:
        raise SpecificationError(
            "sweep", "describes several designs", remedy="use `mechdesign sweep`, or remove the table"
        )
    source = source.with_layout(document.files)
    return Specification(document.title, _settings(document.solver), source, document, data)


def _require_graphs(document: Document, tables: Raw) -> None:
    """Raise `SpecificationError` for tables that need a policy graph if there is none, or other requirements."""
    others = [str(kind) for table in document.privacy if (kind := table.__struct_config__.tag) != GraphPrivacy.kind]
    released = bool(tables.get("release"))
    if document.ledger is not None and (others or not released):
        raise SpecificationError(
            "ledger",
            "is never charged: only `mechdesign release` charges a ledger, for a trace under a policy graph",
            value=f"[[privacy]] of kind {others[0]!r}" if released else "no [release]",
            bound='a [release] table, and only [[privacy]] of kind "graph"',
            remedy="remove [ledger], and record each sampled answer with Ledger.spend in Python",
        )
    if len(others) < len(document.privacy):
        return
    remedy, isolated = 'add [[privacy]] with kind = "graph"', document.policy.isolated
    if structs.replace(document.policy, isolated=PolicyTable().isolated) != PolicyTable():
        raise SpecificationError("policy", "requires a policy graph, but there is none", remedy=remedy)
    if isolated in ("repair", "hull"):
        problem, bound = "adds edges to a policy graph, but there is none", '"refuse" or "release"'
        raise SpecificationError("policy.isolated", problem, value=isolated, bound=bound, remedy=remedy)


def _settings(table: SolverTable) -> SolveSettings:
    options = {name: float(value) if isinstance(value, Decimal) else value for name, value in table.options.items()}
    with Source(("solver",)).keys({"solver": "name"}):
        return SolveSettings(table.name, table.tolerance, table.time_limit, table.rows, table.threads, options)
