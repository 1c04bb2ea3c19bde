"""What people in social settings would know and need stands in what they read, and is right."""

from __future__ import annotations

import pytest

from mesa_llm.llm.scripted import RandomLLM, ScriptedLLM, call
from mesa_llm.records import Request
from mesa_llm_models.compost.model import CompostModel
from mesa_llm_models.oasis.herd import HerdModel
from mesa_llm_models.oasis.model import OasisModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from mesa_llm_models.oasis.rumours import RumourModel
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import Account, SocialWorld
from mesa_llm_models.sotopia.model import SotopiaModel

ANN, BO, CY, DI = 1, 2, 3, 4
TOLL = "The toll on the bridge should go, and it should go today, before anybody else pays it."


class Reader(RandomLLM):
    """Chooses at random, and keeps what it was sent."""

    ignores_prompt = False

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.requests: list[Request] = []

    async def reply(self, request: Request):
        """Keep the request, and choose."""
        self.requests.append(request)
        return await super().reply(request)

    @property
    def prompts(self) -> list[str]:
        """The text of each request."""
        return ["\n".join(message.content for message in request.messages) for request in self.requests]


@pytest.fixture
def world() -> SocialWorld:
    """Let a few hours pass on a small network."""
    world = SocialWorld(
        "simswarm", rng=1, feed="newest", step_minutes=60, actions=("create_post", "reply", "repost", "vote", "follow")
    )
    world.sign_up_many(Account(number, name) for number, name in enumerate(("Ann", "Bo", "Cy", "Di"), start=1))
    world.follow_many([(ANN, BO), (ANN, CY), (CY, ANN)])
    world.create_post(ANN, TOLL)
    world.end_step()
    world.end_step()
    world.vote(BO, 1)
    world.reply(CY, 1, "Who pays for the bridge, then?")
    world.create_post(BO, "Bread at six.")
    world.repost(DI, 1)
    world.end_step()
    return world


AUTHOR_READS = {
    "the time, in one clock": "It is hour 3.",
    "who it is": "You are Ann (user 1).",
    "who follows it, and whom it follows": "1 person follows you, and you follow Bo and Cy.",
    "what it has posted, and what came of it": f"- Post 1, 3 hours ago: “{TOLL}” (1 like, 1 share, 1 answer)",
    "who has reposted its post": "Di (user 4) reposted your post 1.",
    "who has liked its post": "Bo (user 2) liked your post 1.",
    "what was answered": "Cy (user 3) answered your post 1 with reply 2: “Who pays for the bridge, then?”",
    "a post, by a name": "Post 3 by Bo (user 2, followed): “Bread at six.”",
    "how old it is, in the same clock": "0 likes, 1 hour ago.",
}


@pytest.mark.parametrize("wanted", AUTHOR_READS.values(), ids=AUTHOR_READS)
def test_a_user_reads_what_a_person_on_a_network_sees(world: SocialWorld, wanted: str) -> None:
    assert wanted in world.observe(ANN).text


def test_nobody_reads_of_own_posts_or_follows_without_any(world: SocialWorld) -> None:
    text = world.observe(DI).text
    assert "Nobody follows you, and you follow nobody." in text
    assert "What you have posted:" not in text


REMEMBERED = {
    "create_post": ({"content": "Tea at four."}, "You posted “Tea at four.” (post 5)."),
    "vote": ({"post_id": 3}, "You voted up Bo’s post 3 (“Bread at six.”)."),
    "repost": (
        {"post_id": 1},
        "You passed on Ann’s post 1 (“The toll on the bridge should go, and it should go today, …”).",
    ),
    "reply": (
        {"post_id": 3, "content": "Too early."},
        "You answered Bo’s post 3 (“Bread at six.”) with “Too early.” (reply 5).",
    ),
    "follow": ({"user_id": BO}, "You followed Bo (user 2)."),
}


@pytest.mark.parametrize("action", REMEMBERED)
def test_what_a_user_has_done_is_told_as_a_sentence_with_whom_and_what(world: SocialWorld, action: str) -> None:
    arguments, sentence = REMEMBERED[action]
    assert getattr(world, action)(CY, **arguments).text == sentence


@pytest.mark.parametrize(("minutes", "unit"), [(60, "hour"), (1440, "day"), (1, "minute"), (3, "step")])
def test_time_is_told_in_the_unit_of_a_step(minutes: int, unit: str) -> None:
    model = SocialModel(n_agents=3, step_minutes=minutes, rng=1)
    assert model.world.unit == unit
    assert f"It is {unit} 1" in next(iter(model.agents)).observe().text


def test_the_topic_is_known_to_all_who_have_a_view_on_it_of_their_own() -> None:
    llm = Reader()
    SocialModel(n_agents=12, topic="a toll on the old bridge", llm=llm, rng=1).step()
    assert all("talk about these days is a toll on the old bridge" in prompt for prompt in llm.prompts)
    views = {
        prompt.partition("What you think of a toll on the old bridge: ")[2].partition("\n")[0] for prompt in llm.prompts
    }
    assert "" not in views
    assert len(views) > 6


def test_views_and_topic_are_an_arm_that_can_be_left_out() -> None:
    llm = Reader()
    model = SocialModel(n_agents=6, people="alike", about="interests", llm=llm, rng=1)
    model.step()
    assert not any(model.scenario.topic in prompt for prompt in llm.prompts)


def test_first_posts_are_about_the_topic_and_all_different() -> None:
    model = SocialModel(n_agents=12, first_posts=0.5, rng=2)
    posts = [post["content"] for post in model.world.measures.posts_table()]
    assert len(set(posts)) == 6
    assert all(model.scenario.topic in post for post in posts)


STUDIES = {
    "the influencer": (OasisModel, {"n_agents": 6}, "The Daily Gadget has just brought news"),
    "the question at hand": (PolarisationModel, {"n_agents": 6}, "in post 1, which ends: “What should he do?”"),
    "what the stories are about": (
        RumourModel,
        {"n_agents": 40},
        "news about technology, education, entertainment and health",
    ),
    "what one is there for": (HerdModel, {"n_agents": 10}, "read new posts and comments, and vote on them"),
}


@pytest.mark.parametrize("study", STUDIES)
def test_users_of_a_study_know_what_it_is_about_and_nothing_of_another_topic(study: str) -> None:
    kind, parameters, wanted = STUDIES[study]
    model = kind(rng=1, **parameters)
    assert wanted in model.instructions_text
    assert "ban on cars" not in model.instructions_text


@pytest.fixture
def move() -> str:
    """Return what the first person reads on its second turn."""
    llm = Reader()
    lines = iter(("We both need this seat.", "Then let us talk about it."))
    script = ScriptedLLM(lambda request: llm.requests.append(request) or call("say", text=next(lines, "Well.")))
    model = SotopiaModel(n_dyads=1, max_turns=5, llm=script, judge="rule", rng=1)
    model.run_for(3)
    return llm.prompts[2]


MOVE = {
    "what it wants": "Your private goal: Get the seat tonight.",
    "what it does not know": "wants is unknown to you.",
    "who it is, in its own words": "Your secret: ",
    "what it has said itself": "Turn 1: You: “We both need this seat.”",
    "what the other has said": ": “Then let us talk about it.”",
    "whose turn it is": "This is turn 3 of 5 at most, and it is your turn;",
    "how many are left": "you have 2 left, this one included.",
    "that leaving ends it": "or leave: then the meeting is over.",
    "what ends it, too": "If nobody says or does anything in 3 turns in a row, the meeting is over, too.",
}


@pytest.mark.parametrize("wanted", MOVE.values(), ids=MOVE)
def test_a_person_in_a_meeting_reads_what_it_needs_for_a_move(move: str, wanted: str) -> None:
    assert wanted in move


def test_the_question_comes_last_and_who_one_is_before(move: str) -> None:
    assert move.index("Your secret") < move.index("What has happened so far") < move.index("This is turn 3")
    assert move.rstrip().endswith("the meeting is over, too.")


WRITERS = ("You are a person.", "You are an 80-year-old person.", "You are a nonbinary person.")


def test_texts_of_one_cell_are_asked_of_different_writers_who_are_the_same_for_each_persona() -> None:
    llm = Reader()
    CompostModel(n_personas=2, n_topics=1, rounds=2, texts_per_round=3, llm=llm, rng=1).run_for(2)
    prompts = llm.prompts
    assert len(set(prompts)) == len(prompts) == 36
    of_each = [{one.removesuffix(who) for one in prompts if one.endswith(who)} for who in WRITERS]
    assert of_each[0] == of_each[1] == of_each[2]


def test_writers_alike_are_the_form_without_them() -> None:
    llm = Reader()
    CompostModel(n_personas=1, n_topics=1, rounds=1, texts_per_round=3, people="alike", llm=llm, rng=1).step()
    assert len(set(llm.prompts)) == 4
