"""`CITATION.cff` is valid, and `mechdesign --cite` prints BibTeX that agrees with it."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import pytest
from cli_examples import well

import mechdesign as md

yaml = pytest.importorskip("yaml", reason="PyYAML, which the documentation needs, is not installed")

FILE = Path(__file__).parents[2] / "CITATION.cff"
KEYS = {
    "cff-version", "message", "title", "type", "version", "date-released", "license", "abstract", "keywords",
    "authors", "references",
}  # fmt: skip


def test_the_file_is_valid_and_bibtex_agrees_with_it() -> None:
    # Every value is a text, as the schema of the format wants versions and dates.
    cff: dict[str, Any] = yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)
    assert set(cff) == KEYS
    assert (cff["cff-version"], cff["type"], cff["version"]) == ("1.2.0", "software", md.__version__)
    datetime.date.fromisoformat(cff["date-released"])
    for entry in cff["references"]:
        assert entry["type"] in ("article", "conference-paper")
        assert re.fullmatch(r"10\.\d{4,9}/[\w.()/;:-]+", entry.get("doi", "10.1000/x")), entry
        assert "doi" in entry or "identifiers" in entry, entry
        assert all({"family-names", "given-names"} <= set(person) for person in entry["authors"]), entry
    said = " ".join(well("--cite").stdout.split())
    for entry in (cff, *cff["references"]):
        for key in ("title", "version", "license", "year", "doi", "journal", "collection-title", "volume"):
            assert entry.get(key, "") in said, (entry["title"], key)
