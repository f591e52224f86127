"""Every example on the pages runs as it stands, in the session `docs` of nox; every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import blocks, run_page

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
CODE = re.compile(r"^(?:```|~~~)(?:\{code-block\} )?(?:python|pycon|console)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS).with_suffix(""))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("page", [page for page in PAGES if CODE.search(page.read_text("utf-8"))], ids=name_of)
def test_the_code_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(page)


def test_every_page_with_code_is_run() -> None:
    run = {page for page in PAGES if CODE.search(page.read_text("utf-8"))}
    sample = [page for page in PAGES if page.parent.name in ("start", "howto")]
    assert len(sample) > 20
    for page in sample:
        assert (page in run) == any(block.language in ("python", "pycon", "console") for block in blocks(page)), page


def dead_links(page: Path) -> list[str]:
    """Return the targets of links and pictures of a page that are files of the project, and do not exist."""
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"^```\{(?:literalinclude|figure|image)\} (\S+)", text, flags=re.M)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S))
    files = [target for target in (*shown, *links) if not re.match(r"[a-z]+:", target)]
    return [target for target in files if not (page.parent / target).exists()]


def test_every_link_leads_somewhere(tmp_path: Path) -> None:
    pages = [*PAGES, *PROJECT.glob("*.md")]
    assert len(pages) > 60
    assert {str(page): dead for page in pages if (dead := dead_links(page))} == {}
    (page := tmp_path / "page.md").write_text("[a](page.md#b), [c](gone.md#d) and [e](https://e.org)\n")
    assert dead_links(page) == ["gone.md"]


def test_a_page_with_a_wrong_result_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    for wrong, said in {
        "```python\nassert 1 == 2, 'one'\n```": "one",
        "```pycon\n>>> 1 + 1\n3\n```": "Expected",
        "```console\n$ mechdesign nothing\n```": "ended with 2",
        "```console\n$ mechdesign --version\nmechdesign, version 99\n```": "instead of",
    }.items():
        page.write_text(f"{wrong}\n")
        with pytest.raises(AssertionError, match=said):
            run_page(page)
