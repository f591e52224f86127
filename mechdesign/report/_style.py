"""Colours, type, figures."""

from __future__ import annotations

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

# Colours of the page. `mechdesign.report._svg` replaces them by variables, so that they follow light and dark mode.
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
    # Where matplotlib looks for it, it measures the ticks again.
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
    # Users' titles and labels may hold dollar signs: nothing of theirs is read as a formula.
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
"""Width in inches of pictures for narrow screens: what 400 pixels hold at the size of the page's type."""

Target = Literal["file", "page", "narrow page", "panels"]
"""What pictures are drawn for: a file, a page, a page on a narrow screen, or a page that arranges their panels."""

# Each thread and task has its own.
_target: ContextVar[Target] = ContextVar("target", default="file")

_HEADLINE_SIZE = 11.0
# Mean width of a character of the headline's type, in inches.
_HEADLINE_CHARACTER = 0.0875

_P = ParamSpec("_P")


@contextmanager
def styled() -> Iterator[None]:
    """Draw with matplotlib's own defaults and the style of the report, whatever the user's settings; then restore."""
    with (
        _SETTINGS.set_to(_style),
        # Labels in scripts that the bundled font lacks: the reader's browser has a font for them.
        ignore_warnings(message="Glyph .* missing from font"),
        ignore_warnings(message="Matplotlib currently does not support"),
    ):
        yield


@contextmanager
def reproducible() -> Iterator[None]:
    """Save pictures with the same bytes every time, in the user's settings; then restore."""
    with _SETTINGS.set_to(lambda _: {"svg.hashsalt": _RC["svg.hashsalt"]}):
        yield


def saving() -> dict[str, Any]:
    """Return the user's settings of how a picture is saved, as arguments: others may be drawing in our style."""
    names = ("facecolor", "edgecolor", "orientation", "pad_inches", "transparent")
    box = {"bbox_inches": _SETTINGS.before("savefig.bbox")}
    return box | {name: _SETTINGS.before(f"savefig.{name}") for name in names}


# Pictures are drawn in several threads, and the settings are the process's.
_SETTINGS: SharedSettings[str] = SharedSettings(lambda: matplotlib.rcParams)


def _style(known: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return matplotlib's own defaults and the style of the report, without what no style sets, such as back ends.

    `known` are the settings that are ours already: all of them where others draw in this style.
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
    """Draw for a page: colours in the steps that its style sheet knows, and shapes in place of pixels.

    On a narrow screen figures have at most the width `NARROW_WIDTH`, and panels stand one below the other. No panel is
    wider than that where the page arranges them.
    """
    token = _target.set(target)
    try:
        yield
    finally:
        _target.reset(token)


def is_on_page() -> bool:
    """Return whether pictures are drawn for a page, and not for a file."""
    return _target.get() != "file"


def on_page_only(role: str) -> str | None:
    """Return the ``gid`` of an artist by which a page knows its role; files do without."""
    return role if is_on_page() else None


def is_narrow() -> bool:
    """Return whether pictures are drawn for a narrow screen."""
    return _target.get() == "narrow page"


def is_slim() -> bool:
    """Return whether each panel has to fit a narrow screen."""
    return _target.get() in ("narrow page", "panels")


def abreast(most: int) -> int:
    """Return how many panels, or entries of a key, stand side by side: `most`, and 1 on a narrow screen."""
    return 1 if is_narrow() else most


def fitting(width: float, beside: float) -> float:
    """Return the width in inches of a panel: at most `width`, and where it is to fit a narrow screen, too.

    There it shares the room with what is `beside` it.
    """
    return min(width, NARROW_WIDTH - beside) if is_slim() else width


def put_legend(axes: Axes, **style: Any) -> None:
    """Put the key of a picture to its right, and below it on a narrow screen."""
    place = (0.0, -0.2) if is_narrow() else (1.0, 1.0)
    axes.legend(**{"loc": "upper left", "bbox_to_anchor": place, "fontsize": 8.5, **style})


def drawn(function: Callable[_P, Figure]) -> Callable[_P, Figure]:
    """Make a function draw its picture in style, complete with everything that matplotlib else adds only on saving."""

    @functools.wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> Figure:
        with styled():
            figure = function(*args, **kwargs)
            if is_narrow():
                _thin_out(figure)
            if is_on_page():
                # It is drawn once, and at once.
                _leave_unnamed(figure)
                return figure
            figure.draw_without_rendering()
            # The layout is done: saving need not do it again, and with other settings could do it differently.
            figure.set_layout_engine("none")
        return figure

    return wrapper


def _leave_unnamed(figure: Figure) -> None:
    """Give names that are empty a place: to find one, matplotlib measures all ticks of an axis again."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if not axis.get_label_text():
                axis.set_label_coords(0.0, 0.0)


def _thin_out(figure: Figure) -> None:
    """Leave fewer ticks along the lower sides, where there is less room."""
    for axes in figure.axes:
        locator = axes.xaxis.get_major_locator()
        if isinstance(locator, MaxNLocator):
            locator.set_params(nbins=4)


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of `width` × `height` inches that arranges its parts by itself; see also `on_page`."""
    if is_narrow():
        width = min(width, NARROW_WIDTH)
    if _target.get() == "panels":
        # The page arranges them; an arrangement of ours would take half of the time.
        figure = Figure(figsize=(width, height), subplotpars=SubplotParams(0, 0, 1, 1, 0.1, 0.15))
        PageCanvas(figure)
        return figure
    figure = Figure(figsize=(width, height), layout="constrained")
    if is_on_page():
        PageCanvas(figure)
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.set(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.03)  # type: ignore[call-arg]
    return figure


def headline(figure: Figure, text: str) -> None:
    """Say above the whole picture, from the left, what it shows."""
    characters = max(20, int((figure.get_figwidth() - 0.2) / _HEADLINE_CHARACTER))
    said = figure.suptitle(
        textwrap.fill(text, characters), x=0.005, ha="left", size=_HEADLINE_SIZE, weight="bold", linespacing=1.25
    )
    said.set_gid(on_page_only("headline"))


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure in the format that the ending of `path` names; raise `ExportError` when that fails."""
    path = as_path(path, "path")
    _require_figure(figure)
    file = Path(path)
    form = file.suffix.lower().removeprefix(".")
    known = figure.canvas.get_supported_filetypes()
    if form not in known:
        raise ExportError(f"{file} has no ending that names a format; choose one of {', '.join(sorted(known))}")
    write_output(file, [figure_bytes(figure, form)])


@in_own_arithmetic
def figure_bytes(figure: Figure, form: str = "svg") -> bytes:
    """Return a figure as the content of a file in the format `form`: the same bytes every time."""
    _require_figure(figure)
    content = io.BytesIO()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with reproducible():
        figure.savefig(content, format=form, dpi=150, metadata=undated, **saving())
    return content.getvalue()


def _require_figure(figure: object) -> None:
    # Figures are drawn by Matplotlib, which is loaded late.
    if isinstance(figure, type) or not hasattr(figure, "savefig"):
        raise InputError("figure", "is of another kind", value=type(figure).__name__, bound="a Matplotlib figure")
