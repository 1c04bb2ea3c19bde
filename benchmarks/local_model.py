"""How fast a local model decides, beside llama.cpp with its own settings: the same file, threads and requests.

The requests are those of the social model, in the order in which its agents ask. `ours` is what a run does. `llama.cpp`
is its server with its own settings: flash attention, weights rearranged for the processor, and prompts read from
wherever they differ from the last one, with which a reply depends on what was asked before. `--compare` takes the
first requests of other models, and compares what a run does with `plain`: llama.cpp writes all of a reply, what is
forced as well, and only the last prompt is kept. Times are seconds of a request; on a machine that does something else
meanwhile, look at those of the processor.

    python benchmarks/local_model.py                          local:1.5b, eight requests, as many threads as a run has
    python benchmarks/local_model.py --llm local --threads 1 --requests 20 --json
    python benchmarks/local_model.py --llm local --requests 20 --compare el_farol schelling sotopia three_worlds
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mesa_llm.llm.local.decoder import Stream
from mesa_llm.llm.local.model import QUIET, EmbeddedModel, available_threads, chat_body
from mesa_llm.llm.local.profile import Profile, profile_of
from mesa_llm.llm.local.weights import model_file
from mesa_llm.llm.scripted import RandomLLM
from mesa_llm.records import Reply, Request
from mesa_llm.registry import find_model
from mesa_llm_models.social.model import SocialModel

REPLY_TOKENS = 40
"""Maximum number of tokens of a reply."""


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


def bodies_of(profile: Profile, n_requests: int, name: str = "social") -> list[dict[str, Any]]:
    """Return the bodies of the first requests of a model, as they are sent to a local model.

    Args:
        profile: How the model is asked.
        n_requests: Number of requests.
        name: Name of the model, which runs as it is by default; the social one has as many agents as are needed.
    """
    listener = _Listener(profile.needs_options)
    if name == "social":
        model = SocialModel(rng=1, llm=listener, n_agents=max(4, n_requests // 2))
        while len(listener.requests) < 2 * n_requests:
            model.step()
        asked = listener.requests[-n_requests:]
    else:
        model = find_model(name).load()(rng=1, llm=listener)
        while len(listener.requests) < n_requests and model.running:
            model.step()
        asked = listener.requests[:n_requests]
    bodies = [chat_body(request, profile) for request in asked]
    return [{**body, "max_tokens": min(REPLY_TOKENS, body["max_tokens"])} for body in bodies]


def default_server(path: Path, n_context: int, n_threads: int) -> Any:
    """Load a file with llama.cpp's own settings, in one slot."""
    native: Any = importlib.import_module("xllamacpp")
    parameters = native.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx, parameters.n_parallel, parameters.verbosity = n_context, 1, QUIET
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = n_threads
    return native.Server(parameters)


def measured(name: str, model: EmbeddedModel, bodies: list[dict[str, Any]]) -> Speed:
    """Send all requests in turn to a model that was loaded before and keeps nothing yet."""
    go_on = threading.Event()
    model.write({"messages": [{"role": "user", "content": "Yes?"}], "max_tokens": 1, "seed": 1}, go_on)
    model.forget()
    n_before, start, processor = model.n_read, time.perf_counter(), time.process_time()
    written = [model.write(body, go_on) for body in bodies]
    seconds, processor_s = time.perf_counter() - start, time.process_time() - processor
    n_read, n = model.n_read - n_before, len(bodies)
    n_prompts = sum(one.n_prompt for one in written)
    n_written = sum(one.n_reply for one in written)
    return Speed(name, seconds / n, processor_s / n, n_read, max(0, n_prompts - n_read), n_written)


def measured_default(server: Any, bodies: list[dict[str, Any]]) -> Speed:
    """Send all requests in turn to llama.cpp with its own settings; the first is sent once before."""
    server.handle_chat_completions(bodies[0], Stream(threading.Event()).take)
    found = [Stream(threading.Event()) for _ in bodies]
    n, start, processor = len(bodies), time.perf_counter(), time.process_time()
    for body, stream in zip(bodies, found, strict=True):
        server.handle_chat_completions(body, stream.take)
    seconds, processor_s = (time.perf_counter() - start) / n, (time.process_time() - processor) / n
    n_read, n_prompts, n_written = (
        sum(count)
        for count in zip(
            *((one.n_read, one.usage["prompt_tokens"], one.usage["completion_tokens"]) for one in found), strict=True
        )
    )
    return Speed("llama.cpp", seconds, processor_s, n_read, n_prompts - n_read, n_written)


def speeds(llm: str, n_threads: int, n_requests: int) -> list[Speed]:
    """Measure a local model, beside llama.cpp with its own settings."""
    profile, own = profile_of(llm)
    path = own or model_file(profile)
    bodies = bodies_of(profile, n_requests)
    model = EmbeddedModel(path, profile)
    found = [measured("ours", model, bodies)]
    n_context = model.context_tokens
    del model
    return [*found, measured_default(default_server(path, n_context, n_threads), bodies)]


def comparisons(llm: str, models: Sequence[str], n_requests: int) -> dict[str, list[Speed]]:
    """Measure what is gained by what is kept and drawn, for the requests of some models.

    Returns:
        Name of a model → the plain way, in which llama.cpp writes all of a reply and only the last prompt is kept, and
        the way of a run.
    """
    profile, own = profile_of(llm)
    path = own or model_file(profile)
    ways = (("plain", EmbeddedModel(path, profile, is_plain=True)), ("ours", EmbeddedModel(path, profile)))
    found: dict[str, list[Speed]] = {}
    for name in models:
        bodies = bodies_of(profile, n_requests, name)
        found[name] = [measured(way, model, bodies) for way, model in ways]
    return found


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", default="local:1.5b")
    parser.add_argument("--threads", type=int, default=None, help="threads; by default those of a run")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--compare", nargs="+", metavar="MODEL", default=[], help="models, each with and without")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.threads:
        os.environ["MESA_LLM_THREADS"] = str(options.threads)
    n_threads = profile_of(options.llm)[0].n_threads or available_threads()
    heading = {"llm": options.llm, "threads": n_threads, "requests": options.requests}
    if options.compare:
        compared = comparisons(options.llm, options.compare, options.requests)
    else:
        compared = {"social": speeds(options.llm, n_threads, options.requests)}
    if options.json:
        print(json.dumps(heading | {name: [asdict(speed) for speed in found] for name, found in compared.items()}))
        return
    print(f"{options.llm}, {n_threads} threads, {options.requests} requests a model")
    for name, found in compared.items():
        for speed in found:
            tokens = f"{speed.read:6,} read {speed.cached:6,} kept {speed.written:5,} written"
            times = f"{speed.seconds:6.2f} s {speed.processor_s:6.2f} s of processors"
            print(f"{name:<16} {speed.name:<10} {times} {tokens}")
        first, second = found if options.compare else reversed(found)
        gain, fewer = first.processor_s / second.processor_s, 1 - second.read / max(1, first.read)
        print(f"{name:<16} {gain:.1f} times as fast as {first.name}, {fewer:.0%} fewer tokens read")


if __name__ == "__main__":
    main()
