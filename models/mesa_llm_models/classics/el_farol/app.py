"""The page of the El Farol problem: `mesa-llm app models/mesa_llm_models/classics/el_farol/app.py`."""

from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.el_farol.model import FarolModel

page = classic_page(FarolModel, "The El Farol problem")
