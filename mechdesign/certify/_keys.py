"""Ed25519 keys from files: public keys check signatures, private keys make them.

Keys are PEM files, as ``openssl genpkey -algorithm ed25519`` writes them, or files of OpenSSH. No message of this
module contains key material or a passphrase. The package `cryptography` is imported when a key is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mechdesign.base._check import as_path
from mechdesign.base._errors import ExposedFileWarning, InputError, MissingDependencyError
from mechdesign.base._warnings import warn

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

Passphrase = bytes | str | Callable[[], bytes | str] | None
"""The passphrase of a private key, or a function that is called only for an encrypted key."""

_MAX_KEY_BYTES = 2**16
_MAKE = "`openssl genpkey -algorithm ed25519 -out KEY.pem` makes one"
_PUBLIC = "an Ed25519 public key: PEM, or one line of OpenSSH"
_PRIVATE = "an Ed25519 private key: PEM, or a file of OpenSSH"


@dataclass(frozen=True, repr=False)
class VerifyingKey:
    """An Ed25519 public key."""

    key: Ed25519PublicKey

    @property
    def identifier(self) -> str:
        """The SHA-256 of the key as a DER-encoded SubjectPublicKeyInfo, as hexadecimal digits."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        content = self.key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(content).hexdigest()

    def accepts(self, signature: bytes, message: bytes) -> bool:
        """Return whether the signature of a message was made with the private key."""
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, repr=False)
class SigningKey:
    """An Ed25519 private key; its text shows nothing of the key."""

    key: Ed25519PrivateKey

    @property
    def public(self) -> VerifyingKey:
        """The public key."""
        return VerifyingKey(self.key.public_key())

    def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return self.key.sign(message)


def read_public_key(path: str | os.PathLike[str]) -> VerifyingKey:
    """Read the public key of a signer.

    Args:
        path: A file with an Ed25519 public key, in PEM or as one line of OpenSSH.

    Returns:
        The key.

    Raises:
        InputError: The file cannot be read, or does not contain exactly one such key.
        MissingDependencyError: The package `cryptography` is not installed.
    """
    loaders = _import_loaders()
    file = as_path(path, "key")
    content, _ = _read(file)
    if b"PRIVATE KEY-----" in content:
        remedy = f"`openssl pkey -in {file} -pubout` or `ssh-keygen -y -f {file}` prints its public key"
        raise InputError("key", "is a private key, which stays with the signer", value=str(file), remedy=remedy)
    if content.count(b"-----BEGIN ") > 1 or (b"-----BEGIN " not in content and len(content.strip().splitlines()) > 1):
        raise InputError("key", "contains several keys", value=str(file), bound=_PUBLIC)
    load = loaders.load_pem_public_key if b"-----BEGIN " in content else loaders.load_ssh_public_key
    return VerifyingKey(_load_ed25519(file, _PUBLIC, "Ed25519PublicKey", load, content))


def read_private_key(path: str | os.PathLike[str], passphrase: Passphrase = None) -> SigningKey:
    """Read the private key of a signer; warn with `ExposedFileWarning` if other users can read the file.

    Args:
        path: A file with an Ed25519 private key, in PEM or in the format of OpenSSH.
        passphrase: The passphrase, or a function that returns it; used only for an encrypted key.

    Returns:
        The key.

    Raises:
        InputError: The file cannot be read or does not contain such a key, or the passphrase is missing or wrong.
        MissingDependencyError: A package of the extra `sign` is not installed.
    """
    loaders = _import_loaders()
    file = as_path(path, "key")
    content, mode = _read(file)
    if b"PRIVATE KEY-----" not in content:
        public = content.startswith(b"ssh-") or b"PUBLIC KEY-----" in content
        problem = "is a public key, which cannot sign" if public else "is not a private key"
        raise InputError("key", problem, value=str(file), bound=_PRIVATE, remedy=_MAKE)
    load = (
        loaders.load_ssh_private_key if b"BEGIN OPENSSH PRIVATE KEY-----" in content else loaders.load_pem_private_key
    )
    try:
        key = _load_ed25519(file, _PRIVATE, "Ed25519PrivateKey", load, content, None)
    except _EncryptedKeyError:
        secret = _take(passphrase, file)
        try:
            key = _load_ed25519(file, _PRIVATE, "Ed25519PrivateKey", load, content, secret)
        except _UnreadableKeyError:
            raise InputError(
                "passphrase", f"does not open the key {file}", bound="the passphrase of this key"
            ) from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO) and hasattr(os, "geteuid"):
        said = f"{file} is a private key, but its mode {mode:04o} lets others use it. To change that: chmod 600 {file}"
        warn(said, ExposedFileWarning, stacklevel=3)
    return SigningKey(key)


class _EncryptedKeyError(InputError):
    """A key is encrypted, and no passphrase was given."""


class _UnreadableKeyError(InputError):
    """The content of a key file is malformed, or cannot be decrypted."""


def _import_loaders() -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise MissingDependencyError(
            "signatures need the package cryptography: pip install 'mechdesign[sign]'"
        ) from error
    return serialization


def _read(path: Path) -> tuple[bytes, int]:
    """Return the content and the mode of a key file."""
    try:
        with path.open("rb") as file:
            content, mode = file.read(_MAX_KEY_BYTES + 1), stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError("key", f"cannot be read ({reason})", value=str(path), bound="a readable file") from error
    if len(content) > _MAX_KEY_BYTES:
        raise InputError("key", "is too large for a key", value=str(path), bound=f"at most {_MAX_KEY_BYTES} bytes")
    return content, mode


def _load_ed25519(path: Path, bound: str, kind: str, load: Callable[..., Any], *arguments: bytes | None) -> Any:
    """Return the key that `load` reads; raise `InputError` for malformed content and for keys of other kinds."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric import ed25519

    try:
        key = load(*arguments)
    except TypeError:
        raise _EncryptedKeyError("key", "is encrypted", value=str(path)) from None
    except UnsupportedAlgorithm as error:
        if "bcrypt" in str(error):
            raise MissingDependencyError(
                "encrypted keys of OpenSSH need the package bcrypt: pip install 'mechdesign[sign]'"
            ) from error
        raise InputError("key", "is of another kind", value=str(path), bound=bound, remedy=_MAKE) from None
    except ValueError:
        # The message of the library is not shown, since it may quote the file.
        raise _UnreadableKeyError("key", "cannot be read as a key", value=str(path), bound=bound) from None
    if not isinstance(key, getattr(ed25519, kind)):
        found = type(key).__name__.lstrip("_").removesuffix("PrivateKey").removesuffix("PublicKey")
        raise InputError("key", f"is a key for {found}", value=str(path), bound=bound, remedy=_MAKE)
    return key


def _take(passphrase: Passphrase, path: Path) -> bytes:
    """Return the passphrase as bytes."""
    found = passphrase() if callable(passphrase) else passphrase
    if found is None:
        raise InputError("passphrase", f"is missing, but the key {path} is encrypted", bound="a text or bytes")
    if not isinstance(found, bytes | str) or not found:
        raise InputError("passphrase", "is empty or not a text", bound="a text or bytes")
    return found.encode() if isinstance(found, str) else found
