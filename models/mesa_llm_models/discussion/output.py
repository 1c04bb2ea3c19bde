"""A run in the form of SAUCE's output file: `python -m mesa_llm_models.discussion.output LOG FILE`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mesa_llm.worlds.room import Line, SurveyAnswer
from mesa_llm_models.discussion.config.plan import PersonPlan
from mesa_llm_models.discussion.model import DiscussionModel
from mesa_llm_models.discussion.session import Session
from mesa_llm_models.exports import export, rerun

Plans = Mapping[int, PersonPlan]
"""Mesa `unique_id` → the person, as the file has it."""


def sauce_output(model: DiscussionModel) -> Any:
    """Return a run in the form of SAUCE's output: an object, or for several rooms a list of them.

    Args:
        model: The model. Under the original rules each record of a survey holds the whole conversation; under the
            corrected ones, only its answers.

    Returns:
        For each room `chat_entry` (the messages) and `survey_question` (each private survey question, with the number
        of messages and its own `chat_entry`). Prompts are null, as they are in the run log; the form has no recipient,
        so that a whisper looks like any other message.
    """
    plans: Plans = {person.unique_id: person.plan for person in model.persons}
    outputs = [_of_room(session, plans) for session in model.sessions]
    for session, output in zip(model.sessions, outputs, strict=True):
        if session.is_original and model.plan.n_rooms:
            batches = [[_entry(plans, line) for line in lines] for lines in model.batch]
            for record in output["survey_question"]:
                record["chat_entry"] = batches
    return outputs if len(outputs) > 1 or model.plan.n_rooms else outputs[0]


def _of_room(session: Session, plans: Plans) -> dict[str, Any]:
    messages = [_entry(plans, line) for line in session.lines()]
    if session.is_original:
        everything = [_entry(plans, line) for line in session.room.lines]
        surveys = [(record.question.id, record.n_lines, everything) for record in session.records]
    else:
        answers: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
        times = Counter[tuple[str, int, int]]()  # by the clock, a question is asked again where nobody has spoken
        for answer in session.room.answers:
            person = (answer.question, answer.after, answer.agent_id)
            times[person] += 1
            answers.setdefault((*person[:2], times[person]), []).append(_answer(plans, answer))
        surveys = [(question, after, entries) for (question, after, _), entries in answers.items()]
    texts = {question.id: question.question for question in session.plan.experiment.survey_questions}
    records = [
        {"question_id": question, "question_content": texts[question], "iteration": after, "chat_entry": entries}
        for question, after, entries in surveys
    ]
    return {"chat_entry": messages, "survey_question": records}


def _entry(plans: Plans, line: Line) -> dict[str, Any]:
    return _written(plans, line.speaker_id, line.speaker, line.text, line.time or None)


def _answer(plans: Plans, answer: SurveyAnswer) -> dict[str, Any]:
    return _written(plans, answer.agent_id, answer.name, answer.answer, None)


def _written(plans: Plans, agent_id: int, name: str, text: Any, time: str | None) -> dict[str, Any]:
    entity = {
        "person_type": plans[agent_id].class_,
        "background_story": plans[agent_id].background_story,
        "name": name,
    }
    return {"entity": entity, "prompt": None, "answer": text, "original_embedding": None, "time": time}


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
