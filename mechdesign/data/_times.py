"""Parse times in many formats, and find the columns with times.

All times are UTC; a time without a zone is read as UTC unless a zone is given. A number is read as seconds,
milliseconds, microseconds or nanoseconds since 1970 if its year is plausible and its digits are not a date. The order
of day and month in digits is inferred from the whole column; with points, as in 1.2.2023, the day comes first. Notes
report these inferences. If a column is ambiguous, an error requests the format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

import numpy as np
from numpy.typing import NDArray

from mechdesign.base._errors import InputError
from mechdesign.data._layout import cell, shorten
from mechdesign.data._left_out import MOST_LEFT_OUT
from mechdesign.data._text import column_text

# First and last second of the years 1 to 9999, the range of `datetime`, in seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_SECOND = timedelta(seconds=1)

_OFFSET = re.compile(r"(?:utc|gmt)?[+-][0-9]{1,2}(?::?[0-9]{2})?|utc|gmt")
# Formats of numbers since 1970-01-01 00:00 UTC, with the number of units per second.
UNITS: Mapping[str, int] = MappingProxyType({"unix": 1, "unix-ms": 10**3, "unix-us": 10**6, "unix-ns": 10**9})

_NANOSECONDS = 10**9

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

# Formats of dates that consist of digits only, with their numbers of digits.
_DIGITS = (
    *((8, "%Y%m%d"), (6, "%Y%m"), (7, "%Y%j"), (10, "%Y%m%d%H"), (12, "%Y%m%d%H%M"), (14, "%Y%m%d%H%M%S")),
    *((6, "%y%m%d"), (10, "%y%m%d%H%M"), (12, "%y%m%d%H%M%S")),
)
_LIKELY_DATES = range(1900, 2100)

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = "(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?[.,]? +)?"
OF_DAY = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<part>[0-9]+))?)?"
    r"(?: *(?:(?P<half>[ap])\.?m\.?|uhr))?"
)
# Abbreviations with a unique offset from UTC, in hours; others, such as IST and CST, are ambiguous.
_LETTERS: Mapping[str, int] = MappingProxyType(
    {
        letters: hours
        for hours, names in (
            *((0, "utc gmt z wet"), (1, "cet west"), (2, "cest eet"), (3, "eest msk"), (9, "jst kst"), (10, "aest")),
            *((11, "aedt"), (12, "nzst"), (13, "nzdt"), (-4, "edt"), (-5, "est"), (-7, "mst pdt"), (-6, "mdt")),
            *((-8, "pst"), (-10, "hst")),
        )
        for letters in names.split()
    }
)
ZONE = (
    rf"(?P<zone>(?:utc|gmt)?[+-][0-9]{{1,2}}(?::?[0-9]{{2}})?|{'|'.join(sorted(_LETTERS, key=len, reverse=True))})"
    r"(?: *\((?:utc|gmt|[a-z]{3,4}|[a-z ]+ time)\))?(?:\[[a-z_/+-]+\])?"
)
_AFTER = rf"(?:(?:[ t]|, ?) *{OF_DAY}(?: *{ZONE})?)?"
# Unambiguous formats: year first, or the month by its name.
FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?P<year>[0-9]{{4}})(?P<sign>[-/.])(?P<month>[0-9]{{1,2}})(?P=sign)(?P<day>[0-9]{{1,2}}){_AFTER}",
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})[ -]{_MONTH}[ -]?,? *(?P<year>[0-9]{{4}}){_AFTER}",
        rf"{_WEEKDAY}{_MONTH} +(?P<day>[0-9]{{1,2}}),? +(?P<year>[0-9]{{4}}){_AFTER}",
        rf"{_WEEKDAY}{_MONTH} +(?P<day>[0-9]{{1,2}}) +{OF_DAY}(?: +{ZONE})? +(?P<year>[0-9]{{4}})",
    )
)
# Day and month in digits, before the year.
EITHER_FIRST = re.compile(
    rf"(?P<one>[0-9]{{1,2}})(?P<sign>[-/.])(?P<two>[0-9]{{1,2}})(?P=sign)(?P<year>[0-9]{{4}}){_AFTER}", re.IGNORECASE
)
# A fraction of a second with more digits than `datetime` keeps.
_FINE = re.compile(r"[.,]([0-9]{7,})")

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_KNOWN = frozenset("YymdjHIMSfpbBaAz%")

# Longer texts are not parsed as times.
_MAX_TEXT_LENGTH = 100


class Instant(NamedTuple):
    """An instant: whole seconds since 1970, rounded down, and the remaining nanoseconds."""

    seconds: int
    nanoseconds: int = 0


def check_form(form: str, path: str) -> None:
    """Raise `InputError` unless a time format is known and determines a unique instant."""
    if form in UNITS:
        return
    given = _DIRECTIVE.findall(form) if isinstance(form, str) else []
    unknown = next((each for each in given if each not in _KNOWN), None)
    parts = [each for each in given if each != "%"]
    bound = f'a pattern such as "%d/%m/%Y %H:%M:%S", or one of {", ".join(UNITS)}'
    if not parts:
        problem = "is not a time format"
    elif unknown is not None:
        problem = f"has %{unknown}, which is not supported"
        bound = f"a pattern of {', '.join('%' + each for each in sorted(_KNOWN))}, with UTC instead of %Z"
    elif len(parts) != len(set(parts)):
        problem = "contains a directive twice"
    elif not {"Y", "y"} & set(parts):
        problem = "has no year"
    elif ("I" in parts) != ("p" in parts):
        problem, bound = "has one of %I and %p without the other", "%I and %p together, or %H for 24 hours"
    else:
        return
    raise InputError(path, problem, value=form, bound=bound)


def parse_as(text: str, form: str, zone: tzinfo) -> Instant:
    """Return the instant in a text of a given format; raise `ValueError` or `OverflowError` for another text."""
    if form not in UNITS:
        # Programs write a column of integers with missing values as decimal numbers, such as 20230102.0.
        return _since(_strictly(_digits(text), form), zone)
    if not NUMBER.fullmatch(text):
        raise ValueError
    return parse_number(text, UNITS[form])


def _strictly(text: str, form: str) -> datetime:
    """Parse a text with `datetime.strptime`; a text of digits must have all leading zeros."""
    moment = datetime.strptime(text, form)
    if text.isdecimal() and "%f" not in form and len(text) != len(moment.strftime(form)):
        raise ValueError
    return moment


def _digits(text: str) -> str:
    """Return a whole number without a trailing ".0"; return other texts unchanged."""
    whole = text.removesuffix(".0")
    return whole if whole.isdecimal() else text


def parse_number(text: str, parts: int) -> Instant:
    """Return the instant of a number, with `parts` units per second; raise `OverflowError` outside years 1 to 9999."""
    if len(text) > _MAX_TEXT_LENGTH:
        raise OverflowError
    number = int(text) if text.lstrip("+-").isdecimal() else Fraction(text)
    seconds, rest = divmod(number, parts)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise OverflowError
    return Instant(int(seconds), int(rest * _NANOSECONDS // parts))


def find_date_forms(text: str) -> list[str]:
    """Return the formats in which digits are a plausible date."""
    found, digits = [], _digits(text)
    for count, form in _DIGITS:
        if len(digits) == count and digits.isdecimal():
            with suppress(ValueError):
                if _strictly(digits, form).year in _LIKELY_DATES:
                    found.append(form)
    return found


def parse_date_time(text: str, zone: tzinfo) -> Instant:
    """Return the instant of an unambiguous date and time; raise `ValueError` for any other text."""
    if len(text) > _MAX_TEXT_LENGTH:
        raise ValueError
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        found = next(filter(None, (form.fullmatch(text) for form in FORMS)), None)
        if found is None:
            raise
        named = found.groupdict().get("name")
        month = int(found["month"]) if named is None else _MONTHS.index(named[:3].lower()) + 1
        return build_moment(found, month, "day", zone)
    whole = _since(moment, zone)
    fine = _FINE.search(text)
    return whole if fine is None else Instant(whole.seconds, _part(fine[1]))


def build_moment(found: re.Match[str], month: int, day: str, zone: tzinfo) -> Instant:
    """Return the instant of a matched text; `day` is the name of the group with the day."""
    part = found.groupdict()
    hour, half = int(part["hour"] or 0), (part["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + 12 * (half == "p")
    second = int(part["second"] or 0)
    # A leap second.
    leap = int(second == 60)
    own = _zone((part["zone"] or "").lower())
    moment = datetime(int(part["year"]), month, int(part[day]), hour, int(part["minute"] or 0), second - leap)
    seconds, _ = _since(moment if own is None else moment.replace(tzinfo=own), zone)
    return Instant(seconds + leap, _part(part["part"] or "0"))


def _part(digits: str) -> int:
    """Return the nanoseconds of the decimal digits of a second, rounded down."""
    return int(digits[:9].ljust(9, "0"))


def _zone(text: str) -> timezone | None:
    """Return the zone of an abbreviation or an offset; None for an empty text."""
    if not text:
        return None
    if text in _LETTERS:
        return timezone(timedelta(hours=_LETTERS[text]))
    offset = re.sub(r"^(?:utc|gmt)", "", text)
    hours, _, minutes = offset[1:].partition(":")
    if len(hours) > 2:
        hours, minutes = hours[:-2], hours[-2:]
    apart = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-apart if offset[0] == "-" else apart)


def find_zone(name: object) -> tzinfo:
    """Return the zone with a name or an offset; raise `InputError` if it is unknown."""
    bound = 'a name such as "Europe/Zurich", or an offset such as "+02:00"'
    if isinstance(name, str):
        with suppress(ValueError):
            if _OFFSET.fullmatch(name.lower()):
                return _zone(name.lower()) or UTC
        with suppress(ValueError, OSError, ZoneInfoNotFoundError):
            return ZoneInfo(name)
    remedy = "" if available_timezones() else "this machine has no zone database: pip install tzdata, or give an offset"
    raise InputError("time_zone", "is not a time zone", value=name, bound=bound, remedy=remedy)


class ClockIsSetError(Exception):
    """A time of day that occurs twice, or never, because clocks change."""


def _since(moment: datetime, zone: tzinfo) -> Instant:
    """Return the instant of a date and time; a time without a zone is in `zone`."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
        if zone is not UTC and moment.utcoffset() != moment.replace(fold=1).utcoffset():
            raise ClockIsSetError
    seconds, rest = divmod(moment - EPOCH, ONE_SECOND)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise OverflowError
    return Instant(seconds, rest.microseconds * 1000)


Times = NDArray[np.datetime64]

# Entries of tables for missing values, in lower case.
_MISSING = frozenset({"", "nat", "null", "nan", "na", "n/a", "none", "<na>", "#n/a", "\\n"})

# First plausible year of numbers since 1970; the last plausible year is next year.
_FIRST_YEAR = 1980
_UNIT_NAMES: Mapping[str, str] = MappingProxyType(
    {"unix": "seconds", "unix-ms": "milliseconds", "unix-us": "microseconds", "unix-ns": "nanoseconds"}
)

# Kinds of ambiguity: a number that may be a date, and an unknown order of day and month.
_NUMBERS, _ORDER = "numbers", "order"
# Names of the groups of day and month in `EITHER_FIRST`, by the unit that comes first.
_PLACES: Mapping[str, tuple[str, str]] = MappingProxyType({"day": ("one", "two"), "month": ("two", "one")})
_OTHER_ORDER: Mapping[str, str] = MappingProxyType({"day": "%m/%d/%Y", "month": "%d/%m/%Y"})

_LETTERS_AFTER = re.compile(r"[0-9] *[a-z]{2,5}\s*$", re.IGNORECASE)
# A date whose first two numbers may be day and month in either order; and a time of day without a date.
_TWO_WAYS = re.compile(r"[0-9]{1,2}(?P<sign>[-/.])[0-9]{1,2}(?P=sign)(?P<year>[0-9]{2}|[0-9]{4})(?![0-9]).*", re.DOTALL)
_NO_DAY = re.compile(rf"{OF_DAY}(?: *{ZONE})?", re.IGNORECASE)


class ReadAgainError(Exception):
    """A line shows that earlier lines were misread; the table must be read again with `clock`."""

    def __init__(self, clock: Clock) -> None:
        super().__init__("the table must be read again")
        self.clock = clock


class SetClockError(InputError):
    """A time of day that occurs twice, or never, because clocks change in its zone."""


class Clock:
    """A parser for the times of one column; without a format, it infers the format from the texts.

    Args:
        form: A pattern of `datetime.strptime`, such as "%d/%m/%Y %H:%M", or "unix", "unix-ms", "unix-us" or "unix-ns"
            for numbers since 1970.
        name: Name of the column, for errors.
        path: Path of the format, for errors.
        zone: Zone of times without a zone, such as "Europe/Zurich" or "+02:00"; UTC if None.

    Raises:
        InputError: The format or the zone is not valid.
    """

    def __init__(
        self, form: str | None = None, name: str = "time", path: str = "time_format", zone: str | None = None
    ) -> None:
        self._form, self._name, self._zone_name = form, name, zone
        years = (_FIRST_YEAR, datetime.now(UTC).year + 2)
        self._likely = range(*((datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // ONE_SECOND for year in years))
        # The first ambiguous text of each kind, with its path and its possible formats.
        self._doubts: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        # The kinds of ambiguity that another text has resolved.
        self._settled: set[str] = set()
        # The inferred unit of numbers, and whether the day or the month comes first.
        self._unit: str | None = None
        self._first: str | None = None
        self._sign = ""
        if form is not None:
            check_form(form, path)
        self._zone = UTC if zone is None else find_zone(zone)

    def moment(self, text: str, where: Callable[[], str], day: str | None = None) -> Instant | None:
        """Return the instant in a text, or None for a missing value.

        `day` is the text in a separate column with the date. Raises `InputError` at the path `where()` for a text that
        is not a time or is ambiguous; the error masks the text. Raises `ReadAgainError` if a text shows that the month
        comes first, after earlier texts were read with the day first.
        """
        text = text.strip()
        if day is not None:
            day = day.strip()
            if is_missing(text) or is_missing(day):
                return None
            text = f"{day} {text}"
        if self._form is None and NUMBER.fullmatch(text):
            return self._number(text, where)
        is_set = False
        try:
            if (moment := self._parse(text, where)) is not None:
                return moment
        except ClockIsSetError:
            is_set = True
        # Raise outside the except block: the context of the error could contain the text.
        if is_set:
            raise SetClockError(
                where(),
                f"{self._name} occurs twice, or never, in the zone {self._zone_name}, because clocks change",
                value=cell(text),
                bound="a time that occurs once",
                remedy="write the offset, such as +0100",
            )
        if is_missing(text):
            return None
        raise self._error(text, where())

    def check(self) -> None:
        """Raise `InputError` if the column is ambiguous and no text has resolved the ambiguity."""
        for what, (text, where, forms) in self._doubts.items():
            if what not in self._settled:
                raise self._two_meanings(text, where, forms)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about inferred settings, and the options that overrule them."""
        found = []
        if self._unit is not None and self._unit != "unix":
            unit = _UNIT_NAMES[self._unit]
            found.append(f"numbers in {self._name} are read as {unit} since 1970 (--time-format overrules it)")
        if self._first is not None:
            other = _OTHER_ORDER[self._first].replace("/", self._sign)
            found.append(f'the {self._first} comes first in {self._name} (--time-format "{other}" … overrules it)')
        if self._zone_name is not None:
            found.append(f"times without a zone are in the zone {self._zone_name}")
        return tuple(found)

    def _parse(self, text: str, where: Callable[[], str]) -> Instant | None:
        """Return the instant in a text that is not a plain number, or None if it is not a time."""
        if self._form is None and (found := EITHER_FIRST.fullmatch(text)):
            return self._day_and_month(text, found, where)
        with suppress(ValueError, OverflowError):
            if self._form is not None:
                return parse_as(text, self._form, self._zone)
            return parse_date_time(text, self._zone)
        return None

    def _number(self, text: str, where: Callable[[], str]) -> Instant:
        for unit, parts in UNITS.items():
            with suppress(OverflowError):
                moment = parse_number(text, parts)
                if moment.seconds in self._likely:
                    return self._number_in(unit, moment, text, where)
        if dates := find_date_forms(text):
            raise self._two_meanings(text, where(), (dates[0], "unix"))
        raise InputError(
            where(),
            f"{self._name} is a number, but as seconds since 1970 it is before {_FIRST_YEAR} or after next year",
            value=cell(text),
            bound="a date and time, or seconds since 1970",
            remedy=f"if it is a time, set {_option('unix')}, or {_option('unix-ms')} for milliseconds",
        )

    def _number_in(self, unit: str, moment: Instant, text: str, where: Callable[[], str]) -> Instant:
        """Return the instant of a number in a unit; raise `InputError` if earlier numbers have another unit."""
        self._unit = self._unit or unit
        if unit != self._unit:
            problem = f"{self._name} is in {_UNIT_NAMES[unit]}, but earlier lines are in {_UNIT_NAMES[self._unit]}"
            raise InputError(where(), problem, value=cell(text), bound="the same unit in all lines")
        if _NUMBERS not in self._settled:
            if dates := find_date_forms(text):
                self._doubts.setdefault(_NUMBERS, (text, where(), (dates[0], unit)))
            else:
                self._settled.add(_NUMBERS)
        return moment

    def _day_and_month(self, text: str, found: re.Match[str], where: Callable[[], str]) -> Instant | None:
        """Return the instant in a text with day and month in digits before the year, or None if it is not a date.

        Any text with a number above 12 determines the order. With points, the day comes first by default.
        """
        possible = {}
        for first, (day, month) in _PLACES.items():
            with suppress(ValueError, OverflowError):
                possible[first] = build_moment(found, int(found[month]), day, UTC)
        if not possible:
            return None
        if self._first is None:
            self._first, self._sign = "day" if "day" in possible else "month", found["sign"]
        if self._first not in possible:
            if _ORDER in self._settled:
                problem = f"{self._name} has another order of day and month than earlier lines"
                raise InputError(where(), problem, value=cell(text), bound=f"the {self._first} first, as before")
            # All earlier texts are also valid with the month first.
            other = Clock(None, self._name, zone=self._zone_name)
            other._first, other._sign = "month", self._sign
            other._settled.add(_ORDER)
            raise ReadAgainError(other)
        if len(possible) == 1:
            self._settled.add(_ORDER)
        elif found["sign"] != "." and possible["day"] != possible["month"]:
            # With points the day comes first, unless a later text contradicts it.
            signs = (found["sign"].join((*first, "%Y")) + " %H:%M:%S" for first in (("%d", "%m"), ("%m", "%d")))
            self._doubts.setdefault(_ORDER, (text, where(), tuple(signs)))
        day, month = _PLACES[self._first]
        return build_moment(found, int(found[month]), day, self._zone)

    def _two_meanings(self, text: str, where: str, forms: Sequence[str]) -> InputError:
        if forms[1] in UNITS:
            problem = f"{self._name} is a number that may be a date, or {_UNIT_NAMES[forms[1]]} since 1970"
        else:
            problem = f"{self._name} may have the day first or the month first"
        return InputError(
            where,
            problem,
            value=cell(text),
            bound="an unambiguous time",
            remedy=f"set the format: {_option(forms[0])}, or {_option(forms[1])}",
        )

    def _error(self, text: str, where: str) -> InputError:
        bound = "ISO 8601, or another date with the year first or the month by name, or seconds since 1970"
        if self._form is not None:
            problem, remedy, bound = f"{self._name} is not a time", "", f"in the format {self._form!r} (time_format)"
        elif any(form.fullmatch(text) for form in (*FORMS, EITHER_FIRST)):
            problem, remedy = f"{self._name} is not a time: there is no such day or hour", ""
        elif found := _TWO_WAYS.fullmatch(text):
            problem, sign = f"{self._name} may have the day first or the month first", found["sign"]
            year = "%Y" if len(found["year"]) == 4 else "%y"
            day, month = (_option(sign.join((*first, year)) + " %H:%M:%S") for first in (("%d", "%m"), ("%m", "%d")))
            remedy = f"set the format: {day}, or {month}"
        elif _NO_DAY.fullmatch(text):
            problem = f"{self._name} is not a time: it has no day"
            remedy = "also name the column with the day: date (--date on the command line)"
        elif _LETTERS_AFTER.search(text):
            problem = f"{self._name} is not a time: its zone is unknown or ambiguous"
            remedy = "replace the letters by the offset, such as +0100"
        else:
            problem, remedy = (
                f"{self._name} is not a time",
                f"set the format, such as {_option('%d.%m.%Y %H:%M')}",
            )
        return InputError(where, problem, value=cell(text), bound=bound, remedy=remedy)


def is_missing(text: str) -> bool:
    """Return whether a text represents a missing value."""
    return text.strip().lower() in _MISSING


Read = TypeVar("Read")


def read_with(clock: Clock, read: Callable[[Clock], Read]) -> Read:
    """Call `read` with a clock, and once more if a line raises `ReadAgainError`; then check the clock."""
    try:
        found = read(clock)
    except ReadAgainError as again:
        clock = again.clock
        found = read(clock)
    clock.check()
    return found


def order_of(times: Sequence[Times | None], what: str = "points") -> str:
    """Return a sentence with the first and last time of traces, and the order of their points."""
    known = [each for each in times if each is not None and len(each)]
    if len(known) < len(times) or not known:
        return f"no times are read: {what} are in the order of the file (--time COLUMN, or the key time, names times)"
    first, last = (
        str(end).replace("T", " ") for end in (min(each.min() for each in known), max(each.max() for each in known))
    )
    note = f"times from {first} to {last} (UTC): {what} are in the order of their times"
    if equal := sum(int((np.diff(each) == np.timedelta64(0, "s")).sum()) for each in known):
        note += f"; {equal} of them are in the same second as the one before, and sorted by fractions of the second"
    return note


def _option(form: str) -> str:
    """Return the option and the key that set a time format."""
    return f'--time-format "{form}" (time_format = "{form}")'


Rows = Sequence[tuple[int, Sequence[str]]]

# Usual names of columns with times, in lower case and letters only; the first column that can be read is used.
_TIME_NAMES = (
    *("time", "timestamp", "datetime", "dateandtime", "datetimeutc", "timestamputc", "timeutc", "utctime"),
    *("utctimestamp", "utcdatetime", "gpstime", "gpstimestamp", "gpsdatetime", "fixtime", "devicetime", "localtime"),
    *("localtimestamp", "localdatetime", "trackedat", "recordedat", "eventtime", "eventtimestamp", "checkintime"),
    *("checkinat", "observedat", "loggedat", "measuredat", "capturedat", "visitedat", "visittime", "startedat"),
    *("starttime", "starttimestamp", "startdatetime", "pickupdatetime", "arrivaltime", "arrivedat", "recordtime"),
    *("recordingtime", "samplingtime", "timestampms", "timems", "timestamps", "epoch", "epochtime", "epochms"),
    *("unixtime", "unixtimestamp", "createdat", "tst", "ts", "t", "utc", "when", "zeit", "zeitstempel", "date"),
)
# Usual names of columns with the date, for tables with the time of day in another column.
_DATE_NAMES = ("date", "utcdate", "dateutc", "gpsdate", "localdate", "eventdate", "startdate", "day", "datum")
_NO_TIMES = "it contains no times"


@dataclass(frozen=True)
class TimeColumns:
    """The columns with the times of a table.

    Attributes:
        time: The column with the time; None if no such column is found.
        date: The column with the date, if `time` contains only the time of day.
        unread: A sentence about each column that is named like a time but cannot be read.
        others: Columns with unknown names that may contain times.
        blank: Whether a column that is named like a time is blank in all rows of the sample.
    """

    time: str | None = None
    date: str | None = None
    unread: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    blank: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about columns that were not read."""
        if not self.others:
            return self.unread
        names = shorten(", ".join(map(column_text, self.others)))
        return (*self.unread, f"name the column, --time COLUMN, if the time is in one of these: {names}")


def find_times(
    header: Sequence[str],
    rows: Rows,
    form: str | None = None,
    time: str | None = None,
    date: str | None = None,
    taken: Sequence[str] = (),
    missing: float = MOST_LEFT_OUT,
) -> TimeColumns:
    """Find the columns with the times from a sample of rows.

    Args:
        header: The column names.
        rows: The sample: line number and fields of each row.
        form: Format of the times, see `Clock`.
        time: Column with the time, if the user named it; it is accepted without a check.
        date: Column with the date, if the user named it.
        taken: Columns with another meaning.
        missing: The share of texts in a column of times that may be unreadable.

    Returns:
        The columns, with notes about columns that cannot be read.
    """
    free = [column for column in dict.fromkeys(header) if column not in taken]
    dates = _find_by_name(free, _DATE_NAMES) if date is None else [date]
    unread: list[str] = []
    for column in _find_by_name(free, _TIME_NAMES) if time is None else [time]:
        days: list[str | None] = [day for day in dates if day != column]
        problem = ""
        for day in (None, *days) if date is None else days:
            fault = _problem(header, rows, column, day, form, missing)
            if not fault:
                return TimeColumns(column, day, tuple(unread))
            problem = problem or fault
        unread.append(f"the column {column_text(column)} is not read: {problem}")
    if time is not None:
        return TimeColumns(time, date)
    tried = _find_by_name(free, _TIME_NAMES)
    others = [name for name in free if name not in tried and not _problem(header, rows, name, None, form, missing)]
    return TimeColumns(None, None, tuple(unread), tuple(others), any(_NO_TIMES in fault for fault in unread))


def _find_by_name(header: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns with these names, in the order of the names."""
    plain = {_plain(column): column for column in reversed(header)}
    return [plain[name] for name in names if name in plain]


def _plain(column: str) -> str:
    """Return the name of a column in lower case, letters only."""
    return re.sub(r"[^a-z]", "", column.lower())


def _problem(header: Sequence[str], rows: Rows, column: str, day: str | None, form: str | None, missing: float) -> str:
    """Return the reason why a column cannot be read as times; "" if at most the share `missing` is unreadable."""
    place, at_day = header.index(column), None if day is None else header.index(day)

    def read(clock: Clock) -> int:
        known, errors = 0, []
        for line, row in rows:
            text = None if at_day is None else row[at_day]
            try:
                known += clock.moment(row[place], f"line {line}".__str__, text) is not None
            except InputError as error:
                errors.append(error)
        if len(errors) > missing * (known + len(errors)):
            raise errors[0]
        return known

    clock = Clock(form, column if day is None else f"{day} and {column}")
    try:
        known = read_with(clock, read)
    except InputError as error:
        return f"{error.path}: {error.problem}; found {error.value}" + (f"; {error.remedy}" if error.remedy else "")
    return "" if known else f"{_NO_TIMES} in the first {len(rows)} lines"
