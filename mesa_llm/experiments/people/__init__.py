"""Simulated answers and results compared with those of people, and agreement of judges with people's labels.

- `comparison`: answers of several sources beside people's; `survey`: a model's survey by a language model, by rule, at
  random and without personas, beside people's.
- `answers`: tables of answers; `scales`: what a question allows; `distributions`: distances and spread.
- `prediction_powered`: estimates from a few people and many simulated answers.
- `agreement`: how far judges agree with people's labels.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"comparison": ["AnswerComparison", "PeopleComparison", "compare_with"]}
)
