"""Human players: questions that wait for an answer, with buttons for the actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import solara
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.llm.human.queue import PendingQuestion
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.forms import AnswerForm
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.agents import agent_label
from mesa_llm.viz.session.session import human_queues

NOBODY: tuple[int, int] = (0, 0)
"""Initial selection of agent and question: none."""


@component
@llm_models_only
def HumanPanel(model: LLMModel) -> None:
    """Show the questions that wait for the visitor, with a form to answer them.

    Args:
        model: A model with human players.
    """
    use_page(model).moment()
    queues = use_memo(lambda: human_queues(model), [model])
    picked, pick = use_state(NOBODY)
    questions = [(queue, question) for queue in queues for question in queue.pending]
    if not questions:
        solara.Info("You are playing. Press Step, and your agent's next decision will appear here.", dense=True)
        return
    of_agent = [pair for pair in questions if pair[1].agent == picked[0]] or questions
    queue, question = next((pair for pair in of_agent if pair[1].question_id == picked[1]), of_agent[0])
    with solara.Card(f"Your turn: {_name(model, question)}", classes=["mesa-llm-human"]):
        if len(questions) > 1:
            names = button_names([(other, _name(model, other)) for _, other in questions])
            with solara.Row(gap="6px", style={"flex-wrap": "wrap"}):
                for (_, other), name in list(zip(questions, names, strict=True))[:30]:
                    _PickButton(name, other, other is question, pick)
        rules = "\n\n".join(m.content for m in question.request.messages if m.role == "system")
        Markup("question.html", rules=rules, text=question.text)
        AnswerForm(queue, question).key(f"question {question.question_id}")


@component
def _PickButton(name: str, question: PendingQuestion, is_picked: bool, pick: Callable[[tuple[int, int]], None]) -> None:
    picked = (question.agent, question.question_id)
    solara.Button(name, on_click=lambda: pick(picked), outlined=not is_picked, small=True)


def button_names(questions: Sequence[tuple[PendingQuestion, str]]) -> list[str]:
    """Return a label for each question: the agent, and a number if the agent has several.

    Args:
        questions: Waiting questions, each with the name of its agent.
    """
    numbers = Counter[int]()
    n_of = Counter(question.agent for question, _ in questions)
    names: list[str] = []
    for question, name in questions:
        numbers[question.agent] += 1
        is_alone = n_of[question.agent] == 1
        names.append(name if is_alone else f"{name}: {numbers[question.agent]} of {n_of[question.agent]}")
    return names


def _name(model: LLMModel, question: PendingQuestion) -> str:
    agent = next((agent for agent in llm_agents(model) if agent.unique_id == question.agent), None)
    return f"agent {question.agent}" if agent is None else agent_label(agent)
