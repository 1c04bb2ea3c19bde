"""Shachi's studies: `mesa-llm study shachi` lists them, `mesa-llm study shachi worlds` runs one."""

from mesa_llm.experiments.study import Study
from mesa_llm_models.shachi import memory_transfer, swap, validity, worlds
from mesa_llm_models.shachi.other_life import CarriedModel
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel

STUDIES = (
    Study("swap", swap.QUESTION, swap.SwapModel, swap.study_swap),
    Study("memory", memory_transfer.QUESTION, CarriedModel, memory_transfer.study_memory),
    Study("worlds", worlds.QUESTION, TwoWorldsModel, worlds.study_worlds),
    Study("validity", validity.QUESTION, validity.ShockModel, validity.study_validity),
)
"""All studies."""
