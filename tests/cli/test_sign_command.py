"""`mechdesign sign`, and `mechdesign verify --key`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, assert_wrong_usage, run

pytest.importorskip("cryptography", reason="cryptography, of the extra sign, is not installed")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SECRET = "correct horse"


def write_keys(folder: Path, name: str, secret: str = "") -> tuple[Path, Path]:
    """Write a new private key and its public key."""
    folder.mkdir(exist_ok=True)
    key = Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.PKCS8
    encryption = serialization.BestAvailableEncryption(secret.encode()) if secret else serialization.NoEncryption()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.touch(0o600)
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, encryption))
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


@pytest.fixture
def keys(tmp_path):
    return write_keys(tmp_path / "keys", "ours")


def test_a_bundle_is_signed_and_verified(made, keys):
    result = run("sign", made, "--key", keys[0])
    assert result.exit_code == 0, result.output
    assert f"{made} verifies, and is signed in {made / 'statement.json'}." in result.stdout
    assert "mechdesign verify" in result.stdout
    identifier = result.stdout.split("\nkey ")[1].split()[0]
    shown = run("verify", made, "--key", keys[1])
    assert shown.exit_code == 0
    assert f"signature: by the key {identifier}" in shown.stdout
    found = json.loads(run("verify", made, "--key", keys[1], "--json").stdout)
    assert found["signature"] == f"by the key {identifier}"


def test_without_a_key_the_signature_is_a_note(made, keys):
    assert "\nsignature: none\n" in run("verify", made).stdout
    run("sign", made, "--key", keys[0])
    result = run("verify", made)
    assert result.exit_code == 0
    assert "\nsignature: not checked: statement.json has 1 signature, which a public key can check\n" in result.stdout


def test_a_missing_or_foreign_statement_is_a_failure(made, keys, tmp_path):
    result = run("verify", made, "--key", keys[1])
    assert result.exit_code == 1
    assert "does not verify: the bundle is not signed: statement.json is missing" in result.stderr.replace("\n", " ")
    run("sign", made, "--key", write_keys(tmp_path / "keys", "theirs")[0])
    result = run("verify", made, "--key", keys[1], "--json")
    assert result.exit_code == 1
    said = json.loads(result.stdout)
    assert said["holds"] is False
    assert "statement.json is not signed with the given key" in said["reason"]


def test_a_bundle_that_was_swapped_is_a_failure(made, keys, tmp_path):
    assert run("sign", made, "--key", keys[0]).exit_code == 0
    other = tmp_path / "other.toml"
    other.write_text(SPECIFICATION.replace("epsilon = 0.7", "epsilon = 0.8"))
    assert run("design", other, "-o", tmp_path / "other", "--no-report").exit_code == 0
    statement = (made / "statement.json").read_bytes()
    (tmp_path / "other" / "statement.json").write_bytes(statement)
    assert run("verify", tmp_path / "other").exit_code == 0
    result = run("verify", tmp_path / "other", "--key", keys[1])
    assert result.exit_code == 1
    assert "is about another certificate.json" in result.stderr.replace("\n", " ")


def test_a_new_design_removes_the_statement(made, keys, tmp_path):
    run("sign", made, "--key", keys[0])
    other = tmp_path / "other.toml"
    other.write_text(SPECIFICATION.replace("epsilon = 0.7", "epsilon = 0.8"))
    result = run("design", other, "-o", made, "--no-report", "--overwrite")
    assert result.exit_code == 0, result.output
    assert not (made / "statement.json").exists()


def test_a_bundle_that_does_not_verify_is_not_signed(made, keys):
    (made / "channel.csv").write_text("other\n")
    result = run("sign", made, "--key", keys[0])
    assert result.exit_code == 1
    assert not (made / "statement.json").exists()


def test_wrong_usage(made, keys):
    assert_wrong_usage(
        {
            "sign made": "Missing option '--key'",
            "sign made --key missing.pem": "cannot be read",
            "sign made --key .": "cannot be read",
            "sign made --key keys/ours.pub": "is a public key, which cannot sign",
            "sign made --key keys/ours.pem --passphrase x": "No such option",
            "sign made --key keys/ours.pem --memory 0": "memory",
            "sign made --key made/certificate.json": "lies in the folder of the bundle",
            "sign missing --key keys/ours.pem": "missing",
            "sign keys --key keys/ours.pem": "keys",
            "sign made/certificate.json --key keys/ours.pem": "certificate.json",
        }
    )
    run("sign", made, "--key", keys[0])
    wrong = ("missing.pub", ".", "keys/ours.pem", "made/certificate.json", "made/channel.npz")
    assert_wrong_usage({f"verify made --key {key}": "key: " for key in wrong})


def test_a_schedule_is_not_signed_as_a_whole(made, keys, tmp_path):
    folder = tmp_path / "schedule"
    folder.mkdir()
    made.rename(folder / "epsilon-0.7")
    (folder / "schedule.csv").write_text("step,epsilon,folder\n0,0.7,epsilon-0.7\n")
    assert run("verify", folder).exit_code == 0
    result = run("sign", folder, "--key", keys[0])
    assert result.exit_code == 2
    assert "epsilon-0.7" in result.stderr
    result = run("verify", folder, "--key", keys[1])
    assert result.exit_code == 2
    assert "a schedule, which is not signed as a whole" in result.stderr.replace("\n", " ")
    assert run("sign", folder / "epsilon-0.7", "--key", keys[0]).exit_code == 0
    assert run("verify", folder / "epsilon-0.7", "--key", keys[1]).exit_code == 0


def test_the_passphrase_comes_from_a_file_or_the_environment(made, tmp_path, monkeypatch):
    private, public = write_keys(tmp_path / "keys", "closed", SECRET)
    monkeypatch.delenv("MECHDESIGN_PASSPHRASE", raising=False)
    result = run("sign", made, "--key", private)
    assert result.exit_code == 2
    assert "is encrypted, and there is no terminal" in result.stderr.replace("\n", " ")
    assert "$MECHDESIGN_PASSPHRASE, or give --passphrase-file" in result.stderr.replace("\n", " ")
    monkeypatch.setenv("MECHDESIGN_PASSPHRASE", SECRET)
    assert run("sign", made, "--key", private).exit_code == 0
    monkeypatch.setenv("MECHDESIGN_PASSPHRASE", "wrong one")
    result = run("sign", made, "--key", private)
    assert result.exit_code == 2
    assert "wrong one" not in result.output
    # The file counts more than the environment.
    (tmp_path / "secret").write_text(f"{SECRET}\nsecond line\n")
    result = run("sign", made, "--key", private, "--passphrase-file", tmp_path / "secret")
    assert result.exit_code == 0
    assert SECRET not in result.output
    assert run("verify", made, "--key", public).exit_code == 0


def test_a_passphrase_file_without_the_passphrase(made, tmp_path):
    private, _ = write_keys(tmp_path / "keys", "closed", SECRET)
    for content in (b"", b"\n", b"\xff\xfe", b"x" * 5000, None):
        (tmp_path / "secret").unlink(missing_ok=True)
        if content is not None:
            (tmp_path / "secret").write_bytes(content)
        result = run("sign", made, "--key", private, "--passphrase-file", tmp_path / "secret")
        assert (result.exit_code, "xxx" in result.output) == (2, False), content
        assert not (made / "statement.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "forkpty") or sys.platform == "darwin", reason="there is no pseudo-terminal")
def test_a_terminal_is_asked_and_does_not_show_the_passphrase(made, tmp_path):
    private, public = write_keys(tmp_path / "keys", "closed", SECRET)
    words = [sys.executable, "-m", "mechdesign", "sign", str(made), "--key", str(private)]
    code = (
        "import os, pty, sys\n"
        "child, terminal = pty.fork()\n"
        "if not child: os.execv(sys.argv[1], sys.argv[1:])\n"
        "said = b''\n"
        "while b'Passphrase' not in said: said += os.read(terminal, 1024)\n"
        f"os.write(terminal, b'{SECRET}\\n')\n"
        "try:\n"
        "    while more := os.read(terminal, 1024): said += more\n"
        "except OSError: pass\n"
        "print(said.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=100)
    assert "Passphrase of" in done.stdout, done.stderr
    assert done.stdout.rstrip().endswith(" 0")
    assert SECRET not in done.stdout
    assert run("verify", made, "--key", public).exit_code == 0
