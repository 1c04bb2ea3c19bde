"""The language models of one run: each is opened once, under the name by which its replies are recorded."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from mesa_llm.engine.access import Access, EngineOptions, OpenedModel
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.engine.recorder import Recorded, Recorder
from mesa_llm.errors import ConfigError, NeedsLog, ReplayError
from mesa_llm.llm import open_simple
from mesa_llm.llm.address import split_name, written_name
from mesa_llm.llm.keys import Origin
from mesa_llm.llm.plugins import is_provided
from mesa_llm.llm.protocol import LLM, Capabilities, Embedded, require_llm
from mesa_llm.llm.surrogate.model import SurrogateLLM
from mesa_llm.records import Reply, Request
from mesa_llm.runlog.log import CAPABILITIES, MODELS, RunLog


class OpenedModels:
    """Opens the language models of one run, and keeps them.

    An `Access`, which several runs may share, holds one connection to each endpoint; what is kept here is the same
    connection with the run's own log around it.

    Attributes:
        access: Access to the language models.
    """

    def __init__(self, recorder: Recorder, options: EngineOptions) -> None:
        """Store the options; nothing is opened yet.

        Args:
            recorder: Records the replies.
            options: How language models are reached, and how much may be spent.

        Raises:
            ConfigError: If an option is invalid.
        """
        self.recorder = recorder
        self.options = options
        self.runlog = recorder.runlog
        self.access = access_for(options)
        self._lock = threading.RLock()
        self._opened: dict[tuple[str | int, bool], OpenedModel] = {}
        self._own_transports: list[LLM] = []
        self._agent_models: set[str] = set()

    def close(self) -> None:
        """Close the transports that this run opened, unless other runs share them."""
        if self.options.get("access") is None:
            self.access.close()

    def declare(self, llms: Iterable[str | LLM]) -> None:
        """Register the models that agents think with, so that a second model of that name uses their endpoint.

        Args:
            llms: Values of `llm=`; models that `open` opens are registered as well.

        Raises:
            ConfigError: If one is neither a string nor a transport.
        """
        for llm in llms:
            if isinstance(llm, str):
                self._agent_models.add(llm.strip())
            else:
                require_llm(llm)

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False) -> OpenedModel:
        """Open a language model; later calls with the same string return the same one.

        Args:
            llm: Model string, or a transport of the user's own.
            is_auxiliary: Whether it is asked in addition to the models that agents think with, as a parser or a judge
                is; a plain name is then looked up at its provider, unless an agent's model has the same name.

        Raises:
            ConfigError: If it cannot be opened, or was asked at another address in the recording.
        """
        key = (llm if isinstance(llm, str) else id(llm), is_auxiliary)
        opened = self._opened.get(key)
        if opened is None:
            with self._lock:
                opened = self._opened.get(key)
                if opened is None:
                    opened = self._opened[key] = self._open(llm, is_auxiliary)
        return opened

    def paid(self, transport: LLM) -> LLM:
        """Return a transport whose replies are recorded and paid from the budget; see `Engine.paid`."""
        self._require_log("what recorded() calls")
        return Recorded(self.recorder, self.access.paid(transport))

    def _require_log(self, name: str) -> None:
        """Check that replies, which are paid for, are not lost.

        Raises:
            NeedsLog: If the run is light, and keeps none.
        """
        if self.runlog.is_light:
            raise NeedsLog(
                f"light=True (--light) keeps no replies, and those of {name} would be lost; leave it out, or use "
                "llm='rule' or 'random'"
            )

    def _open(self, llm: str | LLM, is_auxiliary: bool) -> OpenedModel:
        if isinstance(llm, str):
            if llm.strip() == "rule":
                self._note("rule", {"access": "rule"})
                return OpenedModel(Capabilities("rule", is_immediate=True), None, True, 1)
            is_auxiliary = is_auxiliary and llm.strip() not in self._agent_models
            if not is_auxiliary:
                self._agent_models.add(llm.strip())
        else:
            require_llm(llm)
            self._own_transports.append(llm)  # kept alive, as it is known by its id, which could otherwise be reused
        if self.runlog.mode == "replay":
            return self._open_silent(llm, is_auxiliary)
        opened = self.access.open(llm, is_auxiliary=is_auxiliary, origin=self._origin_of(llm))
        if opened.llm is None or opened.is_immediate:
            self._note(opened.name, {"access": opened.name if isinstance(llm, str) else "program"})
            return opened
        self._require_log(opened.name)
        capabilities = replace(opened.capabilities, name=self._name_recorded(opened.name))
        if not isinstance(llm, str) or is_provided(llm):
            self.runlog.note_capabilities(capabilities.name, capabilities.noted)
        fault = self._note(capabilities.name, self._facts_of(llm, opened, is_auxiliary))
        transport = _Refusing(fault) if fault else opened.llm
        return replace(opened, capabilities=capabilities, llm=Recorded(self.recorder, transport))

    def _facts_of(self, llm: str | LLM, opened: OpenedModel, is_auxiliary: bool) -> dict[str, Any]:
        """Return what a language model is, for the manifest: how it is reached, and the weights of a local one."""
        transport = open_simple(llm, is_silent=True) if isinstance(llm, str) else llm
        if isinstance(transport, Embedded):
            return {"access": "local", **transport.weights()}
        if opened.capabilities.is_person:
            return {"access": "person"}
        if transport is not None:
            return {"access": "surrogate" if isinstance(transport, SurrogateLLM) else "program"}
        return {"access": "batch" if self.access.sends_in_batches(llm, is_auxiliary=is_auxiliary) else "endpoint"}

    def _note(self, name: str, facts: dict[str, Any]) -> str:
        """Record what a language model is, and return why it must not be asked: other weights than recorded.

        Its recorded replies are used all the same. A log that does not say what decided is continued as it is.
        """
        noted = self.runlog.manifest.get(MODELS)
        models: dict[str, Any] = noted if isinstance(noted, dict) else {}
        then = models.get(name)
        recorded: dict[str, Any] = then if isinstance(then, dict) else {}
        before, now = recorded.get("sha256"), facts.get("sha256")
        if before and now and before != now:
            return (
                f"the recorded replies of {name} are of other weights: {_weights_text(recorded)} then, "
                f"{_weights_text(facts)} now. Put the recorded file in its place to resume, or give another log=; "
                "a replay (mesa-llm replay) needs no weights"
            )
        is_known = not recorded and name in self.runlog.models()  # by an earlier version, with what nobody knows
        if not is_known and {**recorded, **facts} != recorded:
            self.runlog.note(MODELS, {**models, name: {**recorded, **facts}}, commit=False)
        return ""

    def _origin_of(self, llm: str | LLM) -> Origin:
        """Return where a model string comes from: the user, or the run log that the model was rebuilt from."""
        named = self.options.get("named")
        if named is None or llm == self.options.get("parser"):
            return Origin.USER
        return Origin.USER if isinstance(llm, str) and llm.strip() in named else Origin.LOG

    def _open_silent(self, llm: str | LLM, is_auxiliary: bool) -> OpenedModel:
        """Open a model of a replay, in which nothing is sent."""
        transport = open_simple(llm, is_silent=True) if isinstance(llm, str) else llm
        if transport is None or (isinstance(transport, SurrogateLLM) and transport.otherwise):
            name = recorded_name(str(llm).strip(), is_auxiliary, self.access, self.runlog)
            attributes = self.runlog.manifest.get(CAPABILITIES)
            attributes = cast("Mapping[str, Any]", attributes).get(name) if isinstance(attributes, Mapping) else None
            return OpenedModel(Capabilities.of_name(name, attributes), Recorded(self.recorder, _Silent()), True, 1)
        capabilities = Capabilities.of(transport)
        if capabilities.is_immediate:
            return OpenedModel(capabilities, transport, True, 1)
        capabilities = replace(capabilities, name=recorded_name(capabilities.name, False, None, self.runlog))
        return OpenedModel(capabilities, Recorded(self.recorder, _Silent()), True, 1)

    def _name_recorded(self, name: str) -> str:
        """Return the name under which a model's replies are recorded, which includes the address at the time.

        Raises:
            ConfigError: If the recording knows the model only at another address, and `allow_new_endpoint` is not set.
        """
        if not self.runlog.may_repeat:
            return name
        names = self.runlog.models()
        here = {opened.name for opened in self._opened.values()}
        elsewhere = [other for other in names if model_part(other) == model_part(name) and other not in here]
        if name in names or not elsewhere:
            return name
        recorded = ", ".join(address_part(other) for other in elsewhere)
        if not self.options.get("allow_new_endpoint"):
            raise ConfigError(
                f"the recording asked {model_part(name)} at {recorded}, and now it would be asked at "
                f"{address_part(name)}. If that is the same model, continue with allow_new_endpoint=True "
                "(--allow-new-endpoint); else give the recorded address as api_base= (--api-base), or another log="
            )
        if len(elsewhere) > 1:
            raise ConfigError(f"{model_part(name)} was asked at {recorded}, so that none of them can have moved alone")
        return elsewhere[0]

    @property
    def parser(self) -> OpenedModel | None:
        """The model that repairs malformed replies, if there is one.

        Raises:
            ConfigError: If it is the rule twin, which cannot read text.
        """
        spec = self.options.get("parser")
        if spec is None:
            return None
        opened = self.open(spec, is_auxiliary=True)
        if opened.llm is None:
            raise ConfigError("parser='rule' cannot put replies into form; name a language model")
        return opened


def access_for(options: EngineOptions) -> Access:
    """Return the shared access of the options, or create the one they describe.

    Raises:
        ConfigError: If the options do both, or a value is invalid.
    """
    access_options: dict[str, Any] = {name: value for name, value in options.items() if name in ACCESS_OPTIONS}
    shared = options.get("access")
    if shared is None:
        return Access(**access_options)
    if conflicts := sorted(name for name, value in access_options.items() if value is not None):
        raise ConfigError(f"{', '.join(conflicts)} given besides access=; give them to Access(...), for all its models")
    return shared


def written_options(options: EngineOptions) -> dict[str, Any]:
    """Return options as plain values that may be recorded: no keys, and no address with a user or a query.

    Args:
        options: Options of a model.

    Returns:
        Values by name, without unset ones; `endpoints` includes those of `mesa-llm.toml`.
    """
    written = access_for(options).written
    parser = options.get("parser")
    if parser is not None:
        written["parser"] = written_name(parser) if isinstance(parser, str) else Capabilities.of(parser).name
    return {**written, "allow_new_endpoint": True} if options.get("allow_new_endpoint") else written


def model_part(name: str) -> str:
    """Return the model in a name, without its address and without prefixes that stand for no address."""
    return split_name(name)[0].removeprefix("openai/").removeprefix("ollama/")


def address_part(name: str) -> str:
    """Return the address in a model's name; a plain name stands for its provider."""
    return split_name(name)[1] or "its provider"


def recorded_name(text: str, is_auxiliary: bool, access: Access | None, runlog: RunLog) -> str:
    """Find the name that a recording uses for a model string; a model unknown to it keeps its current name.

    Args:
        text: Model string, name of an endpoint, or class name of a custom transport.
        is_auxiliary: As for `OpenedModels.open`.
        access: Access that the replay was given; None: the text is already a name.
        runlog: The recording.
    """
    names = runlog.models()
    candidates = [text] if access is None else []
    written: Mapping[str, Any] = runlog.manifest.get("options") or {}
    for option in [_access_of(written), access] if access is not None else []:
        if option is not None:
            candidates.append(option.name_of(text, is_auxiliary=is_auxiliary))
    if split_name(text)[1] is None:
        candidates.append(text)
    matches = [name for name in candidates if name in names]
    matches += [name for name in names if name not in matches and model_part(name) == model_part(candidates[0])]
    return matches[0] if matches else candidates[0]


def _access_of(written: Mapping[str, Any]) -> Access | None:
    """Create the access that a recording describes."""
    try:
        return Access(endpoints=written.get("endpoints"), api_base=written.get("api_base"))
    except (ConfigError, AttributeError, TypeError):  # a recording of another version
        return None


@dataclass
class _Refusing:
    """Stands for a language model that must not be asked, as it is not the recorded one."""

    fault: str

    async def reply(self, request: Request) -> Reply:
        """Raise the reason.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(self.fault)


def _weights_text(facts: Mapping[str, Any]) -> str:
    kind = f", {facts['quantisation']}" if facts.get("quantisation") else ""
    return f"{facts.get('file', 'a file')} (SHA-256 {facts.get('sha256', '')[:16]}…{kind})"


class _Silent:
    """Transport of a replay, which sends nothing."""

    async def reply(self, request: Request) -> Reply:
        raise ReplayError(f"a replay asks nobody ({request.model})")
