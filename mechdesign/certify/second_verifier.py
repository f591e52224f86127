"""Prove a bundle a second time, slowly, in integers and fractions: ``python second_verifier.py DIR``.

This file needs Python and nothing else: copy it wherever bundles are to be audited. It reads what
docs/reference/bundle.md describes, believes none of it, and exits with 0 if it can show that

- all digests fit, every row of the channel sums to 1, and channel.csv holds the same numbers under the same labels;
- every bound on pairs, p(o|s) <= g p(o|t), and every floor on the expected error of the best attack is kept;
- the secrets that the certificate calls revealed are those, and only those, with an answer that no other secret gives;
- costs, gap, the least ε and factors, and errors are those that the certificate states, rounded as it says;
- the multipliers prove a lower bound of the cost that is not below the one stated.

Not looked at: what labels mean, places, title, report.html and provenance.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
import struct
import sys
import zipfile
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from operator import mul
from pathlib import Path
from typing import Any

DECIMAL = re.compile(r"-?[0-9.]{1,4000}([eE][+-]?[0-9]{1,4})?|[0-9]{1,4000}/[0-9]{1,4000}")
# What each kind of requirement calls its number; those in NAMED bear a name of their own.
NAMED = {"pairs": "epsilon", "ratios": "factor", "floor": "minimum", "dithered": "epsilon"}
NUMBERS = {"metric": "epsilon", "threshold": "epsilon", "graph": "epsilon", "distortion": "minimum", **NAMED}


def prove(folder: Path) -> list[str]:
    """Return what is proved of the bundle in `folder`, line by line; raise an exception where anything is not."""
    document, channel, dual = read(folder)
    stated, objective = document["certificate"], document["objective"]
    rows, prior, cost = (take(channel, name) for name in ("numerators", "prior", "cost"))
    n, m, one = len(rows), len(rows[0]), 1 << take(channel, "exponent")
    need(2 <= one <= 2**62 and all(sum(row) == one for row in rows), "all rows of the channel sum to 1")
    need(len(cost) == len(prior) == n and all(len(row) == m and min(row) < math.inf for row in cost), "costs fit")
    forbidden = [rows[s][o] for s in range(n) for o in range(m) if cost[s][o] == math.inf]
    need(not any(forbidden) and len(forbidden) == stated["forbidden"], "forbidden answers are counted, and not given")
    if (folder / "channel.csv").exists():
        text = (folder / "channel.csv").read_bytes().decode()
        (corner, *columns), *table = csv.reader(io.StringIO(text, newline=""), strict=True)
        numbers = [[exact(cell) * one for cell in cells] for _, *cells in table]
        need(corner == "secret" and numbers == rows, "channel.csv holds the channel")
        for name, found in (("secrets", [line[0] for line in table]), ("observables", columns)):
            labels = take(channel, name) if name in channel else range(len(found))
            need(found == list(map(str, labels)), f"channel.csv and channel.npz name the same {name}")
    need((stated["holds"], stated["reason"], stated["pair"]) == (True, "", None), "the certificate holds")
    need(stated["objective"] == objective in ("expected", "worst"), "the objective is the one certified")

    # Earlier versions did not say it. Texts are compared, since true and 1.0 are equal to 1.
    alone = revealed(rows)
    need(repr(stated.get("revealed", alone)) == repr(alone), f"the secrets revealed for certain are {alone}")

    lines, claims = [], []
    for index, (entry, found) in enumerate(zip(document["requirements"], stated["requirements"], strict=True)):
        kind, radius, realised = entry["kind"], entry.get("radius", ""), found["realised"]
        name, symbol = entry["name"] if kind in NAMED else kind, NUMBERS[kind]
        number = exact(entry[symbol])
        what = f"{name} privacy, {symbol} {entry[symbol]}" + (f", radius {radius}" if radius else "")
        own = kind not in NAMED or name not in NUMBERS or (kind, name) == ("floor", "distortion")
        need(own, f"{name} is not the name of another kind")
        claimed = found["kind"], found["nominal"], found["radius"], found.get("number", symbol), found["holds"]
        need(claimed == (name, entry[symbol], radius, symbol, True), f"{what}, is certified")
        prefix = f"requirement_{index}_"
        arrays = {key.removeprefix(prefix): array for key, array in channel.items() if key.startswith(prefix)}
        if symbol == "minimum":
            belief = take(arrays, "prior") if kind == "floor" and "prior" in arrays else prior
            errors = take(arrays, "error")
            need(errors and all(len(row) == len(belief) == n for row in errors), f"errors are of {n} secrets")
            joint = [list(map(mul, belief, column)) for column in zip(*rows, strict=True)]
            error = sum(min(sum(map(mul, column, row)) for row in errors) for column in joint) / Fraction(one)
            need(error >= number and is_least(-realised, -error), f"{what}, is kept: the error is {float(error)}")
            claims.append((symbol, number, belief, errors))
        elif kind == "dithered":
            slope, power = steepest(entry, rows), 2 if exact(entry["norm"]) == 2 else 1
            less = realised * (1 - Fraction(1, 10**12))
            need(number > 0 and slope <= number**power, f"{what}, is kept between all points")
            need(slope <= realised**power and (less == 0 or slope > less**power), f"{what}, has its least ε")
            claims.append((symbol, number, None, []))
        else:
            pairs = bounds(kind, entry, arrays, n)
            ratios = [(largest_ratio(rows[s], rows[t]), w) for s, t, w in pairs]
            less = Fraction(repr(max(0.0, math.nextafter(math.nextafter(float(realised), 0), 0))))
            need(number > 0 and keeps(ratios, symbol, number), f"{what}, is kept")
            need(keeps(ratios, symbol, realised), f"{what}, is kept with {float(realised)}")
            need(less == 0 or not keeps(ratios, symbol, less), f"{what}, is kept with no less than {float(realised)}")
            claims.append((symbol, number, None, pairs))
        lines.append(f"{what}: realised {float(realised)}")

    each = [sum(rows[s][o] * cost[s][o] for o in range(m) if rows[s][o]) / Fraction(one) for s in range(n)]
    costs = {"expected": sum(map(mul, prior, each)), "worst": max(each)}
    for name, value in costs.items():
        need(is_least(stated[f"{name}_cost"], value), f"the {name} cost is the one stated")
        text = stated[f"{name}_cost_text"]
        unit = Fraction(10) ** (Decimal(text).adjusted() - 29)
        need(0 <= exact(text) - value < unit, f"the {name} cost is {text}, to 30 digits and rounded up")
    value, lower = costs[objective], stated["lower_bound"]
    need(0 <= lower <= lower_bound(objective, prior, cost, claims, dual), f"no channel costs less than {float(lower)}")
    scale = max(value, max(c for row in cost for c in row if c < math.inf) / 10**9)
    need(is_least(stated["relative_gap"], (value - lower) / scale if scale else Fraction(0)), "the gap is as stated")
    told = f"; revealed for certain: secrets {alone}" if alone else ""
    return [*lines, f"{objective} cost {float(value)}; no channel costs less than {float(lower)}{told}"]


def revealed(rows: list[list[int]]) -> list[int]:
    """Return the secrets s, ascending, with an answer o such that p(o|s) > 0 and p(o|t) = 0 for all others t."""
    givers = ([s for s, number in enumerate(column) if number] for column in zip(*rows, strict=True))
    return sorted({found[0] for found in givers if len(found) == 1})


def bounds(kind: str, entry: dict[str, Any], arrays: dict[str, Any], n: int) -> list[tuple[int, int, Fraction]]:
    """Return the pairs (s, t) that a requirement bounds, each with w: the factor is e^(ε·w), or factor·w."""
    if kind in ("metric", "threshold"):
        distance = take(arrays, "distance")
        need(len(distance) == n and all(len(row) == n for row in distance), f"distances are between {n} secrets")
        # A distance of 0.1 is within a radius of 0.1: the radius counts as the float next to it.
        far = float(exact(entry["radius"])) if kind == "threshold" else sys.float_info.max
        pairs = [(s, t, d) for s, row in enumerate(distance) for t, d in enumerate(row) if s != t and d <= far]
        return pairs if kind == "metric" else [(s, t, Fraction(1)) for s, t, _ in pairs]
    if kind == "graph":
        pairs = [(s, t, Fraction(1)) for a, b in take(arrays, "edges") for s, t in ((a, b), (b, a)) if s != t]
    else:
        names = ["weights"] if kind == "pairs" else ["numerators", "denominators"]
        weights = map(Fraction, *(take(arrays, name) for name in names))
        pairs = [(s, t, w) for (s, t), w in zip(take(arrays, "pairs"), weights, strict=True)]
        need(kind == "pairs" or all(exact(entry["factor"]) * w >= 1 for _, _, w in pairs), "factors are at least 1")
    need(all(s < n and t < n for s, t, _ in pairs), f"pairs are among {n} secrets")
    return pairs


def steepest(entry: dict[str, Any], rows: list[list[int]]) -> Fraction:
    """Return the largest norm of the slope of ln p(o|x) between anchors, its square for the Euclidean one.

    It is found at an anchor, from the neighbours along x and along y; docs/theory/continuous.md says why.
    """
    columns, lines, norm, hx, hy = (exact(entry[key]) for key in ("columns", "rows", "norm", "step_x", "step_y"))
    need(columns * lines == len(rows) and min(columns, lines) >= 2 and min(hx, hy) > 0, "anchors are the secrets")
    need({columns.denominator, lines.denominator} == {1} and norm in (0, 1, 2), "anchors and norm are whole numbers")
    slopes, across = [Fraction(0)], int(columns)
    for here in range(len(rows)):
        i, j = here % across, here // across
        beside = [here + step for step in (-1, 1) if 0 <= i + step < columns]
        above = [here + step * across for step in (-1, 1) if 0 <= j + step < lines]
        for f, *others in zip(rows[here], *(rows[place] for place in (*beside, *above)), strict=True):
            need(f or not any(others), "no 0 beside a number")
            along_x = max(abs(other - f) for other in others[: len(beside)]) / (hx * f) if f else 0
            along_y = max(abs(other - f) for other in others[len(beside) :]) / (hy * f) if f else 0
            norms = along_x + along_y, max(along_x, along_y), along_x**2 + along_y**2
            slopes.append(max(slopes.pop(), Fraction(norms[int(norm)])))
    return slopes[0]


def lower_bound(objective: str, prior: Any, cost: Any, claims: Any, dual: Any) -> Fraction:
    """Return Σ T·D + Σ_s min_o r[s,o], divided by Σ w for the worst cost, or 0 if that is more; D are the floors.

    r[s,o] = w_s c(s,o) - Σ g y(t,s,o) + Σ y(s,t,o) - Σ π_s q(ŝ,o) a(ŝ,s) and T = min_o Σ_ŝ q(ŝ,o), with multipliers y
    and q, and weights w: the prior unless the worst cost has its own. docs/theory/proof.md says why it is a bound.
    """
    total = Fraction(0)
    weights = take(dual, "weights") if objective == "worst" and dual and "weights" in dual else prior
    r = [[w * c if c < math.inf else math.inf for c in row] for w, row in zip(weights, cost, strict=True)]
    for index, (symbol, number, belief, rows) in enumerate(claims if dual is not None else []):
        names = ["estimates"] if symbol == "minimum" else ["sources", "targets"]
        multipliers = [take(dual, f"requirement_{index}_{name}") for name in [*names, "observables", "values"]]
        if symbol == "minimum":
            attack = [Fraction(0)] * len(cost[0])
            for guess, o, q in zip(*multipliers, strict=True):
                attack[o] += q
                for s, (p, a) in enumerate(zip(belief, rows[guess], strict=True)):
                    r[s][o] -= p * q * a
            total += min(attack) * number
            continue
        # Of several bounds on a pair the last one here, the least, counts.
        least = {(s, t): w for s, t, w in sorted(rows, key=lambda row: row[2], reverse=True)}
        for s, t, o, y in zip(*multipliers, strict=True):
            x = number * least[s, t]
            # Where e^x is larger than every float the multiplier counts as 0, which is as good as any.
            if symbol == "factor" or x < 709.8:
                r[s][o] += y
                r[t][o] -= y * (x if symbol == "factor" else Fraction(exp_bounds(x, 256)[1], 1 << 256))
    total += Fraction(sum(min(row) for row in r))
    return max(Fraction(0), total / sum(weights) if objective == "worst" else total)


def largest_ratio(above: list[int], below: list[int]) -> Fraction | float:
    """Return the largest ratio of two entries, infinite where the lower one alone is 0; 0/0 counts as 0."""
    ratios = (Fraction(x, y) if y else math.inf for x, y in zip(above, below, strict=True) if x)
    return max(ratios, default=Fraction(0))


def keeps(ratios: list[tuple[Fraction | float, Fraction]], symbol: str, number: Fraction) -> bool:
    """Tell whether no ratio is above its factor, e^(number·w) or number·w."""
    return number >= 0 and not any(is_above(ratio, symbol, number * w) for ratio, w in ratios)


def is_above(ratio: Fraction | float, symbol: str, x: Fraction) -> bool:
    """Tell whether a ratio of numbers up to 2^62 is above x, or above e^x, which is irrational unless x = 0."""
    if symbol == "factor":
        return ratio > x
    if ratio <= 1 or ratio == math.inf or x >= 62:
        return ratio > (1 if x < 62 else 2**62)
    bits = 128
    while True:
        lower, upper = (Fraction(bound, 1 << bits) for bound in exp_bounds(x, bits))
        if not lower < ratio <= upper:
            return ratio > upper
        bits *= 2


@lru_cache(None)
def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with lower <= e^x · 2^bits <= upper for x >= 0: Taylor's series of e^(x/2^k), squared k times.

    As x/2^k < 1/2, the terms left out are together less than the last one. Everything is computed twice, rounded down
    and rounded up.
    """
    k = math.ceil(x).bit_length() + 1
    places, found = bits + 2 * k + 32, []
    for up in (0, 1):
        r = (x.numerator << places) // (x.denominator << k) + up
        total, term, i = 1 << places, 1 << places, 0
        while term > up:
            i += 1
            term = term * r // (i << places) + up
            total += term
        total += up
        for _ in range(k):
            total = (total * total >> places) + up
        found.append((total >> places - bits) + up)
    return found[0], found[1]


def read(folder: Path) -> tuple[Any, dict[str, Any], dict[str, Any] | None]:
    """Return certificate.json and the arrays (type, shape, bytes) of channel.npz and dual.npz; all digests fit."""
    text = (folder / "certificate.json").read_text("utf-8")
    document, plain = json.loads(text, parse_float=exact, object_pairs_hook=unique), json.loads(text)
    digest = plain.pop("digest")
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    need(sha256(canonical.encode()).hexdigest() == digest, "certificate.json fits its digest")
    need(document["schema"] in ("mechdesign-certificate/1", "mechdesign-certificate/2"), "the schema is known here")
    archives: dict[str, dict[str, Any]] = {}
    for file, recorded in document["files"].items():
        need(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", file), f"{file} is a plain name")
        content = (folder / file).read_bytes()
        need(sha256(content).hexdigest() == recorded, f"{file} fits its digest")
        if file in ("channel.npz", "dual.npz"):
            archives[file] = unpack(content, document["arrays"][file])
    return document, archives["channel.npz"], archives.get("dual.npz")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object none of whose keys occurs twice."""
    need(len(dict(pairs)) == len(pairs), "no key occurs twice")
    return dict(pairs)


def unpack(content: bytes, digests: dict[str, str]) -> dict[str, Any]:
    """Return type, shape and bytes of every array of an archive."""
    arrays: dict[str, Any] = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        need(sum(entry.file_size for entry in archive.infolist()) <= max(2**28, 100 * len(content)), "sizes are sane")
        for entry in archive.infolist():
            npy, name = archive.read(entry), entry.filename.removesuffix(".npy")
            start = 10 + int.from_bytes(npy[8:10], "little")
            header = ast.literal_eval(npy[10:start].decode())
            kind, shape = header["descr"], header["shape"]
            need(npy.startswith(b"\x93NUMPY\x01\x00") and not header["fortran_order"], f"{name} is a plain array")
            digest = sha256(f"{kind} {shape} ".encode() + npy[start:]).hexdigest()
            need(digest == digests[name] and name not in arrays, f"{name} fits its digest, and occurs once")
            arrays[name] = kind, shape, npy[start:]
    return arrays


def take(arrays: dict[str, Any], name: str) -> Any:
    """Return the entries of an array, row by row: none is negative, and floats become fractions, or stay infinite."""
    kind, shape, content = arrays[name]
    if kind[1] == "U":
        texts = struct.unpack(f"{4 * int(kind[2:])}s" * math.prod(shape), content)
        return [text.decode("utf-32-le").rstrip("\0") for text in texts]
    code = {"<i8": "q", "<i4": "i", "<f8": "d"}[kind]
    values: list[Any] = list(struct.unpack(f"<{math.prod(shape)}{code}", content))
    need(all(value >= 0 for value in values), f"no entry of {name} is negative")
    if code == "d":
        values = [Fraction(v) if v < math.inf or name not in ("cost", "distance") else math.inf for v in values]
    need(name != "prior" or abs(sum(values) - 1) <= Fraction(1, 10**9), "probabilities sum to 1")
    if len(shape) < 2:
        return values if shape else values[0]
    rows, columns = shape
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]


def is_least(number: Fraction, value: Fraction) -> bool:
    """Tell whether `number` is the least decimal printed for a float that is not below `value`."""
    return Fraction(repr(math.nextafter(float(number), -math.inf))) < value <= number


def exact(text: str) -> Fraction:
    """Return the number that a text such as "0.6" or "3/5" means."""
    need(DECIMAL.fullmatch(text), f"{text} is a number")
    return Fraction(text)


def need(condition: object, what: str) -> None:
    """Raise `ValueError` unless the condition holds."""
    if not condition:
        raise ValueError(f"it does not hold that {what}")


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        wrong = f"{sys.argv[1]} is no folder" if len(sys.argv) == 2 else "usage: python second_verifier.py DIR"
        print(wrong, file=sys.stderr)
        sys.exit(2)
    try:
        print("\n".join([*prove(Path(sys.argv[1])), f"{sys.argv[1]} is proved."]))
    except Exception as error:
        # Whatever goes wrong, nothing is proved.
        sys.exit(f"not proved: {type(error).__name__}: {error}")
