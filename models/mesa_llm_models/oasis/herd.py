"""Do people follow the votes they see? Comments or posts get a random first vote before users vote on them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Unpack, cast

from mesa.datacollection import DataCollector
from pydantic import Field

from mesa_llm import ConfigError, Decision, Hidden, Label, LLMOptions, Observation, Slider, Structure, ToolCall
from mesa_llm.engine.activation import RandomShare
from mesa_llm.tables import read_json
from mesa_llm.text import one_line
from mesa_llm_models.oasis.text import VOTING
from mesa_llm_models.social.agents import SocialUser
from mesa_llm_models.social.model import SocialModel, SocialScenario
from mesa_llm_models.social.world import PRESETS, FeedItem, HotFeed, SocialFacts

DATA = Path(__file__).parent / "data"

Group = Literal["up", "control", "down"]
"""First vote of a comment or post: a like, none, a dislike."""

GROUPS: dict[Group, int] = {"up": 1, "control": 0, "down": -1}
"""Group → initial score of its members."""

FirstVotes = Literal["mixed", "up", "control", "down"]
"""First votes of a world: one group for everything in it, or all three side by side."""

MAX_ACTIONS = 3
"""Maximum number of actions of a user on a post with several comments."""

MAX_TEXT = 5_000
"""Maximum number of characters of a post or comment, as in the world."""

CLIP = 2
"""Absolute score above which a rule twin's reaction no longer grows."""

AGREEING = (
    "True, I have read the same.",
    "Yes, that is right.",
    "Correct. Everybody should know that.",
    "I agree with every word.",
)
DISAGREEING = (
    "That is wrong.",
    "False, look it up.",
    "I doubt that. Where is the source?",
    "Nonsense, this is simply not true.",
)
"""Comments of the rule twin."""

AGREEMENT = re.compile(r"\b(true|right|correct|agree|exactly|indeed)\b")
DISAGREEMENT = re.compile(r"\b(wrong|false|doubt|nonsense|not true|incorrect|disagree|lie|untrue|myth)\b")
"""Words that the rule counts as agreement and disagreement."""

DisagreeScore = Annotated[int, Field(ge=1, le=10)]
"""Disagreement of a comment with its post: 1 none, 10 complete."""


@dataclass(frozen=True)
class Thread:
    """A post to be published, with comments."""

    post: str
    """Text of the post."""

    comments: tuple[str, ...] = ()
    """Comments published with it."""

    groups: tuple[Group, ...] = ()
    """Group of each comment, or of the post if posts are treated; empty for random groups."""


@dataclass
class Treated:
    """A comment or post in the experiment, published with or without a first vote."""

    item_id: int
    """Id of the comment, or of the post."""

    group: Group
    """Group that determines the first vote."""

    comments: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """(Step, disagree score) of each judged comment on it."""


class HerdScenario(SocialScenario):
    """Parameters of a herd study."""

    n_agents: Annotated[
        Annotated[int, Field(ge=2)] | None,
        Slider(10, 500, 10, label="Users"),
        Structure(60, 240, dimension="population"),
    ] = 120
    """Number of users; with `users`, the maximum number read from it."""

    preset: Annotated[Literal["herd_effect", "counterfactual_herd"], Label("What gets the first vote")] = "herd_effect"
    """First votes go to comments (`herd_effect`), or to false posts that users comment on (`counterfactual_herd`)."""

    first_votes: Annotated[FirstVotes, Label("First votes in this world")] = "mixed"
    """Group of everything that is published: one for all (OASIS's counterfactual worlds), or, if mixed, that in the
    file or a random one each.
    """

    votes: Annotated[Literal["shown", "hidden"], Label("Votes of others")] = "shown"
    """Whether users see the votes of others; `hidden` leaves out the scores, and what is in the feed in which order
    stays the same: the placebo of the study. The rule twin takes a hidden score for 0.
    """

    threads: Annotated[str | None, Hidden()] = None
    """File with posts and comments, in our format or OASIS's; None for our own threads. If posts get the first votes,
    those of OASIS's format are the claims (`RC_1`).
    """

    pool: Annotated[Annotated[int, Field(ge=1)] | None, Hidden()] = None
    """Length of the hot list from which each feed is drawn; None for 300 (`herd_effect`), or half the number of users,
    50 or more (`counterfactual_herd`; OASIS: 50 for 100, 500 for 1,000, 5,000 for 10,000).
    """

    posts_per_step: Annotated[int, Field(ge=1), Slider(1, 50, label="New posts in a step"), Structure(4, 16)] = 8
    """Number of posts published at the start of each step."""

    active_share: Annotated[float, Field(ge=0, le=1), Slider(0, 1, 0.05, label="Probability of being active")] = 0.1
    """Probability that a user is active in a step (OASIS: 0.1)."""

    herding: Annotated[float, Field(ge=0, le=5), Slider(0, 2, 0.1, label="Herding of the rule twin")] = 0.8
    """Shift in the log-odds of the rule twin's like per visible score point; 0 to ignore the score."""

    approval: Annotated[float, Field(gt=0, lt=1), Slider(0.05, 0.95, 0.05, label="Likes without a score")] = 0.75
    """Share of likes among the rule twin's votes, and of agreement among its comments, at a score of 0."""

    judge: Annotated[str, Hidden()] = "rule"
    """Language model that scores the disagreement of comments; `rule` counts words."""

    follows: Annotated[int, Field(ge=0), Hidden()] = 0
    """Number of users that a new user follows. All users share the same hot list as their feed."""

    memory: Annotated[str, Hidden()] = "window:6"
    """Memory of the users."""


def like_probability(score: int, approval: float, herding: float) -> float:
    """Compute the probability that a vote is a like.

    Args:
        score: Displayed likes minus dislikes.
        approval: Probability at score 0.
        herding: Log-odds per score point, up to `CLIP` points.
    """
    log_odds = math.log(approval / (1 - approval)) + herding * max(-CLIP, min(CLIP, score))
    return 1 / (1 + math.exp(-log_odds))


class HerdUser(SocialUser):
    """A user who reads a post and votes. The rule twin follows the visible score, or ignores it."""

    def rule(self, seen: Observation) -> list[ToolCall] | ToolCall | None:
        """Vote on about half of the comments under a post, or comment or vote on one of several posts."""
        facts: SocialFacts = seen.facts
        items = [item for item in facts.feed if item.post.source_author_id != self.unique_id]
        nothing = ToolCall("do_nothing") if "do_nothing" in (seen.tools or ()) else None
        if not items:
            return nothing
        item = self.random.choice(items)
        if self.model.scenario.preset == "herd_effect":
            return self._votes(item) or nothing
        return self._comment_or_vote(item) or nothing

    def likes(self, score: int) -> bool:
        """Draw whether the vote is a like.

        Args:
            score: Likes minus dislikes, which count only if they are displayed.
        """
        scenario = self.model.scenario
        visible = score if scenario.votes == "shown" else 0
        return self.random.random() < like_probability(visible, scenario.approval, scenario.herding)

    def _votes(self, item: FeedItem) -> list[ToolCall]:
        votes: list[ToolCall] = []
        for comment in item.post.comments:
            if comment.vote or comment.author_id == self.unique_id or self.random.random() < 0.5:
                continue
            action = "like_comment" if self.likes(comment.score) else "dislike_comment"
            votes.append(ToolCall(action, {"comment_id": comment.reply_id}))
        return votes[:MAX_ACTIONS]

    def _comment_or_vote(self, item: FeedItem) -> ToolCall | None:
        agrees = self.likes(item.post.score)
        if self.random.random() < 0.5:
            content = self.random.choice(AGREEING if agrees else DISAGREEING)
            return ToolCall("create_comment", {"post_id": item.post.source_id, "content": content})
        if item.vote:
            return None
        return ToolCall("like_post" if agrees else "dislike_post", {"post_id": item.post.source_id})


def rule_disagreement(text: str) -> int:
    """Score the disagreement of a text, 1 to 10, by its words: 5 if both sides have equally many.

    Args:
        text: The text, or a judge's prompt, of which the part after the last line `Comment:` counts.
    """
    comment = text.rpartition("Comment:\n")[2].lower()
    n_against = len(DISAGREEMENT.findall(comment))
    n_for = len(AGREEMENT.findall(DISAGREEMENT.sub("", comment)))
    return max(1, min(10, 5 + 4 * (n_against > n_for) - 4 * (n_for > n_against)))


def read_threads(path: str | Path, *, claims: bool = False) -> tuple[Thread, ...]:
    """Read posts with comments: ours (`post`, `comments`), or OASIS's (`RS`, `RC_1` …).

    Args:
        path: The file.
        claims: Whether the first comment of an entry of OASIS's is the post, without comments, as in its counterfactual
            study: it states a false claim, which `RS` only paraphrases.

    Raises:
        ConfigError: If the file cannot be read or has an invalid entry. The message names it.
    """
    entries = read_json(path)
    if not isinstance(entries, list) or not entries:
        raise ConfigError(f"{path} does not contain a list of posts")
    placed = [(entry, f"{path}, entry {index}") for index, entry in enumerate(cast("list[Any]", entries))]
    return tuple(_thread(entry, where, claims) for entry, where in placed)


def _thread(entry: Any, where: str, claims: bool) -> Thread:
    """Read one post with its comments, or its claim."""
    if not isinstance(entry, dict):
        raise ConfigError(f"{where}: expected an object with a post and comments, found {entry!r:.80}")
    fields = cast("dict[str, Any]", entry)
    groups: list[Any] = []
    try:
        if "RS" in fields:
            source = fields["RS"]
            replies = [fields[name] for name in sorted(fields, key=_number) if name.startswith("RC_")]
            groups = [reply["group"] for reply in replies]
            title = "" if source["title"] in (None, "None") else f"{source['title']}\n"
            texts: list[Any] = [title + source["selftext"], *(reply["body"] for reply in replies)]
            if claims:
                texts, groups = [fields["RC_1"]["body"]], [fields["RC_1"]["group"]]
        else:
            comments: Any = fields.get("comments", [])
            texts = [fields["post"], *(comments if isinstance(comments, list) else [comments, None])]
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"{where}: expected 'post' and 'comments', or RS with title and selftext and RC_1 … with body and group; "
            f"{type(error).__name__}: {error}"
        ) from None
    for text in texts:
        if not isinstance(text, str) or not one_line(text) or len(text) > MAX_TEXT:
            raise ConfigError(
                f"{where}: a post or comment must be a text of 1 to {MAX_TEXT:,} characters, found {text!r:.80}"
            )
    if unknown := [group for group in groups if not isinstance(group, str) or group not in GROUPS]:
        raise ConfigError(f"{where}: a group must be one of {', '.join(GROUPS)}, found {unknown[0]!r:.80}")
    return Thread(texts[0], tuple(texts[1:]), tuple(cast("Any", groups)))


def _number(name: str) -> int:
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


class HerdModel(SocialModel):
    """Comments or posts start with a random like, a dislike or no vote: how do their scores develop?

    Attributes:
        threads: Threads to publish, in turn.
        treated: Published comments or posts, in order.
    """

    scenario_class = HerdScenario
    changeable = ("approval", "herding", "posts_per_step")
    scenario: HerdScenario
    user_class = HerdUser

    def __init__(self, scenario: HerdScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Sign up the users, and two scripted accounts that publish and cast the first votes."""
        super().__init__(scenario, **options)
        parameters = self.scenario
        if "activation" not in options:
            self.activation = RandomShare(parameters.active_share)
        own = "threads.json" if self.treats_comments else "claims.json"
        self.threads = read_threads(parameters.threads or DATA / own, claims=not self.treats_comments)
        if self.treats_comments and not any(thread.comments for thread in self.threads):
            raise ConfigError(f"threads={parameters.threads}: no post has a comment to vote on")
        self.treated: list[Treated] = []
        self._by_post: dict[int, Treated] = {}
        self._scores: dict[Group, list[int]] = {group: [] for group in GROUPS}
        self._n_judged = 0
        self._publisher, self._voter = (max(self.world.names) + index for index in (1, 2))
        for account, name in ((self._publisher, "New posts"), (self._voter, "First votes")):
            self.world.sign_up(account, name)
        measures = {f"score_{group}": f"score_{group}" for group in GROUPS}
        if not self.treats_comments:
            measures |= {name: name for name in ("disagree", *(f"disagree_{group}" for group in GROUPS))}
            measures["disagree_in_step"] = "disagree_in_step"
        self.datacollector = DataCollector({**measures, "active": "n_active"})
        self.datacollector.collect(self)

    @property
    def judge(self) -> Any:
        """Language model that scores disagreement: `llm["judge"]` if given, else the scenario's."""
        return self.llm["judge"] if isinstance(self.llm, Mapping) and "judge" in self.llm else self.scenario.judge

    @property
    def treats_comments(self) -> bool:
        """Whether comments, rather than posts, get the first votes."""
        return self.scenario.preset == "herd_effect"

    def _changes(self) -> dict[str, Any]:
        parameters = self.scenario
        changes = super()._changes() | {"max_actions": MAX_ACTIONS if self.treats_comments else 1}
        changes["show_votes"] = parameters.votes == "shown"
        if parameters.feed is None:
            feed = cast("HotFeed", PRESETS[parameters.preset].feed)
            half = 0 if self.treats_comments else (parameters.n_agents or 0) // 2
            changes["feed"] = replace(feed, pool=parameters.pool or max(feed.pool, half))
        return changes

    def opening(self, users: Sequence[SocialUser]) -> list[tuple[SocialUser, str]]:
        """Return no first posts by users.

        Args:
            users: All users.
        """
        return []

    @property
    def talk(self) -> str:
        """What the network is about: votes, as a sentence in the users' instructions."""
        return VOTING

    def start_step(self) -> None:
        """Publish new posts and their comments, and cast the first votes."""
        groups = list(GROUPS)
        for index in range(self.scenario.posts_per_step):
            if self._n_published % len(self.threads) == 0:
                self._order = self.random.sample(self.threads, len(self.threads))
            thread = self._order[self._n_published % len(self.threads)]
            self._n_published += 1
            self.world.create_post(self._publisher, thread.post)
            post_id = len(self.world.posts)
            if not self.treats_comments:
                group = thread.groups[0] if thread.groups else groups[(index + self.now) % 3]
                self._treat(post_id, group)
                continue
            drawn = self.random.sample(groups, 3)
            for number, comment in enumerate(thread.comments):
                self.world.create_comment(self._publisher, post_id, comment)
                self._treat(self.world.n_comments, thread.groups[number] if thread.groups else drawn[number % 3])

    _n_published = 0
    _order: Sequence[Thread] = ()

    def _treat(self, item_id: int, group: Group) -> None:
        """Cast the first vote, that of the world if it has one."""
        group = group if self.scenario.first_votes == "mixed" else self.scenario.first_votes
        kind = "comment" if self.treats_comments else "post"
        if GROUPS[group]:
            verb = "like" if GROUPS[group] > 0 else "dislike"
            getattr(self.world, f"{verb}_{kind}")(self._voter, item_id)
        self.treated.append(Treated(item_id, group))
        if kind == "post":
            self._by_post[item_id] = self.treated[-1]

    def end_step(self) -> None:
        """Have the new comments on treated posts judged, and measure the scores."""
        if not self.treats_comments:
            self._judge_comments()
        self._scores = self.scores()

    def _judge_comments(self) -> None:
        new_comments = self.world.measures.comments_table()[self._n_judged :]
        self._n_judged += len(new_comments)
        comments = [comment for comment in new_comments if comment["post_id"] in self._by_post]
        posts = [self.world.post_view(comment["post_id"]).content for comment in comments]
        prompts = [
            self.prompt("disagree.md", post=one_line(post), comment=one_line(comment["content"]))
            for post, comment in zip(posts, comments, strict=True)
        ]
        if not prompts:
            return
        verdicts = self.consult(self.judge, prompts, answer=DisagreeScore, purpose="judge", rule=rule_disagreement)
        for comment, verdict in zip(comments, verdicts, strict=True):
            if isinstance(verdict, Decision):
                self._by_post[comment["post_id"]].comments.append((self.now, float(cast("int", verdict.answer))))

    # -- measures

    def scores(self) -> dict[Group, list[int]]:
        """Return the scores of all treated items by group, including first votes."""
        if self.treats_comments:
            rows = {row["comment_id"]: row["likes"] - row["dislikes"] for row in self.world.measures.comments_table()}
        else:
            rows = {
                post_id: likes - dislikes for post_id, (likes, dislikes) in self.world.measures.engagement().items()
            }
        scores: dict[Group, list[int]] = {group: [] for group in GROUPS}
        for one in self.treated:
            scores[one.group].append(rows[one.item_id])
        return scores

    def mean_score(self, group: Group) -> float | None:
        """Return a group's mean score after the last step; None while it is empty.

        Args:
            group: The group.
        """
        scores = self._scores[group]
        return fmean(scores) if scores else None

    def mean_disagreement(self, group: Group | None = None, since: int = 0) -> float | None:
        """Return the mean disagree score of comments on posts of a group; None without comments.

        Args:
            group: The group; None for all.
            since: Step of the first comments that count.
        """
        posts = [one for one in self.treated if group in (None, one.group)]
        scores = [score for one in posts for step, score in one.comments if step >= since]
        return fmean(scores) if scores else None

    @property
    def disagree(self) -> float | None:
        """Mean disagree score of all comments so far; None without comments."""
        return self.mean_disagreement()

    @property
    def disagree_in_step(self) -> float | None:
        """Mean disagree score of the comments of the last step; None without comments."""
        return self.mean_disagreement(since=self.now)

    score_up = property(lambda self: self.mean_score("up"))
    score_control = property(lambda self: self.mean_score("control"))
    score_down = property(lambda self: self.mean_score("down"))
    disagree_up = property(lambda self: self.mean_disagreement("up"))
    disagree_control = property(lambda self: self.mean_disagreement("control"))
    disagree_down = property(lambda self: self.mean_disagreement("down"))
