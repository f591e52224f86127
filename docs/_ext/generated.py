"""Parts of pages that the package itself writes: the help of each command, and the grammar of specifications."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def help_text(command: click.Command, name: str) -> str:
    """Return what ``--help`` prints."""
    from mechdesign.cli import main

    shown: dict[str, Any] = {"terminal_width": 78, "max_content_width": 78, **main.context_settings}
    with click.Context(command, info_name=name, **shown) as context:
        return command.get_help(context)


class CommandHelp(SphinxDirective):
    """``{command-help} NAMES`` shows the help of the named commands, each under a heading."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return a section for each command."""
        from mechdesign.cli import main

        found: list[nodes.Node] = []
        with click.Context(main) as context:
            for name in self.arguments[0].split():
                command = main.get_command(context, name)
                assert command is not None
                section = nodes.section(ids=[f"mechdesign-{name}"], names=[f"mechdesign {name}"])
                self.state.document.note_explicit_target(section)
                section += nodes.title("", "", nodes.literal("", f"mechdesign {name}"))
                inner = command.commands if isinstance(command, click.Group) else {}
                listed = {name: command} | {f"{name} {each}": own for each, own in inner.items()}
                for words, own in listed.items():
                    self.note_options(f"mechdesign {words}", own, section["ids"][0])
                    section += nodes.literal_block("", help_text(own, f"mechdesign {words}"), language="text")
                found.append(section)
        return found

    def note_options(self, program: str, command: click.Command, anchor: str) -> None:
        """Let ``{option}`mechdesign design --tolerance``` lead to the section of a command."""
        domain = self.env.get_domain("std")
        for name in (name for each in command.params if isinstance(each, click.Option) for name in each.opts):
            domain.add_program_option(program, name, self.env.docname, anchor)  # type: ignore[attr-defined]


Schema = Mapping[str, Any]


def grammar(schema: Schema) -> Iterator[tuple[str, str]]:
    """Yield a heading and its Markdown for the top level and for every table of a specification."""
    yield "Top level", _keys(schema)
    for name, table in schema["$defs"].items():
        note = table.get("description", "")
        alternatives = [form["required"] for form in table.get("oneOf", ()) if "required" in form]
        if alternatives:
            note += "\n\nExactly one of " + ", ".join(
                " with ".join(f"`{key}`" for key in keys) for keys in alternatives
            )
            note += "."
        yield name, f"{note}\n\n{_keys(table)}"


def _keys(table: Schema) -> str:
    lines = ["| key | value | meaning |", "| --- | --- | --- |"]
    for key, value in table["properties"].items():
        notes = [value.get("description", "")]
        if key in table.get("required", ()):
            notes.append("Required.")
        elif value.get("default") not in (None, "", {}):
            notes.append(f"Default: `{json.dumps(value['default'], ensure_ascii=False)}`.")
        lines.append(f"| `{key}` | {_kind(value)} | {' '.join(notes)} |".replace("\n", " "))
    return "\n".join(lines) + "\n"


def _kind(value: Schema) -> str:
    """Return what a value may be, in words; tables are links to their own headings."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"{{ref}}`{name} <table {name.lower()}>`"
    for choices in ("anyOf", "oneOf"):
        if choices in value:
            return " or ".join(dict.fromkeys(_kind(choice) for choice in value[choices]))
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in value["enum"])
    if value.get("type") == "array" and value.get("items"):
        return f"list of {_kind(value['items'])}"
    found = value.get("type", "any")
    words = found if isinstance(found, list) else [found]
    return " or ".join(
        {"object": "table", "string": "text", "integer": "whole number"}.get(word, word) for word in words
    )


class Grammar(SphinxDirective):
    """``{specification-grammar}`` shows the tables of a specification, with their keys, from the JSON schema.

    Its argument is empty for channels, or ``release`` for releases from tables.
    """

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a section for each table."""
        found: list[nodes.Node] = []
        both = schemas()
        shown = both["release" if self.arguments else "specification"]
        # Tables that both have are shown once.
        known = both["specification"]["$defs"] if self.arguments else {}
        for name, text in grammar(shown):
            if name in known:
                continue
            label = f"{'release' if self.arguments and name not in shown['$defs'] else 'table'} {name.lower()}"
            section = nodes.section(ids=[label.replace(" ", "-")], names=[label])
            self.state.document.note_explicit_target(section)
            section += nodes.title("", name)
            section += self.parse_text_to_nodes(text)
            found.append(section)
        return found


def schemas() -> dict[str, Schema]:
    """Return the schema of specifications of channels, and of releases from tables."""
    from mechdesign.specification._document import schema
    from mechdesign.specification._table_specification import ReleaseDocument

    return {"specification": schema(), "release": schema(ReleaseDocument)}


def write_schema(app: Sphinx, error: Exception | None) -> None:
    """Write the JSON schemas beside the pages, for editors to use."""
    if error is None and app.builder.format == "html":
        for name, found in schemas().items():
            text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
            (Path(app.outdir) / f"{name}.schema.json").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, and what is written after the pages."""
    app.add_directive("command-help", CommandHelp)
    app.add_directive("specification-grammar", Grammar)
    app.connect("build-finished", write_schema)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
