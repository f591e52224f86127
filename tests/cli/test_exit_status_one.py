"""Exit status 1 says that a verification failed, whichever command it is; what was not verified has another one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import run

import mechdesign as md
from mechdesign.certify import __main__ as kernel
from mechdesign.certify import second_verifier


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "d"
    distance = md.distances.euclidean([[0.0], [1.0]])
    md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)])).save(folder)
    return folder


@pytest.mark.parametrize("what", ["missing", "file.toml", "empty"])
@pytest.mark.parametrize("command", ["verify", "inspect", "compare", "sample", "attack", "export", "audit"])
def test_what_is_no_export_is_wrong_input(bundle, tmp_path, command, what):
    (tmp_path / "file.toml").write_text("title = 'x'", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    more = {"compare": [str(bundle)], "sample": ["--secret", "0"], "export": ["--format", "json"]}
    result = run(command, str(tmp_path / what), *more.get(command, []))
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output


def test_too_little_memory_is_neither_a_failed_verification_nor_wrong_input(bundle):
    assert run("verify", str(bundle), "--memory", "0.0001").exit_code == 3
    assert "was not verified" in run("verify", str(bundle), "--memory", "0.0001").stderr
    assert kernel.main([str(bundle), "--memory", "0.0001"]) == 3
    assert second_verifier.main([str(bundle), "--memory", "0.0001"]) == 3
    assert run("verify", str(bundle), "--memory", "1").exit_code == 0


@pytest.mark.parametrize("main", [kernel.main, second_verifier.main])
def test_the_verifiers_alone_keep_to_it(bundle, tmp_path, main):
    assert main([str(bundle)]) == 0
    assert main([str(tmp_path / "missing")]) == 2
    assert main([str(tmp_path)]) == 2


def test_a_changed_file_is_a_failed_verification(bundle, tmp_path):
    for name in ("channel.npz", "dual.npz", "channel.csv", "certificate.json"):
        (tmp_path / name).write_bytes((bundle / name).read_bytes())
    assert run("verify", str(tmp_path)).exit_code == 0
    (tmp_path / "certificate.json").unlink()
    assert run("verify", str(tmp_path)).exit_code == 1
    assert run("inspect", str(tmp_path)).exit_code == 1


def test_the_process_ends_with_it(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mechdesign.certify", str(tmp_path / "missing")], check=False, capture_output=True
    )
    assert done.returncode == 2
