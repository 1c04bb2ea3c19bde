"""State and rules of the places agents act in; each world stands alone."""

from typing import Literal

Rules = Literal["corrected", "original"]
"""Which rules hold where an original has defects that its published numbers contain: the mended ones, or its own."""
