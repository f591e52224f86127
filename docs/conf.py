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
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "accessible",
    "sphinx.ext.viewcode",
    "mathml",
    "results",
    "generated",
    "docstrings",
    "reference",
    "autolink",
    "served",
    "browser",
]
exclude_patterns = ["_build"]
nitpicky = True
# Two rooms may each have a `Domain`; a docstring that names one means its own.
suppress_warnings = ["ref.python"]
nitpick_ignore_regex = [
    ("py:obj", r".*"),
    # Types of private files and of no public name, and the names of aliases.
    ("py:.*", r"mechdesign\.(\w+\.)*_\w+(\.\w+)*"),
    ("py:class", r"(mechdesign\.(data\.trajectories|leakage\.cao2019)\.)?(Piecewise|Resampled|Tables)"),
    ("py:class", r"(Description|ExponentBound|Fitted|GridPart|Lattice|Line|Overview|Pieces)"),
    ("py:class", r"(Axes|Borders?|Column|Correlation|Ends|Files|HullChoice|Number|PlaceOverview)"),
    ("py:class", r"(BasePolicy|Constraint|ProgressCallback|R|RangeNoise|SecretGraph|States|Times)"),
    ("py:class", r"(collections\.abc\.Mapping|dict|tuple)\[str"),
    ("py:class", r"(dataclasses|filelock|msgspec|numpy\._typing|types)\..*"),
]

# Inventories of other packages, of the names that we use.
intersphinx_mapping = {
    name: (address, f"inventories/{name}.txt")
    for name, address in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "networkx": "https://networkx.org/documentation/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
    }.items()
}

html_theme = "furo"
html_title = f"mechdesign {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_js_files = ["scrolling.js"]
html_domain_indices = False
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
add_module_names = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
# Shown by their names instead of what they stand for.
autodoc_type_aliases = {
    "ArrayLike": "numpy.typing.ArrayLike",
    "Flags": "numpy.ndarray",
    "Floats": "numpy.ndarray",
    "Integers": "numpy.ndarray",
    "ScalarMappable": "matplotlib.cm.ScalarMappable",
}
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88
