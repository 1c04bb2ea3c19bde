"""What an audit runs: its claims in all arms, which are the baseline, perturbations and controls, with all seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path

from mesa_llm.experiments.audits.claim import AuditClaim
from mesa_llm.experiments.audits.dimensions import AuditPlan, Perturbation, Setting, perturbation
from mesa_llm.experiments.audits.interactions import InteractionPlan
from mesa_llm.experiments.audits.looks import AuditLook, looks_at
from mesa_llm.experiments.audits.seal import SEAL, Seal
from mesa_llm.experiments.runs.run import Run
from mesa_llm.model.identity import name_of
from mesa_llm.model.model import LLMModel
from mesa_llm.statistics import ALPHA

WITHOUT_LLM: Mapping[str, Perturbation] = {
    name: perturbation("", f"{name} in place of the language model", llm=name) for name in ("rule", "random")
}
"""What decides in place of a language model, beside it → the runs with it."""


type Condition = tuple[int, int]
"""Indices of a claim, and of an arm in `AuditSetup.arms`."""


@dataclass(frozen=True)
class AuditSetup:
    """What an audit runs."""

    model: type[LLMModel]
    """Class of the model."""

    claims: Sequence[AuditClaim]
    """The claims."""

    llm: str
    """Language model of the baseline."""

    seeds: Sequence[int]
    """Seeds of the runs, in order: a look takes the first of them."""

    steps: int | None
    """Number of steps of a run; None to run until the model ends."""

    plan: AuditPlan
    """Perturbations and controls."""

    folder: Path
    """Folder of the logs and of the report."""

    setting: Setting = field(default_factory=Setting)
    """Parameters, design and options of all runs."""

    others: Sequence[str] = ()
    """Further language models, whose runs count as perturbations."""

    judge: str = ""
    """Language model that judges whether agents named the experiment; empty: the words of the claims do."""

    people: Path | None = None
    """Table of what people did, with columns named like the measures; None: not compared."""

    is_recorded: bool = False
    """Whether all runs are recorded, so that nothing may be asked."""

    seal: Seal | None = None
    """Seal of the claims, which the logs of new runs hold; None until the runs are made."""

    interactions: InteractionPlan | None = None
    """Which perturbations are made together; None: none."""

    look_numbers: tuple[int, ...] = ()
    """Numbers of seeds at which it looks; empty: once, at all seeds, which is a fixed design."""

    @property
    def looks(self) -> list[AuditLook]:
        """The looks, with their levels."""
        return looks_at(self.look_numbers) if self.look_numbers else [AuditLook(len(self.seeds), ALPHA, None)]

    @cached_property
    def arms(self) -> list[Perturbation | None]:
        """The baseline, the perturbations, the controls, and those without a language model."""
        return [None, *self.plan.perturbations, *self.plan.controls, *WITHOUT_LLM.values()]

    def runs(self, one: Condition, seed: int) -> list[Run]:
        """Return the runs of a claim in an arm with a seed, one for each of its settings."""
        claim, arm = one
        if (claim, arm, seed) not in self._runs:
            between = self.claims[claim].between
            self._runs[claim, arm, seed] = [self.job(self.under(each, self.arms[arm]), seed) for each in between]
        return self._runs[claim, arm, seed]

    @cached_property
    def _runs(self) -> dict[tuple[int, int, int], list[Run]]:
        return {}

    def settings(self, perturbation: Perturbation | None) -> Iterator[Setting]:
        """Yield the settings of all claims under a perturbation, each once."""
        seen: list[Setting] = []
        for claim in self.claims:
            for one in claim.between:
                setting = self.under(one, perturbation)
                if setting not in seen:
                    seen.append(setting)
                    yield setting

    def under(self, one: Setting, perturbation: Perturbation | None) -> Setting:
        """Return a setting of a claim under a perturbation."""
        whole = one.over(self.setting, keeps_llm=not one.llm)
        return whole if perturbation is None else perturbation.of(whole)

    def job(self, setting: Setting, seed: int) -> Run:
        """Return the run of a setting with a seed."""
        design = dict(setting.design)
        own = (name_of(self.model), setting.parameters, setting.llm, "audited" if design else "own", design)
        agents = tuple(claim.over_agents for claim in self.claims if claim.over_agents is not None)
        facts = {} if self.seal is None else {SEAL: self.seal.fact}
        return Run(*own, seed, self.steps, self.folder / "logs", setting.options, over_agents=agents, facts=facts)


def runs_of(setup: AuditSetup, n_seeds: Mapping[Condition, int] | None = None) -> list[Run]:
    """Return runs, each once, seed by seed, so that an audit that is stopped has whole blocks.

    Args:
        setup: The audit.
        n_seeds: Claim and arm → number of its seeds; None: all runs with all seeds.
    """
    jobs: dict[Path, Run] = {}
    for index, seed in enumerate(setup.seeds):
        for arm, claim in product(range(len(setup.arms)), range(len(setup.claims))):
            if n_seeds is None or index < n_seeds.get((claim, arm), 0):
                for job in setup.runs((claim, arm), seed):
                    jobs.setdefault(job.log, job)
    return list(jobs.values())


def n_runs(setup: AuditSetup) -> int:
    """Return the number of runs of an audit if it takes all looks: of the baseline, the perturbations and the controls.

    Args:
        setup: The audit.
    """
    return len(runs_of(setup))
