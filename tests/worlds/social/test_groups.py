"""Chat groups and products of the social world."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.tool import marked_methods
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.social.world import Account, SocialWorld

ANN, BO, CY, DI = 1, 2, 3, 4
ALL = marked_methods(SocialWorld)


@pytest.fixture
def world() -> SocialWorld:
    """Make four users, two products, and Ann's group 1."""
    world = SocialWorld("x", actions=ALL, products=("kettle", "lamp"), rng=1)
    world.sign_up_many(Account(number, name) for number, name in enumerate(("Ann", "Bo", "Cy", "Di"), start=1))
    world.create_group(ANN, " Bakers\nof the town ")
    return world


def test_purchases_add_up(world: SocialWorld) -> None:
    assert world.purchase_product(ANN, "lamp", 3).text == "You bought 3 of lamp."
    world.purchase_product(BO, "lamp")
    assert [row["sales"] for row in world.measures.products_table()] == [0, 4]
    assert "- lamp (4 sold)" in world.observe(CY).text
    assert world.measures.counts_per_step()[0]["purchases"] == 2


def test_who_opens_a_group_is_in_it_and_others_can_join(world: SocialWorld) -> None:
    assert "Your groups, and what is new in them:\n- Group 1 “Bakers of the town”, 1 member" in (
        world.observe(ANN).text
    )
    assert world.join_group(BO, 1).text == "You joined group 1 “Bakers of the town”."
    assert world.measures.groups_table()[0]["members"] == 2
    world.leave_group(ANN, 1)
    assert "Groups you could join:\n- Group 1 “Bakers of the town”, 1 member" in world.observe(ANN).text


def test_messages_are_news_to_members_alone(world: SocialWorld) -> None:
    world.join_group(BO, 1)
    world.send_to_group(ANN, 1, "Rye tomorrow?")
    assert world.listen_from_group(BO).endswith("\n  From Ann (user 1): “Rye tomorrow?”")
    assert world.listen_from_group(CY) == "You are in no group."
    assert "Rye" in world.observe(BO).text
    assert "Rye" not in world.observe(CY).text + world.observe(ANN).text
    world.end_step()
    world.end_step()
    assert "Rye" not in world.observe(BO).text
    assert "Rye" in world.listen_from_group(BO)


def test_what_muted_users_say_in_a_group_is_hidden(world: SocialWorld) -> None:
    world.join_group(BO, 1)
    world.send_to_group(ANN, 1, "Rye tomorrow?")
    world.mute(BO, ANN)
    assert "Rye" not in world.observe(BO).text + world.listen_from_group(BO)


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("purchase_product", {"product_name": "boat", "amount": 1}, "no product “boat”; on offer: kettle, lamp"),
        ("purchase_product", {"product_name": "lamp", "amount": 0}, "amount: input should be greater"),
        ("purchase_product", {"product_name": "lamp", "amount": -2}, "amount: input should be greater"),
        ("purchase_product", {"product_name": "lamp", "amount": 10**9}, "amount: input should be less"),
        ("create_group", {"name": ""}, "name: string should have at least 1"),
        ("create_group", {"name": " \n\u200b"}, "The name is empty"),
        ("create_group", {"name": "x" * 100_000}, "longer than 20000 characters"),
        ("join_group", {"group_id": 2}, "There is no group 2;"),
        ("join_group", {"group_id": 10**30}, "There is no group|too large"),
        ("join_group", {"group_id": 0}, "group_id: input should be greater"),
        ("join_group", {"group_id": 1}, "You are in group 1 already"),
        ("leave_group", {"group_id": 7}, "There is no group 7;"),
        ("send_to_group", {"group_id": 1, "message": " \x00 "}, "The message is empty"),
        ("send_to_group", {"group_id": 1, "message": "x" * 2001}, "at most 2000 characters"),
        ("send_to_group", {"group_id": 1, "message": "x" * 100_000}, "longer than 20000 characters"),
        ("create_post", {"content": "x" * 100_000}, "longer than 20000 characters"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(
    world: SocialWorld, name: str, arguments: dict[str, Any], why: str
) -> None:
    before = world.measures.digest()
    with pytest.raises(ToolError, match=why):
        ToolBox.of(object(), ANN, [world]).call(ToolCall(name, arguments))
    assert world.measures.digest() == before


@pytest.mark.parametrize("action", ["leave_group", "send_to_group"])
def test_strangers_to_a_group_are_refused(world: SocialWorld, action: str) -> None:
    arguments = {"group_id": 1, **({"message": "hello"} if action == "send_to_group" else {})}
    with pytest.raises(ToolError, match="You are not in group 1; join it first"):
        getattr(world, action)(BO, **arguments)


def test_only_what_can_be_done_now_is_offered(world: SocialWorld) -> None:
    bo = world.observe(BO)
    assert (bo.options["join_group.group_id"], bo.options["purchase_product.product_name"]) == (
        (1,),
        ("kettle", "lamp"),
    )
    assert not {"leave_group", "send_to_group", "listen_from_group"} & set(bo.tools or ())
    ann = world.observe(ANN)
    assert (ann.options["send_to_group.group_id"], ann.options["leave_group.group_id"]) == ((1,), (1,))
    assert "join_group" not in (ann.tools or ())


def test_every_id_and_name_an_option_holds_stands_in_the_text(world: SocialWorld) -> None:
    world.create_post(ANN, "one")
    world.reply(BO, 1, "two")
    world.create_comment(DI, 1, "three")
    world.join_group(CY, 1)
    for user in range(5):
        world.create_group(BO, f"group of {user}")
    world.send_to_group(CY, 1, "hello")
    for like in (world.like_post, world.dislike_comment):
        like(CY, 1)
    for user in (ANN, BO, CY, DI):
        seen = world.observe(user)
        shown = set(re.findall(r"\d+|kettle|lamp", seen.text))
        assert all({str(value) for value in values} <= shown for values in seen.options.values())


def test_lists_are_bounded(world: SocialWorld) -> None:
    for number in range(30):
        world.create_group(BO, f"group of {number}")
        world.send_to_group(BO, 2, "x" * 2000)
    world.join_group(ANN, 2)
    text = world.observe(ANN).text
    assert (text.count("- Group"), text.count("“xxx")) == (2 + 10, 3)
    assert len(world.listen_from_group(ANN)) < 4000


def test_users_without_these_actions_see_nothing_of_them() -> None:
    world = SocialWorld("x", rng=1)
    world.sign_up_many([Account(ANN), Account(BO)])
    world.create_group(BO, "Bakers")
    assert "Group" not in world.observe(ANN).text
    assert world.observe(ANN).tools == ("create_post", "do_nothing")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"products": ("lamp", "lamp")}, "products names 'lamp' twice"),
        ({"products": ("a\nb",)}, "one line of 1 to 80 characters"),
        ({"products": ("",)}, "one line of 1 to 80 characters"),
        ({"products": tuple(map(str, range(31)))}, "at most 30 products"),
        ({"products": "lamp"}, "must be a list of names"),
        ({"products": ("lamp",), "actions": ("do_nothing",)}, "purchase_product, which is not among the actions"),
        ({"actions": ()}, "actions is empty"),
        ({"actions": ("follow", "follow")}, "actions names 'follow' twice"),
        ({"actions": ("like_pots",)}, "no action 'like_pots'; it has .*purchase_product"),
        ({"hide_reports": -1}, "hide_reports must be"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], why: str) -> None:
    parameters: dict[str, Any] = {"actions": ALL, **changes}
    with pytest.raises(ConfigError, match=why):
        SocialWorld("x", **parameters)


OASIS = {
    "refresh", "search_user", "search_posts", "create_post", "like_post", "unlike_post", "dislike_post",
    "undo_dislike_post", "report_post", "follow", "unfollow", "mute", "unmute", "trend", "repost", "quote_post",
    "create_comment", "like_comment", "unlike_comment", "dislike_comment", "undo_dislike_comment", "do_nothing",
    "purchase_product", "join_group", "leave_group", "send_to_group", "create_group", "listen_from_group",
}  # fmt: skip
"""Actions of OASIS's agents (`ActionType`, 0.2.5), without `sign_up`, `update_rec_table`, `interview` and `exit`."""


def test_all_of_oasis_actions_are_there() -> None:
    assert set(ALL) - OASIS == {"vote", "reply"}  # SimSwarm's
    assert set(ALL) >= OASIS
