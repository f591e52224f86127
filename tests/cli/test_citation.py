"""`CITATION.cff` is complete and valid, and `mechdesign --cite` prints BibTeX that agrees with it."""

from __future__ import annotations

import copy
import datetime
import re
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md

yaml = pytest.importorskip("yaml", reason="PyYAML, which the documentation needs, is not installed")

PROJECT = Path(__file__).parents[2]
PLACES = {"article": "journal", "conference-paper": "collection-title"}
DOI = re.compile(r"10\.\d{4,9}/[\w.()/;:-]+")


def read_cff():
    """Return the file with every value as a text, as the schema of the format wants versions and dates."""
    return yaml.load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"), Loader=yaml.BaseLoader)


def problems(cff):
    """Return what of the Citation File Format 1.2.0 the file lacks or breaks."""
    found = []
    known = {
        "cff-version", "message", "title", "type", "version", "date-released", "license", "abstract", "keywords",
        "authors", "references",
    }  # fmt: skip
    found += [f"{key} is missing" for key in known - set(cff)] + [f"{key} is unknown" for key in set(cff) - known]
    if cff.get("cff-version") != "1.2.0":
        found.append("cff-version")
    if cff.get("type") not in ("software", "dataset"):
        found.append("type")
    try:
        datetime.date.fromisoformat(cff.get("date-released", ""))
    except ValueError:
        found.append("date-released")
    for index, entry in enumerate(cff.get("references", [])):
        for key in ("type", "title", "authors", "year"):
            if not entry.get(key):
                found.append(f"references[{index}].{key}")
        if not entry.get(PLACES.get(entry.get("type"), "")):
            found.append(f"references[{index}] names no journal or conference")
        if "doi" in entry and not DOI.fullmatch(entry["doi"]):
            found.append(f"references[{index}].doi")
        if "doi" not in entry and "identifiers" not in entry:
            found.append(f"references[{index}] has no identifier")
        found += [
            f"references[{index}].authors"
            for person in entry.get("authors", [])
            if not {"name"} <= set(person) and not {"family-names", "given-names"} <= set(person)
        ]
    return found


def parse_bibtex(text):
    """Return the entries of BibTeX: for each its fields, with its kind."""
    entries = []
    for kind, body in re.findall(r"^@(\w+)\{\w+,\n(.*?)^\}", text, flags=re.M | re.S):
        fields = re.findall(r"^  (\w+) *= \{(.*?)\},?\n(?=  \w+ *=|\Z)", body, flags=re.M | re.S)
        entries.append({"kind": kind, **{name: " ".join(value.split()) for name, value in fields}})
    return entries


def test_the_file_is_complete_and_valid():
    assert problems(read_cff()) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda cff: cff.pop("message"), "message is missing"),
        (lambda cff: cff.update({"cff-version": "1.1.0"}), "cff-version"),
        (lambda cff: cff.update({"date-released": "2026-13-01"}), "date-released"),
        (lambda cff: cff.update({"type": "program"}), "type"),
        (lambda cff: cff.update({"autors": []}), "autors is unknown"),
        (lambda cff: cff["references"][0].pop("year"), "references[0].year"),
        (lambda cff: cff["references"][0].update(doi="http://x"), "references[0].doi"),
        (lambda cff: cff["references"][0].pop("doi"), "references[0] has no identifier"),
        (lambda cff: cff["references"][1].pop("journal"), "references[1] names no journal or conference"),
        (lambda cff: cff["references"][1]["authors"][0].pop("given-names"), "references[1].authors"),
    ],
)
def test_a_wrong_file_is_found(change, found):
    cff = copy.deepcopy(read_cff())
    change(cff)
    assert problems(cff) == [found]


def test_bibtex_agrees_with_the_file():
    cff = read_cff()
    software, *papers = parse_bibtex(run("--cite").stdout)
    assert software["title"] == cff["title"]
    assert software["author"].strip("{}") == cff["authors"][0]["name"]
    assert (software["version"], software["license"]) == (cff["version"], cff["license"])
    assert cff["version"] == md.__version__
    assert software["year"] == cff["date-released"][:4]
    assert len(papers) == len(cff["references"]) == 5
    for paper, entry in zip(papers, cff["references"], strict=True):
        assert paper["title"] == entry["title"]
        people = [f"{each['family-names']}, {each['given-names']}" for each in entry["authors"]]
        assert paper["author"] == " and ".join(people)
        assert paper["year"] == entry["year"]
        assert paper.get("doi") == entry.get("doi")
        assert paper.get("journal") == entry.get("journal")
        assert paper.get("booktitle") == entry.get("collection-title")
        pages = f"{entry['start']}--{entry['end']}" if "start" in entry else None
        assert paper.get("pages") == pages
        assert (paper.get("volume"), paper.get("number")) == (entry.get("volume"), entry.get("issue"))
        if "identifiers" in entry:
            assert f"arXiv:{paper['eprint']}" == entry["identifiers"][0]["value"]


def test_the_comparison_reads_every_field():
    text = "@article{a,\n  author  = {A, B and\n            C, D},\n  title = {{T} {x}},\n  year = {2020}\n}\n"
    assert parse_bibtex(text) == [{"kind": "article", "author": "A, B and C, D", "title": "{T} {x}", "year": "2020"}]
