"""Tokens of requests and replies: counted here, or as an endpoint reports them, and what they cost."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from mesa_llm.canonical import compact_json
from mesa_llm.llm.schema.flat import wire_tools
from mesa_llm.records import Request, Usage

MAX_TOKENS = 100_000_000
"""Maximum count of tokens that is believed."""

MAX_DOLLARS = 1_000.0
"""Maximum price of one reply that is believed, in US dollars."""

IMAGE_TOKENS = 1_000
"""Number of tokens that an image is counted as; providers count from a hundred to a few thousand."""

_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
"""Pattern by which the encoding `cl100k_base` cuts text before it joins bytes to tokens."""

_RANKS = ("litellm_core_utils", "tokenizers", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4")
"""File of that encoding, among those of litellm."""

_PRICES = "model_prices_and_context_window_backup.json"
"""File of litellm's price map."""

_USAGE = re.compile(r'"(?:usage|x_groq)"\s*:\s*(?=\{)')

PROVIDER_HOSTS = {
    "api.openai.com": "",
    "api.deepseek.com": "deepseek/",
    "api.mistral.ai": "mistral/",
    "api.groq.com": "groq/",
    "api.together.xyz": "together_ai/",
    "api.fireworks.ai": "fireworks_ai/",
    "api.x.ai": "xai/",
    "api.anthropic.com": "",
    "generativelanguage.googleapis.com": "gemini/",
    "api.cerebras.ai": "cerebras/",
    "api.perplexity.ai": "perplexity/",
    "api.moonshot.ai": "moonshot/",
    "openrouter.ai": "openrouter/",
}
"""Hosts whose models the price map knows, with the prefix of their names in it."""


# -- counted here


def count_tokens(sent: Request | str) -> int:
    """Estimate the number of tokens of a text or a request, schemas and tools included, as OpenAI's models count them.

    The encoding is `cl100k_base`, from litellm's files; litellm itself is not loaded. Other models' counts differ from
    it by some 10 to 30 %.

    Args:
        sent: A text, or a request, for which four tokens are added for each message.
    """
    if isinstance(sent, str):
        return _n_tokens(sent)
    n_images = sum(len(message.images) for message in sent.messages)
    n_text = len(_encoding().encode_ordinary("\n".join(_parts(sent))))
    return n_text + 4 * len(sent.messages) + IMAGE_TOKENS * n_images


@lru_cache(maxsize=64)
def _n_tokens(text: str) -> int:
    """Count the tokens of a text. Agents often reply the same; a word of 200,000 letters takes a tenth of a second."""
    return len(_encoding().encode_ordinary(text))


def size_of(request: Request) -> int:
    """Return the number of characters that a request sends, to which its tokens are about proportional."""
    size = sum([len(message.content) + 16 for message in request.messages])
    size += sum([len(tool.description) + len(str(tool.parameters)) for tool in request.tools])
    return size + (0 if request.schema is None else len(str(request.schema)))


def _parts(request: Request) -> list[str]:
    """Return the texts of a request."""
    tools = wire_tools(request.tools, request.options) if request.tools else []
    calls = [dict(call.arguments) for message in request.messages for call in message.tool_calls]
    parts = [message.content for message in request.messages]
    return parts + [compact_json(part).decode() for part in (tools, calls, request.schema) if part]


@cache
def _encoding() -> Any:
    """Load the encoding, which takes half a second."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    ranks = load_tiktoken_bpe(str(litellm_folder().joinpath(*_RANKS)))
    return tiktoken.Encoding("cl100k_base", pat_str=_WORDS, mergeable_ranks=ranks, special_tokens={})


def litellm_folder() -> Path:
    """Return litellm's folder, without importing it."""
    spec = find_spec("litellm")
    return Path(cast("Any", spec).submodule_search_locations[0])


# -- reported


def usage_in(body: object) -> Usage | None:
    """Read the usage in the parsed JSON of a response, whichever names an endpoint gives its counts.

    Tokens of a prompt that were cached are part of `prompt_tokens`, as OpenAI counts them; where an endpoint in
    Anthropic's form counts them beside `input_tokens`, they are added.

    Returns:
        The usage of one request; None if none is reported.
    """
    fields: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    usage = fields.get("usage")
    if type(usage) is dict and _PLAIN.issuperset(usage):  # as most endpoints report it
        prompt, reply = count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens"))
        return Usage(0, 0, prompt, reply, 0.0, 0, 1) if prompt or reply else None
    if not isinstance(usage, Mapping):
        groq = fields.get("x_groq")
        usage = cast("Mapping[str, Any]", groq).get("usage") if isinstance(groq, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    return _usage_of(cast("Mapping[str, Any]", usage))


_PLAIN = frozenset({"prompt_tokens", "completion_tokens", "total_tokens"})
"""Counts without details."""


def _usage_of(usage: Mapping[str, Any]) -> Usage | None:
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    detail_fields = cast("Mapping[str, Any]", details) if isinstance(details, Mapping) else {}
    cached = _first_count(
        detail_fields.get("cached_tokens"), usage.get("prompt_cache_hit_tokens"), usage.get("cache_read_input_tokens")
    )
    stored = _first_count(detail_fields.get("cache_creation_tokens"), usage.get("cache_creation_input_tokens"))
    prompt = count_of(usage.get("prompt_tokens"))
    if not prompt:
        prompt = count_of(usage.get("input_tokens"))
        if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
            prompt += cached + stored
    if not prompt:
        prompt = cached + count_of(usage.get("prompt_cache_miss_tokens"))
    reply = _first_count(usage.get("completion_tokens"), usage.get("output_tokens"))
    dollars = dollars_of(usage.get("cost"))
    if not (prompt or reply or dollars):
        return None
    cached = min(cached, prompt)
    stored = min(stored, prompt - cached)
    return Usage(0, 0, prompt, reply, dollars or 0.0, 0, 1, cached, stored)


def usage_in_text(body: bytes) -> Usage | None:
    """Read the usage in the body of a response that may be no JSON: cut, in server-sent events, or beside other text.

    Returns:
        The last usage that stands in it whole; None if there is none.
    """
    text = body.decode("utf-8", "replace")
    for match in reversed(list(_USAGE.finditer(text))):
        try:
            usage, _ = json.JSONDecoder().raw_decode(text, match.end())
        except (ValueError, RecursionError):
            continue
        if (found := usage_in({"usage": usage}) or usage_in({"x_groq": usage})) is not None:
            return found
    return None


def usage_of_failure(status: int, body: bytes) -> Usage | None:
    """Return the usage of a request whose response holds no reply.

    Returns:
        What the body reports; nothing for a status of error without a report; None if nothing is known.
    """
    return usage_in_text(body) or (Usage(requests=1) if status >= 300 else None)


def count_of(value: object) -> int:
    """Return a count of tokens; 0 for anything else."""
    return value if type(value) is int and 0 <= value <= MAX_TOKENS else 0


def _first_count(*values: object) -> int:
    """Return the first count above 0."""
    return next((count for count in map(count_of, values) if count), 0)


def dollars_of(value: object) -> float | None:
    """Return a price in US dollars; None for anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        return None
    return float(value) if 0 <= value <= MAX_DOLLARS else None


# -- priced


BATCH_SHARE = 0.5
"""Price of a token in a batch as a share of its usual price, where the price map has none of its own: OpenAI's and
Anthropic's."""


def price(
    model: str,
    prompt_tokens: int,
    reply_tokens: int,
    cached_tokens: int = 0,
    stored_tokens: int = 0,
    *,
    is_batch: bool = False,
) -> float | None:
    """Look up the price of tokens in litellm's price map; litellm itself is not loaded.

    Args:
        model: The litellm id.
        prompt_tokens: Number of tokens that the model reads, cached ones included.
        reply_tokens: Number of tokens that it writes.
        cached_tokens: Number of tokens of the prompt that come from the provider's cache.
        stored_tokens: Number of tokens of the prompt that the provider stores in its cache.
        is_batch: Whether they are those of a batch.

    Returns:
        US dollars; None where the map has no price. Cached tokens cost as much as others where it has no price of
        their own.
    """
    prices = _batch_prices(prices_of(model)) if is_batch else prices_of(model)
    prompt_price, reply_price = prices.get("input_cost_per_token"), prices.get("output_cost_per_token")
    if prompt_price is None or reply_price is None:
        return None
    cached_price = prices.get("cache_read_input_token_cost")
    stored_price = prices.get("cache_creation_input_token_cost")
    dollars = (prompt_tokens - cached_tokens - stored_tokens) * prompt_price + reply_tokens * reply_price
    dollars += cached_tokens * (prompt_price if cached_price is None else cached_price)
    return dollars + stored_tokens * (prompt_price if stored_price is None else stored_price)


def price_of(model: str, usage: Usage, *, is_batch: bool = False) -> float | None:
    """Look up the price of a usage as `price` does."""
    tokens = usage.prompt_tokens, usage.reply_tokens, usage.cached_tokens, usage.stored_tokens
    return price(model, *tokens, is_batch=is_batch)


def _batch_prices(prices: Mapping[str, Any]) -> dict[str, float]:
    """Return the prices of tokens in a batch."""
    usual = {name: prices[name] for name in _TOKEN_PRICES if prices.get(name) is not None}
    own = {name: prices.get(f"{name}_batches") for name in usual}
    return {name: dollars * BATCH_SHARE if (batch := own[name]) is None else batch for name, dollars in usual.items()}


_TOKEN_PRICES = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
"""Prices of the map."""


def is_priced(model: str) -> bool:
    """Check whether the price map holds a model by exactly this litellm id; litellm itself is not loaded."""
    return model in _price_map()


def prices_of(model: str) -> Mapping[str, Any]:
    """Return what the price map holds of a model, by its litellm id; empty if it holds nothing."""
    litellm = sys.modules.get("litellm")
    prices: Mapping[str, Any] = getattr(litellm, "model_cost", None) or _price_map()
    return prices.get(model) or prices.get(model.partition("/")[2]) or {}


def name_at(host: str, model: str) -> str | None:
    """Return the litellm id under which the price map may know a model of a provider's host; None for other hosts."""
    prefix = PROVIDER_HOSTS.get(host)
    return None if prefix is None else f"{prefix}{model}"


@cache
def _price_map() -> Mapping[str, Any]:
    return json.loads(litellm_folder().joinpath(_PRICES).read_bytes())
