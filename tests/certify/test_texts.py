"""Texts from others: shown escaped, refused when a bundle is made, and shielded from spreadsheets."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import numpy as np
import pytest
from bundles import line, put, repair, whole

from mechdesign.certify import __main__, _archive, second_verifier
from mechdesign.certify import _bundle as bundle
from mechdesign.certify._bundle import CHANNEL, TABLE, exact_lines
from mechdesign.certify._certificate import certify
from mechdesign.certify._texts import csv_text, escape, from_cell, require_plain, require_plain_texts, to_cell
from mechdesign.certify._verify import verify
from mechdesign.errors import CertificateError, InputError

REFUSED = [0, 8, 9, 10, 13, 0x1B, 0x1F, 0x7F, 0x80, 0x9F, 0x202A, 0x202E, 0x2066, 0x2069, 0xD800, 0xDFFF]
# A joiner, accents, letters from right to left, a flag, blanks, and the neighbours of what is refused.
TAKEN = [0x20, 0x7E, 0xA0, 0x200D, 0x301, 0x5D0, 0x1F3F3, 0x2029, 0x202F, 0x2065, 0x206A, 0xD7FF, 0xE000, 0x200E]


def test_what_hides_or_turns_texts_is_refused() -> None:
    for code in REFUSED:
        for values in (f"a{chr(code)}", {f"a{chr(code)}": 1}, {"a": [["b", chr(code)]]}):
            with pytest.raises(InputError, match=f"contains U\\+{code:04X}") as caught:
                require_plain_texts(values, "metadata")
            assert chr(code) not in str(caught.value)
        assert chr(code) not in escape(chr(code))


def test_marks_of_ordinary_names_are_taken() -> None:
    for code in TAKEN:
        require_plain(f"a{chr(code)}b", "title")
        assert escape(chr(code)).isprintable()


def test_lines_are_taken_where_a_text_may_have_them() -> None:
    require_plain_texts({"specification": "a\n\tb\r\n"}, "metadata", lines=True)
    with pytest.raises(InputError, match="contains U\\+000A"):
        require_plain_texts({"a\n": ""}, "metadata", lines=True)
    with pytest.raises(InputError, match="contains U\\+001B"):
        require_plain_texts(["a\n\x1b"], "metadata", lines=True)
    assert escape("a\nb\r", lines=True) == "a\nb\\r"
    assert escape("a\nb") == "a\\nb"


def test_no_bundle_is_made_of_them() -> None:
    evidence = line(3, 0.6)
    made = certify(evidence)
    for code in REFUSED[1:-2]:
        for given in (
            {"arrays": {"secrets": np.array(["a", f"b{chr(code)}.", "c"])}},
            {"metadata": {f"na{chr(code)}me": 1}},
            {"metadata": {"domain": {"unit": {f"{chr(code)}": ""}}}},
        ):
            with pytest.raises(InputError, match=f"contains U\\+{code:04X}"):
                bundle.encode(evidence, made, **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is malformed or reserved"):
        bundle.encode(evidence, made, arrays={"a\x1b": [1]})
    assert bundle.encode(evidence, made, arrays={"secrets": np.array(["a", "e\u0301", "\u05d0\u200d"])})


def hostile() -> dict[str, bytes]:
    """Return a true bundle with names of arrays and metadata, and unknown keys, that would clear a screen."""
    files = whole(line(3, 0.6))
    arrays = dict(_archive.unpack(files[CHANNEL], CHANNEL))
    arrays["own\x1b[2J\x9b\u202e\n"] = np.zeros(2)

    def change(document: dict) -> None:
        document["metadata"]["\x1b[8m\n"] = 1
        document["certificate"]["\x1b[1m\r\u2066"] = 1

    return repair({**files, CHANNEL: _archive.pack(arrays)}, change)


@pytest.mark.parametrize("main", [__main__.main, second_verifier.main])
def test_both_verifiers_show_them_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str], main) -> None:
    put(tmp_path, hostile())
    assert main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "\\x1b" in said
    assert said.replace("\n", "").isprintable()
    (tmp_path / TABLE).unlink()
    (tmp_path / "bad\x1b").mkdir()
    assert main([str(tmp_path)]) == 1
    assert main([str(tmp_path / "bad\x1b")]) == 2
    said = capsys.readouterr().err
    assert "bad\\x1b" in said or main is second_verifier.main
    assert said.replace("\n", "").isprintable()


NUMBERS = ["-0.5", "-1e-3", "+5", "1,2", "-1,2", "-1, +2.5e3", "-inf", "+nan", "-.5", "-5.", "-1E5", "-7.44,46.95"]
# fmt: off
FORMULAS = [
    "=1+1", "=", "+", "-", "-5-", "-1-2", "-1/3", "-5%", "@SUM(A1)", "\t=1", "\r", "--5", "-1,", "-1,,2", "-1;2",
    "+1 2", "-e5", "-1_0", "-\uff11", "=cmd|' /C calc'!A0", "-1,  2", "-1\n", "'", "'x", "'=1", "''", "-infinity",
]
# fmt: on
PLAIN = ["", "home", "1-2", "a=b", " =1", "\u2212" + "1", "s'x", "0x1", "\n=1", "x;=1"]


def test_numbers_and_other_texts_stay_as_they_are() -> None:
    for text in NUMBERS + PLAIN:
        assert to_cell(text) == from_cell(text) == text
        assert second_verifier.cell(text) == text


def test_what_a_spreadsheet_would_compute_gets_an_apostrophe() -> None:
    for text in FORMULAS:
        assert to_cell(text) == f"'{text}" == second_verifier.cell(text)
        assert from_cell(f"'{text}") == text


def test_an_apostrophe_of_others_stays() -> None:
    assert from_cell("'s-Hertogenbosch") == "'s-Hertogenbosch"
    assert from_cell(to_cell("'s-Hertogenbosch")) == "'s-Hertogenbosch"
    assert from_cell("'-5") == "'-5"


def test_every_text_comes_back() -> None:
    random.seed(35)
    signs = "='+-@\t\r\n,.;\"0123456789einfa \u202e\u05d0"
    for _ in range(2000):
        text = "".join(random.choices(signs, k=random.randint(0, 6)))
        cell = to_cell(text)
        assert from_cell(cell) == text
        assert cell == second_verifier.cell(text)
        # Nothing that begins like a formula is left but numbers, one or several.
        if cell[:1] in tuple("=+-@\t\r"):
            assert all(float(part) is not None for part in cell.split(","))


def test_rows_keep_their_numbers() -> None:
    text = csv_text([["=a", "'b"], ["-1", -0.5], [None, "-x,\n"]])
    assert text == "'=a,''b\n-1,-0.5\n,\"'-x,\n\"\n"
    assert list(csv.reader(io.StringIO(text, newline="")))[2] == ["", "'-x,\n"]


def labelled(names: list[str], written: list[str]) -> dict[str, bytes]:
    evidence = line(3, 0.6)
    table = "".join(exact_lines(evidence.numerators, evidence.exponent, written, ["0", "1", "2"])).encode()
    arrays = {"secrets": np.array(names)}
    return bundle.encode(evidence, certify(evidence), arrays=arrays, files={TABLE: table})


def test_tables_are_proved_with_apostrophes(tmp_path: Path) -> None:
    names = ["=1+1", "'s", "-5"]
    put(tmp_path, labelled(names, list(map(to_cell, names))))
    assert verify(tmp_path).holds
    assert second_verifier.prove(tmp_path)
    for written in (names, ["'=1+1", "'s", "-5"], ["=1+1", "''s", "-5"], ["'=1+1", "''s", "'-5"], ["1+1", "s", "-5"]):
        put(tmp_path, labelled(names, written))
        with pytest.raises(CertificateError, match="does not match the channel"):
            verify(tmp_path)
        with pytest.raises(ValueError, match="contains the channel and its labels"):
            second_verifier.prove(tmp_path)
