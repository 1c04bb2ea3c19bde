"""People of the town follow their routine, meet, pass news on, and remember their plans."""

import pytest

from mesa_llm import ScriptedLLM
from mesa_llm.llm.replies import call
from mesa_llm_models.town.model import HOURS, PARTY_HOUR, PARTY_PLACE, TownModel

TWIN = {"memory": "none", "whim": 0, "rng": 1}


def saying(*, host: str, others: str = "Fine weather.", place: str = "market") -> ScriptedLLM:
    """Return a language model whose people are all in one place; the first one says something of its own."""

    def reply(request):
        if request.tools:
            return call("spend_hour", place=place, doing="chatting")
        is_plan = "what do you plan" in request.messages[-1].content
        return "I stay at the market." if is_plan else host if request.salt.agent == 1 else others

    return ScriptedLLM(reply)


def test_twins_follow_their_routine_by_the_clock() -> None:
    model = TownModel(sociability=0, gossip=0, **TWIN)
    model.run()
    where = model.datacollector.get_agent_vars_dataframe()["place"].unstack()
    assert model.time == HOURS
    assert where.loc[1, [1, 3]].tolist() == ["Mill Lane", "Hill Street"]  # at 8:00
    assert where.loc[3, [1, 3]].tolist() == ["bakery", "school"]  # at 10:00
    assert set(where.loc[5]) == {"bakery"}  # at 12:00
    assert set(where.loc[14]) == {"Mill Lane", "Hill Street"}  # at 21:00


def test_news_spreads_by_talk_alone_and_brings_guests() -> None:
    silent, open_ = TownModel(sociability=0, **TWIN), TownModel(sociability=1, gossip=1, turns=8, **TWIN)
    for model in (silent, open_):
        model.run()
    assert (silent.results()["heard"], silent.guests, silent.results()["density"]) == (1 / 8, 0, 0)
    assert open_.results()["heard"] > 0.7
    assert open_.guests >= 4
    step = PARTY_HOUR - 7
    where = open_.datacollector.get_agent_vars_dataframe()["place"].unstack().loc[step]
    assert (where == PARTY_PLACE).sum() >= open_.guests


def test_measures_of_one_conversation_are_those_computed_by_hand() -> None:
    """Four of eight talk, in one place: 6 of 28 pairs."""
    model = TownModel(llm=saying(host="Come to my PARTY!"), sociability=1, rng=1)
    model.step()
    measures = model.results()
    talkers = model.talks[0].agents
    assert (measures["n_talks"], measures["group_size"], measures["density"]) == (1, 8, 6 / 28)
    assert measures["heard"] == (4 / 8 if model.agents[0] in talkers else 1 / 8)


def test_who_names_a_party_without_having_heard_of_it_passes_nothing_on() -> None:
    model = TownModel(llm=saying(host="Hello.", others="There is a party!"), sociability=1, rng=1)
    model.run_for(3)
    assert model.results()["heard"] == 1 / 8


def test_a_plan_is_remembered_and_read_all_day() -> None:
    model = TownModel(llm=saying(host="Hello."), sociability=0, n_agents=2, rng=1)
    model.run_for(2)
    person = model.agents[1]
    assert "Your plan for today: “I stay at the market.”" in person.observe().text
    assert "I stay at the market." in person.memory.recall("plan", 3)


@pytest.mark.parametrize("n_agents", [2, 8])
def test_a_day_is_recorded_and_replayed(n_agents, tmp_path) -> None:
    runs = []
    for replay in (False, True):
        model = TownModel(
            llm=saying(host="A party!"), n_agents=n_agents, rng=1, log=tmp_path / "run.sqlite", replay=replay
        )
        model.run_for(3)
        model.close()
        runs.append((model.runlog.digest, model.usage.calls > 0))
    assert runs == [(runs[0][0], True), (runs[0][0], False)]


def town_at(hour: int, day: int = 1, **parameters) -> TownModel:
    model = TownModel(llm=saying(host="Hello."), n_agents=3, rng=1, **parameters)
    model.day, model.hour = day, hour
    return model


@pytest.mark.parametrize(
    ("hour", "days", "fact"),
    [
        (9, 1, "It is 9:00 on day 1. You are here: Mill Lane."),
        (9, 1, "bakery (bread, coffee and cake)"),
        (9, 1, "Your party is today at 18:00 in the park."),
        (9, 2, "Your party is tomorrow at 18:00 in the park."),
        (9, 4, "Your party is on day 4 at 18:00 in the park."),
        (18, 1, "Your party is now, in the park."),
        (19, 1, "Your party is over."),
    ],
)
def test_the_host_reads_the_time_the_places_and_whether_the_party_is_to_come(hour, days, fact) -> None:
    assert fact in town_at(hour, days=days).host.observe().text


def test_a_guest_reads_of_the_party_in_the_words_in_which_it_has_heard_of_it() -> None:
    model = TownModel(llm=saying(host="Come to my PARTY!"), sociability=1, n_agents=3, rng=1)
    assert "party" not in model.agents[1].observe().text
    model.step()
    assert "You have heard of a party. Rosa said: “Come to my PARTY!”" in model.agents[1].observe().text
    assert "On day 1 at 8:00 you planned your day" in model.agents[1].memory.recall("plan", 2)
