"""The gate of personas: no statement repeats a persona's words, and every figure has its range by wording."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mesa_llm.errors import ConfigError
from mesa_llm.experiments import persona_gate
from mesa_llm.experiments.persona import decimal_text, load_contrasts, range_text, run_contrasts
from mesa_llm.experiments.persona_gate import gate_lines, gate_result, load_gate, stems
from mesa_llm.registry import find_model
from tests.faulty_server import FaultyServer
from tests.honest_reply import completion

FOLDER = Path(persona_gate.__file__).parent
ROOT = Path(__file__).parents[2]
TRAITS = ["extraversion", "agreeableness", "conscientiousness", "neuroticism", "openness"]


@pytest.mark.parametrize("half", ["A", "B"])
def test_each_half_has_five_traits_and_six_choices_in_four_wordings(half: str) -> None:
    gate = load_gate(half)
    assert [one.name for one in gate.traits] == TRAITS
    assert len(gate.choices) == 6
    assert gate.wordings == ("second person", "third person", "first person", "terse")
    for one in (*gate.traits, *gate.choices):
        assert len(set(one.high)) == len(set(one.low)) == 4
        fields = find_model(one.model).load().scenario_class.fields
        assert all(set(parameters) <= set(fields) for parameters in one.parameters)


def test_the_halves_and_the_contrasts_that_prompts_were_tuned_on_share_no_persona() -> None:
    texts = [
        persona
        for contrasts in (load_contrasts(), load_gate("A").contrasts(), load_gate("B").contrasts())
        for one in contrasts
        for persona in (*one.high, *one.low)
    ]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("half", ["A", "B"])
def test_every_persona_is_read_by_the_agents_who_are_asked(half: str, tmp_path: Path) -> None:
    def reply(body: dict[str, Any], number: int) -> Any:
        return completion("{}", body=body)

    gate = load_gate(half)
    with FaultyServer(reply) as server:
        for one in gate.choices:
            short = replace(one, high=one.high[:1], low=one.low[:1], wordings=one.wordings[:1])
            first = server.count
            run_contrasts(f"tiny@{server.url}", [short], scoring="replies", samples=1)
            for request in server.requests[first:]:
                text = "\n".join(message["content"] for message in request.body["messages"])
                assert one.high[0] in text or one.low[0] in text, one.name


def test_stems_find_a_word_in_its_other_forms() -> None:
    assert stems("You trust, and are trusting; planned plans.") == {"trust", "plan"}
    assert stems("I am what you are") == frozenset()


@pytest.fixture
def own_half(tmp_path: Path) -> Path:
    """A copy of half A, to be changed."""
    for name in ("persona_gate_a.toml", "persona_gate_a.csv"):
        shutil.copy(FOLDER / name, tmp_path)
    return tmp_path / "persona_gate_a.toml"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("You like being among people.", "You love a wedding.", r"wedding\.'.* of extraversion share wed"),
        ('  "Sociable, lively, outspoken.",\n', "", "extraversion has 3 high and 4 low personas; expected one of each"),
        ('name = "openness"', 'name = "humour"', "there is no statement of humour"),
        ('half = "A"', "", "half"),
    ],
)
def test_a_half_that_would_not_hold_anything_out_is_refused(own_half: Path, old: str, new: str, message: str) -> None:
    own_half.write_text(own_half.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_gate(own_half)


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"half B has no contrast 'opennes'.*did you mean openness"):
        load_gate("B").contrasts(["opennes"])


def test_the_page_says_what_the_readings_say() -> None:
    readings = json.loads((ROOT / "benchmarks" / "persona_gate.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "choosing_a_model.md").read_text(encoding="utf-8")
    assert f"mesa_llm {readings['version']}, {readings['date']}" in page
    for half in readings["halves"]:
        rows = [*half["traits"], *half["choices"]]
        assert [row["name"] for row in rows] == [one.name for one in load_gate(half["half"]).contrasts()]
        for row in rows:
            cells = [decimal_text(one) for one in (*row["by_wording"], row["difference"]["value"])]
            assert f"| {half['half']} | {row['name']} | {' | '.join(cells)} | {row['difference']['n']} |" in page
        mean = half["mean"]
        spread = range_text(half["by_wording"])
        assert f"{mean['value']:.2f} [{mean['low']:.2f}, {mean['high']:.2f}] points, {spread}" in page
        n_right = sum(row["difference"]["value"] > 0 for row in half["choices"])
        assert f"{n_right} of 6" in page


def test_the_table_has_every_wording_the_range_and_what_was_counted() -> None:
    gate = load_gate("A")
    result = gate_result(gate, run_contrasts("random", gate.contrasts(["openness", "lending to a neighbour"])))
    lines = "\n".join(gate_lines(result))
    assert "second person" in lines
    assert "0.00 to 0.00 by wording, over 4 pairs of personas" in lines
    assert "Choices, in probability: 0 of 1 move the right way." in lines
    assert not result.is_passed
