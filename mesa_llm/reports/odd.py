"""ODD documents: a model described for readers who may want to build it again, by the ODD protocol.

The code, the prompts and the README of a model say most of what the protocol asks for. What only its author knows, such
as the theory behind it, is read from a file `odd.md` beside the model's code, with a heading for each element; what
nobody has written is marked as a blank.

Source:
    Grimm et al. (2020), The ODD Protocol for Describing Agent-Based and Other Simulation Models: A Second Update to
    Improve Clarity, Replication, and Structural Realism, JASSS 23(2) 7.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.reports.odd_facts import OddFacts, example_request, recorded_request
from mesa_llm.runlog.versions import DISTRIBUTION, versions
from mesa_llm.text import suggestion

FILE = "odd.md"
"""File beside the code of a model with what only its author can say; for a further module of a folder,
`MODULE.odd.md`."""

README = "README.md"
"""File beside the code of a model whose sections are read as well."""

ELEMENTS = (
    "Purpose and patterns",
    "Entities, state variables and scales",
    "Process overview and scheduling",
    "Design concepts",
    "Initialization",
    "Input data",
    "Submodels",
)
"""The seven elements, in order."""


@dataclass(frozen=True)
class OddPart:
    """A part of an ODD document: an element of the protocol, half of one, or a design concept."""

    element: int
    """Number of its element, from 1 to 7."""

    title: str
    """Its title, which is the heading of its text in `odd.md`."""

    question: str
    """What the protocol asks for."""

    section: str = ""
    """Section of the README that says it, too; empty: none does."""

    text: str = ""
    """What somebody has written, as Markdown."""

    facts: str = ""
    """What the program knows, as Markdown."""

    @property
    def is_blank(self) -> bool:
        """Whether nobody has written it."""
        return not self.text

    def markdown(self) -> str:
        """Return what is known of it; a blank is marked as such."""
        return "\n\n".join(filter(None, (self.text or f"[to be written: {self.question}]", self.facts)))


PARTS = (
    OddPart(1, "Purpose", "what the model is for, and which question it answers", "Question"),
    OddPart(1, "Patterns", "which patterns make it credible for that purpose", "Published numbers and ours"),
    OddPart(2, "Entities and state variables", "who and what is in the model, and what describes each", "Agents"),
    OddPart(2, "Scales", "what a step and a cell stand for, and how long and how large a run is"),
    OddPart(3, "Process overview and scheduling", "who does what in a step, in which order, and why in this order"),
    OddPart(4, "Basic principles", "which theories and hypotheses it rests on, and where they enter"),
    OddPart(4, "Emergence", "which results emerge from the agents' behaviour, and which are imposed by rules"),
    OddPart(4, "Adaptation", "which decisions agents make in response to what, and how they are modelled"),
    OddPart(4, "Objectives", "what agents try to achieve, and how they rank alternatives"),
    OddPart(4, "Learning", "whether and how agents change their behaviour with experience"),
    OddPart(4, "Prediction", "how agents foresee the consequences of what they may do"),
    OddPart(4, "Sensing", "what agents know, and with what errors", "What they see"),
    OddPart(4, "Interaction", "how agents affect each other, directly and through what they share"),
    OddPart(4, "Stochasticity", "what is drawn at random, and why"),
    OddPart(4, "Collectives", "which groups of agents affect their members, and whether groups are imposed or emerge"),
    OddPart(4, "Observation", "what is collected, when, and how it is summarised", "What is measured"),
    OddPart(5, "Initialization", "the state of the model at the start, and whether it differs between runs"),
    OddPart(6, "Input data", "which data from outside drive it while it runs, or that there are none"),
    OddPart(7, "Submodels", "each process in detail, with equations and parameters", "What they can do"),
)
"""The parts, in order; without a text."""

ASIDE = {"Source and differences": "Basic principles"}
"""Section of the README → part that it is added to, though it does not fill it."""


@dataclass(frozen=True)
class OddDocument:
    """A model, described by the ODD protocol."""

    name: str
    """Name of the model."""

    model: str
    """Its class, as `module:Class`."""

    parts: tuple[OddPart, ...]
    """The parts, in order."""

    file: str = FILE
    """Name of the file beside its code with what its author says of it."""

    @property
    def blanks(self) -> tuple[str, ...]:
        """Titles of the parts that nobody has written."""
        return tuple(part.title for part in self.parts if part.is_blank)

    def markdown(self) -> str:
        """Return the document as Markdown."""
        return (
            "\n\n".join([f"# ODD: {self.name}", _about(self), *map(self._element, range(1, len(ELEMENTS) + 1))]) + "\n"
        )

    def _element(self, number: int) -> str:
        """Return an element, with a heading for each of its parts if there are several."""
        parts = [part for part in self.parts if part.element == number]
        texts = [f"## {number}. {ELEMENTS[number - 1]}"]
        for index, part in enumerate(parts, 1):
            texts += [f"### {number}.{index} {part.title}"] if len(parts) > 1 else []
            texts.append(part.markdown())
        return "\n\n".join(texts)


def odd_of(kind: type[LLMModel], name: str = "", recording: Recording | None = None) -> OddDocument:
    """Describe a model by the ODD protocol.

    A model that is described without a run is made with its defaults and seed 1, and steps until the first request,
    which is shown as an example. No language model is asked; replies are drawn at random.

    Args:
        kind: Class of the model.
        name: Name of the model; empty: that of its class.
        recording: Run that is described, whose parameters and first request are shown; None: the model alone.

    Raises:
        ConfigError: If its `odd.md` has a heading of no part, or it cannot be made or stepped.
    """
    own = _own_file(kind)
    is_first = own is not None and own.name == FILE
    sections = {} if own is None or not is_first else _sections(own.with_name(README))
    written = {} if own is None else _written(own)
    request = example_request(kind) if recording is None else recorded_request(recording.file)
    values = None if recording is None else recording.parameters
    with closing(kind(rng=1) if recording is None else recording.rebuilt({"llm": "rule"})) as model:
        facts = OddFacts(model, own.parent if own is not None and is_first else None, request, values).by_part()
    aside = {part: section for section, part in ASIDE.items()}
    parts: list[OddPart] = []
    for part in PARTS:
        text = "\n\n".join(filter(None, (written.get(part.title, ""), sections.get(part.section, ""))))
        more = sections.get(aside.get(part.title, ""), "")
        known = "\n\n".join(filter(None, (more, facts.get(part.title, ""))))
        parts.append(replace(part, text=text, facts=known))
    model_name = f"{kind.__module__}:{kind.__qualname__}"
    return OddDocument(name or kind.__name__, model_name, tuple(parts), FILE if own is None else own.name)


def _about(document: OddDocument) -> str:
    own = versions().get(DISTRIBUTION, "")
    blanks = f" Blanks to be filled in: {', '.join(document.blanks)}." if document.blanks else ""
    return (
        "This document follows the ODD protocol (Grimm et al. 2020, JASSS 23(2) 7). `mesa-llm odd` has made it of the "
        f"code, the prompts, the README and the `{document.file}` of `{document.model}`, with {DISTRIBUTION} {own}."
        f"{blanks}"
    )


def _own_file(kind: type[LLMModel]) -> Path | None:
    """Return the file with what a model's author says of it, which need not exist; None: its code is in no file."""
    try:
        source = Path(inspect.getfile(kind))
    except (OSError, TypeError):  # defined in a notebook
        return None
    is_further = source.stem != "model" and source.with_name("model.py").exists()
    return source.with_name(f"{source.stem}.{FILE}" if is_further else FILE)


def _written(file: Path) -> Mapping[str, str]:
    """Read what somebody has written of each part; nothing if there is no such file.

    Raises:
        ConfigError: If a heading is that of no part.
    """
    titles = {_plain(part.title): part.title for part in PARTS}
    written: dict[str, str] = {}
    for heading, text in _sections(file).items():
        title = titles.get(_plain(heading))
        if title is None:
            names = ", ".join(titles.values())
            raise ConfigError(
                f"{file}: no part is called {heading!r}{suggestion(heading, titles.values())} (of {names})"
            )
        written[title] = text
    return written


def _plain(heading: str) -> str:
    """Return a heading as it is compared: without its number, case and punctuation."""
    return re.sub(r"[^a-z]+", " ", heading.lower()).strip().replace("initialisation", "initialization")


def _sections(file: Path) -> dict[str, str]:
    """Read the sections under the headings of the second level of a Markdown file, without empty ones.

    Headings in them are two levels lower than in the file.
    """
    if not file.is_file():
        return {}
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    fence = ""
    for line in file.read_bytes().decode("utf-8", "replace").splitlines():
        if found := re.match(r"(`{3,}|~{3,})", line):
            fence = found[1] if not fence else "" if line.startswith(fence) else fence
        elif not fence and line.startswith("## "):
            lines = sections.setdefault(line.removeprefix("## ").strip(), [])
            continue
        elif not fence and re.match(r"#{3,4} ", line):
            line = f"##{line}"
        lines.append(line)
    texts = {heading: "\n".join(lines).strip() for heading, lines in sections.items()}
    return {heading: re.sub(r"\[([^\]]+)\]\(#[^)]*\)", r"\1", text) for heading, text in texts.items() if text}
