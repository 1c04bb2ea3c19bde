"""The page of wolves and sheep: `mesa-llm app models/mesa_llm_models/classics/wolf_sheep/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.wolf_sheep.model import MeadowModel

page = classic_page(MeadowModel, "Wolves and sheep")
