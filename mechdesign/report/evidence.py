"""Sections of the report of a design: what is proved in full, and what is only stated."""

from __future__ import annotations

from html import escape

from mechdesign.certify._certificate import Certificate
from mechdesign.model._problem import Origin
from mechdesign.model._problem import Problem
from mechdesign.report.document import section
from mechdesign.report.document import table
from mechdesign.report.document import text
from mechdesign.report.proved import proved
from mechdesign.report.proved import stated
from mechdesign.model._words import plain

__all__ = ["evidence_section"]


def evidence_section(problem: Problem, certificate: Certificate, origin: Origin | None) -> str:
    """Return the section that says what was proved in full, what is stated, and the specification itself."""
    claims = "".join(f"<li>{text(sentence)}</li>" for sentence in proved(problem, certificate))
    rows = [(text(name), text(said)) for name, said in stated(problem, origin)]
    parts = [
        *([f"<p>Proved, in exact arithmetic:</p>\n<ul>{claims}</ul>"] if claims else []),
        "<p>Stated by whoever made this, and not proved:</p>",
        table((), rows),
    ]
    if origin is not None and origin.specification:
        shown = escape(plain(origin.specification))
        parts.append(f"<details><summary>The specification</summary>\n<pre><code>{shown}</code></pre>\n</details>")
    return section("What is proved, and what is stated", *parts)
