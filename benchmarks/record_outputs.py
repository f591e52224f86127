"""Record all user-visible output and compare two records: example files, figures, messages, documented names.

    python benchmarks/record_outputs.py record FILE.json [--only files figures messages names]
    python benchmarks/record_outputs.py compare BEFORE.json AFTER.json

A change that moves code must not change any recorded output. Seconds, estimates of memory, and digests of files that
contain such values are masked. The script `record_solves.py` records results of the solvers themselves. The exit code
of `compare` is 1 if any output differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from click.testing import CliRunner

import mechdesign as md
import mistakes
from mechdesign.cli import main as command

PROJECT = Path(__file__).parents[1]

COMMANDS = {
    "city": "design --example city -o city",
    "policy": "policy --example districts -o policy",
    "districts": "design --example districts -o districts",
    "walk": "release --example walk --seed 3 -o walk",
    "admissions": "blowfish --example admissions --seed 3 -o admissions",
    "audit": "audit city -o audit.html",
    "compare": "compare city districts -o compare.html",
    "leakage": "leakage --example traffic",
    "attack": "attack city",
    "verify": "verify city",
    "json": "export city --format json -o city.json",
    "js": "export city --format js -o city.js",
    "mps": "export city --format mps -o city.mps",
}
"""Commands that run one after the other in an empty folder; their files and output are recorded."""

_MASKED = re.compile(r"(?:_seconds|^memory_estimate|^digest|^report\.html)$")
_TIMES = re.compile(r"\b\d+(?:\.\d+)? (?:s|ms|min)\b")


def digest(content: bytes) -> str:
    """Return a short digest of some bytes."""
    return hashlib.sha256(content).hexdigest()[:16]


def files() -> Iterator[tuple[str, str]]:
    """Yield the digests of all files that the examples write, and of the output of the commands."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        for title, line in COMMANDS.items():
            result = CliRunner().invoke(command, line.split())
            said = _TIMES.sub("# s", result.output.replace(name, "FOLDER"))
            yield f"{title}: {line}", f"{result.exit_code} {digest(said.encode())}"
        for path in sorted(Path().rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                yield str(path), digest(mask(path))


def mask(path: Path) -> bytes:
    """Return the bytes of a file without seconds, memory estimates and values that depend on them."""
    content = path.read_bytes()
    stated = path if path.suffix == ".json" else path.parent / "certificate.json"
    if path.suffix not in (".json", ".html") or not stated.exists():
        return content
    text = content.decode()
    for value in masked_values(json.loads(stated.read_bytes())):
        text = re.sub(rf"(?<![\w.]){re.escape(value)}(?![\w.])", "#", text)
    return text.encode()


def masked_values(document: Any, key: str = "") -> Iterator[str]:
    """Yield the texts of those values in a certificate that differ from run to run."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield from masked_values(value, name)
    elif isinstance(document, list):
        for value in document:
            yield from masked_values(value)
    elif _MASKED.search(key):
        yield str(document)


def figures() -> Iterator[tuple[str, str]]:
    """Yield the digest of every figure of a design, as SVG."""
    domain = md.Domain.grid(4, 3, 4.0, 3.0)
    distance = md.distances.euclidean(domain)
    prior = [1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1]
    requirements = [md.MetricPrivacy("0.8", distance)]
    made = md.design(
        md.Problem([each / 42 for each in prior], distance, requirements, secrets=domain, observables=domain)
    )
    for name in ("answers", "costs", "errors", "prior", "requirements"):
        yield name, digest(md.figures.figure_bytes(getattr(md.figures, name)(made), "svg"))


def messages() -> Iterator[tuple[str, str]]:
    """Yield the message of every mistake that `mistakes.py` makes."""
    with tempfile.TemporaryDirectory() as name, chdir(name):
        mistakes.prepare()
        for index, mistake in enumerate(mistakes.mistakes()):
            wrong, message = mistakes.fault(mistake)
            yield f"{index} {mistake.name}", " ".join(f"{wrong} {message}".replace(name, "FOLDER").split())


def names() -> Iterator[tuple[str, str]]:
    """Yield every name of the package that the documentation shows, and whether it exists."""
    pages = [
        PROJECT / "README.md",
        *sorted((PROJECT / "docs").rglob("*.md")),
        *sorted((PROJECT / "notebooks").glob("*.py")),
    ]
    found = {
        name for page in pages for name in re.findall(r"\bmd\.[a-zA-Z_][\w.]*\w", page.read_text(encoding="utf-8"))
    }
    for name in sorted(found):
        yield name, "there" if is_there(name) else "missing"


def is_there(name: str) -> bool:
    """Return whether the package has a dotted name."""
    value: Any = md
    for part in name.split(".")[1:]:
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


RECORDERS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "files": files,
    "figures": figures,
    "messages": messages,
    "names": names,
}


def record(path: Path, only: list[str]) -> int:
    """Record all kinds, or the requested kinds, and write them."""
    found = {kind: dict(recorder()) for kind, recorder in RECORDERS.items() if not only or kind in only}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(", ".join(f"{len(entries)} {kind}" for kind, entries in found.items()) + f" written to {path}")
    return 0


def compare(first: Path, second: Path) -> int:
    """Print the differences; return 1 if there are any."""
    before, after = (json.loads(path.read_text(encoding="utf-8")) for path in (first, second))
    differing = 0
    for kind in sorted(before.keys() & after.keys()):
        old, new = before[kind], after[kind]
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                differing += 1
                print(
                    f"{kind}: {key}\n    {old.get(key, 'only in the second')}\n    {new.get(key, 'only in the first')}"
                )
        print(f"{kind}: {len(old)} and {len(new)} entries")
    print(f"{differing} differ")
    return 1 if differing else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record")
    recording.add_argument("file", type=Path)
    recording.add_argument("--only", nargs="+", choices=list(RECORDERS), default=[])
    comparing = commands.add_parser("compare")
    comparing.add_argument("first", type=Path)
    comparing.add_argument("second", type=Path)
    given = parser.parse_args()
    if given.command == "record":
        return record(given.file, given.only)
    return compare(given.first, given.second)


if __name__ == "__main__":
    sys.exit(main())
