"""Addresses of endpoints: the URL that is called, and the part that may be shown."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from mesa_llm.errors import ConfigError
from mesa_llm.llm.credentials import environment_secrets, looks_secret, without_secrets

_AT_URL = re.compile(r"@(?=[a-z][a-z0-9+.-]*://|[^@/:\s]+:[^@\s]+@)", re.IGNORECASE)
"""Start of the address in `NAME@URL`, also of a malformed one, which must not be quoted if it holds a password."""

_SECRET_QUERY = re.compile(r"(^|[-_.]|api|access)(key|token|secret|password|pass|sig|signature|auth)$", re.IGNORECASE)
"""Names of parameters of a query that hold secrets."""

_PORTS = {"http": 80, "https": 443}

_NO_BRACKETS = str.maketrans("[]", "  ")


@dataclass(frozen=True, slots=True)
class Address:
    """Base URL of an endpoint, taken apart once; its repr shows no secret."""

    base: str
    """The part that may be shown, and that names hold: scheme and host in lower case, port unless it is the default,
    path without a final slash or `/chat/completions`; neither user nor query."""

    query: str = field(default="", repr=False)
    """Query of every request, such as an API version."""

    authorization: str = field(default="", repr=False)
    """Header `Authorization` made of its user and password; empty if it has none."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Parts of the URL that must not be shown anywhere."""

    @classmethod
    def of(cls, api_base: str) -> Address:
        """Read a base URL, with or without the final `/chat/completions`.

        Raises:
            ConfigError: If it is not an http or https URL; the message shows neither user nor query.
        """
        try:
            url = urlsplit(api_base.strip())
            host, port = url.hostname or "", url.port
            host_part = f"[{host}]" if ":" in host else host.encode("idna").decode()
            if url.scheme not in _PORTS or not host or not api_base.strip().isprintable() or " " in api_base.strip():
                raise ValueError("no http, or no host")
        except ValueError:
            address = api_base.rpartition("@")[2].partition("?")[0]
            raise ConfigError(f"api_base must be a URL such as http://localhost:8080/v1, got {address!r}") from None
        if port not in (None, _PORTS[url.scheme]):
            host_part = f"{host_part}:{port}"
        path = url.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
        base = SplitResult(url.scheme, host_part, path, "", "").geturl()
        return cls(base, url.query, _basic(url), tuple(_secrets_of(url)))

    @property
    def completions(self) -> str:
        """URL of requests, with the query and without the user."""
        return f"{self.base}/chat/completions" + (f"?{self.query}" if self.query else "")

    @property
    def origin(self) -> str:
        """Scheme, host and port: whom a key may be sent to."""
        return "/".join(self.base.split("/", 3)[:3])


def _basic(url: SplitResult) -> str:
    """Return the header `Authorization` of a URL's user and password; empty if it has none."""
    if url.username is None:
        return ""
    user = f"{unquote(url.username)}:{unquote(url.password or '')}"
    return "Basic " + base64.b64encode(user.encode()).decode()


def _secrets_of(url: SplitResult) -> Iterator[str]:
    """Yield user, password and the values of the query, in every form in which they are sent."""
    for part in (url.username, url.password):
        if part:
            yield from (part, unquote(part))
    if url.username is not None:
        yield _basic(url).removeprefix("Basic ")
    for _, value in parse_qsl(url.query):
        yield value


def split_name(text: str) -> tuple[str, str | None]:
    """Split `NAME@URL` into the model's name and its base URL, which is None if the text holds none."""
    match = _AT_URL.search(text)
    return (text, None) if match is None else (text[: match.start()], text[match.end() :])


def written_name(text: str) -> str:
    """Return a model string without the user and query of a URL in it.

    Raises:
        ConfigError: If it holds a URL that cannot be an address.
    """
    model, base = split_name(text.strip())
    return text if base is None else f"{model}@{Address.of(base).base}"


def written_llm(llm: str | Mapping[str, str]) -> str:
    """Return the name of a language model for tables, or of several by agent, as in `1/2=NAME, 2/2=NAME`.

    Raises:
        ConfigError: If it holds a URL that cannot be an address.
    """
    if isinstance(llm, str):
        return written_name(llm)
    return ", ".join(f"{who}={written_name(one)}" for who, one in llm.items())


def secret_in(text: str) -> str:
    """Describe where an address holds a secret, without quoting it.

    Args:
        text: Base URL, well-formed or not.

    Returns:
        A description; empty if nothing looks like a key. An API version, a model's name or a UUID does not.
    """
    try:
        url = urlsplit(text.strip())
    except ValueError:
        url = urlsplit(text.strip().translate(_NO_BRACKETS))
    if "@" in (url.netloc or url.path):
        return "a user or password"
    for name, value in parse_qsl(url.query, keep_blank_values=True):
        if (value and _SECRET_QUERY.search(name)) or looks_secret(name) or looks_secret(value):
            return "a key in its query"
    if any(looks_secret(unquote(part)) for part in (*url.path.split("/"), url.fragment)):
        return "what looks like a key in its path"
    return "a key of the environment" if without_secrets(text, environment_secrets()) != text else ""
