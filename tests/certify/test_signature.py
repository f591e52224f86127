"""A signature of certificate.json alone, by a tool that knows nothing of bundles, covers the whole bundle."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from bundles import made, put

import mechdesign as md
from mechdesign.certify import second_verifier
from mechdesign.certify._bundle import CERTIFICATE
from mechdesign.errors import CertificateError

pytestmark = pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="ssh-keygen, of OpenSSH, is not installed")
SIGNER = "me@example.org"


def keygen(*words: object, certificate: Path | None = None) -> int:
    """Run ssh-keygen, with the certificate as its input."""
    given = b"" if certificate is None else certificate.read_bytes()
    return subprocess.run(["ssh-keygen", *map(str, words)], input=given, capture_output=True, timeout=60).returncode


def test_the_signature_of_a_certificate_vouches_for_every_file(tmp_path: Path) -> None:
    folder, key, signers = tmp_path / "bundle", tmp_path / "signer", tmp_path / "signers"
    folder.mkdir()
    put(folder, made("expected cost"))
    certificate, signature = folder / CERTIFICATE, folder / f"{CERTIFICATE}.sig"
    assert keygen("-q", "-t", "ed25519", "-N", "", "-f", key) == 0
    assert keygen("-q", "-Y", "sign", "-n", "mechdesign", "-f", key, certificate) == 0
    signers.write_text(f"{SIGNER} {key.with_suffix('.pub').read_text()}")
    check = ("-Y", "verify", "-n", "mechdesign", "-f", signers, "-I", SIGNER, "-s", signature)
    # Both verifiers take the folder with the signature in it.
    assert keygen(*check, certificate=certificate) == 0
    assert md.verify(folder).holds
    assert second_verifier.main([str(folder)]) == 0
    for name, content in made("expected cost").items():
        (folder / name).write_bytes(content + b"\n")
        refused = keygen(*check, certificate=certificate) != 0
        if not refused:
            # The signed certificate has the digest of this file.
            with pytest.raises(CertificateError):
                md.verify(folder)
        assert refused is (name == CERTIFICATE), name
        (folder / name).write_bytes(content)
    # Another design with true claims is another certificate.
    put(folder, made("claims"))
    assert md.verify(folder).holds
    assert keygen(*check, certificate=certificate) != 0
