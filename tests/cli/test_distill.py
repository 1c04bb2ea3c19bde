"""Surrogate minds, as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from mesa_llm.cli.app import app


def typed(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_recorded_run_is_distilled_into_a_surrogate_that_decides(tmp_path: Path) -> None:
    mind, log = tmp_path / "mind.json", tmp_path / "run.sqlite"
    done = typed("distill", "boltzmann_wealth/greedy", "boltzmann_wealth/generous", "--out", mind)
    assert done.exit_code == 0, done.output
    assert "Held out by agents of the same runs, in 5 parts: " in done.stdout
    assert "Mean loss of the rest in the same run, not in a new one" in done.stdout
    assert "rule twin" in done.stdout
    figures = json.loads(typed("distill", "boltzmann_wealth/coins", "--out", mind, "--json").stdout)
    assert (figures["of"], figures["held_out"]["by"]) == (["local:1.5b"], "agents")
    assert figures["held_out"]["is_same_run"]
    played = typed("run", "boltzmann_wealth", "--llm", f"surrogate:{mind}", "--steps", 2, "--rng", 3, "--log", log)
    assert "were made by a surrogate of a language model" in played.stdout
    assert typed("replay", log).exit_code == 0
