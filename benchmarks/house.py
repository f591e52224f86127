"""Count the package: rooms, arrows, circles, names, commands, files, lines and tokens; and tests, benchmarks and pages.

    python benchmarks/house.py [--against COMMIT]

The exit code is 1 if an arrow points upwards, if imports form a circle, or if a count exceeds its limit. Imports inside
functions and imports for type checkers are included. A lazy arrow is a module that a call names as a text, or a name
that a stub takes from another room.

A line of code is neither blank, nor a comment, nor a docstring; tokens are counted without comments, docstrings and
line ends. All other lines are counted as `wc -l` does: stubs, templates and data files of the package, and the Python
files of tests, benchmarks and pages. Stub names are the names that `.pyi` files export. Public names are the names in
`__all__` of the public modules; a name that two modules export counts twice. Commands are those that do something, so
without groups; their options are counted without `--help`, arguments, and the options of `mechdesign` itself.
"""

from __future__ import annotations

import argparse
import ast
import gc
import io
import json
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx

PROJECT = Path(__file__).parents[1]
PACKAGE = "mechdesign"
DOOR = ("__init__", "__main__", "errors")
LIMITS = {"rooms": 16, "floors": 9, "upward arrows": 0, "lazy upward arrows": 0, "circles of rooms": 0} | {
    "circles of files": 0,
    "commands": 24,
    "options": 130,
    "public modules": 24,
    "public names": 300,
    "definitions of __dir__": 1,
}
WALK = """
import json, click
from mechdesign.cli import main
def walk(command):
    if not isinstance(command, click.Group):
        return [sum(isinstance(each, click.Option) for each in command.params)]
    context = click.Context(command)
    return [n for name in command.list_commands(context) for n in walk(command.get_command(context, name))]
print(json.dumps(walk(main)))
"""
_SKIPPED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


@dataclass(frozen=True)
class Module:
    """A file of the package: its dotted name, its text and its tree."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module
    stub: ast.Module | None

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes of the tree."""
        return list(ast.walk(self.tree))

    def imports(self, known: frozenset[str]) -> Iterator[str]:
        """Yield the modules of the package that this module imports, at its top or inside functions."""
        return self._imports(self.nodes, known)

    def lazy_imports(self, known: frozenset[str]) -> Iterator[str]:
        """Yield the modules of the package that a call names as a text, and those whose names the stub exports."""
        for node in self.nodes:
            if isinstance(node, ast.Call):
                named = {named_module(each) for each in node.args}
                yield from named & known - {PACKAGE}
        if self.stub:
            yield from self._imports(self.stub.body, known)

    def exported(self) -> list[str]:
        """Return the names that the stub exports, or those of `__all__`."""
        if self.stub:
            found = (node for node in self.stub.body if isinstance(node, ast.ImportFrom))
            return [alias.asname or alias.name for node in found for alias in node.names]
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return list(ast.literal_eval(node.value))
        return []

    def _imports(self, nodes: Iterable[ast.AST], known: frozenset[str]) -> Iterator[str]:
        package = self.name if self.is_package else self.name.rpartition(".")[0]
        for node in nodes:
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
        for node in self.nodes:
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
        stub = path.with_suffix(".pyi")
        face = ast.parse(stub.read_text(encoding="utf-8")) if stub.exists() else None
        found.append(Module(".".join(parts[:-1] if is_package else parts), is_package, text, ast.parse(text), face))
    return found


def layers(root: Path) -> list[list[str]]:
    """Return the floors (layers of packages) of the import contract, starting with the highest."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (lines,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip().removeprefix(f"{PACKAGE}.") for room in line.split(":")] for line in lines]


def named_module(argument: ast.expr) -> str:
    """Return the text of an argument; of a formatted text that begins with a module, that module."""
    if isinstance(argument, ast.JoinedStr):
        return named_module(argument.values[0]).rpartition(".")[0] if argument.values else ""
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else ""


def is_public(name: str) -> bool:
    """Return whether users may import a module: no part of its name is private, and it is not a command or example.

    The files of `data` are private, too: its face exports their public names.
    """
    parts = name.split(".")[1:]
    if any(part.startswith("_") for part in parts) or parts[:1] in (["cli"], ["base"]):
        return False
    if parts[:1] == ["data"]:
        return len(parts) == 1
    return parts != ["runs"] and parts[:2] != ["specification", "examples"]


def is_upward(source: str, target: str, floors: list[list[str]]) -> bool:
    """Return whether an arrow between two rooms points to the same floor, to a higher one, or to the door."""
    depth = {room: level for level, line in enumerate(floors) for room in line}
    return target in DOOR or depth.get(source, -1) >= depth.get(target, -1)


def arrows(files: nx.DiGraph) -> set[tuple[str, str]]:
    """Return the pairs of rooms that imports between files join, without those from the door."""
    pairs = {tuple((*name.split("."), "__init__")[1] for name in edge) for edge in files.edges}
    return {(above, below) for above, below in pairs if above != below and above not in DOOR}


def lines_of(folder: Path, *suffixes: str) -> int:
    """Return the number of lines of the files below a folder with one of the suffixes."""
    return sum(path.read_bytes().count(b"\n") for path in folder.rglob("*") if path.suffix in suffixes)


def count(root: Path) -> dict[str, int]:
    """Return all counts of the project in a folder."""
    modules = read(root)
    known = frozenset(module.name for module in modules)
    floors = layers(root)
    files = nx.DiGraph((module.name, other) for module in modules for other in module.imports(known))
    lazy = nx.DiGraph((module.name, other) for module in modules for other in module.lazy_imports(known))
    rooms = nx.DiGraph(sorted(arrows(files)))
    code = {module.name: module.code() for module in modules}
    walked = subprocess.run([sys.executable, "-c", WALK], cwd=root, check=True, stdout=subprocess.PIPE).stdout
    options: list[int] = json.loads(walked)
    package = root / PACKAGE
    found = {
        "rooms": len({part for name in known for part in name.split(".")[1:2]} - {*DOOR}),
        "floors": len(floors),
        "arrows between rooms": rooms.number_of_edges(),
        "upward arrows": sum(is_upward(*arrow, floors) for arrow in rooms.edges),
        "lazy upward arrows": sum(is_upward(*arrow, floors) for arrow in arrows(lazy)),
        "circles of rooms": sum(len(each) > 1 for each in nx.strongly_connected_components(rooms)),
        "circles of files": sum(len(each) > 1 for each in nx.strongly_connected_components(files)),
        "public modules": sum(is_public(name) for name in known),
        "public names": sum(len(module.exported()) for module in modules if is_public(module.name)),
        "stub names": sum(len(module.exported()) for module in modules if module.stub),
        "definitions of __dir__": sum(module.text.count("def __dir__") for module in modules),
        "commands": len(options),
        "options": sum(options),
        "files": len(modules),
        "lines of code": sum(lines for lines, _ in code.values()),
        "tokens of code": sum(tokens for _, tokens in code.values()),
        "lines of stubs": lines_of(package, ".pyi"),
        "lines of JavaScript": lines_of(package, ".js"),
        "lines of CSS": lines_of(package, ".css"),
        "lines of HTML": lines_of(package, ".html"),
        "lines of data files": lines_of(package, ".csv", ".toml", ".json"),
        "lines of tests": lines_of(root / "tests", ".py"),
        "lines of tests/support": lines_of(root / "tests" / "support", ".py"),
        "lines of benchmarks": lines_of(root / "benchmarks", ".py"),
        "lines of docs/*.py": lines_of(root / "docs", ".py"),
        "words of docs": sum(len(path.read_text(encoding="utf-8").split()) for path in (root / "docs").rglob("*.md")),
    }
    for room in sorted({name for line in floors for name in line}):
        mine = [code[name] for name in known if name.split(".")[1:2] == [room]]
        found[f"{room}: files"] = len(mine)
        found[f"{room}: lines"] = sum(lines for lines, _ in mine)
        found[f"{room}: tokens"] = sum(tokens for _, tokens in mine)
    return found


def main() -> int:
    """Print the counts, and those of a commit if one is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="COMMIT", help="A commit whose counts are printed, too.")
    given = parser.parse_args()
    # Millions of nodes of trees, none of which is garbage.
    gc.disable()
    now = count(PROJECT)
    before: dict[str, int] = {}
    if given.against:
        with tempfile.TemporaryDirectory() as folder:
            parts = (PACKAGE, "pyproject.toml", "tests", "benchmarks", "docs")
            packed = subprocess.run(
                ["git", "archive", given.against, *parts], cwd=PROJECT, check=True, capture_output=True
            ).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
            before = count(Path(folder))
    exceeded = [name for name, limit in LIMITS.items() if now[name] > limit]
    for name in [*now, *(name for name in before if name not in now)]:
        notes = [f"{before.get(name, 0):,} before"] if before else []
        notes += [f"at most {LIMITS[name]}"] if name in LIMITS else []
        print(f"{name:24}{now.get(name, 0):>10,}" + (f"   ({', '.join(notes)})" if notes else ""))
    for name in exceeded:
        print(f"{name}: {now[name]} exceeds {LIMITS[name]}", file=sys.stderr)
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
