"""llama.cpp's own server, with the embedded model's file: what it accepts and ignores is asked for in another way."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mesa_llm.llm.openai.client import OpenAIHTTP
from tests.llm.human.questions import ACTIONS, VOTE, ask

SERVE = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx, parameters.n_parallel, parameters.n_gpu_layers = 2048, 1, 0
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
parameters.use_jinja, parameters.warmup, parameters.verbosity = True, False, -1
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
time.sleep(600)
"""
SETTINGS = {"temperature": 0, "max_tokens": 80}


@pytest.mark.slow
def test_it_answers_in_the_form_and_calls_what_is_on_offer(model_path: Path) -> None:
    async def ask_all(url: str) -> list[str]:
        llm = OpenAIHTTP("smol", f"{url}/v1", timeout_s=300)
        requests = [ask(schema=VOTE, settings=SETTINGS), *[ask(tools=ACTIONS, settings=SETTINGS)] * 2]
        texts = [(await llm.reply(request)).text for request in requests]
        await llm.close()
        return texts

    command = [sys.executable, "-c", SERVE, str(model_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            answer, prose, call = asyncio.run(ask_all(server.stdout.readline().strip()))
        finally:
            server.kill()
    assert json.loads(answer)["vote"] in ("Green", "Oil")
    assert not prose.startswith("{")
    assert json.loads(call)["action"] in {tool.name for tool in ACTIONS}
