"""Colours, fonts and layout of figures."""

from __future__ import annotations

import base64
import functools
import io
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, ParamSpec

import matplotlib
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotParams
from matplotlib.ticker import MaxNLocator

from mechdesign.base._arithmetic import in_own_arithmetic
from mechdesign.base._check import as_path
from mechdesign.base._errors import ExportError, InputError
from mechdesign.base._files import write_output
from mechdesign.base._process import SharedSettings, ignore_warnings
from mechdesign.report._canvas import PageCanvas

# Colours of the page. `mechdesign.report._svg` replaces these colours by variables for light and dark mode.
INK, MUTED, RULE, ACCENT = "#1b1f24", "#59636e", "#c9d1d9", "#0b5cad"

_RC: dict[str, object] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": 9.0,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.0,
    # A fixed position of titles saves matplotlib from measuring the ticks again.
    "axes.titley": 1.0,
    "figure.constrained_layout.use": False,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "mechdesign",
    # Titles and labels of users may contain dollar signs, which must not start a formula.
    "text.parse_math": False,
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}

NARROW_WIDTH = 3.45
"""Width in inches of figures for narrow screens: 400 pixels at the font size of the page."""

Target = Literal["file", "page", "narrow page", "panels"]
"""Target of figures: a file, a page, a page on a narrow screen, or a page that arranges their panels."""

# The target of the figure that is being drawn, which each thread and each asynchronous task sets separately.
_target: ContextVar[Target] = ContextVar("target", default="file")

# Size of figures in notebooks.
_SCREEN_DPI, _SIDES = 90, ("width", "height")
_HEADLINE_SIZE = 11.0
# Mean width of a character of the headline, in inches.
_HEADLINE_CHARACTER = 0.0875

_P = ParamSpec("_P")


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
    """Save figures reproducibly with the user's settings, and restore these settings afterwards."""
    with _SETTINGS.set_to(lambda _: {"svg.hashsalt": _RC["svg.hashsalt"]}):
        yield


def saving() -> dict[str, Any]:
    """Return the user's settings of `savefig` as arguments, since other threads may be drawing in our style."""
    names = ("facecolor", "edgecolor", "orientation", "pad_inches", "transparent")
    box = {"bbox_inches": _SETTINGS.before("savefig.bbox")}
    return box | {name: _SETTINGS.before(f"savefig.{name}") for name in names}


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
    changed = {key: value for key, value in dict.items(after) if not _same(value, dict.get(before, key))}
    return _RC | changed


def _same(one: object, other: object) -> bool:
    try:
        return bool(one == other)
    except ValueError:
        return False


@contextmanager
def on_page(target: Target = "page") -> Iterator[None]:
    """Draw for a page: with the colours of its style sheet, and with shapes instead of pixels.

    On a narrow screen figures have at most the width `NARROW_WIDTH`, and panels are stacked. If the page arranges the
    panels, each panel has at most the width `NARROW_WIDTH`.
    """
    token = _target.set(target)
    try:
        yield
    finally:
        _target.reset(token)


def is_on_page() -> bool:
    """Return whether figures are drawn for a page, not for a file."""
    return _target.get() != "file"


def on_page_only(role: str) -> str | None:
    """Return the ``gid`` of an artist that identifies its role on a page; None for files."""
    return role if is_on_page() else None


def is_narrow() -> bool:
    """Return whether figures are drawn for a narrow screen."""
    return _target.get() == "narrow page"


def is_slim() -> bool:
    """Return whether each panel must fit a narrow screen."""
    return _target.get() in ("narrow page", "panels")


def abreast(most: int) -> int:
    """Return the number of panels or legend entries in a row: `most`, or 1 on a narrow screen."""
    return 1 if is_narrow() else most


def fitting(width: float, beside: float) -> float:
    """Return the width in inches of a panel: at most `width`, and narrow enough if the panel must fit a narrow screen.

    On narrow screens, `beside` inches are reserved for labels next to the panel.
    """
    return min(width, NARROW_WIDTH - beside) if is_slim() else width


def put_legend(axes: Axes, **style: Any) -> None:
    """Put the legend to the right of a figure, or below it on a narrow screen."""
    place = (0.0, -0.2) if is_narrow() else (1.0, 1.0)
    axes.legend(**{"loc": "upper left", "bbox_to_anchor": place, "fontsize": 8.5, **style})


def in_report_style(function: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Decorate a function so that its figure has the style of the report and a finished layout, as after saving."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with report_style():
            figure = function(*args, **kwargs)
            if is_narrow():
                _thin_out(figure)
            if is_on_page():
                # A figure on a page is drawn once, immediately.
                _leave_unnamed(figure)
                return figure
            figure.draw_without_rendering()
            # The layout is finished, and saving the figure must not repeat it with other settings.
            figure.set_layout_engine("none")
        return figure

    return wrapper


def _leave_unnamed(figure: Figure) -> None:
    """Set positions of empty axis labels, so that matplotlib does not measure all ticks to find them."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if not axis.get_label_text():
                axis.set_label_coords(0.0, 0.0)


def _thin_out(figure: Figure) -> None:
    """Reduce the number of ticks along the x-axes of a narrow figure."""
    for axes in figure.axes:
        locator = axes.xaxis.get_major_locator()
        if isinstance(locator, MaxNLocator):
            locator.set_params(nbins=4)


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
    """Return an empty figure of `width` × `height` inches that arranges its panels itself; see also `on_page`."""
    if is_narrow():
        width = min(width, NARROW_WIDTH)
    if _target.get() == "panels":
        # The page arranges the panels, so a layout by matplotlib would waste half of the time.
        figure = Figure(figsize=(width, height), subplotpars=SubplotParams(0, 0, 1, 1, 0.1, 0.15))
        PageCanvas(figure)
        return figure
    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    if is_on_page():
        PageCanvas(figure)
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.03)  # type: ignore[call-arg]
    return figure


def headline(figure: Figure, text: str) -> None:
    """Put a headline above the whole figure, aligned to the left."""
    characters = max(20, int((figure.get_figwidth() - 0.2) / _HEADLINE_CHARACTER))
    said = figure.suptitle(
        textwrap.fill(text, characters), x=0.005, ha="left", size=_HEADLINE_SIZE, weight="bold", linespacing=1.25
    )
    said.set_gid(on_page_only("headline"))


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
    _require_figure(figure)
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
    _require_figure(figure)
    content = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with reproducible():
        figure.savefig(content, format=form, dpi=150, metadata=undated, **saving())
    return content.getvalue()


def _require_figure(figure: object) -> None:
    # The type is not imported, since Matplotlib is loaded late.
    if isinstance(figure, type) or not hasattr(figure, "savefig"):
        raise InputError("figure", "is of another kind", value=type(figure).__name__, bound="a Matplotlib figure")
