"""How fast a local model decides, beside llama.cpp with its own settings: the same file, threads and requests.

The requests are those of the social model, in the order in which its agents ask. `ours` is what a run does. `llama.cpp`
is its server with its own settings: flash attention, weights rearranged for the processor, and prompts read from
wherever they differ from the last one, with which a reply depends on what was asked before. `no grammar` is ours with
replies that may be anything, and so differ in length. A token read from the cache costs nothing. Times are seconds of a
request; on a machine that does something else meanwhile, look at those of the processor.

    python benchmarks/local_model.py                          local:1.5b, eight requests, as many threads as a run has
    python benchmarks/local_model.py --llm local --threads 1 --requests 20 --json
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mesa_llm.llm.local.model import QUIET, EmbeddedModel, available_threads, chat_body
from mesa_llm.llm.local.profile import Profile, profile_of
from mesa_llm.llm.local.weights import model_file
from mesa_llm.llm.scripted import RandomLLM
from mesa_llm.records import Reply, Request
from mesa_llm_models.social.model import SocialModel

REPLY_TOKENS = 40
"""Maximum number of tokens of a reply."""

Send = Callable[[dict[str, Any], Callable[[dict[str, Any]], bool]], None]
"""Sends a body of llama.cpp's chat completions, and takes the chunks of the reply."""


@dataclass(frozen=True)
class Speed:
    """Measurements of one way to send the requests."""

    name: str
    seconds: float
    """Seconds of a request."""

    processor_s: float
    """Seconds of the processors of a request, added up over threads."""

    read: int
    """Tokens that were read, for all requests."""

    cached: int
    """Tokens that need not be read."""

    written: int
    """Tokens that were written."""


class _Listener(RandomLLM):
    """Keeps the requests of a run."""

    is_immediate = False
    ignores_prompt = False

    def __init__(self, needs_options: bool) -> None:
        self.needs_options = needs_options
        self.requests: list[Request] = []

    async def reply(self, request: Request) -> Reply:
        self.requests.append(request)
        return await super().reply(request)


def bodies_of(profile: Profile, n_requests: int) -> list[dict[str, Any]]:
    """Return the bodies of the requests of a social model, as they are sent to a local model."""
    listener = _Listener(profile.needs_options)
    with_posts = SocialModel(rng=1, llm=listener, n_agents=max(4, n_requests // 2))
    while len(listener.requests) < 2 * n_requests:
        with_posts.step()
    bodies = [chat_body(request, profile) for request in listener.requests[-n_requests:]]
    return [{**body, "max_tokens": min(REPLY_TOKENS, body["max_tokens"])} for body in bodies]


def default_server(path: Path, n_context: int, n_threads: int) -> Any:
    """Load a file with llama.cpp's own settings, in one slot."""
    native: Any = importlib.import_module("xllamacpp")
    parameters = native.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = n_context, 1, QUIET
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = n_threads
    return native.Server(parameters)


def measured(name: str, send: Send, bodies: list[dict[str, Any]]) -> Speed:
    """Send all requests in turn; the first is sent once before, as it loads the model."""
    usages: list[dict[str, Any]] = []

    def take(chunk: dict[str, Any]) -> bool:
        usages.extend([chunk["usage"]] if chunk.get("usage") else [])
        return False

    send(bodies[0], take)
    usages.clear()
    start, processor = time.perf_counter(), time.process_time()
    for body in bodies[1:]:
        send(body, take)
    n = len(bodies) - 1
    seconds, processor_s = (time.perf_counter() - start) / n, (time.process_time() - processor) / n
    cached = sum(usage.get("prompt_tokens_details", {}).get("cached_tokens", 0) for usage in usages)
    read = sum(usage["prompt_tokens"] for usage in usages) - cached
    return Speed(name, seconds, processor_s, read, cached, sum(usage["completion_tokens"] for usage in usages))


def speeds(llm: str, n_threads: int, n_requests: int) -> list[Speed]:
    """Measure a local model."""
    profile, own = profile_of(llm)
    path = own or model_file(profile)
    bodies = bodies_of(profile, n_requests + 1)
    free = [{name: value for name, value in body.items() if name != "grammar"} for body in bodies]
    model = EmbeddedModel(path, profile)
    found = [measured("ours", model.send, bodies), measured("no grammar", model.send, free)]
    n_context = model.context_tokens
    del model
    server = default_server(path, n_context, n_threads)
    return [*found, measured("llama.cpp", server.handle_chat_completions, bodies)]


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="local:1.5b")
    parser.add_argument("--threads", type=int, default=None, help="threads; by default those of a run")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.threads:
        os.environ["MESA_LLM_THREADS"] = str(options.threads)
    n_threads = profile_of(options.llm)[0].n_threads or available_threads()
    found = speeds(options.llm, n_threads, options.requests)
    if options.json:
        print(json.dumps({"llm": options.llm, "threads": n_threads, "speeds": [asdict(speed) for speed in found]}))
        return
    print(f"{options.llm}, {n_threads} threads, {options.requests} requests")
    for speed in found:
        tokens = f"{speed.read:6,} read {speed.cached:6,} cached {speed.written:5,} written"
        print(f"{speed.name:<12} {speed.seconds:6.2f} s {speed.processor_s:6.2f} s of processors {tokens}")
    print(f"ours reaches {found[-1].processor_s / found[0].processor_s:.0%} of llama.cpp's own speed")


if __name__ == "__main__":
    main()
