"""Column generation over the rays of the cone: a mixture of those known, and new ones where the prices ask for them.

In every round the master program mixes the rays known so far, each reported as the observable for which it costs least
(columns of one observable add up). Its multipliers are then lowered, observable by observable, to what `pricing.py`
proves: that is a lower bound over all private channels. The columns by which it had to be lowered are new rays.
Multipliers halfway to the best ones proved are steadier than those of the master alone (Wentges 1997); where they prove
no more, the master's own are next.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline, Stop, keep
from mechdesign.base._errors import InputError, SolverError
from mechdesign.base._machine import count_processors
from mechdesign.base._version import __version__
from mechdesign.solve._blocks.parallel import Workers, single_threaded
from mechdesign.solve._column_generation import Bracket
from mechdesign.solve._contract import Status
from mechdesign.synthesis._attempts import Attempt
from mechdesign.synthesis._blocks import BlockReduction, asked_symmetry
from mechdesign.synthesis._normal import Candidate, FormMultipliers, NormalForm
from mechdesign.synthesis._rays.folding import Folding, folding
from mechdesign.synthesis._rays.generators import falling
from mechdesign.synthesis._rays.master import Mixture, least_mixture
from mechdesign.synthesis._rays.metric import check_rays, laid_out, metric_of
from mechdesign.synthesis._rays.pricing import Prices, Proof, Scene, price
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._settings import SolveSettings

_ROUNDS = 200
# Rounds without a bracket that is narrower by a tenth, after which it ends: costs fall meanwhile, and bounds follow.
_PATIENCE, _PROGRESS = 25, 0.9
# For more secrets than this, where a round takes seconds, a part of that.
_MANY, _LESS_PATIENCE = 500, 10
# The gap of the master program, and that of the transport problems, as parts of the bracket so far.
_MASTER_SHARE, _PROOF_SHARE = 0.02, 0.002
# Transport problems that are solved more closely take little longer, and have a third fewer flows to write down.
_LOOSEST, _LOOSEST_PROOF, _TIGHTEST = 1e-3, 1e-5, 1e-9
# Share of the time left that the master program may use; the rest is for a pass over the observables, which proves
# nothing where it is cut.
_MASTER_TIME_SHARE = 0.6
# Observables that are priced at the same multipliers: few, since each lowers them for the next.
_BATCH = 8
# Of the observables, those of which all together are less likely than this are reported as others.
_RARE = 0.02
# What is tried for them, as multiples of that; and the relative rounding error of sums of positive numbers.
_PARTS = 10.0 ** -np.arange(-1, 8)
_ROUNDING = 1e-13
# Columns without an entry above this are left alone.
_FAINT = 1e-3
# A prior below this is 0.
_NEVER = 1e-200
# Rays of which no mixture near the best makes use: their reduced costs are above this part of their costs.
_DEAR = 0.2


def solve_rays(attempt: Attempt, settings: SolveSettings, deadline: Deadline, start: object = None) -> Candidate:
    """Solve a normal form whose bounds are a metric over all pairs, within the time limit.

    The channel of the candidate keeps all bounds up to the rounding of floats, and its multipliers prove the bracket.

    Where rounding keeps the master program from a solution, or prices prove no more, it has stalled: the best mixture
    so far is the answer, at first the constant.

    Raises:
        InputError: The bounds are no metric, the cost is not the expected one, or an option is given.
    """
    unknown = set(settings.options) - {"memory", "symmetry"}
    if unknown:
        raise InputError(f"options.{min(unknown)}", "is not known to rays", bound='"memory" or "symmetry"')
    check_rays(attempt.form, deadline)
    run = RayGeneration(attempt.form, settings, deadline)
    try:
        status, message = run.rounds()
    finally:
        run.workers.close()
    return run.candidate(status, message)


@dataclass(frozen=True, eq=False)
class _Priced:
    """Prices, and the proofs of all observables at these: a bound."""

    prices: Prices
    proofs: list[Proof]


@dataclass(eq=False)
class RayGeneration:
    """The rays so far, and the bracket that their best mixture and the best prices give."""

    form: NormalForm
    settings: SolveSettings
    deadline: Deadline
    mixture: Mixture | None = None
    serious: bool = False
    halfway: bool = False
    count: int = 0
    iterations: int = 0

    def __post_init__(self) -> None:
        form, self.share = self.form, self.deadline
        metric = metric_of(form)
        self.prior = form.gather(form.problem.prior)
        cost = form.gather(form.problem.prior[:, None] * form.problem.cost)
        homes = (cost / np.maximum(self.prior, _NEVER)[:, None]).argmin(axis=0)
        self.scene = Scene(metric, cost, tuple(floor.error for floor in form.floors), homes)
        self.minima = np.array([floor.minimum for floor in form.floors])
        program = BlockReduction().apply(form)[0]
        symmetry = asked_symmetry(form, program, self.settings.options.get("symmetry", True))
        self.folding = folding(metric, cost.shape[1], symmetry)
        self.orbits = len(self.folding.sizes)
        self.rays, self.folded = np.zeros((0, form.groups)), np.zeros((0, self.orbits))
        self.costs, self.owners = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.losses = np.zeros((0, len(self.minima)))
        self._add(self.folding.different(falling(metric, laid_out(metric))))
        # The constant is the first answer.
        constant = int((self.rays == 1).all(axis=1).argmax())
        weights = (np.arange(len(self.owners)) == constant).astype(np.float64)
        self.best: Bracket[_Mixed, _Priced] = Bracket(_NEVER)
        self.best.offer_point(float(self.costs[constant]), _Mixed(self.rays, self.owners, weights))
        self.workers = Workers(self.settings.threads or count_processors(), _BATCH, 1)

    def rounds(self) -> tuple[Status, str]:
        """Mix and price until the bracket is as narrow as asked, or time is over."""
        # The gap when there was progress last, and for how many rounds there has been none.
        marked, since, least = np.inf, 0, np.inf
        try:
            for self.count in range(1, _ROUNDS + 1):
                gap = min(max(min(least, 1.0) * _MASTER_SHARE, _TIGHTEST), _LOOSEST)
                self.share = self.deadline.part(_MASTER_TIME_SHARE)
                try:
                    self._mix(gap)
                except SolverError as error:
                    if self.share.stop() is not None:
                        return self._stopped()
                    return Status.STALLED, f"{error}; relative gap {self.gap:.1e}"
                keep()
                fresh = self._prove()
                if fresh is None:
                    return self._stopped()
                self._tell("rays")
                if self.gap <= self.settings.tolerance:
                    return Status.OPTIMAL, f"relative gap {self.gap:.1e}"
                marked, since = (self.gap, 0) if self.gap < _PROGRESS * marked else (marked, since + 1)
                least = min(least, self.gap)
                patience = _PATIENCE if self.form.groups <= _MANY else _LESS_PATIENCE
                if since >= patience or (not len(fresh) and not self.halfway):
                    return Status.STALLED, f"no new rays narrow the bracket; relative gap {self.gap:.1e}"
                if self._over():
                    return self._stopped()
                self._drop()
                self._add(np.concatenate([fresh, self._pooled()]))
        except KeyboardInterrupt:
            if self.mixture is None:
                raise
            return Status.INTERRUPTED, f"relative gap {self.gap:.1e} when stopped"
        return Status.STALLED, f"relative gap {self.gap:.1e} after {_ROUNDS} rounds"

    @property
    def gap(self) -> float:
        """The relative gap so far, to a bound of at least 0."""
        return min(self.best.gap, 1.0)

    @property
    def _best_mixture(self) -> _Mixed:
        assert self.best.point is not None
        return self.best.point

    def _over(self) -> bool:
        return self.deadline.stop() is not None

    def _tell(self, stage: str) -> None:
        self.deadline.tell(stage, self.count, max(self.best.lower, 0.0), self.best.upper)

    def _stopped(self) -> tuple[Status, str]:
        if self.deadline.stop() in (Stop.USER, Stop.USER_AGAIN):
            return Status.INTERRUPTED, f"relative gap {self.gap:.1e} when stopped"
        return Status.TIME_LIMIT, f"relative gap {self.gap:.1e} at the time limit"

    def _add(self, rays: Floats) -> None:
        """Add rays, each with the observable for which it costs least and its part of every floor."""
        table = rays @ self.scene.cost
        owners = table.argmin(axis=1)
        losses = [(rays @ error.T).min(axis=1) for error in self.scene.errors]
        self.rays = np.concatenate([self.rays, rays])
        self.folded = np.concatenate([self.folded, self.folding.folded(rays)])
        self.costs = np.concatenate([self.costs, table[np.arange(len(rays)), owners]])
        self.owners = np.concatenate([self.owners, owners])
        added = np.array(losses).T if losses else np.zeros((len(rays), 0))
        self.losses = np.concatenate([self.losses, added])

    def _drop(self) -> None:
        """Forget rays that are far too dear, unless there are few."""
        if len(self.costs) <= 3 * self.orbits or self.mixture is None:
            return
        kept = self.mixture.reduced[: len(self.costs)] <= _DEAR * self.costs
        kept[0] = True
        self.rays, self.costs, self.owners = self.rays[kept], self.costs[kept], self.owners[kept]
        self.folded, self.losses = self.folded[kept], self.losses[kept]

    def _pooled(self) -> Floats:
        """Return the columns of the best mixture, as an adversary errs at least as much as about each ray alone.

        Without floors that gains nothing, and there are none.
        """
        if not self.scene.errors:
            return np.zeros((0, self.form.groups))
        columns = self.folding.mean(self._best_mixture.columns(self.scene.cost.shape[1]).T).T[self.folding.observables]
        columns = columns[columns.max(axis=1) > _FAINT]
        scaled: Floats = columns / columns.max(axis=1, keepdims=True)
        return scaled

    def _mix(self, gap: float) -> None:
        """Solve the master program; rows of floors are scaled to 1, and have a column for what is more than asked."""
        columns, costs = self.folded, self.costs
        count = len(self.minima)
        if count:
            surplus = np.hstack([np.zeros((count, self.orbits)), -np.eye(count)])
            columns = np.vstack([np.hstack([columns, self.losses / self.minima]), surplus])
            costs = np.concatenate([costs, np.zeros(count)])
        self.mixture = mixture = least_mixture(columns, costs, np.ones(columns.shape[1]), gap, self.share)
        self.iterations += mixture.iterations
        self.best.offer_point(mixture.cost, _Mixed(self.rays, self.owners, mixture.weights[: len(self.owners)]))

    def _prove(self) -> Floats | None:
        """Lower the multipliers to what is proved; return new rays, or None where time is over before the end."""
        assert self.mixture is not None
        floors = np.maximum(self.mixture.prices[self.orbits :], 0.0) / self.minima
        given = Prices(self.folding.spread(self.mixture.prices[: self.orbits]), floors)
        priced = self.best.proof
        self.halfway = priced is not None and self.serious
        if priced is not None and self.halfway:
            before = priced.prices
            given = Prices((given.sums + before.sums) / 2, (given.floors + before.floors) / 2)
        tolerance = min(max(self.gap * _PROOF_SHARE, _TIGHTEST), _LOOSEST_PROOF)
        proofs: list[Proof] = []
        fresh = [np.zeros((0, self.form.groups))]
        sums = given.sums
        with single_threaded():
            for batch in _batches(len(self.folding.observables)):
                if self._over():
                    return None
                found = self._priced(Prices(sums, given.floors), self.folding.observables[batch], tolerance)
                lacking = [proof.lacking for proof in found if proof.lacking is not None]
                rays = [proof.ray for proof in found if proof.lacking is not None and proof.ray is not None]
                fresh += [ray[None] / ray.max() for ray in rays]
                sums = sums - self.folding.largest(np.max([np.zeros(sums.size), *lacking], axis=0))
                proofs += [replace(proof, lacking=None, ray=None) for proof in found]
        lower = float(sums.sum() + given.floors @ self.minima)
        # Where nothing was lacking, the master's own multipliers tell what is.
        better = self.best.offer_bound(lower, _Priced(Prices(sums, given.floors), proofs))
        self.serious = better and len(fresh) > 1
        return np.concatenate(fresh)

    def _priced(self, prices: Prices, batch: Integers, tolerance: float) -> list[Proof]:
        """Price some observables at the same multipliers, with all threads; the answers come in their order."""

        def one(worker: int, part: slice) -> tuple[int, list[Proof]]:
            return part.start, [price(self.scene, prices, o, tolerance) for o in batch[part].tolist()]

        self.deadline.check()
        return [proof for _, some in sorted(self.workers.run(one), key=lambda pair: pair[0]) for proof in some]

    def candidate(self, status: Status, message: str) -> Candidate:
        """Return the best mixture as a channel, and the best proof."""
        matrix = self._best_mixture.gathered(self.scene.cost, self.prior, _RARE * self.gap, self.folding)
        sums = matrix.sum(axis=1)
        matrix /= sums[:, None]
        error = float(2 * np.abs(sums - 1).max() + _ROUNDING + 2 * self.folding.asymmetry)
        summary = SolveSummary(
            status,
            message,
            solver="rays",
            solver_version=__version__,
            rows_policy="rays",
            program_rows=self.orbits + len(self.minima),
            program_columns=len(self._best_mixture.owners),
            rounds=self.count,
            symmetries=self.folding.order,
            iterations=self.iterations,
            primal_residual=error,
        )
        return Candidate(matrix, self._multipliers(), summary, relative_error=error)

    def _multipliers(self) -> FormMultipliers | None:
        if self.best.proof is None:
            return None
        shape = self.scene.cost.shape[1]
        grids = [np.zeros((len(error), shape)) for error in self.scene.errors]
        proofs = self.folding.unfolded(self.best.proof.proofs)
        for proof in proofs:
            for grid, attack in zip(grids, proof.attacks, strict=True):
                grid[attack.estimates, proof.observable] = attack.weights
        sizes = [len(proof.values) for proof in proofs]
        return FormMultipliers(
            np.concatenate([proof.sources for proof in proofs]),
            np.concatenate([proof.targets for proof in proofs]),
            np.repeat([proof.observable for proof in proofs], sizes),
            np.concatenate([proof.values for proof in proofs]),
            tuple(grids),
        )


@dataclass(frozen=True, eq=False)
class _Mixed:
    """Rays (number, k), the observable of each, and their weights in the mixture."""

    rays: Floats
    owners: Integers
    weights: Floats

    def columns(self, observables: int) -> Floats:
        """Return the sum of the rays of each observable (observables, k)."""
        found = np.zeros((observables, self.rays.shape[1]))
        for observable in np.unique(self.owners).tolist():
            mine = self.owners == observable
            found[observable] = self.weights[mine] @ self.rays[mine]
        return found

    def gathered(self, cost: Floats, prior: Floats, dearer: float, folding: Folding) -> Floats:
        """Return the sums of rays, with their images, as p(o|group) (k, m).

        Observables that hardly ever occur are replaced by those that then cost least, as long as the whole becomes
        dearer by no more than the given part. Columns still add up, and there are fewer to look at.
        """
        owners = self._fewer(cost, prior, dearer, folding)
        return folding.mean(np.ascontiguousarray(replace(self, owners=owners).columns(cost.shape[1]).T))

    def _fewer(self, cost: Floats, prior: Floats, dearer: float, folding: Folding) -> Integers:
        alone: Floats = np.bincount(self.owners, self.weights * (self.rays @ prior), cost.shape[1]).astype(np.float64)
        share = folding.heaped(alone)
        order = np.argsort(share, kind="stable")
        heaped = np.cumsum(share[order])
        table = self.rays @ cost
        here = table[np.arange(len(self.owners)), self.owners]
        for part in dearer * _PARTS:
            rare = order[: min(int(np.searchsorted(heaped, part)), len(order) - 1)]
            # Of an orbit all are rare, or none is.
            kept = np.flatnonzero(share >= share[order[rare.size]])
            rare = np.setdiff1d(order, kept)
            moved = np.isin(self.owners, rare)
            others = table[np.ix_(moved, kept)]
            if self.weights[moved] @ (others.min(axis=1) - here[moved]) <= dearer * (self.weights @ here):
                owners = self.owners.copy()
                owners[moved] = kept[others.argmin(axis=1)]
                return owners
        return self.owners


def _batches(count: int) -> Iterator[Integers]:
    """Yield all observables, a few at a time that are far apart in their order."""
    step = max(1, round(0.618 * count))
    while math.gcd(step, count) > 1:
        step += 1
    order = np.arange(count) * step % count
    for start in range(0, count, _BATCH):
        yield order[start : start + _BATCH]
