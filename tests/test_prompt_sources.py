"""Every fixed word that a language model reads is in a template, in the docstring of an action, or in a `text.py`.

The words of the requests of all models are compared with the code. Four words in a row that stand in a literal anywhere
else are a sentence in the wrong place. The reasons of refusals alone stand where something is refused.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mesa_llm import AgentDesign, LLMAgent, LLMModel, ScriptedLLM
from mesa_llm.agents import TalkMixin
from mesa_llm.llm.local.chat import wire_messages
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.request import form_text
from mesa_llm.model.registry import find_models
from mesa_llm.model.text_extraction import bets_from, characters_from
from mesa_llm.records import Request
from mesa_llm.testing import faulty
from mesa_llm.text import COMMON
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "mesa_llm", ROOT / "models")
DESCRIPTIONS = {"form.py", "description.py"}
"""Modules that put any schema into words, a word at a time."""
REASON = re.compile(r"(refused|cannot be used|could not be used|not valid|not right|Error): .*")
"""Why something was refused, in a request."""

Phrase = tuple[str, ...]


def words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", text.lower())


@cache
def phrases(text: str) -> frozenset[Phrase]:
    """Return four words in a row each, at least two of them words with a meaning of their own."""
    own = words(text)
    found = {tuple(own[index : index + 4]) for index in range(len(own) - 3)}
    return frozenset(one for one in found if sum(len(word) > 3 and word not in COMMON for word in one) > 1)


# -- the code


@cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    paths = sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in paths)


def is_place_of_text(path: Path) -> bool:
    return path.name == "text.py" or path.name in DESCRIPTIONS


def literals(tree: ast.AST) -> Iterator[ast.Constant]:
    """Find the texts in code; those between the values of an f-string are one each."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return (node for node in nodes if isinstance(node.value, str))


def docstrings(tree: ast.AST) -> set[ast.Constant]:
    """Find the docstrings in code, also those below constants and fields."""
    bodies = [body for node in ast.walk(tree) if isinstance(body := getattr(node, "body", None), list)]
    values = [statement.value for body in bodies for statement in body if isinstance(statement, ast.Expr)]
    return {value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)}


def told_by(tree: ast.AST) -> Iterator[str]:
    """Find what code tells a language model: docstrings of actions and of types of answers."""
    for node in ast.walk(tree):
        marks = {getattr(part, "id", "") for mark in getattr(node, "decorator_list", ()) for part in ast.walk(mark)}
        if marks & {"action", "tool"}:
            yield ast.get_docstring(node) or ""  # pyright: ignore[reportArgumentType]
        elif isinstance(node, ast.ClassDef):
            yield from (str(literal.value) for literal in docstrings(node))


def known() -> set[Phrase]:
    """Collect the phrases that language models may read."""
    found: set[Phrase] = set()
    for template in (path for folder in FOLDERS for path in folder.rglob("prompts/*.md")):
        text = template.read_text(encoding="utf-8")
        pieces = re.split(r"\{%.*?%\}|\{\{.*?\}\}", text, flags=re.DOTALL) + re.findall(r'"([^"]*)"', text)
        found.update(*map(phrases, pieces))
    for path, tree in modules():
        texts = [str(literal.value) for literal in literals(tree)] if is_place_of_text(path) else told_by(tree)
        found.update(*map(phrases, texts))
    return found


def elsewhere() -> dict[Phrase, str]:
    """Collect the phrases of all other literals of the code but errors, each with its place."""
    found: dict[Phrase, str] = {}
    for path, tree in modules():
        errors = (literal for node in ast.walk(tree) if isinstance(node, ast.Raise) for literal in literals(node))
        skipped = docstrings(tree).union(errors)
        for literal in literals(tree) if not is_place_of_text(path) else ():
            if (
                literal not in skipped and " " in str(literal.value) and path.name != "testing.py"
            ):  # whose texts are replies
                place = f"{path.relative_to(ROOT)}:{literal.lineno}"
                found.update(dict.fromkeys(phrases(str(literal.value)), place))
    return found


# -- the requests


class Listener(ScriptedLLM):
    """A language model that notes what it reads; a third of its replies cannot be used."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._script = faulty()
        super().__init__(self._noted)

    def _noted(self, request: Request) -> Any:
        self.requests.append(request)
        return self._script._answer(request)  # pyright: ignore[reportPrivateUsage]


def texts_of(request: Request) -> Iterator[str]:
    """Return all that a language model reads of a request, at any endpoint, and of the embedded one."""
    yield from (message.content for message in request.messages if message.role != "assistant")
    yield from (tool.description for tool in request.tools)
    yield from (note for tool in request.tools for note in descriptions(tool.parameters))
    yield from descriptions(request.schema)
    yield form_text(request, Dialect(tools=False, schema="none"))
    yield form_text(request, Dialect(choice="none", both=False))
    yield from (message["content"] for message in wire_messages(request) if message["role"] != "assistant")


def descriptions(schema: Any) -> Iterator[str]:
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from descriptions(value)
    if isinstance(schema, dict) and isinstance(schema.get("description"), str):
        yield schema["description"]


def phrases_of(request: Request) -> set[Phrase]:
    lines = {line for text in texts_of(request) for line in text.splitlines()}
    return {phrase for line in lines for phrase in phrases(REASON.sub("", line))}


class Talker(TalkMixin, LLMAgent):
    """Talks to others."""


class Talkers(LLMModel):
    """Agents without a world."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in ("Ann", "Ben", "Cleo"):
            Talker(self, config=name)


DESIGNS = {
    "plans": AgentDesign(decide="plan"),
    "reasons first": AgentDesign(reasoning="first", memory="summary:1"),
    "reasons inline": AgentDesign(reasoning="inline", memory="reflection:2:1", style="short"),
}


def read_by_all() -> Iterator[tuple[str, list[Request]]]:
    """Run every model and every part of the library that asks a language model, and return what it read."""
    for entry in find_models():
        listener = Listener()
        entry.load()(rng=1, llm=listener).run_for(2)
        yield entry.name, listener.requests
    for name, design in DESIGNS.items():
        listener = Listener()
        SocialModel(n_agents=4, rng=1, llm=listener, design=design).run_for(4)
        yield name, listener.requests
    listener = Listener()
    MarketModel(rng=1, llm=listener, design=AgentDesign(decide="react", memory="chat")).run_for(2)
    yield "looks things up", listener.requests
    listener = Listener()
    model = Talkers(rng=1, llm=listener, parser=listener)
    model.run_for(2)
    model.inject("The mill is on fire.")
    model.run_for(1)
    model.survey(["How are you?"])
    characters_from(model, listener, "Ann owns the mill.", 2, "Who is to blame?")
    bets_from(model, listener, "Ann owns the mill.", 2)
    yield "talkers", listener.requests


@pytest.fixture(scope="module")
def heard() -> dict[Phrase, str]:
    """All phrases that were read, each with who read it."""
    return {phrase: who for who, requests in read_by_all() for one in requests for phrase in phrases_of(one)}


def misplaced(heard: dict[Phrase, str], others: dict[Phrase, str]) -> list[str]:
    allowed = known()
    return sorted(f"{others[one]}: {' '.join(one)}" for one in heard if one in others and one not in allowed)


def test_no_sentence_that_a_model_reads_stands_anywhere_else(heard: dict[Phrase, str]) -> None:
    assert len(heard) > 5_000
    assert misplaced(heard, elsewhere()) == []


def test_a_sentence_in_the_code_is_found() -> None:
    planted = dict.fromkeys(phrases("Somebody planted a clumsy sentence in this model."), "model.py:1")
    assert misplaced(planted, planted) != []
