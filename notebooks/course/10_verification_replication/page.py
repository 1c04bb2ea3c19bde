"""The page of week 10: the money model at the size of its theory.

Run it with `mesa-llm app notebooks/course/10_verification_replication/page.py`.
"""

from mesa_llm.viz import LLMPage
from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel

page = LLMPage(WealthModel, parameters={"n_agents": 100, "size": 10}, name="Money: what theory says of it")
