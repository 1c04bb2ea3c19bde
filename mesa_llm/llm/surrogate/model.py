"""The transport that decides by a surrogate, or asks a language model where it cannot."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from mesa_llm.errors import ConfigError, OutsideSurrogate
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.surrogate.file import read_surrogate
from mesa_llm.llm.surrogate.names import OTHERWISE, PREFIX
from mesa_llm.records import Reply, Request


class SurrogateLLM:
    """Decides by a fitted choice model; outside of what it was fitted to, asks a language model, or fails.

    Attributes:
        surrogate: The choice model.
        own_name: Name of the file and digest of its content, which stand in the log as who decided.
        otherwise: Model string of the language model that is asked otherwise; empty: none, and the decision fails.
        inner: The language model that is asked otherwise, once it is opened.
    """

    reads_facts = True

    def __init__(self, file: str | Path, otherwise: str = "", inner: LLM | None = None, inner_name: str = "") -> None:
        """Read the file.

        Args:
            file: File that `mesa-llm distill` has written.
            otherwise: Model string of the language model that is asked otherwise.
            inner: That language model.
            inner_name: Its name in a recording.

        Raises:
            ConfigError: If the file cannot be read, or holds no surrogate.
        """
        self.surrogate, digest = read_surrogate(str(file))
        self.otherwise, self.inner, self.inner_name = otherwise, inner, inner_name or otherwise
        self.own_name = f"{PREFIX}{Path(file).stem}#{digest[:12]}"
        self.name = f"{self.own_name}{OTHERWISE}{self.inner_name}" if otherwise else self.own_name
        self.is_immediate = self.ignores_prompt = not otherwise

    async def reply(self, request: Request) -> Reply:
        """Draw a decision, or ask the language model.

        Raises:
            OutsideSurrogate: If the request is outside of what was fitted, and there is no language model to ask.
        """
        try:
            return dataclasses.replace(self.surrogate.decided(request), model=self.own_name)
        except OutsideSurrogate as error:
            if self.inner is None:
                raise OutsideSurrogate(f"outside of what {self.own_name} was fitted to: {error}") from None
        return await self.inner.reply(dataclasses.replace(request, model=self.inner_name))


def open_surrogate(text: str) -> SurrogateLLM:
    """Open the surrogate that `surrogate:FILE` or `surrogate:FILE?else=MODEL` names, without that language model.

    Raises:
        ConfigError: If it names no file, or another model than a language model.
    """
    file, mark, otherwise = text.strip().removeprefix(PREFIX).partition(OTHERWISE)
    if not file or (mark and not otherwise):
        raise ConfigError(f"{text!r} names no file or no model; write {PREFIX}FILE or {PREFIX}FILE{OTHERWISE}MODEL")
    if otherwise in ("rule", "human") or otherwise.startswith(PREFIX):
        hint = '; for the rule twin, give on_error="rule" (--on-error rule)' if otherwise == "rule" else ""
        raise ConfigError(f"{text!r}: what is asked otherwise must be a language model{hint}")
    return SurrogateLLM(file, otherwise)
