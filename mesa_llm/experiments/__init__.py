"""Experiments: many runs of a model, made by one runner, with one budget.

- `sweep`: parameters × designs × language models × seeds, as one table.
- `calibration`: the parameters with which a model follows observed series; `target`: the series, and steps held out;
  `posterior`: approximate Bayesian computation, and whether it recovers what is known.
- `audit`: whether a claim about a model is stable under what should not matter; `listening`: what language models would
  be asked.
- `sensitivity`: how much of a result is due to which parameter; `ranges`: ranges of parameters.
- `study`: a question, the runs that answer it, and their findings; `arms`: study arms that share their seeds.
- `branch`: a recorded run forked at a step, with a change.
- `benchmark`: published tasks, and how far language models score from published values.
- `recordings`: the recorded runs that come with a model.
- `distillation`: a choice model fitted to recorded decisions, which can decide in their place.
- `people`: simulated answers and results beside those of people; `survey_comparison`: a model's survey by a language
  model, by rule, at random and without personas; `answers`: their tables; `distributions`: distances and spread;
  `prediction_powered`: estimates from a few people and many simulated answers.
- `agreement`: how far judges agree with people's labels.
- `persona`: contrasting personas, and how far a language model reacts to them.
- `tournament`: programs that play a game against each other.
"""
