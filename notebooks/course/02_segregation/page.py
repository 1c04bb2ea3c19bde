"""The page of Schelling's town, with its recorded run: `mesa-llm app notebooks/course/02_segregation/page.py`."""

from mesa_llm_models.classics.schelling.app import page

__all__ = ["page"]
