"""Docstrings as they are read in an editor: bars are bars, and a table in Markdown is shown as it stands."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

# Napoleon takes what stands before a colon in the docstring of a property for its type.
_COLON = "\ue000"


def hide_colons(app: Sphinx, what: str, name: str, item: object, options: Any, lines: list[str]) -> None:
    """Keep Napoleon from reading types into the summaries of properties."""
    if what in ("property", "attribute", "data") and lines:
        lines[0] = lines[0].replace(":", _COLON)


def plain(app: Sphinx, what: str, name: str, item: object, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place."""
    made: list[str] = []
    inside = False
    for line in lines:
        row = line.lstrip().startswith("|")
        if row and not inside:
            made += ["", "::", ""]
        elif inside and not row:
            made.append("")
        made.append(f"    {line}" if row else line.replace("|", "\\|").replace(_COLON, ":"))
        inside = row
    lines[:] = made


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the change."""
    app.connect("autodoc-process-docstring", hide_colons, priority=400)
    app.connect("autodoc-process-docstring", plain, priority=600)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
