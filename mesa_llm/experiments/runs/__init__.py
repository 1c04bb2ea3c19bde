"""Runs: sweeps, studies, branches and recordings, and the one runner of all experiments.

- `runner`: many runs with one budget, in this process, in others, in threads or on Ray.
- `sweep`: parameters × personas × designs × language models × seeds, as one table.
- `study`: a question, the runs that answer it, and their findings; `arms`: study arms that share their seeds.
- `branch`: a recorded run forked at a step, with a change.
- `recordings`: the recorded runs that come with a model.
- `listening`: what language models would be asked.
"""
