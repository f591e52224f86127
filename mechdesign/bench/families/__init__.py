"""Families of problems, one file and one line each."""

from mechdesign.bench.families import (
    blocks,
    checkins,
    distortion,
    grid,
    joint,
    roads,
    row_pairs,
    worst_cost,
)
from mechdesign.bench.families.family import Family, Instance, RowPairs

__all__ = ["FAMILIES", "Family", "Instance", "RowPairs"]

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        grid.FAMILY,
        roads.FAMILY,
        blocks.FAMILY,
        distortion.FAMILY,
        joint.FAMILY,
        worst_cost.FAMILY,
        row_pairs.FAMILY,
        checkins.FAMILY,
    )
}
"""Every family by name."""
