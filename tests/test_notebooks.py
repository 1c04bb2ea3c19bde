"""Notebooks run from top to bottom, show their plots, and are stored with the outputs that a run has."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.cells import executed_apart, main, texts

PLOTS = re.compile(r"_(?:figure|chart)\(\w+\)\s*$|plt\.show\(\)|subplots\(|\.plot\(|plots\.draw_")
"""What stands in a cell that draws."""

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
COURSE = sorted((ROOT / "notebooks" / "course").glob("*/*.ipynb"))
MAX_BYTES = 300_000


@pytest.fixture(autouse=True)
def _no_files_of_the_originals(monkeypatch) -> None:
    monkeypatch.delenv("MESA_LLM_DATA", raising=False)  # a reader has none


@pytest.mark.slow
def test_a_notebook_runs_in_jupyter() -> None:
    path = ROOT / "notebooks" / "23_social_media.ipynb"
    executed = NotebookClient(nbformat.read(path, as_version=4), timeout=600).execute(cwd=str(path.parent))
    assert texts(nbformat.read(path, as_version=4)) == texts(executed)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_it_stands(path, tmp_path) -> None:
    executed = executed_apart(path, tmp_path / "executed.ipynb")
    assert texts(nbformat.read(path, as_version=4)) == texts(executed)
    drawing = [cell for cell in executed.cells if cell.cell_type == "code" and PLOTS.search(cell.source)]
    without = [cell.source for cell in drawing if not any("image/png" in out.get("data", ()) for out in cell.outputs)]
    assert without == []


@pytest.mark.parametrize("path", [*NOTEBOOKS, *COURSE], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_stored_notebook_outputs_are_small_and_portable(path) -> None:
    assert path.stat().st_size <= MAX_BYTES
    outputs = [text for cell in texts(nbformat.read(path, as_version=4)) for text in cell.values()]
    assert outputs
    assert [text for text in outputs if re.search(r"0x[0-9a-f]{6}|/tmp/|/home/|\.venv|\x1b\[", text)] == []


def test_executing_notebooks_keeps_their_outputs_and_says_which_cell_fails(tmp_path, capsys) -> None:
    for name, last in (("good", "1 + 1"), ("bad", "1 / 0")):
        cells = [new_code_cell("from pathlib import Path\nprint(Path.cwd().name)"), new_code_cell(last)]
        nbformat.write(new_notebook(cells=cells), tmp_path / f"{name}.ipynb")
    assert main([str(tmp_path / "good.ipynb"), str(tmp_path / "bad.ipynb")]) == 1
    assert "cell 2 fails:\n1 / 0" in capsys.readouterr().out
    good, bad = (nbformat.read(tmp_path / f"{name}.ipynb", as_version=4) for name in ("good", "bad"))
    assert texts(good) == [{"stdout": f"{tmp_path.name}\n"}, {"text/plain": "2"}]
    assert texts(bad) == [{}, {}]
