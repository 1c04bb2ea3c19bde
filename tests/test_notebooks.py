"""Every notebook runs from top to bottom, is stored without outputs, and shows its plots."""

import re
from pathlib import Path

import nbformat
import pytest
from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from nbclient import NotebookClient

from tests.processes import Python

PLOTS = re.compile(r"_figure\(\w+\)\s*$|plt\.show\(\)|subplots\(|\.plot\(|plots\.draw_")
"""What stands in a cell that draws."""

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _forked(monkeypatch) -> None:
    """Run each kernel, a fresh one, in a process that need not import first."""

    async def launch(self, cmd, **kwargs):
        environment = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", **kwargs["env"]}  # as a kernel does
        self.process = Python(*cmd[1:], env=environment, cwd=kwargs["cwd"])
        return self.connection_info

    monkeypatch.setattr(LocalProvisioner, "launch_kernel", launch)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_as_it_stands(path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in code)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(ROOT)}}).execute()
    assert any(cell.outputs for cell in code)
    drawing = [cell for cell in code if PLOTS.search(cell.source)]
    without = [cell.source for cell in drawing if not any("image/png" in out.get("data", ()) for out in cell.outputs)]
    assert without == []
