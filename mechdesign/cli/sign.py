"""``mechdesign sign``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from mechdesign.base._errors import InputError
from mechdesign.certify._memory import MEMORY_GIB
from mechdesign.certify._signing import sign as sign_bundle
from mechdesign.certify._statement import STATEMENT
from mechdesign.cli._console import output, show_next
from mechdesign.synthesis._folders import require_design

PASSPHRASE = "MECHDESIGN_PASSPHRASE"
"""The environment variable with the passphrase of a private key."""

_MAX_PASSPHRASE_BYTES = 4096


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--key", metavar="KEYFILE", type=click.Path(path_type=Path), required=True,
    help="Ed25519 private key: PEM, as openssl writes it, or a file of OpenSSH.",
)  # fmt: skip
@click.option(
    "--passphrase-file", metavar="FILE", type=click.Path(path_type=Path),
    help=f"File with the passphrase of the key in its first line. Without it, ${PASSPHRASE} or the terminal is used.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help=f"Replace a {STATEMENT} that is about another certificate.")
@click.option(
    "--memory", metavar="GIB", type=float, default=MEMORY_GIB, show_default=True,
    help="Limit on the memory that the verification is estimated to need.",
)  # fmt: skip
def sign(folder: Path, key: Path, passphrase_file: Path | None, overwrite: bool, memory: float) -> None:
    """Verify a bundle, and write statement.json: a signed statement about its certificate.

    The certificate lists the digests of all other files, so the signature covers them too. A bundle that does not
    verify is not signed. Signatures of other people about the same certificate are kept.

    The passphrase of an encrypted key is never an argument: other users of the machine can read arguments.
    """
    require_design(folder)
    identifier = sign_bundle(
        folder, key, passphrase=lambda: _ask(key, passphrase_file), overwrite=overwrite, memory=memory
    )
    output().print(f"{folder} verifies, and is signed in {folder / STATEMENT}.", style="green", soft_wrap=True)
    output().print(f"key {identifier}", soft_wrap=True)
    show_next({f"mechdesign verify {folder} --key PUBLIC": "check the signature and all claims with the public key"})


def _ask(key: Path, file: Path | None) -> str:
    """Return the passphrase from a file, from the environment, or from the terminal."""
    if file is not None:
        return _read_first_line(file)
    if given := os.environ.get(PASSPHRASE):
        return given
    if not sys.stdin.isatty():
        raise InputError(
            "--key",
            "is encrypted, and there is no terminal that could ask for its passphrase",
            value=str(key),
            remedy=f"set ${PASSPHRASE}, or give --passphrase-file",
        )
    found: str = click.prompt(f"Passphrase of {key}", hide_input=True, err=True)
    return found


def _read_first_line(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            line = opened.readline(_MAX_PASSPHRASE_BYTES)
        return line.decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        # The error of the decoder would quote the passphrase.
        reason = (error.strerror or "") if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError("--passphrase-file", f"cannot be read ({reason})", value=str(file)) from None
