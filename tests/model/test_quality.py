"""What did not come as asked, counted beside the results of a run."""

from mesa_llm import LLMAgent, LLMModel, Observation, ScriptedLLM, ToolCall, ToolError, Turn, action
from mesa_llm.llm.replies import call
from mesa_llm.model.quality import Rate, quality_texts, quality_warning, total_quality
from mesa_llm.questionnaire import Instrument, Questionnaire, Scale, Subscale, sheets_of

MOOD = Instrument(
    "Mood",
    "How are you?",
    {number: f"Statement {number}" for number in range(1, 9)},
    Scale(low=1, high=5, reversed_items=frozenset({2, 4})),
    (Subscale("mood", tuple(range(1, 9))),),
)


class Talker(LLMAgent):
    """Says something, or hits on a closed door."""

    @action
    def say(self, text: str) -> str:
        """Say something."""
        return "You said it."

    @action
    def leave(self) -> str:
        """Leave."""
        raise ToolError("the door is closed.")

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("leave")


class TalkModel(LLMModel):
    def __init__(self, **options) -> None:
        super().__init__(**options)
        Talker.create_agents(self, 2)


class SheetModel(LLMModel):
    def __init__(self, per_sheet: int = 8, **options) -> None:
        self.per_sheet, self.sheets = per_sheet, Questionnaire()
        super().__init__(worlds=[self.sheets], activation=fill_in, **options)
        LLMAgent.create_agents(self, 1)


def fill_in(model) -> list[list[Turn]]:
    (agent,) = model.agents
    sheets = sheets_of(MOOD.name, MOOD.items_in(), per_sheet=model.per_sheet)
    return [[Turn(agent, model.sheets.ask(agent.unique_id, sheet)) for sheet in sheets]]


def test_refusals_by_the_world_are_counted_by_action() -> None:
    model = TalkModel(rng=1)
    model.run_for(2)
    assert (model.data_quality()["refused"], model.refusals) == (Rate(4, 4), {"leave": 4})


def test_texts_in_which_the_language_model_declines_are_counted() -> None:
    replies = {1: "As an AI language model, I have no opinion.", 2: "I love the park."}
    model = TalkModel(llm=ScriptedLLM(lambda request: call("say", text=replies[request.salt.agent])), rng=1)
    model.step()
    assert (model.data_quality()["declined"], model.usage.failures) == (Rate(1, 2), 0)


def test_a_refusal_in_place_of_an_action_is_a_failure_that_is_told_apart() -> None:
    model = TalkModel(llm=ScriptedLLM(lambda request: "I'm sorry, but I can't assist with that."), rng=1)
    model.step()
    assert (model.data_quality()["declined"], model.usage.failures) == (Rate(2, 2), 2)


def test_one_number_for_items_and_their_opposites_is_straight_lining() -> None:
    for per_sheet in (8, 3, 1):
        model = SheetModel(per_sheet, llm=ScriptedLLM(_all_threes), rng=1)
        model.run_for(2)
        quality = model.data_quality()
        assert (quality["straight_lined"], quality["items_missing"]) == (Rate(2, 2), Rate(0, 16))


def _all_threes(request):
    names = request.schema["properties"]
    return dict.fromkeys(names, 3)


def _ones_and_twos(request):
    return {name: 1 + int(name) % 2 for name in request.schema["properties"]}


def test_answers_that_differ_are_no_straight_line() -> None:
    model = SheetModel(llm=ScriptedLLM(_ones_and_twos), rng=1)
    model.step()
    assert model.data_quality()["straight_lined"] == Rate(0, 1)


def test_what_is_frequent_is_said_in_a_sentence() -> None:
    quality = {"refused": Rate(12, 100), "declined": Rate(1, 100), "not_asked": Rate(50, 100), "typos": Rate(1, 3)}
    assert quality_texts(quality, {"vote": 8, "repost": 4})[0] == (
        "12 of 100 actions and answers were refused by the world (vote 8, repost 4)"
    )
    assert quality_warning(quality) == (
        "Read the results with care: 12 of 100 actions and answers were refused by the world (12%); "
        "1 of 3: typos (33%)."
    )
    assert quality_warning({"refused": Rate(1, 100), "not_asked": Rate(50, 100)}) == ""


def test_the_counts_of_runs_add_up() -> None:
    assert total_quality([{"refused": Rate(1, 10)}, {"refused": [2, 20], "failed": (0, 3)}]) == {
        "refused": Rate(3, 30),
        "failed": Rate(0, 3),
    }
