"""Probabilities of a request's choices, read from those of the tokens in which the reply is written.

A reply is a JSON object, and one of its fields holds the choice: `action`, or `answer`. What stands before it, quotes
and blanks included, is taken as the reply writes it. At the token where the value begins, every alternative that the
model weighed is compared with the choices as JSON writes them. An alternative that begins several choices, as `1`
begins 1 and 10, is followed along the reply; where the reply went another way, it is asked for again with those choices
alone. Whatever is not among the alternatives that are listed counts as off the list.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from mesa_llm.errors import NoProbabilities
from mesa_llm.llm.schema.flat import choices as offers
from mesa_llm.records import Reply, Request

Scoring = Literal["replies", "probabilities"]
"""What a decision of few choices is scored by: the choice that was sampled, or the probabilities of all choices."""

TOP_TOKENS = 20
"""Number of alternatives to each token that are asked for; OpenAI's maximum."""

MAX_CHOICES = 20
"""Maximum number of choices whose probabilities are asked for: more do not fit among the alternatives to a token."""

MIN_SHARED = 0.01
"""Probability of the beginning of several choices below which they share it equally, without another request."""

_NUMBER = re.compile(rb"[-+.\deE]*")
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.\deE]+|true|false|null')


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a reply."""

    text: bytes
    """Its text, in UTF-8; part of a character, at times."""

    alternatives: Mapping[bytes, float]
    """Text of each listed alternative, itself included → its probability."""


# -- what is asked for


def choices_of(request: Request) -> tuple[Any, ...]:
    """Return the choices of a request that has few of them: those of its typed answer, or the names of its actions.

    Returns:
        From 2 to `MAX_CHOICES` values; empty if the answer is an object, a free text, or a number of a wide range.
    """
    if request.schema is None:
        actions = [tool for tool in request.tools if tool.is_action]
        values = [offer["properties"]["action"]["enum"][0] for offer in offers(actions, request.options)]
    else:
        fields = request.schema.get("properties", {})
        answer = fields["answer"] if set(fields) == {"answer"} else None
        values = _values(answer, request.schema.get("$defs", {}))
        if "answer" in request.options:
            values = [value for value in values if value in request.options["answer"]]
    values = list(dict.fromkeys(values))
    return tuple(values) if 2 <= len(values) <= MAX_CHOICES else ()


def _values(schema: Any, definitions: Mapping[str, Any]) -> list[Any]:
    """Return all values of a schema of scalars; empty if they are not few, or not all scalars."""
    if not isinstance(schema, Mapping):
        return []
    fields = cast("Mapping[str, Any]", schema)
    if "$ref" in fields:
        return _values(definitions.get(str(fields["$ref"]).rpartition("/")[2]), {})
    if "const" in fields:
        return [fields["const"]]
    if "enum" in fields:
        return list(fields["enum"]) if all(isinstance(one, str | int | bool) for one in fields["enum"]) else []
    if fields.get("type") == "boolean":
        return [True, False]
    low, high = fields.get("minimum"), fields.get("maximum")
    if fields.get("type") == "integer" and isinstance(low, int) and isinstance(high, int) and high - low < MAX_CHOICES:
        return list(range(low, high + 1))
    return []


def token_settings(request: Request, n_alternatives: int = TOP_TOKENS) -> dict[str, Any]:
    """Return the fields of a request's body that ask for the alternatives to each token; none without choices.

    Args:
        request: The request.
        n_alternatives: Maximum number of alternatives.
    """
    return {"logprobs": True, "top_logprobs": n_alternatives} if request.choices else {}


def choice_text(choice: Any) -> str:
    """Return a choice as the key of its probability: text unchanged, anything else as JSON."""
    return choice if isinstance(choice, str) else json.dumps(choice)


def narrowed(request: Request, choices: Sequence[Any]) -> Request:
    """Return a request that allows some of its choices alone."""
    if request.schema is None:
        names = set(choices)
        return replace(request, choices=tuple(choices), tools=tuple(one for one in request.tools if one.name in names))
    schema = {**request.schema, "properties": {**request.schema["properties"], "answer": {"enum": list(choices)}}}
    return replace(request, choices=tuple(choices), schema=schema)


# -- what is read


def uniform(choices: Sequence[Any]) -> dict[str, float]:
    """Return the probabilities of choices among which chance decides."""
    return {choice_text(choice): round(1 / len(choices), 6) for choice in choices}


def expected(probabilities: Mapping[str, float], value: Callable[[str], float] = float) -> float:
    """Return the expected value of a choice.

    Args:
        probabilities: Choice → its probability.
        value: Value of a choice; by default, the number that it is.
    """
    return math.fsum(probability * value(choice) for choice, probability in probabilities.items())


def with_extra(reply: Reply, extra: Reply) -> Reply:
    """Return a reply that counts the tokens, dollars and attempts of another request sent for it."""
    return replace(
        reply,
        prompt_tokens=reply.prompt_tokens + extra.prompt_tokens,
        reply_tokens=reply.reply_tokens + extra.reply_tokens,
        dollars=None if reply.dollars is None or extra.dollars is None else reply.dollars + extra.dollars,
        attempts=reply.attempts + extra.attempts,
    )


class Weighing:
    """The probability of each choice of a request, as far as the tokens of its reply say."""

    def __init__(self, request: Request) -> None:
        """Start without any probability; see `read`."""
        self.request = request
        self.shares = dict.fromkeys(request.choices, 0.0)
        self._written = {choice: _rest(choice) for choice in request.choices}
        self._shared: dict[tuple[Any, ...], float] = {}  # choices that begin alike → their probability together

    def read(self, tokens: Sequence[Token]) -> bool:
        """Read the tokens of the reply.

        Returns:
            Whether there is a choice in it. There is none where the model has called a tool first, or the reply
            cannot be read.
        """
        start = _start_of_value(b"".join([token.text for token in tokens]), _field(self.request))
        return start is not None and self._follow(tokens, start)

    def _follow(self, tokens: Sequence[Token], start: int) -> bool:
        """Walk along the reply from where its value begins, as long as several choices go on alike."""
        candidates, share, end, written = list(self._written), 1.0, 0, b""
        for token in tokens:
            begin, end = end, end + len(token.text)
            if end <= start:
                continue
            before = token.text[: max(start - begin, 0)]
            on_path: tuple[list[Any], float] | None = None
            for text, probability in token.alternatives.items():
                if not text.startswith(before):
                    continue
                more = text[len(before) :]
                fitting = [one for one in candidates if _fits(self._written[one], written, more)]
                if text == token.text and len(fitting) > 1:
                    on_path = fitting, probability
                elif len(fitting) == 1:
                    self.shares[fitting[0]] += share * probability
                elif fitting:
                    group = tuple(fitting)
                    self._shared[group] = self._shared.get(group, 0.0) + share * probability
            if on_path is None:
                return True
            candidates, share = on_path[0], share * on_path[1]
            written += token.text[len(before) :]
        return False

    def unresolved(self, minimum: float = MIN_SHARED) -> list[Request]:
        """Return requests whose replies tell choices apart that begin alike; see `resolve`.

        Args:
            minimum: Probability below which choices that begin alike share it equally.
        """
        for group, share in list(self._shared.items()):
            if share < minimum:
                self._divide(group, share, {})
        return [narrowed(self.request, group) for group in self._shared]

    def resolve(self, request: Request, tokens: Sequence[Token]) -> None:
        """Tell choices apart by the tokens of the reply to a request of `unresolved`."""
        closer = Weighing(request)
        closer.read(tokens)
        closer.unresolved(minimum=math.inf)
        self._divide(request.choices, self._shared[request.choices], closer.shares)

    def _divide(self, group: tuple[Any, ...], share: float, weights: Mapping[Any, float]) -> None:
        """Divide the probability of a group by weights; equally if there are none."""
        total = math.fsum(weights.values())
        for choice in group:
            self.shares[choice] += share * (weights.get(choice, 0.0) / total if total > 0 else 1 / len(group))
        del self._shared[group]

    def weighed(self, reply: Reply) -> Reply:
        """Return the reply with the probabilities of the choices, rounded to six places; none if nothing is on them."""
        total = math.fsum(self.shares.values())
        if total <= 0:
            return replace(reply, off_list=1.0)
        by_choice = {choice_text(choice): round(share / total, 6) for choice, share in self.shares.items()}
        return replace(reply, probabilities=by_choice, off_list=round(min(max(1.0 - total, 0.0), 1.0), 6))


def _field(request: Request) -> str:
    return "action" if request.schema is None else "answer"


def _rest(choice: Any) -> bytes:
    """Return what JSON writes of a choice from where its value begins: of a text, all after the opening quote."""
    return json.dumps(choice, ensure_ascii=False).encode().removeprefix(b'"')


def _start_of_value(text: bytes, field: str) -> int | None:
    """Return where the value of a field begins in a reply, after the quote of a text; None if it is not there."""
    name = re.escape(json.dumps(field).encode())
    for match in re.finditer(name + rb"\s*:\s*", text):
        if _VALUE.match(text, match.end()):
            return match.end() + (text[match.end() : match.end() + 1] == b'"')
    start = len(text) - len(text.lstrip())
    bare = None if b"{" in text else _VALUE.match(text, start)  # `3` in place of `{"answer": 3}`
    return None if bare is None else start + (bare[0][:1] == b'"')


def _fits(rest: bytes, written: bytes, more: bytes) -> bool:
    """Check whether a choice can go on as an alternative does.

    Args:
        rest: The choice, as `_rest` writes it.
        written: What the tokens before have written of it.
        more: Text of the alternative.
    """
    if not rest.startswith(written):
        return False
    wanted = rest[len(written) :]
    if rest.endswith(b'"'):  # a text, with its closing quote
        return bool(more) and (wanted.startswith(more) or more.startswith(wanted))
    if not written and more:
        more = more.lstrip()
        if not more:
            return False  # white space in place of the value: what would follow it is not known
    if rest[:1].isalpha():  # true, false
        return wanted.startswith(more) or more.startswith(wanted)
    digits = cast("re.Match[bytes]", _NUMBER.match(more))[0]
    return wanted == digits if len(digits) < len(more) or not more else wanted.startswith(digits)


# -- OpenAI's form, which llama.cpp and vLLM share


def tokens_in(logprobs: object) -> list[Token]:
    """Read the `logprobs` of a choice of a chat completion, whatever that holds."""
    content = cast("Mapping[str, Any]", logprobs).get("content") if isinstance(logprobs, Mapping) else None
    entries = cast("Sequence[Any]", content) if isinstance(content, list) else ()
    return [_token(cast("Mapping[str, Any]", entry)) for entry in entries if isinstance(entry, Mapping)]


def _token(entry: Mapping[str, Any]) -> Token:
    listed = entry.get("top_logprobs")
    others = cast("list[Any]", listed) if isinstance(listed, list) else []
    alternatives = dict(_alternatives([entry, *others]))
    return Token(_bytes(entry), alternatives)


def _alternatives(entries: Iterable[Any]) -> Iterable[tuple[bytes, float]]:
    for entry in entries:
        value = entry.get("logprob") if isinstance(entry, Mapping) else None
        if isinstance(value, int | float) and value == value:
            yield _bytes(cast("Mapping[str, Any]", entry)), math.exp(min(value, 0.0))


def _bytes(entry: Mapping[str, Any]) -> bytes:
    """Return the text of a token."""
    values = entry.get("bytes")
    try:
        return bytes(values) if isinstance(values, list) and values else str(entry.get("token", "")).encode()
    except (ValueError, TypeError, UnicodeError):
        return b""


def no_probabilities(name: str) -> NoProbabilities:
    """Return the error for a language model that returns no probabilities of tokens.

    Args:
        name: Name of the language model.
    """
    return NoProbabilities(
        f"{name} returns no probabilities of tokens (logprobs), which scoring='probabilities' reads; leave that out, "
        "or choose a model that returns them: local, vLLM, llama.cpp's server, or one of OpenAI's without reasoning"
    )
