"""Signed statements about bundles: the file ``statement.json`` next to the files of a bundle.

The file is a DSSE envelope. Its payload is an in-toto Statement v1 whose subject is ``certificate.json`` with its
SHA-256. The certificate lists the SHA-256 of all other files of the bundle, so the statement covers these files too. A
signature covers the pre-authentication encoding of the payload and its type, never the JSON text of the envelope.

An envelope may have several signatures, one for each signer. A key identifier in the envelope is only a hint: every
signature is tried with the given key.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mechdesign.base._errors import SignatureError
from mechdesign.certify._texts import unique_keys

STATEMENT = "statement.json"

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"

PREDICATE_TYPE = "mechdesign:verified-bundle/1"
"""The meaning of a statement: the signer verified the bundle, and vouches for this certificate."""

MAX_STATEMENT_BYTES = 2**20
MAX_SIGNATURES = 64


class PublicKey(Protocol):
    """A public key that checks signatures."""

    @property
    def identifier(self) -> str:
        """The SHA-256 of the key, as hexadecimal digits."""
        ...

    def accepts(self, signature: bytes, message: bytes) -> bool:
        """Return whether the signature of a message was made with the private key."""
        ...


@dataclass(frozen=True)
class Signature:
    """A signature with the identifier of its key, which is a hint and not authenticated."""

    key: str
    content: bytes


@dataclass(frozen=True)
class Envelope:
    """The contents of ``statement.json``; neither the payload nor a signature has been checked."""

    payload: bytes
    signatures: tuple[Signature, ...]

    def encode(self) -> bytes:
        """Return the JSON text of the envelope."""
        document = {
            "payload": base64.b64encode(self.payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [
                {"keyid": each.key, "sig": base64.b64encode(each.content).decode()} for each in self.signatures
            ],
        }
        return (json.dumps(document, indent=2) + "\n").encode()


def encode_payload(name: str, sha256: str, schema: str) -> bytes:
    """Return the statement about the certificate of a bundle; equal arguments give equal bytes.

    The statement contains no time and no version, so that several people can sign the same bytes.

    >>> json.loads(encode_payload("certificate.json", "00", "mechdesign-certificate/1"))["subject"]
    [{'digest': {'sha256': '00'}, 'name': 'certificate.json'}]
    """
    document = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": sha256}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"schema": schema},
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def encode_for_signing(payload: bytes, kind: str = PAYLOAD_TYPE) -> bytes:
    """Return the pre-authentication encoding (PAE) of DSSE, the bytes that are signed.

    >>> encode_for_signing(b"hello world", "http://example.com/HelloWorld")
    b'DSSEv1 29 http://example.com/HelloWorld 11 hello world'
    """
    name = kind.encode()
    return b"DSSEv1 %d %b %d %b" % (len(name), name, len(payload), payload)


def read_envelope(content: bytes) -> Envelope:
    """Read ``statement.json``; raise `SignatureError` if it is not an envelope with an in-toto statement."""
    if len(content) > MAX_STATEMENT_BYTES:
        raise SignatureError(f"{STATEMENT} is malformed: it exceeds the limit of {MAX_STATEMENT_BYTES} bytes")
    document = _read_object(content, STATEMENT)
    if document.get("payloadType") != PAYLOAD_TYPE:
        found = document.get("payloadType")
        raise SignatureError(f"{STATEMENT} has the payloadType {_write_value(found)}; expected {PAYLOAD_TYPE!r}")
    listed = document.get("signatures")
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_SIGNATURES:
        raise SignatureError(f"{STATEMENT} is malformed: signatures is not a list of 1 to {MAX_SIGNATURES} signatures")
    return Envelope(_decode(document.get("payload"), "payload"), tuple(map(_read_signature, listed)))


def require_about(payload: bytes, name: str, sha256: str) -> None:
    """Raise `SignatureError` unless a payload is a statement of this package about a file with this SHA-256."""
    document = _read_object(payload, f"the payload of {STATEMENT}")
    for key, wanted in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if document.get(key) != wanted:
            raise SignatureError(f"the statement has the {key} {_write_value(document.get(key))}; expected {wanted!r}")
    subjects = document.get("subject")
    if not isinstance(subjects, list) or not all(isinstance(each, Mapping) for each in subjects):
        raise SignatureError(f"the payload of {STATEMENT} is malformed: subject is not a list of objects")
    found = [each.get("digest") for each in subjects if each.get("name") == name]
    if len(found) != 1:
        raise SignatureError(f"the statement has {len(found)} subjects with the name {name}; expected one")
    if not isinstance(found[0], Mapping) or found[0].get("sha256") != sha256:
        raise SignatureError(f"the statement is about another {name}: its SHA-256 is not that of this bundle")


def require_signed(content: bytes | None, name: str, sha256: str, key: PublicKey) -> None:
    """Raise `SignatureError` unless a file is signed with this key.

    Args:
        content: The bytes of ``statement.json``, or None if there is no such file.
        name: The name of the file that must be the subject of the statement.
        sha256: The SHA-256 of this file, as hexadecimal digits.
        key: The public key of the signer.
    """
    if content is None:
        raise SignatureError(f"the bundle is not signed: {STATEMENT} is missing")
    envelope = read_envelope(content)
    message = encode_for_signing(envelope.payload)
    if not any(key.accepts(each.content, message) for each in envelope.signatures):
        if any(each.key == key.identifier for each in envelope.signatures):
            raise SignatureError(f"the signature of the key {key.identifier} does not match the statement")
        raise SignatureError(f"{STATEMENT} is not signed with the given key {key.identifier}")
    require_about(envelope.payload, name, sha256)


def describe_statement(content: bytes | None, name: str, sha256: str) -> str:
    """Return a phrase on a statement whose signatures are not checked, because no key is given."""
    if content is None:
        return "none"
    try:
        envelope = read_envelope(content)
        require_about(envelope.payload, name, sha256)
    except SignatureError as error:
        return f"none for this bundle: {error.reason}"
    count = len(envelope.signatures)
    return f"not checked: {STATEMENT} has {count} signature{'s' * (count != 1)}, which a public key can check"


def _read_object(content: bytes, name: str) -> Mapping[str, Any]:
    """Return a JSON object without repeated keys."""
    try:
        document = json.loads(content.decode(), object_pairs_hook=unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise SignatureError(f"{name} is not valid JSON ({error})") from error
    if not isinstance(document, Mapping):
        raise SignatureError(f"{name} is malformed: it is not an object")
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _read_signature(entry: object) -> Signature:
    if not isinstance(entry, Mapping):
        raise SignatureError(f"{STATEMENT} is malformed: a signature is not an object")
    key = entry.get("keyid", "")
    if not isinstance(key, str):
        raise SignatureError(f"{STATEMENT} is malformed: the keyid of a signature is not a text")
    return Signature(key, _decode(entry.get("sig"), "sig"))


def _decode(text: object, name: str) -> bytes:
    """Return the bytes of a base64 text, in the standard or in the URL-safe alphabet."""
    try:
        if not isinstance(text, str):
            raise ValueError("it is not a text")
        return base64.b64decode(text.encode("ascii").translate(bytes.maketrans(b"-_", b"+/")), validate=True)
    except (ValueError, binascii.Error) as error:
        raise SignatureError(f"{STATEMENT} is malformed: {name} is not base64 ({error})") from error


def _write_value(value: object) -> str:
    """Return a value in at most 80 characters."""
    text = repr(value)
    return text if len(text) <= 80 else text[:79] + "…"


def merge_signatures(kept: Sequence[Signature], added: Signature) -> tuple[Signature, ...]:
    """Return the signatures with one added, which replaces an earlier signature of the same key."""
    return (*(each for each in kept if each.key != added.key), added)
