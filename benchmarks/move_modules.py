"""Move modules, merge and split them, and rewrite every import and every dotted name of them.

    python benchmarks/move_modules.py MOVES.tsv [--root FOLDER] [--check]

A row of the table is OLD<TAB>NEW. OLD and NEW are each the path of a module, such as `mechdesign/spec/priors.py`, or of
one name in a module, `mechdesign/spec/priors.py:PriorTable`. A move may also change the name. Several modules with the
same NEW are merged in the order of their imports; a module whose names go to several places is split. Modules without a
row are not moved. Functions and classes are moved as text: their syntax trees change only in imports and in the renamed
names of the table.

With --check nothing is written. The script prints each name that has different meanings in two merged modules; such a
name needs a row that renames it. The exit code is 1 if there is such a name.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = "mechdesign"
TEXTS = (".py", ".pyi", ".md", ".toml", ".cfg", ".yml", ".yaml", ".ipynb", ".js", ".css", "")
GONE = "-"
_DOTTED = re.compile(rf"(?<![\w./-]){PACKAGE}(?:\.[A-Za-z_]\w*)+")


STAYING: set[str] = set()
"""The packages that re-export names before and after the move."""

FACES: dict[str, frozenset[str]] = {}
"""For each package, the names that it binds itself; such a name hides a module with the same name."""


def module_of(path: str) -> str:
    """Return the dotted name of a module's path."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclass(frozen=True)
class Target:
    """The target of an import: a module, or a name in a module."""

    module: str
    name: str | None = None


@dataclass
class Moves:
    """The new places of modules and single names."""

    modules: dict[str, str] = field(default_factory=dict)
    names: dict[tuple[str, str], Target] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    named_paths: list[str] = field(default_factory=list)
    passed_on: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    @classmethod
    def read(cls, table: Path) -> Moves:
        """Read the table."""
        moves = cls()
        for line in table.read_text(encoding="utf-8").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            old, new = line.split("\t")[:2]
            if ":" in old:
                path, name = old.split(":")
                into, _, renamed = new.partition(":")
                moves.named_paths.append(into)
                moves.names[module_of(path), name] = Target(module_of(into), renamed or name)
            else:
                moves.paths[old] = new
                if old.endswith(".py"):
                    moves.modules[module_of(old)] = module_of(new)
        return moves

    def module(self, old: str) -> str:
        """Return the new module of an old module; a removed module keeps its name, so that its users are found."""
        new = self.modules.get(old, old)
        return old if new == GONE else new

    def home(self, module: str, name: str) -> Target:
        """Return the new place of a name in an old module; for an imported name, that of its definition."""
        seen = {(module, name)}
        while (module, name) not in self.names and (module, name) in self.passed_on:
            module, name = self.passed_on[module, name]
            if (module, name) in seen:
                break
            seen.add((module, name))
        return self.names.get((module, name)) or Target(self.module(module), name)

    def is_split(self, module: str) -> bool:
        """Return whether some names of a module move elsewhere."""
        return any(old == module and new.module != self.module(module) for (old, _), new in self.names.items())


@dataclass
class Edit:
    """A span of bytes and its replacement."""

    start: int
    end: int
    text: str


@dataclass
class Source:
    """A Python file: its bytes, its tree, and the names that its imports bind."""

    path: Path
    module: str
    modules: frozenset[str]

    def __post_init__(self) -> None:
        self.content = self.path.read_bytes()
        self.tree = ast.parse(self.content)
        self.lines = [0]
        for line in self.content.splitlines(keepends=True):
            self.lines.append(self.lines[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the positions in bytes of the start and the end of a node, including its decorators."""
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
        start = self.lines[first - 1] if first != node.lineno else self.lines[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self.lines[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def targets(self, node: ast.stmt) -> Iterator[tuple[ast.alias, Target | None]]:
        """Yield the aliases of an import and their targets, None outside the package."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias, Target(alias.name) if alias.name in self.modules and alias.asname else None
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = self.module.split(".") if self.path.name == "__init__.py" else self.module.split(".")[:-1]
                package = package[: len(package) - node.level + 1]
                base = ".".join([*package, *([base] if base else [])])
            for alias in node.names:
                if f"{base}.{alias.name}" in self.modules and alias.name not in FACES.get(base, ()):
                    yield alias, Target(f"{base}.{alias.name}")
                elif base in self.modules:
                    yield alias, Target(base, alias.name)
                else:
                    yield alias, None

    def bindings(self) -> dict[str, Target]:
        """Return, for each name that the file imports from the package, the module or name that it stands for."""
        return {
            alias.asname or alias.name: target
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias, target in self.targets(node)
            if target is not None
        }

    def definitions(self) -> set[str]:
        """Return the names that are defined at the top."""
        return {name for statement in self.tree.body for name in defined(statement)}


def defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines, except by an import."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Assign():
            for target in statement.targets:
                yield from (node.id for node in ast.walk(target) if isinstance(node, ast.Name))
        case ast.AnnAssign() | ast.AugAssign():
            if isinstance(statement.target, ast.Name):
                yield statement.target.id
        case ast.If() | ast.Try() | ast.With() | ast.For():
            for inner in [*statement.body, *getattr(statement, "orelse", ()), *getattr(statement, "finalbody", ())]:
                yield from defined(inner)
            for handler in getattr(statement, "handlers", ()):
                for inner in handler.body:
                    yield from defined(inner)


def is_type_checking(statement: ast.stmt) -> bool:
    """Return whether a statement contains only imports for type checkers."""
    return (
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Name)
        and statement.test.id == "TYPE_CHECKING"
        and not statement.orelse
        and all(isinstance(inner, ast.Import | ast.ImportFrom) for inner in statement.body)
    )


def is_left_out(statement: ast.stmt) -> bool:
    """Return whether a statement lists the names of a module: `__all__`, or the `__dir__` that shows it."""
    return set(defined(statement)) <= {"__all__", "__dir__"} and any(defined(statement))


def import_line(alias: ast.alias, node: ast.stmt) -> str:
    """Return one alias of an import of another package, as a statement."""
    said = f" as {alias.asname}" if alias.asname else ""
    if isinstance(node, ast.ImportFrom):
        return f"from {'.' * node.level}{node.module or ''} import {alias.name}{said}"
    return f"import {alias.name}{said}"


def module_line(module: str, alias: str) -> str:
    """Return the statement that imports a module under a name."""
    base, _, last = module.rpartition(".")
    if not base:
        return f"import {module}" + (f" as {alias}" if alias != module else "")
    said = "" if last == alias else f" as {alias}"
    return f"from {base} import {last}{said}"


class Rewriter:
    """The edits of one file that update its names to their new places."""

    def __init__(self, source: Source, moves: Moves, own: str) -> None:
        self.source, self.moves, self.own = source, moves, own
        self.edits: list[Edit] = []
        self.renamed: dict[str, str] = {}
        for name in source.definitions():
            home = moves.home(source.module, name)
            if home.name != name:
                self.renamed[name] = home.name or name
        self.wanted: dict[str, list[str]] = defaultdict(list)
        self.kept: set[str] = set()
        self._attributes()

    def lines(self, node: ast.stmt) -> list[str]:
        """Return the statements that replace an old import statement."""
        made = []
        for alias, target in self.source.targets(node):
            bound = alias.asname or alias.name
            if target is None:
                made.append(import_line(alias, node))
            elif target.name is None:
                made += self.wanted.get(bound, [])
                if self.moves.is_split(target.module) or (bound in self.wanted and bound not in self.kept):
                    continue
                if self.moves.module(target.module) != self.own:
                    made.append(module_line(self.moves.module(target.module), bound))
            else:
                home = self.moves.home(target.module, target.name)
                used = bound if alias.asname and alias.asname != target.name else home.name
                if home.module == self.own:
                    used = home.name
                else:
                    said = "" if used == home.name and alias.asname is None else f" as {used}"
                    made.append(f"from {home.module} import {home.name}{said}")
                if used != bound:
                    self.renamed[bound] = used or bound
        return made

    def _attributes(self) -> None:
        """Find uses of names of other modules as `module.name`, or as texts in `setattr(module, "name", …)`."""
        bound = {alias: target.module for alias, target in self.source.bindings().items() if target.name is None}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
                alias, module = node.value.id, bound[node.value.id]
                home = self.moves.home(module, node.attr)
                if f"{module}.{node.attr}" in self.source.modules:
                    continue
                start, end = self.source.span(node)
                if home.module == self.own:
                    self.edits.append(Edit(start, end, home.name or node.attr))
                elif self.moves.is_split(module) or (
                    home.module != self.moves.module(module) and self.moves.module(module) not in STAYING
                ):
                    other = self._alias(alias, module, home)
                    self.edits.append(Edit(start, end, f"{other}.{home.name}"))
                else:
                    self.kept.add(alias)
                    if home.name != node.attr:
                        self.edits.append(Edit(start, end, f"{alias}.{home.name}"))
            elif isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(node.args[0], ast.Name):
                first, second = node.args[:2]
                if first.id in bound and isinstance(second, ast.Constant) and isinstance(second.value, str):  # type: ignore[attr-defined]
                    alias, module = first.id, bound[first.id]  # type: ignore[attr-defined]
                    home = self.moves.home(module, second.value)
                    if self.moves.is_split(module):
                        other = self._alias(alias, module, home)
                        self.edits.append(Edit(*self.source.span(first), other))
                    else:
                        self.kept.add(alias)
                    if home.name != second.value:
                        self.edits.append(Edit(*self.source.span(second), f'"{home.name}"'))

    def _alias(self, alias: str, module: str, home: Target) -> str:
        """Return the name under which a part of a split module is imported."""
        own = home.module == self.moves.module(module)
        other = alias if own else home.module.rpartition(".")[2].lstrip("_")
        line = module_line(home.module, other)
        if line not in self.wanted[alias]:
            self.wanted[alias].append(line)
        return other

    def rename(self) -> None:
        """Replace renamed names in the file, in their uses and definitions."""
        if not self.renamed:
            return
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Name) and node.id in self.renamed:
                self.edits.append(Edit(*self.source.span(node), self.renamed[node.id]))
        for node in self.source.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in self.renamed:
                start = self.source.lines[node.lineno - 1] + node.col_offset
                at = self.source.content.index(node.name.encode(), start)
                self.edits.append(Edit(at, at + len(node.name.encode()), self.renamed[node.name]))

    def dotted(self) -> None:
        """Rewrite the dotted names of modules in texts and comments."""
        text = self.source.content.decode()
        for match in _DOTTED.finditer(text):
            new = rewrite_dotted(match[0], self.moves, self.source.modules)
            if new != match[0]:
                start = len(text[: match.start()].encode())
                self.edits.append(Edit(start, start + len(match[0].encode()), new))

    def apply(self, start: int, end: int) -> str:
        """Return the text between two positions after all edits inside it."""
        made, at = [], start
        taken: list[Edit] = []
        for edit in sorted(self.edits, key=lambda each: (each.start, -each.end)):
            if edit.start < start or edit.end > end or (taken and edit.start < taken[-1].end):
                continue
            taken.append(edit)
            made += [self.source.content[at : edit.start].decode(), edit.text]
            at = edit.end
        return "".join([*made, self.source.content[at:end].decode()])


def rewrite_dotted(dotted: str, moves: Moves, modules: frozenset[str]) -> str:
    """Return the new form of a dotted name of a module, or of a name in a module."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        if module in modules:
            rest = parts[count:]
            if rest:
                home = moves.home(module, rest[0])
                return ".".join([home.module, home.name or rest[0], *rest[1:]])
            return moves.module(module)
    return dotted


def edit_imports(rewriter: Rewriter, statements: Iterable[ast.AST]) -> None:
    """Rewrite all imports inside the statements."""
    source = rewriter.source
    for node in statements:
        if isinstance(node, ast.Import | ast.ImportFrom):
            internal = any(target is not None for _, target in source.targets(node))
            lines = rewriter.lines(node)
            if internal:
                start, end = source.span(node)
                indent = " " * node.col_offset
                if not lines:
                    start, end = source.lines[node.lineno - 1], source.lines[node.end_lineno or node.lineno]
                rewriter.edits.append(Edit(start, end, f"\n{indent}".join(lines)))


def rewrite_file(source: Source, moves: Moves) -> str:
    """Return the text of a file with rewritten imports and dotted names, otherwise unchanged."""
    rewriter = Rewriter(source, moves, moves.module(source.module))
    edit_imports(rewriter, ast.walk(source.tree))
    rewriter.rename()
    rewriter.dotted()
    return rewriter.apply(0, len(source.content))


def order(parts: list[Source]) -> list[Source]:
    """Return the merged modules in an order in which each module follows the modules that it imports."""
    found: list[Source] = []
    by_name = {part.module: part for part in parts}

    def visit(part: Source) -> None:
        if part in found:
            return
        for target in part.bindings().values():
            if target.module in by_name and target.module != part.module:
                visit(by_name[target.module])
        found.append(part)

    for part in parts:
        visit(part)
    return found


@dataclass
class Merged:
    """The text of a new module, made of statements of old modules."""

    module: str
    title: str = ""
    pragmas: list[str] = field(default_factory=list)
    imports: dict[str, None] = field(default_factory=dict)
    typing: dict[str, None] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    meanings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    notes: list[str] = field(default_factory=list)

    def add(self, source: Source, moves: Moves, public: bool) -> None:
        """Add the statements of an old module that belong here."""
        rewriter = Rewriter(source, moves, self.module)
        header = [s for s in source.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
        checking = [inner for s in source.tree.body if is_type_checking(s) for inner in s.body]  # type: ignore[attr-defined]
        top = {id(node) for node in [*header, *checking]}
        edit_imports(rewriter, (node for node in ast.walk(source.tree) if id(node) not in top))
        for statements, into in ((header, self.imports), (checking, self.typing)):
            for node in statements:
                for line in rewriter.lines(node):
                    into[line] = None
                    self.meanings[re.split(r" (?:import|as) ", line)[-1].removeprefix("import ")].add(line)
        for alias, lines in rewriter.wanted.items():
            del alias
            self.imports.update(dict.fromkeys(lines))
        rewriter.rename()
        rewriter.dotted()
        body = source.tree.body
        text = ast.get_docstring(source.tree, clean=False)
        first, _, rest = (text or "").partition("\n\n")
        self.title = self.title or first
        if rest.strip():
            self.notes.append(rest.rstrip())
        for line in source.content.decode().splitlines():
            if line.startswith("# ruff:") and line not in self.pragmas:
                self.pragmas.append(line)
        end = source.span(body[0])[1] if text is not None else 0
        adjacent = False
        for statement in body[1 if text is not None else 0 :]:
            start = end
            end = after = source.lines[min(statement.end_lineno or 0, len(source.lines) - 1)]
            left_out = (
                isinstance(statement, ast.Import | ast.ImportFrom)
                or is_type_checking(statement)
                or is_left_out(statement)
            )
            if left_out:
                adjacent = False
                continue
            homes = {moves.home(source.module, name).module for name in defined(statement)} or {
                moves.module(source.module)
            }
            if self.module not in homes:
                adjacent = False
                continue
            chunk = rewriter.apply(start, after)
            chunk = "\n".join(line for line in chunk.splitlines() if not line.startswith("# ruff:"))
            blank = len(chunk) - len(chunk.lstrip("\n")) if adjacent else 2
            self.body.append("\n" * (blank + 1) + chunk.strip("\n"))
            adjacent = True
            for name in defined(statement):
                home = moves.home(source.module, name).name or name
                self.meanings[home].add(f"{source.module}.{name}")
        if public:
            for statement in body:
                if isinstance(statement, ast.Assign) and set(defined(statement)) == {"__all__"}:
                    listed = [each.value for each in ast.walk(statement.value) if isinstance(each, ast.Constant)]
                    self.names += [
                        str(each) for each in listed if moves.home(source.module, str(each)).module == self.module
                    ]

    def conflicts(self) -> Iterator[str]:
        """Yield the names that have two meanings in this module."""
        for name, meanings in self.meanings.items():
            distinct = {meaning for meaning in meanings if not meaning.startswith("from __future__")}
            if len(distinct) > 1:
                yield f"{self.module}: {name}: {', '.join(sorted(distinct))}"

    def text(self) -> str:
        """Return the whole module."""
        typing = {line: None for line in self.typing if line not in self.imports}
        said = "\n\n".join([self.title, *self.notes])
        parts = [f'"""{said}' + ('\n"""' if self.notes else '"""'), *self.pragmas, *self.imports]
        if typing:
            parts += ["from typing import TYPE_CHECKING", "if TYPE_CHECKING:", *(f"    {line}" for line in typing)]
        if self.names:
            parts.append(f"__all__ = {sorted(set(self.names))!r}")
        return "\n".join(parts) + "".join(self.body) + "\n"


def main() -> int:
    """Read the command line, and move the modules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--titles", type=Path, help="A table PATH<TAB>SENTENCE: the first lines of merged modules.")
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    root = given.root.resolve()
    moves = Moves.read(given.table)
    titles = dict(line.split("\t") for line in given.titles.read_text().splitlines()) if given.titles else {}
    listed = subprocess.run(["git", "ls-files"], cwd=root, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )
    paths = [path for path in listed if path and (root / path).is_file() and (root / path).suffix in TEXTS]
    package = [path for path in paths if path.startswith(f"{PACKAGE}/") and path.endswith(".py")]
    modules = frozenset(module_of(path) for path in package)
    sources = {module_of(path): Source(root / path, module_of(path), modules) for path in package}
    for module, source in sources.items():
        if source.path.name == "__init__.py":
            bound = (
                t.name for n in source.tree.body if isinstance(n, ast.ImportFrom) for _, t in source.targets(n) if t
            )
            FACES[module] = frozenset(source.definitions() | {name for name in bound if name})
    for module, source in sources.items():
        for name, target in source.bindings().items():
            if target.name is not None and name not in source.definitions() and target.module != module:
                moves.passed_on[module, name] = (target.module, target.name)
    made: dict[str, list[Source]] = defaultdict(list)
    for module, source in sources.items():
        if moves.modules.get(module) == GONE:
            continue
        made[moves.module(module)].append(source)
        for (old, _), target in moves.names.items():
            if old == module and source not in made[target.module]:
                made[target.module].append(source)
    texts: dict[Path, str] = {}
    conflicts: list[str] = []
    new_paths = [moves.paths.get(path, path) for path in package] + moves.named_paths
    STAYING.update(module_of(path) for path in new_paths if path.endswith("/__init__.py"))
    is_package = {module_of(path) for path in new_paths if path.endswith("/__init__.py")}
    for module, parts in made.items():
        path = root / (module.replace(".", "/") + ("/__init__.py" if module in is_package else ".py"))
        if len(parts) == 1 and not moves.is_split(parts[0].module) and moves.module(parts[0].module) == module:
            texts[path] = rewrite_file(parts[0], moves)
            continue
        merged = Merged(module, titles.get(path.relative_to(root).as_posix(), ""))
        for part in order(parts):
            merged.add(part, moves, not module.rpartition(".")[2].startswith("_"))
        conflicts += merged.conflicts()
        texts[path] = merged.text()
    for conflict in conflicts:
        print(conflict)
    print(f"{len(package)} modules become {len(texts)}, {len(conflicts)} conflicts")
    if given.check or conflicts:
        return 1 if conflicts else 0
    others = {}
    for path in paths:
        if path not in package:
            content = (root / path).read_text(encoding="utf-8")
            if path.endswith(".py"):
                new = rewrite_file(Source(root / path, module_of(path), modules), moves)
            else:
                new = _DOTTED.sub(lambda match: rewrite_dotted(match[0], moves, modules), content)
            if new != content:
                others[root / path] = new
    for path in package:
        (root / path).unlink()
    for path, text in {**texts, **others}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for old, new in moves.paths.items():
        if not old.endswith(".py") and (root / old).exists():
            (root / new).parent.mkdir(parents=True, exist_ok=True)
            (root / old).rename(root / new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
