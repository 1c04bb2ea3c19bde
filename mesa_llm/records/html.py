"""How records look in Jupyter."""

from __future__ import annotations

from html import escape


def html_block(heading: str, text: str) -> str:
    """Write a text under a heading, with its line breaks, for Jupyter."""
    style = "white-space: pre-wrap; margin: 0 0 0.8em 1em"
    return f"<div><strong>{escape(heading)}</strong><pre style='{style}'>{escape(text)}</pre></div>"
