"""Simulated personas, and a rule twin whose degree of caricature is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, WithJsonSchema

from mesa_llm import ActionResult, Observation
from mesa_llm.agents import Respondent
from mesa_llm.llm.refusals import declines, is_assistant_greeting
from mesa_llm.questionnaire import Questionnaire, Sheet
from mesa_llm_models.compost.scores import PersonaTopic

N_SENTENCES, N_WORDS = 2, 7
"""Number of sentences in a text of the rule twin, and number of words in each."""

MARKED = 0.6
"""Expected share of the words of the rule twin that mark its persona or its topic."""


FIELDS = {"forum": "comment", "interview": "answer", "post": "message"}
"""Where texts appear → name of a text in a reply. Asked for a bare text, small language models speak of themselves."""


def answer_type(context: str, *, is_original: bool) -> Any:
    """Return the type of a text: an object with one field or, under the original rules, the bare text."""
    if is_original:
        return str
    field = FIELDS[context]
    text = {"type": "string", "minLength": 1, "maxLength": 500}
    schema = {"type": "object", "properties": {field: text}, "required": [field], "additionalProperties": False}

    def bare(value: object) -> object:
        return cast("Mapping[str, object]", value).get(field) if isinstance(value, Mapping) else value

    return Annotated[str, BeforeValidator(bare), WithJsonSchema(schema)]


class PersonaTexts(Questionnaire):
    """Collects the texts of personas: what a language model says in its own voice is none.

    Attributes:
        answer: Type of a text.
        n_declined: Number of replies so far in which it declined, or greeted as an assistant; their texts are missing.
    """

    n_declined = 0

    def __init__(self, answer: Any = str) -> None:
        """Store the type of a text."""
        super().__init__()
        self.answer = answer

    def ask(self, agent_id: int, sheet: Sheet) -> Observation:
        """Hand out a sheet; who writes is said last."""
        return replace(super().ask(agent_id, sheet), answer=self.answer, persona_place="last")

    def receive(self, agent_id: int, answer: Any, label: str) -> ActionResult:
        """Receive a text, or count it as missing if it is not the persona's."""
        if not (declines(str(answer)) or is_assistant_greeting(str(answer))):
            return super().receive(agent_id, answer, label)
        self.fail(agent_id, label, is_unparsable=False)
        self.n_declined += 1
        return ActionResult("", answers={}, n_faults=1)


class SimulatedPersona(Respondent):
    """A persona whose texts are simulated.

    Attributes:
        label: The persona, in a few words.
        level: Exaggeration of the rule twin, from 0 to 1: among the marking words of its texts, the expected share that
            marks the persona and not the topic.
    """

    def __init__(self, model: Any, label: str, level: float, **components: Any) -> None:
        """Store the persona.

        Args:
            model: The model.
            label: The persona, in a few words.
            level: Exaggeration of the rule twin, from 0 to 1.
            **components: Its config and memory.
        """
        super().__init__(model, **components)
        self.label, self.level = label, level

    def rule(self, seen: Observation) -> str:
        """Write words that mark the persona, the topic or neither, in the shares that its level gives."""
        cell: PersonaTopic = seen.facts.items[0].facts
        of_persona = self.model.words_of(self.label)
        of_topic = self.model.words_of(cell.topic)
        level = self.level if of_topic else 1.0
        sentences: list[str] = []
        for _ in range(N_SENTENCES):
            words = [self._word(level, of_persona, of_topic) for _ in range(N_WORDS)]
            sentences.append(" ".join(words).capitalize() + ".")
        return " ".join(sentences)

    def _word(self, level: float, of_persona: list[str], of_topic: list[str]) -> str:
        if self.random.random() < MARKED:
            words = of_persona if self.random.random() < level else of_topic
            if words:
                return self.random.choice(words)
        return self.random.choice(self.model.filler)
