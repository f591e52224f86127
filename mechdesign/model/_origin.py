"""Where a problem comes from: what is stated of it, and not proved."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mechdesign.base._errors import InputError
from mechdesign.base._values import ReadOnlyMapping

STANDS_IN = "uniform: it stands in place of a private one; nothing is claimed of cost"


# Keys of the tables of priors whose values were counted, and of those of steps, and what words say that a prior was.
_COUNTS = ("counts", "csv", "visits", "checkins", "plt")


_STEPS = ("checkins", "plt", "estimated")


_WORDS = ("counts", "visits", "check-ins", "trajectories")


_OTHERS = ("uniform", "probabilities", "simulated")


@dataclass(frozen=True)
class Origin:
    """Where a problem comes from, as its author says: it is kept with a design, and nothing in it is proved.

    Attributes:
        specification: The text of the specification, without comments.
        prior: Where the prior comes from, in words, with the user and the smoothing where there are any.
        files: The SHA-256 of each file or folder of data, by the name that the specification gives it.
        notes: What was noticed about the data, such as how many points were left out.
        name: What the file of the specification is called, without its folder.

    >>> Origin(prior="uniform").to_json()["prior"]
    'uniform'
    """

    specification: str = ""
    prior: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "files", ReadOnlyMapping(self.files))
        object.__setattr__(self, "notes", tuple(self.notes))

    def to_json(self) -> dict[str, Any]:
        """Return JSON values, from which `from_json` makes an equal origin."""
        return {
            "specification": self.specification,
            "prior": self.prior,
            "files": dict(self.files),
            "notes": list(self.notes),
            "name": self.name,
        }

    @property
    def counted(self) -> tuple[str, ...]:
        """What was counted in data, as keys of the specification: priors, and the steps of policy graphs.

        Where there is no specification, the words about the prior decide.

        >>> Origin('prior.checkins.path = "c.csv"').counted, Origin(prior="counts").counted
        (('prior.checkins',), ('prior',))
        """
        found = tuple(find_counted_keys(_tables(self.specification)))
        if not any(path.startswith("prior") for path in found) and self.prior.startswith(_WORDS):
            return ("prior", *found)
        return found

    @property
    def says_how(self) -> bool:
        """Whether it says how the prior was made: in words of a specification, or as one that stands in."""
        return self.prior.startswith((*_WORDS, *_OTHERS))

    def same_design(self, other: Origin) -> bool:
        """Tell whether two designs are runs of one specification: of the same text, or of a file of the same name."""
        return self.specification == other.specification or bool(self.name and self.name == other.name)

    @staticmethod
    def from_json(values: object) -> Origin:
        """Return the origin that `to_json` wrote; raise `InputError` for anything else."""
        known = {"specification": str, "prior": str, "files": dict, "notes": list, "name": str}
        if not isinstance(values, Mapping) or any(type(values.get(name)) is not kind for name, kind in known.items()):
            raise InputError("origin", "is malformed", bound=f"an object with {', '.join(known)}")
        texts = [*values["files"], *values["files"].values(), *values["notes"]]
        if not all(isinstance(text, str) for text in texts):
            raise InputError("origin", "holds more than texts")
        return Origin(*(values[name] for name in known))


def _tables(text: str) -> Mapping[str, Any]:
    """Return the tables of a specification that is kept as TOML or JSON; none where it is neither."""
    for read in (json.loads, tomllib.loads):
        try:
            found = read(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
    return {}


def find_counted_keys(tables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of a specification that name counts or data: of priors, those of requirements too, and graphs."""
    yield from _keys(tables.get("prior"), "prior", _COUNTS)
    privacy = tables.get("privacy")
    for index, each in enumerate(privacy if isinstance(privacy, list) else ()):
        if not isinstance(each, Mapping):
            continue
        own = each.get("prior")
        for number, table in enumerate(own if isinstance(own, list) else [own]):
            yield from _keys(table, f"privacy[{index}].prior" + f"[{number}]" * isinstance(own, list), _COUNTS)
        yield from _steps({name: value for name, value in each.items() if name != "prior"}, f"privacy[{index}]")
    yield from _steps(tables.get("policy"), "policy")


def _keys(table: object, path: str, keys: tuple[str, ...]) -> Iterator[str]:
    if isinstance(table, Mapping):
        yield from (f"{path}.{key}" for key in keys if table.get(key))


def _steps(value: object, path: str) -> Iterator[str]:
    """Yield the keys of data within a table, at whatever depth."""
    yield from _keys(value, path, _STEPS)
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        if name not in _STEPS:
            yield from _steps(each, f"{path}.{name}")
