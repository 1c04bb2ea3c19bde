"""Probabilities of choices in the format of OpenAI's chat completions: `logprobs` and `top_logprobs`.

Endpoints list the alternatives as they were before sampling (OpenAI, llama.cpp's server, vLLM
unless it is started otherwise), whatever temperature is set and whatever a schema excludes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from mesa_llm.llm.budget import send_again
from mesa_llm.llm.probabilities import Token, Weighing, no_probabilities, tokens_in, with_extra
from mesa_llm.records import Reply, Request

Answered = tuple[Reply, list[Token]]
"""A reply, and its tokens; none unless their alternatives were asked for and returned."""


def tokens_of(body: object) -> list[Token]:
    """Return the tokens of a chat completion's first choice, whatever the body holds."""
    choices = cast("Mapping[str, Any]", body).get("choices") if isinstance(body, Mapping) else None
    first = cast("Sequence[Any]", choices)[0] if isinstance(choices, list) and choices else None
    return tokens_in(cast("Mapping[str, Any]", first).get("logprobs")) if isinstance(first, Mapping) else []


async def weighed(
    request: Request, answered: Answered, name: str, exchange: Callable[[Request], Awaitable[Answered]]
) -> Reply:
    """Add the probabilities of a request's choices to its reply, if the reply holds one of them.

    Args:
        request: The request.
        answered: Its reply, and the tokens of that.
        name: Name of the language model.
        exchange: Sends a request.

    Raises:
        NoProbabilities: If the endpoint returns no alternatives to tokens.
    """
    reply, tokens = answered
    if not reply.text.strip() or reply.finish in ("refusal", "content_filter"):
        return reply
    if not any(len(token.alternatives) > 1 for token in tokens):
        raise no_probabilities(name)
    weighing = Weighing(request)
    if not weighing.read(tokens):
        return reply
    for closer in weighing.unresolved():
        await send_again()
        extra, extra_tokens = await exchange(closer)
        reply = with_extra(reply, extra)
        weighing.resolve(closer, extra_tokens)
    return weighing.weighed(reply)
