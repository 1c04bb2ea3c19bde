"""The page of Schelling's town: `mesa-llm app models/classics/schelling/app.py`."""

from models.classics.charts import classic_page
from models.classics.schelling.model import SchellingModel

page = classic_page(SchellingModel, "Schelling: segregation")
