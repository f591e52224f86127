"""Read times as people and programs write them, and refuse what may mean two moments.

All times are UTC; a time without a zone is taken as UTC. A number is taken for seconds since 1970 only where no usual
form of a date has the same digits, and where its year is a likely one; else it is asked for how times are written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from mechdesign.data.forms import cell
from mechdesign.errors import InputError

__all__ = ["Clock", "order_of", "rows_without_time"]

Times = NDArray[np.datetime64]

# How tables write that nothing is known.
_MISSING = frozenset({"", "nat", "null", "nan", "na", "n/a", "none", "<na>", "#n/a", "\\n"})

# Years 1 to 9999, in seconds since 1970: what a date can show.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ONE_SECOND = timedelta(seconds=1)
# Numbers that mean an earlier moment, or one after next year, are hardly seconds since 1970.
_FIRST_YEAR = 1980

# Numbers since 1970-01-01 00:00 UTC, by their parts of a second.
_UNITS: Mapping[str, int] = MappingProxyType({"unix": 1, "unix-ms": 10**3, "unix-us": 10**6, "unix-ns": 10**9})

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

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
_OF_DAY = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,][0-9]+)?)?(?: *(?P<half>[ap])\.?m\.?)?"
)
_ZONE = r"(?P<zone>z|(?:utc|gmt)?[+-][0-9]{1,2}(?::?[0-9]{2})?|utc|gmt)(?: *\((?:utc|gmt|[a-z]{3,4}|[a-z ]+ time)\))?"
_AFTER = rf"(?:(?:[ t]|, ?) *{_OF_DAY}(?: *{_ZONE})?)?"
# Forms that mean one moment only: year first, or the month by its name.
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"(?P<year>[0-9]{{4}})(?P<sign>[-/.])(?P<month>[0-9]{{1,2}})(?P=sign)(?P<day>[0-9]{{1,2}}){_AFTER}",
        rf"{_WEEKDAY}(?P<day>[0-9]{{1,2}})[ -]{_MONTH}[ -]?,? *(?P<year>[0-9]{{4}}){_AFTER}",
        rf"{_WEEKDAY}{_MONTH} +(?P<day>[0-9]{{1,2}}),? +(?P<year>[0-9]{{4}}){_AFTER}",
        rf"{_WEEKDAY}{_MONTH} +(?P<day>[0-9]{{1,2}}) +{_OF_DAY}(?: +{_ZONE})? +(?P<year>[0-9]{{4}})",
    )
)
# Two numbers that may be day and month, or month and day; and a time without its day.
_TWO_WAYS = re.compile(r"[0-9]{1,2}(?P<sign>[-/.])[0-9]{1,2}(?P=sign)[0-9]{2,4}(?![0-9]).*", re.DOTALL)
_NO_DAY = re.compile(rf"{_OF_DAY}(?: *{_ZONE})?", re.IGNORECASE)

_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_KNOWN = frozenset("YymdjHIMSfpbBaAz%")

# Longer texts are no time.
_LONGEST = 100


class Clock:
    """How the times of one column are written: as `form` says, else as they themselves tell.

    `form` is a pattern of `datetime.strptime`, such as "%d/%m/%Y %H:%M", or "unix", "unix-ms", "unix-us" or "unix-ns":
    a number of seconds, or of parts of a second, since 1970. `name` is that of the column, for errors, and `path` that
    of the form. Raises `InputError` for a form that is neither.
    """

    def __init__(self, form: str | None = None, name: str = "time", path: str = "time_format") -> None:
        self._form, self._name = form, name
        years = (_FIRST_YEAR, datetime.now(UTC).year + 2)
        self._likely = range(*(_since(datetime(year, 1, 1, tzinfo=UTC)) for year in years))
        # The first number that was read, while all numbers may be dates, too.
        self._doubtful: tuple[str, str] | None = None
        self._certain = False
        if form is not None:
            _check_form(form, path)

    def seconds(self, text: str, where: Callable[[], str], day: str | None = None) -> int | None:
        """Return seconds since 1970, rounded down, or None where the text says that nothing is known.

        `day` is the text in the column with the date, where there is one. Raises `InputError` at the path `where()` for
        a text that is no time, or may be two; it shows its form only.
        """
        text = text.strip()
        if day is not None:
            day = day.strip()
            if text.lower() in _MISSING or day.lower() in _MISSING:
                return None
            text = f"{day} {text}"
        if self._form is None and _NUMBER.fullmatch(text):
            return self._number(text, where)
        with suppress(ValueError, OverflowError):
            return _written(text) if self._form is None else _as_told(text, self._form)
        if text.lower() in _MISSING:
            return None
        raise self._error(text, where())

    def check(self) -> None:
        """Raise `InputError` where every number that was read may be a date as well as seconds since 1970."""
        if self._doubtful is not None and not self._certain:
            raise self._two_meanings(*self._doubtful)

    def _number(self, text: str, where: Callable[[], str]) -> int:
        with suppress(OverflowError):
            seconds = _count(text, 1)
            if seconds in self._likely:
                if not self._certain:
                    self._certain = not _dates(text)
                    self._doubtful = self._doubtful or (text, where())
                return seconds
        if _dates(text):
            raise self._two_meanings(text, where())
        raise InputError(
            where(),
            f"{self._name} is a number, and as seconds since 1970 it is before {_FIRST_YEAR} or after next year",
            value=cell(text),
            bound="a date and time, or seconds since 1970",
            remedy=f"say if it is one: {_say('unix')}, or for milliseconds {_say('unix-ms')}",
        )

    def _two_meanings(self, text: str, where: str) -> InputError:
        return InputError(
            where,
            f"{self._name} is a number that may be a date, or seconds since 1970",
            value=cell(text),
            bound="a time that can be read in one way only",
            remedy=f"say which: {_say(_dates(text)[0])}, or {_say('unix')}",
        )

    def _error(self, text: str, where: str) -> InputError:
        bound = "ISO 8601, or another date with the year first or the month by name, or seconds since 1970"
        if self._form is not None:
            problem, remedy, bound = f"{self._name} is not a time", "", f"as time_format says, {self._form!r}"
        elif any(form.fullmatch(text) for form in _FORMS):
            problem, remedy = f"{self._name} is not a time: there is no such day or hour", ""
        elif found := _TWO_WAYS.fullmatch(text):
            problem, sign = f"{self._name} may have the day first, or the month", found["sign"]
            day, month = (_say(sign.join((*first, "%Y")) + " %H:%M:%S") for first in (("%d", "%m"), ("%m", "%d")))
            remedy = f"say which, as the text is written: {day}, or {month}"
        elif _NO_DAY.fullmatch(text):
            problem = f"{self._name} is not a time: it has no day"
            remedy = "name the column with the day, too: date (--date on the command line)"
        else:
            problem, remedy = f"{self._name} is not a time", f"say how it is written, such as {_say('%d.%m.%Y %H:%M')}"
        return InputError(where, problem, value=cell(text), bound=bound, remedy=remedy)


def order_of(times: Sequence[Times | None], left_out: int = 0, what: str = "points") -> str:
    """Say the first and last of the times of traces, and the order in which their points are.

    `left_out` counts the rows that have no time beside others that have one.
    """
    known = [each for each in times if each is not None and len(each)]
    if len(known) < len(times) or not known:
        return f"no times are read: {what} are in the order of the file (--time COLUMN, or the key time, names times)"
    first, last = (
        str(end).replace("T", " ") for end in (min(each.min() for each in known), max(each.max() for each in known))
    )
    said = f"times from {first} to {last} (UTC): {what} are in the order of their times"
    if equal := sum(int((np.diff(each) == np.timedelta64(0, "s")).sum()) for each in known):
        said += f"; {equal} with the time of the one before stay in the order of the file"
    return said + (f"; {rows_without_time(left_out)}" if left_out else "")


def rows_without_time(count: int) -> str:
    """Say how many rows are left out because their time is missing."""
    return f"{count} row{'s' * (count != 1)} without a time {'is' if count == 1 else 'are'} left out"


def _say(form: str) -> str:
    return f'--time-format "{form}" (time_format = "{form}")'


def _check_form(form: str, path: str) -> None:
    """Raise `InputError` unless a form is known, and means one moment."""
    if form in _UNITS:
        return
    given = _DIRECTIVE.findall(form) if isinstance(form, str) else []
    unknown = next((each for each in given if each not in _KNOWN), None)
    parts = [each for each in given if each != "%"]
    bound = f'a pattern such as "%d/%m/%Y %H:%M:%S", or one of {", ".join(_UNITS)}'
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


def _as_told(text: str, form: str) -> int:
    """Return the seconds in a text of a given form; raise `ValueError` or `OverflowError` for another text."""
    if form not in _UNITS:
        # Programs write a column of digits with a gap as decimal numbers.
        return _since(_strictly(_digits(text), form))
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return _count(text, _UNITS[form])


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


def _count(text: str, parts: int) -> int:
    """Return whole seconds, rounded down, of a number of parts of a second; raise `OverflowError` beyond all years."""
    exact = len(text) <= _LONGEST and text.lstrip("+-").isdecimal()
    seconds = int(text) // parts if exact else math.floor(float(text) / parts)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise OverflowError
    return seconds


def _dates(text: str) -> list[str]:
    """Return the forms in which digits are a likely date."""
    found, digits = [], _digits(text)
    for count, form in _DIGITS:
        if len(digits) == count and digits.isdecimal():
            with suppress(ValueError):
                if _strictly(digits, form).year in _LIKELY_DATES:
                    found.append(form)
    return found


def _written(text: str) -> int:
    """Return the seconds in a date and time that means one moment; raise `ValueError` for any other text."""
    if len(text) > _LONGEST:
        raise ValueError
    try:
        return _since(datetime.fromisoformat(text))
    except ValueError:
        found = next(filter(None, (form.fullmatch(text) for form in _FORMS)), None)
        if found is None:
            raise
    part = found.groupdict()
    month = int(part["month"]) if part.get("month") else _MONTHS.index(part["name"][:3].lower()) + 1
    hour, half = int(part["hour"] or 0), (part["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + 12 * (half == "p")
    zone = _zone((part["zone"] or "").lower())
    return _since(
        datetime(
            *(int(part["year"]), month, int(part["day"])),
            *(hour, int(part["minute"] or 0), int(part["second"] or 0)),
            tzinfo=zone,
        )
    )


def _zone(text: str) -> timezone:
    offset = re.sub(r"^(?:utc|gmt)", "", text)
    if offset in ("", "z"):
        return UTC
    hours, _, minutes = offset[1:].partition(":")
    if len(hours) > 2:
        hours, minutes = hours[:-2], hours[-2:]
    apart = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-apart if offset[0] == "-" else apart)


def _since(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - _EPOCH) // _ONE_SECOND
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise OverflowError
    return seconds
