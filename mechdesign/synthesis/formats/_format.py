"""The interface of an export format: its name, its file suffixes, and a function that produces the content."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Self

from mechdesign.base._errors import InputError, MissingDependencyError
from mechdesign.base._files import write_output
from mechdesign.certify._certificate import Certificate
from mechdesign.model._channel import Channel
from mechdesign.model._problem import Problem
from mechdesign.synthesis._bundle import require_plain_names
from mechdesign.synthesis._result import Design

_NOTHING: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Exported:
    """The input of a format: a channel with its problem and its certificate.

    Attributes:
        problem: The problem that the channel solves.
        channel: The channel p(o|s), shape (n, m).
        certificate: The certificate of the channel.

    >>> import mechdesign as md
    >>> distance = md.distances.hamming(md.Domain.from_labels(["yes", "no"]))
    >>> design = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy("1.1", distance)]))
    >>> Exported(design.problem, design.channel, design.certificate).channel
    Channel(2 secrets, 2 observables)
    """

    problem: Problem
    channel: Channel
    certificate: Certificate

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return the content of a bundle, after a check of its digests.

        Args:
            folder: Folder of the bundle.

        Returns:
            The channel with its problem and its certificate.

        Raises:
            CertificateError: The bundle is incomplete or malformed, or a digest does not match.
        """
        design = Design.load(folder)
        return cls(design.problem, design.channel, design.certificate)


@dataclass(frozen=True)
class Format:
    """An export format.

    Attributes:
        name: Name of the format, for `mechdesign export --format`.
        summary: A short description of the content.
        suffixes: Suffixes of its files, such as ``(".csv",)``; the first one is the default.
        contents: Returns the content in pieces, given an `Exported` and the options as keywords.
        options: Names of the options of `contents`.
        text: Whether the content is text that a terminal may show.
        package: Additional package that the format needs, or "".
        extra: Extra of this distribution that installs the package, or "".

    >>> Format("size", "the number of secrets", (".txt",), lambda exported: [b"2"]).suffixes
    ('.txt',)
    """

    name: str
    summary: str
    suffixes: tuple[str, ...]
    contents: Callable[..., Iterable[bytes]]
    options: tuple[str, ...] = ()
    text: bool = True
    package: str = ""
    extra: str = ""

    def parts(self, exported: Exported, options: Mapping[str, object] = _NOTHING) -> Iterator[bytes]:
        """Return the content of a file in pieces.

        Args:
            exported: The channel with its problem and its certificate.
            options: Options of the format by name.

        Returns:
            The pieces of the content, in order.

        Raises:
            InputError: The format has no such option, or a title or a label is not plain.
            MissingDependencyError: The package that the format needs is not installed.
        """
        for name in options:
            if name not in self.options:
                bound = f"one of {', '.join(self.options)}" if self.options else "left out"
                raise InputError(f"options.{name}", f"is not an option of {self.name}", bound=bound)
        if self.package and importlib.util.find_spec(self.package) is None:
            remedy = f"pip install 'mechdesign[{self.extra}]'" if self.extra else f"pip install {self.package}"
            raise MissingDependencyError(f"{self.name} needs the package {self.package}: {remedy}")
        require_plain_names(exported.problem, exported.channel)
        return iter(self.contents(exported, **options))

    def write(self, exported: Exported, path: str | Path, options: Mapping[str, object] = _NOTHING) -> None:
        """Write a file atomically; devices and pipes are written directly.

        Args:
            exported: The channel with its problem and its certificate.
            path: Path of the file.
            options: Options of the format by name.

        Raises:
            ExportError: The file cannot be written.
            InputError: The format has no such option, or a title or a label is not plain.
            MissingDependencyError: The package that the format needs is not installed.
        """
        write_output(path, self.parts(exported, options))
