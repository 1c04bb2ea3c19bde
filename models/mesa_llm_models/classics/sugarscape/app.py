"""The page of sugarscape: `mesa-llm app models/mesa_llm_models/classics/sugarscape/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.sugarscape.model import SugarModel

page = classic_page(SugarModel, "Sugarscape with traders")
