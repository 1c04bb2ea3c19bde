"""Worlds: state and rules of the situations in which agents act. Worlds do not depend on each other."""

from typing import Literal

Rules = Literal["corrected", "original"]
"""Rule set for originals with defects that affect their published numbers: corrected, or as published."""
