"""A run in the form of SAUCE's output file: `python -m mesa_llm_models.discussion.output LOG FILE`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mesa_llm.engine.numbering import NUMBERS_PER_REQUEST
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.session import Session
from mesa_llm_models.discussion.world import Line, SurveyAnswer
from mesa_llm_models.exports import export, rerun

WRITING = frozenset({"write", "draft", "token", "choose"})
"""Labels of decisions whose reply is what a person says."""


def sauce_output(model: DiscussionModel) -> Any:
    """Return a run in the form of SAUCE's output: an object, or for several rooms a list of them.

    Args:
        model: The model. Under the original rules each record of a survey holds the whole conversation; under the
            corrected ones, only its answers.

    Returns:
        For each room `chat_entry` (the messages) and `survey_question` (each private survey question, with the number
        of messages and its own `chat_entry`). A prompt is a list of messages with a role, and null where no language
        model was asked; the form has no recipient, so that a whisper looks like any other message.
    """
    people = _Entries(model)
    outputs = [_of_room(session, people) for session in model.sessions]
    for session, output in zip(model.sessions, outputs, strict=True):
        if session.is_original and model.plan.n_rooms:
            batches = [[people.entry(line) for line in lines] for lines in model.batch]
            for record in output["survey_question"]:
                record["chat_entry"] = batches
    return outputs if len(outputs) > 1 or model.plan.n_rooms else outputs[0]


def _of_room(session: Session, people: _Entries) -> dict[str, Any]:
    messages = [people.entry(line) for line in session.lines()]
    if session.is_original:
        everything = [people.entry(line) for line in session.room.lines]
        surveys = [(record.question.id, record.n_lines, everything) for record in session.records]
    else:
        answers: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        times = Counter[tuple[str, int, int]]()  # by the clock, a question is asked again where nobody has spoken
        for answer in session.room.answers:
            person = (answer.question, answer.after, answer.agent_id)
            times[person] += 1
            answers.setdefault((*person[:2], times[person]), []).append(people.answer(answer))
        surveys = [(question, after, entries) for (question, after, _), entries in answers.items()]
    texts = {question.id: question.question for question in session.plan.experiment.survey_questions}
    records = [
        {"question_id": question, "question_content": texts[question], "iteration": after, "chat_entry": entries}
        for question, after, entries in surveys
    ]
    return {"chat_entry": messages, "survey_question": records}


class _Entries:
    """What people said, with who they are and what they had read, in the form of SAUCE's entries."""

    def __init__(self, model: DiscussionModel) -> None:
        """Find what each line and each answer was a reply to.

        Args:
            model: The model, after its run.
        """
        self.plans = {person.unique_id: person.plan for person in model.persons}
        calls = model.runlog.calls().to_dict("records")
        self._of_lines = _prompts_of_lines(model, calls)
        self._of_answers = _prompts_of_answers(model, calls)

    def entry(self, line: Line) -> dict[str, Any]:
        """Write a line."""
        return self._written(line.speaker_id, line.speaker, line.text, line.time or None, self._of_lines.get(id(line)))

    def answer(self, answer: SurveyAnswer) -> dict[str, Any]:
        """Write an answer given aside."""
        return self._written(answer.agent_id, answer.name, answer.answer, None, self._of_answers.get(id(answer)))

    def _written(self, agent_id: int, name: str, text: Any, time: str | None, prompt: Any) -> dict[str, Any]:
        plan = self.plans[agent_id]
        entity = {"person_type": plan.class_, "background_story": plan.background_story, "name": name}
        return {"entity": entity, "prompt": prompt, "answer": text, "original_embedding": None, "time": time}


def _prompts_of_lines(model: DiscussionModel, calls: Sequence[Mapping[Any, Any]]) -> dict[int, Any]:
    """Return the prompts that lines are replies to, by the identity of the line.

    A person's lines of a step are the replies to the requests for words that it had in that step, in order.
    """
    by_key = {row["key"]: row["prompt"] for row in calls}
    prompts: dict[tuple[int, int], list[str]] = {}
    for row in model.runlog.decisions().to_dict("records"):
        if row["label"] in WRITING and isinstance(row["keys"], str) and row["keys"]:
            prompts.setdefault((row["agent"], row["time"]), []).append(by_key.get(row["keys"].split()[0], ""))
    lines_at: dict[tuple[int, int], list[Line]] = {}
    for session in model.sessions:
        for line in [*session.room.lines, *session.room.aside]:
            lines_at.setdefault((line.speaker_id, line.turn), []).append(line)
    found: dict[int, Any] = {}
    for place, lines in lines_at.items():
        texts = prompts.get(place, [])
        if len(texts) == len(lines):  # not where one of several replies could not be used
            found |= {id(line): json.loads(text) for line, text in zip(lines, texts, strict=True) if text}
    return found


def _prompts_of_answers(model: DiscussionModel, calls: Sequence[Mapping[Any, Any]]) -> dict[int, Any]:
    """Return the prompts that private answers are replies to, by the identity of the answer, both in order."""
    prompts: dict[int, list[str]] = {}
    for row in calls:
        if row["purpose"] == "survey" and row["call"] % NUMBERS_PER_REQUEST == 0:
            prompts.setdefault(row["agent"], []).append(row["prompt"])
    answers_of: dict[int, list[SurveyAnswer]] = {}
    for answer in (answer for session in model.sessions for answer in session.room.answers):
        answers_of.setdefault(answer.agent_id, []).append(answer)
    pairs = [pair for one, answers in answers_of.items() for pair in zip(answers, prompts.get(one, []), strict=False)]
    return {id(answer): json.loads(text) for answer, text in pairs}


def output_of_log(log: str | Path) -> Any:
    """Return a recorded run in the form of SAUCE's output; it is replayed from its log, without a request.

    Args:
        log: The run log.

    Raises:
        ConfigError: If the log cannot be read, or holds no discussion.
    """
    model = rerun(DiscussionModel, log, "discussion; run one with mesa-llm run discussion --log")
    try:
        return sauce_output(model)
    finally:
        model.close()


if __name__ == "__main__":
    sys.exit(export("mesa_llm_models.discussion.output", output_of_log, sys.argv[1:]))
