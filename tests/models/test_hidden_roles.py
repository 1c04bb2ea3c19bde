"""The hidden roles stay hidden, the game ends as it must, and its rule twins find werewolves more often than chance."""

from collections import defaultdict
from typing import Any

import pytest

from mesa_llm import ScriptedLLM, ToolCall
from mesa_llm.records import Request
from mesa_llm_models.hidden_roles.model import HiddenRolesModel


class Listener:
    """Lets the werewolves attack one player and all vote for another, and keeps what each agent reads."""

    def __init__(self, attacked: str, voted: str) -> None:
        self.choices = {"attack": attacked, "vote": voted}
        self.texts: dict[int, str] = defaultdict(str)

    def reply(self, request: Request) -> Any:
        self.texts[request.salt.agent] += "\n".join(message.content for message in request.messages)
        if not request.tools:
            return f"On day {request.salt.time} I, number {request.salt.agent}, have nothing to say."
        name = request.tools[0].name
        names = request.options["player"]
        return ToolCall(name, {"player": self.choices[name] if self.choices.get(name) in names else names[0]})


def village(*roles: str, **options: Any) -> HiddenRolesModel:
    """Return a village with given roles, in the order of the names."""
    game = HiddenRolesModel(n_agents=len(roles), n_wolves=roles.count("werewolf"), rng=1, **options)
    for player, role in zip(game.players.values(), roles, strict=True):
        player.role = role
    for player in game.players.values():
        player.learn()
    return game


ROLES = ("villager", "villager", "villager", "seer", "villager", "werewolf", "werewolf")
"""Roles of Ada, Bo, Cleo, Dan, Eve, Finn and Gus."""


def test_what_a_role_knows_is_in_its_own_prompts_alone() -> None:
    listener = Listener("Ada", "Bo")
    game = village(*ROLES, llm=ScriptedLLM(listener.reply))
    game.run_for(2)
    for phrase, role in {
        "You are a werewolf": "werewolf",
        "is a werewolf too": "werewolf",
        "you proposed that the werewolves attack": "werewolf",
        "You are the seer": "seer",
        "You have seen": "seer",
        "you looked at": "seer",
    }.items():
        readers = {player.role for player in game.players.values() if phrase in listener.texts[player.unique_id]}
        assert (phrase, readers) == (phrase, {role})


def test_a_villager_reads_the_same_whoever_the_seer_and_the_werewolves_are() -> None:
    listeners = []
    for roles in (ROLES, ("villager", "villager", "seer", "werewolf", "werewolf", "villager", "villager")):
        listeners.append(Listener("Ada", "Ada"))
        village(*roles, llm=ScriptedLLM(listeners[-1].reply)).step()
    bo = 2
    assert listeners[0].texts[bo] == listeners[1].texts[bo] != ""
    assert "Ada was a villager" in listeners[0].texts[bo]


def test_the_seer_remembers_what_it_saw_when_it_talks_and_votes() -> None:
    listener = Listener("Ada", "Finn")
    game = village(*ROLES, llm=ScriptedLLM(listener.reply), memory="none")
    game.step()
    assert listener.texts[4].count("You have seen that Ada is no werewolf.") == 2


def test_werewolves_attack_and_all_vote_and_whoever_leaves_is_asked_no_more() -> None:
    game = village(*ROLES, llm=ScriptedLLM(Listener("Cleo", "Gus").reply))
    game.step()
    assert game.departures == [(1, "Night", "Cleo"), (1, "Day", "Gus")]
    assert len(game.talks[0].utterances) == len(game.votes) == 6
    game.step()
    second = game.runlog.decisions().query("time == 2")
    assert not {3, 7} & set(second["agent"])
    assert game.results()["hit_share"] == 5 / 10  # all but Gus hit; on the second day nobody does


@pytest.mark.parametrize("llm", ["rule", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_a_game_ends_when_the_werewolves_are_gone_or_as_many_as_the_others(llm, seed) -> None:
    game = HiddenRolesModel(rng=seed, llm=llm)
    game.run()
    n_wolves, n_others = len(game.wolves), len(game.agents) - len(game.wolves)
    assert game.winner == ("village" if n_wolves == 0 else "werewolves")
    assert n_wolves == 0 or n_wolves >= n_others
    assert game.results()["days"] <= 3  # each takes two of the seven


def test_rule_twins_find_werewolves_more_often_than_votes_at_random() -> None:
    games = [HiddenRolesModel(n_agents=9, rng=seed, memory="none") for seed in range(12)]
    for game in games:
        game.run()
    hits = [vote for game in games for vote in game.hits]
    assert sum(hit for hit, _ in hits) > 1.2 * sum(chance for _, chance in hits)


def test_players_may_leave_at_any_time() -> None:
    game = village(*ROLES)
    game.players["Bo"].remove()
    game.step()
    assert "Bo" not in game.votes
    for wolf in game.wolves:
        wolf.remove()
    n_left = len(game.agents)
    game.step()
    assert (game.winner, game.running, len(game.agents)) == ("village", False, n_left)


def test_nobody_leaves_while_nobody_decides() -> None:
    game = HiddenRolesModel(rng=1, attempts=1, llm=ScriptedLLM(lambda request: ""))
    game.run_for(2)
    assert (len(game.agents), game.departures, game.running) == (7, [], True)


def test_a_game_replays(tmp_path) -> None:
    digests = []
    for replay in (False, True):
        game = HiddenRolesModel(rng=3, llm="random", log=tmp_path / "game.sqlite", replay=replay)
        game.run()
        digests.append(game.runlog.digest)
        game.close()
    assert digests[0] == digests[1]


FACTS = {
    "who is dead, and what it was": "Night 1: Cleo was attacked and left the game. Cleo was a villager.",
    "who was voted out": "Day 1: Gus was voted out and left the game. Gus was a werewolf.",
    "what was voted": "Ada for Gus",
    "who plays, and who one is": "Still in the game: Ada, Bo, you, Eve, Finn.",
    "how many werewolves are left": "1 of these 5 is a werewolf.",
    "what one can do now": "It is night 2. Whom do you look at? You will learn whether that player is a werewolf.",
    "one's role": "You are the seer. You want to win with the village.",
    "what one has seen": "You have seen that Ada is no werewolf.",
}
"""What the seer, Dan, would know and need in the second night."""


@pytest.mark.parametrize("fact", FACTS)
def test_the_seer_reads_what_it_would_know_and_need(fact) -> None:
    game = village(*ROLES, llm=ScriptedLLM(Listener("Cleo", "Gus").reply))
    game.step()
    game.start_step()
    dan = game.players["Dan"]
    prompt = "\n".join(message.content for message in dan.prompt(dan.observe()))
    assert FACTS[fact] in prompt
    assert "Dan" not in dan.observe().options["player"]
    assert not {"Cleo", "Gus"} & set(dan.observe().options["player"])


def test_players_have_characters_unless_they_are_to_be_alike() -> None:
    drawn, alike = HiddenRolesModel(rng=1), HiddenRolesModel(rng=1, people="alike")
    assert len({player.character for player in drawn.agents}) == 7
    assert {player.character for player in alike.agents} == {""}
    assert [player.role for player in drawn.agents] == [player.role for player in alike.agents]
