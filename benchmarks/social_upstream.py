"""The other system of `social_scale.py`: `camel-oasis` as installed, with a language model in the process.

Only an environment that holds `camel-oasis==0.2.5` and `mcp<2` can run this file. Users follow ten others each, and
all of them are asked in each step; the model answers at once with one call of a tool, as the package's own agents
expect it: a third posts, a third likes, a third does nothing.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from measurement import python_text

CALLS = itertools.cycle(
    [("create_post", {"content": "Has anybody else been thinking about it?"}), ("like_post", {"post_id": 1}),
     ("do_nothing", {})]
)  # fmt: skip
"""Actions of the users, in turn."""


def stub_model() -> Any:
    """Return a model that answers with the next action."""
    from camel.models.stub_model import StubModel
    from camel.types import ChatCompletion, ModelType

    class Caller(StubModel):
        """Answers at once."""

        async def _arun(self, *args: Any, **kwargs: Any) -> Any:
            name, arguments = next(CALLS)
            call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            message = {"role": "assistant", "content": "", "tool_calls": [call]}
            choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
            usage = {"completion_tokens": 10, "prompt_tokens": 10, "total_tokens": 20}
            document = {"id": "stub", "model": "stub", "object": "chat.completion", "created": 0, "usage": usage}
            return ChatCompletion.model_validate({**document, "choices": [choice]})

    return Caller(model_type=ModelType.STUB)


async def measured(users: int, steps: int) -> dict[str, Any]:
    """Build a network, and let everybody act."""
    import oasis
    from oasis import ActionType, AgentGraph, LLMAction, SocialAgent, UserInfo

    begun = time.process_time()
    model, graph = stub_model(), AgentGraph()
    actions = ActionType.get_default_reddit_actions()
    for index in range(users):
        traits = {"gender": "female", "age": 30, "mbti": "INTJ", "country": "US"}
        profile = {"nodes": [], "edges": [], "other_info": {"user_profile": f"You are user {index}.", **traits}}
        user_info = UserInfo(
            user_name=f"user_{index}", name=f"User {index}", description="", profile=profile, recsys_type="reddit"
        )
        graph.add_agent(SocialAgent(index, user_info, agent_graph=graph, model=model, available_actions=actions))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "network.db"))
        env = oasis.make(agent_graph=graph, platform=oasis.DefaultPlatformType.REDDIT, database_path=path)
        await env.reset()
        build_s = time.process_time() - begun
        await env.platform.create_post(0, "Good morning.")
        seconds: list[float] = []
        for _ in range(steps):
            before = time.process_time()
            await env.step({agent: LLMAction() for _, agent in graph.get_agents()})
            seconds.append(time.process_time() - before)
        await env.close()
    return {"users": users, "build_s": build_s, "step_s": median(seconds), "agent_ms": 1e3 * median(seconds) / users}


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as own_folder:
        os.chdir(own_folder)  # the package makes a folder `log` where it is imported
        found = asyncio.run(measured(int(sys.argv[1]), int(sys.argv[2])))
        os.chdir("/")
    print(json.dumps({**found, "python": python_text()}))
