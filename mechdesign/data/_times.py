"""Times as people and programs write them, and the columns that hold them.

All times are UTC; a time without a zone is taken as UTC unless a zone is given. A number is taken for seconds since
1970, or for thousandths, millionths or billionths, only where no usual form of a date has the same digits, and where
its year is a likely one. Of day and month in digits a column tells which stands first, and between points it is the
day. What was recognised is said; all else is asked for.
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
from mechdesign.data._layout import cell, shortened
from mechdesign.data._left_out import MOST_LEFT_OUT
from mechdesign.data._text import column_text

# Years 1 to 9999, in seconds since 1970: what a date can show.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ONE_SECOND = timedelta(seconds=1)

# Numbers since 1970-01-01 00:00 UTC, by their parts of a second.
_OFFSET = re.compile(r"(?:utc|gmt)?[+-][0-9]{1,2}(?::?[0-9]{2})?|utc|gmt")
UNITS: Mapping[str, int] = MappingProxyType({"unix": 1, "unix-ms": 10**3, "unix-us": 10**6, "unix-ns": 10**9})

_NANOSECONDS = 10**9

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

# Dates in digits: how many there are, and the form.
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
# Letters that mean one offset from UTC, in hours; others, such as IST and CST, mean several.
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
# Forms that mean one moment only: year first, or the month by its name.
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
# More digits of a second than a datetime keeps.
_FINE = re.compile(r"[.,]([0-9]{7,})")

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_KNOWN = frozenset("YymdjHIMSfpbBaAz%")

# Longer texts are no time.
_LONGEST = 100


class Moment(NamedTuple):
    """A moment: whole seconds since 1970, rounded down, and what is more, in nanoseconds."""

    seconds: int
    nanoseconds: int = 0


def check_form(form: str, path: str) -> None:
    """Raise `InputError` unless a form is known, and means one moment."""
    if form in UNITS:
        return
    given = _DIRECTIVE.findall(form) if isinstance(form, str) else []
    unknown = next((each for each in given if each not in _KNOWN), None)
    parts = [each for each in given if each != "%"]
    bound = f'a pattern such as "%d/%m/%Y %H:%M:%S", or one of {", ".join(UNITS)}'
    if not parts:
        problem = "is not a form of times"
    elif unknown is not None:
        problem = f"has %{unknown}, which is not taken"
        bound = f"a pattern of {', '.join('%' + each for each in sorted(_KNOWN))}, and UTC itself in place of %Z"
    elif len(parts) != len(set(parts)):
        problem = "has a part twice"
    elif not {"Y", "y"} & set(parts):
        problem = "has no year"
    elif ("I" in parts) != ("p" in parts):
        problem, bound = "has one of %I and %p without the other", "%I and %p together, or %H for 24 hours"
    else:
        return
    raise InputError(path, problem, value=form, bound=bound)


def as_told(text: str, form: str, zone: tzinfo) -> Moment:
    """Return the moment in a text of a given form; raise `ValueError` or `OverflowError` for another text."""
    if form not in UNITS:
        # Programs write a column of digits with a gap as decimal numbers.
        return _since(_strictly(_digits(text), form), zone)
    if not NUMBER.fullmatch(text):
        raise ValueError
    return count(text, UNITS[form])


def _strictly(text: str, form: str) -> datetime:
    """Return the moment in a text; where it has digits only, zeros in front must not lack."""
    moment = datetime.strptime(text, form)
    if text.isdecimal() and "%f" not in form and len(text) != len(moment.strftime(form)):
        raise ValueError
    return moment


def _digits(text: str) -> str:
    """Return a text without the decimal zero of a whole number."""
    whole = text.removesuffix(".0")
    return whole if whole.isdecimal() else text


def count(text: str, parts: int) -> Moment:
    """Return the moment of a number of parts of a second; raise `OverflowError` beyond all years."""
    if len(text) > _LONGEST:
        raise OverflowError
    number = int(text) if text.lstrip("+-").isdecimal() else Fraction(text)
    seconds, rest = divmod(number, parts)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise OverflowError
    return Moment(int(seconds), int(rest * _NANOSECONDS // parts))


def dates_in(text: str) -> list[str]:
    """Return the forms in which digits are a likely date."""
    found, digits = [], _digits(text)
    for count, form in _DIGITS:
        if len(digits) == count and digits.isdecimal():
            with suppress(ValueError):
                if _strictly(digits, form).year in _LIKELY_DATES:
                    found.append(form)
    return found


def written(text: str, zone: tzinfo) -> Moment:
    """Return the moment in a date and time that means one moment; raise `ValueError` for any other text."""
    if len(text) > _LONGEST:
        raise ValueError
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        found = next(filter(None, (form.fullmatch(text) for form in FORMS)), None)
        if found is None:
            raise
        named = found.groupdict().get("name")
        month = int(found["month"]) if named is None else _MONTHS.index(named[:3].lower()) + 1
        return built(found, month, "day", zone)
    whole = _since(moment, zone)
    fine = _FINE.search(text)
    return whole if fine is None else Moment(whole.seconds, _part(fine[1]))


def built(found: re.Match[str], month: int, day: str, zone: tzinfo) -> Moment:
    """Return the moment of the parts of a text; `day` is the group with the day."""
    part = found.groupdict()
    hour, half = int(part["hour"] or 0), (part["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + 12 * (half == "p")
    second = int(part["second"] or 0)
    # A second that is put in to keep clocks with the Earth.
    leap = int(second == 60)
    own = _zone((part["zone"] or "").lower())
    moment = datetime(int(part["year"]), month, int(part[day]), hour, int(part["minute"] or 0), second - leap)
    seconds, _ = _since(moment if own is None else moment.replace(tzinfo=own), zone)
    return Moment(seconds + leap, _part(part["part"] or "0"))


def _part(digits: str) -> int:
    """Return the nanoseconds of the digits behind the seconds, rounded down."""
    return int(digits[:9].ljust(9, "0"))


def _zone(text: str) -> timezone | None:
    """Return the zone that stands in a text, None where there is none."""
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


def zone_called(name: object) -> tzinfo:
    """Return the zone of a name, or of an offset; raise `InputError` where there is none."""
    bound = 'a name such as "Europe/Zurich", or an offset such as "+02:00"'
    if isinstance(name, str):
        with suppress(ValueError):
            if _OFFSET.fullmatch(name.lower()):
                return _zone(name.lower()) or UTC
        with suppress(ValueError, OSError, ZoneInfoNotFoundError):
            return ZoneInfo(name)
    remedy = "" if available_timezones() else "this machine knows no zones: pip install tzdata, or give an offset"
    raise InputError("time_zone", "is not a time zone", value=name, bound=bound, remedy=remedy)


class ClockIsSetError(Exception):
    """A time of day that happens twice or never."""


def _since(moment: datetime, zone: tzinfo) -> Moment:
    """Return the moment; a time without a zone is one of `zone`."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
        if zone is not UTC and moment.utcoffset() != moment.replace(fold=1).utcoffset():
            raise ClockIsSetError
    seconds, rest = divmod(moment - EPOCH, ONE_SECOND)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise OverflowError
    return Moment(seconds, rest.microseconds * 1000)


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
_NO_DAY = re.compile(rf"{OF_DAY}(?: *{ZONE})?", re.IGNORECASE)


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
        self._likely = range(*((datetime(year, 1, 1, tzinfo=UTC) - EPOCH) // ONE_SECOND for year in years))
        # The first text that may mean another moment, and its forms, for numbers and for the order of day and month;
        # and of which of them another text has told what they mean.
        self._doubts: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        self._settled: set[str] = set()
        # What was recognised: the unit of numbers, and which of day and month stands first.
        self._unit: str | None = None
        self._first: str | None = None
        self._sign = ""
        if form is not None:
            check_form(form, path)
        self._zone = UTC if zone is None else zone_called(zone)

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
        if self._form is None and NUMBER.fullmatch(text):
            return self._number(text, where)
        is_set = False
        try:
            if (moment := self._written(text, where)) is not None:
                return moment
        except ClockIsSetError:
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
        if self._form is None and (found := EITHER_FIRST.fullmatch(text)):
            return self._day_and_month(text, found, where)
        with suppress(ValueError, OverflowError):
            if self._form is not None:
                return as_told(text, self._form, self._zone)
            return written(text, self._zone)
        return None

    def _number(self, text: str, where: Callable[[], str]) -> Moment:
        for unit, parts in UNITS.items():
            with suppress(OverflowError):
                moment = count(text, parts)
                if moment.seconds in self._likely:
                    return self._number_in(unit, moment, text, where)
        if dates := dates_in(text):
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
            if dates := dates_in(text):
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
                possible[first] = built(found, int(found[month]), day, UTC)
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
        return built(found, int(found[month]), day, self._zone)

    def _two_meanings(self, text: str, where: str, forms: Sequence[str]) -> InputError:
        if forms[1] in UNITS:
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
        elif any(form.fullmatch(text) for form in (*FORMS, EITHER_FIRST)):
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


Rows = Sequence[tuple[int, Sequence[str]]]

# What columns with a time are called, without case and signs; the first that fits is taken.
_TIME_NAMES = (
    *("time", "timestamp", "datetime", "dateandtime", "datetimeutc", "timestamputc", "timeutc", "utctime"),
    *("utctimestamp", "utcdatetime", "gpstime", "gpstimestamp", "gpsdatetime", "fixtime", "devicetime", "localtime"),
    *("localtimestamp", "localdatetime", "trackedat", "recordedat", "eventtime", "eventtimestamp", "checkintime"),
    *("checkinat", "observedat", "loggedat", "measuredat", "capturedat", "visitedat", "visittime", "startedat"),
    *("starttime", "starttimestamp", "startdatetime", "pickupdatetime", "arrivaltime", "arrivedat", "recordtime"),
    *("recordingtime", "samplingtime", "timestampms", "timems", "timestamps", "epoch", "epochtime", "epochms"),
    *("unixtime", "unixtimestamp", "createdat", "tst", "ts", "t", "utc", "when", "zeit", "zeitstempel", "date"),
)
# What columns are called that may hold the date where another one holds the time of day.
_DATE_NAMES = ("date", "utcdate", "dateutc", "gpsdate", "localdate", "eventdate", "startdate", "day", "datum")
_NO_TIMES = "it holds no times"


@dataclass(frozen=True)
class TimeColumns:
    """Where the times of a table are.

    Attributes:
        time: the column with the time; None where none is found.
        date: the column with the date, where `time` holds the time of day only.
        unread: a sentence about each column that is called a time and cannot be read.
        others: columns that may hold times under a name that is not known.
        blank: whether a column that is called a time is blank in all rows that were looked at.
    """

    time: str | None = None
    date: str | None = None
    unread: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    blank: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What was not read, in sentences."""
        if not self.others:
            return self.unread
        names = shortened(", ".join(map(column_text, self.others)))
        return (*self.unread, f"say --time COLUMN if the time is in one of these: {names}")


def find_times(
    header: Sequence[str],
    rows: Rows,
    form: str | None = None,
    time: str | None = None,
    date: str | None = None,
    taken: Sequence[str] = (),
    missing: float = MOST_LEFT_OUT,
) -> TimeColumns:
    """Return the columns that hold the times, as far as some `rows`, line and fields, tell.

    `form` says how times are written, as `Clock` takes it; `time` and `date` are columns that are known already, and
    those in `taken` hold something else. A `time` that is given is taken whatever it holds. At most the share `missing`
    of the texts in a column may be unreadable.
    """
    free = [column for column in dict.fromkeys(header) if column not in taken]
    dates = _named(free, _DATE_NAMES) if date is None else [date]
    unread: list[str] = []
    for column in _named(free, _TIME_NAMES) if time is None else [time]:
        days: list[str | None] = [day for day in dates if day != column]
        problem = ""
        for day in (None, *days) if date is None else days:
            said = _problem(header, rows, column, day, form, missing)
            if not said:
                return TimeColumns(column, day, tuple(unread))
            problem = problem or said
        unread.append(f"the column {column_text(column)} is not read: {problem}")
    if time is not None:
        return TimeColumns(time, date)
    tried = _named(free, _TIME_NAMES)
    others = [name for name in free if name not in tried and not _problem(header, rows, name, None, form, missing)]
    return TimeColumns(None, None, tuple(unread), tuple(others), any(_NO_TIMES in said for said in unread))


def _named(header: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the columns of these names, in the order of the names."""
    plain = {_plain(column): column for column in reversed(header)}
    return [plain[name] for name in names if name in plain]


def _plain(column: str) -> str:
    """Return the name of a column as `_TIME_NAMES` has it."""
    return re.sub(r"[^a-z]", "", column.lower())


def _problem(header: Sequence[str], rows: Rows, column: str, day: str | None, form: str | None, missing: float) -> str:
    """Say why the texts in a column cannot be read as times; return nothing where all but a few can."""
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
