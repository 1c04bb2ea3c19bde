"""A cast and markets from a text: by a language model with the rule behind it, and usable by the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm import LLMModel, ScriptedLLM
from mesa_llm.cli.app import app
from mesa_llm.model.text_extraction import Bet, bets_from, characters_from, checked_bets, names_in
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.three_worlds.model import ThreeWorldsModel
from tests.faulty_server import FaultyServer

TEXT = "Mayor Lund wants a hall. The Grocers fear for their trade. Will the hall be built? Tove was not asked."


def test_a_language_model_names_the_cast_and_a_name_is_one_character() -> None:
    people = [{"name": name, "type": "org"} for name in ("The Grocers", "the  grocers!", "X", "Tove\nLund")]
    found, failure = characters_from(LLMModel(rng=1), ScriptedLLM(lambda request: {"characters": people}), TEXT, 3)
    assert failure is None
    assert [one.name for one in found] == ["The Grocers", "Tove Lund"]


def test_the_rule_steps_in_for_a_reply_that_cannot_be_used() -> None:
    found, failure = characters_from(LLMModel(rng=1), ScriptedLLM(lambda request: "nobody"), TEXT, 3)
    assert failure is not None
    assert [one.name for one in found] == names_in(TEXT, 3) == ["Mayor", "Lund", "Grocers"]


def test_bets_are_each_once_within_their_bounds() -> None:
    prices = (0.0, 0.3, float("nan"), float("inf"))
    bets = checked_bets(Bet(question=f"Will {n}?" * 60, price=price) for n, price in zip("aAbc", prices, strict=True))
    assert [bet.price for bet in bets] == [0.05, 0.5, 0.95]
    assert {len(bet.question) for bet in bets} == {200}
    assert [bet.question for bet in bets_from(LLMModel(rng=1), "rule", TEXT, 4, "Is it good?")[0]] == [
        "Is it good?",
        "Will the hall be built?",
    ]


def test_a_text_may_hold_more_names_and_questions_than_are_found() -> None:
    text = " ".join(f"Will {chr(65 + n % 26)}{chr(97 + n // 26)}rr win? Will it?" for n in range(150))
    assert len(bets_from(LLMModel(rng=1), "rule", text, 4)[0]) == 4
    assert len(characters_from(LLMModel(rng=1), "rule", text, 200)[0]) == 100


def made(tmp_path: Path, *words: Any) -> Any:
    (tmp_path / "text.txt").write_text(TEXT)
    files = ["--out", tmp_path / "cast.json", "--markets", tmp_path / "markets.json"]
    return CliRunner().invoke(app, [str(word) for word in ("extract", tmp_path / "text.txt", *files, *words)])


def test_the_models_live_with_a_cast_from_the_command_line(tmp_path: Path) -> None:
    done = made(tmp_path, "--n", 4, "--json")
    assert done.exit_code == 0, done.output
    names = [one["name"] for one in json.loads(done.stdout)["cast"]]
    assert names == ["Mayor", "Lund", "Grocers", "Tove"]
    users = str(tmp_path / "cast.json")
    assert [user.config.name for user in SocialModel(users=users, rng=1).agents] == names
    town = ThreeWorldsModel(users=users, n_agents=5, rng=1)
    assert [citizen.config.name for citizen in town.agents][:4] == names
    market = MarketModel(questions=str(tmp_path / "markets.json"), n_agents=2, rng=1)
    assert [fate.text for fate in market.fates] == ["Will the hall be built?"]
    town.step()
    market.step()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--out", "cast.txt"], "--out cast.txt: expected a file name ending in .json"),
        (["--markets", "no folder/markets.json"], "--markets no folder/markets.json: there is no folder 'no folder'"),
    ],
)
def test_a_cast_that_could_not_be_written_is_not_asked_for(tmp_path: Path, words: list[str], reason: str) -> None:
    with FaultyServer() as server:
        done = made(tmp_path, "--llm", "stub", "--api-base", server.url, *words)
    assert (done.exit_code, server.count) == (2, 0)
    assert reason in done.stderr


def test_a_text_without_a_question_keeps_its_cast_and_says_how_to_get_one(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Mayor Lund spoke of the hall.")
    files = ["--out", tmp_path / "cast.json", "--markets", tmp_path / "markets.json"]
    words = [str(word) for word in ("extract", tmp_path / "text.txt", *files)]
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, (tmp_path / "cast.json").exists(), (tmp_path / "markets.json").exists()) == (2, True, False)
    assert "name one with --goal" in done.stderr
    assert CliRunner().invoke(app, [*words, "--goal", "Will it be built?"]).exit_code == 0


def test_bad_texts_are_one_clear_line(tmp_path: Path) -> None:
    made(tmp_path)
    for text, reason in (("", "is empty"), ("nobody is here.", "names nobody")):
        (tmp_path / "bad.txt").write_text(text)
        done = CliRunner().invoke(app, ["extract", str(tmp_path / "bad.txt"), "--out", str(tmp_path / "x.json")])
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1)
        assert reason in done.stderr
    with pytest.raises(Exception, match="holds no list of questions"):
        MarketModel(questions=str(tmp_path / "text.txt"))
