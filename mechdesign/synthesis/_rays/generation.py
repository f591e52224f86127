"""Column generation over rays of the cone (docs/theory/rays.md, "Column generation").

In every round the master program mixes the known rays. Each ray is assigned to the observable for which it costs least,
and the rays of an observable add up. Then the master's multipliers are lowered, observable by observable, until
`pricing.py` can prove them. The proved multipliers give a lower bound over all private channels. The columns that
forced a reduction of the multipliers become new rays.

To stabilise the iteration, a round uses the average of the master's multipliers and the best proved multipliers
(Wentges 1997). If the average does not improve the bound, the next round uses the master's own multipliers.

With symmetries, one member represents each orbit of secrets or observables.
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
from mechdesign.solve._blocks.symmetry import Symmetry
from mechdesign.solve._column_generation import Bracket
from mechdesign.solve._contract import Status
from mechdesign.solve._threads import Workers, blas_threads
from mechdesign.synthesis._attempts import Attempt
from mechdesign.synthesis._blocks import BlockReduction, choose_symmetry
from mechdesign.synthesis._normal import ChannelCandidate, FormMultipliers, NormalForm
from mechdesign.synthesis._rays.generators import check_rays, lay_out, make_first_rays, read_metric
from mechdesign.synthesis._rays.master import RayMixture, solve_master
from mechdesign.synthesis._rays.pricing import FloorAttack, PricingData, RayPrices, RayProof, price_observable
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._settings import SolveSettings

# Two rays are treated as images of each other if their means agree to this number of decimal digits.
_IMAGE_DIGITS = 9


@dataclass(frozen=True, eq=False)
class Folding:
    """The orbits of secrets and observables under a group of symmetries.

    Attributes:
        symmetry: The group of symmetries, or None if it contains only the identity.
        orbit: Orbit of each secret, shape (k,).
        sizes: Number of secrets in each orbit.
        observables: A representative observable of each orbit.
        asymmetry: Largest difference between two exponents that are images of each other.
    """

    symmetry: Symmetry | None
    orbit: Integers
    sizes: Integers
    observables: Integers
    asymmetry: float

    @property
    def order(self) -> int:
        """The number of symmetries."""
        return 1 if self.symmetry is None else self.symmetry.order

    def fold(self, rays: Floats) -> Floats:
        """Return the means of rays, shape (count, k), over each orbit of secrets; images of a ray have equal means."""
        if self.symmetry is None:
            return rays
        order = np.argsort(self.orbit, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        means: Floats = np.add.reduceat(rays[:, order], starts, axis=1) / self.sizes
        return means

    def different(self, rays: Floats) -> Floats:
        """Return rays, shape (count, k), without images of other rays."""
        if self.symmetry is None:
            return rays
        first = np.unique(np.round(self.fold(rays), _IMAGE_DIGITS), axis=0, return_index=True)[1]
        return rays[np.sort(first)]

    def spread(self, multipliers: Floats) -> Floats:
        """Return the multiplier of every secret's row sum, shape (k,), given one multiplier for each orbit's mean."""
        spread: Floats = (multipliers / self.sizes)[self.orbit]
        return spread

    def largest(self, values: Floats) -> Floats:
        """Return for every secret, shape (k,), the largest value in its orbit."""
        if self.symmetry is None:
            return values
        found = np.full(self.sizes.size, -np.inf)
        np.maximum.at(found, self.orbit, values)
        return found[self.orbit]

    def mean(self, matrix: Floats) -> Floats:
        """Return the mean of all images of a channel (k, m)."""
        if self.symmetry is None:
            return matrix
        total = np.zeros_like(matrix)
        for rows, columns in zip(self.symmetry.rows, self.symmetry.columns, strict=True):
            total[np.ix_(rows, columns)] += matrix
        total /= self.symmetry.order
        return total

    def sum_over_orbits(self, shares: Floats) -> Floats:
        """Return for every observable, shape (m,), the sum of the shares in its orbit."""
        if self.symmetry is None:
            return shares
        least = self.symmetry.columns.min(axis=0)
        found: Floats = np.bincount(least, shares, shares.size)[least]
        return found

    def unfold(self, proofs: list[RayProof]) -> list[RayProof]:
        """Return the proofs of all observables in order, from proofs of `self.observables` in any order."""
        by = {proof.observable: proof for proof in proofs}
        symmetry = self.symmetry
        if symmetry is None:
            return [by[observable] for observable in sorted(by)]
        movers, orbits = symmetry.origins(symmetry.columns.shape[1])
        found = []
        for observable, (mover, orbit) in enumerate(zip(movers.tolist(), orbits.tolist(), strict=True)):
            proof = by[int(self.observables[orbit])]
            rows = symmetry.rows[mover]
            attacks = tuple(
                FloorAttack(images[mover][attack.estimates], attack.weights)
                for images, attack in zip(symmetry.estimates, proof.attacks, strict=True)
            )
            found.append(RayProof(observable, rows[proof.sources], rows[proof.targets], proof.values, attacks))
        return found


def find_orbits(metric: Floats, observables: int, symmetry: Symmetry | None) -> Folding:
    """Return the orbits of a symmetry group, for a metric (k, k) and a number of observables."""
    secrets = len(metric)
    if symmetry is None or symmetry.order == 1:
        single = np.ones(secrets, dtype=np.int64)
        return Folding(None, np.arange(secrets), single, np.arange(observables), 0.0)
    orbit, sizes = np.unique(symmetry.rows.min(axis=0), return_inverse=True, return_counts=True)[1:]
    asymmetry = max(float(np.abs(metric[np.ix_(rows, rows)] - metric).max()) for rows in symmetry.rows)
    return Folding(symmetry, orbit, sizes, symmetry.representatives(observables)[0], asymmetry)


_MAX_ROUNDS = 200
# The iteration ends after `_PATIENCE` rounds without progress. A round makes progress if it lowers the gap below
# `_PROGRESS_FACTOR` times the gap at the previous progress.
_PATIENCE, _PROGRESS_FACTOR = 25, 0.9
# Above this number of secrets a round takes seconds, so fewer rounds without progress are allowed.
_MANY_SECRETS, _PATIENCE_FOR_MANY = 500, 10
# Gaps requested from the master program and from the transport problems, as shares of the current gap.
_MASTER_SHARE, _PROOF_SHARE = 0.02, 0.002
# Largest gap requested from the master program, largest gap requested from the transport problems, and smallest gap
# requested from either. A smaller gap in the transport problems takes little more time, and gives solutions with a
# third fewer flows.
_MAX_MASTER_GAP, _MAX_PROOF_GAP, _MIN_GAP = 1e-3, 1e-5, 1e-9
# Share of the remaining time for the master program. The pass over the observables gets the rest of the time, because
# it proves a bound only if it is completed.
_MASTER_TIME_SHARE = 0.6
# Number of observables in a batch, which are priced at the same multipliers. Batches are small, because each batch
# lowers the multipliers for the next one.
_OBSERVABLES_PER_BATCH = 8
# Largest relative increase of the cost that the replacement of rare observables may cause, as a share of the gap.
_RARE_SHARE = 0.02
# Candidates for the total probability below which observables count as rare, as multiples of the allowed increase of
# the cost.
_RARE_MULTIPLES = 10.0 ** -np.arange(-1, 8)
# Relative rounding error of sums of positive numbers.
_ROUNDING_ERROR = 1e-13
# Columns whose largest entry is at most this are not added as rays.
_MIN_COLUMN_ENTRY = 1e-3
# Smallest prior probability used as a divisor.
_MIN_PRIOR = 1e-200
# Rays are dropped if their reduced cost exceeds this share of their cost: near-optimal mixtures do not use them.
_MAX_REDUCED_COST_SHARE = 0.2


def solve_rays(attempt: Attempt, settings: SolveSettings, deadline: Deadline, start: object = None) -> ChannelCandidate:
    """Solve a normal form whose bounds are a metric over all pairs, within the time limit.

    The channel of the candidate keeps all bounds up to rounding errors, and its multipliers prove the lower bound. The
    status is STALLED if rounding errors prevent a solution of the master program, or if the gap stops shrinking. The
    result is then the best mixture so far. The first mixture is the constant output.

    Args:
        attempt: The normal form, with rows "rays".
        settings: Tolerance, threads and options.
        deadline: Deadline of the design.
        start: Ignored; rays have no warm start.

    Returns:
        The channel and multipliers, not yet certified.

    Raises:
        InputError: The bounds are not a metric, the objective is not the expected cost, or an option is not known.
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
class _PricedRays:
    """Prices with the proofs of all observables, which together prove a lower bound."""

    prices: RayPrices
    proofs: list[RayProof]


@dataclass(eq=False)
class RayGeneration:
    """The state of column generation: the known rays, the best mixture, and the best proved multipliers.

    Attributes:
        form: The normal form.
        settings: Tolerance, threads and options.
        deadline: Deadline of the design.
        mixture: The latest solution of the master program.
        serious: Whether the last pass improved the bound and found new rays.
        halfway: Whether the last round used averaged multipliers.
        count: Number of rounds.
        iterations: Total number of iterations of the master program.
    """

    form: NormalForm
    settings: SolveSettings
    deadline: Deadline
    mixture: RayMixture | None = None
    serious: bool = False
    halfway: bool = False
    count: int = 0
    iterations: int = 0

    def __post_init__(self) -> None:
        form, self.share = self.form, self.deadline
        metric = read_metric(form)
        self.prior = form.gather(form.problem.prior)
        cost = form.gather(form.problem.prior[:, None] * form.problem.cost)
        homes = (cost / np.maximum(self.prior, _MIN_PRIOR)[:, None]).argmin(axis=0)
        self.scene = PricingData(metric, cost, tuple(floor.error for floor in form.floors), homes)
        self.minima = np.array([floor.minimum for floor in form.floors])
        program = BlockReduction().apply(form)[0]
        symmetry = choose_symmetry(form, program, self.settings.options.get("symmetry", True))
        self.folding = find_orbits(metric, cost.shape[1], symmetry)
        self.orbits = len(self.folding.sizes)
        self.rays, self.folded = np.zeros((0, form.groups)), np.zeros((0, self.orbits))
        self.costs, self.owners = np.zeros(0), np.zeros(0, dtype=np.int64)
        self.losses = np.zeros((0, len(self.minima)))
        self._add(self.folding.different(make_first_rays(metric, lay_out(metric))))
        # The constant output is the first mixture.
        constant = int((self.rays == 1).all(axis=1).argmax())
        weights = (np.arange(len(self.owners)) == constant).astype(np.float64)
        self.best: Bracket[_PooledRays, _PricedRays] = Bracket(_MIN_PRIOR)
        self.best.offer_point(float(self.costs[constant]), _PooledRays(self.rays, self.owners, weights))
        self.workers = Workers(self.settings.threads or count_processors(), _OBSERVABLES_PER_BATCH, 1)

    def rounds(self) -> tuple[Status, str]:
        """Alternate between mixing and pricing until the gap reaches the tolerance, or until the time limit."""
        # The gap at the last progress, the number of rounds since then, and the least gap.
        marked, since, least = np.inf, 0, np.inf
        try:
            for self.count in range(1, _MAX_ROUNDS + 1):
                gap = min(max(min(least, 1.0) * _MASTER_SHARE, _MIN_GAP), _MAX_MASTER_GAP)
                self.share = self.deadline.part(_MASTER_TIME_SHARE)
                try:
                    self._mix(gap)
                except SolverError as error:
                    if self.share.stop() is not None:
                        return self._describe_stop()
                    return Status.STALLED, f"{error}; relative gap {self.gap:.1e}"
                keep()
                fresh = self._prove()
                if fresh is None:
                    return self._describe_stop()
                self._tell("rays")
                if self.gap <= self.settings.tolerance:
                    return Status.OPTIMAL, f"relative gap {self.gap:.1e}"
                marked, since = (self.gap, 0) if self.gap < _PROGRESS_FACTOR * marked else (marked, since + 1)
                least = min(least, self.gap)
                patience = _PATIENCE if self.form.groups <= _MANY_SECRETS else _PATIENCE_FOR_MANY
                if since >= patience or (not len(fresh) and not self.halfway):
                    return Status.STALLED, f"no new rays narrow the bracket; relative gap {self.gap:.1e}"
                if self._over():
                    return self._describe_stop()
                self._drop()
                self._add(np.concatenate([fresh, self._pool()]))
        except KeyboardInterrupt:
            if self.mixture is None:
                raise
            return Status.INTERRUPTED, f"relative gap {self.gap:.1e} when stopped"
        return Status.STALLED, f"relative gap {self.gap:.1e} after {_MAX_ROUNDS} rounds"

    @property
    def gap(self) -> float:
        """The current relative gap, with a lower bound of at least 0."""
        return min(self.best.gap, 1.0)

    @property
    def _best_mixture(self) -> _PooledRays:
        assert self.best.point is not None
        return self.best.point

    def _over(self) -> bool:
        return self.deadline.stop() is not None

    def _tell(self, stage: str) -> None:
        self.deadline.tell(stage, self.count, max(self.best.lower, 0.0), self.best.upper)

    def _describe_stop(self) -> tuple[Status, str]:
        """Return the status and the message after Ctrl-C or the time limit."""
        if self.deadline.stop() in (Stop.USER, Stop.USER_AGAIN):
            return Status.INTERRUPTED, f"relative gap {self.gap:.1e} when stopped"
        return Status.TIME_LIMIT, f"relative gap {self.gap:.1e} at the time limit"

    def _add(self, rays: Floats) -> None:
        """Add rays, each with the observable for which it costs least and its contribution to every floor."""
        table = rays @ self.scene.cost
        owners = table.argmin(axis=1)
        losses = [(rays @ error.T).min(axis=1) for error in self.scene.errors]
        self.rays = np.concatenate([self.rays, rays])
        self.folded = np.concatenate([self.folded, self.folding.fold(rays)])
        self.costs = np.concatenate([self.costs, table[np.arange(len(rays)), owners]])
        self.owners = np.concatenate([self.owners, owners])
        added = np.array(losses).T if losses else np.zeros((len(rays), 0))
        self.losses = np.concatenate([self.losses, added])

    def _drop(self) -> None:
        """Drop rays with large reduced costs, unless there are few rays."""
        if len(self.costs) <= 3 * self.orbits or self.mixture is None:
            return
        kept = self.mixture.reduced[: len(self.costs)] <= _MAX_REDUCED_COST_SHARE * self.costs
        kept[0] = True
        self.rays, self.costs, self.owners = self.rays[kept], self.costs[kept], self.owners[kept]
        self.folded, self.losses = self.folded[kept], self.losses[kept]

    def _pool(self) -> Floats:
        """Return the columns of the best mixture as new rays, or no rays if there are no floors.

        The sum of an observable's rays may contribute more to a floor than the separate rays, because adding rays never
        lowers the adversary's error.
        """
        if not self.scene.errors:
            return np.zeros((0, self.form.groups))
        columns = self.folding.mean(self._best_mixture.columns(self.scene.cost.shape[1]).T).T[self.folding.observables]
        columns = columns[columns.max(axis=1) > _MIN_COLUMN_ENTRY]
        scaled: Floats = columns / columns.max(axis=1, keepdims=True)
        return scaled

    def _mix(self, gap: float) -> None:
        """Solve the master program; floors are rows scaled to 1, each with a surplus column."""
        columns, costs = self.folded, self.costs
        count = len(self.minima)
        if count:
            surplus = np.hstack([np.zeros((count, self.orbits)), -np.eye(count)])
            columns = np.vstack([np.hstack([columns, self.losses / self.minima]), surplus])
            costs = np.concatenate([costs, np.zeros(count)])
        self.mixture = mixture = solve_master(columns, costs, np.ones(columns.shape[1]), gap, self.share)
        self.iterations += mixture.iterations
        self.best.offer_point(mixture.cost, _PooledRays(self.rays, self.owners, mixture.weights[: len(self.owners)]))

    def _prove(self) -> Floats | None:
        """Lower the multipliers until they are proved; return new rays, or None if the time limit interrupts this."""
        assert self.mixture is not None
        floors = np.maximum(self.mixture.prices[self.orbits :], 0.0) / self.minima
        given = RayPrices(self.folding.spread(self.mixture.prices[: self.orbits]), floors)
        priced = self.best.proof
        self.halfway = priced is not None and self.serious
        if priced is not None and self.halfway:
            before = priced.prices
            given = RayPrices((given.sums + before.sums) / 2, (given.floors + before.floors) / 2)
        tolerance = min(max(self.gap * _PROOF_SHARE, _MIN_GAP), _MAX_PROOF_GAP)
        proofs: list[RayProof] = []
        fresh = [np.zeros((0, self.form.groups))]
        sums = given.sums
        with blas_threads(1):
            for batch in _order_in_batches(len(self.folding.observables)):
                if self._over():
                    return None
                found = self._price_batch(RayPrices(sums, given.floors), self.folding.observables[batch], tolerance)
                lacking = [proof.lacking for proof in found if proof.lacking is not None]
                rays = [proof.ray for proof in found if proof.lacking is not None and proof.ray is not None]
                fresh += [ray[None] / ray.max() for ray in rays]
                sums = sums - self.folding.largest(np.max([np.zeros(sums.size), *lacking], axis=0))
                proofs += [replace(proof, lacking=None, ray=None) for proof in found]
        lower = float(sums.sum() + given.floors @ self.minima)
        # If no multiplier was lowered, the next round uses the master's own multipliers.
        better = self.best.offer_bound(lower, _PricedRays(RayPrices(sums, given.floors), proofs))
        self.serious = better and len(fresh) > 1
        return np.concatenate(fresh)

    def _price_batch(self, prices: RayPrices, batch: Integers, tolerance: float) -> list[RayProof]:
        """Price some observables at the same multipliers, with all threads; the proofs are in order."""

        def one(worker: int, part: slice) -> tuple[int, list[RayProof]]:
            return part.start, [price_observable(self.scene, prices, o, tolerance) for o in batch[part].tolist()]

        self.deadline.check()
        return [
            proof
            for _, batch_proofs in sorted(self.workers.run(one), key=lambda pair: pair[0])
            for proof in batch_proofs
        ]

    def candidate(self, status: Status, message: str) -> ChannelCandidate:
        """Return a candidate with the channel of the best mixture and the best multipliers."""
        matrix = self._best_mixture.to_channel(self.scene.cost, self.prior, _RARE_SHARE * self.gap, self.folding)
        sums = matrix.sum(axis=1)
        matrix /= sums[:, None]
        error = float(2 * np.abs(sums - 1).max() + _ROUNDING_ERROR + 2 * self.folding.asymmetry)
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
        return ChannelCandidate(matrix, self._multipliers(), summary, relative_error=error)

    def _multipliers(self) -> FormMultipliers | None:
        """Return the multipliers of the best proof for all observables, or None without a proof."""
        if self.best.proof is None:
            return None
        shape = self.scene.cost.shape[1]
        grids = [np.zeros((len(error), shape)) for error in self.scene.errors]
        proofs = self.folding.unfold(self.best.proof.proofs)
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
class _PooledRays:
    """Rays, shape (count, k), with the observable and the weight of each ray."""

    rays: Floats
    owners: Integers
    weights: Floats

    def columns(self, observables: int) -> Floats:
        """Return the weighted sum of the rays of each observable, shape (observables, k)."""
        found = np.zeros((observables, self.rays.shape[1]))
        for observable in np.unique(self.owners).tolist():
            members = self.owners == observable
            found[observable] = self.weights[members] @ self.rays[members]
        return found

    def to_channel(self, cost: Floats, prior: Floats, dearer: float, folding: Folding) -> Floats:
        """Return the channel p(o|group), shape (k, m), averaged over the symmetries.

        Rare observables are replaced by the cheapest other observables while the relative increase of the cost is at
        most `dearer`. The channel then has fewer columns.
        """
        owners = self._replace_rare(cost, prior, dearer, folding)
        return folding.mean(np.ascontiguousarray(replace(self, owners=owners).columns(cost.shape[1]).T))

    def _replace_rare(self, cost: Floats, prior: Floats, dearer: float, folding: Folding) -> Integers:
        """Return the observable of each ray after rare observables are replaced by the cheapest others."""
        alone: Floats = np.bincount(self.owners, self.weights * (self.rays @ prior), cost.shape[1]).astype(np.float64)
        share = folding.sum_over_orbits(alone)
        order = np.argsort(share, kind="stable")
        heaped = np.cumsum(share[order])
        table = self.rays @ cost
        here = table[np.arange(len(self.owners)), self.owners]
        for part in dearer * _RARE_MULTIPLES:
            rare = order[: min(int(np.searchsorted(heaped, part)), len(order) - 1)]
            # The observables of an orbit are either all replaced or all kept.
            kept = np.flatnonzero(share >= share[order[rare.size]])
            rare = np.setdiff1d(order, kept)
            moved = np.isin(self.owners, rare)
            others = table[np.ix_(moved, kept)]
            if self.weights[moved] @ (others.min(axis=1) - here[moved]) <= dearer * (self.weights @ here):
                owners = self.owners.copy()
                owners[moved] = kept[others.argmin(axis=1)]
                return owners
        return self.owners


def _order_in_batches(count: int) -> Iterator[Integers]:
    """Yield all observables in small batches; the members of a batch are far apart in the order of observables."""
    step = max(1, round(0.618 * count))
    while math.gcd(step, count) > 1:
        step += 1
    order = np.arange(count) * step % count
    for start in range(0, count, _OBSERVABLES_PER_BATCH):
        yield order[start : start + _OBSERVABLES_PER_BATCH]
