"""The page of the Boltzmann wealth model: `mesa-llm app models/classics/boltzmann_wealth/app.py`."""

from models.classics.boltzmann_wealth.model import WealthModel
from models.classics.charts import classic_page

page = classic_page(WealthModel, "Boltzmann wealth")
