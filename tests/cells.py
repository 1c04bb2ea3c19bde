"""Runs notebooks as Jupyter would, without a kernel: `python -m tests.cells NOTEBOOK …` keeps their outputs in them.

Cells run in a shell of IPython, in the folder of the notebook. Outputs have the form in which Jupyter stores them.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib
import nbformat
import pandas
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import activate_matplotlib
from matplotlib_inline.backend_inline import configure_inline_support
from nbformat import NotebookNode
from nbformat.v4 import new_output
from PIL import Image
from traitlets import Type

from tests.processes import run

TITLES = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
"""Metadata of a stored notebook."""

INLINE = "module://matplotlib_inline.backend_inline"
"""Backend of Matplotlib that a kernel has."""

DPI, N_COLOURS = 80, 128
"""Resolution of figures that are kept, and number of their colours: notebooks are files of a repository."""

OUTPUTS: list[NotebookNode] = []
"""Outputs of the cell that runs."""


class Publisher(DisplayPublisher):
    """Keeps what cells display."""

    def publish(self, data: Any, metadata: Any = None, **others: Any) -> None:
        """Keep one output."""
        OUTPUTS.append(new_output("display_data", data=as_text(data), metadata=metadata or {}))


class Hook(DisplayHook):
    """Keeps the value of a cell's last line."""

    def write_output_prompt(self) -> None:
        """Do nothing: the output has the number of its cell."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Keep the value, in all of its forms."""
        OUTPUTS.append(new_output("execute_result", data=as_text(format_dict), metadata=md_dict or {}))

    def finish_displayhook(self) -> None:
        """Do nothing: nothing was printed."""


class Stream(io.TextIOBase):
    """Keeps what cells print, in one output as long as nothing comes between."""

    def __init__(self, name: str) -> None:
        """Name it `stdout` or `stderr`."""
        self.label = name

    def write(self, text: str) -> int:
        """Keep a text."""
        if OUTPUTS and OUTPUTS[-1].get("name") == self.label:
            OUTPUTS[-1].text += text
        else:
            OUTPUTS.append(new_output("stream", name=self.label, text=text))
        return len(text)


class Shell(InteractiveShell):
    """A shell without a window."""

    displayhook_class = Type(Hook)
    display_pub_class = Type(Publisher)

    def enable_gui(self, gui: str | None = None) -> None:
        """Do nothing: figures are shown where they are drawn."""


def execute(file: Path) -> NotebookNode:
    """Run all code cells of a notebook, one after the other, in its folder.

    Args:
        file: The notebook.

    Returns:
        The notebook with its outputs.

    Raises:
        RuntimeError: If a cell fails.
    """
    notebook = nbformat.read(file, as_version=4)
    os.chdir(file.parent)
    sys.path.insert(0, str(file.parent))
    shell: Any = Shell.instance(colors="NoColor", history_load_length=0)
    shell.history_manager.enabled = False
    activate_matplotlib(INLINE)
    configure_inline_support(shell, INLINE)
    matplotlib.rcParams["figure.dpi"] = DPI
    pandas.set_option("display.max_columns", 20, "display.width", 80)  # not the width of the terminal
    written = sys.stdout, sys.stderr
    for number, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), 1):
        OUTPUTS.clear()
        sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
        try:
            done = shell.run_cell(cell.source, store_history=True)
        finally:
            sys.stdout, sys.stderr = written
        if not done.success:
            printed = "".join(output.text for output in OUTPUTS if output.output_type == "stream")
            raise RuntimeError(f"{file}: cell {number} fails:\n{cell.source}\n{printed}")
        cell.execution_count, cell.outputs = number, [kept(output, number) for output in OUTPUTS]
    notebook.metadata = nbformat.from_dict(TITLES)
    return notebook


def executed_apart(file: Path, target: Path) -> NotebookNode:
    """Run a notebook in a process of its own, and return it with its outputs.

    Args:
        file: The notebook.
        target: File that gets it with its outputs.
    """
    done = run("-m", "tests.cells", "-", file, target, cwd=Path(__file__).parents[1], timeout=600)
    assert done.returncode == 0, done.out + done.err
    return nbformat.read(target, as_version=4)


def as_text(data: dict[str, Any]) -> dict[str, Any]:
    """Return the forms of a value as Jupyter stores them: pictures, which may come as bytes, in base64."""
    return {kind: base64.b64encode(form).decode() if isinstance(form, bytes) else form for kind, form in data.items()}


def kept(output: NotebookNode, number: int) -> NotebookNode:
    """Return an output as it is kept: with the number of its cell, and a small picture."""
    if output.output_type == "execute_result":
        output.execution_count = number
    if "image/png" in output.get("data", {}):
        output.data["image/png"] = small_picture(output.data["image/png"])
    return output


def small_picture(png: str) -> str:
    """Reduce the colours of a picture, in base64."""
    file = io.BytesIO()
    picture = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    picture.quantize(N_COLOURS, dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


MOMENT = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
"""A moment of time in an output, such as that at which claims were sealed."""


def texts(notebook: NotebookNode) -> list[dict[str, str]]:
    """Return the outputs of each code cell as texts by kind, in which two runs must be equal.

    Args:
        notebook: A notebook with outputs.

    Returns:
        For each code cell: name of the stream or type of the data → text; for pictures and moments, a star each.
    """
    found = []
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        kinds: dict[str, str] = {}
        for output in cell.outputs:
            data = {output.name: output.text} if output.output_type == "stream" else output.get("data", {})
            if "image/png" in data:  # the text beside it is its size
                data = {"image/png": "*"}
            elif "text/html" in data:  # the text beside it is as wide as the terminal
                data = {"text/html": data["text/html"]}
            for kind, text in data.items():
                kinds[kind] = kinds.get(kind, "") + MOMENT.sub("*", str(text))
        found.append(kinds)
    return found


def main(files: list[str]) -> int:
    """Keep the outputs of notebooks: each runs in a process of its own.

    Args:
        files: The notebooks; after `-`, one notebook, and the file that gets it with its outputs.

    Returns:
        Exit status: 1 if a notebook fails.
    """
    if files[:1] == ["-"]:
        source, target = (Path(file).resolve() for file in files[1:])
        nbformat.write(execute(source), target)
        sys.stdout.write(f"{time.process_time():.1f} s of processor time\n")
        return 0
    failed = 0
    for file in files:
        done = run("-m", "tests.cells", "-", file, file, timeout=600)
        failed |= done.returncode != 0
        sys.stdout.write(f"{file}: {done.err if done.returncode else done.out}")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
