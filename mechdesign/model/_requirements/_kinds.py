"""The kinds of requirements by name, including kinds from other packages.

The function `register` adds a kind from another package. Specifications, bundles, verifiers and reports then treat this
kind like the kinds of this package. Bundles contain the explicit claims of each requirement of this kind. An installed
package can list its kinds as entry points of the group ``mechdesign.requirements``. The function `load_extensions`
imports these entry points. The command line calls this function if a specification contains an unknown kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from itertools import groupby
from types import ModuleType
from typing import TypeVar

from mechdesign.base._errors import ExtensionWarning, InputError
from mechdesign.base._registry import Registry
from mechdesign.base._warnings import warn
from mechdesign.certify._stated import Stated
from mechdesign.model._grammar import Table
from mechdesign.model._requirements._claimed import ClaimedPrivacy
from mechdesign.model._requirements._continuous import ContinuousPrivacy
from mechdesign.model._requirements._distortion import DistortionPrivacy
from mechdesign.model._requirements._extensions import EXTENSIONS, begin_search
from mechdesign.model._requirements._graph import GraphPrivacy
from mechdesign.model._requirements._kind import RequirementKind
from mechdesign.model._requirements._metric import MetricPrivacy
from mechdesign.model._requirements._requirement import Requirement
from mechdesign.model._requirements._threshold import ThresholdPrivacy


class _Kinds(Registry[type[RequirementKind]]):
    """The registry of kinds; within `finding_extensions`, it loads the extensions when a name is unknown."""

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and not super().__contains__(name) and begin_search():
            load_extensions()
        return super().__contains__(name)

    def __getitem__(self, name: str) -> type[RequirementKind]:
        # The membership test loads extensions if the name is unknown.
        _ = name in self
        return super().__getitem__(name)


KINDS: Registry[type[RequirementKind]] = _Kinds("kind")
"""The kinds of requirements that ``[[privacy]]`` tables can state, by the value of the key ``kind``."""

_K = TypeVar("_K", bound=RequirementKind)


def register(kind: type[_K]) -> type[_K]:
    """Register a kind of requirement; this function can be used as a class decorator.

    Args:
        kind: A class derived from `RequirementKind`.

    Returns:
        The unchanged class.

    Raises:
        InputError: The argument is not a class derived from `RequirementKind`, its table has a different tag, or the
            name is already registered.

    >>> register(MetricPrivacy)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    InputError: the name is taken
    """
    if not (isinstance(kind, type) and issubclass(kind, RequirementKind)):
        raise InputError("kind", "is not a kind", value=kind, bound="a class derived from RequirementKind")
    table = getattr(kind, "table", None)
    if table is not None and (tag := table.__struct_config__.tag) != kind.kind:
        bound = 'its name: class …(Table, frozen=True, tag_field="kind", tag="…")'
        raise InputError("kind.table", "has a tag that differs from the name of the kind", value=tag, bound=bound)
    KINDS.register(kind.kind, kind)
    return kind


def kind_of(table: Table) -> type[RequirementKind]:
    """Return the kind of requirement that a ``[[privacy]]`` table states."""
    return KINDS[str(table.__struct_config__.tag)]


def look_for_kinds(tables: object) -> None:
    """Load extensions if a ``[[privacy]]`` table has an unknown kind and `finding_extensions` allows it."""
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, dict):
            # The membership test loads extensions if the name is unknown.
            _ = table.get("kind") in KINDS


def load_extensions() -> None:
    """Import the entry points of the group `EXTENSIONS` in all installed packages, and register their kinds.

    Kinds that are already registered remain registered. An entry point is skipped with an `ExtensionWarning` if it
    cannot be loaded, is not a kind, or has the name of a registered kind.

    >>> load_extensions()
    """
    for point in entry_points(group=EXTENSIONS):
        try:
            _load(point)
        except Exception as error:  # The code of another package can raise anything.
            package = point.dist.name if point.dist is not None else "a package"
            message = f"the requirement {point.name} of {package}, {point.value}, cannot be loaded: {error}"
            warn(message, ExtensionWarning, stacklevel=2)


def _load(point: EntryPoint) -> None:
    """Import an entry point: a class is registered, and a module registers its kinds when it is imported."""
    found = point.load()
    if isinstance(found, ModuleType):
        return
    if not (isinstance(found, type) and issubclass(found, RequirementKind)):
        raise InputError(
            point.value, "is not a kind", value=found, bound="a class derived from RequirementKind, or a module"
        )
    if found not in KINDS.values():
        register(found)


register(MetricPrivacy)
register(ThresholdPrivacy)
register(GraphPrivacy)
register(DistortionPrivacy)
register(ContinuousPrivacy)


def load_requirements(stated: Sequence[Stated], secrets: int) -> list[Requirement]:
    """Return the requirements that the statements of a bundle represent, in the order of the statements.

    A requirement of an unregistered kind is returned as `ClaimedPrivacy`, with the same claims.

    Args:
        stated: The statements.
        secrets: The number of secrets.

    Returns:
        The requirements.

    Raises:
        InputError: The statements are inconsistent, or do not match their kind.

    >>> load_requirements(MetricPrivacy(1, [[0, 1], [1, 0]]).stated(), 2)
    [MetricPrivacy(epsilon=1, 2 secrets)]
    """
    found: list[Requirement] = []
    starts = 0
    numbered: list[tuple[int, Stated]] = []
    for each in stated:
        starts += each.part == 0
        numbered.append((starts, each))
    for _, group in groupby(numbered, key=lambda item: item[0]):
        own = [each for _, each in group]
        name = own[0].name or own[0].kind
        if any((each.part, each.name) != (part, own[0].name) for part, each in enumerate(own)):
            raise InputError("part", f"is out of order among the claims of {name} privacy", bound="0, 1, …, in order")
        found.append(KINDS[name].from_stated(own, secrets) if name in KINDS else ClaimedPrivacy(own, secrets))
    return found
