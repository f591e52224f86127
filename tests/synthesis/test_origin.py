"""The origin of a problem in a bundle, in the output of `verify`, and in the report."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cli_examples import run
from rows import each_row

import mechdesign as md
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._certificate import certify
from mechdesign.certify._evidence import Evidence
from mechdesign.errors import CertificateError, InputError, VerifierMemoryError
from mechdesign.model._origin import Origin
from mechdesign.report._statements import describe_proof
from mechdesign.solve._contract import Status
from mechdesign.specification import parse
from mechdesign.specification._origin import file_digest
from mechdesign.synthesis._bundle import find_design
from mechdesign.synthesis._folders import Wanted

CHECKINS = "user,latitude,longitude\nu1,40.71,-74.0\nu1,40.75,-73.95\nu1,45.0,-73.95\nu2,40.71,-74.0\n"
SPECIFICATION = """
title = "Two by two"
[domain]
grid = { columns = 2, rows = 2, south = 40.70, west = -74.02, north = 40.78, east = -73.93 }
[prior]
checkins = { path = "c.csv", user = "user", only = "u1" }
smoothing = 0.5
[cost]
distance = "euclidean"
power = 2
[[privacy]]
kind = "metric"
epsilon = 0.6
distance = "euclidean"
[[privacy]]
kind = "threshold"
epsilon = 1.5
radius = 5
distance = "euclidean"
[[privacy]]
kind = "distortion"
minimum = 0.2
distance = "euclidean"
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """Give an export with a page, and the files that it was made of beside it, that nobody changes."""
    folder = tmp_path_factory.mktemp("origin")
    with contextlib.chdir(folder):
        Path("c.csv").write_text(CHECKINS)
        Path("s.toml").write_text(SPECIFICATION)
        md.save(md.read_spec("s.toml").design(), "made")
    return folder / "made"


@pytest.fixture
def made(original, tmp_path) -> Path:
    return shutil.copytree(original, tmp_path / "made")


def test_the_specification_the_user_and_omissions_are_stored(original):
    origin = md.Design.load(original).origin
    assert origin is not None
    assert origin.specification == SPECIFICATION
    assert origin.prior == "check-ins in c.csv, user u1 only, 0.5 added to each count"
    assert dict(origin.files) == {"c.csv": hashlib.sha256(CHECKINS.encode()).hexdigest()}
    assert "1 points outside the box are left out, 33% of all" in origin.notes
    assert Origin.from_json(json.loads(json.dumps(origin.to_json()))) == origin


def test_verify_separates_proved_and_stated_facts(original):
    said = run("verify", original).stdout
    before, after = said.split("stated and not proved")
    assert "e^(0.6·d(s, t)) p(o|t) for all 12 ordered pairs of secrets (s, t), and each of 4 answers o" in before
    assert "e^1.5 p(o|t) for " in before
    assert "has an error of at least 0.2 km on average" in before
    assert "km² (the square of" in before
    for word in ("Two by two", "user u1 only", "33% of all", "c.csv, SHA-256 "):
        assert word not in before
        assert word in after


def test_the_report_contains_the_specification(original):
    page = (original / "report.html").read_text()
    assert "power = 2\n[[privacy]]" in page
    assert "user u1 only, 0.5 added to each count" in page
    assert hashlib.sha256(CHECKINS.encode()).hexdigest() in page


def test_other_data_have_other_digests(original, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("c.csv").write_text(CHECKINS + "u2,40.76,-73.99\n")
    Path("s.toml").write_text(SPECIFICATION)
    first = json.loads((original / "certificate.json").read_text())["metadata"]["origin"]
    again = md.read_spec("s.toml").design()
    assert again.origin is not None
    assert again.origin.files != first["files"]
    assert np.array_equal(again.problem.prior, md.Design.load(original).problem.prior)


def test_the_report_is_removed_when_a_newer_channel_is_written(made):
    assert md.verify(made).holds
    md.save(md.Design.load(made), made, report=False)
    assert {path.name for path in made.iterdir()} == {"certificate.json", "channel.csv", "channel.npz", "dual.npz"}


def test_a_missing_origin_is_reported_as_unknown(tmp_path):
    distance = np.array([[0.0, 1.0], [1.0, 0.0]])
    design = md.design(md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)]))
    md.save(design, tmp_path / "made", report=False)
    assert md.Design.load(tmp_path / "made").origin is None
    assert "its source is not known" in run("verify", tmp_path / "made").stdout


def test_a_claim_that_does_not_hold_is_not_among_the_proved(original):
    design = md.Design.load(original)
    problem, channel, certificate = design.problem, design.channel, design.certificate
    assert len(describe_proof(problem, certificate)) == 3
    evidence = bundle.read(original).evidence
    revealing = np.zeros_like(channel.numerators)
    np.fill_diagonal(revealing, 2**62)
    broken = certify(Evidence(revealing, 62, evidence.prior, evidence.cost, "expected", evidence.requirements, None))
    assert describe_proof(problem, broken) == ()


@each_row("values", [None, {}, {"specification": 1, "prior": "", "files": {}, "notes": []}])
def test_a_malformed_origin_is_refused(made, values):
    with pytest.raises(InputError):
        Origin.from_json(values)
    document = json.loads((made / "certificate.json").read_text())
    document["metadata"]["origin"] = values
    document["digest"] = bundle.document_digest(document)
    (made / "certificate.json").write_text(json.dumps(document))
    with pytest.raises(CertificateError, match="the files do not describe the origin of the problem"):
        md.Design.load(made)


def test_the_digest_of_a_folder_covers_names_and_contents(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one").write_text("1")
    digests = [file_digest(tmp_path / "a")]
    (tmp_path / "a/one").rename(tmp_path / "a/two")
    digests.append(file_digest(tmp_path / "a"))
    (tmp_path / "a/two").write_text("22")
    digests.append(file_digest(tmp_path / "a"))
    assert len(set(digests)) == 3
    with pytest.raises(InputError, match="cannot be read"):
        file_digest(tmp_path / "nowhere")


def why_not_done(origin: Origin, **changes: str) -> str:
    found, why = find_design(Path("made"), Wanted(origin.specification, origin.files, origin.settings, **changes))
    assert (found is None) == bool(why)
    return why


def test_a_design_is_done_if_text_settings_data_and_version_are_the_same(original, tmp_path, monkeypatch):
    folder = shutil.copytree(original.parent, tmp_path / "all")
    monkeypatch.chdir(folder)
    origin = md.read_spec("s.toml").origin
    assert not why_not_done(origin)
    Path("other.toml").write_text(SPECIFICATION.replace("[cost]", "[cost]  # for ann"))
    assert not why_not_done(md.read_spec("other.toml").origin)
    assert not why_not_done(md.read_spec("s.toml").origin_with({"threads": 2}))
    Path("c.csv").write_text(CHECKINS + "u2,40.76,-73.99\n")
    for said, other in {
        "the settings changed": md.read_spec("s.toml").origin_with({"tolerance": 0.5}),
        "the specification changed": replace(origin, specification=SPECIFICATION + "\n"),
        "the contents of c.csv changed": md.read_spec("s.toml").origin,
    }.items():
        assert why_not_done(replace(other, files=origin.files) if "contents" not in said else other) == said
    assert why_not_done(origin, version="0.0.0").endswith("made it, and this is 0.0.0")
    for name in ("report.html", "dual.npz", "certificate.json"):
        os.truncate(Path("made", name), 10)
        assert name in why_not_done(origin), name
        shutil.copytree(original, "made", dirs_exist_ok=True)


def test_a_design_is_done_only_if_it_verifies(original, tmp_path, monkeypatch):
    shutil.copytree(original.parent, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    origin = md.read_spec("s.toml").origin
    for name, said in (("expected_cost", "but the files prove"), ("lower_bound", "but the files prove")):
        document = json.loads((original / "certificate.json").read_text())
        document["certificate"][name] /= 2
        document["digest"] = bundle.document_digest(document)
        Path("made/certificate.json").write_text(json.dumps(document))
        assert why_not_done(origin).startswith(f"it could not be verified: the certificate claims {name} = "), name
        assert said in why_not_done(origin), name
    # The limit of memory is not a fault of the design.
    monkeypatch.setenv("MECHDESIGN_MEMORY", "lots")
    with pytest.raises(InputError, match="MECHDESIGN_MEMORY"):
        why_not_done(origin)
    monkeypatch.setenv("MECHDESIGN_MEMORY", "0.00001")
    with pytest.raises(VerifierMemoryError):
        why_not_done(origin)


def test_a_design_that_was_stopped_is_not_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("c.csv").write_text(CHECKINS)
    specification = parse(SPECIFICATION)
    made = specification.design(tolerance=0.5)
    origin = specification.origin_with({"tolerance": 0.5})
    for status, said in ((Status.INTERRUPTED, "it was interrupted"), (Status.TIME_LIMIT, "")):
        provenance = {**made.certificate.provenance, "status": status.value}
        md.save(replace(made, certificate=replace(made.certificate, provenance=provenance)), "made", report=False)
        assert why_not_done(origin) == said, status
        # What else differs comes first.
        assert why_not_done(specification.origin) == "the settings changed", status
