"""The classics' studies: a recorded run of a language model beside its rule twin, and the form of a persona."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest

from mesa_llm.experiments.findings import Table
from mesa_llm.experiments.runs.experiment import cost_of
from mesa_llm.experiments.runs.run import COUNTS, counts_of
from mesa_llm.experiments.runs.study import Study, StudyFindings, StudySetup
from mesa_llm_models.classics.charts import twins_figure
from mesa_llm_models.classics.persona_form import PERSONA_FORM
from mesa_llm_models.classics.recordings import CLASSICS, Classic, run_twins

ONE_RUN = (
    "One run of each: whether a difference is more than chance between two runs of the same agents cannot be told. "
    "Several seeds of both can tell: mesa-llm sweep, and mesa-llm power for how many."
)
"""Limits of the figures."""


@dataclass(frozen=True)
class Twins:
    """A classic, run by a recorded language model and by its rule twin."""

    classic: Classic
    """The classic."""

    @property
    def question(self) -> str:
        """The question of the study."""
        return f"What does a language model change, compared with its rule twin? ({self.classic.label})"

    def run(self, setup: StudySetup) -> StudyFindings:
        """Replay the recorded run, and run its twin for as many steps.

        Args:
            setup: Settings of the twin, of which its language model, folder and limits count: the rest is that of the
                recorded run.
        """
        classic, start_s = self.classic, time.perf_counter()
        twin, replay = run_twins(classic.name, setup.llm, folder=setup.folder, limits=setup.limits)
        models = {setup.llm_text: twin, "recorded language model": replay}
        courses = {name: model.datacollector.model_vars[classic.measure] for name, model in models.items()}
        rows = [
            {"step": str(step), **dict(zip(courses, values, strict=True))}
            for step, values in enumerate(zip_longest(*courses.values()))
        ]
        nothing = dict.fromkeys((*COUNTS, "seconds"), 0)  # of the replay, whose replies are recorded
        cost = cost_of([{**nothing, **counts_of(twin)}, {**counts_of(replay), **nothing}])
        cost |= {"done": len(models), "seconds": time.perf_counter() - start_s}
        setting = {"seed": classic.run.rng, "language models": list(models), "steps": classic.steps}
        draw = partial(twins_figure, classic.name, twin, replay)
        return StudyFindings(classic.name, self.question, setting, cost, [Table(classic.label, rows)], draw, ONE_RUN)


TWINS = tuple(map(Twins, CLASSICS.values()))

ONE_RECORDING = "none, as one recorded run stands beside one of its rule twin, which shows no difference between them"

STUDIES = (
    *(Study(one.classic.name, one.question, one.classic.model, one.run, 1, ONE_RECORDING) for one in TWINS),
    PERSONA_FORM,
)
"""One study for each classic, and that of the form of a persona."""
