"""Values as notebooks display them: small tables and figures in HTML with the notebook's colours, and data frames."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from numpy.typing import ArrayLike

from mechdesign.base._dependencies import explain_missing
from mechdesign.base._errors import MissingDependencyError


def card(
    title: str,
    facts: Iterable[tuple[str, str]],
    picture: str = "",
    heads: Sequence[str] = (),
    rows: Iterable[Sequence[str]] = (),
) -> str:
    """Return HTML with a title, a table of facts and a figure (HTML) next to it, and a table of `rows` below `heads`.

    All texts are plain texts; only `picture` is HTML.

    >>> card("Prior", [("secrets", "<3")]).count("&lt;3")
    1
    """
    listed = "".join(
        f'<tr><th style="text-align:left;font-weight:normal;opacity:.7;padding:1px 14px 1px 0">{escape(name)}</th>'
        f'<td style="text-align:left;padding:1px 0">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return (
        f'<div style="margin:4px 0"><div style="font-weight:600;margin-bottom:4px">{escape(title)}</div>'
        '<div style="display:flex;flex-wrap:wrap;gap:12px 24px;align-items:flex-start">'
        f'<table style="border-collapse:collapse;margin:0">{listed}</table>{picture}</div>{_table(heads, rows)}</div>'
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as HTML, or an empty text without `heads`."""
    if not heads:
        return ""
    style = ' style="text-align:left;padding:1px 14px 1px 0"'
    head = "".join(f"<th{style}>{escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td{style}>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<table style="border-collapse:collapse;margin:8px 0 0"><tr>{head}</tr>{body}</table>'


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
