"""What a release is: noisy answers with their errors, what was spent, and what is protected; never the true data."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Literal, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from mechdesign.base._arrays import Floats, read_only
from mechdesign.base._atomic import write_file
from mechdesign.base._check import as_path, require_kind
from mechdesign.base._errors import ExportError, InputError
from mechdesign.certify._exact import exact_text
from mechdesign.certify._texts import to_cell
from mechdesign.tables._definitions import EARLIER

Column = NDArray[Any]

VERSION = 2
ANSWERS = "answers.csv"
HEADER = "release.json"
_ROWS_AT_ONCE = 50_000

R = TypeVar("R", bound="Release")


@dataclass(frozen=True)
class Description:
    """What a release says of itself in words and exact numbers.

    Attributes:
        what: what was released.
        policy: the policy, in words.
        neighbours: which two databases are neighbours, in words: those that the release does not tell apart.
        definition: which definition of neighbours this is.
        mechanism: the mechanism and the noise, in words.
        epsilon: what was spent under ε-privacy, exact; None where `rho` measures it.
        rho: what was spent under ρ-zCDP, exact; None where `epsilon` measures it.
        step: the step of the lattice on which the noisy answers lie.
        confidence: the probability with which the interval of any one query contains the true answer, at least.
        rehearsal: whether the noise came from a generator given for a rehearsal: then nothing is protected.
        remarks: what else a reader must know, such as which answers are exact.
        entry: the number of its entry in a ledger, random digits; None where none was charged.
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

    @property
    def unsound(self) -> bool:
        """Return whether an earlier version made the release, with noise that may be too small for the policy.
        """
        return self.definition == EARLIER

    @property
    def is_spent(self) -> str:
        """Say that the budget is spent, for whoever cannot use the answers; rehearsals and exact answers spend nothing.

        >>> from mechdesign.tables import Domain, Policy, release_histogram
        >>> release_histogram([0, 2], Policy.full(Domain({"floor": range(4)})), epsilon=2).description.is_spent
        'ε = 2 is spent'
        """
        if self.rehearsal or not (self.epsilon or self.rho):
            return "Nothing is spent"
        return f"{self.spent} is spent"

    @property
    def spent(self) -> str:
        """Say what was spent.

        >>> exact_text(Fraction(1, 2))
        '0.5'
        """
        if self.epsilon is not None:
            return f"ε = {exact_text(self.epsilon)}"
        return f"ρ = {exact_text(self.rho or Fraction(0))}"


@dataclass(frozen=True, eq=False)
class Release:
    """Noisy answers to queries; a function of the noisy data alone, which may be published.

    Attributes:
        description: what was released, what it protects and what it cost.
        labels: what names each query: arrays of shape (q,) by heading, such as the attributes of a value.
        answers: float64 (q,).
        standard_errors: of the unbiased estimates that the answers are made from, float64 (q,).
        low: lower ends of the intervals, float64 (q,).
        high: upper ends of the intervals, float64 (q,).
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
        require_kind(self.description, Description, "description", "a Description")
        require_kind(self.labels, Mapping, "labels", "arrays by heading")
        for name, array in (*self.labels.items(), *self._columns().items()):
            require_kind(array, np.ndarray, name, "an array")
        for array in (*self.labels.values(), *self._columns().values()):
            read_only(array)

    def __repr__(self) -> str:
        unsound = ", unsound" if self.description.unsound else ""
        return f"{type(self).__name__}({self.description.what}, {len(self)} answers{unsound})"

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def epsilon(self) -> Fraction | None:
        """Return the ε that was spent, exact, or None."""
        return self.description.epsilon

    @property
    def rho(self) -> Fraction | None:
        """Return the ρ that was spent, exact, or None."""
        return self.description.rho

    def entered(self: R, number: str | None) -> R:
        """Return the release with the number of its entry in a ledger."""
        return replace(self, description=replace(self.description, entry=number))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``answers.csv``, a row per query, and ``release.json``, all else, into a folder.

        Each file replaces an older one as a whole, ``release.json`` last and with the digest of the other.

        Raises:
            ExportError: the files cannot be written.
        """
        target = as_path(folder, "folder")
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ExportError(f"{target} could not be made: {error.strerror or error}") from error
        digest = hashlib.sha256()

        def digest_rows() -> Iterator[bytes]:
            for part in self._rows():
                digest.update(part)
                yield part

        write_file(target / ANSWERS, digest_rows())
        described = self.description
        header = Header(
            version=VERSION,
            kind=self.kind,
            what=described.what,
            policy=described.policy,
            neighbours=described.neighbours,
            definition=described.definition,
            mechanism=described.mechanism,
            epsilon=None if described.epsilon is None else exact_text(described.epsilon),
            rho=None if described.rho is None else exact_text(described.rho),
            step=exact_text(described.step),
            confidence=exact_text(described.confidence),
            rehearsal=described.rehearsal,
            remarks=list(described.remarks),
            labels={name: "text" if array.dtype.kind == "U" else "number" for name, array in self.labels.items()},
            queries=len(self),
            parameters=self._parameters(),
            answers_sha256=digest.hexdigest(),
            entry=described.entry,
        )
        write_file(target / HEADER, [msgspec.json.format(msgspec.json.encode(header), indent=2), b"\n"])

    def _columns(self) -> dict[str, Floats]:
        """Return the columns of numbers by the names of the attributes."""
        return {
            "answers": self.answers,
            "standard_errors": self.standard_errors,
            "low": self.low,
            "high": self.high,
        }

    def _parameters(self) -> dict[str, Any]:
        """Return what else a kind of release needs, as plain values under the names of its attributes."""
        return {}

    @classmethod
    def restored(cls: type[R], common: dict[str, Any], parameters: dict[str, Any]) -> R:
        """Return the release that has these common attributes and what `_parameters` gave."""
        require_kind(common, Mapping, "common", "attributes by name")
        require_kind(parameters, Mapping, "parameters", "parameters by name")
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
        """Return the attributes that `_parameters` wrote."""
        return parameters

    def _rows(self) -> Iterator[bytes]:
        columns = self._columns()
        # An attribute may be called "low": no two columns have the same name.
        headings = [f"{name} (label)" if name in columns else name for name in self.labels]
        yield ",".join(map(_quote, [*headings, *columns])).encode() + b"\n"
        for start in range(0, len(self), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            cells = [_cells(array[part]) for array in (*self.labels.values(), *columns.values())]
            yield b"\n".join(map(b",".join, zip(*cells, strict=True))) + b"\n"


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What ``release.json`` holds."""

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
    remarks: list[str]
    labels: dict[str, Literal["text", "number"]]
    queries: int
    parameters: dict[str, Any]
    answers_sha256: str
    definition: str | None = None
    entry: str | None = None


def _cells(array: Column) -> list[bytes]:
    """Return the texts of a column; those of floats keep all of them."""
    if array.dtype.kind == "U":
        return [_quote(text).encode() for text in array.tolist()]
    if array.dtype.kind == "f" and (array == np.rint(array)).all() and np.abs(array).max(initial=0) < 2.0**53:
        array = array.astype(np.int64)
    return msgspec.json.encode(array.tolist())[1:-1].split(b",")


def _quote(text: str) -> str:
    text = to_cell(text)
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text
