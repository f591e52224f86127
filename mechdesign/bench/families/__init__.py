"""Families of problems, one file and one line each."""

from mechdesign.bench.families import blocks
from mechdesign.bench.families import checkins
from mechdesign.bench.families import distortion
from mechdesign.bench.families import grid
from mechdesign.bench.families import joint
from mechdesign.bench.families import roads
from mechdesign.bench.families import row_pairs
from mechdesign.bench.families import worst_cost
from mechdesign.bench.families.family import Family
from mechdesign.bench.families.family import Instance
from mechdesign.bench.families.family import RowPairs

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
