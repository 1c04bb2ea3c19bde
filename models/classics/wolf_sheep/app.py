"""The page of wolves and sheep: `mesa-llm app models/classics/wolf_sheep/app.py`."""

from models.classics.charts import classic_page
from models.classics.wolf_sheep.model import MeadowModel

page = classic_page(MeadowModel, "Wolves and sheep")
