"""The origin of a problem: information from its author that is stored with a design but not proved."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mechdesign.base._errors import InputError
from mechdesign.base._values import ReadOnlyMapping

STANDS_IN = "uniform: it stands in place of a private one; nothing is claimed of cost"


# Keys with which prior tables refer to counts.
_COUNT_KEYS = ("counts", "csv", "visits", "checkins", "plt")

# Keys with which chain tables refer to counted steps.
_STEP_KEYS = ("checkins", "plt", "estimated")

# First words of `Origin.prior` for counted priors.
_COUNTED_PRIORS = ("counts", "visits", "check-ins", "trajectories")

# First words of `Origin.prior` for priors that are not counted.
_OTHER_PRIORS = ("uniform", "probabilities", "simulated")


@dataclass(frozen=True)
class Origin:
    """The origin of a problem, as its author states it. A design stores its origin without proof.

    Attributes:
        specification: The text of the specification, without comments.
        prior: The source of the prior in words, including the user and the smoothing if they are given.
        files: The SHA-256 digest of each file or folder of data, by its name in the specification.
        notes: Remarks about the data, such as the number of points left out.
        settings: The settings of the solver that were given beside the specification, as texts.

    >>> Origin(prior="uniform").to_json()["prior"]
    'uniform'
    """

    specification: str = ""
    prior: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", ReadOnlyMapping(self.files))
        object.__setattr__(self, "settings", ReadOnlyMapping(self.settings))
        object.__setattr__(self, "notes", tuple(self.notes))

    def to_json(self) -> dict[str, Any]:
        """Return the origin as JSON values, from which `from_json` restores it."""
        return {
            "specification": self.specification,
            "prior": self.prior,
            "files": dict(self.files),
            "notes": list(self.notes),
            "settings": dict(self.settings),
        }

    @property
    def counted(self) -> tuple[str, ...]:
        """Keys of the specification whose values were counted in data: priors, and steps that define a policy graph.

        Without a specification, the property depends on the text in `prior`.

        >>> Origin('prior.checkins.path = "c.csv"').counted, Origin(prior="counts").counted
        (('prior.checkins',), ('prior',))
        """
        found = tuple(find_counted_keys(_tables(self.specification)))
        if not any(path.startswith("prior") for path in found) and self.prior.startswith(_COUNTED_PRIORS):
            return ("prior", *found)
        return found

    @property
    def says_how(self) -> bool:
        """Whether `prior` begins with one of the known sources of priors."""
        return self.prior.startswith((*_COUNTED_PRIORS, *_OTHER_PRIORS))

    @property
    def has_substitute_prior(self) -> bool:
        """Whether the prior is uniform in place of a private one, so that nothing is claimed of cost.

        >>> Origin(prior="uniform").has_substitute_prior
        False
        """
        return self.prior == STANDS_IN

    @staticmethod
    def from_json(values: object) -> Origin:
        """Return the origin that `to_json` wrote; raise `InputError` for any other value.

        Args:
            values: The JSON values.

        Returns:
            The origin.
        """
        known = {"specification": str, "prior": str, "files": dict, "notes": list, "settings": dict}
        if not isinstance(values, Mapping) or any(type(values.get(name)) is not kind for name, kind in known.items()):
            raise InputError("origin", "is malformed", bound=f"an object with {', '.join(known)}")
        pairs = [*values["files"].items(), *values["settings"].items()]
        if not all(isinstance(text, str) for text in (*itertools.chain(*pairs), *values["notes"])):
            raise InputError("origin", "is malformed", bound="texts in files, notes and settings")
        return Origin(*(values[name] for name in known))


def _tables(text: str) -> Mapping[str, Any]:
    """Return the tables of a specification in TOML or JSON, or an empty mapping for any other text."""
    for read in (json.loads, tomllib.loads):
        try:
            found = read(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def find_counted_keys(tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys in priors, requirements and the policy graph that refer to counts or data."""
    yield from _keys(tables.get("prior"), "prior", _COUNT_KEYS)
    privacy = tables.get("privacy")
    for index, each in enumerate(privacy if isinstance(privacy, list) else ()):
        if not isinstance(each, Mapping):
            continue
        own = each.get("prior")
        for number, table in enumerate(own if isinstance(own, list) else [own]):
            yield from _keys(table, f"privacy[{index}].prior" + f"[{number}]" * isinstance(own, list), _COUNT_KEYS)
        yield from _steps({name: value for name, value in each.items() if name != "prior"}, f"privacy[{index}]")
    yield from _steps(tables.get("policy"), "policy")


def _keys(table: object, path: str, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(table, Mapping):
        yield from (f"{path}.{key}" for key in keys if table.get(key))


def _steps(value: object, path: str) -> Iterator[str]:
    """Yield the keys of counted steps within a table, at any depth."""
    yield from _keys(value, path, _STEP_KEYS)
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        if name not in _STEP_KEYS:
            yield from _steps(each, f"{path}.{name}")
