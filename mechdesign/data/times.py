"""Read times as people and programs write them, and refuse what may mean two moments.

All times are UTC; a time without a zone is taken as UTC unless a zone is given. A number is taken for seconds since
1970, or for thousandths, millionths or billionths, only where no usual form of a date has the same digits, and where
its year is a likely one. Of day and month in digits a column tells which stands first, and between points it is the
day. What was recognised is said; all else is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mechdesign.data import _moments as moments
from mechdesign.data._moments import Moment
from mechdesign.data.forms import cell
from mechdesign.base._errors import InputError

__all__ = ["Clock", "Moment", "ReadAgainError", "SetClockError", "is_missing", "order_of", "read_with"]

Times = NDArray[np.datetime64]

# How tables write that nothing is known.
_MISSING = frozenset({"", "nat", "null", "nan", "na", "n/a", "none", "<na>", "#n/a", "\\n"})

# Numbers that mean an earlier moment, or one after next year, are hardly seconds since 1970.
_FIRST_YEAR = 1980
_UNIT_NAMES: Mapping[str, str] = MappingProxyType(
    {"unix": "seconds", "unix-ms": "milliseconds", "unix-us": "microseconds", "unix-ns": "nanoseconds"}
)

# What may have two meanings.
_NUMBERS, _ORDER = "numbers", "order"
# Where the day and the month stand, by which of them is first.
_PLACES: Mapping[str, tuple[str, str]] = MappingProxyType({"day": ("one", "two"), "month": ("two", "one")})
_OTHER_ORDER: Mapping[str, str] = MappingProxyType({"day": "%m/%d/%Y", "month": "%d/%m/%Y"})

_LETTERS_AFTER = re.compile(r"[0-9] *[a-z]{2,5}\s*$", re.IGNORECASE)
# Two numbers and two digits of a year, which may be a day, too; and a time without its day.
_TWO_WAYS = re.compile(r"[0-9]{1,2}(?P<sign>[-/.])[0-9]{1,2}(?P=sign)(?P<year>[0-9]{2}|[0-9]{4})(?![0-9]).*", re.DOTALL)
_NO_DAY = re.compile(rf"{moments.OF_DAY}(?: *{moments.ZONE})?", re.IGNORECASE)


class ReadAgainError(Exception):
    """A line shows that the lines before it were read wrongly; `clock` reads the table from its beginning."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("the table is to be read again")
        self.clock = clock


class SetClockError(InputError):
    """A time of day that happens twice, or never, as clocks are set in its zone."""


class Clock:
    """How the times of one column are written: as `form` says, else as they themselves tell.

    `form` is a pattern of `datetime.strptime`, such as "%d/%m/%Y %H:%M", or "unix", "unix-ms", "unix-us" or "unix-ns":
    a number of seconds, or of parts of a second, since 1970. `name` is that of the column, for errors, and `path` that
    of the form. Times without a zone are those of `zone`, such as "Europe/Zurich" or "+02:00"; UTC unless given. Raises
    `InputError` for a form or a zone that is none.
    """

    def __init__(
        self, form: str | None = None, name: str = "time", path: str = "time_format", zone: str | None = None
    ) -> None:
        self._form, self._name, self._zone_name = form, name, zone
        years = (_FIRST_YEAR, datetime.now(UTC).year + 2)
        self._likely = range(
            *((datetime(year, 1, 1, tzinfo=UTC) - moments.EPOCH) // moments.ONE_SECOND for year in years)
        )
        # The first text that may mean another moment, and its forms, for numbers and for the order of day and month;
        # and of which of them another text has told what they mean.
        self._doubts: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        self._settled: set[str] = set()
        # What was recognised: the unit of numbers, and which of day and month stands first.
        self._unit: str | None = None
        self._first: str | None = None
        self._sign = ""
        if form is not None:
            moments.check_form(form, path)
        self._zone = UTC if zone is None else moments.zone_called(zone)

    def moment(self, text: str, where: Callable[[], str], day: str | None = None) -> Moment | None:
        """Return the moment in a text, or None where the text says that nothing is known.

        `day` is the text in the column with the date, where there is one. Raises `InputError` at the path `where()` for
        a text that is no time, or may be two; it shows its form only. Raises `ReadAgainError` where a text shows that
        the month stands first, and texts before were read with the day first.
        """
        text = text.strip()
        if day is not None:
            day = day.strip()
            if is_missing(text) or is_missing(day):
                return None
            text = f"{day} {text}"
        if self._form is None and moments.NUMBER.fullmatch(text):
            return self._number(text, where)
        is_set = False
        try:
            if (moment := self._written(text, where)) is not None:
                return moment
        except moments.ClockIsSetError:
            is_set = True
        # Raised here, without what was raised before: that may hold the text.
        if is_set:
            raise SetClockError(
                where(),
                f"{self._name} happens twice, or never, in the zone {self._zone_name}, as clocks are set",
                value=cell(text),
                bound="a time that happens once",
                remedy="write the offset, such as +0100",
            )
        if is_missing(text):
            return None
        raise self._error(text, where())

    def check(self) -> None:
        """Raise `InputError` where every text that was read may mean another moment, too."""
        for what, (text, where, forms) in self._doubts.items():
            if what not in self._settled:
                raise self._two_meanings(text, where, forms)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised, and how to overrule it, in sentences."""
        found = []
        if self._unit is not None and self._unit != "unix":
            unit = _UNIT_NAMES[self._unit]
            found.append(f"numbers in {self._name} are taken as {unit} since 1970 (--time-format says if they are not)")
        if self._first is not None:
            other = _OTHER_ORDER[self._first].replace("/", self._sign)
            found.append(f'the {self._first} stands first in {self._name} (else say --time-format "{other}" and so on)')
        if self._zone_name is not None:
            found.append(f"times without a zone are those of {self._zone_name}")
        return tuple(found)

    def _written(self, text: str, where: Callable[[], str]) -> Moment | None:
        """Return the moment in a text that is no number, None where there is none."""
        if self._form is None and (found := moments.EITHER_FIRST.fullmatch(text)):
            return self._day_and_month(text, found, where)
        with suppress(ValueError, OverflowError):
            if self._form is not None:
                return moments.as_told(text, self._form, self._zone)
            return moments.written(text, self._zone)
        return None

    def _number(self, text: str, where: Callable[[], str]) -> Moment:
        for unit, parts in moments.UNITS.items():
            with suppress(OverflowError):
                moment = moments.count(text, parts)
                if moment.seconds in self._likely:
                    return self._number_in(unit, moment, text, where)
        if dates := moments.dates_in(text):
            raise self._two_meanings(text, where(), (dates[0], "unix"))
        raise InputError(
            where(),
            f"{self._name} is a number, and as seconds since 1970 it is before {_FIRST_YEAR} or after next year",
            value=cell(text),
            bound="a date and time, or seconds since 1970",
            remedy=f"say if it is one: {_say('unix')}, or for milliseconds {_say('unix-ms')}",
        )

    def _number_in(self, unit: str, moment: Moment, text: str, where: Callable[[], str]) -> Moment:
        """Return a moment that a number means in a unit; raise `InputError` where those before it have another one."""
        self._unit = self._unit or unit
        if unit != self._unit:
            problem = f"{self._name} is in {_UNIT_NAMES[unit]}, and those before it in {_UNIT_NAMES[self._unit]}"
            raise InputError(where(), problem, value=cell(text), bound="the same unit in all lines")
        if _NUMBERS not in self._settled:
            if dates := moments.dates_in(text):
                self._doubts.setdefault(_NUMBERS, (text, where(), (dates[0], unit)))
            else:
                self._settled.add(_NUMBERS)
        return moment

    def _day_and_month(self, text: str, found: re.Match[str], where: Callable[[], str]) -> Moment | None:
        """Return the moment in a text with day and month in digits before the year, None where there is none.

        The day stands first where any of the texts says so, the month likewise; and the day between points.
        """
        possible = {}
        for first, (day, month) in _PLACES.items():
            with suppress(ValueError, OverflowError):
                possible[first] = moments.built(found, int(found[month]), day, UTC)
        if not possible:
            return None
        if self._first is None:
            self._first, self._sign = "day" if "day" in possible else "month", found["sign"]
        if self._first not in possible:
            if _ORDER in self._settled:
                problem = f"{self._name} has another order of day and month than lines before"
                raise InputError(where(), problem, value=cell(text), bound=f"the {self._first} first, as there")
            # All texts so far may have the month first.
            other = Clock(None, self._name, zone=self._zone_name)
            other._first, other._sign = "month", self._sign
            other._settled.add(_ORDER)
            raise ReadAgainError(other)
        if len(possible) == 1:
            self._settled.add(_ORDER)
        elif found["sign"] != "." and possible["day"] != possible["month"]:
            # Between points the day stands first, unless another text cannot be so.
            signs = (found["sign"].join((*first, "%Y")) + " %H:%M:%S" for first in (("%d", "%m"), ("%m", "%d")))
            self._doubts.setdefault(_ORDER, (text, where(), tuple(signs)))
        day, month = _PLACES[self._first]
        return moments.built(found, int(found[month]), day, self._zone)

    def _two_meanings(self, text: str, where: str, forms: Sequence[str]) -> InputError:
        if forms[1] in moments.UNITS:
            problem = f"{self._name} is a number that may be a date, or {_UNIT_NAMES[forms[1]]} since 1970"
        else:
            problem = f"{self._name} may have the day first, or the month"
        return InputError(
            where,
            problem,
            value=cell(text),
            bound="a time that can be read in one way only",
            remedy=f"say which, as the text is written: {_say(forms[0])}, or {_say(forms[1])}",
        )

    def _error(self, text: str, where: str) -> InputError:
        bound = "ISO 8601, or another date with the year first or the month by name, or seconds since 1970"
        if self._form is not None:
            problem, remedy, bound = f"{self._name} is not a time", "", f"as time_format says, {self._form!r}"
        elif any(form.fullmatch(text) for form in (*moments.FORMS, moments.EITHER_FIRST)):
            problem, remedy = f"{self._name} is not a time: there is no such day or hour", ""
        elif found := _TWO_WAYS.fullmatch(text):
            problem, sign = f"{self._name} may have the day first, or the month", found["sign"]
            year = "%Y" if len(found["year"]) == 4 else "%y"
            day, month = (_say(sign.join((*first, year)) + " %H:%M:%S") for first in (("%d", "%m"), ("%m", "%d")))
            remedy = f"say which, as the text is written: {day}, or {month}"
        elif _NO_DAY.fullmatch(text):
            problem = f"{self._name} is not a time: it has no day"
            remedy = "name the column with the day, too: date (--date on the command line)"
        elif _LETTERS_AFTER.search(text):
            problem = f"{self._name} is not a time: its zone is not known, or may be two"
            remedy = "write the offset, such as +0100, in place of the letters"
        else:
            problem, remedy = (
                f"{self._name} is not a time",
                f"say how it is written, such as {_say('%d.%m.%Y %H:%M')}",
            )
        return InputError(where, problem, value=cell(text), bound=bound, remedy=remedy)


def is_missing(text: str) -> bool:
    """Tell whether a text is what tables write where nothing is known."""
    return text.strip().lower() in _MISSING


Read = TypeVar("Read")


def read_with(clock: Clock, read: Callable[[Clock], Read]) -> Read:
    """Return what `read` makes of a table with a clock; it reads again where a line says so, and checks the clock."""
    try:
        found = read(clock)
    except ReadAgainError as again:
        clock = again.clock
        found = read(clock)
    clock.check()
    return found


def order_of(times: Sequence[Times | None], what: str = "points") -> str:
    """Say the first and last of the times of traces, and the order in which their points are."""
    known = [each for each in times if each is not None and len(each)]
    if len(known) < len(times) or not known:
        return f"no times are read: {what} are in the order of the file (--time COLUMN, or the key time, names times)"
    first, last = (
        str(end).replace("T", " ") for end in (min(each.min() for each in known), max(each.max() for each in known))
    )
    said = f"times from {first} to {last} (UTC): {what} are in the order of their times"
    if equal := sum(int((np.diff(each) == np.timedelta64(0, "s")).sum()) for each in known):
        said += f"; {equal} in the second of the one before are in the order of its parts, then of the file"
    return said


def _say(form: str) -> str:
    return f'--time-format "{form}" (time_format = "{form}")'
