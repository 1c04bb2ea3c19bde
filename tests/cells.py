"""Runs the code cells of a notebook as Jupyter would, without a kernel: `python -m tests.cells NOTEBOOK`.

Cells run in a shell of IPython. The process ends with 1 where one of them fails, and with the number of figures in its
last line.
"""

import os
import sys
from pathlib import Path
from typing import Any

os.environ["MPLBACKEND"] = (
    "module://matplotlib_inline.backend_inline"  # as a kernel sets it, before Matplotlib is there
)

import nbformat
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from matplotlib_inline.backend_inline import configure_inline_support, flush_figures


class Shell(InteractiveShell):
    """A shell without a window."""

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: figures are shown where they are drawn."""


def main(path: str) -> int:
    """Run all code cells of a notebook, one after the other.

    Args:
        path: The notebook.

    Returns:
        Exit status: 1 if a cell fails.
    """
    shell: Any = Shell.instance(colors="NoColor", history_load_length=0)
    shell.history_manager.enabled = False
    shell.display_pub = CapturingDisplayPublisher()
    configure_inline_support(shell, "inline")
    n_figures = 0
    for cell in nbformat.read(Path(path), as_version=4).cells:
        if cell.cell_type != "code":
            continue
        run = shell.run_cell(cell.source)
        if not run.success:
            return 1
        flush_figures()
        shown = [output["data"] for output in shell.display_pub.outputs]
        shell.display_pub.outputs.clear()
        if run.result is not None:
            shown.append(shell.display_formatter.format(run.result)[0])
        n_figures += sum("image/png" in data for data in shown)
    sys.stdout.write(f"figures: {n_figures}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
