"""The dialect of an endpoint: how much of OpenAI's format it supports, learned from what it refuses.

What an endpoint refuses is learned once, and every later request is written accordingly: no fallback loses another one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, cast

from mesa_llm.llm.openai.accounts import says
from mesa_llm.llm.openai.errors import ErrorDetail
from mesa_llm.llm.openai.schema_keywords import LIMITS, keywords_in

Change = tuple[str, Any]
"""Name of a field of a dialect, and its new value."""

COLD = 0.01
"""Temperature for endpoints that refuse 0."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How much of the format an endpoint supports."""

    schema: Literal["schema", "object", "none"] = "schema"
    """Whether replies can be held to a JSON schema, to any JSON object, or to nothing."""

    choice: Literal["required", "auto", "none"] = "required"
    """Values of `tool_choice` that it supports; none: leave it out."""

    tools: bool = True
    """False: describe tools in a message; the model calls them in its text, which is held to a schema if possible."""

    both: bool = True
    """False: leave the schema out of requests with tools."""

    keywords: frozenset[str] = frozenset()
    """Keywords of JSON schemas that it does not know."""

    system: Literal["any", "first", "none"] = "any"
    """Where system messages may stand: anywhere, once and first, or nowhere: then the first user message holds them."""

    alternates: bool = False
    """Whether user and assistant have to take turns, and the user begins: then messages of one role are joined."""

    tool_messages: bool = True
    """False: write calls and results of tools as messages of the assistant and the user."""

    short_ids: bool = False
    """Whether ids of tool calls have to be nine letters and digits."""

    length: Literal["max_tokens", "max_completion_tokens", "none"] = "max_tokens"
    """Its name of the setting `max_tokens`; none: leave it out."""

    min_temperature: float = 0.0
    """Lowest temperature that it accepts."""

    room: int | None = None
    """Maximum number of tokens that it allows for a reply; None: as many as are asked for."""

    alternatives: int | None = None
    """Maximum number of alternatives to a token that it lists; None: as many as are asked for."""

    stream: bool = False
    """Whether it replies only as a stream."""

    omitted: frozenset[str] = frozenset()
    """Names of other fields of a request that it does not know, or of which it allows only the default."""

    uncarried: frozenset[str] = frozenset()
    """Names of fields of its own replies' messages that it does not take back; see `Reply.carried`."""

    schema_words: bool = False
    """Whether the form of an answer is described in words although it can be held to a schema."""

    @property
    def has_plain_messages(self) -> bool:
        """Whether messages are sent as they are."""
        has_others = self.alternates or self.short_ids or self.uncarried
        return self.system == "any" and self.tools and self.tool_messages and not has_others

    def without(self, detail: ErrorDetail, sent: Mapping[str, Any], prompt: str = "") -> Dialect | None:
        """Return a simpler dialect, which avoids what an endpoint refuses.

        Args:
            detail: The endpoint's error.
            sent: The body of the request that it refused, written in this dialect.
            prompt: The texts that it sends, whose words in an error are not taken for the endpoint's.

        Returns:
            The dialect; None if the error is about nothing that can be left out or written differently.
        """
        change = next(_Rejection(self, detail, sent, prompt).changes(), None)
        return None if change is None else replace(self, **dict([change]))

    def with_changes(self, old: Dialect, new: Dialect) -> Dialect:
        """Return the dialect with what another request has learned, from an older dialect to a newer one."""
        changes: dict[str, Any] = {}
        for field in fields(self):
            before, after, now = (getattr(dialect, field.name) for dialect in (old, new, self))
            if isinstance(after, frozenset):
                changes[field.name] = now | (after - before)
            elif after != before and now == before:
                changes[field.name] = after
        return replace(self, **changes)

    def summary(self, old: Dialect) -> str:
        """Describe in words what is written differently from an older dialect."""
        notes = [_note(field.name, getattr(self, field.name), getattr(old, field.name)) for field in fields(self)]
        return "; ".join(filter(None, notes))


def _note(name: str, now: Any, before: Any) -> str:
    """Describe one difference between two dialects; empty if there is none."""
    if now == before:
        return ""
    if isinstance(now, frozenset):
        names = sorted(cast("frozenset[str]", now - before))
        listing = ", ".join(names)
        left_out = f"{listing} {'is' if len(names) == 1 else 'are'} left out"
        if name == "uncarried":
            return f"{listing} of earlier replies is not sent back"
        return f"schemas are sent without {listing}" if name == "keywords" else left_out
    if name == "room":
        return f"replies have {now} tokens at most"
    if name == "alternatives":
        return f"{now} alternatives to a token are asked for"
    return _NOTES[name, now]


_NOTES: dict[Change, str] = {
    ("schema", "object"): "answers are held to JSON, and their form is described in words",
    ("schema", "none"): "the form of answers is described in words",
    ("choice", "auto"): "tools are offered, and the call is asked for in words",
    ("choice", "none"): "tool_choice is left out, and the call is asked for in words",
    ("tools", False): "tools are described in words",
    ("both", False): "the form of answers is described in words where tools are offered",
    ("system", "first"): "system messages are joined into one, at the front",
    ("system", "none"): "system text goes into the first user message",
    ("alternates", True): "messages of one role in a row are joined",
    ("tool_messages", False): "calls of tools and their results are written as plain messages",
    ("short_ids", True): "calls of tools get short ids",
    ("length", "max_completion_tokens"): "max_tokens is sent as max_completion_tokens",
    ("length", "none"): "max_tokens is left out",
    ("min_temperature", COLD): f"a temperature of 0 is sent as {COLD}",
    ("stream", True): "replies are asked for as a stream",
    ("schema_words", True): "the form of answers is described in words as well",
}
"""Field and new value of a dialect → what it means."""


_NO = (
    r"(?:not (?:be |currently |yet )?(?:support|allow|permit|recogni|accept|implement|enabl|known|available|valid|"
    r"compatible)|n't (?:support|allow|accept)|unsupport|unrecogni|unknown|unexpected|invalid|extra (?:input|field)|"
    r"unavailable|not one of|forbid|only|must|should be|cannot|can't|disabled|no endpoints|requires|"
    r"no such|additional propert)"
)
"""Words of a refusal."""

FORM_ERROR = re.compile(
    rf"alternat|template|jinja|(role|tool|schema|grammar|format|param|field|keyword)\w*.{{0,80}}{_NO}|"
    rf"{_NO}.{{0,80}}(role|tool|schema|grammar|format|param|field|keyword)",
    re.IGNORECASE,
)
"""Messages of a server's error (5xx) that may be about the form of a request all the same."""

MIN_ROOM = 64
"""Minimum number of tokens of a reply that is worth asking for."""

_CONTEXT = re.compile(
    r"maximum context length is (\d{1,7}).*?(\d{1,7}) (?:tokens )?(?:in|from) the (?:messages|input|prompt)"
)
_MOST = re.compile(
    r"(?:at most|less than or equal to|<=|≤|no more than|up to|maximum(?: value)?(?: of| is)?|limit of)"
    r"\D{0,20}(\d{2,7})"
)
"""How long a reply may be: within the context that a prompt leaves, or in general."""

_FEWER = re.compile(
    r"(?:at most|less than or equal to|<=|≤|no more than|up to|maximum(?: value)?(?: of| is)?|limit of|between \d+ and|"
    r"max(?:imum)? allowed)\D{0,20}(\d{1,2})\b",
    re.IGNORECASE,
)
"""How many alternatives to a token may be asked for."""

_LENGTH = re.compile(
    r"context (length|window|size)|too (long|many tokens)|maximum (context|number of tokens)|exceeds? the",
    re.IGNORECASE,
)
"""Messages about prompts that are too long, which name fields that have nothing to do with it."""


_ENGLISH = frozenset({"stop", "stream", "temperature", "user", "n"})
"""Names of fields that a message may also mention without meaning them."""

_OUTER = frozenset(
    {"body", "request", "params", "parameters", "settings", "options", "extra_body", "query", "root", "json"}
    | {"config", "generationconfig", "generation_config", "inferenceconfig", "inference_config", "sampling_params"}
)
"""Parts of a path before the name of a field of a request."""

_AFTER = (
    r"(?:\s+(?:parameter|param|field|setting|argument|option|property|keyword|attribute|key|value)s?\b|"
    r"\s*[=:(\[]|\s+(?:is|are|was|were|has|have|had|must|should|can|cannot|can't|could|may|might|will|does|doesn't|isn't|"
    r"aren't|needs?|requires?|only|not|no longer|un\w+|deprecated|removed|invalid|out of|too|and|or|with|for|on|in)\b|"
    r"\s*[\u3040-\u9fff\uac00-\ud7af])"
)
"""What follows the name of a setting that a sentence is about, where that is an English word as well."""

_BEFORE = (
    r"(?:(?:parameter|param|field|setting|argument|option|property|keyword|attribute|key|value (?:for|of)|"
    r"support(?:s|ed|ing)?|set(?:ting)?|specify(?:ing)?|us(?:e|ing)(?: of)?|pass(?:ing)?|allow(?:s|ed)?|accepts?|"
    r"un(?:supported|known|expected|recogni[sz]ed)|invalid|remov(?:e|ing)|drop|omit|without|custom|non-default|both|"
    r"take|provide|include|disable|and|or|no)"
    r"(?: the| a| any)?|[:,])\s+|[\u3040-\u9fff\uac00-\ud7af]\s*"
)
"""What stands before such a name."""


_ALSO = {
    "reasoning_effort": r"support thinking|think value|thinking level|",
    "repeat_penalty": r"repetition_penalty|",
    "top_logprobs": r"logprobs|",
    "stop": r"stop[ _]?sequences?|",
}
"""Other words by which endpoints call a field."""


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_ALTERNATION = _any(
    r"alternat",
    r"consecutive .{0,30}(role|message|user|assistant)",
    r"(first|initial) .{0,30}(message|turn|role|content).{0,60}\buser\b",
    r"(must|should|has to) (start|begin) with .{0,30}\buser\b",
    r"unexpected role\W+(user|assistant)\W+after",
    r"multi-?turn",
    r"(two|multiple|several|same).{0,30}(user|assistant) (messages|turns|roles)",
    r"same role",
)
_SYSTEM_FIRST = _any(
    r"system.{0,30}(must|should|has to|can only|only|may only).{0,30}(first|beginning|start|once|only one)",
    r"(multiple|several|more than one|only one|single|at most one) .{0,12}system",
    r"unexpected role\W+system\W+after",
)
_SYSTEM = _any(
    rf"\bsystem\b.{{0,80}}{_NO}",
    rf"{_NO}.{{0,80}}\bsystem\b",
    r"developer instruction",
    r"\brole\b.{0,30}\bsystem\b",
    r"only .{0,20}user.{0,30}(assistant|model).{0,20} (roles|messages)",
    r"should be 'user' or '(assistant|model)'",
)
_TOOL_MESSAGES = _any(
    r"\brole\w*\W.{0,40}\b(tool|function)\b",
    r"\b(tool|function)\b.{0,20}\b(role|message|response|result)",
    r"unknown variant\W+tool",
    r"only .{0,20}user.{0,30}(assistant|model).{0,20} (roles|messages)",
    r"should be 'user' or '(assistant|model)'",
    r"(content|text).{0,40}(empty|null|none|non-empty|must be a string|required)",
)
_ROLES = _any(r"\brole\w*\b.{0,60}\buser\b.{0,30}\b(assistant|model)\b")
_SHORT_IDS = _any(
    r"tool.?call.?id.{0,80}(length|characters|a-z)",
    r"a-z, ?A-Z, ?0-9,? with a length of 9",
    r"tool_(calls?|use)[\w.\[\]]*\.id\b.{0,60}(long|length|characters|match|pattern|invalid)",
)
_JSON_WORD = _any(r"(contain|include|mention|word).{0,40}\bjson\b")
_BOTH = _any(
    r"(response.?format|json|mime|structured|grammar|schema).{0,80}(combin|together|along|with|when|both|same time)"
    r".{0,30}\b(tools?|functions?)\b",
    r"\b(tools?|functions?)( call\w*| use)?\b.{0,60}(combin|together|with|when|both|same time|alongside).{0,60}"
    r"(response.?format|json.?(mode|schema|object)|mime|structured|grammar)",
    r"\btools? (and|or|with) .{0,20}(response.?format|json)",
    r"(response.?format|json \w+) (and|or|with) .{0,12}\btools?\b",
)
_BAD_SCHEMA = _any(
    r"(invalid|malformed|bad|illegal) .{0,20}(schema|grammar)\b(?! type)",
    r"(fail|unable|could ?n.?t|cannot|error)\w*.{0,30}(pars|convert|compil|generat|build|process)\w*"
    r".{0,40}(schema|grammar)",
    r"schema.{0,40}(too complex|too many|constraint|keyword|construct|invalid|malformed|not valid)",
    r"unsupported .{0,20}(keyword|construct|feature|constraint|schema type)",
    r"(keyword|constraint|construct).{0,40}(schema|not (be )?supported|unsupported)",
)
_SCHEMA = _any(r"response.?format|json.?(schema|mode|object)|structured.?output|guided|grammar")
_NO_PARSER = _any(r"tool.?call.?parser|enable.?auto.?tool")
_CHOICE = _any(r"tool.?choice")
_TOOLS = _any(
    r"support\w* (the |for |of )?(tool|function)|tools param|'body', 'tools'",
    r"(tool|function)\w*( call\w*| use| calling)? (is|are)( not|n't) (support|enabl|avail|allow)",
    rf"['\"`]tools['\"`].{{0,40}}{_NO}",
    rf"{_NO}.{{0,40}}['\"`]tools['\"`]",
    rf"{_NO}\w* (parameter|field|argument|key|property)\w*\W+tools\b",
    r"(tool|function)s?.?(call\w*|use)?.{0,20}(unsupported|disabled|not enabled)",
)
_STREAM = _any(
    r"only supports? stream|stream\w* (mode )?(only|is required|must be (set to )?true|must be enabled)",
    r"(enable|requires?|use) (the )?stream|non-?streaming .{0,30}not|must .{0,30}non-?stream",
)
_ABOUT_SCHEMA = _any(r"schema|keyword|grammar|param|function|propert|response_format|tools")
_MARKED = (
    r"(?:['\"`‘“./\[(]\s*{name}\b|\b{name}\s*['\"`’”)\]]|"
    r"(?:keywords?|propert\w+|fields?|attributes?|constraints?)\W+{name}\b|"
    r"\b{name}\W{{1,3}}(?:is|are|was|were|isn't|and|keyword|constraint)\b)"
)
"""A keyword that is an English word as well, where a message means the keyword."""


@dataclass(frozen=True, slots=True)
class _Rejection:
    """What an endpoint says about a request, and what can be written differently."""

    dialect: Dialect
    detail: ErrorDetail
    sent: Mapping[str, Any]
    prompt: str = ""

    @property
    def text(self) -> str:
        return f"{self.detail.about}: {self.detail.text}"

    def changes(self) -> Iterator[Change]:
        """Find what can be changed, the likeliest first."""
        yield from self._about_room()
        yield from self._about_alternatives()
        if self._has_tool_messages and not self.dialect.short_ids and _SHORT_IDS.search(self.text):
            yield "short_ids", True
        is_long = _LENGTH.search(self.detail.text) is not None
        if is_long and "max_completion_tokens" not in self.detail.text:
            return
        yield from self._about_fields(named_plainly=True)
        has_both = "tools" in self.sent and "response_format" in self.sent
        if has_both and self.dialect.both and _BOTH.search(self.detail.text):
            yield "both", False
        yield from self._about_carried()
        yield from self._about_messages()
        yield from self._about_schemas()
        for part in (self.detail.about, self.detail.text):
            yield from self._about_parts(part)
        yield from self._about_fields()
        if _EXTRA.search(self.text) and (beside := self._carried()):
            yield "uncarried", self.dialect.uncarried | beside
        if self._has_tool_messages and _ABOUT_TOOLS.search(self.text):
            yield "tool_messages", False

    def _about_room(self) -> Iterator[Change]:
        """Find how long a reply may be, where the request allows a longer one."""
        allowed = self.sent.get("max_tokens", self.sent.get("max_completion_tokens"))
        text, room = self.detail.text.replace(",", ""), None
        if found := _CONTEXT.search(text):
            room = int(found[1]) - int(found[2])
        elif re.search(r"max(_completion|_new)?_tokens|completion tokens", text) and (found := _MOST.search(text)):
            room = int(found[1])
        if isinstance(allowed, int) and room is not None and MIN_ROOM <= room < allowed:
            yield "room", room

    def _about_alternatives(self) -> Iterator[Change]:
        """Find how many alternatives to a token are listed, where the request asks for more."""
        asked, found = self.sent.get("top_logprobs"), None
        if "logprobs" in self.text:
            found = _FEWER.search(self.detail.text)
        if isinstance(asked, int) and found is not None and 1 < int(found[1]) < asked:
            yield "alternatives", int(found[1])

    # -- messages

    def _about_messages(self) -> Iterator[Change]:
        roles = [message.get("role") for message in self.sent.get("messages", ())]
        has_tools = self._has_tool_messages
        if _ALTERNATION.search(self.text):
            if not self.dialect.alternates and _can_be_joined(roles):
                yield "alternates", True
            yield from self._without_system(roles)
        if "system" in roles and _SYSTEM_FIRST.search(self.text) and self.dialect.system == "any":
            yield "system", "first"
        lists_others = _ROLES.search(self.text) is not None and "system" not in self.text
        if lists_others or _SYSTEM.search(self.text):
            yield from self._without_system(roles)
        is_about_role = self.detail.about.startswith("messages") or "role" in self.detail.text.lower()
        if has_tools and (_TOOL_MESSAGES.search(self.text) or _ALTERNATION.search(self.text) or is_about_role):
            yield "tool_messages", False

    @property
    def _has_tool_messages(self) -> bool:
        """Whether calls or results of tools are among the messages, as such."""
        messages = self.sent.get("messages", ())
        return any(message.get("role") == "tool" or "tool_calls" in message for message in messages)

    def _about_carried(self) -> Iterator[Change]:
        """Find what was sent back of earlier replies and is not taken; what is missing is another matter."""
        if _MISSING.search(self.detail.text):
            return
        in_paths = {part for path in self.detail.paths for part in _parts_of(path)}
        refused = {name for name in self._carried() if name in in_paths or self._is_marked(name)}
        if refused:
            yield "uncarried", self.dialect.uncarried | refused

    def _carried(self) -> set[str]:
        """Return the names of what the request sends back of earlier replies."""
        return {name for message in self.sent.get("messages", ()) for name in _carried_in(message)}

    def _without_system(self, roles: list[Any]) -> Iterator[Change]:
        if "system" in roles and self.dialect.system != "none":
            yield "system", "none"

    # -- schemas

    def _about_schemas(self) -> Iterator[Change]:
        is_silent = self.dialect.schema == "schema" and not self.dialect.schema_words
        if "response_format" in self.sent and is_silent and _JSON_WORD.search(self.text):
            yield "schema_words", True
        present = set(self._keywords())
        if named := {keyword for keyword in present if self._names(keyword)}:
            yield "keywords", self.dialect.keywords | named
        if _BAD_SCHEMA.search(self.detail.text):
            for removable in (present & LIMITS, present):
                if removable:
                    yield "keywords", self.dialect.keywords | removable

    def _keywords(self) -> Iterator[str]:
        """Find the keywords of the schemas that were sent."""
        form = self.sent.get("response_format", {}).get("json_schema", {}).get("schema")
        yield from keywords_in(form)
        for tool in self.sent.get("tools", ()):
            yield from keywords_in(tool["function"]["parameters"])

    def _names(self, keyword: str) -> bool:
        """Check whether the message names a keyword; one that is an English word has to be marked as a keyword."""
        if keyword.islower() and keyword.isalpha():
            is_about_schema = keyword in ("enum", "const") or _ABOUT_SCHEMA.search(self.text)
            return bool(is_about_schema and re.search(_MARKED.format(name=keyword), self.text, re.IGNORECASE))
        return re.search(rf"(?<![\w]){re.escape(keyword)}(?!\w)", self.text) is not None

    # -- other parts

    def _about_parts(self, text: str) -> Iterator[Change]:
        dialect = self.dialect
        if "tools" in self.sent and _NO_PARSER.search(text):
            if dialect.choice == "required" and "tool_choice" in self.sent and "auto" not in text:
                yield "choice", "auto"
            yield "tools", False
        if "tool_choice" in self.sent and dialect.choice != "none" and _CHOICE.search(text):
            yield "choice", "auto" if dialect.choice == "required" else "none"
        if "response_format" in self.sent and _SCHEMA.search(text):
            yield "schema", "object" if dialect.schema == "schema" else "none"
        if "response_format" in self.sent and dialect.schema == "object" and _JSON_WORD.search(text):
            yield "schema", "none"
        if not dialect.stream and _STREAM.search(text):
            yield "stream", True
        yield from self._about_length(text)
        if "tools" in self.sent and (_TOOLS.search(text) or text == "tools"):
            yield "tools", False

    def _about_length(self, text: str) -> Iterator[Change]:
        if "max_tokens" in self.sent and "max_completion_tokens" in text:
            yield "length", "max_completion_tokens"
        for name, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "none")):
            if name in self.sent and self.dialect.length == name and self._refuses(name):
                yield "length", other

    # -- any field

    def _about_fields(self, *, named_plainly: bool = False) -> Iterator[Change]:
        """Find fields that are refused by name; on request, only such that are named as a field and nothing else."""
        is_cold = self.sent.get("temperature") == 0 and re.search(r"positive|greater|above|>", self.detail.text)
        if is_cold and "temperature" in self.text and not named_plainly:
            yield "min_temperature", COLD
        own = {"model", "messages", "tools", "response_format", "tool_choice", "max_tokens", "max_completion_tokens"}
        others = [name for name in self.sent if name not in own]
        refused = {name for name in others if self._is_in_path(name)}
        if not refused:
            refused = {name for name in others if self._is_marked(name) or (not named_plainly and self._is_named(name))}
        if is_cold and named_plainly:
            refused.discard("temperature")
        if refused:
            yield "omitted", self.dialect.omitted | refused

    def _refuses(self, name: str) -> bool:
        """Check whether the error names a field of the request."""
        return self._is_in_path(name) or self._is_marked(name) or self._is_named(name)

    def _is_in_path(self, name: str) -> bool:
        """Check whether a field of the error's own names the field, and no part of a message or of a schema."""
        for path in (self.detail.about, *self.detail.paths):
            *before, last = _parts_of(path) or [""]
            if _snake(last) == name and _OUTER.issuperset(map(str.lower, before)):
                return True
        return False

    def _is_marked(self, name: str) -> bool:
        """Check whether the message names a field in quotation marks, by a path, or by a name that is no word."""
        pattern = _pattern_of(name)
        marked = rf"['\"`\u2018\u201c]\s*(?:{pattern})\s*['\"`\u2019\u201d]|\b(?:\w+[cC]onfig|body)\.(?:{pattern})\b"
        marked += rf"|\[[\w, ]*\b(?:{pattern})\b[\w, ]*\]"
        if "_" in name:
            marked += rf"|(?<![\w-])(?:{pattern})(?![\w-])"
        return self._says(marked)

    def _is_named(self, name: str) -> bool:
        """Check whether a sentence of the message is about a field whose name is an English word as well."""
        if name in ("n", "user"):
            return self._says(rf"(?:parameter|param|field|argument|key)s?\W{{1,3}}{name}\b")
        pattern = _pattern_of(name)
        if name not in _ENGLISH:
            return self._says(rf"(?<![\w-])(?:{pattern})(?![\w-])")
        return self._says(
            rf"(?<![\w-])(?:{pattern}){_AFTER}|(?:{_BEFORE})(?:{pattern})(?![\w-])|\A\W*(?:{pattern})\W*\Z"
        )

    def _says(self, pattern: str) -> bool:
        """Check whether the message says something in words that are not those of the prompt.

        Words are told by ASCII's letters, as Chinese and Japanese write a name between theirs without a blank.
        """
        return says(re.compile(pattern, re.IGNORECASE | re.ASCII), self.detail.text, self.prompt)


_MISSING = re.compile(
    r"\bmissing\b|must (?:be (?:passed|provided|included|returned|present)|include|contain|have|start|begin|end)|"
    r"is required|are required|without|expected",
    re.IGNORECASE,
)
"""Messages about what is missing in earlier replies."""

_EXTRA = re.compile(
    r"\b(?:extra|additional|unknown|unexpected|unrecogni[sz]ed|unsupported|superfluous)\b.{0,20}"
    r"\b(?:inputs?|fields?|propert|keys?|parameters?|arguments?|attributes?|members?)",
    re.IGNORECASE,
)
"""Messages about a field too many, whichever it is."""

_ABOUT_TOOLS = re.compile(r"tool|function|call|thought|thinking|reasoning|signature", re.IGNORECASE)
"""Messages that may be about calls of tools in earlier replies."""

_ROUTINE = frozenset({"role", "content", "tool_calls", "tool_call_id", "id", "type", "function", "name", "arguments"})
"""Fields of messages and calls that are always sent."""


def _carried_in(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what a message brings back."""
    calls = message.get("tool_calls", ())
    for fields_ in (message, *calls, *(call["function"] for call in calls)):
        yield from (name for name in fields_ if name not in _ROUTINE)


def _parts_of(path: str) -> list[str]:
    """Return the names in a path, such as `generationConfig.temperature` or `['body', 'seed']`."""
    return re.findall(r"\w+", path)


def _snake(name: str) -> str:
    """Return a name in small letters, with underscores."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _pattern_of(name: str) -> str:
    """Return a pattern of the ways in which endpoints write the name of a field."""
    return _ALSO.get(name, "") + re.escape(name).replace("_", "[_ ]?")


def _can_be_joined(roles: list[Any]) -> bool:
    """Check whether messages of one role follow each other, or the first one after the system's is not the user's."""
    others = [role for role in roles if role != "system"]
    in_a_row = any(role == following != "tool" for role, following in pairwise(roles))
    return in_a_row or others[:1] != ["user"]
