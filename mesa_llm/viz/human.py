"""People who play agents: their questions wait on the page, with the actions as buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import solara
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.engine.activation import minded
from mesa_llm.llm.human.desk import HumanDesk, HumanLLM, Question
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.forms import AnswerForm
from mesa_llm.viz.markup import Markup
from mesa_llm.viz.ticker import words


def desks_of(model: LLMModel) -> list[HumanDesk]:
    """Find the desks on which a model's questions to people lie."""
    named_llms = list(model.llm.values()) if isinstance(model.llm, Mapping) else [model.llm]
    llms = [*named_llms, *(agent.llm for agent in minded(model))]
    people = {id(llm): llm for llm in llms if isinstance(llm, HumanLLM)}
    return [person.desk for person in people.values()]


@component
def HumanPanel(model: LLMModel) -> None:
    """Show the questions that wait for a person, and let them be answered.

    Args:
        model: The model; a person plays in it.
    """
    update_counter.get()
    words.get()
    desks = use_memo(lambda: desks_of(model), [model])
    index, pick = use_state(0)
    questions = [(desk, question) for desk in desks for question in desk.pending]
    if not questions:
        solara.Info("You play: press Step, and what your agent has to decide appears here.", dense=True)
        return
    desk, question = next((pair for pair in questions if pair[1].agent == index), questions[0])
    with solara.Card(f"Your turn: {_name(model, question)} has to decide", classes=["mesa-llm-human"]):
        if len(questions) > 1:
            with solara.Row(gap="6px", style={"flex-wrap": "wrap"}):
                for _, other in questions[:30]:
                    _PickButton(model, other, other.agent == question.agent, pick)
        rules = "\n\n".join(m.content for m in question.request.messages if m.role == "system")
        Markup("question.html", rules=rules, text=question.text)
        AnswerForm(desk, question).key(f"question {question.question_id}")


@component
def _PickButton(model: LLMModel, question: Question, is_picked: bool, pick: Callable[[int], None]) -> None:
    solara.Button(_name(model, question), on_click=lambda: pick(question.agent), outlined=not is_picked, small=True)


def _name(model: LLMModel, question: Question) -> str:
    agent = next((agent for agent in minded(model) if agent.unique_id == question.agent), None)
    return f"agent {question.agent}" if agent is None else name_of(agent)


def name_of(agent: Any) -> str:
    """Return what an agent is called: its name, if it has one, and its number.

    Args:
        agent: An agent that thinks.
    """
    number = f"agent {agent.unique_id}"
    return f"{agent.config.name} ({number})" if agent.config.name else number
