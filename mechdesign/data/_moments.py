"""The moments that texts mean: dates and times as they are written, and numbers since 1970."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from types import MappingProxyType
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from mechdesign.base._errors import InputError

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
