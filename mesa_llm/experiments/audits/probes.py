"""Probes beside the perturbations: whether agents name the experiment they are in, and how many decisions change.

Source:
    Zhou et al. (2025), arXiv 2509.18052 (PIMMUR), for unawareness and minimal control.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mesa_llm.engine.access import Access
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.survey import Question
from mesa_llm.errors import ConfigError, MesaLLMError, Stopped
from mesa_llm.experiments.runs.run import Run
from mesa_llm.experiments.runs.runner import Job, Stop
from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import Rate
from mesa_llm.prompts import LIBRARY_PROMPTS
from mesa_llm.records import Decision
from mesa_llm.runlog.log import RunLog
from mesa_llm.statistics import MIN_RUNS, Estimate, cluster_means, mean_estimate, share_interval
from mesa_llm.text import counted

MAX_RESPONDENTS = 5
"""Maximum number of agents of a run that are asked aside."""

MAX_ANSWER = 2_000
"""Maximum number of characters of an answer that a judge reads."""

QUESTIONS = ("audit_studied.md", "audit_expected.md")
"""Templates of the questions."""

PURPOSE = "awareness"
"""Purpose of the requests to agents."""


@dataclass(frozen=True)
class Awareness:
    """One agent's answers to what is studied, and what is expected of it."""

    seed: int
    """Seed of the run."""

    agent: int
    """Mesa `unique_id`."""

    answer: str
    """Both answers; empty if there is none."""

    is_aware: bool
    """Whether it named the experiment."""


@dataclass(frozen=True)
class AwarenessJob(Job[list[Awareness]]):
    """A run before its first step, whose agents are asked aside."""

    job: Run
    """A run of the baseline."""

    words: Sequence[str]
    """Words by which somebody names the experiment."""

    judge: str
    """Language model that judges the answers; empty: the words do."""

    replays: bool = False
    """Whether the answers are recorded, and nothing may be asked."""

    @property
    def log(self) -> Path:
        """Path of its log."""
        return self.job.log.with_name(f"awareness-{self.job.log.name}")

    def run(self, access: Access, stop: Stop) -> list[Awareness]:
        """Ask the agents of one run.

        Args:
            access: Access to language models.
            stop: Stops the runs.

        Raises:
            Stopped: If a stop is requested; answers that came before are recorded.
        """
        if stop.is_requested:
            raise Stopped("stopped before it began")
        with closing(self.job.make(access, self.log, replay=self.replays)) as model, stop.watching(model):
            model.runlog.is_in_place = self.replays  # their prompts may have changed since; the rows of runs are kept
            answers = self._answers(model)
        if stop.is_requested:
            raise Stopped("stopped before its end")
        return answers

    def trial(self, access: Access) -> list[Awareness]:
        """Do the same without a log, as for an estimate."""
        with closing(self.job.make(access)) as model:
            return self._answers(model)

    def _answers(self, model: LLMModel) -> list[Awareness]:
        agents = llm_agents(model)[:MAX_RESPONDENTS]
        if not agents:
            return []
        questions = [Question(LIBRARY_PROMPTS.fill(template), str, template) for template in QUESTIONS]
        table = model.survey(questions, agents, purpose=PURPOSE)
        texts: dict[int, list[str]] = {}
        for row in table.to_dict("records"):
            texts.setdefault(row["agent"], []).append(str(row["answer"] or ""))
        words = [word for word in self.words or default_words(model) if not _is_in(word, _prompts_of(agents))]
        by_agent = {agent: "\n".join(filter(None, answers)) for agent, answers in texts.items()}
        return [
            Awareness(self.job.seed, agent, text, self._is_aware(model, text, words))
            for agent, text in by_agent.items()
        ]

    def _is_aware(self, model: LLMModel, answer: str, words: Sequence[str]) -> bool:
        if not answer.strip():
            return False
        if not self.judge:
            return any(_is_in(word, answer) for word in words)
        text = LIBRARY_PROMPTS.fill("audit_judge.md", answer=answer[:MAX_ANSWER], words=", ".join(words) or "none")
        (judged,) = model.consult(self.judge, [text], answer=Literal["yes", "no"], purpose="judge")
        return isinstance(judged, Decision) and judged.answer == "yes"


def default_words(model: LLMModel) -> list[str]:
    """Return words that name the experiment of a model: those of its class and package, without common ones.

    Args:
        model: The model.
    """
    kind = type(model)
    names = [kind.__module__.rpartition(".models")[2].split(".")[-2:], re.findall("[A-Z][a-z]+", kind.__name__)]
    parts = [part for name in names for one in name for part in re.split(r"[_\W]+", one.lower())]
    return [part for part in dict.fromkeys(parts) if len(part) > 4 and part not in _COMMON]


_COMMON = frozenset({"model", "models", "agent", "agents", "world", "worlds", "classics", "mesa", "tests"})


def _prompts_of(agents: Sequence[Any]) -> str:
    """Return everything that agents read now, in which a word is no recognition."""
    return "\n".join(message.content for agent in agents for message in agent.prompt(agent.observe()))


def _is_in(word: str, text: str) -> bool:
    """Check whether a word, or one that begins like it, stands in a text."""
    return re.search(rf"\b{re.escape(word.strip().lower())}", text.lower()) is not None


@dataclass(frozen=True)
class AwarenessRate:
    """How many agents named the experiment."""

    n: int
    """Number of agents that named it."""

    of: int
    """Number of agents that were asked."""

    share: Estimate
    """Mean over runs of the share that named it, with its interval over runs: agents of one run are no sample."""

    @property
    def text(self) -> str:
        """The rate as a sentence."""
        share, runs = self.share, counted(self.share.n, "run")
        interval = "no interval below four runs"
        if share.low is not None and share.high is not None:
            interval = f"95 % interval {share.low:.0%} to {share.high:.0%} with runs as the units"
        mean = f"{share.value:.0%}, {interval}"
        return f"{self.n} of {self.of} agents asked aside, in {runs}, named what is studied ({mean})."


def awareness_of(answers: Sequence[Awareness]) -> AwarenessRate | None:
    """Return how many agents named the experiment; None if nobody was asked.

    Args:
        answers: The answers.
    """
    if not answers:
        return None
    shares = cluster_means([float(one.is_aware) for one in answers], [one.seed for one in answers])
    share = mean_estimate(shares, bounds=(0.0, 1.0)) or Estimate(math.nan, None, None, 0)
    if len(shares) >= MIN_RUNS and set(shares) in ({0.0}, {1.0}):  # no spread: as many runs in which all did, or nobody
        low, high = share_interval(round(sum(shares)), len(shares))
        share = replace(share, low=low, high=high)
    return AwarenessRate(sum(one.is_aware for one in answers), len(answers), share)


def changed_decisions(baseline: Iterable[Path], perturbed: Iterable[Path]) -> Rate | None:
    """Count the decisions that differ between runs of the baseline and of a perturbation with the same seeds.

    Decisions are compared that the same agent makes in the same step on the same question; those of a run that has
    gone another way differ for that reason too.

    Args:
        baseline: Logs of the baseline.
        perturbed: Logs of the perturbation, in the same order.

    Returns:
        How many of those that both made; None without logs.
    """
    n_changed = n_both = 0
    for own, other in zip(baseline, perturbed, strict=True):
        try:
            first, second = dict(_decisions_in(own)), dict(_decisions_in(other))
        except (ConfigError, MesaLLMError, OSError):
            return None
        both = first.keys() & second.keys()
        n_both += len(both)
        n_changed += sum(first[key] != second[key] for key in both)
    return Rate(n_changed, n_both) if n_both else None


def _decisions_in(log: Path) -> Iterator[tuple[Any, Any]]:
    """Yield the decisions of a log: step, agent, label and number, with what was decided."""
    numbers: Counter[Any] = Counter()
    with closing(RunLog(log, "read")) as runlog:
        for time, agent, _, decision, _, _, _, _, label, _ in runlog.rows("decisions"):
            numbers[time, agent, label] += 1
            yield (time, agent, label, numbers[time, agent, label]), None if decision is None else json.loads(decision)
