"""Visibility: which fields of a character, and which parts of a text with tags, a viewer reads."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Collection, Mapping
from html.parser import HTMLParser

from mesa_llm.text import one_line
from mesa_llm.world import Rules
from mesa_llm_models.sotopia.scenes import CharacterProfile, Relation
from mesa_llm_models.sotopia.text import LABELS, OWN_LABELS, portrait_text

NAME = ("first_name", "last_name")

PUBLIC = (*NAME, "age", "gender", "occupation", "pronouns", "public_info")

WHOLE = (*PUBLIC, "personality", "secret")
"""Fields visible to the character itself and the judge."""

VISIBLE: Mapping[Relation, tuple[str, ...]] = {
    "stranger": (),
    "know_by_name": NAME,
    "acquaintance": PUBLIC,
    "friend": (*PUBLIC, "personality"),
    "romantic": (*PUBLIC, "personality"),
    "family": (*PUBLIC, "personality"),
}
"""Relation → fields of a character visible to the other one."""

TAGS = ("extra_info", "clarification_hint", "strategy_hint")
"""Tags whose content is shown to all who may read the surrounding text."""

ENVIRONMENT = "environment"
"""Viewer that sees everything: the judge."""


def portrait(character: CharacterProfile, fields: Collection[str], *, is_own: bool = False) -> str:
    """Describe a character by some of its fields; empty if there are none.

    Args:
        character: The character.
        fields: Names of the visible fields.
        is_own: Whether the character itself reads it.
    """
    texts = {field: one_line(str(getattr(character, field))) for field in WHOLE if field in fields}
    name = " ".join(filter(None, (texts.get(field) for field in NAME)))
    return portrait_text(name, texts, OWN_LABELS if is_own else LABELS)


def visible_text(text: str, viewer: str, *, tags: Collection[str] = TAGS, rules: Rules = "corrected") -> str:
    """Return what a viewer reads of a text with tags.

    A tag with `viewer=` is only for that viewer. Of the others, agents read those in `tags`. The environment reads
    everything. A `<` that does not begin a tag, a last tag without `>`, and comments are omitted.

    Args:
        text: The text.
        viewer: `agent_0`, `agent_1`, … or `environment`.
        tags: Tags visible to agents.
        rules: Under `original`, a text that is a single tag is shown to everybody or nobody, and a malformed text is
            read as by Sotopia's parser.
    """
    before, end, after = text.rpartition("-->")  # after the last `-->` there is no comment to look for
    text = COMMENT.sub("", before + end) + after
    if not text:
        return ""
    if rules == "original":
        whole = _parsed(text)
        if whole is not None:
            return _shown(whole, viewer, tags) if whole.tag in ("root", "p", *tags) else ""
    root = _parsed(f"<root>{text}</root>")
    if root is None:
        root = (_Faulty(text) if rules == "original" else _Forgiving(text)).root
    return _shown(root, viewer, tags)


def _parsed(text: str) -> ElementTree.Element | None:
    if "<!" in text:  # declarations, such as entities, are not allowed
        return None
    try:
        return ElementTree.fromstring(text)
    except ElementTree.ParseError:
        return None


def _shown(element: ElementTree.Element, viewer: str, tags: Collection[str]) -> str:
    if viewer == ENVIRONMENT:
        return "".join(element.itertext())
    parts: list[str] = []
    ahead: list[ElementTree.Element | str] = [element]  # a stack: the next part is last
    while ahead:
        part = ahead.pop()
        if isinstance(part, str):
            parts.append(part)
            continue
        parts.append(part.text or "")
        for child in reversed(part):
            ahead.append(child.tail or "")
            if child.tag in ("root", "p", *tags) and child.get("viewer", viewer) == viewer:
                ahead.append(child)
    return "".join(parts)


class _Forgiving(HTMLParser):
    """Reads a malformed text: open tags end with the text, and a stray `<` is not a tag."""

    stray_sign = ""
    """Replacement for a stray `<` during parsing."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = ElementTree.Element("root")
        self._open = [self.root]
        self._n_open = Counter[str]()
        before, end, after = STRAY.sub(self.stray_sign, text.replace("&", AMPERSAND)).rpartition(">")
        self.feed(before + end)
        self.close()
        if after:  # after the last `>` there is no tag to look for
            self.handle_data(after)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        child = ElementTree.SubElement(self._open[-1], tag, {name: value or "" for name, value in attrs})
        self._open.append(child)
        self._n_open[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        while self._n_open[tag]:
            inner = self._open.pop().tag
            self._n_open[inner] -= 1
            if inner == tag:
                break

    def handle_data(self, data: str) -> None:
        inner = self._open[-1]
        data = data.replace(AMPERSAND, "&")
        if len(inner):
            inner[-1].tail = (inner[-1].tail or "") + data
        else:
            inner.text = (inner.text or "") + data


class _Faulty(_Forgiving):
    """Reads such a text as the original's parser does: an end tag closes the innermost tag, whatever its name, or else
    ends the text, and ampersands after the first fault are lost.
    """

    stray_sign = "\ue001"

    def __init__(self, text: str) -> None:
        self._has_fault = False
        super().__init__(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._open:
            super().handle_starttag(tag, [(name, value) for name, value in attrs if value is not None])
            self._has_fault |= any(value is None for _, value in attrs)

    def handle_endtag(self, tag: str) -> None:
        if self._open:
            self._has_fault |= self._open.pop().tag != tag

    def handle_data(self, data: str) -> None:
        for index, part in enumerate(data.split(self.stray_sign)):
            self._has_fault |= index > 0
            if self._open:
                super().handle_data(part.replace(AMPERSAND, "") if self._has_fault else part)


AMPERSAND = "\ue000"
"""Replacement for an ampersand during parsing, so no reference is resolved."""

STRAY = re.compile(r"<(?![A-Za-z_/])|<[A-Za-z_/][^<>]*\Z")
"""A `<` that does not begin a tag, or a last unclosed tag."""

COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
