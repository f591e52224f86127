"""Bundles that version 0.1.0 wrote still verify, and prove what they proved then."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import mechdesign as md
from mechdesign.cli import main

BUNDLES = Path(__file__).parents[1] / "reference" / "bundles"

# Cost that the objective counts, lower bound, realised ε of the requirements on pairs, distortions, forbidden answers.
PROVED = {
    "metric": (1.1142973593099368, 1.1142973593099306, (0.5999999999999986,), (), 0),
    "threshold": (0.47230523942361036, 0.47230523942360864, (0.6666666666666649,), (), 0),
    "graph": (0.27683318241014515, 0.27683318240583604, (0.9999999999999981,), (), 0),
    "distortion": (1.1555607033945126, 1.1555607033944943, (1.0999999999999985,), (1.0,), 0),
    "worst-cost": (0.6269371716304367, 0.626937171630431, (0.8999999999999982,), (), 0),
    "forbidden-answers": (0.8741179360984509, 0.8741179360984483, (0.4999999999999983,), (), 21),
    "symmetry": (0.8103257117166603, 0.8103257111094015, (0.7999999999382552,), (), 0),
    "everything": (
        0.9600000000764547,
        0.9599999997505881,
        (0.6259954806936172, 0.6259954806936172, 1.1885130775283421),
        (0.960000000029945,),
        0,
    ),
    "time-limit": (1.3816677749358235, 0.0, (0.0,), (), 0),
    "schedule/epsilon-0.5": (0.48128389066512156, 0.48128389066512034, (0.49999999999999817,), (), 0),
    "schedule/epsilon-1": (0.39078451780832957, 0.3907845178083284, (0.9999999999999982,), (), 0),
}
FILES = ("channel.npz", "channel.csv", "dual.npz", "certificate.json")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_every_bundle_is_listed() -> None:
    assert {path.parent.relative_to(BUNDLES).as_posix() for path in BUNDLES.rglob("certificate.json")} == set(PROVED)


@pytest.mark.parametrize("name", PROVED)
def test_it_proves_what_it_proved(name: str) -> None:
    found = md.verify(BUNDLES / name)
    assert found.holds
    assert found.provenance["mechdesign"] == "0.1.0"
    assert (found.cost, found.lower_bound, found.epsilon, found.distortion, found.forbidden) == PROVED[name]


@pytest.mark.parametrize("name", PROVED)
def test_the_command_accepts_it(name: str) -> None:
    result = run("verify", BUNDLES / name)
    assert result.exit_code == 0, result.output
    assert ": every claim verified." in result.output.replace("\n", " ")
    claimed = json.loads((BUNDLES / name / "certificate.json").read_text(encoding="utf-8"))["certificate"]
    proved = json.loads(run("verify", BUNDLES / name, "--json").output)
    assert {key: proved[key] for key in claimed} == claimed


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", PROVED)
def test_a_flipped_byte_is_refused(tmp_path: Path, name: str, file: str) -> None:
    copy = shutil.copytree(BUNDLES / name, tmp_path / "copy")
    content = (copy / file).read_bytes()
    # In the text between spaces, which mean nothing, it is the first digit of a proved number.
    place = content.index(b'"lower_bound": ') + 15 if file == "certificate.json" else len(content) // 2
    (copy / file).write_bytes(flipped(content, place))
    with pytest.raises(md.errors.CertificateError):
        md.verify(copy)
    assert run("verify", copy).exit_code == 1


@pytest.mark.parametrize("name", ["metric", "threshold", "everything", "forbidden-answers"])
def test_other_commands_read_it(tmp_path: Path, name: str) -> None:
    channel = md.Channel.load(BUNDLES / name)
    assert all(sum(row) == channel.denominator for row in channel.numerators.tolist())
    out = tmp_path / "channel.json"
    for arguments in (
        ("sample", BUNDLES / name, "--secret", channel.secrets[1] if channel.secrets else 1),
        ("attack", BUNDLES / name),
        ("export", BUNDLES / name, "--format", "json", "-o", out),
    ):
        result = run(*arguments)
        assert result.exit_code == 0, result.output
    assert out.stat().st_size > 0


def test_labels_are_kept() -> None:
    assert md.Channel.load(BUNDLES / "threshold").secrets == ("home", "work", "café", "gym")


def test_a_schedule_names_the_bundles_of_its_releases() -> None:
    with (BUNDLES / "schedule" / "schedule.csv").open(encoding="utf-8", newline="") as file:
        releases = list(csv.DictReader(file))
    assert [int(release["step"]) for release in releases] == [0, 1, 2]
    for release in releases:
        (requirement,) = md.verify(BUNDLES / "schedule" / release["folder"]).requirements
        assert requirement.nominal == release["epsilon"]
        assert requirement.realised <= float(release["epsilon"])
