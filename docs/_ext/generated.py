"""Parts of pages that the package itself writes: the help of each command, and the JSON schema of specifications."""

from __future__ import annotations

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


def help_text(command: click.Command, name: str) -> str:
    """Return what ``--help`` prints."""
    with click.Context(command, info_name=name, terminal_width=92, max_content_width=92) as context:
        return command.get_help(context)


class CommandHelp(SphinxDirective):
    """``{command-help}`` shows the help of every command, each under a heading of its own."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each command."""
        from mechdesign.cli import main

        found: list[nodes.Node] = []
        with click.Context(main) as context:
            for name in main.list_commands(context):
                command = main.get_command(context, name)
                assert command is not None
                section = nodes.section(ids=[f"mechdesign-{name}"], names=[f"mechdesign {name}"])
                self.state.document.note_explicit_target(section)
                section += nodes.title("", "", nodes.literal("", f"mechdesign {name}"))
                section += nodes.literal_block("", help_text(command, f"mechdesign {name}"), language="text")
                found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
