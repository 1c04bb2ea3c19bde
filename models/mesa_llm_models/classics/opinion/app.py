"""The page of bounded confidence: `mesa-llm app models/mesa_llm_models/classics/opinion/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.opinion.model import OpinionModel

page = classic_page(OpinionModel, "Bounded confidence")
