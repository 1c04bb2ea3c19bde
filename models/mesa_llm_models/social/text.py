"""Texts about users' possible actions, and the posts of rule twins."""

from __future__ import annotations

from collections.abc import Collection

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

EXAMPLES = (
    (("create_post",), "write a post of your own", ""),
    (("reply", "create_comment"), "reply to a post", "reply to it"),
    (("vote", "like_post", "dislike_post"), "vote on a post", "vote on it"),
    (("repost", "quote_post"), "pass a post on", "pass it on"),
    (("follow",), "follow the author of a post", "follow its author"),
    (("send_to_group", "join_group", "create_group"), "talk in a group", ""),
    (("purchase_product",), "buy something on offer", ""),
)
"""Actions → example in the users' instructions if they have one of them, and its form once a post has been named."""


def examples_text(actions: Collection[str]) -> str:
    """List examples of users' actions: `write a post of your own, vote on a post, or pass it on`.

    Args:
        actions: Names of their actions.
    """
    examples: list[str] = []
    is_post_named = False
    for names, example, later in EXAMPLES:
        if not set(names).isdisjoint(actions):
            examples.append(later if later and is_post_named else example)
            is_post_named |= bool(later)
    if len(examples) < 3:
        return " or ".join(examples)
    return f"{', '.join(examples[:-1])}, or {examples[-1]}"
