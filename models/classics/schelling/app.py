"""The page of Schelling's town: `mesa-llm app models/classics/schelling/app.py`."""

from mesa_llm.viz import LLMPage
from models.classics.schelling.model import SchellingModel

page = LLMPage(SchellingModel, name="Schelling: segregation")
