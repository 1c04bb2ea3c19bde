"""The embedded model is told what it can do, and can write nothing else."""

from __future__ import annotations

import pytest

from mesa_llm import AgentDesign
from mesa_llm.errors import ConfigError, Refused
from mesa_llm.llm.local.chat import grammar, read_calls, reply_form, wire_messages
from mesa_llm.llm.local.profile import CAPABLE, SMALLEST, Profile
from mesa_llm.records import ChatMessage, Request, ToolCall, ToolSpec
from tests.llm.human.questions import ACTIONS, TOOLS, VOTE, ask
from tests.llm.schema.gbnf import Grammar
from tests.pot import PotModel

LOOKED_UP = (
    ChatMessage("user", "It rains."),
    ChatMessage("assistant", "", (ToolCall("look_up", {"word": "rain"}, "c1"),)),
    ChatMessage("tool", "rain: 3", call_id="c1"),
)


def may_write(request: Request, text: str, profile: Profile = SMALLEST) -> bool:
    gbnf = grammar(request, profile)
    assert gbnf is not None
    return Grammar(gbnf).accepts(text)


def test_system_messages_become_one_with_the_tools_after_the_first() -> None:
    prompt = (ChatMessage("system", "Rules."), ChatMessage("user", "Hello."), ChatMessage("system", "You are Ann."))
    system, user = wire_messages(ask(*prompt, tools=(TOOLS["walk"],)), SMALLEST)
    assert system["content"].index("Rules.") < system["content"].index("walk(metres?") < system["content"].index("Ann")
    assert user == {"role": "user", "content": "Hello."}


def test_the_prompts_of_two_agents_begin_alike_up_to_who_they_are() -> None:
    def prompt(name: str, number: int) -> str:
        who = (ChatMessage("system", "Rules."), ChatMessage("system", name), ChatMessage("user", "Hello."))
        return wire_messages(ask(*who, tools=ACTIONS, options={"neighbour": (number,)}), SMALLEST)[0]["content"]

    assert prompt("Ann", 1).removesuffix("Ann") == prompt("Bob", 2).removesuffix("Bob")


def test_a_description_is_cut_to_its_first_sentence() -> None:
    assert "Look a word up\n" in wire_messages(ask(tools=tuple(TOOLS.values())), SMALLEST)[0]["content"]


def test_calls_and_their_answers_are_told_in_the_form_that_is_asked_for() -> None:
    call, answer = wire_messages(ask(*LOOKED_UP), SMALLEST)[1:]
    assert call["content"] == '{"action":"look_up","arguments":{"word":"rain"}}'
    assert answer == {"role": "user", "content": "look_up answers: rain: 3"}


def test_no_text_can_end_a_message_early_or_break_the_wire() -> None:
    (user,) = wire_messages(ask(ChatMessage("user", "<|im_end|> \ud800")), SMALLEST)
    assert user["content"] == "< |im_end|> ?"


def test_actions_and_tools_can_be_called_with_the_options_only() -> None:
    request = ask(tools=tuple(TOOLS.values()), options={"neighbour": (4,)})
    assert may_write(request, '{"action":"look_up","arguments":{"word":"rain"}}')
    assert may_write(request, '{"action":"talk_to","arguments":{"neighbour":4,"text":"Hi"}}')
    assert not may_write(request, '{"action":"talk_to","arguments":{"neighbour":5,"text":"Hi"}}')


def test_once_tools_have_answered_only_what_decides_is_left() -> None:
    request = ask(*LOOKED_UP, tools=tuple(TOOLS.values()))
    assert may_write(request, '{"action":"rest","arguments":{}}')
    assert not may_write(request, '{"action":"look_up","arguments":{"word":"rain"}}')


def test_where_an_answer_is_wanted_actions_are_no_choice() -> None:
    request = ask(tools=tuple(TOOLS.values()), schema=VOTE)
    assert may_write(request, '{"vote":"Oil","score":3}')
    assert may_write(request, '{"action":"look_up","arguments":{"word":"rain"}}')
    assert not may_write(request, '{"action":"rest","arguments":{}}')


def test_an_answer_is_held_to_the_options() -> None:
    assert not may_write(ask(schema=VOTE, options={"score": (3,)}), '{"vote":"Oil","score":2}')


def test_what_is_free_has_no_grammar_and_what_is_impossible_is_refused() -> None:
    assert grammar(ask(), SMALLEST) is None
    with pytest.raises(Refused, match="nothing can be answered"):
        grammar(ask(tools=(TOOLS["talk_to"],), options={"neighbour": ()}), SMALLEST)


@pytest.mark.parametrize(
    "text",
    [
        '{"action":"walk","argum',
        '{"action":"fly","arguments":{}}',
        '{"vote":"Oil","score":3}',
        "[1]",
        '{"action":["walk"]}',
    ],
)
def test_what_names_no_tool_is_no_call(text: str) -> None:
    assert read_calls(text, ask(tools=ACTIONS)) == ()


def test_a_call_is_read() -> None:
    calls = read_calls('{"action":"walk","arguments":{"metres":2}}', ask(tools=ACTIONS))
    assert calls == (ToolCall("walk", {"metres": 2}),)


# -- several actions in one reply


WALK, REST = '{"action":"walk","arguments":{"metres":2}}', '{"action":"rest","arguments":{}}'


@pytest.mark.parametrize(
    ("text", "possible"),
    [
        (f'{{"actions":[{WALK}]}}', True),
        (f'{{"actions":[{WALK},{REST},{WALK}]}}', True),
        (f'{{"actions":[{WALK},{REST},{WALK},{REST}]}}', False),
        ('{"actions":[]}', False),
        (WALK, False),
        ('{"actions":[{"action":"look_up","arguments":{"word":"rain"}}]}', True),
        (f'{{"actions":[{WALK},{{"action":"look_up","arguments":{{"word":"rain"}}}}]}}', False),
    ],
)
def test_where_several_actions_are_possible_a_list_of_them_is_written(text: str, possible: bool) -> None:
    request = ask(tools=tuple(TOOLS.values()), max_actions=3)
    assert may_write(request, text) is possible
    assert "up to 3" in reply_form(request, SMALLEST)
    assert "up to 3" in reply_form(request, CAPABLE)


def test_a_list_of_actions_is_read_whole_or_not_at_all() -> None:
    request = ask(tools=ACTIONS, max_actions=3)
    assert [call.name for call in read_calls(f'{{"actions":[{WALK},{REST}]}}', request)] == ["walk", "rest"]
    assert read_calls(f'{{"actions":[{WALK},{{"action":"fly","arguments":{{}}}}]}}', request) == ()
    assert read_calls(f'{{"actions":[{WALK}]}}', ask(tools=ACTIONS)) == ()


def test_earlier_actions_are_shown_as_the_list_that_is_asked_for() -> None:
    call = ChatMessage("assistant", "", (ToolCall("rest", {}), ToolCall("rest", {})))
    (_, written) = wire_messages(ask(ChatMessage("user", "Rain."), call, tools=ACTIONS, max_actions=3), SMALLEST)[-2:]
    assert written["content"] == f'{{"actions":[{REST},{REST}]}}'


@pytest.mark.parametrize(
    ("text", "possible"),
    [('{"reasoning":"Oil?","vote":"Oil","score":2}', True), ('{"vote":"Oil","score":2,"reasoning":"Oil?"}', False)],
)
def test_reasoning_that_stands_first_in_a_schema_is_written_first(text: str, possible: bool) -> None:
    fields = {"reasoning": {"type": "string", "maxLength": 200}, **VOTE["properties"]}
    schema = {**VOTE, "properties": fields, "required": list(fields)}
    vote = ToolSpec("vote", "Vote.", schema, is_action=True)
    assert may_write(ask(schema=schema), text) is possible
    assert may_write(ask(tools=(vote,)), f'{{"action":"vote","arguments":{text}}}') is possible


# -- capable models


def test_a_capable_model_writes_json_with_blanks_and_goes_on_calling_tools() -> None:
    request = ask(*LOOKED_UP, tools=tuple(TOOLS.values()))
    assert may_write(request, '{"action": "look_up", "arguments": {"word": "rain"}}', CAPABLE)
    assert may_write(request, '{"action": "rest", "arguments": {}}', CAPABLE)
    assert not may_write(request, '{"action":"rest","arguments":{}}', CAPABLE)
    assert '{"action": "look_up", "arguments": {"word": "rain"}}' in wire_messages(request, CAPABLE)[-2]["content"]


def test_a_long_sheet_is_described_in_one_line_and_one_example() -> None:
    numbers = {str(number): {"type": "integer", "enum": [1, 2, 3, 4, 5]} for number in range(1, 41)}
    form = reply_form(ask(schema={"type": "object", "properties": numbers, "required": list(numbers)}), CAPABLE)
    assert '{each of "1" to "40": 1, 2, 3, 4 or 5}' in form
    assert len(form) < 250


def test_a_capable_model_reads_whole_descriptions_of_what_it_may_do_now() -> None:
    words = "Look a word up. It takes a while. " + "It is a long book. " * 20
    look_up = ToolSpec("look_up", words, TOOLS["look_up"].parameters)
    request = ask(tools=(look_up, *ACTIONS), options={"neighbour": ()})
    assert words in reply_form(request, CAPABLE)
    assert "talk_to" not in reply_form(request, CAPABLE)


def test_the_form_follows_all_instructions() -> None:
    prompt = (ChatMessage("system", "Rules."), ChatMessage("system", "More."), ChatMessage("user", "Hello."))
    request = ask(*prompt, tools=ACTIONS)
    system, user = (message["content"] for message in wire_messages(request, CAPABLE))
    assert system == f"Rules.\n\nMore.\n\n{reply_form(request, CAPABLE)}"
    assert user == "Hello."


def test_neighbours_of_one_role_are_joined_as_chat_templates_need_it() -> None:
    prompt = (ChatMessage("user", "One."), ChatMessage("user", "Two."), ChatMessage("assistant", "Three."))
    assert [message["content"] for message in wire_messages(ask(*prompt), CAPABLE)] == ["One.\n\nTwo.", "Three."]


def test_an_adapter_is_refused_and_not_ignored() -> None:
    model = PotModel(n_agents=1, llm="local", design=AgentDesign(adapter="pirate"), rng=1)
    with pytest.raises(ConfigError, match="local takes no adapter, but an agent's config names 'pirate'"):
        model.step()
