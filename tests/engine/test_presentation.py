"""Each way to put what agents read, by what their language models then read, and what becomes of their replies."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from mesa_llm import (
    AgentConfig,
    AgentDesign,
    ConfigError,
    DoNothing,
    Event,
    LLMAgent,
    LLMModel,
    Observation,
    ReplayError,
    Request,
    ScriptedLLM,
    action,
)
from mesa_llm.engine.presentation import Presentation, reworded_name
from mesa_llm.llm.scripted import call
from mesa_llm_models.classics.culture.model import CultureModel
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel
from mesa_llm_models.classics.sugarscape.model import SugarModel
from mesa_llm_models.classics.wolf_sheep.model import MeadowModel
from mesa_llm_models.social.model import SocialModel

PEOPLE = ("Ann Bell", "Bo Carr", "Cy Dean")
BAKER = AgentConfig(
    name="Ann Bell",
    persona="You are a baker. You trust people.",
    traits={"age": 40, "shop | stall": "yes"},
    style="dry",
)


class Square(DoNothing):
    """A square on which people greet each other."""

    name = "square"

    def __init__(self) -> None:
        self.greeted: list[tuple[int, str, str]] = []

    def observe(self, agent: int) -> Observation:
        return Observation(
            "It is noon. Ann is here.\n\nYou see:\n- Bo Carr: near\n- Cy Dean: far", "You live in a town."
        )

    @action
    def greet(self, agent_id: int, who: Literal["Ann Bell", "Bo Carr", "Cy Dean"], words: str = "") -> str:
        """Greet somebody, such as Bo Carr."""
        self.greeted.append((agent_id, who, words))
        return f"You greeted {who}."

    def end_step(self) -> list[Event]:
        return []

    @action
    def wave(self, agent_id: int, times: Annotated[int, Field(ge=1)] = 1) -> str:
        """Wave to all."""
        return f"You waved {times} times."


class Town(LLMModel):
    """Three people on a square."""

    instructions_text: Any = "Be kind."

    def __init__(self, **options: Any) -> None:
        super().__init__(activation="in_order", **options)
        self.world = Square()
        self.worlds = (self.world,)
        for name in PEOPLE:
            config = (
                BAKER if name == "Ann Bell" else AgentConfig(name=name, persona=f"You are {name.split()[0]}’s twin.")
            )
            LLMAgent(self, config=config, memory="window:4")


def read(steps: int = 1, **fields: Any) -> list[Request]:
    """Return what the language models of a town read under a presentation."""
    requests: list[Request] = []

    def reply(request: Request) -> Any:
        requests.append(request)
        return call("greet", who="Bo Carr")

    Town(llm=ScriptedLLM(reply), rng=1, design=AgentDesign(presentation=Presentation.model_validate(fields))).run_for(
        steps
    )
    return requests


def system_and_user(request: Request) -> tuple[str, str]:
    by_role = {message.role: message.content for message in request.messages}
    return by_role.get("system", ""), by_role["user"]


SEEN = "It is noon. Ann is here.\n\nYou see:\n- Bo Carr: near\n- Cy Dean: far"
OWN = "Your name is Ann Bell.\nYou are a baker. You trust people.\nage: 40\nshop | stall: yes\nHow you write: dry"


def test_without_a_presentation_a_prompt_is_as_the_model_writes_it() -> None:
    assert system_and_user(read()[0]) == ("Be kind.\n\nYou live in a town.", f"{SEEN}\n\n{OWN}")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("sentence", "Persona: a baker; You trust people; name Ann Bell; age 40; shop | stall yes; writing style dry."),
        (
            "description",
            "This is a description of you. You are a baker. You trust people. Your name: Ann Bell. Your age: 40. "
            "Your shop | stall: yes. Your writing style: dry.",
        ),
        (
            "first_person",
            "I say of myself: I am a baker. I trust people. My name: Ann Bell. My age: 40. My shop | stall: yes. "
            "My writing style: dry.",
        ),
        (
            "table",
            "| field | value |\n| --- | --- |\n| name | Ann Bell |\n| persona | a baker |\n"
            "| persona | You trust people |\n| age | 40 |\n| shop \\| stall | yes |\n| writing style | dry |",
        ),
    ],
)
def test_who_an_agent_is_can_be_said_in_other_forms(form: str, text: str) -> None:
    assert system_and_user(read(persona_form=form)[0])[1] == f"{SEEN}\n\n{text}"


@pytest.mark.parametrize(
    ("place", "system", "user"),
    [
        ("opening", f"{OWN}\n\nBe kind.\n\nYou live in a town.", SEEN),
        ("system", f"Be kind.\n\nYou live in a town.\n\n{OWN}", SEEN),
        ("first", "Be kind.\n\nYou live in a town.", f"{OWN}\n\n{SEEN}"),
        ("last", "Be kind.\n\nYou live in a town.", f"{SEEN}\n\n{OWN}"),
    ],
)
def test_who_an_agent_is_can_stand_in_other_places(place: str, system: str, user: str) -> None:
    assert system_and_user(read(persona_place=place)[0]) == (system, user)


def test_agents_can_have_the_persona_of_the_next_one_and_keep_their_names() -> None:
    ann, bo, cy = (system_and_user(request)[1].removeprefix(f"{SEEN}\n\n") for request in read(persona_of="another"))
    assert ann == "Your name is Ann Bell.\nYou are Bo’s twin."
    assert bo == "Your name is Bo Carr.\nYou are Cy’s twin."
    assert cy.startswith("Your name is Cy Dean.\nYou are a baker.")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("list", "- It is noon. Ann is here.\n- You see:\n  - Bo Carr: near\n  - Cy Dean: far"),
        (
            "table",
            "| what | value |\n| --- | --- |\n| seen | It is noon. Ann is here. |\n| seen | You see: |\n"
            "| ↳ Bo Carr | near |\n| ↳ Cy Dean | far |",
        ),
        ("spaced", "  It is noon. Ann is here.\n\n  You see:\n\n  - Bo Carr: near\n\n  - Cy Dean: far"),
    ],
)
def test_what_is_seen_can_have_other_forms(form: str, text: str) -> None:
    assert system_and_user(read(observation_form=form)[0])[1] == f"{text}\n\n{OWN}"


def test_what_is_seen_can_be_json() -> None:
    text = system_and_user(read(observation_form="json")[0])[1]
    assert '"You see": [\n   {\n    "Bo Carr": "near"\n   },' in text


def test_parts_and_lists_can_have_another_order() -> None:
    text = "You see:\n- Cy Dean: far\n- Bo Carr: near\n\nIt is noon. Ann is here."
    other = system_and_user(read(observation_order="reversed", list_order="reversed")[0])[1]
    assert other == f"{text}\n\n{OWN}"


def test_memories_can_stand_after_what_is_seen() -> None:
    before, after = (system_and_user(read(2, memory_place=place)[3])[1] for place in ("own", "after"))
    memories = "What you remember:\nIn step 1 you greeted Bo Carr."
    assert before == f"{memories}\n\n{SEEN}\n\n{OWN}"
    assert after == f"{SEEN}\n\n{memories}\n\n{OWN}"


def test_instructions_can_be_left_out_or_stand_in_the_user_s_message() -> None:
    assert system_and_user(read(instructions="none")[0]) == ("You live in a town.", f"{SEEN}\n\n{OWN}")
    system, user = system_and_user(read(instructions_place="user")[0])
    assert (system, user) == ("", f"Be kind.\n\nYou live in a town.\n\n{SEEN}\n\n{OWN}")


def test_options_and_actions_can_have_another_order() -> None:
    (own, *_), (options, *_), (tools, *_) = read(), read(option_order="reversed"), read(tool_order="reversed")
    assert [tool.name for tool in own.tools] == [tool.name for tool in tools.tools][::-1]
    choices = [[tool.parameters["properties"].get("who") for tool in request.tools] for request in (own, options)]
    first, second = (next(one["enum"] for one in offers if one) for offers in choices)
    assert first == list(PEOPLE) == second[::-1]


def options_in(request: Request) -> list[str]:
    """Return the people that one may greet, in the order in which they are read."""
    return next(tool.parameters["properties"]["who"]["enum"] for tool in request.tools if tool.name == "greet")


def test_options_can_be_drawn_for_each_agent_and_step_and_again_the_same() -> None:
    drawn, again, reverse = (
        [options_in(request) for request in read(6, option_order=order)] for order in ("drawn", "drawn", "reversed")
    )
    assert len({tuple(one) for one in drawn}) > 3
    assert {frozenset(one) for one in drawn} == {frozenset(PEOPLE)}
    assert drawn == again
    assert reverse == [list(PEOPLE)[::-1]] * len(reverse)


def test_a_drawn_list_has_the_order_of_the_drawn_options() -> None:
    for request in read(6, option_order="drawn", list_order="drawn"):
        listed = re.findall(r"- (\w+ \w+):", system_and_user(request)[1])
        assert listed == [one for one in options_in(request) if one in listed]


@pytest.mark.parametrize("kind", [SugarModel, MeadowModel, CultureModel])
def test_a_model_draws_the_order_where_positions_mean_nothing_and_an_audit_reverses_it(kind: type[LLMModel]) -> None:
    def first(**options: Any) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []

        def reply(request: Request) -> Any:
            found.append(next(iter(request.options.values()), ()))
            return call(request.tools[-1].name) if not request.tools[-1].parameters["properties"] else "stay"

        kind(llm=ScriptedLLM(reply), rng=1, **options).step()
        return found[:8]

    own, drawn = first(option_order="own"), first()
    reverse = first(design=AgentDesign(presentation=Presentation(option_order="reversed")))
    assert own != drawn != reverse
    assert [one[::-1] for one in drawn] == reverse
    assert list(map(sorted, own)) == list(map(sorted, drawn))


def test_a_folder_of_rewordings_replaces_the_instructions_that_it_holds(tmp_path: Path) -> None:
    (tmp_path / reworded_name("Be kind.")).write_text("Kindness, please.\n", encoding="utf-8")
    system, _ = system_and_user(read(wording=str(tmp_path))[0])
    assert system == "Kindness, please.\n\nYou live in a town."


def test_a_named_rewording_replaces_templates_of_the_model_and_the_library() -> None:
    user = system_and_user(read(2, wording="formal")[3])[1]
    assert user.startswith("This is what you remember:\nIn step 1 you greeted")


# -- names


def test_exchanged_names_are_read_everywhere_and_come_back_in_what_is_done() -> None:
    read_by_ann: list[Request] = []

    def reply(request: Request) -> Any:
        read_by_ann.append(request)
        return call("greet", who="Bo Carr", words="Hello, Bo!")  # who is Ann Bell, in the names of the run

    design = AgentDesign(presentation=Presentation(names="exchanged"))
    model = Town(llm=ScriptedLLM(reply), rng=1, design=design)
    model.step()
    _, user = system_and_user(read_by_ann[0])
    assert user.startswith("It is noon. Bo is here.\n\nYou see:\n- Cy Dean: near\n- Ann Bell: far")
    assert "Your name is Bo Carr." in user
    assert any("such as Cy Dean" in tool.description for tool in read_by_ann[0].tools)
    assert [(who, words) for _, who, words in model.world.greeted] == [("Ann Bell", "Hello, Ann!")] * 3


def test_aliases_are_resolved_in_replies_and_memory() -> None:
    def reply(request: Request) -> Any:
        return call("greet", who="Bo Carr") if request.tools else "Cy Dean."

    model = Town(llm=ScriptedLLM(reply), rng=1, design=AgentDesign(presentation=Presentation(names="exchanged")))
    model.step()
    assert set(model.survey(["Whom do you like?"])["answer"]) == {"Bo Carr."}
    assert "you greeted Ann Bell." in model.agents[0].memory.recall("", 2)


# -- runs


def test_rule_twins_do_the_same_whatever_the_presentation() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"option_order": "reversed", "tool_order": "reversed"},
        {"option_order": "drawn", "tool_order": "drawn", "list_order": "drawn"},
        {"persona_form": "table", "observation_form": "json"},
        {"names": "exchanged"},
        {"sample": 3},
    ]
    digests = set()
    for fields in changes:
        model = SocialModel(
            n_agents=6, rng=1, llm="rule", design=AgentDesign(presentation=Presentation.model_validate(fields))
        )
        model.run_for(3)
        digests.add(model.runlog.digest)
    assert len(digests) == 1


def test_another_sample_asks_the_same_with_other_seeds() -> None:
    (own, *_), (other, *_) = read(), read(sample=1)
    assert own.messages == other.messages
    assert own.salt != other.salt
    assert own.key != other.key


def test_a_presentation_is_written_as_json_and_read_again() -> None:
    design = AgentDesign(presentation=Presentation(persona_form="table", names="exchanged", sample=2))
    assert AgentDesign.from_json(design.to_json()) == design
    assert AgentDesign.from_json(AgentDesign().to_json()) == AgentDesign()
    with pytest.raises(ConfigError, match="invalid presentation in this design: persona_form"):
        AgentDesign.from_json({"presentation": {"persona_form": "poem"}})
    with pytest.raises(ValidationError, match="observation_style"):
        Presentation.model_validate({"observation_style": "list"})


def test_a_run_with_a_presentation_is_replayed_and_is_no_run_without_it(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    design = AgentDesign(presentation=Presentation(observation_form="table", wording="formal", option_order="reversed"))
    run = DilemmaModel(rng=1, llm="random", rounds=3, log=log, design=design)
    run.run(3)
    run.close()
    again = DilemmaModel(rng=1, llm="random", rounds=3, log=log, replay=True, design=design)
    again.run(3)
    assert again.runlog.digest == run.runlog.digest
    with pytest.raises(ConfigError, match="holds another run"):
        DilemmaModel(rng=1, llm="random", rounds=3, log=log)


def test_a_recorded_reply_is_found_under_its_presentation_alone(tmp_path: Path) -> None:
    log = tmp_path / "run.sqlite"
    table, prose = (AgentDesign(presentation=Presentation(persona_form=form)) for form in ("table", "sentence"))
    model = Town(llm=ScriptedLLM(lambda request: call("wave")), rng=1, log=log, design=table)
    model.step()
    model.close()
    Town(llm="ScriptedLLM", rng=1, log=log, replay=True, design=table).step()
    with pytest.raises(ReplayError, match="Persona: "):
        Town(llm="ScriptedLLM", rng=1, log=log, replay=True, design=prose).step()


@pytest.mark.parametrize(
    ("wording", "fault"),
    [
        ("formall", r"Town has no wording 'formall'; did you mean formal\?; there are formal, .*shorter"),
        ("Formal", "did you mean formal"),
        ("nowhere", "there are formal, "),
        ("/tmp/no/such/folder", "is no folder with reworded prompts"),
    ],
)
def test_a_wording_that_does_not_exist_is_refused(wording, fault) -> None:
    design = AgentDesign(presentation=Presentation(wording=wording))
    with pytest.raises(ConfigError, match=fault):
        Town(rng=1, design=design)
    with pytest.raises(ConfigError, match=fault):
        Town(rng=1).change_minds(design=design)
