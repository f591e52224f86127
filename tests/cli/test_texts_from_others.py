"""Titles, labels and names from others: no command lets them draw on a terminal, end a page or be computed."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from cli_examples import assert_wrong_usage, leave_pictures_blank, run, well, write

import mechdesign as md
from mechdesign.certify import _bundle as bundle
from mechdesign.cli import _found as printer
from mechdesign.data.matrices import read_labelled
from mechdesign.data.table import read_table as read_texts
from mechdesign.errors import InputError, SpecificationError
from mechdesign.model._origin import Origin
from mechdesign.specification._read import Source
from mechdesign.specification._steps import ReleaseTable, read_steps
from mechdesign.specification._table_specification import parse
from mechdesign.synthesis import _bundle as sets
from mechdesign.synthesis import _design as designing
from mechdesign.synthesis.formats._registry import FORMATS

BAD = "\x1b[2J\r\x08\x07\x9b31m\u202e\u2066\nhome verifies.\n\u2028"
SCRIPT = "</script><script>alert(1)</script>\u2028"


def made(labels: list[str], title: str = "") -> md.Design:
    points = np.arange(len(labels))[:, None].astype(float)
    domain = md.Domain.from_points(np.hstack((points, points)), labels, "km")
    cost = md.distances.euclidean(domain)
    return md.design(
        md.Problem(md.Prior.uniform(len(labels)), cost, [md.MetricPrivacy(1, cost)], "expected", domain, domain, title)
    )


def leave_checks_out(patched: pytest.MonkeyPatch) -> None:
    """Leave the checks out, as somebody else may."""
    for module, name in (
        (bundle, "require_plain_texts"),
        (sets, "require_plain_names"),
        (designing, "require_plain_names"),
    ):
        patched.setattr(module, name, lambda *_, **__: None)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bundle of somebody else, true in all that is proved."""
    origin = Origin(f"text{BAD}", f"prior{BAD}", {f"file{BAD}": BAD}, (f"note{BAD}",), {f"name{BAD}": BAD})
    folder = tmp_path_factory.mktemp("hostile") / "city"
    with pytest.MonkeyPatch.context() as patched:
        leave_checks_out(patched)
        leave_pictures_blank(patched)
        md.save(replace(made([f"home{BAD}", f"pub{BAD}", "'=x"], f"title{BAD}"), origin=origin), folder)
    return folder


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_checks_out(monkeypatch)


@pytest.fixture
def hostile(written: Path, unchecked: None) -> Path:
    """Return the bundle where nothing checks what is read of it."""
    return written


COMMANDS = [
    ("verify", "{}"), ("inspect", "{}"), ("inspect", "{}", "{}"), ("audit", "{}"), ("attack", "{}"),
    ("sample", "{}", "--secret", "0", "-n", "20"), ("sample", "{}", "--at", "0,0"),
    ("sample", "{}", "--secret", BAD), ("verify", BAD), (BAD,), ("design", f"--{BAD}"), ("examples", BAD),
]  # fmt: skip


def test_no_command_writes_what_a_terminal_obeys(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in COMMANDS:
        said = run(*(part.format(hostile) if part == "{}" else part for part in command))
        for text in (said.stdout, said.stderr):
            assert text.replace("\n", "").isprintable(), command
            assert not any(line.startswith(("home verifies", "home: every claim")) for line in text.splitlines())
    # Without the printer that escapes them, the marks would be there.
    monkeypatch.setattr(printer, "escape", lambda text, **_: text)
    assert "\u202e" in run("inspect", hostile).stdout


def test_json_stays_json_and_nothing_is_exported(hostile: Path) -> None:
    for command in ("inspect", "verify", "audit"):
        said = run(command, hostile, "--json").stdout
        assert said.replace("\n", "").isprintable(), command
        assert (f"title{BAD}" in json.loads(said).values()) == (command == "inspect")
    for form in ("csv", "json", "js", "geojson"):
        assert form in FORMATS
        assert_wrong_usage({f"export {hostile} --format {form}": "contains U+001B"})


def test_designs_and_bundles_are_not_made_with_them(tmp_path: Path, blank_pictures: None) -> None:
    for labels, title, path in ((["a", "b"], "t\x1b", "title"), (["a", "b\u202e"], "", r"secrets.labels\[1\]")):
        with pytest.raises(InputError, match=f"^{path}: contains U"):
            made(labels, title)
    found = made(["a", "b"])
    renamed = md.Problem(found.problem.prior, found.problem.cost, found.problem.requirements, title="t\x9b")
    with pytest.raises(InputError, match=r"^title: contains U\+009B"):
        sets.encode(renamed, found.channel, found.certificate, found.evidence())
    # Joiners, accents and letters from right to left stand in ordinary names.
    md.save(made(["\u05d0\u200d", "e\u0301"], "caf\u00e9 \u2066"[:-1]), tmp_path / "city")
    assert "\\u200d" in run("sample", tmp_path / "city", "--secret", "0", "-n", "50").stdout


SPEC = """title = "{title}"
[domain]
{domain}
[prior]
uniform = true
[cost]
distance = "euclidean"
[[privacy]]
kind = "metric"
epsilon = 1
distance = "euclidean"
"""
PLACES = 'csv = { path = "p.csv", x = "x", y = "y", label = "l" }'
LINE = 'points = [[0, 0], [1, 0]]\nlabels = ["home", "{}"]'


SPECIFICATIONS = {
    "escape": (SPEC.format(title="a\\u001b", domain="line = 3"), "title: contains U+001B"),
    "line": (SPEC.format(title="a\\n", domain="line = 3"), "title: contains U+000A"),
    "direction": (SPEC.format(title="", domain=LINE.format("b\\u202e")), "labels[1]: contains U+202E"),
    "tab": (SPEC.format(title="", domain=LINE.format("b\\t")), "labels[1]: contains U+0009"),
    "unit": (SPEC.format(title="", domain='line = 3\nunit = "k\\u0007"'), "unit: contains U+0007"),
    "key": (SPEC.format(title="", domain="line = 3") + '[solver.options]\n"a\\u009b" = 1\n', "contains U+009B"),
    "table": (SPEC.format(title="", domain=PLACES), "line 3, column l contains U+001B"),
}


def test_specifications_are_refused_before_anything_is_solved() -> None:
    write("x,y,l\n0,0,home\n1,0,b\x1b[2J\n", "p.csv")
    lines = {}
    for name, (text, says) in SPECIFICATIONS.items():
        write(text, f"{name}.toml")
        write(text + '[sweep]\n"privacy.0.epsilon" = [1, 2]\n', f"{name}-sweep.toml")
        for line in (f"design {name}.toml", f"policy {name}.toml", f"sweep {name}-sweep.toml"):
            lines[line] = says
    assert_wrong_usage(lines)


def test_policies_of_tables_are_refused_too() -> None:
    domain = 'table.person = false\ndomain.attributes."{}" = {{ values = ["f", "{}"] }}\npolicy.kind = "full"\n'
    domain += 'release = {{ kind = "histogram", epsilon = 1 }}\n'
    assert parse(domain.format("sex", "m\u200d"))
    for name, value in (("s\\u001b", "m"), ("sex", "m\\u202e")):
        with pytest.raises(SpecificationError, match="contains U"):
            parse(domain.format(name, value))
    with pytest.raises(InputError, match="contains U"):
        md.tables.Domain({"sex": ["m\x9b", "f"]})


class Page(HTMLParser):
    """Counts the elements that run something."""

    scripts = 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"


def test_modules_stand_in_pages(tmp_path: Path) -> None:
    md.save(made([SCRIPT, "b", "<!--"], SCRIPT), "city", report=False)
    well("export", "city", "-o", "c.mjs")
    module = (tmp_path / "c.mjs").read_text(encoding="utf-8")
    page = Page()
    page.feed(f'<script type="module">{module}</script>')
    assert page.scripts == 1
    assert not {"\u2028", "\u2029"} & set(module)
    data = next(line for line in module.splitlines() if line.startswith("const TEXT = "))
    assert "<" not in data
    inner = json.loads(json.loads(data.removeprefix("const TEXT = ").rstrip(";")))
    assert inner["labels"]["secrets"] == [SCRIPT, "b", "<!--"]
    assert inner["title"] == SCRIPT


NAMES = ["=1+1", "+5", "@x", "-a", "'s-Gravenhage", "'=1", "home", "-1,2", "\u05d0"]


def test_every_table_shields_labels_and_every_reader_takes_that_away(tmp_path: Path) -> None:
    found = made(NAMES)
    md.save(found, tmp_path / "city", report=False)
    table = tmp_path / "city" / "channel.csv"
    with table.open(encoding="utf-8", newline="") as lines:
        first = [row[0] for row in csv.reader(lines)]
    assert first == ["secret", "'=1+1", "+5", "'@x", "'-a", "''s-Gravenhage", "''=1", "home", "-1,2", "\u05d0"]
    assert list(read_labelled(table).rows) == NAMES
    assert read_texts(table, ["secret"]).texts("secret") == NAMES
    run("export", tmp_path / "city", "-o", tmp_path / "c.csv")
    assert list(read_labelled(tmp_path / "c.csv").rows) == NAMES
    assert md.verify(tmp_path / "city").holds
    (tmp_path / "trace.csv").write_text("state\n" + "\n".join(first[1:-2]) + "\n", encoding="utf-8")
    assert read_steps(tmp_path / "trace.csv", ReleaseTable(), Source(), found.problem.secrets).states.tolist() == list(
        range(len(NAMES) - 2)
    )
    (tmp_path / "c.txt").write_text("user,latitude,longitude\n'=ann,1,-2\n", encoding="utf-8")
    assert md.data.read_checkins(tmp_path / "c.txt")[0].user == "=ann"
    run("sample", tmp_path / "city", "--secret", "0", "-n", "60", "-o", tmp_path / "drawn.csv")
    drawn = csv.DictReader((tmp_path / "drawn.csv").read_text().splitlines())
    assert {row["observable"] for row in drawn} <= set(first[1:])


def test_releases_from_tables_keep_their_labels(tmp_path: Path, blank_pictures: None) -> None:
    domain = md.tables.Domain({"=name": ["=1", "+2", "'a", "b"]})
    released = md.tables.Histogram().release(["=1", "+2", "'a"], md.tables.Policy.full(domain), epsilon=1)
    md.save(released, tmp_path)
    assert (tmp_path / "answers.csv").read_text(encoding="utf-8").splitlines()[1].startswith("'=1,")
    again = md.tables.load(tmp_path)
    assert {name: labels.tolist() for name, labels in again.labels.items()} == {"=name": ["=1", "+2", "'a", "b"]}
