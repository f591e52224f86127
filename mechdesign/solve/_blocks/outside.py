"""Price the columns that a restricted program leaves out, and join what proves the bound over all columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._deadline import Deadline
from mechdesign.base._machine import count_processors
from mechdesign.solve._block_angular import (
    BlockMultipliers,
    BlockProgram,
    RatioMultipliers,
    near_exponents,
    priced_cost,
    reduced_costs,
)
from mechdesign.solve._blocks.estimates import with_estimates
from mechdesign.solve._blocks.kernels import choose, few_bounds, sparse_kernel
from mechdesign.solve._blocks.layout import Geometry, bounded, geometry_of, lay_out
from mechdesign.solve._blocks.memory import measure
from mechdesign.solve._blocks.neighbours import Group, grouped
from mechdesign.solve._blocks.parallel import Workers, single_threaded
from mechdesign.solve._blocks.pricing import Priced, price
from mechdesign.solve._blocks.solution import BlockSolution
from mechdesign.solve._contract import Options

_WORSE = 0.1
# Entries (columns × rows²) that are priced at the same time; of sparse blocks, bytes.
_CHUNK, _SPARSE_BYTES = 8_000_000, 400_000_000
# So many bounds for each row prove nearly all columns (20 × 20 cells: 97 %). With fewer rows it takes no less time.
_NEAR, _WORTH_NEAR = 36, 500


def restricted(program: BlockProgram, columns: Integers) -> BlockProgram:
    """Return the program with some columns only."""
    worst = program.worst
    if worst is not None:
        worst = replace(worst, cost=worst.cost[:, columns])
    floors = tuple(
        floor if floor.rewards is None else replace(floor, rewards=floor.rewards[columns]) for floor in program.floors
    )
    return replace(program, cost=program.cost[:, columns], floors=floors, worst=worst)


class Outside:
    """The columns left out, from round to round: what one has proved of a column may hold in the next."""

    def __init__(
        self, program: BlockProgram, options: Options, tell: Callable[[str], None], deadline: Deadline
    ) -> None:
        self.program, self.options, self.tell, self.deadline = program, options, tell, deadline
        # What was proved of a column last, and of which floors it has multipliers.
        self.known: dict[int, tuple[list[int], Priced]] = {}
        # Those of few bounds for each row.
        self.exponents: Floats | None = None

    def price(
        self, columns: Integers, solution: BlockSolution, tolerance: float, felt: float
    ) -> tuple[dict[int, Priced], BlockMultipliers]:
        """Price all columns but those in use, and return what is proved of each, and the multipliers of all.

        Args:
            columns: the columns in use.
            solution: that of the program restricted to them.
            tolerance: how far below 0 a column's value may be.
            felt: floors whose part of the bound is at most this count as not binding.
        """
        program, found = self.program, solution.multipliers
        prices = reduced_costs(restricted(program, columns), found).min(axis=1)
        weights = np.array([float(values.sum(axis=0).min()) for values in found.floors])
        others = np.setdiff1d(np.arange(program.columns), columns)
        minima = np.array([floor.minimum for floor in program.floors])
        # Floors that do not bind have multipliers of the size of rounding.
        binding = np.flatnonzero(weights * minima > felt)
        floors = tuple(program.floors[index] for index in binding)
        left_out = replace(program, cost=priced_cost(program, found.weights), worst=None, floors=floors)
        weights = weights[binding]
        priced = self._still_proved(left_out, binding, prices, weights, tolerance, others)
        rest = np.array([column for column in others.tolist() if column not in priced], dtype=np.int64)
        priced |= self._priced(left_out, columns, solution.x, rest, _Prices(prices, weights, tolerance))
        self.known |= {column: (binding.tolist(), one) for column, one in priced.items()}
        return priced, self._joined(columns, found, priced, binding)

    def worth(
        self,
        columns: Integers,
        x: Floats,
        multipliers: Floats,
        weights: Floats,
        value: float,
        worse: float,
        among: Integers | None = None,
    ) -> dict[int, tuple[Integers, ...]]:
        """Return the columns left out that may have less than this value, each with the estimates likely to matter.

        Few bounds for each row are looked at, and few estimates, so that these are rather too many.

        Args:
            columns: the columns in use.
            x: their values (n, k).
            multipliers: λ (n,).
            weights: v (F,).
            value: as that of a column with Σ_s x_s = 1.
            worse: by what part estimates may be worse than the best one for columns alike.
            among: which columns to look at; all of them without it.
        """
        others = np.setdiff1d(np.arange(self.program.columns) if among is None else among, columns)
        threads, groups = self._grouped(self.program, columns, x, others, worse)
        near = self._near(self.program)
        prices = _Prices(multipliers + value, weights, 0.0)
        found = self._shared(self.program if near is None else near, groups, prices, threads)
        left = [(column, group.estimates) for group in groups for column in group.columns.tolist() if column in found]
        return {column: estimates for column, estimates in left if found[column].upper < 0}

    def without(self, columns: Integers, found: BlockMultipliers) -> BlockMultipliers:
        """Return the multipliers of the program restricted to `columns`, with none for the columns left out."""
        return self._joined(columns, found, {}, np.zeros(0, dtype=np.int64))

    def _priced(
        self, program: BlockProgram, used: Integers, x: Floats, columns: Integers, prices: _Prices
    ) -> dict[int, Priced]:
        """Price columns with few bounds and the estimates likely to matter, and with more where that proves nothing.

        A floor's multipliers prove what they prove whether or not all of its estimates have one.
        """
        threads, groups = self._grouped(program, used, x, columns, _WORSE)
        near, before = self._near(program), None
        found: dict[int, Priced] = {}
        tiers = [(program, False), (program, True)]
        for bounds, whole in tiers if near is None else [(near, False), (near, True), (program, True)]:
            left = [_left(group, found, prices.tolerance) for group in groups]
            if whole:
                left = [_with_all(bounds, group, again=bounds is not before) for group in left]
            found = _better(found, self._shared(bounds, left, prices, threads))
            if self.deadline.stop() is not None:
                break
            before = bounds
        return found

    def _grouped(
        self, program: BlockProgram, used: Integers, x: Floats, columns: Integers, worse: float
    ) -> tuple[int, list[Group]]:
        """Return how many threads price columns, and groups of these for them."""
        threads = self.options.threads or count_processors()
        most = max(1, self._columns_at_once() // threads)
        return threads, grouped(program, used, x, columns, max(1, min(most, -(-columns.size // threads))), worse)

    def _near(self, program: BlockProgram) -> BlockProgram | None:
        """Return the program with few bounds for each row, which prove most columns in a fraction of the time."""
        if program.rows < _WORTH_NEAR or self.options.extra.get("device") not in (None, "cpu"):
            return None
        if sparse_kernel(program, self.options.extra) or self.options.extra.get("arrays") == "torch":
            return None
        if self.exponents is None:
            self.exponents = near_exponents(program.exponents, _NEAR)
        return replace(program, exponents=self.exponents)

    def _columns_at_once(self) -> int:
        """Return how many columns are priced at the same time."""
        program = self.program
        if sparse_kernel(program, self.options.extra):
            sparsity = measure(program.rows, *np.nonzero(bounded(program.exponents)))
            return _SPARSE_BYTES // sparsity.bytes
        return int(_CHUNK // program.rows**2)

    def _shared(self, program: BlockProgram, groups: list[Group], prices: _Prices, threads: int) -> dict[int, Priced]:
        """Price groups of columns, each by one thread."""
        groups = [group for group in groups if group.columns.size]
        if not groups:
            return {}
        self.tell(f"pricing {sum(group.columns.size for group in groups)} of {self.program.columns} columns")
        # Groups differ in columns and estimates alone.
        geometry = geometry_of(program.exponents, len(program.floors))
        workers = Workers(threads, len(groups), 1)
        try:
            with single_threaded():
                # How long Ctrl-C is to wait for prices is for the deadline to say.
                parts = workers.run(
                    lambda _, batch: self._group(program, geometry, groups[batch.start], prices), whole=True
                )
        finally:
            workers.close()
        return {column: one for part in parts for column, one in part.items()}

    def _group(self, program: BlockProgram, geometry: Geometry, group: Group, prices: _Prices) -> dict[int, Priced]:
        """Price the columns of a group with its estimates, on one thread; none where they are to stop."""
        if self.deadline.stop() is not None:
            return {}
        priced = with_estimates(restricted(program, group.columns), group.estimates)
        layout = lay_out(priced, geometry=geometry)
        extra, entries = self.options.extra, self.program.columns * program.rows**2
        kernel = choose(extra.get("arrays"), extra.get("device"), entries, layout.sparse, self.deadline.left())
        if program.exponents is self.exponents:
            kernel = few_bounds(floors=layout.floors > 0)
        arrays = kernel(layout, 1, extra.get("device"))
        values = price(layout, arrays, prices.sums, prices.floors, prices.tolerance, self.deadline)
        found = {}
        for column, value in zip(group.columns.tolist(), values, strict=True):
            weights = []
            for floor, some, mine in zip(program.floors, group.estimates, value.floors, strict=True):
                full = np.zeros(len(floor.error))
                full[some] = mine
                weights.append(full)
            found[column] = replace(value, floors=tuple(weights))
        return found

    def _still_proved(
        self,
        program: BlockProgram,
        binding: Integers,
        prices: Floats,
        weights: Floats,
        tolerance: float,
        others: Integers,
    ) -> dict[int, Priced]:
        """Return what the last round proved of columns and holds at the new multipliers, too."""
        kept = {column: self.known[column] for column in others.tolist() if column in self.known}
        known = [column for column, (floors, _) in kept.items() if floors == binding.tolist()]
        if not known:
            return {}
        one = replace(program, cost=program.cost[:, known])
        old = [kept[column][1] for column in known]
        floors = [
            np.array([each.floors[index] * (weight / max(float(each.floors[index].sum()), 1e-300)) for each in old]).T
            for index, weight in enumerate(weights)
        ]
        lowest = (reduced_costs(one, _together(old, np.arange(len(old)), floors)) - prices[:, None]).min(axis=0)
        return {
            column: replace(each, lower=float(lower), upper=np.inf, floors=tuple(q[:, at] for q in floors))
            for at, (column, each, lower) in enumerate(zip(known, old, lowest, strict=True))
            if lower >= -tolerance
        }

    def _joined(
        self, columns: Integers, found: BlockMultipliers, priced: dict[int, Priced], binding: Integers
    ) -> BlockMultipliers:
        """Return the multipliers of all columns, those of the restricted program and those that pricing found."""
        # By column: threads answer in any order.
        priced = dict(sorted(priced.items()))
        values, others = list(priced.values()), np.array(list(priced), dtype=np.int64)
        floors = [np.zeros((floor.error.shape[0], self.program.columns)) for floor in self.program.floors]
        for index, (full, mine) in enumerate(zip(floors, found.floors, strict=True)):
            full[:, columns] = mine
            if index in binding:
                position = int(np.searchsorted(binding, index))
                for column, one in priced.items():
                    full[:, column] = one.floors[position]
        ratios = found.ratios
        own = RatioMultipliers(ratios.sources, ratios.targets, columns[ratios.columns], ratios.values)
        rest = _together(values, others, floors).ratios
        both = (np.concatenate([getattr(own, name), getattr(rest, name)]) for name in _FIELDS)
        return BlockMultipliers(RatioMultipliers(*both), tuple(floors), found.weights)


@dataclass(frozen=True, eq=False)
class _Prices:
    """At what columns are priced: λ (n,), v (F,), and how far below 0 a value may be."""

    sums: Floats
    floors: Floats
    tolerance: float


def _left(group: Group, found: dict[int, Priced], tolerance: float) -> Group:
    """Return the columns of a group of which too little is proved."""
    left = [column for column in group.columns.tolist() if column not in found or found[column].lower < -tolerance]
    return replace(group, columns=np.array(left, dtype=np.int64))


def _better(found: dict[int, Priced], more: dict[int, Priced]) -> dict[int, Priced]:
    """Return what is proved of columns at two times: values are the later ones, of what is proved the better counts."""
    return found | {
        column: one
        if column not in found or one.lower >= found[column].lower
        else replace(found[column], upper=one.upper)
        for column, one in more.items()
    }


def _with_all(program: BlockProgram, group: Group, *, again: bool) -> Group:
    """Return a group with all estimates; unless it is to be priced `again`, without columns if it has them all."""
    every = tuple(np.arange(len(floor.error)) for floor in program.floors)
    fewer = any(some.size < each.size for some, each in zip(group.estimates, every, strict=True))
    return Group(group.columns if fewer or again else group.columns[:0], every)


_FIELDS = ("sources", "targets", "columns", "values")


def _together(priced: list[Priced], columns: Integers, floors: list[Floats]) -> BlockMultipliers:
    """Return the multipliers of priced columns."""
    sizes = [each.values.size for each in priced]
    parts = [
        np.concatenate([np.zeros(0, dtype=kind), *(getattr(each, name) for each in priced)])
        for name, kind in (("sources", np.int64), ("targets", np.int64), ("values", np.float64))
    ]
    ratios = RatioMultipliers(parts[0], parts[1], np.repeat(columns, sizes), parts[2])
    return BlockMultipliers(ratios, tuple(floors))
