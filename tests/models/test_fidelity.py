"""What a language model is sent with `fidelity="original"`: the information, memory and order of the two papers.

Sources: Zhang et al. (2024), StockAgent, arXiv 2407.18957; Li et al. (2024), EconAgent, arXiv 2310.10436; and their
programs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import ConfigError, ScriptedLLM
from mesa_llm.llm.replies import call
from mesa_llm.memory.text import NO_ANSWER
from mesa_llm.records import Request
from mesa_llm_models.econ_agent.agents import HouseholdDialogue
from mesa_llm_models.econ_agent.model import EconAgentModel, EconAgentScenario
from mesa_llm_models.stock_agent.model import StockAgentModel, StockAgentScenario
from mesa_llm_models.stock_agent.world import COMPANIES, Loan, report_on
from mesa_llm_models.stock_agent.world.text import BACKGROUNDS

THOUGHT = "I will keep more in my account."


def text(request: Request) -> str:
    """Return all that a request sends, instructions included."""
    return "\n".join(message.content for message in request.messages)


def last(request: Request) -> str:
    """Return the part of a request that is new."""
    return request.messages[-1].content


class Notebook(ScriptedLLM):
    """Replies for traders and households, and keeps all requests."""

    def __init__(self, **replies: Any) -> None:
        super().__init__(self.answer, name="notebook")
        self.requests: list[Request] = []
        self.replies = replies

    def answer(self, request: Request) -> Any:
        self.requests.append(request)
        names = {tool.name for tool in request.tools}
        scripted = next((reply for name, reply in self.replies.items() if name in names), None)
        if scripted is not None:
            return scripted(request) if callable(scripted) else scripted
        if "post_message" in names:
            return call("post_message", text=f"{request.salt.agent} was here. " + "x" * 1900)
        if "plan_month" in names:
            return call("plan_month", work=1, consumption=0.5)
        return call("do_nothing") if names else THOUGHT

    def at(self, time: int, agent: int = 1, *, planning: bool = True) -> Request:
        """Return what an agent was sent in a step, to decide on an action or (for a household) to reflect."""
        (found,) = [
            one for one in self.requests
            if (one.salt.time, one.salt.agent, bool(one.tools)) == (time, agent, planning)
        ]  # fmt: skip
        return found


def traded(steps: int, llm: Notebook | None = None, **parameters: Any) -> Notebook:
    """Run an exchange of the paper; return what its traders were sent. A day of one session has four steps."""
    llm = llm or Notebook()
    model = StockAgentModel(**{"n_agents": 4, "sessions": 1, "fidelity": "original", "rng": 1, **parameters}, llm=llm)
    for _ in range(steps):
        model.step()
    return llm


def planned(months: int, llm: Notebook | None = None, **parameters: Any) -> Notebook:
    """Run an economy of the paper; return what its households were sent."""
    llm = llm or Notebook()
    model = EconAgentModel(**{"n_agents": 3, "fidelity": "original", "rng": 1, **parameters}, llm=llm)
    for _ in range(months):
        model.step()
    return llm


# -- stock_agent: what is seen


def test_loan_prompt_has_stocks_terms_character_and_account() -> None:
    llm = Notebook()
    model = StockAgentModel(n_agents=1, fidelity="original", llm=llm, rng=1)
    account = model.world.market.accounts[1]
    account.loans = [Loan(1000.0, 1, due_day=22)]
    model.step()
    (request,) = llm.requests
    for fact in (
        "A is the share of a maker of chemicals, listed for 10 years",
        "B is the share of a growing technology firm, listed for 3 years",
        "type 0: for 22 days, at 2.70%", "type 1: for 44 days, at 3.00%", "type 2: for 66 days, at 3.30%",
        "day 1", f"Your character: {account.style}.", f"{account.shares['A']} shares of A",
        f"{account.shares['B']} shares of B", "1000.00, type 1, due on day 22", "You may borrow up to",
    ):  # fmt: skip
        assert fact in text(request)
    assert "closed at" not in text(request)
    assert {tool.name for tool in request.tools} == {"take_loan", "do_nothing"}


def test_loan_prompt_from_day_two_has_closing_prices_and_all_posts() -> None:
    request = traded(5, n_agents=12).at(5)
    assert "Yesterday A closed at 30 and B at 40." in text(request)
    for trader in range(1, 13):
        assert f"Trader {trader}: “{trader} was here. {'x' * 1900}”" in text(request)


def test_trader_sees_one_word_of_character_and_no_market_internals() -> None:
    llm = traded(8, days=7)
    assert [request.messages[0].role for request in llm.requests] == ["user"] * len(llm.requests)
    for request in llm.requests:
        for word in ("invest", "Your name", "persona", "a twelfth", "same price", "forced", "leave", "of 7", "7 days"):
            assert word not in text(request)


@pytest.mark.parametrize("day", [1, 2])
def test_companies_are_shown_in_the_first_session_of_each_day(day: int) -> None:
    llm = traded(12, sessions=3)
    first = 6 * (day - 1) + 2
    assert all("20%" not in last(llm.at(time)) for time in (first - 1, first + 1, first + 2, first + 3))
    for company in COMPANIES.values():
        assert BACKGROUNDS[company.stock] in last(llm.at(first))
        for figures in (company.revenue, company.net_profit, company.cash_flow):
            assert ", ".join(f"{figure:.2f}" for figure in figures) in last(llm.at(first))
        assert BACKGROUNDS[company.stock] in text(llm.at(first + 2))
    assert "agreements on subsidies were signed with both" in last(llm.at(first))


def test_a_report_is_shown_on_its_day() -> None:
    llm = traded(48, n_agents=1, days=13)
    report = report_on(COMPANIES["A"], 12)
    assert report is not None
    assert f"revenue {report.revenue:.2f} million" in last(llm.at(46))
    assert "reports today" not in last(llm.at(42))


def test_order_books_are_shown_whole_and_posts_are_not_repeated() -> None:
    def offer(request: Request) -> Any:
        return call("sell", stock="A", quantity=1, price=40 - request.salt.agent)

    llm = traded(3, Notebook(buy=offer), n_agents=4, sessions=2)
    order = [request.salt.agent for request in llm.requests if request.salt.time == 2]
    offers = "; ".join(f"trader {trader}: 1 at {float(40 - trader)}" for trader in order)
    first = next(request for request in llm.requests if request.salt.time == 3)
    assert f"Orders to sell A, in order of arrival: {offers}." in last(first)
    for fact in ("session 2 of day 1", "Orders to buy B, in order of arrival: none.", "Trade actively", "exactly one"):
        assert fact in last(first)
    for word in ("character", "On the forum", "loan", "due on"):
        assert word not in last(first)


def test_forecast_and_post_are_bare_questions() -> None:
    llm = traded(4)
    for time in (3, 4):
        assert not any(sign.isdigit() for sign in last(llm.at(time)))
        assert "cash" not in last(llm.at(time))


def test_the_forum_cannot_be_looked_up_as_it_is_shown() -> None:
    assert not any(tool.name == "read_forum" for request in traded(8).requests for tool in request.tools)


# -- stock_agent: memory and order


def test_daily_conversation_has_all_prompts_and_replies_and_no_results() -> None:
    bid = call("buy", stock="A", quantity=1, price=1)
    llm = traded(6, Notebook(buy=bid), sessions=3)
    before = [last(llm.at(time)) for time in range(1, 6)]
    request = llm.at(6)
    assert [message.role for message in request.messages] == ["user", "assistant"] * 5 + ["user"]
    texts = [re.sub(r"^[^\n]* day \d:\n", "", message.content) for message in request.messages[:-1:2]]
    assert texts == before
    assert "waiting in the book" not in text(request)


def test_the_conversation_is_forgotten_overnight() -> None:
    assert len(traded(5).at(5).messages) == 1


def test_refused_order_says_why_and_unreadable_reply_loses_no_context() -> None:
    dear = call("buy", stock="A", quantity=10**9, price=100)
    assert "cost 100000000000" in text(traded(3, Notebook(buy=dear)).at(3))
    dumb = traded(3, Notebook(buy="I do not know"), attempts=1).at(3)
    assert BACKGROUNDS["B"] in text(dumb)
    assert [message.role for message in dumb.messages] == ["user", "assistant", "user", "assistant", "user"]


def test_orders_are_shuffled_each_session_and_other_questions_are_not() -> None:
    model = StockAgentModel(n_agents=8, fidelity="original", llm=Notebook(), rng=1)
    for _ in range(12):
        model.step()
    acted: Any = model.runlog.decisions().groupby("time")["agent"].apply(list)
    numbers = list(range(1, 9))
    assert [acted[time] for time in (1, 5, 6, 7, 11, 12)] == [numbers] * 6
    sessions = [acted[time] for time in (2, 3, 4, 8, 9, 10)]
    assert all(sorted(order) == numbers != order for order in sessions)
    assert len(set(map(tuple, sessions))) == 6


def test_in_a_session_each_is_asked_after_the_one_before_has_acted() -> None:
    llm = traded(2, Notebook(buy=lambda one: call("sell", stock="A", quantity=1, price=40 + one.salt.agent)))
    assert [last(one).count(": 1 at ") for one in llm.requests if one.salt.time == 2] == [0, 1, 2, 3]


def test_who_may_borrow_nothing_is_not_asked_for_a_loan() -> None:
    llm = Notebook()
    model = StockAgentModel(n_agents=3, fidelity="original", llm=llm, rng=1)
    model.world.market.accounts[2].loans.append(Loan(1e9, 0, due_day=22))
    for _ in range(7):
        model.step()
    assert [one.salt.agent for one in llm.requests if one.salt.time == 7] == [1, 3]


# -- econ_agent: what is seen


def test_first_month_prompt_has_offer_brackets_price_and_savings() -> None:
    llm = planned(1)
    request = llm.at(1)
    for fact in (
        "Your name is", "years old and live in New York City", "January 2001", "had no job last month, and no income",
        "You are offered work as", "Your consumption was $0.00.", "you paid $0.00 of tax and got $0.00 back",
        "goes back to all in equal parts", "up to $808.33 at 10%", "up to $42525.00 at 35%", "all above at 37%",
        "The essential good costs $", "Your savings are $0.00.", "3.00 percent a year", "in steps of 0.02",
    ):  # fmt: skip
        assert fact in text(request)
    for word in ("more than last month", "less than last month", "unemployment", "Weigh", "thoughts"):
        assert word not in text(request)


def test_later_month_prompt_has_job_pay_and_last_results_to_the_cent() -> None:
    llm = Notebook()
    model = EconAgentModel(n_agents=3, fidelity="original", rng=1, llm=llm)
    model.step()
    facts = model.world.facts(2)
    model.step()
    text = last(llm.at(2, 2))
    assert f"You work as: {facts.job}. You can expect ${facts.salary:.2f} this month" in text
    for amount in (facts.consumption, facts.tax_paid, facts.tax_credit, facts.price, facts.coin):
        assert f"${amount:.2f}" in text


@pytest.mark.parametrize("rules", ["original", "corrected"])
def test_pay_and_prices_that_stay_are_told_as_rising_under_either_rules(rules: Any) -> None:
    text = last(planned(2, rules=rules, max_wage_change=0, max_price_change=0).at(2))
    assert "more than last month, as there is inflation in the labour market" in text
    assert "more than last month, as there is inflation in the market for goods" in text


def test_a_household_that_wished_and_got_nothing_is_told_of_a_shortage() -> None:
    idle = call("plan_month", work=0, consumption=0.5)
    assert "You consumed nothing, as goods were short." in last(planned(2, Notebook(plan_month=idle)).at(2))
    thrifty = call("plan_month", work=0, consumption=0)
    assert "Your consumption was $0.00." in last(planned(2, Notebook(plan_month=thrifty)).at(2))


@pytest.mark.parametrize(("tax", "sentence"), [("none", "There is no income tax."), ("flat", "is taxed at 20%")])
def test_other_taxes_are_told_as_they_are(tax: Any, sentence: str) -> None:
    request = planned(1, tax=tax).at(1)
    assert sentence in text(request)
    assert "larger one of a larger income" not in text(request)


# -- econ_agent: memory and order


def test_prompt_follows_last_months_prompt_and_reply_verbatim() -> None:
    llm = planned(6)
    for month in (2, 3, 5, 6):
        _, prompt, answer, now = llm.at(month).messages
        assert (prompt.role, answer.role, now.role) == ("user", "assistant", "user")
        assert prompt.content == last(llm.at(month - 1))
        assert answer.content == '{"action":"plan_month","arguments":{"consumption":0.5,"work":1.0}}'
        assert "You plan to work" not in text(llm.at(month))


def test_a_reflection_stands_before_one_prompt_only() -> None:
    llm = planned(9)
    assert {month for month in range(1, 10) if THOUGHT in text(llm.at(month))} == {4, 7}
    _, prompt, answer, request, thought, now = llm.at(4).messages
    assert prompt.content == last(llm.at(3))
    assert answer.role == "assistant"
    assert request.content == last(llm.at(3, planning=False))
    assert (thought.role, thought.content, now.role) == ("assistant", THOUGHT, "user")


def test_quarterly_reflection_follows_its_three_prompts_and_replies() -> None:
    llm = planned(6)
    for end in (3, 6):
        _, *messages, question = llm.at(end, planning=False).messages
        assert [message.role for message in messages] == ["user", "assistant"] * 3
        assert [message.content for message in messages[::2]] == [
            last(llm.at(month)) for month in range(end - 2, end + 1)
        ]
        for word in ("quarter", "labour", "consumption", "finance", "fewer than 200 words"):
            assert word in question.content
        assert THOUGHT not in text(llm.at(end, planning=False))


def test_all_plan_before_anybody_reflects_and_as_often_as_in_the_paper() -> None:
    llm = planned(12)
    turns = [(one.salt.time, bool(one.tools)) for one in llm.requests]
    assert turns == sorted(turns, key=lambda one: (one[0], not one[1]))
    assert (turns.count((3, False)), sum(not plans for _, plans in turns)) == (3, 3 * 12 / 3)


def test_a_month_without_a_readable_plan_stands_in_the_dialogue_as_that() -> None:
    def plan(request: Request) -> Any:
        return "hm" if request.salt.time == 2 else call("plan_month", work=1, consumption=0)

    llm = planned(3, Notebook(plan_month=plan), attempts=1)
    _, prompt, answer, _ = llm.at(3).messages
    assert "February 2001" in prompt.content
    assert answer.content == NO_ANSWER


def test_shachi_agent_has_no_memory_or_reflection_with_paper_prompts() -> None:
    llm = planned(7, memory="none")
    assert all(request.tools and len(request.messages) == 2 for request in llm.requests)


def test_the_papers_memory_can_be_had_with_our_prompts() -> None:
    llm = planned(4, fidelity="corrected", memory="dialogue")
    assert "You run a household" in text(llm.at(4))
    assert THOUGHT in text(llm.at(4))
    assert last(llm.at(3)).startswith(llm.at(4).messages[1].content)


# -- both


def test_fidelity_is_a_parameter_of_the_scenarios_apart_from_the_rules() -> None:
    stock = StockAgentModel(scenario=StockAgentScenario(fidelity="original", rng=1))
    econ = EconAgentModel(scenario=EconAgentScenario(fidelity="original", rng=1))
    assert (stock.scenario.fidelity, stock.world.trading.settlement) == ("original", "strict")
    assert (econ.scenario.fidelity, econ.world.economy.rules) == ("original", "corrected")
    assert {type(household.memory) for household in econ.households} == {HouseholdDialogue}
    assert StockAgentScenario(rng=1).fidelity == EconAgentScenario(rng=1).fidelity == "corrected"


@pytest.mark.parametrize("kind", [StockAgentModel, EconAgentModel])
def test_an_unknown_fidelity_is_refused(kind: Any) -> None:
    with pytest.raises(ConfigError, match=r"fidelity: .*'corrected' or 'original'"):
        kind(fidelity="high")


@pytest.mark.parametrize("kind", [StockAgentModel, EconAgentModel])
def test_what_rule_twins_do_does_not_depend_on_what_is_shown(kind: Any) -> None:
    runs = []
    for fidelity in ("corrected", "original"):
        model = kind(n_agents=5, fidelity=fidelity, rng=4)
        for _ in range(12):
            model.step()
        runs.append(model.datacollector.get_model_vars_dataframe())
    same = [name for name in runs[0] if "second" not in name]
    assert runs[0][same].equals(runs[1][same])


@pytest.mark.parametrize("kind", [StockAgentModel, EconAgentModel])
def test_chance_makes_legal_moves_only(kind: Any) -> None:
    model = kind(n_agents=5, fidelity="original", llm="random", rng=4)
    for _ in range(12):
        model.step()
    assert set(model.runlog.actions()["ok"]) == {1}


@pytest.mark.parametrize("kind", [StockAgentModel, EconAgentModel])
def test_a_run_of_the_papers_prompts_replays_from_its_log(kind: Any, tmp_path: Path) -> None:
    digests = []
    for llm, replay in ((Notebook(), False), ("notebook", True)):
        model = kind(n_agents=3, fidelity="original", llm=llm, rng=1, log=tmp_path / "run.sqlite", replay=replay)
        for _ in range(8):
            model.step()
        digests.append(model.runlog.digest)
        model.close()
    assert digests[0] == digests[1]
