"""Values as notebooks display them: small tables and figures in HTML with the notebook's colours, and data frames."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from numpy.typing import ArrayLike

from mechdesign.base._dependencies import explain_missing
from mechdesign.base._errors import MissingDependencyError


def card(title: str, facts: Iterable[tuple[str, str]], picture: str = "") -> str:
    """Return HTML with a title, a table of facts (plain text) and a figure (HTML) next to it.

    >>> card("Prior", [("secrets", "<3")]).count("&lt;3")
    1
    """
    rows = "".join(
        f'<tr><th style="text-align:left;font-weight:normal;opacity:.7;padding:1px 14px 1px 0">{escape(name)}</th>'
        f'<td style="text-align:left;padding:1px 0">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        f'<div style="margin:4px 0"><div style="font-weight:600;margin-bottom:4px">{escape(title)}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:12px 24px;align-items:flex-start">'
        f'<table style="border-collapse:collapse;margin:0">{rows}</table>{picture}</div></div>'
    )


def picture(kind: str, values: ArrayLike, what: str) -> str:
    """Return a "heat_map", "points_plot", "outline_plot" or "line_plot" of values as HTML, with the label `what`.

    The module of figures is imported only when a notebook displays a value. Without Matplotlib there is no figure.
    """
    try:
        with explain_missing("a figure"):
            module = importlib.import_module("mechdesign.report._notebook")
    except MissingDependencyError:
        return ""
    found: str = getattr(module, kind)(values, what)
    return found


def data_frame(columns: Mapping[str, Any] | ArrayLike, index: Any = None, names: Any = None) -> Any:
    """Return a pandas data frame from columns by name, or from an array (n, m) whose columns get the `names`.

    Raises `MissingDependencyError` if pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError("data frames need pandas: pip install pandas") from error
    return pandas.DataFrame(columns, index=index, columns=names)
