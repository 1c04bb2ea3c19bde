"""The guide `docs/many_servers.md` works as it stands: its script, its file of endpoints and its dry run."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.llm.endpoints import Endpoint
from tests.faulty_server import SERVER_ERROR, Fault, FaultyServer
from tests.processes import Python

GUIDE = (Path(__file__).parents[1] / "docs" / "many_servers.md").read_text(encoding="utf-8")
AGENTS, STEPS = 40, 3

PATIENCE_S = 250


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the script of the guide, and work in its folder."""
    found = re.search(r'```python title="masks.py"\n(.*?)```', GUIDE, re.DOTALL)
    assert found
    (tmp_path / "masks.py").write_text(found[1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    return tmp_path


def name_servers(folder: Path, servers: Sequence[FaultyServer]) -> None:
    """Write the servers to the file of endpoints, as one."""
    first, *others = (server.url for server in servers)
    (folder / "mesa-llm.toml").write_text(
        f'[endpoints.cluster]\nmodel = "tiny"\napi_base = "{first}"\nreplicas = {others}\nconcurrency = 8\n'
    )


def script(*options: str) -> Python:
    """Start the script at a small size."""
    return Python("masks.py", "--llm", "cluster", "--agents", str(AGENTS), "--steps", str(STEPS), *options)


def output_of(run: Python) -> str:
    """Return what a run prints by its end."""
    assert run.wait(PATIENCE_S) == 0, run.err
    return run.out


@pytest.mark.slow
def test_population_on_several_servers_resumes_though_one_fails(folder: Path) -> None:
    runs: list[Python] = []

    def behave(body: object, number: int) -> Fault | None:
        if number == AGENTS:
            runs[0].send_signal(signal.SIGKILL)
        return SERVER_ERROR if number == AGENTS + 10 else None

    with FaultyServer(behave, latency_s=0.01) as one, FaultyServer(latency_s=0.01) as two:
        name_servers(folder, (one, two))
        runs.append(script())
        assert runs[0].wait(PATIENCE_S) == -signal.SIGKILL
        output = output_of(script())
        n_sent = one.count_after_all() + two.count_after_all()
        whole = output_of(script("--clients", "0", "--log", "other.sqlite"))
    assert printed(output, "failed") == printed(whole, "failed") == [0] * STEPS
    assert printed(output, "from the log")[0] == AGENTS
    assert AGENTS * STEPS < n_sent <= AGENTS * STEPS + 8 + 1  # those in flight when it was killed, and the failed one
    assert output.splitlines()[-1] == whole.splitlines()[-1]  # the digest


def printed(output: str, what: str) -> list[int]:
    """Return a figure that the script prints every week."""
    return [int(figure.replace(",", "")) for figure in re.findall(rf"([\d,]+) {what}", output)]


def test_the_file_of_the_guide_is_one_of_endpoints() -> None:
    found = re.search(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert found
    endpoint = Endpoint.model_validate(tomllib.loads(found[1])["endpoints"]["cluster"])
    assert endpoint.concurrency == 256 * (1 + len(endpoint.replicas))


def test_the_dry_run_of_the_guide_names_the_endpoint_of_its_script(folder: Path) -> None:
    (command,) = re.findall(r"^mesa-llm (serve .*--dry-run)", GUIDE, re.MULTILINE)
    done = CliRunner().invoke(app, shlex.split(command))
    assert done.exit_code == 0
    assert "[endpoints.cluster]" in done.output
    assert len(re.findall(r"^  vllm serve", done.output, re.MULTILINE)) == 2
