"""Rule-based reports: findings computed from the tables of a run, without a language model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mesa_llm.model.model import LLMModel
from mesa_llm.model.quality import quality_warning
from mesa_llm.model.stages import USAGE
from mesa_llm.reports.action_log import ActionTables, names_of
from mesa_llm.reports.export import rows_of, tables_of
from mesa_llm.reports.report import Coalition, Finding, Phase, Quotation, Report
from mesa_llm.text import COMMON, clip, counted, one_line, quoted

MIN_STANCE = 0.2
"""Minimum distance of a stance from 0 that counts as for or against something, as in the wording of beliefs."""

MIN_TONE = 0.05
"""Minimum mean tone of an agent's posts, for models without stances. VADER's own limit for neutral text."""

MAX_MEASURES = 4
"""Maximum number of measures among the findings."""

MAX_POSTS = 3
"""Maximum number of posts among the findings, and of quotations in a phase."""

QUOTE = 240
"""Maximum number of characters of a quotation."""


@dataclass(frozen=True)
class RunFacts:
    """Input of a rule-based report."""

    model: LLMModel
    """The model."""

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Tables of the run."""
        return tables_of(self.model)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """Collected numbers without costs: one row per step, one column per measure."""
        table = self.tables.get("measures", pd.DataFrame({"step": []})).set_index("step")
        own = table.drop(columns=[name for name in USAGE if name in table])
        return own.select_dtypes("number").astype(float)

    @cached_property
    def stances(self) -> tuple[Mapping[int, float], float]:
        """The agents' stances, and the distance from 0 that counts as for or against something."""
        known = self.model.stances()
        if known:
            return known, MIN_STANCE
        return ActionTables.of(self.model).tones(), MIN_TONE

    @property
    def last_step(self) -> int:
        """The last step."""
        return int(self.model.time)


def report_of(model: LLMModel, *, days: int | None = None) -> Report:
    """Write a rule-based report of a run so far.

    Args:
        model: The model.
        days: Number of days the run covers, so its story counts in weeks; None to count in steps.
    """
    facts = RunFacts(model)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(model).__name__.removesuffix("Model")).capitalize()
    question = one_line(str(getattr(model.scenario, "goal", "")) or next(iter((type(model).__doc__ or "").split("\n"))))
    return Report(
        title=f"{name} after {counted(facts.last_step, 'step')}",
        question=question,
        by="rule",
        verdict=_verdict(facts),
        findings=tuple(_findings(facts)),
        coalitions=tuple(coalitions(facts)),
        phases=tuple(phases(facts, days)),
    )


# -- findings


def _verdict(facts: RunFacts) -> str:
    sentences = [*_market_sentences(facts), *_stance_sentences(facts)]
    sentences += [finding.text for finding in _measures(facts)][: max(1, 3 - len(sentences))]
    sentences += [finding.text for finding in _failures(facts)]
    return " ".join(sentences) or "Nothing was measured in this run."


def _findings(facts: RunFacts) -> Iterator[Finding]:
    yield from _failures(facts)
    yield from _outside(facts)
    yield from _markets(facts)
    yield from _turning_point(facts)
    yield from _measures(facts)
    yield from _posts(facts)


def _failures(facts: RunFacts) -> Iterator[Finding]:
    decisions, failures = facts.model.engine.decisions, facts.model.usage.failures
    if failures:
        text = f"{failures} of {counted(decisions, 'decision')} failed; who failed did nothing."
        yield Finding(topic="failures", title="Failed decisions.", text=text, evidence="table decisions")
    quality = {name: rate for name, rate in facts.model.data_quality().items() if name != "failed"}
    if text := quality_warning(quality):
        yield Finding(topic="failures", title="Data quality.", text=text, evidence="tables decisions and actions")


def _outside(facts: RunFacts) -> Iterator[Finding]:
    for record in facts.model.interventions.log:
        text = clip(record.text, QUOTE)
        evidence = f"interventions, step {record.step}"
        yield Finding(topic="outside", title=f"From outside, step {record.step}.", text=text, evidence=evidence)


def _paths(facts: RunFacts) -> Iterator[tuple[str, list[float]]]:
    prices = facts.tables.get("prices")
    if prices is None:
        return
    for question, rows in prices.groupby("question", sort=False):
        yield str(question), rows["price_yes"].tolist()


def _market_sentences(facts: RunFacts) -> list[str]:
    return [f"The market gives {path[-1]:.0%} to {quoted(question, QUOTE)}." for question, path in _paths(facts)][:3]


def _markets(facts: RunFacts) -> Iterator[Finding]:
    for question, path in _paths(facts):
        text = f"YES went from {path[0]:.0%} to {path[-1]:.0%}, between {min(path):.0%} and {max(path):.0%}"
        moves = np.abs(np.diff(path))
        if len(moves) and moves.max() > 0:
            step = int(moves.argmax()) + 1
            text += f"; its largest move was in step {step}, by {100 * (path[step] - path[step - 1]):+.1f} points"
        yield Finding(topic="market", title=quoted(question, QUOTE), text=f"{text}.", evidence="prices")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _stance_sentences(facts: RunFacts) -> list[str]:
    stances, limit = facts.stances
    if not stances:
        return []
    values = list(stances.values())
    n_for, n_against = sum(value >= limit for value in values), sum(value <= -limit for value in values)
    mean = math.fsum(values) / len(values)
    is_one = "is" if n_for == 1 else "are"
    if not facts.model.stances():
        who = f"{n_for} of {counted(len(values), 'author')} {is_one} positive"
        return [f"By the tone of their posts, {who} and {n_against} negative; the mean tone is {mean:+.2f}."]
    return [f"{n_for} {is_one} for it and {n_against} against, of {len(values)}; on average they stand at {mean:+.2f}."]


def _measures(facts: RunFacts) -> list[Finding]:
    """Describe the measures with the largest change relative to their size."""
    changes: list[tuple[float, Finding]] = []
    for name, column in facts.measures.items():
        values = column.dropna()
        if len(values) < 2 or values.iloc[0] == values.iloc[-1]:
            continue
        first, last = float(values.iloc[0]), float(values.iloc[-1])
        size = abs(last - first) / (max(abs(first), abs(last)) or 1)
        words = str(name).replace("_", " ")
        text = f"{words.capitalize()} {'rose' if last > first else 'fell'} from {_figure(first)} to {_figure(last)}."
        title = f"{words.capitalize()}."
        changes.append((size, Finding(topic="measure", title=title, text=text, evidence=f"measures, column {name}")))
    changes.sort(key=lambda change: -change[0])
    return [finding for _, finding in changes[:MAX_MEASURES]]


def _turning_point(facts: RunFacts) -> Iterator[Finding]:
    """Find the step with the largest changes, each relative to all changes of its measure in the run."""
    moves = facts.measures.diff().abs()
    moves = moves.loc[:, moves.sum() > 0]
    if len(moves) < 4 or moves.empty:
        return
    shares = moves / moves.sum()
    step = int(shares.sum(axis=1).idxmax())
    names = ", ".join(str(name).replace("_", " ") for name in shares.loc[step].nlargest(3).index)
    events = facts.tables.get("events")
    news = [] if events is None else events[events["step"].isin((step - 1, step))]["text"].tolist()
    cause = f" Shortly before: {quoted(str(next(filter(None, news))), QUOTE)}" if any(news) else ""
    text = f"In step {step} most moved, above all {names}.{cause}"
    yield Finding(topic="turning_point", title="Turning point.", text=text, evidence=f"measures, step {step}")


def _posts(facts: RunFacts) -> Iterator[Finding]:
    for row in rows_of(facts.tables.get("top_posts"))[:MAX_POSTS]:
        if row["engagement"] > 0:
            counts = f"{counted(row['likes'], 'like')}, {counted(row['shares'], 'share')}"
            text = f"{quoted(row['text'], QUOTE)} ({counts}, step {row['step']})"
            evidence = f"posts, post {row['post']}"
            yield Finding(topic="post", title=f"{one_line(row['name'])} was heard.", text=text, evidence=evidence)


# -- coalitions


def coalitions(facts: RunFacts) -> list[Coalition]:
    """Find the coalitions: agents with the same stance, connected by mutual follows. Largest first."""
    import networkx

    stances, limit = facts.stances
    names = names_of(facts.model)
    ties = [row for row in rows_of(facts.tables.get("follows")) if row["is_mutual"]]
    groups: list[tuple[int, int, Coalition]] = []
    for stance, camp in (
        ("for", {agent for agent, value in stances.items() if value >= limit}),
        ("against", {agent for agent, value in stances.items() if value <= -limit}),
    ):
        edges = {(row["follower"], row["followee"]) for row in ties if row["follower"] < row["followee"]}
        graph = networkx.Graph([(a, b) for a, b in sorted(edges) if a in camp and b in camp])
        for members in networkx.connected_components(graph):
            ordered = sorted(members)
            group = Coalition.model_validate(
                {
                    "stance": stance,
                    "members": tuple(names.get(agent, f"agent {agent}") for agent in ordered),
                    "ties": graph.subgraph(members).number_of_edges(),
                    "words": frequent_words(_texts(facts, members)),
                }
            )
            groups.append((-len(ordered), ordered[0], group))
    return [group for _, _, group in sorted(groups, key=lambda one: one[:2])]


def _texts(facts: RunFacts, agents: Iterable[int]) -> list[str]:
    posts, wanted = facts.tables.get("posts"), set(agents)
    return [str(row["text"]) for row in rows_of(posts) if row["agent"] in wanted]


def frequent_words(texts: Iterable[str], n: int = 3) -> tuple[str, ...]:
    """Return the most frequent words of four or more letters, without stop words. Ties are alphabetical.

    Args:
        texts: The texts.
        n: Maximum number of words.
    """
    words = Counter(word for text in texts for word in re.findall(r"[^\W\d_]{4,}", text.lower()) if word not in COMMON)
    return tuple(word for word, _ in sorted(words.items(), key=lambda item: (-item[1], item[0]))[:n])


# -- story


def phases(facts: RunFacts, days: int | None = None) -> Iterator[Phase]:
    """Describe a run in thirds, or as a whole if it has fewer than three steps.

    Args:
        facts: The run.
        days: Number of days it covers; None to count in steps.
    """
    quoted_agents: set[Any] = set()
    for title, first, last in spans(facts.last_step):
        day_span = (1 + (first - 1) * (days or 1) // facts.last_step, last * (days or 1) // facts.last_step)
        when = f"steps {first} to {last}" if last > first else f"step {first}"
        when = when if days is None else f"{weeks_text(day_span[0], max(day_span))}, {when}"
        quotations = tuple(_quotations(facts, first, last, quoted_agents))
        yield Phase(title=f"{title} ({when})", text=" ".join(_happened(facts, first, last)), quotations=quotations)


def spans(last_step: int) -> list[tuple[str, int, int]]:
    """Divide the steps into beginning, middle and end: title, first and last step of each."""
    if last_step < 3:
        return [("The run", 1, last_step)] if last_step else []
    ends = [last_step // 3, 2 * last_step // 3, last_step]
    starts = [1, *(end + 1 for end in ends)]
    return list(zip(("Beginning", "Middle", "End"), starts, ends, strict=False))


def weeks_text(first_day: int, last_day: int) -> str:
    """Return the weeks of a span of days, counted from 1: `Week 2`, `Weeks 1-3`. Earlier days count as day 1."""
    first, last = (max(1, math.ceil(day / 7)) for day in (first_day, last_day))
    return f"Week {first}" if first == last else f"Weeks {first}-{last}"


def _happened(facts: RunFacts, first: int, last: int) -> Iterator[str]:
    actions = facts.tables.get("actions")
    if actions is not None:
        now = actions[actions["step"].between(first, last)]
        counts = Counter(now[now["ok"] == 1]["action"].tolist())
        listed = ", ".join(f"{name} {count}" for name, count in counts.most_common(5))
        refused = now["ok"].tolist().count(0)
        yield f"Done: {listed or 'nothing'}{f'; refused by the worlds: {refused}' if refused else ''}."
    changes: list[tuple[float, str]] = []
    for name, column in facts.measures.items():
        values = column.loc[first - 1 : last].dropna()
        spread = float(column.max() - column.min())
        if len(values) > 1 and spread and (change := float(values.iloc[-1] - values.iloc[0])):
            words = str(name).replace("_", " ")
            changes.append((-abs(change) / spread, f"{words} {_figure(values.iloc[0])} → {_figure(values.iloc[-1])}"))
    if changes:
        yield f"Measured: {'; '.join(text for _, text in sorted(changes)[:3])}."
    events = facts.tables.get("events")
    if events is not None:
        news_texts = [str(text) for text in events[events["step"].between(first, last)]["text"] if text]
        if news_texts:
            yield f"News: {quoted(news_texts[-1], QUOTE)}"


def _quotations(facts: RunFacts, first: int, last: int, quoted_agents: set[Any]) -> Iterator[Quotation]:
    """Quote the top posts of a phase. No agent is quoted twice in the whole story."""
    rows = [
        row
        for row in rows_of(facts.tables.get("posts"))
        if first <= row["step"] <= last and str(row["text"]).strip() and row["kind"] != "repost"
    ]
    rows.sort(key=lambda row: (-row["likes"] - row["shares"], row["post"]))
    n_left = MAX_POSTS
    for row in rows:
        if n_left and row["agent"] not in quoted_agents:
            quoted_agents.add(row["agent"])
            n_left -= 1
            yield Quotation(name=one_line(row["name"]), text=quoted(row["text"], QUOTE))
