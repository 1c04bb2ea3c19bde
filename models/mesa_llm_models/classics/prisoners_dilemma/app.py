"""The page of the prisoner's dilemma: `mesa-llm app models/mesa_llm_models/classics/prisoners_dilemma/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel

page = classic_page(DilemmaModel, "Iterated prisoner's dilemma")
