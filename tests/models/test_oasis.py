"""One account and its followers: Shachi's task 9, and the studies of OASIS."""

import os
from pathlib import Path

import pytest

from mesa_llm import ScriptedLLM
from mesa_llm.llm.scripted import call
from mesa_llm.memory import ChatMemory
from mesa_llm.records import Reply, Request
from mesa_llm_models.oasis.charts import activity_chart, cascade_chart
from mesa_llm_models.oasis.herd import HerdModel
from mesa_llm_models.oasis.model import POST, OasisModel
from mesa_llm_models.oasis.polarisation import PolarisationModel
from mesa_llm_models.oasis.rumours import RumourModel
from mesa_llm_models.oasis.task import TASK, scores

DATA = os.environ.get("MESA_LLM_DATA")


def test_the_task_is_shachis() -> None:
    model = OasisModel(**TASK.setting, rng=1)
    followed = [model.world.ties(agent.unique_id).followed.tolist() for agent in model.agents]
    assert (len(model.agents), TASK.max_steps, TASK.level) == (111, 10, 3)
    assert sum(model.influencer.unique_id in one for one in followed) == 110
    assert sum(map(len, followed)) == 110 + 11  # a tenth of 110 follows among themselves
    assert model.world.post_view(model.root_id).content == POST


def test_a_user_reads_a_window_of_five_messages_with_that_which_it_answers() -> None:
    lengths: list[int] = []

    def reply(request: Request) -> Reply:
        lengths.append(len(request.messages))
        return call("do_nothing")

    model = OasisModel(**{**TASK.setting, "n_agents": 2}, rng=1, llm=ScriptedLLM(reply))
    model.run(5)
    assert isinstance(model.influencer.memory, ChatMemory)
    assert model.influencer.memory.max_tokens == 100_000
    assert max(lengths) == lengths[-1] == 1 + 5  # and who it is


def test_resharing_adds_one_level_to_a_cascade() -> None:
    model = OasisModel(n_agents=4, rng=1)
    boss, near, far, other = (agent.unique_id for agent in model.agents)
    model.world.repost(near, model.root_id)
    model.world.repost(other, model.root_id)
    model.world.repost(far, int(model.world.measures.posts_table()[-2]["post_id"]))
    assert boss == model.influencer.unique_id
    assert (model.scale, model.depth, model.max_breadth) == (4, 2, 2)


def test_scores_are_those_of_what_was_done() -> None:
    llm = ScriptedLLM(lambda request: call("like_post", post_id=1))
    model = OasisModel(n_agents=5, rng=1, llm=llm)
    model.run(4)
    assert scores(model) == {"scale": 1, "depth": 0, "max_breadth": 1, "activity": pytest.approx(4 / 5 / 4)}
    assert model.n_likes == 4
    assert [chart.series[0].name for chart in (cascade_chart(model), activity_chart(model))] == ["users (scale): 1", ""]


@pytest.mark.parametrize("kind", [OasisModel, RumourModel, PolarisationModel, HerdModel])
@pytest.mark.parametrize("brings_people", [True, False])
def test_follows_come_from_a_file_in_every_model(tmp_path, kind, brings_people: bool) -> None:
    (tmp_path / "people.csv").write_text("name,persona\n" + "".join(f"P{i},x\n" for i in range(12)))
    (tmp_path / "edges.csv").write_text("0,2\n1,2\n3,2\n4,0\n")
    users = str(tmp_path / "people.csv") if brings_people else None
    model = kind(users=users, n_agents=12, edges=str(tmp_path / "edges.csv"), rng=1)
    ids = [agent.unique_id for agent in model.agents][:12]
    followed = [model.world.ties(user).followed.tolist() for user in ids]
    assert [ids[2] in own for own in followed] == [True, True, False, True, *[False] * 8]
    assert ids[0] in followed[4]
    if kind is OasisModel:
        assert model.influencer.unique_id == ids[2]
        assert model.world.post_view(model.root_id).author_id == ids[2]


@pytest.mark.skipif(not DATA, reason="needs OASIS's files in MESA_LLM_DATA")
def test_oasis_own_file_of_this_topic_brings_the_influencer_and_its_post() -> None:
    model = OasisModel(users=str(Path(DATA or "", "oasis", "False_Business_0.csv")), rng=1)
    assert (len(model.agents), model.influencer.config.name, model.n_follows) == (111, "user_32", 85)
    assert "amazon" in model.world.post_view(model.root_id).content
