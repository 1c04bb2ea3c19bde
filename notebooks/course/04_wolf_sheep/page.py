"""The page of wolves and sheep, with a recorded run: `mesa-llm app notebooks/course/04_wolf_sheep/page.py`."""

from mesa_llm_models.classics.wolf_sheep.app import page

__all__ = ["page"]
