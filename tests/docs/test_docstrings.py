"""Every public name is documented: a summary, its arguments, its result, and an example that runs."""

from __future__ import annotations

import enum
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import mechdesign

OPTIONAL = ("torch", "accelerator", "__main__")
SECTIONS = r"\n *(?:Args|Attributes|Returns|Yields|Raises|Examples?|Note):\n"


def public_modules() -> list[str]:
    """Return the names of modules without an underscore in their path."""
    found = (module.name for module in pkgutil.walk_packages(mechdesign.__path__, "mechdesign."))
    return [
        "mechdesign",
        *(name for name in found if "._" not in name and not any(word in name for word in OPTIONAL)),
    ]


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield the room and name of every public function and class, once, with the object."""
    seen: set[int] = set()
    for name in public_modules():
        module = importlib.import_module(name)
        for attribute in getattr(module, "__all__", ()):
            value = getattr(module, attribute)
            is_ours = getattr(value, "__module__", "").startswith("mechdesign")
            if is_ours and (inspect.isfunction(value) or inspect.isclass(value)) and id(value) not in seen:
                seen.add(id(value))
                room = [*value.__module__.split("."), "face"][1]
                yield f"{room}-{attribute}", value


NAMES = dict(public_names())
DOCUMENTED = {
    name: value
    for name, value in NAMES.items()
    if not (inspect.isclass(value) and issubclass(value, BaseException | enum.Enum))
}


def inherits_docstring(owner: type, method: str) -> bool:
    """Return whether a method overrides one of the package that is documented where it is defined."""
    return any(method in vars(base) for base in owner.__mro__[1:] if base.__module__.startswith("mechdesign"))


METHODS = {
    f"{name}.{method}": (member.__func__ if isinstance(member, classmethod | staticmethod) else member)
    for name, value in NAMES.items()
    if inspect.isclass(value)
    for method, member in vars(value).items()
    if not method.startswith("_") and (inspect.isfunction(member) or isinstance(member, classmethod | staticmethod))
    if not inherits_docstring(value, method)
}


def section(text: str, *titles: str) -> str:
    """Return the text of the first section with one of the titles."""
    found = re.search(rf"\n *(?:{'|'.join(titles)}):\n(.*?)(?={SECTIONS}|\Z)", "\n" + text, re.DOTALL)
    return found.group(1) if found else ""


def parameters(value: Any) -> list[str]:
    """Return the names of the arguments that a docstring must explain."""
    try:
        signature = inspect.signature(value)
    except ValueError:
        return []
    return [name for name in signature.parameters if name not in ("self", "cls") and not name.startswith("_")]


def unexplained(value: Any, text: str) -> list[str]:
    """Return the arguments of a function or class that its docstring leaves out."""
    explained = section(text, "Args") + section(text, "Attributes")
    return [name for name in parameters(value) if not re.search(rf"(?m)^ *\*{{0,2}}{name}\b[^:\n]*:", explained)]


def returns_value(value: Any) -> bool:
    """Return whether a function returns something."""
    return inspect.signature(value).return_annotation not in (
        None,
        "None",
        inspect.Signature.empty,
        "Never",
        "NoReturn",
    )


@pytest.mark.parametrize("name", DOCUMENTED)
def test_public_names_explain_their_arguments(name: str) -> None:
    value = DOCUMENTED[name]
    if getattr(value, "_is_protocol", False):
        pytest.skip("a protocol has no constructor")
    text = inspect.getdoc(value) or ""
    assert text.split("\n", 1)[0].endswith(".")
    assert not unexplained(value, text)
    if inspect.isfunction(value) and returns_value(value):
        assert section(text, "Returns", "Yields")


@pytest.mark.parametrize("name", METHODS)
def test_public_methods_explain_their_arguments(name: str) -> None:
    value = METHODS[name]
    owner, method = name.rsplit(".", 1)
    text = inspect.getdoc(getattr(NAMES[owner], method)) or ""
    assert text.split("\n", 1)[0].endswith(".")
    assert not unexplained(value, text)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_public_names_have_an_example(name: str) -> None:
    value = DOCUMENTED[name]
    if getattr(value, "_is_protocol", False):
        pytest.skip("a protocol is not called")
    assert ">>>" in (inspect.getdoc(value) or "")


def test_the_checks_can_fail() -> None:
    def halve(value: float, digits: int) -> float:
        """Return half a value.

        Args:
            value: The value.
        """
        return round(value / 2, digits)

    assert unexplained(halve, inspect.getdoc(halve) or "") == ["digits"]
    assert not section(inspect.getdoc(halve) or "", "Returns")
