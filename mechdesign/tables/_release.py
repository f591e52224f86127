"""Releases: noisy answers with their errors, the budget spent and the policy, but never the true data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, read_only
from mechdesign.base._atomic import write_file
from mechdesign.base._display import card
from mechdesign.base._errors import ExportError, InputError
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import to_cell

Column = NDArray[Any]

VERSION = 1
ANSWERS = "answers.csv"
HEADER = "release.json"
_ROWS_AT_ONCE = 50_000

R = TypeVar("R", bound="Release")


@dataclass(frozen=True)
class Description:
    """The description of a release in words and exact numbers.

    Attributes:
        what: the released quantity, in words.
        policy: the policy, in words.
        neighbours: the definition of neighbouring databases, which the release does not distinguish.
        definition: the source of this definition.
        mechanism: the mechanism and the noise, in words.
        epsilon: the exact ε that was spent; None for a budget in ρ.
        rho: the exact ρ of zero-concentrated differential privacy that was spent; None for a budget in ε.
        step: the step of the lattice on which the noisy answers lie.
        confidence: the least probability with which the interval of a single query contains the true answer.
        rehearsal: whether this release is a rehearsal, whose noise came from a given generator and protects nothing.
        remarks: further facts for the reader, such as exact answers.
        entry: the number of the ledger entry, which consists of random digits; None if no ledger was charged.
        rows_per_person: the largest number of rows of one person.
        people_checked: whether the rows of each person were counted; if not, the number is as declared.

    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> Histogram().release([0, 2], Policy.full(Domain({"floor": range(4)})), epsilon=2).description.spent
    'ε = 2'
    """

    what: str
    policy: str
    neighbours: str
    definition: str
    mechanism: str
    epsilon: Fraction | None
    rho: Fraction | None
    step: Fraction
    confidence: Fraction
    rehearsal: bool
    remarks: tuple[str, ...] = ()
    entry: str | None = None
    rows_per_person: int = 1
    people_checked: bool = False

    @property
    def is_spent(self) -> str:
        """Return a sentence about the spent budget for error messages; rehearsals and exact answers spend nothing.

        >>> from mechdesign.tables import Domain, Histogram, Policy
        >>> Histogram().release([0, 2], Policy.full(Domain({"floor": range(4)})), epsilon=2).description.is_spent
        'ε = 2 is spent'
        """
        if self.rehearsal or not (self.epsilon or self.rho):
            return "Nothing is spent"
        return f"{self.spent_per_person} is spent"

    @property
    def spent(self) -> str:
        """Return the spent budget as a string.

        >>> exact_text(Fraction(1, 2))
        '0.5'
        """
        return self._cost(1)

    @property
    def spent_per_person(self) -> str:
        """Return the cost for all rows of a person as a string, k·ε or k²·ρ; a ledger is charged this cost.

        >>> from mechdesign.tables import Domain, Histogram, Policy
        >>> policy = Policy.full(Domain({"floor": range(4)}))
        >>> Histogram().release([0, 2], policy, rho=2, rows_per_person=3).description.spent_per_person
        'ρ = 18'
        """
        return self._cost(self.rows_per_person)

    @property
    def people(self) -> str:
        """Return sentences on the rows of a person and, if there may be several, on what they cost together.

        >>> from mechdesign.tables import Domain, Histogram, Policy
        >>> policy = Policy.full(Domain({"floor": range(4)}))
        >>> release = Histogram().release([0, 2, 2], policy, epsilon=1, person=["a", "b", "b"], rows_per_person=2)
        >>> print(release.description.people)
        At most 2 rows per person, checked by their keys. ε = 1 per row is ε = 2 per person.
        """
        how = "checked by their keys" if self.people_checked else "as declared"
        if self.rows_per_person == 1:
            return f"One row per person, {how}."
        cost = f" {self.spent} per row is {self.spent_per_person} per person." if self.epsilon or self.rho else ""
        return f"At most {self.rows_per_person:,} rows per person, {how}.{cost}"

    def _cost(self, rows: int) -> str:
        if self.epsilon is not None:
            return f"ε = {exact_text(self.epsilon * rows)}"
        return f"ρ = {exact_text((self.rho or Fraction(0)) * rows**2)}"


# Answers that a notebook shows.
_MOST_DISPLAYED = 10


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy answers to queries, which may be published: they depend on the data only through the noisy measurements.

    Attributes:
        description: the released quantity, the policy and the cost.
        labels: the labels of the queries: arrays of shape (q,) by column heading, such as the attributes of a value.
        answers: the answers, float64 of shape (q,).
        standard_errors: the standard errors of the unbiased estimates behind the answers, float64 of shape (q,).
        low: the lower ends of the intervals, float64 of shape (q,).
        high: the upper ends of the intervals, float64 of shape (q,).

    >>> from mechdesign.tables import Domain, Histogram, Policy
    >>> release = Histogram().release([0, 1, 1], Policy.full(Domain({"floor": range(3)})), epsilon=1, rng=1)
    >>> len(release), release.epsilon
    (3, Fraction(1, 1))
    """

    kind: ClassVar[str] = "answers"
    needed: ClassVar[tuple[str, ...]] = ()

    description: Description
    labels: Mapping[str, Column] = field(repr=False)
    answers: Floats = field(repr=False)
    standard_errors: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)

    def __post_init__(self) -> None:
        for array in (*self.labels.values(), *self._columns().values()):
            read_only(array)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.description.what}, {len(self)} answers)"

    def _repr_html_(self) -> str:
        spent = self.description.spent if self.description.epsilon or self.description.rho else "nothing"
        facts = [
            ("policy", self.description.policy),
            ("spent", spent),
            ("people", self.description.people),
            ("answers", f"{len(self):,}"),
        ]
        shown = min(len(self), _MOST_DISPLAYED)
        for index in range(shown):
            label = ", ".join(str(column[index]) for column in self.labels.values())
            facts.append((label, f"{self.answers[index]:.4g}, from {self.low[index]:.4g} to {self.high[index]:.4g}"))
        facts += [("shown", f"all but {len(self) - shown:,}")] if shown < len(self) else []
        return card(f"Release: {self.description.what}", facts)

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def epsilon(self) -> Fraction | None:
        """Return the exact ε that was spent, or None."""
        return self.description.epsilon

    @property
    def rho(self) -> Fraction | None:
        """Return the exact ρ that was spent, or None."""
        return self.description.rho

    def entered(self: R, number: str | None, promises: Sequence[str] = ()) -> R:
        """Return the release with the number of its ledger entry.

        Args:
            number: the number of the entry, or None.
            promises: sentences about the series of the ledger, which become remarks.

        Returns:
            A copy of the release.
        """
        remarks = (*self.description.remarks, *promises)
        return replace(self, description=replace(self.description, entry=number, remarks=remarks))

    def _columns(self) -> dict[str, Floats]:
        """Return the numeric columns by the names of their attributes."""
        return {
            "answers": self.answers,
            "standard_errors": self.standard_errors,
            "low": self.low,
            "high": self.high,
        }

    def _parameters(self) -> dict[str, Any]:
        """Return the additional attributes of a subclass of releases, as plain values by name."""
        return {}

    @classmethod
    def restored(cls: type[R], common: dict[str, Any], parameters: dict[str, Any]) -> R:
        """Return the release with the given attributes.

        Args:
            common: the attributes of `Release`, by name.
            parameters: the additional attributes of this class, as `_parameters` returns them.

        Returns:
            The release.

        Raises:
            InputError: An attribute is missing or unknown.
        """
        own = dict(parameters)
        for name in cls.needed:
            if name not in own:
                raise InputError(f"parameters[{name!r}]", "is missing", value=sorted(map(str, own)))
        try:
            return cls(**common, **cls._read(own))
        except TypeError as error:
            raise InputError("common", f"are not the attributes of {cls.__name__} ({error})") from error

    @classmethod
    def _read(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        """Convert the values that `_parameters` returned to attributes."""
        return parameters

    def _rows(self) -> Iterator[bytes]:
        columns = self._columns()
        # If an attribute has the name of a numeric column, such as "low", its column of labels is renamed.
        headings = [f"{name} (label)" if name in columns else name for name in self.labels]
        yield ",".join(map(_quote, [*headings, *columns])).encode() + b"\n"
        for start in range(0, len(self), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            cells = [_cells(array[part]) for array in (*self.labels.values(), *columns.values())]
            yield b"\n".join(map(b",".join, zip(*cells, strict=True))) + b"\n"


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """The content of ``release.json``."""

    version: int
    kind: str
    what: str
    policy: str
    neighbours: str
    mechanism: str
    epsilon: str | None
    rho: str | None
    step: str
    confidence: str
    rehearsal: bool
    remarks: tuple[str, ...]
    labels: dict[str, Literal["text", "number"]]
    queries: int
    parameters: dict[str, Any]
    answers_sha256: str
    definition: str
    rows_per_person: int
    people_checked: bool
    spent_per_person: str
    entry: str | None = None


def _cells(array: Column) -> list[bytes]:
    """Return the cells of a column as bytes, with all digits of floats."""
    if array.dtype.kind == "U":
        return [_quote(text).encode() for text in array.tolist()]
    if array.dtype.kind == "f" and (array == np.rint(array)).all() and np.abs(array).max(initial=0) < 2.0**53:
        array = array.astype(np.int64)
    return msgspec.json.encode(array.tolist())[1:-1].split(b",")


def _quote(text: str) -> str:
    text = to_cell(text)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def write_answers(release: Release, folder: Path) -> None:
    """Write ``answers.csv``, with a row for each query, and then ``release.json``, with the digest of the answers.

    Each file is replaced atomically. Raises `ExportError` if the files cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"the folder {folder} could not be created: {error.strerror or error}") from error
    digest = hashlib.sha256()

    def digest_rows() -> Iterator[bytes]:
        for part in release._rows():
            digest.update(part)
            yield part

    write_file(folder / ANSWERS, digest_rows())
    described: dict[str, Any] = {
        name: exact_text(value) if isinstance(value, Fraction) else value
        for name, value in vars(release.description).items()
    }
    header = Header(
        version=VERSION,
        kind=release.kind,
        **described,
        spent_per_person=release.description.spent_per_person,
        labels={name: "text" if array.dtype.kind == "U" else "number" for name, array in release.labels.items()},
        queries=len(release),
        parameters=release._parameters(),
        answers_sha256=digest.hexdigest(),
    )
    write_file(folder / HEADER, [msgspec.json.format(msgspec.json.encode(header), indent=2), b"\n"])
