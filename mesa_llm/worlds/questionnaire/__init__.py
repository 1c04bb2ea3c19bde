"""Questionnaires: items, orders, keys, scores, and what became of each answer.

The shape, for a model that asks questions:

- `Item(label, text, choices)` is one question; `choices` are numbers or texts, and none of them means a free text.
- `Sheet(label, items, text, instructions)` is what an agent is asked in one turn: one item or a page of them.
  `sheets_of` puts a list of items on sheets.
- `Questionnaire` is the world. In the activation, `Turn(agent, world.ask(agent.unique_id, sheet))` makes a turn, whose
  observation has the sheet as `facts`. Answers arrive by `receive`; an agent of the class `mesa_llm.agents.Respondent`
  reports a `Failure` with `fail`. `answers` holds what was answered by (agent, administration, sheet), `counts` what
  became of each item.
- `Instrument` has numbered items, a `Scale` with reversed items, and `Subscale`s with norms. It scores answers, and
  knows the exact expectation of someone who answers at random.
- `Original` is a file of a study: fetched on request, and known by its digest.
- `summary` and `compare` summarise scores and test them against norms.
"""

from mesa_llm.worlds.questionnaire.instruments import Instrument, Mode, Norm, Scale, Subscale
from mesa_llm.worlds.questionnaire.items import Answer, Item, Sheet, in_item_order, pages, sheets_of
from mesa_llm.worlds.questionnaire.originals import ORIGINAL, Original
from mesa_llm.worlds.questionnaire.state import ItemCount, Lack, Place
from mesa_llm.worlds.questionnaire.statistics import Comparison, Summary, compare, summary
from mesa_llm.worlds.questionnaire.text import describe_scale, describe_sheet
from mesa_llm.worlds.questionnaire.world import Questionnaire

__all__ = [
    "ORIGINAL",
    "Answer",
    "Comparison",
    "Instrument",
    "Item",
    "ItemCount",
    "Lack",
    "Mode",
    "Norm",
    "Original",
    "Place",
    "Questionnaire",
    "Scale",
    "Sheet",
    "Subscale",
    "Summary",
    "compare",
    "describe_scale",
    "describe_sheet",
    "in_item_order",
    "pages",
    "sheets_of",
    "summary",
]
