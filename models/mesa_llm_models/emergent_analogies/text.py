"""How problems are put."""

from __future__ import annotations

from collections.abc import Sequence


def choice_text(matrix: str, options: Sequence[str]) -> str:
    """Ask which option completes a matrix."""
    return "\n".join([f"{matrix}?]", "", "Which of these is the missing cell?", *options])


def verbal_text(analogy: str, options: Sequence[str]) -> str:
    """Ask which of two words completes an analogy."""
    return f"{analogy} …\n\nWhich word completes it: {options[0]} or {options[1]}?"


def sentence_text(first: str, second: str, target: str) -> str:
    """Put a problem of letter strings as a sentence, up to where the answer begins."""
    return f"Suppose {first} is turned into {second}. In the same way, {target} is turned into"


def pattern_text(first: str, second: str, target: str, *, has_lead: bool) -> str:
    """Put a problem of letter strings in brackets, up to where the answer begins."""
    lead = "Complete the pattern.\n\n" if has_lead else ""
    return f"{lead}[{first}] [{second}]\n[{target}] ["


def story_text(source: str, first: str, second: str) -> str:
    """Ask which of two stories is like a first one."""
    return (
        f"First story: {source}\n\nStory A: {first}\n\nStory B: {second}\n\nIn which of the two do the events "
        "hang together, one bringing about the other, as they do in the first story: Story A, Story B, or both "
        "equally?"
    )
