"""ODD documents: complete for every model of ours, and with visible blanks for what nobody has written."""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.registry import find_model, find_models
from mesa_llm.reports import odd_of
from mesa_llm.reports.odd_facts import fenced
from tests.faulty_server import FaultyServer
from tests.pot import PotModel

STUDIES = {
    "ablations": "AblationModel",
    "herd": "HerdModel",
    "polarisation": "PolarisationModel",
    "rumours": "RumourModel",
    "spreading": "SpreadingModel",
}
"""Module in the folder of `oasis` → model of the study."""

OURS = [entry.name for entry in find_models() if entry.package.startswith("mesa_llm_models.")]

CONCEPTS = [
    "Basic principles",
    "Emergence",
    "Adaptation",
    "Objectives",
    "Learning",
    "Prediction",
    "Sensing",
    "Interaction",
    "Stochasticity",
    "Collectives",
    "Observation",
]

OWN = """
from mesa_llm import LLMAgent, LLMModel, Observation, action


class Baker(LLMAgent):
    \"\"\"Bakes bread.\"\"\"

    def observe(self):
        return Observation("The oven is hot.")

    def rule(self, seen):
        raise NotImplementedError

    @action
    def bake(self) -> str:
        \"\"\"Bake a loaf.\"\"\"
        return "It smells good."


class Bakery(LLMModel):
    \"\"\"Bakers who bake.\"\"\"

    def __init__(self, **options):
        super().__init__(**options)
        Baker.create_agents(self, 2)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes a model of somebody's own, with other files beside it, and imports it."""

    def write(name: str, **files: str) -> type[LLMModel]:
        for file, text in {name: OWN, **files}.items():
            (tmp_path / file).write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, Path(name).stem, raising=False)
        return import_module(Path(name).stem).Bakery

    return write


@pytest.mark.parametrize("name", [*OURS, *(f"mesa_llm_models.oasis.{study}:{kind}" for study, kind in STUDIES.items())])
def test_a_model_of_ours_has_all_seven_elements_and_no_blank(name: str) -> None:
    text = odd_of(find_model(name).load(), name).markdown()
    assert re.findall(r"^## (\d)\. ", text, re.MULTILINE) == list("1234567")
    assert re.findall(r"^### 4\.\d+ (.*)$", text, re.MULTILINE) == CONCEPTS
    assert "[to be written" not in text
    assert "Blanks" not in text


def test_the_same_model_has_the_same_document() -> None:
    kind = find_model("schelling").load()
    assert odd_of(kind).markdown() == odd_of(kind).markdown()


def test_document_shows_actions_measures_parameters_and_prompts() -> None:
    text = odd_of(PotModel).markdown()
    assert "| `pay` | action | `coins`: How many coins you pay. | Pay into the pot. |" in text
    assert "| `count` | tool |  | Count the coins in the pot. |" in text
    assert "The pot holds 0 coins." in text
    assert "| `coins` | model |" in text
    assert "| `n_agents` | `4` |" in text
    assert "Rule twin of `Payer`" in text


def test_no_language_model_is_asked_whatever_a_model_names() -> None:
    with FaultyServer() as server:

        class Foreign(PotModel):
            """Names a language model by itself."""

            def llm_of(self, agent: Any) -> str:
                return f"stub@{server.url}"

        assert "The pot holds 0 coins." in odd_of(Foreign).markdown()
    assert server.requests == []


def test_missing_sections_are_blank_and_written_ones_are_in_place(own: Any) -> None:
    kind = own(
        "bakery_one.py",
        **{"odd.md": "# Bakery\n\n## Emergence\n\nThe smell of bread.\n", "README.md": "## Question\n\nWhy?\n"},
    )
    document = odd_of(kind, "bakery")
    text = document.markdown()
    assert "### 4.2 Emergence\n\nThe smell of bread.\n" in text
    assert "### 1.1 Purpose\n\nWhy?\n" in text
    assert "### 4.4 Objectives\n\n[to be written: what agents try to achieve" in text
    assert {"Objectives", "Scales"} <= set(document.blanks)
    assert not {"Emergence", "Purpose"} & set(document.blanks)


def test_a_heading_of_no_part_is_refused_with_the_one_that_was_meant(own: Any) -> None:
    kind = own("bakery_two.py", **{"odd.md": "## Emergance\n\nThe smell of bread.\n"})
    with pytest.raises(ConfigError, match="no part is called 'Emergance'; did you mean Emergence"):
        odd_of(kind)


def test_a_second_model_of_a_folder_does_not_take_the_texts_of_the_first(own: Any) -> None:
    kind = own("bakery_three.py", **{"model.py": "", "odd.md": "## Scales\n\nA step is a day.\n"})
    assert "Scales" in odd_of(kind).blanks
    own("bakery_three.py", **{"bakery_three.odd.md": "## Scales\n\nA step is an hour.\n"})
    assert "A step is an hour." in odd_of(kind).markdown()


def test_no_text_of_a_model_ends_its_own_block_of_code() -> None:
    text = "~~~~\n# not a heading\n~~~~~~"
    assert fenced(text).splitlines()[0] == "~~~~~~~text"
    assert fenced(text).splitlines()[-1] == "~~~~~~~"


def test_headings_in_a_readme_are_below_those_of_the_document() -> None:
    text = odd_of(find_model("oasis").load()).markdown()
    assert "##### Studies" in text
    assert re.findall(r"^## (.)", text, re.MULTILINE) == list("1234567")


def test_the_command_prints_the_document_and_names_the_blanks(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["odd", "tests.pot:PotModel", "--out", str(tmp_path / "ODD.md")])
    assert done.exit_code == 0, done.output
    assert "19 parts to be written, under these headings of odd.md beside the code: Purpose, Patterns" in done.stderr
    assert (tmp_path / "ODD.md").read_text(encoding="utf-8").startswith("# ODD: PotModel\n")
    done = CliRunner().invoke(app, ["odd", "commons", "--json"])
    assert json.loads(done.stdout)["blanks"] == []
    assert CliRunner().invoke(app, ["odd", "commons"]).stdout.startswith("# ODD: commons\n")
