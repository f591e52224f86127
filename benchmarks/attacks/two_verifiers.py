"""Check that two verifiers prove random designs, and refuse tampered designs with repaired digests.

    python benchmarks/attacks/two_verifiers.py [--designs 5000] [--tampered 10000] [--seed 0] [--rows FILE] [-o FILE]

The problems have 2 to 10 secrets and cover every kind of requirement and claim, and both objectives. The problems
include forbidden answers, observables other than the secrets, priors with zeros, and designs without multipliers. Each
design is saved and proved by `mechdesign.verify` and by the second verifier, which shares no code with it. In some
designs the script then changes an array entry, a field of certificate.json, a character of channel.csv, or the form of
a file. It repairs all digests, and both verifiers run again. The verifiers must agree: both refuse, or both accept
claims that are still true and list the same unknown keys. Each verifier may take a minute, and must not exceed the
memory limit of this process.

``--rows`` stores a line of JSON for every design, and a stopped run continues there; design i has the seed (seed, i).
The script exits with 1 if a check fails.
"""

from __future__ import annotations

import collections
import copy
import hashlib
import io
import json
import math
import operator
import random
import re
import resource
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import mechdesign as md
from mechdesign.certify import _archive, second_verifier
from mechdesign.certify._stated import Stated
from mechdesign.certify._verify import examine
from mechdesign.model._requirements._kinds import ClaimedPrivacy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Store, options, origin, peak

Files = dict[str, bytes]

# Time limit of each verifier for each bundle, and memory limit of this process.
SECONDS, LIMIT_BYTES = 60, 6 * 2**30


def random_problem(rng: np.random.Generator, most: int = 10) -> md.Problem:
    """Return a small problem that may have any requirement, any cost and any prior."""
    n, m = int(rng.integers(2, most + 1)), int(rng.integers(1, most + 1))
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
    """Return distances of points, or arbitrary distances."""
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
    """Yield a requirement made of explicit claims."""
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


def random_design(rng: np.random.Generator, most: int = 10) -> md.Design | None:
    """Return the design of a random problem, or None if the problem is infeasible or refused."""
    try:
        problem = random_problem(rng, most)
        with warnings.catch_warnings(action="ignore", category=md.errors.RevealedWarning):
            return md.design(problem, solver="highs-simplex", threads=1, tolerance=1e-6, isolated="release")
    except (md.errors.InfeasibleError, md.errors.InputError, md.errors.SolverError):
        return None


def first(folder: Path) -> tuple[str, list[str]]:
    """Return the reason why the first verifier refuses a set (empty if it proves the set), and the unknown keys."""
    try:
        unproved = examine(folder).unproved
    except md.errors.CertificateError as error:
        return error.reason, []
    keys = [part.removeprefix("unknown keys of certificate.json: ") for part in unproved if part.startswith("unknown")]
    return "", ", ".join(keys).split(", ") if keys else []


def second(folder: Path) -> tuple[str, list[str]]:
    """Return the reason why the second verifier refuses a set (empty if it proves the set), and the unknown keys."""
    try:
        lines = second_verifier.prove(folder)
    except MemoryError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}", []
    return "", [line.removeprefix("stated, not proved: ") for line in lines if line.startswith("stated, not proved")]


def timed(judge: Callable[[Path], tuple[str, list[str]]], folder: Path) -> tuple[str, list[str], float]:
    """Return the verdict of a verifier and its time; raise `TimeoutError` after `SECONDS`."""
    start = time.perf_counter()
    signal.alarm(SECONDS)
    try:
        reason, keys = judge(folder)
    finally:
        signal.alarm(0)
    return reason, keys, time.perf_counter() - start


def tampered(files: Files, dice: random.Random) -> tuple[str, Files]:
    """Change one thing in a bundle and repair all digests; also return a description of the change."""
    files, what = dict(files), dice.choice(["array", "array", "array", "field", "field", "table", "form", "form"])
    document = json.loads(files["certificate.json"])
    if what == "form":
        name = dice.choice(list(FORMS))
        FORMS[name](files, document, dice)
        what = f"form: {name}"
        if "no repair" in name:
            return what, files
    elif what == "array":
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


def set_key(*path: Any, value: Any) -> Callable[[Files, dict[str, Any], random.Random], None]:
    """Return a change that sets a key of certificate.json, in the first requirement if the path contains ``first``."""

    def change(_: Files, document: dict[str, Any], __: random.Random) -> None:
        held: Any = document
        for key in path[:-1]:
            if isinstance(held, list) and not held:
                return
            held = held[0] if key == "first" else held[key]
        if isinstance(held, dict):
            held[path[-1]] = value

    return change


def on_table(change: Callable[[bytes], bytes]) -> Callable[[Files, dict[str, Any], random.Random], None]:
    def changed_table(files: Files, _: dict[str, Any], __: random.Random) -> None:
        files["channel.csv"] = change(files["channel.csv"])

    return changed_table


def packed(method: int) -> Callable[[Files, dict[str, Any], random.Random], None]:
    def change(files: Files, _: dict[str, Any], __: random.Random) -> None:
        target = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(files["channel.npz"])) as old, zipfile.ZipFile(target, "w") as new:
            for entry in old.infolist():
                new.writestr(entry.filename, old.read(entry), method)
        files["channel.npz"] = target.getvalue()

    return change


def with_arrays(
    file: str, change: Callable[[dict[str, np.ndarray], random.Random], None]
) -> Callable[[Files, dict[str, Any], random.Random], None]:
    def changed_arrays(files: Files, _: dict[str, Any], dice: random.Random) -> None:
        if file in files:
            arrays = {name: array.copy() for name, array in _archive.unpack(files[file], file).items()}
            change(arrays, dice)
            files[file] = _archive.pack(arrays)

    return changed_arrays


def other_type(arrays: dict[str, np.ndarray], dice: random.Random) -> None:
    name = dice.choice(list(arrays))
    kind = dice.choice(["<i2", "<i4", "<i8", "<u8", "<f4", "<f8", "|b1", "<U4"])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays[name] = arrays[name].astype(kind)


def signed_zeros(arrays: dict[str, np.ndarray], dice: random.Random) -> None:
    floats = [name for name, array in arrays.items() if array.dtype.kind == "f" and array.size]
    array = arrays[dice.choice(floats)].reshape(-1)
    if dice.random() < 0.5:
        array[array == 0] = -0.0
    else:
        array[dice.randrange(array.size)] = -0.0


def longer(files: Files, _: dict[str, Any], dice: random.Random) -> None:
    """Append digits to a number, so that it reads as the same float; the digest is not repaired."""
    text = files["certificate.json"].decode()
    name = dice.choice(["lower_bound", "expected_cost", "worst_cost", "relative_gap", "realised"])
    files["certificate.json"] = re.sub(
        rf'("{name}": [0-9]+\.[0-9]+)', r"\g<1>00000000000000000001", text, count=1
    ).encode()


def state_otherwise(files: Files, document: dict[str, Any], dice: random.Random) -> None:
    """Write the number of a requirement in a different notation with the same value."""
    for entry in document["requirements"][:1]:
        for key in ("epsilon", "minimum", "factor"):
            if key in entry:
                value = Fraction(entry[key])
                ways = [entry[key] + "0", "+" + entry[key], f"{value.numerator}/{value.denominator}", "0" + entry[key]]
                entry[key] = dice.choice(ways)


def unlisted(arrays: dict[str, np.ndarray], dice: random.Random) -> None:
    arrays[dice.choice(["requirement_9_distance", "note", "numerators2", "requirement_"])] = np.zeros(2)


FORMS: dict[str, Callable[[Files, dict[str, Any], random.Random], None]] = {
    "another key at the top": set_key("audited_by", value="x"),
    "another key of a requirement": set_key("requirements", "first", "audited_by", value="x"),
    "another key of the certificate": set_key("certificate", "audited_by", value="x"),
    "another key of a verdict": set_key("certificate", "requirements", "first", "audited_by", value=[1]),
    "a part of 0": set_key("requirements", "first", "part", value=0),
    "a part of 1": set_key("requirements", "first", "part", value=1),
    "a part that is true": set_key("requirements", "first", "part", value=True),
    "a name": set_key("requirements", "first", "name", value="near"),
    "a name in capitals": set_key("requirements", "first", "name", value="NEAR"),
    "a number that is another": set_key("certificate", "requirements", "first", "number", value="factor"),
    "a number that is none": set_key("certificate", "requirements", "first", "number", value="alpha"),
    "a bound that is an integer": set_key("certificate", "lower_bound", value=0),
    "1 for true": set_key("certificate", "holds", value=1),
    "a count that is true": set_key("certificate", "forbidden", value=False),
    "provenance that is null": set_key("certificate", "provenance", "tool", value=None),
    "provenance that is a list": set_key("certificate", "provenance", "tool", value=["x"]),
    "metadata of another kind": set_key("metadata", value=["x"]),
    "more metadata": set_key("metadata", "more", value=[{"x": 1.5}]),
    "a digest of no array": set_key("arrays", "channel.npz", "note", value="x"),
    "another schema": set_key("schema", value="mechdesign-certificate/1"),
    "lines that end in two characters": on_table(lambda text: text.replace(b"\n", b"\r\n")),
    "quotes in the table": on_table(lambda text: re.sub(rb"(?m)^([^,\n]*),", rb'"\1",', text)),
    "a zero more in the table": on_table(lambda text: re.sub(rb"(0\.[0-9]+)", rb"\g<1>0", text, count=1)),
    "an empty line more in the table": on_table(lambda text: text + b"\n"),
    "bzip2": packed(zipfile.ZIP_BZIP2),
    "lzma": packed(zipfile.ZIP_LZMA),
    "not compressed": packed(zipfile.ZIP_STORED),
    "another type of an array": with_arrays("channel.npz", other_type),
    "another type of multipliers": with_arrays("dual.npz", other_type),
    "zeros with a sign": with_arrays("channel.npz", signed_zeros),
    "an array that is not listed": with_arrays("channel.npz", unlisted),
    "an array of the dual that is not listed": with_arrays("dual.npz", unlisted),
    "an exponent without end": with_arrays("channel.npz", lambda arrays, _: arrays.update(exponent=np.array(2**40))),
    "labels that are not texts": with_arrays(
        "channel.npz", lambda arrays, _: arrays.update(secrets=np.linspace(0, 1, len(arrays["prior"])))
    ),
    "labels that are alike": with_arrays(
        "channel.npz", lambda arrays, _: arrays.update(secrets=np.array(["a"] * len(arrays["prior"])))
    ),
    "longer decimals (no repair)": longer,
    "a number that is stated otherwise": state_otherwise,
}
"""Changes of the form of files, after which the claims may still be true."""


def changed(array: np.ndarray, name: str, dice: random.Random) -> np.ndarray:
    """Return an array with one changed entry, or with one entry if it was empty."""
    if not array.size:
        return np.zeros(1, dtype=array.dtype)
    place = dice.randrange(array.size)
    flat = array.reshape(-1)
    if array.dtype.kind == "U":
        flat[place] = dice.choice(["x", "1", ""])
    elif name == "numerators" and dice.random() < 0.9:
        # Move mass within a row, so that the row still sums to 1.
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
    """Repair all digests, as an attacker who knows the format would."""
    document = copy.deepcopy(document)
    for name in document["files"]:
        document["files"][name] = hashlib.sha256(files[name]).hexdigest()
        if name in document["arrays"]:
            known = document["arrays"][name]
            document["arrays"][name] = {key: value for key, value in known.items() if value == "x"} | digests(
                files[name]
            )
    document.pop("digest")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    files["certificate.json"] = json.dumps({**document, "digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


def digests(content: bytes) -> dict[str, str]:
    """Return the digests of the arrays of an archive, which do not depend on its compression."""
    found = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for name in archive.namelist():
            array = np.lib.format.read_array(io.BytesIO(archive.read(name)))
            found[name.removesuffix(".npy")] = _archive.digest(array)
    return found


def same(lie: Files, files: Files) -> bool:
    """Return whether a tampered set still has the same contents."""
    documents = (json.loads(each["certificate.json"]) for each in (lie, files))
    return all(lie[name] == files[name] for name in files if name != "certificate.json") and operator.eq(*documents)


def put(folder: Path, files: Files) -> None:
    for path in folder.iterdir():
        path.unlink()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def judged(number: int, seed: int, count: int, folder: Path, most: int = 10) -> dict[str, Any]:
    """Return the verdicts of both verifiers on one design and on `count` tampered ones, as JSON values."""
    rng, dice = np.random.default_rng([seed, number]), random.Random(f"{seed} {number}")
    refused, made = 0, None
    while made is None:
        made = random_design(rng, most)
        refused += made is None
    put(folder, {})
    md.save(made, folder, report=False)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    kinds = sorted({requirement.kind for requirement in made.problem.requirements} | {f"{made.problem.objective} cost"})
    found: dict[str, Any] = {"number": number, "refused": refused, "kinds": kinds, "secrets": len(made.problem.prior)}
    wrong, verdicts, slowest = [], [], [0.0, 0.0]
    tries: list[tuple[str, Files]] = [("nothing", files)]
    while len(tries) <= count:
        what, lie = tampered(files, dice)
        if not same(lie, files):
            tries.append((re.sub("[0-9]+", "i", what), lie))
    for what, content in tries:
        put(folder, content)
        try:
            (one, keys, taken), (other, others, longer_taken) = timed(first, folder), timed(second, folder)
        except (TimeoutError, MemoryError) as error:
            wrong.append(f"{what}: {type(error).__name__}")
            continue
        slowest = [max(slowest[0], taken), max(slowest[1], longer_taken)]
        if bool(one) != bool(other) or keys != others or (what == "nothing" and one):
            wrong.append(f"{what}: first {one or 'accepts'} {keys}; second {other or 'accepts'} {others}")
        if what != "nothing":
            verdicts.append([what, bool(one), bool(other)])
    return {**found, "verdicts": verdicts, "wrong": wrong, "seconds": [round(value, 3) for value in slowest]}


def out_of_time(*_: object) -> None:
    """Raise an error that stops a verifier after the time limit."""
    raise TimeoutError


def main() -> int:
    """Design, tamper, and let both verifiers judge."""
    arguments = options(__doc__, designs=5_000, tampered=10_000, seed=0, rows=Path, output=Path)
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, LIMIT_BYTES))
    signal.signal(signal.SIGALRM, out_of_time)
    store = Store(arguments.rows, "number")
    with tempfile.TemporaryDirectory() as name:
        for number in range(len(store.rows), arguments.designs):
            share = (
                arguments.tampered * (number + 1) // arguments.designs
                - arguments.tampered * number // arguments.designs
            )
            store.add(judged(number, arguments.seed, share, Path(name)))
    text = report(store.rows, arguments.seed)
    print(text)
    if arguments.output:
        arguments.output.write_text(f"{text}\n{origin()}\n", encoding="utf-8")
    return 1 if any(row["wrong"] for row in store.rows) else 0


def report(rows: list[dict[str, Any]], seed: int) -> str:
    """Return the findings as lines of text."""
    kinds = collections.Counter(kind for row in rows for kind in row["kinds"])
    verdicts = [(what, one, other) for row in rows for what, one, other in row["verdicts"]]
    counted = collections.Counter(
        "refused by both" if one and other else f"accepted by both: {what}"
        for what, one, other in verdicts
        if one == other
    )
    wrong = [f"design {row['number']}: {each}" for row in rows for each in row["wrong"]]
    slowest = [max(row["seconds"][place] for row in rows) for place in (0, 1)]
    said = [f"{len(rows)} designs of 2 to {max(row['secrets'] for row in rows)} secrets, seed {seed}"]
    said.append(f"{sum(row['refused'] for row in rows)} problems that are infeasible or refused")
    said += [f"with {name}: {count}" for name, count in sorted(kinds.items())]
    said.append(f"{len(verdicts)} tampered sets, all digests repaired:")
    said += [f"  {count} {name}" for name, count in sorted(counted.items())]
    said.append(
        f"slowest: {slowest[0]:.2f} s of the first verifier, {slowest[1]:.2f} s of the second; {SECONDS} s allowed"
    )
    allowed = f"{LIMIT_BYTES / 2**20:.0f} MiB allowed"
    said.append(f"most memory of the process that said this: {peak() / 2**20:.0f} MiB; {allowed}")
    return "\n".join([*said, f"{len(wrong)} disagreements", *wrong])


if __name__ == "__main__":
    raise SystemExit(main())
