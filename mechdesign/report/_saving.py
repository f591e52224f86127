"""Write a value with its page: the bundle that the value itself writes, and the pictures and pages that go with it.

Bundles know nothing of pages. A page is a further file of a bundle, handed over when that is written, so that the
digests of the bundle are those of its page, too.
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
from mechdesign.report import _design_page as design_page
from mechdesign.report import _table_page as table_page
from mechdesign.report import _trace_figures as trace_pictures
from mechdesign.report import _trace_page as trace_page
from mechdesign.synthesis._folders import check_writable
from mechdesign.synthesis._result import Design
from mechdesign.tables._files import Publication
from mechdesign.tables._release import Release
from mechdesign.traces._released import ReleasedTrace

_PAGE = "report.html"


@singledispatch
def html(value: object) -> str:
    """Return the page on a design, a released trace, or a release of a table: one text that holds everything.

    The same values give the same text.
    """
    raise _no_page(value)


@html.register
def _(value: Design) -> str:
    return design_page.html(value.problem, value.channel, value.certificate, value.origin)


@html.register
def _(value: ReleasedTrace) -> str:
    return trace_page.html(value)


@html.register
def _(value: Publication) -> str:
    return table_page.html(value)


@html.register
def _(value: Release) -> str:
    return html(Publication(value))


@singledispatch
def pages(value: object) -> dict[str, bytes]:
    """Return the page on a value, and its pictures where they are files of their own, by name."""
    return {_PAGE: html(value).encode()}


@pages.register
def _(value: ReleasedTrace) -> dict[str, bytes]:
    return trace_pictures.public_pictures(value) | {_PAGE: html(value).encode()}


@singledispatch
def save(value: object, folder: str | os.PathLike[str], *, overwrite: bool = True, **options: Any) -> None:
    """Write a design, a released trace, or a release of a table into a folder, with its page.

    Args:
        value: What is written.
        folder: A folder, made where there is none.
        overwrite: Replace what stands there: see the method `save` of the value.
        options: What else that method takes: `prior` of a design, `channels` and `force` of a trace, `force` of a
            table.

    Raises:
        ExportError: The files may not, or cannot, be written.
        InputError: The value has no page, or its method refuses an option.
        ReportError: All is written but pages and pictures, which cannot be made.
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
    value.save(folder, files=pages, overwrite=overwrite, **options)


@save.register
def _(value: Release, folder: str | os.PathLike[str], *, overwrite: bool = True, **options: Any) -> None:
    save(Publication(value), folder, overwrite=overwrite, **options)


def save_truth(trace: ReleasedTrace, folder: str | os.PathLike[str], truth: Sequence[int] | Integers) -> None:
    """Write what shows the true states of a released trace, for their owner only.

    New files have the mode 0600, and a new folder has 0700. Files that stand there keep theirs, with an
    `ExposedFileWarning` where others can read them.

    Args:
        trace: What was released.
        folder: A folder apart from the one that is published.
        truth: The true state of each step.

    Raises:
        ExportError: The files cannot be written.
        InputError: The truth ends before the trace.
    """
    target, true, steps = as_path(folder, "folder"), as_array(truth, "truth", np.int64), len(trace.releases)
    if len(true) < steps:
        raise InputError("truth", "ends before the trace", value=len(true), bound=f"{steps} states")
    check_writable(target)
    make_folder(target, private=True)
    for name, content in trace_pictures.private_files(trace, true[:steps]).items():
        note_readers(target / name)
        write_file(target / name, [content], private=True)


def _no_page(value: object) -> InputError:
    bound = "a Design, a ReleasedTrace, or a release of a table"
    return InputError("value", "has no page", value=type(value).__name__, bound=bound)
