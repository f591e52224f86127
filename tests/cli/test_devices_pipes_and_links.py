"""What stands at the name of an output: pipes are written, links followed; files with several names are refused.

The longest names are taken.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, run

import mechdesign as md
from mechdesign.base._atomic import make_hidden_name, replace_files, write_file
from mechdesign.base._files import find_output, write_output
from mechdesign.base._locks import file_of
from mechdesign.cli import exit_code
from mechdesign.data.matrices import read_budgets
from mechdesign.errors import ClosedPipeError, ExportError, InputError
from mechdesign.traces._published import load_published

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")


def reader_of(pipe: Path) -> tuple[threading.Thread, list[bytes]]:
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    thread.start()
    return thread, found


@needs_pipes
def test_what_is_written_into_a_pipe_reaches_its_reader(original: Path) -> None:
    Path("points.csv").write_text("user,latitude,longitude\n" + "u,48.1,11.5\nu,48.2,11.6\n" * 20, encoding="utf-8")
    for command, start in (
        (["export", original, "--format", "csv"], b"secret,"),
        (["sample", original, "--secret", "0", "-n", "3"], b"observable_index,"),
        (["init", "points.csv"], b"#"),
    ):
        os.mkfifo("pipe")
        thread, found = reader_of(Path("pipe"))
        result = run(*command, "-o", "pipe")
        if result.exit_code:
            # Let the reader go.
            os.close(os.open("pipe", os.O_WRONLY | os.O_NONBLOCK))
        thread.join()
        assert (result.exit_code, found[0].startswith(start)) == (0, True), (result.output, found)
        assert stat.S_ISFIFO(os.stat("pipe").st_mode)
        os.remove("pipe")


@needs_pipes
def test_a_pipe_whose_reader_goes_away_ends_the_command_as_any_closed_pipe(monkeypatch):
    os.mkfifo("pipe")

    def leave() -> None:
        with open("pipe", "rb") as pipe:
            pipe.read(1)

    thread = threading.Thread(target=leave)
    thread.start()
    with pytest.raises(ClosedPipeError, match="closed by its reader"):
        write_output("pipe", (b"x" * 2**20 for _ in range(4)))
    thread.join()
    assert exit_code(ClosedPipeError("pipe")) == 141


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs open files with names")
def test_an_open_file_is_written_where_its_writer_stopped():
    script = "from mechdesign.base._files import write_output; import os; os.write(1, b'head\\n'); "
    script += "write_output('/proc/self/fd/1', [b'body\\n']); os.write(1, b'tail\\n')"
    with open("said", "wb") as file:
        subprocess.run([sys.executable, "-c", script], stdout=file, check=True)
    assert Path("said").read_text() == "head\nbody\ntail\n"


def test_a_link_is_followed_and_its_file_keeps_its_mode() -> None:
    Path("link.csv").symlink_to("real.csv")
    Path("away").mkdir()
    Path("away/link.csv").symlink_to("../link.csv")
    for name in ("link.csv", "away/link.csv"):
        Path("real.csv").write_text("old")
        Path("real.csv").chmod(0o640)
        write_output(name, [b"new"])
        assert Path("link.csv").is_symlink()
        assert Path("real.csv").read_text() == "new"
        assert stat.S_IMODE(os.stat("real.csv").st_mode) == 0o640


def test_a_link_to_a_file_that_is_to_be_made_is_followed():
    Path("made").mkdir()
    Path("link.csv").symlink_to("made/new.csv")
    write_output("link.csv", [b"text"])
    assert Path("made/new.csv").read_bytes() == b"text"
    assert Path("link.csv").is_symlink()
    Path("b.csv").symlink_to("budgets.csv")
    md.leakage.write_budgets("b.csv", [0.5, 0.25])
    assert read_budgets("budgets.csv").tolist() == [0.5, 0.25]


def test_a_file_with_another_name_a_folder_and_a_loop_are_refused_before_anything_is_computed(original):
    Path("old.csv").write_text("old")
    os.link("old.csv", "other.csv")
    Path("loop.csv").symlink_to("loop.csv")
    Path("folder.csv").mkdir()
    said = {"old.csv": "hard link", "loop.csv": "loop.csv", "folder.csv": "is a folder"}
    assert_wrong_usage({f"export {original} -o {name}": words for name, words in said.items()})
    for name in said:
        with pytest.raises(ExportError):
            write_output(name, iter(()))
    assert Path("other.csv").read_text() == Path("old.csv").read_text() == "old"
    os.remove("other.csv")
    assert find_output("old.csv") == Path("old.csv")


def test_a_file_that_is_there_is_found_through_a_link():
    Path("points.csv").write_text("latitude,longitude\n" + "48.1,11.5\n48.2,11.6\n" * 20, encoding="utf-8")
    Path("old.toml").write_text("old")
    Path("link.toml").symlink_to("old.toml")
    assert_wrong_usage({"init points.csv -o link.toml": "already exists"})


def test_what_is_the_packages_own_follows_no_link(monkeypatch, tmp_path):
    Path("precious").write_text("precious")
    # A ledger and an accountant that are made.
    Path("l.json").symlink_to("elsewhere.json")
    for make in (lambda: md.Ledger(epsilon=1, path="l.json").spend("x", "y", "0.1"), lambda: file_of("l.json")):
        with pytest.raises(InputError, match="link to a file that does not exist"):
            make()
    assert run("ledger", "new", "l.json", "--epsilon", "1").exit_code == 2
    assert not Path("elsewhere.json").exists()
    # A temporary file of a set.
    Path("set").mkdir()
    Path("set/.a.partial").symlink_to(tmp_path / "precious")
    replace_files(Path("set"), {"a": b"new"}, "a")
    assert Path("precious").read_text() == "precious"
    assert Path("set/a").read_bytes() == b"new"


def test_the_longest_names_are_taken() -> None:
    for name in ("a" * 255, "a" * 233 + ".csv", "é" * 127, "a" * 237):
        write_file(Path(name), [b"text"])
        assert Path(name).read_bytes() == b"text"
        assert os.listdir() == [name]
        with pytest.raises(ExportError, match="name too long"):
            write_file(Path(name + "a" * 255), [b"text"])
        os.remove(name)
    path = Path("l" * 250 + ".json")
    md.Ledger(epsilon=1, path=path).spend("a count", "anyone", epsilon="0.5")
    assert md.Ledger.existing(path).remaining_epsilon * 2 == 1


def test_hidden_names_of_long_names_differ() -> None:
    first, second = make_hidden_name("a" * 255, ".lock"), make_hidden_name("a" * 254 + "b", ".lock")
    assert first != second
    assert len(first) == len(second) == 255
    assert make_hidden_name("a" * 249, ".lock") == f".{'a' * 249}.lock"
    assert "~" in make_hidden_name("a" * 250, ".lock")


@needs_pipes
def test_a_specification_or_a_release_that_is_a_pipe_is_refused_and_not_waited_for() -> None:
    os.mkfifo("pipe")
    Path("out").mkdir()
    os.mkfifo("out/release.json")
    regular = "it is not a regular file"
    assert_wrong_usage(
        {
            "design pipe": regular,
            "release pipe t.csv": regular,
            "table pipe t.csv": regular,
            "table pipe": regular,
            "chain pipe": regular,
        }
    )
    for load in (md.tables.load, load_published):
        with pytest.raises(InputError, match=regular):
            load("out")
