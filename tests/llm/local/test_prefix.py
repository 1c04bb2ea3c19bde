"""What a model may keep of the last prompt: never the end of one that is read again, and never a reply."""

from __future__ import annotations

from mesa_llm.llm.local.prefix import MIN_FRESH, beginning, is_kept_safely


def prompt(*contents: str) -> list[dict[str, str]]:
    """Write a prompt of a system message, then the user and the assistant in turns."""
    roles = ["system", *(["user", "assistant"] * 9)]
    return [{"role": role, "content": content} for role, content in zip(roles, contents, strict=False)]


RULES = "Everybody has a coin. " * 30
STORY = "It rained. " * 50


def test_what_two_prompts_share_is_kept_if_enough_follows() -> None:
    assert is_kept_safely(prompt(RULES, "Hello."), prompt(RULES, STORY))
    assert is_kept_safely([], prompt(RULES, STORY))


def test_a_prompt_is_cut_back_if_little_of_it_is_new() -> None:
    last, now = prompt(RULES, f"{STORY} Do you stay?"), prompt(RULES, f"{STORY} Do you go?")
    assert not is_kept_safely(last, now)
    system, user = beginning(last, now)
    assert system["content"] == RULES
    assert STORY.startswith(user["content"])
    assert 0 < len(user["content"]) <= len(STORY) - MIN_FRESH


def test_the_same_prompt_is_cut_back_too() -> None:
    assert not is_kept_safely(prompt(RULES, STORY), prompt(RULES, STORY))


def test_a_reply_that_comes_back_is_read_again() -> None:
    last, now = prompt(RULES, STORY), prompt(RULES, STORY, "I stay.", STORY)
    assert not is_kept_safely(last, now)
    assert len(beginning(last, now)[-1]["content"]) < len(STORY)
    assert [message["role"] for message in beginning(last, now)] == ["system", "user"]


def test_a_prompt_that_is_cut_back_never_ends_with_a_reply() -> None:
    last = prompt(RULES, STORY, STORY, "Why?", "So.", "Really?")
    assert [message["role"] for message in beginning(last, prompt(RULES, STORY, STORY, "Why not?"))][-1] == "user"


def test_a_short_beginning_is_read_again_as_a_whole() -> None:
    assert beginning(prompt("Hi.", "One?"), prompt("Hi.", "Two?")) == []
