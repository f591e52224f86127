"""What users can name is documented: arguments, public names, errors, variables; pages name what exists."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

import mechdesign as md
from mechdesign.cli import main

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
SECTIONS = r"\n *(?:Args|Attributes|Returns|Yields|Raises|Examples?|Note):\n"


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield every name that a public module lists, with what it means."""
    names = [found.name for found in pkgutil.walk_packages(md.__path__, "mechdesign.")]
    for name in ("mechdesign", *(name for name in names if "._" not in name and not name.endswith("__main__"))):
        module = importlib.import_module(name)
        for listed in getattr(module, "__all__", ()):
            yield f"{name}.{listed}", getattr(module, listed)


@pytest.fixture(scope="module")
def called() -> dict[str, Any]:
    """Return the public functions, classes and methods whose arguments a docstring explains."""
    found = {}
    for name, value in public_names():
        is_class = inspect.isclass(value)
        if not getattr(value, "__module__", "").startswith("mechdesign") or not (is_class or inspect.isfunction(value)):
            continue
        if not is_class or not (issubclass(value, BaseException | enum.Enum) or getattr(value, "_is_protocol", False)):
            found[name] = value
        for method, member in vars(value).items() if is_class else ():
            above = [base for base in value.__mro__[1:] if base.__module__.startswith("mechdesign")]
            if method.startswith("_") or any(method in vars(base) for base in above):
                continue
            if inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
                found[f"{name}.{method}"] = getattr(value, method)
    return found


def unexplained(value: Any) -> list[str]:
    """Return the arguments of a function or class that its docstring leaves out."""
    text = "\n" + (inspect.getdoc(value) or "")
    try:
        arguments = inspect.signature(value).parameters
    except ValueError:
        return []
    sections = re.findall(rf"\n *(?:Args|Attributes):\n(.*?)(?={SECTIONS}|\Z)", text, re.DOTALL)
    explained = set(re.findall(r"(?m)^ *\*{0,2}(\w+)\b[^:\n]*:", "\n".join(sections)))
    return [name for name in arguments if name not in explained | {"self", "cls"} and not name.startswith("_")]


def test_every_argument_is_explained(called: dict[str, Any]) -> None:
    assert {"mechdesign.design", "mechdesign.Domain.grid", "mechdesign.tables.Policy.attribute"} <= set(called)
    assert {name: missing for name, value in called.items() if (missing := unexplained(value))} == {}


def test_an_argument_that_is_left_out_is_found() -> None:
    def halve(value: float, digits: int) -> float:
        """Return half a value.

        Args:
            value: The value.
        """
        return round(value / 2, digits)

    assert unexplained(halve) == ["digits"]


def test_every_public_name_has_a_page_of_the_reference() -> None:
    pytest.importorskip("sphinx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(DOCS / "_ext")])
        reference = importlib.import_module("reference")
    listed = reference.listed()
    documented = {id(value) for value, _ in listed.values()}
    # Add the name to a block of docs/reference/python/*.md.
    missing = {name for name, value in public_names() if id(value) not in documented and not inspect.ismodule(value)}
    assert missing == set()
    # Where files whose names differ in their case are one, no page hides another.
    assert len({reference.page_of(name).lower() for name in listed}) == len(listed)


def taught() -> str:
    """Return the code of all pages but the reference, of the notebooks, and of the tests that a page shows."""
    pages = [PROJECT / "README.md", *(page for page in DOCS.rglob("*.md") if DOCS / "reference" not in page.parents)]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    code = [found for text in texts for found in re.findall(r"(?ms)^ *```.*?^ *```|`[^`\n]+`", text)]
    code += [path.read_text(encoding="utf-8") for path in (PROJECT / "notebooks").glob("*.py")]
    for text in (path.read_text(encoding="utf-8") for path in (PROJECT / "tests" / "extending").glob("*.py")):
        code += [found[2] for found in re.finditer(r"(?s)\[(?:start:)?(\w+)\]\n(.*?)# .*?\[(?:end:|/)\1\]", text)]
    return "\n".join(code)


def is_taught(name: str, value: Any, code: str) -> bool:
    """Return whether code names a class, or calls or qualifies another name; one algorithm stands for all numbers."""
    module, _, own = name.rpartition(".")
    room, own = module.rpartition(".")[2].replace("mechdesign", "md"), own.rstrip("0123456789")
    if inspect.isclass(value):
        return re.search(rf"(?<!\w){own}\b", code) is not None
    return re.search(rf"\b{room}\.{own}\d?\b|(?<![\w.]){own}\(|`{own}\d?[`(]", code) is not None


def test_public_names_are_taught_or_are_types() -> None:
    code = taught()
    only = {name: value for name, value in public_names() if not is_taught(name, value, code)}
    only = {name: value for name, value in only.items() if not inspect.ismodule(value)}
    # A function that no tutorial, guide, notebook or theory needs is not public: its tests import it from its own file.
    assert [name for name, value in only.items() if not inspect.isclass(value)] == []
    assert len({id(value) for value in only.values()}) <= 60, sorted(only)


def test_every_name_on_a_page_exists() -> None:
    pages = [*DOCS.rglob("*.md"), PROJECT / "README.md"]
    named = {name for page in pages for name in re.findall(r"\bmd(?:\.[A-Za-z]\w*)+(?![\w…])", page.read_text("utf-8"))}
    assert len(named) > 60
    assert {name for name in named if not exists(name)} == set()
    assert not exists("md.nothing")
    assert not exists("md.Problem.nothing")


def exists(name: str) -> bool:
    found: Any = md
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            # Fields of values that are made in a constructor.
            return isinstance(found, type) and part in getattr(found, "__annotations__", {})
        found = getattr(found, part)
    return True


def options(command: click.Command, *names: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each group and command with its options, and with those that all have."""
    named = {name for each in command.params if isinstance(each, click.Option) for name in each.opts}
    yield " ".join(names), named | {"--help", "--json"}
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from options(inner, *names, name)


def wrong_calls(page: Path, known: dict[str, set[str]]) -> list[str]:
    """Return the code of a page that names a command or an option that does not exist."""
    text = page.read_text(encoding="utf-8")
    code = re.findall(r"`(mechdesign [^`\n]+|--[^`\n]+)`", text)
    for block in re.findall(r"(?ms)^ *```(.*?)^ *```", text):
        code += re.findall(r"(?m)^ *(?:\$ |\S*/)?(mechdesign .+)", block.replace("\\\n", " "))
    wrong = []
    for each in code:
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", each))
        words = re.match(r"mechdesign ([a-z]+)?(?: ([a-z]+))?", each)
        if words is None:
            are_known = named <= set().union(*known.values())
        else:
            names = [" ".join(filter(None, words.groups()[:count])) for count in (2, 1)]
            name = next((each for each in names if each in known), None)
            are_known = name is not None and named <= known[name]
        if not are_known:
            wrong.append(each)
    return wrong


def test_every_command_and_option_on_a_page_exists(tmp_path: Path) -> None:
    known = dict(options(main))
    pages = [*DOCS.rglob("*.md"), *PROJECT.glob("*.md")]
    assert {str(page): wrong for page in pages if (wrong := wrong_calls(page, known))} == {}
    (page := tmp_path / "page.md").write_text(
        "`mechdesign ledger show l.json` `mechdesign --cite` `mechdesign compare a b` `--example` `--rows all`\n\n"
        "```console\n$ mechdesign audit a.csv \\\n    --graph b.csv\n$ mechdesign verify a --graph b.csv\n```\n"
    )
    wrong = ["mechdesign compare a b", "--rows all", "mechdesign verify a --graph b.csv"]
    assert wrong_calls(page, known) == wrong
    # Messages and docstrings name options, too; the variables of a style sheet look like them.
    sources = {path: path.read_text("utf-8") for path in (PROJECT / "mechdesign").rglob("*.py") if path.stem != "_svg"}
    asked = {path.name: set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) for path, text in sources.items()}
    assert {name: gone for name, found in asked.items() if (gone := found - set().union(*known.values()))} == {}


def test_every_file_on_the_page_of_the_architecture_exists() -> None:
    files: dict[str, str] = {}
    text = (DOCS / "project" / "architecture.md").read_text(encoding="utf-8")
    for file, names in re.findall(r"`([\w/]+\.pyi?)`(?: \(((?:`[\w.]+`(?:, )?)+)\))?", text):
        files[file] = files.get(file, "") + names
    assert len(files) > 30
    for file, names in files.items():
        found = [folder / file for folder in (PROJECT / "mechdesign", PROJECT) if (folder / file).exists()]
        assert found, file
        for name in re.findall(r"`([\w.]+)`", names):
            defined = rf"(?m)(?:def|class) {name.rpartition('.')[2]}\b|^{re.escape(name)}\b"
            assert re.search(defined, found[0].read_text(encoding="utf-8")), (file, name)


def test_every_error_and_warning_is_explained() -> None:
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    kinds = [getattr(md.errors, name) for name in dir(md.errors)]
    known = {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)}
    assert set(re.findall(r"`(\w+(?:Error|Warning))`", text)) == known
    assert len(known) > 10


def test_every_environment_variable_is_on_its_page() -> None:
    page = (DOCS / "reference" / "command_line.md").read_text(encoding="utf-8")
    listed = {name for cell in re.findall(r"(?m)^\| ([^|]+) \|", page) for name in re.findall(r"`([A-Z_]+)`", cell)}
    sources = [path.read_text(encoding="utf-8") for path in (PROJECT / "mechdesign").rglob("*.py")]
    own = {name for text in sources for name in re.findall(r'"(MECHDESIGN_[A-Z]+)"', text)}
    others = {name for text in sources for name in re.findall(r'environ(?:\.\w+\(|\[)"([A-Z_]+)"', text)}
    assert own | others <= listed
    assert {name for name in listed if name.startswith("MECHDESIGN_")} == own
