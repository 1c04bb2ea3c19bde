"""Decides which key a request may carry: by its host, and by where the address came from."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import threading
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import platformdirs

from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import Address

logger = logging.getLogger(__name__)

OPENAI = "https://api.openai.com"
"""The only host that `OPENAI_API_KEY` is sent to."""


class Origin(StrEnum):
    """Where an address comes from."""

    USER = "the user, on this command or in code"
    ENVIRONMENT = "a variable of the environment"
    FILE = "a file of endpoints that the user named or agreed to"
    PROVIDER = "litellm's table of providers"
    FOLDER = "a file of endpoints that nobody has agreed to"
    LOG = "a run log or a design in a file"

    @property
    def may_have_key(self) -> bool:
        """Whether a key may be sent to an address that comes from there."""
        return self in (Origin.USER, Origin.ENVIRONMENT, Origin.FILE, Origin.PROVIDER)


@dataclass(frozen=True, slots=True)
class AddressSource:
    """The address of a model, and where it comes from."""

    base: str | None
    """Base URL; None: the model's provider, by litellm."""

    origin: Origin
    """Where the base URL comes from."""

    key_env: str | None = None
    """Variable of the environment that holds the key, for an endpoint with a name of its own."""

    is_named: bool = False
    """Whether it is an endpoint with a name of its own, which no other key was given for."""

    is_first: bool = True
    """Whether agents think with the model, so that `api_key` may be meant for it."""

    is_ollama: bool = False
    """Whether it is an Ollama that the model's name stands for."""


class Keyring:
    """The keys that one access may send."""

    def __init__(self, api_key: str | None, api_base: str | None) -> None:
        """Store the user's key and address.

        Args:
            api_key: Key for the models that agents think with; None: from the environment; empty: none is ever sent.
            api_base: Base URL that the user has given; None: none.
        """
        self._api_key = None if api_key is None else api_key.strip()
        self._host = None if api_base is None else Address.of(api_base).origin
        self._withheld: set[str] = set()

    def origin_of(self, base: str, origin: Origin) -> Origin:
        """Return where an address comes from, which is the user if its host is that of `api_base`.

        Args:
            base: Base URL in a model string.
            origin: Where the model string comes from.
        """
        return Origin.USER if Address.of(base).origin == self._host else origin

    def key_for(self, place: AddressSource) -> str | None:
        """Choose the key for an address, as described in `Endpoint`.

        Returns:
            The key; empty: none is sent; None: the one that litellm finds for the provider.

        Raises:
            ConfigError: If it is to stand in a variable that is not set, or the file that asks for it was never agreed
                to.
        """
        if self._api_key == "":
            return ""
        if place.key_env is not None:
            return self._key_in(place)
        if place.base is None:
            is_ours = place.is_first and not place.is_named and place.origin is not Origin.LOG
            return self._api_key if is_ours else None
        if place.origin.may_have_key:
            return self._own_key(place, place.base)
        if self._api_key or environment("MESA_LLM_API_KEY") or Address.of(place.base).origin == OPENAI:
            self._say_withheld(place)
        return ""

    def _own_key(self, place: AddressSource, base: str) -> str:
        """Return the key for an address that may have one."""
        host = Address.of(base).origin
        if not place.is_named and (place.is_first if self._host is None else host == self._host):
            own = self._api_key or ("" if place.is_ollama else environment("MESA_LLM_API_KEY"))
            if own:
                return own
        return environment("OPENAI_API_KEY") if host == OPENAI else ""

    @staticmethod
    def _key_in(place: AddressSource) -> str:
        """Return the key in the variable that an endpoint names."""
        address = "its provider" if place.base is None else Address.of(place.base).base
        if not place.origin.may_have_key:
            raise ConfigError(
                f"the {AGREED_NAME} of this folder wants the variable {place.key_env} of your environment sent to "
                f"{address}, and you have not agreed to that. Look into it, then run `mesa-llm trust` once here, or "
                f"set MESA_LLM_CONFIG={AGREED_NAME}"
            )
        key = environment(place.key_env or "")
        if not key:
            raise ConfigError(f"the key for {address} is to stand in {place.key_env}, which is not set")
        return key

    def _say_withheld(self, place: AddressSource) -> None:
        """Log once for each address that no key is sent to it."""
        base = Address.of(place.base or "").base
        if base not in self._withheld:
            self._withheld.add(base)
            logger.warning(
                "no key is sent to %s, as that address comes from %s; to send yours, name it: --api-base, or "
                "--llm NAME@URL",
                base,
                place.origin.value,
            )


def environment(name: str) -> str:
    """Read an environment variable; a blank one counts as not set."""
    return os.environ.get(name, "").strip()


# -- agreements to files of endpoints

AGREED_NAME = "mesa-llm.toml"
"""Name of a file of endpoints that asks for an agreement."""

_LOCK = threading.Lock()


def agreements_file() -> Path:
    """Return the file in the user's configuration that holds the digests of files that the user has agreed to.

    Raises:
        ConfigError: If the user has no home, nor `XDG_CONFIG_HOME`.
    """
    try:
        return platformdirs.user_config_path("mesa-llm") / "agreed.json"
    except RuntimeError as error:
        raise ConfigError(f"there is no folder to keep agreements in: {error}") from None


def has_agreed(content: bytes) -> bool:
    """Check whether the user has agreed to a file of endpoints with exactly this content."""
    return hashlib.sha256(content).hexdigest() in _agreed()


def agree(content: bytes, path: Path) -> None:
    """Remember that the user agrees to a file of endpoints, until its content changes.

    Args:
        content: Content of the file.
        path: Its path, for people who read the list.

    Raises:
        ConfigError: If the list of agreements cannot be written.
    """
    file = agreements_file()
    with _LOCK:
        agreed = {**_agreed(), hashlib.sha256(content).hexdigest(): str(path.resolve())}
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(agreed, indent=1), encoding="utf-8")
            unfinished.replace(file)
        except OSError as error:
            raise ConfigError(f"{str(file)!r} cannot be written: {error.strerror}") from error


def _agreed() -> dict[str, str]:
    """Read the agreements: digest of a file → its path; none if there is no list, or it is damaged."""
    try:
        agreed = json.loads(agreements_file().read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, ConfigError):
        return {}
    return agreed if isinstance(agreed, dict) else {}
