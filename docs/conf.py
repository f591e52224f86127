"""Sphinx configuration: MyST pages, docstrings, formulas as MathML; a broken link or an unknown name is an error."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "mechdesign"
author = "The mechdesign authors"
project_copyright = author
release = version = installed("mechdesign")

extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "accessible",
    "mathml",
    "results",
    "generated",
    "docstrings",
    "peers",
    "served",
    "browser",
]
exclude_patterns = ["_build", "README.md"]
nitpicky = True
# Two rooms may each have a `Policy`; a docstring that names one means its own.
suppress_warnings = ["ref.python"]
# Types of other packages, whose pages are not read at build time, and type variables.
nitpick_ignore_regex = [
    ("py:.*", r"(numpy|np|networkx|nx|scipy|sparse|matplotlib|click|os|pathlib|datetime|fractions|collections)\..*"),
    ("py:.*", r"(ArrayLike|NDArray|Any|Callable|Iterable|Iterator|Mapping|Sequence|Literal|Path|PathLike|Figure|Axes)"),
    ("py:.*", r"(Decimal|Fraction|Generator|Graph|datetime|csr_array|float64|int64|np|nx|Floats|Integers|Number)"),
    ("py:.*", r"(abc|dataclasses|decimal|enum|typing|types|msgspec|filelock)\..*"),
    # Types of private files.
    ("py:.*", r"mechdesign\.(\w+\.)*_\w+(\.\w+)*"),
    (
        "py:.*",
        r"(Files|Edge|ProgressCallback|States|ReleasedTrace|Overview|dict\[str|tuple\[str)",
    ),
    # Aliases, and what only the mechanisms of releases from tables know of.
    ("py:class", r"(.*\.)?(LedgerLike|PolicyLike|Rng|Column|R|Discrete\w+|RangeNoise|RangeTree|Ranges|Additive|Found)"),
    ("py:class", r"(.*\.)?(SecretGraph|Constraint|Transitions|Part|Sparsity|Longitudes|Axes|Borders|Outside)"),
    ("py:class", r"(.*\.)?(Ends|Border)"),
    ("py:obj", r".*"),
]

html_theme = "furo"
html_title = f"mechdesign {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_js_files = ["scrolling.js"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}
# Styles of accessible-pygments, with contrasts of at least 7 in both modes.
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
DESCRIPTION = (
    "mechdesign computes the channel with the least error that a privacy requirement allows, proves both facts, and "
    "exports channel and proof."
)
myst_html_meta = {
    "description": DESCRIPTION,
    "property=og:title": "mechdesign",
    "property=og:type": "website",
    "property=og:description": DESCRIPTION,
}

# Prompts and output are not copied.
copybutton_exclude = ".linenos, .gp, .go"

default_role = "py:obj"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": False}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
