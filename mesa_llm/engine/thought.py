"""Splits what a language model wrote into thought and speech, by one table of marks.

Reasoning models put their thoughts into the same text as their reply, each family between marks of its own; servers
pass these on, and sometimes lose one of a pair. A thought is no action, no answer, and nothing that was said. A thought
that does not end makes the reply unusable: what would have been said never came.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from mesa_llm.records import Reply

THOUGHT_NAMES = (
    "think|thinking|thought|thoughts|thought_process|reasoning|reasoning_content|reflection|analysis|scratchpad|"
    "inner_monologue|internal_monologue|monologue|inner_thoughts|inner_voice|deliberation|rationale|cot|"
    "chain_of_thought|antthinking|(?:seed|longcat|mm|ling|ernie)[:_]think"
)
"""Names of tags around a thought: `<think>…</think>`, `<|thinking|>…<|/thinking|>`, `[THINK]…[/THINK]`."""

THOUGHTS = (
    (
        rf"<\|?(?:begin_|start_)?(?P<tag>(?i:{THOUGHT_NAMES}))\|?(?:\s[^<>]{{0,80}})?>",
        r"<\|?(?:/|end_)(?i:NAME)\s*\|?>",
    ),
    (rf"\[(?P<box>(?:BEGIN )?(?:{THOUGHT_NAMES.upper()}))\]", r"\[(?:/|END )NAME\]"),
    (r"\u25c1think\u25b7", r"\u25c1/think\u25b7"),
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"<\|channel>\s*thought\b", r"<channel\|>"),
    (r"<unused94>(?:\s*thought\b)?", r"<unused95>"),
    (r'<details type="reasoning"[^<>]{0,80}>', r"</details>"),
    (
        r"\bHere(?: is|'s) my thought process:",
        r"\bHere(?: is|'s) my response:",
    ),
)
"""Patterns of the mark that opens a thought and of the one that closes it; NAME is the name that the first one has."""

SPEECHES = (
    ("<answer>", "</answer>"),
    ("<final_answer>", "</final_answer>"),
    ("<final>", "</final>"),
    ("<response>", "</response>"),
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
    r"|<\|turn>|<turn\|>|</s>|<eos>|<bos>|<pad>|<(?:start|end)_of_turn>|<end_of_utterance>"
    r"|<\uff5c(?:end|begin)\u2581of\u2581sentence\uff5c>|<\uff5c(?:User|Assistant)\uff5c>"
    r"|\[/?INST\]|\[/?SYSTEM_PROMPT\]|<</?SYS>>|\[\|(?:endofturn|user|assistant|system)\|\]"
    r"|\n#{2,3} ?(?:Instruction|Human|User)\b:"
)
"""Marks that end a turn or begin the next one: nothing after the first of them was said in this turn."""

_OWN_TURN = re.compile(
    r"\s*(?:<\|(?:im_start|start_header_id|start_of_role|begin_of_text|START_OF_TURN_TOKEN|im_assistant|start)\|>|"
    r"<\|turn>|<start_of_turn>|<bos>)\s*(?:<\|CHATBOT_TOKEN\|>|(?:assistant|model)\b)\s*"
    r"(?:<\|(?:end_header_id|end_of_role|im_middle)\|>\s*)?|"
    r"\s*(?:<\|assistant\|>|\[/INST\]|<\uff5cAssistant\uff5c>|\[\|assistant\|\])\s*"
)
"""The beginning of the model's own turn, which some servers pass on."""

_HEADER = re.compile(
    r"(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*(?P<channel>analysis|commentary|final)\b(?P<to>[^<>{}]{0,100})"
    r"(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>"
    r"|\b(?P<bare>analysis|commentary|final)(?P<bare_to>[^<>{}\n]{0,100})(?:<\|constrain\|>\s*\w+\s*)?<\|message\|>"
    r"|(?:\A\s*|assistant\n?)(?P<run>analysis|commentary|final)(?P<run_to>\s+to=[\w.-]+(?:\s+(?:code|json))?)?"
    r"(?=[^\s\w.,;:!?)\]'-]|[A-Z0-9\u00c0-\uffff]|\s*\{|[ \t]*\n)"
    r"|(?P<glued>analysis)(?=[A-Z][a-z]*\b)"
)
"""The header of a message of gpt-oss, with its tokens, with some of them, or with none, as in `assistantfinal`."""

_HARMONY_ENDS = re.compile(r"<\|(?:return|call)\|>|<\|start\|>(?!\s*assistant)")

_RECIPIENT = re.compile(r"to=(?:functions\.)?([\w.-]{1,64})")

_SUSPECTS = ("<", "[", "\u25c1", "anal", "final", "commentary", "my thought process", "\n##")
"""One of these is in every mark."""

_LITERALS = tuple(
    literal
    for name in re.sub(r"\(\?:(.+?)\)\[:_\]think", r"seed:think", THOUGHT_NAMES).split("|")
    if name.isascii() and name.replace("_", "").replace(":", "").isalpha()
    for literal in (f"<{name}>", f"[{name.upper()}]", f"<|{name}|>")
)
_CLOSING_LITERALS = tuple(
    literal for opening in _LITERALS for literal in (opening[0] + "/" + opening[1:], f"<|/{opening[1:].strip('|<>')}|>")
)
_OTHER_LITERALS = (
    *(mark for pair in SPEECHES for mark in pair),
    *("<|channel|>", "<|message|>", "<|start|>", "<|im_end|>", "<|im_start|>", "<|endoftext|>", "<|eot_id|>"),
    *("<end_of_turn>", "<start_of_turn>", "<|end_of_text|>", "<|begin_of_thought|>", "<|START_THINKING|>"),
    *("<|inner_prefix|>", "<|channel>thought", "\u25c1think\u25b7", "<|return|>", "<|call|>", "[INST]", "[/INST]"),
)


class Split(NamedTuple):
    """What a language model wrote, taken apart."""

    thought: str
    """What it thought."""

    speech: str
    """What it said: what stands after its last thought or, if nothing does, before it."""

    is_open: bool = False
    """Whether it ends within a thought."""


def spoken(reply: Reply) -> Reply:
    """Return a reply with its thoughts in `reasoning`, and nothing but what was said in `text`."""
    text = reply.text
    if reply.is_open is not None or not any(map(text.__contains__, _SUSPECTS)):
        return reply
    thought, speech, is_open = split(text)
    if speech == text and not is_open:
        return reply
    reasoning = "\n".join(filter(None, (reply.reasoning, thought)))
    return replace(reply, text=speech, reasoning=reasoning, is_open=is_open)


def split(text: str) -> Split:
    """Split a text into thought and speech."""
    if (own_turn := _OWN_TURN.match(text)) is not None:
        text = text[own_turn.end() :]
    thought, text, is_open = _without_channels(text)
    if is_open:
        return Split(thought, "", is_open=True)
    tagged = _without_tags(text)
    before, speech = _inside_marks(tagged.speech)
    speech, is_cut = _without_beginning(speech, has_thought=bool(thought or tagged.thought))
    is_open = tagged.is_open or is_cut
    thoughts = (thought, tagged.thought, before, speech if is_open else "")
    joined = "\n".join(filter(None, map(str.strip, thoughts)))
    return Split(joined, "" if is_open else speech.strip(), is_open)


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
    speech, calls = None, []
    for header, end in zip(headers, [*(one.start() for one in headers[1:]), len(text)], strict=True):
        content = re.split(r"<\|(?:end|return|call|start)\|>", text[header.end() : end])[0].strip()
        channel = header["channel"] or header["bare"] or header["run"] or header["glued"]
        recipient = _RECIPIENT.search(header["to"] or header["bare_to"] or header["run_to"] or "")
        if recipient is not None and content:
            calls.append(f"<function={recipient[1]}>{content}</function>")
        elif channel == "final":
            speech = content
        else:
            thoughts.append(content)
    thought = "\n".join(filter(None, map(str.strip, thoughts)))
    if calls:
        return Split("\n".join(filter(None, (thought, speech))), "\n".join(calls))
    return Split(thought, speech or "", is_open=speech is None)


# -- tags


@lru_cache(maxsize=256)
def _closing(pattern: str, name: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("NAME", re.escape(name)))


@lru_cache(maxsize=256)
def _nested(index: int, name: str) -> re.Pattern[str]:
    """Return the pattern of marks that open or close a thought of the same kind as one that is open."""
    opening, closing = THOUGHTS[index]
    if name:
        opening = re.sub(r"\(\?P<(?:tag|box)>.*\)(?=\\\||\\\])", lambda _: f"(?i:{re.escape(name)})", opening)
    return re.compile(f"(?P<open>{opening})|(?P<close>{closing.replace('NAME', re.escape(name))})")


_ANY_NAME = rf"(?:{THOUGHT_NAMES})"
_MARK = re.compile(
    "|".join(
        [
            *(f"(?P<open{index}>{opening})" for index, (opening, _) in enumerate(THOUGHTS)),
            "(?P<close>"
            + "|".join(
                closing.replace("NAME", _ANY_NAME if index != 1 else _ANY_NAME.upper().replace("(?:", "(?:"))
                for index, (_, closing) in enumerate(THOUGHTS)
            )
            + ")",
            f"(?P<end>{TURN_ENDS})",
        ]
    )
)


def _without_tags(text: str) -> Split:
    """Cut out what stands between the marks of thoughts, and what follows the end of the turn."""
    thoughts: list[str] = []
    speech = [""]
    position, has_ended = 0, False
    while (mark := _MARK.search(text, position)) is not None:
        before = text[position : mark.start()]
        if not has_ended:
            speech[-1] += before
        position = mark.end()
        if mark["end"] is not None:
            has_ended = has_ended or bool("".join(speech).strip())
        elif mark["close"] is not None:  # the opening mark was in the prompt, or is lost
            if has_ended:
                return Split("\n".join((*thoughts, text)), "", is_open=True)
            thoughts += speech
            speech = [""]
        else:
            end = _end_of_thought(text, mark)
            if end is None and not has_ended:
                return Split("\n".join((*thoughts, *speech, text[position:])), "", is_open=True)
            if end is None:
                break
            if not has_ended:
                thoughts.append(text[position : end[0]])
                speech.append("")
            position = end[1]
    else:
        if not has_ended:
            speech[-1] += text[position:]
    last = next((index for index in range(len(speech) - 1, -1, -1) if speech[index].strip()), 0)
    thoughts += [part for index, part in enumerate(speech) if index != last]
    return Split("\n".join(filter(None, map(str.strip, thoughts))), speech[last] if speech else "")


def _end_of_thought(text: str, mark: re.Match[str]) -> tuple[int, int] | None:
    """Return where a thought ends, and where its closing mark does; None if it does not end."""
    index = next(index for index in range(len(THOUGHTS)) if mark[f"open{index}"] is not None)
    name = (mark["tag"] or "") if index == 0 else (mark["box"] or "").removeprefix("BEGIN ") if index == 1 else ""
    depth, position = 1, mark.end()
    for inner in _nested(index, name).finditer(text, position):
        depth += 1 if inner["open"] is not None else -1
        if depth == 0:
            return inner.start(), inner.end()
    return None


# -- what is said


def _inside_marks(speech: str) -> tuple[str, str]:
    """Return what stands before the marks around what is said, and what stands between them."""
    for opening, closing in SPEECHES:
        start = speech.rfind(opening)
        if start < 0:
            continue
        content, has_closing, rest = speech[start + len(opening) :].partition(closing)
        if content.strip() and not (has_closing and rest.strip()):
            return speech[:start].replace(closing, ""), content
    return "", speech


def _without_beginning(speech: str, *, has_thought: bool) -> tuple[str, bool]:
    """Cut off the beginning of a mark at the end of a text, and tell whether it shows that all of it is a thought."""
    start = max(speech.rfind("<"), speech.rfind("["), speech.rfind("\u25c1"))
    tail = speech[start:] if start >= 0 else ""
    if len(tail) < 2:
        is_prefix = len(speech.strip()) >= 4 and "analysis".startswith(speech.strip())
        return ("", False) if is_prefix else (speech, False)
    lowered = tail.lower()
    if len(tail) > 2 and not has_thought and any(mark.lower().startswith(lowered) for mark in _CLOSING_LITERALS):
        return speech, True
    if any(mark.lower().startswith(lowered) for mark in (*_LITERALS, *_CLOSING_LITERALS, *_OTHER_LITERALS)):
        return speech[:start], False
    return speech, False
