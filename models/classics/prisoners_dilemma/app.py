"""The page of the prisoner's dilemma: `mesa-llm app models/classics/prisoners_dilemma/app.py`."""

from models.classics.charts import classic_page
from models.classics.prisoners_dilemma.model import DilemmaModel

page = classic_page(DilemmaModel, "Iterated prisoner's dilemma")
