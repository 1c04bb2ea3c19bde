"""Questions asked aside: never part of the conversation, never part of the digest of decisions.

Surveys of agents and consultations of language models that take no part in the run both work this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from mesa_llm.canonical import canonical_json
from mesa_llm.config import AgentConfig, Reasoning, Settings, require_reasoning
from mesa_llm.engine.access import OpenedModel
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.decision import decide
from mesa_llm.engine.plain import engine_of
from mesa_llm.engine.prompt import compose_prompt
from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.engine.reading.parsing import check_decision
from mesa_llm.engine.setup import require_minds
from mesa_llm.errors import ConfigError, ParseError
from mesa_llm.llm.human.queue import HumanLLM
from mesa_llm.llm.protocol import LLM
from mesa_llm.prompts import prompts_of, require_no_template
from mesa_llm.records import ChatMessage, Decision, Failure, Observation, Request
from mesa_llm.records.frozen import frozen
from mesa_llm.tools.toolbox import ToolBox

if TYPE_CHECKING:
    import pandas as pd
    from mesa import Model

OWN_PURPOSES = frozenset({"decide", "survey", "memory", "reflection"})
"""Purposes of the run's own requests."""


@dataclass(frozen=True)
class Question:
    """One question of a survey."""

    text: str
    """Text of the question."""

    answer: Any = str
    """Type of the answer: anything pydantic can check (`Literal["yes", "no"]`, `Annotated[int, Field(ge=1, le=7)]`)."""

    name: str = ""
    """Name for the results; empty: the text."""

    def __post_init__(self) -> None:
        """Check that the text is finished.

        Raises:
            ConfigError: If it is a template.
        """
        require_no_template(self.text, "the question", "write the finished text, such as an f-string")


def survey(
    model: Model[Any, Any],
    questions: Iterable[Question | str],
    agents: Iterable[Any] | None = None,
    *,
    purpose: str = "survey",
    shows_scene: bool = True,
) -> pd.DataFrame:
    """Ask each agent each question, all at once; nothing enters the agents' memory or the run.

    An agent answers in the light of what it sees now, what it remembers and, if it keeps one, the conversation so far.
    An agent that thinks by rule answers with its `rule_answer(question)`, if its class has one. Questions asked between
    two steps have a numbering of their own, so that they change nothing in a run that also surveys within its steps.

    Args:
        model: Any Mesa model whose agents think.
        questions: The questions, or their texts.
        agents: The agents to ask; None: all that think.
        purpose: Name of the survey in `model.usage_by_purpose` and in the log's table `answers`.
        shows_scene: Whether the prompt includes the agent's current observation.

    Returns:
        One row per agent and question: time, agent, question, answer, failure (why there is no answer), purpose; with
        `scoring="probabilities"`, the probabilities of all answers, too. Answers keep their types; a missing one is
        None.

    Raises:
        ConfigError: If there are no questions, the purpose is reserved for the run itself, or an agent has no mind.
    """
    import pandas as pd

    check_purpose(purpose, OWN_PURPOSES - {"survey"})
    if isinstance(questions, str | Question):
        raise ConfigError("a survey takes a list of questions, got one; write [question]")
    items = [question if isinstance(question, Question) else Question(question) for question in questions]
    if not items:
        raise ConfigError("a survey needs at least one question")
    engine = engine_of(model)
    respondents = llm_agents(model) if agents is None else list(agents)
    require_minds(respondents)
    scenes = [_scene(agent) if shows_scene else Observation() for agent in respondents]
    jobs = [
        _Interview(agent, question, scene, purpose, series_of(model, question.text))
        for agent, scene in zip(respondents, scenes, strict=True)
        for question in items
    ]
    rows: list[dict[str, Any]] = []
    for job, result in zip(jobs, engine.gather(jobs, [Observation()] * len(jobs)), strict=True):
        answer = result.answer if isinstance(result, Decision) else None
        failure = result.reason if isinstance(result, Failure) else None
        question = job.question.name or job.question.text
        row = {"time": int(model.time), "agent": job.unique_id, "question": question}
        rows.append({**row, "answer": answer, "failure": failure, "purpose": purpose})
        if engine.scoring == "probabilities":
            rows[-1]["probabilities"] = dict(result.probabilities) if isinstance(result, Decision) else {}
        engine.runlog.keep_answer({**row, "answer": canonical_json(answer), "failure": failure, "purpose": purpose})
    names = ["time", "agent", "question", "answer", "failure", "purpose"]
    table = pd.DataFrame(rows, columns=names + ["probabilities"] * (engine.scoring == "probabilities"))
    for name in ("answer", "failure"):  # pandas would turn None into NaN, and integers into floats
        table[name] = pd.Series([row[name] for row in rows], dtype=object)
    return table


def check_purpose(purpose: str, reserved: Iterable[str] = OWN_PURPOSES) -> None:
    """Check that a request may be counted under a purpose.

    Args:
        purpose: The purpose, in one word.
        reserved: Purposes of the run itself.

    Raises:
        ConfigError: If it may not.
    """
    if purpose in reserved or not purpose.isidentifier():
        raise ConfigError(f"purpose={purpose!r} cannot be; name what is asked for in one word, such as 'judge'")


def series_of(model: Model[Any, Any], question: str) -> str:
    """Return the series in which a question asked aside is numbered.

    All questions asked during a step form one series. Between steps, questions may be asked by hand in any order: each
    is a series of its own, so that none shifts the numbers of the run.
    """
    return "" if getattr(model, "is_stepping", True) else question or "(blank)"


def _scene(agent: Any) -> Observation:
    """Return what an agent observes now, without changing the state of the random generators."""
    model = agent.model
    states = model.random.getstate(), model.rng.bit_generator.state
    try:
        return agent.observe()
    finally:
        model.random.setstate(states[0])
        model.rng.bit_generator.state = states[1]


class Interviewee(Protocol):
    """What a question aside needs of the agent that it is put to."""

    model: Any
    config: AgentConfig

    @property
    def unique_id(self) -> int:
        """Its Mesa `unique_id`."""
        ...

    @property
    def memory(self) -> Any:
        """Its memory."""
        ...

    @property
    def now(self) -> int:
        """The step that is being decided."""
        ...

    @property
    def opened(self) -> OpenedModel:
        """Its language model."""
        ...

    @property
    def request_settings(self) -> Mapping[str, Any]:
        """Sampling settings of its requests."""
        ...

    def request_reasoning(self, opened: OpenedModel) -> Reasoning:
        """Return how it reasons before it answers."""
        ...


class SideRequest:
    """One question to one agent, which the engine treats like an agent that decides."""

    waits_by_itself = False

    def __init__(
        self,
        agent: Interviewee,
        purpose: str,
        messages: tuple[ChatMessage, ...],
        answer: object = str,
        series: str = "",
    ) -> None:
        """Store the question.

        Args:
            agent: The agent to ask.
            purpose: Purpose of the question; each purpose numbers its requests separately, so that decisions keep
                their numbers.
            messages: The prompt.
            answer: Type of the answer.
            series: Series of a question asked by hand; see `series_of`.
        """
        self.agent, self.messages, self.answer = agent, messages, answer
        self.request_purpose, self.request_series = purpose, series
        self.unique_id: int = agent.unique_id

    @property
    def opened(self) -> OpenedModel:
        """The language model that the agent thinks with."""
        return self.agent.opened

    @property
    def now(self) -> int:
        """The step that is being decided."""
        return self.agent.now

    async def resolve(self, seen: Observation, opened: OpenedModel) -> Decision | Failure:
        """Ask the question; nothing enters the agent's memory."""
        agent, answer = self.agent, self.answer
        engine = engine_of(agent.model)
        if opened.llm is None:
            return self.by_rule()
        request = Request(
            opened.named(agent.config.adapter),
            self.messages,
            engine.salt(self.unique_id, self.now, self.request_purpose),
            schema=None if answer is str else answer_schema(answer),
            settings=agent.request_settings,
            adapter=agent.config.adapter,
            name=agent.config.name,
            prompts=prompts_of(agent.model),
        )
        seen = replace(seen, answer=answer)
        if self.request_purpose not in ("memory", "reflection"):
            request = engine.scored(request, opened)
        return await decide(engine.query(opened, seen, NO_TOOLS, request, agent.request_reasoning(opened)))

    def by_rule(self) -> Decision | Failure:
        """Return the failure of an agent whose rule answers no questions."""
        return Failure(self.unique_id, f"{type(self.agent).__name__} thinks by rule", "NoRule", "rule")


NO_TOOLS = ToolBox.of(object(), 0)
"""An empty toolbox, for questions asked aside."""

JUDGING = Settings(temperature=0.0)
"""Default sampling settings of consultations."""


class _Interview(SideRequest):
    """One question of a survey to one agent."""

    def __init__(self, agent: Interviewee, question: Question, scene: Observation, purpose: str, series: str) -> None:
        super().__init__(agent, purpose, compose_prompt(agent, scene, question.text), question.answer, series)
        self.question = question

    def by_rule(self) -> Decision | Failure:
        answer = getattr(self.agent, "rule_answer", None)
        if answer is None:
            kind = type(self.agent).__name__
            reason = (
                f"{kind} thinks by rule, and has no rule for questions; write {kind}.rule_answer(self, question) for a "
                "value of the type question.answer, or choose another llm="
            )
            return Failure(self.unique_id, reason, "NoRule", "rule")
        random = self.agent.model.random
        state = random.getstate()
        try:
            return _by_rule(self.unique_id, answer(self.question), self.answer)
        finally:
            random.setstate(state)


def _by_rule(agent_id: int, answer: object, kind: object) -> Decision | Failure:
    """Return a rule's answer as a decision, or a failure that explains why it is not a valid answer."""
    try:
        return check_decision(Decision(agent_id, answer=answer, by="rule"), Observation(answer=kind), NO_TOOLS)
    except ParseError as error:
        return Failure(agent_id, str(error), "Invalid", "rule")


@frozen
class Consultation:
    """One question to a language model that takes no part in the run; the engine treats it like an agent."""

    model: Any
    """The model on whose behalf it is asked."""

    llm: str | LLM
    """The language model to ask."""

    messages: tuple[ChatMessage, ...]
    """The prompt."""

    request_purpose: str
    """Purpose of the request."""

    request_series: str = ""
    """Series of a question asked by hand; see `series_of`."""

    answer: Any = str
    """Type of the answer."""

    settings: Settings = JUDGING
    """Sampling settings."""

    reasoning: Reasoning = "none"
    """How the language model reasons before it answers."""

    rule: Callable[[str], Any] | None = None
    """Answers for `llm="rule"`, called with the last message of the prompt."""

    unique_id: int = 0
    """Mesa `unique_id` of the agent that asks while it decides; 0 for the model."""

    waits_by_itself = False

    def __post_init__(self) -> None:
        """Check now what would otherwise fail, or be ignored, when the question is asked."""
        settings: Any = self.settings
        if not isinstance(settings, Settings):
            raise ConfigError(f"settings= takes Settings(temperature=…), got {settings!r}")
        require_reasoning(self.reasoning)

    @property
    def now(self) -> int:
        """The step that is being decided."""
        now = getattr(self.model, "now", None)
        return int(self.model.time) if now is None else now

    @property
    def opened(self) -> OpenedModel:
        """The language model to ask."""
        return engine_of(self.model).open(self.llm, is_auxiliary=True)

    async def resolve(self, seen: Observation, opened: OpenedModel) -> Decision | Failure:
        """Ask the question.

        Raises:
            ConfigError: If a rule is consulted but not given.
        """
        engine = engine_of(self.model)
        if opened.llm is None:
            if self.rule is None:
                raise ConfigError(f"llm='rule' was consulted as {self.request_purpose}: give rule=, or another llm")
            return _by_rule(self.unique_id, self.rule(self.messages[-1].content), self.answer)
        request = Request(
            opened.name,
            self.messages,
            engine.salt(self.unique_id, self.now, self.request_purpose),
            schema=None if self.answer is str else answer_schema(self.answer),
            settings=self.settings.sent,
            prompts=prompts_of(self.model),
        )
        reasoning = self.reasoning if opened.is_language_model else "none"
        seen = replace(seen, answer=self.answer)
        return await decide(engine.query(opened, seen, NO_TOOLS, request, reasoning))


def consult(
    model: Model[Any, Any],
    llm: str | LLM,
    prompts: Iterable[str | Sequence[ChatMessage]],
    *,
    purpose: str = "judge",
    **options: Any,
) -> list[Decision | Failure]:
    """Put all prompts at once to a language model that takes no part in the run; see `LLMModel.consult`."""
    if isinstance(prompts, str):
        raise ConfigError("consult takes a list of prompts, got one text; write [text]")
    check_purpose(purpose)
    jobs: list[Consultation] = []
    for prompt in prompts:
        messages = _conversation(prompt)
        jobs.append(Consultation(model, llm, messages, purpose, series_of(model, messages[-1].content), **options))
    engine = engine_of(model)
    results = [result.labelled(purpose) for result in engine.gather(jobs, [Observation()] * len(jobs))]
    if getattr(model, "is_stepping", True):
        for result in results:
            engine.runlog.add(result, jobs[0].now)
    return results


def llm_for(llm: str | LLM | Mapping[Any, str | LLM], purpose: str) -> str | LLM:
    """Return the language model to consult for a purpose: the one `llm=` names for it, else the one for all others.

    Args:
        llm: `llm` of a model.
        purpose: Purpose of the consultation.

    Returns:
        The language model; `rule` where a person would be asked, or none is named.
    """
    chosen = llm.get(purpose, llm.get("*", "rule")) if isinstance(llm, Mapping) else llm
    return "rule" if chosen == "human" or isinstance(chosen, HumanLLM) else chosen


async def advise(
    agent: Interviewee, llm: str | LLM, prompt: str | Sequence[ChatMessage], **options: Any
) -> Decision | Failure:
    """Ask another language model while an agent decides; see `LLMMixin.consult`.

    The request is numbered among those of the agent's turn. It is not a decision of the run, and is recorded only in
    the log's table `calls`.
    """
    purpose = options.pop("purpose")
    check_purpose(purpose)
    asked = Consultation(agent.model, llm, _conversation(prompt), purpose, unique_id=agent.unique_id, **options)
    result = await asked.resolve(Observation(), asked.opened)
    if isinstance(result, Failure):
        engine_of(agent.model).count_failure(purpose)
    return result


def _conversation(prompt: str | Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    return (ChatMessage("user", prompt),) if isinstance(prompt, str) else tuple(prompt)
