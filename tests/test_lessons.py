"""The lessons of the course, and their solutions, run from top to bottom and show their plots."""

from pathlib import Path

import nbformat
import pytest

from tests.processes import run

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks" / "lessons"
LESSONS = sorted(FOLDER.glob("*.ipynb"))
SOLUTIONS = sorted((FOLDER / "solutions").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.parametrize("path", [*LESSONS, *SOLUTIONS], ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_lesson_runs_as_it_stands(path, tmp_path) -> None:
    done = run("-m", "tests.cells", path, cwd=ROOT)
    assert done.returncode == 0, done.out + done.err
    assert "Traceback" not in done.err
    assert int(done.out.rpartition("figures: ")[2]) > 0


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_asks_lets_predict_and_has_exercises_with_solutions(path) -> None:
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert text.startswith("# Lesson ")
    assert text.index("**Question.**") < text.index("## What do you expect?") < text.index("## Exercises")
    assert any("guess" in cell.source and " = None" in cell.source for cell in cells if cell.cell_type == "code")
    assert not any(cell.get("outputs") for cell in cells)
    assert [solution.name for solution in SOLUTIONS].count(path.name) == 1
