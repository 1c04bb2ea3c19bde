"""Notebooks of the course are stored with the outputs that a run has."""

from pathlib import Path

import nbformat
import pytest

from tests.cells import executed_apart, texts

FILES = sorted((Path(__file__).parents[1] / "notebooks" / "course").glob("*/notebook.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_a_notebook_of_the_course_has_the_outputs_of_its_run(path: Path, tmp_path: Path) -> None:
    assert texts(nbformat.read(path, as_version=4)) == texts(executed_apart(path, tmp_path / "executed.ipynb"))
