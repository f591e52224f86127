"""Where a problem comes from, as its author says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from mechdesign.errors import InputError

__all__ = ["Origin"]


def __dir__() -> list[str]:
    return sorted(__all__)


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
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))
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
