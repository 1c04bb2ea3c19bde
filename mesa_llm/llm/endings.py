"""How a reply ended: by itself, or cut, filtered, declined or interrupted, in one word whatever an endpoint calls it.

Only a reply that ended by itself is a decision. What an endpoint says stands in `finish_reason`, in the words of the
provider behind a router (`native_finish_reason`), or in the verdicts of a content filter beside the reply.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

CUT = "length"
"""It was cut at its maximum number of tokens, or at the end of the model's context."""

FILTERED = "content_filter"
"""A filter of the provider stopped it, or withheld it."""

DECLINED = "refusal"
"""The language model declined, in the field that its endpoint has for that."""

INTERRUPTED = "error"
"""The endpoint failed in the middle of it."""

MALFORMED = "malformed_call"
"""The model wrote a call that its endpoint could not read, and left out."""

UNENDED = frozenset({CUT, FILTERED, DECLINED, INTERRUPTED, MALFORMED})
"""Endings of replies that are no decisions."""

_WORDS: Mapping[str, frozenset[str]] = {
    FILTERED: frozenset(
        {
            *(
                "content_filter",
                "content_filtered",
                "contentfilter",
                "content_policy",
                "content_moderation",
                "filtered",
            ),
            *("safety", "recitation", "prohibited_content", "blocklist", "spii", "language", "model_armor", "blocked"),
            *("image_safety", "image_prohibited_content", "image_recitation", "jailbreak", "refusal", "sensitive"),
            *("guardrail_intervened", "guardrail", "guardrails", "moderation", "flagged", "error_toxic", "toxicity"),
            *("input_sensitive", "output_sensitive", "risk", "unsafe"),
        }
    ),
    MALFORMED: frozenset(
        {
            *("malformed_function_call", "unexpected_tool_call", "too_many_tool_calls", "malformed_tool_use"),
            *("malformed_response", "malformed_model_output", "missing_thought_signature", "function_call_filter"),
        }
    ),
    INTERRUPTED: frozenset(
        {
            *("error", "insufficient_system_resource", "network_error", "abort", "aborted", "cancelled", "canceled"),
            *("user_cancel", "timeout", "time_limit", "not_finished", "incomplete", "interrupted", "failed", "other"),
            *("server_error", "internal_error", "overloaded", "disconnect", "unload", "finish_reason_unspecified"),
        }
    ),
    CUT: frozenset(
        {
            *("length", "max_tokens", "max_length", "max_output_tokens", "model_length", "error_limit"),
            *("model_context_window_exceeded", "context_length_exceeded", "max_completion_tokens", "token_limit"),
        }
    ),
}
"""Ending → the words of endpoints for it; where a reason holds several, the first of these counts."""

_WORD = re.compile(r"[a-z][a-z_]*[a-z]")


def ending_in(reason: object) -> str:
    """Return how a reply ended in one word; the endpoint's own word if it is none of those known, as `stop` is.

    Args:
        reason: What the endpoint gives as the reason, such as `MAX_TOKENS` or `content_filter: SAFETY`.
    """
    if isinstance(reason, Mapping):
        fields = cast("Mapping[str, Any]", reason)
        reason = fields.get("type") or fields.get("reason")
    if not isinstance(reason, str):
        return ""
    words = set(_WORD.findall(reason[:200].lower().replace("-", "_").replace(" ", "_")))
    return next((ending for ending, known in _WORDS.items() if not known.isdisjoint(words)), reason[:200])


def ending_of(choice: Mapping[str, Any], body: Mapping[str, Any]) -> str:
    """Return how the reply in a choice ended, from all that its endpoint says about that.

    Args:
        choice: The choice of a chat completion.
        body: The chat completion.
    """
    endings = [ending_in(reason) for reason in _reasons(choice)]
    if any(map(_is_filtered, (choice, body))):
        endings.insert(0, FILTERED)
    return next((ending for ending in endings if ending in UNENDED), endings[0] if endings else "")


def _reasons(choice: Mapping[str, Any]) -> Iterator[object]:
    """Yield the reasons in a choice: that of the endpoint, and that of the provider behind it."""
    yield choice.get("finish_reason")
    for holder in (choice, choice.get("provider_specific_fields")):
        if isinstance(holder, Mapping):
            yield cast("Mapping[str, Any]", holder).get("native_finish_reason")


def _is_filtered(holder: Mapping[str, Any]) -> bool:
    """Check whether a filter gives a verdict against the reply, in Azure's, Gemini's or MiniMax's form."""
    blocked = holder.get("promptFeedback") or holder.get("prompt_feedback")
    if isinstance(blocked, Mapping) and (blocked.get("blockReason") or blocked.get("block_reason")):
        return True
    if holder.get("input_sensitive") is True or holder.get("output_sensitive") is True:
        return True
    verdicts = holder.get("content_filter_results") or holder.get("content_filter_result")
    if not isinstance(verdicts, Mapping):
        return False
    categories = cast("Mapping[str, Any]", verdicts).values()
    return any(isinstance(one, Mapping) and one.get("filtered") is True for one in categories)
