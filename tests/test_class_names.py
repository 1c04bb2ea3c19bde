"""No two public classes of the library and the models have the same name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]

FOLDERS = (ROOT / "mesa_llm", ROOT / "models" / "mesa_llm_models")


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for file in (path for folder in FOLDERS for path in sorted(folder.rglob("*.py"))):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(file.relative_to(ROOT).as_posix())
    assert len(homes) > 500
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
