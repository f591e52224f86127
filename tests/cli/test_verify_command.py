"""`mechdesign verify`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from cli_examples import SPECIFICATION, flat, run, well, write

import mechdesign as md
from mechdesign import cli
from mechdesign.certify import _verify as verify


def test_what_is_proved_and_what_is_not(made: Path) -> None:
    found = json.loads(well("verify", made, "--json").stdout)
    stated = json.loads((made / "certificate.json").read_text())["certificate"]
    assert found["cost"] == stated["expected_cost"]
    for name in ("holds", "worst_cost", "lower_bound", "relative_gap", "forbidden", "revealed"):
        assert found[name] == stated[name], name
    assert [each["achieved"] for each in found["requirements"]] == [each["realised"] for each in stated["requirements"]]
    assert found["in_the_files_and_not_proved"] == [
        "labels and places in channel.npz: observables, secrets, secrets_points",
        "metadata: distances, observables, origin, secrets, title",
        "provenance: the maker of the channel and the method",
    ]
    assert "in the files and not proved\nlabels and places in channel.npz" in well("verify", made).stdout


def test_what_was_tampered_with_is_found(made: Path) -> None:
    with np.load(made / "channel.npz") as archive:
        arrays = dict(archive)
    row = arrays["numerators"][2].copy()
    arrays["numerators"][2] = np.where(np.arange(4) == row.argmax(), 2**62, 0)
    with zipfile.ZipFile(made / "channel.npz", "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())
    result = run("verify", made)
    assert (result.exit_code, "does not match its digest" in result.stdout) == (1, True)
    found = json.loads(run("verify", made, "--json").stdout)
    assert found["holds"] is False
    s, t = found["pair"]
    labels = ["home", "work", "pub", "gym"]
    assert f"Worst pair: secrets {s} ({labels[s]}) and {t} ({labels[t]})" in flat(result.stdout)


def test_an_epsilon_that_was_changed(made: Path) -> None:
    path = made / "certificate.json"
    path.write_text(path.read_text().replace('"epsilon": "0.7"', '"epsilon": "0.6"'))
    result = run("verify", made)
    assert (result.exit_code, "Worst pair" in result.stdout) == (1, True)
    assert "does not match its own digest" in result.stdout


# --- reading ---


@pytest.fixture
def once(original: Path, blank_pictures: None) -> Path:
    """Give an export with a page."""
    md.save(md.Design.load(original), "once")
    return Path("once")


@pytest.mark.parametrize("tampered", [False, True])
def test_every_file_is_opened_once(once: Path, monkeypatch: pytest.MonkeyPatch, tampered: bool) -> None:
    if tampered:
        path = once / "certificate.json"
        path.write_text(path.read_text().replace('"epsilon": "0.7"', '"epsilon": "0.1"'))
    opened, before = [], Path.open

    def counted(self, *arguments, **named):
        opened.append(self.name)
        return before(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", counted)
    monkeypatch.setattr(Path, "read_bytes", lambda _: pytest.fail("a file is read again"))
    result = run("verify", once)
    assert result.exit_code == int(tampered)
    assert ("Worst pair: secrets" in flat(result.stdout)) == tampered
    files = ["certificate.json", "channel.csv", "channel.npz", "dual.npz", "report.html"]
    assert sorted(name for name in opened if name in files) == files


def test_what_is_said_is_of_the_files_that_were_proved(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is replaced while it is verified is not read again for what is said of it."""
    first = well("verify", made).stdout
    write(SPECIFICATION.replace("epsilon = 0.7", "epsilon = 0.001"), "other.toml")
    before = verify.prove

    def replaced(*arguments):
        well("design", "other.toml", "-o", made, "--no-report", "--overwrite")
        return before(*arguments)

    monkeypatch.setattr("mechdesign.cli.verify.prove", replaced)
    assert well("verify", made).stdout == first


@pytest.mark.slow
def test_verifying_imports_no_solver_no_graphs_and_writes_to_terminals_of_few_characters(made: Path) -> None:
    districts = md.GraphPrivacy(1, nx.Graph([(0, 1), (2, 3)]))
    far = np.kron(np.eye(2), np.ones((2, 2))) == 0
    md.save(md.design(md.Problem([0.25] * 4, np.where(far, np.inf, 1 - np.eye(4)), [districts])), "town", report=False)
    code = (
        "import sys; from mechdesign.cli import main, __file__ as loaded\n"
        f"assert loaded == {cli.__file__!r}, loaded\n"
        "bad = {'highspy', 'cvxpy', 'scipy', 'networkx', 'matplotlib'}\n"
        "for folder in ('made', 'town'):\n"
        "    assert 'numpy.ma' not in sys.modules\n"
        "    try: main(['verify', folder])\n"
        "    except SystemExit as stop: assert stop.code == 0\n"
        "bad |= {'mechdesign.solve', 'mechdesign.synthesis._design'}\n"
        "bad &= set(sys.modules)\n"
        "assert not bad, bad"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", timeout=60, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "ε ≤ 0.7" in done.stdout
