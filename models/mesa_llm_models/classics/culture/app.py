"""The page of culture: `mesa-llm app models/mesa_llm_models/classics/culture/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.culture.model import CultureModel

page = classic_page(CultureModel, "The spread of culture")
