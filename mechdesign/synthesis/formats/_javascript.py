"""JavaScript: a module that samples exactly and checks every pair bound, for browsers and servers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import InputError
from mechdesign.base._version import __version__
from mechdesign.certify._claims import Claim
from mechdesign.certify._exact import exact, exact_text
from mechdesign.model._claims import Claims
from mechdesign.model._domain import Domain
from mechdesign.model._locate import DEGREES, Lattice
from mechdesign.model._problem import claim_names
from mechdesign.synthesis._bundle import label_names
from mechdesign.synthesis.formats._format import Exported, Format

# Names of coordinates in the module; `sample` accepts and returns places with these names.
_SHORT = {"latitude": "lat", "longitude": "lon", "x": "x", "y": "y"}
_EXPORT = re.compile(r"^export ((?:async )?(?:const|function)) (\w+)", flags=re.MULTILINE)
_LOAD_MODULE = 'import { sample, verify } from "./channel.mjs";'
_LOAD_SCRIPT = "const { sample, verify } = mechdesign; // after the script element that loads this file"


def _contents(exported: Exported, classic: bool = False) -> Iterator[bytes]:
    """Yield an ES module without imports: the template `channel.js` with the channel in base64.

    The module contains the data for sampling and for checking pair bounds. It contains neither the prior, nor the cost,
    nor distortion floors, which depend on the prior. With `classic`, it is a classic script that defines the global
    object `mechdesign`: browsers load such a script from a file, but no module.
    """
    text = json.dumps(_payload(exported), separators=(",", ":"))
    template = resources.files("mechdesign.synthesis.formats").joinpath("channel.js").read_text(encoding="utf-8")
    if classic:
        template = _convert_to_script(template)
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    load = _LOAD_SCRIPT if classic else _LOAD_MODULE
    # The data are inserted after the other values, because they may contain text that looks like a placeholder.
    for name, value in (("LOAD", load), ("VERSION", __version__), ("SHA256", digest), ("TEXT", script_text(text))):
        template = template.replace(f"@{name}@", value)
    yield template.encode()


def _convert_to_script(module: str) -> str:
    """Return a classic script that defines an object with the exports of a module.

    >>> print(_convert_to_script("export const ANSWER = 42;"), end="")
    var mechdesign = (() => {
    "use strict";
    const ANSWER = 42;
    return Object.freeze({ ANSWER });
    })();
    """
    names = ", ".join(name for _, name in _EXPORT.findall(module))
    body = _EXPORT.sub(r"\1 \2", module).rstrip()
    return f'var mechdesign = (() => {{\n"use strict";\n{body}\nreturn Object.freeze({{ {names} }});\n}})();\n'


def script_text(text: str) -> str:
    r"""Return a JavaScript string literal that is safe within a ``script`` element of a page.

    >>> print(script_text("</script>"))
    "\u003c/script>"
    """
    # `dumps` escapes everything but ASCII, including U+2028 and U+2029, which end lines in older JavaScript.
    return json.dumps(text).replace("<", "\\u003c")


def _payload(exported: Exported) -> dict[str, Any]:
    """Return the data of the module."""
    problem, channel = exported.problem, exported.channel
    n, m = channel.numerators.shape
    secrets, observables = label_names(channel)
    return {
        "title": problem.title,
        "secrets": n,
        "observables": m,
        "labels": {"secrets": secrets, "observables": observables},
        **_describe_places(problem.secrets),
        "answers": _describe_answers(problem.observables),
        "requirements": [
            {"name": name, "claim": _format_claim(claim), "bound": _describe_bound(problem.claims, place, n)}
            for place, (name, claim) in enumerate(zip(claim_names(problem), problem.claims, strict=True))
        ],
        "numerators": _encode(channel.numerators.astype("<u8")),
    }


def _describe_places(domain: Domain | None) -> dict[str, Any]:
    """Return the data that map a place to a secret: borders between cells, anchors, or places.

    `members` contains the secret of each cell, if some cells are not secrets. `reach` is the largest accepted distance
    to the nearest place, in the unit of the domain; `limit` is the value of `Area.spread` for it. Longitudes below
    `turn` are increased by 360 degrees.
    """
    nothing: dict[str, Any] = {"axes": None, "degrees": False, "unit": "", "lattice": None, "turn": None}
    nothing |= {"borders": None, "members": None, "places": None, "reach": None, "limit": None}
    if domain is None:
        return nothing
    try:
        axes = domain.axes
    except InputError:
        return nothing
    area = domain.area(axes)
    assert area is not None
    unit = "km" if axes == DEGREES else domain.unit
    found: dict[str, Any] = {"axes": [_SHORT[axis] for axis in axes], "degrees": axes == DEGREES, "unit": unit}
    if axes == DEGREES:
        found["turn"] = _find_turn(domain)
    if domain.lattice is not None:
        return nothing | found | {"lattice": _describe_anchors(domain.lattice)}
    if area.borders is not None:
        found["borders"] = [side.tolist() for side in area.borders]
        if area.members is None:
            return nothing | found
        return nothing | found | {"members": area.members.tolist(), "places": area.known.tolist()}
    reach = area.reach or 0.0
    return nothing | found | {"places": area.known.tolist(), "reach": reach, "limit": area.limit(reach)}


def _find_turn(domain: Domain) -> float | None:
    """Return the longitude below which 360 degrees are added, or None unless secrets lie across the 180th meridian."""
    known = domain.places(DEGREES)
    assert known is not None
    if domain.geographic is not None:
        west, east = domain.geographic.west, domain.geographic.east
    else:
        west, east = (float(end) for end in (known[:, 1].min(), known[:, 1].max()))
    return None if east <= 180 else (west + east) / 2 - 180


def _describe_anchors(lattice: Lattice) -> list[dict[str, Any]]:
    """Return for each coordinate the start of the anchors, their extent, their number, and the accepted range."""
    if lattice.box is None:
        sides = (
            (Fraction(0), exact(lattice.width), lattice.columns),
            (Fraction(0), exact(lattice.height), lattice.rows),
        )
    else:
        south, north, west, east = map(Fraction, lattice.box)
        sides = ((south, north - south, lattice.rows), (west, east - west, lattice.columns))
    return [
        {"start": _to_texts(start), "length": _to_texts(length), "count": count, "ends": list(ends)}
        for (start, length, count), ends in zip(sides, lattice.ends, strict=True)
    ]


def _describe_answers(domain: Domain | None) -> dict[str, Any] | None:
    """Return the coordinates of the answers with their names, or None if the answers have no places."""
    known = _describe_places(domain)
    if domain is None or known["axes"] is None:
        return None
    places = domain.degrees if domain.axes == DEGREES else domain.points
    assert places is not None
    return {"names": known["axes"], "places": places.tolist()}


def _format_claim(claim: Claim) -> str:
    symbol = {"epsilon": "ε = ", "factor": "factor ", "minimum": "error ≥ "}[claim.number]
    return f"{symbol}{exact_text(claim.nominal)}"


def _describe_bound(claims: Claims, place: int, n: int) -> dict[str, Any] | None:
    """Return a pair bound as its distinct terms and the index of each pair's term; None for a floor.

    `pairs` is None if the bound covers all pairs of different secrets, in row-major order.
    """
    if (claim := claims.point_bounds.get(place)) is not None:
        steps = {
            "steps": [_to_texts(claim.step_x), _to_texts(claim.step_y)],
            "columns": claim.columns,
            "rows": claim.rows,
        }
        return {"norm": claim.norm, "epsilon": _to_texts(claim.epsilon)} | steps
    if place in claims.floors:
        return None
    bound = claims.pair_bounds[place]
    order = np.lexsort((bound.targets, bound.sources))
    sources, targets = bound.sources[order], bound.targets[order]
    if place in claims.exponent_bounds:
        distinct, places = np.unique(claims.exponent_bounds[place].weights[order], return_inverse=True)
        terms = distinct.tolist()
    else:
        distinct, places = np.unique(np.column_stack(bound.terms)[order], axis=0, return_inverse=True)
        terms = distinct.astype(str).tolist()
    width = 1 if len(terms) <= 2**8 else 2 if len(terms) <= 2**16 else 4
    rows, columns = np.nonzero(~np.eye(n, dtype=np.bool_))
    complete = np.array_equal(sources, rows) and np.array_equal(targets, columns)
    pairs = None if complete else _encode(np.column_stack((sources, targets)).astype("<u4"))
    found = {"terms": terms, "width": width, "places": _encode(places.ravel().astype(f"<u{width}")), "pairs": pairs}
    return {bound.number: _to_texts(bound.nominal)} | found


def _to_texts(number: Any) -> list[str]:
    return [str(number.numerator), str(number.denominator)]


def _encode(array: NDArray[Any]) -> str:
    return base64.b64encode(array.tobytes()).decode("ascii")


JS = Format(
    "js",
    "a module for apps: exact sampling, and a check of every pair bound",
    (".js", ".mjs"),
    _contents,
    options=("classic",),
)
