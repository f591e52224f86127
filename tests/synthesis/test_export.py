from __future__ import annotations

import csv
import io
import itertools
import json
import os
import re
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from click.testing import CliRunner
from rows import each_row

import mechdesign as md
from mechdesign.base._atomic import write_file
from mechdesign.certify import _bundle as bundle
from mechdesign.cli import main
from mechdesign.errors import CertificateError, ExportError, InputError, MissingDependencyError
from mechdesign.model._channel import EXPONENT
from mechdesign.synthesis import _bundle as table
from mechdesign.synthesis._folders import check_target
from mechdesign.synthesis.formats._format import Exported
from mechdesign.synthesis.formats._plain import mps
from mechdesign.synthesis.formats._registry import FORMATS, format_of

PLAIN = {"unit": "km", "cells": None, "geographic": None, "plane": None}


def a_problem():
    secrets = md.Domain.geographic_grid(2, 2, 40.0, 40.1, -74.1, -74.0)
    observables = md.Domain.from_points([[0.0, 0.0], [5.0, 5.0], [9.0, 1.0]], ["down", 'a "quoted", one', "ü"], "km")
    distance = md.distances.euclidean(secrets)
    cost = np.array([[0, 1, 2], [1, 0, 3], [2.5, 1, 0], [1, 1, 1.0]])
    requirements = [
        md.MetricPrivacy("1/30", distance),
        md.ThresholdPrivacy(1.1, distance, 9),
        md.GraphPrivacy("0.9", nx.path_graph(4)),
        md.DistortionPrivacy(0.25, 1.0 - np.eye(4)),
    ]
    prior = md.Prior.from_counts([1, 2, 3, 4])
    return md.Problem(prior, cost, requirements, "worst", secrets, observables, title="Ein Täst")


@pytest.fixture(scope="module")
def design():
    return md.design(a_problem())


@pytest.fixture
def folder(design, tmp_path):
    md.save(design, tmp_path / "made", report=False)
    return tmp_path / "made"


# --- round trips ---------------------------------------------------------------------------------------------------


def test_a_saved_design_is_loaded_completely(design, folder):
    assert md.verify(folder).holds
    loaded = md.Design.load(folder)
    problem, channel, certificate = loaded.problem, loaded.channel, loaded.certificate
    given = design.problem
    assert (problem.title, problem.objective) == ("Ein Täst", "worst")
    for name in ("prior", "cost"):
        assert (getattr(problem, name) == getattr(given, name)).all()
    for name in ("secrets", "observables"):
        found, domain = getattr(problem, name), getattr(given, name)
        assert (found.points == domain.points).all()
        assert (found.labels, found.unit) == (domain.labels, domain.unit)
        assert (found.cells, found.geographic, found.plane) == (domain.cells, domain.geographic, domain.plane)
    assert (problem.secrets.coordinates == given.secrets.coordinates).all()
    assert problem.observables.coordinates is None
    assert [requirement.kind for requirement in problem.requirements] == ["metric", "threshold", "graph", "distortion"]
    assert problem.requirements[0].epsilon == Fraction(1, 30)
    for found, requirement in zip(problem.requirements, given.requirements, strict=True):
        (again,), (before,) = found.stated(), requirement.stated()
        assert again.numbers == before.numbers
        assert all((again.arrays[name] == array).all() for name, array in before.arrays.items())
    assert (channel.numerators == design.channel.numerators).all()
    assert (channel.secrets, channel.observables) == (given.secrets.labels, given.observables.labels)
    assert certificate.differences(design.certificate) == ()
    assert md.Design.load(folder).problem.title == problem.title
    assert (md.Channel.load(folder).numerators == channel.numerators).all()
    loaded = md.Channel.load(folder)
    assert (loaded.secrets, loaded.observables) == (channel.secrets, channel.observables)
    assert (md.Channel.load(folder / "channel.npz").numerators == channel.numerators).all()


def test_a_bundle_names_the_proved_distance(folder):
    plane = {"name": "plane distance ≤ great circle", "unit": "km"}
    hamming = {"name": "Hamming distance", "unit": ""}
    assert bundle.read(folder).metadata["distances"] == [plane, plane, None, hamming]


def test_a_loaded_problem_can_be_designed_and_saved_again(folder, tmp_path):
    again = md.design(md.Design.load(folder).problem)
    md.save(again, tmp_path / "again", report=False)
    assert md.verify(tmp_path / "again").cost == pytest.approx(md.verify(folder).cost, rel=1e-9)


def test_problems_without_domains(tmp_path):
    problem = md.Problem([0.5, 0.5], 1 - np.eye(2), [md.MetricPrivacy(1, 1 - np.eye(2))])
    md.save(md.design(problem), tmp_path, report=False)
    again = md.Design.load(tmp_path)
    found, channel = again.problem, again.channel
    assert (found.secrets, found.observables, channel.secrets) == (None, None, ())
    assert (tmp_path / "channel.csv").read_text().startswith("secret,0,1\n0,0.73105")


def test_observables_equal_to_the_secrets_stay_equal(tmp_path):
    domain = md.Domain.from_labels(["a", "b"])
    distance = md.distances.hamming(domain)
    problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)], secrets=domain, observables=domain)
    md.save(md.design(problem), tmp_path, report=False)
    found = md.Design.load(tmp_path).problem
    assert found.observables is found.secrets
    assert found.secrets.labels == ("a", "b")


def test_labels_that_cannot_be_stored_are_refused(tmp_path):
    for label in ("a\0", "\ud800"):
        domain = md.Domain.from_labels([label, "b"])
        distance = md.distances.hamming(domain)
        problem = md.Problem([0.5, 0.5], distance, [md.MetricPrivacy(1, distance)], secrets=domain)
        with pytest.raises(InputError, match=r"secrets\.labels\[0\]"):
            md.save(md.design(problem), tmp_path / "out", report=False)
    assert not (tmp_path / "out").exists()


def test_damaged_sets_are_not_loaded(design, folder):
    (folder / "channel.csv").write_text("secret,0\n")
    with pytest.raises(CertificateError, match=r"channel\.csv does not match its digest"):
        md.Design.load(folder)
    with pytest.raises(CertificateError, match="does not exist"):
        md.Design.load(folder / "nowhere")


@each_row(
    ("metadata", "words"),
    [
        ({"secrets": 3}, "domain of the secrets"),
        ({"secrets": {"unit": "km", "cells": None}}, "geographic"),
        ({"secrets": {"unit": "km", "cells": None, "geographic": None}}, "plane"),
        ({"secrets": PLAIN | {"cells": {"columns": 9, "rows": 9, "width": 1, "height": 1}}}, "cells"),
        ({"secrets": PLAIN | {"cells": {"x": 9}}}, "unexpected keyword"),
        ({"secrets": PLAIN | {"unit": 3}}, "unit"),
    ],
)
def test_descriptions_that_fit_no_domain_are_refused(design, tmp_path, metadata, words):
    arrays = {"secrets_points": np.zeros((4, 2))}
    bundle.write(tmp_path, bundle.encode(design.evidence(), design.certificate, metadata=metadata, arrays=arrays))
    assert md.verify(tmp_path).holds
    with pytest.raises(CertificateError, match=words):
        md.Design.load(tmp_path)


# --- formats -------------------------------------------------------------------------------------------------------


def written(name, design, **options):
    exported = Exported(design.problem, design.channel, design.certificate)
    return b"".join(FORMATS[name].parts(exported, options))


def test_exact_csv(design, folder):
    rows = list(csv.reader(io.StringIO((folder / "channel.csv").read_text(encoding="utf-8"))))
    assert rows[0] == ["secret", "down", 'a "quoted", one', "ü"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "3"]
    for row, numerators in zip(rows[1:], design.channel.numerators.tolist(), strict=True):
        assert sum(map(Fraction, row[1:])) == 1
        assert [Fraction(text) * 2**62 for text in row[1:]] == numerators


def test_exact_decimals_of_extreme_numbers():
    numerators = [[0, 1 << EXPONENT], [1, (1 << EXPONENT) - 1]]
    rows = list(csv.reader(io.StringIO(table.exact_csv(md.Channel(np.array(numerators))))))
    assert rows[1] == ["0", "0", "1"]
    assert [[int(Fraction(text) * 2**62) for text in row[1:]] for row in rows[1:]] == numerators


def test_csv_of_floats(design):
    rows = list(csv.reader(io.StringIO(table.to_csv(design.channel))))
    assert [[float(text) for text in row[1:]] for row in rows[1:]] == design.channel.matrix.tolist()


def test_json(design):
    found = json.loads(written("json", design))
    assert [[int(text) for text in row] for row in found["numerators"]] == design.channel.numerators.tolist()
    assert found["matrix"] == design.channel.matrix.tolist()
    assert found["exponent"] == 62
    assert found["labels"]["observables"] == ["down", 'a "quoted", one', "ü"]
    assert found["points"]["secrets"] == design.problem.secrets.points.tolist()
    assert found["certificate"]["holds"] is True
    assert found["title"] == "Ein Täst"
    assert found["prior"] == design.problem.prior.tolist()


def test_npz(design):
    with np.load(io.BytesIO(written("npz", design)), allow_pickle=False) as found:
        assert found["numerators"].tolist() == design.channel.numerators.tolist()
        assert found["exponent"] == 62
        assert found["observables"].tolist() == ["down", 'a "quoted", one', "ü"]
        assert found["prior"].tolist() == design.problem.prior.tolist()


def test_a_format_is_found_by_its_name_and_by_the_ending_of_a_file():
    assert format_of("city.PARQUET") is FORMATS["parquet"]
    with pytest.raises(InputError, match=r"has no known ending; found 'city.xml'.* \.csv, "):
        format_of("city.xml")
    shown = CliRunner().invoke(main, ["export", "city", "--format", "parket"])
    assert shown.exit_code == 2
    assert re.search(r"format: is not known; found 'parket'.*Did you mean parquet", " ".join(shown.output.split()))


def test_options_of_another_format_are_refused(design):
    with pytest.raises(InputError, match=r"options\.classic: is not an option of csv; must be left out"):
        written("csv", design, classic=True)
    with pytest.raises(InputError, match="must be one of classic"):
        written("js", design, rows=True)


def test_parquet(design):
    parquet = pytest.importorskip("pyarrow.parquet")
    read = parquet.read_table(io.BytesIO(written("parquet", design)))
    assert read.schema.metadata[b"denominator"] == str(2**62).encode()
    found = read.to_pydict()
    assert found["numerator"] == design.channel.numerators.ravel().tolist()
    assert found["probability"] == design.channel.matrix.ravel().tolist()
    assert found["secret"][:4] == ["0", "0", "0", "1"]
    assert found["observable"][:4] == ["down", 'a "quoted", one', "ü", "down"]
    assert found["observable_index"][:4] == [0, 1, 2, 0]


def test_parquet_names_the_extra(design, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'mechdesign\[parquet\]'"):
        written("parquet", design)


# --- files and folders ---------------------------------------------------------------------------------------------


def test_files_are_written_atomically(tmp_path):
    target = tmp_path / "f"
    write_file(target, [b"a", b"b"])
    assert target.read_bytes() == b"ab"

    def breaking():
        yield b"c"
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_file(target, breaking())
    assert target.read_bytes() == b"ab"
    assert os.listdir(tmp_path) == ["f"]
    with pytest.raises(ExportError, match="could not be written"):
        write_file(tmp_path / "none" / "f", [b""])


def test_targets(design, folder, tmp_path):
    check_target(folder)
    check_target(tmp_path / "new" / "deep")
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    check_target(tmp_path / "empty")
    # An export that was killed before it wrote the certificate, and one that was killed while it wrote a file.
    (folder / "certificate.json").unlink()
    check_target(folder)
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / ".channel.npz.partial").write_bytes(b"P")
    check_target(tmp_path / "killed")
    # A folder with an export and files of the user.
    md.save(design, folder, report=False)
    (folder / "notes.txt").write_text("mine")
    check_target(folder)


@each_row(
    ("name", "content"),
    itertools.product(["notes.txt", "report.html", "certificate.json", "channel.npz"], ["{}", "mine"]),
)
def test_foreign_folders_are_left_alone(tmp_path, name, content):
    folder = tmp_path / f"{name} {content}"
    folder.mkdir()
    (folder / name).write_text(content)
    with pytest.raises(ExportError, match=f"holds {name}, which does not belong to a design"):
        check_target(folder)


def test_impossible_targets(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="file is not a folder; choose another one") as refused:
        check_target(tmp_path / "file")
    assert "cannot be read" not in str(refused.value)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExportError, match="link is not a folder; choose another one"):
        check_target(tmp_path / "link")
    with pytest.raises(ExportError, match="file"):
        check_target(tmp_path / "file" / "below")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may write everywhere")
def test_targets_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        for target in (tmp_path, tmp_path / "new"):
            with pytest.raises(ExportError, match="cannot be written"):
                check_target(target)
    finally:
        tmp_path.chmod(0o700)


def test_targets_on_a_full_or_read_only_disk(tmp_path, monkeypatch):
    def refuse(**_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(ExportError, match="Read-only file system"):
        check_target(tmp_path)


@each_row("unit", [1.0, 1e-9, 1e9])
@each_row("objective", ["expected", "worst"])
def test_other_solvers_reach_the_optimum_in_any_unit(unit, objective, tmp_path):
    highspy = pytest.importorskip("highspy")
    domain = md.Domain.grid(3, 2, 3.0, 2.0)
    distance = md.distances.euclidean(domain)
    prior = md.Prior.from_counts([5, 1, 2, 7, 3, 2], smoothing=0.5).probabilities
    floor = md.DistortionPrivacy(0.6 * unit, distance * unit)
    problem = md.Problem(prior, distance * unit, [md.MetricPrivacy("0.8", distance), floor], objective=objective)
    made = md.design(problem, tolerance=1e-8)
    path = tmp_path / "p.mps"
    path.write_text("".join(mps(problem)))
    comments = [line for line in path.read_text().splitlines() if line.startswith("*")]
    factor = float(comments[0].split(" times ")[1].split(" ")[0])
    assert (factor == 1) == (unit == 1)
    assert comments[1].startswith("* x0 and floor0 are errors of the adversary times ")
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel(str(path))
    solver.run()
    value = solver.getInfo().objective_function_value / factor
    assert value == pytest.approx(made.certificate.cost, rel=1e-5)


def test_an_mps_file_has_no_empty_section():
    problem = md.Problem([0.5, 0.5], [[0, 1], [1, 0]], [md.MetricPrivacy(1, [[0, 1], [1, 0]])])
    heads = [line for line in mps(problem) if not line.startswith(" ")]
    assert [head.split()[0] for head in heads] == ["*", "NAME", "ROWS", "COLUMNS", "RHS", "ENDATA"]
