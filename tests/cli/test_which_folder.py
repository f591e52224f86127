"""Commands on a folder that holds no design, or several."""

from __future__ import annotations

import shutil
from pathlib import Path

from cli_examples import assert_wrong_usage, run, write

COMMANDS = ("verify {}", "inspect {}", "inspect made {}", "sample {} --secret 0", "attack {}", "export {} --format csv")
"""What takes the folder of a design; `audit` does, too, but also other files."""


def test_what_holds_no_design_is_wrong_usage(made: Path) -> None:
    for name in ("kept/one", "kept/two"):
        shutil.copytree(made, name)
    shutil.copytree(made, "above/one")
    shutil.copytree(made, "steps/channels/step-0")
    write("title = 'x'", "file.toml")
    Path("empty").mkdir()
    for folder, file in (("table", "answers.csv"), ("trace", "released.csv")):
        write("x", f"{folder}/{file}")
        write("{}", f"{folder}/release.json")
    for command in (*COMMANDS, "audit {}"):
        said = {
            "missing": "missing",
            "kept/onf": "kept/onf" if command.startswith("audit") else "Did you mean kept/one?",
            "file.toml": "file.toml",
            "empty": "empty",
            "above": "above: is not a design, but holds one; must be above/one",
            "steps": "steps: is not a design, but holds one; must be steps/channels/step-0",
            "kept": "kept: holds 2 designs, not one; must be one of kept/one, kept/two",
            "table": "release",
            "trace": "trace",
        }
        assert_wrong_usage({command.format(folder): says for folder, says in said.items()})
    assert "not a design" in run("verify", "trace").stderr
