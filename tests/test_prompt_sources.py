"""Every fixed word that a language model reads is in a template, in a `text.py`, or with an action.

With an action stand its docstring, and what agents remember of it (`did=`). The docstrings of types of answers count as
templates, as they describe the schema that a model reads. The requests of all models are compared with the code in two
ways. Four words in a row that stand in a literal anywhere else are a sentence in the wrong place. And every word stands
in a known text beside its neighbour, or in a value: a name, a label, a file of data, or what a model has said.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
import string
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from mesa_llm import AgentDesign, LLMAgent, LLMModel, ScriptedLLM
from mesa_llm.agents import TalkMixin
from mesa_llm.llm.local.chat import wire_messages
from mesa_llm.llm.local.profile import CAPABLE, SMALLEST
from mesa_llm.llm.openai.dialect import Dialect
from mesa_llm.llm.openai.request import form_text
from mesa_llm.model.text_extraction import bets_from, characters_from
from mesa_llm.records import Request
from mesa_llm.registry import find_models
from mesa_llm.testing import faulty
from mesa_llm.text import COMMON
from mesa_llm_models.market.model import MarketModel
from mesa_llm_models.social.model import SocialModel

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "mesa_llm", ROOT / "models")
DESCRIPTIONS = {"form.py", "description.py"}
"""Modules that put any schema into words, a word at a time."""

DATA = {".csv", ".json", ".toml", ".txt"}
"""Kinds of files whose words are values."""

PYDANTIC = "unexpected keyword argument"
"""Words that pydantic adds to the reason of a refusal."""

REFUSALS = {"ToolError", "ParseError", "CoercionError"}
"""Errors whose texts language models read."""

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


def code_files() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in folder.rglob("*.py"))


@cache
def modules() -> tuple[tuple[Path, ast.Module], ...]:
    return tuple((path, ast.parse(path.read_text(encoding="utf-8"))) for path in code_files())


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
    """Find what code tells a language model: what actions say and are remembered by, docstrings of types of answers."""
    for node in ast.walk(tree):
        for call in (mark for mark in getattr(node, "decorator_list", ()) if isinstance(mark, ast.Call)):
            yield from (text for part in call.keywords if part.arg == "did" for text in own_texts(part.value))
        marks = {getattr(part, "id", "") for mark in getattr(node, "decorator_list", ()) for part in ast.walk(mark)}
        if marks & {"action", "tool"}:
            yield ast.get_docstring(node) or ""  # pyright: ignore[reportArgumentType]
        elif isinstance(node, ast.ClassDef):
            yield from (str(literal.value) for literal in docstrings(node))


@cache
def known() -> frozenset[str]:
    """Collect the texts that language models may read, as pieces between values."""
    found: set[str] = set()
    for template in (path for folder in FOLDERS for path in folder.rglob("prompts/*.md")):
        text = template.read_text(encoding="utf-8")
        found.update(re.split(r"\{%.*?%\}|\{\{.*?\}\}", text, flags=re.DOTALL), re.findall(r'"([^"]*)"', text))
    for path, tree in modules():
        found.update([str(literal.value) for literal in literals(tree)] if is_place_of_text(path) else told_by(tree))
    return frozenset(found)


def values() -> Iterator[str]:
    """Yield texts whose words may stand anywhere: names in the code, literals of a few words, and files of data."""
    for _, tree in modules():
        parts = (part for literal in literals(tree) for part in re.split("[,;]", str(literal.value)))
        yield from (part for part in parts if len(words(part)) < 4)
        names = (getattr(node, kind, None) for node in ast.walk(tree) for kind in ("name", "attr", "arg", "id"))
        yield from (name for name in names if isinstance(name, str))
    for path in (path for folder in FOLDERS for path in folder.rglob("*") if path.suffix in DATA):
        yield path.read_text(encoding="utf-8")


def elsewhere() -> dict[Phrase, str]:
    """Collect the phrases of all other literals of the code, each with its place."""
    found: dict[Phrase, str] = {}
    for path, tree in modules():
        skipped = docstrings(tree)
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
        self.said: set[str] = set()
        self._script = faulty()
        super().__init__(self._noted)

    def _noted(self, request: Request) -> Any:
        self.requests.append(request)
        answer = self._script._answer(request)  # pyright: ignore[reportPrivateUsage]
        self.said.add(str(answer))
        return answer


def texts_of(request: Request) -> Iterator[str]:
    """Return all that a language model reads of a request, at any endpoint, and of the embedded one."""
    yield from (message.content for message in request.messages if message.role != "assistant")
    yield from (tool.description for tool in request.tools)
    yield from (note for tool in request.tools for note in descriptions(tool.parameters))
    yield from descriptions(request.schema)
    yield form_text(request, Dialect(tools=False, schema="none"))
    yield form_text(request, Dialect(choice="none", both=False))
    for profile in (SMALLEST, CAPABLE):
        wire = wire_messages(request, profile)
        yield from (message["content"] for message in wire if message["role"] != "assistant")


def descriptions(schema: Any) -> Iterator[str]:
    for value in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from descriptions(value)
    if isinstance(schema, dict) and isinstance(schema.get("description"), str):
        yield schema["description"]


MARKET_ID = "will_the_town_s_football_team_win_its_ne"
"""Id of a market, cut in the middle of a word, that no scripted trader chooses."""

NAMES = ("Ann", "Ben", "Cleo")
NEWS, STORY = "The mill is on fire.", "Ann owns the mill."


class Talker(TalkMixin, LLMAgent):
    """Talks to others."""


class Talkers(LLMModel):
    """Agents without a world."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name in NAMES:
            Talker(self, config=name)


DESIGNS = {
    "plans": AgentDesign(decide="plan"),
    "reasons first": AgentDesign(reasoning="first", memory="summary:1"),
    "reasons inline": AgentDesign(reasoning="inline", memory="reflection:2:1", style="short"),
}


def read_by_all() -> Iterator[tuple[str, Listener]]:
    """Run every model and every part of the library that asks a language model, and return who listened."""
    for entry in find_models():
        listener = Listener()
        entry.load()(rng=1, llm=listener).run_for(2)
        yield entry.name, listener
    for name, design in DESIGNS.items():
        listener = Listener()
        SocialModel(n_agents=4, rng=1, llm=listener, design=design).run_for(4)
        yield name, listener
    listener = Listener()
    MarketModel(rng=1, llm=listener, design=AgentDesign(decide="react", memory="chat")).run_for(2)
    yield "looks things up", listener
    listener = Listener()
    model = Talkers(rng=1, llm=listener, parser=listener)
    model.run_for(2)
    model.inject(NEWS)
    model.run_for(1)
    model.survey(["How are you?"])
    characters_from(model, listener, STORY, 2, "Who is to blame?")
    bets_from(model, listener, STORY, 2)
    yield "talkers", listener


class Heard(NamedTuple):
    """What was read and said in the runs."""

    lines: dict[str, str]
    """Line → who read it first."""

    replies: set[str]
    """What language models said, as later requests repeat it."""


@pytest.fixture(scope="module")
def heard() -> Heard:
    """All lines that were read."""
    lines: dict[str, str] = {}
    replies: set[str] = set()
    for who, listener in read_by_all():
        replies |= listener.said
        for request in listener.requests:
            for line in (line for text in texts_of(request) for line in text.splitlines()):
                if line.strip("x"):  # one of the replies that cannot be used is nothing but this
                    lines.setdefault(line, who)
    return Heard(lines, replies)


# -- the comparison


def misplaced(lines: Iterable[str], others: dict[Phrase, str]) -> list[str]:
    """List the phrases of lines that stand in other places, with these."""
    allowed = {phrase for text in known() for phrase in phrases(text)}
    found = {phrase for line in lines for phrase in phrases(line)}
    return sorted(f"{others[one]}: {' '.join(one)}" for one in found if one in others and one not in allowed)


def unexplained(lines: Iterable[str], said: Iterable[str]) -> list[str]:
    """List the words of lines that stand in no known text beside their neighbour, and in no value."""
    pieces = [tuple(words(piece)) for text in known() for piece in re.split(r"\{[^{}]*\}", text)]
    pairs = {pair for piece in pieces for pair in itertools.pairwise(piece)}
    alone = {piece[0] for piece in pieces if len(piece) == 1}.union(
        *(words(text.replace("_", " ")) for text in (*values(), *said, PYDANTIC))
    )
    found: list[str] = []
    for line in lines:
        own = ["", *words(line), ""]
        for before, word, after in zip(own, own[1:], own[2:], strict=False):
            if not {word, word.removesuffix("’s")} & alone and pairs.isdisjoint([(before, word), (word, after)]):
                found.append(f"{word}: {line[:80]}")
    return found


def test_no_sentence_that_a_model_reads_stands_anywhere_else(heard: Heard) -> None:
    assert len(heard.lines) > 3_000
    assert misplaced(heard.lines, elsewhere()) == []


def test_every_word_that_a_model_reads_has_a_known_origin(heard: Heard) -> None:
    assert unexplained(heard.lines, {*heard.replies, *NAMES, MARKET_ID, NEWS, STORY, Talker.__name__}) == []


def test_a_sentence_in_the_code_is_found() -> None:
    planted = "Somebody planted a clumsy sentence in this model."
    assert misplaced([planted], dict.fromkeys(phrases(planted), "model.py:1")) != []
    assert unexplained([planted], []) != []


# -- refusals


def calls_of(tree: ast.AST, names: set[str]) -> Iterator[ast.Call]:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return (call for call in calls if {getattr(call.func, "id", ""), getattr(call.func, "attr", "")} & names)


def reasons_imported_from(tree: ast.AST) -> set[str | None]:
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {node.module for node in imports if "reason_text" in {alias.name for alias in node.names}}


def own_texts(node: ast.AST) -> Iterator[str]:
    """Find the texts of an expression, but not those in the calls within it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    for part in ast.iter_child_nodes(node) if not isinstance(node, ast.Call) else ():
        yield from own_texts(part)


def test_no_reason_of_a_refusal_stands_where_something_is_refused() -> None:
    for path, tree in modules():
        for call in calls_of(tree, REFUSALS):
            written = " ".join(text for argument in call.args for text in own_texts(argument))
            assert not words(written), f"{path.relative_to(ROOT)}:{call.lineno}"


@pytest.mark.parametrize("path", [path for path in code_files() if "REASONS = {" in path.read_text(encoding="utf-8")])
def test_every_reason_of_a_refusal_is_used_and_has_its_values(path: Path) -> None:
    place = path.relative_to(ROOT / "models" if path.is_relative_to(ROOT / "models") else ROOT)
    name = ".".join(place.with_suffix("").parts)
    reasons: dict[str, str] = importlib.import_module(name).REASONS
    trees = [
        tree
        for other, tree in modules()
        if other != path and (other.parent == path.parent or name in reasons_imported_from(tree))
    ]
    assert reasons.keys() <= {literal.value for tree in trees for literal in literals(tree)}
    for call in (call for tree in trees for call in calls_of(tree, {"reason_text"})):
        given = {keyword.arg for keyword in call.keywords}
        named = [str(literal.value) for literal in literals(call.args[0])]
        for text in (reasons[name] for name in named):
            assert {name for _, name, _, _ in string.Formatter().parse(text) if name} <= given
