"""Questionnaires: items, orders, keys, scores, and counts of missing answers.

For a model that asks questions:

- `Item(label, text, choices)` is one question. `choices` are numbers or texts; without any, it takes free text.
- `Sheet(label, items, text, instructions)` contains the questions of one turn: one item or a page of them. `sheets_of`
  puts a list of items on sheets; `Sheet.drawn` hands a sheet out several times, whose answers count as their mean.
- `Questionnaire` is the world. In the activation, `Turn(agent, world.ask(agent.unique_id, sheet))` creates a turn whose
  observation has the sheet as `facts`. Answers are delivered to `receive`; an agent of class
  `mesa_llm.agents.Respondent` reports a `Failure` with `fail`. `answers` has the answers by (agent, administration,
  sheet), `counts` the answers and failures of each item, `distributions()` the share of each possible answer.
- `Instrument` has numbered items, a `Scale` with reversed items, and `Subscale`s with norms. It scores answers, and
  computes the exact expected score of random answers. `read_instruments` reads them from a table,
  `read_json_instruments` from a file in the format of PsychoBench and EmotionBench.
- `Original` is a file of a study, downloaded on request and identified by its digest.
- `summary` and `compare` summarise scores and test them against norms.
"""

from mesa_llm.questionnaire.files import read_instruments
from mesa_llm.questionnaire.instruments import Instrument, Mode, Norm, Scale, Subscale, require_texts
from mesa_llm.questionnaire.items import DRAW, Answer, Item, Sheet, in_item_order, pages, sheets_of
from mesa_llm.questionnaire.json_files import WrittenInstrument, read_json_instruments
from mesa_llm.questionnaire.originals import ORIGINAL, Original
from mesa_llm.questionnaire.state import AnswerKey, ItemCount, Lack
from mesa_llm.questionnaire.statistics import Summary, TwoSampleTest, compare, summary
from mesa_llm.questionnaire.text import describe_scale, describe_sheet
from mesa_llm.questionnaire.world import Questionnaire

__all__ = [
    "DRAW",
    "ORIGINAL",
    "Answer",
    "AnswerKey",
    "Instrument",
    "Item",
    "ItemCount",
    "Lack",
    "Mode",
    "Norm",
    "Original",
    "Questionnaire",
    "Scale",
    "Sheet",
    "Subscale",
    "Summary",
    "TwoSampleTest",
    "WrittenInstrument",
    "compare",
    "describe_scale",
    "describe_sheet",
    "in_item_order",
    "pages",
    "read_instruments",
    "read_json_instruments",
    "require_texts",
    "sheets_of",
    "summary",
]
