"""Charged releases are written: steps that can fail run before the charge, and pages come after the answers."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from fractions import Fraction
from pathlib import Path

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import ExportError, ReportError
from mechdesign.report import _saving as saving
from mechdesign.specification._table_specification import parse, read
from mechdesign.synthesis._folders import check_space
from mechdesign.tables._domain import Domain
from mechdesign.tables._files import FILES, Published
from mechdesign.tables._policy import Policy

KINDS = {
    "histogram": "",
    "cdf": "",
    "sum": "",
    "ranges": "ranges = [[0, 4], [5, 9]]",
    "quantiles": "probabilities = [0.5]",
    "kmeans": "k = 2\niterations = 2",
    "workload": 'marginals = [["a"]]',
}
POLICY = Policy.full(Domain({"a": range(10)}))


def write(kind="histogram", epsilon="1", policy='kind = "full"'):
    Path("s.toml").write_text(
        f"table.person = false\ndomain.attributes.a = {{ range = [0, 9] }}\n"
        f"[policy]\n{policy}\n[release]\nkind = {kind!r}\n"
        f'epsilon = "{epsilon}"\n{KINDS[kind]}\n[ledger]\npath = "ledger.json"\nepsilon = "1e102"\n',
        encoding="utf-8",
    )
    Path("t.csv").write_text("a\n1\n2\n2\n9\n", encoding="utf-8")


def run(*more):
    return CliRunner().invoke(main, ["table", "s.toml", "t.csv", "-o", "out", *more])


def said(result):
    return " ".join(result.output.split())


def charged():
    return Path("ledger.json").exists()


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "epsilon"), [*((kind, "710") for kind in KINDS), ("cdf", "1e100"), ("sum", "1e100")])
def test_an_epsilon_whose_power_is_no_float_has_answers_and_a_report(kind, epsilon):
    write(kind, epsilon)
    result = run()
    assert result.exit_code == 0, result.output
    odds = "e^710" if epsilon == "710" else "e^1E+100"
    assert f"no answer is more than {odds} times as likely" in Path("out/report.html").read_text(encoding="utf-8")
    assert md.tables.load("out").epsilon == Fraction(epsilon)
    # The room that was tried before is enough.
    written = sum(path.stat().st_size for path in Path("out").iterdir())
    given = read("s.toml")
    assert written <= given.output_size()
    assert written - Path("out/report.html").stat().st_size <= given.output_size(report=False)
    if kind in ("histogram", "cdf", "sum"):
        # The noise is 0; a strategy rounds what it decodes.
        expected = {"histogram": [0, 1, 2, 0, 0, 0, 0, 0, 0, 1], "cdf": [0, 1, 3, 3, 3, 3, 3, 3, 3, 4], "sum": [14]}
        assert md.tables.load("out").answers.tolist() == pytest.approx(expected[kind], abs=1e-9)


def test_trees_stand_an_epsilon_at_which_noise_is_never_there():
    domain = Domain({"a": range(10)})
    for epsilon in ("40", "1000", "1e60"):
        for policy in (Policy.threshold(domain, 1), Policy.threshold(domain, 3)):
            found = md.tables.Cumulative(mechanism="ordered").release([1, 2, 2, 9], policy, epsilon=epsilon)
            assert found.answers.tolist() == [0, 1, 3, 3, 3, 3, 3, 3, 3, 4], epsilon


def test_an_epsilon_out_of_range_is_refused_before_anything_is_charged():
    for kind in ("histogram", "cdf", "kmeans", "workload"):
        write(kind, "1e101")
        result = run()
        assert result.exit_code == 2, result.output
        assert "epsilon" in said(result)
        assert not charged(), kind


def test_a_folder_where_a_file_is_to_be_is_told_before_the_charge():
    write()
    for name in FILES:
        Path("out", name).mkdir(parents=True)
        result = run("--overwrite")
        assert (result.exit_code, name in said(result)) == (2, True), name
        Path("out", name).rmdir()
    assert not charged()


def _no_room(descriptor, offset, size):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("hindrance", ["file", "link", "long", "full"])
def test_a_folder_that_cannot_be_written_is_told_before_the_charge(hindrance, monkeypatch):
    write()
    target = "out/deep"
    if hindrance == "file":
        Path("out").write_text("x", encoding="utf-8")
    elif hindrance == "link":
        Path("out").mkdir()
        Path("out/deep").symlink_to("nowhere/at/all")
    elif hindrance == "long":
        target = "out/" + "x" * 300
    elif hasattr(os, "posix_fallocate"):
        monkeypatch.setattr(os, "posix_fallocate", _no_room)
    else:
        pytest.skip("this system reserves no room")
    result = run("-o", target)
    assert result.exit_code == 2, result.output
    assert not charged()
    # Nothing that was tried is left.
    assert hindrance != "full" or not Path("out").exists()


def test_room_is_tried_and_given_back(tmp_path):
    check_space(tmp_path / "a" / "b", 10**6, ["x"])
    assert not (tmp_path / "a").exists()
    (tmp_path / "c").mkdir()
    check_space(tmp_path / "c", 0)
    assert list((tmp_path / "c").iterdir()) == []
    with pytest.raises(ExportError, match="cannot be written"):
        check_space(tmp_path / "c", 10**18)


def test_a_report_that_fails_leaves_the_answers_and_says_what_is_spent(monkeypatch):
    def fail(publication):
        raise OverflowError("math range error")

    monkeypatch.setattr("mechdesign.report._table_page.html", fail)
    write("quantiles", "0.5")
    Path("out").mkdir()
    Path("out/report.html").write_text("of an older release", encoding="utf-8")
    Path("out/release.json").write_text('{"version": 1, "kind": "answers", "rehearsal": true}', encoding="utf-8")
    result = run()
    assert result.exit_code == 2
    assert "ε = 0.5 is spent" in said(result)
    assert "math range error" in said(result)
    assert sorted(path.name for path in Path("out").iterdir()) == ["answers.csv", "quantiles.csv", "release.json"]
    assert len(md.tables.load("out")) == 10
    assert md.Ledger(path="ledger.json").spent.epsilon == Fraction(1, 2)


def test_answers_that_cannot_be_written_are_rescued(monkeypatch, tmp_path):
    write()
    ledger_spend, blocked = md.Ledger.spend, Path("out")

    def spend(self, *arguments, **keywords):
        # Somebody puts a file where the folder was to be, once the ledger is charged.
        entry = ledger_spend(self, *arguments, **keywords)
        blocked.write_text("in the way", encoding="utf-8")
        return entry

    monkeypatch.setattr(md.Ledger, "spend", spend)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = run()
    assert result.exit_code == 2
    assert "ε = 1 is spent" in said(result)
    (rescued,) = tmp_path.glob("mechdesign-released-*")
    assert str(rescued) in result.output.replace("\n", "")
    assert len(md.tables.load(rescued)) == 10


def test_an_interrupt_after_the_charge_waits_for_the_answers(monkeypatch):
    write()
    spend = md.Ledger.spend

    def interrupted(self, *arguments, **keywords):
        entry = spend(self, *arguments, **keywords)
        os.kill(os.getpid(), signal.SIGINT)
        return entry

    monkeypatch.setattr(md.Ledger, "spend", interrupted)
    result = run()
    assert result.exit_code == 130
    assert len(md.tables.load("out")) == 10


def test_a_publication_says_what_is_spent(tmp_path, monkeypatch):
    monkeypatch.setattr("mechdesign.report._table_page.html", lambda publication: 1 / 0)
    release = md.tables.Histogram().release([1], POLICY, rho="0.5")
    with pytest.raises(ReportError, match=r"ρ = 0\.5 is spent"):
        md.save(Published(release), tmp_path / "a")
    rehearsed = md.tables.Histogram().release([1], POLICY, epsilon=1, rng=1)
    with pytest.raises(ReportError, match="Nothing is spent"):
        md.save(rehearsed, tmp_path / "b")
    with contextlib.suppress(ReportError):
        md.save(Published(release), tmp_path / "a")
    assert len(md.tables.load(tmp_path / "a")) == 10


def test_reports_speak_of_their_own_policy_only():
    page = saving.html(Published(md.tables.Histogram().release([1], POLICY, epsilon=2)))
    assert "no answer is more than 7.39 times as likely" in page
    assert "Budgets of releases under this policy add up; other policies have other neighbours" in page


def test_the_command_keeps_policies_apart():
    write()
    assert "ledger    " not in run().output
    write(policy='kind = "threshold"\ntheta = 1')
    result = run("--overwrite")
    assert "Policies are kept apart" in result.output
    assert result.output.count("ε = 1 in 1 entry under: Blowfish policy") == 2


def test_plans_of_any_epsilon():
    head = (
        'table.person = false\ndomain.attributes.a = { range = [0, 9] }\npolicy = { kind = "threshold", theta = 1 }\n'
    )
    for kind in ("histogram", "cdf", "kmeans"):
        parse(head + f'[release]\nkind = "{kind}"\nepsilon = "1e100"\n{KINDS[kind]}').plan()
