"""What a run is stands in its log: another run is refused there, the same one goes on."""

import json
import sqlite3
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from mesa_llm import AgentConfig, AgentDesign, LLMModel
from mesa_llm.engine.activation import in_turn
from mesa_llm.errors import ConfigError
from mesa_llm.model.identity import class_named
from mesa_llm.model.recording import Recording
from mesa_llm_models.classics.opinion.model import OpinionModel
from mesa_llm_models.social.model import SocialModel, SocialScenario
from tests.pot import PotModel


def test_a_plain_model_is_told_how_it_is_run_and_replayed() -> None:
    with pytest.raises(ConfigError, match=r"not a subclass of LLMModel, but a plain .*; .* connect\(model, log="):
        class_named("tests.engine.test_plain:Field", LLMModel)


def test_an_activation_is_written_down_by_its_name() -> None:
    models = PotModel(1, activation=in_turn), PotModel(1, activation="in_turn")
    assert [model.runlog.manifest["parameters"]["activation"] for model in models] == ["in_turn"] * 2


def test_a_scenario_is_written_down_as_its_fields() -> None:
    written = SocialModel(scenario=SocialScenario(n_agents=5, rng=7)).runlog.manifest
    assert (written["parameters"]["n_agents"], written["parameters"]["follows"], written["rng"]) == (5, 3, 7)
    assert "scenario" not in written["parameters"]


class Reading(PotModel):
    """Reads files."""

    def __init__(self, table=None, tables=(), scenario=None, **options) -> None:
        super().__init__(2, **options)


class Opening(Reading):
    """Reads a file at once."""

    def __init__(self, table, scenario=None, **options) -> None:
        Path(table).read_text()
        super().__init__(table, **options)


@pytest.mark.parametrize("mode", ["record", "replay"])
@pytest.mark.parametrize("by", ["name", "path", "list"])
def test_a_file_that_changed_under_its_log_is_found_out(by, mode, tmp_path) -> None:
    table, log = tmp_path / "people.csv", tmp_path / "run.sqlite"
    table.write_text("name\nAnn\n")
    given = {"tables": [str(table)]} if by == "list" else {"table": str(table) if by == "name" else table}

    def run(**options) -> str:
        model = Reading(rng=1, log=log, **given, **options)
        model.run_for(1)
        model.close()
        return model.runlog.digest

    before = run()
    assert run(replay=mode == "replay") == before
    table.write_text("name\nBob\n")
    with pytest.raises(ConfigError, match=r"people\.csv"):
        run(replay=mode == "replay")


def test_a_run_is_replayed_and_gone_on_with_from_another_folder(tmp_path, monkeypatch) -> None:
    log, given = tmp_path / "runs" / "run.sqlite", {"table": "people.csv", "tables": ["./more/people.csv"]}
    for folder in (tmp_path / "more", log.parent, tmp_path / "elsewhere"):
        folder.mkdir()
    for name in ("people.csv", "more/people.csv"):
        (tmp_path / name).write_text(name)
    monkeypatch.chdir(tmp_path)
    first = Reading(rng=1, log=log, **given)
    first.run_for(1)
    first.close()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Recording.read(log).replayed().runlog.digest == first.runlog.digest
    Reading("../people.csv", [tmp_path / "more/people.csv"], rng=1, log=log).close()
    assert Recording.read(log).parameters["table"] == "people.csv"


def test_a_replay_names_the_file_that_it_does_not_find(tmp_path, monkeypatch) -> None:
    (table := tmp_path / "people.csv").write_text("Ann")
    monkeypatch.chdir(tmp_path)
    model = Opening("people.csv", rng=1, log="run.sqlite")
    model.run_for(1)
    model.close()
    table.unlink()
    with pytest.raises(ConfigError, match=r"was made with table=people\.csv, and that file is neither in '.*SHA-256 "):
        Recording.read("run.sqlite").replayed()


@pytest.mark.parametrize("text", ["Be kind. Be brief." * 40, "a. b\0", "no.such.file", "." * 300, ""])
def test_a_text_that_is_no_file_is_none(text) -> None:
    assert Reading(table=text, rng=1).runlog.manifest["files"] == {}


@pytest.mark.parametrize(
    "options",
    [{"reasoning": "inline"}, {"on_error": "rule"}, {"design": AgentDesign(memory="none")}, {"activation": "in_turn"}],
    ids=lambda options: next(iter(options)),
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_run_with_an_option_and_one_without_are_two(is_first, options, tmp_path) -> None:
    first, second = (options, {}) if is_first else ({}, options)
    PotModel(2, rng=1, log=tmp_path / "run.sqlite", **first).close()
    with pytest.raises(ConfigError, match=next(iter(options))):
        PotModel(2, rng=1, log=tmp_path / "run.sqlite", **second)


@pytest.mark.parametrize("options", [{"on_error": "skip"}, {"reasoning": None}, {"activation": "everyone"}])
def test_an_option_that_is_what_it_would_be_anyway_changes_no_run(options, tmp_path) -> None:
    for given in (options, {}, options):
        PotModel(2, rng=1, log=tmp_path / "run.sqlite", **given).close()


class Judging(PotModel):
    """Takes language models under names of its own."""

    def __init__(self, judge="", judges=(), llm="rule", scenario=None, **options) -> None:
        super().__init__(2, llm=llm, **options)


SECRET_URL = "http://user:pass-word@127.0.0.1:1/v1?api-key=query-secret"


@pytest.mark.parametrize(
    "given",
    [
        {"llm": f"m@{SECRET_URL}"},
        {"llm": {1: f"m@{SECRET_URL}", "*": "rule"}},
        {"parser": f"m@{SECRET_URL}"},
        {"judge": f"m@{SECRET_URL}"},
        {"judges": [f"m@{SECRET_URL}"]},
    ],
)
def test_secrets_in_an_address_are_never_recorded(given, tmp_path) -> None:
    model = Judging(rng=1, log=tmp_path / "run.sqlite", **given)
    model.close()
    assert b"-secret" not in (held := (tmp_path / "run.sqlite").read_bytes())
    assert b"pass-word" not in held
    assert b"m@http://127.0.0.1:1/v1" in held


@pytest.mark.parametrize("where", ["ftp://user:pass-word@host/v1", "user:pass-word@host", "http://user:pass-word@[bad"])
def test_an_address_that_cannot_work_is_refused_without_its_password(where, tmp_path) -> None:
    with pytest.raises(ConfigError, match="api_base must be a URL") as refused:
        Judging(rng=1, llm=f"m@{where}", log=tmp_path / "run.sqlite")
    assert "pass-word" not in str(refused.value)
    assert b"pass-word" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


@pytest.mark.parametrize("kind", [AgentConfig, PotModel, int], ids=lambda kind: kind.__name__)
def test_a_parameter_may_be_a_class(kind, tmp_path) -> None:
    for _ in range(2):
        model = Reading(table=kind, rng=1, log=tmp_path / "run.sqlite")
        assert model.runlog.manifest["parameters"]["table"].endswith(kind.__name__)
        model.close()


@pytest.mark.parametrize(("bound", "is_resumed"), [(0.2, True), (0.3, False)])
def test_a_run_of_before_a_parameter_was_added_goes_on_with_its_default(bound, is_resumed, tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    with closing(OpinionModel(n_agents=4, llm="random", rng=1, log=log)) as model:
        model.step()
        digest = model.runlog.digest
    with closing(sqlite3.connect(log)) as database:
        (text,) = database.execute("SELECT value FROM manifest WHERE name = 'parameters'").fetchone()
        older = json.dumps({name: value for name, value in json.loads(text).items() if name != "epsilon"})
        database.execute("UPDATE manifest SET value = ? WHERE name = 'parameters'", (older,))
        database.commit()
    expected = nullcontext() if is_resumed else pytest.raises(ConfigError, match=r"epsilon: None, now 0\.3")
    with expected, closing(OpinionModel(n_agents=4, epsilon=bound, llm="random", rng=1, log=log)) as again:
        again.step()
        assert again.runlog.digest == digest
