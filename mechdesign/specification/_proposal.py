"""A specification proposed for data, with an ε that is worth its cost."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from mechdesign.base._arrays import Floats, Integers
from mechdesign.base._errors import InputError
from mechdesign.certify._exact import exact_text
from mechdesign.data import _layout as layout
from mechdesign.data._inspection import DataSource
from mechdesign.data._joining import Joined
from mechdesign.data._resampling import median_interval, seconds_text
from mechdesign.data._trajectories import Visits, to_grid
from mechdesign.model import distances
from mechdesign.model._domain import BoundingBox, Domain
from mechdesign.model._locate import PLANE, locate
from mechdesign.model._prior import Prior
from mechdesign.model._problem import largest_distortion

LEVELS = tuple(Fraction(level) for level in ("0.1", "0.2", "0.5", "1", "2", "5", "10", "20"))
"""The ε that are tried, in nats per km: with the last one, odds change by a factor of e² within 100 m."""

_DRAWS = 2**15


@dataclass(frozen=True)
class Worth:
    """The least ε of `LEVELS` at which noise costs at most half of telling nothing, or None; costs are in km.

    Attributes:
        epsilon: the ε.
        noise: what noise costs with it, or with the last of `LEVELS`.
        nothing: what it costs to give the same answer always, the best one.
    """

    epsilon: Fraction | None
    noise: float
    nothing: float


def worthwhile_epsilon(domain: Domain, prior: Prior) -> Worth:
    """Return the least ε of `LEVELS` at which planar Laplace noise costs at most half of telling nothing."""
    nothing = float((prior.probabilities @ distances.euclidean(domain)).min())
    noise = 0.0
    for epsilon in LEVELS:
        noise = noise_cost(domain, prior, epsilon)
        if noise <= nothing / 2 and nothing > 0:
            return Worth(epsilon, noise, nothing)
    return Worth(None, noise, nothing)


def noise_cost(domain: Domain, prior: Prior, epsilon: Fraction) -> float:
    """Return the expected distance between a cell and that in which it is released with planar Laplace noise, in km.

    Noise z of density ε²/(2π) exp(−ε‖z‖) is added to the middle of a cell that is drawn from the prior; beyond the grid
    the nearest cell is taken. The mean of so many draws is always the same: they come from a seed, and hide nothing.
    """
    cells, noise = _draws(domain, prior)
    area = domain.area(PLANE)
    assert area is not None
    true = domain.points[cells]
    found, _ = locate(area, tuple((true + noise / float(epsilon)).T), "nearest")
    return float(np.hypot(*(domain.points[found] - true).T).mean())


def _draws(domain: Domain, prior: Prior) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    """Return cells from the prior, and noise with ε = 1."""
    generator = np.random.default_rng(0)
    cells = generator.choice(domain.size, _DRAWS, p=prior.probabilities)
    radius, angle = generator.gamma(2.0, size=_DRAWS), generator.uniform(0, 2 * np.pi, _DRAWS)
    return cells, np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


# The box holds this share of the points on either side of it, of those around the place where most are.
_QUANTILE = 0.02
_AREA = 0.3  # degrees
_SMALLEST = 0.002  # degrees, about 200 m

_FEWEST = 20  # points
# Shares of points: a box with fewer, or with more of its points at one place, is told.
_FEW, _SAME = 0.5, 0.5

_SMOOTHING = 0.01
_FACTOR = 4


@dataclass(frozen=True, eq=False)
class Proposal:
    """A grid, and numbers for it: ε in nats per km, and a floor in km with the largest one that can be reached.

    `worth` says what noise costs with this ε, which is the last that was tried where none is worth its cost.
    """

    domain: Domain
    epsilon: Fraction
    worth: Worth
    floor: Fraction
    largest_floor: float
    inside: int
    outside: int
    notes: tuple[str, ...] = ()


def propose(found: DataSource, cells: int = 64) -> Proposal:
    """Return a proposal for data, with about so many cells."""
    if not 4 <= cells <= 2500:
        raise InputError("cells", "is out of range", value=cells, bound="between 4 and 2500")
    points = sum(map(len, found.traces))
    if points < _FEWEST:
        raise InputError(
            str(found.path), "holds too few points to propose a grid", value=points, bound=f"at least {_FEWEST}"
        )
    box = _box(found)
    width, height = box.plane.points(np.array([box.north]), np.array([box.east]))[0].tolist()
    columns = max(1, round(math.sqrt(cells * width / height)))
    rows = max(1, round(cells / columns))
    domain = Domain.geographic_grid(columns, rows, box.south, box.north, box.west, box.east)
    visits = to_grid(found.traces, domain)
    lengths = distances.euclidean(domain)
    prior = Prior.from_counts(visits.counts().astype(np.float64), _SMOOTHING)
    largest = float(largest_distortion(prior, lengths))
    worth = worthwhile_epsilon(domain, prior)
    return Proposal(
        domain,
        worth.epsilon or LEVELS[-1],
        worth,
        _rounded(largest / 4, down=True),
        largest,
        visits.inside,
        visits.outside,
        (*_notes(found), *_notes_on_box(found, visits), *_notes_on_noise(worth)),
    )


def text_of(found: DataSource, proposal: Proposal, folder: Path | None = None) -> str:
    """Return the specification, with comments; the data are named relative to `folder`, or as they were named.

    No user is named: a specification is handed on with what is made of it.
    """
    domain = proposal.domain
    cells, box = domain.cells, domain.geographic
    assert cells is not None
    assert box is not None
    path = str(found.path) if folder is None else _relative(found.path, folder)
    points = proposal.inside + proposal.outside
    users = {trace.user for trace in found.traces}
    form = "plt" if found.is_folder else "checkins"
    interval = median_interval(found.traces)
    whose = "one user, by the name of a folder," if found.is_folder else "one user of the column"
    lines = [
        f"# Proposed by `mechdesign init`: {points} points of {len(users)} user{'s' * (len(users) != 1)}.",
        "# Every number is a suggestion, chosen by the data: it tells something of them. Change it, then run",
        "# `mechdesign design` on this file.",
        # A comment is one line, whatever the names of columns hold.
        *(f"# Note: {' '.join(note.split())}." for note in proposal.notes),
        "",
        f"title = {_quoted(_title(found))}",
        "",
        f"# Secrets are cells of {cells.width / cells.columns:.2g} × {cells.height / cells.rows:.2g} km. The box is "
        "about the place where points are densest,",
        f"# and holds {proposal.inside} of {points}. More cells are finer, and slower: time grows with their third "
        "power.",
        "[domain.grid]",
        f"columns = {cells.columns}",
        f"rows = {cells.rows}",
        *(f"{side} = {getattr(box, side)!r}" for side in ("south", "north", "west", "east")),
        "",
        "# How likely each cell is: counted in the data, all users together; smoothing is for cells without a visit.",
        "[prior]",
        f"smoothing = {_SMOOTHING}",
        "",
        f"[prior.{form}]",
        f"path = {_quoted(path)}",
    ]
    if not found.is_folder:
        lines += _lines_on_columns(found, folder)
    if found.said.missing is not None:
        lines.append(f"missing = {found.said.missing!r}")
    if len(users) > 1:
        lines.append(f'# only = "…"  # {whose} instead of all')
    if interval is not None:
        lines.append(f"# Points are {seconds_text(interval)} apart in the median; steps of a chain should be even:")
        lines.append('# every = "5 min"' if interval < 1800 else '# every = "1 h"')
    lines += _lines_on_privacy(proposal)
    if len(users) > 1:
        lines += [
            "",
            "# A mechanism for each of some users, by `mechdesign sweep`; the users that are named here can be read in",
            "# what it writes:",
            "# [sweep]",
            f'# "prior.{form}.only" = ["…", "…"]',
        ]
    return "\n".join(lines) + "\n"


def _lines_on_privacy(proposal: Proposal) -> list[str]:
    """Return what answers cost and what is asked of them, and how near to the least cost."""
    return [
        "",
        "# What an answer costs: its distance from the truth, in km.",
        "[cost]",
        'distance = "euclidean"',
        "",
        *_lines_on_noise(proposal.worth),
        f"# Whoever sees an answer can shift the odds between two places {math.log(_FACTOR) / proposal.epsilon:.2g} km "
        f"apart by a factor of {_FACTOR} at most,",
        "# between closer ones by less. A smaller ε hides more, at a higher cost.",
        "[[privacy]]",
        'kind = "metric"',
        f"epsilon = {_decimal(proposal.epsilon)}",
        'distance = "euclidean"',
        "",
        "# The best guess of an adversary who knows the prior is expected to be off by this many km; releasing nothing",
        f"# reaches {proposal.largest_floor:.3g}. Leave it out to be protected by ε alone.",
        "[[privacy]]",
        'kind = "distortion"',
        f"minimum = {_decimal(proposal.floor)}",
        'distance = "euclidean"',
        "",
        "[solver]",
        "tolerance = 1e-6",
    ]


def _lines_on_columns(found: DataSource, folder: Path | None) -> list[str]:
    """Return the keys that say which columns of a table hold what, and how it is written."""
    lines = [f"{name} = {_quoted(column)}" for name, column in found.columns.items()]
    if found.joined is not None:
        lines.append(_places_line(found.joined, folder))
    if "user" not in found.columns:
        lines.append('user = ""  # no column says who it was: all lines are counted together')
    said, timed = found.said, "time" in found.columns
    written = {
        "time_format": said.time_format if timed else None,
        "time_zone": said.time_zone if timed else None,
        "longitudes": said.longitudes,
        "delimiter": None if found.delimiter == "," else found.delimiter,
        "decimal": layout.current_layout().decimal,
        "encoding": layout.current_layout().encoding,
    }
    return lines + [f"{key} = {_quoted(value)}" for key, value in written.items() if value is not None]


def _lines_on_noise(worth: Worth) -> tuple[str, ...]:
    """Return the comment on where ε comes from."""
    tried = f"{', '.join(map(exact_text, LEVELS[:3]))}, …, {exact_text(LEVELS[-1])} per km"
    costs = f"{worth.noise:.2g} of {worth.nothing:.2g} km"
    if worth.epsilon is None:
        return (
            f"# ε was chosen by the data. With none of {tried} does drawn planar Laplace noise cost",
            f"# at most half of telling nothing. With the last one, which stands here, it costs {costs}.",
        )
    return (
        f"# ε was chosen by the data: it is the least of {tried} with which drawn planar Laplace",
        f"# noise costs at most half of telling nothing, here {costs}. This design costs less.",
    )


def _places_line(joined: Joined, folder: Path | None) -> str:
    """Return the key `places`: the table of places, and its columns."""
    path = str(joined.path) if folder is None else _relative(joined.path, folder)
    keys = {"path": path, "key": joined.key, "latitude": joined.latitude, "longitude": joined.longitude}
    if joined.delimiter != ",":
        keys["delimiter"] = joined.delimiter
    return f"places = {{ {', '.join(f'{name} = {_quoted(value)}' for name, value in keys.items())} }}"


def _relative(path: Path, folder: Path) -> str:
    """Return the path from a folder; links on the way are followed, as ".." follows them."""
    try:
        return os.path.relpath(path.parent.resolve() / path.name, folder.resolve())
    except ValueError:  # On another drive.
        return str(path)


def _title(found: DataSource) -> str:
    path = found.path.resolve() if found.path.name in ("", "..") else found.path
    if found.is_folder:
        return f"Points of {path.name}"
    return f"Points of {Path(path.name.removesuffix('.gz')).stem}"


def _notes(found: DataSource) -> tuple[str, ...]:
    """Return what is odd about the data."""
    notes = [*found.unread, *found.notes]
    if "time" not in found.columns and not found.is_folder:
        notes.append(found.order)
    for name in ("latitude", "longitude"):
        if len(np.unique(np.concatenate([getattr(trace, name) for trace in found.traces]))) == 1:
            notes.append(f"every point has the same {name}, as if it were not the right column")
    return tuple(notes)


def _notes_on_box(found: DataSource, visits: Visits) -> tuple[str, ...]:
    """Say where the box holds few points, or nearly all at one place; and how many points stand for none."""
    latitude, longitude = _coordinates(found)
    notes, points = [], len(latitude)
    if zeros := int(((latitude == 0) & (longitude == 0)).sum()):
        notes.append(f"{_counted(zeros)} at 0,0, which often stands for a missing place: the box is made without them")
    if visits.inside < points * _FEW:
        few = f", fewer than the {_FEWEST} that a prior needs" if visits.inside < _FEWEST else ""
        notes.append(
            f"the box holds {visits.inside} of {points} points{few}: the others are far from it, or far apart. Choose "
            "the box by hand, or keep the points of one area"
        )
    box = visits.domain.geographic
    assert box is not None
    inside = (box.south <= latitude) & (latitude <= box.north) & (box.west <= longitude) & (longitude <= box.east)
    _, counts = np.unique(np.column_stack((latitude, longitude))[inside], axis=0, return_counts=True)
    if halves := int(((latitude == 0) ^ (longitude == 0))[~inside].sum()):
        notes.append(f"{_counted(halves)} outside the box at a latitude or a longitude of 0, as if one were missing")
    if visits.inside >= _FEWEST and counts.max(initial=0) > _SAME * visits.inside:
        notes.append(
            f"{counts.max()} of the {visits.inside} points in the box are at one place exactly, as if it stood for a "
            "missing one"
        )
    return tuple(notes)


def _notes_on_noise(worth: Worth) -> tuple[str, ...]:
    if worth.epsilon is not None:
        return ()
    least, most = exact_text(LEVELS[0]), exact_text(LEVELS[-1])
    return (
        f"with no ε of {least} to {most} per km does planar Laplace noise cost at most half of telling nothing: it "
        f"costs {worth.noise:.2g} of {worth.nothing:.2g} km. Choose another box, or ε by hand",
    )


def _counted(points: int) -> str:
    return f"{points} point{'s are' if points > 1 else ' is'}"


def _coordinates(found: DataSource) -> tuple[Floats, Floats]:
    latitude = np.concatenate([trace.latitude for trace in found.traces])
    return latitude, np.concatenate([trace.longitude for trace in found.traces])


def _box(found: DataSource) -> BoundingBox:
    """Return a box about the place where points are densest, also across the meridian of 180 degrees; not about 0,0."""
    latitude, longitude = _coordinates(found)
    known = (latitude != 0) | (longitude != 0)
    if known.sum() < _FEWEST:
        problem = "holds too few points to propose a grid, but for those at 0,0"
        raise InputError(str(found.path), problem, value=int(known.sum()), bound=f"at least {_FEWEST}")
    latitude, longitude = latitude[known], longitude[known]
    if max(map(_extent, (latitude, longitude))) > 2 * _AREA:
        # Of data from all over the world, the surroundings of the most visited place.
        place = _most_visited(latitude, longitude)
        longitude = longitude - 360 * np.rint((longitude - longitude[place]) / 360)
        near = (np.abs(latitude - latitude[place]) <= _AREA) & (np.abs(longitude - longitude[place]) <= _AREA)
        latitude, longitude = latitude[near], longitude[near]
    south, north = _sides(latitude, 90)
    west, east = _sides(longitude, 180 if np.abs(longitude).max() <= 180 else 360)
    return BoundingBox(south, north, *((west + 360, east + 360) if west < -180 else (west, east)))


def _extent(values: Floats) -> float:
    low, high = np.quantile(values, [_QUANTILE, 1 - _QUANTILE])
    return float(high - low)


def _most_visited(latitude: Floats, longitude: Floats) -> int:
    """Return a point of the square, a fifth of the area wide, that holds most points."""
    squares = np.column_stack((latitude, longitude)) // (_AREA / 5)
    _, first, counts = np.unique(squares, axis=0, return_index=True, return_counts=True)
    places: Integers = first.astype(np.int64)
    return int(places[int(np.argmax(counts))])


def _sides(values: Floats, limit: float) -> tuple[float, float]:
    """Return the sides of the box in one direction, rounded outwards to a thousandth of a degree."""
    low, high = (float(value) for value in np.quantile(values, [_QUANTILE, 1 - _QUANTILE]))
    if high - low < _SMALLEST:
        middle = (low + high) / 2
        low, high = middle - _SMALLEST / 2, middle + _SMALLEST / 2
    return max(-limit, math.floor(low * 1000) / 1000), min(limit, math.ceil(high * 1000) / 1000)


def _rounded(value: float, down: bool = False) -> Fraction:
    """Return two significant digits of a positive number."""
    if not value > 0:
        return Fraction(0)
    digits = 1 - math.floor(math.log10(value))
    scaled = Fraction(value) * Fraction(10) ** digits
    return Fraction(math.floor(scaled) if down else round(scaled)) / Fraction(10) ** digits


def _decimal(value: Fraction) -> str:
    return repr(float(value))


def _quoted(text: str) -> str:
    # A basic string of TOML escapes as JSON does; halves of surrogate pairs, which it has not, are shown as they are.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _escaped(sign) for sign in quoted)


def _escaped(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
