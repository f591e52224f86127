"""Count the quantities of the architecture page: rooms, floors, arrows, circles, public modules, files, lines, tokens.

    python benchmarks/house.py [--against COMMIT]

The exit code is 1 if an arrow points upwards, if imports form a circle, or if a count exceeds its limit. Imports inside
functions and imports for type checkers are included. A line of code is neither blank, nor a comment, nor a docstring;
tokens are counted without comments, docstrings and line ends.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

PROJECT = Path(__file__).parents[1]
PACKAGE = "mechdesign"
DOOR = ("__init__", "__main__", "errors")
LIMITS = {"rooms": 16, "floors": 9, "upward arrows": 0, "circles of rooms": 0, "circles of files": 0} | {
    "public modules": 24,
    "definitions of __dir__": 1,
}
_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


@dataclass(frozen=True)
class Module:
    """A file of the package: its dotted name, its text and its tree."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module

    def imports(self, known: frozenset[str]) -> Iterator[str]:
        """Yield the modules of the package that this module imports, at its top or inside functions."""
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in known)
            elif isinstance(node, ast.ImportFrom):
                parts = package.split(".")
                above = parts[: len(parts) - node.level + 1] if node.level else []
                base = ".".join([*above, *([node.module] if node.module else [])])
                for alias in node.names:
                    inside = f"{base}.{alias.name}"
                    found = inside if inside in known else base
                    if found in known and found != self.name:
                        yield found

    def docstrings(self) -> set[int]:
        """Return the numbers of the lines of docstrings, including texts that document a constant."""
        lines: set[int] = set()
        for node in ast.walk(self.tree):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        return lines

    def code(self) -> tuple[int, int]:
        """Return the numbers of lines and tokens of code."""
        skipped = self.docstrings()
        lines: set[int] = set()
        tokens = 0
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type in _SKIPPED or token.type == tokenize.ENDMARKER:
                continue
            if token.start[0] in skipped and token.type == tokenize.STRING:
                continue
            tokens += 1
            lines.update(range(token.start[0], token.end[0] + 1))
        return len(lines), tokens


def read(root: Path) -> list[Module]:
    """Return every module of the package in a folder."""
    found = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        text = path.read_text(encoding="utf-8")
        found.append(Module(".".join(parts[:-1] if is_package else parts), is_package, text, ast.parse(text)))
    return found


def layers(root: Path) -> list[list[str]]:
    """Return the floors (layers of packages) of the import contract, starting with the highest."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (lines,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip().removeprefix(f"{PACKAGE}.") for room in line.split(":")] for line in lines]


def is_public(name: str) -> bool:
    """Return whether users may import a module: no part of its name is private, and it is not a command or example."""
    parts = name.split(".")[1:]
    if any(part.startswith("_") for part in parts) or parts[:1] in (["cli"], ["base"]):
        return False
    return parts != ["runs"] and parts[:2] != ["specification", "examples"]


def count(root: Path) -> dict[str, int]:
    """Return all counts of the package in a folder."""
    modules = read(root)
    known = frozenset(module.name for module in modules)
    floors = layers(root)
    depth = {room: level for level, line in enumerate(floors) for room in line}
    files = nx.DiGraph((module.name, other) for module in modules for other in module.imports(known))
    rooms, upward = nx.DiGraph(), 0
    for source, target in files.edges:
        above, below = (*source.split("."), "__init__")[1], (*target.split("."), "__init__")[1]
        if above == below or above in DOOR:
            continue
        upward += below in DOOR or depth.get(above, -1) >= depth.get(below, -1)
        rooms.add_edge(above, below)
    code = [module.code() for module in modules]
    return {
        "rooms": len({part for name in known for part in name.split(".")[1:2]} - {*DOOR}),
        "floors": len(floors),
        "arrows between rooms": rooms.number_of_edges(),
        "upward arrows": upward,
        "circles of rooms": sum(len(found) > 1 for found in nx.strongly_connected_components(rooms)),
        "circles of files": sum(len(found) > 1 for found in nx.strongly_connected_components(files)),
        "public modules": sum(is_public(name) for name in known),
        "definitions of __dir__": sum(module.text.count("def __dir__") for module in modules),
        "files": len(modules),
        "lines of code": sum(lines for lines, _ in code),
        "tokens of code": sum(tokens for _, tokens in code),
    }


def main() -> int:
    """Print the counts, and those of a commit if one is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", help="A commit whose counts are printed, too.")
    given = parser.parse_args()
    now = count(PROJECT)
    before: dict[str, int] = {}
    if given.against:
        with tempfile.TemporaryDirectory() as folder:
            packed = subprocess.run(
                ["git", "archive", given.against, PACKAGE, "pyproject.toml"],
                cwd=PROJECT,
                check=True,
                capture_output=True,
            ).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
            before = count(Path(folder))
    exceeded = [name for name, limit in LIMITS.items() if now[name] > limit]
    for name, value in now.items():
        notes = [f"{before[name]:,} before"] if before else []
        notes += [f"at most {LIMITS[name]}"] if name in LIMITS else []
        print(f"{name:24}{value:>10,}" + (f"   ({', '.join(notes)})" if notes else ""))
    for name in exceeded:
        print(f"{name}: {now[name]} exceeds {LIMITS[name]}", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
