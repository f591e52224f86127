"""The TOML specification, and what it asks for: problems, designs, a policy, the release of a trace.

Names are loaded when first used, so that a command that runs no specification does not wait for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.specification._table_specification import ReleaseSpecification as ReleaseSpecification
    from mechdesign.specification._table_specification import read as read
    from mechdesign.specification._grammar import schema as schema
    from mechdesign.specification._specification import Specification as Specification
    from mechdesign.specification._specification import parse as parse
    from mechdesign.specification._specification import read_spec as read_spec

_VALUES = {
    "ReleaseSpecification": "mechdesign.specification._table_specification",
    "Specification": "mechdesign.specification._specification",
    "parse": "mechdesign.specification._specification",
    "read": "mechdesign.specification._table_specification",
    "read_spec": "mechdesign.specification._specification",
    "schema": "mechdesign.specification._grammar",
}

__all__ = [*_VALUES]


def __getattr__(name: str) -> object:
    if name not in _VALUES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_VALUES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
