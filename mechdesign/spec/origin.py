"""Say where the problem of a specification comes from: its text, its prior, digests of its data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mechdesign.data.digest import file_digest
from mechdesign.data.tables import Raw
from mechdesign.model.origin import Origin
from mechdesign.spec.document import Document
from mechdesign.spec.keys import files

__all__ = ["build_origin"]

_FORMS = {
    "uniform": "uniform: all secrets equally likely",
    "probabilities": "probabilities in the specification",
    "counts": "counts in the specification",
    "csv": "counts",
    "checkins": "check-ins",
    "plt": "trajectories",
    "simulated": "simulated people",
}


def build_origin(document: Document, text: str, folder: Path, notes: tuple[str, ...] = (), name: str = "") -> Origin:
    """Return where the problem comes from; tables without a text are written as JSON, their numbers exactly."""
    tables: dict[str, object] = {
        "domain": document.domain,
        "observables": document.observables or {},
        "prior": document.prior,
        "cost": document.cost,
        "privacy": document.privacy,
        "policy": document.policy,
    }
    digests = {name: file_digest(folder / name) for name in dict.fromkeys(files(tables))}
    return Origin(text or _written(document), _prior(document.prior), digests, notes, name)


def _prior(raw: Raw) -> str:
    """Say in words what a table that was read without an error says."""
    form = next((name for name in raw if name != "smoothing"), "")
    table = raw[form] if isinstance(raw.get(form), Mapping) else {}
    said = _FORMS.get(form, form)
    if "column" in table:
        said += f" in column {table['column']}"
    if "path" in table:
        said += f" of {table['path']}" if "column" in table else f" in {table['path']}"
    if "only" in table:
        said += f", user {table['only']} only"
    elif form in ("checkins", "plt"):
        said += ", all users"
    return said + (f", {raw['smoothing']} added to each count" if raw.get("smoothing") else "")


def _written(document: Document) -> str:
    tables: dict[str, Any] = {name: getattr(document, name) for name in document.__struct_fields__}
    return json.dumps({name: table for name, table in tables.items() if table}, indent=1, default=str)
