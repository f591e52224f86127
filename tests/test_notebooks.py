"""The notebooks run, with and without the real data, and the gallery is made of the same figures."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[1]
NOTEBOOKS = PROJECT / "notebooks"
NAMES = sorted(path.stem for path in NOTEBOOKS.glob("*.py"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    # Messages of the kernel's own libraries, which this project can do nothing about.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning"),
]


@pytest.fixture(scope="module")
def gallery() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path, str(PROJECT / "docs")])
        import gallery

        yield gallery


def executed(name: str, data: Path) -> tuple[str, int]:
    """Execute a notebook with `data` as the folder of real data; return what it says, and the number of pictures."""
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    notebook = jupytext.read(NOTEBOOKS / f"{name}.py")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": NOTEBOOKS}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHDESIGN_DATA", str(data))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")]))
        client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    streams = [output for output in outputs if output.output_type == "stream"]
    assert {output.name for output in streams} <= {"stdout"}
    shown = [output.get("data", {}) for output in outputs]
    text = "\n".join([output.text for output in streams] + [data.get("text/markdown", "") for data in shown])
    return text, sum("image/png" in data for data in shown)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_run(name: str, data_folder: Path) -> None:
    text, pictures = executed(name, data_folder)
    assert pictures > 0
    assert "Not computed again here" not in text
    if name == "first_mechanism":
        assert "specific_train.csv" in text
        assert "verified: True" in text
    else:
        assert "rows computed again" in text
        assert "Verdict" in text


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_say_which_data_they_miss(name: str, tmp_path: Path) -> None:
    from papers import all_figures

    with_data = {shown.notebook for shown in all_figures().values() if shown.experiment.data}
    if name not in with_data | {"first_mechanism"}:
        pytest.skip("reads no data")
    text, pictures = executed(name, tmp_path)
    assert pictures > 0
    if name == "first_mechanism":
        assert "400 check-ins of 1 users in simulated.csv" in text
        assert "certificate holds: True" in text
        assert "report.html" in text
    else:
        assert "Not computed again here:" in text
        assert "Set MECHDESIGN_DATA" in text


def test_notebooks_are_percent_scripts_that_survive_the_round_trip() -> None:
    jupytext, nbformat = pytest.importorskip("jupytext"), pytest.importorskip("nbformat")
    assert list(NOTEBOOKS.glob("*.ipynb")) == []
    assert NAMES
    for name in NAMES:
        assert (NOTEBOOKS / f"{name}.py").read_text(encoding="utf-8").startswith("# %% [markdown]\n"), name
        notebook = jupytext.read(NOTEBOOKS / f"{name}.py")
        nbformat.validate(notebook)
        again = jupytext.reads(jupytext.writes(notebook, fmt="py:percent"), fmt="py:percent")
        cells = [[(cell.cell_type, cell.source) for cell in each.cells] for each in (notebook, again)]
        assert cells[0] == cells[1], name


def test_the_gallery_is_that_of_the_stored_results(gallery: Any) -> None:
    from papers import all_figures

    written = gallery.pages()
    for name, text in written.items():
        assert (gallery.DOCS / name).read_text(encoding="utf-8") == text, "run: python docs/gallery.py"
        assert "E_" not in re.sub(r"\$[^$]*\$", "", text)
    assert {path.name for path in gallery.PAGES.iterdir()} == {Path(name).name for name in written} - {"gallery.md"}
    for name in all_figures():
        assert (gallery.PICTURES / f"{name}.svg").is_file()
