"""Parts of pages that assistive technology needs, and that Sphinx and the theme leave out."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# After the theme has made the navigation.
_LATE = 900
# A signature of several lines: a list of definitions without terms.
_PARAMETERS = re.compile(r"<dl>\n(?P<lines>(?:<dd><em class=\"sig-param\">.*</em>,?</dd>\n)+)</dl>")


def complete(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Complete the navigation and the text of a page."""
    for key, change in (("furo_navigation_tree", number_captions), ("body", replace_parameter_lists)):
        if key in context:
            context[key] = change(context[key])


def number_captions(navigation: str) -> str:
    """Give the captions of the navigation a level, without which they are not headings.

    >>> number_captions('<p class="caption" role="heading"><span>Start</span></p>')
    '<p class="caption" role="heading" aria-level="2"><span>Start</span></p>'
    """
    return navigation.replace('role="heading">', 'role="heading" aria-level="2">')


def replace_parameter_lists(body: str) -> str:
    r"""Write the parameters of a long signature as lines, since a list of definitions needs terms.

    >>> replace_parameter_lists('<dl>\n<dd><em class="sig-param">x</em>,</dd>\n</dl>')
    '<span class="sig-line"><em class="sig-param">x</em>,</span>\n'
    """
    return _PARAMETERS.sub(
        lambda found: found["lines"].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>"), body
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the change."""
    app.connect("html-page-context", complete, priority=_LATE)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
