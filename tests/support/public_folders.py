"""Releases from neighbouring data, compared byte by byte: `compare` runs a case, and `*_case` makes one.

A case is a specification and two neighbouring inputs. Tables differ in one record (or, under `unbounded`, by one
record), histories in one or more states, and places in their cells. The same command releases from each input in a
separate folder. The second run draws no random numbers: it gets the outputs that the first run drew. Therefore any
remaining difference comes from the data, not from the outputs. The cases never estimate prior, cost or chain from data.

The names, sizes, modes and bytes of all files are compared, the exit code, and the console output. The clock of the
second run is two days ahead, and its rows are in a different order if their order is irrelevant. The comparison
omits only the texts that `CLOCK`, `RANDOM`, `FOLLOWS` and `OWNER` describe.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import random
import re
import secrets
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from click.testing import CliRunner

from mechdesign.cli import main as command
from mechdesign.mechanisms._discrete import DiscreteNoise
from mechdesign.model._channel import Channel

_SECONDS = re.compile(r'"(?:solve|rounding|proving|certifying)_seconds": *[0-9.e-]+')

CLOCK = {
    # A command prints its duration at the end of its output.
    "console": re.compile(r"^seconds +[0-9.]+$", re.MULTILINE),
    # The time that the design of a channel takes depends on earlier outputs, and not on the true state.
    "steps.json": _SECONDS,
    "certificate.json": _SECONDS,
    # Only ledgers, which are not public, contain the time of a charge.
    "ledger.json": re.compile(r'"(?:when|time)": *"[^"]*"'),
}
"""For each file, the pattern of fields that contain times."""

RANDOM = {
    # Each entry of a ledger has a random number, which the manifest of its release repeats.
    "ledger.json": re.compile(r'"number": *"[0-9a-f]*"'),
    "release.json": re.compile(r'"(?:number|entry|entries)": *(?:"[0-9a-f]{32}"|\[[0-9a-f", \n]*\])'),
}
"""For each file, the pattern of random numbers of ledger entries."""

OWNER = re.compile(r"^note: up to [0-9]+ answers for one place.*$\n?", re.MULTILINE)
"""A note that is printed only on the console of the data owner, and says so."""

FOLLOWS = {
    "ledger.json": re.compile(r'"(?:digest|sha256|self)": *"[0-9a-f]{64}"'),
    "certificate.json": re.compile(r'"digest": *"[0-9a-f]{64}"'),
    # For this file, the script checks that the digest is correct.
    "release.json": re.compile(r'"steps.json": *"[0-9a-f]{64}"'),
}
"""For each file, the pattern of digests that depend on omitted fields."""


PRIVATE = ("mine/", ".ledger.json.lock")
"""Private files that depend on the true data, or are empty."""


class Impossible(BaseException):
    """The second run cannot give the outputs of the first: the case is not informative. No command catches this."""


class DrawnOtherwise(BaseException):
    """The values or the number of draws depend on the data. No command catches this exception."""


@dataclass
class Draws:
    """The draws of the first run, in the order in which the second run gets them."""

    kept: list[tuple[str, Any, Any]] = field(default_factory=list)
    given: int | None = None
    inside: bool = False

    def __call__(self, what: str, key: Any, draw: Callable[[], Any]) -> Any:
        """In the first run, draw and store; in the second, return the stored draw, whose `key` must be equal."""
        if self.inside:
            return draw()
        if self.given is None:
            # Random bits that a draw of noise consumes are not separate draws.
            self.inside = True
            self.kept.append((what, key, draw()))
            self.inside = False
            return self.kept[-1][2]
        if self.given == len(self.kept):
            raise DrawnOtherwise(f"{what} is drawn more often than for the neighbour")
        known, asked, found = self.kept[self.given]
        self.given += 1
        if (known, asked) != (what, key):
            raise DrawnOtherwise(f"{what} of {key} is drawn where the neighbour drew {known} of {asked}")
        return found


@contextmanager
def forced(draws: Draws) -> Iterator[None]:
    """Route all randomness through `draws`: noise, answers of channels, first centroids, numbers of entries."""
    add, sample, generator = DiscreteNoise.add, Channel.sample, np.random.default_rng
    tokens, texts, bits = secrets.token_bytes, secrets.token_hex, secrets.randbits

    def noisy(law: DiscreteNoise, values: Any, rng: Any = None) -> Any:
        assert rng is None or isinstance(rng, np.random.Generator)
        return draws("noise", (law, values.shape), lambda: add(law, values, rng)).copy()

    def answered(channel: Channel, secret: Any, size: Any = None, rng: Any = None) -> Any:
        found = draws("answers", np.shape(secret), lambda: sample(channel, secret, size, rng))
        if (channel.numerators[np.asarray(secret), found] == 0).any():
            raise Impossible
        return found

    def seeded(seed: Any = None) -> Any:
        if seed is not None:
            return generator(seed)
        return generator(draws("seed", None, lambda: bits(128)))

    with (
        mock.patch.object(DiscreteNoise, "add", noisy),
        mock.patch.object(Channel, "sample", answered),
        mock.patch.object(np.random, "default_rng", seeded),
        mock.patch.object(secrets, "token_bytes", lambda n=32: draws("bytes", n, lambda: tokens(n))),
        mock.patch.object(secrets, "token_hex", lambda n=32: draws("text", n, lambda: texts(n))),
        mock.patch.object(secrets, "randbits", lambda k: draws("bits", k, lambda: bits(k))),
    ):
        yield


@dataclass(frozen=True)
class Case:
    """A command, its public files, and the two versions of its private files."""

    kind: str
    arguments: tuple[str, ...]
    files: dict[str, str]
    private: tuple[dict[str, str], dict[str, str]]
    prepare: Callable[[], None] | None = None


@dataclass(frozen=True)
class Run:
    """Console output and files: a text for each file, or its bytes."""

    code: int
    said: dict[str, str]
    files: dict[str, tuple[int, bytes]]


def run(case: Case, side: int, folder: Path, draws: Draws) -> Run:
    """Run a case with one of its two inputs in a separate folder."""
    folder.mkdir()
    now = time.time

    def later() -> float:
        return now() + 200_000.0 * side

    with chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("always")
        if case.prepare is not None:
            case.prepare()
        for name, text in (case.files | case.private[side]).items():
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text)
        before = set(_walk(folder))
        with forced(draws), mock.patch.object(time, "time", later):
            result = CliRunner().invoke(command, list(case.arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    said = {
        "stdout": CLOCK["console"].sub("", result.stdout),
        "stderr": OWNER.sub("", CLOCK["console"].sub("", result.stderr)),
    }
    made = {}
    for name in sorted(set(_walk(folder)) - before):
        if name.startswith(PRIVATE):
            continue
        content = b"" if name.endswith("/") else (folder / name).read_bytes()
        if Path(name).name == "release.json" and b'"files"' in content:
            _check_digests(folder / name, content)
        made[name] = ((folder / name).stat().st_mode, _without_chance(Path(name).name, content))
    return Run(result.exit_code, said, made)


def _walk(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder)) + ("/" if path.is_dir() else "")


def _check_digests(manifest: Path, content: bytes) -> None:
    """Raise `DrawnOtherwise` if the digest in a manifest differs from the digest of the file."""
    for name, digest in json.loads(content)["files"].items():
        if hashlib.sha256((manifest.parent / name).read_bytes()).hexdigest() != digest:
            raise DrawnOtherwise(f"{manifest.name} has another digest of {name}")


def _without_chance(name: str, content: bytes) -> bytes:
    """Return the content of a file without the fields that this script excludes."""
    listed = [fields[name] for fields in (CLOCK, RANDOM, FOLLOWS) if name in fields]
    if not listed:
        return content
    text = content.decode()
    for pattern in listed:
        text = pattern.sub("", text)
    return text.encode()


def compare(case: Case) -> tuple[str, list[str]]:
    """Return the outcome of the first run, and every difference of the second run."""
    draws = Draws()
    with tempfile.TemporaryDirectory() as folder:
        # Both runs use one folder name, because full paths appear in the output.
        here = Path(folder) / "here"
        first = run(case, 0, here, draws)
        shutil.rmtree(here)
        draws.given = 0
        try:
            second = run(case, 1, here, draws)
        except Impossible:
            return "impossible", []
        except DrawnOtherwise as error:
            return "different", [str(error)]
    found = differences(first, second)
    if not found and draws.given != len(draws.kept):
        found = [f"{len(draws.kept) - draws.given} draws fewer than for the neighbour"]
    return ("answered" if first.code == 0 else "refused"), found


def differences(first: Run, second: Run) -> list[str]:
    """Return the differences of two runs, file by file."""
    found = []
    if first.code != second.code:
        found.append(f"exit codes {first.code} and {second.code}: {first.said['stderr']!r}, {second.said['stderr']!r}")
    for stream in first.said:
        if first.said[stream] != second.said[stream]:
            found.append(f"{stream}: " + _shown(first.said[stream], second.said[stream]))
    for name in sorted(first.files.keys() | second.files.keys()):
        one, other = first.files.get(name), second.files.get(name)
        if one is None or other is None:
            found.append(f"{name}: only in one of the folders")
        elif one[0] != other[0]:
            found.append(f"{name}: modes {one[0]:o} and {other[0]:o}")
        elif one[1] != other[1]:
            texts = (each[1].decode(errors="backslashreplace") for each in (one, other))
            found.append(f"{name}: sizes {len(one[1])} and {len(other[1])}: " + _shown(*texts))
    return found


def _shown(first: str, second: str) -> str:
    lines = difflib.unified_diff(first.splitlines(), second.splitlines(), lineterm="", n=0)
    return " | ".join(line[:200] for line in lines if not line.startswith(("---", "+++", "@@")))[:800]


# Tables

KINDS = ("histogram", "sum", "cdf", "quantiles", "ranges", "kmeans", "workload")


def table_case(rng: random.Random) -> Case:
    """Return a release from a table, of any kind and under any policy, with or without a ledger."""
    kind = rng.choice(KINDS)
    cumulative = kind in ("cdf", "quantiles", "ranges")
    sizes = (rng.randint(2, 7),) if cumulative or rng.random() < 0.6 else (rng.randint(2, 4), rng.randint(2, 3))
    numeric = len(sizes) == 1 or rng.random() < 0.5
    step = rng.choice([1, 1, 2])
    names = ["age", "ward"][: len(sizes)]
    values = [
        [str(step * value) for value in range(size)] if numeric or axis else [f"v{value}" for value in range(size)]
        for axis, size in enumerate(sizes)
    ]
    lines = [f"[domain.attributes.{name}]" for name in names]
    domain = "\n".join(
        f"{line}\nvalues = [{', '.join(v if v.isdecimal() else repr(v) for v in listed)}]".replace("'", '"')
        for line, listed in zip(lines, values, strict=True)
    )
    policy, joined = _policy(rng, sizes, numeric, step, names)
    unbounded = not cumulative and rng.random() < 0.4
    known = [] if unbounded or rng.random() < 0.85 else [values[0][rng.randrange(sizes[0])]]
    release = _release(rng, kind, names, values)
    people = rng.choice(["false", "false", '"who"\nrows_per_person = 3'])
    text = f'title = "A table"\n{domain}\n[table]\nperson = {people}\n'
    text += f"[policy]\n{policy}\nunbounded = {str(unbounded).lower()}\n"
    for value in known:
        shown = value if value.isdecimal() else f'"{value}"'
        text += f"[[policy.constraints]]\nwhere = {{ {names[0]} = {shown} }}\n"
    text += f"[release]\n{release}\n"
    ledger = rng.random() < 0.5
    if ledger:
        text += f'[ledger]\npath = "ledger.json"\n{"rho" if "rho" in release else "epsilon"} = 100\n'
    records = [
        tuple(rng.randrange(size) for size in sizes) for _ in range(rng.choice([*([0] * unbounded), 1, 2, 5, 30, 200]))
    ]
    other = _neighbour(rng, records, sizes, joined, unbounded, [values[0].index(value) for value in known])
    written = [_table(names, values, each) for each in (records, other)]
    return Case(
        f"{kind}, {policy.split(chr(10))[0]}{', unbounded' * unbounded}{', known counts' * bool(known)}",
        ("table", "s.toml", "t.csv", "-o", "released", *rng.choice([(), ("--no-report",)])),
        {"s.toml": text},
        ({"t.csv": written[0]}, {"t.csv": written[1]}),
    )


def _policy(
    rng: random.Random, sizes: tuple[int, ...], numeric: bool, step: int, names: list[str]
) -> tuple[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]]:
    """Return a policy, and a function that decides whether the policy joins two values of a record."""
    kinds = ["full", "attribute", "partition"] + ["threshold", "thresholds"] * numeric
    kind = rng.choice(kinds)
    if kind == "partition":
        count = int(np.prod(sizes))
        labels = [rng.randint(0, 2) for _ in range(count)]

        def block(value: tuple[int, ...]) -> int:
            return labels[int(np.ravel_multi_index(value, sizes))]

        return f'kind = "partition"\nblocks = {{ labels = {labels} }}', lambda x, y: block(x) == block(y)
    if kind == "threshold":
        theta = step * rng.randint(1, 2)

        def near(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
            scales = (step,) * len(sizes)
            return sum(scale * abs(a - b) for scale, a, b in zip(scales, x, y, strict=True)) <= theta

        return f'kind = "threshold"\ntheta = {theta}', near
    if kind == "thresholds":
        theta = {name: rng.choice(["next", step, *([0] if axis else [])]) for axis, name in enumerate(names)}
        given = ", ".join(f"{name} = {value!r}" for name, value in theta.items()).replace("'", '"')

        def near_in_one(x: tuple[int, ...], y: tuple[int, ...]) -> bool:
            changes = [abs(a - b) for a, b in zip(x, y, strict=True)]
            return sum(changes) == 1 and all(theta[name] or not each for name, each in zip(names, changes, strict=True))

        return f'kind = "attribute"\ntheta = {{ {given} }}', near_in_one
    if kind == "attribute":
        return 'kind = "attribute"', lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)) == 1
    return 'kind = "full"', lambda x, y: True


def _release(rng: random.Random, kind: str, names: list[str], values: list[list[str]]) -> str:
    """Return a table of the releases."""
    epsilon = rng.choice(["0.1", "1", "5"])
    either = rng.choice([f"epsilon = {epsilon}"] * 2 + [f"rho = {epsilon}"])
    count = int(np.prod([len(each) for each in values]))
    numeric = names[[each[0].isdecimal() for each in values].index(True)] if values[-1][0].isdecimal() else names[0]
    first, last = values[0][0], values[0][rng.randrange(len(values[0]))]
    ends = f"[{first}, {last}]" if first.isdecimal() else f'["{first}", "{last}"]'
    keys = {
        "histogram": either + rng.choice(["", f"\npartition = {{ labels = {[i % 2 for i in range(count)]} }}"]),
        "sum": f'{either}\nattribute = "{numeric}"',
        "cdf": either,
        "quantiles": f"{either}\nprobabilities = [0.25, 0.5]",
        "ranges": f"{either}\nranges = [{ends}]",
        "kmeans": f"epsilon = {epsilon}\nk = {rng.randint(1, 2)}\niterations = {rng.randint(1, 3)}",
        "workload": f"{either}\nmarginals = {[[each] for each in names]}",
    }
    if kind in ("cdf", "quantiles", "ranges") and "epsilon" in keys[kind] and rng.random() < 0.4:
        keys[kind] += f'\nmechanism = "{rng.choice(["ordered", "ordered-hierarchical", "hierarchical"])}"'
    return f'kind = "{kind}"\n{keys[kind]}'


def _neighbour(
    rng: random.Random,
    records: list[tuple[int, ...]],
    sizes: tuple[int, ...],
    joined: Callable[[tuple[int, ...], tuple[int, ...]], bool],
    unbounded: bool,
    known: list[int],
) -> list[tuple[int, ...]]:
    """Return a neighbour of a table, with its rows in a different order; without a neighbour, return the table."""
    other = list(records)
    if unbounded and (not records or rng.random() < 0.5):
        if records and rng.random() < 0.5:
            other.pop(rng.randrange(len(other)))
        else:
            other.append(tuple(rng.randrange(size) for size in sizes))
    elif records:
        for _ in range(50):
            row, value = rng.randrange(len(records)), tuple(rng.randrange(size) for size in sizes)
            counted = [(records[row][0] == each) == (value[0] == each) for each in known]
            if value != records[row] and joined(records[row], value) and all(counted):
                other[row] = value
                break
    rng.shuffle(other)
    return other


def _table(names: list[str], values: list[list[str]], records: list[tuple[int, ...]]) -> str:
    cells = [[listed[code] for listed, code in zip(values, record, strict=True)] for record in records]
    rows = [",".join([*row, f"person {index // 3}"]) for index, row in enumerate(cells)]
    return "\n".join([",".join([*names, "who"]), *rows]) + "\n"


# Histories


def trace_case(rng: random.Random) -> Case:
    """Return a released trace: any mechanism, with and without channels, times, places and a ledger."""
    columns, rows = rng.choice([(2, 2), (3, 2), (3, 3), (4, 1)])
    n = columns * rows
    mechanism = rng.choice(["lp", "planar-isotropic", "laplace", "exponential", "randomised-response"])
    policy = rng.choice(["blocks = 2", "blocks = 3", "neighbours = 4", "neighbours = 8", "complete = true"])
    matrix = np.array([[rng.random() + 0.05 for _ in range(n)] for _ in range(n)])
    matrix /= matrix.sum(axis=1, keepdims=True)
    chain = "\n".join(",".join(map(repr, row)) for row in matrix.tolist()) + "\n"
    transition, files = rng.choice([("{ neighbours = 8 }", {}), ('{ path = "P.csv" }', {"P.csv": chain})])
    text = f"""title = "A trace"
[domain]
grid = {{ columns = {columns}, rows = {rows}, width = {float(columns)}, height = {float(rows)}, unit = "km" }}
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "graph"
epsilon = {rng.choice(["0.5", "1", "3"])}
{policy}
[release]
mechanism = "{mechanism}"
transition = {transition}
"""
    if rng.random() < 0.3:
        text = text.replace("[release]", f"[policy]\ndelta = {rng.choice(['0.1', '0.3'])}\n[release]")
    ledger = rng.random() < 0.5
    if ledger:
        text += '[ledger]\npath = "ledger.json"\nepsilon = 100\n'
    steps = rng.randint(1, 4)
    neighbours = {
        s: [t for t in range(n) if max(abs(s % columns - t % columns), abs(s // columns - t // columns)) <= 1]
        for s in range(n)
    }

    def walk() -> list[int]:
        states = [rng.randrange(n)]
        while len(states) < steps:
            states.append(rng.choice(neighbours[states[-1]]))
        return states

    timed, form = rng.random() < 0.3, rng.choice(["state", "place"])

    def written(states: list[int]) -> str:
        head = ["time"] * timed + (["state"] if form == "state" else ["x", "y"])
        lines = [",".join(head)]
        for step, state in enumerate(states):
            places = [
                f"{state % columns + rng.uniform(0.1, 0.9):.6f}",
                f"{state // columns + rng.uniform(0.1, 0.9):.6f}",
            ]
            row = [f"2024-05-01 10:0{step}:00"] * timed + ([str(state)] if form == "state" else places)
            lines.append(",".join(row))
        return "\n".join(lines) + "\n"

    first, other = walk(), walk()
    if rng.random() < 0.5:
        # In half of the cases, the histories differ at most in the last state; if it is equal, only places within cells
        # differ.
        other = list(first)
        # An impossible next state would be refused visibly, as docs/trust/threat_model.md explains.
        other[-1] = rng.choice(neighbours[other[-2]] if steps > 1 else range(n))
    return Case(
        f"trace, {mechanism}{', timed' * timed}",
        ("release", "s.toml", "t.csv", "-o", "released", *rng.choice([(), ("--channels",), ("--truth", "mine")])),
        {"s.toml": text, **files},
        ({"t.csv": written(first)}, {"t.csv": written(other)}),
    )


# Answers for places


DESIGN = """title = "A city"
[domain]
grid = { columns = 3, rows = 2, width = 3.0, height = 2.0, unit = "km" }
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 1
distance = "euclidean"
"""


def sample_case(rng: random.Random) -> Case:
    """Return answers for a file of places, into a file or on standard output."""
    count = rng.randint(1, 5)

    def written() -> str:
        rows = [f"{rng.uniform(0, 3):.4f},{rng.uniform(0, 2):.4f}" for _ in range(count)]
        return "\n".join(["x,y", *rows]) + "\n"

    options = rng.choice([("-o", "out.csv"), (), ("-n", "3", "-o", "out.csv")])

    def design() -> None:
        Path("s.toml").write_text(DESIGN)
        made = CliRunner().invoke(command, ["design", "s.toml", "-o", "city", "--no-report"])
        assert made.exit_code == 0, made.output

    return Case(
        f"sample{' -n' * ('-n' in options)}",
        ("sample", "city", "--input", "p.csv", *options),
        {},
        ({"p.csv": written()}, {"p.csv": written()}),
        prepare=design,
    )
