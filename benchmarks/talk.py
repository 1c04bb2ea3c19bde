"""How often what agents say is no speech: copies, echoes, loops, others' names, and lines that are too long.

    python benchmarks/talk.py --llm local:1.5b
    python benchmarks/talk.py --llm local:1.5b --texts fishery commons

Sixty turns are taken in a debate, in the town meeting of the commons, in a village with hidden roles, and in a fishery
of its own. Each first reply, as it came, is judged by the same rules as the line that was spoken in the end, and
silences are counted. `--texts` prints both, for a person to read.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from mesa_llm import AgentConfig, LLMAgent, LLMModel
from mesa_llm.agents.talk import repeats, sentences_of, silence_in
from mesa_llm.records import Decision
from mesa_llm_models.commons.model import CommonsModel
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.hidden_roles.model import HiddenRolesModel

FAULTS = ("copies the prompt", "loops", "echoes", "agrees with itself", "in another's name", "too long")
"""Faults of a line, in the order of the table."""

MAX_SENTENCES = 2
"""Number of sentences that is asked for."""

SPOKEN = ("conversation", "write")
"""Labels of the turns in which somebody speaks."""

TOPIC = (
    "You all fish one bay. 90 crates of fish are left in it, and what is left grows by a third until next week. You "
    "meet on the quay to agree how much each of you may take this week."
)
"""What the fishers of the bay talk about."""

FISHERS = {
    "Marta": "You have two boats and six mouths to feed, and you fear a bad winter. You want to take 20 crates a week.",
    "Jon": "You are 63 and saw the cod vanish in your youth. You want everybody to take at most 8 crates a week.",
    "Pia": "You have just borrowed money for your first boat. You want rules that hold for everybody.",
    "Ole": "You sell to a restaurant that pays well for few fish. You want to close the bay in spring.",
}
"""Name of a fisher of the bay → who it is."""


@dataclass(frozen=True)
class Line:
    """One turn: what was written first, and what was said in the end."""

    world: str
    """Where it was said."""

    speaker: str
    """Name of the speaker."""

    raw: str
    """The first reply, as it came."""

    spoken: str
    """What was said; empty: nothing."""

    silence: str
    """Why nothing was said."""

    faults: tuple[frozenset[str], frozenset[str]]
    """Faults of the first reply, and of what was said."""


class Bay(LLMModel):
    """A fishery that a user might write: people with a will of their own meet on the quay."""

    def __init__(self, **options: Any) -> None:
        super().__init__(activation=lambda model: [], **options)
        for name, persona in FISHERS.items():
            LLMAgent(self, config=AgentConfig(name=name, persona=persona), memory="none")

    def start_step(self) -> None:
        """Hold the meeting."""
        self.converse(list(self.agents), turns=self.turns, topic=TOPIC)

    turns = 15


class Council(DiscussionModel):
    """A discussion in which nobody is asked aside, which would take as long as the talk."""

    def _survey(self) -> None:
        """Ask nobody."""


class Lake(CommonsModel):
    """The commons, whose fishers follow their rule at sea, and a language model in the meeting."""

    def end_step(self) -> None:
        """Catch by rule, and meet."""
        for index, fisher in enumerate(self.agents):
            fisher.wanted = self.share_of(self.stock) + index % 3
        super().end_step()


class Village(HiddenRolesModel):
    """The village, in which only the talk is left to a language model."""

    def start_step(self) -> None:
        """Let the werewolves attack the first villager by night."""
        super().start_step()
        self.proposals = [next(player.name for player in self.agents if player.role == "villager")]

    def next_stage(self, acted: list[Any]) -> list[Any]:
        """Talk, and vote for nobody."""
        super().next_stage(acted)
        return []


def debate(turns: int, **options: Any) -> LLMModel:
    """Hold a debate of a town council."""
    model = Council(config="debate", people_play=False, max_messages=turns, **options)
    for _ in range(turns):
        if model.running:
            model.step()
    return model


def bay(turns: int, **options: Any) -> LLMModel:
    """Hold a meeting on the quay."""
    model = Bay(**options)
    model.turns = turns
    model.step()
    return model


def commons(turns: int, **options: Any) -> LLMModel:
    """Hold town meetings of five fishers, one a month."""
    model = Lake(activation=lambda model: [], **options)
    model.run_for(turns // 5)
    return model


def village(turns: int, **options: Any) -> LLMModel:
    """Let the four who are left after a night talk."""
    model = Village(n_agents=5, n_wolves=1, rounds=max(1, turns // 4), activation=lambda model: [], **options)
    model.step()
    return model


WORLDS: dict[str, Callable[..., LLMModel]] = {
    "discussion": debate,
    "commons": commons,
    "hidden_roles": village,
    "fishery": bay,
}
"""Name of a world → what runs it for a number of turns."""


def faults_of(line: str, speaker: str, earlier: list[tuple[str, str]], prompt: str, others: set[str]) -> frozenset[str]:
    """Return the faults of a line.

    Args:
        line: The line.
        speaker: Who says it.
        earlier: Name and line of what was said before.
        prompt: What the speaker has read, without what was said.
        others: Names of the others.
    """
    faults: set[str] = set()
    text = re.sub(rf"^\W*{speaker}\s*:\s*", "", line.strip())
    parts = sentences_of(text)
    if repeats(text, prompt) or any(repeats(part, prompt) for part in parts):
        faults.add("copies the prompt")
    if len(set(parts)) < len(parts) or any(repeats(text, one) for name, one in earlier if name == speaker):
        faults.add("loops")
    if any(repeats(text, one) for name, one in earlier if name != speaker):
        faults.add("echoes")
    if re.search(rf"\b(?:with|to|thank you,?|thanks,?|as) {speaker}\b|^{speaker},|, {speaker}\W*$", text):
        faults.add("agrees with itself")
    if any(re.search(rf"(?:^|[\n.!?]\s*)\W*{re.escape(name)}\s*:", text) for name in others):
        faults.add("in another's name")
    if len(parts) > MAX_SENTENCES:
        faults.add("too long")
    return frozenset(faults)


def lines_of(world: str, model: LLMModel) -> Iterator[Line]:
    """Yield the turns of a run, in order."""
    names = {agent.unique_id: agent.config.name for agent in model.agents}
    names |= {agent.unique_id: agent.config.name for agent in getattr(model, "players", {}).values()}
    calls = {row["key"]: row for row in model.runlog.calls().to_dict("records")}
    earlier: list[tuple[str, str]] = []
    for row in model.runlog.decisions().to_dict("records"):
        if row["label"] not in SPOKEN or not row["keys"]:
            continue
        keys = row["keys"].split()
        speaker = names[row["agent"]]
        actions, answer = json.loads(row["decision"]) if row["decision"] else ([], None)
        spoken = answer or (actions[0][1].get("text", "") if actions else "")
        call = calls[keys[0]]
        raw, prompt = line_in(reply_text(call["reply"])), prompt_text(call["prompt"])
        for _, one in earlier:
            prompt = prompt.replace(one, "")
        others = set(names.values()) - {speaker}
        faults = [faults_of(one, speaker, earlier, prompt, others) if one else frozenset() for one in (raw, spoken)]
        silence = silence_in(Decision(0, reading=row["reading"] or "")) or ("" if spoken else "no usable reply")
        yield Line(world, speaker, raw, spoken, silence, (faults[0], faults[1]))
        if spoken:
            earlier.append((speaker, spoken))


def reply_text(stored: Any) -> str:
    """Return the text of a recorded reply, or the arguments of its first call."""
    reply = json.loads(stored) if isinstance(stored, str) else stored
    if isinstance(reply, dict):
        calls = reply.get("tool_calls")
        return reply.get("text") or (json.dumps(calls) if calls else "")
    return str(reply)


def prompt_text(stored: Any) -> str:
    """Return the text of a recorded prompt."""
    messages = json.loads(stored) if isinstance(stored, str) and stored.startswith("[") else stored
    return "\n".join(str(one.get("content", "")) for one in messages) if isinstance(messages, list) else str(messages)


def line_in(reply: str) -> str:
    """Return the line in a reply, which may be an object."""
    match = re.search(r'"text"\s*:\s*"((?:[^"\\]|\\.)*)', reply)
    return json.loads(f'"{match[1]}"') if match else reply


def table(lines: list[Line]) -> Iterator[str]:
    """Yield the table of rates: each fault, before and after."""
    spoken = [line for line in lines if line.spoken]
    counts = [Counter(fault for line in lines for fault in line.faults[stage]) for stage in (0, 1)]
    sizes = len(lines), len(spoken)
    yield f"{'':22}{f'first replies ({sizes[0]})':>22}{f'spoken lines ({sizes[1]})':>22}"
    for fault in FAULTS:
        yield f"{fault:22}" + "".join(f"{rate(counts[one][fault], sizes[one]):>22}" for one in (0, 1))
    together = [sum(bool(line.faults[0]) for line in lines), sum(bool(line.faults[1]) for line in spoken)]
    yield f"{'together':22}" + "".join(f"{rate(together[one], sizes[one]):>22}" for one in (0, 1))
    yield f"silent: {rate(sizes[0] - sizes[1], sizes[0])} of the turns"
    reasons = Counter(
        re.sub(r"(?:repeats|speaks for) (?!itself|the prompt).*", "echoes or speaks for somebody", line.silence)
        for line in lines
        if not line.spoken
    )
    for reason, count in reasons.most_common():
        yield f"  {count} {reason}"


def rate(count: int, total: int) -> str:
    """Format a count with its share."""
    return f"{count} = {count / total:.0%}" if total else "–"


def main() -> None:
    """Take the turns, and print the rates."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("worlds", nargs="*", help=f"worlds: {', '.join(WORLDS)}; all by default")
    parser.add_argument("--llm", default="local:1.5b", help="language model of the agents")
    parser.add_argument("--turns", type=int, default=60, help="number of turns, in all worlds together")
    parser.add_argument("--rng", type=int, default=1, help="seed of each run")
    parser.add_argument("--texts", action="store_true", help="print each first reply and what was said")
    given = parser.parse_args()
    names = given.worlds or list(WORLDS)
    if unknown := [name for name in names if name not in WORLDS]:
        parser.error(f"no world {unknown[0]!r}; one of {', '.join(WORLDS)}")
    start_s = sum(os.times()[:4]), time.perf_counter()
    lines: list[Line] = []
    for name in names:
        own = list(lines_of(name, WORLDS[name](given.turns // len(names), llm=given.llm, rng=given.rng)))
        for line in own if given.texts else ():
            print(
                f"\n[{name}] {line.speaker}\n  first: {line.raw}\n  said:  {line.spoken or f'({line.silence})'}",
                flush=True,
            )
        print(f"\n## {name}, {len(own)} turns", *table(own), sep="\n", flush=True)
        lines += own
    cpu_s, wall_s = sum(os.times()[:4]) - start_s[0], time.perf_counter() - start_s[1]
    print(f"\n## together, {len(lines)} turns", *table(lines), sep="\n")
    print(
        f"\n{given.llm}, mesa-llm-worlds {version('mesa-llm-worlds')}, seed {given.rng}: "
        f"{cpu_s:.0f} s of processor time, {wall_s:.0f} s in all."
    )


if __name__ == "__main__":
    main()
