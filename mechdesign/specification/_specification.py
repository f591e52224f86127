"""A specification in TOML, and what it asks for: problems, designs, a policy, the release of a trace.

A specification has a ``title`` and these tables: ``[domain]``, ``[prior]``, ``[cost]``, ``[[privacy]]`` once for each
requirement, and, where they are needed, ``[observables]``, ``[policy]``, ``[release]`` and ``[solver]``. File names are
relative to its folder. `mechdesign.specification.schema` gives the grammar as a JSON schema, key by key; the tables
themselves, with what reads them, are the other modules of this folder.

``epsilon``, ``radius``, ``minimum`` and ``delta`` are exact: 0.1 is one tenth; a text such as "1/3" is accepted, too.
In one ``[[privacy]]`` table ``epsilon = { budgets = "budgets.csv" }`` takes the ε of successive releases from a file.
The specification then describes one problem for each distinct ε.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import structs

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._check import as_path, require_kind
from mechdesign.base._deadline import ProgressCallback
from mechdesign.base._errors import (
    InputError,
    MetricWarning,
    SolverInterruptedError,
    SpecificationError,
)
from mechdesign.base._locks import WAIT_S
from mechdesign.base._values import cached_property
from mechdesign.base._warnings import silenced
from mechdesign.certify._texts import require_plain, require_plain_texts
from mechdesign.data._budgets import Schedule
from mechdesign.data._layout import withholding
from mechdesign.data._left_out import MOST_LEFT_OUT
from mechdesign.data._resampling import Sampling
from mechdesign.data._states import States, Steps, as_steps
from mechdesign.leakage.accounting import Ledger
from mechdesign.model._disclosure import describe_disclosure
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import Raw
from mechdesign.model._origin import Origin
from mechdesign.model._prior import Prior
from mechdesign.model._problem import Problem
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._kinds import look_for_kinds
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.solve._contract import Status
from mechdesign.specification._designs import check_solver, design_problem, read_schedule, scheduled, specified_size
from mechdesign.specification._document import Document, SolverTable, read_document
from mechdesign.specification._domains import build_domain, build_observables, doubts_of
from mechdesign.specification._ledgers import open_ledger
from mechdesign.specification._measures import Measures
from mechdesign.specification._origin import build_origin, without_comments
from mechdesign.specification._policy import (
    Policy,
    PolicyTable,
    ReleaseSettings,
    build_policy,
    build_release,
    build_settings,
)
from mechdesign.specification._priors import build_prior
from mechdesign.specification._read import Source, check_version, read_text, tables_of
from mechdesign.specification._visits import priced, read_raw_visits
from mechdesign.synthesis._settings import SolveSettings
from mechdesign.synthesis._sizes import Size, check_size

if TYPE_CHECKING:
    from mechdesign.graphs._overview import Overview
    from mechdesign.synthesis._result import Design
    from mechdesign.traces._released import ReleasedTrace


# What people read of domains.
_SHOWN = ("labels", "unit", "grid", "anchors")


class _Data(NamedTuple):
    """What the problems of a specification have in common."""

    prior: Prior
    cost: Floats
    objective: str
    measures: Measures
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Specification:
    """A specification whose keys are known and of the right kind; data files are read when they are needed.

    Attributes:
        title: what the mechanism is called.
        settings: how programs are solved, as ``[solver]`` says.
        folder: the folder that file names are relative to.
        document: the tables.
        tables: the tables as they were written.
        text: the text that they were read from; empty where they were given as tables.
        name: what the file is called, without its folder; empty where there is none.
    """

    title: str
    settings: SolveSettings
    folder: Path
    document: Document
    tables: Raw
    text: str = ""
    name: str = ""

    def __repr__(self) -> str:
        return f"Specification({self.title!r}, folder={str(self.folder)!r})"

    def with_data_of(self, other: Specification) -> Specification:
        """Return this specification, for which data that `other` has read already are not read again.

        That is so where both have the same secrets, observables, prior and cost.
        """
        require_kind(other, Specification, "other", "a Specification")
        mine, its = self.document, other.document
        same = all(getattr(mine, name) == getattr(its, name) for name in ("domain", "observables", "prior", "cost"))
        made = replace(self)
        if same and self.folder == other.folder and "_data" in vars(other):
            # Where `functools.cached_property` keeps it.
            vars(made)["_data"] = vars(other)["_data"]
        return made

    @cached_property
    def domain(self) -> Domain:
        """The secrets."""
        return build_domain(self.document.domain, self._source / "domain")

    @property
    def _source(self) -> Source:
        return Source(folder=self.folder)

    def problem(self) -> Problem:
        """Return the problem.

        Raises:
            SpecificationError: A key is wrong, or there are several ε, and as many problems: see `problems`.
            InfeasibleError: A floor is higher than any channel reaches.
        """
        return self._single("problems()")

    def check(self) -> None:
        """Raise the error that a design would end with for a key that is wrong, before any program is solved."""
        _ = self._first, self.policy_settings

    def problems(self) -> Iterator[Problem]:
        """Yield the problem, or with a file of budgets one for each distinct ε, in their order.

        Everything that may be wrong is found with the first.
        """
        yield self._first
        for epsilon in self.schedule.distinct[1:] if self.schedule is not None else ():
            # The first problem has warned of the same distances.
            with silenced(MetricWarning):
                made = self._problem(epsilon)
            yield made

    def design(self, **changed: Any) -> Design:
        """Design the least-cost channel and certify it, under policy graphs as ``[policy]`` says.

        Args:
            changed: Fields of `SolveSettings` that override ``[solver]``: ``solver``, ``tolerance``,
                ``time_limit``, ``rows``, ``threads``, ``options``, ``progress``.

        Returns:
            The design, as `mechdesign.design` returns it.

        Raises:
            SpecificationError: A key is wrong, or the specification has several ε: see `designs`.
            InfeasibleError: A floor is higher than any channel reaches.
            TooLargeError: The problem does not fit into memory; nothing was built.
            SolverError: The solver failed.

        Warns:
            RevealedWarning: See `mechdesign.design`.
        """
        settings = _changed(self.settings, changed)
        check_solver(settings.solver, "solver" if "solver" in changed else "solver.name")
        self.check_size(settings)
        made = design_problem(self._single("designs()"), self.policy_settings, settings, changed)
        _say_revealed(made)
        return replace(made, origin=self.origin)

    def designs(self, **changed: Any) -> Iterator[tuple[Fraction, Design]]:
        """Yield each distinct ε of a file of budgets with its design; see `design` for the arguments.

        Raises `SolverInterruptedError` after Ctrl-C: an unfinished design is not yielded.
        """
        settings, schedule = _changed(self.settings, changed), self._scheduled()
        self.check_size(settings)
        count = len(schedule.distinct)
        said: tuple[str, ...] = ()
        for number, (epsilon, problem) in enumerate(zip(schedule.distinct, self.problems(), strict=True), 1):
            named = replace(settings, progress=_within(settings.progress, f"{number} of {count}"))
            made = design_problem(problem, self.policy_settings, named, changed)
            if made.status is Status.INTERRUPTED:
                raise SolverInterruptedError(f"stopped in design {number} of {count}; those before it stand")
            said = _say_revealed(made, said)
            yield epsilon, replace(made, origin=self.origin)

    @property
    def size(self) -> Size | None:
        """The size of the program, known before anything is built; None where it depends on graphs or files."""
        return specified_size(self.document, *self._domains)

    def check_size(self, settings: SolveSettings | None = None) -> None:
        """Raise `TooLargeError` where the program does not fit into memory, before anything is built.

        `settings` are those of the specification unless given. Where `size` is None nothing is found.
        """
        if settings is not None:
            require_kind(settings, SolveSettings, "settings", "SolveSettings, or None")
        chosen = self.settings if settings is None else settings
        check_solver(chosen.solver, "solver.name")
        if self.size is not None:
            check_size(self.size, chosen, "domain", warn=False)

    def save_designs(
        self,
        folder: str | os.PathLike[str],
        *,
        save: Callable[[Design, Path], None] | None = None,
        force: bool = False,
        overwrite: bool = True,
        **changed: Any,
    ) -> Iterator[tuple[Fraction, Design]]:
        """Make the `designs`, write each into a folder of its own when it is made, and yield it with its ε.

        Args:
            folder: A folder; ``schedule.csv``, which says which release uses which design, is written last.
            save: Writes a design into a folder: `Design.save`, or `md.report.save` where each is to have a page.
            force: Write into a folder that holds other files, beside them.
            overwrite: Replace also designs of another specification.
            changed: See `design`.

        Raises:
            ExportError: The files may not, or cannot, be written; before the first design is made, where possible.
        """
        from mechdesign.synthesis._folders import check_schedule_target, save_designs
        from mechdesign.synthesis._result import Design

        schedule, asked = self._scheduled(), Origin(self.kept_text, name=self.name)
        check_schedule_target(folder, schedule, force, overwrite, asked)
        save = save or Design.save
        yield from save_designs(folder, schedule, self.designs(**changed), save=save, force=force)

    def overview(self, repair: bool = True) -> Overview:
        """Return what the policy graph says of the secrets; with `repair`, also which edges would repair it.

        Raises `SpecificationError` where there is no policy graph.
        """
        from mechdesign.graphs._overview import overview

        policy, problem = self.policy, self._first
        support = policy.settings.possible(problem.prior)
        method = policy.settings.repair if repair else None
        return overview(policy.graph, problem.secrets, support, hull=policy.settings.hull, method=method)

    def states(self, trace: States, delimiter: str | None = None) -> Integers:
        """Return the states of a trace as indices of secrets, shape (steps,); see `release` for how it is given."""
        return self.steps(trace, delimiter)[0].states

    def steps(self, trace: States, delimiter: str | None = None) -> tuple[Steps, tuple[str, ...]]:
        """Return the states of a trace and their times, at even steps where ``[release]`` asks for it, and notes."""
        secrets = self._first.secrets
        assert secrets is not None
        table, release = self.document.release, self._source / "release"
        with release.keys():
            asked = Sampling.of(table.every, table.gap)
        try:
            found = as_steps(
                *(trace, secrets, delimiter),
                time=table.time,
                date=table.date,
                time_format=table.time_format,
                time_zone=table.time_zone,
                missing=MOST_LEFT_OUT if table.missing is None else table.missing,
            )
        except InputError as error:
            if error.path not in ("date", "time_format", "time_zone", "missing"):
                raise
            with release.keys():
                raise
        notes = tuple(f"trace: {note}" for note in found.notes)
        if asked == Sampling():
            return found, notes
        found, note = found.resampled(asked)
        return found, (*notes, f"trace: {note}")

    def release(
        self,
        trace: States,
        *,
        seed: int | None = None,
        delimiter: str | None = None,
        ledger: Ledger | None = None,
        progress: ProgressCallback | None = None,
        keep: Callable[[ReleasedTrace], None] | None = None,
        own_history: bool = False,
    ) -> ReleasedTrace:
        """Release a trace step by step, as ``[policy]`` and ``[release]`` say, and certify each step.

        Args:
            trace: The true state of each step: a file, as `mechdesign release` reads it; indices or labels; places, an
                array (steps, 2) of x and y in the unit of the domain; or a mapping with the columns ``latitude`` and
                ``longitude``, ``x`` and ``y``, or ``state``, and, where it is known, ``time``. A step whose time is
                missing is left out.
            seed: A seed for a rehearsal, which overrides that of ``[release]``; without one the randomness is
                the operating system's. Whoever learns the seed of a published trace can recover the truth.
            delimiter: The character between columns of a file; recognised unless given.
            ledger: Charged with the ε of each step before it is drawn, instead of that of ``[ledger]``, which
                rehearsals are not charged to.
            progress: Called with a `Progress` before each step.
            keep: Called with the steps released so far where a later one fails and a ledger was charged: they are paid
                for, and would be lost.
            own_history: Release also where prior, chain or policy were counted in rows of the time of the trace: what
                is public then depends on the true states, as its manifest says.

        Returns:
            What was released; after Ctrl-C the steps so far, unless there is none.

        Raises:
            SpecificationError: A key is wrong, or cannot be kept along a trace; or rows were counted that lie between
                its first and last time.
            InputError: A state is not known, or cannot be the true one.
            BudgetExceededError: All steps together would pass the budget of the ledger; nothing was released.

        Warns:
            HistoryWarning: Something was counted in data, and for lack of times nothing tells whether the trace is
                among them.
        """
        from mechdesign.specification._traces import release_trace

        return release_trace(self, trace, seed, delimiter, ledger, progress, keep, own_history)

    def ledger(self, wait: float = WAIT_S) -> Ledger | None:
        """Return the ledger of ``[ledger]``, or None where there is none; a lock is waited for `wait` seconds.

        Raises `LedgerError` where its file is damaged, or was made with another budget, and `SpecificationError` where
        it would be made outside the folder of the specification, or without a budget.
        """
        table = self.document.ledger
        if table is None:
            return None
        return open_ledger(self.folder, table.path, table.epsilon, table.rho, wait)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about the data, such as ``"312 points outside the box left out"``."""
        # How files were read that requirements name is known once these are.
        requirements, place = self._first.requirements, scheduled(self.document.privacy)
        notes = (*self._data.notes, *itertools.chain(*self._data.measures.said.values()), *self._doubts())
        if place is not None:
            notes += beyond_budgets(requirements[place], f"privacy[{place}]")
        return notes

    def _doubts(self) -> Iterator[str]:
        """Yield what may be meant otherwise: names of columns, and costs by which the truth is not the cheapest."""
        for name in ("domain", "observables"):
            yield from doubts_of(getattr(self.document, name), self._source / name)
        cost = self._data.cost
        if self.document.cost.matrix is not None and self._domains[1] is self._domains[0]:
            dear = int((np.diagonal(cost) > cost.min(axis=1)).sum())
            if dear:
                yield f"cost.matrix: another answer costs less than the truth for {dear} of {len(cost)} secrets"

    @property
    def kept_text(self) -> str:
        """The text as it is kept with designs: without comments, which may name people."""
        return without_comments(self.text)

    @cached_property
    def origin(self) -> Origin:
        """Where the problem comes from, as it is kept with designs: `kept_text`, the prior, digests of the data."""
        return build_origin(self.tables, self.text, self.folder, self._data.notes, self.name)

    @cached_property
    def schedule(self) -> Schedule | None:
        """The ε of successive releases, or None where ε is a number."""
        place = scheduled(self.document.privacy)
        if place is None:
            return None
        epsilon: Any = getattr(self.document.privacy[place], "epsilon", None)
        return read_schedule(epsilon, self._source / "privacy" / place / "epsilon")

    @cached_property
    def policy(self) -> Policy:
        """The policy graph, the union of those of all ``[[privacy]]`` tables, and what ``[policy]`` says of it.

        With a file of budgets ε is the first. Raises `SpecificationError` where there is no graph or their ε differ.
        """
        return build_policy(self._first, self.policy_settings)

    @cached_property
    def policy_settings(self) -> PolicyTable:
        """What ``[policy]`` says: how policy graphs are to be kept, if there are any."""
        return build_settings(self.document.policy, self._source / "policy", self._data.measures.graphs)

    @cached_property
    def release_settings(self) -> ReleaseSettings:
        """What ``[release]`` says; raise `SpecificationError` where no transitions are named."""
        return build_release(
            self.document.release, self._source / "release", self._data.measures.graphs, self._data.prior
        )

    @cached_property
    def _domains(self) -> tuple[Domain, Domain]:
        """The secrets and the observables, which are cheap."""
        return self.domain, self._observables[0]

    @cached_property
    def _observables(self) -> tuple[Domain, tuple[int, ...] | None]:
        """The observables, and their indices where they are some of the secrets."""
        if self.document.observables is None:
            return self.domain, None
        return build_observables(self.document.observables, self._source / "observables", self.domain)

    @cached_property
    def _data(self) -> _Data:
        document, source = self.document, self._source
        secrets, (observables, subset) = self._domains[0], self._observables
        visits = read_raw_visits(document.prior, source / "prior", secrets)
        if visits is not None:
            mean_prior, means = priced(visits, secrets, observables, document.cost, source / "cost")
            measures = Measures(secrets, observables, document.prior, subset, visits.points)
            return _Data(mean_prior, means, "expected", measures, visits.notes)
        prior, notes = build_prior(document.prior, source / "prior", secrets)
        measures = Measures(secrets, observables, document.prior, subset)
        cost, objective = measures.cost(document.cost, source / "cost")
        return _Data(prior, cost, objective, measures, notes)

    @cached_property
    def _first(self) -> Problem:
        return self._problem(None if self.schedule is None else self.schedule.distinct[0])

    def _single(self, instead: str) -> Problem:
        if self.schedule is not None and len(self.schedule.distinct) > 1:
            raise SpecificationError(
                ("privacy", scheduled(self.document.privacy) or 0, "epsilon"),
                f"holds {len(self.schedule.distinct)} distinct ε, each with a problem of its own",
                remedy=f"use {instead} of the specification",
            )
        return self._first

    def _scheduled(self) -> Schedule:
        if self.schedule is None:
            raise SpecificationError(
                "privacy",
                "has no file of budgets",
                remedy='use design(), or write epsilon = { budgets = "budgets.csv" }',
            )
        return self.schedule

    def _problem(self, epsilon: Fraction | None) -> Problem:
        """Return the problem in which `epsilon` stands where a file of budgets is named."""
        data, place = self._data, scheduled(self.document.privacy)
        tables = [*self.document.privacy]
        if place is not None:
            tables[place] = structs.replace(tables[place], epsilon=epsilon)
        requirements = [
            data.measures.requirement(table, self._source / "privacy" / index) for index, table in enumerate(tables)
        ]
        secrets, observables = data.measures.secrets, data.measures.observables
        with self._source.keys({"requirements": "privacy"}), withholding():
            return Problem(data.prior, data.cost, requirements, data.objective, secrets, observables, self.title)


def _changed(settings: SolveSettings, changed: Mapping[str, Any]) -> SolveSettings:
    """Return settings with other fields; raise `InputError` for what is no field."""
    known = [each.name for each in fields(SolveSettings)]
    for name in changed:
        if name not in known:
            remedy = "write it in the specification, or sweep over it"
            raise InputError(name, "is no setting of a solver", bound=f"one of {', '.join(known)}", remedy=remedy)
    return replace(settings, **changed)


def read_spec(path: str | os.PathLike[str]) -> Specification:
    """Read a specification from a file; raise `SpecificationError` naming the key, the value and what is accepted."""
    path = as_path(path, "path")
    text = read_text(path)
    return replace(from_tables(tables_of(text, os.fspath(path)), Path(path).parent), text=text, name=Path(path).name)


def parse(text: str, base_folder: str | os.PathLike[str] = ".") -> Specification:
    """Read a specification from a text; names of files in it are relative to `base_folder`.

    >>> specification = parse('''
    ... title = "Randomised response"
    ... domain.labels = ["yes", "no"]
    ... prior.uniform = true
    ... cost.distance = "hamming"
    ... privacy = [{ kind = "metric", epsilon = 1.1, distance = "hamming" }]
    ... ''')
    >>> specification.problem()
    Problem(2 secrets, 2 observables, expected cost; metric)
    >>> round(specification.design().certificate.expected_cost, 6)
    0.24974
    """
    return replace(from_tables(tables_of(text), base_folder), text=text)


def from_tables(data: Raw, base_folder: str | os.PathLike[str] = ".") -> Specification:
    """Return the specification with these tables; names of files in it are relative to `base_folder`."""
    source = Source(folder=Path(base_folder))
    with source.keys():
        require_plain_texts(data, "", lines=True)
    if isinstance(domain := data.get("domain"), dict) and "attributes" in domain:
        problem, remedy = "belongs to the specification of a release from a table", "use `mechdesign blowfish` for it"
        raise SpecificationError("domain.attributes", problem, remedy=remedy)
    check_version(data)
    look_for_kinds(data.get("privacy"))
    _require_graphs(data)
    document = read_document(data)
    with source.keys():
        # Of what is written into bundles, nothing has several lines.
        require_plain(document.title, "title")
        for name in ("domain", "observables"):
            table = data.get(name, {})
            require_plain_texts({key: table[key] for key in _SHOWN if key in table}, name)
    if document.sweep:
        raise SpecificationError(
            "sweep", "asks for a design for each of many values", remedy="use `mechdesign sweep`, or leave it out"
        )
    if not document.privacy:
        raise SpecificationError(
            "privacy", "is empty", bound="at least one requirement", remedy='add [[privacy]] with kind = "metric", say'
        )
    return Specification(document.title, _settings(document.solver), Path(base_folder), document, data)


def _require_graphs(data: Raw) -> None:
    """Raise `SpecificationError` for tables that need a policy graph if there is none, or other requirements too.

    Tables in a wrong place are refused elsewhere.
    """
    stated, policy = data.get("privacy"), data.get("policy")
    kinds = [table.get("kind") for table in stated if isinstance(table, dict)] if isinstance(stated, list) else []
    others = [kind for kind in kinds if kind != GraphPrivacy.kind]
    if not kinds:
        return
    if "ledger" in data and (others or not data.get("release")):
        raise SpecificationError(
            "ledger",
            "is never charged: `mechdesign release` alone charges a ledger, for a trace under a policy graph",
            value="no [release]" if not data.get("release") else f"[[privacy]] of kind {others[0]!r}",
            bound='a [release] table, and [[privacy]] of kind "graph" alone',
            remedy="leave [ledger] out, and record each answer that is sampled with Ledger.spend in Python",
        )
    if not isinstance(policy, dict) or len(others) < len(kinds):
        return
    if set(policy) - {"isolated"}:
        raise SpecificationError(
            "policy", "is about a policy graph, and there is none", remedy='add [[privacy]] with kind = "graph"'
        )
    if policy.get("isolated") in ("repair", "hull"):
        raise SpecificationError(
            "policy.isolated",
            "adds edges to a policy graph, and there is none",
            value=policy["isolated"],
            bound='"refuse" or "release"',
            remedy='or add [[privacy]] with kind = "graph"',
        )


def _settings(table: SolverTable) -> SolveSettings:
    options = {name: float(value) if isinstance(value, Decimal) else value for name, value in table.options.items()}
    with Source(("solver",)).keys({"solver": "name"}):
        return SolveSettings(table.name, table.tolerance, table.time_limit, table.rows, table.threads, options)


def _within(progress: ProgressCallback | None, name: str) -> ProgressCallback | None:
    """Return what tells `progress` about a part of the work called `name`."""
    if progress is None:
        return None
    return lambda moment: progress(replace(moment, stage=f"{name}: {moment.stage}"))


def _say_revealed(made: Design, said: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Warn with `RevealedWarning` of what a design reveals, unless it was `said`; return what there is to say."""
    from mechdesign.synthesis._isolation import warn_revealed

    found = describe_disclosure(made.problem, made.certificate.revealed or ())
    if found != said:
        warn_revealed(made, stacklevel=4)
    return found


def beyond_budgets(requirement: Requirement, path: str) -> tuple[str, ...]:
    """Return a note where a release may leak more than its ε, which is all that budgets account for."""
    bounds, n = requirement.claims().exponent_bounds.values(), requirement.size
    if not bounds:
        return ()
    largest = max(float(bound.weights.max(initial=0.0)) for bound in bounds)
    if max(len(bound) for bound in bounds) < n * (n - 1):
        reason = "some pairs of secrets have no bound of their own, and a release may leak more than ε about them"
    elif largest > 1:
        reason = f"secrets are up to {largest:g} units apart, so that a release may leak {largest:g} ε"
    else:
        return ()
    return (f"{path}: {reason}; budgets are found for releases that leak at most ε about any two secrets",)
