"""Write a specification for data: a grid or anchors, the prior, metric privacy, and how each key was found."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.data.table import Layout
from mechdesign.data.trajectories import median_interval, seconds_text, to_grid
from mechdesign.model._domain import BoundingBox, Domain, Grid
from mechdesign.model._words import format_bound
from mechdesign.specification._recognise import LAYOUT, Found

# Share of the points near the densest place that lie beyond each side of the box.
_QUANTILE = 0.02
# Half the width of the surroundings of the densest place, in degrees.
_AREA_DEGREES = 0.3
# Least width of the box in degrees, about 200 m.
_MIN_WIDTH_DEGREES = 0.002

_MIN_POINTS = 20
# A note is given if the box contains less than this share of all points.
_MIN_SHARE_INSIDE = 0.5
# A note is given if more than this share of the points in the box are at a single place.
_MAX_SHARE_AT_PLACE = 0.5

_SMOOTHING = 0.01
# An answer changes the odds between neighbouring cells by at most this factor.
_ODDS_FACTOR = 4


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposed grid and ε.

    Attributes:
        domain: The grid.
        epsilon: ε in nats per km.
        inside: Number of points inside the grid.
        outside: Number of points outside the grid.
        notes: Sentences about the data.
    """

    domain: Domain
    epsilon: Fraction
    inside: int
    outside: int
    notes: tuple[str, ...]


def propose(found: Found, cells: int = 64) -> Proposal:
    """Propose a grid of about `cells` cells around the densest points, and an ε for its cells.

    ε = ln 4 / w for cells of width w, the longer side, rounded down to two digits: an answer changes the odds between
    neighbouring cells by a factor of at most 4. Raises `InputError` if `cells` is out of range, or if there are fewer
    than 20 points.
    """
    if not 4 <= cells <= 2500:
        raise InputError("--cells", "is out of range", value=cells, bound="between 4 and 2500")
    latitude = np.concatenate([trace.latitude for trace in found.traces])
    longitude = np.concatenate([trace.longitude for trace in found.traces])
    known = (latitude != 0) | (longitude != 0)
    if (points := int(known.sum())) < _MIN_POINTS:
        problem = "has too few points other than 0,0 to propose a grid"
        raise InputError(str(found.path), problem, value=points, bound=f"at least {_MIN_POINTS}")
    box = _box(latitude[known], longitude[known])
    width, height = box.plane.points(np.array([box.north]), np.array([box.east]))[0].tolist()
    columns = max(1, round(math.sqrt(cells * width / height)))
    rows = max(1, round(cells / columns))
    domain = Domain.geographic_grid(columns, rows, box.south, box.north, box.west, box.east)
    visits = to_grid(found.traces, domain)
    epsilon = _round_down(math.log(_ODDS_FACTOR) / max(width / columns, height / rows))
    notes = (*found.notes, *_notes(latitude, longitude, box, visits.inside))
    return Proposal(domain, epsilon, visits.inside, visits.outside, notes)


def text_of(found: Found, proposal: Proposal, folder: Path | None = None, anchors: bool = False) -> str:
    """Return the specification with comments; with `folder`, the paths of data files are relative to this folder.

    With `anchors`, the secrets are all coordinates of the box instead of its cells. The text does not name any user,
    because specifications are passed on together with their results.
    """
    path = found.path.resolve() if found.path.name in ("", "..") else found.path
    title = path.name if not found.columns else Path(path.name.removesuffix(".gz")).stem
    users = len({trace.user for trace in found.traces})
    lines = [
        f"# Proposed by `mechdesign init` for {proposal.inside + proposal.outside} points of {_people_text(users)}.",
        "# Every number is a suggestion that was computed from the data, so it reveals something about them. Edit the",
        "# numbers, then run `mechdesign design` on this file.",
        # A comment must be one line, even if column names contain line breaks.
        *(f"# Note: {' '.join(note.split())}." for note in proposal.notes),
        "",
        f"title = {_quote(f'Points of {title}')}",
        "",
        *_files(found),
        *(_anchors(proposal) if anchors else _cells(proposal)),
        *_data(found, folder),
        *_requirements(proposal, anchors),
    ]
    return "\n".join(lines) + "\n"


def _files(found: Found) -> Iterator[str]:
    """Yield the table of the layout, with each key that differs from its default, or that was given."""
    values = {key: getattr(found.layout, key) for key in LAYOUT}
    keys = {key: value for key, value in values.items() if value != getattr(Layout(), key) or key in found.how}
    if keys:
        yield "# The layout of the data files."
        yield "[files]"
        for key, value in keys.items():
            yield _line(key, value, found.how[key])
        yield ""


def _cells(proposal: Proposal) -> list[str]:
    """Return the table of the grid, and that of the prior without its file."""
    return [
        f"# Secrets are cells of {_size_text(proposal.domain)}. The box surrounds the place with most points, and",
        f"# contains {proposal.inside} of {proposal.inside + proposal.outside}. More cells give a finer map, but time "
        "grows with the third power of their number.",
        "[domain.grid]",
        *_grid(proposal.domain),
        "",
        "# The probability of each cell, counted over all people; smoothing is added to the count of each cell.",
        "[prior]",
        f"smoothing = {_SMOOTHING}",
        "",
    ]


def _anchors(proposal: Proposal) -> list[str]:
    """Return the tables of the anchors and of the answers, and the comment on the prior."""
    return [
        "# Secrets are all coordinates of the box, which surrounds the place with most points, and contains",
        f"# {proposal.inside} of {proposal.inside + proposal.outside}. Anchors are the corners of cells of "
        f"{_size_text(proposal.domain)}; more anchors lower the cost, and take longer.",
        "[domain.anchors]",
        *_grid(proposal.domain, more=1),
        "",
        "# Answers are the centres of the cells.",
        "[observables.grid]",
        *_grid(proposal.domain),
        "",
        "# The prior: the points of all people, without rounding to cells.",
    ]


def _grid(domain: Domain, more: int = 0) -> list[str]:
    """Return the keys of a grid over the box, with `more` columns and rows than the proposed one."""
    cells, box = _grid_of(domain), domain.geographic
    assert box is not None
    sides = [f"{side} = {getattr(box, side)!r}" for side in ("south", "north", "west", "east")]
    return [f"columns = {cells.columns + more}", f"rows = {cells.rows + more}", *sides]


def _data(found: Found, folder: Path | None) -> Iterator[str]:
    """Yield the table with the file and its columns."""
    yield f"[prior.{'checkins' if found.columns else 'plt'}]"
    yield f"path = {_quote(_relative(found.path, folder))}"
    if found.columns and "user" not in found.columns:
        yield _line("user", False, "given by --user: all rows are one person's")
    for name, column in found.columns.items():
        yield _line(name, column, found.how[name])
    if found.places:
        keys = {**found.places, "path": _relative(Path(found.places["path"]), folder)}
        table = ", ".join(f"{name} = {_quote(value)}" for name, value in keys.items())
        yield f"places = {{ {table} }}  # {found.how['places']}"
    if len({trace.user for trace in found.traces}) > 1:
        yield '# only = "…"  # one person instead of all'
    if (interval := median_interval(found.traces)) is not None:
        yield f"# The median interval of points is {seconds_text(interval)}; a chain should have even steps:"
        yield '# every = "5 min"' if interval < 1800 else '# every = "1 h"'


def _requirements(proposal: Proposal, anchors: bool) -> list[str]:
    """Return the tables of the cost, the requirement and the solver."""
    cells = _grid_of(proposal.domain)
    width = format_bound(max(cells.width / cells.columns, cells.height / cells.rows), up=True, digits=3)
    among, kind = "any two places this far apart", ['kind = "continuous"']
    if not anchors:
        among, kind = "neighbouring cells", ['kind = "metric"', 'distance = "euclidean"']
    return [
        "",
        "# The cost of an answer is its distance from the truth, in km.",
        "[cost]",
        'distance = "euclidean"',
        "",
        f"# Proposed: ε = ln {_ODDS_FACTOR} / {width} km, the longer side of a cell, rounded down to two digits.",
        f"# An answer changes the odds between {among} by a factor of at most",
        f"# exp({width} ε), {_ODDS_FACTOR} as proposed. A smaller ε protects more, and costs more.",
        "# With cells, places on both sides of a border are apart; --anchors protects all coordinates.",
        "[[privacy]]",
        *kind,
        f"epsilon = {exact_text(proposal.epsilon)}",
        "",
        "# A floor, the least expected error in km of an observer who knows the prior, is another requirement. It may",
        "# decide the cost, and a design with a floor has no `mechdesign export --without-prior`:",
        "# [[privacy]]",
        '# kind = "distortion"',
        "# minimum = 0.1",
        '# distance = "euclidean"',
        "",
        "[solver]",
        "tolerance = 1e-6",
    ]


def _line(key: str, value: str | float | bool, how: str) -> str:
    text = _quote(value) if isinstance(value, str) else json.dumps(value)
    return f"{key} = {text}  # {' '.join(how.split())}"


def _people_text(users: int) -> str:
    return "one person" if users == 1 else f"{users} people"


def _size_text(domain: Domain) -> str:
    cells = _grid_of(domain)
    return f"{cells.width / cells.columns:.2g} × {cells.height / cells.rows:.2g} km"


def _grid_of(domain: Domain) -> Grid:
    assert domain.cells is not None
    return domain.cells


def _relative(path: Path, folder: Path | None) -> str:
    """Return the path relative to a folder, both with links resolved, because ".." is the parent of a link's target."""
    if folder is None:
        return str(path)
    try:
        return os.path.relpath(path.parent.resolve() / path.name, folder.resolve())
    except ValueError:  # The path is on another drive.
        return str(path)


def _notes(latitude: Floats, longitude: Floats, box: BoundingBox, inside: int) -> Iterator[str]:
    """Yield notes on coordinates of 0, a box with few points, and coordinates or a place that repeat."""
    for name, degrees in (("latitude", latitude), ("longitude", longitude)):
        if (degrees == degrees[0]).all():
            yield f"every point has the same {name}, so this may not be the right column"
    if zeros := int(((latitude == 0) & (longitude == 0)).sum()):
        yield f"points at 0,0, which often means a missing place: {zeros}; the box ignores them"
    if inside < len(latitude) * _MIN_SHARE_INSIDE:
        few = f", fewer than the {_MIN_POINTS} that a prior needs" if inside < _MIN_POINTS else ""
        yield (
            f"the box contains {inside} of {len(latitude)} points{few}: the other points are far away. Choose the box "
            "by hand, or keep only the points of one area"
        )
    within = (box.south <= latitude) & (latitude <= box.north) & (box.west <= longitude) & (longitude <= box.east)
    _, counts = np.unique(np.column_stack((latitude, longitude))[within], axis=0, return_counts=True)
    if inside >= _MIN_POINTS and (most := counts.max(initial=0)) > _MAX_SHARE_AT_PLACE * inside:
        yield f"{most} of the {inside} points in the box are at exactly one place, which may stand for missing places"


def _box(latitude: Floats, longitude: Floats) -> BoundingBox:
    """Return a box around the place with most points; it may cross the meridian of 180 degrees."""
    if max(map(_extent, (latitude, longitude))) > 2 * _AREA_DEGREES:
        # If the data cover a large region, keep the surroundings of the most visited place.
        place = _most_visited(latitude, longitude)
        longitude = longitude - 360 * np.rint((longitude - longitude[place]) / 360)
        near = np.abs(latitude - latitude[place]) <= _AREA_DEGREES
        near &= np.abs(longitude - longitude[place]) <= _AREA_DEGREES
        latitude, longitude = latitude[near], longitude[near]
    south, north = _sides(latitude, 90)
    west, east = _sides(longitude, 180 if np.abs(longitude).max() <= 180 else 360)
    return BoundingBox(south, north, *((west + 360, east + 360) if west < -180 else (west, east)))


def _extent(values: Floats) -> float:
    low, high = np.quantile(values, [_QUANTILE, 1 - _QUANTILE])
    return float(high - low)


def _most_visited(latitude: Floats, longitude: Floats) -> int:
    """Return the index of a point in the square with most points; squares are a fifth of `_AREA_DEGREES` wide."""
    squares = np.column_stack((latitude, longitude)) // (_AREA_DEGREES / 5)
    _, first, counts = np.unique(squares, axis=0, return_index=True, return_counts=True)
    places: Integers = first.astype(np.int64)
    return int(places[int(np.argmax(counts))])


def _sides(values: Floats, limit: float) -> tuple[float, float]:
    """Return the two opposite sides of the box along one axis, rounded outwards to a thousandth of a degree."""
    low, high = (float(value) for value in np.quantile(values, [_QUANTILE, 1 - _QUANTILE]))
    if high - low < _MIN_WIDTH_DEGREES:
        middle = (low + high) / 2
        low, high = middle - _MIN_WIDTH_DEGREES / 2, middle + _MIN_WIDTH_DEGREES / 2
    return max(-limit, math.floor(low * 1000) / 1000), min(limit, math.ceil(high * 1000) / 1000)


def _round_down(value: float) -> Fraction:
    """Round a positive number down to two significant digits."""
    scale = Fraction(10) ** (1 - math.floor(math.log10(value)))
    return math.floor(Fraction(value) * scale) / scale


def _quote(text: str) -> str:
    # Basic strings of TOML have the same escapes as JSON, except for surrogate pairs.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _escape(sign) for sign in quoted)


def _escape(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
