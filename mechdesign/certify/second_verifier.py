"""Prove a bundle a second time, slowly, in integers and fractions: ``python second_verifier.py DIR``.

This file needs only Python: copy it to any machine that audits bundles. The program reads the format of
docs/reference/bundle.md and trusts nothing in the files. The exit code is 0 if the program proves these facts:

- all digests match, every row of the channel sums to 1, and channel.csv has the same numbers and labels;
- the channel keeps every pair bound p(o|s) <= g p(o|t), and every floor on the expected error of the best attack;
- the secrets that the certificate lists as revealed are exactly those with an observable that no other secret gives;
- costs, gap, least ε, least factors and errors equal the numbers of the certificate, with the stated rounding;
- the multipliers prove the stated lower bound on the cost, which equals the bound computed in floating point;
- all files have the documented form.

Unknown keys of the certificate are listed. The meaning of labels, places, title, report.html and provenance is not
checked.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import struct
import sys
import zipfile
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from hashlib import file_digest, sha256
from operator import mul
from pathlib import Path
from typing import Any

Pair = tuple[int, int, Fraction]
USAGE = "usage: python second_verifier.py DIR"
ZERO, LARGEST = Fraction(0), Fraction(sys.float_info.max)
DECIMAL = re.compile(r"([0-9]+(\.[0-9]+)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?|[0-9]+/[0-9]+", re.ASCII)
HEADER = re.compile(
    r"\{'descr': '([|][biu]1|<[iu][248]|<f[48]|<U[1-9][0-9]{0,5})', 'fortran_order': False, "
    r"'shape': \(((?:[0-9]{1,18}, ?)*[0-9]{0,18})\), \} *\n",
    re.ASCII,
)
ONE = r"([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(inf|nan))"
SERIES = re.compile(f"{ONE}(, ?{ONE})*", re.ASCII)
READ = ("channel.npz", "dual.npz", "channel.csv")
OWN = re.compile(r"numerators|exponent|prior|cost|requirement_.*")
# The keys of certificate.json, of the certificate in it, and of its entries for requirements, with their types.
TOP = {"schema": str, "objective": str, "requirements": list, "certificate": dict, "metadata": dict}
TOP |= {"files": dict, "arrays": dict, "digest": str}
CERTIFICATE = {"holds": bool, "objective": str, "expected_cost": Fraction, "expected_cost_text": str}
CERTIFICATE |= {"worst_cost": Fraction, "worst_cost_text": str, "lower_bound": Fraction, "relative_gap": Fraction}
CERTIFICATE |= {"requirements": list, "forbidden": int, "reason": str, "pair": type(None), "provenance": dict}
CERTIFICATE |= {"revealed": list}
CHECKED = {"kind": str, "nominal": str, "realised": Fraction, "holds": bool, "radius": str, "number": str}
OPTIONAL = {"number"}
# The numbers of each kind of requirement; the first number is the guarantee. Kinds in NAMED store the name of a
# requirement. ARRAYS lists name, type and number of axes of each array that a kind has in channel.npz.
NAMED = {"pairs": ["epsilon"], "ratios": ["factor"], "floor": ["minimum"]}
NAMED |= {"dithered": ["epsilon", "norm", "columns", "rows", "step_x", "step_y"]}
NUMBERS = {"metric": ["epsilon"], "threshold": ["epsilon", "radius"], "graph": ["epsilon"], "distortion": ["minimum"]}
NUMBERS |= NAMED
PAIRS, ERROR = ("pairs", "<i8", 2), ("error", "<f8", 2)
ARRAYS: dict[str, list[tuple[str, str, int]]]
ARRAYS = {"metric": [("distance", "<f8", 2)], "threshold": [("distance", "<f8", 2)], "graph": [("edges", "<i8", 2)]}
ARRAYS |= {"distortion": [ERROR], "floor": [ERROR, ("prior", "<f8", 1)], "pairs": [PAIRS, ("weights", "<f8", 1)]}
ARRAYS |= {"ratios": [PAIRS, ("numerators", "<i8", 1), ("denominators", "<i8", 1)], "dithered": []}
# Memory for an entry of an array as a Python number, and for a byte of JSON [bytes]; the number of bytes in a GiB.
ENTRY, JSON, GIB = 1000, 64, 2**30
# The file in which Linux states its free memory.
MACHINE = Path("/proc/meminfo")


def prove(folder: Path) -> list[str]:  # noqa: PLR0915 - one proof, read from top to bottom
    """Return the proved facts of the bundle in `folder` as lines; raise an exception if any proof fails.

    The memory is estimated in advance, and the bundle is refused if it takes more than `find_room` returns.
    """
    document, channel, dual = read(folder)
    stated, objective = document["certificate"], document["objective"]
    rows, prior = take(channel, "numerators", "<i8", 2), take(channel, "prior", "<f8", 1)
    cost, exponent = take(channel, "cost", "<f8", 2), take(channel, "exponent", "<i8", 0)
    need(rows and 1 <= exponent <= 62, "the exponent is between 1 and 62")
    n, m, one = len(rows), len(rows[0]), 1 << exponent
    need(all(sum(row) == one for row in rows), "all rows of the channel sum to 1")
    need(
        len(cost) == len(prior) == n and all(len(row) == m and min(row) < math.inf for row in cost),
        "costs match the channel, and each secret has a finite cost",
    )
    forbidden = [rows[s][o] for s in range(n) for o in range(m) if cost[s][o] == math.inf]
    need(not any(forbidden) and len(forbidden) == stated["forbidden"], "forbidden answers are counted, and never given")
    labels = [labels_of(channel, name, count) for name, count in (("secrets", n), ("observables", m))]
    if (folder / "channel.csv").exists():
        table = table_of(rows, exponent, *(list(map(cell, each)) for each in labels)).encode()
        need((folder / "channel.csv").read_bytes() == table, "channel.csv contains the channel and its labels")
    need((stated["holds"], stated["reason"], stated["pair"]) == (True, "", None), "the certificate holds")
    need(stated["objective"] == objective in ("expected", "worst"), "the objective equals the certified objective")

    # Texts are compared because Python treats true and 1.0 as equal to 1.
    alone = revealed(rows)
    need(repr(stated["revealed"]) == repr(alone), f"the secrets revealed for certain are {alone}")

    lines, claims = [], []
    for index, (entry, found) in enumerate(zip(document["requirements"], stated["requirements"], strict=True)):
        kind = entry["kind"]
        name, numbers, symbol = check_entry(entry), {key: exact(entry[key]) for key in NUMBERS[kind]}, NUMBERS[kind][0]
        radius, realised, number = entry.get("radius", ""), decimal(found["realised"]), numbers[symbol]
        what = f"{name} privacy, {symbol} {entry[symbol]}" + (f", radius {radius}" if radius else "")
        claimed = found["kind"], found["nominal"], found["radius"], found.get("number", symbol), found["holds"]
        need("number" in found or (name in NUMBERS and name not in NAMED), f"the number of {name} has a name")
        need(claimed == (name, entry[symbol], radius, symbol, True), f"{what}, is certified")
        prefix = f"requirement_{index}_"
        given = [known for known in ARRAYS[kind] if known[0] != "prior" or prefix + "prior" in channel]
        arrays = {key: take(channel, prefix + key, form, axes) for key, form, axes in given}
        below = Fraction(repr(math.nextafter(float(realised), -math.inf))) if realised else Fraction(-1)
        if symbol == "minimum":
            belief, errors = arrays.get("prior", prior), arrays["error"]
            need(errors and all(len(row) == len(belief) == n for row in errors), f"errors have {n} columns")
            joint = [list(map(mul, belief, column)) for column in zip(*rows, strict=True)]
            attacks = set(map(tuple, errors))
            error = sum(min(sum(map(mul, column, row)) for row in attacks) for column in joint) / Fraction(one)
            need(error >= number and is_least(-realised, -error), f"{what}, is kept: the error is {float(error)}")
            claims.append((symbol, number, belief, errors))
        elif kind == "dithered":
            slope, power = steepest(numbers, rows), 2 if numbers["norm"] == 2 else 1
            need(number > 0 and slope <= number**power, f"{what}, is kept between all points")
            need(slope <= realised**power and (below < 0 or slope > below**power), f"{what}, has its least ε")
            claims.append((symbol, number, None, None))
        else:
            pairs = bounds(kind, numbers, arrays, n)
            largest = {(s, t): largest_ratio(rows[s], rows[t]) for s, t in {(s, t) for s, t, _ in pairs}}
            ratios = [(largest[s, t], w) for s, t, w in pairs]
            need(number > 0 and keeps(ratios, symbol, number), f"{what}, is kept")
            need(keeps(ratios, symbol, realised), f"{what}, is kept with {float(realised)}")
            # The first verifier rounds e^x down to 128 binary places, so that its least ε may be one float larger.
            blur = Fraction(1, 2**126) if symbol == "epsilon" else Fraction(0)
            need(not keeps(ratios, symbol, below, blur), f"{what}, is kept with no less than {float(realised)}")
            claims.append((symbol, number, None, pairs))
        lines.append(f"{what}: holds; {'error' if symbol == 'minimum' else f'least {symbol}'} {float(realised)}")

    each = [sum(rows[s][o] * cost[s][o] for o in range(m) if rows[s][o]) / Fraction(one) for s in range(n)]
    costs = {"expected": sum(map(mul, prior, each)), "worst": max(each)}
    up = Context(prec=30, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
    for name, value in costs.items():
        need(is_least(decimal(stated[f"{name}_cost"]), value), f"the {name} cost equals the stated cost")
        text = str(up.divide(Decimal(value.numerator), Decimal(value.denominator)))
        need(stated[f"{name}_cost_text"] == text, f"the {name} cost is {text}, to 30 digits and rounded up")
    value, lower = costs[objective], decimal(stated["lower_bound"])
    multipliers = (
        None if dual is None else [multipliers_of(dual, place, claim[0]) for place, claim in enumerate(claims)]
    )
    weights = weights_of(dual, prior, objective)
    least = lower_bound(objective, weights, cost, claims, multipliers or [])
    rounded = round_bound(objective, weights, cost, claims, multipliers or [])
    own = {name for name in channel if OWN.fullmatch(name)}
    need(not own and not dual, f"every array belongs to the proof: {sorted(own | set(dual or ()))}")
    need(0 <= lower <= least, f"no such channel costs less than {float(lower)}")
    need(is_least(-lower, -rounded), f"the lower bound equals the bound of the multipliers in floats, {float(rounded)}")
    scale = max(value, max(c for row in cost for c in row if c < math.inf) / 10**9)
    gap = (value - lower) / scale if scale else Fraction(0)
    need(is_least(decimal(stated["relative_gap"]), gap), "the gap equals the stated gap")
    told = f"; revealed for certain: secrets {alone}" if alone else ""
    paid = "expected cost under the prior in the files:" if objective == "expected" else "worst cost"
    lines.append(f"{paid} {float(value)}; no such channel costs less than {float(lower)}{told}")
    return lines + [f"stated, not proved: {key}" for key in unknown(stated)]


def revealed(rows: list[list[int]]) -> list[int]:
    """Return the secrets s, ascending, with an observable o such that p(o|s) > 0 and p(o|t) = 0 for all other t."""
    givers = ([s for s, number in enumerate(column) if number] for column in zip(*rows, strict=True))
    return sorted({found[0] for found in givers if len(found) == 1})


def check_entry(entry: dict[str, Any]) -> str:
    """Return the name of a requirement; raise unless it has exactly the fields of its kind, in the documented form."""
    kind = entry["kind"]
    need(kind in ARRAYS, f"{kind} is a kind of requirement")
    keys = {"kind", *NUMBERS[kind]} | ({"name"} if kind in NAMED else set())
    need(set(entry) - {"part"} == keys, f"{kind} states {', '.join(sorted(keys))}")
    if "part" in entry:
        need(kind in NAMED and type(entry["part"]) is int and entry["part"] > 0, "a part is a whole number above 0")
    name: str = entry.get("name", kind)
    need(re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", name), f"{name} is a valid name")
    own = kind not in NAMED or name not in NUMBERS or (kind, name) == ("floor", "distortion")
    need(own, f"{name} is not the name of another kind")
    return name


def unknown(stated: dict[str, Any]) -> list[str]:
    """Return the unknown keys of a certificate."""
    found = [f"certificate.{key}" for key in stated if key not in CERTIFICATE]
    for index, entry in enumerate(stated["requirements"]):
        found += [f"certificate.requirements[{index}].{key}" for key in entry if key not in CHECKED]
    return found


def labels_of(channel: dict[str, Any], name: str, count: int) -> list[str]:
    """Return the labels, which must be distinct; if the bundle has no labels, return the numbers from 0."""
    if name not in channel:
        return list(map(str, range(count)))
    kind = channel[name][0]
    labels = take(channel, name, kind if kind[1] == "U" else "<i8", 1)
    need(len(labels) == len(set(labels)) == count, f"{name} have {count} different labels")
    return list(map(str, labels))


def table_of(rows: list[list[int]], exponent: int, secrets: list[str], observables: list[str]) -> str:
    """Return channel.csv, with N / 2^k = N · 5^k / 10^k as shortest decimals."""
    text, cells = io.StringIO(newline=""), [[shortest(number, exponent) for number in row] for row in rows]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["secret", *observables])
    writer.writerows([label, *row] for label, row in zip(secrets, cells, strict=True))
    return text.getvalue()


def cell(label: str) -> str:
    """Return a label as in channel.csv, with an apostrophe in front if a spreadsheet would evaluate it."""
    computed = label[:1] in tuple("=+-@\t\r") and not SERIES.fullmatch(label)
    return f"'{label}" if computed or label[:1] == "'" else label


def shortest(numerator: int, exponent: int) -> str:
    """Return N / 2^k as its shortest decimal."""
    if numerator in (0, 1 << exponent):
        return str(numerator >> exponent)
    return f"0.{numerator * 5**exponent:0{exponent}d}".rstrip("0")


def bounds(kind: str, numbers: dict[str, Fraction], arrays: dict[str, Any], n: int) -> list[Pair]:
    """Return the pairs (s, t) that a requirement bounds, each with w: the factor is e^(ε·w), or factor·w."""
    if kind in ("metric", "threshold"):
        distance = arrays["distance"]
        need(len(distance) == n and all(len(row) == n for row in distance), f"distances have {n} rows and {n} columns")
        # A distance of 0.1 is within a radius of 0.1, because the radius is rounded to the nearest float.
        far = nearest(numbers["radius"]) if kind == "threshold" else sys.float_info.max
        found = [(s, t, d) for s, row in enumerate(distance) for t, d in enumerate(row) if s != t and d < math.inf]
        return found if kind == "metric" else [(s, t, Fraction(1)) for s, t, d in found if d <= far]
    listed = arrays["edges" if kind == "graph" else "pairs"]
    need(all(len(pair) == 2 and max(pair) < n for pair in listed), f"pairs are secrets below {n}")
    if kind == "graph":
        return [(s, t, Fraction(1)) for a, b in listed for s, t in ((a, b), (b, a)) if s != t]
    names = ["weights"] if kind == "pairs" else ["numerators", "denominators"]
    weights = list(map(Fraction, *(arrays[name] for name in names)))
    need({len(arrays[name]) for name in names} == {len(listed)}, "there is a weight for each pair")
    if kind == "ratios":
        factor = numbers["factor"]
        need(max(factor.as_integer_ratio()) < 2**63 and all(arrays["numerators"]), "factors have terms below 2^63")
        need(all(factor * w >= 1 for w in weights), "factors are at least 1")
    return [(s, t, w) for (s, t), w in zip(listed, weights, strict=True)]


def steepest(numbers: dict[str, Fraction], rows: list[list[int]]) -> Fraction:
    """Return the largest norm of the slope of ln p(o|x) between anchors, or its square for the Euclidean norm.

    The maximum occurs at an anchor and follows from its neighbours along x and y; see docs/theory/continuous.md.
    """
    columns, lines, norm, hx, hy = (numbers[key] for key in ("columns", "rows", "norm", "step_x", "step_y"))
    need(columns * lines == len(rows) and min(columns, lines) >= 2, "the grid has an anchor for each secret")
    need(Fraction(1, 10**100) <= min(hx, hy) and max(hx, hy) <= 10**100, "steps are between 1e-100 and 1e100")
    need({columns.denominator, lines.denominator} == {1} and norm in (0, 1, 2), "anchors and norm are whole numbers")
    slopes, across = [Fraction(0)], int(columns)
    for here in range(len(rows)):
        i, j = here % across, here // across
        beside = [here + step for step in (-1, 1) if 0 <= i + step < columns]
        above = [here + step * across for step in (-1, 1) if 0 <= j + step < lines]
        for f, *others in zip(rows[here], *(rows[place] for place in (*beside, *above)), strict=True):
            need(f or not any(others), "all neighbours of a zero are zero")
            along_x = max(abs(other - f) for other in others[: len(beside)]) / (hx * f) if f else 0
            along_y = max(abs(other - f) for other in others[len(beside) :]) / (hy * f) if f else 0
            norms = along_x + along_y, max(along_x, along_y), along_x**2 + along_y**2
            slopes.append(max(slopes.pop(), Fraction(norms[int(norm)])))
    return slopes[0]


def multipliers_of(dual: dict[str, Any], index: int, symbol: str) -> list[tuple[Any, ...]]:
    """Return the multipliers of a requirement: (ŝ, o, q) for a floor, (s, t, o, y) for a bound on pairs."""
    names = ["estimates"] if symbol == "minimum" else ["sources", "targets"]
    found = [take(dual, f"requirement_{index}_{name}", "<i4", 1) for name in [*names, "observables"]]
    return list(zip(*found, take(dual, f"requirement_{index}_values", "<f8", 1), strict=True))


def weights_of(dual: dict[str, Any] | None, prior: list[Fraction], objective: str) -> list[Fraction]:
    """Return the weights of the secrets in the lower bound: the prior, unless the worst cost has other weights."""
    if not dual or "weights" not in dual:
        return prior
    own: list[Fraction] = take(dual, "weights", "<f8", 1)
    need(len(own) == len(prior) and any(own), "there is a weight for each secret, and not all are 0")
    return own if objective == "worst" else prior


def lower_bound(objective: str, weights: Any, cost: Any, claims: Any, multipliers: Any) -> Fraction:
    """Return Σ T·D + Σ_s min_o r[s,o], divided by Σ w for the worst cost, or 0 if this is negative; D are the floors.

    r[s,o] = w_s c(s,o) - Σ g y(t,s,o) + Σ y(s,t,o) - Σ π_s q(ŝ,o) a(ŝ,s), and T = min_o Σ_ŝ q(ŝ,o). y and q are the
    multipliers. The weights w are the prior, or other weights for the worst cost. docs/theory/proof.md has the proof.
    """
    total, m = Fraction(0), len(cost[0])
    r = [[w * c if c < math.inf else math.inf for c in row] for w, row in zip(weights, cost, strict=True)]
    for (symbol, number, belief, rows), entries in zip(claims, multipliers, strict=False):
        need(all(entry[-2] < m for entry in entries), "every multiplier belongs to an observable")
        if symbol == "minimum":
            attack = [Fraction(0)] * m
            for guess, o, q in entries:
                attack[o] += q
                for s, (p, a) in enumerate(zip(belief, rows[guess], strict=True)):
                    r[s][o] -= p * q * a
            total += min(attack) * number
            continue
        # Sorting puts the least of several bounds on a pair last, so that the least bound is used.
        least = {(s, t): w for s, t, w in sorted(rows or [], key=lambda row: row[2], reverse=True)}
        for s, t, o, y in entries:
            x = number * least[s, t]
            # If e^x exceeds every float, the multiplier is replaced by 0: any non-negative multiplier is valid.
            growth = x if symbol == "factor" else Fraction(exp_bounds(min(x, Fraction(710)), 256)[1], 1 << 256)
            if growth <= LARGEST:
                r[s][o] += y
                r[t][o] -= y * growth
    total += Fraction(sum(min(row) for row in r))
    return max(Fraction(0), total / sum(weights) if objective == "worst" else total)


def round_bound(  # noqa: C901, PLR0912 - one sum, rounded in the order of the first verifier
    objective: str, weights: Any, cost: Any, claims: Any, multipliers: Any
) -> Fraction:
    """Return the lower bound in floats, rounded step by step as in the first verifier; this is not a proof."""
    up, down, huge, (n, m) = math.inf, -math.inf, 1e290, (len(cost), len(cost[0]))
    w, least = list(map(float, weights)), [math.inf] * n
    tops, taken = [math.inf] * len(multipliers), 2**22 // n or 1
    growth = [dict(growths(symbol, number, rows)) for symbol, number, _, rows in claims]
    for start in range(0, m, taken):
        part = range(start, min(start + taken, m))
        cells = [(s, o) for s in range(n) for o in part]
        plus = {(s, o): math.nextafter(w[s] * float(c), 0) if (c := cost[s][o]) < up else 0.0 for s, o in cells}
        minus = dict.fromkeys(cells, 0.0)
        for index, ((symbol, _, belief, rows), entries) in enumerate(zip(claims, multipliers, strict=False)):
            here = [(*places, o, float(y)) for *places, o, y in entries if o in part]
            if symbol == "minimum":
                attacks = sums([(o, q) for _, o, q in here])
                tops[index] = min(tops[index], min(attacks.get(o, (0.0, 0.0))[0] for o in part))
                lowered = pulls(here, part, belief, rows)
            elif rows is None:
                continue
            else:
                used = [(s, t, o, y, g) for s, t, o, y in here if (g := growth[index][s, t]) < up and y > 0]
                raised = sums([((s, o), y) for s, _, o, y, _ in used])
                lowered = sums([((t, o), math.nextafter(g * y, up)) for _, t, o, y, g in used])
                plus = {cell: math.nextafter(value + raised.get(cell, (0.0,))[0], down) for cell, value in plus.items()}
            minus = {
                cell: math.nextafter(value + lowered.get(cell, (0.0, 0.0))[1], up) for cell, value in minus.items()
            }
        for s, o in cells:
            if cost[s][o] < up:
                least[s] = min(least[s], math.nextafter(plus[s, o] - minus[s, o], down))
    for (symbol, number, _, _), top in zip(claims, tops, strict=False):
        if symbol == "minimum":
            below = min(nearest(Fraction(top) * number), huge)
            least.append(math.nextafter(below, down) if Fraction(below) > Fraction(top) * number else below)
    terms = [min(term, huge) for term in least]
    if min(terms) < -huge or max(w) > huge:
        return Fraction(0)
    total = math.nextafter(math.fsum(terms), down)
    if objective == "worst":
        total = math.nextafter(total / math.nextafter(math.fsum(w), up), down)
    return Fraction(max(0.0, total))


def growths(symbol: str, number: Fraction, rows: Any) -> list[tuple[tuple[int, int], float]]:
    """Return the pairs that a requirement bounds, each with its factor rounded up to a float, or infinity."""
    up, known, found = Context(prec=30, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX), {}, []
    for s, t, w in (rows or []) if symbol != "minimum" else []:
        if w not in known:
            top, bottom = (number * w).as_integer_ratio()
            power = up.divide(Decimal(top), Decimal(bottom))
            above = number * w if symbol == "factor" else Fraction(1)
            if power and symbol != "factor":
                above = Fraction(up.next_plus(up.exp(min(power, Decimal(710)))))
            near = nearest(above)
            known[w] = near if near >= above else math.nextafter(near, math.inf)
        found.append(((s, t), known[w]))
    return found


def sums(terms: list[tuple[Any, float]]) -> dict[Any, tuple[float, float]]:
    """Return lower and upper bounds on the sums of non-negative floats that belong to the same cell."""
    cells: dict[Any, list[float]] = {}
    for cell, value in terms:
        cells.setdefault(cell, []).append(value)
    largest, count = max((value for _, value in terms), default=0.0), max(map(len, cells.values()), default=0)
    if not largest:
        return {}
    if not largest * count < 1e290:
        return dict.fromkeys(cells, (0.0, math.inf))
    sigma, found = 2.0 ** (math.frexp(largest * count)[1] + 2), {}
    slack = count**2 * 2.0**-105 * sigma + 2.0**-1070
    for cell, values in cells.items():
        high = low = 0.0
        for value in values:
            high += (sigma + value) - sigma
            low += value - ((sigma + value) - sigma)
        below, above = (math.nextafter(high + low, way) for way in (-math.inf, math.inf))
        found[cell] = (max(math.nextafter(below - slack, -math.inf), 0.0), math.nextafter(above + slack, math.inf))
    return found


def pulls(entries: Any, part: range, belief: Any, errors: Any) -> dict[Any, tuple[float, float]]:
    """Return the pair (0, x) for each cell (s, o), where x is a floor's contribution to r[s,o], rounded up."""
    upper: dict[int, list[tuple[int, float]]] = {o: [] for o in part}
    for (guess, o), (_, most) in sorted(sums([((guess, o), q) for guess, o, q in entries]).items()):
        upper[o] += [(guess, most)] if most > 0 else []
    growth, found = 1 + (max(map(len, upper.values())) + 4) * 2.0**-52, {}
    for o, attacks in upper.items():
        for s, p in enumerate(belief):
            pulled = 0.0
            for guess, most in attacks:
                pulled += float(errors[guess][s]) * most
            lifted = float(p) * (pulled * growth + 2.0**-1050) * (1 + 2.0**-50) + 2.0**-1050
            found[s, o] = (0.0, math.inf if math.isnan(lifted) else lifted)
    return found


def largest_ratio(above: list[int], below: list[int]) -> Fraction | float:
    """Return the largest ratio of two entries; infinite if only the denominator is 0; 0/0 is taken as 0."""
    ratios = (Fraction(x, y) if y else math.inf for x, y in zip(above, below, strict=True) if x)
    return max(ratios, default=Fraction(0))


def keeps(ratios: list[Any], symbol: str, number: Fraction | float, blur: Fraction = ZERO) -> bool:
    """Return whether every ratio is at most its factor, e^(number·w) or number·w, minus the margin `blur`."""
    return number >= 0 and not any(is_above(ratio, symbol, number * w, blur) for ratio, w in ratios)


def is_above(ratio: Fraction | float, symbol: str, x: Any, blur: Fraction = ZERO) -> bool:
    """Return whether a ratio of integers up to 2^62 exceeds its factor, x or e^x; e^x is irrational for x > 0."""
    if symbol == "factor":
        return bool(ratio > x)
    if ratio <= 1 or ratio == math.inf or x >= 62:
        return ratio > (1 if x < 62 else 2**62)
    for bits in (128 << doubled for doubled in range(10)):
        lower, upper = (Fraction(bound, 1 << bits) - blur for bound in exp_bounds(x, bits))
        if not lower < ratio <= upper:
            return ratio > upper
    raise ValueError(f"2^16 bits do not decide whether {ratio} exceeds e^{x}")


@lru_cache(2**16)
def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with lower <= e^x · 2^bits <= upper for x >= 0: Taylor's series of e^(x/2^k), squared k times.

    As x/2^k < 1/2, the remaining terms sum to less than the last term. The series is computed twice, rounded down and
    rounded up.
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


def find_room(folder: Path) -> float:
    """Return the bytes that a proof may take: 2 GiB or 100 times the disk space of the files, within the free memory.

    The environment variable MECHDESIGN_MEMORY replaces them by a number of GiB.
    """
    stated = os.environ.get("MECHDESIGN_MEMORY")
    if stated:
        need(re.fullmatch("[0-9.]{1,9}", stated), "MECHDESIGN_MEMORY is a number of GiB", RoomError)
        return float(stated) * GIB
    files = [path.stat() for path in folder.iterdir() if path.name in (*READ, "certificate.json")]
    # A file with holes takes little disk space, and does not raise the limit.
    disk = sum(min(file.st_size, 512 * getattr(file, "st_blocks", file.st_size)) for file in files)
    free = re.search("MemAvailable: *([0-9]+)", MACHINE.read_text()) if MACHINE.exists() else None
    return min(max(2 * GIB, 100 * disk), 1024 * int(free[1]) if free else math.inf)


def read(folder: Path) -> tuple[Any, dict[str, Any], dict[str, Any] | None]:
    """Return certificate.json and the arrays (type, shape, bytes) of both archives, after checking all digests."""
    room, size = find_room(folder), sum(path.stat().st_size for path in folder.iterdir() if path.name in READ)
    for path in (folder / "certificate.json", folder / "channel.csv"):
        # Reading a pipe or a device could block or never end.
        need(path.is_file() or not path.exists(), f"{path.name} is a regular file")
    length = (folder / "certificate.json").stat().st_size
    need(length <= 2**27 and JSON * length + 2 * size <= room, f"{room / GIB:.3g} GiB of memory are enough", RoomError)
    text = (folder / "certificate.json").read_bytes().decode()
    document, plain = json.loads(text, parse_float=read_number, object_pairs_hook=unique), json.loads(text)
    check_keys(document, TOP, "certificate.json")
    need(set(document) == set(TOP), f"certificate.json has the keys {', '.join(TOP)}")
    check_keys(document["certificate"], CERTIFICATE, "the certificate")
    for entry in document["certificate"]["requirements"]:
        check_keys(entry, CHECKED, "each verdict")
    made = document["certificate"]["provenance"].values()
    need(all(isinstance(value, str | int | Fraction) for value in made), "provenance contains texts and numbers")
    digest = plain.pop("digest")
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    need(sha256(canonical.encode()).hexdigest() == digest, "certificate.json matches its digest")
    need(document["schema"] == "mechdesign-certificate/2", "the schema is mechdesign-certificate/1")
    archives = Object()
    for file, recorded in document["files"].items():
        plainly = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}", file) and file != "certificate.json"
        need(plainly and (folder / file).is_file(), f"{file} is a file with a valid name")
        with (folder / file).open("rb") as source:
            content = source.read() if file in READ else b""
            digest = sha256(content) if file in READ else file_digest(source, "sha256")
        need(digest.hexdigest() == recorded, f"{file} matches its digest")
        if file in document["arrays"]:
            archives[file] = unpack(content, document["arrays"][file], room)
    listed = {file for file in ("channel.npz", "dual.npz") if file in document["files"]}
    need(set(document["arrays"]) == set(archives) == listed, "digests of arrays belong to the listed archives")
    needed = JSON * length
    for name, (_, shape, content) in [array for arrays in archives.values() for array in arrays.items()]:
        counted = OWN.fullmatch(name) or name in ("weights", "secrets", "observables")
        needed += 4 * len(content) + (ENTRY * math.prod(shape) if counted else 0)
    need(needed <= room, f"{room / GIB:.3g} GiB of memory are enough: it takes about {needed / GIB:.3g}", RoomError)
    return document, archives["channel.npz"], archives.get("dual.npz")


def check_keys(values: dict[str, Any], known: dict[str, Any], what: str) -> None:
    """Raise unless all required keys are present, and all known keys have the right types."""
    for key, kind in known.items():
        need(key in values or key in OPTIONAL, f"{what} contains {key}")
        form = Object if kind is dict else kind
        fits = key not in values or type(values[key]) is form or (kind is Fraction and values[key] == "inf")
        need(fits, f"{key} is {kind.__name__}")


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; raise if a key occurs twice."""
    need(len(dict(pairs)) == len(pairs), "no key occurs twice")
    return Object(pairs)


def unpack(content: bytes, digests: dict[str, str], room: float) -> dict[str, Any]:
    """Return type, shape and bytes of every array of an archive."""
    arrays = Object()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        total = sum(entry.file_size for entry in archive.infolist())
        need(total <= max(2**30, 100 * len(content)) and 4 * total <= room, "the arrays do not exceed the size limit")
        for entry in archive.infolist():
            need(entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED), "archives are stored or deflated")
            with archive.open(entry) as source:
                npy, name = source.read(entry.file_size), entry.filename.removesuffix(".npy")
            start = 10 + int.from_bytes(npy[8:10], "little")
            header = HEADER.fullmatch(npy[10:start].decode("ascii"))
            if header is None or not npy.startswith(b"\x93NUMPY\x01\x00"):
                raise ValueError(f"{name} is not a plain array")
            kind, shape = header[1], tuple(int(axis) for axis in header[2].replace(" ", "").split(",") if axis)
            expected = math.prod(shape) * int(kind[2:]) * (4 if kind[1] == "U" else 1)
            need(expected == entry.file_size - start <= 2**32, f"the size of {name} matches its shape")
            need(len(npy) == entry.file_size, f"{name} has the length that the archive states")
            if kind[1] == "U":
                npy[start:].decode("utf-32-le")
            digest = sha256(f"{kind} {shape} ".encode() + npy[start:]).hexdigest()
            need(name != entry.filename and name not in arrays, f"{name} is an array, and occurs once")
            need(digest == digests[name], f"{name} matches its digest")
            arrays[name] = kind, shape, npy[start:]
    need(set(arrays) == set(digests), "every array with a digest is in the archive")
    return arrays


def take(arrays: dict[str, Any], name: str, form: str, axes: int) -> Any:
    """Remove an array and return its non-negative entries by rows; finite floats become fractions."""
    kind, shape, content = arrays[name]
    del arrays[name]
    need((kind, len(shape)) == (form, axes), f"{name} is {form} with {axes} axes")
    if kind[1] == "U":
        size = 4 * int(kind[2:])
        texts = (content[start : start + size] for start in range(0, len(content), size))
        return [text.decode("utf-32-le").rstrip("\0") for text in texts]
    code = {"<i8": "q", "<i4": "i", "<f8": "d"}[kind]
    values: list[Any] = list(struct.unpack(f"<{math.prod(shape)}{code}", content))
    need(name in ("secrets", "observables") or all(value >= 0 for value in values), f"no entry of {name} is negative")
    need(not name.endswith("prior") or abs(math.fsum(values) - 1) <= 1e-9, "probabilities sum to 1")
    if code == "d":
        infinite = name.endswith(("cost", "_distance"))
        values = [Fraction(v) if v < math.inf or not infinite else math.inf for v in values]
    if axes < 2:
        return values if axes else values[0]
    rows, columns = shape
    # Empty rows take no bytes, so that an archive could claim any number of them.
    need(columns or not rows, f"{name} has columns")
    return [values[i * columns : (i + 1) * columns] for i in range(rows)]


def is_least(number: Fraction | float, value: Fraction) -> bool:
    """Return whether `number` is the least printed decimal of a float that is not below `value`."""
    below = math.nextafter(float(number), -math.inf)
    # A processor may replace subnormal numbers by zero.
    least = Fraction(repr(below)) if number and below > -math.inf else -Fraction(sys.float_info.min)
    return value <= number and (below == -math.inf or least < value)


def nearest(value: Fraction) -> float:
    """Return the float nearest to a positive number; infinite beyond the largest float."""
    return float(value) if value <= LARGEST else math.inf


def decimal(value: Fraction | str) -> Fraction | float:
    """Return a number of the certificate; a text instead of the number means infinity."""
    return math.inf if isinstance(value, str) else value


def read_number(text: str) -> Fraction:
    """Return a number of JSON; raise unless its float prints the same number."""
    number = float(text)
    need(len(text) <= 1000 and math.isfinite(number), f"{text[:1000]} is the decimal of a finite float")
    same = Fraction(repr(number)) == Fraction(text) if number else not re.match(r"-?[0.]*[1-9]", text)
    need(same, f"{text} equals {number!r}, the number that its float prints")
    return Fraction(repr(number))


def exact(text: str) -> Fraction:
    """Return the number of a text such as "0.6" or "5/3"; raise unless it is the shortest text of the number."""
    need(isinstance(text, str) and len(text) <= 4000 and DECIMAL.fullmatch(text), f"{text} is a number")
    value = Fraction(text)
    need(not value or Fraction(1, 10**400) <= value <= 10**400, f"{text} is 0 or between 1e-400 and 1e400")
    need(max(value.numerator.bit_length(), value.denominator.bit_length()) <= 3000, f"{text} has at most 900 digits")
    need(text == shortest_text(value), f"{text} is written as {shortest_text(value)}")
    return value


def shortest_text(value: Fraction) -> str:
    """Return a number as a decimal, with an exponent for more than 40 digits; as a quotient if no decimal is exact."""
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    fives = next(k for k in range(3000) if (rest >> twos) % 5 ** (k + 1))
    places = max(twos, fives)
    if 10**places % rest:
        return f"{value.numerator}/{value.denominator}"
    digits = str(value.numerator * 10**places // value.denominator)
    if places > 40:
        return f"{digits}e-{places}"
    if places:
        digits = digits.zfill(places + 1)
        return f"{digits[:-places]}.{digits[-places:]}"
    stripped = digits.rstrip("0")
    return digits if len(digits) <= 40 else f"{stripped}e{len(digits) - len(stripped)}"


class Object(dict[str, Any]):
    """Named values of a bundle; a value that is missing is a fault of the bundle."""

    def __missing__(self, key: str) -> None:
        need(False, f"the bundle contains {key}")


class RoomError(ValueError):
    """The proof needs more memory than is allowed."""


def need(condition: object, what: str, error: type[ValueError] = ValueError) -> None:
    """Raise `ValueError` unless the condition holds."""
    if not condition:
        raise error(f"it does not hold that {what}")


def main(arguments: list[str]) -> int:
    """Prove the bundle in a folder; return 0 if it is proved, 1 if not, 2 if it is unreadable or memory is short."""
    folder = arguments[0] if len(arguments) == 1 else ""
    if folder in ("", "--help", "-h"):
        return say([USAGE], 0 if folder else 2)
    if not (Path(folder) / "certificate.json").is_file():
        return say([f"{folder} is not a folder with a bundle"], 2)
    try:
        lines = [*prove(Path(folder)), f"{folder} is proved."]
    except Exception as error:
        # After any error, the bundle is not proved.
        short = isinstance(error, RoomError | MemoryError)
        code = 2 if short or isinstance(error, PermissionError) else 1
        remedy = "; MECHDESIGN_MEMORY=8 allows 8 GiB" if short else ""
        return say([f"not proved: {type(error).__name__}: {error}{remedy}"], code)
    return say(lines, 0)


def say(lines: list[str], code: int) -> int:
    """Print lines and return the exit code; if the result cannot be printed, the code is 141 or 2 instead of 0."""
    stream = sys.stderr if code else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text = "\n".join(map(escape, lines)).encode(encoding, "backslashreplace").decode(encoding)
        print(text, file=stream, flush=True)
    except OSError as error:
        # Otherwise Python would try to write the remaining buffer on exit, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return code or (141 if isinstance(error, BrokenPipeError) else 2)
    return code


def escape(line: str) -> str:
    """Return a line with unprintable characters escaped, as it may contain names from untrusted sources."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
