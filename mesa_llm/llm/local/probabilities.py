"""Probabilities of choices from the embedded model.

llama.cpp lists the alternatives to each token as they were before sampling: without a grammar, a temperature or a
penalty. So the grammar holds the reply to its form, and the probabilities are those of the model itself; what the
grammar would have excluded counts as off the list.
"""

from __future__ import annotations

from collections.abc import Callable

from mesa_llm.llm.probabilities import Token, Weighing, with_extra
from mesa_llm.records import Reply, Request

TOP_TOKENS = 100
"""Number of alternatives to each token that are listed: a small model spreads its probability wide."""


def with_probabilities(
    request: Request, reply: Reply, tokens: list[Token], generate: Callable[[Request], tuple[Reply, list[Token]]]
) -> Reply:
    """Add the probabilities of a request's choices to its reply, if it has choices and the reply holds one.

    Args:
        request: The request.
        reply: Its reply.
        tokens: The tokens of the reply.
        generate: Generates the reply to a request, and its tokens.
    """
    weighing = Weighing(request)
    if not request.choices or not weighing.read(tokens):
        return reply
    for closer in weighing.unresolved():
        extra, extra_tokens = generate(closer)
        reply = with_extra(reply, extra)
        weighing.resolve(closer, extra_tokens)
    return weighing.weighed(reply)
