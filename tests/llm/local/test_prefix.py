"""What a model may keep of an earlier prompt: never the end of one that is read again, and never a reply."""

from __future__ import annotations

import pytest

from mesa_llm.llm.local.prefix import MIN_FRESH, beginning, flat, n_common


def prompt(*contents: str) -> list[dict[str, str]]:
    """Write a prompt of a system message, then the user and the assistant in turns."""
    roles = ["system", *(["user", "assistant"] * 9)]
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


def cut(last: list[dict[str, str]], now: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the beginning of a prompt that is kept of the last one."""
    return beginning(n_common(flat(last), flat(now)), now)


RULES = "Everybody has a coin. " * 30
STORY = "It rained. " * 50


@pytest.mark.parametrize(("one", "other", "n"), [("", "a", 0), ("abc", "abd", 2), ("ab", "abc", 2), ("abc", "abc", 3)])
def test_what_two_prompts_share_is_counted(one: str, other: str, n: int) -> None:
    assert n_common(one, other) == n


def test_a_prompt_is_cut_back_if_little_of_it_is_new() -> None:
    system, user = cut(prompt(RULES, f"{STORY} Do you stay?"), prompt(RULES, f"{STORY} Do you go?"))
    assert system["content"] == RULES
    assert STORY.startswith(user["content"])
    assert 0 < len(user["content"]) <= len(STORY) - MIN_FRESH


def test_a_reply_that_comes_back_is_read_again() -> None:
    last, now = prompt(RULES, STORY), prompt(RULES, STORY, "I stay.", STORY)
    assert len(cut(last, now)[-1]["content"]) < len(STORY)
    assert [message["role"] for message in cut(last, now)] == ["system", "user"]


def test_a_prompt_that_is_cut_back_never_ends_with_a_reply() -> None:
    last = prompt(RULES, STORY, STORY, "Why?", "So.", "Really?")
    assert [message["role"] for message in cut(last, prompt(RULES, STORY, STORY, "Why not?"))][-1] == "user"


def test_a_short_beginning_is_read_again_as_a_whole() -> None:
    assert cut(prompt("Hi.", "One?"), prompt("Hi.", "Two?")) == []
