"""`mechdesign verify`."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cli_examples import command, run

from mechdesign.certify import Evidence, certify
from mechdesign.certify import _bundle as bundle


def test_verify_as_json(made):
    result = run("verify", made, "--json")
    found = json.loads(result.stdout)
    unproved, signature = found.pop("unproved"), found.pop("signature")
    assert signature == "none"
    assert found == json.loads((made / "certificate.json").read_text())["certificate"]
    assert unproved == [
        "labels and places in channel.npz: observables, secrets, secrets_points",
        "metadata: distances, observables, origin, secrets, title",
        "provenance: the maker of the channel and the method",
    ]


def test_what_is_not_proved_is_listed(made):
    shown = run("verify", made).stdout
    assert "in the files, and not proved\n- labels and places in channel.npz" in shown
    assert "- provenance: the maker of the channel and the method\n" in shown


def _rewrite(folder, change):
    """Change the arrays of the channel, and leave all digests as they were."""
    with np.load(folder / "channel.npz") as archive:
        arrays = dict(archive)
    change(arrays)
    with zipfile.ZipFile(folder / "channel.npz", "w") as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())


def _shift(arrays):
    row = arrays["numerators"][2].copy()
    arrays["numerators"][2] = np.where(np.arange(4) == row.argmax(), 2**62, 0)


def _nearer(arrays):
    arrays["requirement_0_distance"] = arrays["requirement_0_distance"] / 2


def _prior(arrays):
    arrays["prior"] = arrays["prior"][::-1]


@pytest.mark.parametrize("change", [_shift, _nearer, _prior])
def test_what_was_tampered_with_is_found(made, change):
    _rewrite(made, change)
    result = run("verify", made)
    assert result.exit_code == 1
    assert "does not match its digest" in result.stderr
    found = json.loads(run("verify", made, "--json").stdout)
    assert found["holds"] is False
    if change is not _prior:
        s, t = found["pair"]
        labels = ["home", "work", "pub", "gym"]
        assert f"Worst pair: secrets {s} ({labels[s]}) and {t} ({labels[t]})" in result.stderr.replace("\n", " ")


def test_an_epsilon_that_was_changed(made):
    path = made / "certificate.json"
    path.write_text(path.read_text().replace('"epsilon": "0.7"', '"epsilon": "0.6"'))
    result = run("verify", made)
    assert result.exit_code == 1
    assert "does not match its own digest" in result.stderr
    assert "Worst pair" in result.stderr


def test_a_forger_who_repairs_the_digests_is_caught(made):
    evidence = bundle.read(made).evidence
    numerators = np.zeros_like(evidence.numerators)
    np.fill_diagonal(numerators, 2**62)
    forged = Evidence(
        numerators, 62, evidence.prior, evidence.cost, evidence.objective, evidence.requirements, evidence.multipliers
    )
    certificate = certify(forged)
    assert not certificate.holds
    claimed = bundle.read(made).certificate
    bundle.write(made, bundle.encode(forged, claimed))
    result = run("verify", made)
    assert result.exit_code == 1
    assert "requirements[0] (metric privacy, epsilon 0.7) does not hold" in result.stderr


def test_verify_needs_an_export(spec):
    result = run("verify", "s.toml")
    assert result.exit_code == 2
    assert "is a file; expected a folder with a bundle" in result.stderr.replace("\n", " ")


def test_verifying_imports_no_solver(made):
    code = (
        "import sys; from mechdesign.cli import main\n"
        "try: main(['verify', 'made'])\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "bad = {'highspy', 'cvxpy', 'scipy.optimize', 'matplotlib'}\n"
        "bad |= {'mechdesign.solve', 'mechdesign.synthesis._design'}\n"
        "bad &= set(sys.modules)\n"
        "assert not bad, bad"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_terminals_of_few_characters(made):
    verified = command("verify", made, env={**os.environ, "PYTHONIOENCODING": "ascii"}, encoding="utf-8")
    assert verified.returncode == 0, verified.stderr
    assert "ε ≤ 0.7" in verified.stdout


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("command", [["verify"], ["export", "--format", "json"], ["sample", "--secret", "0"]])
def test_a_full_disk_is_not_a_failed_verification(made, command):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mechdesign", command[0], str(made), *command[1:]],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
