"""Every how-to keeps to the template: one task, few words, lines that fit, real output, and what it guarantees."""

import re

import pytest
from pages import blocks
from test_pages import DOCS, name

PAGES = sorted(page for page in (DOCS / "howto").glob("*.md") if page.stem != "index")
# Pages that are still longer guides. The list only shrinks.
TO_DO = {"audit", "cache", "trace_history"}
DONE = [page for page in PAGES if page.stem not in TO_DO]
MAX_WORDS = 600
MAX_COLUMNS = 88
PARTS = ("**Use it when**", "\n## What is guaranteed\n", "\n## See also\n")


def words(page):
    """Count the words of prose: no code, no addresses of links."""
    text = re.sub(r"^(```+)[^`].*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return len(re.findall(r"\w+", re.sub(r"\]\([^)]*\)", "]", text)))


def outputs(page):
    """Yield the lines of output that a page shows."""
    previous = None
    for block in blocks(page):
        lines = block.text.splitlines()
        if block.language == "pycon":
            # The indented dots of a traceback stand for its stack, as in every doctest.
            yield from (line for line in lines if line.strip(" .") and not line.startswith((">>>", "... ")))
        elif block.language == "console":
            yield from (line for line in lines if line.strip() and not line.startswith("$ "))
        elif block.language == "text" and previous == "python":
            yield from (line for line in lines if line.strip())
        previous = block.language


def empty(line):
    return re.sub(r"[\s(),\[\]]|True|False|None|\.\.\.", "", line) == ""


def test_the_list_of_pages_still_to_do_names_pages():
    assert {page.stem for page in PAGES} >= TO_DO


@pytest.mark.parametrize("page", DONE, ids=name)
def test_a_page_has_at_most_600_words(page):
    assert words(page) <= MAX_WORDS


@pytest.mark.parametrize("page", DONE, ids=name)
def test_a_page_has_the_parts_of_the_template_in_order(page):
    text = page.read_text(encoding="utf-8")
    places = [text.find(part) for part in PARTS]
    assert -1 not in places, dict(zip(PARTS, places, strict=True))
    assert places == sorted(places)


@pytest.mark.parametrize("page", DONE, ids=name)
def test_lines_of_code_and_output_fit(page):
    for block in blocks(page):
        if block.language.startswith("{"):
            continue
        for line in block.text.splitlines():
            assert len(line) <= MAX_COLUMNS, (block.line, line)


@pytest.mark.parametrize("page", DONE, ids=name)
def test_comments_have_a_line_of_their_own(page):
    for block in blocks(page):
        if block.language in ("python", "toml"):
            for line in block.text.splitlines():
                assert not re.search(r"\S.*\s#\s", line) or re.match(r"\s*#", line), (block.line, line)


def test_nine_of_ten_lines_of_output_say_something():
    shown = [(page.stem, line) for page in DONE for line in outputs(page)]
    mute = [each for each in shown if empty(each[1])]
    assert len(mute) <= len(shown) / 10, mute


def test_the_checks_can_fail(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("word " * 601 + "\n\n```python\nx = 1\n```\n\n```text\nTrue\n```\n", encoding="utf-8")
    assert words(page) == 601
    assert [line for line in outputs(page) if empty(line)] == ["True"]
    assert not any(map(empty, ("(True, 0.5)", "a ... b", "12")))
    page.write_text("```pycon\n>>> 1 / 0\nTraceback (most recent call last):\n    ...\n```\n", encoding="utf-8")
    assert list(outputs(page)) == ["Traceback (most recent call last):"]
