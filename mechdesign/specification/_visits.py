"""Raw visits of a specification: with anchors as the domain, coordinates are used without cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechdesign.base._arrays import Flags, Floats
from mechdesign.base._errors import SpecificationError
from mechdesign.data.movement import Fault, LeftOut, Movement, blank, degrees_of, numbers_of
from mechdesign.data.table import read_table
from mechdesign.model._dithering import anchor_means, between
from mechdesign.model._domain import Domain
from mechdesign.model._grammar import PriorTable, VisitsFile
from mechdesign.model._locate import INTERCHANGED
from mechdesign.model._prior import Prior
from mechdesign.specification._measures import CostTable, scale_cost
from mechdesign.specification._priors import read_traces
from mechdesign.specification._read import Source


@dataclass(frozen=True, eq=False)
class RawVisits:
    """Raw coordinates (k, 2), in the axes of the anchors, and notes for the user about the data."""

    points: Floats
    notes: tuple[str, ...]


def read_raw_visits(table: PriorTable, source: Source, anchors: Domain) -> RawVisits | None:
    """Return the raw visits named in the table of a prior, or None if the prior is on the secrets themselves."""
    if anchors.lattice is None or table.form not in ("visits", "checkins", "plt"):
        return None
    if table.smoothing is not None:
        raise source.error("smoothing", "cannot be combined with raw visits", remedy="remove the key")
    if table.visits is not None:
        place = source / "visits"
        points, people, note = _read_places(table.visits, place, anchors)
        outside = int(_outside(points, anchors).sum())
        if outside == len(points):
            raise _nowhere(points, anchors, place)
        notes = [f"{outside} of {len(points)} visits outside the anchors are projected to their border"] * (outside > 0)
        notes += [f"{place}: {note}"] * bool(note)
        return RawVisits(points, (f"{len(points)} visits{people} are used without rounding", *notes))
    data, place = table.checkins or table.plt, source / table.form
    assert data is not None
    if anchors.geographic is None:
        bound = "anchors = { columns, rows, south, north, west, east }"
        raise place.error("", "requires anchors with latitudes and longitudes", bound=bound)
    found = read_traces(data, place)
    every = np.concatenate([np.column_stack((trace.latitude, trace.longitude)) for trace in found.traces])
    inside = ~_outside(every, anchors)
    if not inside.any():
        raise _nowhere(every, anchors, place)
    users = len(dict.fromkeys(trace.user for trace in found.traces))
    taken = f"{int(inside.sum())} points of {users} user(s) are used without rounding"
    beyond = () if inside.all() else (f"{int((~inside).sum())} points outside the box are left out",)
    return RawVisits(every[inside], (*found.notes, taken, *beyond))


def _read_places(table: VisitsFile, source: Source, anchors: Domain) -> tuple[Floats, str, str]:
    """Return the coordinates (k, 2) of visits, in the axes of the anchors, their people and rows left out, in words."""
    layout = source.layout
    with source.file(table) as file:
        on_earth = anchors.geographic is not None
        names = (table.latitude, table.longitude) if on_earth else (table.x, table.y)
        named = (table.user,) if isinstance(table.user, str) else ()
        found, left_out, faults = read_table(file, (*names, *named), layout), LeftOut(layout.missing), list[Fault]()
        user = source.user_column(table.user, found.name if found.others else "")
        if user is not None:
            faults.append(blank(found, user, "user"))
        places = np.column_stack((degrees_of if on_earth else numbers_of)(found, names, faults))
        kept = left_out.keep(found, faults)
        left_out.check()
    users = 1 if user is None else len({found.texts(user)[row] for row in kept})
    people = "" if table.user is None else f" of {users} user(s)"
    return places[kept], people, Movement((), left_out.counts).note


def _outside(points: Floats, anchors: Domain) -> Flags:
    """Return a mask of the points (k, 2) outside the rectangle of the anchors."""
    assert anchors.lattice is not None
    return anchors.lattice.corners(points[:, 0], points[:, 1]).outside


def _nowhere(points: Floats, anchors: Domain, source: Source) -> SpecificationError:
    """Return the error if all points are outside; it tells if latitude and longitude seem to be interchanged."""
    problem, remedy = f"has none of its {len(points)} points in the box of the anchors", "check the box"
    if anchors.geographic is not None and (~_outside(points[:, ::-1], anchors)).mean() > 0.5:
        problem, remedy = f"{problem}: {INTERCHANGED}", "exchange the names of the two columns"
    return source.error("", problem, bound="a point in the box", remedy=remedy)


def price_visits(
    visits: RawVisits, anchors: Domain, observables: Domain, table: CostTable, source: Source
) -> tuple[Prior, Floats]:
    """Return the probability of each anchor, and its mean cost of each answer by the table of costs at `source`."""
    if table.distance is None:
        raise source.error("", "has no named distance, which raw visits require", remedy="use distance")
    if table.objective != "expected":
        problem = "is the worst cost, which is not defined for raw visits"
        raise source.error("objective", problem, value=table.objective, bound='"expected"')
    with source.keys({"cost": "distance", "observables": "distance"}):
        apart = between(anchors, visits.points, observables, table.distance)
        cost = scale_cost(apart, table.power, table.scale, source)
        prior, means = anchor_means(anchors, visits.points, cost, quiet=True)
    return Prior(prior), means
