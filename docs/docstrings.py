"""Docstrings, written in Markdown with Google's sections, as Sphinx reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Any

from sphinx.addnodes import desc_signature
from sphinx.ext.napoleon import Config, GoogleDocstring

SECTIONS = Config(napoleon_custom_sections=[("Source", "notes_style")], napoleon_use_ivar=True)


def convert(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring in place; the text under a field has no sections, whatever colons are in it."""
    text = "\n".join(with_tables(with_code(lines)))
    lines[:] = re.sub(r"(`[^`]+`)(?=\w)|`[^`]+`", lambda code: code[0] + "\\ " * bool(code[1]), text).split("\n")
    if what not in ("attribute", "data", "property"):
        lines[:] = GoogleDocstring(lines, SECTIONS, app, what, name, value, options).lines()


def is_skipped(app: Any, what: str, name: str, value: Any, is_skipped: bool, options: Any) -> bool | None:
    """Leave out methods that other packages add to our classes."""
    home = getattr(value, "__module__", None) or "mesa_llm"
    return None if is_skipped or home.startswith(("mesa_llm", "mesa_llm_models")) else callable(value) or None


def leave_out_of_contents(app: Any, domain: str, kind: str, content: Any) -> None:
    """Leave members of classes out of the tables of contents: all of these are copied for each page."""
    if kind in ("method", "property", "attribute"):
        for signature in content.parent.findall(desc_signature):
            signature["_toc_name"] = ""


def with_code(lines: list[str]) -> Iterator[str]:
    """Mark as code what stands indented after a blank line below a colon."""
    for line, blank, code in zip_longest(lines, lines[1:], lines[2:], fillvalue=""):
        is_above_code = line.endswith(":") and not blank and indent(code) > indent(line)
        yield line + ":" if is_above_code else line


def indent(line: str) -> int:
    """Count the spaces that a line begins with."""
    return len(line) - len(line.lstrip())


def with_tables(lines: Iterator[str]) -> Iterator[str]:
    """Write tables of Markdown as list-tables."""
    for is_table, group in groupby(lines, key=lambda line: line.startswith("|")):
        if not is_table:
            yield from group
            continue
        yield from (".. list-table::", "   :header-rows: 1", "")
        for row in group:
            if not row.strip("|-"):
                continue
            cells = [cell.strip() for cell in row.strip("| ").split(" | ")]
            yield from (f"   {'  ' if number else '* '}- {cell}" for number, cell in enumerate(cells))
        yield ""
