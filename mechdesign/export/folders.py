"""Tell a folder with one design from others: of a schedule, of several designs, or none at all."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from mechdesign.certify._bundle import CERTIFICATE
from mechdesign.certify._bundle import CHANNEL
from mechdesign.certify._exact import exact
from mechdesign.data._layout import cell
from mechdesign.data._layout import withheld
from mechdesign.data._layout import withholding
from mechdesign.base._errors import InputError
from mechdesign.export.schedule import SCHEDULE

__all__ = ["Scheduled", "is_schedule", "read_scheduled", "require_design"]

Scheduled = dict[str, tuple[Fraction, list[int]]]
"""The folders of a schedule, in order, each with its ε and the releases that use it."""

_SOME = 3
# What else this package writes into a folder, by a file that it holds.
_RELEASED = {
    "answers.csv": ("a release from a table", "`mechdesign inspect {}` shows what was released and what it spent"),
    "released.csv": (
        "a released trace",
        "`mechdesign release` with --channels writes a design of each step, channels/step-0 and so on",
    ),
}


def require_design(directory: Path) -> None:
    """Raise `InputError`, which says what there is instead, where `directory` does not hold one design.

    Whether the design is whole is for whoever reads it to find out.
    """
    bound = "a folder that `mechdesign design` wrote"
    if not directory.exists():
        near = difflib.get_close_matches(directory.name, _designs(directory.parent), n=1)
        remedy = f"did you mean {directory.parent / near[0]}?" if near else ""
        raise InputError(str(directory), "does not exist", bound=bound, remedy=remedy)
    if not directory.is_dir() or (directory / CERTIFICATE).exists() or (directory / CHANNEL).exists():
        return
    if is_schedule(directory):
        folder, (epsilon, steps) = next(iter(read_scheduled(directory).items()))
        raise InputError(
            str(directory),
            "holds the designs of a schedule, not one design",
            bound="one of its folders",
            remedy=f"name {directory / folder}, say, for ε = {float(epsilon):g} (release {steps[0]}); {SCHEDULE} "
            "says which release uses which",
        )
    found = [directory / name for name in _designs(directory)]
    found += [directory / "channels" / name for name in _designs(directory / "channels")]
    if found:
        some = ", ".join(map(str, found[:_SOME])) + (", …" if len(found) > _SOME else "")
        raise InputError(str(directory), f"holds {len(found)} designs, not one", bound=f"one of {some}")
    for name, (what, remedy) in _RELEASED.items():
        if (directory / name).is_file():
            raise InputError(
                str(directory), f"holds {what}, not a design", bound=bound, remedy=remedy.format(directory)
            )


def is_schedule(directory: Path) -> bool:
    """Tell whether the designs of a schedule stand in a folder, all of them."""
    return (directory / SCHEDULE).is_file() and not (directory / CERTIFICATE).exists()


def read_scheduled(directory: Path) -> Scheduled:
    """Return the folders that ``schedule.csv`` names; raise `InputError` naming the line where it is malformed.

    Releases that are left out, with an ε of 0, name none.
    """
    path = directory / SCHEDULE
    found: Scheduled = {}
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            for place, row in enumerate(csv.DictReader(lines)):
                _add(found, row, f"{path}, line {place + 2}", place)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), f"cannot be read ({error})") from error
    if not found:
        raise InputError(str(path), "names no releases", bound="a line for each release")
    return found


def _add(found: Scheduled, row: dict[str, str], line: str, place: int) -> None:
    name, step, epsilon = row.get("folder"), row.get("step"), row.get("epsilon")
    if (name, step, epsilon) == ("", str(place), "0"):
        return
    if not name or "/" in name or "\\" in name or name.startswith(".") or step != str(place) or not epsilon:
        raise InputError(
            line, "is no release", value=withheld(dict(row)), bound=f"step {place}, its epsilon and its folder"
        )
    with withholding():
        level = exact(epsilon, line)
    known, steps = found.setdefault(name, (level, []))
    if known != level:
        raise InputError(line, f"gives {name} two ε", value=cell(epsilon), bound=str(float(known)))
    steps.append(place)


def _designs(directory: Path) -> list[str]:
    """Return the names of the folders in `directory` that hold a design."""
    return sorted(_names(directory)) if directory.is_dir() else []


def _names(directory: Path) -> Iterator[str]:
    try:
        for entry in directory.iterdir():
            if (entry / CERTIFICATE).is_file():
                yield entry.name
    except OSError:
        # What cannot be looked at has no suggestion to make.
        return
