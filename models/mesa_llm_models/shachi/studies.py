"""Shachi's studies: `mesa-llm study shachi` lists them, `mesa-llm study shachi worlds` runs one."""

from mesa_llm.experiments.runs.study import Study
from mesa_llm_models.shachi import dynamics, memory_transfer, swap, validity, worlds
from mesa_llm_models.shachi.other_life import CarriedModel
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel

STUDIES = (
    Study("prices", dynamics.PRICES_QUESTION, dynamics.PricesModel, dynamics.study_prices, 3),
    Study("priorities", dynamics.PRIORITIES_QUESTION, dynamics.PrioritiesModel, dynamics.study_priorities, 10),
    Study("swap", swap.QUESTION, swap.SwapModel, swap.study_swap),
    Study("memory", memory_transfer.QUESTION, CarriedModel, memory_transfer.study_memory),
    Study("worlds", worlds.QUESTION, TwoWorldsModel, worlds.study_worlds),
    Study("validity", validity.QUESTION, validity.ShockModel, validity.study_validity),
)
"""All studies."""
