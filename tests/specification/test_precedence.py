"""Which of two places wins, for each key that a specification and its caller can give in both."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.graphs._builders import edge_array
from mechdesign.specification._chain_files import chain_files
from mechdesign.specification._specification import Specification
from mechdesign.specification._table_specification import parse as parse_table

BOX = "domain.grid = { columns = 3, rows = 1, south = 40.0, north = 40.1, west = -74.3, east = -74.0 }"
LONGITUDE = (-74.25, -74.15, -74.05)

# Seconds and cell: short and long intervals, so that each sampling below gives another chain.
POINTS = ((0, 0), (20, 1), (65, 2), (130, 0), (190, 2), (300, 1), (420, 0), (1000, 2), (1030, 1), (1300, 0))
# The keys of a sampling as a table writes them, with the step and the longest gap in seconds.
NONE, MINUTE, MINUTES = ("", None, None), (', every = "1 min"', 60, 180), (', every = "2 min"', 120, 360)
SHORT, LONG = (', gap = "100 s"', None, 100), (', every = "1 min", gap = "10 min"', 60, 600)
# For each row: what the data say, what the chain says, and which of them wins.
SAMPLINGS = {
    "neither": (NONE, NONE, NONE),
    "the chain alone": (NONE, MINUTE, MINUTE),
    "a gap of the chain alone": (NONE, SHORT, SHORT),
    "the data alone": (MINUTE, NONE, MINUTE),
    "both": (MINUTE, MINUTES, MINUTE),
    "both, the other way": (MINUTES, MINUTE, MINUTES),
    "a gap of the data": (SHORT, MINUTE, SHORT),
    "a step of the data": (MINUTE, SHORT, MINUTE),
    "another gap": (LONG, MINUTE, LONG),
    "the gap of the chain": (MINUTE, LONG, MINUTE),
}


def stretches_of(every: int | None, gap: int | None) -> list[list[int]]:
    """Return the cells of each stretch at even steps, counted one second after the other."""
    stretches = [[POINTS[0]]]
    for before, point in itertools.pairwise(POINTS):
        if gap is not None and point[0] - before[0] > gap:
            stretches.append([])
        stretches[-1].append(point)
    if every is None:
        return [[cell for _, cell in stretch] for stretch in stretches]
    found = []
    for stretch in stretches:
        ticks = [at for at in range(stretch[0][0], stretch[-1][0] + 1) if (at - stretch[0][0]) % every == 0]
        found.append([next(cell for at, cell in reversed(stretch) if at <= tick) for tick in ticks])
    return found


def counted(stretches: list[list[int]], smoothing: int = 1) -> np.ndarray:
    """Return the chain that the steps of these stretches give."""
    counts = np.full((3, 3), float(smoothing))
    for stretch in stretches:
        for now, then in itertools.pairwise(stretch):
            counts[now, then] += 1
    return counts / counts.sum(axis=1, keepdims=True)


def edges_of(stretches: list[list[int]]) -> list[list[int]]:
    """Return the pairs of cells that a step from the same cell reaches."""
    after = [{then for s in stretches for now, then in itertools.pairwise(s) if now == cell} for cell in range(3)]
    return [[a, b] for a in range(3) for b in range(a + 1, 3) if any({a, b} <= reached for reached in after)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    start = np.datetime64("2020-01-01T08:00:00")
    lines = [f"a,40.05,{LONGITUDE[cell]},{start + np.timedelta64(at, 's')}" for at, cell in POINTS]
    (tmp_path / "c.csv").write_text("\n".join(["user,latitude,longitude,time", *lines]) + "\n")
    (tmp_path / "mix.csv").write_text("0.5,0.25,0.25\n0.25,0.5,0.25\n0.25,0.25,0.5\n")
    return tmp_path


def read(folder: Path, rest: str, prior: str = "uniform = true", graph: str = "complete = true") -> Specification:
    privacy = f'privacy = [{{ kind = "graph", epsilon = 1, {graph} }}]'
    return spec.parse(f'{BOX}\nprior = {{ {prior} }}\ncost.distance = "hamming"\n{privacy}\n{rest}', folder)


def data(sampling: str = "") -> str:
    return f'checkins = {{ path = "c.csv", user = "user", time = "time"{sampling} }}'


def test_the_samplings_give_different_chains() -> None:
    chains = {counted(stretches_of(*sampling[1:])).tobytes() for sampling in (NONE, MINUTE, MINUTES, SHORT, LONG)}
    assert len(chains) == 5


def test_the_sampling_of_the_data_wins_over_that_of_the_chain(folder: Path) -> None:
    for name, (own, asked, wins) in SAMPLINGS.items():
        expected = counted(stretches_of(*wins[1:]))
        # The data of the prior, and data of the chain itself.
        for prior, source in (
            (data(own[0]) + ", smoothing = 1", "estimated = true"),
            ("uniform = true", data(own[0])),
        ):
            transition = f"release.transition = {{ {source}, smoothing = 1{asked[0]} }}"
            found = read(folder, transition, prior).release_settings
            np.testing.assert_allclose(found.transition.matrix, expected, rtol=1e-15, err_msg=f"{name}, {source}")
            assert found.transitions.every == wins[1], (name, source)
            assert (found.transitions.median is None) == (wins[1] is not None), (name, source)


def test_the_sampling_of_the_data_wins_for_the_edges_of_a_policy(folder: Path) -> None:
    for name, (own, asked, wins) in SAMPLINGS.items():
        graph = f"transitions = {{ estimated = true{asked[0]} }}"
        found = read(folder, "", data(own[0]) + ", smoothing = 1", graph).policy.graph
        assert edge_array(found).tolist() == edges_of(stretches_of(*wins[1:])), name


def test_the_sampling_of_the_data_wins_over_the_options_of_the_command(folder: Path) -> None:
    for name, (own, asked, wins) in SAMPLINGS.items():
        every, gap = (None if seconds is None else f"{seconds} s" for seconds in asked[1:])
        stated = 'release.transition = { estimated = true, every = "7 min", gap = "8 min" }'
        given = read(folder, stated if every and gap else "", data(own[0]) + ", smoothing = 1")
        files, _ = chain_files(given, every, gap)
        rows = [[float(text) for text in row.split(",")] for row in files["forward.csv"].decode().split()]
        with np.errstate(invalid="ignore"):
            expected = np.nan_to_num(counted(stretches_of(*wins[1:]), 0))
        np.testing.assert_allclose(rows, expected, rtol=1e-15, err_msg=name)


def test_the_prior_is_counted_at_the_steps_of_its_own_data(folder: Path) -> None:
    for name, (own, asked, _) in SAMPLINGS.items():
        transition = f"release.transition = {{ estimated = true, smoothing = 1{asked[0]} }}"
        given = read(folder, transition, data(own[0]) + ", smoothing = 0")
        cells = [cell for stretch in stretches_of(*own[1:]) for cell in stretch]
        expected = [cells.count(cell) / len(cells) for cell in range(3)]
        np.testing.assert_allclose(given.problem().prior, expected, rtol=1e-15, err_msg=name)


def test_what_a_release_states_wins_over_what_the_specification_states(folder: Path) -> None:
    chain = 'transition = { path = "mix.csv" }'
    trace = [0, 1, 2, 1, 0, 2, 2, 1]

    def outputs(rest: str, seed: int | None = None) -> list[int]:
        return list(read(folder, f"[release]\n{chain}\n{rest}").release(trace, seed=seed).outputs.tolist())

    three, four = outputs("", 3), outputs("", 4)
    assert three != four
    assert outputs("seed = 3") == three
    assert outputs("seed = 3", 4) == four
    # Zero is a seed as well.
    assert outputs("seed = 3", 0) == outputs("", 0) != three


def test_the_initial_belief_of_a_release_wins_over_the_prior(folder: Path) -> None:
    chain = 'release.transition = { path = "mix.csv" }'
    for rest, expected in (("", [0.25, 0.25, 0.5]), ("\nrelease.initial.counts = [3, 1, 0]", [0.75, 0.25, 0.0])):
        given = read(folder, chain + rest, "counts = [1, 1, 2]")
        assert given.release_settings.initial.probabilities.tolist() == expected
        # The costs keep the prior of the specification.
        assert given.problem().prior.tolist() == [0.25, 0.25, 0.5]


def test_the_trace_is_sampled_as_its_release_states_not_as_its_chain(folder: Path) -> None:
    times = np.datetime64("2020-02-01T08:00:00") + np.array([0, 60, 120, 180]) * np.timedelta64(1, "s")
    trace = {"state": [0, 1, 2, 1], "time": times}
    for own, expected in (("", [0, 1, 2, 1]), ('every = "2 min"', [0, 2]), ('every = "90 s"', [0, 1, 1])):
        given = read(folder, f'[release]\ntransition = {{ path = "mix.csv", every = "1 min" }}\n{own}')
        assert given.steps(trace).states.tolist() == expected, own


TABLE = (
    "table.person = false\ndomain.attributes.age = { range = [0, 9] }\n"
    'policy.kind = "full"\nrelease = { kind = "histogram", epsilon = 1 }\n'
)
# For each row: the ledger of the caller, a seed, and which ledger is charged.
LEDGERS = {
    "neither": (False, False, "own"),
    "a ledger of the caller": (True, False, "given"),
    "a rehearsal": (False, True, ""),
    "a rehearsal that charges": (True, True, "given"),
}


def spent(ledger: md.Ledger | None) -> float:
    return 0.0 if ledger is None else float(ledger.spent.epsilon)


def test_the_ledger_of_the_caller_wins_over_that_of_a_table_and_a_rehearsal_charges_none(tmp_path: Path) -> None:
    for number, (name, (given, seeded, charged)) in enumerate(LEDGERS.items()):
        asked = parse_table(f'{TABLE}ledger = {{ path = "{number}.json", epsilon = 5 }}', tmp_path)
        ledger = md.Ledger(epsilon=5) if given else None
        asked.release({"age": [1, 2, 3]}, ledger=ledger, rng=1 if seeded else None)
        found = {"own": spent(asked.ledger()), "given": spent(ledger)}
        assert found == {each: float(each == charged) for each in found}, name


def test_a_rehearsal_that_charges_the_ledger_of_the_caller_charges_its_time_step(tmp_path: Path) -> None:
    asked, ledger = parse_table(TABLE.replace("epsilon = 1", 'epsilon = "planned"'), tmp_path), md.Ledger(epsilon=5)
    ledger.add_series(alpha=1, backward=None, forward=np.eye(10), plan=("equal", 4), history="others")
    asked.release({"age": [1, 2, 3]}, ledger=ledger, rng=1, step=7)
    assert [(entry.step, entry.epsilon) for entry in ledger.entries] == [(7, 0.25)]


def test_the_ledger_of_the_caller_wins_over_that_of_a_trace_and_a_rehearsal_charges_none(folder: Path) -> None:
    for number, (name, (given, seeded, charged)) in enumerate(LEDGERS.items()):
        rest = f'ledger = {{ path = "{number}.json", epsilon = 5 }}\nrelease.transition.path = "mix.csv"\n'
        asked = read(folder, rest)
        ledger = md.Ledger(epsilon=5) if given else None
        asked.release([0, 1], ledger=ledger, seed=1 if seeded else None)
        found = {"own": spent(asked.ledger()), "given": spent(ledger)}
        assert found == {each: 2.0 * (each == charged) for each in found}, name
    # A seed in the specification makes a rehearsal as well.
    asked = read(
        folder, 'ledger = { path = "l.json", epsilon = 5 }\nrelease = { transition.path = "mix.csv", seed = 0 }'
    )
    asked.release([0, 1])
    assert spent(asked.ledger()) == 0
