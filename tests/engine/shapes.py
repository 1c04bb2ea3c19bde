"""Shapes of replies met in the field, with what is right for each kind of question.

Each shape is the message of a chat completion, in which marks stand for what is said:

| mark | action | choice | sheet | text |
|---|---|---|---|---|
| `«P»` | a call as JSON | `{"answer": "yes"}` | the sheet as JSON | a sentence |
| `«D»` | a call that is only weighed | `{"answer": "no"}` | a sheet of ones | another sentence |
| `«X»` | a third one, only ever within a thought | `{"answer": "undecided"}` | a sheet of fives | a third sentence |
| `«A»` | the arguments of the call, as JSON | | | |

The right value is `SAID` (what the payload means), `FAILED`, or another value. Print the table with
`python -m tests.engine.shapes`; with a number, as many replies are made of the shapes, combined and cut anywhere, and
what is read in them is checked against the text.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from mesa_llm import Observation, ToolCall, action, tool
from mesa_llm.engine.reading.parsing import read
from mesa_llm.errors import BadReply, ParseError
from mesa_llm.llm.openai.reply import read_reply
from mesa_llm.questionnaire import Item, Sheet
from mesa_llm.records import Decision, Request, Salt
from mesa_llm.tools.toolbox import ToolBox

SAID, FAILED = "said", "failed"
KINDS = ("action", "choice", "sheet", "text")
REQUEST = Request("m@u", (), Salt(0, 1, 1, "decide", 0))


class Board:
    """A world with a vote that takes two arguments, and rest that takes none."""

    name = "board"

    @action
    def vote_post(self, agent_id: int, post_id: int, value: Literal[1, -1]) -> str:
        """Vote for a post or against it."""
        return "done"

    @action
    def do_nothing(self, agent_id: int) -> str:
        """Do nothing."""
        return "done"

    @tool
    def look_up(self, agent_id: int, user: str) -> str:
        """Look up a user."""
        return user


BOX = ToolBox.of(object(), 1, [Board()])
SHEET = Sheet("form", tuple(Item(f"item {n}", "I am outgoing.", (1, 2, 3, 4, 5)) for n in range(1, 7)))
ARGUMENTS = {"post_id": 12, "value": 1}
SENTENCE = "The buses are late again, so I walk."
ANSWERS = {"1": 4, "2": 2, "3": 5, "4": 1, "5": 3, "6": 4}
MEANT: dict[str, Any] = {
    "action": (ToolCall("vote_post", ARGUMENTS),),
    "choice": "yes",
    "sheet": ANSWERS,
    "text": SENTENCE,
}
PAYLOADS: dict[str, dict[str, str]] = {
    "action": {
        "«P»": json.dumps({"action": "vote_post", "arguments": ARGUMENTS}),
        "«D»": json.dumps({"action": "do_nothing", "arguments": {}}),
        "«X»": json.dumps({"action": "vote_post", "arguments": {"post_id": 11, "value": -1}}),
    },
    "choice": {"«P»": '{"answer": "yes"}', "«D»": '{"answer": "no"}', "«X»": '{"answer": "undecided"}'},
    "sheet": {
        "«P»": json.dumps(ANSWERS),
        "«D»": json.dumps(dict.fromkeys(ANSWERS, 1)),
        "«X»": json.dumps(dict.fromkeys(ANSWERS, 5)),
    },
    "text": {"«P»": SENTENCE, "«D»": "I should sound annoyed.", "«X»": "Nobody hears this."},
}
SEEN = {
    "action": Observation(options={"post_id": (11, 12, 13)}),
    "choice": Observation(answer=Literal["yes", "no", "undecided"], tools=()),
    "sheet": Observation(answer=SHEET.answer, tools=()),
    "text": Observation(answer=str, tools=()),
}


@dataclass(frozen=True)
class Shape:
    """One shape of a reply."""

    name: str
    message: Any
    """The message, or its content alone."""
    finish: str | None = "stop"
    right: dict[str, Any] = field(default_factory=dict)
    """Kind of question → the right value; `SAID` for kinds that are missing."""

    def body(self, kind: str) -> dict[str, Any]:
        """Return the chat completion that replies to a question of this kind."""
        message = self.message if isinstance(self.message, dict) else {"content": self.message}
        return {"choices": [{"message": _filled(message, kind), "finish_reason": self.finish}], "usage": {}}

    def expected(self, kind: str) -> Any:
        """Return what is right."""
        right = self.right.get(kind, self.right.get("*", SAID))
        return MEANT[kind] if right == SAID else right


def _filled(value: Any, kind: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, kind) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, kind) for inner in value]
    if isinstance(value, str):
        for mark, text in {**PAYLOADS[kind], "«A»": json.dumps(ARGUMENTS)}.items():
            value = value.replace(mark, text)
    return value


def outcome(body: dict[str, Any], kind: str) -> tuple[Any, str]:
    """Return what is read in a chat completion, or FAILED; and how it was read, or why not."""
    seen = SEEN[kind]
    box = BOX if kind == "action" else BOX.only(())
    try:
        decided = read(read_reply(body, REQUEST), seen, box)
    except (ParseError, BadReply) as error:
        return FAILED, str(error)
    if not isinstance(decided, Decision):
        return decided, "tool calls"
    return (decided.actions if kind == "action" else decided.answer), decided.reading


ALL_FAILED = {"*": FAILED}
AS_TEXT = {"choice": FAILED, "sheet": FAILED}
"""A call is no answer; what a free text is, the shape itself says."""


MARKUP = ("<tool_call", "<function", "<|python_tag|>", "[TOOL_CALLS]", "<｜tool", "<|tool_calls", "<|channel|>")
"""Beginnings of a call that nobody would write in a text."""


def call(name: str, content: str, finish: str | None = "stop", *, action: Any = SAID) -> Shape:
    """Make the shape of a call in some notation: an action, no answer, and a text only where it could be one."""
    filled = _filled(content, "text")
    is_markup = isinstance(filled, str) and filled.startswith(MARKUP)
    text = FAILED if is_markup or finish == "length" else filled
    return Shape(name, content, finish, {"action": action, **AS_TEXT, "text": text})


def native(name: str, arguments: Any, *, right: Any = SAID, **fields: Any) -> Shape:
    """Make the shape of a call that the endpoint recognised."""
    entry = {"type": "function", "id": "call_0", "function": {"name": "vote_post", "arguments": arguments}}
    return Shape(name, {"content": None, "tool_calls": [{**entry, **fields}]}, "tool_calls", NATIVE | {"action": right})


NATIVE = {"choice": FAILED, "sheet": FAILED, "text": FAILED}

THOUGHT = "Perhaps «X», but that would be foolish."
UNMARKED = "Perhaps «D», but that would be foolish."
"""A thought whose opening mark is lost: until its closing one comes, nobody can tell that it is one."""

SHAPES = [
    # -- thought and speech
    Shape("payload alone", "«P»"),
    Shape("payload, finish null", "«P»", None),
    Shape("blank lines around it", "\n\n  «P»\n\n"),
    Shape("think tags", f"<think>\n{THOUGHT}\n</think>\n\n«P»"),
    Shape("think tags, no opening", f"{UNMARKED}\n</think>\n\n«P»"),
    Shape("think tags, upper case", f"<THINK>{THOUGHT}</THINK>«P»"),
    Shape("think tags, empty", "<think>\n\n</think>\n\n«P»"),
    Shape("think tags, twice", f"<think>{THOUGHT}</think><think>{THOUGHT}</think>«P»"),
    Shape("think tags, nested", f"<think>{THOUGHT}<think>«X»</think>«X»</think>«P»"),
    Shape("thinking tags", f"<thinking>{THOUGHT}</thinking>«P»"),
    Shape("thought tags", f"<thought>{THOUGHT}</thought>«P»"),
    Shape("reasoning tags", f"<reasoning>{THOUGHT}</reasoning>«P»"),
    Shape("scratchpad tags", f"<scratchpad>{THOUGHT}</scratchpad>«P»"),
    Shape("tags with attributes", f'<think duration="3">{THOUGHT}</think>«P»'),
    Shape("tags in pipes", f"<|thinking|>{THOUGHT}<|/thinking|>«P»"),
    Shape("tags with a prefix", f"<seed:think>{THOUGHT}</seed:think>«P»"),
    Shape("bracketed THINK", f"[THINK]{THOUGHT}[/THINK]«P»"),
    Shape("triangles", f"◁think▷{THOUGHT}◁/think▷«P»"),
    Shape(
        "begin_of_thought",
        f"<|begin_of_thought|>{THOUGHT}<|end_of_thought|><|begin_of_solution|>«P»<|end_of_solution|>",
    ),
    Shape("START_THINKING", f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>«P»<|END_RESPONSE|>"),
    Shape("channel of thought", f"<|channel>thought\n{THOUGHT}<channel|>«P»"),
    Shape("unused tokens", f"<unused94>thought\n{THOUGHT}<unused95>«P»"),
    Shape("details", f'<details type="reasoning" done="true">{THOUGHT}</details>«P»'),
    Shape("thought process in words", f"Here is my thought process:\n{THOUGHT}\n\nHere is my response:\n«P»"),
    Shape(
        "channels of gpt-oss",
        f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>«P»<|return|>",
    ),
    Shape("channels, tokens lost", f"analysis{THOUGHT}assistantfinal«P»"),
    Shape("channels, some tokens lost", f"{UNMARKED} … final<|message|>«P»"),
    Shape("answer tags", f"<think>{THOUGHT}</think><answer>«P»</answer>"),
    Shape("final response in brackets", f"{UNMARKED}\n[BEGIN FINAL RESPONSE]\n«P»\n[END FINAL RESPONSE]"),
    Shape("reasoning in a field", {"content": "«P»", "reasoning_content": THOUGHT}),
    Shape(
        "parts, one of them thinking",
        {"content": [{"type": "thinking", "thinking": "«X»"}, {"type": "text", "text": "«P»"}]},
    ),
    Shape("thought that does not end", f"<think>{THOUGHT}", "length", ALL_FAILED),
    Shape("thought that does not end, stop", f"<think>{THOUGHT}", "stop", ALL_FAILED),
    Shape("bracketed thought, open", f"[THINK]{THOUGHT}", "length", ALL_FAILED),
    Shape("channel, no final", f"<|channel|>analysis<|message|>{THOUGHT}", "length", ALL_FAILED),
    Shape("channel, tokens lost, no final", f"analysis{THOUGHT}", "length", ALL_FAILED),
    Shape("nested thought, open", f"<think>{THOUGHT}<think>«X»</think>«X»", "length", ALL_FAILED),
    Shape("thought cut in its closing mark", f"<think>{THOUGHT}</thi", "length", ALL_FAILED),
    Shape("reasoning in a field alone", {"content": "", "reasoning_content": "«X»"}, "length", ALL_FAILED),
    Shape("thought alone", f"<think>{THOUGHT}</think>", "stop", ALL_FAILED),
    # -- turns
    Shape("end of turn", "«P»<|im_end|>"),
    Shape("run-on", "«P»<|im_end|>\n<|im_start|>user\nAnd now?<|im_end|>\n<|im_start|>assistant\n«D»"),
    Shape("run-on of Llama", "«P»<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n«D»"),
    Shape("run-on of Gemma", "«P»<end_of_turn>\n<start_of_turn>user\n«D»"),
    Shape("run-on of Mistral", "«P»</s>[INST] «D» [/INST]"),
    Shape("run-on of an instruction", "«P»\n\n### Instruction:\n«D»"),
    Shape("own turn opened", "<|im_start|>assistant\n«P»<|im_end|>"),
    Shape("own turn opened, Llama", "<|start_header_id|>assistant<|end_header_id|>\n\n«P»<|eot_id|>"),
    # -- objects
    Shape("fenced", "```json\n«P»\n```", right={"text": f"```json\n{SENTENCE}\n```"}),
    Shape("prose before", "Well, let me see.\n«P»", right={"text": f"Well, let me see.\n{SENTENCE}"}),
    Shape(
        "decoy, then decision",
        "I could do «D», but no. My final decision: «P»",
        right={"text": f"I could do I should sound annoyed., but no. My final decision: {SENTENCE}"},
    ),
    Shape(
        "analysis in another object",
        '{"analysis": "«D»"}\n«P»'.replace("«D»", "weighed"),
        right={"text": f'{{"analysis": "weighed"}}\n{SENTENCE}'},
    ),
    Shape(
        "two at once",
        "«P» or «D»",
        right={
            "action": FAILED,
            "choice": "no",
            "sheet": dict.fromkeys(ANSWERS, 1),
            "text": f"{SENTENCE} or I should sound annoyed.",
        },
    ),
    Shape(
        "object begun after it",
        '«P» Or rather {"action": "do_no',
        "length",
        ALL_FAILED,
    ),
    Shape("empty", "", "stop", ALL_FAILED),
    Shape("blank", " \n\n", "stop", ALL_FAILED),
    Shape("content null", {"content": None}, "stop", ALL_FAILED),
    Shape("empty object", "{}", "stop", {"action": FAILED, "choice": FAILED, "sheet": FAILED, "text": "{}"}),
    Shape("empty tool_calls beside content", {"content": "«P»", "tool_calls": []}),
    Shape("another schema", '{"answer": 99}', "stop", ALL_FAILED),
    Shape("NaN", '{"answer": NaN}', "stop", ALL_FAILED),
    Shape(
        "refusal",
        "I'm sorry, but I can't help with that.",
        "stop",
        {**ALL_FAILED, "text": "I'm sorry, but I can't help with that."},
    ),
    # -- calls
    call("Python call", "vote_post(post_id=12, value=1)"),
    call("Python call in a list", "[vote_post(post_id=12, value=1)]"),
    call("Python call by position", "vote_post(12, 1)"),
    call("Python call in a fence", "```tool_code\nprint(default_api.vote_post(post_id=12, value=1))\n```"),
    call("Python call in a sentence", "I like it, so vote_post(post_id=12, value=1)."),
    call("Python call that is ruled out", "I will not vote_post(post_id=12, value=1).", action=FAILED),
    call("Python calls that are compared", "vote_post(12, 1) seems better than do_nothing().", action=FAILED),
    call("function tag and object", "<function=vote_post>«A»</function>"),
    call("function tag of Llama", "<function(vote_post)>«A»</function>"),
    call(
        "parameter tags",
        "<tool_call>\n<function=vote_post>\n<parameter=post_id>\n12\n</parameter>\n<parameter=value>\n1\n</parameter>\n"
        "</function>\n</tool_call>",
    ),
    call(
        "invoke tags",
        '<function_calls><invoke name="vote_post"><parameter name="post_id">12</parameter>'
        '<parameter name="value">1</parameter></invoke></function_calls>',
    ),
    call(
        "arg_key tags",
        "<tool_call>vote_post\n<arg_key>post_id</arg_key>\n<arg_value>12</arg_value>\n<arg_key>value</arg_key>\n"
        "<arg_value>1</arg_value>\n</tool_call>",
    ),
    call("tags of its own", "<vote_post><post_id>12</post_id><value>1</value></vote_post>"),
    call("tool_call tag", '<tool_call>\n{"name": "vote_post", "arguments": «A»}\n</tool_call>'),
    call("python_tag", '<|python_tag|>{"name": "vote_post", "parameters": «A»}'),
    call("TOOL_CALLS", '[TOOL_CALLS][{"name": "vote_post", "arguments": «A»}]'),
    call("TOOL_CALLS with ARGS", "[TOOL_CALLS]vote_post[ARGS]«A»"),
    call(
        "DeepSeek's tokens",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>vote_post\n```json\n«A»\n```"
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    call(
        "Kimi's tokens",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.vote_post:0<|tool_call_argument_begin|>«A»"
        "<|tool_call_end|><|tool_calls_section_end|>",
    ),
    call(
        "commentary of gpt-oss",
        "<|channel|>analysis<|message|>Vote.<|end|><|start|>assistant<|channel|>commentary to=functions.vote_post "
        "<|constrain|>json<|message|>«A»<|call|>",
    ),
    call("ReAct", "Thought: I like it.\nAction: vote_post\nAction Input: «A»"),
    call("lines", "Action: vote_post\npost_id: 12\nvalue: 1"),
    call(
        "tool_calls as text",
        '{"tool_calls": [{"type": "function", "function": {"name": "vote_post", "arguments": «A»}}]}',
    ),
    call("actions as text", '{"actions": [{"action": "vote_post", "arguments": «A»}]}'),
    call("name as the key", '{"vote_post": «A»}'),
    call("arguments beside the action", '{"action": "vote_post", "post_id": 12, "value": 1}'),
    call("name in another case", '{"action": "Vote_Post", "arguments": «A»}'),
    call("name with a prefix", '{"action": "functions.vote_post", "arguments": «A»}'),
    call("doubled brackets", '{{"name": "vote_post", "arguments": «A»}}'),
    call(
        "one call of each, in doubled brackets",
        '{{"name": "vote_post", "arguments": «A»}}\n{{"name": "do_nothing", "arguments": {}}}\n\n# Tools',
        action=FAILED,
    ),
    call("trailing comma", '{"action": "vote_post", "arguments": {"post_id": 12, "value": 1,},}'),
    call("Python's quotes", "{'action': 'vote_post', 'arguments': {'post_id': 12, 'value': 1}}"),
    call("bare keys", "{action: 'vote_post', arguments: {post_id: 12, value: 1}}"),
    call("texts for numbers", '{"action": "vote_post", "arguments": {"post_id": "12", "value": "1"}}'),
    call("option with marks", '{"action": "vote_post", "arguments": {"post_id": "#12", "value": "[1]"}}'),
    call(
        "reason among the arguments", '{"action": "vote_post", "arguments": {"post_id": 12, "value": 1, "reason": "x"}}'
    ),
    call("arguments as a text", '{"action": "vote_post", "arguments": "{\\"post_id\\": 12, \\"value\\": 1}"}'),
    call(
        "the same call twice", '[{"action": "vote_post", "arguments": «A»}, {"action": "vote_post", "arguments": «A»}]'
    ),
    call("off its list", '{"action": "vote_post", "arguments": {"post_id": 99, "value": 1}}', action=FAILED),
    call("unknown action", '{"action": "fly", "arguments": {}}', action=FAILED),
    call(
        "key twice", '{"action": "vote_post", "arguments": {"post_id": 12, "post_id": 13, "value": 1}}', action=FAILED
    ),
    call("cut call", '{"action": "vote_post", "arguments": {"post_id": 12, "val', "length", action=FAILED),
    call("cut Python call", "vote_post(post_id=12, val", "length", action=FAILED),
    call("cut tags", "<function=vote_post><parameter=post_id>12</parameter>", "length", action=FAILED),
    call("ellipsis for arguments", '{"action": "vote_post", "arguments": {...}}', action=FAILED),
    native("native call", json.dumps(ARGUMENTS)),
    native("native call, object", ARGUMENTS),
    native("native call, encoded twice", json.dumps(json.dumps(ARGUMENTS))),
    native("native call, fenced", f"```json\n{json.dumps(ARGUMENTS)}\n```"),
    native("native call, trailing comma", '{"post_id": 12, "value": 1,}'),
    native("native call, Python", "{'post_id': 12, 'value': 1}"),
    native("native call, id null", json.dumps(ARGUMENTS), id=None),
    native("native call, arguments twice", json.dumps(ARGUMENTS) * 2),
    native("native call, arguments after an empty object", "{}" + json.dumps(ARGUMENTS)),
    native("native call, other arguments as well", json.dumps(ARGUMENTS) + '{"post_id": 13, "value": 1}', right=FAILED),
    native("native call, arguments begun again", json.dumps(ARGUMENTS) + '{"post_id": 1', right=FAILED),
    *(
        Shape(
            f"native call, {name}",
            {"tool_calls": [{"function": {"name": name, "arguments": ARGUMENTS}}]},
            "tool_calls",
            NATIVE,
        )
        for name in (
            "functions.vote_post:0",
            "functions.functions.vote_post:12",
            "default_api.vote_post",
            '"vote_post"',
        )
    ),
    Shape(
        "native call that was cut, its arguments closed",
        {"tool_calls": [{"function": {"name": "vote_post", "arguments": ARGUMENTS}}]},
        "length",
        ALL_FAILED,
    ),
    *(
        Shape(
            f"native call, {finish}",
            {"tool_calls": [{"function": {"name": "vote_post", "arguments": ARGUMENTS}}]},
            finish,
            ALL_FAILED,
        )
        for finish in ("content_filter", "content_filter: SAFETY", "PROHIBITED_CONTENT", "refusal", "sensitive")
    ),
    Shape("text, filtered", "«P»", "content_filter", ALL_FAILED),
    Shape("text that was cut", "«P» and then", "length", {"*": FAILED}),
    *(
        Shape(
            f"answer in {field}",
            {"content": content, field: "«P»"},
            finish,
            {"text": FAILED, "*": SAID} if finish == "stop" else ALL_FAILED,
        )
        for field, content, finish in (
            ("reasoning_content", None, "stop"),
            ("reasoning", "", "stop"),
            ("thinking", None, "length"),
        )
    ),
    Shape(
        "answer after the thought in reasoning_content",
        {"content": None, "reasoning_content": "Perhaps «X».</think>\n«P»"},
        "stop",
        {"text": FAILED},
    ),
    Shape(
        "thought in reasoning_content", {"content": None, "reasoning_content": "Perhaps «X», so."}, "stop", ALL_FAILED
    ),
    Shape(
        "native call twice",
        {"tool_calls": [{"function": {"name": "vote_post", "arguments": ARGUMENTS}}] * 2},
        "tool_calls",
        NATIVE,
    ),
    Shape(
        "native call, name of gpt-oss",
        {"tool_calls": [{"function": {"name": "vote_post<|channel|>commentary", "arguments": ARGUMENTS}}]},
        "tool_calls",
        NATIVE,
    ),
    Shape(
        "native call, cut",
        {"tool_calls": [{"function": {"name": "vote_post", "arguments": '{"post_id": 12, "va'}}]},
        "length",
        ALL_FAILED,
    ),
    # -- choices
    *(
        Shape(
            f"choice: {text[:40]}{len(text)}", text, "stop", {"action": FAILED, "sheet": FAILED, "text": text.strip()}
        )
        for text in (
            "yes",
            "Yes.",
            '"yes"',
            "[yes]",
            "**Yes**",
            "Answer: yes",
            "My answer is yes.",
            "Yes, because the buses are late.",
            "yes - I am sure",
            "The final answer is: [yes]",
            '```json\n"yes"\n```',
            "Yes. " + "Buses are cheap, and everybody can use them. " * 12,
            "Buses are cheap, but the money is needed elsewhere. " * 12 + "\n\nYes.",
        )
    ),
    *(
        Shape(f"no choice: {text}", text, "stop", {**ALL_FAILED, "text": text})
        for text in (
            "yes or no",
            "I have no idea.",
            "maybe",
            "It is hard to say: yes and no.",
            "I would not say yes.",
        )
    ),
    Shape("choice in another case", '{"answer": "YES"}', right={"action": FAILED, "sheet": FAILED, "text": "YES"}),
    Shape("choice in a bracket", '{"answer": "[yes]"}', right={"action": FAILED, "sheet": FAILED, "text": "[yes]"}),
    Shape("choice in a list", '{"answer": ["yes"]}', right={**ALL_FAILED, "choice": SAID}),
    Shape(
        "choice under another key",
        '{"choice": "yes"}',
        right={**ALL_FAILED, "choice": SAID, "text": '{"choice": "yes"}'},
    ),
    # -- sheets
    *(
        Shape(f"sheet: {name}", text, right={"action": FAILED, "choice": FAILED, "sheet": right, "text": text})
        for name, text, right in (
            ("lines", "1: 4\n2: 2\n3: 5\n4: 1\n5: 3\n6: 4", SAID),
            ("numbered list", "1. 4\n2. 2\n3. 5\n4. 1\n5. 3\n6. 4", SAID),
            ("questions", "Q1: 4\nQ2: 2\nQ3: 5\nQ4: 1\nQ5: 3\nQ6: 4", SAID),
            ("row", "4, 2, 5, 1, 3, 4", SAID),
            ("list", "[4, 2, 5, 1, 3, 4]", SAID),
            ("wrapped", '{"answers": {"1": 4, "2": 2, "3": 5, "4": 1, "5": 3, "6": 4}}', SAID),
            ("item names", '{"item_1": 4, "item_2": 2, "item_3": 5, "item_4": 1, "item_5": 3, "item_6": 4}', SAID),
            ("bare keys", "{1: 4, 2: 2, 3: 5, 4: 1, 5: 3, 6: 4}", SAID),
            ("texts", '{"1": "4", "2": "2", "3": "5 (agree)", "4": "[1]", "5": "3", "6": "4."}', SAID),
            ("one missing", '{"1": 4, "2": 2, "3": 5, "4": 1, "5": 3}', FAILED),
            ("one off the scale", '{"1": 4, "2": 2, "3": 5, "4": 1, "5": 3, "6": 9}', FAILED),
            ("short list", "[4, 2, 5]", FAILED),
            ("none of the items", '{"name": "Ann", "mood": 4}', FAILED),
            ("item twice", "1: 4\n2: 2\n3: 5\n4: 1\n5: 3\n6: 4\n6: 5", FAILED),
        )
    ),
]


def fuzzed(n: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield kinds of question with replies made of shapes, combined and cut at any byte, and why each ended."""
    rng = random.Random(seed)
    contents = {kind: [text for shape in SHAPES if isinstance(text := _content(shape, kind), str)] for kind in KINDS}
    for _ in range(n):
        kind = rng.choice(KINDS)
        parts = rng.choices(contents[kind], k=rng.choice((1, 1, 2, 2, 3)))
        encoded = rng.choice(("", "\n", " ", "\n\n")).join(parts).encode()
        cut = rng.randrange(len(encoded) + 1) if rng.random() < 0.7 else len(encoded)
        yield kind, encoded[:cut].decode("utf-8", "ignore"), rng.choice(("stop", "length", ""))


def _content(shape: Shape, kind: str) -> Any:
    message = shape.message if isinstance(shape.message, dict) else {"content": shape.message}
    return _filled(message.get("content"), kind)


def fault(kind: str, text: str, finish: str) -> str:
    """Return what is wrong with what is read in a reply; empty if it failed, or stands in the text as it was read."""
    body = {"choices": [{"message": {"content": text}, "finish_reason": finish}]}
    value, reading = outcome(body, kind)
    if value == FAILED or reading == "tool calls":
        return ""
    thought = {"action": (ToolCall("vote_post", {"post_id": 11, "value": -1}),), "choice": "undecided"}
    thought |= {"sheet": dict.fromkeys(ANSWERS, 5), "text": None}
    if value == thought[kind] or (kind == "text" and "Nobody hears" in value):
        return f"a thought was taken for {kind}: {text!r}"
    if kind == "text" and value not in text and json.dumps(value) not in text:
        return f"{value!r} does not stand in {text!r}"
    if kind == "choice" and value not in text.lower():
        return f"{value!r} does not stand in {text!r}"
    meant = {"action": (MEANT["action"], (ToolCall("do_nothing"),)), "sheet": (ANSWERS, dict.fromkeys(ANSWERS, 1))}
    return "" if kind not in meant or value in meant[kind] else f"{value!r} was made of {text!r}"


def main() -> None:
    """Print how each shape is read, for each kind of question; with a number, fuzz as many replies."""
    if len(sys.argv) > 1:
        n, outcomes = int(sys.argv[1]), Counter[str]()
        for kind, text, finish in fuzzed(n, seed=int(sys.argv[2]) if len(sys.argv) > 2 else 1):
            if found := fault(kind, text, finish):
                raise SystemExit(found)
            outcomes[kind] += 1
        sys.stdout.write(
            f"{n} replies, {dict(outcomes)}: nothing was read that does not stand in them outside of a thought" + "\n"
        )
        return
    sys.stdout.write(f"{'shape':<36}" + "".join(f"{kind:<38}" for kind in KINDS) + "\n")
    n_wrong = 0
    for shape in SHAPES:
        cells: list[str] = []
        for kind in KINDS:
            value, reading = outcome(shape.body(kind), kind)
            is_right = value == shape.expected(kind)
            n_wrong += not is_right
            cells.append(f"{'' if is_right else 'WRONG '}{'failed' if value == FAILED else reading}"[:36])
        sys.stdout.write(f"{shape.name[:34]:<36}" + "".join(f"{cell:<38}" for cell in cells) + "\n")
    sys.stdout.write(f"{len(SHAPES)} shapes × {len(KINDS)} kinds of question, {n_wrong} wrong" + "\n")


if __name__ == "__main__":
    main()
