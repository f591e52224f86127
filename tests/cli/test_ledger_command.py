"""Ledgers on the command line: begun on purpose, named by their full path, never made anew, and checked."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
from pathlib import Path

import pytest
from cli_examples import assert_wrong_usage, contents, flat, run, well

import mechdesign as md
from mechdesign.errors import InputError, LedgerError
from mechdesign.leakage.accounting import begin_ledger, check_folders

TABLE = "age\n3\n4\n"
SPECIFICATION = """table.person = false
domain.attributes.age = {{ range = [0, 9] }}
policy.kind = "full"
release = {{ kind = "histogram", epsilon = 1 }}
ledger = {{ path = "{path}"{budget} }}
"""


@pytest.fixture(scope="module", autouse=True)
def _tables_are_loaded() -> None:
    """Load what releases from tables need, which takes longer than the tests."""
    md.tables.Histogram().release(["a"], md.tables.Policy.full(md.tables.Domain({"x": ["a", "b"]})), epsilon=1)


def write(path: str = "l.json", budget: str = ", epsilon = 1", folder: str = ".") -> list[str]:
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / "s.toml").write_text(SPECIFICATION.format(path=path, budget=budget))
    (Path(folder) / "t.csv").write_text(TABLE)
    return ["table", f"{folder}/s.toml", f"{folder}/t.csv", "--no-report"]


def modes(*names: str) -> list[int]:
    return [stat.S_IMODE(Path(name).stat().st_mode) for name in names]


def test_a_ledger_is_begun_once_for_its_owner() -> None:
    assert f"ledger {Path('l.json').resolve()}" in flat(well("ledger", "new", "l.json", "--epsilon", "3").stdout)
    assert modes("l.json", ".l.json.lock") == [0o600, 0o600]
    line = "ledger new l.json --epsilon 9"
    assert_wrong_usage({line: "exists already", f"{line} --again": "exists already"})
    assert md.Ledger(path="l.json").epsilon == 3
    # Beside the file of somebody else stays no lock, which would make it a ledger.
    Path("l.csv").write_text("1,0\n0,1\n")
    assert_wrong_usage({"ledger new l.csv": "exists already", "ledger check l.json ''": "is empty"})
    Path("l.json").unlink()
    assert_wrong_usage({line: "--again"})
    assert "The records of an earlier ledger" in well(*line.split(), "--again").stdout
    assert md.Ledger(path="l.json").epsilon == 9


def test_what_is_left_is_rounded_down() -> None:
    for budget, said in (("0.1234569", "ε = 0.123456"), ("0.3", "ε = 0.3"), ("1/3", "ε = 0.333333"), ("0", "ε = 0")):
        Path("l.json").unlink(missing_ok=True)
        assert f"left {said}\n" in re.sub(
            " +", " ", well("ledger", "new", "l.json", "--epsilon", budget, "--again").stdout
        )


def test_no_result_is_written_onto_a_ledger() -> None:
    begin_ledger("l.json", 1)
    Path("B.csv").write_text("0.9,0.1\n0.2,0.8\n")
    lines = ("leakage --backward B.csv --epsilon 0.1 --steps 2", "budget --alpha 1 --steps 2")
    assert_wrong_usage({f"{line} -o l.json": "l.json already exists" for line in lines})
    well(*lines[0].split(), "-o", "other.csv")


def test_a_ledger_in_a_folder_of_a_group_is_for_its_members() -> None:
    Path("ours").mkdir()
    Path("ours").chmod(0o2770)
    well("ledger", "new", "ours/l.json", "--epsilon", "3")
    md.Ledger(path="ours/l.json").spend("a", "b", epsilon=1)
    assert modes("ours/l.json", "ours/.l.json.lock") == [0o660, 0o660]
    assert md.Ledger(path="ours/l.json").remaining_epsilon == 2


def test_wrong_usage_makes_no_ledger() -> None:
    lines = {f"ledger new m.json --epsilon {wrong}": "--epsilon" for wrong in ("-1", "x", "nan", "''")}
    assert_wrong_usage(lines)
    assert list(Path().iterdir()) == []
    Path("folder").mkdir()
    Path("link").symlink_to("nowhere")
    for name, says in (("folder", "error: folder: is a folder"), ("link", "error: link: is a link to a file that")):
        assert_wrong_usage({f"ledger new {name} --epsilon 1": says, f"ledger show {name}": says})


def test_a_specification_begins_its_ledger_and_says_where() -> None:
    line = " ".join(write())
    assert f"ledger {Path('l.json').resolve()} was created" in flat(well(*line.split(), "-o", "one").stderr)
    assert_wrong_usage({f"{line} -o two": "the ledger of this release is"})
    Path("l.json").unlink()
    assert_wrong_usage({f"{line} -o three": "ledger new"})


def test_a_ledger_is_not_said_to_be_created_by_a_release_that_is_refused() -> None:
    line = write()
    Path("t.csv").write_text("age\n3\n99\n")
    refused = run(*line, "-o", "one")
    assert (refused.exit_code, Path("l.json").exists()) == (2, False)
    assert "created" not in refused.stderr


@pytest.mark.parametrize("way", ["absolute", "above", "link", "dangling"])
def test_a_specification_makes_no_file_elsewhere(tmp_path: Path, way: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    path = {"absolute": f"{home}/planted", "above": "../home/planted", "link": "in/planted", "dangling": "planted"}[way]
    arguments = write(path, folder="work")
    if way == "link":
        (tmp_path / "work/in").symlink_to(home)
    if way == "dangling":
        (tmp_path / "work/planted").symlink_to(home / "planted")
    refused = run(*arguments, "-o", "out")
    assert refused.exit_code == 2, refused.output
    assert str(home / "planted") in refused.stderr.replace("\n", "")
    assert list(home.iterdir()) == []
    assert run("ledger", "new", str(home / "planted"), "--epsilon", "1").exit_code == 0
    assert run(*arguments, "-o", "out").exit_code == 0
    assert md.Ledger(path=home / "planted").remaining_epsilon == 0


def test_a_ledger_without_a_budget_or_named_by_an_option_must_exist() -> None:
    line = " ".join(write(budget=""))
    assert_wrong_usage({f"{line} -o out": "error: ledger.path: names a ledger that does not exist"})
    write()
    assert_wrong_usage({f"{line} --ledger misspelt.json -o out": "ledger new"})
    begin_ledger("other.json", 2)
    well(*line.split(), "--ledger", "other.json", "-o", "out")
    assert md.Ledger(path="other.json").remaining_epsilon == 1
    assert not Path("l.json").exists()


def test_files_that_every_user_can_open_are_closed_by_the_next_charge() -> None:
    begin_ledger("l.json", 1)
    for file in ("l.json", ".l.json.lock"):
        Path(file).chmod(0o666)
    well(*write(), "-o", "out")
    assert modes("l.json", ".l.json.lock") == [0o600, 0o600]


def test_no_ledger_lies_in_a_folder_that_may_be_published() -> None:
    Path("out").mkdir()
    Path("in").symlink_to("out")
    for path in ("out/l.json", "out/release.json", "in/l.json"):
        line = " ".join(write(path))
        assert_wrong_usage({f"{line} -o out": "is the folder of the ledger"})
        assert contents("out") == {}, path
    well(*write("l.json"), "-o", "out/below")


def test_a_lock_that_is_held_ends_the_command_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(md.Ledger.__init__.__kwdefaults__, "wait", 0.1)
    Path(".l.json.lock").touch()
    held = os.open(".l.json.lock", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    refused = run(*write(), "-o", "out")
    os.close(held)
    assert refused.exit_code == 2
    assert ".l.json.lock is held" in refused.stderr.replace("\n", " ")
    assert not Path("out/answers.csv").exists()


def test_a_release_is_found_in_its_ledger_until_that_is_put_back() -> None:
    run(*write(budget=", epsilon = 9"), "-o", "one")
    before = Path("l.json").read_text()
    run(*write(budget=", epsilon = 9"), "-o", "two")
    assert run("ledger", "check", "l.json", "one", "two").exit_code == 0
    Path("l.json").write_text(before)
    checked = run("ledger", "check", "l.json", "one", "two")
    assert checked.exit_code == 1
    assert f"ledger {Path('l.json').resolve()}" in (said := flat(checked.stdout))
    assert "one 1 0 every entry is in the ledger two 1 1 such as" in said
    # What names no entry, before or after, hides nothing.
    Path("none").mkdir()
    several = run("ledger", "check", "l.json", "none", "two", "none")
    assert several.exit_code == 1
    assert re.search("none – – .* two 1 1 .* none – –", flat(several.stdout))
    assert run("ledger", "check", "l.json", "none", "one").exit_code == 2
    (number,) = [json.loads(Path("two/release.json").read_text())["entry"]]
    assert check_folders(md.Ledger(path="l.json"), ["one", "two"])[1].missing == (number,)


def test_folders_that_name_no_entry_cannot_be_checked() -> None:
    begin_ledger("l.json", 1)
    Path("one").mkdir()
    for content in (None, "", "[]", "{}", '{"entries": 3}', '{"entry": 3}', '{"entries": [null]}', '{"entries": "ab"}',
                    '{"entry": "\\u001b[2J"}'):  # fmt: skip
        if content is not None:
            Path("one/release.json").write_text(content)
        with pytest.raises(InputError, match=r"release\.json"):
            check_folders(md.Ledger(path="l.json"), ["one"])
        assert run("ledger", "check", "l.json", "one").exit_code == 2, content
    assert_wrong_usage({"ledger check missing.json one": "missing.json"})


@pytest.mark.usefixtures("blank_pictures")
def test_a_trace_repeats_the_numbers_of_its_steps() -> None:
    specification = (
        "domain.grid = { columns = 3, rows = 2, width = 3, height = 2 }\nprior.uniform = true\n"
        'cost.distance = "euclidean"\nprivacy = [{ kind = "graph", epsilon = 1, blocks = 3 }]\n'
        'release = { transition = { neighbours = 8 } }\nledger = { path = "l.json", epsilon = 5 }\n'
    )
    Path("s.toml").write_text(specification)
    Path("t.csv").write_text("state\n0\n1\n1\n")
    well("release", "s.toml", "t.csv", "-o", "out")
    entries = md.Ledger(path="l.json").entries
    assert json.loads(Path("out/release.json").read_text())["entries"] == [entry.number for entry in entries]
    assert run("ledger", "check", "l.json", "out").exit_code == 0
    shown = run("ledger", "show", "l.json").stdout.splitlines()
    assert shown[0] == "Ledger with ε = 5."
    assert any("ε = 3 in 3 entries" in line for line in shown)
    shutil.copy("l.json", "copy.json")
    with pytest.raises(LedgerError, match="does not exist"):
        md.Ledger.existing("elsewhere.json")
