"""Pages are files that are handed to whatever writes a folder; `md.save` writes values with or without their pages."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from cli_examples import leave_pictures_blank
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import ExportError, InputError, MissingDependencyError, ReportError
from mechdesign.model._origin import Origin
from mechdesign.report import _saving as saving
from mechdesign.solve._contract import Status
from mechdesign.specification._table_specification import parse as parse_table
from mechdesign.synthesis._folders import check_target
from mechdesign.synthesis._result import SolveSummary, write_design
from mechdesign.tables._files import Published, write_release
from mechdesign.traces._released import ReleasedTrace, write_trace

WRITERS = {md.Design: write_design, ReleasedTrace: write_trace, Published: write_release}
WALK = """
domain.grid = { columns = 3, rows = 1, width = 3, height = 1 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, blocks = 3 }]
release.transition = { neighbours = 4 }
"""
TABLE = """
table.person = false
domain.attributes.age = { range = [0, 9] }
policy = { kind = "threshold", theta = 1 }
release = { kind = "histogram", epsilon = 1 }
"""


@pytest.fixture(scope="module")
def design():
    cost = 1 - np.eye(3)
    problem = md.Problem(md.Prior.from_counts([3, 2, 1]), cost, [md.MetricPrivacy(1, cost)], title="Three")
    return replace(md.design(problem), origin=Origin(prior="counted"))


@pytest.fixture
def trace(tmp_path):
    (tmp_path / "t.csv").write_text("state\n0\n1\n")
    return md.specification.parse(WALK).release(tmp_path / "t.csv", seed=1)


@pytest.fixture(scope="module")
def table():
    return parse_table(TABLE).release({"age": [1, 2, 2]}, rng=1)


@pytest.fixture
def blank(monkeypatch):
    """Leave the pictures of pages blank."""
    leave_pictures_blank(monkeypatch)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fails(value):
    raise ValueError("nothing can be drawn")


# --- designs -------------------------------------------------------------------------------------------------------


def test_a_design_comes_back_to_the_last_byte(design, tmp_path):
    write_design(design, tmp_path / "one", files={"note.txt": b"mine"})
    loaded = md.Design.load(tmp_path / "one")
    write_design(loaded, tmp_path / "two", files={"note.txt": b"mine"})
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert loaded.origin == design.origin
    assert loaded.summary == replace(design.summary, message="", tried=loaded.summary.tried)
    assert (loaded.multipliers is None) == (design.multipliers is None)


def test_the_certificate_vouches_for_further_files(design, tmp_path):
    write_design(design, tmp_path, files={"note.txt": b"mine"})
    listed = json.loads((tmp_path / "certificate.json").read_text())["files"]
    assert listed["note.txt"] == hashlib.sha256(b"mine").hexdigest()
    assert md.verify(tmp_path).holds
    # What the next one lacks goes.
    md.save(design, tmp_path, report=False)
    assert "note.txt" not in contents(tmp_path)


@pytest.mark.usefixtures("blank")
def test_a_page_is_a_file_like_others(design, tmp_path):
    md.save(design, tmp_path / "one")
    write_design(design, tmp_path / "two", files={"report.html": saving.html(design).encode()})
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_a_function_gets_the_design_that_is_written(design, tmp_path):
    seen = []

    def note(made):
        seen.append(made)
        return {"note.txt": b"mine"}

    write_design(design, tmp_path / "with", files=note)
    write_design(design, tmp_path / "without", files=note, prior=False)
    assert seen[0] is design
    assert seen[1].problem.prior.tolist() == [1 / 3] * 3
    assert seen[1].multipliers is None
    assert "note.txt" in contents(tmp_path / "without")
    assert md.Design.load(tmp_path / "without").status is Status.STATED


def test_files_with_other_names_or_contents_are_refused(design, table, trace, tmp_path):
    """Names are taken, or some systems take them for one, or they are no plain names; contents are bytes."""
    folder = tmp_path / "out"

    def saves(value, files):
        return lambda: WRITERS[type(value)](value, folder, files=files)

    own = {
        design: ("certificate.json", "channel.npz", "Dual.npz", "channel.csv", "certificate.json."),
        trace: ("released.csv", "release.json", "steps.json", "channels"),
        table: ("answers.csv",),
    }
    taken = [(value, {name: b""}) for value, names in own.items() for name in names]
    taken += [(design, {"A.txt": b"", name: b""}) for name in ("a.txt", "a.txt.")]
    rows = [(value, files, "taken") for value, files in taken]
    for value in own:
        for name in ("../x", "a/b", "/x", "a\\b", ".x", "", "x\n", 3):
            rows.append((value, {name: b""}, "not a plain file name"))
        rows += [(value, files, "") for files in ({"x": "text"}, {"x": None}, {"x": bytearray()}, ["x"], None)]
    assert_refused(Mistake(f"{value} {files}", saves(value, files), "files", said) for value, files, said in rows)
    assert not folder.exists()


def test_summaries_tell_what_provenance_tells():
    summary = SolveSummary(Status.STALLED, "gone", plan="p", seconds=1, iterations=3, tried=("a", "b"))
    again = SolveSummary.from_provenance(summary.provenance())
    assert again == replace(summary, message="")
    strange = {"solver": 3, "iterations": "many", "status": "well", "tried": 1, "numpy": "2"}
    assert SolveSummary.from_provenance(strange) == SolveSummary(Status.STATED)


# --- traces and tables ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("blank")
def test_a_trace_is_its_outputs_and_the_files_that_go_with_them(trace, tmp_path):
    md.save(trace, tmp_path / "bare", report=False)
    assert sorted(contents(tmp_path / "bare")) == ["release.json", "released.csv", "steps.json"]
    write_trace(trace, tmp_path / "more", files={"note.txt": b"mine"})
    assert json.loads((tmp_path / "more" / "release.json").read_text()) == trace.manifest({"note.txt": b"mine"})
    md.save(trace, tmp_path / "page")
    assert contents(tmp_path / "page").keys() == {*contents(tmp_path / "bare"), *saving.pages(trace)}
    assert json.loads((tmp_path / "page" / "release.json").read_text()) == trace.manifest(saving.pages(trace))


@pytest.mark.usefixtures("blank")
def test_a_table_is_its_answers_and_the_files_that_go_with_them(table, tmp_path):
    md.save(table, tmp_path / "bare", report=False)
    assert sorted(contents(tmp_path / "bare")) == ["answers.csv", "release.json"]
    md.save(table, tmp_path / "page")
    assert contents(tmp_path / "page") == contents(tmp_path / "bare") | {"report.html": saving.html(table).encode()}
    # A release without what was read from it is written alike.
    md.save(table.release, tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "bare") | saving.pages(Published(table.release))


def test_what_is_written_stands_although_a_page_fails(design, table, trace, tmp_path):
    for number, (value, file) in enumerate(
        [(design, "certificate.json"), (table, "release.json"), (trace, "released.csv")]
    ):
        with pytest.raises(ReportError, match=r"complete.* missing \(nothing can be drawn\)"):
            WRITERS[type(value)](value, tmp_path / str(number), files=fails)
        assert file in contents(tmp_path / str(number))


def test_folders_are_looked_at_before_anything_is_drawn(design, table, trace, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    for page in ("_design_page", "_trace_page", "_table_page"):
        monkeypatch.setattr(f"mechdesign.report.{page}.html", fails)
    for value in (table, trace):
        with pytest.raises(ExportError, match="is not a folder"):
            md.save(value, tmp_path / "file")
    md.save(design, tmp_path / "set", report=False)
    with pytest.raises(ExportError, match="holds a design"):
        md.save(replace(design, origin=Origin("other")), tmp_path / "set", overwrite=False)


def test_nothing_is_written_into_the_folder_of_another_kind(design, table, trace, tmp_path):
    values = {"design": design, "table": table, "trace": trace}
    for name, value in values.items():
        md.save(value, tmp_path / name, report=False)
        (tmp_path / name / "report.html").write_text("its page")
    for name, value in (("table", table), ("trace", trace)):
        for other in values.keys() - {name}:
            before = contents(tmp_path / other)
            with pytest.raises(ExportError, match="of a design or of another release; choose another folder"):
                md.save(value, tmp_path / other, report=False)
            assert contents(tmp_path / other) == before


def test_a_design_is_not_written_into_a_release(design, table, trace, tmp_path, monkeypatch):
    monkeypatch.setattr("mechdesign.report._design_page.html", fails)
    for name, value in (("table", table), ("trace", trace), ("interrupted", trace)):
        folder = tmp_path / name
        WRITERS[type(value)](value, folder, files={"report.html": b"of the release"})
        if name == "interrupted":
            (folder / "release.json").unlink()
        before = contents(folder)
        for options in ({}, {"overwrite": False}, {"prior": False}, {"report": False}):
            with pytest.raises(ExportError, match="choose another folder"):
                md.save(design, folder, **options)
        with pytest.raises(ExportError, match="choose another folder for a design"):
            check_target(folder)
        assert contents(folder) == before


def test_names_that_are_too_long_are_refused(design, table, trace, tmp_path):
    for value in (design, table, trace):
        for name in ("x" * 300, "é" * 200, "x" * 300 + "/y", "a/" * 3000):
            with pytest.raises(ExportError, match="File name too long"):
                md.save(value, tmp_path / name, report=False)
    with pytest.raises(ExportError, match="File name too long"):
        md.save(design, tmp_path / ("x" * 300), report=False, prior=False)


def test_what_cannot_be_saved_is_refused_before_anything_is_written(design, trace, table, tmp_path, monkeypatch):
    """Other values have no files; options say by their names where they do not apply, and are truth values."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "out"

    def row(path, value, says="", place=folder, **options):
        return Mistake(f"{value!r:.30} {place} {options}", lambda: md.save(value, place, **options), path, says)

    rows = [row("value", value, "has no files") for value in (None, "x", 3, np.eye(2))]
    rows += [row("value", wrong, "has no files") for wrong in (design.problem, design.channel, type(design), [design])]
    rows += [row("folder", design, place=wrong) for wrong in (None, 3, b"x", ["x"])]
    rows += [row("folder", value, "is empty", place="") for value in (design, trace, table)]
    rows.append(row("prior", trace, "does not apply to a ReleasedTrace", prior=False))
    for value, own in ((design, "prior"), (trace, "channels"), (table, ""), (table.release, "")):
        for name, other in (("prior", False), ("channels", True)):
            if name not in own:
                rows.append(row(name, value, "does not apply to a", **{name: other}))
            rows.append(row(name, value, "is not a truth value", **{name: "no"}))
        rows += [row(name, value, "is not a truth value", **{name: None}) for name in ("report", "overwrite")]
    assert_refused(rows)
    assert len(rows) >= 20
    assert not folder.exists()
    for value in (None, "text", 3, np.eye(2)):
        for call in (saving.html, saving.pages):
            with pytest.raises(InputError, match="value: has no files and no page"):
                call(value)


def test_without_the_packages_of_pages_nothing_is_written_unless_the_page_is_left_out(
    design, table, trace, tmp_path, monkeypatch
):
    for package in ("matplotlib", "jinja2"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            for number, value in enumerate((design, table, trace)):
                with pytest.raises(MissingDependencyError, match=r"needs Matplotlib and Jinja.* report=False"):
                    md.save(value, tmp_path / str(number))
                assert not (tmp_path / str(number)).exists()
                md.save(value, tmp_path / package / str(number), report=False)
                assert "report.html" not in contents(tmp_path / package / str(number))
