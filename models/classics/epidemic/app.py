"""The page of the epidemic: `mesa-llm app models/classics/epidemic/app.py`."""

from models.classics.charts import classic_page
from models.classics.epidemic.model import EpidemicModel

page = classic_page(EpidemicModel, "Epidemic on a network")
