"""Detects prompts that an endpoint truncates silently, from the number of tokens that it reports."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mesa_llm.records import ChatMessage

CHARACTERS_A_TOKEN = 6.5
"""More characters than any tokenizer in use puts into a token of prose, on average."""

MIN_TOKENS = 256
"""Minimum number of tokens that is looked at; no context is smaller, and some endpoints report a few at random."""

SPREAD = 0.05
"""Relative difference in length from which prompts cannot have the same number of tokens by chance."""

ENOUGH = 3
"""Number of prompts of different lengths with the same number of tokens that are no coincidence."""

_REPEATED = re.compile(r"(.)\1{3,}|\s+", re.DOTALL)
"""Runs of one character, of which a token may hold many."""


class TruncationDetector:
    """Watches the prompts of one endpoint and the tokens that it says it has read of them.

    Prompts are cut if the largest count so far is far too small for its prompts and the size of a context (a power of
    two), or if it is the same for prompts of different lengths. An endpoint that counts only what it had not cached
    reports small counts as well, but no such largest one.

    Attributes:
        has_found: Whether prompts are cut.
        largest: Largest number of tokens of a prompt so far; smaller ones need not be looked at.
    """

    def __init__(self) -> None:
        """Start without a prompt."""
        self.has_found = False
        self.largest = MIN_TOKENS
        self._lengths: set[int] = set()  # of prompts with the largest count

    def look(self, messages: Sequence[ChatMessage], prompt_tokens: int) -> bool:
        """Compare a prompt with earlier ones; return True the first time that truncation is certain.

        Args:
            messages: The prompt.
            prompt_tokens: Number of tokens that the endpoint has read of it.
        """
        if prompt_tokens < self.largest or self.has_found:
            return False
        if prompt_tokens > self.largest:
            self.largest = prompt_tokens
            self._lengths.clear()
        characters = 0
        for message in messages:
            characters += len(message.content)
        is_short = characters > CHARACTERS_A_TOKEN * prompt_tokens
        is_short = is_short and _plain_length(messages) > CHARACTERS_A_TOKEN * prompt_tokens
        is_context = prompt_tokens & (prompt_tokens - 1) == 0
        if len(self._lengths) < 100:
            self._lengths.add(characters)
        is_same = len(self._lengths) >= ENOUGH and max(self._lengths) > (1 + SPREAD) * min(self._lengths)
        self.has_found = (is_short and is_context) or ((is_short or is_context) and is_same)
        return self.has_found


def _plain_length(messages: Sequence[ChatMessage]) -> int:
    """Return the number of characters of a prompt, counting blanks and repeated characters in a row once."""
    return sum(len(_REPEATED.sub("x", message.content)) for message in messages)


def cut_text(messages: Sequence[ChatMessage], prompt_tokens: int) -> str:
    """Describe a cut, and what to set."""
    characters = sum(len(message.content) for message in messages)
    return (
        f"it has read only {prompt_tokens:,} tokens of a prompt of {characters:,} characters, so prompts are being "
        "cut, and agents do not see all they should; raise the context: num_ctx for Ollama (OLLAMA_CONTEXT_LENGTH), "
        "--ctx-size for llama.cpp (divided by its --parallel slots), --max-model-len for vLLM; or let agents see or "
        "remember less"
    )
