"""What agents say is their own, new, and as long as was asked for; what is not is asked for once more."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import AgentConfig, HumanLLM, LLMAgent, LLMModel, ScriptedLLM
from mesa_llm.agents.talk import Speech, repeats, sentences_of, silence_in, words_of
from mesa_llm.errors import ParseError
from mesa_llm.records import Decision, Request

RUTH = "The buses are late because the streets are full of cars."
SPEECH = Speech("Ines", ("Ruth", "Dan O'Hara"), own=("I want the toll for the buses.",), heard=(("Ruth", RUTH),))
PROMPT = "A town council discusses a toll of four dollars for cars. Use your own words: two short sentences."


def spoken(reply: str, speech: Speech = SPEECH) -> str:
    return str(speech.read(Decision(1, answer=reply, reading="text"), PROMPT).answer)


def refused(reply: str, speech: Speech = SPEECH) -> tuple[str, Decision]:
    with pytest.raises(ParseError) as error:
        spoken(reply, speech)
    assert isinstance(error.value.partial, Decision)
    return str(error.value), error.value.partial


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        ("Ines: It costs too much.", "It costs too much."),
        ("You: “It costs too much.”", "It costs too much."),
        ("As Ines, I think it costs too much.", "I think it costs too much."),
        ("I think so.\nRuth: I do not.\nInes: Well.", "I think so."),
        ("I think so. **Dan O'Hara:** I do not.", "I think so."),
        ("I tell Ruth: it costs too much.", "I tell Ruth: it costs too much."),
        ("It costs a lot. So it is. It costs a lot now.", "It costs a lot. So it is."),
        ("Yes, we must act, yes, we must act, yes, we must act, yes, we must act.", "Yes, we must act"),
        ("I am Ines, and I ride a bus.", "I am Ines, and I ride a bus."),
        ("I want the toll at 3 dollars for the buses.", "I want the toll at 3 dollars for the buses."),
        ("我想要收费，因为公交车太慢了。", "我想要收费，因为公交车太慢了。"),
    ],
)
def test_a_line_is_said_without_names_others_and_circles(reply, line) -> None:
    assert spoken(reply) == line


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (RUTH, "Ruth has said this already: “The buses are late"),
        ("I agree with you, the buses are late because the streets are full of cars!", "Ruth has said this already"),
        ("i want the toll, for the buses", "you have said this already"),
        ("A town council discusses a toll of four dollars for cars.", "it repeats what you were told"),
        ("Ruth: I want that too.", "it is in the name of Ruth. You are Ines"),
        ("I'm Ruth, and I want that too.", "it is in the name of Ruth"),
        ("I agree with Ines about the price.", "you are Ines, so you cannot speak to Ines"),
        ("Thank you, Ines.", "you are Ines"),
        ("As an AI language model, I have no opinion.", "no program is in this conversation"),
        ("…", "nothing is said in it"),
    ],
)
def test_a_line_that_is_not_the_speakers_own_is_refused_with_the_reason(reply, reason) -> None:
    error, partial = refused(reply)
    assert error.startswith(reason)
    assert silence_in(partial) != ""


def test_a_longer_line_is_asked_for_again_and_then_cut_at_the_end_of_a_sentence() -> None:
    error, partial = refused("It costs 3.5 dollars, Mr. Dan. Shops will close. Nobody wants that. I do not.")
    assert error == "it is too long. Say it in two short sentences."
    assert partial.answer == "It costs 3.5 dollars, Mr. Dan. Shops will close."


def test_what_is_left_of_a_long_line_is_judged_again() -> None:
    _, partial = refused(f"{RUTH} I agree with that. The buses are late because the streets are full of cars, I say.")
    assert silence_in(partial) == "repeats Ruth"


def test_a_line_in_an_argument_of_an_action_is_read_alike() -> None:
    from mesa_llm import ToolCall

    speech = Speech("Ines", ("Ruth",), argument="text")
    said = speech.read(Decision(1, (ToolCall("say", {"text": "Ines: Well."}),)), "")
    assert said.actions[0].arguments == {"text": "Well."}
    waiting = Decision(1, (ToolCall("wait", {"reason": "Ines: Well."}),))
    assert speech.read(waiting, "") is waiting


def test_a_name_that_is_a_common_word_or_holds_signs_is_no_trap() -> None:
    will = Speech("Will", ("A.*b(c",))
    assert spoken("Will you come with us?", will) == "Will you come with us?"
    assert spoken("I will.\nA.*b(c: No.", will) == "I will."


@pytest.mark.parametrize(
    ("text", "earlier", "is_repeated"),
    [
        ("I propose ten tons for each of us.", "I propose eight tons for each of us.", False),
        ("I propose 10 tons for each of us.", "I propose 8 tons for each of us.", False),
        ("I suspect Ada.", "I suspect Bo.", False),
        ("So I propose 8 tons for each of us, too.", "I propose 8 tons for each of us.", True),
        ("Well.", "well", True),
        ("我想要收费因为公交车太慢", "我也想要收费因为公交车太慢了", True),
    ],
)
def test_a_line_repeats_another_if_most_of_its_runs_of_words_do(text, earlier, is_repeated) -> None:
    assert repeats(text, earlier) is is_repeated


def test_sentences_end_where_a_reader_would_end_them() -> None:
    text = "Dr. Kim paid 3.5 dollars, e.g. in May. “Why?” he asked… Nobody knows! 好。是的。"
    assert sentences_of(text) == [
        "Dr. Kim paid 3.5 dollars, e.g. in May.",
        "“Why?”",
        "he asked…",
        "Nobody knows!",
        "好。",
        "是的。",
    ]
    assert words_of("It's 5 o’clock") == ("it's", "5", "o'clock")


# -- conversations


class Pair(LLMModel):
    """Two people talk once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(activation=lambda model: [], **options)
        for name in ("Ines", "Ruth"):
            config = AgentConfig(name=name, persona=f"You keep shop {len(self.agents) + 1}.")
            LLMAgent(self, config=config, memory="window:9")

    def start_step(self) -> None:
        self.talk = self.converse(list(self.agents), turns=4, topic="The toll.")


def test_the_question_comes_last_and_own_lines_are_marked() -> None:
    prompts: list[str] = []

    def script(request: Request) -> str:
        prompts.append(request.messages[-1].content)
        return f"That is reason number {len(prompts)}."

    Pair(llm=ScriptedLLM(script), rng=1).step()
    text = prompts[2]
    assert "You: “That is reason number 1.”\nRuth: “That is reason number 2.”" in text
    assert text.index("The toll.") < text.index("You: “") < text.index("You keep shop 1.") < text.index("Answer Ruth")
    assert text.endswith("Write only what you say now.")


def test_an_echo_is_asked_again_once_and_then_silence_is_recorded_and_replayed(tmp_path) -> None:
    runs = []
    for replay in (False, True):
        model = Pair(
            llm=ScriptedLLM(lambda request: "I want the toll for the buses."),
            rng=1,
            log=tmp_path / "run.sqlite",
            replay=replay,
        )
        model.step()
        readings = set(model.runlog.decisions()["reading"][1:])
        runs.append((model.runlog.digest, model.usage.calls))
        model.close()
    assert runs == [(runs[0][0], 7), (runs[0][0], 0)]
    assert [one.text for one in model.talk.utterances] == ["I want the toll for the buses."]
    assert [(one.name, one.reason) for one in model.talk.silences] == [
        ("Ruth", "repeats Ines"),
        ("Ines", "repeats itself"),
        ("Ruth", "repeats Ines"),
    ]
    assert readings == {
        "asked again; silent: it repeats Ines",
        "asked again; silent: it repeats itself",
    }


def test_people_and_the_random_baseline_say_what_they_say() -> None:
    class Parrot(HumanLLM):
        async def reply(self, request: Request) -> Any:
            from mesa_llm.records import Reply

            return Reply("I say the same. And again. And again.")

    for llm in (Parrot(), "random"):
        model = Pair(llm=llm, rng=1)
        model.step()
        assert (len(model.talk.utterances), model.talk.silences) == (4, [])
