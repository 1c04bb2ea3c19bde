"""The page of week 9: the beer game, whose first button replays the recording.

Run it with `mesa-llm app notebooks/course/09_memory_replay/page.py`.
"""

from mesa_llm_models.beer.app import page

__all__ = ["page"]
