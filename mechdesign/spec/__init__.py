"""The TOML specification, and what it asks for: problems, designs, a policy, the release of a trace.

Names are loaded when first used, so that a command that runs no specification does not wait for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mechdesign.spec.blowfish.specification import ReleaseSpecification as ReleaseSpecification
    from mechdesign.spec.blowfish.specification import read as read
    from mechdesign.spec.grammar import schema as schema
    from mechdesign.spec.specification import Specification as Specification
    from mechdesign.spec.specification import parse as parse
    from mechdesign.spec.specification import read_spec as read_spec

_VALUES = {
    "ReleaseSpecification": "mechdesign.spec.blowfish.specification",
    "Specification": "mechdesign.spec.specification",
    "parse": "mechdesign.spec.specification",
    "read": "mechdesign.spec.blowfish.specification",
    "read_spec": "mechdesign.spec.specification",
    "schema": "mechdesign.spec.grammar",
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
