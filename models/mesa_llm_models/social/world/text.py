"""Texts for users, which show every id that an action needs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from textwrap import shorten

from mesa_llm.text import counted, one_line, quoted, sentences
from mesa_llm_models.social.world.facts import (
    FeedItem,
    GroupView,
    MessageView,
    OwnPost,
    PostView,
    ReplyView,
    SocialFacts,
)
from mesa_llm_models.social.world.settings import SocialSettings
from mesa_llm_models.social.world.state import Notice
from mesa_llm_models.social.world.store import Names

RESULTS = {
    "still_follow": "You follow user {user_id}.",
    "follow": "You followed {name} (user {user_id}).",
    "unfollow": "You stopped following {name} (user {user_id}).",
    "mute": "You muted {name} (user {user_id}).",
    "unmute": "You stopped muting {name} (user {user_id}).",
    "create_post": "You posted {content} (post {post_id}).",
    "reply": "You answered {post} with {content} (reply {reply_id}).",
    "create_comment": "You commented on {post}: {content} (comment {comment_id}).",
    "repost": "You passed on {post}.",
    "quote_post": "You passed on {post} with your own words {content} (post {quote_id}).",
    "vote": "You voted {direction} {post}.",
    "original_vote": "You voted on {post}.",
    "like_post": "You liked {post}.",
    "unlike_post": "You took back your like of {post}.",
    "dislike_post": "You disliked {post}.",
    "undo_dislike_post": "You took back your dislike of {post}.",
    "like_comment": "You liked {comment}.",
    "unlike_comment": "You took back your like of {comment}.",
    "dislike_comment": "You disliked {comment}.",
    "undo_dislike_comment": "You took back your dislike of {comment}.",
    "report_post": "You reported {post}.",
    "purchase_product": "You bought {amount} of {product}.",
    "create_group": "You opened group {group_id} {name}, and are in it.",
    "join_group": "You joined group {group_id} {name}.",
    "leave_group": "You left group {group_id} {name}.",
    "send_to_group": "You wrote to group {group_id} {name}.",
    "no_post": "No post holds {query}.",
    "no_user": "No user matches {query}.",
    "no_feed": "There is nothing in your feed yet.",
    "no_trend": "Nothing is trending.",
    "no_group": "You are in no group.",
}
"""Action or tool → what came of it, as the user remembers it; `no_…`: that nothing was found."""

result_text = sentences(RESULTS)

REASONS = {
    "empty_search": "The search is empty; give a word to look for.",
    "no_variable": "{variable} = {value!r}; wanted feed, one of {feeds}, or feed_size or viral_threshold, a number",
    "no_product": "There is no product {product}; on offer: {offer}.",
    "no_offer": "There is no product {product}; nothing is on offer.",
    "amount": "You cannot buy {amount} pieces; buy 1 to {maximum}.",
    "in_group": "You are in group {group_id} already.",
    "no_group": "There is no group {group_id}; use the number of a group you were shown.",
    "not_in_group": "You are not in group {group_id}.",
    "not_in_open_group": "You are not in group {group_id}; join it first.",
    "followed": "You follow {name} (user {user_id}) already.",
    "not_followed": "You do not follow user {user_id}.",
    "muted": "You have muted {name} (user {user_id}) already.",
    "not_muted": "You have not muted user {user_id}.",
    "own_repost": "Post {source_id} is your own; repost what others wrote.",
    "reposted": "You have reposted post {source_id} already.",
    "reported": "You have reported post {target} already.",
    "own_report": "Post {post_id} is your own; report what others wrote.",
    "muted_author": "Post {post_id} is not there for you: you muted user {author}.",
    "hidden_post": "Post {post_id} is not there any more: it was reported too often.",
    "voted_alike": "You {verb} {kind} {target} already.",
    "voted_undoable": "You {verb} {kind} {target}; {undo} takes that back.",
    "voted_for_good": "You {verb} {kind} {target}; that vote stands.",
    "own_post": "Post {target} is your own; rate what others wrote.",
    "not_voted": "You do not {verb} post {target}.",
    "no_comment": "There is no comment {comment_id}; use the number of a comment you were shown.",
    "muted_commenter": "Comment {comment_id} is not there for you: you muted user {author}.",
    "own_comment": "Comment {comment_id} is your own; rate what others wrote.",
    "not_voted_comment": "You do not {verb} comment {comment_id}.",
    "no_user": "There is no user {user_id}; use the number shown after a name.",
    "yourself": "User {user_id} is you; you cannot {action} yourself.",
    "no_post": "There is no post {post_id}; use the number of a post you were shown.",
    "empty": "The {name} is empty; write some words.",
    "too_long": "The {name} has {characters:,} characters; write {maximum:,} at most.",
    "voted": "You have voted on post {post_id} already.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)

VOTE_MARKS = {1: " You like it.", -1: " You dislike it."}
"""Mark after a post or comment that the reader has voted on, by vote."""

NOTICE_CHARACTERS = 120
"""Maximum number of characters of a reply or comment in a notice."""

MESSAGE_CHARACTERS = 160
"""Maximum number of characters of a message in a group."""

MAX_NAMED = 2
"""Maximum number of users named in a notice; the others are counted."""


TOLD_CHARACTERS = 60
"""Maximum number of characters quoted of a post or comment where a user's action on it is told."""

MAX_FOLLOWED = 5
"""Maximum number of followed users that are named; the others are counted."""


def told_text(kind: str, number: int, author: str, content: str) -> str:
    """Name a post or comment where a user's action on it is told: whose it is, and how it begins.

    Args:
        kind: `post` or `comment`.
        number: Its id.
        author: Name of its author; empty for the user itself.
        content: Its text.
    """
    return f"{f'{author}’s' if author else 'your own'} {kind} {number} ({_quoted(content, TOLD_CHARACTERS)})"


MAX_QUOTED = 4_000
"""Maximum number of cached quotations of posts and comments, which many users read, step after step."""


@lru_cache(MAX_QUOTED)
def _quoted(text: str, max_characters: int) -> str:
    """Quote a text, cut at the end of a word if it is too long."""
    line = one_line(text)
    if len(line) <= max_characters:
        return quoted(line)
    whole = shorten(line, max_characters, placeholder=" …")
    return quoted(line, max_characters) if len(whole) < max_characters // 2 else quoted(whole)


def observation_text(
    facts: SocialFacts, news: Sequence[str], own_posts: Sequence[str], feed: str, names: Names, settings: SocialSettings
) -> str:
    """Write a user's observation: the time, its ties, its own posts and what came of them, its notices, its feed.

    Args:
        facts: The observation.
        news: Its notices, a line each.
        own_posts: Its latest posts, a line each.
        feed: The posts of its feed.
        names: Names of the users.
        settings: Parameters of the world.
    """
    lines = [f"{_moment(facts.step, settings)} You are {names.mentions([facts.user_id])[0]}. {_ties(facts, names)}"]
    if facts.followed:
        lines.append(f"Among those you follow: {', '.join(names.mentions(facts.followed))}.")
    if facts.muted:
        lines.append(f"Among those you muted: {', '.join(names.mentions(facts.muted))}.")
    if own_posts:
        lines += ["", "What you have posted:", *own_posts]
    if news:
        lines += ["", "News:", *news]
    if facts.products:
        offers = [f"{product.name} ({product.sales} sold)" for product in facts.products]
        lines += ["", "On offer:", *(f"- {offer}" for offer in offers)]
    if facts.groups:
        lines += ["", "Your groups, and what is new in them:"]
        lines += [line for group in facts.groups for line in (_group(group), *map(message_line, group.messages))]
    if facts.open_groups:
        lines += ["", "Groups you could join:", *map(_group, facts.open_groups)]
    lines += ["", "Your feed:", feed]
    return "\n".join(lines)


def _moment(step: int, settings: SocialSettings) -> str:
    """Write the time, in the unit of the ages of posts and of memories."""
    minutes = f", and a step is {counted(round(settings.step_minutes), 'minute')}" if settings.unit == "step" else ""
    return f"It is {settings.unit} {step}{minutes if settings.step_minutes >= 1 else ''}."


def _ties(facts: SocialFacts, names: Names) -> str:
    """Write how many follow a user, and whom it follows."""
    followers = f"{counted(facts.followers, 'person follows', 'people follow')} you" if facts.followers else ""
    if not facts.follows:
        return f"{followers or 'Nobody follows you'}, and you follow nobody."
    named = [names.get(user_id, f"user {user_id}") for user_id in facts.follows]
    if n_more := facts.followings - len(named):
        named.append(counted(n_more, "other"))
    whom = " and ".join([*([", ".join(named[:-1])] if named[1:] else []), named[-1]])
    return f"{followers or 'Nobody follows you'}, and you follow {whom}."


def own_post_line(post: OwnPost, content: str, step: int, settings: SocialSettings) -> str:
    """Write one of a user's own posts, and what came of it."""
    counts: list[str] = []
    if settings.show_votes and settings.show_score:
        counts = [f"score {post.likes - post.dislikes}"]
    elif settings.show_votes:
        counts = [counted(post.likes, "like")]
        if post.dislikes:
            counts.append(counted(post.dislikes, "dislike"))
    counts.append(counted(post.shares, "share"))
    if post.answers:
        counts.append(counted(post.answers, "answer"))
    age = _age(step - post.step, settings)
    return f"- Post {post.post_id}, {age}: {_quoted(content, settings.post_characters // 2)} ({', '.join(counts)})"


def _group(group: GroupView) -> str:
    return f"- Group {group.group_id} {quoted(group.name)}, {counted(group.members, 'member')}"


def message_line(message: MessageView) -> str:
    """Write one message in a group."""
    return f"  From {message.author} (user {message.user_id}): {_quoted(message.content, MESSAGE_CHARACTERS)}"


def messages_text(groups: Sequence[GroupView], messages: Sequence[MessageView]) -> str:
    """Write the messages of groups, group by group.

    Args:
        groups: The groups.
        messages: Their messages, oldest first.
    """
    lines: list[str] = []
    for group in groups:
        heard = [message_line(message) for message in messages if message.group_id == group.group_id]
        lines += [_group(group), *(heard or ["  (nothing)"])]
    return "\n".join(lines)


def post_text(item: FeedItem, step: int, settings: SocialSettings) -> str:
    """Write one post, with its replies and comments."""
    post = item.post
    max_characters = settings.post_characters // 2
    lines = [f"Post {post.post_id} {_by(item, max_characters)}: {_quoted(post.content, settings.post_characters)}"]
    if post.reports >= settings.warn_reports:
        lines.append(f"  Warning: reported {counted(post.reports, 'time')}.")
    counts = ", ".join([*_reactions(post, settings), _age(step - post.step, settings)])
    lines.append(f"  {counts}.{VOTE_MARKS.get(item.vote, '')}")
    lines += [f"  Reply {_reply(reply, post, max_characters, settings)}" for reply in post.replies]
    lines += [f"  Comment {_reply(comment, post, max_characters, settings)}" for comment in post.comments]
    return "\n".join(lines)


def _by(item: FeedItem, limit: int) -> str:
    post, source = item.post, item.post.quoted
    writer = "you" if item.is_own else f"{post.source_author} (user {post.source_author_id})"
    quoting = ""
    if source is not None:
        quotation = _quoted(source.content, limit)
        quoting = f", quoting post {source.post_id} by {source.author} (user {source.author_id}) {quotation}"
    if post.kind == "repost":
        followed = ", followed" if item.is_followed else ""
        return f"({post.author}, user {post.author_id}{followed}, reposts post {post.source_id} by {writer}{quoting})"
    if item.is_followed:
        writer = f"{post.author} (user {post.author_id}, followed)"
    return f"by {writer}{quoting}"


def _reactions(view: PostView | ReplyView, settings: SocialSettings) -> list[str]:
    counts: list[str] = []
    if not settings.show_votes:
        pass
    elif settings.show_score:
        counts = [f"score {view.score}"]
    else:
        counts = [counted(view.likes, "like")]
        if view.dislikes:
            counts.append(counted(view.dislikes, "dislike"))
    if isinstance(view, PostView) and view.shares:
        counts.append(counted(view.shares, "share"))
    return counts


def _age(steps: int, settings: SocialSettings) -> str:
    return f"{counted(steps, settings.unit)} ago" if steps else "just now"


def _reply(reply: ReplyView, post: PostView, limit: int, settings: SocialSettings) -> str:
    parent = "" if reply.parent_id == post.source_id else f" to {reply.parent_id}"
    writer = f"by {reply.author} (user {reply.author_id})"
    reactions = _reactions(reply, settings)
    counts = f" ({', '.join(reactions)})" if reactions else ""
    return f"{reply.reply_id}{parent} {writer}: {_quoted(reply.content, limit)}{counts}{VOTE_MARKS.get(reply.vote, '')}"


def group_notices(notices: Sequence[Notice]) -> list[list[Notice]]:
    """Group notices that share a line, the latest first: the same action of many on the same post or comment."""
    if not notices:
        return []
    groups: dict[tuple[str, int, int], list[Notice]] = {}
    for notice in reversed(notices):
        groups.setdefault(_group_key(notice), []).append(notice)
    return list(groups.values())


def news_lines(groups: Sequence[Sequence[Notice]], names: Names, limit: int) -> list[str]:
    """Write notices, one line a group; groups beyond the limit are only counted."""
    lines = [f"- {_news(group, names)}" for group in groups[:limit]]
    if len(groups) > limit:
        lines.append(f"- and {counted(len(groups) - limit, 'more piece')} of news")
    return lines


def _group_key(notice: Notice) -> tuple[str, int, int]:
    """Return the key to group a notice by: notices with words stand alone, likes of the same post share a line."""
    of_its_own = notice.kind not in ("like", "repost", "follow")
    return notice.kind, notice.post_id, notice.new_id if of_its_own else 0


def _news(group: Sequence[Notice], names: Names) -> str:
    first = group[0]
    users = names.mentions([notice.user_id for notice in group[:MAX_NAMED]])
    if len(group) > MAX_NAMED:
        users = [", ".join(users), counted(len(group) - MAX_NAMED, "other")]
    authors = " and ".join(users)
    quotation = _quoted(first.content, NOTICE_CHARACTERS)
    match first.kind:
        case "like":
            return f"{authors} liked your post {first.post_id}."
        case "comment_like":
            return f"{authors} liked your comment {first.new_id}."
        case "repost":
            return f"{authors} reposted your post {first.post_id}."
        case "follow":
            return f"{authors} followed you."
        case "quote":
            return f"{authors} quoted your post {first.post_id} in post {first.new_id}: {quotation}"
        case "reply":
            return f"{authors} answered your post {first.post_id} with reply {first.new_id}: {quotation}"
        case "comment":
            return f"{authors} wrote comment {first.new_id} under your post {first.post_id}: {quotation}"
