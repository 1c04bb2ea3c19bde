"""Worlds: the state and rules of the situations that agents act in. No world depends on another."""

from typing import Literal

Rules = Literal["corrected", "original"]
"""Rules to apply where an original has defects that its published numbers contain: mended ones, or its own."""
