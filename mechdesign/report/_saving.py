"""Save a value as a bundle, together with its pages and figures.

Values write their bundles without importing pages. A page is an additional file, passed to the method that writes the
bundle, so that the bundle's digests include it. Pages need Matplotlib and Jinja.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from mechdesign.base._arrays import Integers, as_array
from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._check import as_path
from mechdesign.base._errors import InputError
from mechdesign.base._files import note_readers
from mechdesign.synthesis._folders import check_writable
from mechdesign.synthesis._result import Design
from mechdesign.tables._files import Publication
from mechdesign.tables._release import Release
from mechdesign.traces._released import ReleasedTrace

_PAGE = "report.html"


@singledispatch
def html(value: object) -> str:
    """Return the page on a design, a released trace, or a release of a table.

    A page contains its figures and styles. Equal values give equal text.

    Args:
        value: A design, a released trace, or a release of a table.

    Returns:
        The text of the HTML page.

    Raises:
        InputError: If values of this type have no page.

    Example:
        >>> import mechdesign as md
        >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> html(md.design(problem))[:15]
        '<!DOCTYPE html>'
    """
    raise _no_page(value)


@html.register
def _(value: Design) -> str:
    from mechdesign.report import _design_page as design_page

    return design_page.html(value.problem, value.channel, value.certificate, value.origin)


@html.register
def _(value: ReleasedTrace) -> str:
    from mechdesign.report import _trace_page as trace_page

    return trace_page.html(value)


@html.register
def _(value: Publication) -> str:
    from mechdesign.report import _table_page as table_page

    return table_page.html(value)


@html.register
def _(value: Release) -> str:
    return html(Publication(value))


def pages(value: object) -> dict[str, bytes]:
    """Return the page on a value, and its figures if they are separate files, by file name."""
    return _pictures(value) | {_PAGE: html(value).encode()}


@singledispatch
def _pictures(value: object) -> dict[str, bytes]:
    """Return the figures of a value that are separate files, by file name."""
    return {}


@_pictures.register
def _(value: ReleasedTrace) -> dict[str, bytes]:
    from mechdesign.report import _trace_figures as trace_pictures

    return trace_pictures.public_pictures(value)


@singledispatch
def save(value: object, folder: str | os.PathLike[str], *, overwrite: bool = True, **options: Any) -> None:
    """Write a design, a released trace, or a release of a table into a folder, with its page.

    Args:
        value: The design, released trace, or release of a table.
        folder: The folder, created if missing.
        overwrite: Whether existing files may be replaced: see the method `save` of the value.
        **options: Further arguments of the method `save`: `prior` of a design, `channels` and `force` of a trace,
            `force` of a table.

    Raises:
        ExportError: If the files must not, or cannot, be written.
        InputError: If the value has no page, or its method does not accept an option.
        ReportError: If everything is written except pages and figures, which cannot be drawn.

    Example:
        >>> import pathlib, tempfile, mechdesign as md
        >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "design"
        >>> save(md.design(problem), folder)
        >>> (folder / "report.html").exists()
        True
    """
    raise _no_page(value)


@save.register(Design)
@save.register(ReleasedTrace)
@save.register(Publication)
def _(
    value: Design | ReleasedTrace | Publication,
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = True,
    **options: Any,
) -> None:
    # A missing package is noticed before anything is written.
    import jinja2  # noqa: F401
    import matplotlib  # noqa: F401

    value.save(folder, files=pages, overwrite=overwrite, **options)


@save.register
def _(value: Release, folder: str | os.PathLike[str], *, overwrite: bool = True, **options: Any) -> None:
    save(Publication(value), folder, overwrite=overwrite, **options)


def save_truth(trace: ReleasedTrace, folder: str | os.PathLike[str], truth: Sequence[int] | Integers) -> None:
    r"""Write figures and a table of the true states of a released trace, for its owner only.

    New files have the mode 0600, and a new folder has 0700. Existing files keep their mode, with an
    `ExposedFileWarning` if others can read them.

    Args:
        trace: The released trace.
        folder: A folder other than the published folder.
        truth: The true state of each step.

    Raises:
        ExportError: If the files cannot be written.
        InputError: If there are fewer true states than steps.

    Example:
        >>> import pathlib, tempfile, mechdesign as md
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> _ = (folder / "states.csv").write_text("state\n0\n1\n")
        >>> trace = md.specification.parse('''
        ... domain.grid = { columns = 2, rows = 1, width = 2.0, height = 1.0 }
        ... prior.uniform = true
        ... cost.distance = "euclidean"
        ... privacy = [{ kind = "graph", epsilon = "0.5", blocks = 2 }]
        ... release = { mechanism = "planar-isotropic", transition = { neighbours = 4 } }
        ... ''').release(folder / "states.csv", seed=1)
        >>> save_truth(trace, folder / "private", [0, 1])
        >>> (folder / "private" / "true.csv").exists()
        True
    """
    from mechdesign.report import _trace_figures as trace_pictures

    target, true, steps = as_path(folder, "folder"), as_array(truth, "truth", np.int64), len(trace.releases)
    if len(true) < steps:
        raise InputError("truth", "is shorter than the trace", value=len(true), bound=f"{steps} states")
    check_writable(target)
    make_folder(target, private=True)
    for name, content in trace_pictures.private_files(trace, true[:steps]).items():
        note_readers(target / name)
        write_file(target / name, [content], private=True)


def _no_page(value: object) -> InputError:
    bound = "a Design, a ReleasedTrace, or a release of a table"
    return InputError("value", "has no page", value=type(value).__name__, bound=bound)
