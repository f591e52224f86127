"""What figures of a page are drawn with: a renderer for layout and drawing, and numbers of cells as one artist."""

from __future__ import annotations

import functools
import io

from matplotlib.artist import Artist
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from mechdesign.base._arrays import Flags, Floats

_RASTER_DPI = 150
# From the middle of a digit's line to its base line, in sizes of the bundled font: half of its ascent less its descent.
_BASE_LINE = 0.26


class PageCanvas(FigureCanvasSVG):
    """The canvas of a figure that is drawn once, 72 dots to the inch.

    Layouts and boxes of panels are measured by the renderer that draws: matplotlib else makes one each time.
    """

    def __init__(self, figure: Figure) -> None:
        super().__init__(figure)
        figure.set_dpi(72)
        self._written = io.StringIO()
        width, height = figure.get_size_inches()
        drawing = _Renderer(72 * width, 72 * height, self._written, image_dpi=_RASTER_DPI, metadata={"Date": None})
        self._renderer = MixedModeRenderer(figure, width, height, _RASTER_DPI, drawing)

    def get_renderer(self) -> RendererBase:
        """Return what measures: matplotlib asks for it by this name."""
        return self._renderer

    def drawn(self) -> str:
        """Draw the figure, and return it as a document of SVG."""
        self.figure.draw(self._renderer)
        self._renderer.finalize()
        return self._written.getvalue()


class _Renderer(RendererSVG):
    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: bool | str
    ) -> tuple[float, float, float]:
        return _measured(s, prop, ismath)


@functools.lru_cache(8192)
def _measured(text: str, font: FontProperties, formula: bool | str) -> tuple[float, float, float]:
    """Return width, height and descent of a text in points; matplotlib hands over copies of its fonts."""
    return text_to_path.get_text_width_height_descent(text, font, formula)


class Numbers(Artist):
    """The index of each of `places` (k, 2), in the middle of it; those that are `strong` (k,) stand on dark colours."""

    def __init__(self, places: Floats, strong: Flags, size: float) -> None:
        super().__init__()
        self.set(in_layout=False, zorder=4)
        self._places, self._strong, self._size = places, strong, size

    def draw(self, renderer: RendererBase) -> None:
        """Write all texts as one group of SVG: as many artists would take half of the time of a page."""
        writer = renderer.writer  # type: ignore[attr-defined]
        writer.start("g", id="numbers", style=f"font-size: {self._size:.7g}px; text-anchor: middle")
        places = self.get_transform().transform(self._places)
        lowered = renderer.height + _BASE_LINE * self._size - places[:, 1]  # type: ignore[attr-defined]
        for index, (x, y) in enumerate(zip(places[:, 0].tolist(), lowered.tolist(), strict=True)):
            writer.element("text", str(index), x=f"{x}", y=f"{y}", attrib={"class": "on"} if self._strong[index] else {})
        writer.end("g")
