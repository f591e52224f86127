"""Let two verifiers prove random designs, and refuse what somebody changed in them and repaired all digests of.

    python benchmarks/two_verifiers.py [--designs 10000] [--tampered 10000] [--seed 0] [-o FILE]

Every kind of requirement and of claim, both objectives, forbidden answers, other observables than secrets, priors with
zeros, and designs with and without multipliers are among the problems. Each design is saved and proved by
`mechdesign.verify` and by the second verifier, which shares no code with it. In some of them one entry of an array, one
field of certificate.json or one character of channel.csv is then changed, all digests are made to fit again, and both
verifiers look again. What may be accepted is what is still true: a change of what no claim rests on by both, and, by
the second verifier alone, a number that bounds what it is to bound, but is not the one that the first would have
written: a lower bound below what the multipliers prove, an ε one float above the least, or 0.50 for 0.5 in
channel.csv. The first verifier never accepts what the second refuses. Exits with 1 if any of this fails.
"""

from __future__ import annotations

import argparse
import collections
import copy
import csv
import hashlib
import io
import json
import math
import operator
import random
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import mechdesign as md
from mechdesign.certify import _archive, second_verifier
from mechdesign.certify.stated import Stated
from mechdesign.requirements.claimed import ClaimedPrivacy

Files = dict[str, bytes]

# What the first verifier says of a bound that holds, though it is not the one that it would have written.
TRUE_STILL = ("claims lower_bound", "claims relative_gap")


def random_problem(rng: np.random.Generator) -> md.Problem:
    """Return a small problem that may have any requirement, any cost and any prior."""
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    counts = rng.integers(0, 6, n) if rng.random() < 0.4 else rng.random(n)
    prior = md.Prior.from_counts(counts + (counts.sum() == 0))
    cost = (
        rng.integers(0, 5, (n, m)).astype(float)
        if rng.random() < 0.5
        else rng.random((n, m)) * 10.0 ** rng.integers(-3, 4)
    )
    if rng.random() < 0.2:
        cost[:, : m - 1][rng.random((n, m - 1)) < 0.15] = np.inf
    makers = [metric, threshold, graph, distortion, claimed]
    chosen = rng.choice(len(makers), int(rng.integers(1, 4)), replace=False)
    requirements = [made for place in chosen for made in makers[place](rng, n, cost)]
    return md.Problem(prior, cost, requirements, "worst" if rng.random() < 0.4 else "expected")


def number(rng: np.random.Generator, low: float, high: float) -> Any:
    """Return a number as users write it: a decimal, a fraction or a float."""
    value = float(rng.uniform(low, high))
    return [f"{value:.3g}", Fraction(value).limit_denominator(7) or Fraction(1, 7), value][int(rng.integers(3))]


def distances(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return distances of points, or any others."""
    points = rng.random((n, 2)) * 3
    found = md.distances.euclidean(points) if rng.random() < 0.6 else rng.integers(0, 4, (n, n)).astype(float)
    np.fill_diagonal(found := found.copy(), 0)
    if rng.random() < 0.2:
        found[rng.random((n, n)) < 0.2] = np.inf
    return found


def metric(rng: np.random.Generator, n: int, cost: np.ndarray) -> Iterator[Any]:
    yield md.MetricPrivacy(number(rng, 0.05, 3), distances(rng, n))


def threshold(rng: np.random.Generator, n: int, cost: np.ndarray) -> Iterator[Any]:
    yield md.ThresholdPrivacy(number(rng, 0.05, 3), distances(rng, n), number(rng, 0.5, 2))


def graph(rng: np.random.Generator, n: int, cost: np.ndarray) -> Iterator[Any]:
    yield md.GraphPrivacy(
        number(rng, 0.05, 3), nx.path_graph(n) if rng.random() < 0.5 else nx.gnp_random_graph(n, 0.5, seed=1)
    )


def distortion(rng: np.random.Generator, n: int, cost: np.ndarray) -> Iterator[Any]:
    yield md.DistortionPrivacy(number(rng, 0, 0.3), 1 - np.eye(n) if rng.random() < 0.5 else rng.random((n + 1, n)))


def claimed(rng: np.random.Generator, n: int, cost: np.ndarray) -> Iterator[Any]:
    """Yield a requirement made of claims in the open."""
    k = int(rng.integers(1, 5))
    pairs = rng.integers(0, n, (k, 2))
    bottoms = rng.integers(1, 10, k)
    forms = [
        Stated.pairs(
            "near", Fraction(str(round(rng.uniform(0.1, 2), 2))), pairs, rng.random(k) * rng.integers(0, 3, k)
        ),
        Stated.ratios("ratio", Fraction(int(rng.integers(1, 4))), pairs, bottoms + rng.integers(0, 10, k), bottoms),
        Stated.floor(
            "doubt", Fraction(int(rng.integers(0, 4)), 20), 1.0 - np.eye(n), md.Prior.from_counts(rng.random(n))
        ),
    ]
    yield ClaimedPrivacy([forms[int(rng.integers(3))]], n)


def random_design(rng: np.random.Generator) -> md.Design | None:
    """Return the design of a random problem, or None where it is infeasible or refused."""
    problem = random_problem(rng)
    try:
        with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
            return md.design(problem, solver="highs-simplex", threads=1, tolerance=1e-6, isolated="release")
    except (md.errors.InfeasibleError, md.errors.InputError, md.errors.SolverError):
        return None


def first(folder: Path) -> str:
    """Return why the first verifier refuses a set, empty where it proves it."""
    try:
        md.verify(folder)
    except md.errors.CertificateError as error:
        return error.reason
    return ""


def second(folder: Path) -> str:
    """Return why the second verifier refuses a set, empty where it proves it."""
    try:
        second_verifier.prove(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def tampered(files: Files, dice: random.Random) -> tuple[str, Files]:
    """Change one field of a set and make all digests fit again; return what was changed, too."""
    files, what = dict(files), dice.choice(["array", "array", "array", "field", "field", "table"])
    document = json.loads(files["certificate.json"])
    if what == "array":
        file = dice.choice([name for name in ("channel.npz", "dual.npz") if name in files])
        arrays = {name: array.copy() for name, array in _archive.unpack(files[file], file).items()}
        name = dice.choice([name for name, array in arrays.items() if array.size] or list(arrays))
        arrays[name] = changed(arrays[name], name, dice)
        files[file] = _archive.pack(arrays)
        what = f"{file} {name}"
    elif what == "table":
        content = bytearray(files["channel.csv"])
        place = dice.randrange(len(content))
        content[place] = dice.choice([byte for byte in b"0123456789.,\n" if byte != content[place]])
        files["channel.csv"] = bytes(content)
        what = "channel.csv"
    else:
        what = "certificate.json " + change_field(document, dice)
    repair(files, document)
    return what, files


def changed(array: np.ndarray, name: str, dice: random.Random) -> np.ndarray:
    """Return an array with another entry, or one entry more where it has none."""
    if not array.size:
        return np.zeros(1, dtype=array.dtype)
    place = dice.randrange(array.size)
    flat = array.reshape(-1)
    if array.dtype.kind == "U":
        flat[place] = dice.choice(["x", "1", ""])
    elif name == "numerators" and dice.random() < 0.9:
        # The rows go on to sum to 1.
        row, columns = place // array.shape[1], array.shape[1]
        to = row * columns + dice.randrange(columns)
        amount = min(int(flat[place]), dice.choice([1, 2**10, 2**30, 2**50, 2**60]))
        flat[place] -= amount
        flat[to] += amount
    elif array.dtype.kind == "i":
        flat[place] = max(0, int(flat[place]) + dice.choice([-1, 1, 2]))
    else:
        value = float(flat[place])
        choices = [math.nextafter(value, math.inf), math.nextafter(value, 0), value * (1 + 1e-9), value * 0.999]
        flat[place] = dice.choice([*choices, value * 2, value + 0.1, 0.0, 1.0, math.inf, -value])
    return array


def change_field(document: dict[str, Any], dice: random.Random) -> str:
    """Change one number, text or truth value of a document; return its path."""
    leaves: list[tuple[Any, Any, str]] = []

    def visit(value: Any, path: str) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, dict | list):
                visit(inner, f"{path}.{key}")
            else:
                leaves.append((value, key, f"{path}.{key}"))

    for part in ("requirements", "certificate", "objective", "schema"):
        if isinstance(document[part], str):
            leaves.append((document, part, part))
        else:
            visit(document[part], part)
    holder, key, path = dice.choice([leaf for leaf in leaves if ".provenance" not in leaf[2]])
    value = holder[key]
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float):
        choices = [
            math.nextafter(value, math.inf),
            math.nextafter(value, -math.inf),
            value * 0.999,
            value * 1.001,
            value + 1,
        ]
        holder[key] = type(value)(dice.choice([choice for choice in choices if choice != value]))
    elif isinstance(value, str) and value[:1].isdigit():
        digits = [place for place, letter in enumerate(value) if letter.isdigit()]
        place = dice.choice(digits)
        holder[key] = value[:place] + str((int(value[place]) + dice.randrange(1, 10)) % 10) + value[place + 1 :]
    else:
        holder[key] = dice.choice(["worst", "expected", "metric", "graph", "x", "1", 1, None, "inf"])
    return path


def repair(files: Files, document: dict[str, Any]) -> None:
    """Make all digests fit, as whoever knows the format would."""
    document = copy.deepcopy(document)
    for name in document["files"]:
        document["files"][name] = hashlib.sha256(files[name]).hexdigest()
        if name in document["arrays"]:
            held = _archive.unpack(files[name], name)
            document["arrays"][name] = {key: _archive.digest(array) for key, array in held.items()}
    document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    files["certificate.json"] = json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


def same(lie: Files, files: Files) -> bool:
    """Tell whether nothing was changed after all."""
    documents = (json.loads(each["certificate.json"]) for each in (lie, files))
    return all(lie[name] == files[name] for name in files if name != "certificate.json") and operator.eq(*documents)


def true_still(what: str, reason: str, lie: Files, files: Files) -> bool:
    """Tell whether what the first verifier refuses for this reason is true, only not what it would have written."""
    if what == "channel.csv":
        return numbers_of(lie) == numbers_of(files)
    return any(words in reason for words in TRUE_STILL) or (what.endswith(".realised") and "claims" in reason)


def numbers_of(files: Files) -> list[list[Fraction | str]]:
    """Return the cells of channel.csv, probabilities as fractions."""
    table = list(csv.reader(io.StringIO(files["channel.csv"].decode(), newline="")))
    return [list(table[0]), *([row[0], *map(Fraction, row[1:])] for row in table[1:])]


def put(folder: Path, files: Files) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def main() -> int:
    """Design, tamper, and let both verifiers judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--designs", type=int, default=10_000)
    parser.add_argument("--tampered", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    rng, dice, clock = np.random.default_rng(arguments.seed), random.Random(arguments.seed), time.perf_counter()
    warnings.simplefilter("ignore", md.errors.MetricWarning)
    proved: collections.Counter[str] = collections.Counter()
    kinds: collections.Counter[str] = collections.Counter()
    verdicts: collections.Counter[str] = collections.Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        while proved["designs"] < arguments.designs:
            made = random_design(rng)
            if made is None:
                proved["problems that are infeasible or refused"] += 1
                continue
            put(folder, {})
            made.save(folder, report=False)
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
            proved["designs"] += 1
            problem = made.problem
            kinds.update({requirement.kind for requirement in problem.requirements} | {f"{problem.objective} cost"})
            for reason in (first(folder), second(folder)):
                if reason:
                    wrong.append(f"design {proved['designs']} is refused: {reason}")
            while verdicts.total() * arguments.designs < proved["designs"] * arguments.tampered:
                what, lie = tampered(files, dice)
                if same(lie, files):
                    continue
                put(folder, lie)
                one, other = first(folder), second(folder)
                if one and other:
                    verdicts["refused by both"] += 1
                elif one or other:
                    verdicts["refused by the first alone" if one else "refused by the second alone"] += 1
                else:
                    verdicts[f"accepted by both: {re.sub('[0-9]+', 'i', what)}"] += 1
                if other and not one:
                    wrong.append(f"only the second refuses a change of {what}: {other}")
                if one and not other and not true_still(what, one, lie, files):
                    wrong.append(f"only the first refuses a change of {what}: {one}")
            if proved["designs"] % 500 == 0:
                print(dict(proved), dict(verdicts), len(wrong), flush=True)
    report = [f"{count} {name}" for name, count in sorted(proved.items())]
    report += [f"with {name}: {count}" for name, count in sorted(kinds.items())]
    report += [f"{verdicts.total()} tampered sets, all digests repaired:"]
    report += [f"  {count} {name}" for name, count in sorted(verdicts.items())]
    report += [f"{len(wrong)} disagreements, in {time.perf_counter() - clock:.0f} s", *wrong]
    text = "\n".join(report)
    print(text)
    if arguments.output:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
