"""What a command found, and the one printer of it: tables for people, or JSON for programs, of the same facts."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mechdesign.certify._texts import escape
from mechdesign.cli._console import progress

if TYPE_CHECKING:
    from rich.console import Console

# A file or a pipe has no width; rich would cut tables at 80 characters.
_WIDTH = 120
# The most rows of a table for people.
_MOST_ROWS = 60


@dataclass(frozen=True)
class Shown:
    """A value, and its text in tables, such as a rounded number with its unit."""

    value: object
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Found:
    """What a command found.

    Attributes:
        said: The result in one sentence.
        facts: The facts by name, which is an identifier. A fact is a value or a tuple of values, a list of sentences, a
            mapping (a table of two columns), a list of mappings (a table with a row for each), or a mapping of mappings
            (a table with a column for each).
        code: The exit code.
        text: A document, such as a specification, which is printed as it is.
    """

    said: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    code: int = 0
    text: str | None = None


class _File(click.Path):
    """The type of paths: an empty one, which would be the current folder, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx) if value != "" else self.fail("is empty", param, ctx)


FILE = _File(path_type=Path)


class _Command(click.Command):
    """A command that takes ``--json``, an option of the program, also after its name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        if "--json" in args[:end]:
            ctx.meta["mechdesign.json"] = True
            args = [*(each for each in args[:end] if each != "--json"), *args[end:]]
        return super().parse_args(ctx, args)


def command(function: Callable[..., Found]) -> click.Command:
    """Return the command of a function: it prints what was found, with ``--json`` as JSON, and ends with its code.

    >>> @command
    ... @click.argument("number", type=int)
    ... def double(number: int) -> Found:
    ...     return Found(f"{number} doubled.", {"doubled": 2 * number})
    >>> double(["4", "--json"], standalone_mode=False)
    {
      "said": "4 doubled.",
      "doubled": 8
    }
    0
    """

    @functools.wraps(function)
    def run(**given: Any) -> None:
        with progress():
            found = function(**given)
        show(found, wants_json())
        click.get_current_context().exit(found.code)

    return click.command(cls=_Command, epilog="With --json it prints the same facts as JSON.")(run)


def wants_json() -> bool:
    """Return whether the current command prints JSON."""
    return "mechdesign.json" in click.get_current_context().meta


def show(found: Found, as_json: bool = False) -> None:
    """Print what a command found, as tables or as JSON, if it found anything; unprintable characters are escaped."""
    if found.text is None and not found.said and not found.facts:
        return
    if as_json:
        said = {"said": found.said or None, "text": found.text}
        click.echo(_json({name: text for name, text in said.items() if text is not None} | dict(found.facts)))
    elif found.text is not None:
        click.echo(escape(found.text, lines=True), nl=False)
    else:
        click.echo(_tables(found), nl=False)


def _json(value: object) -> str:
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False)
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text)


def _plain(value: Any) -> object:
    """Return a value as JSON can hold it: "inf" and "-inf" are infinite numbers, null is no value."""
    if isinstance(value, Shown):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def _tables(found: Found) -> str:
    """Return the sentence and the facts as text."""
    console = _console()
    with console.capture() as captured:
        if found.said:
            _print_sentence(console, found.said)
        for are_values, facts in groupby(found.facts.items(), lambda each: _is_value(each[1])):
            if are_values:
                console.print()
                _print_facts(console, dict(facts))
                continue
            for name, fact in facts:
                if fact:
                    console.print(f"\n{escape(_head(name))}", style="bold")
                    _print_fact(console, fact, is_copied=name == "next")
    return _without_blanks(captured.get().removeprefix("\n"))


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDTH
    return console


def _without_blanks(text: str) -> str:
    return "\n".join(map(str.rstrip, text.split("\n")))


def _is_value(fact: object) -> bool:
    return not isinstance(fact, Mapping | list)


def _head(name: str) -> str:
    return name.replace("_", " ").replace("epsilon", "ε") if name.isidentifier() else name


def _print_sentence(console: Console, text: str, *, is_copied: bool = False) -> None:
    """Print a sentence, of which a terminal breaks the lines between words unless it is a command to be copied."""
    console.print(escape(text), soft_wrap=is_copied or not console.is_terminal)


def _print_fact(console: Console, fact: Any, *, is_copied: bool) -> None:
    if isinstance(fact, Mapping) and any(isinstance(each, Mapping) for each in fact.values()):
        names = dict.fromkeys(name for each in fact.values() for name in each)
        rows = [(_head(name), *(each.get(name, "–") for each in fact.values())) for name in names]
        _print_table(console, ("", *fact), rows)
    elif isinstance(fact, Mapping):
        _print_facts(console, fact)
    elif any(isinstance(each, Mapping) for each in fact):
        heads = list(dict.fromkeys(name for row in fact for name in row))
        _print_table(console, [_head(each) for each in heads], [[row.get(each, "") for each in heads] for row in fact])
    else:
        for each in fact:
            _print_sentence(console, _cell(each), is_copied=is_copied)


def _print_facts(console: Console, facts: Mapping[str, object]) -> None:
    """Print the facts that have a value."""
    _print_table(console, ("", ""), [(_head(name), value) for name, value in facts.items() if value is not None])


def _print_table(console: Console, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", show_header=any(heads))
    for index, head in enumerate(heads):
        numbers = all(_is_number(row[index]) for row in rows) and bool(head)
        shown.add_column(escape(head), justify="right" if numbers else "left", overflow="fold")
    for row in rows[:_MOST_ROWS]:
        shown.add_row(*(escape(_cell(each)) for each in row))
    console.print(shown)
    if len(rows) > _MOST_ROWS:
        _print_sentence(console, f"… and {len(rows) - _MOST_ROWS} more rows, which --json prints")


def _is_number(value: object) -> bool:
    value = value.value if isinstance(value, Shown) else value
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    """Return the text of a value; numbers have 4 significant digits, JSON has all."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # Imported late, because printing JSON needs no module of the model.
        from mechdesign.model._words import short

        return short(value, 4)
    if hasattr(value, "tolist"):
        return _cell(value.tolist())
    return ", ".join(_list(value)) if isinstance(value, list | tuple) else str(value)


def _list(values: Iterable[object]) -> list[str]:
    return [_cell(each) for each in values]
