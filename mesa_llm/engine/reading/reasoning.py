"""Splits a reply into reasoning and speech, by one table of marks.

Reasoning models put their thoughts into the same text as their reply, each family between marks of its own; servers
pass these on, and sometimes lose one of a pair. A thought is no action, no answer, and nothing that was said. A thought
that does not end makes the reply unusable: what would have been said never came.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

from mesa_llm.llm.openai.carried import carried_by
from mesa_llm.llm.schema.grammar import MAX_COUNTED
from mesa_llm.records import Reply

CUT_MARK = "… (cut)"
"""What stands at the end of a reasoning that was cut."""

_TAG_NAMES = (
    r"(?:\w{1,20}[:_])?(?:thinking|think|thoughts|thought|reasoning)(?:_(?!begin|start|end)\w{1,20})?|reflection|analysis|"
    r"scratchpad|(?:inner_|internal_)?monologue|deliberation|rationale|antthinking|cot|思考"
)
"""Names of tags around a thought: `<think>…</think>`, `<|thinking|>…<|/thinking|>`, `<seed:think>…</seed:think>`."""

_LESS, _MORE = r"(?:<|&lt;)\|?\s*", r"\s*\|?(?:>|&gt;)"

_OPENING_TAG = rf"{_LESS}(?:begin_|start_)?(?i:NAME)(?:_begin|_start)?(?:\s+\w+=[^<>]{{0,80}})?{_MORE}"
_CLOSING_TAG = rf"{_LESS}(?:/\s*|end_)(?i:NAME){_MORE}|<\|(?i:NAME)_end\|>"

THOUGHTS = (
    (r"\u25c1think\u25b7", r"\u25c1/think\u25b7", ""),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>", ""),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>", ""),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>", ""),
    (r"<\|channel>\s*thought\b", r"<channel\|>", ""),
    (r"<unused94>(?:\s*thought\b)?", r"<unused95>", ""),
    (r"\[NAME\]", r"\[/NAME\]", "THINKING|THINK"),
    (r"\[BEGIN NAME\]", r"\[END NAME\]", "THINKING|REASONING|THOUGHT"),
    (_OPENING_TAG, _CLOSING_TAG, _TAG_NAMES),
    (r"\[NAME\](?=[^\[]*\[/)", r"\[/NAME\]", "thinking|think|thought|reasoning"),
    (r"```(?:thinking|thought|reasoning)\n", r"\n```", ""),
    (r'<details type="reasoning"[^<>]{0,80}>', r"</details>", ""),
    (r"Here(?: is|'s) my thought process:", r"Here(?: is|'s) my response:", ""),
)
"""Patterns of the mark that opens a thought and of the one that closes it, and the names that NAME in them may be."""

_LONE_NAMES = r"(?:\w{1,20}[:_])?(?:thinking|think)"
LONE_CLOSINGS = (
    rf"{_CLOSING_TAG.replace('NAME', _LONE_NAMES)}|\[/THINK(?:ING)?\]|\u25c1/think\u25b7|<\|end_of_thought\|>"
    r"|<\|END_THINKING\|>|<\|inner_suffix\|>|<channel\|>|<unused95>"
)
"""Marks that close a thought whose opening mark was in the prompt, or is lost."""

SPEECHES = (
    ("<answer>", "</answer>"),
    ("<final_answer>", "</final_answer>"),
    ("<final>", "</final>"),
    ("<response>", "</response>"),
    ("<solution>", "</solution>"),
    ("<SOLUTION>", "</SOLUTION>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|START_TEXT|>", "<|END_TEXT|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
    ("<|begin_of_box|>", "<|end_of_box|>"),
    ("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"),
)
"""Marks around what is said; what stands before the last of them is thought."""

TURN_ENDS = (
    r"<\|(?:im_end|im_start|endoftext|endofprompt|eot_id|eom_id|eot|end_of_text|begin_of_text|start_header_id|"
    r"end_header_id|end_of_turn|end_of_role|start_of_role|end_of_message|END_OF_TURN_TOKEN|START_OF_TURN_TOKEN|"
    r"USER_TOKEN|SYSTEM_TOKEN|CHATBOT_TOKEN|return|call|end|start|user|system|assistant|observation|tool|bot|"
    r"user_end|assistant_end|system_end|im_user|im_assistant|im_system|im_middle|im_sep|turn_end|role_end|message_sep|"
    r"role_sep)\|>"
    r"|<\|turn>|<turn\|>|</s>|<eos>|<bos>|<(?:start|end)_of_turn>|<end_of_utterance>"
    r"|<\uff5c(?:end|begin)\u2581of\u2581sentence\uff5c>|<\uff5c(?:User|Assistant)\uff5c>"
    r"|\[/?INST\]|\[/?SYSTEM_PROMPT\]|<</?SYS>>|\[\|(?:endofturn|user|assistant|system)\|\]"
    r"|\n### Instruction:[ \t]*\n"
)
"""Marks that end a turn or begin the next one: nothing after the first of them was said in this turn."""

_OWN_TURN = re.compile(
    r"\s*(?:<\|start\|>\s*assistant\s*)?<\|message\|>\s*|\s*<s>\s*|"
    r"\s*(?:<\|(?:im_start|start_header_id|start_of_role|begin_of_text|START_OF_TURN_TOKEN|im_assistant|start)\|>|"
    r"<\|turn>|<start_of_turn>|<bos>)\s*(?:<\|CHATBOT_TOKEN\|>|(?:assistant|model)\b)\s*"
    r"(?:<\|(?:end_header_id|end_of_role|im_middle)\|>\s*)?|"
    r"\s*(?:<\|assistant\|>|\[/INST\]|<\uff5cAssistant\uff5c>|\[\|assistant\|\])\s*"
)
"""The beginning of the model's own turn, which some servers pass on."""

_RUN = r"(?=[\"\u201c({]|[A-Z0-9\u00c0-\u00de]|\s*\{|[ \t]*\n)"
_HEADER = re.compile(
    r"(?:<\|start\|>\s*assistant(?P<role_to>\s+to=[\w.-]{1,80})?\s*)?<\|channel\|>\s*(?P<channel>analysis|commentary|final)\b"
    r"(?P<to>[^<>{}\n]{0,100})(?:(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>|\n)"
    r"|(?P<bare>analysis|commentary|final)(?P<bare_to>[^<>{}\n]{0,100})(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>"
    rf"|assistant\n?(?P<run>analysis|commentary|final)(?P<run_to>\s+to=[\w.-]{{1,80}}(?:\s+(?:code|json))?)?{_RUN}"
    r"|\A\s*(?P<first>analysis)(?=[A-Z\"\u201c({]|\n(?s:.*)assistant\n?final)"
    r"|(?P<glued>analysis)(?=[A-Z][a-z]*\b)"
)
"""The header of a message of gpt-oss, with its tokens, with some of them, or with none, as in `assistantfinal`."""

_HARMONY_ENDS = re.compile(r"<\|(?:return|call)\|>|<\|start\|>(?!\s*assistant)")

_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w.-]{1,64})")

_SUSPECTS = (
    "<",
    "[",
    "```t",
    "```r",
    "&lt;",
    "\u25c1",
    "analysis",
    "assistant",
    "final<",
    "my thought process",
    "\n### ",
)
"""One of these is in every mark."""

_CUT_MARKS = re.compile(
    r"(?:<\|?/?\|?(?:t(?:h(?:i(?:n(?:k(?:i(?:ng?)?)?)?)?|o(?:u(?:g(?:ht?)?)?)?)?)?|r(?:e(?:a(?:s(?:o(?:n(?:i(?:ng?)?)?)?)?)?)?)?)"
    r"|<\|[a-zA-Z_]{0,24}\|?|\[/?T(?:H(?:I(?:NK?)?)?)?|\u25c1/?t?h?i?n?k?)\Z"
)
"""The beginning of a mark with which a text that was cut ends."""


class Split(NamedTuple):
    """A text, split into thought and speech."""

    thought: str
    """What it thought."""

    speech: str
    """What it said: what stands after its last thought or, if nothing does, before it."""

    state: Literal["whole", "interrupted", "open"] = "whole"
    """`open` if it ends within a thought; `interrupted` if something was said before a thought, and more after it."""


def marked_if_cut(thought: str) -> str:
    """Mark a reasoning in a field that the grammar of a local language model ended in mid-sentence.

    Such a reply is whole: it has a decision, whose reasons are missing their end.

    Args:
        thought: The text of the field.
    """
    is_cut = len(thought) == MAX_COUNTED and not thought.rstrip().endswith((".", "!", "?", "…"))
    return thought.rstrip() + CUT_MARK if is_cut else thought


def split_reasoning(reply: Reply) -> Reply:
    """Return a reply with its thoughts in `reasoning`, and only what was said in `text`."""
    text = reply.text
    if reply.state or not any(map(text.__contains__, _SUSPECTS)):
        return reply
    thought, speech, state = split(text, is_cut=reply.finish == "length")
    if speech == text and state == "whole":
        return reply
    reasoning = "\n".join(filter(None, (reply.reasoning, thought)))
    carried = carried_by(reply.carried, reply.reasoning)
    return replace(reply, text=speech, reasoning=reasoning, state=state, carried=carried)


def split(text: str, *, is_cut: bool = False) -> Split:
    """Split a text into thought and speech.

    Args:
        text: What a language model wrote.
        is_cut: Whether it was cut at its maximum length, maybe within a mark.
    """
    if text.lstrip().startswith(("{", "[")) and _is_json(text):  # marks in its texts are none
        return Split("", text)
    thought, text, state = _without_channels(text)
    if state == "open":
        return Split(thought, "", "open")
    if (own_turn := _OWN_TURN.match(text)) is not None:
        text = text[own_turn.end() :]
    tagged = _without_tags(text)
    state = tagged.state
    before, speech = _inside_marks(tagged.speech)
    if is_cut and (mark := _CUT_MARKS.search(speech)) is not None:
        is_closing = "/" in mark[0] and not (thought or tagged.thought)
        speech, state = (speech, "open") if is_closing else (speech[: mark.start()], state)
    thoughts = (thought, tagged.thought, before, speech if state == "open" else "")
    joined = "\n".join(filter(None, map(str.strip, thoughts)))
    return Split(joined, "" if state == "open" else speech.strip(), state)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


# -- gpt-oss


def _without_channels(text: str) -> Split:
    """Take apart messages in the format of gpt-oss; calls are written as `<function=NAME>…</function>`."""
    if (end := _HARMONY_ENDS.search(text)) is not None:
        head = text[: end.start()]
        text = head if head.strip() and _HEADER.search(head) else text
    headers = list(_HEADER.finditer(text))
    if not headers:
        return Split("", text)
    thoughts = [text[: headers[0].start()]]
    speech: str | None = None
    calls: list[str] = []
    for header, end in zip(headers, [*(one.start() for one in headers[1:]), len(text)], strict=True):
        content = re.split(r"<\|(?:end|return|call|start)\|>", text[header.end() : end])[0].strip()
        channel = next(header[name] for name in ("channel", "bare", "run", "first", "glued") if header[name])
        targets = [header[name] or "" for name in ("role_to", "to", "bare_to", "run_to")]
        recipient = _RECIPIENT.search(" ".join(targets))
        if recipient is not None and content:
            calls.append(f"<function={recipient[1]}>{content}</function>")
        elif channel == "final":
            speech = content
        else:
            thoughts.append(content)
    thought = "\n".join(filter(None, map(str.strip, thoughts)))
    if calls:
        return Split("\n".join(filter(None, (thought, speech))), "\n".join(calls))
    return Split(thought, speech or "", "open" if speech is None else "whole")


# -- tags


def _named(pattern: str, names: str) -> str:
    return pattern.replace("NAME", f"(?:{names})") if names else pattern


_MARK = re.compile(
    "|".join(
        [
            *(f"(?P<open{index}>{_named(opening, names)})" for index, (opening, _, names) in enumerate(THOUGHTS)),
            f"(?P<close>{LONE_CLOSINGS})",
            f"(?P<end>{TURN_ENDS})",
        ]
    )
)


@lru_cache(maxsize=256)
def _marks_of(index: int, mark: str) -> re.Pattern[str]:
    """Return the pattern of the marks that open or close a thought of the same kind and name as an open one."""
    opening, closing, names = THOUGHTS[index]
    name = re.search(f"(?i:{names})", mark) if names else None
    names = re.escape(name[0]) if name is not None else names
    return re.compile(f"(?P<open>{_named(opening, names)})|(?P<close>{_named(closing, names)})")


def _without_tags(text: str) -> Split:
    """Cut out what stands between the marks of thoughts, and what follows the end of the turn."""
    thoughts: list[str] = []
    speech = [""]
    position, has_ended = 0, False
    while (mark := _MARK.search(text, position)) is not None:
        if not has_ended:
            speech[-1] += text[position : mark.start()]
        position = mark.end()
        if _is_mentioned(text, mark):
            speech[-1] += "" if has_ended else mark[0]
        elif mark["end"] is not None:
            has_ended = has_ended or bool("".join(speech).strip())
        elif mark["close"] is not None:
            if has_ended:
                return Split("\n".join((*thoughts, text)), "", "open")
            thoughts += speech
            speech = [""]
        elif (end := _end_of_thought(text, mark)) is not None:
            if not has_ended:
                thoughts.append(text[position : end[0]])
                speech.append("")
            position = end[1]
        elif has_ended:
            break
        else:
            return Split("\n".join((*thoughts, *speech, text[position:])), "", "open")
    else:
        speech[-1] += "" if has_ended else text[position:]
    parts = [part for part in speech if part.strip()]
    joined = "\n".join(filter(None, map(str.strip, (*thoughts, *parts[:-1]))))
    return Split(joined, parts[-1] if parts else "", "interrupted" if len(parts) > 1 else "whole")


def _is_mentioned(text: str, mark: re.Match[str]) -> bool:
    """Check whether a mark is only spoken of: it stands in quotation marks, or strikes out what stands before it."""
    before, after = text[mark.start() - 1 : mark.start()], text[mark.end() : mark.end() + 1]
    return (before, after) in _QUOTED or (mark[0] == "</s>" and "<s>" in text[: mark.start()])


_QUOTED = frozenset({("`", "`"), ('"', '"'), ("'", "'"), ("\u201c", "\u201d"), ("\u2018", "\u2019")})


def _end_of_thought(text: str, mark: re.Match[str]) -> tuple[int, int] | None:
    """Return where a thought ends, and where its closing mark does; None if it does not end."""
    index = next(index for index in range(len(THOUGHTS)) if mark[f"open{index}"] is not None)
    depth = 1
    for inner in _marks_of(index, mark[0]).finditer(text, mark.end()):
        depth += 1 if inner["open"] is not None else -1
        if depth == 0:
            return inner.start(), inner.end()
    return None


def _inside_marks(speech: str) -> tuple[str, str]:
    """Return what stands before the marks around what is said, and what stands between them."""
    for opening, closing in SPEECHES:
        start = speech.rfind(opening)
        if start < 0 or speech[:start].rpartition("\n")[2].strip():  # within a line, it is spoken of
            continue
        content, has_closing, rest = speech[start + len(opening) :].partition(closing)
        is_token = "|" in opening or opening.isupper()
        if content.strip() and not rest.strip() and (has_closing or is_token):
            return speech[:start].replace(closing, ""), content
    return "", speech
