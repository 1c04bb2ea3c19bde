"""A design chooses components, and leaves alone what it does not name."""

import json
from typing import ClassVar, Literal

import pytest

from mesa_llm import AgentConfig, AgentDesign, ConfigError, Decision, Observation, ScriptedLLM, Settings, ToolCall
from mesa_llm.llm.replies import call
from mesa_llm.memory import open_memory
from mesa_llm.testing import honest, honest_reply
from tests.pot import Payer, PotModel, QuizModel

OWN = AgentConfig(
    name="Ann",
    persona="You like round numbers.",
    traits={"age": 40},
    style="short",
    settings=Settings(temperature=0.1, max_tokens=333),
    reasoning="inline",
)


def dressed(design: AgentDesign, config: AgentConfig = OWN) -> Payer:
    """Make one agent of a model with a design."""
    model = PotModel(0, honest(), rng=1, design=design)
    return Payer(model, config=config, memory="window:3")


def test_a_design_that_sets_nothing_changes_nothing() -> None:
    agent = dressed(AgentDesign())
    assert (agent.config, agent.memory.kind, agent.tools) == (OWN, "window", ())
    assert AgentDesign().to_json() == {}


@pytest.mark.parametrize(
    ("design", "changed"),
    [
        (AgentDesign(style="long"), {"style": "long"}),
        (AgentDesign(persona="You like sevens."), {"persona": "You like sevens.", "traits": {}}),
        (AgentDesign(persona="none"), {"persona": "", "traits": {}}),
        (AgentDesign(settings={"top_p": 0.5}), {"settings": Settings(temperature=0.1, max_tokens=333, top_p=0.5)}),
        (AgentDesign(settings=Settings(temperature=0)), {"settings": Settings(temperature=0, max_tokens=333)}),
        (AgentDesign(world_tools=False), {"world_tools": False}),
        (AgentDesign(allowed=("pay",)), {"tools": ("pay",)}),
        (AgentDesign(reasoning="none"), {"reasoning": "none"}),
        (AgentDesign(adapter="thrifty"), {"adapter": "thrifty"}),
        (AgentDesign(memory="none"), {}),
    ],
    ids=lambda value: str(value.to_json()) if isinstance(value, AgentDesign) else "",
)
def test_a_field_that_is_set_replaces_that_and_nothing_else(design, changed) -> None:
    assert dressed(design).config == OWN.model_copy(update=changed)


def test_without_a_persona_the_name_and_the_style_stay() -> None:
    assert dressed(AgentDesign(persona="none")).config.text == "Your name is Ann.\nHow you write: short"


def weigh() -> int:
    """Weigh the pot."""
    return 3


def test_world_tools_can_be_disabled_while_actions_and_own_tools_stay() -> None:
    box = dressed(AgentDesign(world_tools=False, tools=(weigh,))).toolbox(Observation())
    assert set(box) == {"do_nothing", "pay", "weigh"}


@pytest.mark.parametrize("design", [AgentDesign(tools=()), AgentDesign(world_tools=False)])
def test_a_design_without_tools_of_its_own_leaves_agents_able_to_act(design) -> None:
    model = PotModel(3, honest(), rng=1, design=design)
    model.run_for(2)
    assert (model.usage.calls, len(model.runlog.actions())) == (6, 6)


@pytest.mark.parametrize("llm", ["scripted", "random", "rule"])
@pytest.mark.parametrize("allowed", [(), ("count",), ("pya",)])
def test_an_agent_that_a_design_leaves_nothing_to_do_is_an_error(allowed, llm) -> None:
    llm = honest() if llm == "scripted" else llm
    model = PotModel(2, llm, rng=1, design=AgentDesign(allowed=allowed))
    with pytest.raises(ConfigError, match=r"none of its actions \(do_nothing, pay\)"):
        model.step()
    assert model.usage.calls == 0


def test_the_design_thinks_for_all_but_those_that_are_named() -> None:
    design = AgentDesign(llm="random")
    model = PotModel(3, {2: "rule", "*": honest()}, rng=1, design=design)
    model.step()
    assert [model.last_decisions[agent].by for agent in (1, 2, 3)] == ["random", "rule", "random"]


async def generous(agent, seen):
    """Pay all it can."""
    return ToolCall("pay", {"coins": 10})


async def rich(agent, seen):
    """Pay more than it can."""
    return ToolCall("pay", {"coins": 99})


async def twice(agent, seen):
    """Think before, and again."""
    await agent.decide(seen)
    return await agent.decide(seen)


def test_a_design_decides_in_place_of_the_agent() -> None:
    model = PotModel(2, honest(), rng=1, design=AgentDesign(decide=generous))
    model.step()
    assert (model.coins, model.usage.calls) == (20, 0)


def test_what_a_design_decides_is_checked() -> None:
    model = PotModel(2, honest(), rng=1, design=AgentDesign(decide=rich))
    model.step()
    assert (model.coins, model.usage.failures) == (0, 2)
    assert {failure.kind for failure in model.last_decisions.values()} == {"Invalid"}


def test_a_design_may_let_the_agent_decide_and_its_requests_are_numbered() -> None:
    requests = []
    model = PotModel(1, ScriptedLLM(lambda request: requests.append(request.salt.call) or honest_reply(request)), rng=1)
    model.design = AgentDesign(decide=twice)
    model.step()
    assert requests == [0, 8]


def test_a_judge_is_not_dressed_by_a_design() -> None:
    requests = []
    design = AgentDesign(persona="You like sevens.", settings={"temperature": 2.0}, reasoning="first", style="long")
    model = PotModel(1, "rule", rng=1, design=design)
    model.consult(ScriptedLLM(lambda request: requests.append(request) or "fine"), ["Well?"])
    (request,) = requests
    assert ([message.content for message in request.messages], request.settings["temperature"]) == (["Well?"], 0.0)


EVERYTHING = AgentDesign(
    llm="random",
    persona="none",
    style="short",
    settings={"temperature": 0.2},
    reasoning="first",
    memory="window:5",
    tools=(weigh,),
    world_tools=False,
    allowed=("pay", "weigh"),
    adapter="thrifty",
    decide=twice,
)


def test_a_design_is_written_as_json_and_read_again() -> None:
    document = json.loads(json.dumps(EVERYTHING.to_json()))
    assert AgentDesign.from_json(document) == EVERYTHING
    assert set(AgentDesign.imports(document)) == {"tests.agents.test_design:weigh", "tests.agents.test_design:twice"}


@pytest.mark.parametrize(
    "written", [{"tools": ["mesa_llm.llm.protocol:os.path.isfile"]}, {"decide": "subprocess:os.abort"}]
)
def test_a_design_reaches_no_function_through_a_module_that_imports_it(written) -> None:
    with pytest.raises(ConfigError, match=r"cannot be found|not a function of that module"):
        AgentDesign.from_json(written)


def memory():
    """Make a small memory."""
    return open_memory("window:2")


def test_what_makes_a_memory_goes_by_its_name() -> None:
    document = AgentDesign(memory=memory).to_json()
    assert document == {"memory": "tests.agents.test_design:memory"}
    assert AgentDesign.from_json(document).memory is memory


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"colour": "red"}, "no field 'colour'"),
        ({"tools": ["tests.agents.test_design:nothing"]}, "cannot be found"),
        ({"decide": "tests.agents.test_design:OWN"}, "not a function"),
        ({"settings": {"temperature": 9}}, "temperature"),
        ({"settings": {"warmth": 1}}, "warmth"),
        ({"reasoning": "much"}, "reasoning must be one of"),
        ({"memory": "elephant"}, "elephant"),
        ({"tools": "weigh"}, "tools"),
        ({"allowed": "pay"}, "allowed"),
        ({"persona": 3}, "persona"),
        ({"world_tools": "no"}, "world_tools"),
    ],
)
def test_a_design_that_cannot_be_is_refused_in_words(written, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        AgentDesign.from_json(written)


def test_a_design_that_is_none_is_refused_when_a_model_gets_it() -> None:
    with pytest.raises(ConfigError, match="from_json"):
        PotModel(1, rng=1, design={"style": "short"})  # pyright: ignore[reportArgumentType]


def test_a_design_is_part_of_what_a_run_is(tmp_path) -> None:
    PotModel(1, rng=1, log=tmp_path / "run.sqlite", design=AgentDesign(style="short")).close()
    for other in (None, AgentDesign(style="long")):
        with pytest.raises(ConfigError, match="holds another run"):
            PotModel(1, rng=1, log=tmp_path / "run.sqlite", design=other)
    PotModel(1, rng=1, log=tmp_path / "run.sqlite", design=AgentDesign(style="short")).close()


def test_any_design_runs_where_answers_are_asked_for() -> None:
    class Opinions(QuizModel):
        kinds: ClassVar = {"mood": Literal["good", "bad"], "size": int}

    script = ScriptedLLM(lambda request: call("count") if request.tools else honest_reply(request))
    model = Opinions(2, script, 1, design=AgentDesign(llm=honest(), memory="chat", reasoning="inline", persona="none"))
    model.run_for(2)
    assert (len(model.answers), model.usage.failures) == (8, 0)
    assert all(isinstance(decision, Decision) for decision in model.last_decisions.values())


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"decide": "think"}, "no strategy 'think'; choose one of: plan, react, vote"),
        ({"decide": "vote:0"}, r"samples in 'vote:0' must be a whole number in 1\.\.40"),
        ({"decide": "react:2"}, "has no setting"),
        ({"decide": len}, "an `async def"),
        ({"memory": open_memory("window")}, "each agent needs its own"),
    ],
    ids=["no strategy", "no sample", "no setting", "no coroutine", "shared memory"],
)
def test_a_design_that_could_only_fail_in_a_step_is_refused(fields, fault) -> None:
    with pytest.raises(ConfigError, match=fault):
        AgentDesign(**fields)


class Thinker:
    """Decides as an object."""

    async def __call__(self, agent, seen):
        return await agent.decide(seen)


def test_what_no_module_holds_by_its_name_is_not_taken_for_something_else() -> None:
    document = AgentDesign(decide=Thinker()).to_json()
    with pytest.raises(ConfigError, match="cannot be found"):
        AgentDesign.from_json(document)


def test_a_field_that_is_null_is_not_set() -> None:
    assert AgentDesign.from_json({"decide": None, "memory": None, "tools": None, "style": "long"}) == AgentDesign(
        style="long"
    )


def test_design_changed_during_a_run_changes_the_persona_in_prompts() -> None:
    model = PotModel(1, ScriptedLLM(lambda request: call("pay", coins=2)), rng=1)
    model.run_for(1)
    model.change_minds(design=AgentDesign(persona="You are bold.", style="Short."))
    model.run_for(1)
    before, after = model.runlog.calls()["prompt"]
    assert "You are bold." not in before
    assert "You are bold.\\nHow you write: Short." in after
