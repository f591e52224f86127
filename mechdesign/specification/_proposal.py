"""Propose a specification for data: a grid, an ε and a distortion floor."""

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
from mechdesign.data.resampling import median_interval, seconds_text
from mechdesign.data.trajectories import Visits, to_grid
from mechdesign.model import distances
from mechdesign.model._domain import BoundingBox, Domain, Grid
from mechdesign.model._locate import PLANE, locate
from mechdesign.model._prior import Prior
from mechdesign.model._problem import largest_distortion

LEVELS = tuple(Fraction(level) for level in ("0.1", "0.2", "0.5", "1", "2", "5", "10", "20"))
"""Candidates for ε, in nats per km; with the last candidate, odds change by a factor of e² within 100 m."""

_NUMBER_OF_DRAWS = 2**15


@dataclass(frozen=True)
class Worth:
    """The least ε of `LEVELS` at which noise costs at most half as much as no release.

    Attributes:
        epsilon: The ε in nats per km, or None if no level suffices.
        noise: The cost of noise with this ε, or with the last level, in km.
        nothing: The cost without a release, which is the cost of the best constant answer, in km.
    """

    epsilon: Fraction | None
    noise: float
    nothing: float


def worthwhile_epsilon(domain: Domain, prior: Prior) -> Worth:
    """Return the least ε of `LEVELS` at which planar Laplace noise costs at most half as much as no release."""
    nothing = float((prior.probabilities @ distances.euclidean(domain)).min())
    noise = 0.0
    for epsilon in LEVELS:
        noise = noise_cost(domain, prior, epsilon)
        if noise <= nothing / 2 and nothing > 0:
            return Worth(epsilon, noise, nothing)
    return Worth(None, noise, nothing)


def noise_cost(domain: Domain, prior: Prior, epsilon: Fraction) -> float:
    """Estimate the expected distance in km between a cell and its release with planar Laplace noise.

    Noise z with density ε²/(2π) exp(−ε‖z‖) is added to the centre of a cell drawn from the prior. Points outside the
    grid are mapped to the nearest cell. The draws come from a fixed seed, so the result is reproducible.
    """
    cells, noise = _draws(domain, prior)
    area = domain.area(PLANE)
    assert area is not None
    true = domain.points[cells]
    found, _ = locate(area, tuple((true + noise / float(epsilon)).T), "nearest")
    return float(np.hypot(*(domain.points[found] - true).T).mean())


def _draws(domain: Domain, prior: Prior) -> tuple[np.ndarray[tuple[int, ...], np.dtype[np.int64]], Floats]:
    """Return cells drawn from the prior, and noise with ε = 1."""
    generator = np.random.default_rng(0)
    cells = generator.choice(domain.size, _NUMBER_OF_DRAWS, p=prior.probabilities)
    radius = generator.gamma(2.0, size=_NUMBER_OF_DRAWS)
    angle = generator.uniform(0, 2 * np.pi, _NUMBER_OF_DRAWS)
    return cells, np.column_stack((radius * np.cos(angle), radius * np.sin(angle)))


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
# A comment gives the distance within which odds change by this factor.
_ODDS_FACTOR = 4


@dataclass(frozen=True, eq=False)
class Proposal:
    """A proposed grid, ε and distortion floor.

    Attributes:
        domain: The grid.
        epsilon: ε in nats per km.
        worth: The cost of noise with this ε. If noise is too expensive at every level, ε is the last level.
        floor: The distortion floor in km.
        largest_floor: The largest floor that a channel can reach, in km.
        inside: Number of points inside the grid.
        outside: Number of points outside the grid.
        notes: Sentences about the data.

    >>> domain = Domain.geographic_grid(2, 1, south=46, north=46.1, west=7, east=7.2)
    >>> proposal = Proposal(domain, Fraction(1), Worth(Fraction(1), 1.9, 4.0), Fraction(1), 3.8, 30, 0)
    >>> proposal.domain.size
    2
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
    """Propose a grid, an ε and a distortion floor for data.

    Args:
        found: The data, as `mechdesign init` reads them.
        cells: Approximate number of cells, between 4 and 2500.

    Returns:
        The proposal.

    Raises:
        InputError: The number of cells is out of range, or there are fewer than 20 points.

    >>> import tempfile
    >>> from mechdesign.data._inspection import inspect_data
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "checkins.csv")
    ...     rows = [f"46.{950 + k % 5},7.{440 + k % 7}" for k in range(35)]
    ...     _ = file.write_text(chr(10).join(["latitude,longitude", *rows]))
    ...     proposal = propose(inspect_data(file), cells=16)
    >>> proposal.domain.size, proposal.inside
    (16, 35)
    """
    if not 4 <= cells <= 2500:
        raise InputError("cells", "is out of range", value=cells, bound="between 4 and 2500")
    points = sum(map(len, found.traces))
    if points < _MIN_POINTS:
        raise InputError(
            str(found.path), "contains too few points to propose a grid", value=points, bound=f"at least {_MIN_POINTS}"
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
        _round_to_two_digits(largest / 4, down=True),
        largest,
        visits.inside,
        visits.outside,
        (*_notes(found), *_notes_on_box(found, visits), *_notes_on_noise(worth)),
    )


def text_of(found: DataSource, proposal: Proposal, folder: Path | None = None, anchors: bool = False) -> str:
    """Return the specification with comments; with `folder`, the paths of data files are relative to this folder.

    With `anchors`, the secrets are all coordinates of the box instead of its cells. The text does not name any user,
    because specifications are passed on together with their results.
    """
    path = str(found.path) if folder is None else _relative(found.path, folder)
    points = proposal.inside + proposal.outside
    users = {trace.user for trace in found.traces}
    form = "plt" if found.is_folder else "checkins"
    interval = median_interval(found.traces)
    whose = "one user, by the name of a folder," if found.is_folder else "one user of the column"
    lines = [
        f"# Proposed by `mechdesign init`: {points} points of {len(users)} user{'s' * (len(users) != 1)}.",
        "# Every number is a suggestion that was computed from the data, so it reveals something about them. Edit the",
        "# numbers, then run `mechdesign design` on this file.",
        # A comment must be one line, even if column names contain line breaks.
        *(f"# Note: {' '.join(note.split())}." for note in proposal.notes),
        "",
        f"title = {_quote(_title(found))}",
        "",
        *(_lines_on_anchors(proposal) if anchors else [*_lines_on_cells(proposal), ""]),
        f"[prior.{form}]",
        f"path = {_quote(path)}",
    ]
    if not found.is_folder:
        lines += _lines_on_columns(found, folder)
    if found.said.missing is not None:
        lines.append(f"missing = {found.said.missing!r}")
    if len(users) > 1:
        lines.append(f'# only = "…"  # {whose} instead of all')
    if interval is not None and not anchors:
        lines.append(f"# The median interval of points is {seconds_text(interval)}; a chain should have even steps:")
        lines.append('# every = "5 min"' if interval < 1800 else '# every = "1 h"')
    lines += _lines_on_privacy(proposal, anchors)
    if len(users) > 1:
        lines += [
            "",
            "# A separate mechanism for some users, with `mechdesign sweep`; the names of these users appear in its",
            "# results:",
            "# [sweep]",
            f'# "prior.{form}.only" = ["…", "…"]',
        ]
    return "\n".join(lines) + "\n"


def _lines_on_cells(proposal: Proposal) -> list[str]:
    """Return the table of the grid, and that of the prior without its file."""
    cells = proposal.domain.cells
    assert cells is not None
    return [
        f"# Secrets are cells of {_size_text(cells)}. The box surrounds the place with most points,",
        f"# and contains {proposal.inside} of {proposal.inside + proposal.outside}. More cells give a finer map, but "
        "time grows with the third power of their number.",
        "[domain.grid]",
        *_lines_on_box(proposal),
        "",
        "# The probability of each cell, counted over all users; smoothing is added to the count of each cell.",
        "[prior]",
        f"smoothing = {_SMOOTHING}",
    ]


def _lines_on_anchors(proposal: Proposal) -> list[str]:
    """Return the tables of the anchors and of the answers, and the comment on the prior."""
    cells = proposal.domain.cells
    assert cells is not None
    return [
        "# Secrets are all coordinates of the box, which surrounds the place with most points, and contains",
        f"# {proposal.inside} of {proposal.inside + proposal.outside}. Anchors are the corners of cells of "
        f"{_size_text(cells)}; more anchors lower the cost, and take longer.",
        "[domain.anchors]",
        *_lines_on_box(proposal, more=1),
        "",
        "# Answers are the centres of the cells.",
        "[observables.grid]",
        *_lines_on_box(proposal),
        "",
        "# The prior: the points of all users, without rounding to cells.",
    ]


def _lines_on_box(proposal: Proposal, more: int = 0) -> list[str]:
    """Return the keys of a grid over the box, with `more` columns and rows than the proposed one."""
    cells, box = proposal.domain.cells, proposal.domain.geographic
    assert cells is not None
    assert box is not None
    sides = [f"{side} = {getattr(box, side)!r}" for side in ("south", "north", "west", "east")]
    return [f"columns = {cells.columns + more}", f"rows = {cells.rows + more}", *sides]


def _size_text(cells: Grid) -> str:
    return f"{cells.width / cells.columns:.2g} × {cells.height / cells.rows:.2g} km"


def _lines_on_privacy(proposal: Proposal, anchors: bool) -> list[str]:
    """Return the tables of the cost, the requirements and the solver."""
    distance = math.log(_ODDS_FACTOR) / proposal.epsilon
    if anchors:
        promise = [
            f"# An answer changes the odds between any two places {distance:.2g} km apart by a factor of at most "
            f"{_ODDS_FACTOR}.",
            "# A smaller ε protects more, at a higher cost.",
            "[[privacy]]",
            'kind = "continuous"',
            f"epsilon = {_decimal(proposal.epsilon)}",
        ]
    else:
        promise = [
            f"# An answer changes the odds between cells whose centres are {distance:.2g} km apart by a factor of at "
            f"most {_ODDS_FACTOR}.",
            "# Places on both sides of a border are in two cells; the option --anchors protects all coordinates.",
            "# A smaller ε protects more, at a higher cost.",
            "[[privacy]]",
            'kind = "metric"',
            f"epsilon = {_decimal(proposal.epsilon)}",
            'distance = "euclidean"',
        ]
    return [
        "",
        "# The cost of an answer is its distance from the truth, in km.",
        "[cost]",
        'distance = "euclidean"',
        "",
        *_lines_on_noise(proposal.worth, anchors),
        *promise,
        "",
        "# The least expected error in km of the best guess by an adversary who knows the prior. Releasing nothing "
        "reaches",
        f"# {proposal.largest_floor:.3g}. Remove this table to rely on ε alone.",
        "[[privacy]]",
        'kind = "distortion"',
        f"minimum = {_decimal(proposal.floor)}",
        'distance = "euclidean"',
        "",
        "[solver]",
        "tolerance = 1e-6",
    ]


def _lines_on_columns(found: DataSource, folder: Path | None) -> list[str]:
    """Return the keys for the columns of a table and its layout."""
    lines = [f"{name} = {_quote(column)}" for name, column in found.columns.items()]
    if found.joined is not None:
        lines.append(_places_line(found.joined, folder))
    if "user" not in found.columns:
        lines.append('user = ""  # there is no column of users: all lines are counted together')
    given, timed = found.said, "time" in found.columns
    keys = {
        "time_format": given.time_format if timed else None,
        "time_zone": given.time_zone if timed else None,
        "longitudes": given.longitudes,
        "delimiter": None if found.delimiter == "," else found.delimiter,
        "decimal": layout.current_layout().decimal,
        "encoding": layout.current_layout().encoding,
    }
    return lines + [f"{key} = {_quote(value)}" for key, value in keys.items() if value is not None]


def _lines_on_noise(worth: Worth, anchors: bool) -> tuple[str, ...]:
    """Return the comment on the choice of ε."""
    tried = f"{', '.join(map(exact_text, LEVELS[:3]))}, …, {exact_text(LEVELS[-1])} per km"
    costs = f"{worth.noise:.2g} of {worth.nothing:.2g} km"
    if worth.epsilon is None:
        return (
            f"# ε was chosen from the data. For all of {tried} planar Laplace",
            "# noise costs more than half as much as no release. This ε is the largest of them, with a cost of "
            f"{costs}.",
        )
    return (
        f"# ε was chosen from the data: it is the least of {tried} for which planar",
        f"# Laplace noise costs at most half as much as no release, here {costs}. "
        f"{'Coarse anchors may cost more.' if anchors else 'This design costs less.'}",
    )


def _places_line(joined: Joined, folder: Path | None) -> str:
    """Return the key `places`: the table of places, and its columns."""
    path = str(joined.path) if folder is None else _relative(joined.path, folder)
    keys = {"path": path, "key": joined.key, "latitude": joined.latitude, "longitude": joined.longitude}
    if joined.delimiter != ",":
        keys["delimiter"] = joined.delimiter
    return f"places = {{ {', '.join(f'{name} = {_quote(value)}' for name, value in keys.items())} }}"


def _relative(path: Path, folder: Path) -> str:
    """Return the path relative to a folder, both with links resolved, because ".." is the parent of a link's target."""
    try:
        return os.path.relpath(path.parent.resolve() / path.name, folder.resolve())
    except ValueError:  # The path is on another drive.
        return str(path)


def _title(found: DataSource) -> str:
    path = found.path.resolve() if found.path.name in ("", "..") else found.path
    if found.is_folder:
        return f"Points of {path.name}"
    return f"Points of {Path(path.name.removesuffix('.gz')).stem}"


def _notes(found: DataSource) -> tuple[str, ...]:
    """Return notes about oddities in the data."""
    notes = [*found.unread, *found.notes]
    if "time" not in found.columns and not found.is_folder:
        notes.append(found.order)
    for name in ("latitude", "longitude"):
        if len(np.unique(np.concatenate([getattr(trace, name) for trace in found.traces]))) == 1:
            notes.append(f"every point has the same {name}, so this may not be the right column")
    return tuple(notes)


def _notes_on_box(found: DataSource, visits: Visits) -> tuple[str, ...]:
    """Return notes about a box that has few points, or most points at one place, and about coordinates of 0."""
    latitude, longitude = _coordinates(found)
    notes, points = [], len(latitude)
    if zeros := int(((latitude == 0) & (longitude == 0)).sum()):
        notes.append(f"{_points_text(zeros)} at 0,0, which often means a missing place; the box ignores them")
    if visits.inside < points * _MIN_SHARE_INSIDE:
        few = f", fewer than the {_MIN_POINTS} that a prior needs" if visits.inside < _MIN_POINTS else ""
        notes.append(
            f"the box contains {visits.inside} of {points} points{few}: the other points are far away. Choose the "
            "box by "
            "hand, or keep only the points of one area"
        )
    box = visits.domain.geographic
    assert box is not None
    inside = (box.south <= latitude) & (latitude <= box.north) & (box.west <= longitude) & (longitude <= box.east)
    _, counts = np.unique(np.column_stack((latitude, longitude))[inside], axis=0, return_counts=True)
    if halves := int(((latitude == 0) ^ (longitude == 0))[~inside].sum()):
        notes.append(
            f"{_points_text(halves)} outside the box with a latitude or longitude of 0, which may stand for a "
            "missing value"
        )
    if visits.inside >= _MIN_POINTS and counts.max(initial=0) > _MAX_SHARE_AT_PLACE * visits.inside:
        notes.append(
            f"{counts.max()} of the {visits.inside} points in the box are at exactly one place, which may stand for "
            "missing places"
        )
    return tuple(notes)


def _notes_on_noise(worth: Worth) -> tuple[str, ...]:
    if worth.epsilon is not None:
        return ()
    least, most = exact_text(LEVELS[0]), exact_text(LEVELS[-1])
    return (
        f"planar Laplace noise costs more than half as much as no release for every ε from {least} to {most} per km: "
        f"{worth.noise:.2g} of {worth.nothing:.2g} km. Choose another box, or ε by hand",
    )


def _points_text(points: int) -> str:
    return f"{points} point{'s are' if points > 1 else ' is'}"


def _coordinates(found: DataSource) -> tuple[Floats, Floats]:
    latitude = np.concatenate([trace.latitude for trace in found.traces])
    return latitude, np.concatenate([trace.longitude for trace in found.traces])


def _box(found: DataSource) -> BoundingBox:
    """Return a box around the place with most points, other than 0,0; it may cross the meridian of 180 degrees."""
    latitude, longitude = _coordinates(found)
    known = (latitude != 0) | (longitude != 0)
    if known.sum() < _MIN_POINTS:
        problem = "contains too few points other than 0,0 to propose a grid"
        raise InputError(str(found.path), problem, value=int(known.sum()), bound=f"at least {_MIN_POINTS}")
    latitude, longitude = latitude[known], longitude[known]
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


def _round_to_two_digits(value: float, down: bool = False) -> Fraction:
    """Round a positive number to two significant digits."""
    if not value > 0:
        return Fraction(0)
    digits = 1 - math.floor(math.log10(value))
    scaled = Fraction(value) * Fraction(10) ** digits
    return Fraction(math.floor(scaled) if down else round(scaled)) / Fraction(10) ** digits


def _decimal(value: Fraction) -> str:
    return repr(float(value))


def _quote(text: str) -> str:
    # Basic strings of TOML have the same escapes as JSON, except for surrogate pairs.
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(sign if sign.isprintable() else _escape(sign) for sign in quoted)


def _escape(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"
