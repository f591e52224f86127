from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from long import mostly_long
from nbclient import NotebookClient

from papers import all_figures
from papers.showing import typeset
from mechdesign.cli._citation import CITATION

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
sys.path.append(str(NOTEBOOKS.parent / "docs"))

import gallery  # noqa: E402

SOURCES = sorted(NOTEBOOKS.glob("*.py"))
QUICK = ("first_mechanism", "pglp", "temporal_leakage")

# Messages of the kernel's own libraries, which this project can do nothing about.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning")


def executed(path: Path, data: Path) -> nbformat.NotebookNode:
    """Execute a notebook with `data` as the folder of real data; what it says is on standard output alone."""
    notebook = jupytext.read(path)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    client = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": NOTEBOOKS}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHDESIGN_DATA", str(data))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(NOTEBOOKS.parent), os.environ.get("PYTHONPATH", "")]))
        client.execute()
    outputs = outputs_of(notebook)
    assert [output.name for output in outputs if output.output_type == "stream" and output.name != "stdout"] == []
    return notebook


def outputs_of(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def text_of(notebook: nbformat.NotebookNode) -> str:
    outputs = outputs_of(notebook)
    shown = (output.get("data", {}).get("text/markdown", "") for output in outputs)
    return "".join(output.text for output in outputs if output.output_type == "stream") + "\n".join(shown)


def pictures_of(notebook: nbformat.NotebookNode) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs_of(notebook))


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    mostly_long(sorted(SOURCES, key=lambda path: path.stem not in QUICK), len(QUICK)),
    ids=lambda path: path.stem,
)
def test_notebooks_run(path, data_folder):
    notebook = executed(path, data_folder)
    text = text_of(notebook)
    assert pictures_of(notebook) > 0
    assert "Not computed again here" not in text
    if path.stem == "first_mechanism":
        assert "specific_train.csv" in text
        assert "verified: True" in text
    else:
        assert "rows computed again" in text
        assert "Verdict" in text


WITH_DATA = {"first_mechanism"} | {shown.notebook for shown in all_figures().values() if shown.experiment.data}


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_long(sorted(WITH_DATA)))
def test_notebooks_say_which_data_they_miss(name, tmp_path):
    notebook = executed(NOTEBOOKS / f"{name}.py", tmp_path)
    text = text_of(notebook)
    assert pictures_of(notebook) > 0
    if name == "first_mechanism":
        assert "400 check-ins of 1 users in simulated.csv" in text
        assert "certificate holds: True" in text
        assert "report.html" in text
    else:
        assert "Not computed again here:" in text
        assert "Set MECHDESIGN_DATA" in text


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_notebooks_are_percent_scripts_that_survive_the_round_trip(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n")
    notebook = jupytext.read(path)
    nbformat.validate(notebook)
    again = jupytext.reads(jupytext.writes(notebook, fmt="py:percent"), fmt="py:percent")
    assert [(cell.cell_type, cell.source) for cell in again.cells] == [
        (cell.cell_type, cell.source) for cell in notebook.cells
    ]


def test_no_notebook_is_stored_with_outputs():
    assert list(NOTEBOOKS.glob("*.ipynb")) == []


def test_first_mechanism_is_ten_cells():
    notebook = jupytext.read(NOTEBOOKS / "first_mechanism.py")
    assert sum(cell.cell_type == "code" for cell in notebook.cells) <= 10


def test_the_gallery_is_that_of_the_stored_results():
    written = gallery.pages()
    for name, text in written.items():
        assert (gallery.DOCS / name).read_text(encoding="utf-8") == text, "run: python docs/gallery.py"
        assert "E_" not in re.sub(r"\$[^$]*\$", "", text)
    assert {path.name for path in gallery.PAGES.iterdir()} == {Path(name).name for name in written} - {"gallery.md"}
    for name, figure in all_figures().items():
        assert (gallery.PICTURES / f"{name}.svg").is_file()
        data = gallery.PICTURES / f"{figure.experiment.name}.csv"
        assert data.read_bytes() == gallery.data_csv(figure.experiment.stored().rows), "run: python docs/gallery.py"


def test_data_of_the_gallery_have_a_cell_for_each_value():
    text = gallery.data_csv([{"a": 0.1, "b": [1, 2]}, {"a": None, "c": "x, y"}]).decode()
    assert text.splitlines() == ["a,b,c", '0.1,"[1, 2]",', ',,"x, y"']


def test_names_with_subscripts_are_typeset():
    assert typeset("E_eu under G_k9") == "$E_{\\mathrm{eu}}$ under $G_{\\mathrm{k9}}$"
    assert typeset("an E_ or GE_eu") == "an E_ or GE_eu"


def test_each_page_of_the_gallery_cites_its_paper():
    named = set(re.findall(r"^@\w+\{(\w+),", CITATION, re.MULTILINE))
    assert set(gallery.PAPERS.values()) | {"mechdesign"} == named
    for name in ("privacy_games", "unnoticed"):
        text = (gallery.PAGES / f"{name}.md").read_text(encoding="utf-8")
        assert "@software{mechdesign," in text
        assert text.count("\n@") == 1 + (name in gallery.PAPERS)
    with pytest.raises(KeyError):
        gallery.cite("nobody2020")
