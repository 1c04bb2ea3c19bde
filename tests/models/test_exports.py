"""Recorded runs in the form of other programs."""

from __future__ import annotations

import json

import pytest

from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.output import output_of_log, sauce_output
from mesa_llm_models.exports import export
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.sotopia.output import episode_logs, logs_of_run


@pytest.mark.parametrize(
    ("kind", "of_model", "of_log"),
    [(DiscussionModel, sauce_output, output_of_log), (SotopiaModel, episode_logs, logs_of_run)],
    ids=["discussion", "sotopia"],
)
def test_a_recorded_run_is_written_as_the_run_itself_would_be(kind, of_model, of_log, tmp_path) -> None:
    log, file = str(tmp_path / "run.sqlite"), tmp_path / "run.json"
    model = kind(rng=1, log=log)
    model.run_for(3)
    wanted = json.loads(json.dumps(of_model(model)))
    model.close()
    assert export("module", of_log, [log, str(file)]) == 0
    assert json.loads(file.read_text()) == wanted


def test_a_log_of_another_model_is_refused_in_one_line(tmp_path, capsys) -> None:
    log = str(tmp_path / "run.sqlite")
    SotopiaModel(rng=1, log=log).close()
    assert export("module", output_of_log, [log, str(tmp_path / "run.json")]) == 2
    lack = f"{log} holds no discussion; run one with mesa-llm run discussion --log {log}\n"
    assert capsys.readouterr().err == lack
    assert export("module", output_of_log, [log]) == 2
