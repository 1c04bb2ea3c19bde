"""The page of bounded confidence: `mesa-llm app models/classics/opinion/app.py`."""

from models.classics.charts import classic_page
from models.classics.opinion.model import OpinionModel

page = classic_page(OpinionModel, "Bounded confidence")
