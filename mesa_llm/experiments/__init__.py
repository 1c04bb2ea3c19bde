"""Experiments: many runs of a model, made by one runner, with one budget.

- `sweep`: parameters × designs × language models × seeds, as one table.
- `study`: a question, the runs that answer it, and their findings; `arms`: study arms that share their seeds.
- `branch`: a recorded run forked at a step, with a change.
- `benchmark`: published tasks, and how far language models score from published values.
- `recordings`: the recorded runs that come with a model.
- `persona`: contrasting personas, and how far a language model reacts to them.
- `tournament`: programs that play a game against each other.
"""
