"""A Mesa model with LLM agents: set-up, interventions from outside, and results."""

from __future__ import annotations

import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack, cast

from mesa_llm.agents.agent import Mind
from mesa_llm.agents.design import AgentDesign
from mesa_llm.config import Reasoning, Settings
from mesa_llm.engine.access import EngineOptions
from mesa_llm.engine.activation import Activation, everyone, llm_agents
from mesa_llm.engine.engine import Engine, run_seed_of
from mesa_llm.engine.opening import written_options
from mesa_llm.engine.options import RunOptions, checked_options, option
from mesa_llm.engine.presentation import AS_WRITTEN, require_wording
from mesa_llm.engine.reading.aliases import Aliases, aliases_of
from mesa_llm.engine.setup import require_names
from mesa_llm.engine.survey import JUDGING, Question, consult, survey
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import written_name
from mesa_llm.llm.protocol import LLM
from mesa_llm.memory import past_memory
from mesa_llm.model.bridge import Bridge
from mesa_llm.model.identity import (
    check_files,
    code_digests,
    identity,
    with_recorded_addresses,
    with_recorded_parameters,
    with_recorded_paths,
)
from mesa_llm.model.interventions import Interventions
from mesa_llm.model.judgements import JudgeAgreement, Judgements, read_labels
from mesa_llm.model.options import (
    OPTIONS,
    OWN_OPTIONS,
    RunKeywords,
    constructor,
    given_by_name,
    require_passed_on,
    resolve_parameters,
    with_run_options,
)
from mesa_llm.model.quality import Rate, quality_of
from mesa_llm.model.scenario import LLMScenario, parameters_of, signature_of
from mesa_llm.model.stages import StagedModel
from mesa_llm.prompts import Prompts, find_prompt, require_no_template
from mesa_llm.records import ChatMessage, Decision, Failure, Usage
from mesa_llm.runlog.light import LightLog
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.versions import versions
from mesa_llm.text import counted, suggestion
from mesa_llm.world import World

if TYPE_CHECKING:
    import pandas as pd

_FILL_IN = (
    "put it into the file prompts/instructions.md, which is filled in with model and scenario, or return the finished "
    'text: @property def instructions_text(self): return f"…"'
)
"""What to do about a template in place of instructions."""


class LLMModel(StagedModel):
    """A Mesa model with LLM agents.

    In each step, messages and news arrive, and the activation selects the agents. These observe, decide together and
    act in order. Then the worlds end their step, and data are collected. Override `end_step` to add to that.

    Attributes:
        scenario_class: Class of the scenario, which declares the parameters.
        option_defaults: Option common to all models → its default.
        changeable: Fields of the scenario that may change during a run, because the model reads them in every step or
            passes them on in `scenario_changed`.
        measures: Measure → what it is in words, with its unit (`Mean wage, in dollars`), for the titles of charts;
            others are called what the docstring of their property or function, or `Attributes` of the class, says.
        judge_purposes: Purposes of consultations whose answers are judgements, see `mesa_llm.model.judgements`.
        instructions: File in the folder `prompts` beside the model's code that all agents read first; empty: none.
        worlds: Worlds of the agents.
        schedule: Order of visits to the worlds; None: all of them in every step.
        population: Personas of its agents, for agents that look up their own; None: each agent holds its own.
        engine: Sends requests to the language models.
        runlog: Requests, replies, decisions and outcomes of the run.
        mailbox: Messages between agents.
        bridge: News between worlds.
        interventions: Interventions from outside the run.
        judgements: What its judges have said, and people's labels of the same texts.
        now: The current step, from 1.
        reasoning: Reasoning of all agents before they decide; None: from their configs.
        reply_tokens: Maximum number of tokens of a reply, for all agents; None: from their configs.
        last_decisions: Agent id → its last decision or failure.
        last_outcomes: Agent id → outcomes of its actions in the last step.
    """

    scenario_class: ClassVar[type[LLMScenario]] = LLMScenario
    option_defaults: ClassVar[Mapping[str, Any]] = {}
    changeable: ClassVar[tuple[str, ...]] = ()
    measures: ClassVar[Mapping[str, str]] = {}
    judge_purposes: ClassVar[frozenset[str]] = frozenset({"judge"})
    instructions: str = "instructions.md"
    population: Any = None
    scenario: Any
    _arguments: inspect.BoundArguments
    _parts: ClassVar[Mapping[str, type]] = {**StagedModel._parts, "interventions": Interventions}

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Keep the arguments for the manifest of the run log.

        Raises:
            TypeError: If the constructor does not accept them.
        """
        model = super().__new__(cls)
        try:
            model._arguments = constructor(cls).bind_partial(*args, **kwargs)
        except TypeError as error:
            hint = "to accept the options of all models, its __init__ needs **options, passed on to super().__init__"
            raise TypeError(f"{cls.__name__}() {error}; {hint}") from None
        return model

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set the signature: the scenario's parameters and the options of all models.

        Raises:
            TypeError: If `scenario_class` is not an `LLMScenario`.
            ConfigError: If `instructions_text` is a template.
        """
        super().__init_subclass__(**kwargs)
        if not issubclass(cast("type", cls.scenario_class), LLMScenario):
            name = cls.scenario_class.__name__
            raise TypeError(f"{cls.__name__}.scenario_class must be an LLMScenario; write class {name}(LLMScenario)")
        if isinstance(text := cast("Any", cls).instructions_text, str):
            require_no_template(text, f"{cls.__name__}.instructions_text", _FILL_IN)
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
        memories: Mapping[Any, Mapping[str, Any]] | None = None,
        allowances: Mapping[Any, Any] | None = None,
        rng: int | str | None = None,
        **options: Unpack[RunKeywords],
    ) -> None:
        """Set up a model; no language model is opened before the first step.

        Args:
            scenario: The model's parameters; None: keyword arguments and defaults.
            llm: Language model of the agents: a model string, a transport, or a mapping from agent id or class name to
                one of these, with `"*"` for all others.
            worlds: Worlds of the agents.
            activation: Who acts in a step; a callable, or a name in `mesa_llm.engine.activation.ACTIVATIONS`.
            design: Task-independent choice of the agents' components; takes precedence over the model's own.
            bridge: Carries news between worlds; None: a plain `Bridge`.
            log: File of the run, or an open log: replies that it holds are used, the others are requested and recorded.
            memories: Agent (its id or name) → memory of an earlier life, from `to_json`, that it starts with.
            allowances: Agent id or class name → what it may spend in the run: `{"calls": 20, "dollars": 0.5}`, or
                `tokens`; whoever has spent it fails to decide, and the others go on.
            rng: Seed; None: that of the scenario, of the log, or a new one.
            **options: Options of every run, see `RunOptions`; and, in place of `scenario`, its fields.

        Raises:
            ConfigError: If an option is unknown or invalid, a parameter is given twice with different values, or the
                log holds another run.
        """
        passed = {name: value for name, value in locals().items() if name in OPTIONS}
        require_passed_on(type(self), self._arguments, {**self.option_defaults, **passed, **options})
        keywords: dict[str, Any] = {**options}
        by_keyword = {name: keywords.pop(name) for name in self.scenario_class.fields if name in keywords}
        if unknown := sorted(set(keywords) - OPTIONS):
            raise ConfigError(_unknown_message(type(self), unknown))
        checked = checked_options(RunOptions, {name: keywords.pop(name) for name in OWN_OPTIONS if name in keywords})
        engine_options = cast("EngineOptions", keywords)
        if design is not None and not isinstance(cast("Any", design), AgentDesign):
            raise ConfigError(f"design must be an AgentDesign, got {design!r:.60}; see AgentDesign.from_json")
        if checked.replay and log is None:
            raise ConfigError("replay=True needs the log= of a recorded run")
        if checked.light and log is not None:
            raise ConfigError("light=True (--light) keeps no log; leave out light, or log= (--log)")
        self.judgements = Judgements(None if checked.labels is None else read_labels(checked.labels))
        mode = "replay" if checked.replay else "record"
        if isinstance(log, RunLog):
            self.runlog = log
        else:
            self.runlog = LightLog() if checked.light else RunLog(log, mode, checked.retry_failures, checked.ask_again)
        by_keyword |= {name: value for name, value in self._arguments.arguments.items() if name != "scenario"}
        if scenario is None:  # fields that an __init__ between has not passed on
            by_keyword = given_by_name(self._arguments) | by_keyword
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
        self.engine.allow(allowances)
        self.engine.scoring = checked.scoring or "replies"
        self._present(design)
        self._memories = {str(agent): saved for agent, saved in (memories or {}).items()}
        run = identity(self, self._arguments, seed)
        if engine_options.get("allow_new_endpoint"):
            run = with_recorded_addresses(run, self.runlog.manifest)
        run = with_recorded_paths(run, self.runlog.manifest)
        run = with_recorded_parameters(run, self.runlog.manifest, type(self))
        about = {"versions": versions(), "prompts": self._prompts.digests(), "code": code_digests(type(self))}
        about |= {"options": written_options(engine_options)}
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
                    f"{kind} has no {name} yet: its __init__ must call super().__init__(scenario, **options) first",
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
        """Text that all agents read first, from the file `instructions` in the model's folder `prompts`; empty: none.

        To define it in code instead, set `instructions_text = "You live in a bar."` in the class: a finished text,
        since only files are filled in.

        Raises:
            ConfigError: If a file other than the default `instructions.md` does not exist.
        """
        if not self.instructions:
            return ""
        if find_prompt(type(self), self.instructions, self._prompts.wording) is None:
            if self.instructions == LLMModel.instructions:
                return ""
            raise ConfigError(
                f"{type(self).__name__}.instructions is {self.instructions!r:.60}, the name of a file in the folder "
                'prompts, and there is no such file; or set instructions_text = "…" in the class'
            )
        return self.prompt(self.instructions, model=self, scenario=self.scenario)

    def prompt(self, name: str, /, **values: Any) -> str:
        """Fill in a template of the model's folder `prompts`, or of the library.

        A changed file is reloaded in the next step.

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
        """Register an agent, apply the design to it, and load its memory from an earlier run."""
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

    def _present(self, design: AgentDesign | None) -> None:
        """Put what agents read to their language models as a design says.

        Raises:
            ConfigError: If the design names a rewording that does not exist.
        """
        presentation = AS_WRITTEN if design is None else design.presentation
        require_wording(type(self), presentation.wording)
        self._prompts = Prompts(type(self), presentation.named_wording)
        this = weakref.ref(self)

        @lru_cache(maxsize=1)
        def aliases_at(time: float, n_agents: int) -> Aliases:  # arguments are what they depend on
            return aliases_of(this())

        def aliases() -> Aliases:
            return aliases_at((model := cast("LLMModel", this())).time, len(model.agents))

        self.engine.present(presentation, aliases)

    def llm_of(self, agent: Any) -> str | LLM:
        """Return an agent's language model: from `llm=`, from the design, or the default."""
        design_llm = None if self.design is None else self.design.llm
        llm: Any = self.llm
        if not _is_mapping(type(llm)):
            return llm if design_llm is None else design_llm
        for name in (agent.unique_id, str(agent.unique_id), type(agent).__name__):
            if name in llm:
                return llm[name]
        if design_llm is not None:
            return design_llm
        for name in llm:
            index, _, count = str(name).partition("/")  # a share: 2/3 is every third agent, from the second on
            if index.isdecimal() and count.isdecimal() and (agent.unique_id - int(index)) % max(int(count), 1) == 0:
                return llm[name]
        if "*" in llm:
            return llm["*"]
        raise ConfigError(f"llm= names no model for agent {agent.unique_id} ({type(agent).__name__}); add one for '*'")

    @property
    def decides_by_rule(self) -> bool:
        """Whether all agents without a language model of their own are left to their rule twins."""
        design = self.design
        return (
            self.llm == "rule"
            and type(self).llm_of is LLMModel.llm_of
            and (design is None or (design.llm is None and design.decide is None))
            and not self.engine.allowances
        )

    def begin_step(self) -> None:
        """Deliver messages and news, and draw the stages; does nothing if the step has begun or the run is over.

        Raises:
            ConfigError: In the first step, if `memories=`, `llm=` or `allowances=` names agents that do not exist, or
                the instructions are a template.
        """
        if self.now == 1 and self.running:
            self._require_complete()
        super().begin_step()

    def _require_complete(self) -> None:
        """Check what can only be checked when all agents have been created."""
        if self._memories:
            raise ConfigError(f"memories= names {', '.join(sorted(self._memories))}, and there are no such agents")
        if isinstance(self.llm, Mapping) and type(self).llm_of is LLMModel.llm_of:
            others = {name for name in self.llm if str(name).islower()}  # purposes, such as `judge`; see `llm_for`
            require_names("llm=", self.llm.keys() - others, self.agents, Mind)
        require_names("allowances=", self.engine.allowances, self.agents, Mind)
        if type(self).instructions_text is not LLMModel.instructions_text or "instructions_text" in vars(self):
            known = " ".join(map(str, self.scenario.to_dict().values()))
            require_no_template(self.instructions_text, f"{type(self).__name__}.instructions_text", _FILL_IN, known)

    def _open_interval(self) -> None:
        self._require_set_up()
        self.interventions.start_interval()  # those that were made before the events of this interval
        super()._open_interval()

    def _deliver(self) -> None:
        self._prompts.forget()
        self.interventions.start_step()
        super()._deliver()

    # -- interventions

    def inject(self, intervention: Any) -> int:
        """Intervene in the run from outside, before the next step.

        It is recorded in the run log and repeated in the same step when the run is replayed or resumed.

        Args:
            intervention: `News`, `Post` or `Change`; its JSON values; or a text, which is news for everyone.

        Returns:
            First step that it affects: the next one, or the one after if a step is in progress.

        Raises:
            ConfigError: If it is not an intervention, the model has nothing for it to act on, the run is over, or the
                log holds that step without it.
        """
        return self.interventions.add(intervention)

    def scenario_changed(self) -> None:
        """Override to pass changed fields of the scenario on to objects that hold copies, such as worlds."""

    def change_minds(self, llm: str | LLM | None = None, design: AgentDesign | None = None) -> None:
        """Change the language model or design of all agents from now on; used by branches, which record it.

        Args:
            llm: Model string or transport; None: unchanged.
            design: Design to apply on top of the present one; None: unchanged.
        """
        if llm is not None:
            self.llm = llm
            self.engine.declare([llm])
        if design is not None:
            self.design = design
            self._present(design)
            for agent in llm_agents(self):
                design.apply_to(agent)

    # -- results

    @property
    def usage(self) -> Usage:
        """Calls, tokens and US dollars of the run so far."""
        return self.engine.usage

    def story(self) -> str:
        """Summarise the run so far as text; override for a better summary."""
        counts: Counter[str] = Counter()
        refused = 0
        for action, ok in self.runlog.actions()[["action", "ok"]].itertuples(index=False):
            counts[action] += ok
            refused += not ok
        summary = ", ".join(f"{name} {count}" for name, count in counts.most_common() if count) or "nothing"
        return f"Done: {summary}. Refused by the world: {refused}."

    def stances(self) -> Mapping[int, float]:
        """Return the agents' stances on the topic of the run, by id, from -1 (against) to 1 (for); by default none.

        Override it to let reports detect coalitions and graphs show stances.
        """
        return {}

    @property
    def usage_by_purpose(self) -> dict[str, Usage]:
        """Usage for each purpose (`decide`, `survey`, `memory`, `judge`, …), with its failures."""
        return dict(self.engine.usage_by_purpose)

    def results(self) -> dict[str, Any]:
        """Return the scores of the run by name; override to change the default, the last row of the data collector."""
        return {name: value for name, value in self._collected().items() if name not in ("agents", "agents_by_type")}

    def data_quality(self) -> dict[str, Rate]:
        """Return how much of the run did not come as asked: refused, declined, left out; see `mesa_llm.model.quality`.

        Override it to add kinds of your own.
        """
        return quality_of(self)

    def judge_agreement(self) -> list[JudgeAgreement]:
        """Compare what the run's judges have said so far with people's labels (`labels=`); empty without labels.

        Raises:
            ConfigError: If the labels cannot be compared with the judgements.
        """
        return self.judgements.agreements()

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
            agents: The agents to survey; None: all LLM agents.
            purpose: Purpose under which the requests are counted.
            shows_scene: Whether the prompt includes the agent's current observation.

        Returns:
            One row per agent and question: time, agent, question, answer, failure, purpose.

        Raises:
            ConfigError: If there is no question, the purpose is reserved for the run itself, or an agent is not an LLM
                agent.
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
        """Send prompts concurrently to a language model outside the run, such as a judge or an annotator.

        Requests are recorded, replayed and budgeted like decisions, and counted under their purpose; designs,
        activations and surveys do not apply.

        Args:
            llm: The language model.
            prompts: Texts, or whole conversations that end with a question.
            answer: Type of the answer: anything pydantic can check.
            purpose: Purpose of the requests, in one word.
            settings: Sampling settings.
            reasoning: Reasoning before it answers.
            rule: Answers for `llm="rule"`, called with the prompt.

        Returns:
            For each prompt, a decision with the `answer`, or a failure with the reason why there is none.

        Raises:
            ConfigError: If the purpose is reserved, or `llm="rule"` is used without a rule.
        """
        how = {"answer": answer, "settings": settings, "reasoning": reasoning, "rule": rule}
        asked = prompts if isinstance(prompts, str) else list(prompts)
        results = consult(self, llm, asked, purpose=purpose, **how)
        if purpose in self.judge_purposes:
            self.judgements.add(purpose, asked, results)
        return results

    def close(self) -> None:
        """Close the run log and all connections."""
        self.engine.close()


LLMModel.__init__.__signature__ = with_run_options(LLMModel.__init__)
LLMModel.option_defaults = {
    name: parameter.default
    for name, parameter in inspect.signature(LLMModel.__init__).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
} | {name: option(name).default if name in RunOptions.model_fields else None for name in EngineOptions.__annotations__}


@cache
def _is_mapping(kind: type) -> bool:
    """Check whether `llm=` is a mapping; cached by class, since the check is slow."""
    return issubclass(kind, Mapping)


def _unknown_message(kind: type[LLMModel], names: Sequence[str]) -> str:
    """Format the error for unknown options, listing the known ones."""
    own_names = [parameter.name for parameter in parameters_of(kind)]
    if names[0] == "seed":
        hint = "; the seed is rng="
    elif names[0] in vars(kind.scenario_class):
        hint = f"; {kind.scenario_class.__name__}.{names[0]} has no type annotation and so is no parameter"
    else:
        hint = suggestion(names[0], [*own_names, *kind.option_defaults])
    own = f"parameters of {kind.__name__}: {', '.join(own_names) or 'none'}"
    return f"unknown options: {', '.join(names)}{hint} ({own}; options of all models: see mesa_llm.LLMModel)"
