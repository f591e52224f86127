"""``mechdesign export``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from mechdesign.base._check import require_name
from mechdesign.base._errors import InputError
from mechdesign.cli._arguments import naming_options
from mechdesign.cli._console import progress, say_note
from mechdesign.cli._found import FILE, Found, command, wants_json
from mechdesign.synthesis._folders import check_folder, check_output, require_design
from mechdesign.synthesis._result import Design
from mechdesign.synthesis.formats._format import Exported, Format
from mechdesign.synthesis.formats._registry import FORMATS, format_of

_WRITE_BYTES = 4096
# Formats that contain the prior.
_WITH_PRIOR = ("geojson", "json", "mps", "npz")


def _look_up_format(_: click.Context, __: click.Parameter, name: str | None) -> Format | None:
    """Return the format with a given name, which another package may add."""
    return None if name is None else FORMATS[require_name(name, FORMATS, "--format")]


@command
@click.argument("folder", metavar="DIR", type=FILE)
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    callback=_look_up_format,
    help=f"One of {', '.join(FORMATS)}; default: the suffix of FILE.",
)
@click.option("-o", "--output", "target", metavar="FILE", type=FILE, help="Default: standard output.")
@click.option("--classic", is_flag=True, help="In format js, write a classic script with the object mechdesign.")
@click.option(
    "--without-prior", "public", is_flag=True,
    help="Write a folder like DIR to FILE, with a uniform prior instead of a private one, and without a claim of cost.",
)  # fmt: skip
def export(folder: Path, form: Format | None, target: Path | None, classic: bool, public: bool) -> Found:
    """Write the channel in DIR for other programs, or DIR itself without its prior.

    \b
    csv, json, npz, parquet   the channel: text, arrays, a table
    js                        a module for apps: exact sampling, pair bounds
    geojson                   domain, prior and answers, for maps
    mps                       the linear program that the channel solves

    A prior that was counted in data is private: DIR contains it, and so do json, npz, geojson and mps. With
    --without-prior metric, threshold and graph privacy can be verified as before; the channel still depends on the
    true prior.

    Example: mechdesign export city --format js -o channel.mjs
    """  # noqa: D301 - click wants the control character; words: ok, because these are lines of commands
    if public:
        return _without_prior(folder, target, form is not None or classic)
    if target is None and wants_json():
        raise click.UsageError("--json prints facts of a file: name it with -o")
    if target is None and form is None:
        raise click.UsageError("name a format with --format, or a file with -o")
    with naming_options({"path": "--output"}):
        form = form or format_of(str(target))
    if classic and "classic" not in form.options:
        raise click.UsageError("--classic goes with --format js")
    check_output(target)
    require_design(folder)
    design = Design.load(folder)
    exported = Exported(design.problem, design.channel, design.certificate)
    options = {"classic": True} if classic else {}
    _say_private(design, form)
    if target is not None:
        with progress(f"writing {form.name}"):
            form.write(exported, target, options)
        _say_ending(target, form)
        return Found(facts={"file": target, "format": form.name})
    if not form.text and sys.stdout.isatty():
        raise click.UsageError(f"{form.name} is a binary format: name a file with -o")
    for part in form.parts(exported, options):
        # Write pieces smaller than the buffer, since Python may silently lose the end of a larger piece on a full disk.
        for start in range(0, len(part), _WRITE_BYTES):
            sys.stdout.buffer.write(part[start : start + _WRITE_BYTES])
    return Found()


def _without_prior(folder: Path, target: Path | None, more: bool) -> Found:
    """Write a folder like `folder`, but without its prior."""
    # Imported late, since formats do not need it.
    from mechdesign.model._origin import STANDS_IN
    from mechdesign.report._saving import save
    from mechdesign.report._statements import STEPS, tells_steps

    if more:
        raise click.UsageError("--without-prior writes a folder, and cannot be combined with --format or --classic")
    if target is None:
        raise click.UsageError("give --without-prior a folder to write, with -o")
    require_design(folder)
    check_folder(target, (), "a design without its prior")
    design = Design.load(folder)
    save(design, target, report=(folder / "report.html").exists(), prior=False)
    notes = [
        f"the prior of {target} is {STANDS_IN}",
        "the channel still depends on the true prior: only a design with a prior from public data hides it",
        *([STEPS] if design.origin is not None and tells_steps(design.origin) else []),
    ]
    for note in notes:
        say_note(note)
    following = f"mechdesign verify {shlex.quote(str(target))}    # prove the remaining claims"
    return Found(facts={"folder": target, "next": [following]})


def _say_ending(target: Path, form: Format) -> None:
    """Show a note if the suffix of a file does not match its format."""
    try:
        told = format_of(target)
    except InputError:
        return
    if told.name != form.name:
        say_note(f"{target} is in the format {form.name}, although its suffix belongs to {told.name}")


def _say_private(design: Design, form: Format) -> None:
    """Show a note if a file contains a prior that was, or may have been, counted in data."""
    if form.name not in _WITH_PRIOR:
        return
    from mechdesign.report._statements import holds_counts

    if holds_counts(design.problem, design.origin):
        say_note(f"{form.name} contains the prior: if the prior was counted in data, the file is private")
