"""The page of sugarscape: `mesa-llm app models/classics/sugarscape/app.py`."""

from models.classics.charts import classic_page
from models.classics.sugarscape.model import SugarModel

page = classic_page(SugarModel, "Sugarscape with traders")
