"""Do groups become more extreme through discussion? Like-minded users discuss a dilemma, with interviews in between."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal, Unpack, cast

import numpy as np
from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import (
    ConfigError,
    Decision,
    Hidden,
    Label,
    LLMOptions,
    Observation,
    Question,
    Slider,
    Structure,
    ToolCall,
)
from mesa_llm.engine.activation import RandomShare
from mesa_llm.experiments.runs.neutral import NEUTRAL
from mesa_llm.population import DrawnPeople, Persona, from_distributions
from mesa_llm.population.columns import People
from mesa_llm.tables import read_json
from mesa_llm.text import one_line
from mesa_llm_models.oasis.text import CAUTIOUS, DILEMMA, QUESTION, advice_text
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import SocialModel, SocialScenario
from mesa_llm_models.social.population import n_core_of, read_follows
from mesa_llm_models.social.world import SocialFacts

MAX_TEXT = 5_000
"""Maximum number of characters of a text; for the dilemma, as in the world."""

TEXTS = ("dilemma", "question", "stance")
"""Parameters that `texts` may hold."""

Leaning = Literal["cautious", "bold"]
"""Initial leaning of the users."""

ANSWERS = {
    3: "You must risk everything on it; nothing else is worth so much.",
    2: "You should dare it and take the leap.",
    1: "I lean towards daring it, perhaps with a little money put aside.",
    0: "It could go either way, I cannot tell.",
    -1: "I lean towards caution, perhaps with a small trial first.",
    -2: "You should be careful and stay on the safe side.",
    -3: "You must keep what you have and be careful always; no dream is worth such a loss.",
}
"""Stance of a rule twin, from -3 (safe) to 3 (daring) → its answer."""

DARING = re.compile(r"\b(risk|dare|daring|bold|leap|go for it|gamble)\b")
SAFE = re.compile(r"\b(careful|caution|cautious|keep|safe|safer|secure|wait|loss)\b")
STRONG = re.compile(r"\b(must|always|never|everything|nothing|no|absolutely|definitely)\b")
WEAK = re.compile(r"\b(lean|perhaps|maybe|might|a little|somewhat)\b")
"""Words from which the rule infers the side and strength of an answer."""

More = Literal["first", "second", "neither"]
"""Which of two answers is more extreme."""

Helpfulness = Annotated[int, Field(ge=1, le=10)]
"""Helpfulness of an answer, 1 to 10."""


def stance_of(text: str) -> int:
    """Derive the stance of a text from its words, from -3 (safe) to 3 (daring).

    Args:
        text: The text.
    """
    words = text.lower()
    balance = len(DARING.findall(words)) - len(SAFE.findall(words))
    side = (balance > 0) - (balance < 0)
    n_strong, n_weak = len(STRONG.findall(words)), len(WEAK.findall(words))
    return side * (3 if n_strong > n_weak else 1 if n_weak > n_strong else 2)


def read_texts(path: str | None) -> dict[str, str]:
    """Read a file with texts of a discussion.

    Args:
        path: JSON file; None for no texts.

    Raises:
        ConfigError: If it is not an object of texts with the names in `TEXTS`.
    """
    texts: Any = {} if path is None else read_json(path)
    if not isinstance(texts, dict):
        raise ConfigError(f"{path} contains a {type(texts).__name__}; expected an object of {', '.join(TEXTS)}")
    for name, text in cast("dict[str, Any]", texts).items():
        if name not in TEXTS:
            raise ConfigError(f"{path}: there is no text {name!r:.80}; a file may have {', '.join(TEXTS)}")
        minimum = 0 if name == "stance" else 1
        if not isinstance(text, str) or not minimum <= len(text.strip()) <= MAX_TEXT:
            raise ConfigError(f"{path}: {name} must be a text of {minimum} to {MAX_TEXT:,} characters")
    return cast("dict[str, str]", texts)


def answers_in(prompt: str) -> tuple[str, str]:
    """Return the two answers in a judge's prompt."""
    first, _, second = prompt.rpartition("First answer:\n")[2].partition("\n\nSecond answer:\n")
    return first, second


def rule_more_extreme(prompt: str) -> More:
    """Judge which of two answers is more extreme, by `stance_of`.

    Args:
        prompt: The judge's prompt.
    """
    first, second = (abs(stance_of(answer)) for answer in answers_in(prompt))
    return "neither" if first == second else "first" if first > second else "second"


def rule_helpfulness(prompt: str) -> int:
    """Score the helpfulness of an answer by length alone: one point per three words, up to 10.

    Args:
        prompt: The judge's prompt.
    """
    return max(1, min(10, len(prompt.rpartition("Answer:\n")[2].split()) // 3))


@dataclass(frozen=True)
class InterviewVerdict:
    """The judgement of one interview."""

    step: int
    """Step of the interview."""

    agent_id: int
    """Mesa `unique_id` of the interviewed user."""

    answer: str
    """The answer."""

    change: Literal["more", "less", "same"] | None
    """Whether it is more extreme than the same user's first answer; None for the first, or without a verdict."""

    helpfulness: int | None
    """Helpfulness, 1 to 10; None without a verdict."""


class PolarisationScenario(SocialScenario):
    """Parameters of a discussion of a dilemma."""

    n_agents: Annotated[Annotated[int, Field(ge=2)] | None, Structure(20, 80, dimension="population")] = None
    """Number of users; None for 40, or all in the file. With `users`, the maximum number read from it; with
    `population=oasis_x`, ordinary users are drawn around those in the file, or around `core_users` drawn ones.
    """

    preset: Annotated[Literal["group_polarisation"], Hidden()] = "group_polarisation"
    """Feed and actions of OASIS's study."""

    dilemma: Annotated[Annotated[str, Field(min_length=1, max_length=MAX_TEXT)] | None, Hidden()] = None
    """The post that users discuss; None for the first post in `users`, or else our own dilemma."""

    question: Annotated[str, Field(min_length=1, max_length=MAX_TEXT), Hidden()] = QUESTION
    """Question of the interviews, asked below the dilemma."""

    leaning: Annotated[Leaning, Label("Users are")] = "cautious"
    """Initial leaning of the rule twins and of invented personas."""

    stance: Annotated[Annotated[str, Field(max_length=MAX_TEXT)] | None, Hidden()] = None
    """Sentences added to every persona; empty for none. None for ours if the users are cautious and not from a file,
    whose personas say themselves who they are; nothing is added to those of bold users.
    """

    texts: Annotated[str | None, Hidden()] = None
    """JSON file with an object of `dilemma`, `question` and `stance`, any of which replaces the parameter."""

    talk: Annotated[Literal["shown", "neutral"], Label("Comments of others")] = "shown"
    """Whether users read what others comment; `neutral` puts a sentence about rivers and stones in its place, by the
    same author, in the same order: the placebo of the study. Such sentences do not move the rule twin.
    """

    persuasion: Annotated[float, Field(ge=0, le=1), Slider(0, 0.5, 0.05, label="Persuasion of the rule twin")] = 0.1
    """Share of the mean stance of the comments read that is added to the rule twin's stance."""

    interval: Annotated[int, Field(ge=1), Slider(1, 30, label="Steps between interviews")] = 10
    """Number of steps between interviews."""

    n_interviewed: Annotated[int, Field(ge=1), Slider(1, 100, label="Users interviewed")] = 20
    """Maximum number of users interviewed, always the same ones."""

    active_share: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Probability of being active")] = 0.3
    """Probability that a user is active in a step."""

    judge: Annotated[str, Hidden()] = "rule"
    """Language model that compares answers; `rule` uses words."""

    memory: Annotated[str, Hidden()] = "window:10"
    """Memory of the users."""


class Debater(SocialUser):
    """A user who gives advice. The rule twin states its stance, and comments it reads shift it.

    Attributes:
        stance: From -3 (safe) to 3 (daring).
    """

    stance = 0.0

    @property
    def advice(self) -> str:
        """Answer for the current stance."""
        return ANSWERS[max(-3, min(3, round(self.stance)))]

    def rule(self, seen: Observation) -> ToolCall | None:
        """Comment on the dilemma, or like the comment closest to its own stance."""
        facts: SocialFacts = seen.facts
        actions = seen.tools or ()
        post = next((item.post for item in facts.feed if item.post.source_id == self.model.root_id), None)
        if post is not None and self.unique_id != self.model.asker.unique_id:
            others = [one for one in post.comments if one.author_id != self.unique_id and not one.vote]
            if "like_comment" in actions and others and self.random.random() < 0.4:
                nearest = min(others, key=lambda one: (abs(stance_of(one.content) - self.stance), one.reply_id))
                return ToolCall("like_comment", {"comment_id": nearest.reply_id})
            if "create_comment" in actions:
                return ToolCall("create_comment", {"post_id": post.source_id, "content": self.advice})
        return ToolCall("do_nothing") if "do_nothing" in actions else None

    def rule_answer(self, question: Question) -> str:
        """Answer the interview with the current stance."""
        return self.advice if question.text == self.model.question else super().rule_answer(question)


class Advisers(People):
    """A population with the same sentences in every persona, and without earlier posts."""

    def __init__(self, people: People, stance: str) -> None:
        """Wrap a population.

        Args:
            people: The population.
            stance: The sentences; empty for none.
        """
        super().__init__(len(people))
        self.people, self.stance, self.hours = people, stance, people.hours

    def persona(self, index: int) -> Persona:
        """Return a person."""
        return self.people.persona(index).model_copy(update={"persona": self.description(index), "posts": ()})

    def topics(self, index: int) -> tuple[str, ...]:
        """Return a person's topics of interest."""
        return self.people.topics(index)

    def description(self, index: int) -> str:
        """Return a person's description, for a prompt."""
        return f"{self.people.description(index)} {self.stance}".strip()

    def profiles(self) -> Iterator[tuple[str, str, str]]:
        """Yield each person's name, handle and public profile."""
        return self.people.profiles()


class PolarisationModel(SocialModel):
    """Like-minded users discuss a dilemma: do their answers become more extreme?

    Attributes:
        dilemma: The dilemma.
        question: Text of the interviews: the dilemma, and the question below it.
        asker: User who posted the dilemma.
        root_id: Id of the post with the dilemma.
        verdicts: Verdict on each interview.
    """

    scenario_class = PolarisationScenario
    judge_purposes = SocialModel.judge_purposes | {"judge_help"}
    n_users: ClassVar[int] = 40
    changeable = ("persuasion", "interval")
    scenario: PolarisationScenario
    user_class = Debater

    def __init__(self, scenario: PolarisationScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Publish the dilemma by one user, and draw the others' stances."""
        super().__init__(scenario, **options)
        parameters = self.scenario
        if "activation" not in options:
            self.activation = RandomShare(parameters.active_share)
        self.asker: Any = list(self.agents)[self._asker]
        self.root_id = 1
        centre = -0.9 if parameters.leaning == "cautious" else 0.9
        self.debaters: list[Any] = [agent for agent in self.agents if agent is not self.asker]
        for agent in self.debaters:
            agent.stance = max(-3.0, min(3.0, self.random.gauss(centre, 0.6)))
        self.interviewed = self.debaters[: parameters.n_interviewed]
        self.verdicts: list[InterviewVerdict] = []
        self._heard = 0.0
        names = ("more_extreme", "less_extreme", "neutral", "helpfulness", "leaning", "variety")
        self.datacollector = DataCollector({**{name: name for name in names}, "active": "n_active"})
        self.datacollector.collect(self)

    def _people(self) -> People:
        """Return the population, with the stance in each persona; without follows of its own, all follow the asker."""
        scenario = self.scenario
        if scenario.users is None and scenario.population == "oasis_x":
            n = scenario.n_agents or self.n_users
            n_core = n_core_of(scenario, n)  # drawn first, so that they are the same in a larger network
            core = list(from_distributions(n_core, self.random, "x", n_core))
            people: People = from_distributions(n, self.random, "x", core=core)
            if scenario.edges is not None:
                people.edges = read_follows(scenario, n)
        else:
            people = super()._people()
        if len(people) < 2:
            raise ConfigError(f"a discussion needs 2 users or more, users={scenario.users!r} has {len(people)}")
        texts = {name: getattr(scenario, name) for name in TEXTS} | read_texts(scenario.texts)
        self._asker, post = next(people.posts(), (0, DILEMMA))
        self.dilemma: str = post if texts["dilemma"] is None else texts["dilemma"]
        self.question = f"{self.dilemma}\n{texts['question']}"
        ours = CAUTIOUS if scenario.leaning == "cautious" and scenario.users is None else ""
        advisers = Advisers(people, ours if texts["stance"] is None else texts["stance"])
        edges = people.edges
        if edges is None and isinstance(people, DrawnPeople):
            edges = people.follow_edges(scenario.follow_probability, rng=self.random)
        if edges is None or not len(edges):
            others = np.delete(np.arange(len(people)), self._asker)
            edges = np.stack([others, np.full_like(others, self._asker)], axis=1)
        advisers.edges = edges
        return advisers

    def _changes(self) -> dict[str, Any]:
        filler = () if self.scenario.talk == "shown" else NEUTRAL
        return super()._changes() | {"replies_shown": 5, "filler": filler}

    def opening(self, users: Sequence[SocialUser]) -> list[tuple[SocialUser, str]]:
        """Return the dilemma as the post of its author.

        Args:
            users: All users.
        """
        return [(users[self._asker], self.dilemma)]

    @property
    def talk(self) -> str:
        """What the network talks about: the dilemma, as a sentence in the users' instructions."""
        return advice_text(self.world.names[self.asker.unique_id], self.root_id, self.dilemma)

    @property
    def judge(self) -> Any:
        """Language model that compares answers: `llm["judge"]` if given, else the scenario's."""
        return self.llm["judge"] if isinstance(self.llm, Mapping) and "judge" in self.llm else self.scenario.judge

    # -- the course of a step

    def start_step(self) -> None:
        """Interview before the first step, and store the comments now visible under the dilemma."""
        if self.now == 1:
            self._interview(0)
        comments = self.world.post_view(self.root_id).comments if self.scenario.talk == "shown" else ()
        stances = [stance_of(comment.content) for comment in comments]
        self._heard = fmean(stances) if stances else 0.0

    def end_step(self) -> None:
        """Shift the active users' stances by the comments they read, and interview at each interval."""
        for agent in self.debaters:
            if agent.unique_id in self.last_outcomes:
                agent.stance = max(-3.0, min(3.0, agent.stance + self.scenario.persuasion * self._heard))
        if self.now % self.scenario.interval == 0:
            self._interview(self.now)

    def _interview(self, step: int) -> None:
        """Interview users for their advice, and have the answers judged."""
        table = self.survey([Question(self.question, str, "advice")], self.interviewed, purpose="interview")
        answers = {
            int(row["agent"]): one_line(str(row["answer"]))
            for row in table.to_dict("records")
            if row["answer"] is not None
        }
        if not answers:
            return
        firsts = {verdict.agent_id: verdict.answer for verdict in self.verdicts if verdict.step == 0}
        changes = self._changes_since(firsts, answers)
        helps = self.consult(
            self.judge,
            [self.prompt("helpful.md", question=self.dilemma, answer=answer) for answer in answers.values()],
            answer=Helpfulness,
            purpose="judge_help",
            rule=rule_helpfulness,
        )
        for (agent_id, answer), verdict in zip(answers.items(), helps, strict=True):
            score = cast("int", verdict.answer) if isinstance(verdict, Decision) else None
            self.verdicts.append(InterviewVerdict(step, agent_id, answer, changes.get(agent_id), score))

    def _changes_since(self, firsts: Mapping[int, str], answers: Mapping[int, str]) -> dict[int, Any]:
        """Have each later answer compared with the first, in random order in the prompt."""
        agent_ids = [agent_id for agent_id in answers if agent_id in firsts]
        is_later_first = [self.random.random() < 0.5 for _ in agent_ids]
        pairs = [
            (answers[one], firsts[one]) if swapped else (firsts[one], answers[one])
            for one, swapped in zip(agent_ids, is_later_first, strict=True)
        ]
        prompts = [
            self.prompt("extreme.md", question=self.dilemma, first=first, second=second) for first, second in pairs
        ]
        if not prompts:
            return {}
        verdicts = self.consult(self.judge, prompts, answer=More, purpose="judge", rule=rule_more_extreme)
        changes: dict[int, Any] = {}
        for agent_id, swapped, verdict in zip(agent_ids, is_later_first, verdicts, strict=True):
            if isinstance(verdict, Decision):
                later = "first" if swapped else "second"
                changes[agent_id] = {"neither": "same", later: "more"}.get(str(verdict.answer), "less")
        return changes

    # -- measures

    @property
    def latest(self) -> list[InterviewVerdict]:
        """Verdicts of the latest interview."""
        return [one for one in self.verdicts if one.step == self.verdicts[-1].step]

    def share(self, change: str) -> float | None:
        """Return the share of the latest answers that changed in one direction; None before the second interview.

        Args:
            change: `more`, `less` or `same`.
        """
        changes = [one.change for one in self.latest if one.change is not None]
        return changes.count(cast("Any", change)) / len(changes) if changes else None

    more_extreme = property(lambda self: self.share("more"))
    less_extreme = property(lambda self: self.share("less"))
    neutral = property(lambda self: self.share("same"))

    @property
    def helpfulness(self) -> float | None:
        """Mean helpfulness of the latest answers; None without any."""
        scores = [one.helpfulness for one in self.latest if one.helpfulness is not None]
        return fmean(scores) if scores else None

    @property
    def leaning(self) -> float | None:
        """Mean stance of the latest answers, from -3 (safe) to 3 (daring), inferred by rule; None without any."""
        stances = [stance_of(one.answer) for one in self.latest]
        return fmean(stances) if stances else None

    @property
    def variety(self) -> float | None:
        """Share of distinct answers among the latest; None without any."""
        answers = [one.answer for one in self.latest]
        return len(set(answers)) / len(answers) if answers else None
