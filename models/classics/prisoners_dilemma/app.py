"""The page of the prisoner's dilemma: `mesa-llm app models/classics/prisoners_dilemma/app.py`."""

from mesa_llm.viz import LLMPage
from models.classics.prisoners_dilemma.model import DilemmaModel

page = LLMPage(DilemmaModel, name="Iterated prisoner's dilemma")
