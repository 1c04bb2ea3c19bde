"""The social world's original rules against what SimSwarm's social environment did, script by script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm.records import ToolCall
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm_models.social.world import FeedItem, SimSwarmFeed, SocialWorld
from tests.golden.reading import failure_of, golden, is_same, outcome_of, recorded_part, section

SCRIPTS: list[dict[str, Any]] = section(golden("simswarm"), "social_env")


NOT_COMPARED = {"log.step.*": "arguments that an action does not take, which the original passes over"}
"""Parts of a script that no test reads → why."""

REFUSALS = {"Post not found": "no post", "Already voted": "voted", "Unknown action": "no tool"}
"""What an error of the original says → what ours says."""

WEIGHTS = {
    "recency_weight": "recency",
    "popularity_weight": "popularity",
    "relevance_weight": "relevance",
    "echo_chamber_strength": "echo",
}
"""Names of the feed's weights there and here."""

OTHER_SETTINGS = {"threading", "voting_mode", "viral_threshold"}
"""The other parameters there; `voting_mode` does nothing."""

ORIGINAL_FEED_SIZE = 20
STRANGER = 1000
"""From here on we number users that a script follows but that do nothing in it."""


class Replay:
    """Runs one script on our world; users and posts there have names, here numbers."""

    def __init__(self, script: Mapping[str, Any]) -> None:
        config = dict(script.get("config", {}))
        if unknown := config.keys() - WEIGHTS.keys() - OTHER_SETTINGS:
            raise TypeError(f"the original's environment has no parameter {sorted(unknown)}")
        feed = SimSwarmFeed(**{ours: config[name] for name, ours in WEIGHTS.items() if name in config})
        self.world = SocialWorld(
            "simswarm",
            rules="original",
            feed=feed,
            feed_size=ORIGINAL_FEED_SIZE,
            viral_threshold=config.get("viral_threshold", 5),
            threading=config.get("threading", True),
        )
        self.names: dict[str, int] = {}
        for entry in script["log"]:
            first, *rest = entry["step"]
            agent_id = rest[0] if first in ("obs", "feed") else first
            if first not in ("tick", "eng") and agent_id not in self.names:
                self.names[agent_id] = len(self.names) + 1
                self.world.sign_up(self.names[agent_id], agent_id.upper())
        self.strangers: dict[str, int] = {}

    def user(self, name: str) -> int:
        return self.names.get(name) or self.strangers.setdefault(name, STRANGER + len(self.strangers))

    def post(self, name: Any) -> Any:
        """Return our id of a post: `p3` is 3, what names none 0; what cannot be looked up stays what it is."""
        if isinstance(name, str):
            return int(name[1:]) if name[:1] == "p" and name[1:].isdigit() else 0
        return name if isinstance(name, (dict, list)) else 0

    def arguments(self, given: Mapping[str, Any], action: str) -> dict[str, Any]:
        """Name arguments as we do; what is missing there has a default there."""
        ours: dict[str, Any] = {}
        if action in ("reply", "vote", "repost"):
            ours["post_id"] = self.post(given.get("post_id"))
        if action in ("create_post", "reply"):
            ours["content"] = str(given.get("text", given.get("content", "")))
        if action == "vote" and "value" in given:
            ours["value"] = given["value"]
        if action == "follow":
            ours["user_id"] = self.user(given.get("agent_id", ""))
        return ours

    def act(self, agent_id: str, action: str, given: Any) -> dict[str, Any]:
        """Run an action past the checks of its arguments, which the original does not have."""
        box = ToolBox.of(object(), self.user(agent_id), [self.world]).only(self.world.settings.actions)
        before = len(self.world.posts)
        try:
            if action not in box:
                box.check(ToolCall(action, given))
            getattr(self.world, action)(self.user(agent_id), **self.arguments(given, action))
        except ToolError as refusal:
            return {"ok": False, "why": str(refusal)}
        except (TypeError, AttributeError) as error:
            return {"raises": type(error).__name__}
        return {"ok": True, "new": f"p{len(self.world.posts)}" if len(self.world.posts) > before else None}

    def written(self, item: FeedItem) -> list[str]:
        """Write what we show of a post as the original writes it."""
        post = item.post
        author = self.name(post.author_id)
        lines = [f"post_id=p{post.post_id} author_id={author} [{post.author}] {post.content} (score: {post.score})"]
        for reply in post.replies:
            author = self.name(reply.author_id)
            lines.append(f"  -> post_id=p{reply.reply_id} author_id={author} [{reply.author}] {reply.content}")
        return lines

    def name(self, user_id: int) -> str:
        return {number: name for name, number in (self.names | self.strangers).items()}[user_id]

    def observation(self, agent_id: str) -> str:
        items = self.world.observe(self.user(agent_id)).facts.feed
        return "\n".join(line for item in items for line in self.written(item)) or "(no posts yet)"

    def feed(self, agent_id: str) -> list[str]:
        return [f"p{post_id}" for post_id in self.world.feed(self.user(agent_id), size=10**6)]

    def events(self) -> list[dict[str, Any]]:
        """End the step, and write its events down; a source is the original's name of its world."""
        found: list[dict[str, Any]] = []
        for event in self.world.end_step():
            facts = {name: event.facts[name] for name in ("text", "author", "score")}
            facts["post_id"] = f"p{event.facts['post_id']}"
            found.append({"type": event.kind, "source": "social", "round": event.time, "data": facts})
        return found

    def posts(self) -> list[dict[str, Any]]:
        voters: dict[int, list[str]] = {}
        for user_id, post_id in self.world.store.rows("SELECT user_id, post_id FROM post_vote"):
            voters.setdefault(post_id, []).append(self.name(user_id))
        return [
            {
                "id": f"p{row['post_id']}",
                "author": self.name(row["user_id"]),
                "parent": f"p{row['parent_id']}" if row["parent_id"] else None,
                "likes": row["likes"],
                "dislikes": row["dislikes"],
                "reposts": row["shares"],
                "created_round": row["step"],
                "voters": sorted(voters.get(row["post_id"], [])),
            }
            for row in self.world.measures.posts_table()
        ]

    def follows(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for follower, followee in self.world.measures.follow_edges().tolist():
            found.setdefault(self.name(follower), []).append(self.name(followee))
        return {follower: sorted(followees) for follower, followees in sorted(found.items())}

    def check(self, entry: Mapping[str, Any]) -> None:
        """Run one entry of the script, and compare."""
        match entry["step"]:
            case ["tick"]:
                told = self.events()
                assert entry.get("r", {"ok": None}) == {"ok": None}
                if "events" in entry:
                    check_events(told, entry["events"])
            case [agent_id, action, given] if "r" not in entry:
                self.act(agent_id, action, given)
            case _ if "r" not in entry:
                pass
            case ["obs", agent_id]:
                assert outcome_of(lambda: self.observation(agent_id)) == entry["r"]
            case ["feed", agent_id]:
                assert outcome_of(lambda: self.feed(agent_id)) == entry["r"]
            case ["eng"]:
                ours = {f"p{post_id}": list(pair) for post_id, pair in self.world.measures.engagement().items()}
                theirs = entry["r"]
                assert is_same(ours, theirs.get("ok", theirs) if theirs.keys() == {"ok"} else theirs)
            case [agent_id, action, given]:
                assert_same(self.act(agent_id, action, given), entry["r"], action, given or {})


def check_events(told: list[dict[str, Any]], expected: list[Any]) -> None:
    """Compare the events of a step in the fields that are recorded; a text there may be of any type."""
    assert len(told) == len(expected)
    for ours, theirs in zip(told, expected, strict=True):
        facts = {**recorded_part(theirs.get("data", {}), ours["data"])}
        facts |= {"text": str(facts["text"])} if "text" in facts else {}
        found = {**ours, "data": recorded_part(ours["data"], facts)}
        assert recorded_part(found, theirs) == {**theirs, **({"data": facts} if "data" in theirs else {})}


def assert_same(ours: Mapping[str, Any], theirs: Mapping[str, Any], action: str, given: Mapping[str, Any]) -> None:
    """Compare outcomes: success, a refusal, or an error that wrong types cause."""
    if "raises" in theirs:
        assert ours.get("raises") == theirs["raises"] or ours.get("ok") is False
        return
    assert ours.get("ok") == theirs["ok"]["success"]
    told = theirs["ok"]["data"]
    if not ours["ok"]:
        kind = next((kind for kind in REFUSALS if told["error"].startswith(kind)), told["error"])
        assert REFUSALS[kind] in ours["why"]
        return
    wanted = {"followed": given.get("agent_id", "")} if action == "follow" else {"post_id": given.get("post_id")}
    if action in ("create_post", "reply"):
        wanted = {"post_id": ours["new"]}
    assert told == ({} if action == "do_nothing" else wanted)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: f"{len(script.get('log', ()))}-entries")
def test_a_script_replays_exactly(script: dict[str, Any]) -> None:
    if failure_of(script) or "log" not in script:
        assert outcome_of(lambda: Replay({"log": [], **script})) == {"raises": failure_of(script) or "TypeError"}
        return
    replay = Replay(script)
    for entry in script["log"]:
        replay.check(entry)
    if "posts" in script:
        posts = replay.posts()
        assert len(posts) == len(script["posts"])
        assert [recorded_part(ours, post) for ours, post in zip(posts, script["posts"], strict=True)] == script["posts"]
    assert replay.follows() == script.get("follows", replay.follows())


@pytest.mark.parametrize("action", ["create_post", "reply", "vote", "repost", "follow"])
def test_an_action_without_arguments_ends_the_original(action: str) -> None:
    replay = Replay({"config": {}, "log": [{"step": ["a", action, None]}]})
    replay.check({"step": ["a", action, None], "r": {"raises": "AttributeError"}})


def test_a_script_of_an_unknown_parameter_does_not_start() -> None:
    assert outcome_of(lambda: Replay({"config": {"no_such": 1}, "log": []})) == {"raises": "TypeError"}


def test_a_post_without_likes_is_viral_at_a_negative_threshold() -> None:
    script = {"config": {"viral_threshold": -1}, "log": [{"step": ["a", "create_post", {"text": "Hello."}]}]}
    replay = Replay(script)
    assert replay.act("a", "create_post", {"text": "Hello."})["ok"]
    assert [event["type"] for event in replay.events()] == ["viral_post"]
