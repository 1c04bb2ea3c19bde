"""Removes keys from responses: an endpoint may echo them in a reply, which is logged, shown and printed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, cast, runtime_checkable
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from mesa_llm.errors import MesaLLMError, TransportError
from mesa_llm.llm.credentials import visible
from mesa_llm.llm.protocol import LLM, close_transport
from mesa_llm.records import Reply, Request, ToolCall

KEY = "(key)"
"""What stands in place of a secret."""

MIN_SECRET = 8
"""Minimum number of characters of a secret that is taken out of replies; shorter ones occur in ordinary words."""

MIN_MIXED = 5
"""The same for a secret of letters and other characters."""

MIN_START = 16
"""Minimum number of characters of the start of a secret, as in a text that was cut, that is taken out as well."""

MIN_END = 8
"""The same at the end of a text."""

_HIDING = ("\u200b", "\u200c", "\u200d", "\xad", "\u2060", "\ufeff")
"""Invisible letters that may stand inside a secret."""

_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}")


@runtime_checkable
class HoldsSecrets(Protocol):
    """A transport that knows which secrets it sends."""

    @property
    def secrets(self) -> Iterable[str]:
        """Keys and passwords that no reply may quote."""
        ...


class Redaction:
    """Takes secrets out of texts and replies, in every form in which an endpoint may echo them."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Prepare the search.

        Args:
            secrets: The secrets; those that are too short, or ordinary words, are left alone.
        """
        forms = {form for secret in secrets if _is_telling(secret) for form in _forms(secret)}
        self._forms = sorted(forms, key=len, reverse=True)
        self._starts = list(dict.fromkeys(_start_of(form) for form in self._forms))
        self._signs = [*dict.fromkeys(form[:MIN_END] for form in self._forms), "%", "\\", *_HIDING]

    @property
    def is_needed(self) -> bool:
        """Whether there is a secret to take out."""
        return bool(self._starts)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        if not (text and self._starts):
            return text
        text = self._without_encoded(self._without(text))
        return self._without_cut(self._without_hidden(text))

    def _without_hidden(self, text: str) -> str:
        """Return a text without secrets that have invisible letters inside; those are then gone everywhere."""
        if text.isascii() or (cleaned := self._without(shown := visible(text))) == shown:
            return text
        return cleaned

    def _without(self, text: str) -> str:
        """Return a text without secrets, and without long starts of them."""
        for start in self._starts:
            at = text.find(start)
            while at >= 0:
                forms = [form for form in self._forms if form.startswith(start)]
                length = max(_n_equal(form, text[at : at + len(form)]) for form in forms)
                text = text[:at] + KEY + text[at + length :]
                at = text.find(start, at + len(KEY))
        return text

    def _without_encoded(self, text: str) -> str:
        """Return a text without secrets that percent signs or escapes hide; it is then decoded as a whole."""
        for sign, decode in (("%", unquote_plus), ("%", unquote), ("\\", _unescaped)):
            if sign in text and (cleaned := self._without(decoded := decode(text))) != decoded:
                text = cleaned
        return text

    def _without_cut(self, text: str) -> str:
        """Return a text without the start of a secret at its end, where a reply was cut."""
        for form in self._forms:
            at = text.rfind(form[:MIN_END], -len(form))
            if at >= 0 and form.startswith(text[at:]):
                return text[:at] + KEY
        return text

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets in its texts and names."""
        match value:
            case str():
                return self.text(value)
            case list():
                return [self.value(item) for item in cast("list[Any]", value)]
            case dict():
                fields = cast("dict[str, Any]", value).items()
                return {self.text(name): self.value(field) for name, field in fields}
            case _:
                return value

    def reply(self, reply: Reply) -> Reply:
        """Return a reply without secrets; the same object if nothing in it looks like one."""
        if not self._starts:
            return reply
        words = f"{reply.text}\n{reply.reasoning}\n{reply.model}\n{reply.finish}\n{reply.tool_calls or ''}"
        if reply.carried:
            words = f"{words}\n{reply.carried}"
        for sign in self._signs:  # each reply passes here: `any` of a generator takes twice as long
            if sign in words:
                break
        else:
            return reply
        texts: dict[str, Any] = {name: self.text(getattr(reply, name)) for name in _TEXTS}
        calls = tuple([self._call(call) for call in reply.tool_calls])
        return replace(reply, tool_calls=calls, carried=self.value(dict(reply.carried)), **texts)

    def _call(self, call: ToolCall) -> ToolCall:
        arguments = cast("Mapping[str, Any]", self.value(dict(call.arguments)))
        return ToolCall(self.text(call.name), arguments, self.text(call.call_id))


_TEXTS = ("text", "reasoning", "model", "finish")
"""Fields of a reply that are an endpoint's words."""


class Redacted:
    """A transport whose replies and errors hold no secrets."""

    def __init__(self, inner: LLM, secrets: Iterable[str]) -> None:
        """Wrap a transport.

        Args:
            inner: The transport; its own secrets are taken out if it tells them.
            secrets: Further secrets.
        """
        self.inner = inner
        own = inner.secrets if isinstance(inner, HoldsSecrets) else secrets
        self._redaction = redaction_of(tuple(own))

    @classmethod
    def around(cls, inner: LLM, secrets: Iterable[str]) -> LLM:
        """Wrap a transport, unless there is nothing to take out.

        Args:
            inner: As for `Redacted`.
            secrets: As for `Redacted`.
        """
        redacted = cls(inner, secrets)
        return redacted if redacted._redaction.is_needed else inner

    async def reply(self, request: Request) -> Reply:
        """Send the request, and remove secrets from the reply or the error.

        Raises:
            MesaLLMError: As the transport raises it, without secrets in its text.
            TransportError: In place of any other error whose text holds a secret.
        """
        failure: MesaLLMError | None = None
        try:
            return self._redaction.reply(await self.inner.reply(request))
        except Exception as error:
            text = self._redaction.text(str(error))
            if text == str(error):
                raise
            failure = _with_text(error, text)
        raise failure  # outside `except`, to carry no exception that quotes a key

    async def close(self) -> None:
        """Close the transport."""
        await close_transport(self.inner)


@lru_cache(maxsize=64)
def redaction_of(secrets: tuple[str, ...]) -> Redaction:
    """Return the redaction of secrets."""
    return Redaction(secrets)


def _with_text(error: Exception, text: str) -> MesaLLMError:
    """Return an error of the same kind with another text."""
    if not isinstance(error, MesaLLMError):
        return TransportError(f"it raised {type(error).__name__}: {text[:300]}")
    copied = type(error).__new__(type(error), text)
    vars(copied).update(vars(error))
    return copied


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret as it is, and as URLs, JSON, hexadecimal digits and base64 hold it."""
    yield from (secret, quote(secret, safe=""), quote(secret), quote_plus(secret), json.dumps(secret)[1:-1])
    yield json.dumps(json.dumps(secret)[1:-1])[1:-1]
    octets = secret.encode("utf-8", "surrogatepass")
    yield from (octets.hex(), octets.hex().upper())
    for lead in range(3):  # a secret in base64 depends on how many bytes come before it, such as `user:`
        first = (0, 2, 3)[lead]
        whole = base64.b64encode(b"\0" * lead + octets).decode().rstrip("=")
        body = whole[first : len(whole) - (0 if (lead + len(octets)) % 3 == 0 else 1)]
        if len(body) >= MIN_SECRET:
            yield from (body, body.replace("+", "-").replace("/", "_"))


def _start_of(form: str) -> str:
    """Return the start of a form by which it is found; of an address or a path, whose starts are common, all of it."""
    return form if "/" in form else form[:MIN_START]


def _n_equal(form: str, text: str) -> int:
    """Return how many characters two texts have in common from the start."""
    return next((n for n, (one, other) in enumerate(zip(form, text, strict=False)) if one != other), len(text))


def _is_telling(secret: str) -> bool:
    """Check whether a secret is no ordinary word or number."""
    return len(secret) >= MIN_SECRET or (len(secret) >= MIN_MIXED and not (secret.isalpha() or secret.isdigit()))


def _unescaped(text: str) -> str:
    """Return a text with JSON's and Python's escapes of characters resolved."""
    return _ESCAPED.sub(lambda match: chr(int(match[0][2:], 16)), text)
