"""The canvas of figures on pages, and SVG drawings of grid cells and their numbers."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from mechdesign.base._arrays import Flags, Floats

_RASTER_DPI = 150
# Distance from the middle of a digit to its baseline, as a share of the font size: half of the bundled font's ascent −
# descent.
_BASE_LINE = 0.26

Formula = bool | Literal["TeX"]


class PageCanvas(FigureCanvasSVG):
    """The canvas of a figure that is drawn once, at 72 dots per inch.

    One renderer draws the figure and measures its layout and panels; matplotlib would create a new renderer for each
    measurement.
    """

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        figure.set_dpi(72)
        self._written = io.StringIO()
        width, height = figure.get_size_inches()
        # The renderer is made in the same way as in `FigureCanvasSVG.print_svg`.
        shapes: Any = _Renderer
        mixed: Any = MixedModeRenderer
        written = shapes(72 * width, 72 * height, self._written, image_dpi=_RASTER_DPI, metadata={"Date": None})
        self._renderer = mixed(figure, width, height, _RASTER_DPI, written)

    def get_renderer(self) -> Any:
        """Return the renderer; matplotlib calls this method."""
        return self._renderer

    def draw_svg(self) -> str:
        """Draw the figure, and return it as an SVG document."""
        self.figure.draw(self._renderer)
        self._renderer.finalize()
        return self._written.getvalue()


class _Renderer(RendererSVG):
    """A renderer that measures each text only once, and keeps the result for all figures."""

    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: Formula
    ) -> tuple[float, float, float]:
        return _measure_text(s, prop, ismath)


@functools.lru_cache(8192)
def _measure_text(text: str, font: FontProperties, formula: Formula) -> tuple[float, float, float]:
    """Return width, height and descent of a text in points, from a cache; equal copies of a font share its entries."""
    return text_to_path.get_text_width_height_descent(text, font, formula)


class Cells(Artist):
    """Cells of a grid between the lines `columns` (c + 1,) and `rows` (r + 1,); cells of one colour share one path.

    `colours` contains r · c hexadecimal colours, row by row; a cell with an empty colour is not drawn.
    """

    def __init__(self, columns: Floats, rows: Floats, colours: Sequence[str]) -> None:
        super().__init__()
        self.set(in_layout=False, zorder=1)
        self._columns, self._rows, self._colours = columns, rows, colours

    def draw(self, renderer: Any) -> None:
        """Write the paths as one SVG group."""
        place = self.get_transform().transform
        x = place(np.column_stack((self._columns, np.full(len(self._columns), self._rows[0]))))[:, 0]
        y = renderer.height - place(np.column_stack((np.full(len(self._rows), self._columns[0]), self._rows)))[:, 1]
        across = [(f"M{low:.1f}", f"h{high - low:.1f}", f"h{low - high:.1f}z") for low, high in pairwise(x.tolist())]
        up = [(f" {high:.1f}", f"v{low - high:.1f}") for low, high in pairwise(y.tolist())]
        shapes: dict[str, list[str]] = {}
        for colour, ((top, down), (left, right, back)) in zip(self._colours, product(up, across), strict=True):
            shapes.setdefault(colour, []).append(f"{left}{top}{right}{down}{back}".replace(".0", ""))
        writer = renderer.writer
        writer.start("g", id="values cells")
        for colour, drawn in shapes.items():
            if colour:
                writer.element("path", style=f"fill: {colour}", d="".join(drawn))
        writer.end("g")


class Numbers(Artist):
    """The indices of cells, as texts centred at `places` (k, 2); `strong` (k,) marks dark cells with light text."""

    def __init__(self, places: Floats, strong: Flags, size: float) -> None:
        super().__init__()
        self.set(in_layout=False, zorder=4)
        self._places, self._strong, self._size = places, strong, size

    def draw(self, renderer: Any) -> None:
        """Write all texts as one SVG group; one artist for each text would take half of the drawing time."""
        writer = renderer.writer
        writer.start("g", id="numbers", style=f"font-size: {self._size:.7g}px; text-anchor: middle")
        places = self.get_transform().transform(self._places)
        lowered = renderer.height + _BASE_LINE * self._size - places[:, 1]
        for index, (x, y) in enumerate(zip(places[:, 0].tolist(), lowered.tolist(), strict=True)):
            writer.element(
                "text", str(index), x=f"{x}", y=f"{y}", attrib={"class": "on"} if self._strong[index] else {}
            )
        writer.end("g")
