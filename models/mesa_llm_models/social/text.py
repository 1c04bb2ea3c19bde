"""Texts about users' possible actions, and the posts of rule twins."""

from __future__ import annotations

from collections.abc import Collection

TOPIC = "a ban on cars in the town centre"
"""Default topic."""

REMARKS = (
    "Has anybody else been thinking about {topic} lately?",
    "I keep coming back to {topic}. It matters more than people admit.",
    "Not convinced by what is said about {topic} these days.",
    "Good day for {topic}, I would say.",
    "Who here knows more about {topic} than I do?",
    "Three years ago nobody talked about {topic}.",
)
"""Posts of the rule twin."""

ANSWERS = (
    "I see it the same way.",
    "Where did you hear that?",
    "I am not so sure about this.",
    "Tell us more about it.",
    "This is just my experience too.",
)
"""Replies of the rule twin."""

STATEMENTS = (
    ("I am for {topic}.", "I support {topic}, and wonder what keeps us waiting.", "We all agree on {topic}, I hope."),
    ("What do others make of {topic}?", "I have heard both sides on {topic}."),
    ("I am against {topic}.", "I oppose {topic}. It would do more harm than good.", "Nobody here supports {topic}."),
)
"""Posts of the rule twin about the topic of beliefs: for it, undecided, against it."""

OPENINGS = (
    (
        "I am for {topic}. Why has nobody done it years ago?",
        "We need {topic}. If you agree, pass this on, so that the council sees how many we are.",
        "People say {topic} goes too far. Ask those who live with things as they are.",
        "I have waited for {topic} since I came to live here. Who is with me?",
        "Other towns have {topic} already, and nobody there wants the old days back.",
    ),
    (
        "Tell me one good reason for {topic}, and one good reason against it. I cannot make up my mind.",
        "I have heard ten opinions on {topic} today, and not one fact. Who knows more?",
        "Could we try {topic} for half a year and then decide? Or is that too simple?",
        "My neighbours have not greeted each other since somebody mentioned {topic}. Is it as bad where you are?",
        "What would {topic} mean for you, on an ordinary Tuesday? Tell me, I want to know.",
    ),
    (
        "I am against {topic}. Nobody has told me yet who is going to pay for it.",
        "Who thought up {topic}? Pass this on if you were not asked, either.",
        "Before we talk of {topic}, mend what does not work today.",
        "They call {topic} progress. For me it is one more thing that others decide.",
        "Tell me how I get through my day with {topic}, and I will listen. Until then: no.",
    ),
)
"""First posts about what the network talks about: by somebody who is for it, undecided, against it."""

VIEWS = ("are all for it", "are rather for it", "cannot make up your mind", "are rather against it", "are against it")
"""Views on what the network talks about, from for it to against it."""

STAKES = (
    "It would change every day of your week.",
    "You have argued about it at home.",
    "You first read about it this morning.",
    "Somebody close to you would be hit by it.",
    "At work they talk of little else.",
    "A good argument could still change your mind.",
    "You are tired of the shouting, and want to hear facts.",
    "You have never said in public what you think of it.",
    "You know some of the people who decide it.",
    "The last time your town tried something like it, it went wrong.",
)
"""What it has to do with a user."""

EXAMPLES = (
    (("create_post",), "write a post of your own, if you have something to say", ""),
    (("reply", "create_comment"), "answer a post, for all to read", "answer it, for all to read"),
    (("vote",), "vote a post up if you agree, or down if you do not", "vote it up if you agree, or down if you do not"),
    (("dislike_post",), "like a post if you agree, dislike it if you do not", "like it or dislike it"),
    (("like_post",), "like a post, to tell its author that you agree", "like it, to tell its author that you agree"),
    (("like_comment", "dislike_comment"), "like or dislike a comment", "like or dislike a comment under it"),
    (
        ("repost", "quote_post"),
        "pass a post on to all who follow you, if they should read it",
        "pass it on to all who follow you, if they should read it",
    ),
    (("follow",), "follow the author of a post, to see more of them", "follow its author, to see more of them"),
    (("send_to_group", "join_group", "create_group"), "talk in a group", ""),
    (("purchase_product",), "buy something on offer", ""),
)
"""Actions → what it means, in the users' instructions, if they have one of them, and its form once a post has been
named.
"""

ONE_OF = frozenset({"dislike_post", "like_post"})
"""Actions of which the first in `EXAMPLES` that a user has speaks for all."""


def talk_text(topic: str) -> str:
    """Say what the network talks about."""
    return f"What people there talk about these days is {topic}. "


def view_text(topic: str, view: int, stake: str) -> str:
    """Say what a user thinks of what the network talks about.

    Args:
        topic: What it is.
        view: Index of its view in `VIEWS`.
        stake: What it has to do with the user.
    """
    return f"What you think of {topic}: you {VIEWS[view]}. {stake}"


def examples_text(actions: Collection[str]) -> str:
    """Say what users can do and what it means: `answer a post, for all to read; or follow its author, to see …`.

    Args:
        actions: Names of their actions.
    """
    examples: list[str] = []
    is_post_named = is_rated = False
    for names, example, later in EXAMPLES:
        if set(names).isdisjoint(actions) or (is_rated and ONE_OF.issuperset(names)):
            continue
        examples.append(later if later and is_post_named else example)
        is_post_named |= bool(later)
        is_rated |= ONE_OF.issuperset(names)
    if len(examples) < 3:
        return "; or ".join(examples)
    return f"{'; '.join(examples[:-1])}; or {examples[-1]}"
