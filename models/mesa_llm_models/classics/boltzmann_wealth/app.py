"""The page of the Boltzmann wealth model: `mesa-llm app models/mesa_llm_models/classics/boltzmann_wealth/app.py`."""

from mesa_llm_models.classics.boltzmann_wealth.model import WealthModel
from mesa_llm_models.classics.charts import classic_page

page = classic_page(WealthModel, "Boltzmann wealth")
