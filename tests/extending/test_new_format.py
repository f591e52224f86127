"""A format from another package, written by the command as those of this package are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import mechdesign as md
from mechdesign.cli import main
from mechdesign.errors import InputError, MissingDependencyError
from mechdesign.synthesis.formats import Exported, Format, register
from mechdesign.synthesis.formats import _registry as registry
from mechdesign.synthesis.formats._registry import FORMATS, format_of

# --8<-- [start:format]


# What the file holds, in pieces. Options that the format takes are keywords with a default.
def _dot(exported: Exported, threshold: float = 0.0) -> Iterator[bytes]:
    """Yield a graph for Graphviz: an edge from each secret to each answer it is given with a probability above 0."""
    secrets, observables = exported.channel.secrets, exported.channel.observables
    yield b"digraph channel {\n"
    for secret, row in zip(secrets, exported.channel.matrix.tolist(), strict=True):
        for observable, probability in zip(observables, row, strict=True):
            if probability > threshold:
                yield f'  "{secret}" -> "answer {observable}" [label="{probability:.3g}"];\n'.encode()
    yield b"}\n"


DOT = Format("dot", "a graph for Graphviz", (".dot", ".gv"), _dot, options=("threshold",))


# --8<-- [end:format]


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(DOT)
    yield
    del registry._FORMATS["dot"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    secrets = md.Domain.from_labels(["yes", "no"])
    asked = [md.MetricPrivacy(1, md.distances.hamming(2))]
    problem = md.Problem([0.5, 0.5], md.distances.hamming(2), asked, secrets=secrets, observables=secrets)
    made = tmp_path_factory.mktemp("made")
    md.save(md.design(problem), made, report=False)
    return made


EXPECTED = """digraph channel {
  "yes" -> "answer yes" [label="0.731"];
  "yes" -> "answer no" [label="0.269"];
  "no" -> "answer yes" [label="0.269"];
  "no" -> "answer no" [label="0.731"];
}
"""


def test_the_command_writes_it(folder: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(main, ["export", str(folder), "--format", "dot"])
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == EXPECTED
    # The ending of the file tells the format, too.
    assert CliRunner().invoke(main, ["export", str(folder), "-o", str(tmp_path / "city.gv")]).exit_code == 0
    assert (tmp_path / "city.gv").read_text() == EXPECTED


def test_programs_write_it_with_its_options(folder: Path, tmp_path: Path) -> None:
    exported = Exported.load(folder)
    FORMATS["dot"].write(exported, tmp_path / "likely.dot", {"threshold": 0.5})
    assert (tmp_path / "likely.dot").read_text().count("->") == 2
    with pytest.raises(InputError, match=r"options\.colour: is not an option of dot; must be one of threshold"):
        FORMATS["dot"].write(exported, tmp_path / "red.dot", {"colour": "red"})
    assert not (tmp_path / "red.dot").exists()


def test_a_format_whose_package_is_missing_says_so(folder: Path, tmp_path: Path) -> None:
    needy = Format("needy", "needs more", (".needy",), _dot, package="no_such_package")
    with pytest.raises(MissingDependencyError, match="needy needs the package no_such_package: pip install"):
        needy.write(Exported.load(folder), tmp_path / "f.needy")
    assert not list(tmp_path.iterdir())


def test_names_are_unique_and_what_is_not_registered_is_an_error() -> None:
    with pytest.raises(InputError, match="format: has a name that is taken; found 'dot'"):
        register(DOT)
    with pytest.raises(InputError, match="format: has another type"):
        register("dot")  # type: ignore[arg-type]
    assert format_of("a.GV") is DOT
