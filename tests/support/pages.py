"""Run the code on a page of the documentation, block by block, in the order of the page.

A ``python`` block is executed, a ``pycon`` block is a doctest with the same names, a ``console`` block holds commands
after ``$`` and, below each, what it prints (`...` stands for anything, as in doctests; nothing means that the output is
not shown). A ``{code-block}`` with a ``:caption:`` is a file of that name. Other blocks are only read.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner
from markdown_it import MarkdownIt

from mechdesign.cli import main

_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it is, if any, its text, and the line it starts on."""

    language: str
    caption: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page, those inside notes included."""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type != "fence":
            continue
        text, caption = token.content, ""
        language = token.info.strip()
        if language.startswith("{code-block}"):
            language = language.removeprefix("{code-block}").strip()
            while found := re.match(r":(\w+): *(.*)\n\n?", text):
                caption = found[2] if found[1] == "caption" else caption
                text = text[found.end() :]
        assert token.map is not None
        yield Block(language, caption, text, token.map[0] + 1)


def run_page(page: Path) -> int:
    """Run every block of a page in the current folder; return how many had something to run."""
    names: dict[str, object] = {"__name__": page.stem}
    ran = 0
    for block in blocks(page):
        place = f"{page.name}:{block.line}"
        if block.caption:
            Path(block.caption).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
        elif block.language == "pycon":
            _doctest(block, names, place)
        elif block.language == "console":
            _console(block, place)
        else:
            continue
        ran += 1
    return ran


def _doctest(block: Block, names: dict[str, object], place: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, place, place, block.line)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=_OPTIONS, verbose=False)
    failed = runner.run(test, out=said.append, clear_globs=False).failed
    names.update(test.globs)
    assert not failed, "".join(said)


def _console(block: Block, place: str) -> None:
    for command, shown in re.findall(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", block.text, flags=re.M):
        wanted, echo = re.subn(r"; echo \$\?$", "", command.replace("\\\n", " "))
        code, printed = _run(shlex.split(wanted))
        if echo:
            printed += f"{code}\n"
        else:
            assert code == 0, f"{place}: {wanted} ended with {code}\n{printed}"
        same = doctest.OutputChecker().check_output(shown, printed, _OPTIONS)
        assert not shown.strip() or same, f"{place}: {wanted} printed\n{printed}\ninstead of\n{shown}"


def _run(words: list[str]) -> tuple[int, str]:
    if words[0] == "mechdesign":
        result = CliRunner().invoke(main, words[1:], terminal_width=100)
        return result.exit_code, result.output
    assert words[0] == "python", f"{words[0]} is not run on pages: use a bash block"
    done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr
