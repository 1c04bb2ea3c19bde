"""Shachi's studies: each finds what was put in, and nothing where nothing was."""

from __future__ import annotations

import json
import math
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError, Reply, ScriptedLLM
from mesa_llm.cli.app import app
from mesa_llm.errors import BudgetExceeded
from mesa_llm.experiments.runs.study import StudyFindings, StudySetup, estimate_study, find_study
from mesa_llm.llm.budget import SharedBudget
from mesa_llm.llm.replies import call
from mesa_llm.registry import find_model
from mesa_llm.testing import CHECKS
from mesa_llm_models.shachi.dynamics import study_prices, study_priorities
from mesa_llm_models.shachi.memory_transfer import study_memory
from mesa_llm_models.shachi.other_life import DIRECTIONS
from mesa_llm_models.shachi.swap import interaction_p, study_swap
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel
from mesa_llm_models.shachi.validity import RealSeries, ShockModel, study_validity
from mesa_llm_models.shachi.worlds import lagged_correlation, study_worlds
from tests.faulty_server import FaultyServer


def frame(findings: StudyFindings, index: int = 0) -> Any:
    return findings.tables[index].frame()


# -- worlds


def test_trading_moves_with_a_shared_memory_and_with_no_placebo() -> None:
    found = study_worlds(StudySetup(range(1, 3), parameters={"n_agents": 4, "days": 1, "twin": "hold", "hearsay": 1.0}))
    rows = frame(found)
    placebos = rows[rows["arm"].isin(["isolated", "filler"])]
    assert placebos["difference"].eq(0).all()
    buys = rows[(rows["arm"] == "shared") & (rows["indicator"] == "buys") & (rows["stock"] == "B")]
    assert buys["difference"].iloc[0] >= 4
    assert list(rows[rows["arm"] == "shared"]["published %"]) == [10.0, 20.0, 8.4, 6.1, 6.6, -8.5]
    assert "data:image/svg+xml" in found.page()
    assert found.cost["runs"] == 10


def test_posts_lead_orders_by_the_lag_that_they_do() -> None:
    course = {"trade_posts": [1, 5, 2, 7, 3, 9], "orders_A": [0, 1, 5, 2, 7, 3], "orders_B": [0] * 6}
    assert lagged_correlation(course, 1) == pytest.approx(1)
    assert lagged_correlation(course, 0) != pytest.approx(1)
    assert lagged_correlation({**course, "trade_posts": [0] * 6}, 0) is None


def test_a_language_model_reads_on_the_exchange_what_it_read_on_the_network() -> None:
    prompts: dict[str, list[str]] = {"exchange": [], "social": []}

    def answer(request: Any) -> Reply:
        text = str(request.messages)
        place = "social" if any(tool.name == "create_post" for tool in request.tools) else "exchange"
        prompts[place].append(text)
        return call("do_nothing")

    TwoWorldsModel(n_agents=2, days=1, sessions=1, llm=ScriptedLLM(answer), rng=1).run()
    assert any("a shop with walls" in text for text in prompts["exchange"])
    assert any("Latest prices" in text for text in prompts["social"])
    assert all("style of investing" not in text.split("Step")[0] for text in prompts["social"])


def test_whoever_has_traded_talks_about_an_order_that_it_gave() -> None:
    town = TwoWorldsModel(n_agents=8, days=1, rng=1, talk=1)
    town.run()
    done = town.runlog.actions()
    orders, posts = (done[done["ok"] & done["action"].isin(names)] for names in (("buy", "sell"), ("create_post",)))
    verbs = {"buy": "bought", "sell": "sold"}
    given = {(row.agent, f"{verbs[row.action]} {json.loads(row.arguments)['stock']}") for row in orders.itertuples()}
    told = [(row.agent, json.loads(row.arguments)["content"]) for row in posts.itertuples()]
    told = [(agent, " ".join(text.split()[1:3])) for agent, text in told if text.endswith("I would do it again.")]
    assert len(told) > 4
    assert set(told) <= given


@pytest.mark.parametrize("check", ["replays", "resumes", "survives_faults"])
def test_lives_in_two_worlds_keep_the_promises_of_every_model(check) -> None:
    CHECKS[check](find_model("mesa_llm_models.shachi.two_worlds:TwoWorldsModel"))


# -- memory


def test_planted_shifts_are_found_with_their_direction_and_no_others() -> None:
    biases = ["Anchoring", "EndowmentEffect", "InGroupBias"]
    found = study_memory(StudySetup([1, 2], parameters={"biases": biases, "n_agents": 12}), people=12, months=3)
    rows = frame(found).set_index(["source", "bias"])
    for source in ("oasis", "econ_agent"):
        for bias in biases:
            expected = DIRECTIONS[source].get(bias, 0)
            row = rows.loc[source, bias]
            assert (row["verdict"] == "as published") == bool(expected)
            assert row["difference"] == 0 or row["difference"] * expected > 0
    lengths = frame(found, 2).set_index(["source", "memory"])["characters"]
    assert lengths["oasis", "carried"] == lengths["oasis", "neutral"] == lengths["oasis", "shuffled"] > 500
    assert lengths["oasis", "fresh"] == 0
    assert lengths["oasis", "half"] < lengths["oasis", "carried"]


def test_a_study_of_memory_goes_on_in_a_folder_that_was_moved(tmp_path) -> None:
    def study(folder: str) -> StudyFindings:
        parameters = {"biases": ["LossAversion"], "n_agents": 2, "n_tests": 1}
        setup = StudySetup([1], tmp_path / folder, llm="random", parameters=parameters)
        return study_memory(setup, people=2, months=1)

    first = study("here")
    (tmp_path / "here").rename(tmp_path / "there")
    again = study("there")
    assert (first.cost["done"], again.cost["done"]) == (first.cost["runs"], 0)
    for row in (tmp_path / "there").glob("biases*/*.json"):
        row.unlink()
    assert [table.rows for table in study("there").tables] == [table.rows for table in first.tables]


# -- swap


def test_backends_that_differ_are_told_apart_and_the_same_twice_is_not() -> None:
    found = study_swap(
        StudySetup(range(1, 6), llm="random", parameters={"n_agents": 6, "policy": "composite"}, steps=60)
    )
    levels = frame(found, 2).set_index(["figure", "backend"])
    assert levels.loc[("unemployment", "random"), "mean"] > levels.loc[("unemployment", "rule: composite"), "mean"]
    tests = frame(found, 1)
    okun = tests[(tests["law"] == "Okun's law") & (tests["of"] == "slope") & (tests["backends"] == "all")].iloc[0]
    assert okun["p"] < 0.05
    lines = frame(found)
    assert lines["standard error"].notna().any()
    assert set(lines["backend"]) == {"rule: composite", "random"}


def test_an_interaction_is_found_where_slopes_differ() -> None:
    rising = [[x, 2 * x + 0.1 * (-1) ** x] for x in range(8)]
    falling = [[x, -x + 0.1 * (-1) ** x] for x in range(8)]
    p = interaction_p([rising, falling])
    assert p is not None
    assert p < 1e-6
    assert interaction_p([rising, [[x, y + 5] for x, y in rising]]) == pytest.approx(1)
    assert interaction_p([rising]) is None


# -- validity

SMALL: dict[str, Any] = {"n_agents": 8, "days": 3, "sessions": 2, "shock_day": 2}
"""A small exchange."""

BAD = "A terrible crisis and a horrible loss, a disaster."


def test_bad_news_lowers_prices_longer_for_those_who_remember(tmp_path) -> None:
    (tmp_path / "real.csv").write_text("Date,Close\n2025-04-01,101\n2025-04-02,100\n2025-04-03,95\n2025-04-04,90\n")
    setup = StudySetup([1, 2, 3], parameters={**SMALL, "news": BAD})
    found = study_validity(setup, real=tmp_path / "real.csv", event=date(2025, 4, 3))
    effects = frame(found, 1).set_index(["traders have", "until"])["difference"]
    assert effects["memory", "day of the news"] < 0
    assert effects["memory", "last day"] < effects["neither", "last day"]
    beside = frame(found).set_index(["traders have", "news"])
    assert beside.loc[("memory", "yes"), "real %"] == pytest.approx(-10)
    assert beside.loc[("memory", "yes"), "distance"] < beside.loc[("memory", "no news"), "distance"]


def test_news_appears_in_the_first_session_of_its_day() -> None:
    prompts: list[str] = []
    llm = ScriptedLLM(lambda request: prompts.append(str(request.messages[-1].content)) or call("do_nothing"))
    ShockModel(**{**SMALL, "n_agents": 1}, news=BAD, memory="none", llm=llm, rng=1).run()
    assert [text.splitlines()[0] for text in prompts if BAD in text] == ["Day 2, session 1."]
    with pytest.raises(ConfigError, match="shock is on day 9"):
        ShockModel(**{**SMALL, "shock_day": 9})


def test_news_of_two_lines_is_remembered_like_news_of_one() -> None:
    texts = [BAD, BAD.replace(", ", ",\n")]
    models = [ShockModel(**SMALL, news=news, memory="chat:4000:6", rng=1) for news in texts]
    for model in models:
        model.run()
    assert models[0].world.market.paths == models[1].world.market.paths


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("day,close\n2025-04-01,1\n", "needs the columns date, and close or price"),
        ("date,close\n1.4.2025,1\n", "line 2: Invalid isoformat"),
        ("date,close\n2025-04-01,-1\n", "line 2: a price must be above 0"),
        ("date,close\n2025-04-01,1\n", "at least three days"),
    ],
)
def test_a_series_that_cannot_be_used_is_refused_with_its_line(tmp_path, text, message) -> None:
    (tmp_path / "real.csv").write_text(text)
    with pytest.raises(ConfigError, match=message):
        RealSeries.read(tmp_path / "real.csv")


def test_an_event_on_a_holiday_counts_from_the_next_day_with_a_price() -> None:
    series = RealSeries((date(2025, 4, 4), date(2025, 4, 7), date(2025, 4, 8)), (100.0, 90.0, 95.0))
    assert series.around(date(2025, 4, 6), 3, 3) == pytest.approx({0: 0, 1: -10, 2: -5})
    with pytest.raises(ConfigError, match="needs a day before it"):
        series.around(date(2025, 4, 4), 1, 1)


# -- the command


def test_a_study_is_one_command_that_goes_on_from_its_logs_and_leaves_a_page(tmp_path) -> None:
    words = ["validity", "--seeds", "1", "--out", str(tmp_path / "study"), "--json", "--set", f"news={BAD}"]
    words += [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]
    first, again = (CliRunner().invoke(app, ["study", "shachi", *words]) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (0, 0), first.output
    found, repeated = (json.loads(done.output.splitlines()[-1]) for done in (first, again))
    assert (found["runs"], found["done"], repeated["done"]) == (8, 8, 0)
    assert found["tables"] == repeated["tables"]
    assert len(list((tmp_path / "study" / "validity").glob("*.sqlite"))) == 8
    assert "<table>" in Path(found["page"]).read_text()


@pytest.mark.parametrize(
    "words",
    [
        ["shachi", "swap", "--steps", "2", "--set", "n_agents=4"],
        ["oasis", "polarisation", "--steps", "2", "--set", "n_agents=10"],
        ["classics", "schelling"],
    ],
    ids=lambda words: words[1],
)
def test_agents_of_a_study_may_have_several_language_models(words) -> None:
    mixed = ["--llm", "1/2=random,others=rule", "--seeds", "1"]
    done = CliRunner().invoke(app, ["study", *words, *mixed])
    assert done.exit_code == 0, done.output
    assert "1/2=random, *=rule" in done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["love"], "shachi has no study 'love'; it has prices, priorities, swap, memory, worlds, validity"),
        (["worlds", "--set", "stock=A"], "--set stock=A: expected name=value, where name is one of"),
        (["validity", "--set", "event=tomorrow"], "--set event=tomorrow: input should be a valid date"),
        (["validity", "--set", "event=2025-04-03"], "belong together"),
        (["validity", "--steps", "3", "--set", "shock_day=1"], "3 steps end before the exchange closes"),
        (["swap", "--set", "love=1"], "--set love=1"),
    ],
)
def test_a_command_that_cannot_be_is_one_line(words, message) -> None:
    done = CliRunner().invoke(app, ["study", "shachi", *words])
    assert done.exit_code == 2
    assert message in done.output


def test_all_runs_of_a_study_spend_from_one_purse(tmp_path) -> None:
    with FaultyServer() as server:
        small = {"n_agents": 2, "days": 1, "sessions": 1}
        setup = StudySetup([1], tmp_path, "tiny", 1, small, access={"api_base": server.url}, purse=SharedBudget(9))
        with pytest.raises(BudgetExceeded):
            study_worlds(setup)
        assert server.count == 9


def test_where_a_line_is_missing_the_study_says_what_it_takes() -> None:
    short = study_swap(StudySetup([1], parameters={"n_agents": 4, "policy": "len"}, steps=6))
    assert short.tables[-1].title == "Published and ours"
    assert "dashes need 48 months" in short.text()
    assert "An interval and a test need 4 seeds (1 here)" in short.text()
    long = study_swap(StudySetup([1], parameters={"n_agents": 20, "policy": "len"}, steps=48))
    assert "dashes need" not in long.text()
    assert long.tables[-1].rows[0]["ours"] is not None


def test_all_indicators_stand_beside_figure_7_and_a_dash_says_what_it_takes() -> None:
    short, long = (
        study_swap(StudySetup([1, 2], llm="random", parameters={"n_agents": 4}, steps=steps)) for steps in (6, 36)
    )
    rows = [row for row in short.tables[-1].rows if row["figure"] == "Figure 7"]
    assert [row["it takes"] for row in rows] == ["--steps 36", "--seeds 2 --steps 24"]
    rows = [row for row in long.tables[-1].rows if row["figure"] == "Figure 7"]
    assert rows[0]["ours"] == "5 of 5 change in every run"
    assert "of 5 differ" in str(rows[1]["ours"])


# -- prices and priorities


def test_prices_stand_beside_the_originals_session_by_session() -> None:
    found = study_prices(StudySetup([1, 2, 3, 4], parameters={"n_agents": 10, "days": 2}))
    courses = frame(found, 1)
    assert list(courses["original A"]) == [29, 29, 30, 29, 28.4, 28.6]
    assert courses["low A"].le(courses["high A"]).all()
    assert frame(found)["correlation with the original"].str.contains(r"\[").all()
    assert "data:image/svg+xml" in found.page()
    other = study_prices(StudySetup([1], parameters={"n_agents": 10, "days": 1, "sessions": 4}))
    assert frame(other, 1)["original A"].isna().all()
    assert "needs 3 sessions a day" in other.text()


def test_priorities_are_those_of_the_lots_that_remain_dearest_first() -> None:
    found = study_priorities(StudySetup([1, 2], parameters={"n_lots": 4}))
    before, changes = frame(found, 1), frame(found, 2)
    assert [text.split(". ")[0] for text in before["before"]] == ["1", "2", "3", "4"]
    for row, column in product(range(4), range(4)):
        cell = before[str(column + 1)][row]
        assert 1 <= cell <= 3 if column >= row else math.isnan(cell)
    assert changes["4"][0] == pytest.approx(before["4"][1] - before["4"][0])
    assert "data:image/svg+xml" in found.page()


def test_the_priorities_of_bidders_who_do_not_plan_are_dashes() -> None:
    found = study_priorities(StudySetup([1], parameters={"n_lots": 2, "planning": "none"}))
    assert list(frame(found)["ours"]) == ["–"] * 3
    assert "An interval needs 2 seeds" in found.text()


def test_a_studys_cost_is_estimated_without_a_request() -> None:
    setup = StudySetup([1, 2, 3], llm="gpt-4.1-nano", parameters={"n_agents": 2, "policy": "len"}, steps=2)
    cost, unpriced = estimate_study(find_study("shachi", "swap"), setup)
    assert (cost.requests, unpriced) == (3 * 2 * 2, [])
