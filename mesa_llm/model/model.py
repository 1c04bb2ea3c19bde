"""A Mesa model whose agents think: its set-up, interventions from outside, and results."""

from __future__ import annotations

import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mesa_llm._deprecated import with_current_options
from mesa_llm.agents.design import AgentDesign
from mesa_llm.config import Reasoning, Settings
from mesa_llm.engine.access import EngineOptions
from mesa_llm.engine.activation import Activation, everyone, llm_agents
from mesa_llm.engine.engine import Engine, run_seed_of
from mesa_llm.engine.opening import written_options
from mesa_llm.engine.options import OnError, RunOptions, checked_options, option
from mesa_llm.engine.survey import JUDGING, Question, consult, survey
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import written_name
from mesa_llm.llm.protocol import LLM
from mesa_llm.memory import past_memory
from mesa_llm.model.bridge import Bridge
from mesa_llm.model.identity import check_files, identity, with_recorded_addresses, with_recorded_paths
from mesa_llm.model.interventions import Interventions
from mesa_llm.model.options import constructor, resolve_parameters
from mesa_llm.model.scenario import LLMScenario, parameters_of, signature_of
from mesa_llm.model.stages import StagedModel
from mesa_llm.prompts import Prompts, find_prompt
from mesa_llm.records import ChatMessage, Decision, Failure, Usage
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.versions import versions
from mesa_llm.text import counted, suggestion
from mesa_llm.world import World

if TYPE_CHECKING:
    import pandas as pd


class LLMModel(StagedModel):
    """A Mesa model whose agents think.

    A step: messages and news arrive; the activation says who acts; they observe, decide together, and act in order;
    the worlds end their step; data are collected. Override `end_step` for what happens after everyone has acted.

    Attributes:
        scenario_class: Class of its scenario, which declares its parameters.
        option_defaults: Name of an option that every model takes → its default.
        changeable: Fields of the scenario that may be changed during a run, because the model reads them in every step
            or passes them on in `scenario_changed`.
        instructions: File in the folder `prompts` beside the model's code that all agents read first; empty: none.
        worlds: The worlds its agents live in.
        schedule: Order of visits to the worlds; None: all of them in every step.
        population: Personas of its agents, for agents that look their own up; None: each agent holds its own.
        engine: Asks the language models.
        runlog: Requests, replies, decisions and outcomes of the run.
        mailbox: Messages between agents.
        bridge: News between worlds.
        interventions: Interventions from outside the run.
        now: The step that is being decided, from 1.
        reasoning: How all agents reason before they decide; None: as their configs say.
        reply_tokens: Maximum length of all agents' replies; None: as their configs say.
        last_decisions: Agent id → its last decision or failure.
        last_outcomes: Agent id → outcomes of its actions in the last step.
    """

    scenario_class: ClassVar[type[LLMScenario]] = LLMScenario
    option_defaults: ClassVar[Mapping[str, Any]] = {}
    changeable: ClassVar[tuple[str, ...]] = ()
    instructions: str = "instructions.md"
    population: Any = None
    scenario: Any
    _arguments: inspect.BoundArguments
    _parts: ClassVar[Mapping[str, type]] = {**StagedModel._parts, "interventions": Interventions}

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Keep the arguments for the manifest of the run log.

        Raises:
            TypeError: If the constructor does not take them.
        """
        model = super().__new__(cls)
        try:
            model._arguments = constructor(cls).bind_partial(*args, **kwargs)
        except TypeError as error:
            hint = "to take the options of all models, its __init__ needs **options, handed on to super().__init__"
            raise TypeError(f"{cls.__name__}() {error}; {hint}") from None
        return model

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set the signature: the scenario's parameters and the options of all models.

        Raises:
            TypeError: If `scenario_class` is no `LLMScenario`.
        """
        super().__init_subclass__(**kwargs)
        if not issubclass(cast("type", cls.scenario_class), LLMScenario):
            name = cls.scenario_class.__name__
            raise TypeError(f"{cls.__name__}.scenario_class has to be an LLMScenario; write class {name}(LLMScenario)")
        cls.__signature__ = signature_of(cls)

    def __init__(
        self,
        scenario: Any = None,
        *,
        llm: str | LLM | Mapping[Any, str | LLM] = "rule",
        worlds: Sequence[World] = (),
        activation: Activation | str = everyone,
        design: AgentDesign | None = None,
        bridge: Bridge | None = None,
        log: str | Path | RunLog | None = None,
        replay: bool = False,
        retry_failures: bool = False,
        ask_again: bool = False,
        on_error: OnError = "skip",
        reasoning: Reasoning | None = None,
        reply_tokens: int | None = None,
        memories: Mapping[Any, Mapping[str, Any]] | None = None,
        rng: int | str | None = None,
        **options: Any,
    ) -> None:
        """Set up a model; no language model is opened before the first step.

        Args:
            scenario: The model's parameters; None: those given by keyword, and the defaults.
            llm: What agents think with: a model string, a transport, or a mapping from agent id or class name to
                one of these, with `"*"` for all others.
            worlds: The worlds its agents live in.
            activation: Who acts in a step; a callable, or a name in `mesa_llm.engine.activation.ACTIVATIONS`.
            design: Task-independent choice of the agents' components; takes precedence over the model's own.
            bridge: Carries news between worlds; None: a plain `Bridge`.
            log: File of the run, or an open log: replies that it holds are used, the others are requested and recorded.
            replay, retry_failures, ask_again, on_error, reasoning, reply_tokens: See `RunOptions`.
            memories: Agent (its id or name) → memory of an earlier life, from `to_json`, that it starts with.
            rng: Seed; None: that of the scenario, of the log, or a new one.
            **options: Options for reaching language models and for budgets, see `RunOptions`; and, in place of
                `scenario`, its fields.

        Raises:
            ConfigError: If an option is unknown or invalid, a parameter is given twice with different values, or the
                log holds another run.
        """
        options = with_current_options(options)
        by_keyword = {name: options.pop(name) for name in self.scenario_class.fields if name in options}
        if unknown := sorted(set(options) - set(EngineOptions.__annotations__)):
            raise ConfigError(_unknown_message(type(self), unknown))
        engine_options = cast("EngineOptions", options)
        plain = {"on_error": on_error, "reasoning": reasoning, "reply_tokens": reply_tokens}
        checked = checked_options(RunOptions, plain)
        if design is not None and not isinstance(cast("Any", design), AgentDesign):
            raise ConfigError(f"design is an AgentDesign, got {design!r:.60}; AgentDesign.from_json makes one of JSON")
        if replay and log is None:
            raise ConfigError("replay=True needs the log= of a recorded run")
        mode = "replay" if replay else "record"
        self.runlog = log if isinstance(log, RunLog) else RunLog(log, mode, retry_failures, ask_again)
        by_keyword |= {name: value for name, value in self._arguments.arguments.items() if name != "scenario"}
        scenario, seed = resolve_parameters(type(self), scenario, by_keyword, rng, self.runlog)
        super().__init__(scenario, worlds=worlds, activation=activation, bridge=bridge, on_error=checked.on_error)
        self.run_seed = run_seed_of(self)
        self.engine = Engine(self.runlog, self.run_seed, engine_options)
        this = weakref.ref(self)  # the engine must not keep its model alive
        self.engine.should_stop = lambda: (model := this()) is not None and model._is_to_stop
        self.llm = llm
        self.engine.declare(llm.values() if isinstance(llm, Mapping) else [llm])
        self.design = design
        self.reasoning, self.reply_tokens = checked.reasoning, checked.reply_tokens
        self._prompts = Prompts(type(self))
        self._memories = {str(agent): saved for agent, saved in (memories or {}).items()}
        run = identity(self, self._arguments, seed)
        if engine_options.get("allow_new_endpoint"):
            run = with_recorded_addresses(run, self.runlog.manifest)
        run = with_recorded_paths(run, self.runlog.manifest)
        about = {"versions": versions(), "prompts": self._prompts.digests(), "options": written_options(engine_options)}
        self.runlog.begin(run, about)
        check_files(self.runlog, run)
        self.interventions = Interventions(self)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explain that an attribute is missing because the model has not been set up.

            Raises:
                AttributeError: Always.
            """
            if "runlog" not in vars(self):
                kind = type(self).__name__
                raise AttributeError(
                    f"{kind} has no {name} yet: its __init__ has to call super().__init__(scenario, **options) first",
                    name=name,
                )
            return super().__getattribute__(name)

    def __repr__(self) -> str:
        """Return its class, step, number of agents and language model."""
        if not hasattr(self, "llm"):
            return f"<{type(self).__name__}, not set up>"
        choice = "several" if isinstance(self.llm, Mapping) else self.llm
        llm = written_name(choice if isinstance(choice, str) else str(getattr(choice, "name", type(choice).__name__)))
        ended = "" if self.running else ", ended"
        return f"<{type(self).__name__}: step {int(self.time)}{ended}, {counted(len(self.agents), 'agent')}, llm {llm}>"

    # -- set-up

    @cached_property
    def instructions_text(self) -> str:
        """Text that all agents read first: the file `instructions` of the model's folder `prompts`; empty: none.

        A text in the code takes its place: `instructions_text = "You live in a bar."` in the class.

        Raises:
            ConfigError: If there is no file of another name than `instructions.md`.
        """
        if not self.instructions:
            return ""
        if find_prompt(type(self), self.instructions) is None:
            if self.instructions == LLMModel.instructions:
                return ""
            raise ConfigError(
                f"{type(self).__name__}.instructions is {self.instructions!r:.60}, the name of a file in the folder "
                'prompts, and there is no such file; for a text in the code, write instructions_text = "…" in the class'
            )
        return self.prompt(self.instructions, model=self, scenario=self.scenario)

    def prompt(self, name: str, **values: Any) -> str:
        """Fill in a template of the model's folder `prompts`, or of the library.

        It is read anew in each step if it has changed.

        Args:
            name: File name, such as `plan.md`.
            **values: Variables of the template.

        Raises:
            ConfigError: If there is no such file, or one of its variables has no value.
        """
        if not self._in_step:
            self._prompts.forget()
        return self._prompts[name].fill(values)

    def register_agent(self, agent: Any) -> None:
        """Register an agent: apply the design to it, and load its memory of an earlier life."""
        super().register_agent(agent)
        if not getattr(agent, "is_minded", False):
            return
        if self.design is not None:
            self.design.apply_to(agent)
        if self._memories:
            names = sorted({str(agent.unique_id), agent.config.name} & set(self._memories))
            if len(names) > 1:
                raise ConfigError(f"memories= names agent {names[0]} twice, as {names[1]!r} too; give it one memory")
            for name in names:
                agent.memory = past_memory(self._memories.pop(name))

    def llm_of(self, agent: Any) -> str | LLM:
        """Return an agent's language model: the one that `llm=` names for it, the design's, or the default."""
        design_llm = None if self.design is None else self.design.llm
        llm: Any = self.llm
        if not _is_mapping(type(llm)):
            return llm if design_llm is None else design_llm
        for name in (agent.unique_id, str(agent.unique_id), type(agent).__name__):
            if name in llm:
                return llm[name]
        if design_llm is not None:
            return design_llm
        if "*" in llm:
            return llm["*"]
        raise ConfigError(f"llm= names no model for agent {agent.unique_id} ({type(agent).__name__}); add one for '*'")

    def begin_step(self) -> None:
        """Deliver messages and news, and draw the stages. Does nothing if the step has begun, or the run is over.

        Raises:
            ConfigError: In the first step, if `memories=` names agents that do not exist.
        """
        if self._memories and self.now == 1 and self.running:
            raise ConfigError(f"memories= names {', '.join(sorted(self._memories))}, and there are no such agents")
        super().begin_step()

    def _deliver(self) -> None:
        self._prompts.forget()
        self.interventions.start_step()
        super()._deliver()

    # -- from outside

    def inject(self, intervention: Any) -> int:
        """Intervene in the run from outside, before the next step.

        It is recorded in the run log: a replay, or a run that continues the log, makes it again in the same step.

        Args:
            intervention: `News`, `Post` or `Change`; its JSON values; or a text, which is news for everyone.

        Returns:
            First step that it affects: the next one, or the one after if a step is under way.

        Raises:
            ConfigError: If it is no intervention, the model has nothing for it to act on, the run is over, or the log
                holds that step without it.
        """
        return self.interventions.add(intervention)

    def scenario_changed(self) -> None:
        """Override to pass changed fields of the scenario on to the objects that copied them, such as worlds."""

    def change_minds(self, llm: str | LLM | None = None, design: AgentDesign | None = None) -> None:
        """Let all agents think with something else from now on; used by branches, which record it.

        Args:
            llm: Model string or transport; None: as before.
            design: Design to apply on top of their present one; None: none.
        """
        if llm is not None:
            self.llm = llm
            self.engine.declare([llm])
        if design is not None:
            self.design = design
            for agent in llm_agents(self):
                design.apply_to(agent)

    # -- looking

    @property
    def usage(self) -> Usage:
        """Calls, tokens and dollars of the run so far."""
        return self.engine.usage

    def story(self) -> str:
        """Summarise the run so far in words; override for a better summary."""
        counts: Counter[str] = Counter()
        refused = 0
        for action, ok in self.runlog.actions()[["action", "ok"]].itertuples(index=False):
            counts[action] += ok
            refused += not ok
        summary = ", ".join(f"{name} {count}" for name, count in counts.most_common() if count) or "nothing"
        return f"Done: {summary}. Refused by the world: {refused}."

    def stances(self) -> Mapping[int, float]:
        """Return the agents' stances on what the run is about, by id, -1 (against) to 1 (for); by default none.

        Override it: reports find coalitions by stance, and graphs show it.
        """
        return {}

    @property
    def usage_by_purpose(self) -> dict[str, Usage]:
        """Usage for each purpose (`decide`, `survey`, `memory`, `judge`, …), with its failures."""
        return dict(self.engine.usage_by_purpose)

    def results(self) -> dict[str, Any]:
        """Return the scores of the run by name; by default the last row of the data collector. Override."""
        return {name: value for name, value in self._collected().items() if name not in ("agents", "agents_by_type")}

    def survey(
        self,
        questions: Iterable[Question | str],
        agents: Iterable[Any] | None = None,
        *,
        purpose: str = "survey",
        shows_scene: bool = True,
    ) -> pd.DataFrame:
        """Ask agents questions that leave no trace in their memory or the run; see `mesa_llm.engine.survey.survey`.

        Args:
            questions: The questions, or their texts.
            agents: The agents to ask; None: all that think.
            purpose: Name that the survey is counted under.
            shows_scene: Whether the prompt holds what the agent observes now.

        Returns:
            One row an agent and question: time, agent, question, answer, failure, purpose.

        Raises:
            ConfigError: If there is no question, the purpose is one of the run itself, or an agent has no mind.
        """
        return survey(self, questions, agents, purpose=purpose, shows_scene=shows_scene)

    def consult(
        self,
        llm: str | LLM,
        prompts: Iterable[str | Sequence[ChatMessage]],
        *,
        answer: Any = str,
        purpose: str = "judge",
        settings: Settings = JUDGING,
        reasoning: Reasoning = "none",
        rule: Callable[[str], Any] | None = None,
    ) -> list[Decision | Failure]:
        """Ask a language model that takes no part in the run, such as a judge or an annotator, all prompts at once.

        Requests are recorded, replayed and budgeted like decisions, and counted under their purpose; designs,
        activations and surveys do not apply.

        Args:
            llm: The language model.
            prompts: Texts, or whole conversations that end with a question.
            answer: Type of the answer: anything pydantic can check.
            purpose: Purpose of the requests, in one word.
            settings: Sampling settings.
            reasoning: How it reasons before it answers.
            rule: Answers for `llm="rule"`, called with the prompt.

        Returns:
            For each prompt a decision with the `answer`, or the failure that says why there is none.

        Raises:
            ConfigError: If the purpose is taken, or a rule is consulted and there is none.
        """
        how = {"answer": answer, "settings": settings, "reasoning": reasoning, "rule": rule}
        return consult(self, llm, prompts, purpose=purpose, **how)

    def close(self) -> None:
        """Close the run log and all connections."""
        self.engine.close()


LLMModel.option_defaults = {
    name: parameter.default
    for name, parameter in inspect.signature(LLMModel.__init__).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
} | {name: option(name).default if name in RunOptions.model_fields else None for name in EngineOptions.__annotations__}


@cache
def _is_mapping(kind: type) -> bool:
    """Check whether `llm=` is a mapping; cached by class, as the check is slow."""
    return issubclass(kind, Mapping)


def _unknown_message(kind: type[LLMModel], names: Sequence[str]) -> str:
    """Explain that options are unknown, and list those there are."""
    own_names = [parameter.name for parameter in parameters_of(kind)]
    if names[0] == "seed":
        hint = "; the seed is rng="
    elif names[0] in vars(kind.scenario_class):
        hint = f"; {kind.scenario_class.__name__}.{names[0]} has no type and so is no parameter, annotate it"
    else:
        hint = suggestion(names[0], [*own_names, *kind.option_defaults])
    own = f"parameters of {kind.__name__}: {', '.join(own_names) or 'none'}"
    return f"unknown options: {', '.join(names)}{hint} ({own}; options of all models: see mesa_llm.LLMModel)"
