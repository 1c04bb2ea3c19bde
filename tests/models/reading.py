"""Prompts of every model, as a language model reads them, and faults that a program can find in them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.records import Request
from mesa_llm.registry import ModelEntry
from mesa_llm.testing import honest_reply

STEPS = 4
"""Number of steps that a model runs."""

MAX_PROMPTS = 4_000
"""Maximum number of prompts of a model."""

FAULTS = {
    "plural": re.compile(
        r"(?<![\d.,:/-])1 (people|agents|steps|months|weeks|days|rounds|tons|cases|shares|coins|posts|comments|turns|"
        r"units|neighbours|lots|persons)\b"
    ),
    "nobody": re.compile(r"(?<![\d.,:/-])0 people\b"),
    "noise": re.compile(r"\d\.\d{11,}|\d{10,}\.0\b|\b\d+(\.\d+)?e[+-]\d+\b"),
    "call in a memory": re.compile(r"^(In|On|At) [^:\n]{0,60}\b[a-z]+(_[a-z]+)*\([a-z_]+=", re.MULTILINE),
    "doubled": re.compile(r"you decided: You|the result was: "),
    "class name": re.compile(r"\b(Rebel|Citizen|Voter|Household|Sheep|Wolf|Boid|Fisher|Player) \d+\b"),
    "id in brackets cut": re.compile(r"\[[^\]\n]{1,80}…"),
    "two clocks": re.compile(
        r"^(In|On) step \d+\b.*^(?:(In|On|At) )?(it is )?(month|week|day|night|round|year|\d\d:)",
        re.MULTILINE | re.DOTALL | re.IGNORECASE,
    ),
}  # fmt: skip
"""Name of a fault → what shows it."""


def prompts_of(entry: ModelEntry, steps: int = STEPS) -> list[str]:
    """Return the different prompts of a run, in which a scripted language model chooses among what is allowed."""
    prompts: dict[str, None] = {}

    def reply(request: Request):
        if len(prompts) < MAX_PROMPTS:
            prompts["\n\n".join(message.content for message in request.messages if message.role != "tool")] = None
        return honest_reply(request)

    model = entry.load()(rng=21, llm=ScriptedLLM(reply))
    for _ in range(steps):
        if model.running:
            model.step()
    model.close()
    return list(prompts)


def drawn(prompts: list[str], n: int, seed: int = 43) -> list[str]:
    """Draw prompts to be judged."""
    return random.Random(seed).sample(prompts, min(n, len(prompts)))


def faults_in(prompts: list[str]) -> Iterator[str]:
    """Find what reads badly, once for each kind."""
    for name, pattern in FAULTS.items():
        found = next(filter(None, map(pattern.search, prompts)), None)
        if found is not None:
            start = max(0, found.start() - 40)
            yield f"{name}: …{found.string[start : found.end() + 40]!r}…"
