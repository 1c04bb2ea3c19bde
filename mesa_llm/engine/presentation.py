"""How the same facts are put to a language model: in another form, in another order, or in another place of the prompt.

Audits run a model with presentations other than its own, and test whether what it shows depends on them. Whatever is
changed here says the same: every number, name and option of the one text stands in the other.

    AgentDesign(presentation=Presentation(persona_form="table"))

Source:
    Ye, Cao, Chen and Ferrara (2026), arXiv 2605.18890, for the dimensions in which such studies are fragile.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from mesa_llm.config import AgentConfig
from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.prompts import FOLDER, WORDINGS, Prompts, wordings_of
from mesa_llm.records import Observation, Request, ToolSpec
from mesa_llm.text import suggestion

PersonaForm = Literal["own", "sentence", "description", "first_person", "table"]
"""Form of what a prompt says about the agent: the model's own, one plain line, a description in the second person, the
same in the first person, or a table of fields."""

ObservationForm = Literal["own", "list", "table", "json", "spaced"]
"""Form of what an agent sees: the model's own, a list, a table, JSON, or the own text with more white space."""

Order = Literal["own", "reversed"]
"""Order of things that stand side by side."""

ListOrder = Literal["own", "drawn", "reversed"]
"""Order of things of which one is chosen: the model's own, drawn for each agent and step, or the reverse of its own."""


class Presentation(BaseModel):
    """How what an agent reads is put to its language model; a field that is not set leaves the model's own way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    persona_form: PersonaForm = "own"
    """Form of what the prompt says about the agent."""

    persona_of: Literal["own", "another"] = "own"
    """Whose persona, traits and style an agent reads as its own: `another` is those of the next agent of its class."""

    persona_place: Literal["own", "opening", "system", "first", "last"] = "own"
    """Where it stands: before the instructions, after them, before what the agent sees, or after that."""

    names: Literal["own", "exchanged"] = "own"
    """Whether the agents' names are exchanged among them in everything that is read and replied."""

    observation_form: ObservationForm = "own"
    """Form of what the agent sees."""

    observation_order: Order = "own"
    """Order of the paragraphs of what the agent sees; with one paragraph, of its lines, if these are sentences. What
    a heading announces stays below it."""

    list_order: ListOrder = "own"
    """Order of the entries of lists, lines that begin with a dash, within what the agent sees. If it is drawn, entries
    that begin with an option come in the drawn order of the options."""

    memory_place: Literal["own", "after"] = "own"
    """Whether what the agent remembers stands after what it sees in place of before it."""

    instructions: Literal["own", "none"] = "own"
    """Whether the model's instructions are left out; what actions and questions say about themselves remains."""

    instructions_place: Literal["own", "user"] = "own"
    """Whether the instructions stand in the user's message in place of the system's."""

    option_order: ListOrder = "own"
    """Order of the values that an argument or an answer may have. The model's own is drawn where
    `Observation.option_order` says that positions mean nothing."""

    tool_order: ListOrder = "own"
    """Order of the tools and actions."""

    wording: str = ""
    """Rewording of the prompts: a folder in `prompts/variants` by its name, or any folder by its path; empty: none."""

    sample: Annotated[int, Field(ge=0)] = 0
    """Number of another sample of all replies with the same seed of the model; 0 is the first one."""

    @property
    def named_wording(self) -> str:
        """Name of its rewording, if it is a folder beside the templates; empty if it is a path or there is none."""
        return "" if _is_path(self.wording) else self.wording

    def reworded(self, text: str) -> str:
        """Return instructions in the words of its folder, if that is a path and holds them.

        Args:
            text: The instructions as they are read otherwise.
        """
        return _reworded(self.wording, text) if text and _is_path(self.wording) else text


AS_WRITTEN = Presentation()
"""The presentation that each model has chosen."""

T = TypeVar("T")

Ordered = Callable[[list[Any]], list[Any]]
"""Returns a list in another order."""

SAMPLE_SEEDS = 1 << 40
"""Distance between the seeds of requests of two samples; run seeds are smaller."""


def reworded_name(text: str) -> str:
    """Return the name of the file that holds a text in other words, in the folder of a rewording.

    Args:
        text: The text.
    """
    return f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.md"


def _is_path(wording: str) -> bool:
    return os.sep in wording


@lru_cache(maxsize=256)
def _reworded(folder: str, text: str) -> str:
    try:
        return (Path(folder) / reworded_name(text)).read_text(encoding="utf-8").strip()
    except OSError:
        return text


# -- personas


def persona_text(config: AgentConfig, form: PersonaForm, prompts: Prompts) -> str:
    """Say who an agent is.

    Args:
        config: Its config; name, persona, traits and style are said.
        form: The form.
        prompts: Templates of the model, for its own form.
    """
    if form == "own":
        return config.text_in(prompts)
    facts = _facts_of(config)
    if not facts and not config.persona:
        return ""
    return _PERSONA_FORMS[form](config.persona.strip(), facts)


def _facts_of(config: AgentConfig) -> list[tuple[str, str]]:
    """Return what is known of an agent besides its persona, as field and value."""
    named = [("name", config.name)] if config.name and config.name not in config.persona else []
    traits = [(name.replace("_", " "), str(value)) for name, value in config.traits.items()]
    return [*named, *traits, *([("writing style", config.style)] if config.style else [])]


def _as_sentence(persona: str, facts: Sequence[tuple[str, str]]) -> str:
    parts = [f"{name} {value}" for name, value in facts]
    own = [_without_address(one).rstrip(".") for one in sentences(persona)]
    return f"Persona: {'; '.join([*own, *parts])}."


def _as_description(persona: str, facts: Sequence[tuple[str, str]]) -> str:
    own = [_addressed(one) for one in sentences(persona)]
    return " ".join(["This is a description of you.", *own, *(f"Your {name}: {value}." for name, value in facts)])


def _as_first_person(persona: str, facts: Sequence[tuple[str, str]]) -> str:
    own = [first_person(_addressed(one)) for one in sentences(persona)]
    return " ".join(["I say of myself:", *own, *(f"My {name}: {value}." for name, value in facts)])


def _as_table(persona: str, facts: Sequence[tuple[str, str]]) -> str:
    own = [("persona", _without_address(one).rstrip(".")) for one in sentences(persona)]
    named = [fact for fact in facts if fact[0] == "name"]
    others = [fact for fact in facts if fact[0] != "name"]
    return _table(("field", "value"), [*named, *own, *others])


_PERSONA_FORMS: Mapping[str, Callable[[str, Sequence[tuple[str, str]]], str]] = {
    "sentence": _as_sentence,
    "description": _as_description,
    "first_person": _as_first_person,
    "table": _as_table,
}

_SENTENCE_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"”’)]))\s+(?=[\"“‘(]?[A-Z0-9])|\n+")
_ABBREVIATION = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|vs|etc|e\.g|i\.e|approx|[A-Z])\.$")


def sentences(text: str) -> list[str]:
    """Split a text into its sentences and lines.

    Args:
        text: The text.
    """
    found: list[str] = []
    for piece in (one.strip() for one in _SENTENCE_END.split(text)):
        if found and _ABBREVIATION.search(found[-1]):
            found[-1] = f"{found[-1]} {piece}"
        elif piece:
            found.append(piece)
    return found


_ONLY_A_NOUN = re.compile(r"You(?: are|’re|'re)\s+(?=(?:an?|the)\s)(?!.*(?:[,;:]|\b(?:and|but|or)\b))")


def _without_address(sentence: str) -> str:
    """Return "You are a baker." as "a baker."; a sentence that says more than what somebody is stays as it is."""
    return _ONLY_A_NOUN.sub("", sentence, count=1) if _ONLY_A_NOUN.match(sentence) else sentence


def _addressed(sentence: str) -> str:
    """Return a sentence about somebody as one that addresses them, if it is only a noun with what belongs to it."""
    end = "" if sentence.endswith((".", "!", "?")) else "."
    if re.match(r"(?:an?|the)\s", sentence, re.IGNORECASE) and not re.match(r"The\s", sentence):
        return f"You are {sentence[0].lower()}{sentence[1:]}{end}"
    return f"{sentence}{end}"


_BEFORE_OBJECT = (
    "to for with of about from at by on in into around near against without between behind beside beyond through "
    "towards under over upon among help make made give gave tell told ask let see treat cheat trust hurt bother "
    "interest worry worries annoy surprise please teach taught pay paid owe need call keep leave know respect love "
    "hate want like than"
).replace(" ", "|")
"""Words after which "you" is the object of what is done, unless a verb follows."""

_VERBS = (
    "am are were have had can cannot could will would do did shall should must may might never always often think know "
    "say want need like see"
).replace(" ", "|")
"""Words before which "you" is who does something."""

_ADVERBS = r"(?:\w+ly|always|often|never|still|also|just|seldom|sometimes|both)"

_SECOND = re.compile(
    rf"\b(?P<usually>you(?P<how> {_ADVERBS}) (?:are|were))\b|\b(?P<not>you (?:are|were)n['’]t)\b"
    r"|\b(?P<be>you(?:['’]re| are))\b|\b(?P<was>you were)\b|\b(?P<are>are you)\b|\b(?P<self>yourself)\b"
    r"|\b(?P<poss>yours)\b|\b(?P<your>your)\b"
    rf"|(?P<before>\b(?:{_BEFORE_OBJECT})(?:e?s|ed)?\s+)(?P<object>you)\b(?!['’]|\s+(?:{_VERBS})\b)"
    r"|\b(?P<you>you)\b",
    re.IGNORECASE,
)

_OTHER_SUBJECTS = "who|that|which|because|when|if|where|while|what|how|as|than|are|were|was|is"
_SECOND_VERB = re.compile(
    rf"\b(I(?: am| was)?\b(?:(?!\b(?:{_OTHER_SUBJECTS})\b)[^.:;!?])*?\b(?:and|but|or|yet)(?: {_ADVERBS})?) (are|were)\b"
)
"""A second verb of a sentence that is about oneself: "I like quiet and are shy"."""


def first_person(text: str) -> str:
    """Rewrite a text that addresses somebody as one in which they speak of themselves.

    What it says about others, or about somebody by name, stays as it is.

    Args:
        text: The text, such as "You like your work, and people trust you."
    """

    def spoken(found: re.Match[str]) -> str:
        groups = found.groupdict()
        verb = "was" if "were" in found[0].lower() else "am"
        if groups["be"]:
            return "I’m" if "’" in groups["be"] or "'" in groups["be"] else "I am"
        if groups["usually"]:
            return f"I{groups['how']} {verb}"
        if groups["not"]:
            return f"I {verb} not"
        if groups["object"]:
            is_compared = groups["before"].strip().lower() in ("than", "like")
            is_object = not is_compared or _ends_a_clause(text[found.end() :])
            return f"{groups['before']}{'me' if is_object else 'I'}"
        word = next(name for name in ("was", "are", "self", "poss", "your", "you") if groups[name])
        if word == "you" and re.match(r"\s*(?:[.!?,;:)]|$)", text[found.end() :]) and not groups["you"].istitle():
            return "me"
        plain = {"was": "I was", "are": "am I", "self": "myself", "poss": "mine", "your": "my", "you": "I"}[word]
        return plain[0].upper() + plain[1:] if found[0][0].isupper() else plain

    text, n_changed = _SECOND.sub(spoken, text), 1
    while n_changed:
        text, n_changed = _SECOND_VERB.subn(lambda found: f"{found[1]} {'am' if found[2] == 'are' else 'was'}", text)
    return text


def _ends_a_clause(rest: str) -> bool:
    """Check whether nothing that a subject would need follows: "people like you", but not "more than you think"."""
    return _CLAUSE_END.match(rest) is not None


_CLAUSE_END = re.compile(r"\s*(?:[.!?,;:)”\"]|$|\b(?:and|or|but|to|in|at|who|never|when|because|more|best)\b)")


# -- observations


@lru_cache(maxsize=4096)
def observation_text(
    text: str, form: ObservationForm, order: Order, list_order: ListOrder, lot: OrderLot | None = None
) -> str:
    """Write what an agent sees in another form or order.

    Args:
        text: The text as the model writes it.
        form: The form.
        order: Order of its paragraphs.
        list_order: Order of the entries of its lists, after the lot.
        lot: What puts those entries into a drawn order; None: nothing.
    """
    if lot is not None:
        text = _with_ordered_lists(text, lambda entries: lot.order(entries, _listed))
    if list_order == "reversed":
        text = _with_ordered_lists(text, lambda entries: entries[::-1])
    if order == "reversed":
        text = _with_reversed_parts(text)
    if form == "own" or not text.strip():
        return text
    if form == "spaced":
        return "\n\n".join(f"  {line.rstrip()}" for line in text.splitlines() if line.strip())
    entries = _outline(text)
    if form == "list":
        return "\n".join(f"{'  ' * depth}- {one.line}" for depth, one in _walk(entries))
    if form == "table":
        rows = [("↳ " * depth + (one.name or "seen"), one.value) for depth, one in _walk(entries)]
        return _table(("what", "value"), rows)
    return json.dumps([one.as_json() for one in entries], ensure_ascii=False, indent=1)


_FIELD = re.compile(r"^([^\s:.,;“\"(][^:.,;“\"(]{0,38}): +(\S.*)$")
_DASH = re.compile(r"^\s*[-*•]\s+")
_SENTENCE = re.compile(r"[.!?][”\")’]*$")


@dataclass
class _Entry:
    """A line of what an agent sees, and the lines that belong to it."""

    line: str
    """Its text, without the dash of a list."""

    below: list[_Entry] = field(default_factory=list["_Entry"])
    """Entries of the list that it is the heading of, and lines that are indented below it."""

    @property
    def name(self) -> str:
        """Name of its field; empty if the line is not of that kind."""
        found = _FIELD.match(self.line)
        return found[1] if found else ""

    @property
    def value(self) -> str:
        """The line without the name of its field."""
        found = _FIELD.match(self.line)
        return found[2] if found else self.line

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        below = [one.as_json() for one in self.below]
        if below and self.line.endswith(":"):
            return {self.line[:-1]: below}
        return {self.name or "seen": self.value} | ({"below": below} if below else {})


def _outline(text: str) -> list[_Entry]:
    """Return the lines of a text, each with those that are indented below it, or are the list that it announces."""
    top = _Entry("")
    path = [(-1, top)]
    for line in text.splitlines():
        if not line.strip():
            del path[1:]
            continue
        level = 2 * (len(line) - len(line.lstrip()))
        is_item = _DASH.match(line) is not None
        while path[-1][0] > level:
            path.pop()
        if is_item and path[-1][0] == level and path[-1][1].line.endswith(":"):
            level += 1
        while path[-1][0] >= level:
            path.pop()
        entry = _Entry(_DASH.sub("", line).strip())
        path[-1][1].below.append(entry)
        path.append((level, entry))
    return top.below


def _walk(entries: Sequence[_Entry], depth: int = 0) -> Iterator[tuple[int, _Entry]]:
    """Yield entries with their depths, each before those that belong to it."""
    for one in entries:
        yield depth, one
        yield from _walk(one.below, depth + 1)


def _with_reversed_parts(text: str) -> str:
    """Reverse the paragraphs of a text, or the lines of a single one if they are sentences."""
    paragraphs = _joined([part.strip("\n") for part in re.split(r"\n[ \t]*\n", text) if part.strip()], "\n\n")
    if len(paragraphs) > 1:
        return text if paragraphs[-1].endswith(":") else "\n\n".join(reversed(paragraphs))
    blocks: list[list[str]] = []
    for line in text.splitlines():
        is_below = _DASH.match(line) is not None or line.startswith((" ", "\t"))
        announced = blocks and blocks[-1][0].endswith(":") and (len(blocks[-1]) == 1 or not _is_list(blocks[-1][1:]))
        if blocks and (is_below or announced):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    are_sentences = all(_SENTENCE.search(block[0]) or len(block) > 1 for block in blocks)
    return "\n".join(line for block in reversed(blocks) for line in block) if are_sentences else text


def _joined(parts: Sequence[str], between: str) -> list[str]:
    """Join each part that announces what follows, as it ends in a colon, with the next one."""
    joined: list[str] = []
    for part in parts:
        if joined and joined[-1].endswith(":"):
            joined[-1] += between + part
        else:
            joined.append(part)
    return joined


def _is_list(lines: Sequence[str]) -> bool:
    return all(_DASH.match(line) or line.startswith((" ", "\t")) for line in lines)


def _with_ordered_lists(text: str, ordered: Callable[[list[list[str]]], list[list[str]]]) -> str:
    """Put the entries of each list into another order, each with the lines that are indented below it."""
    lines: list[str] = []
    entries: list[list[str]] = []
    for line in [*text.splitlines(), ""]:
        if _DASH.match(line) and not line.startswith((" ", "\t")):
            entries.append([line])
        elif entries and line.startswith((" ", "\t")):
            entries[-1].append(line)
        else:
            lines += [one for entry in ordered(entries) for one in entry]
            entries = []
            lines.append(line)
    return "\n".join(lines[:-1])


def _listed(entry: Sequence[str]) -> str:
    """Return what an entry of a list is about: the text before its first colon or parenthesis."""
    return re.split(r":\s| \(|$", _DASH.sub("", entry[0]), maxsplit=1)[0].strip()


def _table(head: tuple[str, str], rows: Sequence[tuple[str, str]]) -> str:
    cells = [head, ("---", "---"), *((_in_cell(name), _in_cell(value)) for name, value in rows)]
    return "\n".join(f"| {name} | {value} |" for name, value in cells)


def _in_cell(text: str) -> str:
    """Return a text so that it stays in one cell: without line ends, and with its own bars marked."""
    return " ".join(text.splitlines()).replace("|", "\\|")


# -- drawn orders


class OrderLot(NamedTuple):
    """What draws the order of options and lists for one agent in one step, the same in every request and replay."""

    run_seed: int
    """Seed of the run."""

    agent: int
    """Mesa `unique_id` of the agent."""

    time: int
    """The step."""

    def order(self, things: Sequence[T], name: Callable[[T], Any]) -> list[T]:
        """Return things in the drawn order of their names, so that an option and its line in a list stay together.

        Args:
            things: The things.
            name: Returns the name of one.
        """
        return sorted(things, key=lambda thing: self._rank(str(name(thing))))

    def _rank(self, name: str) -> bytes:
        return hashlib.blake2b(f"{self.run_seed} {self.agent} {self.time} {name}".encode(), digest_size=8).digest()


# -- requests


def presented(request: Request, presentation: Presentation, *, is_drawn: bool = False) -> Request:
    """Return a request with its tools and options in the order of a presentation.

    Args:
        request: The request as its model makes it.
        presentation: The presentation.
        is_drawn: Whether the model's own order of options is a drawn one.
    """
    salt = request.salt
    lot = OrderLot(salt.run_seed % SAMPLE_SEEDS, salt.agent, salt.time)
    if presentation.tool_order != "own":
        is_drawn = presentation.tool_order == "drawn"
        tools = lot.order(request.tools, lambda spec: spec.name) if is_drawn else request.tools[::-1]
        request = replace(request, tools=tuple(tools))
    if is_drawn or presentation.option_order == "drawn":
        request = _with_ordered_options(request, lambda values: lot.order(values, str))
    if presentation.option_order == "reversed":
        request = _with_ordered_options(request, lambda values: values[::-1])
    return request


def _with_ordered_options(request: Request, ordered: Ordered) -> Request:
    return replace(
        request,
        options={name: tuple(ordered(list(values))) for name, values in request.options.items()},
        tools=tuple(_with_ordered_choices(spec, ordered) for spec in request.tools),
        schema=None if request.schema is None else _ordered_choices(request.schema, ordered),
    )


def _with_ordered_choices(spec: ToolSpec, ordered: Ordered) -> ToolSpec:
    parameters = _ordered_choices(spec.parameters, ordered)
    return spec if parameters == spec.parameters else _spec_of(spec, json.dumps(parameters))


@lru_cache(maxsize=1024)
def _spec_of(spec: ToolSpec, parameters: str) -> ToolSpec:
    """Return a tool with other parameters, the same object each time, as tools are compared by identity."""
    return ToolSpec(spec.name, spec.description, json.loads(parameters), spec.is_action)


def _ordered_choices(schema: Any, ordered: Ordered) -> Any:
    """Return a JSON schema with the choices of each of its parts in another order."""
    if isinstance(schema, Mapping):
        return {
            name: ordered(value) if name == "enum" and isinstance(value, list) else _ordered_choices(value, ordered)
            for name, value in schema.items()
        }
    return [_ordered_choices(one, ordered) for one in schema] if isinstance(schema, list) else schema


def another_config(agent: Any) -> AgentConfig:
    """Return the config of an agent with the persona, traits and style of the next agent of its class.

    Args:
        agent: The agent; the last one gets those of the first.
    """
    others = [other for other in llm_agents(agent.model) if type(other) is type(agent)]
    other = others[(others.index(agent) + 1) % len(others)].config
    return agent.config.model_copy(update={"persona": other.persona, "traits": other.traits, "style": other.style})


def presented_observation(seen: Observation, presentation: Presentation, lot: OrderLot) -> str:
    """Return the text of an observation in a presentation.

    Args:
        seen: The observation.
        presentation: The presentation.
        lot: What draws the order of its lists, if that is drawn.
    """
    own = presentation.observation_form, presentation.observation_order, presentation.list_order
    is_drawn = "drawn" in (seen.option_order, presentation.list_order)
    if not is_drawn and own == ("own", "own", "own"):
        return seen.text
    return observation_text(seen.text, *own, lot if is_drawn else None)


def require_wording(kind: type[Any], wording: str) -> None:
    """Check that there is a rewording of that name for a class, so that none runs in the original words by mistake.

    Args:
        kind: The class.
        wording: Name of a folder in `variants`, or path of a folder.

    Raises:
        ConfigError: If there is none.
    """
    if os.sep in wording:
        if not any(Path(wording).glob("*.md")):
            raise ConfigError(f"wording={wording!r} is no folder with reworded prompts (*.md)")
    elif wording and wording not in (names := wordings_of(kind)):
        raise ConfigError(
            f"{kind.__name__} has no wording {wording!r}{suggestion(wording, names)}; there are {', '.join(names)}, "
            f"and each folder in {FOLDER}/{WORDINGS} beside the model's code; a path has a {os.sep!r} in it"
        )
