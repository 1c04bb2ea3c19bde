"""Every model runs from the command line in every cheap form of `--llm`: by rule, at random, by a person, remotely.

The embedded model has the same seams as the remote ones; `tests/llm/local/test_model.py` and the demo ask it.
"""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm.cli.app import app
from mesa_llm.llm.human.forms import PASS
from mesa_llm.llm.schema.flat import flat_schema
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.registry import find_models
from mesa_llm.runlog.log import RunLog
from mesa_llm.testing import honest_reply
from tests.faulty_server import FaultyServer

STEPS = 3

SMALLER = {
    "compost": {"n_personas": 1, "n_topics": 1},
    "wolf_sheep": {"size": 7, "n_sheep": 10, "n_wolves": 3},
}
"""Parameters of models whose results would take long: a random forest for each persona on each topic; 260 animals."""

every_model = pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)


def run_command(entry, llm, log, *options, lines=()) -> str:
    """Run a model as its user types it, and return what that shows."""
    command = ["run", entry.name, "--llm", llm, "--rng", "4", "--steps", str(STEPS), "--log", str(log)]
    command += [word for item in SMALLER.get(entry.name, {}).items() for word in ("--set", "{}={}".format(*item))]
    done = CliRunner().invoke(app, [*command, *options], input="".join(f"{line}\n" for line in lines))
    assert done.exit_code == 0, done.output
    return done.stdout


def figures_of(*form) -> dict:
    """Run a model, and return the JSON object that the run ends with."""
    return json.loads(run_command(*form, "--json").splitlines()[-1])


def done_in(log) -> list:
    """List the actions of a run, with their outcomes."""
    return RunLog(log, "read").actions().values.tolist()


@every_model
@pytest.mark.parametrize("llm", ["rule", "random"])
def test_a_run_without_a_language_model_acts_and_asks_nobody(entry, llm, tmp_path) -> None:
    run = figures_of(entry, llm, tmp_path / "run.sqlite")
    assert run["steps"] == STEPS or run["ended"]
    assert (run["failures"], run["calls"], run["tokens"]) == (0, 0, 0)
    assert run["decisions"] >= run["steps"]
    assert len(done_in(tmp_path / "run.sqlite")) > 0


@every_model
def test_a_run_on_an_endpoint_asks_it_for_every_decision_that_has_a_choice(entry, tmp_path) -> None:
    with FaultyServer() as server:
        run = figures_of(entry, "stub", tmp_path / "run.sqlite", "--api-base", server.url)
    assert run["steps"] == STEPS or run["ended"]
    assert run["failures"] == 0
    assert run["calls"] == server.count >= run["decisions"] - run["quality"]["not_asked"]["n"] > 0
    assert run["tokens"] > 0


@every_model
def test_a_person_at_the_terminal_can_do_what_a_model_does(entry, tmp_path) -> None:
    lines: list[str] = []

    class Typist(ScriptedLLM):
        is_person = True  # who is shown even a choice of one

    def watched(request):
        reply = honest_reply(request)
        lines.extend(typed_for(request, reply))
        return reply

    smaller: Any = SMALLER.get(entry.name, {})
    model = entry.load()(rng=4, llm=Typist(watched), log=tmp_path / "model.sqlite", concurrency=1, **smaller)
    model.run_for(STEPS)
    model.close()
    assert "(0 failed)" in run_command(entry, "human", tmp_path / "person.sqlite", lines=lines)
    assert done_in(tmp_path / "person.sqlite") == done_in(tmp_path / "model.sqlite")


@every_model
@pytest.mark.parametrize("count", [0, -1])
def test_a_population_of_nobody_is_refused_in_words(entry, count) -> None:
    done = CliRunner().invoke(app, ["run", entry.name, "--set", f"n_agents={count}"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert "n_agents" in done.stderr


def typed_for(request, reply) -> list[str]:
    """Give the lines that a person types for the same decision."""
    if not reply.tool_calls:
        return lines_of(json.loads(reply.text), flat_schema(request.schema)) if request.schema else [reply.text]
    (call,) = reply.tool_calls
    (tool,) = (tool for tool in request.tools if tool.name == call.name)
    no_more = [""] if request.max_actions > 1 and call.name != PASS else []
    is_only_one = len(request.tools) == 1 and request.max_actions == 1 and bool(tool.parameters.get("required"))
    name = [] if is_only_one else [call.name]
    return [*name, *lines_of(call.arguments, flat_schema({"type": "object", **tool.parameters})), *no_more]


def lines_of(answer, schema) -> list[str]:
    """Give a line for each value, down to where an object has names of its own; an empty one for what is left out."""
    if isinstance(answer, dict) and schema["additionalProperties"] is False:
        properties = schema["properties"].items()
        return [line for name, inner in properties for line in lines_of(answer.get(name, ""), inner)]
    return [answer if isinstance(answer, str) else json.dumps(answer)]
