"""The page of the epidemic: `mesa-llm app models/mesa_llm_models/classics/epidemic/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.epidemic.model import EpidemicModel

page = classic_page(EpidemicModel, "Epidemic on a network")
