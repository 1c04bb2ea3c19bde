"""The folders of the models have one shape."""

from __future__ import annotations

import pytest

from tests.test_class_names import FOLDERS

USUAL = {
    "README.md",
    "odd.md",
    "__init__.py",
    "model.py",
    "agents.py",
    "world",
    "app.py",
    "prompts",
    "data",
    "text.py",
    "scores.py",
    "charts.py",
    "items.py",
    "task.py",
    "templates",
    "picture.svg",
    "page.png",
    "recordings",
    "__pycache__",
}
"""Files and folders that need no explanation; docs/writing_a_model.md explains them."""

STUDIES = {"classics", "oasis", "shachi"}
"""Folders with a module for each study, or a folder for each model."""

MODELS = sorted(
    path for path in FOLDERS[1].iterdir() if (path / "__init__.py").exists() and path.name not in STUDIES
) + sorted(path.parent for path in (FOLDERS[1] / "classics").glob("*/model.py"))


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_a_model_has_the_usual_files_and_its_readme_explains_others(folder) -> None:
    names = {path.name for path in folder.iterdir()}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert {"README.md", "model.py", "app.py"} <= names
    assert [name for name in sorted(names - USUAL) if f"`{name}" not in readme] == []


def test_the_folder_of_the_models_holds_folders_alone() -> None:
    assert {path.name for path in FOLDERS[1].iterdir() if path.is_file()} <= {"__init__.py", "exports.py"}
