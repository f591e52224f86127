"""A kind of requirement from another package, from a specification to an exported set that verifies.

The two classes are what such a package would hold: one file each, made known by `register`.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, ClassVar, Self

import numpy as np
import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign import specification as spec
from mechdesign.certify import Stated
from mechdesign.certify import _bundle as bundle
from mechdesign.cli import main
from mechdesign.errors import CertificateError, InputError, SpecificationError
from mechdesign.model import (
    KINDS,
    ClaimedPrivacy,
    Distance,
    Floats,
    GraphTable,
    Integers,
    MatrixFile,
    Reading,
    RequirementKind,
    Table,
    Words,
    as_distribution,
    as_floats,
    as_whole_numbers,
    register,
    says,
)
from mechdesign.specification import schema

# --8<-- [start:ratio]


# The keys of its [[privacy]] table: names, types, and which of them may be left out. A Fraction is an exact number.
class RatioTable(Table, frozen=True, tag_field="kind", tag="ratio"):
    """Ratio privacy: p(o|s) ≤ factor · p(o|t) for the listed pairs of secrets, both ways round."""

    factor: Annotated[Fraction, says("the factor, exact.")]
    pairs: Annotated[list[tuple[int | str, int | str]], says("pairs of secrets, by index or label.")]


@dataclass(frozen=True, eq=False)
class RatioPrivacy(RequirementKind):
    """Ratio privacy: p(o|s) <= factor · p(o|t) and p(o|t) <= factor · p(o|s) for the listed pairs of secrets."""

    kind: ClassVar[str] = "ratio"
    number: ClassVar[str] = "factor"
    table: ClassVar[type[Table]] = RatioTable
    factor: Fraction
    pairs: Integers
    secrets: int

    # What is wrong is said at once, with the name of the argument.
    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", as_whole_numbers(self.pairs, "pairs", 2))
        if self.factor < 1:
            raise InputError("factor", "is below 1", value=str(self.factor), bound="at least 1")

    @property
    def size(self) -> int:
        return self.secrets

    # What is to be proved of a channel, in the verifier's words: here bounds with a rational factor, both ways round.
    def stated(self) -> tuple[Stated, ...]:
        both = np.concatenate([self.pairs, self.pairs[:, ::-1]])
        return (Stated.ratios(self.kind, self.factor, both),)

    # The way back, for exported sets that are loaded again.
    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        (only,) = stated
        both = only.arrays["pairs"]
        return cls(only.numbers["factor"], both[: len(both) // 2], secrets)

    # From the table of a specification; `reading` knows the secrets by their labels, and the key to blame.
    @classmethod
    def from_table(cls, table: RatioTable, reading: Reading) -> Self:
        ends = [[reading.secret(name, "pairs") for name in pair] for pair in table.pairs]
        return cls(table.factor, np.array(ends, dtype=np.int64), reading.secrets.size)

    # In words, for tables and reports.
    def title(self, words: Words) -> str:
        return f"ratio privacy, factor between {len(self.pairs)} pairs"

    def promise(self, words: Words) -> str:
        return f"shift the odds between two listed secrets by a factor of at most {words.decimal(self.factor)}"


# --8<-- [end:ratio]
# --8<-- [start:suspicion]


class SuspicionTable(Table, frozen=True, tag_field="kind", tag="suspicion"):
    """Suspicion privacy: an adversary with a belief of their own expects to err by the minimum."""

    minimum: Annotated[Fraction, says("the least error expected, exact.")]
    belief: Annotated[list[float], says("what the adversary believes, a probability for each secret.")]
    distance: Annotated[Distance | None, says("the error as a distance by its name.")] = None
    matrix: Annotated[MatrixFile | None, says("the error of every estimate from a file.")] = None
    graph: Annotated[GraphTable | None, says("the error as lengths of shortest paths.")] = None


@dataclass(frozen=True, eq=False)
class SuspicionPrivacy(RequirementKind):
    """A floor on the error that an adversary expects whose belief is not the prior of the problem."""

    kind: ClassVar[str] = "suspicion"
    number: ClassVar[str] = "minimum"
    table: ClassVar[type[Table]] = SuspicionTable
    minimum: Fraction
    distance: Floats
    belief: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", as_floats(self.distance, "distance", "(k, n)"))
        object.__setattr__(self, "belief", as_distribution(self.belief, "belief"))

    @property
    def size(self) -> int:
        return int(self.distance.shape[1])

    def stated(self) -> tuple[Stated, ...]:
        return (Stated.floor(self.kind, self.minimum, self.distance, self.belief),)

    @classmethod
    def from_stated(cls, stated: Sequence[Stated], secrets: int) -> Self:
        (only,) = stated
        return cls(only.numbers["minimum"], only.arrays["error"], only.arrays["prior"])

    @classmethod
    def from_table(cls, table: SuspicionTable, reading: Reading) -> Self:
        return cls(table.minimum, reading.measure(table, any_rows=True), np.array(table.belief))

    def title(self, words: Words) -> str:
        return "suspicion privacy, expected error"

    def promise(self, words: Words) -> str:
        least = words.measure(self.distance).with_unit(words.number(float(self.minimum), 4))
        return f"guess the secret with a belief of their own, but then expects to be off by at least {least}"


# --8<-- [end:suspicion]

SPECIFICATION = """
title = "Three wards"
domain.labels = ["north", "east", "south"]
prior.probabilities = [0.5, 0.3, 0.2]
cost.distance = "hamming"

[[privacy]]
kind = "ratio"
factor = 2
pairs = [["north", "east"], ["east", "south"]]

[[privacy]]
kind = "suspicion"
minimum = 0.4
distance = "hamming"
belief = [0.2, 0.2, 0.6]
"""


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(RatioPrivacy)
    register(SuspicionPrivacy)
    yield
    for kind in (RatioPrivacy, SuspicionPrivacy):
        if kind.kind in KINDS:
            KINDS.unregister(kind.kind)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Design as the command line does, once, and return the folder and what was shown."""
    folder = tmp_path_factory.mktemp("wards")
    (folder / "spec.toml").write_text(SPECIFICATION)
    register(RatioPrivacy)
    register(SuspicionPrivacy)
    result = CliRunner().invoke(main, ["design", str(folder / "spec.toml"), "-o", str(folder / "out")])
    KINDS.unregister("ratio")
    KINDS.unregister("suspicion")
    assert result.exit_code == 0, result.output
    return folder / "out", result.output


@pytest.fixture
def folder(exported: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(exported[0], tmp_path / "out"))


def test_the_command_names_both_with_their_numbers(exported: tuple[Path, str]) -> None:
    assert "ratio privacy, factor between 2 pairs   factor ≤ 2" in exported[1]
    assert "suspicion privacy, expected error" in exported[1]
    assert "≥ 0.4" in exported[1]


def test_from_a_specification_to_a_verified_export(folder: Path) -> None:
    certificate = md.verify(folder)
    ratio, suspicion = certificate.requirements
    assert (ratio.kind, ratio.number, ratio.nominal) == ("ratio", "factor", "2")
    assert 1 < ratio.realised <= 2
    assert (suspicion.kind, suspicion.number, suspicion.nominal) == ("suspicion", "minimum", "0.4")
    assert suspicion.realised >= 0.4
    assert certificate.relative_gap <= 1e-9
    channel = md.Channel.load(folder).numerators.astype(object)
    for s, t in ((0, 1), (1, 0), (1, 2), (2, 1)):
        assert (channel[s] <= 2 * channel[t]).all()
    belief = [Fraction(0.2), Fraction(0.2), Fraction(0.6)]
    errors = sum(
        min(sum(belief[s] * channel[s, o] for s in range(3) if s != guess) for guess in range(3)) for o in range(3)
    )
    assert Fraction(errors, 2**62) >= Fraction("0.4")


def test_the_report_and_the_loaded_problem_speak_of_it(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "shift the odds between two listed secrets by a factor of at most 2" in page
    assert "belief of their own, but then expects to be off by at least 0.4" in page
    ratio, suspicion = md.Design.load(folder).problem.requirements
    assert isinstance(ratio, RatioPrivacy)
    assert ratio.pairs.tolist() == [[0, 1], [1, 2]]
    assert isinstance(suspicion, SuspicionPrivacy)
    assert suspicion.belief.tolist() == [0.2, 0.2, 0.6]


def test_who_has_never_heard_of_it_proves_and_loads_it_all_the_same(folder: Path) -> None:
    known = md.verify(folder)
    KINDS.unregister("ratio")
    KINDS.unregister("suspicion")
    assert not md.verify(folder).differences(known)
    loaded = md.Design.load(folder)
    problem, channel, certificate = loaded.problem, loaded.channel, loaded.certificate
    assert [type(each) for each in problem.requirements] == [ClaimedPrivacy, ClaimedPrivacy]
    assert [each.kind for each in problem.requirements] == ["ratio", "suspicion"]
    assert md.design(problem).certificate.cost == pytest.approx(certificate.cost, rel=1e-8)
    from mechdesign.report._design_page import html

    assert "ratio privacy" in html(problem, channel, certificate)


def test_the_grammar_describes_it() -> None:
    described = schema()["$defs"]["RatioTable"]
    assert described["properties"]["factor"]["description"] == "the factor, exact."
    assert {"$ref": "#/$defs/SuspicionTable"} in schema()["properties"]["privacy"]["items"]["anyOf"]


def test_an_unknown_kind_is_a_typed_error_everywhere(folder: Path) -> None:
    KINDS.unregister("ratio")
    with pytest.raises(SpecificationError, match=r"privacy\[0\]\.kind: is not known; found 'ratio'; must be one of"):
        spec.parse(SPECIFICATION).problem()
    with pytest.raises(InputError, match="kind: is not known; found 'ratio'"):
        KINDS["ratio"]
    tampered(folder, lambda document: document["requirements"][0].update(kind="ratio"))
    with pytest.raises(CertificateError, match=r"requirements\[0\] has an unknown kind"):
        md.verify(folder)


def test_tampered_claims_are_found_even_where_all_digests_fit(folder: Path) -> None:
    """What else is changed is refused as with the claims of `tests/support/tampering.py`."""
    for place, change, reason in (
        (0, {"factor": "1.5"}, "does not hold"),
        (0, {"factor": "2.5"}, "the certificate claims"),
        (0, {"name": "other"}, "the certificate claims"),
        (1, {"minimum": "0.41"}, "expected error, under the prior of this"),
    ):
        before = (folder / bundle.CERTIFICATE).read_bytes()
        tampered(folder, lambda document, place=place, change=change: document["requirements"][place].update(change))
        with pytest.raises(CertificateError, match=reason):
            md.verify(folder)
        (folder / bundle.CERTIFICATE).write_bytes(before)


def tampered(folder: Path, change: object) -> None:
    """Change the certificate in a folder, and repair its digest."""
    path = folder / bundle.CERTIFICATE
    document = json.loads(path.read_text())
    change(document)  # type: ignore[operator]
    document["digest"] = bundle.document_digest(document)
    path.write_text(json.dumps(document))


def test_a_name_is_registered_once_and_only_for_a_kind() -> None:
    with pytest.raises(InputError, match="kind: has a name that is taken; found 'ratio'"):
        register(RatioPrivacy)
    with pytest.raises(InputError, match="must be a class derived from RequirementKind"):
        register(md.Prior)  # type: ignore[type-var]


def test_wrong_values_in_a_table_name_the_key() -> None:
    def problem(old: str, new: str) -> md.Problem:
        return spec.parse(SPECIFICATION.replace(old, new)).problem()

    with pytest.raises(SpecificationError, match=r"privacy\[0\]\.factor: is below 1; found '1/2'"):
        problem("factor = 2", 'factor = "1/2"')
    with pytest.raises(SpecificationError, match=r"privacy\[0\]\.pairs: .*west"):
        problem('["north", "east"], [', '["north", "west"], [')
    with pytest.raises(SpecificationError, match=r"privacy\[1\]\.belief: does not sum to 1"):
        problem("[0.2, 0.2, 0.6]", "[0.2, 0.2, 0.7]")
    with pytest.raises(md.errors.InfeasibleError, match=r"privacy\[1\]\.minimum: .* largest possible.* is 0\.4"):
        problem("minimum = 0.4", "minimum = 0.41")
