"""Writes a reply after a prompt: what is forced is read, what is chosen is drawn, and only free text is generated.

The beginning that a grammar forces is put behind the prompt. Where few tokens can follow, the model's probabilities of
all of them are read, and one is drawn by the request's own seed, at its temperature: as llama.cpp would if it looked at
nothing but what the grammar allows. Probabilities depend on the prompt alone and are kept, so that equal prompts are
read once. From where a text is free, llama.cpp writes the rest.

The same reply comes out whatever is kept: each state of the model is reached by the same steps, from a prompt that was
read as `prefix` demands.
"""

from __future__ import annotations

import math
import random
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mesa_llm.llm.local.conversations import Conversations
from mesa_llm.llm.local.prefix import Messages, flat
from mesa_llm.llm.probabilities import Token, tokens_in
from mesa_llm.llm.schema.continuation import Continuation

N_ALTERNATIVES = 300
"""Number of tokens whose probabilities are read; an option that begins with none of them is never drawn."""

MAX_KEPT = 2048
"""Maximum number of places whose probabilities are kept."""

SAMPLING = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
"""llama.cpp's own settings, unless the file or the request has others."""

NO_TOKENS = Token(b"", {})


@dataclass(slots=True)
class Written:
    """What was written after a prompt."""

    text: str = ""
    tokens: list[Token] = field(default_factory=list[Token])
    finish: str = ""
    n_prompt: int = 0
    """Number of tokens of the prompt, with what was forced at the beginning of the reply."""

    n_reply: int = 0
    """Number of tokens that were drawn or generated."""


class TokenPlace(NamedTuple):
    """A place in a reply at which a token is chosen."""

    alternatives: Mapping[bytes, float]
    """Text of each token that was listed → its probability."""

    n_prompt: int
    """Number of tokens before it."""


class Stream:
    """Collects what the model writes, token by token."""

    def __init__(self, stop: threading.Event) -> None:
        """Start without anything; setting `stop` ends the reply at its next token."""
        self.stop = stop
        self.texts: list[str] = []
        self.tokens: list[Token] = []
        self.finish = ""
        self.usage: dict[str, Any] = {}
        self.error: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Add one chunk; return True to stop the model."""
        self.error = chunk.get("error", self.error)
        self.usage = chunk.get("usage", self.usage)
        for choice in chunk.get("choices", ()):
            self.texts.append(choice["delta"].get("content") or "")
            self.tokens += tokens_in(choice.get("logprobs"))
            self.finish = choice["finish_reason"] or self.finish
        return self.stop.is_set()

    @property
    def n_read(self) -> int:
        """Number of tokens of the prompt that were not in the cache."""
        details: Mapping[str, int] = self.usage.get("prompt_tokens_details", {})
        return self.usage.get("prompt_tokens", 0) - details.get("cached_tokens", 0)


class ReplyStopped(Exception):
    """The reply is no longer wanted, or the server reported an error."""

    def __init__(self, error: dict[str, Any] | None) -> None:
        """Store the error; None: the reply is no longer wanted."""
        super().__init__(str(error))
        self.error = error


Path = tuple[str, ...]
"""What stands in the reply up to a place: the texts that were added before each earlier place, and before this one."""


class Decoder:
    """Writes replies with one model, on its thread.

    Attributes:
        n_read: Number of tokens that the model has read, other than those that it generated itself.
    """

    def __init__(self, server: Any, conversations: Conversations, sampling: Mapping[str, float]) -> None:
        """Start with nothing kept.

        Args:
            server: llama.cpp's server.
            conversations: States of the model after earlier prompts.
            sampling: Settings of the model's file.
        """
        self._server = server
        self._conversations = conversations
        self._sampling = {**SAMPLING, **sampling}
        self.n_read = 0
        self._places: OrderedDict[tuple[str, Path], TokenPlace] = OrderedDict()
        self._slot: tuple[str, Path] | None = None

    def write(self, body: Mapping[str, Any], stop: threading.Event) -> Written:
        """Write the reply to the body of a request.

        Args:
            body: The body of llama.cpp's chat completions.
            stop: Set where the reply is no longer wanted.

        Raises:
            ReplyStopped: If it is no longer wanted, or the server reported an error.
        """
        written, path = Written(), list[str]()
        rest = Continuation.of(body["grammar"]) if "grammar" in body else None
        if rest is None or "stop" in body:
            return self._generated(body, "", path, rest, written, stop)
        settings = {**self._sampling, **body}
        ahead, limit = "", body.get("max_tokens", math.inf)
        while True:
            forced, rest = rest.prefilled()
            ahead += self._add(written, Token(forced, {forced: 1.0}) if forced else NO_TOKENS)
            if rest.is_over:
                written.finish = "stop"
                return written
            if written.n_reply >= limit:
                written.finish = "length"
                return written
            if rest.is_free:
                return self._generated(body, ahead, path, rest, written, stop)
            place = self._place(body["messages"], (*path, ahead), stop)
            written.n_prompt = written.n_prompt or place.n_prompt
            following = _following(rest, place.alternatives)
            if not following:
                return self._generated(body, ahead, path, rest, written, stop)
            chance = random.Random(f"{body['seed']}/{written.n_reply}").random()
            token = drawn({text: place.alternatives[text] for text in following}, settings, chance)
            path.append(ahead)
            ahead = self._add(written, Token(token, place.alternatives))
            written.n_reply += 1
            rest = following[token]

    def forget(self) -> None:
        """Forget all probabilities and states, which changes no reply."""
        self._places.clear()
        self._slot = None
        self._conversations.forget()

    @staticmethod
    def _add(written: Written, token: Token) -> str:
        text = token.text.decode()
        if text:
            written.text += text
            written.tokens.append(token)
        return text

    # -- the model

    def _place(self, messages: Messages, path: Path, stop: threading.Event) -> TokenPlace:
        """Return the probabilities of what follows a path, read from the model unless they are kept."""
        key = (flat(messages), path)
        place = self._places.get(key)
        if place is None:
            self._approach(messages, path[:-1], stop)
            stream = self._read(messages, path, stop, {"logprobs": True, "top_logprobs": N_ALTERNATIVES})
            alternatives = stream.tokens[0].alternatives if stream.tokens else {}
            place = self._places[key] = TokenPlace(alternatives, stream.usage.get("prompt_tokens", 0))
            while len(self._places) > MAX_KEPT:
                self._places.popitem(last=False)
        self._places.move_to_end(key)
        return place

    def _approach(self, messages: Messages, path: Path, stop: threading.Event) -> None:
        """Bring the model to a place, by the steps that always lead there."""
        text, n_done = flat(messages), 0
        if self._slot is not None and self._slot[0] == text and path[: len(self._slot[1])] == self._slot[1]:
            n_done = len(self._slot[1])
        for index in range(n_done + 1, len(path) + 1):
            steps = path[:index]
            if index == 1 and self._conversations.held(_with_start(messages, steps)):
                self._slot = (text, steps)
            else:
                self._read(messages, steps, stop, {})

    def _read(self, messages: Messages, path: Path, stop: threading.Event, settings: Mapping[str, Any]) -> Stream:
        """Read a prompt and a path after it, of which the model has read all but the last text, if it has several."""
        prompt = _with_start(messages, path)
        is_first = len(path) == 1
        is_cached = self._conversations.prepare(prompt) if is_first else True
        self._slot = None
        body = {"messages": prompt, "max_tokens": 1, "temperature": 0.0, "cache_prompt": is_cached, **settings}
        stream = self._send(body, stop)
        if is_first:
            self._conversations.hold(prompt)
        else:
            self._conversations.soil()
        self._slot = (flat(messages), path)
        return stream

    def _generated(
        self,
        body: Mapping[str, Any],
        ahead: str,
        path: Sequence[str],
        rest: Continuation | None,
        written: Written,
        stop: threading.Event,
    ) -> Written:
        """Have llama.cpp write the rest of a reply."""
        messages = body["messages"]
        whole = (*path, ahead)
        self._approach(messages, whole[:1] if len(whole) == 1 else whole[:-1], stop)
        changes: dict[str, Any] = {"messages": _with_start(messages, whole), "cache_prompt": True}
        if rest is not None:
            changes["grammar"] = rest.grammar
        if "max_tokens" in body:
            changes["max_tokens"] = max(1, body["max_tokens"] - written.n_reply)
        self._slot = None
        self._conversations.soil()
        stream = self._send({**body, **changes}, stop)
        written.text += "".join(stream.texts)
        written.tokens += stream.tokens
        written.finish = stream.finish
        written.n_prompt = written.n_prompt or stream.usage.get("prompt_tokens", 0)
        written.n_reply += stream.usage.get("completion_tokens", 0)
        return written

    def _send(self, body: Mapping[str, Any], stop: threading.Event) -> Stream:
        stream = Stream(stop)
        take: Callable[[dict[str, Any]], bool] = stream.take
        fields = {**body, "stream": True, "stream_options": {"include_usage": True}}
        self._server.handle_chat_completions(fields, take)
        self.n_read += stream.n_read
        if stream.error is not None or stop.is_set():
            self._slot = None
            self._conversations.soil()
            raise ReplyStopped(stream.error)
        return stream


def _with_start(messages: Messages, path: Sequence[str]) -> list[dict[str, str]]:
    """Return a prompt with the beginning of its reply."""
    start = "".join(path)
    return [*messages, {"role": "assistant", "content": start}] if start else list(messages)


def _following(rest: Continuation, alternatives: Mapping[bytes, float]) -> dict[bytes, Continuation]:
    """Return the tokens that can follow, and what can follow each of them."""
    found: dict[bytes, Continuation] = {}
    for text, probability in alternatives.items():
        after = rest.after(text) if text and probability > 0 and _is_text(text) else None
        if after is not None:
            found[text] = after
    return found


def _is_text(token: bytes) -> bool:
    """Check whether a token holds whole characters."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def drawn(probabilities: Mapping[bytes, float], settings: Mapping[str, Any], chance: float) -> bytes:
    """Draw a token as llama.cpp does from the tokens that are allowed.

    Args:
        probabilities: Token → its probability; they need not sum to 1.
        settings: `temperature`, `top_k`, `top_p` and `min_p`, in the meaning of llama.cpp.
        chance: A number from 0 to 1, which decides.
    """
    ranked = sorted(probabilities.items(), key=lambda item: -item[1])
    temperature, top_k = float(settings["temperature"]), int(settings["top_k"])
    if temperature <= 0:
        return ranked[0][0]
    ranked = ranked[:top_k] if top_k > 0 else ranked
    total, share, kept = math.fsum(probability for _, probability in ranked), 0.0, list[tuple[bytes, float]]()
    for text, probability in ranked:
        kept.append((text, probability))
        share += probability / total
        if share >= float(settings["top_p"]):
            break
    maximum = kept[0][1]
    kept = [(text, probability) for text, probability in kept if probability >= float(settings["min_p"]) * maximum]
    weights = [(probability / maximum) ** (1 / temperature) for _, probability in kept]
    threshold = chance * math.fsum(weights)
    for (text, _), weight in zip(kept, weights, strict=True):
        threshold -= weight
        if threshold < 0:
            return text
    return kept[-1][0]
