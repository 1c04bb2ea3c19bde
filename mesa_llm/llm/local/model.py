"""Language models that run in this process, from a GGUF file, through llama.cpp.

They need neither key nor network. With one slot and without flash attention, a reply is the same in every process and
in any order, whatever was asked before and however many threads there are; `prefix` says what that takes.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import time
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from mesa_llm.errors import ConfigError, Refused, ServerError
from mesa_llm.llm.local.chat import grammar, read_calls, reply_form, wire_messages
from mesa_llm.llm.local.conversations import Conversations, begins_replies, delete_states, states_folder
from mesa_llm.llm.local.decoder import Decoder, ReplyStopped, Stream, Written
from mesa_llm.llm.local.gguf import context_of, require_model, sampling_of
from mesa_llm.llm.local.identity import weights_of
from mesa_llm.llm.local.probabilities import TOP_TOKENS, with_probabilities
from mesa_llm.llm.local.profile import KNOWN, PREFIX, SMALLEST, Profile
from mesa_llm.llm.local.weights import model_file
from mesa_llm.llm.probabilities import Token, token_settings
from mesa_llm.records import Reply, Request

BATCH_TOKENS = 2048
"""Number of tokens that are read at once; what is left of a longer prompt might be too few to round as many do."""

QUIET = -1
"""Log level of llama.cpp at which it reports only errors in grammars."""


class LocalLLM:
    """A local model, which is downloaded and loaded at the first request and shared by all that use it."""

    max_in_flight = 1
    takes_adapters = False
    gives_probabilities = True

    def __init__(self, path: Path | None = None, profile: Profile | None = None) -> None:
        """Name the model.

        Args:
            path: A GGUF file; None: the one that `model_file` finds for the profile.
            profile: How the model is asked; None: the embedded model, or any capable one if there is a path.
        """
        self.profile = profile or (SMALLEST if path is None else Profile(PREFIX + path.name))
        self.name = self.profile.name
        self.needs_options = self.profile.needs_options
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
            self._model = shared_model(self._path, self.profile)
        start = time.perf_counter()
        stop = threading.Event()
        try:
            reply = await asyncio.wrap_future(self._model.submit(request, stop))
        finally:
            stop.set()
        return reply.timed(time.perf_counter() - start)

    def weights(self) -> dict[str, Any]:
        """Return what is known of the weights, without downloading them; see `weights_of`."""
        return weights_of(self._path, self.profile)

    def wire_text(self, request: Request) -> str:
        """Describe what is sent beside the messages: the form of the reply in words, and its grammar."""
        try:
            gbnf = grammar(request, self.profile) or ""
        except Refused:
            return ""
        return "\n\n".join(filter(None, (reply_form(request, self.profile), gbnf.rstrip())))

    async def close(self) -> None:
        """Release the model, which is unloaded once all its users have released it."""
        self._model = None


class EmbeddedModel:
    """A loaded model, and the one thread that it is asked in."""

    def __init__(self, path: Path | None, profile: Profile, *, is_plain: bool = False) -> None:
        """Name the model; it is loaded by the first request.

        Args:
            path: A GGUF file; None: the one that `model_file` finds.
            profile: How the model is asked.
            is_plain: Whether llama.cpp writes all of a reply, and only the last prompt is kept, for measurements.
        """
        self.profile = profile
        self.context_tokens = 0
        self._path = path
        self._is_plain = is_plain
        self._server: Any = None
        self._file_name = ""
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
        written = self.write(chat_body(request, self.profile), stop)
        calls = read_calls(written.text, request)
        reply = Reply(
            text="" if calls else written.text,
            tool_calls=calls,
            prompt_tokens=written.n_prompt,
            reply_tokens=written.n_reply,
            dollars=0.0,
            model=self._file_name,
            finish=written.finish,
        )
        return reply, written.tokens

    def write(self, body: dict[str, Any], stop: threading.Event) -> Written:
        """Write the reply to a body of llama.cpp's chat completions, on the model's thread.

        Args:
            body: The body, with `messages`.
            stop: Set where the reply is no longer wanted.

        Raises:
            ConfigError: If xllamacpp or the model is missing.
            Refused: If the model refused the request.
            ServerError: If the model was stopped, or failed.
        """
        if self._server is None:
            self._load()
        try:
            if self._is_plain:
                return self._written_plainly(body, stop)
            return self._decoder.write(body, stop)
        except ReplyStopped as stopped:
            if stopped.error is None:
                raise ServerError("the embedded model was stopped") from None
            raise _trouble(stopped.error, self.context_tokens) from None
        except RuntimeError as error:
            raise ServerError(f"the embedded model failed: {error}") from error

    @property
    def n_read(self) -> int:
        """Number of tokens of prompts that it has read since it was loaded, without those that it kept."""
        return 0 if self._server is None else self._decoder.n_read

    def forget(self) -> None:
        """Forget what is kept of earlier prompts, on the model's thread or while nothing is asked."""
        if self._server is not None:
            self._decoder.forget()

    def _load(self) -> None:
        path = self._path or model_file(self.profile)
        folder = None if self._is_plain else states_folder()
        if folder is not None:
            weakref.finalize(self, delete_states, folder, os.getpid())
        try:
            server, self.context_tokens = load(path, self.profile, folder)
        except (OSError, MemoryError) as error:
            reason = str(error) or "there is not enough memory"
            raise ConfigError(f"{str(path)!r} cannot be loaded on this machine: {reason}") from error
        self._file_name = path.stem
        self._conversations = Conversations(server, folder)
        self._decoder = Decoder(server, self._conversations, sampling_of(path))
        self._is_plain = self._is_plain or not begins_replies(server)
        self._server = server

    def _written_plainly(self, body: dict[str, Any], stop: threading.Event) -> Written:
        """Have llama.cpp write all of a reply."""
        stream = Stream(stop)
        is_cached = self._conversations.prepare(body["messages"])
        self._server.handle_chat_completions({**body, "cache_prompt": is_cached}, stream.take)
        if stream.error is not None or stop.is_set():
            raise ReplyStopped(stream.error)
        self._conversations.hold(body["messages"])
        self._conversations.soil()
        self._decoder.n_read += stream.n_read
        n_prompt, n_reply = (stream.usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens"))
        return Written("".join(stream.texts), stream.tokens, stream.finish, n_prompt, n_reply)


def _trouble(error: dict[str, Any], context_tokens: int) -> Refused | ServerError:
    """Convert an error of llama.cpp to one of ours."""
    if error.get("type") == "exceed_context_size_error":
        return Refused(
            f"the prompt has {error.get('n_prompt_tokens')} tokens, and the embedded model reads {context_tokens}; "
            "let agents see or remember less, or use a larger model"
        )
    message = f"the embedded model failed: {error.get('message', error)}"
    return Refused(message) if 400 <= int(error.get("code", 500)) < 500 else ServerError(message)


def chat_body(request: Request, profile: Profile) -> dict[str, Any]:
    """Return a request in the form of llama.cpp's chat completions.

    Args:
        request: The request.
        profile: How the model is asked.

    Raises:
        Refused: If there is nothing that the model may write.
    """
    body: dict[str, Any] = {**profile.settings, **request.settings}
    if (limit := profile.max_reply_tokens) is not None:
        body["max_tokens"] = min(body.get("max_tokens", limit), limit)
    body.pop("reasoning_effort", None)
    body |= {"messages": wire_messages(request, profile), "seed": request.salt.seed}
    body |= {"stream": True, "stream_options": {"include_usage": True}} | token_settings(request, TOP_TOKENS)
    gbnf = grammar(request, profile)
    return body if gbnf is None else {**body, "grammar": gbnf}


def load(path: Path, profile: Profile, folder: Path | None = None) -> tuple[Any, int]:
    """Load a model, which takes a second for each gigabyte.

    Args:
        path: A GGUF file.
        profile: How the model is asked.
        folder: Folder in which the server saves states of the model; None: it saves none.

    Returns:
        The server, and the number of tokens of its context.

    Raises:
        ConfigError: If xllamacpp is missing, or the file is missing or not a model.
    """
    if not path.is_file():
        known = ", ".join(KNOWN)
        raise ConfigError(f"there is no model file {str(path)!r}; give a GGUF file, or one of {known}")
    require_model(path)
    try:
        native: Any = importlib.import_module("xllamacpp")
    except ModuleNotFoundError as error:
        advice = "install it with `pip install xllamacpp`, or choose another llm="
        raise ConfigError(f"llm={profile.name!r} needs the package xllamacpp: {advice}") from error
    except ImportError as error:  # a library of the system is missing
        advice = "on Debian and Ubuntu, libgomp.so.1 comes with `apt-get install libgomp1`; or choose another llm="
        raise ConfigError(f"the package xllamacpp of llm='local' cannot be loaded: {error}; {advice}") from error
    parameters = native.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = n_context = context_of(path, profile)
    parameters.n_parallel = 1
    n_threads = profile.n_threads or available_threads()
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = n_threads
    parameters.n_threads_http = 1
    parameters.n_gpu_layers = 0
    if folder is not None:
        parameters.slot_save_path = f"{folder}/"
    parameters.cache_ram_mib = 0
    parameters.fit_params = parameters.warmup = False
    # With flash attention, or with weights rearranged for the processor, rounding depends on how many tokens are read
    # at once, and so on what is cached: a reply would depend on what was asked before. Here, flash attention saves
    # nothing, and rearranged weights save a tenth of the time and take more memory.
    parameters.no_extra_bufts = True
    parameters.n_batch = parameters.n_ubatch = BATCH_TOKENS
    parameters.flash_attn_type = native.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    parameters.verbosity = QUIET
    try:
        return native.Server(parameters), n_context
    except RuntimeError as error:
        raise ConfigError(f"{str(path)!r} cannot be loaded as a model: {error}") from error


def available_threads() -> int:
    """Return the number of threads for a model: `MESA_LLM_THREADS`, or what this process may use of the processors.

    Raises:
        ConfigError: If `MESA_LLM_THREADS` is no positive whole number.
    """
    text = os.environ.get("MESA_LLM_THREADS", "").strip()
    if text:
        if not text.isdecimal() or int(text) < 1:
            raise ConfigError(f"MESA_LLM_THREADS must be a number of threads such as 2, got {text!r}")
        return int(text)
    affinity = getattr(os, "sched_getaffinity", None)
    n_processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    try:  # a container's share of the processors, in microseconds of a period
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(n_processors, int(quota) // int(period)))
    except (OSError, ValueError):
        return n_processors


def shared_model(path: Path | None, profile: Profile) -> EmbeddedModel:
    """Return this process's model of a file, or a new one; it stays loaded as long as somebody uses it."""
    key = profile.name if path is None else str(path.resolve())
    with _LOADING:
        model = _MODELS.get(key)
        if model is None:
            model = _MODELS[key] = EmbeddedModel(path, profile)
        return model


_LOADING = threading.Lock()
_MODELS: WeakValueDictionary[str, EmbeddedModel] = WeakValueDictionary()
