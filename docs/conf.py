"""How Sphinx builds the documentation: `python3 dev.py docs`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import docstrings  # noqa: E402
import made_pages  # noqa: E402

import mesa_llm  # noqa: E402

project = "mesa-llm-worlds"
version = release = mesa_llm.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"{project} {release}"
html_copy_source = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

default_role = "code"  # docstrings quote code as Markdown does
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
add_module_names = False

suppress_warnings = ["ref.python"]  # types in signatures go by short names, which may fit several pages
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures: what has no page stands there without a link


def write_pages(app: Any) -> None:
    """Write the pages that are made of the code, before Sphinx looks for pages."""
    made_pages.write(Path(app.srcdir))


def turn_links(app: Any, page: str, source: list[str]) -> None:
    """Turn links to files of the repository into links to their pages; those of made pages are turned already."""
    if "/" not in page:
        source[0] = made_pages.linked(source[0], Path(app.srcdir, f"{page}.md"), page)


def setup(app: Any) -> None:
    """Connect what is ours."""
    app.connect("source-read", turn_links)
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", docstrings.convert)
    app.connect("autodoc-skip-member", docstrings.is_skipped)
    app.connect("object-description-transform", docstrings.leave_out_of_contents)
