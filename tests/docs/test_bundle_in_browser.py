"""What the page that verifies does in Python: it finds the bundle among chosen files, and asks the second verifier."""

import io
import json
import zipfile

import pytest
from tampering import page

import mechdesign as md


@pytest.fixture(scope="module")
def bundle():
    """The module that the page runs."""
    return page()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A bundle with a pair bound and a floor, as paths and contents."""
    domain = md.Domain.grid(3, 2, 3.0, 2.0, unit="km")
    distance = md.distances.euclidean(domain)
    requirements = [md.MetricPrivacy("1", distance), md.DistortionPrivacy("0.7", distance)]
    folder = tmp_path_factory.mktemp("made") / "city"
    md.save(
        md.design(md.Problem(md.Prior.uniform(6), distance, requirements, secrets=domain, observables=domain)),
        folder,
        report=False,
    )
    return {f"city/{path.name}": path.read_bytes() for path in folder.iterdir()}


def zipped(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return made.getvalue()


def with_bit(content, place):
    changed = bytearray(content)
    changed[place] ^= 1
    return bytes(changed)


def test_a_right_bundle_is_accepted_with_its_claims(bundle, files):
    loose = {path.removeprefix("city/"): content for path, content in files.items()}
    for chosen in (
        files,
        loose,
        {"city.zip": zipped(files)},
        {"a/CITY.ZIP": zipped(loose)},
        files | {"other.txt": b"", "city/sub/x.txt": b"", "city/.hidden": b""},
    ):
        found = bundle.verify(chosen)
        assert found["verdict"] == "accepted"
        assert found["lines"][-1] == "the bundle is proved."
        claims = dict(found["claims"])
        assert claims["metric privacy"].startswith("ε at most 1; achieved: ")
        assert claims["distortion privacy"].startswith("error of the best attack at least 0.7; achieved: 0.7")
        certificate = json.loads(files["city/certificate.json"])["certificate"]
        assert float(claims["relative gap"].removeprefix("at most ")) >= certificate["relative_gap"]
        assert float(claims["expected cost"].removeprefix("at most ")) >= certificate["expected_cost"]
        assert float(claims["no such channel costs less than"]) <= certificate["lower_bound"]


def test_a_tampered_bundle_is_refused_with_the_reason(bundle, files):
    """`tests/certify/test_tampering.py` lets the page judge every other change."""
    for name, change, reason in (
        ("channel.npz", lambda content: with_bit(content, len(content) // 2), "channel.npz matches its digest"),
        ("channel.npz", lambda content: b"", "channel.npz matches its digest"),
        ("certificate.json", lambda content: content[:-3], "JSONDecodeError"),
        (
            "certificate.json",
            lambda content: content.replace(b'"0.7"', b'"0.8"'),
            "certificate.json matches its digest",
        ),
    ):
        found = bundle.verify(files | {f"city/{name}": change(files[f"city/{name}"])})
        assert found["verdict"] == "refused", reason
        assert reason in found["lines"][0]
        assert "claims" not in found


def test_files_that_are_not_one_bundle_are_no_verdict(bundle, files):
    archive = zipped(files)
    twice = files | {f"copy/{path}": content for path, content in files.items()}
    large = io.BytesIO()
    with zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("certificate.json", bytes(2**20))
    bomb = large.getvalue().replace((2**20).to_bytes(4, "little"), (2**31).to_bytes(4, "little"))
    for chosen, reason in (
        ({}, "no certificate.json"),
        ({"channel.npz": files["city/channel.npz"]}, "no certificate.json"),
        ({"certificate.json/x": b""}, "no certificate.json"),
        ({"my-certificate.json": b""}, "no certificate.json"),
        (twice, "2 bundles"),
        ({"a.zip": archive, "b.zip": zipped({"b/certificate.json": b""})}, "2 bundles"),
        ({"a.zip": b""}, "not a readable zip archive"),
        ({"a.zip": b"PK\x03\x04"}, "not a readable zip archive"),
        ({"a.zip": archive[: len(archive) // 2]}, "not a readable zip archive"),
        ({"a.zip": with_bit(archive, 60)}, "not a readable zip archive"),
        ({"a.zip": bomb}, "bytes, more than"),
    ):
        found = bundle.verify(chosen)
        assert found["verdict"] == "undecided"
        assert reason in found["lines"][0]


def test_names_that_leave_the_folder_are_left_out(bundle, files):
    chosen = files | {"city/..": b"", "city/a\\b": b"", "../x": b"", "city/é": b"", "city/": b""}
    assert bundle.find(chosen).keys() == {path.removeprefix("city/") for path in files}
    archive = zipped(files | {"city/../../x": b"", "/etc/x": b""})
    assert bundle.find({"a.zip": archive}).keys() == {path.removeprefix("city/") for path in files}
