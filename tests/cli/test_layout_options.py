"""Every command that reads a text tells what it recognised once, and takes what is said instead."""

from __future__ import annotations

from pathlib import Path

from cli_examples import run

RELEASE = """title = "t"
[domain]
attributes.a = { values = ["x", "y"] }
attributes.b = { values = [0.5, 1.5] }
[policy]
kind = "full"
[release]
kind = "histogram"
epsilon = 300
"""


def test_init_reads_what_a_spreadsheet_wrote(tmp_path: Path) -> None:
    rows = "".join(f"p\t{46.9 + k / 777:.4f}\t{7.4 + k / 555:.4f}\n".replace(".", ",") for k in range(60))
    (tmp_path / "t.csv").write_text("Nutzer\tBreite\tLänge\n" + rows, encoding="utf-16")
    named = ("--latitude", "Breite", "--longitude", "Länge", "--cells", 9)
    found = run("init", "t.csv", *named)
    assert found.exit_code == 0, found.output
    for note in ("byte order mark", "separated by tabs", "column Breite: commas", "column Länge: commas"):
        assert found.stderr.count(note) == 1
    assert 'delimiter = "\\t"' in found.stdout
    said = run("init", "t.csv", *named, "--delimiter", "\t", "--decimal", ",", "--encoding", "utf-16")
    assert said.exit_code == 0, said.output
    assert "commas" not in said.stderr
    assert 'decimal = ","' in said.stdout
    assert 'encoding = "utf-16"' in said.stdout
    assert run("init", "t.csv", *named, "--encoding", "none").exit_code == 2


def test_matrices_are_asked_about(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(";0;1;2\n0;0,5;0,25;0,25\n1;0,25;0,5;0,25\n2;0,25;0,25;0,5\n")
    for command in (
        ("leakage", "m.csv", "--epsilon", "0.1", "--steps", 2),
        ("budget", "--alpha", 1, "--backward", "m.csv"),
        ("audit", "m.csv", "--distance", "hamming", "--no-optimum"),
    ):
        refused = run(*command)
        assert (refused.exit_code, "--header, --numbered" in " ".join(refused.stderr.split())) == (2, True)
        found = run(*command, "--header", "--numbered")
        assert found.exit_code == 0, found.output
        assert found.stderr.count("commas are read as decimal marks") == 1


def test_records_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(RELEASE)
    (tmp_path / "t.csv").write_text("sep=;\na; b\nx; 0,5\ny; 1,5\ny; 1,5\n")
    found = run("blowfish", "s.toml", "t.csv", "-o", "out", "--no-report")
    assert found.exit_code == 0, found.output
    counts = [int(line.rsplit(",", 1)[1]) for line in (tmp_path / "out" / "answers.csv").read_text().split()[1:]]
    assert counts == [1, 0, 0, 2]
    assert "commas are read as decimal marks" in found.stderr
    assert run("blowfish", "s.toml", "t.csv", "-o", "other", "--decimal", ".").exit_code == 2
