"""The prompt of an agent: the one place where its parts are put together."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mesa_llm.engine.plain import engine_of
from mesa_llm.engine.presentation import (
    AS_WRITTEN,
    OrderLot,
    Presentation,
    another_config,
    persona_text,
    presented_observation,
)
from mesa_llm.prompts import Prompts, prompts_of
from mesa_llm.records import ChatMessage, Image, Observation, Prompt


def compose_prompt(agent: Any, seen: Observation, question: str | None = None) -> Prompt:
    """Put together what an agent reads: instructions, the conversation so far, its memories, what it sees, who it is.

    The system message is the same for all agents, and is read once. Who the agent is comes last, as choices and
    opinions of small language models follow it most there, or where `seen.persona_place` says;
    `benchmarks/persona_contrast.py` measures it; only `seen.closing` follows. Runs recorded before 0.12 keep it in the
    system message. A design's `presentation` puts the same in another form, order or place.

    Args:
        agent: The agent.
        seen: What it observes.
        question: A question that is put to it outside the run, and leaves no trace in its memory; None: it decides.
    """
    model, memory = agent.model, agent.memory
    prompts, engine = prompts_of(model), engine_of(model)
    form = engine.presentation
    shared, of_world = getattr(model, "instructions_text", ""), seen.instructions
    if form is not AS_WRITTEN:
        shared = form.reworded(shared) if form.instructions == "own" else ""
        of_world = form.reworded(of_world)
    persona = agent.config.text_in(prompts) if form is AS_WRITTEN else _persona(agent, form, prompts)
    place = seen.persona_place if engine.runlog.request_version > 1 else "system"
    place = place if form.persona_place == "own" else form.persona_place
    opening, after = [persona if place == one else "" for one in ("opening", "system")]
    system = "\n\n".join(filter(None, (opening, shared, of_world, after)))
    if question is None:
        recalled = memory.recall(seen.cue or seen.text, agent.now)
    else:
        recalled = memory.recall(question, agent.now, aside=True)
    memories = prompts.fill("agent_memory.md", lines=recalled) if recalled else ""
    survey = "" if question is None else prompts.fill("survey_question.md", question=question)
    first, last = [persona if place == end else "" for end in ("first", "last")]
    text = presented_observation(seen, form, OrderLot(engine.run_seed, agent.unique_id, agent.now))
    before, after = (memories, "") if form.memory_place == "own" else ("", memories)
    closing = seen.closing if question is None else ""
    parts = (before, first, text, after, survey, last, closing)
    if form.instructions_place == "user":
        parts, system = (system, *parts), ""
    user = "\n\n".join(filter(None, parts)) or prompts.fill("agent_nothing_seen.md")
    opening = (_system_message(system),) if system else ()
    images = _images(agent, seen) if seen.images else ()
    return Prompt((*opening, *memory.messages(), ChatMessage("user", user, images=images)))


def _persona(agent: Any, form: Presentation, prompts: Prompts) -> str:
    """Return what the prompt says about an agent in a presentation."""
    config = agent.config if form.persona_of == "own" else another_config(agent)
    return persona_text(config, form.persona_form, prompts)


def _images(agent: Any, seen: Observation) -> tuple[Image, ...]:
    """Return the images of an observation if the agent's language model takes any, which the run log notes."""
    engine, opened = engine_of(agent.model), agent.opened
    if not opened.capabilities.takes_images:
        engine.warn_once(f"{opened.name} takes no images; those who think with it read the text of observations alone")
        return ()
    engine.runlog.note_capabilities(opened.name, {**opened.capabilities.noted, "takes_images": True})
    return seen.images


@lru_cache(maxsize=1024)
def _system_message(text: str) -> ChatMessage:
    """Return the first message of a prompt; equal texts share one message, and with it what is cached on it."""
    return ChatMessage("system", text)
