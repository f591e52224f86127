"""The kinds of requirements by name, those of other packages too.

A kind of another package is made known by `register`, and is then read from specifications, exported with its claims in
the open, verified, loaded and phrased in reports as those of this package are. A package that is installed may name its
kinds as entry points of the group ``mechdesign.requirements``: `load_extensions` imports them, and the command line
does where it meets a kind that it does not know.
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

"""The group of entry points that name kinds of other packages: a class of a kind, or a module that registers some."""


class _Kinds(Registry[type[RequirementKind]]):
    """The kinds by name; within `finding_extensions` a name that is not known loads the extensions first."""

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and not super().__contains__(name) and begin_search():
            load_extensions()
        return super().__contains__(name)

    def __getitem__(self, name: str) -> type[RequirementKind]:
        # Looking for it loads it.
        _ = name in self
        return super().__getitem__(name)


KINDS: Registry[type[RequirementKind]] = _Kinds("kind")
"""Every kind of requirement that a ``[[privacy]]`` table may state, by the name that stands under ``kind``."""

_K = TypeVar("_K", bound=RequirementKind)


def register(kind: type[_K]) -> type[_K]:
    """Make a kind of requirement known; use it as a decorator of the class.

    Raises:
        InputError: For what is no such class, for a table with another tag, and for a name that is taken.
    """
    if not (isinstance(kind, type) and issubclass(kind, RequirementKind)):
        raise InputError("kind", "is not a class derived from RequirementKind", value=kind)
    table = getattr(kind, "table", None)
    if table is not None and (tag := table.__struct_config__.tag) != kind.kind:
        bound = 'its name: class …(Table, frozen=True, tag_field="kind", tag="…")'
        raise InputError("kind.table", "has another tag than the name of the kind", value=tag, bound=bound)
    KINDS.register(kind.kind, kind)
    return kind


def kind_of(table: Table) -> type[RequirementKind]:
    """Return the kind of requirement that a ``[[privacy]]`` table states."""
    return KINDS[str(table.__struct_config__.tag)]


def look_for_kinds(tables: object) -> None:
    """Let kinds of other packages that ``[[privacy]]`` tables state be loaded, where they are to be."""
    for table in tables if isinstance(tables, list) else ():
        if isinstance(table, dict):
            # Looking for it loads it.
            _ = table.get("kind") in KINDS


def load_extensions() -> None:
    """Import the entry points of the group `EXTENSIONS` of all packages installed, and register the kinds they name.

    What was loaded before is left as it is. One that cannot be loaded, names something else, or has a name that is
    taken is left out, with an `ExtensionWarning`.
    """
    for point in entry_points(group=EXTENSIONS):
        try:
            _load(point)
        except Exception as error:  # What the code of another package raises can be anything.
            package = point.dist.name if point.dist is not None else "a package"
            message = f"the requirement {point.name} of {package}, {point.value}, cannot be loaded: {error}"
            warn(message, ExtensionWarning, stacklevel=2)


def _load(point: EntryPoint) -> None:
    """Import what an entry point names; a module registers its kinds itself."""
    found = point.load()
    if isinstance(found, ModuleType):
        return
    if not (isinstance(found, type) and issubclass(found, RequirementKind)):
        raise InputError(point.value, "is no class derived from RequirementKind, and no module", value=found)
    if found not in KINDS.values():
        register(found)


register(MetricPrivacy)
register(ThresholdPrivacy)
register(GraphPrivacy)
register(DistortionPrivacy)
register(ContinuousPrivacy)


def load_requirements(stated: Sequence[Stated], secrets: int) -> list[Requirement]:
    """Return the requirements on so many secrets that made these statements, in their order.

    A kind that is not registered comes back as `ClaimedPrivacy`, with the same claims. Raises `InputError` for
    statements that their kind did not make.
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
            raise InputError("part", f"is out of order among the claims of {name} privacy")
        found.append(KINDS[name].from_stated(own, secrets) if name in KINDS else ClaimedPrivacy(own, secrets))
    return found
