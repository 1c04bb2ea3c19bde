"""Links lead to what is there: on a code host to files of the repository, in the built documentation to pages."""

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARKDOWN = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "models").rglob("README.md"),
        *(ROOT / "notebooks").rglob("*.md"),
    ]
)
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))


@pytest.fixture
def docs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("made_pages")


def text_of(file: Path) -> str:
    """Return the text of a page, or of a notebook's cells with text."""
    text = file.read_text(encoding="utf-8")
    if file.suffix != ".ipynb":
        return text
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown")


def headings_of(file: Path) -> set[str]:
    """Return the anchors that a code host gives the headings of a page."""
    titles = re.findall(r"^#+ (.+?)\s*$", text_of(file), re.MULTILINE)
    return {"#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def dead_links(file: Path, links) -> list[str]:
    """Return the links of a page that lead nowhere."""
    dead = []
    for path, heading in links.links_in(text_of(file)):
        target = (file.parent / path).resolve()
        made = (ROOT / "docs" / name for name in ("reference", "models", "prompts", "notebooks", "course"))
        is_kept = target.exists() and not any(folder in target.parents for folder in made)
        if not is_kept or (heading and heading not in headings_of(target)):
            dead.append(path + heading)
    return dead


@pytest.mark.parametrize("file", [*MARKDOWN, *NOTEBOOKS], ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_is_alive_on_a_code_host(file, docs) -> None:
    assert dead_links(file, docs.links) == []


@pytest.mark.parametrize(
    ("target", "page"),
    [
        ("../mesa_llm/registry.py", "reference/registry.md"),
        ("../mesa_llm/experiments/calibration/calibration.py", "reference/experiments.calibration.calibration.md"),
        ("../mesa_llm/space", "reference/space.md"),
        ("../models/mesa_llm_models/oasis/README.md#studies", "models/oasis.md#studies"),
        ("../models/mesa_llm_models", "models/index.md"),
        ("../mesa_llm/prompts", "prompts/index.md"),
        ("../notebooks/10_market.ipynb", "notebooks/10_market.md"),
        ("../notebooks/course/08_prompt_persona/README.md", "course/08_prompt_persona/index.md"),
        ("../notebooks/course/08_prompt_persona/quiz.md", "course/08_prompt_persona/quiz.md"),
        ("tutorial.md", "tutorial.md"),
        ("../CHANGELOG.md", "../CHANGELOG.md"),
    ],
)
def test_in_the_built_documentation_a_link_to_a_file_leads_to_its_page(target, page, docs) -> None:
    index = ROOT / "docs" / "index.md"
    assert docs.linked(f"[it]({target})", index, "index") == f"[it]({page})"
    assert docs.linked(f"```\n[it]({target})\n```", index, "index") == f"```\n[it]({target})\n```"


def test_links_of_a_notebook_lead_from_its_page(docs) -> None:
    week = ROOT / "notebooks" / "course" / "08_prompt_persona"
    text = docs.linked(
        "[text](README.md) [guide](../../../docs/teaching.md)", week / "notebook.ipynb", "course/a/notebook"
    )
    assert text == "[text](../08_prompt_persona/index.md) [guide](../../teaching.md)"


def test_the_page_of_a_notebook_shows_its_outputs(docs) -> None:
    pages = dict(docs.course_pages())
    page = pages["08_prompt_persona/notebook"]
    assert "generous minus greedy" in page
    assert "data:image/png;base64," in page
    assert "%matplotlib" not in page
    assert "solutions" in pages["08_prompt_persona/index"]
