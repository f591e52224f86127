"""What a format is: a name, the endings of its files, and what it writes of a channel."""

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
    """What formats write of: a channel, the problem that it answers, and the certificate of both."""

    problem: Problem
    channel: Channel
    certificate: Certificate

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Return what stands in an exported set, whose digests are checked; raise `CertificateError` if they fail."""
        design = Design.load(folder)
        return cls(design.problem, design.channel, design.certificate)


@dataclass(frozen=True)
class Format:
    """A format of files.

    Attributes:
        name: The name under which the format is asked for.
        summary: What it holds, in a few words.
        suffixes: The endings of its files, such as ``(".csv",)``; the first one is the usual one.
        contents: Returns the content in pieces, given what is exported and the options as keywords.
        options: The names of the options that `contents` takes.
        text: Whether people can read it, so that it may be shown on a terminal.
        package: The package that it needs beside those that are always there, or "".
        extra: The extra of this distribution that installs that package, or "".
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

        Raises:
            InputError: For an option that the format does not take, and for a title or a label that hides what it is.
            MissingDependencyError: Where the package that it needs is not installed.
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
        """Write a file as a whole or not at all, and a device or a pipe in place.

        Raises `ExportError` when that fails, and what `parts` raises.
        """
        write_output(path, self.parts(exported, options))
