import dataclasses
import math
from functools import partial

import numpy as np
from refusals import Mistake, assert_refused

import mechdesign as md
from mechdesign.errors import InputError
from mechdesign.solve._contract import Status
from mechdesign.synthesis._design import synthesise
from mechdesign.synthesis._result import SolveSummary
from mechdesign.synthesis._settings import SolveSettings

HAMMING = 1 - np.eye(3)
PROBLEM = md.Problem(np.full(3, 1 / 3), HAMMING, [md.MetricPrivacy(1, HAMMING)])


def test_one_value_has_the_settings_of_the_arguments():
    settings = SolveSettings("highs-simplex", 1e-6, rows="all", threads=np.int64(1))
    one = synthesise(PROBLEM, settings)
    other = md.design(PROBLEM, "highs-simplex", 1e-6, rows="all", threads=1)
    np.testing.assert_array_equal(one.channel.numerators, other.channel.numerators)
    assert one.summary.rows_policy == "all"
    assert isinstance(settings.threads, int)


def test_the_summary_has_the_facts_of_the_provenance():
    made = md.design(PROBLEM)
    summary = made.summary
    assert made.status is Status.OPTIMAL
    assert (summary.solver, summary.rows_policy) == ("highs-simplex", "reduced")
    assert summary.program_columns == 9
    assert summary.tried == (f"highs-simplex: {summary.message}",)
    assert summary.blocks is None
    shown = made.certificate.provenance
    assert shown["status"] == "optimal"
    assert shown["solve_seconds"] == summary.seconds
    assert "tried" not in shown
    assert "blocks" not in shown


def test_changed_facts_of_a_design_are_in_its_provenance():
    made = md.design(PROBLEM).noted(status=Status.INTERRUPTED, edges_added=2)
    assert made.status == "stopped by the user" == made.certificate.provenance["status"]
    assert made.certificate.provenance["edges_added"] == 2


def test_every_field_that_applies_is_written_once():
    values = {field.name: index for index, field in enumerate(dataclasses.fields(SolveSummary))}
    summary = SolveSummary(**{**values, "status": Status.OPTIMAL, "tried": ("one", "two")})
    written = summary.provenance()
    assert len(written) == len(values) - 1  # The certificate does not store the message.
    assert written["tried"] == "one; two"


def test_wrong_values_are_named():
    wrong = [
        ("solver", 7),
        ("time_limit", -1.0),
        ("rows", "few"),
        ("threads", True),
        ("options", {3: 4}),
        ("progress", 7),
    ]
    wrong += [("tolerance", value) for value in (0, "x", math.nan, 1, 1.0, 5)]
    assert_refused(
        Mistake(f"{name}={value}", partial(SolveSettings, **{name: value}), name, error=InputError)
        for name, value in wrong
    )
    assert SolveSettings(tolerance=0.999).tolerance == 0.999


def test_the_options_of_settings_cannot_be_changed_from_outside():
    options = {"symmetry": False}
    settings = SolveSettings(options=options)
    options["symmetry"] = True
    assert settings.options == {"symmetry": False}
