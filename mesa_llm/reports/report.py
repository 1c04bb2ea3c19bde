"""Reports of runs for people: verdict, findings, coalitions and story, as records and as text."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, Field

from mesa_llm.config import Settings
from mesa_llm.errors import AllDecisionsFailed
from mesa_llm.llm.protocol import LLM
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Failure
from mesa_llm.text import clip, counted, one_line

if TYPE_CHECKING:
    import jinja2

MAX_FINDINGS = 8
"""Maximum number of findings by a language model."""

MAX_MATERIAL = 24_000
"""Maximum number of characters of the rule-based report that a language model reads."""

STORY_WORDS = 400
"""Maximum number of words of a story by a language model."""

Topic = Literal["measure", "turning_point", "market", "post", "outside", "failures", "summary"]
"""What a finding is about."""


class Finding(BaseModel, frozen=True):
    """Something that a run shows."""

    topic: Topic
    """Its topic."""

    title: str
    """The finding in a few words."""

    text: str
    """The finding in a sentence or two."""

    evidence: str = ""
    """Where it can be looked up: a table of the run, and rows of it."""


class Coalition(BaseModel, frozen=True):
    """Agents of one stance who are connected by mutual follows."""

    stance: Literal["for", "against"]
    """The stance they share."""

    members: tuple[str, ...]
    """Their names, in the order of their ids."""

    ties: int
    """Number of pairs among them who follow each other."""

    words: tuple[str, ...] = ()
    """The most frequent words in their posts."""


class Quotation(BaseModel, frozen=True):
    """A post of a phase."""

    name: str
    """Name of its author."""

    text: str
    """Its text."""


class Phase(BaseModel, frozen=True):
    """A part of a run."""

    title: str
    """Name of the part, with its steps."""

    text: str
    """What happened."""

    quotations: tuple[Quotation, ...] = ()
    """Posts of this part, the most liked first."""


class Report(BaseModel, frozen=True):
    """A report of a run."""

    title: str
    """Name of the model, and how far the run has got."""

    question: str
    """Question of the run."""

    by: str
    """Author: `rule`, or the name of a language model."""

    verdict: str
    """The result, in a few sentences."""

    findings: tuple[Finding, ...] = ()
    """What the run shows, the most striking first."""

    coalitions: tuple[Coalition, ...] = ()
    """The coalitions, the largest first."""

    story: str = ""
    """The run as a story, if a language model wrote one."""

    phases: tuple[Phase, ...] = ()
    """What happened, part by part."""

    def markdown(self) -> str:
        """Return the report as Markdown, with the agents' text escaped."""
        return _template("report.md").render(counted=counted, report=self)

    def fragment(self) -> str:
        """Return the report as an HTML fragment, with the agents' text escaped."""
        return _template("body.html").render(counted=counted, report=self)

    def html(self) -> str:
        """Return the report as an HTML page, with the agents' text escaped."""
        return _template("report.html").render(counted=counted, report=self)


class WrittenFinding(BaseModel):
    """A finding, as a language model writes it."""

    title: Annotated[str, Field(max_length=120)]
    """The finding in a few words."""

    text: Annotated[str, Field(max_length=800)]
    """The finding in one or two sentences."""

    evidence: Annotated[str, Field(max_length=400)] = ""
    """Numbers or the quotation that it rests on."""


class WrittenReport(BaseModel):
    """A report, as a language model writes it."""

    verdict: Annotated[str, Field(min_length=1, max_length=1500)]
    """What came out of the simulation on the question, in at most four sentences."""

    findings: Annotated[list[WrittenFinding], Field(max_length=MAX_FINDINGS)]
    """The findings, the most important first."""

    story: Annotated[str, Field(max_length=6000)]
    """What happened, in its order."""


def written_by(model: LLMModel, llm: str | LLM, report: Report) -> Report:
    """Have a language model rewrite a rule-based report. It sees nothing else of the run.

    One request, recorded in the model's run log under the purpose `report`.

    Args:
        model: The model of the run.
        llm: Language model that writes the report.
        report: The rule-based report.

    Returns:
        The report with verdict, findings and story of the language model; coalitions and phases stay.

    Raises:
        AllDecisionsFailed: If there is no usable reply.
    """
    material = clip(report.markdown(), MAX_MATERIAL)
    prompt = _template("write.md").render(material=material, n=MAX_FINDINGS, words=STORY_WORDS)
    (reply,) = model.consult(
        llm, [prompt], answer=WrittenReport, purpose="report", settings=Settings(max_tokens=4000, temperature=0.4)
    )
    if isinstance(reply, Failure):
        raise AllDecisionsFailed(f"{reply.by or llm} wrote no report: {reply.kind}: {reply.reason}")
    written: WrittenReport = reply.answer
    findings = tuple(
        Finding(topic="summary", title=one_line(one.title), text=one_line(one.text), evidence=one_line(one.evidence))
        for one in written.findings
    )
    texts = {"by": reply.by, "verdict": one_line(written.verdict), "story": written.story.strip()}
    return report.model_copy(update={**texts, "findings": findings})


def _escaped(text: str) -> str:
    """Escape a text so Markdown shows it unchanged."""
    return re.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", text)


@cache
def _template(name: str) -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=name.endswith(".html"),
    )
    environment.filters["plain"] = _escaped
    return environment.get_template(name)
