"""The style of figures, and their files; figures depend neither on pyplot nor on the user's settings."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.typing import ColorType

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._check import as_path, require_kind
from mechdesign.base._errors import ExportError, InputError
from mechdesign.base._files import write_output
from mechdesign.base._process import SharedSettings, ignore_warnings

INK, MUTED, RULE, ACCENT = "#1b1f24", "#59636e", "#c9d1d9", "#0b5cad"
SERIES = (ACCENT, "#D55E00", "#009E73", "#CC79A7", INK, "#E69F00", "#56B4E9")
"""Colours of series, which are distinguishable with any colour vision; the second one is also that of warnings."""
MARKERS, DASHES = "os^Dv<>", ("-", "--", "-.", ":")

ZERO = "exactly 0"
"""Label of the symbol of zeros, which is explained even if it is the only one."""

WIDTH = 4.4
"""Width of a figure in inches: readable on a telephone, in a column of a paper, and beside another figure."""

_RC: dict[str, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "figure.facecolor": "white",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "mechdesign",
    # Titles and labels of users may contain dollar signs, which must not start a formula.
    "text.parse_math": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.0,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.0,
}
# Size of figures in notebooks.
_SCREEN_DPI, _SIDES = 110, ("width", "height")


@contextmanager
def report_style() -> Iterator[None]:
    """Draw with matplotlib's defaults and the style of the report, not the user's settings; afterwards restore them."""
    with (
        _SETTINGS.set_to(_style),
        # The bundled font lacks some scripts, but the reader's browser has fonts for them.
        ignore_warnings(message="Glyph .* missing from font"),
        ignore_warnings(message="Matplotlib currently does not support"),
    ):
        yield


@contextmanager
def reproducible() -> Iterator[None]:
    """Save figures reproducibly, with text as text, and otherwise with the user's settings; afterwards restore them."""
    with _SETTINGS.set_to(lambda _: {name: _RC[name] for name in ("svg.hashsalt", "svg.fonttype")}):
        yield


# Matplotlib's settings belong to the whole process, so threads that draw at the same time must share them.
_SETTINGS: SharedSettings[str] = SharedSettings(lambda: matplotlib.rcParams)


def _style(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return matplotlib's defaults with the style of the report, without settings such as the back end.

    `known` contains the current settings, which are returned if another thread is already drawing in this style.
    """
    if _RC.keys() <= known.keys():
        return known
    with matplotlib.rc_context():
        before = matplotlib.rcParams.copy()
        matplotlib.style.use(["default", _RC])
        after = matplotlib.rcParams.copy()
    return {key: value for key, value in dict.items(after) if value is not dict.get(before, key)} | _RC


class NotebookFigure(Figure):
    """A figure that notebooks show as an image without further commands, such as ``%matplotlib inline``."""

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, dict[str, int]]]:
        """Return the figure as a PNG image, and its size in pixels of the screen."""
        content = base64.b64encode(figure_bytes(self, "png")).decode()
        size = {name: round(_SCREEN_DPI * inches) for name, inches in zip(_SIDES, self.get_size_inches(), strict=True)}
        return {"image/png": content}, {"image/png": size}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of `width` × `height` inches that arranges its panels itself."""
    return NotebookFigure(
        figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.05, compress=True)
    )


def drawn(
    axes: Axes | Sequence[Axes] | None,
    height: float,
    draw: Callable[..., None],
    *args: object,
    count: int = 1,
    shared: bool = False,
) -> Figure:
    """Return the figure after `draw(*panels, *args)` on `count` panels.

    The panels are the caller's `axes`, which keep their own style, or else those of a new figure in the style of the
    report, which share their axes if they are `shared`.
    """
    if axes is None:
        return _draw_anew(height, draw, args, count, shared)
    panels = np.ravel(np.asarray(axes, dtype=object)).tolist()
    for panel in panels:
        require_kind(panel, Axes, "axes", "Matplotlib axes")
    if len(panels) != count:
        raise InputError("axes", "are of another number", value=len(panels), bound=f"{count}, one for each panel")
    draw(*panels, *args)
    found: Figure = panels[0].get_figure(root=True)
    put_legend(found, panels)
    return found


def is_ours(axes: Axes) -> bool:
    """Return whether axes belong to a figure of this package; those that a caller gave keep their spines."""
    return isinstance(axes.get_figure(root=True), NotebookFigure)


def ink(axes: Axes) -> ColorType:
    """Return the colour of the labels of axes, which is light in a caller's dark style."""
    return axes.xaxis.label.get_color()


def _draw_anew(height: float, draw: Callable[..., None], args: Sequence[object], count: int, shared: bool) -> Figure:
    columns = min(2, count)
    with report_style():
        figure = new_figure(WIDTH, height)
        panels = figure.subplots(-(-count // columns), columns, squeeze=False, sharex=shared, sharey=shared).ravel()
        for panel in panels[count:]:
            panel.remove()
        draw(*panels[:count], *args)
        finish(figure)
    return figure


def finish(figure: Figure) -> None:
    """Explain the symbols of a new figure, and finish its layout, which saving must not repeat with other settings."""
    put_legend(figure)
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")


def put_legend(figure: Figure, panels: Sequence[Axes] = ()) -> None:
    """Explain the symbols of a figure below it, or of a caller's panels in the first, if there are several or zeros."""
    found: dict[str, Any] = {}
    for axes in panels or figure.axes:
        found |= zip(*reversed(axes.get_legend_handles_labels()), strict=True)
    if len(found) > 1 or ZERO in found:
        # An edge as faint as many edges would hardly be visible in the legend.
        columns = 2 if max(map(len, found)) < 36 else 1
        if panels:
            legend = panels[0].legend(found.values(), found.keys())
        else:
            legend = figure.legend(found.values(), found.keys(), loc="outside lower left", ncols=columns)
        for handle in legend.legend_handles:
            if handle is not None:
                handle.set_alpha(1.0)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file, in the format of the file's suffix and with the same bytes every time.

    Args:
        figure: A Matplotlib figure.
        path: Path of the file, such as ``prior.svg``.

    Raises:
        ExportError: If the suffix is not a known format, or the file cannot be written.
        InputError: If `figure` is not a figure.

    Example:
        >>> import pathlib, tempfile
        >>> from matplotlib.figure import Figure
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "empty.svg"
        >>> save_figure(Figure(), file)
        >>> file.exists()
        True
    """
    path = as_path(path, "path")
    require_kind(figure, Figure, "figure", "a Matplotlib figure")
    file = Path(path)
    form = file.suffix.lower().removeprefix(".")
    known = figure.canvas.get_supported_filetypes()
    if form not in known:
        raise ExportError(f"{file} must end with the suffix of a format: one of {', '.join(sorted(known))}")
    write_output(file, [figure_bytes(figure, form)])


@in_own_arithmetic
def figure_bytes(figure: Figure, form: str = "svg") -> bytes:
    """Return a figure as the content of a file, with the same bytes every time.

    Args:
        figure: A Matplotlib figure.
        form: Format: ``"svg"``, ``"pdf"``, ``"png"`` or another format of Matplotlib.

    Returns:
        The content of the file.

    Raises:
        InputError: If `figure` is not a figure.

    Example:
        >>> from matplotlib.figure import Figure
        >>> figure_bytes(Figure())[:5]
        b'<?xml'
    """
    require_kind(figure, Figure, "figure", "a Matplotlib figure")
    content = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with reproducible():
        figure.savefig(content, format=form, dpi=150, metadata=undated)
    return content.getvalue()


_UNTITLED = dict.fromkeys(("Creator", "Date", "Format", "Type"))
# Matplotlib names groups, as in "axes_1", to which nothing refers, and definitions by a digest of their content.
_GROUP, _DEFINED = re.compile(r' id="[\w.]+_\d+"'), re.compile(r'(?<=[#"])([A-Za-z]+[0-9a-f]{10})(?=[")])')


def page_svg(figure: Figure, name: str) -> str:
    """Return what is inside the ``<svg>`` element of a figure on a page; all identifiers begin with `name`."""
    content = io.StringIO()
    with report_style():
        figure.savefig(content, format="svg", transparent=True, metadata=_UNTITLED)
    drawn = content.getvalue().partition("</defs>")[2].rpartition("</svg>")[0]
    return _DEFINED.sub(rf"{name}-\1", _GROUP.sub("", drawn))
