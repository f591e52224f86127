"""Signing of a bundle that verifies."""

from __future__ import annotations

import os

from mechdesign.base._atomic import write_file
from mechdesign.base._check import as_path
from mechdesign.base._errors import ExportError, InputError, SignatureError
from mechdesign.certify._bundle import CERTIFICATE, Bundle, inspect
from mechdesign.certify._keys import Passphrase, read_private_key
from mechdesign.certify._memory import MEMORY_GIB
from mechdesign.certify._statement import (
    MAX_SIGNATURES,
    STATEMENT,
    Envelope,
    Signature,
    encode_for_signing,
    encode_payload,
    merge_signatures,
    read_envelope,
)
from mechdesign.certify._verify import prove


def sign(
    folder: str | os.PathLike[str],
    key: str | os.PathLike[str],
    *,
    passphrase: Passphrase = None,
    overwrite: bool = False,
    memory: float = MEMORY_GIB,
) -> str:
    """Verify a bundle, and write ``statement.json``, a signed statement about its certificate.

    The signatures of other people about the same certificate are kept. A second signature with the same key replaces
    the first one, and has the same bytes.

    Args:
        folder: The folder of the bundle.
        key: A file with an Ed25519 private key, in PEM or in the format of OpenSSH, outside of `folder`.
        passphrase: The passphrase of an encrypted key, or a function that returns it and is called only for such a key.
        overwrite: Whether to replace a ``statement.json`` that is not about this certificate.
        memory: Memory limit of the verification in GiB, above 0.

    Returns:
        The identifier of the key, which is the SHA-256 of its public key in hexadecimal digits.

    Raises:
        CertificateError: The bundle does not verify; nothing is signed.
        InputError: The key cannot be used, or the passphrase is missing or wrong.
        ExportError: The file cannot be written, or another statement would be replaced.
        MissingDependencyError: A package of the extra `sign` is not installed.

    >>> import pathlib, tempfile
    >>> from cryptography.hazmat.primitives import serialization
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> import mechdesign as md
    >>> from mechdesign.certify import sign
    >>> problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy("1", [[0, 1], [1, 0]])])
    >>> folder = tempfile.mkdtemp()
    >>> encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    >>> key = Ed25519PrivateKey.generate().private_bytes(encoding, form, serialization.NoEncryption())
    >>> pathlib.Path(f"{folder}/key.pem").touch(0o600)
    >>> pathlib.Path(f"{folder}/key.pem").write_bytes(key)
    119
    >>> md.design(problem).save(f"{folder}/two")
    >>> len(sign(f"{folder}/two", f"{folder}/key.pem"))
    64
    """
    directory = as_path(folder, "folder")
    if as_path(key, "key").resolve().parent == directory.resolve():
        raise InputError(
            "key",
            "lies in the folder of the bundle, which may be handed on",
            value=str(key),
            bound="a file in another folder",
        )
    signer = read_private_key(key, passphrase)
    found = inspect(directory, memory)
    if STATEMENT in found.files:
        raise SignatureError(f"{CERTIFICATE} lists {STATEMENT}, which cannot contain a statement about {CERTIFICATE}")
    prove(found, memory)
    payload = encode_payload(CERTIFICATE, found.sha256, found.schema)
    name = signer.public.identifier
    kept = _find_kept_signatures(found, payload, f"{directory / STATEMENT}", overwrite)
    signatures = merge_signatures(kept, Signature(name, signer.sign(encode_for_signing(payload))))
    if len(signatures) > MAX_SIGNATURES:
        raise ExportError(f"{directory / STATEMENT} would have more than {MAX_SIGNATURES} signatures")
    write_file(directory / STATEMENT, [Envelope(payload, signatures).encode()])
    return name


def _find_kept_signatures(found: Bundle, payload: bytes, path: str, overwrite: bool) -> tuple[Signature, ...]:
    """Return the signatures of an older statement with the same payload.

    Raises `ExportError` for any other statement, unless it may be overwritten.
    """
    if found.statement is None:
        return ()
    try:
        older = read_envelope(found.statement)
        reason = "" if older.payload == payload else f"it is not the statement about this {CERTIFICATE}"
    except SignatureError as error:
        older, reason = None, error.reason
    if reason and not overwrite:
        raise ExportError(f"{path} would be replaced: {reason}; to replace it, use --overwrite (overwrite=True)")
    return () if older is None or reason else older.signatures
