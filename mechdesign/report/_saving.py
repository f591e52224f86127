"""Save a value in a folder, with its page.

The rooms of values write their files without importing pages. A page is an additional file, passed to the function that
writes the others, so that their digests include it. Pages need Matplotlib and Jinja.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mechdesign.base._arrays import Integers
from mechdesign.base._atomic import make_folder, write_file
from mechdesign.base._check import as_path, as_truth
from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.base._files import note_readers
from mechdesign.base._names import named
from mechdesign.synthesis._folders import NO_FILES, check_writable
from mechdesign.synthesis._result import Design, write_design
from mechdesign.tables._files import Published, write_release
from mechdesign.tables._release import Release
from mechdesign.traces._released import ReleasedTrace, write_trace

_PAGE = "report.html"


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
    given, (module, _, _) = _kind_of(value)
    text: str = importlib.import_module(f"mechdesign.report.{module}").html(given)
    return text


def pages(value: object) -> dict[str, bytes]:
    """Return the page on a value, by its file name."""
    return {_PAGE: html(value).encode()}


def save(
    value: Design | ReleasedTrace | Release | Published,
    folder: str | os.PathLike[str],
    *,
    report: bool = True,
    prior: bool = True,
    channels: bool = False,
    overwrite: bool = True,
) -> None:
    """Write a design, a released trace, or a release of a table into a folder.

    A design becomes a bundle, which `mechdesign.verify` proves. By default it contains the prior; a prior that was
    counted from data reveals every count. If only the page cannot be drawn, the other files stay.

    Args:
        value: The design, released trace, or release of a table.
        folder: The folder, created if missing.
        report: Whether to add ``report.html``, which needs Matplotlib and Jinja.
        prior: Whether the bundle of a design contains the prior. Otherwise it contains a uniform prior and a lower
            bound of 0, and no origin, multipliers and summary. The folder must then be new or empty.
        channels: Whether to write the channel of each step of a trace as a bundle. If the history of the trace does
            not permit a public prior, these bundles contain a uniform prior and make no claim about costs.
        overwrite: Whether to replace a design or a release. A rehearsal is always replaced; replacing a release does
            not refund its budget. Other files beside a design stay.

    Raises:
        ExportError: If the files must not, or cannot, be written.
        InputError: If the value cannot be saved, or an option does not apply to it. The prior cannot be left out if a
            requirement or the costs depend on it.
        MissingDependencyError: If the page needs a package that is not installed; nothing is written.
        ReportError: If everything is written except the page, which cannot be drawn.

    Example:
        >>> import pathlib, tempfile, mechdesign as md
        >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
        >>> folder = pathlib.Path(tempfile.mkdtemp()) / "design"
        >>> save(md.design(problem), folder, report=False)
        >>> md.verify(folder).holds
        True
    """
    target, drawn = as_path(folder, "folder"), as_truth(report, "report")
    given, (_, write, own) = _kind_of(value)
    options = {"overwrite": as_truth(overwrite, "overwrite")}
    for name, option, default in (("prior", prior, True), ("channels", channels, False)):
        if name == own:
            options[name] = as_truth(option, name)
        elif as_truth(option, name) is not default:
            raise InputError(name, f"does not apply to a {type(value).__name__}", value=option, bound="left out")
    if drawn:
        # A missing package is noticed before anything is written.
        try:
            import jinja2  # noqa: F401
            import matplotlib  # noqa: F401
        except ModuleNotFoundError as error:
            message = "a page needs Matplotlib and Jinja: pip install matplotlib jinja2, or use report=False"
            raise MissingDependencyError(message) from error
    write(given, target, files=pages if drawn else NO_FILES, **options)


# The module of the page of each kind of value, the function that writes its files, and the option that only it has.
_KINDS: dict[type, tuple[str, Callable[..., None], str]] = {
    Design: ("_design_page", write_design, "prior"),
    ReleasedTrace: ("_trace_page", write_trace, "channels"),
    Published: ("_table_page", write_release, ""),
}


def _kind_of(value: object) -> tuple[Any, tuple[str, Callable[..., None], str]]:
    """Return a value that has files and a page, with what is known of its kind."""
    given = Published(value) if isinstance(value, Release) else value
    for kind, known in _KINDS.items():
        if isinstance(given, kind):
            return given, known
    bound = "a Design, a ReleasedTrace, or a release of a table"
    raise InputError("value", "has no files and no page", value=type(value).__name__, bound=bound)


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
    from mechdesign.report import _trace_page as trace_pictures

    target, true, steps = as_path(folder, "folder"), named(truth, "truth", dtype=np.int64), len(trace.releases)
    if len(true) < steps:
        raise InputError("truth", "is shorter than the trace", value=len(true), bound=f"{steps} states")
    check_writable(target)
    make_folder(target, private=True)
    for name, content in trace_pictures.private_files(trace, true[:steps]).items():
        note_readers(target / name)
        write_file(target / name, [content], private=True)
