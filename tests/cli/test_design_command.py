"""`mechdesign design`: one channel."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from cli_examples import SPECIFICATION, assert_wrong_usage, contents, flat, run, well, write

import mechdesign as md
from mechdesign.base import _errors as errors
from mechdesign.certify import second_verifier
from mechdesign.certify._bundle import document_digest
from mechdesign.cli._console import describe_gap
from mechdesign.errors import ReportError, VerifierMemoryError
from mechdesign.solve._contract import Status
from mechdesign.synthesis import _design as module
from mechdesign.synthesis._folders import Wanted


def _never(*_: object, **__: object) -> None:
    raise AssertionError("wrong input reached the solver")


def test_from_a_specification_to_files_that_verify(spec: Path, blank_pictures: None) -> None:
    designed = well("design", spec)
    assert designed.stderr == ""
    for words in ("A line", "secrets        4", "ε ≤ 0.7", "≥ 0.2", "relative gap", "report.html"):
        assert words in designed.stdout
    names = ["certificate.json", "channel.csv", "channel.npz", "dual.npz", "report.html"]
    assert sorted(os.listdir("s")) == names
    made = md.read_spec(spec).design()
    assert json.loads(Path("s/certificate.json").read_text())["certificate"]["expected_cost"] == pytest.approx(
        made.certificate.expected_cost
    )
    verified = well("verify", "s")
    assert (verified.stderr, "s: every claim verified." in verified.stdout) == ("", True)
    os.remove("s/report.html")
    broken = run("verify", "s")
    assert (broken.exit_code, "report.html is missing" in broken.stdout) == (1, True)


@pytest.mark.slow
def test_the_default_is_a_small_city_and_needs_no_numba() -> None:
    code = "import sys; sys.modules['numba'] = None; from mechdesign.cli import main; main(['design'])"
    designed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert designed.returncode == 0, designed.stderr
    # What was made, where to look, and what to try next.
    end = designed.stdout[designed.stdout.index("\nnext") :]
    for words in ("mechanism/report.html", "mechdesign verify mechanism", "mechdesign sample mechanism --at"):
        assert words in end
    certificate = json.loads(Path("mechanism/certificate.json").read_text())["certificate"]
    assert certificate["holds"]
    assert certificate["relative_gap"] < 1e-6
    # Both requirements bind, and the cost is not the floor itself.
    assert certificate["requirements"][0]["realised"] == pytest.approx(1, abs=1e-6)
    assert certificate["requirements"][1]["realised"] == pytest.approx(2, abs=1e-6)
    assert certificate["expected_cost"] > 4.1
    well("verify", "mechanism")


def test_json_has_the_cost_of_the_objective_under_one_name(spec: Path) -> None:
    for aim in ("expected", "worst"):
        text = spec.read_text().replace("[cost]", f'[cost]\nobjective = "{aim}"')
        Path("aimed.toml").write_text(text)
        printed = json.loads(well("design", "aimed.toml", "--json", "--no-report", "-o", aim).stdout)
        again = json.loads(well("verify", aim, "--json").stdout)
        found = json.loads(Path(aim, "certificate.json").read_text())["certificate"]
        for facts in (printed, again):
            assert (facts["holds"], facts["objective"], facts["cost"]) == (True, f"{aim} cost", found[f"{aim}_cost"])
            assert (facts["lower_bound"], facts["relative_gap"]) == (found["lower_bound"], found["relative_gap"])
            assert f"{aim}_cost" not in facts


def test_options_count_more_than_the_specification() -> None:
    write(SPECIFICATION + '[solver]\nname = "highs-simplex"\ntolerance = 1e-3\nrows = "reduced"\n', "t.toml")
    more = ("--tolerance", "1e-6", "--time-limit", 60)
    facts = json.loads(well("design", "t.toml", "--json", "--no-report", *more).stdout)
    assert "reduced rows, highs-simplex" in facts["solved"][0]
    assert facts["relative_gap"] <= 1e-6


def test_a_gap_above_the_tolerance_is_said_plainly(spec: Path) -> None:
    said = well("design", spec, "--tolerance", "1e-17", "--no-report").stderr
    assert "of the least possible; the tolerance is 1e-17. Privacy does not depend on the gap" in said
    assert len(said.splitlines()) == 1
    assert "not bounded from below; the tolerance is 1e-06" in describe_gap(1.0, 1e-6)


# --- folders ---


def test_an_older_export_is_replaced_and_others_are_not(original: Path, spec: Path, blank_pictures: None) -> None:
    well("design", spec, "-o", "out")
    write("mine", "out/notes.txt")
    write("signed", "out/certificate.json.sig")
    replaced = well("design", spec, "-o", "out", "--no-report", "--overwrite")
    assert "note: out/certificate.json.sig no longer fits: sign certificate.json again" in flat(replaced.stderr)
    assert Path("out/notes.txt").read_text() == "mine"
    assert not Path("out/report.html").exists()
    well("verify", "out")
    for name in ("report.html", "certificate.json", "channel.csv"):
        write("theirs", f"theirs/{name}")
        for more in ("", " --overwrite"):
            says = f"theirs holds {name}, which does not belong to a design; choose another folder"
            assert_wrong_usage({f"design s.toml -o theirs{more}": says})
        Path("theirs", name).unlink()


def test_the_same_design_is_not_solved_again(spec: Path, monkeypatch: pytest.MonkeyPatch, blank_pictures: None) -> None:
    first = well("design", spec, "--no-report", "--json")
    before = contents("s")
    with monkeypatch.context() as patched:
        patched.setattr("mechdesign.synthesis._design.synthesise", _never)
        again = well("design", spec, "--no-report", "--json")
        found, wanted = (json.loads(each.stdout) for each in (again, first))
        found["seconds"]["in_all"] = wanted["seconds"]["in_all"]
        assert (found, contents("s")) == (wanted, before)
        assert "s holds this design already: nothing is solved" in flat(again.stderr)
        shown = well("design", spec).stdout
        assert all(part in shown for part in ("A line", "expected cost", "mechdesign verify s"))
        # Only the page was missing.
        assert contents("s").keys() - before.keys() == {"report.html"}
        assert contents("s")["channel.npz"] == before["channel.npz"]
        well("verify", "s")
        whole, page = contents("s"), Path("s/report.html").stat().st_mtime_ns
        well("design", spec)
        assert Path("s/report.html").stat().st_mtime_ns == page
        changed = ("design s.toml --tolerance 0.5", "design s.toml --time-limit 9")
        assert_wrong_usage(dict.fromkeys(changed, "s holds a design (A line): the settings changed; choose"))
        patched.setattr("mechdesign.cli.design.Wanted", partial(Wanted, version="0"))
        assert_wrong_usage({"design s.toml": f"(A line): mechdesign {md.__version__} made it, and this is 0; choose"})
        assert contents("s") == whole
    well("design", spec, "--overwrite", "--no-report")
    assert "report.html" not in contents("s")


def test_a_design_that_does_not_verify_is_not_done(made: Path, spec: Path) -> None:
    document = json.loads((made / "certificate.json").read_text())
    document["certificate"]["expected_cost"] = 0.1
    document["digest"] = document_digest(document)
    forged = json.dumps(document)
    for text, says in (
        (forged, "(A line): it could not be verified: the certificate claims expected_cost = 0.1, but the files prove"),
        (forged[:99], "made holds a damaged design: it could not be verified: certificate.json is not valid JSON"),
    ):
        (made / "certificate.json").write_text(text)
        for said in (says, "choose another folder, or use --overwrite"):
            assert_wrong_usage({f"design {spec} -o made": said})
    well("design", spec, "-o", "made", "--no-report", "--overwrite")
    well("verify", "made")


def test_a_design_that_needs_more_memory_to_be_verified_is_not_replaced(
    made: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise VerifierMemoryError("it is large")

    monkeypatch.setattr("mechdesign.synthesis._bundle.prove", fail)
    for more in ("", " --overwrite"):
        assert_wrong_usage({f"design {spec} -o made{more}": "error: it is large"})


def test_a_changed_file_of_data_is_another_design() -> None:
    write(SPECIFICATION.replace("counts = [4, 3, 2, 1]", 'csv = { path = "n.csv", column = "n" }'))
    write("n\n4\n3\n2\n1\n", "n.csv")
    well("design", "s.toml", "--no-report")
    write("n\n4\n3\n2\n2\n", "n.csv")
    assert_wrong_usage({"design s.toml --no-report": "s holds a design (A line): the contents of n.csv changed;"})
    write("n\n4\n3\n2\n1\n", "n.csv")
    assert "nothing is solved" in well("design", "s.toml", "--no-report").stderr


def test_a_folder_never_replaces_what_the_specification_reads() -> None:
    write(SPECIFICATION.replace("counts = [4, 3, 2, 1]", 'csv = { path = "out/channel.csv", column = "n" }'))
    write(SPECIFICATION, "plain.toml")
    well("design", "plain.toml", "-o", "out", "--no-report")
    write("n\n4\n3\n2\n1\n", "out/channel.csv")
    says = "out/channel.csv is the file of out/channel.csv, which must not be overwritten"
    assert_wrong_usage({"design s.toml -o out --overwrite": says})
    Path("out/s.toml").write_text(SPECIFICATION)
    Path("out/channel.csv").unlink()
    Path("out/channel.csv").symlink_to("s.toml")
    assert_wrong_usage({"design out/s.toml -o out --overwrite": "is the file of SPEC.toml"})


def test_each_specification_has_a_folder_of_its_own(spec: Path) -> None:
    write(SPECIFICATION.replace("A line", "Another line"), "below/the other.v2.toml")
    for name, folder in ((spec, "s"), ("below/the other.v2.toml", "the other.v2")):
        shown = well("design", name, "--no-report").stdout
        assert f"mechdesign verify {shlex.quote(folder)} " in shown
        well("verify", folder)
    assert not Path("mechanism").exists()


# --- wrong usage ---

WRONG = {
    "zero": ("epsilon = 0.7", "epsilon = 0", "privacy[0].epsilon: must be positive; found 0; must be greater than 0"),
    "key": ("epsilon", "epsilom", "privacy[0].epsilom: is not a known key"),
    "kind": ('kind = "metric"', 'kind = "metrc"', "privacy[0].kind: is not known; found 'metrc'"),
    "distance": ('distance = "euclidean"\n[[privacy]]', 'distance = "euclidian"\n[[privacy]]', "cost.distance"),
    "floor": ("minimum = 0.2", "minimum = 0.61", "privacy[1].minimum: no channel keeps"),
    "counts": ("[4, 3, 2, 1]", "[4, 3, 2]", "prior.counts"),
    "toml": ("title = ", "title ", "not valid TOML"),
    "policy": ("[prior]", "[policy]\nisolated = 'none'\n[prior]", "policy.isolated"),
}
SOLVER = {
    "option": ('name = "highs"\noptions = { foo = 1 }', "error: solver.options.foo: is refused by HiGHS"),
    "symmetry": (
        'name = "block"\noptions = { symmetry = [[1, 0, 2, 3]] }',
        "error: solver.options.symmetry[0]: changes the prior",
    ),
}


def test_wrong_specifications_are_told_before_their_folder_and_reach_no_solver(
    spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("other things", "full/of.txt")
    Path("nowhere").symlink_to("none")
    write("", "below/other.v2.toml")
    write(
        "table.person = false\ndomain.attributes.age = { range = [0, 9] }\n"
        'policy.kind = "full"\nrelease = { kind = "cdf", epsilon = 1 }\n',
        "ages.toml",
    )
    write("age\n1\n", "ages.csv")
    for name, (right, wrong, _) in WRONG.items():
        assert right in SPECIFICATION
        write(SPECIFICATION.replace(right, wrong, 1), f"{name}.toml")
    with monkeypatch.context() as patched:
        patched.setattr("mechdesign.synthesis._design.synthesise", _never)
        assert_wrong_usage(
            {
                **{f"design {name}.toml -o full": says for name, (*_, says) in WRONG.items()},
                "design s.toml -o full": "full",
                "design s.toml --tolerance 0": "--tolerance: must be positive",
                "design s.toml --frobnicate": "No such option",
                "design s.toml --output=": "'-o' / '--output': is empty",
                "design s.toml -o nowhere/x": "nowhere is not a folder",
                "design none.toml": "none.toml: cannot be opened",
                "design below/other.v3.toml": "Did you mean below/other.v2.toml?",
                # The other kind of specification, and two files in the wrong order.
                "design ages.toml": "mechdesign table",
                "table s.toml ages.csv": "mechdesign design",
                "table ages.csv ages.toml": "ages.csv: is not valid TOML",
            }
        )
        patched.setenv("MECHDESIGN_MEMORY", "lots")
        assert_wrong_usage({"design s.toml": "MECHDESIGN_MEMORY: is not accepted; found 'lots'"})
        patched.delenv("MECHDESIGN_MEMORY")
        patched.setattr("importlib.util.find_spec", lambda name: None)
        write(f'{SPECIFICATION}[solver]\nname = "cvxpy"\n', "cvxpy.toml")
        assert_wrong_usage({"design cvxpy.toml": "pip install"})
    for name, (table, _) in SOLVER.items():
        write(f"{SPECIFICATION}[solver]\n{table}\n", f"{name}.toml")
    assert_wrong_usage({f"design {name}.toml": says for name, (_, says) in SOLVER.items()})


# --- trouble and Ctrl-C ---


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [(errors.SolverError("highs-ipx said: no"), 3, "highs-ipx said: no"), (KeyboardInterrupt(), 130, "stopped")],
    ids=["trouble", "Ctrl-C"],
)
def test_what_ends_before_anything_is_certified_leaves_nothing(
    spec: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, status: int, said: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", fail)
    result = run("design", spec)
    assert (result.exit_code, result.stderr) == (status, f"error: {said}\n")
    assert os.listdir() == ["s.toml"]


def test_a_disk_that_fills_up(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    result = run("design", spec, "-o", "out", "--no-report")
    assert (result.exit_code, "No space left on device" in result.stderr) == (2, True)


def test_a_stopped_design_does_not_replace_a_finished_one(
    made: Path, spec: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = module._run_attempts

    def stopped(*arguments):
        for attempt, answer in answers(*arguments):
            yield attempt, answer.with_facts(status=Status.INTERRUPTED)

    monkeypatch.setattr(module, "_run_attempts", stopped)
    before = contents(made)
    result = run("design", "s.toml", "-o", made, "--no-report", "--overwrite")
    assert (result.exit_code, "interrupted" in result.stderr) == (130, True)
    assert contents(made) == before
    assert md.verify(f"{made}-interrupted").holds
    # Whatever has this name, the channel is kept under the next one.
    assert run("design", "s.toml", "-o", made, "--no-report", "--overwrite").exit_code == 130
    assert md.verify(f"{made}-interrupted-2").holds
    assert run("design", "s.toml", "-o", "fresh", "--no-report").exit_code == 130
    assert md.verify("fresh").holds
    assert_wrong_usage({"design s.toml -o fresh": "fresh holds a design (A line): it was interrupted; choose another"})


def test_a_bracket_that_a_limit_leaves_wide_exits_with_3(spec: Path) -> None:
    for said in ("warning: stopped at the time limit: the least cost lies", "note: s holds this design already"):
        result = run("design", spec, "--time-limit", "1e-9", "--no-report")
        assert (result.exit_code, result.stderr.startswith(said)) == (3, True), result.stderr
        assert "a bracket of" in result.stderr, said
        well("verify", "s")


def test_rays_that_stall_are_said_first_and_exit_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.synthesis._rays.generation._MAX_ROUNDS", 1)
    text = SPECIFICATION.replace('"metric"', '"threshold"\nradius = 100')
    write(f'{text}[solver]\nrows = "rays"\n', "stalling.toml")
    stalling = run("design", "stalling.toml", "--tolerance", "1e-3", "-o", "wide", "--no-report")
    assert stalling.exit_code == 3
    assert stalling.stderr.startswith("warning: rays stalled: the least cost lies between")
    well("verify", "wide")
    near = well("design", "stalling.toml", "--tolerance", "0.9", "-o", "close", "--no-report")
    assert near.stderr == ""


def _undrawable(*_: object, **__: object) -> None:
    raise ValueError("nothing can be drawn")


def test_a_design_is_written_although_its_report_cannot_be_drawn(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.report._design_page.html", _undrawable)
    done = run("design", spec, "-o", "out")
    assert done.exit_code == 2
    assert "the design in out is complete; only additional files, such as a page, are missing" in done.stderr
    assert "(nothing can be drawn)" in done.stderr
    assert "expected cost" in done.stdout
    assert md.verify("out").holds
    with pytest.raises(ReportError):
        md.save(md.read_spec(spec).design(), "python")
    assert md.verify("python").holds
    # What draws is loaded before anything is solved.
    monkeypatch.setitem(sys.modules, "mechdesign.report._design_page", None)
    monkeypatch.setattr("mechdesign.synthesis._design.synthesise", _never)
    assert_wrong_usage({"design s.toml -o none": "figures cannot be drawn"})


def test_what_was_computed_is_written_although_its_page_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.runs._sweep_figure.html", _undrawable)
    asked = md.sweep.parse(SPECIFICATION + '[sweep]\n"privacy.0.epsilon" = [1, 2]')
    with pytest.raises(ReportError, match="all designs are in swept"):
        md.sweep.run(asked, "swept", jobs=1)
    assert len(Path("swept/results.csv").read_text().splitlines()) == 3


# --- notes ---


def test_notes_and_warnings_are_shown() -> None:
    write("0,1,5,5\n1,0,1,5\n5,1,0,1\n5,5,1,0\n", "d.csv")
    metric = 'epsilon = 0.7\nmatrix = { path = "d.csv" }'
    notes = {
        "data": (
            SPECIFICATION.replace("counts = [4, 3, 2, 1]", "counts = [4, 3, 2, 0]"),
            "note: 1 of 4 secrets never occur in the data",
        ),
        "metric": (
            SPECIFICATION.replace('epsilon = 0.7\ndistance = "euclidean"', metric),
            "warning: distance violates the triangle inequality",
        ),
        "nothing": (SPECIFICATION.replace("0.7", "1e-9"), "the channel reveals nothing about it"),
    }
    for name, (text, said) in notes.items():
        shown = well("design", write(text, f"{name}.toml"), "--no-report").stderr
        assert said in shown, name
        assert ("reveals nothing" in shown) == (name == "nothing")


def test_an_estimate_says_what_fits() -> None:
    shown = flat(well("design", "--example", "city-300", "--estimate").stdout)
    assert re.search(r"privacy rows, about \S+ \SB of memory: (fits|does not fit)", shown), shown
    assert re.search(r"allowed \S+ GB most secrets \d+", shown), shown


STREET = """
title = "A street"
domain.grid = {{ columns = 5, rows = 1, width = {width}, height = 1.0, unit = "{unit}" }}
prior.uniform = true
cost.distance = "euclidean"
privacy = [{privacy}]
"""
FLOOR = '{ kind = "distortion", minimum = 0, distance = "hamming" }'
THRESHOLD = '{{ kind = "threshold", epsilon = 1, radius = {radius}, distance = "euclidean" }}'


def test_design_says_how_many_pairs_are_bounded() -> None:
    metric = '{ kind = "metric", epsilon = 1, distance = "euclidean" }'
    for width, unit, privacy, said in (
        ("0.5", "km", f"{THRESHOLD.format(radius='0.1')}, {FLOOR}", "8 of 20 ordered"),
        ("500.0", "m", f"{THRESHOLD.format(radius='100')}, {FLOOR}", "8 of 20 ordered"),
        ("5.0", "km", metric, "all 20 ordered"),
        ("5.0", "km", FLOOR, ""),
    ):
        text = STREET.format(width=width, unit=unit, privacy=privacy)
        shown = flat(well("design", write(text), "--no-report", "--overwrite").output)
        assert (said in shown, shown.count("20 ordered pairs")) == (True, int(bool(said)))
        if unit == "m":
            proved = well("verify", "s").output
            assert "8 of 20 ordered pairs of secrets" in flat(proved)
            second_verifier.prove(Path("s"))
        shutil.rmtree("s")
