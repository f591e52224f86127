"""Recognise the layout and the columns of a table of check-ins; what cannot be told is asked for by its option."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mechdesign.base._arrays import Flags
from mechdesign.base._errors import InputError
from mechdesign.data.movement import Columns, read_movement, read_places, read_trajectories
from mechdesign.data.table import UNITS, Instants, Layout, Table, content_of, read_table
from mechdesign.data.trajectories import Trajectory

# Files that are no tables of text, by their first bytes.
_KINDS = {
    b"PK\x03\x04": "an Excel workbook or another ZIP archive",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"SQLite format": "a SQLite database",
    b"{": "JSON, such as GeoJSON",
    b"[": "JSON",
    b"<": "XML, such as GPX or KML",
    b"\x1f\x8b": "compressed by gzip, but not called .gz",
    b"PAR1": "Parquet, but not called .parquet",
    b"Geolife": "one trajectory of GeoLife; init takes its folder",
}
_AS_CSV = 'write it as CSV, for example with pandas or geopandas: frame.to_csv("new.csv", index=False)'
_MARKS = {b"\xff\xfe\0\0": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
_ENCODINGS = ("utf-8", "windows-1252")
_DELIMITERS = ",;\t|"
_SAMPLE_ROWS = 100
_SAMPLE_TIMES = 20
# A form is tried on all rows if it fits this share of the sample.
_SHARE_OF_SAMPLE = 0.5

LAYOUT = ("delimiter", "decimal", "encoding", "time_format", "missing")
"""The keys of the layout."""
_COLUMNS = ("user", "place", "latitude", "longitude", "time", "trace")

# The words of names of columns, and the words that may stand beside them or at their end, as in userid.
_LATITUDES = "latitude lat latitud breite breitengrad ylat"
_LONGITUDES = "longitude lon lng long longitud länge laenge längengrad laengengrad xlon"
_BESIDE_DEGREES = "wgs deg degree degrees dd decimal"
_BESIDE_AXES = "coord coordinate"
_PEOPLE = (
    "user uid usr person people participant subject patient respondent member employee student customer client account "
    "subscriber caller sender resident citizen visitor guest tourist volunteer household courier cyclist pedestrian "
    "driver rider passenger traveler traveller taxi cab vehicle car truck bus bike scooter ship vessel boat aircraft "
    "plate mmsi device phone mobile imei imsi msisdn sim card badge tracker animal individual bird agent benutzer "
    "nutzer fahrer fahrzeug kunde"
)
_PERHAPS_PEOPLE = "label tag vendor owner who object entity unit pid"
_TRACES = "trace tid traj trajectory track trip tour session journey ride"
_PLACES = "place poi venue location spot shop station stop"
_BESIDE_NAMES = "identifier number local anonymous anon pseudonym hashed hash uuid name code key num nr no id"
_TIMES = (
    "time timestamp datetime date stamp ts tst t at when moment epoch utc unixtime gpstime zeit zeitpunkt zeitstempel "
    "datum"
)
_BESIDE_TIMES = (
    "gmt local base gps ms us ns s sec seconds millis unix posix iso and of start started begin created recorded "
    "tracked logged event fix device check checkin in visit visited arrival arrived pickup sample observed measured"
)

# Forms of times other than ISO 8601. Digits alone are told by their number, since a pattern also fits fewer digits.
_DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_ORDERS = ("Ymd", "dmY", "mdY", "dmy", "mdy", "ymd")
_DATES = (
    *(sign.join(f"%{part}" for part in order) for sign in "/.-" for order in _ORDERS),
    *("%d %b %Y", "%b %d %Y", "%b %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%B %d %Y", "%B %d, %Y"),
)
_CLOCKS = ("%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p", "%H:%M:%S %z", "%H:%M:%S UTC")
_PATTERNS = (
    *_DATES,
    *(date + sign + clock for date in ("%Y-%m-%d", *_DATES) for clock in _CLOCKS for sign in (" ", ", ")),
    *("%Y%m%d %H%M%S", "%Y%m%dT%H%M%S", "%Y%m%dT%H%M%S%z", "%a, %d %b %Y %H:%M:%S GMT"),
    *("%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y"),
)
_FIRST_PLAUSIBLE = datetime(1980, 1, 1, tzinfo=UTC).timestamp()
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:\s*[ap]m)?", re.IGNORECASE)
_DAY_S = 86_400


Asked = Mapping[str, Any]
"""The options of `mechdesign init` about the data that were given; "" stands for no column."""


@dataclass(frozen=True, eq=False)
class Found:
    """What was recognised.

    Attributes:
        path: The table, or the folder of trajectories (.plt).
        traces: The traces.
        layout: The layout of all files.
        columns: The columns by their keys in the table of check-ins; without "user", all rows are one person's.
        places: The path and the columns of the table of places, by their keys; empty if there is none.
        how: For each key, how its value was recognised.
        notes: Sentences about the data.
    """

    path: Path
    traces: tuple[Trajectory, ...]
    layout: Layout
    columns: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, str] = field(default_factory=dict)
    how: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def recognise(path: Path, asked: Asked) -> Found:
    """Recognise a file or a folder, and read it as it will be declared; raise `InputError` for what cannot be told."""
    for name in ("place", "key"):
        if name in asked and "places" not in asked:
            raise InputError(f"--{name}", "is for a table of places", bound="a column", remedy="name it: --places FILE")
    layout = Layout(**{name: value for name, value in asked.items() if name in LAYOUT})
    how = {name: f"given by {_option(name)}" for name in asked}
    if path.is_dir():
        for name in sorted(asked.keys() - {"missing"}):
            raise InputError(_option(name), "is for tables, not for a folder of trajectories", bound="no option")
        movement = read_trajectories(path, layout.missing)
        return Found(path, movement.traces, layout, how=how, notes=(movement.note,) if movement.note else ())
    return _Search(path, asked, layout, how).found()


class _Search:
    """The search through one table: what is known so far, and how."""

    def __init__(self, path: Path, asked: Asked, layout: Layout, how: dict[str, str]) -> None:
        self.path, self.asked, self.layout, self.how = path, asked, layout, how
        self.columns: dict[str, str] = {}
        self.notes: list[str] = []

    def found(self) -> Found:
        """Return what was recognised."""
        header = self._header()
        places: dict[str, str] = {}
        if "places" not in self.asked:
            self._set(self._coordinates(self.path, header, _names(header, _PLACES)))
            self._check_degrees(read_table(self.path, self.columns.values(), self.layout), self.columns)
        else:
            places = self._join(Path(self.asked["places"]), header)
        self._set({"trace": self._one("trace", self.path, header, _names(header, _TRACES))})
        people = self._people(header)
        times = self._times(header)
        table = read_table(self.path, [*people, *times, *self.columns.values()], self.layout)
        self._choose_people(table, people)
        self._choose_time(table, times)
        by_key = None
        if places:
            text = {name: getattr(self.layout, name) for name in ("delimiter", "decimal", "encoding")}
            by_key = read_places(places["path"], places["key"], places["latitude"], places["longitude"], **text)
        columns: dict[str, Any] = {"user": None, "places": by_key, **self.columns}
        movement = read_movement(self.path, Columns(**columns), self.layout)
        notes = tuple(filter(None, (*self.notes, movement.note)))
        found = {name: self.columns[name] for name in _COLUMNS if name in self.columns}
        return Found(self.path, movement.traces, self.layout, found, places, self.how, notes)

    def _set(self, columns: Mapping[str, str | None]) -> None:
        for name, column in columns.items():
            if column is not None:
                for other in (other for other, used in self.columns.items() if used == column):
                    problem = f"is also the column of {_option(other)}"
                    raise InputError(_option(name), problem, value=column, bound="another column")
                self.columns[name] = column
                self.how.setdefault(name, "recognised by its name")

    def _set_layout(self, how: str, **found: Any) -> None:
        self.layout = replace(self.layout, **found)
        self.how |= dict.fromkeys(found, how)

    # --- the layout of the text ---

    def _header(self) -> list[str]:
        """Return the names of the columns, after the encoding and the delimiter are found."""
        if self.path.suffix.lower() == ".parquet":
            return list(read_table(self.path).columns)
        content = content_of(self.path)
        for start, kind in _KINDS.items():
            if content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(start):
                raise InputError(str(self.path), f"is {kind}", bound="a table of text, or Parquet", remedy=_AS_CSV)
        if "encoding" not in self.asked:
            self._find_encoding(content)
        try:
            text = content.decode(self.layout.encoding).removeprefix("\ufeff")
            if text.startswith("sep="):
                raise InputError(f"{self.path}, line 1", "is a remark for Excel (sep=)", remedy="delete the line")
            if "delimiter" not in self.asked:
                self._find_delimiter(text)
            if header := next(_rows(text, self.layout.delimiter), []):
                return header
        except (UnicodeError, csv.Error):
            # The table says which line is wrong.
            return list(read_table(self.path, layout=self.layout).columns)
        raise InputError(str(self.path), "is empty", bound="a line with the names of the columns, then rows")

    def _find_encoding(self, content: bytes) -> None:
        if mark := next(filter(content.startswith, _MARKS), None):
            self._set_layout("by its byte order mark", encoding=_MARKS[mark])
            return
        if b"\0" in content:
            remedy = "name the encoding, such as --encoding utf-16-le"
            raise InputError(str(self.path), "has zero bytes", bound="a text", remedy=remedy)
        line = 0
        for name in _ENCODINGS:
            try:
                content.decode(name)
            except UnicodeDecodeError as error:
                line = line or content.count(b"\n", 0, error.start) + 1
                continue
            if line:
                self._set_layout(f"line {line} is not UTF-8; check the letters with accents", encoding=name)
            return
        where, remedy = f"{self.path}, line {line}", "name the encoding: --encoding NAME"
        raise InputError(where, "is neither UTF-8 nor windows-1252", remedy=remedy)

    def _find_delimiter(self, text: str) -> None:
        counts: dict[str, tuple[bool, int]] = {}
        for delimiter in _DELIMITERS:
            with suppress(csv.Error):
                widths = [len(row) for row in itertools.islice(_rows(text, delimiter), _SAMPLE_ROWS)]
                if widths and widths[0] > 1:
                    counts[delimiter] = len(set(widths)) == 1, widths[0]
        best = [delimiter for delimiter in counts if counts[delimiter] == max(counts.values())]
        if len(best) > 1:
            problem, remedy = "may have its columns separated in two ways", "name the character: --delimiter CHARACTER"
            raise InputError(f"{self.path}, line 1", problem, remedy=remedy)
        if best and best != [","]:
            self._set_layout("by the names in line 1", delimiter=best[0])

    # --- the columns ---

    def _one(self, name: str, path: Path, header: Sequence[str], names: Sequence[str], needed: str = "") -> str | None:
        """Return the column that was given for a key, or the only one of `names`; ask if there are several, or none."""
        given, option = self.asked.get(name), f"--{name}"
        if given is not None:
            if given not in header and (given or needed):
                raise InputError(option, f"is not a column of {path}", value=given, bound="a name in its first line")
            return given or None
        if len(names) > 1 or (needed and not names):
            problem = f"{_listed(names)} may each be the {needed or name}" if names else f"names no {needed}"
            remedy = f"name the column: {option} COLUMN"
            raise InputError(f"{path}, line 1", problem, remedy=remedy)
        return names[0] if names else None

    def _coordinates(self, path: Path, header: Sequence[str], keys: Sequence[str]) -> dict[str, str | None]:
        """Return the columns of the coordinates; they are asked for if several may be meant, or none."""
        found: dict[str, str | None] = {}
        for name, words, axis in (("latitude", _LATITUDES, "y"), ("longitude", _LONGITUDES, "x")):
            # An exact name goes before one with further words, such as venueLat, and x and y come last.
            columns = (
                [column for column in header if _is_word(column, words)]
                or [column for column in header if _last(column) in words.split()]
                or _names(header, axis, _BESIDE_AXES)
            )
            if not columns and name not in self.asked:
                problem, remedy = f"names no {name}", f"name the column: --{name} COLUMN"
                if any(map(_is_number, header)):
                    problem, remedy = "is no header line: it holds numbers", "add a line with the names of the columns"
                elif len(header) == 1:
                    problem, remedy = "has a single column", "name the character between columns: --delimiter CHARACTER"
                    remedy = remedy if path == self.path else f"write it in the layout of {self.path}"
                elif keys:
                    remedy += f", or the table that {keys[0]} refers to: --places FILE"
                raise InputError(f"{path}, line 1", problem, remedy=remedy)
            found[name] = self._one(name, path, header, columns, needed=name)
        if found["latitude"] == found["longitude"]:
            problem = "is also the column of --latitude"
            raise InputError("--longitude", problem, value=found["longitude"], bound="another column")
        return found

    def _join(self, path: Path, header: Sequence[str]) -> dict[str, str]:
        """Return the columns of the table of places, and set the column that refers to it."""
        table = read_table(path, layout=self.layout)
        known = list(table.columns)
        degrees = self._coordinates(path, known, ())
        keys = _names(known, _PLACES) or [column for column in known if _is_word(column, "id key")]
        key = self._one("key", path, known, keys, needed="key of a place")
        refers = [key] if key is not None and key in header else _names(header, _PLACES)
        self._set({"place": self._one("place", self.path, header, refers, needed="key of a place")})
        self.how["places"] = "its columns are recognised by their names, or given"
        found = {"path": str(path), "key": key, **degrees}
        places = {name: column for name, column in found.items() if column is not None}
        self._check_degrees(table, places)
        return places

    def _check_degrees(self, table: Table, columns: Mapping[str, str]) -> None:
        """Find the decimal sign; refuse columns that hold no degrees between -180 and 180."""
        names = [columns["latitude"], columns["longitude"]]
        tried = {sign: replace(table, layout=replace(self.layout, decimal=sign)) for sign in ".,"}
        bad = {sign: sum(each.floats(name)[1].sum() for name in names) for sign, each in tried.items()}
        if bad[","] < bad["."]:
            self._set_layout(f"by the numbers in {names[0]}", decimal=",")
        for name, column in zip(("latitude", "longitude"), names, strict=True):
            degrees, _ = replace(table, layout=self.layout).floats(column)
            if (known := degrees[np.isfinite(degrees)]).size and (known == np.rint(known)).all():
                bound, remedy = "degrees with decimals", f"name the right column: --{name} COLUMN"
                raise InputError(table.where(0, column), "begins a column of whole numbers", bound=bound, remedy=remedy)
        beyond = (degrees > 180) & (degrees <= 360)
        if beyond.any() and not (known < 0).any():
            remedy = f'subtract 360, for example with pandas: frame["{column}"] = (frame["{column}"] + 180) % 360 - 180'
            where = table.where(int(np.argmax(beyond)), column)
            raise InputError(where, "is beyond 180 degrees", bound="between -180 and 180", remedy=remedy)

    def _people(self, header: Sequence[str]) -> list[str]:
        """Return the columns that may be people; ask if there is none that is called so."""
        if "user" in self.asked:
            user = self._one("user", self.path, header, [])
            return [] if user is None else [user]
        free = [column for column in header if column not in self.columns.values()]
        if not (names := _names(free, _PEOPLE)):
            perhaps = [column for column in free if _is_word(column, "id name")]
            perhaps += _names(free, _PERHAPS_PEOPLE)
            if len(perhaps) == 1 and "trace" in self.columns:
                # The traces may tell, see `_choose_people`.
                return perhaps
            self._ask_people(f"{_listed(perhaps)} may be people" if perhaps else "names no column of people")
        return names

    def _choose_people(self, table: Table, names: Sequence[str]) -> None:
        """Set the column of people; ask if there are several that do not name the same people."""
        if not names:
            self.notes.append("all rows are one person's, as --user said")
            return
        first = table.texts(names[0])
        if "user" not in self.asked and not _names(names, _PEOPLE):
            trace = self.columns["trace"]
            traces = table.texts(trace)
            if len(set(zip(traces, first, strict=True))) > len(set(traces)) or len(set(first)) == len(set(traces)):
                self._ask_people(f"{names[0]} may be people")
            self.how["user"] = f"each {trace} has one {names[0]}; check that these are people"
        for other in names[1:]:
            pairs = list(zip(first, table.texts(other), strict=True))
            if not len(set(pairs)) == len({one for one, _ in pairs}) == len({two for _, two in pairs}):
                self._ask_people(f"{_listed(names)} may each be people")
        self._set({"user": names[0]})
        if len(names) > 1:
            self.how["user"] = f"recognised by its name; {_listed(names[1:])} names the same people"

    def _fits(self, bad: Flags) -> bool:
        return bool(bad.sum() <= self.layout.missing * len(bad))

    def _ask_people(self, problem: str) -> None:
        remedy = 'name it: --user COLUMN, or --user "" if all rows are one person\'s'
        raise InputError(f"{self.path}, line 1", problem, remedy=remedy)

    # --- times ---

    def _times(self, header: Sequence[str]) -> list[str]:
        """Return the columns that may be times: those of one word, else all."""
        if "time" in self.asked:
            time = self._one("time", self.path, header, [])
            return [] if time is None else [time]
        free = [column for column in header if column not in self.columns.values()]
        names = _names(free, _TIMES, _BESIDE_TIMES)
        return [column for column in names if len(_words(column)) == 1] or names

    def _choose_time(self, table: Table, names: Sequence[str]) -> None:
        """Set the column of times and their form; ask if columns or forms are in doubt."""
        if not names:
            if "time_format" in self.asked:
                remedy = "name the column: --time COLUMN"
                raise InputError("--time-format", "is given without times", bound="a column of times", remedy=remedy)
            self.notes.append("no times are read: points keep the order of the file (--time COLUMN names a column)")
            return
        readable = {name: found for name in names if (found := self._form(table, name)) is not None}
        clocks = [name for name in names if name not in readable and _are_times_of_day(table.texts(name))]
        # A column of days is of use only where no other has the time of day; summer time gives midnight two values.
        exact = {name: each for name, each in readable.items() if np.unique(each[1].seconds % _DAY_S).size > 2}
        if readable and clocks and not exact:
            day, clock = next(iter(readable)), clocks[0]
            remedy = f'join them, for example with pandas: frame["{day}"] = frame["{day}"] + " " + frame["{clock}"]'
            raise InputError(f"{self.path}, line 1", f"has the time in two columns, {day} and {clock}", remedy=remedy)
        readable = exact or readable
        if not readable:
            where = table.where(int(np.argmax(table.times(names[0])[1])), names[0])
            remedy = 'name the form: --time-format "%d.%m.%Y %H:%M"; or the column: --time COLUMN, "" for no times'
            raise InputError(where, "is not a time in a known form", bound="a date and time", remedy=remedy)
        first = next(iter(readable))
        for other in list(readable)[1:]:
            if not np.array_equal(readable[first][1].seconds, readable[other][1].seconds):
                problem, remedy = f"{_listed(list(readable))} may each be the time", "name the column: --time COLUMN"
                raise InputError(f"{self.path}, line 1", problem, remedy=remedy)
        self._set({"time": first})
        if "time_format" not in self.asked and (form := readable[first][0]) is not None:
            self._set_layout(f"the form that fits all times in {first}", time_format=form)

    def _form(self, table: Table, column: str) -> tuple[str | None, Instants] | None:
        """Return the form that fits all times but those that may be missing, and the times; None if none does."""
        if "time_format" in self.asked:
            return self.layout.time_format, table.times(column)[0]
        texts = table.texts(column)
        filled = np.array([bool(text.strip()) for text in texts], dtype=bool)
        sample = [text for text in texts if text.strip()][:_SAMPLE_TIMES]
        if not sample:
            return None if texts else (None, table.times(column)[0])
        small = replace(table, columns={column: sample}, lines=None)
        fits: list[tuple[str, Instants, Flags]] = []
        for form in (None, *_forms(sample, self.layout.time_zone)):
            layout = replace(self.layout, time_format=form)
            if _plausible_times(replace(small, layout=layout), column)[1].mean() < _SHARE_OF_SAMPLE:
                continue
            instants, good = _plausible_times(replace(table, layout=layout), column)
            if self._fits(filled & ~good):
                if form is None:
                    return None, instants
                fits.append((form, instants, good))
        most = max((int(good.sum()) for *_, good in fits), default=0)
        fits = [each for each in fits if each[2].sum() == most]
        for other, there, also in fits[1:]:
            form, here, good = fits[0]
            if (differs := good & also & (here.seconds != there.seconds)).any():
                raise InputError(
                    table.where(int(np.argmax(differs)), column),
                    f"may be {form} or {other}",
                    bound="times with one meaning",
                    remedy=f'name the form: --time-format "{form}", or --time-format "{other}"',
                )
        return fits[0][:2] if fits else None


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows of a text that are not blank."""
    return filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(", ".join(names).rsplit(", ", 1))


def _words(column: str) -> tuple[str, ...]:
    """Return the words of a name in lower case: user and ID for userID, location and lat for location-lat."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", column)
    return tuple(word.lower() for word in re.findall(r"[^\W\d_]+", split))


def _is_word(column: str, words: str) -> bool:
    return _words(column) in [(word,) for word in words.split()]


def _last(column: str) -> str:
    """Return the last word of a name that is not about its unit."""
    return next((word for word in reversed(_words(column)) if word not in _BESIDE_DEGREES.split()), "")


def _names(header: Iterable[str], words: str, beside: str = _BESIDE_NAMES) -> list[str]:
    """Return the columns whose names consist of `words`, and of words that may stand beside them."""
    own, others = set(words.split()), set(beside.split())

    def is_own(word: str) -> bool:
        return word in own or any(word.removesuffix(end) in own for end in others)

    found = {column: _words(column) for column in header}
    return [
        column
        for column, parts in found.items()
        if any(map(is_own, parts)) and all(is_own(part) or part in others for part in parts)
    ]


def _forms(sample: Sequence[str], zone: str) -> Iterable[str]:
    """Return the forms other than ISO 8601 that a sample of times may have."""
    if all(map(_is_number, sample)):
        lengths = {len(text.strip()) for text in sample}
        return (*UNITS, *(form for length, form in _DIGITS.items() if lengths == {length}))
    # A pattern is compiled only if all its signs occur; letters that say UTC contradict another zone.
    signs = set("".join(sample))
    known = (form for form in _PATTERNS if signs.issuperset(re.sub("%.", "", form)))
    return (form for form in known if zone == "UTC" or not form.endswith(("UTC", "GMT")))


def _plausible_times(table: Table, column: str) -> tuple[Instants, Flags]:
    """Return the times of a column, and which of them were read; not in ISO 8601, from 1980 to the end of next year."""
    instants, bad = table.times(column)
    if table.layout.time_format is not None:
        last = datetime(datetime.now(UTC).year + 2, 1, 1, tzinfo=UTC).timestamp()
        bad = bad | (instants.seconds < _FIRST_PLAUSIBLE) | (instants.seconds >= last)
    return instants, ~bad


def _are_times_of_day(texts: Sequence[str]) -> bool:
    known = [text.strip() for text in texts if text.strip()]
    return bool(known) and all(map(_TIME_OF_DAY.fullmatch, known))


def _is_number(text: str) -> bool:
    try:
        float(text.replace(",", "."))
    except ValueError:
        return False
    return True
