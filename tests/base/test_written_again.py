"""What is written again keeps the mode and the owner that somebody gave it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.base import _atomic as atomic
from mechdesign.cli import main
from mechdesign.errors import ExportError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes and owners are those of POSIX")

TABLE = """
table.person = false
domain.attributes.a = { values = ["x", "y"] }
policy.kind = "full"
release = { kind = "histogram", epsilon = 1 }
"""
TRACE = """
domain.grid = { columns = 2, rows = 2, width = 2.0, height = 2.0 }
prior.uniform = true
cost.distance = "euclidean"
privacy = [{ kind = "graph", epsilon = 1, neighbours = 4 }]
release = { mechanism = "exponential", transition = { neighbours = 4 } }
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "spec", "data"), [("table", TABLE, "a\nx\ny\n"), ("release", TRACE, "state\n0\n1\n")]
)
def test_closed_files_stay_closed(command: str, spec: str, data: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text(spec)
    Path("t.csv").write_text(data)
    assert CliRunner().invoke(main, [command, "s.toml", "t.csv", "-o", "out"]).exit_code == 0
    files = [path for path in Path("out").rglob("*") if path.is_file()]
    assert files
    for path in files:
        path.chmod(0o600)
    again = CliRunner().invoke(main, [command, "s.toml", "t.csv", "-o", "out", "--overwrite"])
    assert again.exit_code == 0, again.output
    assert {path.name: oct(mode(path)) for path in files if path.exists() and mode(path) != 0o600} == {}


def test_a_set_is_emptied_and_what_is_not_written_again_is_gone(tmp_path: Path) -> None:
    for name in ("manifest", "answers", "page"):
        (tmp_path / name).write_text("old")
        (tmp_path / name).chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_text("kept")
    with atomic.replacing(tmp_path, ("manifest", "answers", "page", "link", "new")):
        assert (tmp_path / "manifest").read_bytes() == b""
        assert not (tmp_path / "link").exists()
        atomic.write_file(tmp_path / "answers", [b"new"])
        atomic.write_file(tmp_path / "new", [b"new"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["answers", "elsewhere", "new"]
    assert mode(tmp_path / "answers") == 0o640
    assert (tmp_path / "elsewhere").read_text() == "kept"


def test_after_an_error_no_file_of_the_old_set_remains(tmp_path: Path) -> None:
    (tmp_path / "manifest").write_text("old")
    with pytest.raises(KeyError), atomic.replacing(tmp_path, ("manifest",)):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportError), atomic.replacing(tmp_path / "file", ("manifest",)):
        pass


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root may give files away")
def test_a_ledger_goes_back_to_its_owner(tmp_path: Path) -> None:
    for owner, group, modes in ((1000, 1000, 0o600), (1000, 0, 0o644), (0, 1000, 0o660)):
        path = tmp_path / f"{owner}-{group}.json"
        md.Ledger(epsilon=5, path=path).spend("x", "one person", epsilon="1/10")
        os.chown(path, owner, group)
        path.chmod(modes)
        md.Ledger(epsilon=5, path=path).spend("x", "one person", epsilon="1/10")
        found = path.stat()
        assert (found.st_uid, mode(path)) == (owner, 0o600)


def test_who_may_not_give_it_back_is_refused_unless_the_group_can_use_it(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "ledger.json"
    ledger = md.Ledger(epsilon=5, path=path)
    ledger.spend("x", "one person", epsilon="1/10")
    before, real = path.read_bytes(), os.lstat

    def other(at, **asked):
        found = real(at, **asked)
        if Path(at) != path:
            return found
        return os.stat_result([*found[:4], found.st_uid + 1, *found[5:]])

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(atomic.os, "lstat", other)
    monkeypatch.setattr(atomic.os, "fchown", refuse)
    with pytest.raises(ExportError, match="could no longer read it"):
        ledger.spend("x", "one person", epsilon="1/10")
    assert path.read_bytes() == before
    tmp_path.chmod(0o2770)
    md.Ledger(epsilon=5, path=path).spend("x", "one person", epsilon="1/10")
    assert path.read_bytes() != before
