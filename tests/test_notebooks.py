from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
FIRST = NOTEBOOKS / "first_mechanism.ipynb"

# Messages of the kernel's own libraries, which this project can do nothing about.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning")


def printed(data: Path) -> str:
    """Execute the notebook with `data` as the folder of real data, and return what it printed."""
    notebook = nbformat.read(FIRST, as_version=4)
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": NOTEBOOKS}})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHDESIGN_DATA", str(data))
        client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.name for output in outputs if output.output_type == "stream" and output.name != "stdout"] == []
    # Each picture is shown.
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 4
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_first_mechanism_on_simulated_data(tmp_path):
    text = printed(tmp_path)
    assert "400 check-ins of 1 users in simulated.csv" in text
    assert "certificate holds: True" in text
    assert "verified: True" in text
    assert "report.html" in text


def test_first_mechanism_on_real_data(data_folder):
    text = printed(data_folder)
    assert "specific_train.csv" in text
    assert "verified: True" in text


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.name)
def test_notebooks_are_stored_without_outputs(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in cells)


def test_first_mechanism_is_ten_cells():
    notebook = nbformat.read(FIRST, as_version=4)
    assert sum(cell.cell_type == "code" for cell in notebook.cells) <= 10
