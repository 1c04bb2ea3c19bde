"""`mesa-llm serve` starts servers of one model, and writes them to a file of endpoints."""

from __future__ import annotations

import importlib.util
import os
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError
from mesa_llm.cli.app import app
from mesa_llm.cli.serve import ServerPlan, await_ready, started, with_endpoint
from mesa_llm.llm.endpoints import read_endpoints
from tests.pot import PotModel

STUB = f"""#!{sys.executable}
import asyncio, sys
from mock_server import Behaviour, Counts, RateLimiter, ServerConnection
host, port = sys.argv[-3], int(sys.argv[-1])
assert sys.argv[1:3] == ["serve", "tiny"] and "--max-model-len" in sys.argv
async def serve():
    limiter = RateLimiter(Behaviour(fits=True), Counts())
    server = await asyncio.get_running_loop().create_server(lambda: ServerConnection(limiter), host, port)
    await server.serve_forever()
asyncio.run(serve())
"""

PLAN = ServerPlan("tiny", "cluster", 2, 1, 0, 128, ["--max-model-len", "4096"])


def command(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `vllm` be a program."""
    (folder / "vllm").write_text(text)
    (folder / "vllm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.setenv("PYTHONPATH", f"{benchmarks}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def test_a_dry_run_shows_what_would_be_started_on_ray_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--on", "ray", "--replicas", "2", "--gpus", "4", "--dry-run", "--", "--max-model-len", "8192"]
    done = CliRunner().invoke(app, ["serve", "Qwen/Qwen3-8B", *options])
    assert done.exit_code == 0, done.output
    assert done.output == (
        "would start on Ray, with 4 GPU each:\n"
        "  vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4 --max-model-len 8192 --host NODE_1 --port PORT\n"
        "  vllm serve Qwen/Qwen3-8B --tensor-parallel-size 4 --max-model-len 8192 --host NODE_2 --port PORT\n"
        "would write mesa-llm.toml:\n"
        "[endpoints.Qwen3-8B]\n"
        'model = "Qwen/Qwen3-8B"\n'
        'api_base = "http://NODE_1:PORT/v1"\n'
        'replicas = [\n    "http://NODE_2:PORT/v1",\n]\n'
        "concurrency = 512\n"
    )
    assert not list(tmp_path.iterdir())


def test_a_model_is_asked_at_the_servers_that_were_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(tmp_path, STUB, monkeypatch)
    with started(PLAN, "processes") as servers:
        await_ready(servers, 250)
        file = tmp_path / "mesa-llm.toml"
        file.write_text(with_endpoint("", "cluster", PLAN.fields([server.base() for server in servers])))
        monkeypatch.setenv("MESA_LLM_CONFIG", str(file))
        model = PotModel(n_agents=6, llm="cluster", rng=1)
        model.run_for(1)
        assert model.usage.failures == 0
        model.close()
    assert all(server.status() is not None for server in servers)


def test_a_server_that_ends_before_it_is_ready_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command(tmp_path, "#!/bin/sh\nexit 7\n", monkeypatch)
    with started(PLAN, "processes") as servers, pytest.raises(ConfigError, match=r"http://127.* ended with status 7"):
        await_ready(servers, 250)


def test_ray_that_is_not_installed_is_named() -> None:
    if importlib.util.find_spec("ray"):
        pytest.skip("Ray is installed")
    done = CliRunner().invoke(app, ["serve", "tiny", "--on", "ray", "--file", os.devnull])
    assert (done.exit_code, "needs Ray" in done.output) == (2, True)


def test_other_endpoints_comments_and_own_fields_remain(tmp_path: Path) -> None:
    text = (
        '# ours\n[endpoints.judge]\nmodel = "gpt-5"  # dear\n\n'
        '[endpoints.cluster]\nmodel = "old"\nreplicas = [\n  "http://gone:1/v1",\n]\napi_base = "http://old:1/v1"\n'
        "timeout_s = 300\n\n[endpoints.last]\nmodel = 'x'\n"
    )
    file = tmp_path / "mesa-llm.toml"
    file.write_text(with_endpoint(text, "cluster", PLAN.fields(["http://a:1/v1", "http://b:2/v1"])))
    endpoint = read_endpoints(file).endpoints["cluster"]
    assert (endpoint.model, endpoint.api_base, endpoint.replicas) == ("tiny", "http://a:1/v1", ("http://b:2/v1",))
    assert (endpoint.concurrency, endpoint.timeout_s) == (256, 300)
    assert set(tomllib.loads(file.read_text())["endpoints"]) == {"judge", "cluster", "last"}
    assert file.read_text().startswith('# ours\n[endpoints.judge]\nmodel = "gpt-5"  # dear\n')


def test_an_endpoint_that_is_no_table_of_its_own_is_left_alone() -> None:
    with pytest.raises(ConfigError, match=r"no table \[endpoints.cluster\]"):
        with_endpoint('[endpoints]\ncluster = {model = "old"}\n', "cluster", {"model": "new"})
