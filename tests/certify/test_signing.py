"""Signed statements: what is signed, what a key refuses, and what is never said of a key."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bundles import line

import mechdesign as md
from mechdesign.certify import _bundle as bundle
from mechdesign.certify import examine, sign
from mechdesign.certify._bundle import CERTIFICATE, encode, write
from mechdesign.certify._certificate import certify
from mechdesign.certify._keys import read_private_key, read_public_key
from mechdesign.certify._statement import (
    MAX_SIGNATURES,
    MAX_STATEMENT_BYTES,
    PAYLOAD_TYPE,
    STATEMENT,
    encode_for_signing,
    encode_payload,
    read_envelope,
)
from mechdesign.errors import (
    CertificateError,
    ExportError,
    ExposedFileWarning,
    InputError,
    MissingDependencyError,
    SignatureError,
    UnverifiedError,
)

pytest.importorskip("cryptography", reason="cryptography, of the extra sign, is not installed")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PEM, OPENSSH = serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH
PKCS8, PLAIN = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo
FILES = encode(line(4, 0.6), certify(line(4, 0.6)), files={"report.html": b"<p>"})
OTHERS = encode(line(4, 0.7), certify(line(4, 0.7)))
SECRET = "correct horse"


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


class Signer:
    """An Ed25519 key with its files."""

    def __init__(self, folder: Path, name: str) -> None:
        self.key = Ed25519PrivateKey.generate()
        self.private = put(folder / f"{name}.pem", self.key.private_bytes(PEM, PKCS8, PLAIN))
        self.public = put(folder / f"{name}.pub", self.key.public_key().public_bytes(PEM, SPKI))

    def envelope(self, payload: bytes, kind: str = PAYLOAD_TYPE, /, **changes: Any) -> bytes:
        """Return an envelope that somebody else made with this key."""
        signature = self.key.sign(encode_for_signing(payload, kind))
        entry = {"keyid": "", "sig": base64.b64encode(signature).decode()}
        made = {"payload": base64.b64encode(payload).decode(), "payloadType": kind, "signatures": [entry]}
        return json.dumps({**made, **changes}).encode()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    return folder


@pytest.fixture
def ours(keys: Path) -> Signer:
    return Signer(keys, "ours")


@pytest.fixture
def theirs(keys: Path) -> Signer:
    return Signer(keys, "theirs")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "bundle", FILES)
    return tmp_path / "bundle"


def digest(folder: Path) -> str:
    return hashlib.sha256((folder / CERTIFICATE).read_bytes()).hexdigest()


def statement(folder: Path, **changes: Any) -> bytes:
    return json.dumps({**json.loads(encode_payload(CERTIFICATE, digest(folder), bundle.SCHEMA)), **changes}).encode()


def test_a_signed_bundle_verifies_with_the_key(folder: Path, ours: Signer) -> None:
    identifier = sign(folder, ours.private)
    assert md.verify(folder, key=ours.public).holds
    assert examine(folder, key=ours.public).signature == f"by the key {identifier}"
    document = json.loads((folder / STATEMENT).read_bytes())
    assert set(document) == {"payload", "payloadType", "signatures"}
    said = json.loads(base64.b64decode(document["payload"]))
    assert said == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "certificate.json", "digest": {"sha256": digest(folder)}}],
        "predicateType": "mechdesign:verified-bundle/1",
        "predicate": {"schema": "mechdesign-certificate/1"},
    }


def test_the_encoding_for_signing_is_that_of_the_specification() -> None:
    wanted = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert encode_for_signing(b"hello world", "http://example.com/HelloWorld") == wanted
    # Lengths count bytes, and an empty payload has the length 0.
    assert encode_for_signing(b"", "é") == "DSSEv1 2 é 0 ".encode()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_makes_keys_and_checks_signatures(folder: Path, keys: Path) -> None:
    def openssl(*arguments: object) -> bytes:
        return subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True).stdout

    openssl("genpkey", "-algorithm", "ed25519", "-out", keys / "k.pem")
    openssl("pkey", "-in", keys / "k.pem", "-pubout", "-out", keys / "k.pub")
    identifier = sign(folder, keys / "k.pem")
    assert md.verify(folder, key=keys / "k.pub").holds
    envelope = read_envelope((folder / STATEMENT).read_bytes())
    put(keys / "message", encode_for_signing(envelope.payload))
    put(keys / "signature", envelope.signatures[0].content)
    files = ("-sigfile", keys / "signature", "-rawin", "-in", keys / "message")
    assert b"Verified" in openssl("pkeyutl", "-verify", "-pubin", "-inkey", keys / "k.pub", *files)
    der = openssl("pkey", "-pubin", "-in", keys / "k.pub", "-outform", "DER")
    assert hashlib.sha256(der).hexdigest() == identifier


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen is not installed")
@pytest.mark.parametrize("secret", ["", pytest.param(SECRET, marks=pytest.mark.slow)])
def test_keys_of_openssh(folder: Path, keys: Path, secret: str) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", secret, "-C", "me@here", "-f", str(keys / "id")]
    subprocess.run(command, check=True)
    sign(folder, keys / "id", passphrase=secret or None)
    assert md.verify(folder, key=keys / "id.pub").holds
    if secret:
        with pytest.raises(InputError, match="passphrase: is missing"):
            sign(folder, keys / "id")


def test_signing_again_gives_the_same_bytes(folder: Path, ours: Signer) -> None:
    sign(folder, ours.private)
    before = (folder / STATEMENT).read_bytes()
    sign(folder, ours.private)
    assert (folder / STATEMENT).read_bytes() == before


def test_several_people_sign_one_certificate(folder: Path, ours: Signer, theirs: Signer) -> None:
    sign(folder, ours.private)
    sign(folder, theirs.private)
    assert len(read_envelope((folder / STATEMENT).read_bytes()).signatures) == 2
    assert md.verify(folder, key=ours.public).holds
    assert md.verify(folder, key=theirs.public).holds
    assert "has 2 signatures" in examine(folder).signature


def test_without_a_key_nothing_fails(folder: Path, ours: Signer) -> None:
    assert examine(folder).signature == "none"
    sign(folder, ours.private)
    assert examine(folder).signature.startswith("not checked: statement.json has 1 signature,")
    (folder / STATEMENT).write_text("nonsense")
    assert examine(folder).signature.startswith("none for this bundle: statement.json is not valid JSON")
    assert md.verify(folder).holds


@pytest.mark.parametrize("name", [*FILES])
def test_a_signature_covers_every_file_of_the_bundle(folder: Path, ours: Signer, name: str) -> None:
    sign(folder, ours.private)
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(CertificateError):
        md.verify(folder, key=ours.public)


@pytest.mark.parametrize("name", ["channel.npz", "dual.npz"])
def test_a_swapped_file_with_repaired_digests_is_refused(folder: Path, ours: Signer, name: str) -> None:
    """Another true bundle is accepted without a key, and refused with it."""
    sign(folder, ours.private)
    for each, content in OTHERS.items():
        (folder / each).write_bytes(content)
    assert md.verify(folder).holds
    with pytest.raises(SignatureError, match=r"is about another certificate\.json"):
        md.verify(folder, key=ours.public)


def test_files_that_no_digest_covers_are_named(folder: Path, ours: Signer) -> None:
    sign(folder, ours.private)
    (folder / "notes.txt").write_text("not from the signer")
    assert (
        "not signed, because certificate.json does not list them: notes.txt"
        in examine(folder, key=ours.public).unproved
    )
    assert not any("not signed" in each for each in examine(folder).unproved)


def test_a_missing_statement_is_refused(folder: Path, ours: Signer) -> None:
    with pytest.raises(SignatureError, match=r"^the bundle is not signed: statement\.json is missing$"):
        md.verify(folder, key=ours.public)


def test_a_statement_by_another_key_is_refused(folder: Path, ours: Signer, theirs: Signer) -> None:
    sign(folder, theirs.private)
    with pytest.raises(SignatureError, match=r"is not signed with the given key [0-9a-f]{64}$"):
        md.verify(folder, key=ours.public)


# Each makes the bytes of a wrong statement, and names what is said of it.
WRONG: dict[str, tuple[Any, str]] = {
    "empty": (lambda f, k: b"", "not valid JSON"),
    "not JSON": (lambda f, k: b"{", "not valid JSON"),
    "not text": (lambda f, k: b"\xff\xfe", "not valid JSON"),
    "a list": (lambda f, k: b"[]", "not an object"),
    "nested": (lambda f, k: b"[" * 100_000, "not valid JSON"),
    "not a number": (lambda f, k: b'{"payload": NaN}', "not valid JSON"),
    "no keys": (lambda f, k: b"{}", "has the payloadType None"),
    "a key twice": (
        lambda f, k: k.envelope(statement(f)).replace(b'{"payload"', b'{"payload": "AAAA", "payload"'),
        "a key occurs twice",
    ),
    "a key twice in the payload": (
        lambda f, k: k.envelope(statement(f).replace(b'"_type"', b'"predicate": {}, "_type"')),
        "a key occurs twice",
    ),
    "another type": (lambda f, k: k.envelope(statement(f), "text/plain"), "has the payloadType 'text/plain'"),
    # The type is in what is signed: renaming it afterwards does not help.
    "renamed type": (
        lambda f, k: k.envelope(statement(f), "text/plain", payloadType=PAYLOAD_TYPE),
        "is not signed with the given key",
    ),
    "no signature": (lambda f, k: k.envelope(statement(f), signatures=[]), "list of 1 to 64"),
    "many signatures": (
        lambda f, k: k.envelope(statement(f), signatures=[{"sig": ""}] * (MAX_SIGNATURES + 1)),
        "list of 1 to 64",
    ),
    "signatures no list": (lambda f, k: k.envelope(statement(f), signatures={"sig": ""}), "list of 1 to 64"),
    "signature no object": (lambda f, k: k.envelope(statement(f), signatures=["x"]), "a signature is not an object"),
    "keyid no text": (
        lambda f, k: k.envelope(statement(f), signatures=[{"keyid": 7, "sig": ""}]),
        "keyid of a signature is not a text",
    ),
    "sig missing": (lambda f, k: k.envelope(statement(f), signatures=[{}]), "sig is not base64"),
    "sig no base64": (lambda f, k: k.envelope(statement(f), signatures=[{"sig": "*"}]), "sig is not base64"),
    "sig too short": (lambda f, k: k.envelope(statement(f), signatures=[{"sig": "AAAA"}]), "is not signed with"),
    "sig of zeros": (
        lambda f, k: k.envelope(statement(f), signatures=[{"sig": "A" * 86 + "=="}]),
        "is not signed with",
    ),
    "payload missing": (lambda f, k: k.envelope(statement(f), payload=None), "payload is not base64"),
    "payload no base64": (lambda f, k: k.envelope(statement(f), payload="é"), "payload is not base64"),
    "payload changed": (
        lambda f, k: k.envelope(statement(f), payload=base64.b64encode(statement(f, predicate={})).decode()),
        "is not signed with",
    ),
    "payload no JSON": (lambda f, k: k.envelope(b"hello"), "the payload of statement.json is not valid JSON"),
    "payload no object": (lambda f, k: k.envelope(b"[]"), "the payload of statement.json is malformed"),
    "another statement": (lambda f, k: k.envelope(statement(f, _type="x")), "has the _type 'x'"),
    "another predicate": (
        lambda f, k: k.envelope(statement(f, predicateType="https://slsa.dev/provenance/v1")),
        "has the predicateType",
    ),
    "no subject": (lambda f, k: k.envelope(statement(f, subject=[])), "has 0 subjects"),
    "subject no list": (lambda f, k: k.envelope(statement(f, subject={})), "subject is not a list of objects"),
    "subject no object": (lambda f, k: k.envelope(statement(f, subject=[1])), "subject is not a list of objects"),
    "two subjects": (
        lambda f, k: k.envelope(
            statement(f, subject=[{"name": CERTIFICATE, "digest": {"sha256": each}} for each in (digest(f), "0")])
        ),
        "has 2 subjects",
    ),
    "another name": (
        lambda f, k: k.envelope(statement(f, subject=[{"name": "x", "digest": {"sha256": digest(f)}}])),
        "has 0 subjects",
    ),
    "no digest": (
        lambda f, k: k.envelope(statement(f, subject=[{"name": CERTIFICATE}])),
        r"about another certificate\.json",
    ),
    "another algorithm": (
        lambda f, k: k.envelope(statement(f, subject=[{"name": CERTIFICATE, "digest": {"sha512": digest(f)}}])),
        r"about another certificate\.json",
    ),
    "capitals": (
        lambda f, k: k.envelope(statement(f, subject=[{"name": CERTIFICATE, "digest": {"sha256": digest(f).upper()}}])),
        r"about another certificate\.json",
    ),
    "huge": (lambda f, k: k.envelope(statement(f)) + b" " * MAX_STATEMENT_BYTES, "exceeds the limit"),
}


@pytest.mark.parametrize("part", range(6))
def test_a_wrong_statement_is_refused_with_a_key_and_noted_without(folder: Path, ours: Signer, part: int) -> None:
    for name in [*WRONG][part::6]:
        make, said = WRONG[name]
        (folder / STATEMENT).write_bytes(make(folder, ours))
        with pytest.raises(SignatureError, match=said):
            md.verify(folder, key=ours.public)
        found = examine(folder)
        assert found.certificate.holds
        assert found.signature.startswith(("none for this bundle: ", "not checked: ")), name


def test_statements_of_other_programs_are_accepted(folder: Path, ours: Signer) -> None:
    """Unknown keys are ignored, other subjects are allowed, and base64 may be URL-safe."""
    more = [{"name": "a", "digest": {}}, *json.loads(statement(folder))["subject"]]
    made = json.loads(ours.envelope(statement(folder, subject=more, more=1), more=2))
    for entry in (made, made["signatures"][0]):
        for name in {"payload", "sig"} & set(entry):
            entry[name] = base64.urlsafe_b64encode(base64.b64decode(entry[name])).decode()
    (folder / STATEMENT).write_text(json.dumps(made))
    assert md.verify(folder, key=ours.public).holds


def test_a_statement_that_is_a_link_is_read_and_replaced(folder: Path, keys: Path, ours: Signer) -> None:
    target = put(keys / "elsewhere.json", ours.envelope(statement(folder)))
    (folder / STATEMENT).symlink_to(target)
    assert md.verify(folder, key=ours.public).holds
    before = target.read_bytes()
    sign(folder, ours.private, overwrite=True)
    assert not (folder / STATEMENT).is_symlink()
    assert target.read_bytes() == before
    assert md.verify(folder, key=ours.public).holds


@pytest.mark.parametrize("kind", ["folder", "pipe", "dangling link"])
def test_a_statement_that_is_no_file_is_no_statement(folder: Path, ours: Signer, kind: str) -> None:
    path = folder / STATEMENT
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "dangling link": lambda: path.symlink_to("nowhere")}[kind]()
    assert examine(folder).signature == "none"
    with pytest.raises(SignatureError, match="is missing"):
        md.verify(folder, key=ours.public)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_a_statement_that_cannot_be_read_is_named(folder: Path, ours: Signer) -> None:
    sign(folder, ours.private)
    (folder / STATEMENT).chmod(0)
    with pytest.raises(UnverifiedError, match="cannot be read"):
        md.verify(folder, key=ours.public)


def test_a_bundle_that_does_not_verify_is_not_signed(folder: Path, ours: Signer) -> None:
    (folder / "report.html").write_bytes(b"other")
    with pytest.raises(CertificateError, match="does not match its digest"):
        sign(folder, ours.private)
    assert not (folder / STATEMENT).exists()


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), lambda path: path.write_text("x"), lambda path: None])
def test_what_is_no_bundle_is_not_signed(tmp_path: Path, ours: Signer, make: Any) -> None:
    make(tmp_path / "other")
    with pytest.raises(UnverifiedError):
        sign(tmp_path / "other", ours.private)


@pytest.mark.parametrize("older", [b"nonsense", OTHERS[CERTIFICATE], b""])
def test_another_statement_is_replaced_only_when_asked(folder: Path, ours: Signer, older: bytes) -> None:
    (folder / STATEMENT).write_bytes(older)
    with pytest.raises(ExportError, match="use --overwrite"):
        sign(folder, ours.private)
    assert (folder / STATEMENT).read_bytes() == older
    sign(folder, ours.private, overwrite=True)
    assert md.verify(folder, key=ours.public).holds


def test_a_statement_about_another_certificate_is_replaced_only_when_asked(
    folder: Path, ours: Signer, theirs: Signer
) -> None:
    (folder / STATEMENT).write_bytes(theirs.envelope(encode_payload(CERTIFICATE, "0" * 64, bundle.SCHEMA)))
    with pytest.raises(ExportError, match=r"not the statement about this certificate\.json"):
        sign(folder, ours.private)
    sign(folder, ours.private, overwrite=True)
    assert len(read_envelope((folder / STATEMENT).read_bytes()).signatures) == 1


def test_a_new_bundle_removes_the_statement_about_the_old_one(folder: Path, ours: Signer) -> None:
    sign(folder, ours.private)
    write(folder, FILES)
    assert md.verify(folder, key=ours.public).holds
    write(folder, OTHERS)
    assert not (folder / STATEMENT).exists()


def test_a_statement_is_no_listed_file(folder: Path) -> None:
    with pytest.raises(InputError, match="malformed or reserved"):
        encode(line(4, 0.6), certify(line(4, 0.6)), files={STATEMENT: b""})


def test_a_certificate_that_lists_its_statement_is_not_signed(folder: Path, ours: Signer) -> None:
    (folder / STATEMENT).write_bytes(b"{}")
    document = json.loads((folder / CERTIFICATE).read_bytes())
    document["files"][STATEMENT] = hashlib.sha256(b"{}").hexdigest()
    document["digest"] = bundle.document_digest(document)
    (folder / CERTIFICATE).write_text(json.dumps(document))
    assert md.verify(folder).holds
    with pytest.raises(SignatureError, match=r"lists statement\.json"):
        sign(folder, ours.private, overwrite=True)


def test_a_private_key_in_the_folder_is_refused(folder: Path, ours: Signer) -> None:
    shutil.copy(ours.private, folder / "key.pem")
    with pytest.raises(InputError, match="lies in the folder of the bundle"):
        sign(folder, folder / "key.pem")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of files mean nothing here")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_private_key_that_others_can_read_is_warned_about(folder: Path, ours: Signer, mode: int) -> None:
    ours.private.chmod(mode)
    with pytest.warns(ExposedFileWarning, match=f"its mode 0{mode:o} lets others use it. To change that: chmod 600"):
        sign(folder, ours.private)
    assert md.verify(folder, key=ours.public).holds


OF_OTHER_KINDS = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "EllipticCurve": lambda: ec.generate_private_key(ec.SECP256R1()),
    "DSA": lambda: dsa.generate_private_key(1024),
    "Ed448": ed448.Ed448PrivateKey.generate,
    "X25519": x25519.X25519PrivateKey.generate,
}


@pytest.mark.parametrize("kind", OF_OTHER_KINDS)
def test_keys_of_other_kinds_are_refused_with_the_remedy(folder: Path, keys: Path, kind: str) -> None:
    key = OF_OTHER_KINDS[kind]()
    private = put(keys / "other.pem", key.private_bytes(PEM, PKCS8, PLAIN))
    public = put(keys / "other.pub", key.public_key().public_bytes(PEM, SPKI))
    for call in (lambda: sign(folder, private), lambda: md.verify(folder, key=public)):
        with pytest.raises(InputError, match=r"Ed25519.*openssl genpkey -algorithm ed25519") as caught:
            call()
        assert caught.value.path == "key"
    assert not (folder / STATEMENT).exists()


def test_an_rsa_key_of_openssh_is_refused(folder: Path, keys: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    private = put(keys / "id_rsa", key.private_bytes(PEM, OPENSSH, PLAIN))
    encoding, form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    public = put(keys / "id_rsa.pub", key.public_key().public_bytes(encoding, form))
    for call in (lambda: sign(folder, private), lambda: md.verify(folder, key=public)):
        with pytest.raises(InputError, match="is a key for RSA"):
            call()


NO_KEYS = {
    "empty": b"",
    "text": b"hello",
    "bytes": b"\x00\xff" * 40,
    "truncated": b"-----BEGIN PRIVATE KEY-----\nMC4CAQAw\n",
    "not base64": b"-----BEGIN PRIVATE KEY-----\n****\n-----END PRIVATE KEY-----\n",
    "truncated OpenSSH": b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\n",
    "a certificate": b"-----BEGIN CERTIFICATE-----\nMC4CAQAw\n-----END CERTIFICATE-----\n",
    "huge": b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 2**17,
    "a line of OpenSSH": b"ssh-ed25519 AAAA me\n",
    "two lines of OpenSSH": b"ssh-ed25519 AAAA me\nssh-ed25519 AAAA you\n",
}


@pytest.mark.parametrize("name", NO_KEYS)
def test_what_is_no_key_is_refused(folder: Path, keys: Path, name: str) -> None:
    path = put(keys / "k", NO_KEYS[name])
    for call in (lambda: sign(folder, path), lambda: md.verify(folder, key=path)):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.path == "key"
        assert "AAAA" not in str(caught.value)
        assert "MC4C" not in str(caught.value)


@pytest.mark.parametrize("path", ["missing", ".", 7, None, "with\0zero"])
def test_paths_that_lead_to_no_key_are_refused(folder: Path, path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(InputError):
        sign(folder, path)
    if path is not None:
        with pytest.raises(InputError):
            md.verify(folder, key=path)


def test_a_key_of_the_other_half_is_refused(folder: Path, ours: Signer) -> None:
    with pytest.raises(InputError, match=r"is a public key, which cannot sign.*openssl genpkey"):
        sign(folder, ours.public)
    with pytest.raises(InputError, match=r"is a private key, which stays with the signer.*-pubout"):
        md.verify(folder, key=ours.private)


def test_passphrases(folder: Path, ours: Signer) -> None:
    encryption = serialization.BestAvailableEncryption(SECRET.encode())
    put(ours.private, ours.key.private_bytes(PEM, PKCS8, encryption))
    for wrong, said in ((None, "is missing"), ("wrong", "does not open"), (b"", "is empty"), (7, "is empty or not")):
        with pytest.raises(InputError, match=said) as caught:
            sign(folder, ours.private, passphrase=wrong)
        assert "wrong" not in str(caught.value)
    assert not (folder / STATEMENT).exists()
    sign(folder, ours.private, passphrase=lambda: SECRET)
    assert md.verify(folder, key=ours.public).holds


def test_a_passphrase_is_asked_for_encrypted_keys_alone(folder: Path, ours: Signer) -> None:
    def ask() -> str:
        raise AssertionError("asked")

    sign(folder, ours.private, passphrase=ask)


def test_nothing_shows_the_key(ours: Signer) -> None:
    raw = serialization.Encoding.Raw
    secret = ours.key.private_bytes(raw, serialization.PrivateFormat.Raw, PLAIN)
    key = read_private_key(ours.private)
    for shown in (repr(key), str(key), repr(vars(key)), repr(read_public_key(ours.public))):
        assert secret.hex() not in shown
        assert base64.b64encode(secret).decode() not in shown


def test_a_failed_write_leaves_the_older_statement(
    folder: Path, ours: Signer, theirs: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign(folder, ours.private)
    before = (folder / STATEMENT).read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ExportError, match="No space left"):
        sign(folder, theirs.private)
    assert (folder / STATEMENT).read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == sorted([*FILES, STATEMENT])


def test_no_more_signatures_than_are_read(folder: Path, ours: Signer, theirs: Signer) -> None:
    payload = encode_payload(CERTIFICATE, digest(folder), bundle.SCHEMA)
    many = [{"keyid": str(number), "sig": ""} for number in range(MAX_SIGNATURES)]
    (folder / STATEMENT).write_bytes(theirs.envelope(payload, signatures=many))
    with pytest.raises(ExportError, match="more than 64 signatures"):
        sign(folder, ours.private)


def test_verifying_without_a_key_needs_no_cryptography(folder: Path, ours: Signer) -> None:
    sign(folder, ours.private)
    code = """
import sys
sys.modules["cryptography"] = None
import mechdesign as md
print(md.verify(sys.argv[1]).holds)
try:
    md.verify(sys.argv[1], key=sys.argv[2])
except md.errors.MissingDependencyError as error:
    print(error)
"""
    command = [sys.executable, "-c", code, str(folder), str(ours.public)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "True\nsignatures need the package cryptography: pip install 'mechdesign[sign]'\n"
    assert issubclass(MissingDependencyError, ImportError)


def test_the_check_can_fail(folder: Path, ours: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that accepts every signature is noticed by the tests above: a foreign one would pass."""
    foreign = Ed25519PrivateKey.generate()
    monkeypatch.setattr(ours, "key", foreign)
    (folder / STATEMENT).write_bytes(ours.envelope(statement(folder)))
    with pytest.raises(SignatureError):
        md.verify(folder, key=ours.public)
    monkeypatch.setattr("mechdesign.certify._keys.VerifyingKey.accepts", lambda *_: True)
    assert md.verify(folder, key=ours.public).holds
