"""Shachi's studies: `mesa-llm study shachi` lists them, `mesa-llm study shachi worlds` runs one."""

from mesa_llm.experiments.runs.study import Study
from mesa_llm_models.shachi import dynamics, memory_transfer, swap, validity, worlds
from mesa_llm_models.shachi.other_life import CarriedModel
from mesa_llm_models.shachi.two_worlds import TwoWorldsModel

FIT = "none, as the study compares runs with those of the original, and claims no effect of a treatment"
BACKENDS = "none, as language models are compared with each other; household rules stand beside them by their names"
MEMORIES = "a neutral memory of the same length, the same words shuffled, and the life of another topic"
NETWORKS = "neutral text of the same length, a memory for each world, and a first post about something else"
NO_NEWS = "the same exchange without the news"

STUDIES = (
    Study("prices", dynamics.PRICES_QUESTION, dynamics.PricesModel, dynamics.study_prices, 3, FIT),
    Study("priorities", dynamics.PRIORITIES_QUESTION, dynamics.PrioritiesModel, dynamics.study_priorities, 10, FIT),
    Study("swap", swap.QUESTION, swap.SwapModel, swap.study_swap, placebo=BACKENDS),
    Study("memory", memory_transfer.QUESTION, CarriedModel, memory_transfer.study_memory, placebo=MEMORIES),
    Study("worlds", worlds.QUESTION, TwoWorldsModel, worlds.study_worlds, placebo=NETWORKS),
    Study("validity", validity.QUESTION, validity.ShockModel, validity.study_validity, placebo=NO_NEWS),
)
"""All studies."""
