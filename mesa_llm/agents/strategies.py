"""Reasoning strategies: design hooks that decide in more than one request.

    AgentDesign(decide="vote:7")

A strategy replaces the `decide` of agents with a language model. Rules, people and the random baseline decide as
before. Decisions stay typed and checked, and every request is numbered, recorded and budgeted as usual.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

from mesa_llm.canonical import canonical_json
from mesa_llm.engine.decision import Query, decide, reasoned_tool
from mesa_llm.engine.plain import engine_of
from mesa_llm.engine.reading.answers import answer_schema, plain_answer
from mesa_llm.errors import ConfigError
from mesa_llm.records import Decision, Failure, Observation, ToolSpec, options_for
from mesa_llm.text import counted

Decide = Callable[[Any, Observation], Awaitable[Any]]
"""How an agent decides instead of its own `decide`, which it may await: `async def reflect(agent, seen): …`."""

PLAN = "strategy_plan.md"
"""Template of the request for a plan."""

REACT = "strategy_react.md"
"""Template of the prompt for rounds of reasoning and tool calls."""

MAX_SAMPLES = 40
"""Maximum number of samples to vote over."""


async def plan(agent: Any, seen: Observation, every: int = 1) -> Decision | Failure:
    """Write a plan, then act on it: a second request for each decision with a plan.

    The plan becomes the decision's text and enters the agent's memory as a thought, where the next plan and the
    decisions in between recall it.

    Args:
        agent: The agent that decides.
        seen: Its observation.
        every: Number of steps per plan: one is written in step 1, 1 + `every`, …

    Source:
        Wang et al. (2023), Plan-and-Solve Prompting, ACL; plans in memory: Park et al. (2023), Generative Agents, UIST.
    """
    query = await _query(agent, seen)
    if not isinstance(query, Query):
        return query
    is_planned = (agent.now - 1) % every == 0
    return await decide(replace(query, reasoning="first", question=PLAN) if is_planned else query)


async def react(agent: Any, seen: Observation) -> Decision | Failure:
    """Alternate reasoning and tool calls, then act. Every tool call has a reason.

    Reasons and calls become the decision's text. Without read-only tools, this equals `reasoning="inline"`.

    Args:
        agent: The agent that decides.
        seen: Its observation.

    Source:
        Yao et al. (2023), ReAct: Synergizing Reasoning and Acting in Language Models, ICLR.
    """
    query = await _query(agent, seen)
    if not isinstance(query, Query):
        return query
    request = query.request
    if any(not spec.is_action for spec in request.tools):
        *earlier, last = request.messages
        messages = (*earlier, replace(last, content=f"{last.content}\n\n{request.prompts.fill(REACT)}"))
        note = request.prompts.fill("reasoning_field.md")
        request = replace(request, messages=messages, tools=tuple(reasoned_tool(tool, note) for tool in request.tools))
    return await decide(replace(query, request=request, reasoning="inline"))


async def vote(agent: Any, seen: Observation, samples: int = 5) -> Decision | Failure:
    """Sample several decisions on the same prompt concurrently and take the most frequent one.

    Free text does not count, since no two samples are worded alike: the vote is over an action, its target and its
    amount. The first sample with the winning choice is carried out as worded; a tie goes to the earliest choice. Failed
    samples have no vote; if all fail, so does the decision, with the first failure. With `reasoning`, each sample
    reasons separately. How much samples differ depends on the temperature.

    Args:
        agent: The agent that decides.
        seen: Its observation.
        samples: Number of samples.

    Source:
        Wang et al. (2023), Self-Consistency Improves Chain of Thought Reasoning in Language Models, ICLR.
    """
    query = await _query(agent, seen)
    if not isinstance(query, Query):
        return query
    engine, request = engine_of(agent.model), query.request
    salts = [request.salt, *(engine.salt(agent.unique_id, agent.now) for _ in range(samples - 1))]
    queries = [replace(query, request=replace(request, salt=salt), keys=[]) for salt in salts]
    results = await asyncio.gather(*map(decide, queries), return_exceptions=True)
    keys = tuple(key for sample in queries for key in sample.keys)
    ballots: list[Decision] = []
    for result in results:
        if isinstance(result, BaseException):  # all have finished by now, and their replies are recorded
            raise result
        if isinstance(result, Decision):
            ballots.append(result)
    if not ballots:
        return replace(next(one for one in results if isinstance(one, Failure)), keys=keys)
    winner, n_votes = elected(ballots, seen, request.tools)
    tally = f"({n_votes} of {counted(samples, 'sample')} decided so.)"
    return replace(winner, text="\n".join(filter(None, (winner.text, tally))), keys=keys)


def elected(ballots: Sequence[Decision], seen: Observation, tools: Iterable[ToolSpec]) -> tuple[Decision, int]:
    """Return the decision that most have made, and by how many; a tie goes to the earliest.

    Free text does not count, as no two are worded alike: two decisions are the same if they name the same action, with
    the same targets and amounts.

    Args:
        ballots: The decisions, on the same observation.
        seen: The observation.
        tools: Descriptions of what could be done.
    """
    schemas = {spec.name: spec.parameters for spec in tools}
    texts = [_ballot(decision, seen, schemas) for decision in ballots]
    winner, n_votes = Counter(texts).most_common(1)[0]
    return ballots[texts.index(winner)], n_votes


async def _query(agent: Any, seen: Observation) -> Query | Decision | Failure:
    """Prepare the query for the agent's language model. An agent without one decides right away."""
    return await (agent.query_for(seen) if agent.opened.is_language_model else agent.decide(seen))


def _ballot(decision: Decision, seen: Observation, schemas: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a text that is equal for equal choices."""
    if not decision.has_answer:
        return canonical_json(
            [
                [
                    call.name,
                    _chosen(call.arguments, schemas.get(call.name, {}), options_for(call.name, seen.options)),
                ]
                for call in decision.actions
            ]
        )
    answer = plain_answer(decision.answer)
    if isinstance(answer, dict) and seen.answer is not None:
        answer = _chosen(cast("dict[str, Any]", answer), answer_schema(seen.answer), ()) or answer
    return canonical_json([answer])


def _chosen(fields: Mapping[str, Any], schema: Mapping[str, Any], closed: Container[str]) -> dict[str, Any]:
    """Return the fields whose values are chosen from a list or a range, without free text."""
    schemas = schema.get("properties", {})
    return {name: value for name, value in fields.items() if name in closed or not _is_free(schemas.get(name, {}))}


def _is_free(schema: Mapping[str, Any]) -> bool:
    """Check whether a field accepts any text."""
    if any(map(_is_free, schema.get("anyOf", ()))):
        return True
    return schema.get("type") == "string" and not schema.keys() & {"enum", "const", "pattern", "format"}


# -- by name

STRATEGIES: dict[str, tuple[Callable[..., Awaitable[Any]], str, int]] = {
    "plan": (plan, "every", 1_000_000),
    "react": (react, "", 0),
    "vote": (vote, "samples", MAX_SAMPLES),
}
"""Name → strategy, the name of its setting, and the setting's maximum."""


@lru_cache(maxsize=64)
def strategy_named(text: str) -> Decide:
    """Return a strategy by name, with an optional setting after a colon: `vote`, `vote:7`, `plan:3`.

    Raises:
        ConfigError: If there is no such strategy, or its setting is invalid.
    """
    name, colon, setting = text.partition(":")
    if name not in STRATEGIES:
        raise ConfigError(f"there is no strategy {name!r}; choose one of: {', '.join(STRATEGIES)}")
    strategy, argument, maximum = STRATEGIES[name]
    if not colon:
        return strategy
    if not argument:
        raise ConfigError(f"strategy {name!r} has no setting; write {name!r}, not {text!r}")
    if not (setting.isascii() and setting.isdecimal() and 1 <= int(setting) <= maximum):
        raise ConfigError(f"{argument} in {text!r} must be a whole number in 1..{maximum}, as in '{name}:3'")
    return partial(strategy, **{argument: int(setting)})


def open_decide(decide: Decide | str) -> Decide:
    """Return a design's hook: a function, or the strategy with that name.

    Raises:
        ConfigError: If no strategy has that name.
    """
    return strategy_named(decide) if isinstance(decide, str) else decide


def is_plan(hook: Decide | None) -> bool:
    """Check whether a hook writes plans for the agent to remember."""
    return getattr(hook, "func", hook) is plan
