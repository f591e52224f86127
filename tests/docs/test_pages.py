"""Every example on the pages of the documentation runs as it stands, and every link between files leads somewhere."""

import re
from pathlib import Path

import pytest
from pages import blocks, run_page

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
WITH_CODE = [page for page in PAGES if any(block.language in ("python", "pycon", "console") for block in blocks(page))]


def name(page):
    return str(page.relative_to(DOCS).with_suffix(""))


@pytest.mark.parametrize("page", WITH_CODE, ids=name)
def test_the_code_on_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # A page about another package is run where that is installed.
    for package in re.findall(r"^% needs: (\w+)$", page.read_text(encoding="utf-8"), flags=re.M):
        pytest.importorskip(package)
    assert run_page(page)


@pytest.mark.parametrize("page", [*PAGES, *PROJECT.glob("*.md")], ids=lambda page: page.stem)
def test_links_between_files_lead_somewhere(page):
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), target
    for target in re.findall(
        r"^```\{(?:literalinclude|figure|image)\} (\S+)", page.read_text(encoding="utf-8"), flags=re.M
    ):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_are_of_a_kind_that_is_run_or_meant_to_be_read(page):
    known = {"python", "pycon", "console", "bash", "toml", "text", "json", "csv", "js", "html", "c", "bibtex", ""}
    for block in blocks(page):
        assert block.language in known or block.language.startswith("{"), (name(page), block.line, block.language)
        if block.language == "bash":
            for line in block.text.splitlines():
                # Not run here: installing, and measurements that take minutes.
                assert re.match(
                    r"(python3 -m venv|\.venv/bin/|pip install|python benchmarks/|python docs/|git |bash )", line
                )


def test_a_page_with_a_wrong_result_fails(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    for wrong in (
        "```python\nassert 1 == 2\n```",
        "```pycon\n>>> 1 + 1\n3\n```",
        "```console\n$ mechdesign nothing\n```",
    ):
        page.write_text(f"{wrong}\n")
        with pytest.raises(AssertionError):
            run_page(page)
    page.write_text("```console\n$ mechdesign --version\nmechdesign, version 99\n```\n")
    with pytest.raises(AssertionError, match="instead of"):
        run_page(page)
