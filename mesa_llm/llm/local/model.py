"""The embedded language model: SmolLM2-135M-Instruct on one thread of this process.

It is a real model (tokens, time, faults) that needs neither key nor network, but it is far too small to play a person:
it shows that models can be asked, and nothing about behaviour. With one slot and one thread, its replies are the same
in every process and in any order, whatever was asked before; on a processor this is also the fastest setting.
"""

from __future__ import annotations

import asyncio
import importlib
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from mesa_llm.errors import ConfigError, Refused, ServerError
from mesa_llm.llm.local.chat import grammar, read_call, wire_messages
from mesa_llm.llm.local.probabilities import TOP_TOKENS, with_probabilities
from mesa_llm.llm.local.weights import model_file
from mesa_llm.llm.probabilities import Token, token_settings, tokens_in
from mesa_llm.records import Reply, Request

CONTEXT_TOKENS = 4096
"""Maximum number of tokens of a prompt and its reply together."""

QUIET = -1
"""Log level of llama.cpp at which it reports only errors in grammars."""

MAX_REPLY_TOKENS = 240
"""Maximum number of tokens of a reply, whatever a request allows; a longer one of this model is a loop."""

DEFAULTS: dict[str, Any] = {"repeat_penalty": 1.15}
"""Sampling settings unless the request has its own; without the penalty, a small model repeats itself."""


class LocalLLM:
    """The embedded model, which is downloaded and loaded at the first request and shared by all that use it."""

    needs_options = True
    max_in_flight = 1

    def __init__(self, path: Path | None = None) -> None:
        """Name the model.

        Args:
            path: A GGUF file; None: the one that `model_file` finds.
        """
        self.name = "local" if path is None else f"local:{path.name}"
        self._path = path
        self._model: EmbeddedModel | None = None

    async def reply(self, request: Request) -> Reply:
        """Send the request to the model; requests wait for each other.

        Cancelling removes a waiting request, and stops a running one at its next token.

        Raises:
            ConfigError: If xllamacpp or the model is missing.
            Refused: If the prompt is too long, or there is nothing that may be answered.
            ServerError: If the model failed.
        """
        if self._model is None:
            self._model = shared_model(self._path)
        start = time.perf_counter()
        stop = threading.Event()
        try:
            reply = await asyncio.wrap_future(self._model.submit(request, stop))
        finally:
            stop.set()
        return reply.timed(time.perf_counter() - start)

    async def close(self) -> None:
        """Release the model, which is unloaded once all its users have released it."""
        self._model = None


class EmbeddedModel:
    """A loaded model, and the one thread in which it runs."""

    def __init__(self, path: Path | None) -> None:
        """Name the model; it is loaded by the first request.

        Args:
            path: A GGUF file; None: the one that `model_file` finds.
        """
        self._path = path
        self._server: Any = None
        self._name = ""
        self._last_messages: list[dict[str, str]] = []
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="embedded-model")

    def submit(self, request: Request, stop: threading.Event) -> Future[Reply]:
        """Queue a request; setting `stop` ends it at its next token, or at its first one if it still waits."""
        return self._worker.submit(self._generate, request, stop)

    def _generate(self, request: Request, stop: threading.Event) -> Reply:
        """Reply to a request, on the model's thread, with the probabilities of its choices if it has any."""
        reply, tokens = self._run(request, stop)
        return with_probabilities(request, reply, tokens, lambda closer: self._run(closer, stop))

    def _run(self, request: Request, stop: threading.Event) -> tuple[Reply, list[Token]]:
        """Return the reply to a request, and its tokens if their alternatives were asked for."""
        stream = _Stream(stop)
        body = _body(request)
        # A prompt that is cached whole is evaluated by its last token alone, which rounds differently: the reply would
        # depend on what was asked before.
        body["cache_prompt"] = body["messages"] != self._last_messages
        self._last_messages = body["messages"]
        if self._server is None:
            path = self._path or model_file()
            self._server, self._name = _load(path), path.stem
        try:
            self._server.handle_chat_completions(body, stream.take)
        except RuntimeError as error:
            raise ServerError(f"the embedded model failed: {error}") from error
        return stream.as_reply(request, self._name), stream.tokens


class _Stream:
    """Collects what the model writes, token by token."""

    def __init__(self, stop: threading.Event) -> None:
        self.stop = stop
        self.texts: list[str] = []
        self.tokens: list[Token] = []
        self.finish = ""
        self.usage: dict[str, int] = {}
        self.error: dict[str, Any] | None = None

    def take(self, chunk: dict[str, Any]) -> bool:
        """Add one chunk; return True to stop the model."""
        self.error = chunk.get("error", self.error)
        self.usage = chunk.get("usage", self.usage)
        for choice in chunk.get("choices", ()):
            self.texts.append(choice["delta"].get("content") or "")
            self.tokens += tokens_in(choice.get("logprobs"))
            self.finish = choice["finish_reason"] or self.finish
        return self.stop.is_set()

    def as_reply(self, request: Request, model: str) -> Reply:
        """Return all chunks as one reply.

        Raises:
            Refused: If the model refused the request.
            ServerError: If it was stopped, or failed.
        """
        if self.error is not None:
            raise _trouble(self.error)
        if self.stop.is_set():
            raise ServerError("the embedded model was stopped")
        text = "".join(self.texts)
        call = read_call(text, request)
        return Reply(
            text="" if call else text,
            tool_calls=(call,) if call else (),
            prompt_tokens=self.usage.get("prompt_tokens", 0),
            reply_tokens=self.usage.get("completion_tokens", 0),
            dollars=0.0,
            model=model,
            finish=self.finish,
        )


def _trouble(error: dict[str, Any]) -> Refused | ServerError:
    """Convert an error of llama.cpp to one of ours."""
    if error.get("type") == "exceed_context_size_error":
        return Refused(
            f"the prompt has {error.get('n_prompt_tokens')} tokens, and the embedded model reads {CONTEXT_TOKENS}; "
            "let agents see or remember less, or use a larger model"
        )
    message = f"the embedded model failed: {error.get('message', error)}"
    return Refused(message) if 400 <= int(error.get("code", 500)) < 500 else ServerError(message)


def _body(request: Request) -> dict[str, Any]:
    """Return a request in the form of llama.cpp's chat completions."""
    body: dict[str, Any] = {**DEFAULTS, **request.settings}
    body["max_tokens"] = min(body.get("max_tokens", MAX_REPLY_TOKENS), MAX_REPLY_TOKENS)
    body.pop("reasoning_effort", None)
    body |= {"messages": wire_messages(request), "seed": request.salt.seed}
    body |= {"stream": True, "stream_options": {"include_usage": True}} | token_settings(request, TOP_TOKENS)
    gbnf = grammar(request)
    return body if gbnf is None else {**body, "grammar": gbnf}


def _load(path: Path) -> Any:
    """Load a model, which takes about half a second.

    Raises:
        ConfigError: If xllamacpp is missing, or the file is missing or not a model.
    """
    if not path.is_file():
        raise ConfigError(f"there is no model file {str(path)!r}; give a GGUF file, or none for the embedded model")
    try:
        native: Any = importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        advice = "install it with `pip install xllamacpp`, or choose another llm="
        raise ConfigError(f"llm='local' needs the package xllamacpp: {advice}") from error
    except ImportError as error:  # a library of the system is missing
        advice = "on Debian and Ubuntu, libgomp.so.1 comes with `apt-get install libgomp1`; or choose another llm="
        raise ConfigError(f"the package xllamacpp of llm='local' cannot be loaded: {error}; {advice}") from error
    parameters = native.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = CONTEXT_TOKENS
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = parameters.n_threads_http = 1
    parameters.n_gpu_layers = 0
    parameters.cache_ram_mib = 0
    parameters.fit_params = parameters.warmup = False
    # With flash attention, rounding depends on how many tokens are read at once, and so on what is cached: a reply
    # would depend on what was asked before. Without it, nothing is slower here.
    parameters.flash_attn_type = native.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.verbosity = QUIET
    try:
        return native.Server(parameters)
    except RuntimeError as error:
        raise ConfigError(f"{str(path)!r} cannot be loaded as a model: {error}") from error


def shared_model(path: Path | None) -> EmbeddedModel:
    """Return this process's model of a file, or a new one; it stays loaded as long as somebody uses it."""
    key = "" if path is None else str(path.resolve())
    with _LOADING:
        model = _MODELS.get(key)
        if model is None:
            model = _MODELS[key] = EmbeddedModel(path)
        return model


_LOADING = threading.Lock()
_MODELS: WeakValueDictionary[str, EmbeddedModel] = WeakValueDictionary()
