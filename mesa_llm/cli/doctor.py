"""`mesa-llm doctor`: what an endpoint supports, which settings it needs, and what is installed here."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import textwrap
import time as clock
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, TypeVar

import typer

from mesa_llm.cli.command import DIFFERENT, command, say
from mesa_llm.cli.options import AsJson, Flags
from mesa_llm.engine.access import Access
from mesa_llm.engine.event_loop import submit
from mesa_llm.engine.options import AccessOptions, RunOptions, option
from mesa_llm.errors import ConfigError, MesaLLMError, TransportError
from mesa_llm.experiments.persona import contrast_heading, contrast_line, persona_contrast
from mesa_llm.llm.budget import Budget
from mesa_llm.llm.endpoints import CONFIG_FILE, read_endpoints
from mesa_llm.llm.local.profile import KNOWN
from mesa_llm.llm.local.weights import cache_folder, is_present, model_file
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.truncation_detector import CHARACTERS_A_TOKEN
from mesa_llm.llm.protocol import LLM
from mesa_llm.records import ChatMessage, Reply, Request, Salt, ToolCall, ToolSpec
from mesa_llm.runlog.versions import PACKAGES, versions
from mesa_llm.text import clip, counted

PROVIDER_KEYS = {
    "OpenAI": "OPENAI_API_KEY",
    "Anthropic": "ANTHROPIC_API_KEY",
    "Google Gemini": "GEMINI_API_KEY",
    "Mistral": "MISTRAL_API_KEY",
    "Groq": "GROQ_API_KEY",
    "DeepSeek": "DEEPSEEK_API_KEY",
    "OpenRouter": "OPENROUTER_API_KEY",
    "Together": "TOGETHERAI_API_KEY",
    "Azure": "AZURE_API_KEY",
    "own endpoint": "MESA_LLM_API_KEY",
}
"""Environment variables for the keys of providers; only the names are ever shown."""

REPLY_TOKENS = 200
"""Maximum number of tokens of a reply to a probe, enough for a model that reasons."""

WIDTH = 16
"""Width of the first column, in characters."""

AT_ONCE = 4
"""Number of requests that are sent at once."""

SLOW_DOWN = 2.0
"""Ratio of the time for concurrent requests to that for the same requests in turn, above which they slow each other
down."""

SYSTEM = "You are Ann, who lives in a village by the sea."

_VOTE = {
    "type": "object",
    "properties": {"vote": {"enum": ["yes", "no"]}, "score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["vote", "score"],
    "additionalProperties": False,
}


def _action(name: str, description: str, **arguments: Any) -> ToolSpec:
    parameters = {
        "type": "object",
        "properties": arguments,
        "required": list(arguments),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, parameters, is_action=True)


_ACTIONS = (
    _action("rest", "Rest for a while."),
    _action("walk", "Walk along the beach.", minutes={"type": "integer", "minimum": 5, "maximum": 60}),
)


NO_RUN = {
    name: "single answers are compared, and no log is kept"
    for name in RunOptions.model_fields
    if name not in AccessOptions.model_fields and name != "scoring"
}
"""Options that an examination lacks, and why."""


@command("doctor")
def doctor(
    options: Annotated[RunOptions, Flags(without=NO_RUN)],
    llm: Annotated[
        str | None,
        typer.Option(help="Model to examine: NAME with --api-base, NAME@URL, a named endpoint, local, and so on."),
    ] = None,
    characters: Annotated[
        int, typer.Option(min=0, help="Length of the long prompt in characters; 0 sends none.")
    ] = 20_000,
    persona: Annotated[
        bool, typer.Option("--persona", help="Show instead how far the model reacts to contrasting personas.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Examine a language model: what its endpoint supports, and which settings it needs.

    Sends about a dozen short requests and one long one; exits with 1 if
    the model gives no usable reply. Without --llm, describes this
    installation: versions, keys, endpoints, broken models and the
    embedded language model. With --persona, sends about a hundred short
    requests through the project's models: five traits, giving,
    cooperating, two opinions and a risk, each with two opposite personas.
    """
    given = {name: value for name, value in options if value != option(name).default and value != {}}
    if llm is None and (persona or given.keys() - {"timeout_s"}):
        flag = "persona" if persona else min(given.keys() - {"timeout_s"}).replace("_", "-")
        raise ConfigError(f"--{flag} needs --llm NAME, the name of the model to examine")
    if llm is None:
        _print_check_up(as_json=as_json)
    elif persona:
        _print_contrasts(llm, options, as_json=as_json)
    elif unused := set(given) - {"api_base", "timeout_s"}:
        raise ConfigError(f"--{min(unused).replace('_', '-')} is for the runs of --persona; an examination has none")
    elif not _print_examination(llm, options, characters, as_json=as_json):
        raise typer.Exit(DIFFERENT)


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """Result of one probe."""

    about: str
    """Subject of the probe."""

    result: str
    """Result, as text."""

    is_good: bool = True
    """Whether nothing needs attention."""

    advice: str = ""
    """Advice; empty: none."""


@dataclass(slots=True)
class Examination:
    """Results of all probes of a model."""

    name: str
    """Model and address."""

    is_usable: bool = False
    """Whether it gives usable replies."""

    entries: list[ProbeResult] = field(default_factory=list)
    """Results, in order."""

    requests: int = 0
    """Number of requests sent."""

    report: Callable[[ProbeResult], None] | None = None
    """Called with each result as it arrives."""

    def add(self, about: str, result: str, advice: str = "", *, is_good: bool | None = None) -> None:
        """Add a result; without advice it is good, unless `is_good` is given."""
        self.entries.append(ProbeResult(about, result, not advice if is_good is None else is_good, advice))
        if self.report is not None:
            self.report(self.entries[-1])

    @property
    def written(self) -> dict[str, Any]:
        """The results as plain values."""
        entries = [asdict(entry) for entry in self.entries]
        return {"name": self.name, "is_usable": self.is_usable, "requests": self.requests, "findings": entries}


# -- a model


def examine(
    llm: str,
    api_base: str | None,
    *,
    timeout_s: float,
    n_characters: int,
    report: Callable[[ProbeResult], None] | None = None,
) -> Examination:
    """Examine a language model with about a dozen requests.

    Args:
        llm: Model string.
        api_base: Base URL of its endpoint, if that is not in the string.
        timeout_s: Seconds to wait for each reply.
        n_characters: Length of the long prompt in characters; 0 sends none.
        report: Called with each result as it arrives.

    Raises:
        ConfigError: If the model cannot be opened, or its key, address or name is wrong.
    """
    access = Access(api_base=api_base, timeout_s=timeout_s, attempts=1)
    opened = access.open(llm)
    probe = _Probe(opened.transport, Examination(opened.name, report=report))
    try:
        with _quiet():
            _wait(probe.run(n_characters))
    finally:
        access.close()
    return probe.findings


def _wait(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end; Ctrl-C cancels it."""
    future = submit(work)
    try:
        future.result()
    except BaseException:
        future.cancel()
        raise


@contextmanager
def _quiet() -> Generator[None]:
    """Log no warnings, whose content is among the results."""
    logger = logging.getLogger("mesa_llm.llm")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


T = TypeVar("T")


def _layer(llm: LLM, kind: type[T]) -> T | None:
    """Return the layer of a route that is of a class; None if there is none."""
    inner: Any = llm
    while inner is not None and not isinstance(inner, kind):
        inner = getattr(inner, "inner", None)
    return inner


class _Probe:
    """Sends one model the requests that show what it supports."""

    def __init__(self, llm: LLM, findings: Examination) -> None:
        self.llm = llm
        self.findings = findings
        self.client = _layer(llm, OpenAIHTTP)
        self.budget = _layer(llm, Budget)

    @property
    def dialect(self) -> Dialect:
        return Dialect() if self.client is None else self.client.dialect

    async def run(self, n_characters: int) -> None:
        """Send the probes in turn; without a first reply, none of the others."""
        if not await self.look_at_replies():
            return
        await self.look_at_schema()
        await self.look_at_tools()
        await self.look_at_messages()
        await self.look_at_seed()
        await self.look_at_load()
        if n_characters:
            await self.look_at_long_prompt(n_characters)
        self.look_at_rest()

    async def ask(
        self, *messages: ChatMessage, number: int = 0, temperature: float = 0.0, **fields: Any
    ) -> Reply | str:
        """Send a request and return the reply, or the error as text."""
        settings = {"temperature": temperature, "max_tokens": fields.pop("max_tokens", REPLY_TOKENS)}
        request = Request(self.findings.name, messages, Salt(1, number, 0, "doctor", 0), settings=settings, **fields)
        try:
            reply = await self.llm.reply(request)
        except TransportError as error:
            self.findings.requests += 1
            return _reason(str(error))
        self.findings.requests += reply.attempts
        return reply

    async def look_at_replies(self) -> bool:
        """Ask for a few words, and return whether there was a reply."""
        add = self.findings.add
        reply = await self.ask(ChatMessage("system", SYSTEM), _user("Say hello in one sentence."))
        if isinstance(reply, str):
            add("replies", f"none: {reply}", "check that the server is running, and raise --timeout-s if it is slow")
            return False
        speed = f", {reply.reply_tokens / reply.latency_s:.0f} tokens a second" if reply.reply_tokens else ""
        if reply.text.strip():
            add("replies", f"after {_seconds(reply.latency_s)}{speed}: {clip(reply.text.strip(), 60)!r}")
        elif reply.reasoning:
            more = "it uses them up for reasoning: raise --reply-tokens or lower reasoning_effort"
            add("replies", f"only reasoning within {REPLY_TOKENS} tokens{speed}", more)
        else:
            add("replies", f"empty after {_seconds(reply.latency_s)}", "check the model and its chat template")
        if reply.model and reply.model not in self.findings.name:
            add("model", f"reports its name as {clip(reply.model, 60)!r}")
        self.findings.is_usable = bool(reply.text.strip() or reply.reasoning)
        counts_here = self.budget is not None and self.budget.counts_here
        is_reported = reply.prompt_tokens > 0 and reply.reply_tokens > 0 and not counts_here
        counts = f"{reply.prompt_tokens} tokens read, {reply.reply_tokens} written"
        advice = "budgets of tokens and dollars are estimated; only --max-calls is exact"
        add("usage", counts if is_reported else "not reported", "" if is_reported else advice)
        add("reasoning", "returned separately from the text" if reply.reasoning else "not returned separately")
        return True

    async def look_at_schema(self) -> None:
        """Ask for an answer in a form, and again with a description if the endpoint needs one."""
        question = _user("Shall the village build a new pier?")
        first = await self.ask(question, schema=_VOTE)
        reply = await self.ask(question, schema=_VOTE, number=1) if self.dialect != Dialect() else first
        if isinstance(reply, str):
            self.findings.add("answers in a form", f"none: {reply}", "questions of a survey will fail")
            return
        ways = {
            "schema": "constrained by a JSON schema",
            "object": "constrained to JSON; the form is described in words",
        }
        way = ways.get(self.dialect.schema, "described in words only")
        if self.dialect.schema_words:
            way = "a JSON schema is accepted but not obeyed; the form is described in words"
        elif self.dialect.keywords:
            way += f", without {', '.join(sorted(self.dialect.keywords))}"
        fits = _fits(reply.text)
        result = way if fits else f"{way}; the reply does not fit: {clip(reply.text.strip(), 60)!r}"
        more = "--parser MODEL repairs malformed replies; a larger model needs no repair"
        if reply.finish == "length":
            more = f"the reply was cut after {REPLY_TOKENS} tokens; {more}"
        self.findings.add("answers in a form", result, "" if fits else more)

    async def look_at_tools(self) -> None:
        """Ask for an action, and again with a description if the endpoint needs one."""
        messages = (ChatMessage("system", SYSTEM), _user("The sun shines. What do you do?"))
        reply = await self.ask(*messages, tools=_ACTIONS)
        if isinstance(reply, Reply) and not reply.tool_calls:
            reply = await self.ask(*messages, tools=_ACTIONS, number=1)
        if isinstance(reply, str):
            self.findings.add("actions", f"none: {reply}", "agents will do nothing")
            return
        dialect = self.dialect
        way = {
            "required": "called as tools",
            "auto": "called as tools, if the model chooses to",
            "none": "called as tools",
        }
        text = way[dialect.choice]
        if not dialect.tools:
            held = ", and constrained by a JSON schema" if dialect.schema == "schema" else ""
            text = f"tools are not supported: they are described in words{held}"
        call = reply.tool_calls[0] if reply.tool_calls else _call_in(reply.text)
        if call is None or call.name not in {tool.name for tool in _ACTIONS}:
            text += f"; the reply names none: {clip(reply.text.strip() or str(call), 60)!r}"
            self.findings.add("actions", text, "--parser MODEL repairs malformed replies; or use a larger model")
        else:
            self.findings.add("actions", f"{text}: {call}")

    async def look_at_messages(self) -> None:
        """Send what strict chat templates refuse: later system messages, consecutive turns, tool results."""
        call = ToolCall("look", {}, "call_0")
        look = ToolSpec("look", "Look around.", {"type": "object", "properties": {}, "additionalProperties": False})
        talk = (ChatMessage("system", SYSTEM), ChatMessage("assistant", "Good morning."), _user("It is noon."))
        talk = (*talk, _user("Look around."), ChatMessage("assistant", "", (call,)))
        talk = (*talk, ChatMessage("tool", "A boat.", call_id="call_0"), _user("What do you see?"))
        reply = await self.ask(*talk, tools=(look, *_ACTIONS))
        dialect = self.dialect
        systems = {"any": "anywhere", "first": "only at the front: they are merged for you"}
        place = systems.get(dialect.system, "not supported: their text is put into the first user message")
        self.findings.add("system messages", place)
        turns = "user and assistant must alternate: consecutive ones are merged for you"
        self.findings.add("turns", turns if dialect.alternates else "in any order")
        if isinstance(reply, str):
            self.findings.add(
                "a conversation", f"fails: {reply}", "use memory=window or stream, which sends one message"
            )

    async def look_at_seed(self) -> None:
        """Send one request twice with one seed, and once with another."""
        question = _user("Name five things that can be found on a beach.")
        replies = [await self.ask(question, number=n, temperature=1.0, max_tokens=24) for n in (0, 0, 1)]
        texts = [reply.text or reply.reasoning for reply in replies if isinstance(reply, Reply)]
        if len(texts) < 3:
            self.findings.add("seed", "unknown: a request failed", is_good=False)
        elif texts[0] != texts[1]:
            why = "a replay is exact, as it uses the log; a second live run with the same --rng differs"
            self.findings.add("seed", "one request gave two different replies", why)
        else:
            same = texts[0] == texts[2]
            self.findings.add("seed", "one reply, whatever the seed" if same else "one request gives one reply")

    async def look_at_load(self) -> None:
        """Compare a request alone with several at once."""
        question = _user("Say a word about the sea.")
        start = clock.perf_counter()
        alone = await self.ask(question, number=10, temperature=1.0, max_tokens=24)
        alone_s = clock.perf_counter() - start
        start = clock.perf_counter()
        samples = (self.ask(question, number=n, temperature=1.0, max_tokens=24) for n in range(11, 11 + AT_ONCE))
        replies = await asyncio.gather(*samples)
        took_s = clock.perf_counter() - start
        if isinstance(alone, str) or any(isinstance(reply, str) for reply in replies):
            error = next(reply for reply in (alone, *replies) if isinstance(reply, str))
            self.findings.add(f"{AT_ONCE} at once", f"fail: {error}", "set concurrency=1 (--concurrency 1)")
            return
        result = f"{_seconds(took_s)}; one alone {_seconds(alone_s)}"
        if took_s > SLOW_DOWN * AT_ONCE * max(alone_s, 0.05):
            advice = "they slow each other down: set --concurrency 1, or start the server with fewer threads than cores"
            self.findings.add(f"{AT_ONCE} at once", result, f"{advice} (llama.cpp: --threads 1)")
        else:
            self.findings.add(f"{AT_ONCE} at once", result)

    async def look_at_long_prompt(self, n_characters: int) -> None:
        """Send a long prompt, and compare the tokens read with its length."""
        line = "On day {} the sea was calm, the boats came home, and nobody in the village said a word about it. "
        lines = "".join(line.format(day) for day in range(1, n_characters // len(line) + 1))
        prompt = f"Remember the word heron.\n{lines}\nWhich word were you to remember?"
        reply = await self.ask(_user(prompt), max_tokens=24)
        size = f"{len(prompt):,} characters"
        advice = "raise the context: num_ctx for Ollama, --ctx-size for llama.cpp, --max-model-len for vLLM"
        if isinstance(reply, str):
            is_context = "context" in reply or "too long" in reply
            slow = "such prompts take longer than --timeout-s: let agents see and remember less, or raise timeout_s"
            self.findings.add("long prompts", f"{size}: none: {reply}", advice if is_context else slow)
        elif not reply.prompt_tokens:
            self.findings.add("long prompts", f"{size}: accepted; usage is not reported")
        elif len(prompt) > CHARACTERS_A_TOKEN * reply.prompt_tokens:
            result = f"{size}: truncated: only {reply.prompt_tokens:,} tokens were read"
            self.findings.add("long prompts", result, f"{advice}; agents miss the rest")
        else:
            found = "" if "heron" in reply.text.lower() else "; its beginning was ignored"
            result = f"{size}: {reply.prompt_tokens:,} tokens read in {_seconds(reply.latency_s)}{found}"
            self.findings.add("long prompts", result)

    def look_at_rest(self) -> None:
        """Report what is left out or renamed in requests."""
        dialect, plain = self.dialect, Dialect()
        rest = replace(plain, length=dialect.length, omitted=dialect.omitted, stream=dialect.stream, both=dialect.both)
        rest = replace(rest, min_temperature=dialect.min_temperature, tool_messages=dialect.tool_messages)
        if text := rest.summary(plain):
            self.findings.add("requests", text)


def _user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def _reason(error: str) -> str:
    """Return the cause of an error, without the address and the number of requests."""
    return re.sub(
        r"^(the connection to )?https?://\S+ |\s*\((requests sent: \d+|Operation timed out [^)]*)\)", "", error
    )


def _seconds(time_s: float) -> str:
    return f"{time_s:.1f} s"


def _object_in(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; empty if there is none."""
    try:
        value = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _fits(text: str) -> bool:
    """Check whether a text is an answer in the requested form."""
    answer = _object_in(text)
    return answer.get("vote") in ("yes", "no") and answer.get("score") in (1, 2, 3, 4, 5)


def _call_in(text: str) -> ToolCall | None:
    """Return the call in a text; None if there is none."""
    call = _object_in(text)
    name, arguments = call.get("action"), call.get("arguments")
    return ToolCall(name, arguments) if isinstance(name, str) and isinstance(arguments, dict) else None


# -- output


def _print_examination(llm: str, options: RunOptions, n_characters: int, *, as_json: bool) -> bool:
    """Examine a language model, and print the results with advice; return whether it can be used."""
    fetch(llm)
    limits: dict[str, Any] = {"timeout_s": options.timeout_s, "n_characters": n_characters}
    findings = examine(llm, options.api_base, report=None if as_json else _print, **limits)
    if as_json:
        say(json.dumps(findings.written, ensure_ascii=False))
        return findings.is_usable
    say("")
    for entry in findings.entries:
        if entry.advice:
            say(textwrap.fill(f"{entry.about}: {entry.advice}", 104, initial_indent="- ", subsequent_indent="  "))
    end = "is usable" if findings.is_usable else "is not usable as it is"
    say(f"{findings.name} {end}; {counted(findings.requests, 'request')} sent.")
    return findings.is_usable


def fetch(llm: str) -> None:
    """Download a local model that is known by its name, if it is not there; its progress is logged.

    Raises:
        ConfigError: If it cannot be downloaded.
    """
    profile = KNOWN.get(llm.strip())
    if profile is not None:
        model_file(profile)


def _print(finding: ProbeResult) -> None:
    lines = textwrap.wrap(finding.result, 100 - WIDTH) or [""]
    say(f"{' ' if finding.is_good else '!'} {finding.about:<{WIDTH}} {lines[0]}")
    for line in lines[1:]:
        say(f"  {'':<{WIDTH}} {line}")


# -- personas


def _print_contrasts(llm: str, options: RunOptions, *, as_json: bool) -> None:
    """Print how far a language model reacts to contrasting personas; with `as_json`, as one object."""
    if not as_json:
        say(contrast_heading())
    report = None if as_json else lambda row: say(contrast_line(row))
    with closing(Access(**options.access)) as access:
        rows = persona_contrast(llm, access=access, scoring=options.scoring, report=report)
    if as_json:
        say(json.dumps({"llm": llm, "contrasts": [row.written for row in rows]}, ensure_ascii=False))
        return
    n_reacting = sum(row.verdict == "reacts" for row in rows)
    samples = rows[-1].samples
    source = f"{samples} replies to each question" if samples else "the probabilities of all answers"
    say("")
    say(f"{llm} reacts in {n_reacting} of {counted(len(rows), 'contrast')}, measured by {source}.")


# -- this machine


def _print_check_up(*, as_json: bool) -> None:
    """Print versions, keys, endpoints, broken models, and whether the embedded model answers."""
    if as_json:
        say(json.dumps(_check_up(), ensure_ascii=False))
        return
    for line in check_up():
        say(line)


def _check_up() -> dict[str, Any]:
    try:
        endpoints = {name: endpoint.name for name, endpoint in read_endpoints().endpoints.items()}
    except ConfigError as error:
        endpoints = {"error": str(error)}
    keys = [variable for variable in PROVIDER_KEYS.values() if os.environ.get(variable)]
    models, broken = _models()
    found = {"versions": versions(), "keys": keys, "endpoints": endpoints, "models": models, "broken_models": broken}
    return {**found, "local": list(_local_models()), "embedded": _embedded()}


def _local_models() -> Iterator[dict[str, Any]]:
    """List the files of local models that can be downloaded."""
    for profile in KNOWN.values():
        if (source := profile.source) is not None:
            facts = {"title": source.title, "bytes": source.n_bytes, "licence": source.licence, "file": source.file}
            yield {"name": profile.name, **facts, "is_present": is_present(profile)}


def _models() -> tuple[int, dict[str, str]]:
    """Import all listed models; return their number, and name → error of those that cannot be imported."""
    from mesa_llm.registry import find_models

    entries, broken = find_models(), dict[str, str]()
    for entry in entries:
        try:
            entry.load()
        except ConfigError as error:
            broken[entry.name] = str(error)
    return len(entries), broken


def check_up() -> Iterator[str]:
    """Describe this installation, line by line; keys by their names only."""
    packages = versions()
    yield "Installed"
    for package in ("python", *PACKAGES):
        yield f"  {package:<16}  {packages.get(package, 'not installed')}"
    found = _check_up()
    yield "Keys"
    for provider, variable in PROVIDER_KEYS.items():
        yield f"  {provider:<16}  {variable} {'is set' if variable in found['keys'] else 'is not set'}"
    yield f"Endpoints of {os.environ.get('MESA_LLM_CONFIG', '').strip() or CONFIG_FILE}"
    for name, model in found["endpoints"].items() or [("none", "")]:
        yield f"  {name:<16}  {model}".rstrip()
    yield "Models"
    yield f"  {found['models'] - len(found['broken_models'])} can be used (see `mesa-llm list`)"
    for name, fault in found["broken_models"].items():
        yield f"  {name:<16}  BROKEN: {fault}"
    yield f"Local models in {cache_folder()}"
    for model in found["local"]:
        size = f"{model['title']}, {model['bytes'] / 1e6:,.0f} MB, {model['licence']}"
        there = "is there" if model["is_present"] else f"is fetched by `mesa-llm doctor --llm {model['name']}`"
        yield f"  {model['name']:<16}  {size}: {there}"
    yield "Embedded model"
    yield f"  {found['embedded']}"
    yield "To examine a language model: `mesa-llm doctor --llm NAME` (local, NAME@URL, or an endpoint above)."


def _embedded() -> str:
    """Ask the embedded model for a reply, and describe the result."""
    from mesa_llm.llm.local.model import LocalLLM

    request = Request("local", (_user("Say hello."),), Salt(0, 0, 0, "doctor", 0), settings={"max_tokens": 12})
    start = clock.perf_counter()
    try:
        reply = submit(LocalLLM().reply(request)).result(timeout=300)
    except MesaLLMError as error:
        return f"does not answer: {error}"
    return f"answers in {clock.perf_counter() - start:.1f} s: {clip(reply.text.strip(), 60)!r}"
