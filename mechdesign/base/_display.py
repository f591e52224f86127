"""Values as notebooks display them: small tables of facts in HTML with the notebook's colours."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def card(title: str, facts: Iterable[tuple[str, str]]) -> str:
    """Return HTML with a title and a table of facts; all texts are plain texts.

    >>> card("Prior", [("secrets", "<3")]).count("&lt;3")
    1
    """
    left = "text-align:left"
    listed = "".join(
        f'<tr><th style="{left};font-weight:normal">{escape(name)}</th><td style="{left}">{escape(value)}</td></tr>'
        for name, value in facts
    )
    return f"<b>{escape(title)}</b><table>{listed}</table>"
