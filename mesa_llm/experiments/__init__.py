"""Experiments: many runs of a model, made by one runner, with one budget.

    from mesa_llm import experiments

    found = experiments.sweep(SocialModel, {"follows": [1, 3]}, llm=["gpt-4o", "rule"], seeds=10, out="runs/follows")

The names are listed in `__init__.pyi`, and each is fetched from its module when it is first used:

- `runs`: sweeps, studies, branches, recordings, and the one runner of all of them.
- `audits`: whether a claim about a model is stable under what should not matter.
- `benchmarks`: published tasks, and how far language models score from published values.
- `calibration`: parameters with which a model follows observed series, posteriors, sensitivity.
- `people`: simulated answers and results compared with those of people; agreement of judges with people's labels.
- `distillation`: a choice model fitted to recorded decisions, which can decide in their place.
- `environments`: models as environments of Gymnasium and PettingZoo.
- `persona`: contrasting personas, and how far a language model reacts to them.
- `tournament`: programs that play a game against each other.
"""

from __future__ import annotations

import lazy_loader

from mesa_llm._deprecated import keep_moved_modules

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

keep_moved_modules(__name__)
