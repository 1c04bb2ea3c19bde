"""Links between Markdown files that work on a code host and in the built documentation.

Files link to files of the repository: `../mesa_llm/world.py`, `../models/mesa_llm_models/social/README.md`. In the
built documentation such a link leads to the page that is made of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent

CODE = re.compile(r"(^(?:`{3,}|~{3,}).*?^(?:`{3,}|~{3,})$)", re.DOTALL | re.MULTILINE)
"""A block of code, in which nothing is a link."""

LINK = re.compile(r"(?<=\]\()(?!\w+:)([^)\s#]+)(#[^)\s]*)?(?=\))")
"""Target of a link to a file: its path, and the heading in it."""


def links_in(text: str) -> list[tuple[str, str]]:
    """List the links to files in a text, and to headings in them.

    Args:
        text: A text in Markdown.

    Returns:
        Path, relative to the text's file, and heading with its `#`, or nothing.
    """
    return [(path, heading) for part in CODE.split(text)[::2] for path, heading in LINK.findall(part)]


def to_pages(text: str, file: Path, page: str, pages: Mapping[Path, str]) -> str:
    """Turn links to files into links to the pages that are made of them.

    Args:
        text: The text, whose links are relative to its file.
        file: The file that it comes from.
        page: The page that it is shown on, such as `models/social`.
        pages: File or folder → its page.
    """
    home = (DOCS / page).parent

    def turned(link: re.Match[str]) -> str:
        target = (file.parent / link[1]).resolve()
        if not target.exists():
            return link[0]
        end = DOCS / f"{pages[target]}.md" if target in pages else target
        return Path(os.path.relpath(end, home)).as_posix() + (link[2] or "")

    parts = CODE.split(text)
    parts[::2] = [LINK.sub(turned, part) for part in parts[::2]]
    return "".join(parts)
