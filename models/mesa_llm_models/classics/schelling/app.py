"""The page of Schelling's town: `mesa-llm app models/mesa_llm_models/classics/schelling/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.schelling.model import SchellingModel

page = classic_page(SchellingModel, "Schelling: segregation")
