"""Speed of a replay, of the log alone and of a whole model, and size of the log."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from measurement import PERSONA, Measurement, measured, run_measurement

from mesa_llm import RunLog
from mesa_llm.records import ChatMessage, Reply, Request, Salt, ToolCall
from mesa_llm.registry import find_model
from mesa_llm.testing import honest

SEEN = "Step {step}, you remember: you paid 2 coins into the pot, and the others paid 3 coins each.\n"
"""A line of a prompt; ten of them make about 1,000 characters."""


def request(agent: int, time: int) -> Request:
    """Return a request like an agent's."""
    words = "".join(SEEN.format(step=step) for step in range(time, time + 10))
    messages = (ChatMessage("system", PERSONA.format(number=agent)), ChatMessage("user", words))
    return Request(
        "mock", messages, Salt(1, agent, time, "decide", 0), settings={"temperature": 0.7, "max_tokens": 400}
    )


def log(measurement: Measurement) -> dict[str, Any]:
    """Find every reply of a recorded run: digest of the request, look-up, reply."""
    reply = Reply("", (ToolCall("pay", {"coins": 2}, "call_1"),), 300, 20, None, "mock", "stop", 0.1)
    turns = [(agent, time) for time in range(measurement.steps) for agent in range(measurement.agents)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.sqlite")
        recording = RunLog(path)
        for agent, time in turns:
            recording.keep(request(agent, time), reply, 0.1)
        recording.close()
        replaying = RunLog(path, "replay")
        requests = [request(agent, time) for agent, time in turns]
        with measured() as timing:
            found = [replaying.find(request) for request in requests]
        replaying.close()
    if found != [reply] * len(turns):
        raise SystemExit("the log gave other replies than it was given")
    return {**vars(timing), "decisions": len(turns)}


def social(measurement: Measurement) -> dict[str, Any]:
    """Replay the model `social` from its log, construction included."""
    kind = find_model("social").load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.sqlite")
        digests: list[str] = []
        for options in ({"llm": honest()}, {"llm": "ScriptedLLM", "replay": True}):
            with measured() as timing:
                model = kind(n_agents=measurement.agents, rng=1, log=path, **options)
                for _ in range(measurement.steps):
                    model.step()
            digests.append(model.runlog.digest)
            decisions = model.usage.replayed
            model.close()
        log_bytes = path.stat().st_size
    if digests[0] != digests[1]:
        raise SystemExit("the replay is another run than the recorded one")
    return {**vars(timing), "decisions": decisions, "log_bytes": log_bytes}


if __name__ == "__main__":
    run_measurement({kind.__name__: kind for kind in (log, social)})
