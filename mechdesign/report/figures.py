"""Figures as the content of files: the same bytes every time."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from mechdesign.atomic import write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_bytes", "save_figure"]


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format that the ending of `path` names; raise `ExportError` when that fails."""
    write_file(path, [figure_bytes(figure, path.suffix.lower().removeprefix("."))])


def figure_bytes(figure: Figure, form: str = "svg") -> bytes:
    """Return a figure as the content of a file in the format `form`: the same bytes every time."""
    import matplotlib

    content = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with matplotlib.rc_context({"svg.hashsalt": "mechdesign"}):
        figure.savefig(content, format=form, dpi=150, metadata=undated)
    return content.getvalue()
