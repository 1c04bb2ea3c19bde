"""Questions asked aside: never in the conversation, never in the digest. Memories are summed up in the same way."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mesa_llm.activation import minded
from mesa_llm.canonical import canonical_json
from mesa_llm.engine import Engine
from mesa_llm.errors import ConfigError
from mesa_llm.parse import Asking, answer_schema, decide
from mesa_llm.plain import engine_of
from mesa_llm.records import ChatMessage, Decision, Failure, Observation, Request
from mesa_llm.toolbox import ToolBox

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Question:
    """One question of a survey."""

    text: str
    """What is asked."""

    answer: Any = str
    """Type of the answer: anything pydantic can check (`Literal["yes", "no"]`, `Annotated[int, Field(ge=1, le=7)]`)."""

    name: str = ""
    """What its column is called; empty: the text."""


def survey(model: Any, questions: Iterable[Question | str], agents: Iterable[Any] | None = None) -> pd.DataFrame:
    """Ask each agent each question, all at once.

    An agent that thinks by rule answers with its `rule_answer(question)`, if its class has one.

    Args:
        model: The model; any Mesa model whose agents think.
        questions: What is asked.
        agents: Who is asked; None: everyone who thinks.

    Returns:
        One row an agent and question: time, agent, question, answer, failure (why there is no answer).

    Raises:
        ConfigError: If there is no question.
    """
    import pandas as pd

    asked = [question if isinstance(question, Question) else Question(question) for question in questions]
    if not asked:
        raise ConfigError("a survey needs at least one question")
    engine = engine_of(model)
    jobs = [(agent, question) for agent in (minded(model) if agents is None else agents) for question in asked]
    answers = ask_aside(engine, [_Interview(agent, question) for agent, question in jobs])
    rows: list[dict[str, Any]] = []
    for (agent, question), given in zip(jobs, answers, strict=True):
        answer = given.answer if isinstance(given, Decision) else None
        failure = given.reason if isinstance(given, Failure) else None
        row = {"time": int(model.time), "agent": agent.unique_id, "question": question.name or question.text}
        rows.append({**row, "answer": answer, "failure": failure})
        engine.runlog.keep_answer({**row, "answer": canonical_json(answer), "failure": failure})
    return pd.DataFrame(rows, columns=["time", "agent", "question", "answer", "failure"])


class Aside:
    """One question to one agent, which the engine asks like an agent that decides."""

    def __init__(self, agent: Any, purpose: str, messages: tuple[ChatMessage, ...], answer: Any = str) -> None:
        """Prepare to ask.

        Args:
            agent: Who is asked.
            purpose: What for; each purpose numbers its requests by itself, so that decisions keep their numbers.
            messages: The prompt.
            answer: Type of the answer.
        """
        self.agent, self.purpose, self.messages, self.answer = agent, purpose, messages, answer
        self.unique_id: int = agent.unique_id

    @property
    def llm(self) -> Any:
        """What the agent thinks with."""
        return self.agent.llm

    def decide(self, seen: Observation) -> Coroutine[Any, Any, Decision | Failure]:
        """Ask; nothing enters the agent's memory."""
        agent, answer = self.agent, self.answer
        engine = engine_of(agent.model)
        opened = engine.open(agent.llm)
        if opened.llm is None:
            return self.by_rule()
        request = Request(
            agent.config.adapter or opened.name,
            self.messages,
            engine.salt(self.unique_id, agent.now, self.purpose),
            schema=None if answer is str else answer_schema(answer),
            settings=agent.config.settings.sent,
            adapter=agent.config.adapter,
        )
        asking = Asking(opened.llm, replace(seen, answer=answer), ToolBox.of(object(), 0), request, engine.parser)
        return decide(asking)

    async def by_rule(self) -> Decision | Failure:
        """Say that a rule has nothing to say."""
        return Failure(self.unique_id, f"{type(self.agent).__name__} thinks by rule", "NoRule", "rule")


def ask_aside(engine: Engine, jobs: Sequence[Aside]) -> list[Decision | Failure]:
    """Ask several questions aside at once; stopped and asked again, the same ones use every reply that came.

    Args:
        engine: The engine of the agents' model.
        jobs: The questions.

    Returns:
        Answer or failure of each, in the order asked.

    Raises:
        BudgetSpent, ReplayError, ConfigError, Stopped: As `Engine.gather`.
    """
    numbers: dict[tuple[int, str], tuple[int, int]] = {}
    for job in jobs:
        numbers |= engine.numbering([job.unique_id], job.purpose)
    try:
        return engine.gather(jobs, [Observation()] * len(jobs), aside=True)
    except BaseException:
        engine.renumber(numbers)
        raise


class _Interview(Aside):
    """One question of a survey to one agent."""

    def __init__(self, agent: Any, question: Question) -> None:
        super().__init__(agent, "survey", _prompt(agent, question), question.answer)
        self.question = question

    async def by_rule(self) -> Decision | Failure:
        answer = getattr(self.agent, "rule_answer", None)
        if answer is None:
            reason = f"{type(self.agent).__name__} has no rule_answer(question)"
            return Failure(self.unique_id, reason, "NoRule", "rule")
        state = self.agent.random.getstate()
        try:
            return Decision(self.unique_id, answer=answer(self.question), by="rule")
        finally:
            self.agent.random.setstate(state)


def summarise(agents: Iterable[Any]) -> None:
    """Let the memories that are about to forget be summed up by their agents' own models, all at once.

    Agents that think by rule or at random write no summaries; a failed one leaves the memory as it is.
    """
    jobs: list[Aside] = []
    for agent in agents:
        wanted = agent.memory.summary_request() if agent.opened.is_language_model else None
        if wanted is not None:
            jobs.append(Aside(agent, "memory", (ChatMessage("user", wanted),)))
    if jobs:
        for job, summary in zip(jobs, ask_aside(engine_of(jobs[0].agent.model), jobs), strict=True):
            if isinstance(summary, Decision):
                job.agent.memory.keep_summary(str(summary.answer))


def _prompt(agent: Any, question: Question) -> tuple[ChatMessage, ...]:
    """Write the prompt: who the agent is, the conversation so far, what it remembers, and the question."""
    remembered = agent.memory.recall(question.text, agent.now, aside=True)
    memory = f"What you remember:\n{remembered}" if remembered else ""
    aside = "Somebody who takes no part in all this asks you, and nobody else will hear the answer:"
    user = "\n\n".join(filter(None, (memory, f"{aside}\n{question.text}")))
    first = (ChatMessage("system", agent.config.text),) if agent.config.text else ()
    return (*first, *agent.memory.messages(), ChatMessage("user", user))
