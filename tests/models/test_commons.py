"""The lake grows, is shared out and collapses as in Piatti et al. (2024), NeurIPS 37, and meetings are heard."""

import pytest

from mesa_llm import ScriptedLLM
from mesa_llm.llm.replies import call
from mesa_llm_models.commons.model import CommonsModel
from mesa_llm_models.commons.text import proposed_tons


def wanting(*tons: int, **parameters) -> CommonsModel:
    """Return a lake whose fishers want so many tons, each one its own, and say so, never in the same words."""

    def reply(request):
        amount = tons[(request.salt.agent - 1) % len(tons)]
        said = f"In month {request.salt.time + 1} I, number {request.salt.agent}, shall catch {amount} tons."
        return call("fish", tons=amount) if request.tools else said

    return CommonsModel(llm=ScriptedLLM(reply), rng=1, **parameters)


def test_a_sustainable_harvest_is_perfect_by_all_measures() -> None:
    """Ten tons each is the sustainability threshold of a full lake, as in the authors' program."""
    model = CommonsModel(greed=0, meeting=False, rng=1)
    model.run()
    measures = model.results()
    assert model.share_of(100) == 10
    assert (measures["survival"], measures["gain"], measures["stock"]) == (12, 120, 100)
    assert (measures["efficiency"], measures["equality"], measures["over_usage"]) == (1, 1, 0)


def test_empty_lake_ends_the_run_with_a_twelfth_of_the_possible_catch() -> None:
    """100 of 12 x 50 tons."""
    model = CommonsModel(greed=1, rng=1)
    model.run()
    measures = model.results()
    assert (measures["survival"], measures["stock"], measures["over_usage"]) == (1, 0, 1)
    assert measures["efficiency"] == pytest.approx(100 / 600)


def test_measures_of_unequal_catches_are_those_computed_by_hand() -> None:
    """Gini of 0, 0, 10, 20, 20: 120 / (5 x 50), twice the mean difference over pairs; two of five above ten tons."""
    model = wanting(0, 0, 10, 20, 20)
    model.step()
    measures = model.results()
    assert [fisher.catches for fisher in model.agents] == [[0], [0], [10], [20], [20]]
    assert measures["equality"] == pytest.approx(1 - 120 / 250)
    assert measures["efficiency"] == pytest.approx(50 / 600)
    assert (measures["over_usage"], measures["stock"]) == (0.4, 100)


def test_more_than_there_is_is_shared_out_by_chance_to_those_who_want_it() -> None:
    model = wanting(100, 100, 1, 0, 100)
    model.step()
    catches = [fisher.catches[0] for fisher in model.agents]
    assert sum(catches) == 100
    assert catches[2] <= 1 == catches[3] + 1
    assert min(catches[0], catches[1], catches[4]) > 20


@pytest.mark.parametrize(("left", "is_over"), [(4, True), (5, False)])
def test_the_fish_die_out_below_five_tons(left, is_over) -> None:
    model = wanting(100 - left, 0, 0, 0, 0)
    model.step()
    assert (model.stock, model.running) == ((0, False) if is_over else (10, True))


def test_greedy_twins_last_longer_if_they_meet() -> None:
    """Without a meeting 13, 10, 6, 3 and 2 tons each: 100, 70, 40, 20 and 10 tons, and then none."""
    lasting = []
    for meeting in (True, False):
        model = CommonsModel(meeting=meeting, rng=1)
        model.run()
        lasting.append(len(model.shares))
    assert model.agents[0].catches == [13, 10, 6, 3, 2]
    assert lasting == [12, 5]


def test_a_meeting_is_heard_remembered_and_read_and_replays(tmp_path) -> None:
    log = tmp_path / "run.sqlite"
    model = wanting(5, 7, log=log, months=3)
    model.run()
    model.close()
    again = wanting(5, 7, log=log, months=3, replay=True)
    again.run()
    assert (again.runlog.digest, again.usage.calls) == (model.runlog.digest, 0)
    assert model.datacollector.model_vars["proposal"] == [None, 5, 5, None]
    remembered = model.agents[0].memory.recall("", 4)
    assert "Tons caught: Ada 5, Bruno 7, Clara 5, Dario 7, Elin 5." in remembered
    assert "Bruno said: “In month 2 I, number 2, shall catch 7 tons.”" in remembered


@pytest.mark.parametrize(("text", "tons"), [("Ada took 13 tons; let us take 8 tons each.", 8), ("Good fishing!", None)])
def test_a_proposal_is_the_last_number_of_tons_in_what_is_said(text, tons) -> None:
    assert proposed_tons(text) == tons


FACTS = {
    "how much there is": "There are 90 tons of fish in the lake.",
    "how much can be taken safely": "If each of the 5 of you catches no more than 9 tons, there will be at least",
    "below what it collapses": "If fewer than 5 tons are left, the fish die out, and nobody catches any again.",
    "own catches": "Last month you caught 11 tons, and 11 in all so far.",
}
"""What a fisher would know and need in the second month, after each has caught eleven of a hundred tons."""


@pytest.mark.parametrize("fact", FACTS)
def test_a_fisher_reads_what_it_would_know_and_need(fact) -> None:
    model = wanting(11)
    model.step()
    assert FACTS[fact] in model.agents[0].observe().text


def test_the_safe_share_keeps_the_fish_and_one_more_ton_each_does_not() -> None:
    for stock in range(5, 101):
        model = wanting(0, meeting=False)
        model.stock = stock
        share = model.share_of(stock)
        for tons, is_safe in ((share, True), (share + 1, False)):
            model.stock = stock - 5 * tons
            assert (model.grown >= stock) is is_safe, (stock, tons)


def test_one_ton_is_a_ton_and_a_share_of_none_is_said() -> None:
    model = wanting(0)
    model.stock = 5
    model.agents[0].catches.append(1)
    text = model.agents[0].observe().text
    assert "Last month you caught 1 ton, and 1 in all" in text
    assert "They cannot spare a whole ton for each of the 5 of you" in text


def test_fishers_differ_by_more_than_their_names_unless_they_are_to_be_alike() -> None:
    drawn, alike = wanting(1), wanting(1, people="alike")
    assert len({fisher.config.persona for fisher in drawn.agents}) > 2
    assert {fisher.config.persona for fisher in alike.agents} == {""}
    for model in (drawn, alike):
        model.step()
    assert drawn.stock == alike.stock
    assert "you set out to catch 1 ton of fish" in drawn.agents[0].memory.recall("", 2)


def test_a_silence_in_a_meeting_is_shown_as_one() -> None:
    from mesa_llm_models.commons.app import meeting_cells

    script = ScriptedLLM(lambda request: call("fish", tons=1) if request.tools else "We should all be careful now.")
    model = CommonsModel(llm=script, rng=1)
    model.step()
    said = [row.cells[2] for row in meeting_cells(model)]
    first = model.meetings[1].utterances[0].name
    silence = f"(silent: it repeats {first})"
    assert (said[0], set(said[1:])) == ("We should all be careful now.", {silence})
